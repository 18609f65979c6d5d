"""Where counts are few, variances are borrowed from lower thresholds and limits lie between two known ones."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from pipeline.metrics.uncertainty.jackknife import dispersion, fieller_interval, gamma_interval


@pytest.mark.parametrize(("enough", "weight"), [(30.0, 10 / 30), (29.0, 10 / 30)])
def test_the_highest_threshold_with_thirty_counts_is_the_one_that_is_borrowed_from(
    enough: float, weight: float
) -> None:
    observed, count = np.array([3.0, 4.0, 1.5]), np.array([100.0, enough, 10.0])
    phi, _ = dispersion(observed, np.full(3, 9.0), count)
    kappa = 2.0 / 100
    source = 1 if enough >= 30 else 0
    borrowed = observed[source] - kappa * (count[source] - 10)
    assert phi[2] == pytest.approx(weight * 1.5 + (1 - weight) * max(1.5, borrowed))


def test_what_is_borrowed_has_the_degrees_of_where_it_comes_from_if_those_are_more() -> None:
    observed, count = np.array([3.0, 3.0, 3.0]), np.array([100.0, 10.0, 5.0])
    phi, degrees = dispersion(observed, np.array([12.0, 5.0, 20.0]), count)
    assert degrees == pytest.approx(np.array([12.0, 12.0, 20.0]) * (phi / (phi - 1)) ** 2)


def test_limits_of_four_counts_lie_two_fifths_of_the_way_from_exact_to_mid_ones() -> None:
    lower, upper = gamma_interval(np.array([4.0]), np.array([1.0]), 0.025)
    assert lower[0] == pytest.approx(stats.gamma.ppf(0.025, 4.2))
    quantile = stats.gamma.isf(0.025, 4.8)
    on_log_scale = 4 * np.exp(stats.norm.isf(0.025) / 2)
    assert upper[0] == pytest.approx(quantile + 0.4 * max(on_log_scale - quantile, 0.0))


def test_a_denominator_on_the_edge_of_significance_bounds_a_ratio_from_one_side() -> None:
    """(1 - 2 r)² ≤ 4 r² from r = 1/4 on."""
    one, two, nothing = np.array([1.0]), np.array([2.0]), np.array([0.0])
    lower, upper = fieller_interval(one, two, (nothing, one, nothing), 2.0)
    assert (lower[0], upper[0]) == (0.25, 1.0)
