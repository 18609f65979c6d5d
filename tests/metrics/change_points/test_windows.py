"""Windows of true points: against all pairs, and exact where doubles are not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from point_series import Case, cases, one_series

from pipeline.metrics.change_points import windows as windows_module
from pipeline.metrics.change_points.windows import Margin, Points, best_of_ranges, find_windows, nearest_truth


@given(cases(), st.sampled_from([1, 5, 1 << 15]))
def test_windows_hold_the_true_points_within_the_margin(case: Case, at_a_time: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(windows_module, "_POINTS_AT_A_TIME", at_a_time)
        windows = find_windows(case.truth, case.predictions, case.margin)
    near = case.near[case.order][:, case.true_order]
    number = np.arange(near.shape[1])
    inside = (number >= windows.first[:, np.newaxis]) & (number < windows.stop[:, np.newaxis])
    assert (inside == near).all()
    assert (np.diff(windows.first) >= 0).all()
    assert (np.diff(windows.stop) >= 0).all()


@given(cases())
def test_the_nearest_true_point_of_a_window_and_the_earlier_of_two(case: Case) -> None:
    truth, predictions = case.truth, case.predictions
    windows = find_windows(truth, predictions, case.margin)
    nearest = nearest_truth(truth, predictions, windows)
    for prediction, actual in enumerate(nearest):
        window = range(windows.first[prediction], windows.stop[prediction])
        position = predictions.position[prediction]
        distances = [abs(position - truth.position[number]) for number in window]
        assert (actual >= 0) == bool(distances)
        if distances:
            assert abs(position - truth.position[actual]) == min(distances)
            earliest = truth.position[window[int(np.argmin(distances))]]
            assert truth.position[actual] == earliest


@given(st.lists(st.integers(0, 4), min_size=1, max_size=30), st.data(), st.sampled_from([1, 4, 1 << 15]))
def test_the_best_of_a_range_is_the_earliest_of_its_largest_keys(
    keys: list[int], data: st.DataObject, at_a_time: int
) -> None:
    edges = st.integers(0, len(keys))
    first = np.array(sorted(data.draw(st.lists(edges, min_size=8, max_size=8))))
    stop = np.array(sorted(data.draw(st.lists(edges, min_size=8, max_size=8))))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(windows_module, "_POINTS_AT_A_TIME", at_a_time)
        actual = best_of_ranges(np.array(keys), first, stop)
    wanted = [
        low + keys[low:high].index(max(keys[low:high])) if low < high else -1
        for low, high in zip(first, stop, strict=True)
    ]
    assert actual.tolist() == wanted


def matches(truth: int, prediction: int, margin: Margin) -> bool:
    windows = find_windows(one_series([truth]), one_series([prediction]), margin)
    return bool(windows.first[0] < windows.stop[0])


@pytest.mark.parametrize("start", [2**53, 1_700_000_000_000_000, -(2**62)])
def test_integers_beyond_doubles_are_exact(start: int) -> None:
    for distance in (999, 1000, 1001):
        assert matches(start, start + distance, Margin(0, 1000, closed=True)) == (distance <= 1000)
        assert matches(start, start + distance, Margin(0, 1000, closed=False)) == (distance < 1000)
        assert matches(start + distance, start, Margin(1000, 0, closed=True)) == (distance <= 1000)
        assert matches(start + distance, start, Margin(1000, 0, closed=False)) == (distance < 1000)


@pytest.mark.parametrize(
    ("side", "closed", "farthest"), [(2.5, True, 2), (2.5, False, 2), (3.0, True, 3), (3.0, False, 2), (0, True, 0)]
)
def test_a_margin_between_integers(side: float, closed: bool, farthest: int) -> None:  # noqa: FBT001 - a parameter
    margin = Margin(side, side, closed=closed)
    actual = [distance for distance in range(-5, 6) if matches(100, 100 + distance, margin)]
    assert actual == list(range(-farthest, farthest + 1))


@pytest.mark.parametrize("kind", [np.int64, np.float64])
def test_a_strict_margin_of_0_never_matches(kind: type) -> None:
    truth = one_series([5, 6], kind)
    windows = find_windows(truth, truth, Margin(0, 0, closed=False))
    assert (windows.first >= windows.stop).all()
    closed = find_windows(truth, truth, Margin(0, 0, closed=True))
    assert (closed.stop - closed.first).tolist() == [1, 1]


@pytest.mark.parametrize("kind", [np.int64, np.float64])
def test_an_endless_margin_takes_the_whole_series_only(kind: type) -> None:
    truth = Points(np.array([0, 0, 1]), np.array([1, 9, 5], dtype=kind))
    for closed in (True, False):
        windows = find_windows(truth, truth, Margin(math.inf, math.inf, closed=closed))
        assert (windows.stop - windows.first).tolist() == [2, 2, 1]


def test_a_float_difference_is_rounded_once_and_then_compared() -> None:
    truth, prediction = one_series([0], np.float64), one_series([0], np.float64)
    truth.position[0], prediction.position[0] = 0.1, 0.3
    assert (prediction.position - truth.position < 0.2).all()
    windows = find_windows(truth, prediction, Margin(0.2, 0.2, closed=False))
    assert windows.first[0] < windows.stop[0]


@pytest.mark.parametrize("sides", [(-1, 0), (0, -0.5), (float("nan"), 1)])
def test_a_margin_is_at_least_0(sides: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="must be at least 0"):
        Margin(*sides, closed=True)


@pytest.mark.parametrize(
    ("series", "position", "message"),
    [
        ([0, 0], [2, 1], "not sorted"),
        ([1, 0], [1, 2], "not sorted"),
        ([0, 0], [1.0, float("nan")], "not sorted"),
        ([0], [1, 2], "1.*2"),
    ],
)
def test_points_are_sorted(series: list[int], position: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Points(np.array(series), np.array(position))


def test_points_are_whole_or_double() -> None:
    with pytest.raises(ValueError, match="int32"):
        Points(np.array([0]), np.array([1], dtype="int32"))
    integers, double = one_series([1]), one_series([1], np.float64)
    with pytest.raises(ValueError, match="one type"):
        find_windows(integers, double, Margin(1, 1, closed=True))


def test_positions_whose_difference_overflows_are_refused() -> None:
    with pytest.raises(ValueError, match="2\\^63"):
        find_windows(one_series([-(2**62) - 1]), one_series([2**62]), Margin(1, 1, closed=True))
