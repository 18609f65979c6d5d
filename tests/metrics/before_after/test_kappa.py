"""The prior of κ: its range against scipy, and its width against drifts of known size."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from pipeline.metrics.before_after.sensitivity import DOUBT, LogRatio, kappa_limits, kappa_variance, placebo_ratio


def test_the_range_is_that_of_a_gamma_distribution_with_mean_1() -> None:
    variance = np.array([DOUBT**2, 0.5, 3.0])
    lower, upper = kappa_limits(variance, 0.95)
    expected = stats.gamma(1 / variance, scale=variance)
    assert expected.mean() == pytest.approx(np.ones(3))
    assert lower == pytest.approx(expected.ppf(0.025))
    assert upper == pytest.approx(expected.ppf(0.975))
    assert [lower[0], upper[0]] == pytest.approx([0.38, 1.92], abs=0.005)  # as the module says


def test_only_drift_beyond_its_error_counts_and_the_larger_one_does() -> None:
    of_placebo = LogRatio(np.array([0.2, -0.5, np.nan, 0.0]), np.array([0.3, 0.3, np.nan, 0.1]))
    of_trend = LogRatio(np.array([np.nan, 0.5, 0.7, np.nan]), np.array([np.nan, 0.4, 0.1, np.nan]))
    assert kappa_variance(of_placebo) - DOUBT**2 == pytest.approx([0, 0.16, 0, 0])
    assert kappa_variance(of_placebo, of_trend) - DOUBT**2 == pytest.approx([0, 0.16, 0.48, 0])
    assert kappa_variance() == pytest.approx(DOUBT**2)


@pytest.mark.wide
@pytest.mark.parametrize("drift", [0.0, 0.4])
def test_random_drifts_between_far_and_near_are_measured(drift: float) -> None:
    """The mean of the excess over 400 data sets is the variance of the drift; what is cut off at 0 makes it larger."""
    rng, ones, excess = np.random.default_rng(3), np.ones(60, dtype=np.int64), []
    for _ in range(400):
        level = rng.gamma(2.0, 5.0, 60)
        near = np.exp(drift * rng.standard_normal())
        far, close = (rng.poisson(level * rate)[:, None] for rate in (2, near))
        ratio = placebo_ratio(far, close, 2000 * ones, 1000 * ones)
        excess.append(float(ratio.value[0] ** 2 - ratio.error[0] ** 2))
    error = float(np.std(excess)) / 20
    assert np.mean(excess) == pytest.approx(drift**2, abs=max(4 * error, 0.002))
