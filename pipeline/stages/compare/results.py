"""What follows from the units: tests and posteriors of every pair of systems, and words."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pipeline.metrics.comparison.bootstrap_t import skewness_error
from pipeline.metrics.comparison.pooled import pooled_ratios
from pipeline.metrics.comparison.significance import adjust_p_values
from pipeline.metrics.uncertainty.marks import warnings_of_marks
from pipeline.metrics.uncertainty.qualities import UNITS_PER_SQUARED_SKEWNESS
from pipeline.stages.compare.contract import CELLS, EVENT_COUNTS, POOLED, POOLED_TESTS, POSTERIORS, TESTS
from pipeline.stages.compare.pairs import Pair
from pipeline.stages.compare.planning import COUNT, METRIC
from pipeline.stages.stage import Summary, doubt, integer, number
from pipeline.tables.groupings import group_text, grouping_columns
from pipeline.tables.ratios import RATIOS
from pipeline.tables.schemas import GROUPING, polars_types

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pipeline.metrics.uncertainty.jackknife import Floats
    from pipeline.stages.compare.contract import CompareParameters
    from pipeline.stages.compare.pairs import Row
    from pipeline.tables.schemas import Column

FEW_UNITS = 20
SKEWED = 2.58  # standard errors of the skewness, beyond which it is no chance (1 in 100)


def derive(params: CompareParameters, counts: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """The tables of compare."""
    units = counts["units"]
    by = [name for name in units.columns if name not in {"unit", "system"} and not name.startswith((METRIC, COUNT))]
    units = units.sort([*by, "unit", "system"], nulls_last=True)
    tests: list[Row] = []
    posteriors: list[Row] = []
    for grouping in params.groupings:
        for values, frame in _groups(units, grouping.columns):
            labels = dict.fromkeys(by) | values | {GROUPING.name: grouping.label}
            group = _Group(params, frame, by)
            tests += _adjusted(params, [labels | row for row in group.tests()])
            posteriors += [labels | row for row in group.posteriors()]
    keys = {GROUPING.name: pl.String(), **{name: units.schema[name] for name in by}}
    return {
        "compare_tests": _frame(tests, keys, TESTS, units.schema["system"]),
        "compare_posteriors": _frame(posteriors, keys, POSTERIORS, units.schema["system"]),
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
    return frame.with_columns(pl.col([each.name for each in columns if each.type == "DOUBLE"]).fill_nan(None))


def _adjusted(params: CompareParameters, rows: Sequence[Row]) -> list[Row]:
    """The rows of a group with p-values adjusted within each test."""
    adjusted_rows = []
    for test in params.tests:
        rows_of_test = [row for row in rows if row["test"] == test]
        adjusted = adjust_p_values([row["p_value"] for row in rows_of_test], params.correction)
        adjusted_rows += [row | {"p_adjusted": float(value)} for row, value in zip(rows_of_test, adjusted, strict=True)]
    return adjusted_rows


class _Group:
    """The units of one group as matrices: a row for each system, a column for each unit, nan where there is nothing.

    Args:
        params: The parameters of the stage.
        frame: The rows of the group.
        by: All grouping columns; a unit is known by them too.
    """

    def __init__(self, params: CompareParameters, frame: pl.DataFrame, by: Sequence[str]) -> None:
        self._params = params
        keys = [*by, "unit"]
        units = frame.select(keys).unique(maintain_order=True).with_row_index("_unit")
        self._systems = frame["system"].unique().sort()
        systems = self._systems.to_frame().with_row_index("_system")
        placed = frame.join(units, on=keys, how="left", nulls_equal=True, maintain_order="left")
        placed = placed.join(systems, on="system", how="left", maintain_order="left")
        self._place = (placed["_system"].to_numpy(), placed["_unit"].to_numpy())
        self._shape = (len(self._systems), units.height)
        self._known = ~np.isnan(self._matrix(pl.Series(np.zeros(frame.height))))
        self._values = {
            name.removeprefix(METRIC): self._matrix(frame[name]) for name in frame.columns if name.startswith(METRIC)
        }
        self._counts, self._matchers = self._count_matrices(frame)
        metrics = params.metrics or POOLED
        self._pooled = tuple(name for name in POOLED if name in metrics) if self._counts is not None else ()
        if self._counts is not None and not self._matchers:
            ratios = pooled_ratios(self._counts)
            for index, name in enumerate(RATIOS):
                if name in metrics and name not in self._values:
                    self._values[name] = ratios[..., index]

    def _matrix(self, values: pl.Series) -> Floats:
        matrix = np.full(self._shape, np.nan)
        matrix[self._place] = values.cast(pl.Float64).fill_null(np.nan).to_numpy()
        return matrix

    def _count_matrices(self, frame: pl.DataFrame) -> tuple[Floats | None, bool]:
        """tp, fp and fn, or the counts around events, on the last axis; and which of the two."""
        matrices = {
            name.removeprefix(COUNT): self._matrix(frame[name]) for name in frame.columns if name.startswith(COUNT)
        }
        if not matrices:
            return None, False
        if "tp" not in matrices:
            return np.stack([matrices[name] for name in EVENT_COUNTS], axis=-1), True
        for name, total in (("fp", "n_predicted"), ("fn", "n_true")):
            if name not in matrices:
                matrices[name] = matrices[total] - matrices["tp"]
        return np.stack([matrices[name] for name in CELLS], axis=-1), False

    def _pairs(self) -> Iterator[tuple[Pair, int, int]]:
        for a, b in combinations(range(len(self._systems)), 2):
            n_units = int((self._known[a] | self._known[b]).sum())
            yield Pair(self._params, (self._systems[a], self._systems[b]), n_units), a, b

    def tests(self) -> Iterator[Row]:
        """Rows of compare_tests, still without p_adjusted."""
        for pair, a, b in self._pairs():
            for metric, values in self._values.items():
                yield from pair.compare_values(metric, values[a], values[b])
            if self._counts is not None and self._pooled and set(POOLED_TESTS) & set(self._params.tests):
                compare = pair.compare_matchers if self._matchers else pair.compare_counts
                yield from compare(self._pooled, self._counts[a], self._counts[b])

    def posteriors(self) -> Iterator[Row]:
        """Rows of compare_posteriors."""
        if self._counts is None or self._matchers or "bayes" not in self._params.tests:
            return
        for pair, a, b in self._pairs():
            yield from pair.posterior_rows(self._pooled, self._counts[a], self._counts[b])


def warnings(tables: Mapping[str, pl.DataFrame]) -> tuple[str, ...]:
    """Doubts that the numbers themselves raise."""
    tests = tables["compare_tests"]
    messages = []
    keys = tests.columns[1 : tests.columns.index("n_units")]
    rows = tests.unique(keys, maintain_order=True)
    dropped = rows.filter(pl.col("n_dropped") > 0)
    if dropped.height:
        messages.append(
            f"{dropped.height:,} of {rows.height:,} comparisons leave out units in which a system has no value: see "
            "n_dropped"
        )
    few = rows.filter(pl.col("n_units") < FEW_UNITS).height
    if few:
        messages.append(f"{few:,} of {rows.height:,} comparisons rest on fewer than {FEW_UNITS} units")
    untold = {name: table.filter(pl.col("n_units") >= FEW_UNITS) for name, table in tables.items()}
    return (*messages, *_skewed(tests), *warnings_of_marks(untold, without=("skewed",)))


def _skewed(tests: pl.DataFrame) -> Iterator[str]:
    """Tests whose hypothesis, or whose error rate, is another one where differences are skewed."""
    error = pl.col("n_units").map_elements(skewness_error, return_dtype=pl.Float64)
    skewed = tests.filter(pl.col("skewness").abs() > SKEWED * error)
    ranked = skewed.filter(pl.col("test").is_in(["wilcoxon", "sign"]))
    if ranked.height:
        yield (
            f"differences between units are skewed in {ranked.height:,} tests by wilcoxon or sign: these do not test "
            'means and can reject equal ones; "bootstrap_t" among tests does (see skewness and hypothesis)'
        )
    student = skewed.filter(
        pl.col("test").is_in(["paired_t", "randomization"]),
        pl.col("n_units") < UNITS_PER_SQUARED_SKEWNESS * pl.col("skewness") ** 2,
    )
    if student.height:
        yield (
            f"differences between units are too skewed for their number in {student.height:,} tests by paired_t or "
            'randomization, which then reject equal means too often; "bootstrap_t" among tests allows for it'
        )


def one_test_a_pair(tests: pl.DataFrame) -> pl.DataFrame:
    """The first test of every pair and metric of every group."""
    keys = [GROUPING.name, *grouping_columns(tests.columns), "metric", "system_a", "system_b"]
    return tests.unique(keys, keep="first", maintain_order=True)


def summarize(tables: Mapping[str, pl.DataFrame]) -> Summary:
    """The first test of every pair and metric of the total, or of all groups."""
    tests = tables["compare_tests"]
    if tests.is_empty():
        return Summary(headers=(), rows=(), sentence="No two systems were tested.")
    shown = one_test_a_pair(tests)
    rows = tuple(
        (
            group_text(row),
            row["metric"],
            f"{row['system_a']} – {row['system_b']}",
            integer(row["n_units"]),
            number(row["mean_a"]),
            number(row["mean_b"]),
            _difference(row),
            row["test"],
            number(row["p_adjusted"]),
        )
        for row in shown.iter_rows(named=True)
    )
    return Summary(
        headers=("group", "metric", "systems", "units", "first", "second", "difference", "test", "adjusted p"),
        rows=rows,
        groupings=tuple(shown[GROUPING.name]),
        sentence=_sentence(shown),
    )


def _difference(row: Mapping[str, Any]) -> str:
    if row["difference_lower"] is None:
        return number(row["difference"])
    lower, upper = number(row["difference_lower"]), number(row["difference_upper"])
    return f"{number(row['difference'])} ({lower} to {upper}){doubt(row)}"


def _sentence(shown: pl.DataFrame) -> str:
    clear = shown.filter(pl.col("p_adjusted") < 0.05).height  # noqa: PLR2004 - the usual level, in a sentence
    return f"{clear:,} of {shown.height:,} comparisons differ at the 5% level, adjusted for their number."
