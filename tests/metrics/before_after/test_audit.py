"""Precision of a checked sample: against scipy's distributions by enumeration, and its coverage by simulation."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

from pipeline.metrics.before_after.assumption import predicted
from pipeline.metrics.before_after.estimates import (
    VAGUE_WEIGHT,
    Prediction,
    _Prior,
    _with_doubt,
    audited_precision,
    combined_precision,
)
from pipeline.metrics.before_after.sensitivity import kappa_variance, placebo_ratio

SURE = np.array([1e6])  # degrees of freedom with which t is normal


def one(value: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array([value], dtype=np.int64)


def prediction(count: int, before: float, after: float, phi: float = 1.0) -> Prediction:
    return Prediction(np.array([float(count)]), np.array([phi]), SURE, before, np.array([after]))


samples = st.integers(1, 80).flatmap(
    lambda m: st.integers(1, m).flatmap(lambda n: st.tuples(st.just(m), st.just(n), st.integers(0, n)))
)


@given(samples, st.sampled_from([0.5, 0.9, 0.95]))
@example((101, 100, 1), 0.95)
def test_limits_of_the_sample_are_quantiles_of_the_beta_binomial_around_the_estimate(
    sample: tuple[int, int, int], level: float
) -> None:
    m, n, k = sample
    actual = audited_precision(one(m), one(n), one(k), confidence=level)
    unsampled, tail = stats.betabinom(m - n, k + 0.5, n - k + 0.5), (1 - level) / 2
    lower, upper = (round(float(each[0]) * m) - k for each in (actual.lower, actual.upper))
    assert actual.estimate[0] == k / n
    assert actual.lower[0] <= actual.estimate[0] <= actual.upper[0]
    is_quantile = unsampled.cdf(lower - 1) < tail + 1e-9 < unsampled.cdf(lower) + 2e-9
    assert actual.lower[0] == 0 if k == 0 else is_quantile or lower + k == math.floor(Fraction(k * m, n))
    is_quantile = unsampled.cdf(upper - 1) < 1 - tail + 1e-9 < unsampled.cdf(upper) + 2e-9
    assert actual.upper[0] == 1 if k == n else is_quantile or upper + k == math.ceil(Fraction(k * m, n))


@settings(deadline=None)
@given(samples, st.integers(0, 60), st.floats(0.2, 3), st.sampled_from([0.0, 0.09, 0.4]))
def test_the_combination_is_bayes_theorem_over_all_numbers_of_right_ones(
    sample: tuple[int, int, int], count: int, odds: float, variance: float
) -> None:
    m, n, k = sample
    actual, p_value = combined_precision(
        one(m), one(n), one(k), prediction(count, 1.0, odds), confidence=0.95, kappa_variance=variance
    )
    right = np.arange(m + 1)
    certain = stats.nbinom(count + 0.5, 1 / (1 + odds)).pmf(m - right)
    # the gamma mean of the Poisson number times κ, by its first two moments
    mean, square = (count + 0.5) * odds, (1 + 1 / (count + 0.5)) * (1 + variance)
    size = 1 / (square - 1)
    from_before = stats.nbinom(size, size / (size + mean)).pmf(m - right)
    prior = (1 - VAGUE_WEIGHT) * from_before / from_before.sum() + VAGUE_WEIGHT * stats.betabinom(m, 0.5, 0.5).pmf(
        right
    )
    posterior = prior * stats.hypergeom(m, right, n).pmf(k)
    posterior /= posterior.sum()
    assert actual.estimate[0] == pytest.approx(posterior @ right / m, abs=1e-6)
    below, mean = posterior.cumsum(), posterior @ right
    lower = min((below <= 0.025 + 1e-9).sum(), math.floor(mean + 1e-6))
    assert actual.lower[0] == pytest.approx(lower / m, abs=1.01 / m)
    assert actual.upper[0] >= (below < 0.975 - 1e-9).sum() / m - 1e-9
    assert actual.lower[0] <= actual.estimate[0] <= actual.upper[0]
    numbers = np.arange(n + 1)
    mass = certain / certain.sum() @ stats.hypergeom(m, right[:, None], n).pmf(numbers)
    tails = mass[: k + 1].sum() - mass[k] / 2, mass[k:].sum() - mass[k] / 2
    assert p_value[0] == pytest.approx(min(2 * min(tails), 1), abs=0.03)


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("m", [1, 2, 3, 5, 8, 21])
def test_every_estimate_lies_between_its_limits_and_these_between_0_and_1(m: int) -> None:
    """Every sample of m matches, beside predictions from none to many, of which almost none or almost all are after."""
    cells = [(m, n, k) for n in range(1, m + 1) for k in range(n + 1)]
    matches, audited, right = (np.array(column, dtype=np.int64) for column in zip(*cells, strict=True))
    actual = [audited_precision(matches, audited, right, confidence=level) for level in (0.5, 0.95, 0.999)]
    for count, odds, phi in product((0, 1, 40), (1e-3, 1.0, 50.0), (1.0, 9.0)):
        counts, sure = np.full(len(cells), float(count)), np.full(len(cells), SURE[0])
        before = Prediction(counts, np.full(len(cells), phi), sure, 1.0, np.array([odds]))
        both, p_value = combined_precision(matches, audited, right, before, confidence=0.95)
        assert ((p_value >= 0) & (p_value <= 1)).all()
        actual.append(both)
    for audit in actual:
        inside = (
            (audit.lower >= 0) & (audit.lower <= audit.estimate) & (audit.estimate <= audit.upper) & (audit.upper <= 1)
        )
        assert [cell for cell, held in zip(cells, inside, strict=True) if not held] == []


def test_everything_checked_is_known() -> None:
    actual = audited_precision(one(5000), one(5000), one(4321), confidence=0.95)
    both, _ = combined_precision(one(5000), one(5000), one(4321), prediction(300, 1.0, 2.0), confidence=0.95)
    for audit in (actual, both):
        assert (
            audit.lower[0],
            audit.estimate[0],
            audit.upper[0],
        ) == pytest.approx((0.8642, 0.8642, 0.8642))


def test_nothing_checked_gives_nothing() -> None:
    both, p_value = combined_precision(one(50), one(0), one(0), prediction(3, 1.0, 1.0), confidence=0.95)
    assert np.isnan([both.estimate[0], both.lower[0], both.upper[0], p_value[0]]).all()
    assert np.isnan(audited_precision(one(50), one(0), one(0), confidence=0.95).estimate[0])


def test_no_wrong_one_anywhere_leaves_a_precision_of_one_possible() -> None:
    both, p_value = combined_precision(one(900), one(30), one(30), prediction(0, 2.0, 1.0), confidence=0.95)
    alone = audited_precision(one(900), one(30), one(30), confidence=0.95)
    assert both.upper[0] == alone.upper[0] == 1
    assert alone.lower[0] < both.lower[0] < 1
    assert p_value[0] > 0.5


def test_large_samples_of_many_matches_agree_with_the_normal_distribution() -> None:
    both, p_value = combined_precision(
        one(10**6), one(2000), one(1800), prediction(240_000, 2.4, 1.0, phi=50.0), confidence=0.95
    )
    assert p_value[0] > 0.9
    from_sample = 0.9 * 0.1 / 2000
    from_before = (100_000**2 / 240_000 + 100_000) * 50 / 1e12 * 0.99  # φ FP (1 + after / before) over M²
    width = 2 * 1.96 / np.sqrt(1 / from_sample + 1 / from_before)
    assert both.estimate[0] == pytest.approx(0.9, abs=1e-3)
    assert both.upper[0] - both.lower[0] == pytest.approx(width, rel=0.1)


def test_a_sample_that_contradicts_the_prediction_is_followed_and_told() -> None:
    both, p_value = combined_precision(one(2000), one(200), one(100), prediction(240, 2.4, 1.0), confidence=0.95)
    alone = audited_precision(one(2000), one(200), one(100), confidence=0.95)
    assert p_value[0] < 1e-3
    assert both.lower[0] == pytest.approx(alone.lower[0], abs=0.005)
    assert both.upper[0] == pytest.approx(alone.upper[0], abs=0.005)


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(("fpr", "audited"), [(0.0003, 30), (0.01, 30), (0.01, 200)])
def test_nineteen_of_twenty_intervals_hold_the_precision_of_the_data(fpr: float, audited: int) -> None:
    """100 events that differ, false positives in bursts of three; precisions of about 0.99 and 0.7."""
    rng, held, of_sample = np.random.default_rng(1), 0, 0
    ones = np.ones(100, dtype=np.int64)
    for _ in range(300):
        level = rng.gamma(1, 1, 100)
        far, near, false = (3 * rng.poisson(hours * fpr * level / 3) for hours in (96, 72, 72))
        after = false + rng.poisson(3 * rng.gamma(1, 1, 100))
        m, r = int(after.sum()), int((after - false).sum())
        k = int(rng.hypergeometric(r, m - r, audited))
        actual = predicted((far + near)[:, None], after[:, None], ones * 168, ones * 72, near[:, None], ones * 72)
        assert actual is not None
        both, _ = combined_precision(one(m), one(audited), one(k), actual, confidence=0.95)
        alone = audited_precision(one(m), one(audited), one(k), confidence=0.95)
        held += both.lower[0] - 1e-9 <= r / m <= both.upper[0] + 1e-9
        of_sample += alone.lower[0] - 1e-9 <= r / m <= alone.upper[0] + 1e-9
    assert 0.925 <= held / 300 <= 1
    assert 0.925 <= of_sample / 300 <= 1


def test_doubt_about_kappa_widens_the_prediction_as_a_product_of_gamma_numbers() -> None:
    """Without labels to speak of: quantiles of false matches, beside those drawn with κ."""
    rng = np.random.default_rng(5)
    means = rng.gamma(80.5, 1.0, 200_000) * 2 * rng.gamma(1 / 0.09, 0.09, 200_000)
    drawn = 2000 - rng.poisson(means)
    prior = _Prior(2000, 1.0, *(float(each[0]) for each in _with_doubt(np.array([80.5]), 2.0, np.array([0.09]))))
    points = np.arange(2001.0)
    below = np.exp(prior.log(points)).cumsum()
    assert below[-1] == pytest.approx(1, abs=1e-6)
    for tail in (0.025, 0.25, 0.5, 0.75, 0.975):
        assert np.searchsorted(below, tail) == pytest.approx(np.quantile(drawn, tail), abs=6)


@pytest.mark.wide
@pytest.mark.parametrize("kappa", [0.75, 1.0, 1.5])
def test_coverage_with_doubt_about_kappa(kappa: float) -> None:
    """100 events that differ, 50 checked matches, precision near 0.7, 300 data sets: Monte Carlo error .013."""
    rng, held = np.random.default_rng(2), np.zeros(2)
    ones = np.ones(100, dtype=np.int64)
    for _ in range(300):
        level = rng.gamma(1.0, 0.035, 100)
        far, near, false = (rng.poisson(pairs * level)[:, None] for pairs in (96, 72, 72 * kappa))
        after = false + rng.poisson(rng.gamma(1.0, 6.0, 100))[:, None]
        m, right = int(after.sum()), int((after - false).sum())
        sample = one(m), one(50), one(rng.hypergeometric(right, m - right, 50))
        before = predicted(far + near, after, 168_000 * ones, 72_000 * ones, near, 72_000 * ones)
        assert before is not None
        doubt = kappa_variance(placebo_ratio(far, near, 96_000 * ones, 72_000 * ones))
        for column, variance in enumerate((doubt, np.zeros(1))):
            both, _ = combined_precision(*sample, before, confidence=0.95, kappa_variance=variance)
            held[column] += both.lower[0] <= right / m <= both.upper[0]
    assert held[0] / 300 >= 0.92
    assert (held[1] / 300 >= 0.92) == (kappa == 1)
