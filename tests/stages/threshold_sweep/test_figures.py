"""Figures of threshold_sweep from a few rows of its tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
from deriving import figures_of, result_tables, stage_of

if TYPE_CHECKING:
    from deriving import Rows

KIND = "threshold_sweep"


def row(threshold: float, tp: int, fp: int, fn: int, tn: int, **values: Any) -> dict[str, Any]:  # noqa: ANN401 - cells
    ratios = {"precision": tp / (tp + fp) if tp + fp else None, "recall": tp / (tp + fn), "fpr": fp / (fp + tn)}
    return {"threshold": threshold, "tp": tp, "fp": fp, "fn": fn, "tn": tn, **ratios, **values}


# 20 rows at each of four scores, 0.15, 0.25, 0.65 and 0.95, of which 2, 6, 12 and 20 are true
CURVE = [row(0.15, 40, 40, 0, 0), row(0.25, 38, 22, 2, 18), row(0.65, 32, 8, 8, 32), row(0.95, 20, 0, 20, 40)]
AREAS: Rows = [{"n": 80, "n_positive": 40, "brier": 0.1, "average_precision": 0.9, "roc_auc": 0.8}]


def bins_of(**limits: float) -> Rows:
    """Two bins by quantile, the higher one first, and two of equal width, of which one has no row."""
    empty = {"n": 0, "n_positive": 0, "share_positive": None}
    rows: Rows = [
        {"bin": 2, "score_lower": 0.4, "score_upper": 0.9, "mean_score": 0.7, "share_positive": 0.5, **limits},
        {"bin": 1, "score_lower": 0.1, "score_upper": 0.4, "mean_score": 0.2, "share_positive": 0.1, **limits},
    ]
    quantile = [row | {"binning": "quantile", "n": 20, "n_positive": 6} for row in rows]
    width = [
        row | {"binning": "width", "n": 40, "n_positive": 12, "score_lower": 0.5, "score_upper": 1.0} for row in rows
    ]
    return [*quantile, width[0], width[1] | {"score_lower": 0.0, "score_upper": 0.5} | empty]


LIMITS = {
    f"{name}_{side}": value
    for name, values in {"share_positive": (0.05, 0.6), "share_positive_band": (0.02, 0.7)}.items()
    for side, value in zip(("lower", "upper"), values, strict=True)
}


def test_calibration_has_points_with_intervals_in_a_band_and_rows_by_score() -> None:
    tables = {"curve": CURVE, "areas": AREAS, "reliability": bins_of(**LIMITS)}
    figures = figures_of(KIND, tables, confidence=0.9)
    figure, rows = figures["calibration"], figures["scores"]
    band, points = figure.series
    assert figure.frame["mean_score"].to_list() == [0.2, 0.7]
    assert figure.frame[points.column].to_list() == figure.frame[band.column].to_list() == [0.1, 0.5]
    assert (figure.frame[points.lower][0], figure.frame[points.upper][0]) == (0.05, 0.6)
    assert (figure.frame[band.lower][0], figure.frame[band.upper][0]) == (0.02, 0.7)
    assert (band.mark, points.mark) == ("line", "point")
    assert "Bars are 90% intervals" in figure.caption
    assert "all bins together in 90%" in figure.caption
    assert rows.frame.select("score", "n", "n_positive").rows() == [(0.25, 0, 0), (0.75, 40, 12)]


def test_calibration_without_intervals_has_points_alone() -> None:
    figure = figures_of(KIND, {"curve": CURVE, "areas": AREAS, "reliability": bins_of()})["calibration"]
    assert [line.lower for line in figure.series] == ["", ""]
    assert "interval" not in figure.caption
    assert "together" not in figure.caption


def test_calibration_is_left_out_where_scores_are_no_probabilities() -> None:
    assert not {"calibration", "scores"} & set(figures_of(KIND, {"curve": CURVE, "areas": AREAS}))


def test_an_undefined_ratio_is_a_gap_and_chance_is_the_share_of_true_rows() -> None:
    curve = [*CURVE, row(0.99, 0, 0, 40, 40)]
    figures = figures_of(KIND, {"curve": curve[::-1], "areas": AREAS})
    assert figures["by_threshold"].frame["threshold"].to_list() == [0.15, 0.25, 0.65, 0.95, 0.99]
    assert figures["by_threshold"].frame["precision"].to_list() == [0.5, 38 / 60, 0.8, 1.0, None]
    assert figures["precision_recall"].frame["recall"].to_list() == [1.0, 0.95, 0.8, 0.5, 0.0]
    assert set(figures["precision_recall"].frame["prevalence"]) == {0.5}
    assert figures["roc"].frame["fpr"].to_list() == [1.0, 0.55, 0.2, 0.0, 0.0]
    assert figures["by_threshold"].series[-1].lower == ""  # no limits in the table, none in the figure


def test_weights_decide_chance() -> None:
    weights = {"tp_weight": 1.0, "fp_weight": 1.0, "fn_weight": 2.0, "tn_weight": 4.0}
    figures = figures_of(KIND, {"curve": [line | weights for line in CURVE], "areas": AREAS})
    assert set(figures["precision_recall"].frame["prevalence"]) == {3 / 8}


def test_groups_have_panels_of_their_own_and_stand_beside_each_other() -> None:
    curve = [line | {"grouping": "model", "model": name} for name in ("b", "a") for line in CURVE]
    areas = [AREAS[0] | {"grouping": "model", "model": name} for name in ("b", "a")]
    points = [{"criterion": "max_f1", "grouping": "model", "model": "a", "threshold": 0.65, "precision": 0.8}]
    tables = {"curve": curve, "areas": areas, "operating_points": points}
    figures = figures_of(KIND, tables, ["model"])
    frame = figures["by_threshold"].frame
    assert frame["by:model"].to_list() == ["a"] * 4 + ["b"] * 4
    chosen = figures["by_threshold"].chosen
    assert chosen is not None
    assert chosen.select("by:model", "threshold", "criterion", "precision", "recall").rows() == [
        ("a", 0.65, "max_f1", 0.8, None)
    ]
    assert "max_f1" in figures["by_threshold"].caption
    assert figures["areas"].across
    numbers = stage_of(KIND).key_numbers(result_tables(KIND, tables, ["model"]))
    values = {(number.group, number.name): number.value for number in numbers}
    assert (values["a", "Precision"], values["b", "Precision"], values["b", "ROC AUC"]) == (0.8, None, 0.8)


def test_a_cost_per_row_is_a_key_number_where_the_first_criterion_has_costs() -> None:
    criteria = ["cost=fp:1,fn:5", "max_f1"]
    for ordered in (criteria, criteria[::-1]):
        points: Rows = [{"criterion": criterion, "threshold": 0.4} for criterion in ordered]
        tables = result_tables(KIND, {"curve": CURVE, "areas": AREAS, "operating_points": points})
        cost = pl.when(pl.col("criterion") == criteria[0]).then(0.5).alias("cost_per_row")
        name = "threshold_sweep_operating_points"
        numbers = stage_of(KIND).key_numbers({**tables, name: tables[name].with_columns(cost)})
        values = {number.name: (number.value, number.format) for number in numbers}
        assert values.get("Cost per row") == ((0.5, "number") if ordered[0] == criteria[0] else None)
        assert len(values) == (5 if ordered[0] == criteria[0] else 4)


def test_criteria_with_commas_are_told_apart() -> None:
    points: Rows = [{"criterion": criterion, "threshold": 0.4} for criterion in ("cost=fp:1,fn:5", "max_f1")]
    figures = figures_of(KIND, {"curve": CURVE, "areas": AREAS, "operating_points": points})
    assert "chosen by cost=fp:1,fn:5; max_f1." in figures["by_threshold"].caption


def test_a_single_threshold_makes_points_and_no_path() -> None:
    figures = figures_of(KIND, {"curve": CURVE[:1], "areas": AREAS})
    assert list(figures) == ["by_threshold"]
    assert {line.mark for line in figures["by_threshold"].series} == {"point"}


def test_net_benefit_is_drawn_beside_that_of_every_row_as_far_as_it_can_be_seen() -> None:
    names = ("threshold", "net_benefit", "net_benefit_lower", "net_benefit_upper", "net_benefit_all")
    rows = [(0.1, 0.4, 0.3, 0.5, 0.44), (0.5, 0.2, 0.1, 0.3, 0.0), (0.9, 0.05, -2.0, 0.1, -4.0)]
    benefit = [dict(zip(names, values, strict=True)) | {"interval_quality": "good"} for values in rows]
    figure = figures_of(KIND, {"curve": CURVE, "areas": AREAS, "net_benefit": benefit})["decision_curve"]
    assert figure.frame["net_benefit_all"].to_list() == [0.44, 0.0, None]
    assert figure.frame["net_benefit"].to_list() == [0.4, 0.2, 0.05]
    assert figure.frame["net_benefit_lower"].to_list() == [0.3, 0.1, -0.4]
    assert "95% intervals" in figure.caption
    assert "decision_curve" not in figures_of(KIND, {"curve": CURVE, "areas": AREAS})


def test_every_prevalence_has_a_figure_with_the_points_chosen_there() -> None:
    at = [{**line, "prevalence": share} for share in (0.3, 0.01) for line in CURVE]
    points = [{**CURVE[number], "prevalence": share, "criterion": "max_f1"} for share, number in ((0.3, 1), (0.01, 3))]
    tables = {"curve": CURVE, "areas": AREAS, "at_prevalence": at, "points_at_prevalence": points}
    figures = figures_of(KIND, {name: [_shown(row) for row in rows] for name, rows in tables.items()})
    assert figures["at_prevalence_1"].title.endswith("where 1% of rows are true")
    chosen = figures["at_prevalence_1"].chosen
    assert chosen is not None
    assert chosen["threshold"].to_list() == [0.95]
    assert figures["at_prevalence_2"].frame.height == 4


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value for name, value in row.items() if "prevalence" not in row or name not in {"tp", "fp", "fn", "tn"}
    }
