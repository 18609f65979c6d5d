"""Gold and predicted mentions of entities: matches, scores at every threshold, averages over documents."""

from __future__ import annotations

from pipeline.stages.entity_recognition.stage import STAGE

__all__ = ["STAGE"]
