"""Small tools of the tests of `derive`: count tables from a few rows, and result tables held to their contracts."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeAlias

import polars as pl

from pipeline.base.columns import REPLICATE, THRESHOLD
from pipeline.base.schemas import COUNT_TABLE, GROUPING, TOTAL, conform, empty_table, internal_name, polars_types
from pipeline.stages import STAGES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeline.stages.figures import Figure
    from pipeline.stages.stage import Stage, Summary

DECIMAL = pl.Decimal(38, 15)
Row: TypeAlias = "dict[str, Any]"
Rows: TypeAlias = "list[Row]"
Groupings: TypeAlias = "Sequence[Sequence[str]]"


def stage_of(kind: str) -> Stage:
    """A stage by its kind."""
    return next(entry for entry in STAGES if entry.kind == kind).load()


def count_table(
    rows: Sequence[Mapping[str, Any]],
    counts: Mapping[str, pl.DataType],
    by: Groupings = (),
    keys: Mapping[str, pl.DataType] | None = None,
) -> pl.DataFrame:
    """A count table as the plan hands it to `derive`.

    Args:
        rows: Its rows; what a row leaves out is the total, replicate 0, no threshold, 0 in the counts, else NULL.
        counts: The counts and their types.
        by: The groupings, by the users' names of their columns.
        keys: Further columns and their types.
    """
    groups = {internal_name(name): pl.String() for names in by for name in names}
    schema = {GROUPING.name: pl.String(), **groups, REPLICATE: pl.Int64(), THRESHOLD: pl.Float64()}
    schema |= {**(keys or {}), **counts}
    default = {GROUPING.name: TOTAL, REPLICATE: 0} | dict.fromkeys(counts, 0)
    complete = [dict.fromkeys(schema) | default | _internal(row, groups) for row in rows]
    values = {name: [_decimal(row[name], schema[name]) for row in complete] for name in schema}
    return pl.DataFrame(values, schema=schema)


def _internal(row: Mapping[str, Any], groups: Mapping[str, pl.DataType]) -> Row:
    return {internal_name(name) if internal_name(name) in groups else name: value for name, value in row.items()}


def _decimal(value: object, kind: pl.DataType) -> object:
    return Decimal(str(value)) if kind == DECIMAL and value is not None else value


def saved_counts(kind: str, rows: Sequence[Mapping[str, Any]], by: Groupings = ()) -> pl.DataFrame:
    """The count table `counts` of a stage; see `count_table`."""
    columns = stage_of(kind).count_columns
    counts = {column.name: polars_types(column.type)[0] for column in columns if column.type != "KEY"}
    keys = {column.name: pl.String() for column in columns if column.type == "KEY"}
    return count_table(rows, counts, by, keys)


@dataclass(frozen=True)
class Derived:
    """What a stage derives.

    Attributes:
        stage: The stage.
        returned: Names of the tables that `derive` returned.
        tables: All tables as the runner writes them: held to their contracts, empty where `derive` left them out.
    """

    stage: Stage
    returned: frozenset[str]
    tables: dict[str, pl.DataFrame]

    def __getitem__(self, name: str) -> pl.DataFrame:
        """A table by the end of its name."""
        return self.tables[f"{self.stage.kind}_{name}"]

    def rows(self, name: str, **values: object) -> list[Row]:
        """The rows of a table that have these values."""
        wanted = [pl.lit(value=True), *(pl.col(column).eq_missing(pl.lit(value)) for column, value in values.items())]
        return self[name].filter(wanted).to_dicts()

    def row(self, name: str, **values: object) -> Row:
        """The only row of a table that has these values."""
        (row,) = self.rows(name, **values)
        return row

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings that the tables give rise to."""
        return self.stage.warnings(self.tables)

    @property
    def summary(self) -> Summary:
        """The result for a person."""
        return self.stage.summarize(self.tables)


def derived(
    kind: str, frames: Mapping[str, pl.DataFrame], others: Mapping[str, pl.DataFrame], **keys: object
) -> Derived:
    """What a stage derives from count tables and frames, as the runner would write it.

    Args:
        kind: The stage.
        frames: Count tables and frames by name.
        others: Result tables that are made from the rows afterwards, by name.
        keys: Keys of the config of the stage, beside its inputs.
    """
    stage = stage_of(kind)
    paths = {contract.name: "rows.parquet" for contract in stage.inputs if contract.required}
    params = stage.parameters.model_validate({"name": kind, **paths, **keys})
    results = stage.derive(params, frames)
    by = params.by_columns
    tables = {}
    for table in stage.tables_of(params):
        frame = {**results, **others}.get(table.name, empty_table(table, frames[COUNT_TABLE], by))
        tables[table.name] = conform(frame, table, stage=kind, by=by)
    assert set(results) <= set(tables)
    return Derived(stage, frozenset(results), tables)


def result_table(kind: str, name: str, rows: Rows, by: Sequence[str] = ()) -> pl.DataFrame:
    """A result table from a few rows, with the columns and types of its contract.

    Args:
        kind: The stage.
        name: The table without the stage in front.
        rows: Its rows; what a row leaves out is NULL, the grouping `all`.
        by: The grouping columns, by the users' names, which are text.
    """
    table = next(table for table in stage_of(kind).tables if table.name == f"{kind}_{name}")
    groups: dict[str, pl.DataType] = {internal_name(column): pl.String() for column in by}
    schema = {GROUPING.name: pl.String(), **groups}
    for column in table.columns:
        is_text = any(isinstance(row.get(column.name), str) for row in rows)
        schema[column.name] = pl.String() if is_text else polars_types(column.type)[0]
    complete = [dict.fromkeys(schema) | {GROUPING.name: TOTAL} | _internal(row, groups) for row in rows]
    assert not {name for row in complete for name in row} - set(schema)
    return pl.DataFrame(complete, schema=schema)


def result_tables(kind: str, rows: Mapping[str, Rows], by: Sequence[str] = ()) -> dict[str, pl.DataFrame]:
    """All result tables of a stage, those that are not named without a row; see `result_table`."""
    names = [table.name.removeprefix(f"{kind}_") for table in stage_of(kind).tables]
    return {f"{kind}_{name}": result_table(kind, name, rows.get(name, []), by) for name in names}


def figures_of(
    kind: str, rows: Mapping[str, Rows], by: Sequence[str] = (), confidence: float = 0.95
) -> dict[str, Figure]:
    """The figures of a stage by name; see `result_tables`."""
    figures = stage_of(kind).figures(result_tables(kind, rows, by), confidence)
    return {figure.name: figure for figure in figures}
