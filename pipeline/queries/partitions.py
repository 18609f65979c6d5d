"""What is known of a relation before its rows are read: columns of folder names, what an engine tells of a table."""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

import sqlglot.expressions as exp

from ..records import dataclass
from .dialect import data_type

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa


# What an engine tells of a table, or of files at an address, before their rows are read.


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


# Columns that files lack and a relation of their rows has: one value for each file, that of a folder's name.


FILE = "of:file"  # number of the file that a row comes from


@dataclass(frozen=True)
class Partition:
    """A column with one value for each file of a relation.

    Attributes:
        column: Its name in the relation.
        sql_type: Its type.
        values: Its value in each file, in the order of the files, as text; None is NULL.
    """

    column: str
    sql_type: str
    values: tuple[str | None, ...]

    def of(self, files: Iterable[int]) -> Partition:
        """The same for some of the files."""
        return replace(self, values=tuple(self.values[index] for index in files))

    def typed(self, text: exp.Expr) -> exp.Expr:
        """Return the column as a select item, of an expression for its text."""
        return exp.alias_(exp.cast(text, data_type(self.sql_type)), self.column, quoted=True)

    def constant(self, file: int) -> exp.Expr:
        """Return the column as a select item for the rows of one file."""
        value = self.values[file]
        return self.typed(exp.null() if value is None else exp.Literal.string(value))
