"""Keys of the inputs: which repeat, which are missing, and which find no row in another input."""

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
    """A key by which rows of one input find those of another; that few of them do is said.

    Attributes:
        source: The input whose rows look for the others.
        other: The input that they look in.
        key: The column that both have.
        unmatched_status: Status of rows that find no match and are left out; None if such rows count all the same.
    """

    source: Source
    other: Source
    key: str
    unmatched_status: str | None = None


def repeated_keys(relation: str, keys: Sequence[str], *, everything: bool = False) -> exp.Select:
    """Two keys, at most, that more than one row of a relation has, with `n_rows` and, of all such keys, `_n_keys`.

    A key with NULL is not known, so never the same.

    Args:
        relation: Its name.
        keys: The columns of the key.
        everything: Whether all rows count, not only those that `where` keeps.
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
    """How many kept rows of a relation satisfy a condition; no row when none does."""
    counted = exp.alias_(exp.cast(exp.Count(this=exp.Star()), "BIGINT"), "n_rows")
    query = exp.select(counted).from_(exp.to_table(relation)).where(column(PASSES_WHERE), condition)
    return query.having(exp.GT(this=exp.Count(this=exp.Star()), expression=exp.Literal.number(0)))


def is_missing(name: str) -> exp.Expr:
    """Whether a column is NULL, which it also is where it was not finite."""
    return exp.Is(this=column(name), expression=exp.null())
