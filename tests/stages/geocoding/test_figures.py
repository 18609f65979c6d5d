"""Figures of geocoding from a few rows of its tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from deriving import figures_of, result_tables, stage_of

if TYPE_CHECKING:
    from deriving import Rows

KIND = "geocoding"
SCORES: Rows = [
    {"tolerance_km": 161.0, "precision": 0.5, "recall": 0.4, "n_gold": 5},
    {"tolerance_km": 0.0, "precision": 0.1, "recall": 0.1, "n_gold": 5},
    {"tolerance_km": 10.0, "precision": None, "recall": 0.2, "n_gold": 5},
]


def test_tolerances_rise_on_a_logarithmic_axis_that_has_no_zero() -> None:
    figure = figures_of(KIND, {"scores": SCORES})["accuracy"]
    assert figure.frame["tolerance_km"].to_list() == [10.0, 161.0]
    assert figure.frame["precision"].to_list() == [None, 0.5]
    assert figure.x.logarithmic
    assert [rule.value for rule in figure.rules] == [161.0]
    assert "tolerance of 0" in figure.caption


def test_shares_within_a_distance_are_of_located_and_of_all_mentions() -> None:
    distances = [0.0, 10.0, 20_015.0, None]
    group = {"grouping": "system", "system": "a"}
    outcomes: Rows = [{**group, "mention": index, "distance_km": value} for index, value in enumerate(distances)]
    outcomes.append({"grouping": "system", "system": "b", "mention": 9, "distance_km": None})
    frame = figures_of(KIND, {"outcomes": outcomes}, ["system"])["errors"].frame
    of_a = frame.filter(frame["by:system"] == "a")
    within = {round(row["distance_km"], 1): row for row in of_a.to_dicts()}
    assert (within[0.1]["of_located"], within[7.9]["of_located"]) == (pytest.approx(1 / 3), pytest.approx(1 / 3))
    assert (within[10.0]["of_located"], within[10.0]["of_gold"]) == (pytest.approx(2 / 3), 0.5)
    assert (of_a["of_located"][-1], of_a["of_gold"][-1]) == (1.0, 0.75)
    of_b = frame.filter(frame["by:system"] == "b")
    assert (set(of_b["of_located"]), set(of_b["of_gold"])) == ({None}, {0.0})


def test_key_numbers_are_those_of_the_largest_tolerance() -> None:
    errors = [{"median_km": 3.0, "mean_km": 40.0, "mean_km_lower": 30.0, "interval_quality": "good"}]
    numbers = stage_of(KIND).key_numbers(result_tables(KIND, {"scores": SCORES, "errors": errors}))
    assert [(number.name, number.value, number.quality) for number in numbers] == [
        ("Precision", 0.5, ""),
        ("Recall", 0.4, ""),
        ("Median error", 3.0, ""),
        ("Mean error", 40.0, "good"),
    ]
    assert numbers[0].meaning == "located mentions within 161 km"
