"""Labelled predictions at every threshold: counts, curves, areas and operating points."""

from __future__ import annotations

from pipeline.stages.threshold_sweep.stage import STAGE

__all__ = ["STAGE"]
