"""Which files `where` leaves out by their partitions alone, so that they are never opened."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

import sqlglot.expressions as exp

from ..queries.dialect import column, data_type
from . import predicates
from .types import column_type

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
_KINDS = {TEXT: "string", "INTEGER": "int32", "BIGINT": "int64"}
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
    if where is None or not columns_that_decide(where, items):
        return []
    residuals = settled(where, items, truths)
    return [item for item, residual in zip(items, residuals, strict=True) if _is_false(residual)]


def _is_false(tree: exp.Expr) -> bool:
    return isinstance(tree, exp.Boolean) and not tree.this


def _has_partition(item: Partitioned, name: str) -> bool:
    return name in item.partitions


def settled(
    where: exp.Expr,
    items: Sequence[T],
    truths: Truths,
    is_partition: Callable[[T, str], bool] = _has_partition,
) -> list[exp.Expr]:
    """Return what is left of a predicate for the rows of each item: conditions on partitions alone are decided.

    They stand in the predicate itself or below AND and OR, where a condition that is NULL may count as false. So it is
    known of every file whether it can have rows, and a condition that a partition rules out is not computed of its
    rows, as the cast in `day = 'x' AND CAST(n AS INTEGER) > 3`. What cannot be computed stays.

    Args:
        where: The predicate.
        items: Files, or what leads to them.
        truths: As for `left_out`.
        is_partition: Says whether a column comes from the partitions of an item.

    Returns:
        A predicate for each item, TRUE or FALSE where nothing is left to decide; items alike have the same.
    """
    used = predicates.columns_of(where)
    values_of = [
        tuple((name, item.partitions[name], partition_type(item, name)) for name in used if is_partition(item, name))
        for item in items
    ]
    alike: dict[tuple[tuple[str, str], ...], dict[_Values, exp.Expr]] = {}
    for values in values_of:
        alike.setdefault(tuple((name, sql_type) for name, _, sql_type in values), {}).setdefault(values, where)
    residuals: dict[_Values, exp.Expr] = {}
    for columns, of_values in alike.items():
        conditions = list(_conditions(where, frozenset(name for name, _ in columns)))
        held = [_held(condition, list(of_values), truths) for condition in conditions]
        by_truths: dict[tuple[bool | None, ...], exp.Expr] = {}
        for index, values in enumerate(of_values):
            decided = tuple(truths_of_values[index] for truths_of_values in held)
            if decided not in by_truths:
                is_open = all(holds is None for holds in decided)
                by_id = dict(zip(map(id, conditions), decided, strict=True))
                by_truths[decided] = where if is_open else _residual(where, by_id)
            residuals[values] = by_truths[decided]
    return [residuals[values] for values in values_of]


def _conditions(tree: exp.Expr, names: frozenset[str]) -> Iterator[exp.Expr]:
    """Yield the conditions of a predicate that read some columns alone; those that AND and OR join one by one."""
    columns = predicates.columns_of(tree)
    if isinstance(tree, exp.Paren):
        yield from _conditions(tree.this, names)
    elif isinstance(tree, exp.And | exp.Or):
        for side in tree.flatten():
            yield from _conditions(side, names)
    elif columns and names.issuperset(columns):
        yield tree


def _residual(tree: exp.Expr, holds: Mapping[int, bool | None]) -> exp.Expr:
    """Return a predicate without the conditions that are decided, which `holds` has by their id."""
    decided = holds.get(id(tree))
    if decided is not None:
        return exp.true() if decided else exp.false()
    if isinstance(tree, exp.Paren):
        return _residual(tree.this, holds)
    if not isinstance(tree, exp.And | exp.Or):
        return tree
    decides, joined = (exp.false(), exp.and_) if isinstance(tree, exp.And) else (exp.true(), exp.or_)
    residuals = [_residual(side, holds) for side in tree.flatten()]
    if decides in residuals:
        return decides
    open_sides = [exp.paren(residual.copy()) for residual in residuals if not isinstance(residual, exp.Boolean)]
    return joined(*open_sides) if open_sides else residuals[0]


def _held(condition: exp.Expr, keys: list[_Values], truths: Truths) -> Sequence[bool | None]:
    """Whether a condition on partitions holds for each of some values, all of the same columns and types."""
    import pyarrow as pa  # noqa: PLC0415 - the command line shows its help without loading pyarrow

    names, sql_types = [name for name, _, _ in keys[0]], tuple(sql_type for _, _, sql_type in keys[0])
    table = pa.table([pa.array(texts, pa.string()) for texts in _texts(keys)], names=_numbered(names))
    kinds = {name: _KINDS.get(sql_type, "") for name, sql_type in zip(names, sql_types, strict=True)}
    return truths(predicates.bind(condition, _typed(names, sql_types).__getitem__, kinds.__getitem__), table)


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
