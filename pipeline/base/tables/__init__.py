"""Shapes of tables: column contracts, groupings, sweeps and ratios."""
