"""Values so large that the engine cannot hold a batch of them: footers and a few values tell, before a scan begins."""

from __future__ import annotations

import os
from itertools import islice
from typing import TYPE_CHECKING

from ..engines.memory import limit_of
from ..errors import ResourceError
from ..sources.parquet_files import DataFile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..plan.plan import Plan
    from ..sources.source import Source

BATCH_ROWS = 2048  # that a thread of DuckDB has in hand; their text is not counted to its memory limit
MOST_FILES = 8  # of an input that are looked at
WIDE = 1_000.0  # bytes: with smaller values it is the limit that is at fault, of which the engine tells
_UNITS = {"GB": 1e9, "MB": 1e6, "KB": 1e3}


def refuse_wide_values(plan: Plan, memory: int | None, threads: int | None) -> None:
    """Refuse columns of which the batches of all threads together take more than the memory limit.

    Args:
        plan: What will be read.
        memory: The limit in bytes; None: that which the engine chooses.
        threads: Number of threads; None: all cores.

    Raises:
        ResourceError: names the column, its file and the size of its values.
    """
    limit, workers = limit_of(memory), threads or os.cpu_count() or 1
    for source in plan.sources:
        for file in islice(_large_files(source, limit / BATCH_ROWS / workers), MOST_FILES):
            for column in dict.fromkeys(_columns_read(plan, source)):
                batch = min(BATCH_ROWS, file.rows)
                size = file.value_bytes(column, limit / batch / workers, limit / 4)
                if size > WIDE and size * batch * workers > limit:
                    message = (
                        f"input {source.name}: the values of column {column!r} in {file.name} have about "
                        f"{_in_words(size)} each: the engine reads {batch:,} at a time in each of {workers} threads, "
                        f"{_in_words(size * batch * workers)} together, and its memory limit is {_in_words(limit)}"
                    )
                    remedy = "Write shorter values, such as hashes, or lower threads or raise memory in [resources]."
                    raise ResourceError(message, remedy=remedy)


def _large_files(source: Source, size: float) -> Iterator[DataFile]:
    """Files with a row group of at least that many bytes, each of which may hold a value as large."""
    return (file for file in source.files if isinstance(file, DataFile) and file.largest_group > size)


def _in_words(size: float) -> str:
    unit = next((unit for unit, n_bytes in _UNITS.items() if size >= n_bytes), "KB")
    return f"{size / _UNITS[unit]:,.0f} {unit}"


def _columns_read(plan: Plan, source: Source) -> Iterator[str]:
    yield from source.where_columns
    for relation in plan.relations:
        if relation.source is not None and relation.source.name == source.name:
            for name in relation.reads:
                yield from source.columns_read(name)
