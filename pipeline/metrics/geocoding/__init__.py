"""Distances on the Earth, and accuracy within tolerances."""
