"""Clusters that follow each other in time: covariances of neighbours, their test, and how often limits hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from pipeline.metrics.uncertainty.clusters import (
    _combined_p_value,
    _p_values_of_neighbours,
    may_neighbours_be_alike,
    over_time,
    spread_of_shifts,
)
from pipeline.metrics.uncertainty.proportions import Confusion, intervals_of_clusters, may_days_be_alike


def levels(rng: np.random.Generator, days: int, rho: float, columns: int = 1) -> Any:  # noqa: ANN401
    values = rng.normal(size=(days, columns))
    for day in range(1, days):
        values[day] = rho * values[day - 1] + np.sqrt(1 - rho**2) * values[day]
    return values


def by_hand(shifts: Any) -> tuple[float, float]:  # noqa: ANN401
    """Factor and divisor of one statistic, in plain loops."""
    n, d = len(shifts), [value - sum(shifts) / len(shifts) for value in shifts]
    total = sum(value * value for value in d)
    gamma = {lag: sum(d[t] * d[t + lag] for t in range(n - lag)) for lag in range(1, n)}
    fair = {lag: gamma[lag] + total * (n - lag) / n**2 for lag in range(1, 5)}
    observed, tails = fair[1] / total, []
    lasting = observed
    for most in (1, 5):
        products = [d[t] * sum(d[t - lag] for lag in range(1, most + 1) if t >= lag) for t in range(n)]
        expected = total * sum(n - lag for lag in range(1, most + 1)) / n**2
        tails.append(float(stats.norm.sf((sum(products) + expected) / sum(each**2 for each in products) ** 0.5)))
    tangents = [np.tan((0.5 - min(tail, 0.9)) * np.pi) for tail in tails]
    if 0.5 - np.arctan(np.mean(tangents)) / np.pi < 0.05:
        lasting = max(observed, (fair[2] + fair[3] + fair[4]) / (fair[1] + fair[2] + fair[3]))
    correlation = min(max(lasting, 0.0), 0.97)
    bandwidth = max(min(1.1447 * (4 * correlation**2 / (1 - correlation**2) ** 2 * n) ** (1 / 3), n / 3), 1.0)
    weights = {lag: 1 - lag / bandwidth for lag in range(1, n) if lag < bandwidth}
    likely = min(max(observed + n**-0.5, 0.0), 0.9)
    least = 1 + 2 * likely / (1 - min(max(lasting, likely), 0.9))
    summed = total + 2 * sum(weight * gamma[lag] for lag, weight in weights.items())
    raised = (n - 1) / (n - min(1 + 2 * sum(weights.values()), n / 2))
    return max(summed * raised / total, least), 1 + 2 * sum(weight**2 for weight in weights.values())


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_the_covariances_are_those_of_plain_loops(rho: float) -> None:
    shifts = levels(np.random.default_rng(int(10 * rho)), 40, rho, 3)
    nearby = over_time(shifts)
    for column in range(3):
        factor, divisor = by_hand(shifts[:, column].tolist())
        assert nearby.factor[column] == pytest.approx(factor)
        assert nearby.divisor[column] == pytest.approx(divisor)
    spread, plain = (spread_of_shifts(shifts, np.full(3, 40.0), in_time=in_time) for in_time in (True, False))
    assert spread.variance == pytest.approx(plain.variance * nearby.factor)
    assert (spread.degrees <= plain.degrees).all()


def test_few_clusters_and_those_that_do_not_vary_have_no_neighbours_that_are_alike() -> None:
    few = levels(np.random.default_rng(1), 8, 0.9)
    assert over_time(few).factor.tolist() == [1.0]
    spread = spread_of_shifts(np.zeros((60, 2)), np.full(2, 60.0), in_time=True)
    assert spread.variance.tolist() == [0.0, 0.0]
    assert not may_neighbours_be_alike(np.zeros((60, 2)))


@pytest.mark.parametrize("days", [2, 8, 30, 49])
def test_of_too_few_clusters_a_correlation_is_not_excluded(days: int) -> None:
    marks = [may_neighbours_be_alike(levels(np.random.default_rng(seed), days, 0.0)) for seed in range(5)]
    assert all(marks)
    assert not may_neighbours_be_alike(levels(np.random.default_rng(1), 1, 0.0))
    of_fifty = [may_neighbours_be_alike(levels(np.random.default_rng(seed), 50, 0.0)) for seed in range(5)]
    assert not all(of_fifty)


@pytest.mark.parametrize(
    ("days", "rho", "fewest"), [(30, 0.5, 0.94), (60, 0.3, 0.95), (60, 0.7, 0.95), (365, 0.5, 0.95)]
)
def test_limits_of_means_of_days_hold_whatever_their_correlation(days: int, rho: float, fewest: float) -> None:
    number = 1_000
    values = levels(np.random.default_rng(days), days, rho, number)
    shifts = (values - values.mean(axis=0)) / (days - 1)
    spread = spread_of_shifts(shifts, np.full(number, float(days)), in_time=True)
    is_held = np.abs(values.mean(axis=0)) <= stats.t.ppf(0.975, spread.degrees) * np.sqrt(spread.variance)
    assert is_held.mean() >= fewest  # without what is likely 0.88 to 0.93
    is_good = _p_values_of_neighbours(shifts) >= 0.05
    assert is_good.mean() < 0.05 or days < 50 or is_held[is_good].mean() >= 0.92


def test_one_p_value_of_several() -> None:
    assert _combined_p_value(np.array([0.03, 0.03, 0.03])) == pytest.approx(0.03)
    assert _combined_p_value(np.array([0.001, np.nan])) == pytest.approx(0.001)
    assert 0.001 < _combined_p_value(np.array([0.001, 0.6])) < 0.003
    assert np.isnan(_combined_p_value(np.array([np.nan, np.nan])))


def test_independent_clusters_are_marked_as_rarely_as_is_said_and_correlated_ones_mostly() -> None:
    rng, number = np.random.default_rng(2), 400
    marks = {
        rho: np.mean([may_neighbours_be_alike(levels(rng, 60, rho, 4)) for _ in range(number)]) for rho in (0.0, 0.5)
    }
    assert marks[0.0] <= 0.08
    assert marks[0.5] >= 0.95
    p_values = _p_values_of_neighbours(levels(rng, 100, 0.0, 2_000))
    assert 0.03 <= (p_values < 0.05).mean() <= 0.07


@pytest.mark.wide
def test_days_in_a_row_hold_the_false_positive_rate_better_in_time_than_without_order() -> None:
    rng, number, held, marks = np.random.default_rng(3), 200, {True: 0, False: 0}, 0
    truth = float(np.mean(stats.norm.sf(1.0 - 0.5 * rng.normal(size=400_000))))
    for _ in range(number):
        level = levels(rng, 60, 0.7)[:, 0]
        fp = rng.binomial(60, stats.norm.sf(1.0 - 0.5 * level))[:, None].astype(np.float64)
        for in_time in held:
            counts = Confusion(np.ones_like(fp), fp, np.ones_like(fp), 60 - fp, in_time=in_time)
            lower, upper = intervals_of_clusters(counts, 0.95, names=["fpr"])["fpr"]
            held[in_time] += bool(lower[0] <= truth <= upper[0])
            marks += may_days_be_alike(counts)
    assert held[False] <= 0.78 * number
    assert held[True] >= held[False] + 0.1 * number
    assert held[True] >= 0.83 * number
    assert marks >= 0.9 * number
