"""Change points that people marked in real series and 9 methods detected, beside the numbers of the peers' own code."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import polars as pl
import pytest

from pipeline.metrics.change_points.matching import (
    added_any,
    added_as_roerich,
    added_as_ruptures,
    added_nearest,
    added_one_to_one,
    roerich_area,
)
from pipeline.metrics.change_points.windows import (
    Margin,
    Points,
    covering,
    distinct_points,
    mean_over_annotators,
    with_origin,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

    Rule: TypeAlias = Callable[[Points, Points, Margin], NDArray[np.int64]]

MARGINS = (5, 10)
TOLERANCE = 1e-12
RUNS = 176


@dataclass(frozen=True)
class Benchmark:
    """All runs side by side: every run is one series of arrays, its annotators and its predictions.

    Attributes:
        expected: What expected.json has for every run.
        marks: Union of the annotators of the series of every run.
        predictions: Predictions of every run.
        annotator_marks: Marks of every pair of run and annotator.
        annotator_predictions: Predictions of the run, for each such pair.
        run_of_pair: Run of every pair.
        n_obs: Observations of the series of every pair, 0 where unknown.
    """

    expected: list[dict[str, Any]]
    marks: Points
    predictions: Points
    annotator_marks: Points
    annotator_predictions: Points
    run_of_pair: NDArray[np.int64]
    n_obs: NDArray[np.int64]

    def wanted(self, definition: str, key: str) -> list[float | None]:
        return [run.get(definition, {}).get(key) for run in self.expected]


def points(frame: pl.DataFrame, number: str) -> Points:
    ordered = frame.sort(number, "change_point")
    return Points(ordered[number].cast(pl.Int64).to_numpy(), ordered["change_point"].to_numpy())


@pytest.fixture(scope="session")
def benchmark(real_data: Path) -> Benchmark:
    folder = real_data / "changepoints_tcpd"
    table = {path.stem: pl.read_parquet(path) for path in folder.glob("*.parquet")}
    methods = json.loads((folder / "expected.json").read_text(encoding="utf-8"))["by_method"]
    runs = [
        (method, series, values)
        for method, all_series in sorted(methods.items())
        for series, values in sorted(all_series.items())
        if "tcpd_margin5" in values
    ]
    names = pl.DataFrame(
        {
            "run": range(len(runs)),
            "method": [method for method, _, _ in runs],
            "series_id": [series for _, series, _ in runs],
        }
    )
    pairs = names.join(table["annotators"], on="series_id").sort("run", "annotator_id").with_row_index("pair")
    sizes = pairs.join(table["series"], on="series_id", how="left", maintain_order="left")
    own = ["method", "series_id"]
    return Benchmark(
        [values for _, _, values in runs],
        distinct_points(points(names.join(table["annotations"], on="series_id"), "run")),
        points(names.join(table["predictions"], on=own), "run"),
        points(pairs.join(table["annotations"], on=["series_id", "annotator_id"]), "pair"),
        points(pairs.join(table["predictions"], on=own), "pair"),
        pairs["run"].to_numpy().astype(np.int64),
        sizes["n_obs"].fill_null(0).to_numpy().astype(np.int64),
    )


def totals(points: Points, added: NDArray[np.int64] | None, count: int) -> NDArray[np.float64]:
    """Sums of `added`, or numbers of points, of every series."""
    return np.bincount(points.series, weights=added, minlength=count).astype(np.float64)


def assert_equal(found: NDArray[np.float64], wanted: list[float | None], *, compared: int) -> None:
    """Every run that has an expected value, and so many have."""
    values = [(mine, theirs) for mine, theirs in zip(found.tolist(), wanted, strict=True) if theirs is not None]
    assert len(values) == compared
    for mine, theirs in values:
        assert mine == pytest.approx(theirs, rel=0, abs=TOLERANCE)


def ratio(over: NDArray[np.float64], under: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.divide(over, under, out=np.full(len(over), np.nan), where=under > 0))


@pytest.mark.parametrize("margin", MARGINS)
def test_the_source_texts_definition(benchmark: Benchmark, margin: int) -> None:
    added = added_any(benchmark.marks, benchmark.predictions, Margin(margin, margin, closed=False))
    tp, predicted = (totals(benchmark.predictions, each, RUNS) for each in (added, None))
    true = totals(benchmark.marks, None, RUNS)
    name = f"seed004_strict_union_M{margin}"
    assert_equal(tp, benchmark.wanted(name, "TP"), compared=RUNS)
    for key, found, defined in (("precision", ratio(tp, predicted), 116), ("recall", ratio(tp, true), 171)):
        wanted = benchmark.wanted(name, key)
        assert np.isnan(found).tolist() == [value is None for value in wanted]
        assert_equal(found, wanted, compared=defined)
    assert (tp > predicted).any()


@pytest.mark.parametrize("margin", MARGINS)
def test_the_largest_matching(benchmark: Benchmark, margin: int) -> None:
    added = added_one_to_one(benchmark.marks, benchmark.predictions, Margin(margin, margin, closed=True))
    tp, predicted = (totals(benchmark.predictions, each, RUNS) for each in (added, None))
    true = totals(benchmark.marks, None, RUNS)
    for key, found in {"TP": tp, "FP": predicted - tp, "FN": true - tp}.items():
        assert_equal(found, benchmark.wanted(f"max_matching_le_union_M{margin}", key), compared=RUNS)


@pytest.mark.parametrize("margin", MARGINS)
@pytest.mark.parametrize(
    ("name", "rule", "closed", "compared"),
    [("roerich_code_le", added_as_roerich, True, RUNS), ("ruptures_code_strict", added_as_ruptures, False, 114)],
)
def test_the_code_of_roerich_and_of_ruptures(
    benchmark: Benchmark,
    name: str,
    rule: Rule,
    margin: int,
    closed: bool,  # noqa: FBT001 - a parameter
    compared: int,
) -> None:
    """Where their 0/0 is a number (precision 0, recall 0 or 1), ours is undefined and only they are compared."""
    added = rule(benchmark.marks, benchmark.predictions, Margin(margin, margin, closed=closed))
    tp, predicted = (totals(benchmark.predictions, each, RUNS) for each in (added, None))
    true = totals(benchmark.marks, None, RUNS)
    precision = np.where(predicted > 0, ratio(tp, predicted), 0.0)
    recall = np.where(true > 0, ratio(tp, true), np.where(predicted > 0, 1.0, 0.0))
    for key, found in {"precision": precision, "recall": recall}.items():
        assert_equal(found, benchmark.wanted(f"{name}_union_M{margin}", key), compared=compared)


@pytest.mark.parametrize("margin", MARGINS)
def test_precision_and_recall_of_tcpdbench(benchmark: Benchmark, margin: int) -> None:
    within, runs = Margin(margin, margin, closed=True), np.arange(RUNS)
    union, predictions = with_origin(benchmark.marks, runs), with_origin(benchmark.predictions, runs)
    tp = totals(predictions, added_nearest(union, predictions, within), RUNS)
    precision = tp / totals(predictions, None, RUNS)
    pairs = np.arange(len(benchmark.run_of_pair))
    own = with_origin(benchmark.annotator_marks, pairs)
    repeated = with_origin(benchmark.annotator_predictions, pairs)
    found = totals(repeated, added_nearest(own, repeated, within), len(pairs))
    recall = mean_over_annotators(found / totals(own, None, len(pairs)), benchmark.run_of_pair, RUNS)
    name = f"tcpd_margin{margin}"
    assert_equal(precision, benchmark.wanted(name, "precision"), compared=RUNS)
    assert_equal(recall, benchmark.wanted(name, "recall"), compared=RUNS)
    assert_equal(2 * precision * recall / (precision + recall), benchmark.wanted(name, "f1"), compared=RUNS)
    if margin == MARGINS[0]:
        published = [run.get("published_v3_f1") for run in benchmark.expected]
        assert_equal(2 * precision * recall / (precision + recall), published, compared=128)
        assert_equal(recall, benchmark.wanted("published_v1_summary", "recall"), compared=86)


@pytest.mark.parametrize(("name", "compared"), [("tcpd_margin5", 166), ("published_v1_summary", 86)])
def test_covering_of_tcpdbench(benchmark: Benchmark, name: str, compared: int) -> None:
    """Of all runs on series whose number of observations may be passed on."""
    own = covering(benchmark.annotator_marks, benchmark.annotator_predictions, benchmark.n_obs)
    mean = mean_over_annotators(own, benchmark.run_of_pair, RUNS)
    wanted = benchmark.wanted(name, "cover")
    assert_equal(mean, [None if np.isnan(mean[run]) else value for run, value in enumerate(wanted)], compared=compared)


def test_curves_of_the_source_text_and_of_roerich(real_data: Path) -> None:
    folder = real_data / "changepoints_tcpd"
    expected = json.loads((folder / "expected.json").read_text(encoding="utf-8"))["by_method"]["rpt_window_l2"]
    curves = {series: values for series, values in sorted(expected.items()) if "roerich_pr_curve_M5" in values}
    annotations = pl.read_parquet(folder / "annotations.parquet").with_columns(run=0)
    predictions = pl.read_parquet(folder / "scored_predictions.parquet").with_columns(run=0).sort("change_point")
    rows = [
        assert_curves(annotations.filter(series_id=series), predictions.filter(series_id=series), wanted)
        for series, wanted in curves.items()
    ]
    assert (len(rows), sum(rows)) == (15, 111)


def assert_curves(annotations: pl.DataFrame, predictions: pl.DataFrame, wanted: dict[str, Any]) -> int:
    """The curves of one series; returns the number of thresholds."""
    marks, found = distinct_points(points(annotations, "run")), points(predictions, "run")
    score = predictions["score"].to_numpy()
    entered = [score >= threshold for threshold in np.unique(score)[::-1]]
    n_predicted = np.array([chosen.sum() for chosen in entered])
    added = added_any(marks, found, Margin(5, 5, closed=False), score)
    curve = wanted["seed004_pr_curve_M5"][::-1]
    assert n_predicted.tolist() == [row["m"] for row in curve]
    assert [int(added[chosen].sum()) for chosen in entered] == [row["TP"] for row in curve]
    added = added_as_roerich(marks, found, Margin(5, 5, closed=True), score)
    tp = np.array([added[chosen].sum() for chosen in entered])
    theirs = wanted["roerich_pr_curve_M5"]
    inner = slice(-2, 0, -1)
    assert (tp / n_predicted).tolist() == pytest.approx(theirs["precision"][inner], rel=0, abs=TOLERANCE)
    assert (tp / len(marks.position)).tolist() == pytest.approx(theirs["recall"][inner], rel=0, abs=TOLERANCE)
    area = roerich_area(tp, n_predicted, len(marks.position))
    assert -999 < score.min() <= score.max() < 999, "roerich's end points must stay at the ends"
    assert area == pytest.approx(theirs["auc"], rel=0, abs=TOLERANCE)
    return len(entered)
