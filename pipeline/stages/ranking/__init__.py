"""Rankings of documents with judged relevance: measures of every query, beside those of random selection."""

from __future__ import annotations

from pipeline.stages.ranking.stage import STAGE

__all__ = ["STAGE"]
