"""Keys of the inputs: which repeat, which are missing, and which have no match in another input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import sqlglot.expressions as exp

from pipeline.queries.dialect import column, present
from pipeline.sources.source import PASSES_WHERE

if TYPE_CHECKING:
    from collections.abc import Sequence

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


def repeated_keys(relation: str, keys: Sequence[str], *, everything: bool = False) -> exp.Select:
    """Select at most two keys that repeat in a relation, with `n_rows` and the number of all such keys, `_n_keys`.

    A key with a NULL is unknown, so it never repeats.

    Args:
        relation: Its name.
        keys: The columns of the key.
        everything: Whether all rows count, not only those that pass `where`.
    """
    counted = exp.alias_(exp.cast(exp.Count(this=exp.Star()), "BIGINT"), "n_rows")
    all_keys = exp.Window(this=exp.Count(this=exp.Star()))  # counts what HAVING keeps, before LIMIT
    number = exp.alias_(exp.cast(all_keys, "BIGINT"), "_n_keys", quoted=True)
    query = exp.select(*(column(key) for key in keys), counted, number).from_(exp.to_table(relation))
    query = query if everything else query.where(column(PASSES_WHERE))
    query = query.where(*(present(column(key)) for key in keys))
    query = query.group_by(*(column(key) for key in keys))
    more = exp.GT(this=exp.Count(this=exp.Star()), expression=exp.Literal.number(1))
    return query.having(more).order_by(*(column(key) for key in keys)).limit(2)


def count_where(relation: str, condition: exp.Expr) -> exp.Select:
    """Count the rows of a relation that pass `where` and satisfy a condition; the result is empty if none does."""
    counted = exp.alias_(exp.cast(exp.Count(this=exp.Star()), "BIGINT"), "n_rows")
    query = exp.select(counted).from_(exp.to_table(relation)).where(column(PASSES_WHERE), condition)
    return query.having(exp.GT(this=exp.Count(this=exp.Star()), expression=exp.Literal.number(0)))


def is_missing(name: str) -> exp.Expr:
    """Test whether a column is NULL, as it also is where the value was not finite."""
    return exp.Is(this=column(name), expression=exp.null())
