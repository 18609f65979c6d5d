"""Curves over thresholds, the areas under them, and points on them."""
