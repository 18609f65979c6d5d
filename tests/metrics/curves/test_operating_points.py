from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from pydantic import ValidationError

from pipeline.metrics.curves.decisions import Cost
from pipeline.metrics.curves.operating_points import Criterion, Outcomes, pick

CURVE = pl.DataFrame(
    {
        "group": ["a", "a", "a", "b", "b", None],
        "threshold": [3.0, 1.0, 2.0, 1.0, 2.0, 1.0],
        "value": [0.5, 0.5, 0.4, None, None, 0.1],
        "undefined": [None, None, None, "no_prediction", "no_prediction", None],
    }
)


@pytest.mark.parametrize(
    ("criterion", "text"),
    [
        (Criterion(beta=1), "max_f1"),
        (Criterion(beta=0.5), "max_f0.5"),
        (Criterion(beta=2), "max_f2"),
        (Criterion(min_precision=0.9), "min_precision=0.9"),
        (Criterion(min_recall=0.8), "min_recall=0.8"),
        (Criterion(min_recall=0.8, confidence=0.9), "min_recall=0.8,confidence=0.9"),
        (Criterion(threshold=6.54), "threshold=6.54"),
        (Criterion(threshold=-3), "threshold=-3"),
        (Criterion(threshold=0.1 + 0.2), "threshold=0.30000000000000004"),
        (Criterion(max_alerts=500), "max_alerts=500"),
        (Criterion(max_alert_share=0.01), "max_alert_share=0.01"),
        (Criterion(cost=Cost(fp=1, fn=20)), "cost=fp:1,fn:20"),
        (Criterion(cost=Cost(fp=0.5, fn=20, tp=-2.5, tn=0.25)), "cost=fp:0.5,fn:20,tp:-2.5,tn:0.25"),
    ],
)
def test_a_criterion_is_named_by_what_it_asks_for(criterion: Criterion, text: str) -> None:
    assert criterion.text == text


@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"beta": 1, "min_recall": 0.5},
        {"beta": 0},
        {"beta": float("nan")},
        {"beta": float("inf")},
        {"min_precision": 1.1},
        {"min_precision": -0.1},
        {"min_recall": 2},
        {"min_precision": 0.1234567891},
        {"min_f1": 0.5},
        {"beta": 1, "confidence": 0.95},
        {"min_recall": 0.5, "confidence": 0.5},
        {"threshold": float("nan")},
        {"threshold": 0.5, "max_alerts": 5},
        {"threshold": 0.5, "confidence": 0.9},
        {"max_alerts": 0},
        {"max_alerts": 1.5},
        {"max_alert_share": 0},
        {"max_alert_share": 1.1},
        {"cost": {"fp": 1}},
        {"cost": {"fp": 0, "fn": 1}},
        {"cost": {"fp": 1, "fn": 1, "tp": 1}},
        {"cost": {"fp": 1, "fn": 2, "tn": 1.5}},
        {"cost": {"fp": 1e-10, "fn": 1}},
        {"cost": {"fp": 1, "fn": float("inf")}},
        {"cost": {"fp": 1, "fn": 20}, "confidence": 0.9},
    ],
)
def test_a_criterion_that_says_nothing_or_too_much_is_refused(keys: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Criterion.model_validate(keys)


def test_the_best_row_of_every_group_is_picked_and_ties_go_to_the_lowest_threshold() -> None:
    picked = pick(CURVE, ["group"], criterion="best", among=pl.lit(value=True), best=pl.col("value"))
    rows = {row["group"]: row for row in picked.to_dicts()}
    assert {group: row["threshold"] for group, row in rows.items()} == {"a": 1.0, "b": None, None: 1.0}
    assert rows["b"]["undefined"] == "not_reached"
    assert set(picked["criterion"]) == {"best"}


def test_rows_for_which_the_condition_is_unknown_are_not_picked() -> None:
    picked = pick(CURVE, ["group"], criterion="x", among=pl.col("value") > 0.45, best=pl.col("threshold"))
    assert {row["group"]: row["threshold"] for row in picked.to_dicts()} == {"a": 3.0, "b": None, None: None}


@pytest.mark.parametrize(
    ("cost", "units"),
    [
        (Cost(fp=1, fn=20), (0, 1, 20, 0)),
        (Cost(fp=0.1, fn=0.3), (0, 1, 3, 0)),
        (Cost(fp=2.5, fn=10, tp=-5, tn=0.25), (-20, 10, 40, 1)),
    ],
)
def test_costs_are_whole_numbers_of_their_largest_common_unit(cost: Cost, units: tuple[int, ...]) -> None:
    assert cost.whole == units


def test_equal_costs_of_counts_are_equal() -> None:
    # 3 × 0.1 in doubles is more than 0.3
    counts = Outcomes(np.zeros(2), np.array([3.0, 0.0]), np.array([0.0, 1.0]))
    first, second = counts.whole_cost(Cost(fp=0.1, fn=0.3)).tolist()
    assert first == second
