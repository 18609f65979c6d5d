"""`derive` of change_points from a few counts: curve, areas, covering, annotators, warnings and words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from deriving import DECIMAL, count_table, derived, saved_counts
from pydantic import ValidationError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deriving import Derived, Groupings, Rows

KIND = "change_points"
SCORED: Rows = [  # 4 true points; 2 of 2 predictions right from 0.5 on, 3 of 5 from 0.25 on, one more below both
    {"n_series": 2, "n_true": 4, "n_predicted": 1},
    {"threshold": 0.25, "n_predicted": 3, "tp": 1},
    {"threshold": 0.5, "n_predicted": 2, "tp": 2},
]
SECOND_SERIES = {"replicate": 1, "n_series": 1, "n_true": 2}


def detected(
    rows: Sequence[Mapping[str, Any]],
    by: Groupings = ((),),
    frames: Mapping[str, pl.DataFrame] | None = None,
    **keys: object,
) -> Derived:
    counts = {"counts": saved_counts(KIND, rows, by)} | dict(frames or {})
    return derived(KIND, counts, {}, **{"margin": 5, "thresholds": [0.25, 0.5], "by": by} | keys)


def values(row: Mapping[str, Any], *names: str) -> tuple[Any, ...]:
    return tuple(row[name] for name in names)


def ratios(row: Mapping[str, Any]) -> tuple[float | None, ...]:
    return values(row, "precision", "recall", "f1")


def test_the_curve_counts_predictions_at_or_above_every_threshold() -> None:
    result = detected(SCORED)
    rows = result["curve"].to_dicts()
    assert not any("precision is above 1" in words for words in result.warnings)
    counts = [values(row, "threshold", "n_series", "n_true", "n_predicted", "tp") for row in rows]
    assert counts == [(0.25, 2, 4, 5, 3), (0.5, 2, 4, 2, 2)]
    assert [ratios(row) for row in rows] == [(3 / 5, 3 / 4, 6 / 9), (1.0, 2 / 4, 4 / 6)]
    assert {row["undefined_interval"] for row in rows} == {"one_replicate"}
    assert {row["undefined_interval"] for row in detected(SCORED, uncertainty="none")["curve"].to_dicts()} == {"none"}


def test_predictions_without_a_score_count_at_every_threshold() -> None:
    always = {"n_always": 1, "tp_always": 1}
    rows = detected([*SCORED, always])["curve"].to_dicts()
    assert [values(row, "n_predicted", "tp", "precision") for row in rows] == [(6, 4, 4 / 6), (3, 3, 1.0)]
    alone = detected([{"n_series": 1, "n_true": 2} | always], thresholds="distinct")
    assert values(alone.row("curve"), "threshold", "n_predicted", "tp", "recall") == (None, 1, 1, 1 / 2)
    assert values(alone.row("areas"), "n_predicted", "average_precision") == (1, None)


@pytest.mark.parametrize(
    ("rows", "values_at_half", "reason"),
    [
        ([{"n_series": 1, "n_true": 2}], (None, 0.0, 0.0), "no_prediction"),
        ([{"n_series": 1}, {"threshold": 0.5, "n_predicted": 2}], (0.0, None, 0.0), "no_positive"),
        ([{"n_series": 1}], (None, None, None), "no_prediction"),
    ],
)
def test_a_ratio_of_nothing_is_null_and_says_why(
    rows: list[dict[str, Any]], values_at_half: tuple[float | None, ...], reason: str
) -> None:
    result = detected([*rows, {"replicate": 1, "n_series": 1}])
    row = result.row("curve", threshold=0.5)
    assert (ratios(row), row["undefined"], row["undefined_interval"]) == (values_at_half, reason, "undefined_ratio")
    assert result.row("areas")["undefined"] == ("no_positive" if rows[0].get("n_true", 0) == 0 else reason)
    no_true = not rows[0].get("n_true")
    of_clusters = [
        words
        for words in result.warnings
        if "they rest on few independent clusters, 2 at the fewest (few_clusters in " in words
    ]
    assert len(of_clusters) == (result.row("curve", threshold=0.5)["interval_quality"] is not None)
    assert [words for words in result.warnings if words not in of_clusters] == (
        ["there is no true point: recall and areas are empty (NULL)"] if no_true else []
    )


def test_areas_are_taken_at_every_score_or_at_the_thresholds() -> None:
    scores: Rows = [  # right, wrong, right: precision 1, 1/2, 2/3 at recall 1/4, 1/4, 2/4
        {"score": 0.9, "n_predicted": 1, "tp": 1},
        {"score": 0.7, "n_predicted": 1},
        {"score": 0.3, "n_predicted": 1, "tp": 1},
    ]
    counts: dict[str, pl.DataType] = {"n_predicted": pl.Int64(), "tp": pl.Int64()}
    frames = {"scores": count_table(scores, counts, keys={"score": pl.Float64()})}
    rows: Rows = [
        {"n_series": 1, "n_true": 4},
        {"threshold": 0.5, "n_predicted": 2, "tp": 1},
        {"threshold": 0.25, "n_predicted": 1, "tp": 1},
    ]
    every = detected(rows, frames=frames).row("areas")
    assert every["average_precision"] == pytest.approx(1 / 4 * 1 + 1 / 4 * 2 / 3)
    # trapezoids: level at 1/2 down to recall 0, then from 1/2 to 2/3
    assert every["pr_auc"] == pytest.approx(1 / 4 * 1 / 2 + 1 / 4 * (1 / 2 + 2 / 3) / 2)
    assert every["pr_auc_roerich"] == pytest.approx(1 / 4 + 1 / 4 * (1 / 2 + 2 / 3) / 2 + 1 / 2 * (2 / 3 + 0) / 2)
    of_thresholds = detected(rows, frames=frames, area_scores="thresholds").row("areas")
    assert of_thresholds["average_precision"] == pytest.approx(1 / 4 * 1 / 2 + 1 / 4 * 2 / 3)
    assert (every["n_covered"], every["covering"]) == (0, None)


def test_covering_is_a_mean_over_the_series_that_have_one() -> None:
    counts: dict[str, pl.DataType] = {"n_covered": pl.Int64(), "covering": DECIMAL}
    covering = count_table(
        [{"n_covered": 1, "covering": "0.5"}, {"replicate": 1, "n_covered": 1, "covering": "0.75"}], counts
    )
    row = detected([*SCORED, SECOND_SERIES], frames={"covering": covering}).row("areas")
    assert values(row, "n_series", "n_covered", "covering") == (3, 2, 1.25 / 2)


def test_recall_of_tcpd_is_a_mean_over_series() -> None:
    rows: Rows = [
        {"n_series": 1, "n_true": 3, "n_always": 1, "tp_always": 1, "recall_always": "0.25"},
        {"threshold": 0.5, "n_predicted": 1, "tp": 1, "recall_sum": "0.5"},
        {"replicate": 1, "n_series": 1, "n_true": 1, "n_always": 1, "tp_always": 1, "recall_always": "0.5"},
    ]
    result = detected(rows, annotators="tcpd")
    row = result.row("curve", threshold=0.5)
    recall = (0.25 + 0.5 + 0.5) / 2
    assert ratios(row) == (1.0, recall, 2 * recall / (1 + recall))
    assert (row["f1_lower"], row["undefined_interval"]) == (None, "not_a_proportion")
    assert row["recall_lower"] < recall < row["recall_upper"]
    assert values(result.row("areas"), "average_precision", "undefined") == (None, "averaged_recall")


def test_a_prediction_that_serves_several_points_makes_precision_no_proportion() -> None:
    rows: Rows = [SECOND_SERIES, {"n_series": 1, "n_true": 3}, {"threshold": 0.5, "n_predicted": 1, "tp": 2}]
    result = detected(rows, matching="any")
    row = result.row("curve", threshold=0.5)
    assert values(row, "precision", "precision_lower", "undefined_interval") == (2.0, None, "not_a_proportion")
    assert row["recall_lower"] is not None
    of_two = detected([*rows, {"threshold": 0.5, "n_predicted": 1}], matching="any").row("curve", threshold=0.5)
    assert values(of_two, "precision", "precision_lower") == (1.0, None)  # it could have been above 1
    assert result.warnings[0].startswith("precision is above 1 in 2 of 2 rows of the curve")


def test_thresholds_are_chosen_and_counted_on_other_series() -> None:
    series: Rows = [
        row
        for number in range(30)
        for row in (
            {"replicate": number, "n_series": 1, "n_true": 2},
            {"replicate": number, "threshold": 0.5, "n_predicted": 2, "tp": 2},
            {"replicate": number, "threshold": 0.25, "n_predicted": 3, "tp": 0},
        )
    ]
    points: Rows = [
        {"beta": 1},
        {"min_precision": 0.9},
        {"min_precision": 0.9, "confidence": 0.95},
        {"min_recall": 0.9, "confidence": 0.95},
        {"min_recall": 0.97, "confidence": 0.95},
    ]
    result = detected(series, operating_points=points)
    chosen = {row["criterion"]: row for row in result["operating_points"].to_dicts()}
    cross_fitted = ("precision_cross_fitted", "recall_cross_fitted", "f1_cross_fitted", "undefined_cross_fitted")
    assert values(chosen["max_f1"], "threshold", *cross_fitted) == (0.5, 1.0, 1.0, 1.0, None)
    assert values(chosen["min_precision=0.9"], "threshold", *cross_fitted) == (0.5, 1.0, 1.0, 1.0, None)
    # 60 hits of 60 promise 0.05 ** (1 / 60) = .951
    for name, threshold in (("min_precision=0.9", 0.5), ("min_recall=0.9", 0.5), ("min_recall=0.97", None)):
        row = chosen[f"{name},confidence=0.95"]
        assert values(row, "threshold", "undefined_cross_fitted") == (threshold, "confidence")
    assert chosen["min_recall=0.97,confidence=0.95"]["undefined"] == "not_promised"
    of_any = detected(series, operating_points=points[2:4], matching="any")["operating_points"]
    assert of_any["threshold"].to_list() == [None, 0.5]  # precision is no proportion
    no_score = detected([{"n_series": 1, "n_true": 1, "n_always": 1}], thresholds="distinct")
    assert no_score["operating_points"].is_empty()


def test_costs_and_capacities_of_points() -> None:
    halves: Rows = [
        row
        for number in range(2)
        for row in (
            {"replicate": number, "n_series": 1, "n_true": 3},
            {"replicate": number, "threshold": 0.5, "n_predicted": 1, "tp": 1},
            {"replicate": number, "threshold": 0.25, "n_predicted": 3, "tp": 1},
        )
    ]
    points: Rows = [{"cost": {"fp": 1, "fn": 3}}, {"cost": {"fp": 2, "fn": 3}}, {"max_alerts": 7}, {"threshold": 0.25}]
    rows = {row["criterion"]: row for row in detected(halves, operating_points=points)["operating_points"].to_dicts()}
    # at .5: fp 0, fn 4; at .25: fp 4, fn 2
    names = ("threshold", "cost", "cost_cross_fitted")
    assert values(rows["cost=fp:1,fn:3"], *names) == (0.25, 10.0, 10.0)
    assert values(rows["cost=fp:2,fn:3"], *names) == (0.5, 12.0, 12.0)
    assert values(rows["max_alerts=7"], *names) == (0.5, None, None)
    assert values(rows["threshold=0.25"], "threshold", "undefined_cross_fitted") == (0.25, "given")
    with pytest.raises(ValidationError, match="each true positive is one prediction and one true point"):
        detected(halves, operating_points=points, matching="any")
    with pytest.raises(ValidationError, match="whose recall is a mean"):
        detected(halves, operating_points=points, annotators="tcpd")
    with pytest.raises(ValidationError, match="max_alert_share is a share of all rows"):
        detected(halves, operating_points=[{"max_alert_share": 0.1}])


def test_the_best_f_beta_of_tcpd_is_the_harmonic_mean() -> None:
    rows: Rows = [
        {"n_series": 2, "n_true": 4, "n_always": 2, "tp_always": 2, "recall_always": "1.0"},
        {"threshold": 0.5, "n_predicted": 2, "tp": 1, "recall_sum": "0.5"},
        {"threshold": 0.25, "n_predicted": 4, "tp": 1, "recall_sum": "0.4"},
    ]
    halves = [{**row, "replicate": number} for number in range(2) for row in rows]
    points: Rows = [{"beta": 1}, {"beta": 3}]
    result = detected(halves, annotators="tcpd", operating_points=points)["operating_points"]
    best = dict(result.select("criterion", "threshold").iter_rows())
    curve = {
        threshold: (tp / predicted, recall)
        for threshold, tp, predicted, recall in ((0.5, 3, 4, 0.75), (0.25, 4, 8, 0.95))
    }
    for beta, name in ((1, "max_f1"), (3, "max_f3")):
        scores = {key: (1 + beta**2) * p * r / (beta**2 * p + r) for key, (p, r) in curve.items()}
        assert best[name] == max(scores, key=lambda key: scores[key])
    row = result.row(0, named=True)
    assert (row["recall_cross_fitted"], row["f1_cross_fitted"]) == pytest.approx((row["recall"], row["f1"]))


def test_groups_words_and_empty_tables() -> None:
    rows: Rows = [{"grouping": "method", "method": name, **row} for name in ("m", None) for row in SCORED]
    result = detected([*SCORED, *rows[:-1]], by=[[], ["method"]])
    tp = {(row["grouping"], row["by:method"]): row["tp"] for row in result.rows("curve", threshold=0.25)}
    assert tp == {("all", None): 3, ("method", "m"): 3, ("method", None): 1}
    # F1 is 6/9 and 4/6: of equal ones the lower threshold
    assert result.summary.rows[0][:4] == ("all", "2", "4", "0.25")
    assert result.summary.sentence.startswith(
        "With scores of 0.25 or more, 60 of every 100 predicted points are right, and 75 of every 100 true "
    )
    nothing = detected([], by=[["method"]])
    names = {"curve", "areas", "operating_points"}
    assert nothing.returned == {f"change_points_{name}" for name in names}
    assert all(table.is_empty() for table in nothing.tables.values())
    assert nothing.summary.sentence == "No group has any series."
