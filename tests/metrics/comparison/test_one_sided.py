"""One-sided tests from values and intervals, beside exact binomial tests, Student's t and simulated data."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy import stats

from pipeline.metrics.comparison.pooled import (
    Estimates,
    confidence_for,
    p_values_above,
    p_values_below,
    p_values_of_change,
    p_values_of_drop,
    p_values_of_rise,
)
from pipeline.metrics.uncertainty.proportions import Confusion, intervals_of_rows

if TYPE_CHECKING:
    from pipeline.metrics.uncertainty.jackknife import Floats

INDEPENDENT = np.inf
N_DRAWN = 600


def shares(hits: list[int], sizes: list[int], confidence: float = 0.95) -> Estimates:
    """Shares of independent rows with the limits that stages publish."""
    positive, size = np.array(hits, dtype=np.float64), np.array(sizes, dtype=np.float64)
    none = np.zeros_like(size)
    counts = Confusion(positive, size - positive, none, none)
    limits = intervals_of_rows(counts, None, confidence, names=("precision",))["precision"]
    return Estimates(positive / size, *limits, np.full(len(size), INDEPENDENT), confidence)


def number(value: float, half: float, degrees: float = INDEPENDENT, confidence: float = 0.95) -> Estimates:
    """One number with symmetric limits."""
    middle = np.array([value])
    return estimates_of(middle, middle - half, middle + half, degrees, confidence)


def estimates_of(
    value: Floats, lower: Floats, upper: Floats, degrees: float = INDEPENDENT, confidence: float = 0.95
) -> Estimates:
    return Estimates(value, lower, upper, np.full(len(value), degrees), confidence)


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.999])
def test_a_value_at_a_limit_has_the_p_value_of_that_limit(confidence: float) -> None:
    estimates = estimates_of(
        np.array([-3.0, 120.0, 0.9]), np.array([-4.0, 90.0, -0.1]), np.array([-2.5, 170.0, 1.3]), 12.0, confidence
    )
    tail = pytest.approx((1 - confidence) / 2, rel=1e-6)
    assert p_values_below(estimates, estimates.upper).tolist() == [tail] * 3
    assert p_values_above(estimates, estimates.lower).tolist() == [tail] * 3


def test_a_share_at_a_published_limit_has_a_p_value_a_little_above() -> None:
    p_values = p_values_below(estimates := shares([80, 5, 900, 0], [100, 100, 1000, 30]), estimates.upper)
    assert ((p_values >= 0.025 - 1e-9) & (p_values < 0.04)).all()


@pytest.mark.parametrize(
    ("hits", "size", "limit"),
    [(80, 100, 0.9), (5, 100, 0.2), (900, 1000, 0.925), (19, 30, 0.85), (0, 50, 0.05), (60, 80, 0.9)],
)
def test_a_share_of_independent_rows_has_the_p_value_of_the_exact_binomial_test(
    hits: int, size: int, limit: float
) -> None:
    (p_value,) = p_values_below(shares([hits], [size]), limit)
    assert p_value == pytest.approx(stats.binom.cdf(hits, size, limit), rel=1e-3)


def test_above_mirrors_below() -> None:
    below = p_values_below(shares([80, 5, 30], [100, 100, 30]), 0.9)
    above = p_values_above(shares([20, 95, 0], [100, 100, 30]), 0.1)
    assert below == pytest.approx(above, rel=1e-9)


@pytest.mark.parametrize("degrees", [4.0, 20.0, INDEPENDENT])
def test_numbers_beyond_shares_are_tested_by_students_t(degrees: float) -> None:
    half = stats.t.ppf(0.975, degrees) * 0.5  # standard error 0.5
    assert p_values_below(number(-3.0, half, degrees), -1.0) == pytest.approx(stats.t.sf(4.0, degrees), rel=1e-4)
    assert p_values_below(number(-1.0, half, degrees), -3.0) == pytest.approx(stats.t.cdf(4.0, degrees), rel=1e-4)


def test_positive_numbers_are_moved_on_the_scale_of_logarithms() -> None:
    error = 0.1
    limits = [np.array([100 * math.exp(sign * stats.norm.ppf(0.975) * error)]) for sign in (-1, 1)]
    estimates = estimates_of(np.array([100.0]), limits[0], limits[1])
    assert p_values_below(estimates, 130.0) == pytest.approx(stats.norm.sf(math.log(1.3) / error), rel=1e-6)


def test_precision_below_0_is_moved_on_the_scale_of_what_it_lacks() -> None:
    lacking, error = 1.2, 0.2
    limits = [np.array([1 - lacking * math.exp(sign * stats.norm.ppf(0.975) * error)]) for sign in (1, -1)]
    estimates = estimates_of(np.array([1 - lacking]), limits[0], limits[1])
    assert p_values_below(estimates, 0.3) == pytest.approx(stats.norm.sf(math.log(1.2 / 0.7) / error), rel=1e-6)


def test_a_share_that_may_be_anything_is_no_evidence() -> None:
    estimates = estimates_of(np.array([0.7]), np.array([0.0]), np.array([1.0]))
    assert p_values_below(estimates, 0.9) == pytest.approx(0.5)
    assert p_values_above(estimates, 0.1) == pytest.approx(0.5)


def test_without_value_or_interval_there_is_no_p_value() -> None:
    nothing = math.nan
    estimates = Estimates(
        np.array([nothing, 0.5]), np.array([nothing, nothing]), np.array([nothing, nothing]), np.full(2, np.inf), 0.95
    )
    shared = shares([50, 50], [100, 100])
    for p_values in (p_values_below(estimates, 0.6), p_values_of_drop(shared, estimates, 0.0)):
        assert np.isnan(p_values).all()


def test_differences_of_plain_numbers_are_those_of_welch() -> None:
    errors, sizes = (0.3, 0.5), (8, 15)
    before, after = (
        number(value, stats.t.ppf(0.975, size - 1) * error, size - 1)
        for value, error, size in zip((-5.0, -6.5), errors, sizes, strict=True)
    )
    test = stats.ttest_ind_from_stats(
        -5.0,
        errors[0] * math.sqrt(sizes[0]),
        sizes[0],
        -6.5,
        errors[1] * math.sqrt(sizes[1]),
        sizes[1],
        equal_var=False,
    )
    assert p_values_of_drop(before, after, 0.0) == pytest.approx(test.pvalue / 2, rel=0.1)
    assert p_values_of_rise(before, after, 0.0) == pytest.approx(1 - test.pvalue / 2, rel=0.01)
    assert p_values_of_change(before, after, 0.0) == pytest.approx(2 * p_values_of_drop(before, after, 0.0))
    assert p_values_of_drop(before, after, 1.5) == pytest.approx(0.5)


def test_a_fall_within_the_allowance_is_none() -> None:
    before, after = shares([950], [1000]), shares([900], [1000])
    p_values = [float(p_values_of_drop(before, after, allowance)[0]) for allowance in (0.0, 0.02, 0.05, 0.1)]
    assert p_values == sorted(p_values)
    assert p_values[0] < 1e-4
    assert p_values[2] == pytest.approx(0.5, abs=1e-6)
    assert p_values[3] > 0.99


@pytest.mark.wide
@pytest.mark.parametrize(("size", "share"), [(60, 0.8), (400, 0.9), (1000, 0.5)])
def test_without_a_change_alarms_are_as_rare_as_they_should_be(size: int, share: float) -> None:
    rng = np.random.default_rng(20261122)
    drawn = rng.binomial(size, share, (2, N_DRAWN))
    before, after = (shares(list(hits), [size] * N_DRAWN) for hits in drawn)
    for level in (0.05, 0.01):
        error = math.sqrt(level * (1 - level) / N_DRAWN)
        assert (p_values_of_drop(before, after, 0.0) <= level).mean() < level + 3 * error
        assert (p_values_below(after, share) <= level).mean() < level + 3 * error


def test_the_confidence_of_a_night_keeps_the_alarms_of_a_year() -> None:
    assert confidence_for(1.0) == pytest.approx(1 - 1 / 365)
    assert (1 - confidence_for(2.0, 250.0)) * 250 == pytest.approx(2.0)
