"""Covering against its definition on sets of observations, as TCPDBench takes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from point_series import one_series

from pipeline.metrics.change_points.windows import Points, covering

if TYPE_CHECKING:
    from fractions import Fraction


def segments(change_points: list[int], n_obs: int) -> list[set[int]]:
    """Sets of observations; a change point begins a new one."""
    actual: list[set[int]] = [set()]
    for observation in range(n_obs):
        if observation in change_points and actual[-1]:
            actual.append(set())
        actual[-1].add(observation)
    return actual


def covering_of_sets(true: list[int], predicted: list[int], n_obs: int) -> Fraction:
    from fractions import Fraction

    others = segments(predicted, n_obs)
    best = [max(Fraction(len(own & other), len(own | other)) for other in others) for own in segments(true, n_obs)]
    sizes = [len(own) for own in segments(true, n_obs)]
    return sum((size * value for size, value in zip(sizes, best, strict=True)), Fraction(0)) / n_obs


def points(positions: list[list[int]]) -> Points:
    series = np.repeat(np.arange(len(positions)), [len(own) for own in positions])
    return Points(series, np.array([position for own in positions for position in sorted(own)], dtype=np.int64))


MARKS = st.lists(st.integers(-2, 22), max_size=8)


@given(st.lists(st.tuples(MARKS, MARKS, st.integers(0, 20)), max_size=4))
def test_it_is_the_covering_of_sets(series: list[tuple[list[int], list[int], int]]) -> None:
    n_obs = np.array([own[2] for own in series], dtype=np.int64)
    actual = covering(points([own[0] for own in series]), points([own[1] for own in series]), n_obs)
    assert len(actual) == len(series)
    for value, (true, predicted, size) in zip(actual, series, strict=True):
        if size:
            assert value == pytest.approx(float(covering_of_sets(true, predicted, size)), abs=1e-14)
        else:
            assert np.isnan(value)


def test_a_perfect_segmentation_and_none() -> None:
    truth, nothing = one_series([25, 50, 75]), one_series([])
    n_obs = np.array([100])
    assert covering(truth, truth, n_obs).tolist() == [1.0]
    assert covering(truth, nothing, n_obs).tolist() == [0.25]
    assert covering(nothing, nothing, n_obs).tolist() == [1.0]


def test_observations_are_counted_and_series_known() -> None:
    with pytest.raises(ValueError, match="int64"):
        covering(one_series([1], np.float64), one_series([1]), np.array([5]))
    with pytest.raises(ValueError, match="series 2 to 2"):
        covering(Points(np.array([2]), np.array([1])), one_series([1]), np.array([5, 5]))
