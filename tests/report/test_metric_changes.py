"""Metrics are found from contracts, and compared group by group."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from pipeline.report.diff import compared_columns, metric_changes
from pipeline.stages import STAGES
from report.made_stages import stage_of


def test_what_is_compared_follows_from_the_contracts() -> None:
    tables = [table for entry in STAGES for table in entry.load().tables]
    names = {table.name: compared_columns(table) for table in tables if "threshold" not in table.key}
    assert {name for name, columns in names.items() if columns} == {
        "before_after_operating_points",
        "threshold_sweep_operating_points",
        "threshold_sweep_pooled_points",
        "threshold_sweep_points_at_prevalence",
        "threshold_sweep_areas",
        "threshold_sweep_calibration",
        "ranking_summary",
        "ranking_cutoff_means",
        "ranking_measures",
        "entity_recognition_operating_points",
        "geocoding_scores",
        "geocoding_errors",
        "change_points_operating_points",
        "change_points_areas",
        "change_points_alarm_points",
        "compare_tests",
        "compare_posteriors",
    }
    assert {"average_precision", "pr_auc", "roc_auc", "brier"} < set(names["threshold_sweep_areas"])
    assert names["ranking_cutoff_means"] == ("precision", "recall")
    assert names["change_points_areas"] == ("average_precision", "pr_auc", "pr_auc_roerich", "covering")
    ratios = ("precision", "recall", "f1")
    of_points = ("threshold", *ratios, *(f"{name}_cross_fitted" for name in ratios))
    assert names["entity_recognition_operating_points"] == of_points


def test_points_of_a_curve_are_not_compared() -> None:
    curves = []
    for precision in (0.5, 0.6):
        points = {"grouping": ["all"] * 2, "averaged": ["model"] * 2, "average": ["macro"] * 2}
        values = {"threshold": [0.5, None], "precision": [precision, None], "average_precision": [None, precision]}
        curves.append(stage_of("threshold_sweep", {"threshold_sweep_averages": pl.DataFrame(points | values)}))
    (change,) = metric_changes(*curves).changed
    assert (change.number.name, change.number.row) == ("average_precision", "model, macro")
    assert change.difference == pytest.approx(0.1)


def means(**changes: float | None) -> pl.DataFrame:
    """A table ranking_cutoff_means of two groups."""
    frame = pl.DataFrame(
        {
            "grouping": ["system"] * 2,
            "by:system": ["a", "b"],
            "k": [1, 1],
            "precision": [0.5, 0.6],
            "precision_lower": [0.4, 0.5],
            "precision_upper": [0.6, 0.7],
            "recall": [0.5, 0.6],
            "recall_lower": [0.49, 0.59],
            "recall_upper": [0.51, 0.61],
        }
    )
    return frame.with_columns(
        pl.when(pl.col("by:system") == "a").then(pl.lit(value)).otherwise(name).alias(name)
        for name, value in changes.items()
    )


def changes_of(before: pl.DataFrame, after: pl.DataFrame) -> Any:  # noqa: ANN401
    stages = [stage_of("ranking", {"ranking_cutoff_means": table}) for table in (before, after)]
    return metric_changes(*stages)


def test_numbers_that_moved_most_beside_their_intervals_come_first() -> None:
    numbers = changes_of(means(), means(precision=0.55, recall=0.52))
    assert [change.number.name for change in numbers.changed] == ["recall", "precision"]
    assert [change.difference for change in numbers.changed] == [pytest.approx(0.02), pytest.approx(0.05)]
    assert numbers.n_metrics == 4
    assert changes_of(means(), means()).changed == ()


def test_limits_that_moved_are_a_change() -> None:
    (change,) = changes_of(means(), means(recall_lower=0.3)).changed
    assert (change.number.name, change.difference) == ("recall", 0.0)


def test_undefined_numbers_groups_and_columns_that_come_and_go() -> None:
    numbers = changes_of(means(precision=None), means(recall=0.6).drop("recall_lower", "recall_upper"))
    assert {change.number.name: change.difference for change in numbers.changed if change.number.group == "a"} == {
        "precision": None,
        "recall": pytest.approx(0.1),
    }
    numbers = changes_of(means(), means().drop("recall").with_columns(pl.col("by:system").replace("b", "c")))
    assert [(change.number.name, change.after) for change in numbers.changed] == [("recall", None)]
    assert (numbers.groups_added, numbers.groups_gone) == (("system c",), ("system b",))
