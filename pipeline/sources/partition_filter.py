"""Which files `where` leaves out by their partitions alone, so that they are never opened."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

import sqlglot.expressions as exp

from pipeline.queries.dialect import column, data_type
from pipeline.sources import predicates
from pipeline.sources.types import column_type

if TYPE_CHECKING:
    import pyarrow as pa

Truths = Callable[["exp.Expr", "pa.Table"], Sequence[bool | None]]


class Partitioned(Protocol):
    """Whatever has partitions: a file, or what leads to one."""

    @property
    def partitions(self) -> Mapping[str, str | None]:
        """Column → value; None is NULL."""

    @property
    def partition_types(self) -> Mapping[str, pa.DataType]:
        """Column → its type, for columns that are not text."""


T = TypeVar("T", bound=Partitioned)
TEXT = "VARCHAR"
_Values = tuple[tuple[str, str | None, str], ...]  # name, value and SQL type of every column


def partition_type(item: Partitioned, name: str) -> str:
    """Return the SQL type of a partition column; those of folder names are text."""
    arrow = item.partition_types.get(name)
    return TEXT if arrow is None else column_type(arrow)


def none_known(_predicate: exp.Expr, values: pa.Table) -> Sequence[bool | None]:
    """Stand in for an engine where none is needed: nothing is certain, so no file is left out."""
    return [None] * values.num_rows


def columns_that_decide(where: exp.Expr | None, items: Sequence[Partitioned]) -> tuple[str, ...]:
    """Return the partition columns that a predicate reads."""
    names = () if where is None else predicates.columns_of(where)
    return tuple(name for name in names if any(name in item.partitions for item in items))


def left_out(where: exp.Expr | None, items: Sequence[T], truths: Truths) -> list[T]:
    """Return the items for no row of which a predicate can be true, whatever else the rows contain.

    Args:
        where: The predicate; None: every row is used.
        items: Files, or what leads to them.
        truths: Says of every row of a table whether a predicate on its columns holds, None where it cannot tell.
    """
    used = columns_that_decide(where, items)
    if where is None or not used:
        return []
    by_names: dict[tuple[str, ...], dict[_Values, list[T]]] = {}
    for item in items:
        values = tuple(
            (name, item.partitions[name], partition_type(item, name)) for name in used if name in item.partitions
        )
        by_names.setdefault(tuple(name for name, _, _ in values), {}).setdefault(values, []).append(item)
    return [
        item
        for names, items_of in by_names.items()
        if (bound := _necessary(where, frozenset(names))) is not None
        for values in _without_row(bound, list(items_of), truths)
        for item in items_of[values]
    ]


def _necessary(tree: exp.Expr, names: frozenset[str]) -> exp.Expr | None:
    """Return what must hold of some columns wherever a predicate is true; None if nothing is known of them.

    AND and OR are true only if both of their sides, or one of them, are true, so a side that reads other columns is
    taken to be true. Below any other operator a condition counts only as a whole.
    """
    columns = predicates.columns_of(tree)
    if names.issuperset(columns):
        return tree if columns else None
    if isinstance(tree, exp.Paren):
        return _necessary(tree.this, names)
    if not isinstance(tree, exp.And | exp.Or):
        return None
    sides = [_necessary(side, names) for side in tree.flatten()]
    necessary = [exp.paren(side.copy()) for side in sides if side is not None]
    if isinstance(tree, exp.Or):
        return exp.or_(*necessary) if len(necessary) == len(sides) else None
    return exp.and_(*necessary) if necessary else None


def _without_row(bound: exp.Expr, keys: list[_Values], truths: Truths) -> list[_Values]:
    """Return the partitions whose values make a predicate on them false or NULL."""
    import pyarrow as pa  # noqa: PLC0415 - the command line shows its help without loading pyarrow

    by_types: dict[tuple[str, ...], list[_Values]] = {}
    for values in keys:
        by_types.setdefault(tuple(sql_type for _, _, sql_type in values), []).append(values)
    without: list[_Values] = []
    for sql_types, alike in by_types.items():
        names = [name for name, _, _ in alike[0]]
        table = pa.table([pa.array(texts, pa.string()) for texts in _texts(alike)], names=_numbered(names))
        holds_for = truths(predicates.bind(bound, _typed(names, sql_types).__getitem__), table)
        without += [values for values, holds in zip(alike, holds_for, strict=True) if holds is False]
    return without


def _typed(names: list[str], sql_types: tuple[str, ...]) -> dict[str, exp.Expr]:
    """The columns of a table of values, each as its type, by the names that a predicate reads."""
    return {
        name: exp.cast(column(place), data_type(sql_type), dialect="duckdb")
        for name, place, sql_type in zip(names, _numbered(names), sql_types, strict=True)
    }


def _numbered(names: list[str]) -> list[str]:
    """Names that no other differs from in case only."""
    return [f"value_{number}" for number, _ in enumerate(names)]


def _texts(keys: list[_Values]) -> list[list[str | None]]:
    """The values of every column, one per partition."""
    return [list(texts) for texts in zip(*([text for _, text, _ in values] for values in keys), strict=True)]
