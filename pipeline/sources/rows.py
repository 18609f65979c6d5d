"""The rows of an input, wherever they lie: in a file, in a frame, or where an engine reads them itself."""

from __future__ import annotations

from typing import TypeAlias

from pipeline.sources.engine_rows import EngineRows
from pipeline.sources.frames import FrameRows
from pipeline.sources.parquet_files import DataFile

Rows: TypeAlias = DataFile | FrameRows | EngineRows


def is_passed_in(rows: Rows) -> bool:
    """Whether rows came from a frame, so that nothing of them is left when the run has ended."""
    if not isinstance(rows, DataFile):
        return isinstance(rows, FrameRows)
    return bool(rows.label) and rows.origin is None and not rows.is_remote
