"""Calibration of probabilities: reliability in bins, calibration errors, the Brier score in parts, tests."""
