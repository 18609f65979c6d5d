"""Areas under their closings: the usage example of roerich, means over true points, and the ends of the curve."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.metrics.change_points.matching import average_precision, roerich_area, trapezoid_area

TP = np.array([1, 2, 3, 3, 4, 4])
N_PREDICTED = np.array([1, 2, 3, 4, 5, 6])
AREAS = {average_precision: 0.76, trapezoid_area: 0.755, roerich_area: 0.555 + 0.2 / 3 + 0.2}


@pytest.mark.parametrize(("area", "value"), AREAS.items())
def test_the_usage_example_of_roerich(area: Any, value: float) -> None:  # noqa: ANN401 - a function
    assert area(TP, N_PREDICTED, 5) == pytest.approx(value, abs=1e-15)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 6)), max_size=40), st.integers(0, 5))
def test_areas_are_means_over_true_points(items: list[tuple[bool, int]], missed: int) -> None:
    """A true point has the precision where it is found first; the trapezoid the mean of that and the one before it."""
    n_true = sum(hit for hit, _ in items) + missed
    if not n_true:
        return
    thresholds = sorted({score for _, score in items}, reverse=True)
    entered = [[hit for hit, score in items if score >= threshold] for threshold in thresholds]
    tp, n_predicted = np.array([sum(hits) for hits in entered]), np.array([len(hits) for hits in entered])
    precision = [Fraction(sum(hits), len(hits)) for hits in entered]
    actual = [thresholds.index(score) for hit, score in items if hit]
    step = sum((precision[at] for at in actual), Fraction(0)) / n_true
    trapezoid = sum(((precision[max(at - 1, 0)] + precision[at]) / 2 for at in actual), Fraction(0)) / n_true
    assert average_precision(tp, n_predicted, n_true) == pytest.approx(float(step))
    assert trapezoid_area(tp, n_predicted, n_true) == pytest.approx(float(trapezoid))
    shares, recall = np.array([float(value) for value in precision]), tp / n_true
    ends = np.trapezoid(np.r_[1.0, shares, 0.0], np.r_[0.0, recall, 1.0])
    assert roerich_area(tp, n_predicted, n_true) == pytest.approx(ends)


@pytest.mark.parametrize("area", AREAS)
def test_thresholds_that_retrieve_nothing_are_dropped(area: Any) -> None:  # noqa: ANN401 - a function
    assert area(np.append(0, TP), np.append(0, N_PREDICTED), 5) == area(TP, N_PREDICTED, 5)


@pytest.mark.parametrize("area", AREAS)
def test_without_true_points_areas_are_undefined(area: Any) -> None:  # noqa: ANN401 - a function
    assert np.isnan(area(np.array([0, 0]), np.array([1, 2]), 0))


def test_without_predictions_only_the_end_points_are_left() -> None:
    nothing = np.empty(0, dtype=np.int64)
    actual = {area: area(nothing, nothing, 3) for area in AREAS}
    assert actual == {average_precision: 0, trapezoid_area: 0, roerich_area: 0.5}


def test_one_threshold() -> None:
    tp, n_predicted = np.array([2]), np.array([4])
    assert average_precision(tp, n_predicted, 4) == 0.25
    assert trapezoid_area(tp, n_predicted, 4) == 0.25
    assert roerich_area(tp, n_predicted, 4) == pytest.approx((1 + 0.5) / 2 * 0.5 + 0.5 / 2 * 0.5)


def test_precision_above_1_is_kept() -> None:
    assert average_precision(np.array([2]), np.array([1]), 2) == 2
