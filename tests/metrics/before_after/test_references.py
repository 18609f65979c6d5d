"""The doubt in the recall reference: the mixture over thresholds by hand, and what it does to the intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from before_after_counts import Setting, simulate
from scipy.stats import norm

from pipeline.metrics.before_after.estimates import Sides, Sums
from pipeline.metrics.before_after.intervals import INTERVAL_NAMES, Choice, doubt_in_choice, intervals
from pipeline.metrics.uncertainty.clusters import JackknifeSpread
from pipeline.metrics.uncertainty.jackknife import leave_one_out

if TYPE_CHECKING:
    from numpy.typing import NDArray

LOWEST = Choice("lowest", 0.05)


def events_of(m_before: list[list[int]], m_after: list[list[int]], n_before: int, n_after: int) -> Sides:
    """Events that all have the same numbers of compared pairs."""
    size = len(m_before)
    return Sides(np.array(m_before), np.array(m_after), np.full(size, n_before), np.full(size, n_after))


def doubt(sides: Sides, reference: int | None, choice: Choice, recall: float = 1.0) -> float:
    totals = Sums.of(reference, recall, [column.sum(axis=0) for column in sides.columns])
    without = Sums.of(reference, recall, [leave_one_out(column) for column in sides.columns])
    return doubt_in_choice(totals, without, JackknifeSpread((len(sides.n_before),)), choice)


def standard_error(of_events: NDArray[np.float64]) -> float:
    """Of a total of independent events."""
    size = len(of_events)
    return float(np.sqrt(size / (size - 1) * ((of_events - of_events.mean()) ** 2).sum()))


@pytest.mark.parametrize("recall", [1.0, 0.9])
@pytest.mark.parametrize("rule", ["lowest", "max"])
def test_the_doubt_is_the_variance_of_a_mixture_over_thresholds(rule: str, recall: float) -> None:
    """All events have 50 pairs on each side, so that the difference of matches is the event's true positives."""
    rng = np.random.default_rng(5)
    before = np.sort(rng.binomial(50, 0.2, (12, 3)))[:, ::-1]
    after = np.sort(rng.binomial(50, 0.26, (12, 3)))[:, ::-1]
    tp = (after - before).astype(float)
    minimum = 0.1
    assert (tp.sum(axis=0) > 0).all()
    excess = tp - minimum * after
    enough = [norm.cdf(excess[:, k].sum() / standard_error(excess[:, k])) for k in range(3)]
    if rule == "lowest":  # one normal variate decides for all: the first threshold that exceeds it is chosen
        reached = [max(enough[: k + 1]) for k in range(3)]
        weights = [reached[0], reached[1] - reached[0], reached[2] - reached[1]]
    else:
        more = [tp[:, k] - tp[:, 0] for k in range(3)]
        weights = [0.5 * enough[0]]  # as likely above itself as not
        weights += [enough[k] * norm.cdf(more[k].sum() / standard_error(more[k])) for k in (1, 2)]
    inverse = [(recall - before[:, k].sum() / 600) / tp[:, k].sum() for k in range(3)]
    expected = sum(w * (value - inverse[0]) ** 2 for w, value in zip(weights, inverse, strict=True)) / sum(weights)
    sides = Sides(before, after, np.full(12, 50), np.full(12, 50))
    choice = Choice("lowest" if rule == "lowest" else "max", minimum)
    assert doubt(sides, 0, choice, recall) == pytest.approx(expected, rel=1e-9)


def test_a_reference_without_rivals_is_not_in_doubt() -> None:
    """At 1 nothing is right in any event, at 2 nearly all is, and at 3 the same matches are left."""
    clear = events_of([[20, 1, 1]] * 3 + [[20, 2, 2]] * 3, [[20, 15, 15]] * 6, 100, 100)
    assert doubt(clear, 1, LOWEST) == pytest.approx(0, abs=1e-12)
    assert doubt(clear, None, LOWEST) == 0


def test_rivals_with_other_numbers_of_positives_raise_the_doubt() -> None:
    """The nearer the precision at 1 comes to the minimum, the more likely another sample has its reference there."""
    doubts = []
    for matches in (20, 22, 24):
        after = [[matches + shift, 15, 14] for shift in (-4, -2, 0, 0, 2, 4)]
        doubts.append(doubt(events_of([[22, 1, 1]] * 6, after, 100, 100), 1, LOWEST))
    assert doubts == sorted(doubts)
    assert doubts[-1] > 10 * doubts[0]


@pytest.fixture(scope="module")
def simulated() -> Sides:
    batch = simulate(Setting(80, 1.0, positives=60.0, fpr_reference=0.3), 1, np.random.default_rng(3))
    before, after = batch.far[0] + batch.near[0], batch.false_after[0] + batch.true_after[0]
    return Sides(before, after, batch.n_far[0] + batch.n_near[0], batch.n_after[0])


def test_the_intervals_hold_the_doubt_and_a_given_reference_has_none(simulated: Sides) -> None:
    without = intervals([simulated], reference=0, confidence=0.95)
    chosen = intervals([simulated], reference=0, confidence=0.95, choice=LOWEST)
    assert (without["recall"].lower[0], without["recall"].upper[0]) == (1, 1)
    assert chosen["recall"].lower[0] < 1 <= chosen["recall"].upper[0]
    for name in ("precision", "recall", "f1"):
        assert (chosen[name].lower[1:] <= without[name].lower[1:] + 1e-12).all()
        assert (chosen[name].upper[1:] >= without[name].upper[1:] - 1e-12).all()
    assert (chosen["recall"].upper - chosen["recall"].lower).sum() > (
        without["recall"].upper - without["recall"].lower
    ).sum()
    for name in INTERVAL_NAMES:  # what needs no positives, or is measured against the reference as it stands
        if name == "fpr" or name.endswith("_uncorrected"):
            np.testing.assert_array_equal(chosen[name].lower, without[name].lower)
            np.testing.assert_array_equal(chosen[name].upper, without[name].upper)


@pytest.mark.parametrize("choice", [None, LOWEST])
def test_a_range_of_recalls_has_the_union_of_its_intervals(simulated: Sides, choice: Choice | None) -> None:
    ends = [intervals([simulated], reference=0, confidence=0.9, reference_recalls=[r], choice=choice) for r in (0.8, 1)]
    both = intervals([simulated], reference=0, confidence=0.9, reference_recalls=[0.8, 1], choice=choice)
    for name in INTERVAL_NAMES:
        np.testing.assert_array_equal(both[name].lower, np.minimum(ends[0][name].lower, ends[1][name].lower))
        np.testing.assert_array_equal(both[name].upper, np.maximum(ends[0][name].upper, ends[1][name].upper))
    if choice is None:
        assert (both["recall"].lower[0], both["recall"].upper[0]) == (0.8, 1)
    for recall in (0.85, 0.9, 0.95):
        inner = intervals([simulated], reference=0, confidence=0.9, reference_recalls=[recall], choice=choice)
        for name in INTERVAL_NAMES:
            assert (inner[name].lower >= both[name].lower - 1e-12).all(), "the limits hold for all of the range"
            assert (inner[name].upper <= both[name].upper + 1e-12).all()


def test_where_one_end_of_the_range_has_no_interval_the_range_has_none() -> None:
    sides = events_of([[9, 1], [8, 1], [9, 0]], [[12, 9], [13, 8], [11, 9]], 10, 13)
    assert set(intervals([sides], reference=0, confidence=0.9)["recall"].reason) <= {None, "unbounded", "all_positive"}
    reasons = intervals([sides], reference=0, confidence=0.9, reference_recalls=[0.8, 1.0])["recall"].reason
    assert set(reasons) == {"unidentified"}, "26 of 30 pairs match before the event: more than 0.8 of all"
