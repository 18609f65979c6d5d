"""Detected change points beside those that people marked: counts within a margin, curves, areas and delays."""

from __future__ import annotations

from pipeline.stages.change_points.stage import STAGE

__all__ = ["STAGE"]
