"""Which row of which table a gate judges."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from pipeline.runs.gates import Gate, group_of, judged_rows
from pipeline.stages import find_stage

if TYPE_CHECKING:
    from pipeline.runs.gates import Group, JudgedRow
    from pipeline.stages.stage import Stage

LIMITS = {"precision": 0.5, "precision_lower": 0.4, "precision_upper": 0.6, "interval_quality": "good"}


def stage_of(kind: str) -> Stage:
    entry = find_stage(kind)
    assert entry is not None
    return entry.load()


def judged(kind: str, tables: dict[str, list[dict[str, Any]]], **keys: object) -> tuple[dict[Group, JudgedRow], str]:
    frames = {f"{kind}_{name}": pl.DataFrame([LIMITS | row for row in rows]) for name, rows in tables.items()}
    gate = Gate.model_validate({"stage": "s", "metric": "precision", "min": 0.1} | keys)
    return judged_rows(gate, stage_of(kind), frames.get)


def only(rows: dict[Group, JudgedRow]) -> JudgedRow:
    (row,) = rows.values()
    return row


POINTS = [
    {"grouping": grouping, "source": source, "criterion": criterion, "threshold": threshold, "tp": 4, "fp": 2, "fn": 1}
    for grouping, source in (("all", None), ("source", "noon"), ("source", None))
    for criterion, threshold in (("max_f1", 0.3), ("min_recall=0.8", 0.1), ("recall_reference", 0.0))
]


@pytest.mark.parametrize(("criterion", "threshold"), [(None, 0.3), ("min_recall=0.8", 0.1), ("recall_reference", 0.0)])
def test_of_operating_points_the_first_or_the_named_one(criterion: str | None, threshold: float) -> None:
    row = only(judged("threshold_sweep", {"operating_points": POINTS}, criterion=criterion)[0])
    assert (row.criterion, row.threshold, row.n_rows) == (criterion or "max_f1", threshold, 7.0)
    assert (row.value, row.lower, row.upper, row.degrees) == (0.5, 0.4, 0.6, math.inf)


def test_without_a_criterion_it_is_the_first_of_the_config_in_whatever_order_the_rows_are() -> None:
    stage = stage_of("threshold_sweep")
    points = ({"min_recall": 0.8}, {"beta": 1})
    params = stage.parameters.model_validate({"name": "s", "predictions": "p.parquet", "operating_points": points})
    frames = {"threshold_sweep_operating_points": pl.DataFrame([LIMITS | row for row in POINTS])}
    gate = Gate.model_validate({"stage": "s", "metric": "precision", "min": 0.1})
    assert only(judged_rows(gate, stage.as_asked(params), frames.get)[0]).criterion == "min_recall=0.8"


def test_groups_of_a_grouping_null_among_them() -> None:
    rows, _ = judged("threshold_sweep", {"operating_points": POINTS}, by=["source"])
    assert list(rows) == [group_of({"source": "noon"}), group_of({"source": None})]
    assert [row.group_json for row in rows.values()] == ['{"source": "noon"}', '{"source": null}']


@pytest.mark.parametrize(("asked", "judged_at"), [(0.5, 0.5), (0.6, 0.5), (0.1, 0.1), (9.0, 0.9)])
def test_of_a_curve_the_row_at_the_threshold_or_next_below(asked: float, judged_at: float) -> None:
    curve = [{"grouping": "all", "threshold": threshold} for threshold in (0.9, 0.1, 0.5)]
    assert only(judged("threshold_sweep", {"curve": curve}, threshold=asked)[0]).threshold == judged_at


@pytest.mark.parametrize(("asked", "judged_at"), [(0.5, 0.5), (0.6, 0.9), (0.01, 0.1), (0.9, 0.9)])
def test_of_the_scores_themselves_the_next_above_retrieves_the_same(asked: float, judged_at: float) -> None:
    frames = {
        "threshold_sweep_curve": pl.DataFrame([LIMITS | {"grouping": "all", "threshold": t} for t in (0.9, 0.1, 0.5)])
    }
    gate = Gate.model_validate({"stage": "s", "metric": "precision", "min": 0.1, "threshold": asked})
    rows, _ = judged_rows(gate, stage_of("threshold_sweep"), frames.get, next_above=True)
    assert only(rows).threshold == judged_at


@pytest.mark.parametrize(
    ("asked", "next_above", "side"), [(0.4, False, "at or below 0.4"), (0.6, True, "at or above 0.6")]
)
def test_a_group_whose_curve_does_not_reach_the_threshold_has_no_number(
    asked: float, *, next_above: bool, side: str
) -> None:
    points = [("all", None, 0.5), ("source", "noon", 0.5), ("source", "wide", 0.1), ("source", "wide", 0.9)]
    curve = [LIMITS | {"grouping": grouping, "source": source, "threshold": at} for grouping, source, at in points]
    gate = Gate.model_validate({"stage": "s", "metric": "precision", "min": 0.1, "threshold": asked, "by": ["source"]})
    frames = {"threshold_sweep_curve": pl.DataFrame(curve)}
    rows, _ = judged_rows(gate, stage_of("threshold_sweep"), frames.get, next_above=next_above)
    told = {row.group_text: (row.value, row.threshold, row.missing) for row in rows.values()}
    reached = (0.5, 0.9 if next_above else 0.1, "")
    assert told == {"wide": reached, "noon": (None, None, f"its curve has no threshold {side}")}


def test_a_row_is_compared_with_that_of_the_same_criterion() -> None:
    now = [{"grouping": "all", "tolerance_km": tolerance, "n_gold": 9} for tolerance in (10.0, 161.0, 1000.0)]
    like = judged("geocoding", {"scores": now}, metric="recall")[0]
    assert only(like).criterion == "tolerance_km=1000"
    gate = Gate.model_validate({"stage": "s", "metric": "recall", "max_drop": 0.1, "baseline": "previous"})
    for tolerances, missing in (((1000.0, 2000.0), ""), ((10.0, 161.0), "there is none at tolerance_km=1000")):
        rows = [LIMITS | {"grouping": "all", "tolerance_km": each, "recall": each / 1e4} for each in tolerances]
        frames = {"geocoding_scores": pl.DataFrame(rows)}
        row = only(judged_rows(gate, stage_of("geocoding"), frames.get, like=like)[0])
        assert (row.value, row.missing) == (None if missing else 0.1, missing)


def test_on_given_thresholds_a_row_is_compared_with_that_of_the_same_threshold() -> None:
    points = {"curve": [{"grouping": "all", "threshold": threshold} for threshold in (0.1, 0.5)]}
    like = judged("threshold_sweep", points, threshold=0.5)[0]
    gate = Gate.model_validate(
        {"stage": "s", "metric": "precision", "max_drop": 0.1, "baseline": "previous", "threshold": 0.5}
    )
    frames = {"threshold_sweep_curve": pl.DataFrame([LIMITS | {"grouping": "all", "threshold": 0.4}])}
    row = only(judged_rows(gate, stage_of("threshold_sweep"), frames.get, like=like)[0])
    assert (row.value, row.missing) == (None, "there is none at the threshold 0.5")


def test_where_the_scores_are_the_thresholds_a_row_is_compared_with_that_of_the_next_score() -> None:
    frames = {"threshold_sweep_curve": pl.DataFrame([LIMITS | {"grouping": "all", "threshold": 0.6}])}
    gate = Gate.model_validate(
        {"stage": "s", "metric": "precision", "max_drop": 0.1, "baseline": "previous", "threshold": 0.5}
    )
    like = judged("threshold_sweep", {"curve": [{"grouping": "all", "threshold": 0.55}]}, threshold=0.55)[0]
    row = only(judged_rows(gate, stage_of("threshold_sweep"), frames.get, like=like, next_above=True)[0])
    assert (row.value, row.threshold) == (0.5, 0.6)


def test_of_tolerances_the_largest() -> None:
    scores = [{"grouping": "all", "tolerance_km": tolerance, "n_gold": 9} for tolerance in (10.0, 161.0, 100.0)]
    row = only(judged("geocoding", {"scores": scores})[0])
    assert (row.criterion, row.n_rows) == ("tolerance_km=161", 9.0)
    assert only(judged("geocoding", {"scores": scores}, criterion="tolerance_km=10")[0]).criterion == "tolerance_km=10"


def test_of_averages_the_micro_average() -> None:
    scores = [{"grouping": "all", "average": average, "threshold": None} for average in ("macro", "micro")]
    frame = {"scores": scores}
    assert only(judged("entity_recognition", frame)[0]).criterion == "average=micro"


def test_degrees_of_freedom_come_from_the_effective_number_of_clusters() -> None:
    points = [POINTS[0] | {"n_clusters_effective": 12.5}]
    assert only(judged("threshold_sweep", {"operating_points": points})[0]).degrees == 11.5


@pytest.mark.parametrize(("metric", "is_share"), [("cost_per_row", False), ("precision", True)])
def test_the_contract_says_what_is_a_share(metric: str, is_share: bool) -> None:  # noqa: FBT001
    limits = {f"{metric}{side}": 0.5 for side in ("", "_lower", "_upper")}
    points = [{"grouping": "all", "pooled": "source", "criterion": "max_f1", "thresholds": "own"} | limits]
    row = only(judged("threshold_sweep", {"pooled_points": points}, metric=metric)[0])
    assert (row.table, row.is_share) == ("threshold_sweep_pooled_points", is_share)


def test_a_table_that_was_not_made_is_told() -> None:
    rows, reason = judged("threshold_sweep", {}, threshold=0.5)
    assert (rows, reason) == ({}, "the table threshold_sweep_curve was not made")
