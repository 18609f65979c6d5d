from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from pipeline.metrics.planning import (
    Pilot,
    _kurtosis_of_shares,
    _kurtosis_of_values,
    cautious,
    inflation_limit,
    variance_degrees,
)
from pipeline.metrics.uncertainty.proportions import Confusion, intervals_of_clusters


def of_size(share: float, rows: int) -> Pilot:
    return Pilot(share, math.nan, math.nan, 0.95, "share", rows, size=rows)


@pytest.mark.parametrize(("share", "rho", "rows"), [(0.9, 0.2, 10), (0.5, 0.01, 20), (0.97, 0.5, 3), (0.3, 0.05, 7)])
def test_the_kurtosis_of_shares_is_that_of_scipy(share: float, rho: float, rows: int) -> None:
    shapes = share * (1 - rho) / rho, (1 - share) * (1 - rho) / rho
    expected = stats.betabinom.stats(rows, *shapes, moments="k")
    assert _kurtosis_of_shares(share, rho, rows) == pytest.approx(float(expected), rel=1e-6)
    assert _kurtosis_of_shares(share, rho, 1) == pytest.approx(float(stats.bernoulli.stats(share, moments="k")))


def test_the_kurtosis_of_values_is_that_of_scipy() -> None:
    assert _kurtosis_of_values(0.3, 0.04) == pytest.approx(float(stats.beta.stats(1.275, 2.975, moments="k")))


@pytest.mark.parametrize("degrees", [1.0, 4.0, 19.0, 500.0])
def test_the_limit_of_a_variance_is_that_of_chi_square(degrees: float) -> None:
    assert inflation_limit(degrees) == pytest.approx(degrees / stats.chi2.ppf(0.2, degrees))
    assert inflation_limit(degrees, 0.95) == pytest.approx(degrees / stats.chi2.ppf(0.05, degrees))


@pytest.mark.parametrize("share", [0.7, 0.9, 0.97])
def test_the_variance_of_rows_is_known_as_well_as_their_share(share: float) -> None:
    """Relative variance of p (1 - p) of a binomial share, by enumeration."""
    rows = 800
    hits = np.arange(rows + 1)
    probability = stats.binom.pmf(hits, rows, share)
    variances = hits / rows * (1 - hits / rows)
    mean = probability @ variances
    relative = probability @ (variances - mean) ** 2 / mean**2
    assert 2 / variance_degrees(of_size(share, rows)) == pytest.approx(relative, rel=0.05)


def test_near_one_half_the_variance_of_rows_is_known() -> None:
    pilot, inflation = cautious(of_size(0.5, 100))
    assert inflation == pytest.approx(1.0, abs=1e-3)
    assert pilot.value == 0.5


@pytest.mark.parametrize(("share", "limit"), [(1.0, 0.2 ** (1 / 50)), (0.0, 1 - 0.2 ** (1 / 50))])
def test_a_share_without_misses_takes_its_own_limit(share: float, limit: float) -> None:
    pilot, inflation = cautious(of_size(share, 50))
    assert pilot.value == pytest.approx(limit)
    assert inflation == 1.0
    assert pilot.binomial_size == pytest.approx(50)


def test_few_or_unequal_clusters_leave_more_doubt() -> None:
    def degrees(clusters: int, effective: float) -> float:
        pilot = Pilot(0.8, 0.72, 0.86, 0.95, "share", clusters, effective, rows=20 * clusters, rows_per_cluster=20)
        return variance_degrees(pilot)

    assert degrees(30, 30.0) < degrees(60, 60.0)
    assert degrees(60, 30.0) < degrees(30, 30.0)
    mean = Pilot(0.8, 0.72, 0.86, 0.95, "plain", 1000, rows=21)
    assert variance_degrees(mean) == pytest.approx(20)
    area = replace(mean, scale="logit")  # the width goes along with the area, by 1 - 2 × 0.8
    assert 2 / variance_degrees(area) == pytest.approx(0.1 + 4 * 0.6**2 * area.error_on_scale**2)


@pytest.mark.wide
def test_a_cautious_plan_is_wide_enough_for_about_four_in_five_pilots() -> None:
    """Pilots of 30 clusters of 20 rows, beside the plan of those who know the law that they follow."""
    generator = np.random.default_rng(11)
    clusters, rows, share, rho, pilots = 30, 20, 0.8, 0.1, 40
    shapes = share * (1 - rho) / rho, (1 - share) * (1 - rho) / rho
    hits = generator.binomial(rows, generator.beta(*shapes, (clusters, pilots)))
    none = np.zeros_like(hits)
    lower, upper = intervals_of_clusters(Confusion(hits, rows - hits, none, none), 0.95, names=["precision"])[
        "precision"
    ]
    size = clusters * rows / (1 + (rows - 1) * rho)
    typical = Pilot(share, math.nan, math.nan, 0.95, "share", clusters, clusters, size, has_groups=True)
    needed = typical.factor_for(0.05)
    assert needed is not None
    planned, safe = [], []
    for hit, low, high in zip((hits.mean(axis=0) / rows).tolist(), lower.tolist(), upper.tolist(), strict=True):
        pilot = Pilot(hit, low, high, 0.95, "share", clusters, clusters, rows=clusters * rows, rows_per_cluster=rows)
        on_the_safe_side, inflation = cautious(pilot)
        planned.append(pilot.factor_for(0.05) or 0.0)
        safe.append(on_the_safe_side.factor_for(0.05, inflation=inflation) or 0.0)
    assert np.median(planned) == pytest.approx(needed, rel=0.12)
    assert 0.65 <= (np.array(safe) >= needed).mean() <= 0.95
