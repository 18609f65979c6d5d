"""Measures of rankings, and their distributions under random selection."""
