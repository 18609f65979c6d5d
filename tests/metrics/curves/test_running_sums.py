"""Running sums by group: against exact rationals, for groups whose values are far apart."""

from __future__ import annotations

from fractions import Fraction
from itertools import accumulate, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.metrics.curves.influence import running_sums

VALUES = st.floats(1e-12, 1e12) | st.just(0.0) | st.integers(0, 10**9).map(float)


@given(st.lists(st.lists(VALUES, min_size=1, max_size=8), min_size=1, max_size=12))
def test_sums_of_a_group_are_exact_but_for_their_own_rounding(groups: list[list[float]]) -> None:
    values = np.array([value for group in groups for value in group])
    first = np.cumsum([0, *map(len, groups[:-1])])
    exact = [total for group in groups for total in accumulate(map(Fraction, group))]
    for actual, wanted in zip(running_sums(values, first).tolist(), exact, strict=True):
        assert abs(Fraction(actual) - wanted) <= wanted * Fraction(8, 2**53)


def test_whole_numbers_are_added_up_without_any_error() -> None:
    rng = np.random.default_rng(1)
    values = rng.integers(0, 2**20, 100_000).astype(np.float64)
    first = np.unique(np.append(0, rng.integers(0, len(values), 3000)))
    actual = running_sums(values, first)
    for start, stop in pairwise([*first.tolist(), len(values)]):
        assert np.array_equal(actual[start:stop], np.cumsum(values[start:stop]))


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_groups_that_are_very_far_apart(scale: float) -> None:
    actual = running_sums(np.array([1e6, 1e6, scale, scale, 0.0, 3.0]), np.array([0, 2, 4]))
    assert actual[[0, 1, 4, 5]].tolist() == [1e6, 2e6, 0.0, 3.0]
    assert actual[2] <= scale


def test_one_group_is_a_cumsum() -> None:
    values = np.random.default_rng(2).random(1000)
    assert np.array_equal(running_sums(values, np.array([0])), np.cumsum(values))
