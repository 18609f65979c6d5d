"""Pure functions over counts: ratios, sweeps, estimators. No files, no connections."""
