"""Rows of inputs become relations of an engine: files are scanned, tables in memory are handed over."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipeline.engines.engine import Engine
    from pipeline.sources.source import Scan


def register(engine: Engine, scan: Scan, *, located: bool = False) -> None:
    """Make the rows of a scan a relation of an engine.

    Args:
        engine: The engine.
        scan: Files of one schema, or a frame.
        located: Whether to add the columns `source_file` and `file_row_number`.
    """
    if scan.frame is None:
        engine.scan(scan.name, scan.files, located=located)
    else:
        engine.hand_over(scan.name, scan.frame.located() if located else scan.frame.table)
