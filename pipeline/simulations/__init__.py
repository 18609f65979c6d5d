"""Simulated data whose truth is known, one file per stage: for the demo, for tests and for measuring coverage."""
