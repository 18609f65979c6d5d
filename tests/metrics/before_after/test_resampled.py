"""Resampled events of before_after against a loop that draws them, and against the closed form."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from before_after_counts import Setting, simulate, truth

from pipeline.metrics.before_after.estimates import Sides, Sums
from pipeline.metrics.before_after.intervals import INTERVAL_NAMES, intervals, resampled
from pipeline.metrics.uncertainty.clusters import JackknifeSpread
from pipeline.metrics.uncertainty.jackknife import fieller_interval, leave_one_out
from pipeline.metrics.uncertainty.replicates import Resampling

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

CONFIDENCE, RECALL, REFERENCE = 0.9, 0.9, 0
DRAWS = Resampling(199, seed=2)
LOGARITHMS: dict[str, Callable[[Sums], Floats]] = {
    "fpr": lambda sums: np.log(sums.fpr),
    "precision_uncorrected": lambda sums: np.log(sums.fpr / (sums.m_after / sums.n_after)),
    "precision": lambda sums: np.log1p(-sums.precision),
}
RATIOS: dict[str, Callable[[Sums], tuple[Floats, Floats]]] = {
    "recall": lambda sums: (sums.found, sums.tp_reference),
    "f1": lambda sums: (sums.found, (sums.m_after * sums.gap + sums.tp_reference) / 2),
    "recall_uncorrected": lambda sums: (sums.tp, sums.tp_reference),
    "f1_uncorrected": lambda sums: (sums.tp, (sums.m_after + sums.tp_reference) / 2),
}


def events(number: int, seed: int) -> Sides:
    """Events with 40 compared pairs before and after, on average, and true matches after; three thresholds."""
    rng = np.random.default_rng(seed)
    n_before, n_after = rng.integers(20, 60, (2, number))
    rate, true = rng.gamma(4, 0.02, number), rng.poisson(4, number)
    before, after = rng.binomial(n_before, np.minimum(rate, 0.5)), rng.binomial(n_after - 18, np.minimum(rate, 0.5))
    true = np.minimum(true, 18)
    kept = [(1.0, 1.0), (0.8, 0.9), (0.6, 0.6)]
    m_before = np.stack([np.floor(before * share).astype(np.int64) for share, _ in kept], axis=1)
    m_after = np.stack([np.floor(after * s).astype(np.int64) + np.floor(true * t).astype(np.int64) for s, t in kept], 1)
    return Sides(m_before, m_after, n_before, n_after)


def sums_of(sides: Sides, weights: Floats) -> Sums:
    """Totals of events that are drawn so many times."""
    return Sums.of(REFERENCE, RECALL, [weights @ np.asarray(column, dtype=np.float64) for column in sides.columns])


def influences(sides: Sides, weights: Floats, statistic: Callable[[Sums], Floats]) -> Floats:
    """How far one more of each event moves a statistic: by central differences, shape (G, T)."""
    step = 1e-4
    moved = [
        (statistic(sums_of(sides, weights + step * unit)) - statistic(sums_of(sides, weights - step * unit)))
        / (2 * step)
        for unit in np.eye(len(weights))
    ]
    return np.stack([np.asarray(values) for values in moved])


def error(sides: Sides, weights: Floats, statistic: Callable[[Sums], Floats]) -> Floats:
    """Infinitesimal jackknife of a resample (Efron & Tibshirani 1993, chapter 21), for as many clusters as drawn."""
    moved, number = influences(sides, weights, statistic), len(weights)
    mean = (weights[:, None] * moved).sum(axis=0) / number
    squares = (weights[:, None] * (moved - mean) ** 2).sum(axis=0)
    return np.asarray(np.sqrt(squares * number / (number - 1)))


def difference(ratio: Callable[[Sums], tuple[Floats, Floats]], sample: Sums) -> Callable[[Sums], Floats]:
    """The statistic N - r D with the ratio of the sample."""
    of_sample = ratio(sample)[0] / ratio(sample)[1]

    def statistic(sums: Sums) -> Floats:
        top, bottom = ratio(sums)
        return np.asarray(top - of_sample * bottom)

    return statistic


def looped(sides: Sides, statistic: Callable[[Sums], Floats]) -> tuple[Floats, Floats]:
    """Quantiles of the studentised statistic over resamples, one after the other."""
    value = statistic(sums_of(sides, np.ones(len(sides.n_before))))
    distances = np.stack(
        [
            (statistic(sums_of(sides, weights)) - value) / error(sides, weights, statistic)
            for block in DRAWS.weights(len(sides.n_before))
            for weights in block
        ]
    )
    ordered, reach = np.sort(distances, axis=0), np.sort(np.abs(distances), axis=0)[-20]
    return np.minimum(ordered[9], -reach), np.maximum(ordered[-10], reach)


@pytest.mark.wide
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_quantiles_are_those_of_a_loop_over_drawn_events() -> None:
    sides = events(15, 3)
    statistics = resampled(sides, reference=REFERENCE, reference_recall=RECALL, confidence=CONFIDENCE, resampling=DRAWS)
    sample = sums_of(sides, np.ones(15))
    expected = LOGARITHMS | {name: difference(of_ratio, sample) for name, of_ratio in RATIOS.items()}
    assert set(statistics) == set(expected)
    for name, statistic in expected.items():
        thresholds = slice(1, None) if name.startswith(("recall", "f1")) else slice(None)  # the reference is known
        low, high = looped(sides, statistic)
        assert statistics[name].low[thresholds] == pytest.approx(low[thresholds], rel=1e-4), name
        assert statistics[name].high[thresholds] == pytest.approx(high[thresholds], rel=1e-4), name


def test_without_a_reference_only_its_ratios_are_resampled() -> None:
    drawn = resampled(events(15, 3), reference=None, reference_recall=1.0, confidence=CONFIDENCE, resampling=DRAWS)
    assert set(drawn) == {"fpr", "precision_uncorrected"}


def test_fieller_limits_have_a_quantile_of_each_side() -> None:
    """The lower limit of a ratio is where N - r D is as high as the upper quantile, the upper one where it is low."""
    sides = events(40, 4)
    actual = intervals([sides], reference=REFERENCE, confidence=CONFIDENCE, resampling=DRAWS)["recall_uncorrected"]
    drawn = resampled(sides, reference=REFERENCE, reference_recall=1.0, confidence=CONFIDENCE, resampling=DRAWS)
    totals = Sums.of(REFERENCE, 1.0, [column.sum(axis=0) for column in sides.columns])
    without = Sums.of(REFERENCE, 1.0, [leave_one_out(column) for column in sides.columns])
    ratio = totals.tp / totals.tp_reference
    variances = JackknifeSpread((40,)).moments(without.tp, without.tp_reference, ratio)
    statistic = drawn["recall_uncorrected"]
    for limits, quantile, side in ((actual.lower, statistic.high, 0), (actual.upper, -statistic.low, 1)):
        expected = fieller_interval(totals.tp, totals.tp_reference, variances, quantile)[side]
        assert limits[1:] == pytest.approx(expected[1:])


@pytest.mark.wide
def test_with_many_events_the_limits_are_those_of_the_closed_form() -> None:
    sides = events(600, 5)
    closed, drawn = (
        intervals([sides], reference=REFERENCE, confidence=0.95, reference_recalls=(RECALL,), resampling=resampling)
        for resampling in (None, Resampling(4999, seed=1))
    )
    for name in INTERVAL_NAMES:
        width = closed[name].upper - closed[name].lower
        assert (np.abs(drawn[name].lower - closed[name].lower) <= 0.08 * width + 1e-12).all(), name
        assert (np.abs(drawn[name].upper - closed[name].upper) <= 0.08 * width + 1e-12).all(), name
        assert (drawn[name].reason == closed[name].reason).all()


def test_without_a_match_before_the_event_the_closed_form_stays() -> None:
    sides = events(20, 6)
    none = Sides(np.zeros_like(sides.m_before), sides.m_after, sides.n_before, sides.n_after)
    closed, drawn = (
        intervals([none], reference=REFERENCE, confidence=0.9, resampling=resampling) for resampling in (None, DRAWS)
    )
    for name in ("fpr", "precision", "precision_uncorrected"):
        assert np.array_equal(closed[name].lower, drawn[name].lower)
        assert np.array_equal(closed[name].upper, drawn[name].upper)


@pytest.mark.wide
@pytest.mark.no_cover
def test_the_limits_hold_the_truth_about_as_often_as_they_say() -> None:
    """Sixty events that differ, with bursts of false matches: on average over thresholds, 95% ± three errors."""
    setting = Setting(60, 1.0, bursty=True)
    true, batch, datasets = truth(setting), simulate(setting, 100, np.random.default_rng(7)), 100
    held = dict.fromkeys(INTERVAL_NAMES, 0.0)
    for index in range(datasets):
        far, near, false_after, true_after, n_far, n_near, n_after = (values[index] for values in vars(batch).values())
        sides = Sides(far + near, false_after + true_after, n_far + n_near, n_after)
        actual = intervals([sides], reference=0, confidence=0.95, resampling=Resampling(199, seed=1))
        for name, interval in actual.items():
            lower, upper = np.nan_to_num(interval.lower, nan=0.0), np.nan_to_num(interval.upper, nan=1.0)
            held[name] += float(np.mean((lower <= true[name] + 1e-9) & (true[name] <= upper + 1e-9))) / datasets
    assert min(held.values()) >= 0.91, held
