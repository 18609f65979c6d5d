"""Two counts of the same replicates compared: squares by hand, mid-p values against scipy, and the size of a test."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pipeline.metrics.uncertainty.jackknife import (
    covariance,
    leave_one_out,
    mid_p_odds,
    mid_p_tail,
    paired_dispersion,
    paired_squares,
)


def test_squares_of_few_counts_weigh_both_sides_alike_and_are_centred() -> None:
    """A share of 2.5 n / (n + Σ (a + b)²), here 2.5 × 4 / (4 + 10), is of squares that weigh both alike.

    These are 2² + 1² - 2 × 2 × 1 of the replicate with both counts, and 1² of another, less 2² / 4 of the sum.
    """
    first, second = np.array([[2.0], [1.0], [0.0], [0.0]]), np.array([[1.0], [0.0], [0.0], [0.0]])
    residuals = second - first
    observed, _ = paired_squares(first, second, np.ones((4, 1)), np.ones((4, 1)), residuals)
    alike = (2**2 + 1**2 - 2 * 2 * 1 + 1 - 2**2 / 4) * 4 / 3
    few = 10 / 14
    expected = few * alike + (1 - few) * float(covariance(leave_one_out(residuals))[0])
    assert observed[0] == pytest.approx(expected / 4)


def test_a_replicate_on_one_side_adds_the_square_about_its_mean() -> None:
    """Two replicates with the first count alone, two with the second, 3 expected of each: 1 + 4 + 1 + 0, sum 3 - 2."""
    first, second = np.array([[4.0], [1.0], [0.0], [0.0]]), np.array([[0.0], [0.0], [2.0], [3.0]])
    expected, means = np.array([[0.0], [0.0], [np.inf], [np.inf]]), np.full((4, 1), 3.0)
    residuals = second - first + np.array([[3.0], [3.0], [-3.0], [-3.0]])
    observed, _ = paired_squares(first, second, expected, means, residuals)
    few = 25 / (10 + 30)
    alike, plain = (6 - 0) * 4 / 3, float(covariance(leave_one_out(residuals))[0])
    assert residuals.sum() == 0
    assert observed[0] == pytest.approx((few * alike + (1 - few) * plain) / 10)


def test_independent_counts_have_a_dispersion_of_one_however_few_and_on_whichever_side() -> None:
    rng = np.random.default_rng(3)
    observed = []
    for _ in range(1500):
        pairs = np.array([[8, 6]] * 10 + [[16, 0]] * 5 + [[0, 12]] * 5) / 20
        counts = rng.poisson(pairs)
        odds = pairs[:, 1].sum() / pairs[:, 0].sum()
        rate = counts.sum() / pairs.sum()
        residuals = counts[:, 1] - odds * counts[:, 0] - rate * (pairs[:, 1] - odds * pairs[:, 0])
        with np.errstate(divide="ignore"):
            expected = (pairs[:, 1] / pairs[:, 0])[:, None]
        far, near = counts.T[:, :, None].astype(float)
        means = rate * pairs.sum(axis=1)[:, None]
        observed.append(paired_squares(far, near, expected, means, residuals[:, None] / np.sqrt(odds))[0][0])
    assert np.mean(observed) == pytest.approx(1, abs=0.06)


def test_a_dispersion_below_one_stays_and_few_counts_lean_on_lower_thresholds() -> None:
    """Borrowed from the threshold with 30 counts: 1.2 - κ × 20 with κ = 0.5 / 100, of which two thirds count."""
    phi = paired_dispersion(np.array([1.5, 1.2, 0.9]), np.array([100.0, 30.0, 10.0]))
    assert phi == pytest.approx([1.5, 1.2, 0.9 / 3 + (1.2 - 0.5 / 100 * 20) * 2 / 3])
    assert paired_dispersion(np.array([0.8]), np.array([50.0])).tolist() == [0.8]
    assert paired_dispersion(np.array([0.1]), np.array([50.0])).tolist() == [0.5]


@pytest.mark.parametrize(
    ("hits", "misses", "share"), [(3, 7, 0.2), (0, 4, 0.1), (5, 0, 0.9), (40, 60, 0.5), (0, 0, 0.3)]
)
def test_mid_p_is_half_of_what_was_observed_and_all_that_is_farther_out(hits: int, misses: int, share: float) -> None:
    number = stats.binom(hits + misses, share)
    above = float(number.sf(hits) + number.pmf(hits) / 2)
    actual = mid_p_tail(np.array([float(hits)]), np.array([float(misses)]), share)
    assert actual[0] == pytest.approx(min(above, 1 - above), rel=1e-12)


counts = st.floats(0.01, 1e5) | st.just(0.0)


@given(counts, counts, st.floats(1e-9, 0.4))
def test_limits_are_where_the_tail_is_what_was_asked_for(hits: float, misses: float, level: float) -> None:
    sides = np.array([hits]), np.array([misses])
    lower, upper = mid_p_odds(*sides, level)
    assert lower[0] <= upper[0]
    smallest = np.array([1e-299])  # beyond it a limit is none
    assert (lower[0] == 0) == (hits == 0 or mid_p_tail(*sides, smallest)[0] > level)
    assert np.isinf(upper[0]) == (misses == 0 or mid_p_tail(sides[1], sides[0], smallest)[0] > level)
    if lower[0] > 1e-290:
        assert mid_p_tail(*sides, lower / (1 + lower)) == pytest.approx(level, rel=1e-4)
    if upper[0] < 1e290:
        assert mid_p_tail(sides[1], sides[0], 1 / (1 + upper)) == pytest.approx(level, rel=1e-4)


def test_limits_without_a_hit_or_a_miss_are_known_in_closed_form() -> None:
    """Half of (1 - p)^5 is the tail of no hit of five: the limit is 1 - (2 × .025)^(1 / 5)."""
    lower, upper = mid_p_odds(np.array([0.0, 5.0]), np.array([5.0, 0.0]), 0.025)
    edge = 0.05**0.2
    assert lower == pytest.approx([0, edge / (1 - edge)], rel=1e-9)
    assert upper == pytest.approx([(1 - edge) / edge, np.inf], rel=1e-9)


def test_a_tail_below_all_numbers_has_no_limits() -> None:
    """As of Student's t with one degree of freedom at 99.9%: the limits were those of the search, 1e-300 and 1e300."""
    lower, upper = mid_p_odds(np.array([1.0, 0.0]), np.array([1.0, 1.0]), 1e-310)
    assert lower.tolist() == [0, 0]
    assert upper[0] == np.inf


def test_a_limit_beside_one_is_finite() -> None:
    """As a probability it would be 1, whose odds are infinite."""
    _, upper = mid_p_odds(np.array([4.0]), np.array([0.05]), 1e-3)
    assert 1e16 < upper[0] < np.inf
