"""Figures of before_after from a few rows of its tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from deriving import figures_of, result_tables, stage_of

if TYPE_CHECKING:
    from deriving import Rows

KIND = "before_after"
LIMITS = {"precision_lower": 0.3, "precision_upper": 0.6, "interval_quality": "few_clusters"}
ESTIMATES: Rows = [
    {"threshold": 2.0, "precision": 0.9, "recall": 0.4, "precision_uncorrected": 0.9, "recall_uncorrected": 0.5},
    {"threshold": 3.0},
    {"threshold": 1.0, "precision": 0.5, "recall": 1.0, "precision_uncorrected": 0.49, "recall_uncorrected": 1.0},
]


def point(criterion: str, threshold: float | None, **values: Any) -> dict[str, Any]:  # noqa: ANN401 - cells
    return {"criterion": criterion, "threshold": threshold, **values}


def lag(threshold: float, day: int, matches: int, **values: Any) -> dict[str, Any]:  # noqa: ANN401 - cells
    return {"threshold": threshold, "lag_days": day, "matches": matches, **values}


def test_the_curve_has_a_gap_where_a_ratio_is_not_defined() -> None:
    figure = figures_of(KIND, {"estimates": [row | LIMITS for row in ESTIMATES]}, confidence=0.99)["by_threshold"]
    assert figure.frame["threshold"].to_list() == [1.0, 2.0, 3.0]
    assert figure.frame["precision"].to_list() == [0.5, 0.9, None]
    assert [(line.column, line.lower) for line in figure.series] == [
        ("f1", ""),
        ("recall", ""),
        ("precision", "precision_lower"),
    ]
    assert figure.frame["interval_quality"].to_list() == ["few_clusters"] * 3
    assert "99% intervals" in figure.caption
    assert figure.chosen is None


def test_only_visible_corrections_are_drawn() -> None:
    figures = figures_of(KIND, {"estimates": ESTIMATES})
    assert "uncorrected_precision" not in figures  # 0.01 apart
    assert figures["uncorrected_recall"].frame["recall_uncorrected"].to_list() == [1.0, 0.5, None]
    assert "realised_precision" not in figures


def test_days_without_a_match_are_zero_and_chance_is_the_mean_before() -> None:
    lags: Rows = [
        *(lag(5.0, day, matches, grouping="source", source="a") for day, matches in ((-3, 4), (-1, 2), (0, 9))),
        lag(5.0, 2, 1, grouping="source", source=None),
        lag(7.0, 1, 1, grouping="source", source="a"),
    ]
    figures = figures_of(KIND, {"lags": lags}, ["source"])
    assert list(figures) == ["matches_by_day_1", "matches_by_day_2"]
    frame = figures["matches_by_day_1"].frame
    assert frame.filter(frame["by:source"] == "a").select("lag_days", "before", "after", "by_chance").rows() == [
        (-3, 4, None, 2.0),
        (-2, 0, None, 2.0),
        (-1, 2, None, 2.0),
        (0, None, 9, 2.0),
        (1, None, 0, 2.0),
        (2, None, 0, 2.0),
    ]
    assert frame.filter(frame["by:source"].is_null())["after"].drop_nulls().to_list() == [0, 0, 1]
    assert "score of 7 or more" in figures["matches_by_day_2"].caption


def test_many_days_share_a_bar_and_none_holds_the_event_inside() -> None:
    lags = [lag(5.0, day, 1) for day in range(-365, 100)]
    figure = figures_of(KIND, {"lags": lags})["matches_by_day_1"]
    days = figure.frame["lag_days"].to_list()
    assert (days[0], days[-1], len(days)) == (-368, 96, 117)
    assert figure.frame["before"].sum() == 365
    assert figure.frame["after"].sum() == 100
    assert figure.y.title == "Matches per 4 days"


def test_of_many_lag_thresholds_a_few_are_drawn() -> None:
    figures = figures_of(KIND, {"lags": [lag(float(threshold), 0, 1) for threshold in range(13)]})
    assert [figure.title[-2:].strip() for figure in figures.values()] == ["0", "3", "6", "9", "12"]


def test_the_placebo_test_is_drawn_without_its_joint_row() -> None:
    placebo: Rows = [
        {"threshold": None, "log_rate_ratio": 0.9},
        {"threshold": 2.0, "log_rate_ratio": 0.2, "log_rate_ratio_lower": -0.1, "log_rate_ratio_upper": 0.5},
        {"threshold": 1.0, "log_rate_ratio": None},
    ]
    figure = figures_of(KIND, {"placebo": placebo})["placebo"]
    assert figure.frame["threshold"].to_list() == [1.0, 2.0]
    assert figure.frame["log_rate_ratio"].to_list() == [None, 0.2]
    assert [(rule.value, rule.axis) for rule in figure.rules] == [(0.0, "y")]


def test_a_trend_has_a_row_for_every_threshold_in_their_order() -> None:
    trend: Rows = [{"threshold": 10.0, "slope": 0.1}, {"threshold": 5.0, "slope": -0.1}]
    frame = figures_of(KIND, {"trend": trend})["trend"].frame
    assert frame.select("at", "slope").rows() == [("5", -0.1), ("10", 0.1)]


@pytest.mark.parametrize("ratio", ["precision", "recall"])
def test_gold_of_matches_stands_beside_the_estimate(ratio: str) -> None:
    gold: Rows = [
        {"threshold": 2.0, "level": "match", ratio: 0.7},
        {"threshold": 2.0, "level": "article", ratio: 0.1},
    ]
    frame = figures_of(KIND, {"estimates": ESTIMATES, "gold": gold})[f"gold_{ratio}"].frame
    assert frame["gold"].to_list() == [None, 0.7, None]


def test_adjusted_and_audited_estimates_stand_beside_the_plain_one() -> None:
    adjusted: Rows = [{"threshold": 2.0, "precision_adjusted": 0.8}]
    audit: Rows = [{"threshold": 2.0, "precision_audited": 0.6, "precision": 0.9, "precision_combined": 0.7}]
    figures = figures_of(KIND, {"estimates": ESTIMATES, "adjusted": adjusted, "audit": audit})
    assert figures["adjusted_precision"].frame.select("precision", "precision_adjusted").rows() == [(0.9, 0.8)]
    columns = [line.column for line in figures["audited_precision"].series]
    assert figures["audited_precision"].frame.select(columns).rows() == [(0.9, 0.7, 0.6)]


def test_key_numbers_are_those_of_the_first_criterion_the_total_first() -> None:
    points: Rows = [
        point("max_f1", 4.0, grouping="source", source=None, m_after=9, precision=0.1),
        point("max_f1", 5.0, m_after=20, precision=0.8, precision_lower=0.7, interval_quality="good"),
        point("min_recall=0.8", 1.0, m_after=30, precision=0.2),
        point("recall_reference", 1.0, m_after=40, precision=0.3),
        point("max_f1", None, grouping="source", source="</script>\n", m_after=None),
    ]
    numbers = stage_of(KIND).key_numbers(result_tables(KIND, {"operating_points": points}, ["source"]))
    assert [(number.group, number.value, number.lower, number.quality) for number in numbers[::3]] == [
        ("all", 0.8, 0.7, "chosen_on_same_data"),
        ("null", 0.1, None, ""),
        ("</script>\\u000a", None, None, ""),
    ]
    assert [number.name for number in numbers[:3]] == ["Precision", "Recall", "F1"]


def test_without_a_criterion_the_reference_is_the_key() -> None:
    points = [point("recall_reference", 1.0, m_after=40, precision=0.3)]
    numbers = stage_of(KIND).key_numbers(result_tables(KIND, {"operating_points": points}))
    assert numbers[0].value == 0.3
