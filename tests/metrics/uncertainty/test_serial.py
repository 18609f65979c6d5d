"""Serial correlation of days against a double sum over days, and how often it is found where there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.metrics.uncertainty.clusters import (
    _FEWEST_NEIGHBOURS,
    Cycle,
    InTime,
    JackknifeSpread,
    SerialCorrelation,
    serial_correlation,
)
from pipeline.metrics.uncertainty.jackknife import covariance, effective_degrees, leave_one_out

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

EVENTS, DAYS, SPAN = 40, 60, 10


def in_time(numbers: NDArray[np.int64], size: int = DAYS) -> InTime:
    return InTime(numbers, Cycle(size, SPAN))


def whole(days: int) -> InTime:
    return in_time(np.arange(days), days + 9)


def double_sum(first: Floats, second: Floats, weights: Floats) -> float:
    """Products of deviations of one number and of another on other days that are near, by their weights."""
    deviations = [values - values.mean() for values in (first, second)]
    total = 0.0
    for day, other in np.ndindex(len(first), len(first)):
        lag = abs(day - other)
        if 0 < lag <= len(weights):
            total += weights[lag - 1] * deviations[0][day] * deviations[1][other]
    return total


@pytest.mark.parametrize("seed", range(10))
def test_what_days_add_is_the_double_sum_over_days_nearby(seed: int) -> None:
    rng = np.random.default_rng(seed)
    first, second = rng.normal(size=(2, 12)).cumsum(axis=1)
    serial = SerialCorrelation(whole(12), bandwidth=2.5, share=0.75)
    assert serial.weights == pytest.approx([0.6, 0.2])
    over_time = double_sum(first, second, serial.weights)
    assert float(serial.over_time(first, second)) == pytest.approx(over_time, rel=1e-9)
    raised = 12 / (12 - 1 - 2 * 0.8) - 1
    expected = 0.75 * (over_time + raised * (float(covariance(first, second)) + over_time))
    assert float(serial.covariance(first, second)) == pytest.approx(expected, rel=1e-9)


@given(st.integers(0, 99), st.integers(0, 20))
def test_it_does_not_matter_which_day_is_the_first_or_in_which_order_they_come(seed: int, day: int) -> None:
    rng = np.random.default_rng(seed)
    values, order = rng.normal(size=12), rng.permutation(12)
    plain = SerialCorrelation(in_time(np.arange(12), 21), bandwidth=3.0)
    other = SerialCorrelation(in_time((np.arange(12)[order] + day) % 21, 21), bandwidth=3.0)
    expected = pytest.approx(plain.covariance(values, values), rel=1e-9, abs=1e-9)
    assert other.covariance(values[order], values[order]) == expected


def test_days_that_are_not_known_or_apart_add_nothing() -> None:
    values = np.random.default_rng(2).normal(size=10)
    unknown = in_time(np.append(np.arange(9), -1))
    assert unknown.neighbours == 8
    assert unknown.placed(values).tolist() == [*(values - values.mean())[:9], *[0.0] * (DAYS - 9)]
    weekly = in_time(np.arange(0, 60, 7))
    assert weekly.neighbours == 0
    assert float(SerialCorrelation(weekly, 3.0).over_time(values[:9], values[:9])) == 0


def drawn(rng: np.random.Generator, persistent: float, *, level: float = 1.0) -> tuple[Floats, float, float]:
    """A total without each day, its variance over events and that of independent cells.

    Cells are events × days, an event lies on ten days; days are an autoregression, and events differ by their level.
    """
    of_day = np.zeros(DAYS)
    for day, normal in enumerate(rng.normal(size=DAYS)):
        of_day[day] = persistent * of_day[day - 1] + np.sqrt(1 - persistent**2) * normal
    cells = of_day + level * rng.normal(size=(EVENTS, 1)) + 2 * rng.normal(size=(EVENTS, DAYS))
    starts = rng.integers(0, DAYS - SPAN, EVENTS)[:, None]
    inside = (np.arange(DAYS) >= starts) & (np.arange(DAYS) < starts + SPAN)
    cells = np.where(inside, cells, 0.0)
    of_events = float(covariance(leave_one_out(cells.sum(axis=1))))
    return leave_one_out(cells.sum(axis=0)), of_events, float((cells**2).sum())


def found(persistent: float, *, datasets: int = 400, level: float = 1.0) -> list[SerialCorrelation | None]:
    rng, days = np.random.default_rng(7), in_time(np.arange(DAYS))
    totals = (drawn(rng, persistent, level=level) for _ in range(datasets))
    return [serial_correlation(total, days, of_first=first, of_rows=rows) for total, first, rows in totals]


@pytest.mark.parametrize("level", [0.0, 1.0, 3.0])
def test_it_is_hardly_ever_found_where_days_are_independent_though_events_last_for_days(level: float) -> None:
    assert np.mean([correlation is not None for correlation in found(0.0, level=level)]) < 0.06


def test_the_level_of_events_alone_would_be_taken_for_days_that_go_together() -> None:
    rng, days = np.random.default_rng(7), in_time(np.arange(DAYS))
    totals = [drawn(rng, 0.0, level=3.0)[0] for _ in range(100)]
    alone = [serial_correlation(total, days, of_first=0.0, of_rows=0.0) for total in totals]
    assert np.mean([correlation is not None for correlation in alone]) > 0.5


def test_it_is_found_where_days_go_together_with_a_longer_reach_the_longer_they_do() -> None:
    short, long = found(0.6, datasets=150), found(0.9, datasets=150)
    assert np.mean([correlation is not None for correlation in short]) > 0.25
    assert np.mean([correlation is not None for correlation in long]) > 0.5
    reaches = [np.median([each.bandwidth for each in some if each is not None]) for some in (short, long)]
    assert 1 < reaches[0] < reaches[1] <= 20
    assert all(0 < each.share <= 1 for each in (*short, *long) if each is not None)


def test_few_neighbours_and_days_without_any_spread_tell_nothing() -> None:
    rng = np.random.default_rng(3)
    level = np.sin(np.arange(60) / 5) * 10 + rng.normal(size=60)

    def is_found(numbers: NDArray[np.int64]) -> bool:
        values = leave_one_out(level[numbers])
        return serial_correlation(values, in_time(numbers, 64), of_first=1.0, of_rows=1.0) is not None

    assert is_found(np.arange(30))
    assert not is_found(np.arange(_FEWEST_NEIGHBOURS))  # one neighbour fewer than days
    assert is_found(np.arange(_FEWEST_NEIGHBOURS + 1))
    assert is_found(np.arange(_FEWEST_NEIGHBOURS * 3))
    assert not is_found(np.arange(0, 60, 2))
    assert serial_correlation(np.ones(30), whole(30), of_first=1.0, of_rows=1.0) is None


def test_days_that_go_together_only_add_to_the_variance_and_take_degrees_of_freedom() -> None:
    rng = np.random.default_rng(5)
    sizes, days = (8, 12, 96), slice(8, 20)
    level = np.repeat(rng.normal(size=3) * 3, 4)

    def without_each(cells: Floats) -> Floats:
        sums = (cells.sum(axis=1), cells.sum(axis=0), cells.ravel())
        return np.concatenate([leave_one_out(values) for values in sums])[:, None]

    tops, bottoms = (without_each(rng.normal(size=(8, 12)) + factor * level) for factor in (1.0, 0.3))
    plain, spread = JackknifeSpread(sizes), JackknifeSpread(sizes, SerialCorrelation(whole(12), bandwidth=4.0))
    ratio = np.array([0.4])
    assert (spread.variance(tops) > 1.2 * plain.variance(tops)).all()
    over, under, shared = spread.moments(tops, bottoms, ratio)
    assert over - 2 * ratio * shared + ratio**2 * under == pytest.approx(spread.variance(tops - ratio * bottoms))
    opposite = without_each(rng.normal(size=(8, 12)) + 3 * (-1.0) ** np.arange(12))
    assert (spread.variance(opposite) >= plain.variance(opposite)).all()
    divisor = 1 + 2 * (0.75**2 + 0.5**2 + 0.25**2)
    assert spread.most_degrees == pytest.approx(max(11 / divisor, 4))
    of_days = np.maximum(effective_degrees(tops[days]) / divisor, 4)
    assert spread.degrees(tops) == pytest.approx(np.minimum(effective_degrees(tops[:8]), of_days))


@pytest.mark.parametrize("lasting", [0.0, 1.0, 30.0])
def test_the_share_of_levels_that_last_for_ten_days_is_taken_off(lasting: float) -> None:
    values = leave_one_out(np.sin(np.arange(DAYS) / 4) + np.random.default_rng(1).normal(size=DAYS) / 5)
    correlation = serial_correlation(values, in_time(np.arange(DAYS)), of_first=0.5 + lasting, of_rows=0.5)
    assert correlation is not None
    total = (
        double_sum(values, values, correlation.weights)
        + 2
        * sum(  # the first day follows the last
            weight * np.roll(values - values.mean(), -lag)[-lag:] @ (values - values.mean())[-lag:]
            for lag, weight in enumerate(correlation.weights, start=1)
        )
    )
    of_levels = sum(2 * weight * (SPAN - lag) for lag, weight in enumerate(correlation.weights[: SPAN - 1], start=1))
    expected = 1 - lasting / (SPAN * (SPAN - 1)) * of_levels / total
    assert correlation.share == pytest.approx(expected, rel=1e-9)


def test_nothing_is_left_where_levels_that_last_bring_it_all() -> None:
    values = leave_one_out(np.sin(np.arange(DAYS) / 4) + np.random.default_rng(1).normal(size=DAYS) / 5)
    assert serial_correlation(values, in_time(np.arange(DAYS)), of_first=1e4, of_rows=0.5) is None


@pytest.mark.parametrize("scale", [0.97, 1.03])
def test_the_covariance_of_neighbours_is_judged_by_what_a_mean_takes_away_and_levels_bring(scale: float) -> None:
    values = leave_one_out(np.sin(np.arange(DAYS) / 4) + np.random.default_rng(1).normal(size=DAYS))
    deviations = values - values.mean()
    products = deviations * np.roll(deviations, -1)
    above = products.sum() + (deviations**2).sum() / DAYS - 1.645 * np.sqrt((products**2).sum())
    assert above > 0
    correlation = serial_correlation(values, in_time(np.arange(DAYS)), of_first=above * SPAN * scale, of_rows=0.0)
    assert (correlation is not None) is (scale < 1)


@given(st.integers(0, 99), st.floats(-3, 3))
def test_moments_are_those_of_the_difference_whatever_the_ratio(seed: int, ratio: float) -> None:
    rng = np.random.default_rng(seed)
    tops, bottoms = rng.normal(size=(2, 8 + 12 + 30, 1))
    spread = JackknifeSpread((8, 12, 30), SerialCorrelation(whole(12), bandwidth=3.5))
    over, under, shared = spread.moments(tops, bottoms, np.array([ratio]))
    expected = pytest.approx(spread.variance(tops - ratio * bottoms), rel=1e-6, abs=1e-9)
    assert over - 2 * ratio * shared + ratio**2 * under == expected
