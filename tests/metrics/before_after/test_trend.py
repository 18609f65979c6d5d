"""The trend before the event: against a fitted Poisson model with levels, against scipy's t-test, and its size."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

from pipeline.metrics.before_after.assumption import MIN_REPLICATES_FOR_TREND, Trend, trend

if TYPE_CHECKING:
    from numpy.typing import NDArray

DAYS: NDArray[np.float64] = np.arange(-7.0, 0.0) + 0.5


def counts(
    seed: int, *, events: int, slope: float = 0.0, burst: int = 3
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Matches and pairs by event and day; events differ in level, matches come in bursts of `burst`."""
    rng = np.random.default_rng(seed)
    pairs = rng.poisson(100 * rng.lognormal(0, 0.4, (events, 1)) * rng.lognormal(0, 0.3, (events, len(DAYS))))
    mean = 0.05 * pairs * rng.gamma(1, 1, (events, 1)) * np.exp(slope * DAYS)
    return np.minimum(rng.poisson(mean / burst) * burst, pairs), pairs


def of(matches: NDArray[np.int64], pairs: NDArray[np.int64], days: NDArray[np.float64] = DAYS) -> Trend:
    hits = matches.sum(axis=1)[:, None].astype(float)
    return trend(hits, (matches @ days)[:, None], pairs, days, confidence=0.95)


def test_the_slope_is_that_of_a_poisson_model_with_a_level_for_every_event() -> None:
    matches, pairs = counts(1, events=40, slope=0.2)
    index = np.nonzero(matches.sum(axis=1))[0]

    def minus_log_likelihood(parameters: NDArray[np.float64]) -> float:
        mean = pairs[index] * np.exp(parameters[1:, None] + parameters[0] * DAYS)
        return float((mean - matches[index] * (np.log(np.maximum(mean, 1e-300)))).sum())

    start = np.concatenate([[0.0], np.log(matches[index].sum(axis=1) / pairs[index].sum(axis=1))])
    fitted = optimize.minimize(minus_log_likelihood, start, method="BFGS", options={"gtol": 1e-6})
    assert of(matches, pairs).slope[0] == pytest.approx(fitted.x[0], abs=1e-5)


def test_the_test_is_a_t_test_of_the_scores() -> None:
    matches, pairs = counts(2, events=30, slope=0.15)
    actual = of(matches, pairs)
    for slope, p_value in ((0.0, actual.p_value[0]), (actual.lower[0], 0.05), (actual.upper[0], 0.05)):
        weights = pairs * np.exp(slope * DAYS)
        expected = (weights @ DAYS) / weights.sum(axis=1)
        scores = matches @ DAYS - matches.sum(axis=1) * expected
        assert stats.ttest_1samp(scores[matches.sum(axis=1) > 0], 0).pvalue == pytest.approx(p_value, rel=1e-6)
    assert actual.reason[0] is None


@pytest.mark.wide
@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.floats(-0.4, 0.4))
def test_limits_hold_the_slope_and_agree_with_the_p_value(seed: int, slope: float) -> None:
    matches, pairs = counts(seed, events=25, slope=slope)
    actual = of(matches, pairs)
    lower, estimate, upper, p_value = (
        float(each[0]) for each in (actual.lower, actual.slope, actual.upper, actual.p_value)
    )
    lower, upper = (-np.inf if np.isnan(lower) else lower), (np.inf if np.isnan(upper) else upper)  # none on that side
    assert lower < estimate < upper
    assert (p_value < 0.05) == (not lower <= 0 <= upper)
    mirrored = of(matches[:, ::-1], pairs[:, ::-1])
    assert mirrored.slope[0] == pytest.approx(-estimate, abs=1e-9)
    assert mirrored.p_value[0] == pytest.approx(p_value)
    mixed = np.random.default_rng(seed).permutation(25)
    assert of(matches[mixed], pairs[mixed]).slope[0] == pytest.approx(estimate, abs=1e-9)


def test_levels_of_events_do_not_matter_even_if_they_hang_together_with_their_days() -> None:
    """Events with many matches have their articles late: the pooled rate rises, no event's own rate does."""
    rng = np.random.default_rng(3)
    late = np.repeat([[10, 10, 10, 90, 90, 90, 90]], 100, axis=0)
    pairs = np.concatenate([late, late[:, ::-1]])
    level = np.repeat([0.2, 0.02], 100)[:, None]
    matches = rng.binomial(pairs, level)
    pooled = matches.sum(axis=0) / pairs.sum(axis=0)
    assert pooled[-1] > 2 * pooled[0]
    assert of(matches, pairs).p_value[0] > 0.05


@pytest.mark.wide
@pytest.mark.parametrize(("events", "burst"), [(30, 4), (100, 1)])
def test_equal_rates_are_refused_in_one_of_twenty_data_sets(events: int, burst: int) -> None:
    p_values = np.array([of(*counts(seed, events=events, burst=burst)).p_value[0] for seed in range(400)])
    assert 0.025 <= (p_values < 0.05).mean() <= 0.075


def test_a_trend_is_found() -> None:
    p_values = np.array([of(*counts(seed, events=100, slope=0.2)).p_value[0] for seed in range(50)])
    assert (p_values < 0.05).mean() > 0.8


def test_what_cannot_be_tested_says_why() -> None:
    matches, pairs = counts(4, events=30)
    assert list(of(matches * 0, pairs).reason) == ["no_match"]
    assert list(of(matches * 0, pairs * 0).reason) == ["no_before"]
    assert list(of(matches[:, :1], pairs[:, :1], DAYS[:1]).reason) == ["one_day"]
    few = of(matches * (np.arange(30)[:, None] < MIN_REPLICATES_FOR_TREND - 1), pairs)
    assert list(few.reason) == ["few_replicates"]
    assert np.isnan([few.slope, few.lower, few.upper, few.p_value]).all()


def test_matches_on_the_last_day_only_have_no_finite_slope_but_a_p_value() -> None:
    _, pairs = counts(5, events=30)
    last = np.zeros_like(pairs)
    last[:, -1] = 1
    actual = of(last, pairs)
    assert list(actual.reason) == ["unbounded"]
    assert np.isnan(actual.slope[0])
    assert np.isnan([actual.lower[0], actual.upper[0]]).all()
    assert 2.0**-29 <= actual.p_value[0] < 1e-6
