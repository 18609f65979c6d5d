"""Labelled predictions at every threshold: counts, curves, areas and operating points."""
