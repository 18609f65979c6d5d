"""Columns that files lack and a relation of their rows has: one value for each file, that of a folder's name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import sqlglot.expressions as exp

from pipeline.queries.dialect import data_type

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True)
class Partition:
    """A column with one value for each file of a relation.

    Attributes:
        name: Name of the column, as the folders have it.
        sql_type: Its type.
        values: Its value in each file, in the order of the files, as text; None is NULL.
    """

    name: str
    sql_type: str
    values: tuple[str | None, ...]

    @property
    def column(self) -> str:
        """Name of the column in the relation."""
        return column_of(self.name)

    def of(self, files: Iterable[int]) -> Partition:
        """The same for some of the files."""
        return Partition(self.name, self.sql_type, tuple(self.values[index] for index in files))

    def typed(self, text: exp.Expr) -> exp.Expr:
        """Return the column as a select item, of an expression for its text."""
        return exp.alias_(exp.cast(text, data_type(self.sql_type)), self.column, quoted=True)

    def constant(self, file: int) -> exp.Expr:
        """Return the column as a select item for the rows of one file."""
        value = self.values[file]
        return self.typed(exp.null() if value is None else exp.Literal.string(value))


def column_of(name: str) -> str:
    """Return the name of a partition's column in a relation: that of the folders may also be one of the files."""
    return f"folder:{name}"
