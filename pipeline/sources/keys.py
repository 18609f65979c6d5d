"""Keys of the inputs: which repeat, which are missing, and which have no match in another input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import sqlglot.expressions as exp

from pipeline.queries.dialect import column
from pipeline.sources.source import PASSES_WHERE

if TYPE_CHECKING:
    from pipeline.sources.source import Source


@dataclass(frozen=True)
class KeyMatch:
    """A key by which rows of one input look up those of another; if too few match, a warning says so.

    Attributes:
        source: The input whose rows look up others.
        other: The input in which they look.
        key: The column that both inputs have.
        unmatched_status: Status of rows that find no match and are left out; None if such rows count all the same.
    """

    source: Source
    other: Source
    key: str
    unmatched_status: str | None = None


def count_where(relation: str, condition: exp.Expr) -> exp.Select:
    """Count the rows of a relation that pass `where` and satisfy a condition; the result is empty if none does."""
    counted = exp.alias_(exp.cast(exp.Count(this=exp.Star()), "BIGINT"), "n_rows")
    query = exp.select(counted).from_(exp.to_table(relation)).where(column(PASSES_WHERE), condition)
    return query.having(exp.GT(this=exp.Count(this=exp.Star()), expression=exp.Literal.number(0)))
