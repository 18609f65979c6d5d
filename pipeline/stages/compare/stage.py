"""The stage compare: what follows from its units, and the stage put together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from ...metrics.comparison.significance import adjust_p_values
from ...tables.groupings import grouping_columns
from ...tables.schemas import GROUPING, polars_types
from ..stage import Stage
from . import figures, methods, planning, summary
from .contract import COUNTS, MARGINS, POSTERIORS, TABLES, TESTS, UNITS, CompareParameters, further_columns
from .group_units import marked, units_of_group, with_order
from .methods import SAMPLE_SIZES
from .planning import EVIDENCE, IN_ORDER
from .rows import margin_rows, with_decisions

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ...tables.schemas import Column
    from .rows import Row


# What follows from the units: tests, claims and posteriors of every pair of systems.


def derive(params: CompareParameters, counts: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """The tables of compare."""
    units = counts["units"]
    by, further = grouping_columns(units.columns), further_columns(params)
    units = with_order(units.sort([*by, "unit", "system"], nulls_last=True), params)
    if IN_ORDER in units.columns:
        params = params.model_copy(update={"correlated": ()})  # what the stages in `of` tell is in the units
    tests: list[Row] = []
    margins: list[Row] = []
    posteriors: list[Row] = []
    for grouping in params.groupings:
        for values, frame in _groups(units, grouping.columns):
            labels = dict.fromkeys(by) | values | {GROUPING.name: grouping.label}
            group = units_of_group(params, frame, by)
            of_tests, of_margins = [], []
            for compared in group.compared():
                of_tests += [labels | marked(row, params) for row in compared.rows]
                of_margins += [labels | marked(row, params) for row in margin_rows(params, compared)]
            tests += _adjusted(params, of_tests)
            margins += with_decisions(params, of_margins)
            posteriors += [labels | marked(row, params) for row in group.posteriors()]
    keys = {GROUPING.name: pl.String(), **{name: units.schema[name] for name in by}}
    return {
        name: _frame(rows, keys, (*columns, *further[name]), units.schema["system"])
        for name, rows, columns in (
            ("compare_tests", tests, TESTS),
            ("compare_posteriors", posteriors, POSTERIORS),
            ("compare_margins", margins, MARGINS),
        )
    }


def _groups(units: pl.DataFrame, grouping: Sequence[str]) -> Iterator[tuple[dict[str, Any], pl.DataFrame]]:
    if not grouping:
        yield {}, units
        return
    for frame in units.partition_by(grouping, maintain_order=True):
        yield dict(zip(grouping, frame.select(grouping).row(0), strict=True)), frame


def _frame(
    rows: Sequence[Row], keys: Mapping[str, pl.DataType], columns: Sequence[Column], system: pl.DataType
) -> pl.DataFrame:
    types = {each.name: system if each.type == "KEY" else polars_types(each.type)[0] for each in columns}
    frame = pl.DataFrame(rows, schema={**keys, **types}, orient="row")
    doubles = pl.col([each.name for each in columns if each.type == "DOUBLE"])
    return frame.with_columns(pl.when(doubles.is_finite()).then(doubles))


def _adjusted(params: CompareParameters, rows: Sequence[Row]) -> list[Row]:
    """The rows of a group with p-values adjusted within each test."""
    adjusted_rows = []
    for test in params.tests:
        rows_of_test = [row for row in rows if row["test"] == test]
        adjusted = adjust_p_values([row["p_value"] for row in rows_of_test], params.correction)
        adjusted_rows += [row | {"p_adjusted": float(value)} for row, value in zip(rows_of_test, adjusted, strict=True)]
    return adjusted_rows


# The stage compare, put together.


STAGE = Stage(
    kind="compare",
    parameters=CompareParameters,
    inputs=(UNITS,),
    tables=TABLES,
    count_columns=COUNTS,
    plan=planning.plan,
    derive=derive,
    warnings=summary.warnings,
    summarize=summary.summarize,
    figures=figures.figures,
    key_numbers=figures.key_numbers,
    methods=methods.sentences,
    evidence=EVIDENCE,
    sample_sizes=SAMPLE_SIZES,
    further_columns=further_columns,
)
