from __future__ import annotations

import math

import pytest

from pipeline.metrics.planning import intracluster_correlation, rows_for_variance, variance_with_more_rows


def variance(clusters: int, rows: float, rho: float) -> float:
    """Of a mean over clusters of so many rows (Kish 1965)."""
    return (1 + (rows - 1) * rho) / (clusters * rows)


@pytest.mark.parametrize("rho", [0.0, 0.05, 0.4, 1.0])
def test_more_rows_in_the_same_clusters(rho: float) -> None:
    effect = 1 + (12 - 1) * rho
    assert intracluster_correlation(effect, 12) == pytest.approx(rho)
    for times in (1, 2, 7.5, 1e9):
        expected = variance(30, 12 * times, rho) / variance(30, 12, rho)
        assert variance_with_more_rows(times, rho, 12) == pytest.approx(expected)
    assert variance_with_more_rows(math.inf, rho, 12) == pytest.approx(12 * rho / effect)


def test_rows_that_are_needed_give_the_variance_that_is_wanted() -> None:
    times = rows_for_variance(0.7, 0.05, 12)
    assert variance_with_more_rows(times, 0.05, 12) == pytest.approx(0.7)
    assert rows_for_variance(0.3, 0.05, 12) == math.inf
    assert rows_for_variance(0.25, 0.0, 12) == pytest.approx(4)
    assert rows_for_variance(0.25, -0.1, 12) == pytest.approx(4)


def test_single_rows_have_no_correlation() -> None:
    assert math.isnan(intracluster_correlation(1.3, 1.0))
    assert intracluster_correlation(40.0, 12.0) == 1.0
    assert intracluster_correlation(0.8, 11.0) == pytest.approx(-0.02)
