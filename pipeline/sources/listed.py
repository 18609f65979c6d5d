"""A file that an input names, before anything is read from it."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from ..records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from .parquet_files import DataFile


@dataclass(frozen=True)
class Listed:
    """A file that an input names, of which nothing has been read yet.

    Attributes:
        name: What messages call it.
        partitions: As those of `DataFile`.
        open: Reads its footer.
        partition_types: None: folder names are text.
        is_remote: Whether it has to be copied from a remote store.
    """

    name: str
    partitions: dict[str, str | None]
    open: Callable[[], DataFile]
    partition_types: dict[str, pa.DataType] = field(default_factory=dict)
    is_remote: bool = False
