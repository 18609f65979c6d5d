"""Figures of change_points from a few rows of its tables."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import polars as pl
import pytest
from deriving import figures_of, result_tables, stage_of

from pipeline.stages.change_points.stage import MOST_BINS, width_of_bins

if TYPE_CHECKING:
    from deriving import Rows

KIND = "change_points"
CURVE: Rows = [
    {"threshold": 0.2, "precision": 0.4, "recall": 1.0, "f1": 0.57, "f1_upper": 0.6, "interval_quality": "good"},
    {"threshold": 0.8, "precision": None, "recall": 0.0, "f1": 0.0},
]


def delays(*values: float) -> Rows:
    return [
        {"series_id": index, "position": float(index), "rank": 1, "true_position": 0.0, "delay": float(value)}
        for index, value in enumerate(values)
    ]


def test_a_curve_needs_scores() -> None:
    figures = figures_of(KIND, {"curve": CURVE})
    assert figures["by_threshold"].frame["precision"].to_list() == [0.4, None]
    assert figures_of(KIND, {"curve": [CURVE[0] | {"threshold": None}]}) == {}


def test_a_bar_of_delays_has_its_delay_in_the_middle() -> None:
    figure = figures_of(KIND, {"delays": delays(-2, 0, 0, 1)})["delays"]
    assert figure.frame.select("bin", "number").rows() == [(-2.0, 1), (-1.0, 0), (0.0, 2), (1.0, 1)]
    assert figure.x.title.endswith("in units of the positions")


def test_delays_of_times_are_hours() -> None:
    tables = result_tables(KIND, {"delays": delays(0.5)})
    times = pl.lit(dt.datetime(2026, 1, 1)).alias("position")  # noqa: DTZ001 - UTC, as the table has it
    tables["change_points_delays"] = tables["change_points_delays"].with_columns(times)
    (figure,) = stage_of(KIND).figures(tables)
    assert figure.x.title.endswith("in hours")


@pytest.mark.parametrize(
    ("largest", "whole", "width"),
    [(0.0, True, 1.0), (7.0, True, 1.0), (100.0, True, 10.0), (0.3, False, 0.02), (0.3, True, 1.0), (39.0, True, 2.0)],
)
def test_bins_are_wide_enough_to_be_few(largest: float, whole: bool, width: float) -> None:  # noqa: FBT001 - a case
    assert width_of_bins(largest, whole=whole) == pytest.approx(width)
    assert 2 * largest / width <= MOST_BINS


def test_series_are_counted_by_their_f1() -> None:
    series = [{"series_id": index, "f1": value} for index, value in enumerate((0.0, 1.0, None))]
    figure = figures_of(KIND, {"series": series})["f1_of_series"]
    assert figure.frame["number"].to_list() == [1, *[0] * 18, 1]
    assert "it is not defined there: 1 of 3 in all" in figure.caption


def test_key_numbers_are_those_of_the_best_threshold() -> None:
    tables = result_tables(KIND, {"curve": CURVE, "areas": [{"n_series": 3, "n_true": 4}]})
    numbers = stage_of(KIND).key_numbers(tables)
    assert [(number.value, number.quality) for number in numbers] == [
        (0.4, ""),
        (1.0, ""),
        (0.57, "chosen_on_same_data"),
    ]
