"""The placebo test over two parents: against its formula written out, and on days that differ for all events alike."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from pipeline.metrics.before_after.assumption import NearAndFar, placebo, placebo_joint
from pipeline.metrics.uncertainty.jackknife import mid_p_odds, mid_p_tail, p_value, sign_flip_test, tail

EVENTS, DAYS, PER_CELL = 60, 24, 12  # every event meets every day; the last six days are near


def periods(matches: np.ndarray, axis: int | None) -> NearAndFar:
    """Matches of shape (events, days) by events (axis 1), by days (axis 0), or by cells (None)."""
    near = np.zeros((EVENTS, DAYS), dtype=bool)
    near[:, -6:] = True
    pairs = np.full((EVENTS, DAYS), PER_CELL)
    sides = [values * part for part in (~near, near) for values in (matches, pairs)]
    m_far, n_far, m_near, n_near = (side.ravel() if axis is None else side.sum(axis=axis) for side in sides)
    return NearAndFar(m_far[:, None], m_near[:, None], n_far, n_near)


def clusterings(seed: int) -> tuple[NearAndFar, tuple[NearAndFar, NearAndFar]]:
    """Days differ in how often everything matches, and no day is near by more than chance."""
    rng = np.random.default_rng(seed)
    rates = 0.1 * rng.lognormal(-0.125, 0.5, DAYS)
    matches = rng.binomial(PER_CELL, np.broadcast_to(rates, (EVENTS, DAYS)))
    return periods(matches, 1), (periods(matches, 0), periods(matches, None))


@pytest.mark.parametrize("seed", range(6))
def test_the_variance_is_that_of_events_and_days_less_that_of_cells(seed: int) -> None:
    """One threshold with many matches, so that its dispersion is its own: variance over mean."""
    events, crossed = clusterings(seed)
    (of_events, *_), (of_days, *_), (of_cells, *_) = (group.squares[0] for group in (events, *crossed))
    phi = of_events + of_days - of_cells
    assert phi > 3
    degrees = min(EVENTS, DAYS) - 1
    near, far = events.m_near.sum(axis=0) / phi, events.m_far.sum(axis=0) / phi
    share, level = np.array(events.odds / (1 + events.odds)), tail(0.95, degrees)
    lower, upper = mid_p_odds(near, far, level)
    tails = mid_p_tail(near, far, share)
    actual = placebo(events.m_far, events.m_near, events.n_far, events.n_near, confidence=0.95, crossed=crossed)
    assert actual.p_value == pytest.approx(p_value(tails, degrees), rel=1e-12)
    assert np.exp(actual.lower) * events.odds == pytest.approx(lower, rel=1e-12)
    assert np.exp(actual.upper) * events.odds == pytest.approx(upper, rel=1e-12)


def test_the_joint_test_flips_the_signs_of_both_parents() -> None:
    events, crossed = clusterings(7)
    sides = (events.m_far, events.m_near, events.n_far, events.n_near)
    single = placebo(*sides, confidence=0.5, crossed=crossed).p_value
    residuals = np.concatenate([events.residuals, crossed[0].residuals])
    expected = sign_flip_test(residuals, stats.norm.isf(single / 2))
    assert placebo_joint(*sides, crossed=crossed) == expected
    assert expected != sign_flip_test(events.residuals, stats.norm.isf(single / 2))


def test_days_that_differ_are_no_doubt_for_the_assumption() -> None:
    """With one parent most of these data sets contradict equal rates, with two few do; of the joint test likewise."""
    rejected = np.zeros(4)
    for seed in range(40):
        events, crossed = clusterings(100 + seed)
        sides = (events.m_far, events.m_near, events.n_far, events.n_near)
        rejected += [
            placebo(*sides, confidence=0.95).p_value[0] < 0.05,
            placebo_joint(*sides) < 0.05,
            placebo(*sides, confidence=0.95, crossed=crossed).p_value[0] < 0.05,
            placebo_joint(*sides, crossed=crossed) < 0.05,
        ]
    assert (rejected[:2] > 20).all()
    assert (rejected[2:] <= 6).all()


def test_a_threshold_takes_part_in_the_joint_test_if_both_parts_expect_ten_matches() -> None:
    """Of 50 matches 4.5 are expected near the event, which has a tenth of the pairs; of 150 there are 13.6."""
    ones = np.ones(20, dtype=np.int64)
    near = (np.arange(20) % 2)[:, None]
    of_50, of_150 = (
        placebo_joint(times * 2 * ones[:, None], times * near, 1000 * ones, 100 * ones) for times in (1, 3)
    )
    assert np.isnan(of_50)
    assert 0 <= of_150 <= 1
