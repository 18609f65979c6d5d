"""Limits that hold at all thresholds together: their table, and their region in figures."""
