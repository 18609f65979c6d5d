"""Predicted places beside gold places: counts within every tolerance, and the errors in kilometres."""

from __future__ import annotations

from pipeline.stages.geocoding.stage import STAGE

__all__ = ["STAGE"]
