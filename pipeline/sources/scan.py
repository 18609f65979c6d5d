"""Rows of an input as an engine is told of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.sources.engine_rows import EngineRows
from pipeline.sources.frames import FrameRows
from pipeline.sources.parquet_files import DataFile

if TYPE_CHECKING:
    from pipeline.sources.rows import Rows


@dataclass(frozen=True)
class Scan:
    """Files with the same schema, a frame, or rows that the engine reads, to be registered under one name.

    Attributes:
        name: Logical relation.
        files: Absolute paths, in order; none for others.
        frame: The frame; None for others.
        engine_rows: What the engine reads itself; None for others.
    """

    name: str
    files: tuple[str, ...]
    frame: FrameRows | None = None
    engine_rows: EngineRows | None = None


def scan_of(name: str, files: tuple[Rows, ...]) -> Scan:
    """Return the scan of files with the same schema, or of other rows, which stand alone."""
    if isinstance(files[0], EngineRows):
        return Scan(name, (), engine_rows=files[0])
    if isinstance(files[0], FrameRows):
        return Scan(name, (), files[0])
    return Scan(name, tuple(str(file.path) for file in files if isinstance(file, DataFile)))
