"""Detected change points beside those that people marked: counts within a margin, curves, areas and delays."""
