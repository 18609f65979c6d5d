"""Serial correlation of days against a double sum over cells, and how often it is found where there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.metrics.uncertainty.jackknife import covariance, effective_degrees, leave_one_out
from pipeline.metrics.uncertainty.serial import FEWEST_TIMES, InTime, SerialCorrelation, serial_correlation
from pipeline.metrics.uncertainty.spread import CELLS_OF_BOTH, JackknifeSpread, replicate_of_both

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

EVENTS, DAYS = 8, 12
CELLS = replicate_of_both(np.arange(EVENTS)[:, None], np.arange(DAYS)).ravel()  # each has its own


def clusterings(cells: Floats) -> tuple[Floats, Floats, Floats]:
    """A total of cells (events × days) without each event, each day and each cell in turn."""
    return tuple(leave_one_out(sums) for sums in (cells.sum(axis=1), cells.sum(axis=0), cells.ravel()))  # type: ignore[return-value]


def orders(cells: NDArray[np.int64] = CELLS, days: int = DAYS) -> tuple[InTime, InTime]:
    return InTime(np.arange(days), days + 40), InTime(cells, CELLS_OF_BOTH)


def double_sum(cells: Floats, weights: Floats) -> float:
    """Products of cells of different events on days up to so many apart, of both orders, by their weights."""
    total = 0.0
    for lag, weight in enumerate(weights, start=1):
        for day in range(cells.shape[1] - lag):
            for event, of_event in enumerate(cells):
                others = np.delete(cells[:, day + lag], event).sum()
                total += 2 * weight * of_event[day] * others
    return total


@pytest.mark.parametrize("seed", range(10))
def test_what_days_add_is_the_double_sum_over_cells_of_other_events_on_days_nearby(seed: int) -> None:
    """Over 16 numbers of days an event has but one cell a day, so that cells of lag l are those of the same event."""
    rng = np.random.default_rng(seed)
    cells = rng.normal(size=(EVENTS, DAYS)) + rng.normal(size=DAYS) + rng.normal(size=(EVENTS, 1))
    cells -= cells.mean()
    _, days, both = clusterings(cells)
    serial = SerialCorrelation(*orders(), bandwidth=2.5)
    assert serial.weights == pytest.approx([0.6, 0.2])
    raised = DAYS / (DAYS - 1 - 2 * 0.8) - 1
    ratio = DAYS / (DAYS - 1), EVENTS * DAYS / (EVENTS * DAYS - 1)  # `leave_one_out` raises totals
    sums = cells.sum(axis=0)
    lagged = sum(2 * w * (sums[lag:] * sums[:-lag]).sum() for lag, w in ((1, 0.6), (2, 0.2)))
    within = sum(2 * w * (cells[:, lag:] * cells[:, :-lag]).sum() for lag, w in ((1, 0.6), (2, 0.2)))
    assert lagged - within == pytest.approx(double_sum(cells, serial.weights), rel=1e-9, abs=1e-9)
    expected = ratio[0] ** 2 * lagged - ratio[1] ** 2 * within
    expected += raised * (float(covariance(days)) + ratio[0] ** 2 * lagged)
    assert float(serial.covariance((days, days), (both, both))) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@given(st.integers(0, 99), st.integers(0, 51), st.integers(0, CELLS_OF_BOTH - 1))
def test_it_does_not_matter_which_day_is_the_first_or_in_which_order_they_come(seed: int, day: int, cell: int) -> None:
    rng = np.random.default_rng(seed)
    _, days, both = clusterings(rng.normal(size=(EVENTS, DAYS)))
    shuffled, order = rng.permutation(DAYS), rng.permutation(EVENTS * DAYS)
    plain = SerialCorrelation(*orders(), bandwidth=3.0)
    other = SerialCorrelation(
        InTime((np.arange(DAYS)[shuffled] + day) % 52, 52),
        InTime((CELLS[order] + cell) % CELLS_OF_BOTH, CELLS_OF_BOTH),
        bandwidth=3.0,
    )
    expected = plain.covariance((days, days), (both, both))
    again = days[shuffled], both[order]
    assert other.covariance((again[0],) * 2, (again[1],) * 2) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def drawn(rng: np.random.Generator, persistent: float, days: int = 60, events: int = 40) -> tuple[Floats, Floats]:
    """A total without each day and without each cell, whose days are an autoregression and whose events differ."""
    level = np.zeros(days)
    for day, normal in enumerate(rng.normal(size=days)):
        level[day] = persistent * level[day - 1] + np.sqrt(1 - persistent**2) * normal
    cells = level + rng.normal(size=(events, 1)) + 2 * rng.normal(size=(events, days))
    # an event lies on ten days
    starts = rng.integers(0, days - 10, events)[:, None]
    inside = (np.arange(days) >= starts) & (np.arange(days) < starts + 10)
    cells = np.where(inside, cells, 0.0)
    sums = np.zeros(CELLS_OF_BOTH)
    np.add.at(sums, replicate_of_both(np.arange(events)[:, None], np.arange(days)).ravel(), cells.ravel())
    return leave_one_out(cells.sum(axis=0)), leave_one_out(sums)


def found(persistent: float, *, datasets: int = 400) -> list[SerialCorrelation | None]:
    rng = np.random.default_rng(7)
    in_time = InTime(np.arange(60), 60), InTime(np.arange(CELLS_OF_BOTH), CELLS_OF_BOTH)
    return [serial_correlation(*drawn(rng, persistent), in_time) for _ in range(datasets)]


def test_it_is_hardly_ever_found_where_days_are_independent_though_events_last_for_days() -> None:
    share = np.mean([correlation is not None for correlation in found(0.0)])
    assert share < 0.06


def test_it_is_found_where_days_go_together_with_a_longer_reach_the_longer_they_do() -> None:
    short, long = found(0.6, datasets=150), found(0.9, datasets=150)
    assert np.mean([correlation is not None for correlation in short]) > 0.25
    assert np.mean([correlation is not None for correlation in long]) > 0.5
    reaches = [np.median([each.bandwidth for each in some if each is not None]) for some in (short, long)]
    assert 1 < reaches[0] < reaches[1] <= 20


def test_few_days_and_days_without_any_spread_tell_nothing() -> None:
    rng = np.random.default_rng(3)
    level = np.sin(np.arange(30) / 5) * 10 + rng.normal(size=30)
    both = InTime(np.arange(CELLS_OF_BOTH), CELLS_OF_BOTH)
    noise = leave_one_out(rng.normal(size=CELLS_OF_BOTH) / 10)
    for days, is_found in ((30, True), (FEWEST_TIMES - 1, False)):
        correlation = serial_correlation(leave_one_out(level[:days]), noise, (InTime(np.arange(days), days), both))
        assert (correlation is not None) is is_found
    still = np.ones(30)
    assert serial_correlation(still, np.ones(CELLS_OF_BOTH), (InTime(np.arange(30), 30), both)) is None


def test_days_that_go_together_only_add_to_the_variance_and_take_degrees_of_freedom() -> None:
    rng = np.random.default_rng(5)
    level = np.repeat(rng.normal(size=DAYS // 4) * 3, 4)
    top, bottom = (rng.normal(size=(EVENTS, DAYS)) + factor * level for factor in (1.0, 0.3))
    tops, bottoms = (np.concatenate(clusterings(cells))[:, None] for cells in (top, bottom))
    sizes = (EVENTS, DAYS, EVENTS * DAYS)
    plain = JackknifeSpread(sizes)
    spread = JackknifeSpread(sizes, SerialCorrelation(*orders(), bandwidth=4.0))
    ratio = np.array([0.4])
    assert (spread.variance(tops) > 1.2 * plain.variance(tops)).all()
    over, under, shared = spread.moments(tops, bottoms, ratio)
    assert over - 2 * ratio * shared + ratio**2 * under == pytest.approx(spread.variance(tops - ratio * bottoms))
    opposite = np.concatenate(clusterings(rng.normal(size=(EVENTS, DAYS)) + 3 * (-1.0) ** np.arange(DAYS)))[:, None]
    assert (spread.variance(opposite) >= plain.variance(opposite)).all()
    assert spread.most_degrees == pytest.approx(11 / (1 + 2 * (0.75**2 + 0.5**2 + 0.25**2)))
    of_days = effective_degrees(tops[EVENTS : EVENTS + DAYS]) / (1 + 2 * (0.75**2 + 0.5**2 + 0.25**2))
    assert spread.degrees(tops) == pytest.approx(np.minimum(effective_degrees(tops[:EVENTS]), np.maximum(of_days, 4)))
