"""Two or more systems on the same units: tests, intervals and posteriors."""

from __future__ import annotations

from pipeline.stages.compare.stage import STAGE

__all__ = ["STAGE"]
