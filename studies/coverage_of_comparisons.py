"""Error rates and coverage of compare where its assumptions are strained, on simulated units with known truth.

    python studies/coverage_of_comparisons.py [--datasets 1000] [--seed 1] [--only means]

Four parts, each at the level of 5 %:

- `means`: how often each test rejects equal means of differences that are normal, exponential, lognormal(1),
  lognormal(1) against normal, or lognormal(1.5).
- `posteriors`: how often two equally good systems are called different (probability below 2.5 % or above 97.5 %) where
  documents have effects, shared by both systems or each system's own; `all counts` is without the design effect.
- `pooled`: how often the interval of the difference of pooled ratios holds the truth where documents are of equal,
  lognormal or Pareto(1.3) size.
- `matchers`: how often the tests of before_after units reject equal precision, recall and F1.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from harness import Floats, Integers, Table, Tally, print_parts
from scipy.special import ndtr

from pipeline.metrics.comparison.paired import (
    EVENT_COUNTS,
    paired_ratios,
    paired_t,
    randomization_test,
    sign_test,
    wilcoxon_signed_rank,
)
from pipeline.metrics.comparison.pooled import effective_counts, pooled_ratios, standard_errors
from pipeline.metrics.comparison.significance import bootstrap_t
from pipeline.metrics.posteriors import BetaPosterior, probability_greater

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.random import Generator

LEVEL = 0.05
RESAMPLES = 399
MENTIONS = 8.0
MATCHERS = ((0.0, 20.0, 0.05), (1.0, 20.0, 0.05), (1.0, 20.0, 0.005), (1.0, 5.0, 0.02))


def skewed(rng: Generator, name: str, units: int) -> Floats:
    """Differences of mean 0."""
    if name == "normal":
        return rng.standard_normal(units)
    if name == "exponential":
        return rng.exponential(size=units) - 1
    spread = 1.5 if name == "lognormal(1.5)" else 1.0
    long_tail = rng.lognormal(0.0, spread, units) - np.exp(spread**2 / 2)
    return np.asarray(long_tail - 0.5 * rng.standard_normal(units) if name.endswith("normal") else long_tail)


TESTS: dict[str, Callable[[Floats], float]] = {
    "paired_t": lambda gap: paired_t(gap, 0 * gap).p_value,
    "bootstrap_t": lambda gap: bootstrap_t(gap, 0 * gap, resamples=RESAMPLES).p_value,
    "wilcoxon": lambda gap: wilcoxon_signed_rank(gap, 0 * gap).p_value,
    "sign": lambda gap: sign_test(gap, 0 * gap).p_value,
    "randomization": lambda gap: randomization_test(gap, 0 * gap, resamples=RESAMPLES).p_value,
}
DIFFERENCES = ("normal", "exponential", "lognormal(1)", "lognormal(1) - normal", "lognormal(1.5)")


def means(datasets: int, rng: Generator) -> Table:
    """Tests of equal means."""
    for name, units in product(DIFFERENCES, (30, 50, 100)):
        tally = Tally()
        for _ in range(datasets):
            gap = skewed(rng, name, units)
            tally.add({test: p_value(gap) <= LEVEL for test, p_value in TESTS.items()})
        yield name, str(units), *(float(share) for share in tally.means().values())


def documents(rng: Generator, units: int, sizes: str, effects: str) -> list[Integers]:
    """Counts (tp, fp, fn) of two equally good systems on the same documents."""
    size = {"equal": 1.0, "lognormal": rng.lognormal(-0.5, 1.0, units), "Pareto(1.3)": (1 + rng.pareto(1.3, units)) / 2}
    mentions = rng.poisson(MENTIONS * np.broadcast_to(np.asarray(size[sizes]), units))
    shared, clutter = rng.standard_normal(units), rng.gamma(4.0, 0.25, units)
    counts = []
    for _ in range(2):
        hard = shared if effects == "shared" else rng.standard_normal(units)
        hits = rng.binomial(mentions, ndtr((0.7 - np.sqrt(0.4) * hard) / np.sqrt(0.6)))
        false = rng.poisson(2.0 * mentions / MENTIONS * clutter)
        counts.append(np.column_stack([hits, false, mentions - hits]))
    return counts


def posteriors(datasets: int, rng: Generator) -> Table:
    """Posteriors of equally good systems."""
    kinds = (("equal", "shared"), ("equal", "own"), ("lognormal", "own"), ("Pareto(1.3)", "own"))
    for (sizes, effects), units in product(kinds, (10, 30, 100)):
        calls = np.zeros((2, 3))
        for _ in range(datasets):
            systems = documents(rng, units, sizes, effects)
            for ratio in range(3):
                shapes = np.array([_shapes(counts, ratio) for counts in systems])
                for row in range(2):
                    first, second = (BetaPosterior(*side[row]) for side in shapes)
                    calls[row, ratio] += abs(float(probability_greater(first, second)) - 0.5) >= (1 - LEVEL) / 2
        yield f"{sizes} sizes, effects {effects}", str(units), *(calls / datasets).ravel().tolist()


def _shapes(counts: Integers, ratio: int) -> list[tuple[float, float]]:
    tp, fp, fn = counts.T
    misses = (fp, fn, fp + fn)[ratio]
    worth = effective_counts(tp, misses, 1 - LEVEL)
    pairs = (worth.hits, worth.misses), (float(tp.sum()), float(misses.sum()))
    return [(hits + 0.5, missed + 0.5) for hits, missed in pairs]


def pooled(datasets: int, rng: Generator) -> Table:
    """Intervals of differences of pooled ratios; the truth of equally good systems is 0."""
    for sizes, units in product(("equal", "lognormal", "Pareto(1.3)"), (10, 20, 30, 100)):
        tally = Tally()
        for _ in range(datasets):
            first, second = documents(rng, units, sizes, "own")
            difference = np.abs(pooled_ratios(first.sum(axis=0)) - pooled_ratios(second.sum(axis=0)))
            errors = standard_errors(first, second)
            plain = type(errors)(errors.error, np.full(3, units - 1.0))
            tally.add({"held": np.concatenate([difference <= of.half_width(1 - LEVEL) for of in (errors, plain)])})
        yield f"{sizes} sizes", str(units), *tally.mean("held").tolist()


def matcher(rng: Generator, true: Integers, false: Floats, kept: float) -> pl.DataFrame:
    """Counts of events of a matcher that keeps 7 of 10 true matches and a share of the false ones."""
    before, after = rng.poisson(100 * false), rng.poisson(40 * false)
    zero = np.zeros(len(true), dtype=np.int64)
    columns = (
        zero + 1000,
        400 + true,
        rng.binomial(before, kept),
        rng.binomial(after, kept) + rng.binomial(true, 0.7),
        before,
        after + true,
    )
    return pl.DataFrame({"event_id": np.arange(len(true)), **dict(zip(EVENT_COUNTS, columns, strict=True))})


def events(rng: Generator, number: int, covering: float, variation: float) -> tuple[Integers, Floats]:
    """True matches of events, and the levels of their false ones."""
    true = rng.poisson(np.where(rng.random(number) < 0.4, rng.gamma(1.0, covering, number), 0.0))
    return true, rng.gamma(variation**-2, variation**2, number) if variation else np.ones(number)


def matchers(datasets: int, rng: Generator) -> Table:
    """Tests of equally good matchers on the same events."""
    for (variation, covering, kept), number in product(MATCHERS, (10, 30, 100)):
        rejected, tested = np.zeros((2, 3)), np.zeros(3)
        for _ in range(datasets):
            true, false = events(rng, number, covering, variation)
            ratios = paired_ratios(*(matcher(rng, true, false, kept) for _ in range(2))).values()
            p_values = np.array([[ratio.flip_p_value(RESAMPLES, 1), ratio.t_p_value()] for ratio in ratios]).T
            tested += ~np.isnan(p_values[0])
            rejected += p_values <= LEVEL
        name = f"CV {variation:g}, {covering:g} articles, {kept:g} of false kept"
        yield name, str(number), *(rejected / tested).ravel().tolist(), f"{tested[2] / datasets:.2f}"


RATIOS = ("precision", "recall", "F1")
PARTS = {
    "means": (means, ("equal means rejected", "units", *TESTS)),
    "posteriors": (posteriors, ("equal systems called different", "units", *RATIOS, *(f"all, {r}" for r in RATIOS))),
    "pooled": (pooled, ("differences held", "units", *RATIOS, *(f"t of units - 1, {r}" for r in RATIOS))),
    "matchers": (matchers, ("equal matchers rejected", "events", *RATIOS, *(f"t, {r}" for r in RATIOS), "tested")),
}


if __name__ == "__main__":
    print_parts(__doc__, 1000, PARTS)
