"""Detected change points beside true ones: windows, matching, areas."""
