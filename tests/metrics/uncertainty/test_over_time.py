"""Clusters that follow each other in time: covariances of neighbours, their test, and how often limits hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from pipeline.metrics.uncertainty.clusters import spread_of_shifts
from pipeline.metrics.uncertainty.proportions import Confusion, are_days_alike, intervals_of_clusters
from pipeline.metrics.uncertainty.serial import (
    are_neighbours_alike,
    combined_p_value,
    over_time,
    p_values_of_neighbours,
)


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
    correlation, tails = fair[1] / total, []
    for most in (1, 5):
        products = [d[t] * sum(d[t - lag] for lag in range(1, most + 1) if t >= lag) for t in range(n)]
        expected = total * sum(n - lag for lag in range(1, most + 1)) / n**2
        tails.append(float(stats.norm.sf((sum(products) + expected) / sum(each**2 for each in products) ** 0.5)))
    tangents = [np.tan((0.5 - min(tail, 0.9)) * np.pi) for tail in tails]
    if 0.5 - np.arctan(np.mean(tangents)) / np.pi < 0.05:
        correlation = max(correlation, (fair[2] + fair[3] + fair[4]) / (fair[1] + fair[2] + fair[3]))
    correlation = min(max(correlation, 0.0), 0.97)
    bandwidth = max(min(1.1447 * (4 * correlation**2 / (1 - correlation**2) ** 2 * n) ** (1 / 3), n / 3), 1.0)
    weights = {lag: 1 - lag / bandwidth for lag in range(1, n) if lag < bandwidth}
    lasting = total + 2 * sum(weight * gamma[lag] for lag, weight in weights.items())
    raised = (n - 1) / (n - min(1 + 2 * sum(weights.values()), n / 2))
    return max(lasting * raised / total, 1.0), 1 + 2 * sum(weight**2 for weight in weights.values())


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
    assert not are_neighbours_alike(few)
    still = over_time(np.zeros((30, 2)))
    assert np.nan_to_num(still.factor, nan=1.0).tolist() == [1.0, 1.0]
    assert not are_neighbours_alike(np.zeros((30, 2)))


def test_one_p_value_of_several() -> None:
    assert combined_p_value(np.array([0.03, 0.03, 0.03])) == pytest.approx(0.03)
    assert combined_p_value(np.array([0.001, np.nan])) == pytest.approx(0.001)
    assert 0.001 < combined_p_value(np.array([0.001, 0.6])) < 0.003
    assert np.isnan(combined_p_value(np.array([np.nan, np.nan])))


def test_independent_clusters_are_marked_as_rarely_as_is_said_and_correlated_ones_mostly() -> None:
    rng, number = np.random.default_rng(2), 400
    marks = {rho: np.mean([are_neighbours_alike(levels(rng, 60, rho, 4)) for _ in range(number)]) for rho in (0.0, 0.5)}
    assert marks[0.0] <= 0.08
    assert marks[0.5] >= 0.95
    p_values = p_values_of_neighbours(levels(rng, 100, 0.0, 2_000))
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
            marks += are_days_alike(counts)
    assert held[False] <= 0.78 * number
    assert held[True] >= held[False] + 0.1 * number
    assert held[True] >= 0.83 * number
    assert marks >= 0.9 * number
