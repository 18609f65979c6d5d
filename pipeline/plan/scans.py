"""Rows of inputs become relations of an engine: files are scanned, tables in memory handed over, its own named."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..engines.engine import ReadsPlaces
from ..errors import ThresherError

if TYPE_CHECKING:
    from ..engines.engine import Engine
    from ..sources.scan import Scan


def register(engine: Engine, scan: Scan, *, located: bool = False) -> None:
    """Make the rows of a scan a relation of an engine.

    Args:
        engine: The engine.
        scan: Files of one schema, a frame, or what the engine reads itself.
        located: Whether to add the columns `source_file` and `file_row_number`.
    """
    if (rows := scan.engine_rows) is not None:
        if not isinstance(engine, ReadsPlaces):
            message = f"the engine {engine.name} does not read {rows.name}"
            raise ThresherError(message)
        engine.scan_place(scan.name, rows, located=located)
    elif scan.frame is None:
        engine.scan(scan.name, scan.files, scan.partitions, located=located)
    else:
        engine.hand_over(scan.name, scan.frame.located() if located else scan.frame.table)
