"""The table `metrics`: the key figures of every stage in one long table, derived from the contracts of its tables.

What a metric is, is decided here for all who need to know, such as `thresher diff`.

A result table takes part if it has intervals, or one row per group (an empty key). Of its rows those count that are
no points of a curve: where `threshold` is part of the key, it is NULL; rows by bin of the score are all such points.
Of its columns those count that have limits `<name>_lower` and `<name>_upper` beside them, and those that its contract
names; in a table with one row per group, every DOUBLE column that is no limit.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import polars as pl

from .columns import THRESHOLD
from .groupings import TOTAL, internal_name
from .run_tables import METRICS
from .schemas import GROUPING, STAGE_COLUMN, polars_types

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from .schemas import Table

CRITERION, QUALITY = "criterion", "interval_quality"
BIN = "bin"  # key of rows by bin of the score
_LIMITS = ("_lower", "_upper")


def metrics_table(tables: Sequence[Table], frames: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Return the rows of `metrics` for one stage, in the order of its tables and their rows.

    Args:
        tables: The contracts of the stage's tables.
        frames: The tables that were made, by name, with the internal names of grouping columns.
    """
    rows = [row for table in tables if table.name in frames for row in _rows(table, frames[table.name])]
    schema = {column.name: polars_types(column.type)[0] for column in METRICS.columns}
    return pl.DataFrame(rows, schema=schema, orient="row")


def metric_columns(table: Table) -> tuple[str, ...]:
    """Return the columns of a table that are metrics; none if the table does not take part."""
    names = {column.name for column in table.columns}
    if BIN in table.key:
        return ()
    if table.key:
        limited = (column.name for column in table.columns if f"{column.name}_lower" in names)
        return tuple(name for name in limited if name not in table.metrics) + table.metrics
    doubles = (column.name for column in table.columns if column.type == "DOUBLE")
    return tuple(name for name in doubles if not name.endswith(_LIMITS))


def metric_rows(table: Table, frame: pl.DataFrame) -> Iterator[dict[str, Any]]:
    """Return the rows of a table that have metrics: those that are no points of a curve."""
    if THRESHOLD in table.key:
        frame = frame.filter(pl.col(THRESHOLD).is_null()) if frame[THRESHOLD].null_count() else frame.clear()
    return frame.iter_rows(named=True)


def metric_key(table: Table) -> tuple[str, ...]:
    """Return the columns that tell such rows of a group apart."""
    return tuple(name for name in table.key if name != THRESHOLD)


def quality_of(row: Mapping[str, Any], name: str) -> str | None:
    """Return how far to trust the interval of a metric: what is cross-fitted was not chosen on the same data."""
    quality = row.get(QUALITY)
    return "good" if quality == "chosen_on_same_data" and name.endswith("_cross_fitted") else quality


def _rows(table: Table, frame: pl.DataFrame) -> Iterator[tuple[Any, ...]]:
    metrics, key = metric_columns(table), metric_key(table)
    if not metrics:
        return
    columns = [(name, *(f"{name}{side}" for side in _LIMITS)) for name in metrics]
    for row in metric_rows(table, frame):
        group = (row[STAGE_COLUMN.name], row[GROUPING.name], _group(row))
        about = (table.name, _criterion(row, key), row.get(THRESHOLD))
        for name, *sides in columns:
            limits = tuple(map(row.get, sides))
            quality = quality_of(row, name) if limits != (None, None) else None
            yield (*group, *about, name, row[name], *limits, quality)


def _group(row: Mapping[str, Any]) -> str:
    """Return the group of a row as JSON: the users' names of its grouping columns and their values."""
    if row[GROUPING.name] == TOTAL:
        return "{}"
    values = {name: row[internal_name(name)] for name in row[GROUPING.name].split(",")}
    return json.dumps(values, ensure_ascii=False, default=str)


def _criterion(row: Mapping[str, Any], key: Sequence[str]) -> str | None:
    """Return what tells a row from the others of its group, as people write it: `max_f1`, `tolerance_km=161`."""
    values = ((name, str(row[name]).removesuffix(".0")) for name in key)
    return ", ".join(value if name == CRITERION else f"{name}={value}" for name, value in values) or None
