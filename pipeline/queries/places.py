"""What an engine tells of a table, or of files at an address, before their rows are read."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any

from ..records import dataclass

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Description:
    """What an engine tells.

    Attributes:
        schema: Columns with their Arrow types; null for those that Arrow has no type for.
        unreadable: The columns that Arrow has no type for, with what the engine calls their types.
        rows: Rows, as the engine counts them.
        has_places: Whether the engine tells the file of every row, and its number there.
        identity: What is recorded of them: number, bytes, latest change and a hash of the list of their files, as far
            as the engine tells.
        files: Addresses of the files; none where the engine does not tell.
    """

    schema: pa.Schema
    unreadable: dict[str, str]
    rows: int
    has_places: bool
    identity: dict[str, Any] = field(default_factory=dict)
    files: tuple[str, ...] = ()
