"""Rows of an input as an engine is told of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..queries.partitions import Partition
from ..records import dataclass
from .engine_rows import EngineRows
from .frames import FrameRows
from .parquet_files import DataFile
from .partition_filter import partition_type
from .rows import is_partition, partition_column

if TYPE_CHECKING:
    from .rows import Rows


@dataclass(frozen=True)
class Scan:
    """Files with the same schema, a frame, or rows that the engine reads, to be registered under one name.

    Attributes:
        name: Logical relation.
        files: Absolute paths, in order; none for others.
        partitions: Columns that the files lack, with their values in each file.
        frame: The frame; None for others.
        engine_rows: What the engine reads itself; None for others.
    """

    name: str
    files: tuple[str, ...]
    partitions: tuple[Partition, ...] = ()
    frame: FrameRows | None = None
    engine_rows: EngineRows | None = None


def scan_of(name: str, files: tuple[Rows, ...]) -> Scan:
    """Return the scan of files with the same schema and partitions, or of other rows, which stand alone."""
    first = files[0]
    if isinstance(first, EngineRows):
        return Scan(name, (), engine_rows=first)
    if isinstance(first, FrameRows):
        return Scan(name, (), frame=first)
    partitions = []
    for folder in first.partitions:
        if is_partition(first, folder):
            values = tuple(file.partitions[folder] for file in files)
            partitions.append(Partition(partition_column(first, folder), partition_type(first, folder), values))
    return Scan(name, tuple(str(file.path) for file in files if isinstance(file, DataFile)), tuple(partitions))
