"""Measured: whether tests on samples of the size that `thresher plan` names have the wanted power.

    python studies/sample_sizes_of_tests.py [--pilots 1000] [--seed 1] [--only NAME]…

Pilots are drawn from a law that is known, and each gives a plan for a test with a power of 0.8. A sample of the planned
size is drawn, and tested: by Student's t of the differences within units, or, of two runs, as gates test them.

`times` is the median of what is needed over the pilot; `power` the share of samples of the planned size in which the
test shows what it should, to be .8 for the plan that believes its pilot; `cautious` the same of the cautious plan, and
`enough` the share of cautious plans whose true power is at least .8, which should be about .8.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from sample_sizes import LEVEL, Draw, Means, Shares
from scipy import stats

from pipeline.metrics.comparison.pooled import Estimates, p_values_of_change
from pipeline.metrics.planning.pilot import (
    cautious,
    factor_for_difference,
    inflation_limit,
    other_run,
    variance_degrees,
)
from pipeline.metrics.planning.power import Claim, Question, power_of, units_for

if TYPE_CHECKING:
    from numpy.typing import NDArray

Floats: TypeAlias = "NDArray[np.float64]"

POWER = 0.8


@dataclass(frozen=True)
class Pairs:
    """Differences of two systems within units: normal, or `skewed` as exponential values are."""

    claim: Claim
    units: int
    skewed: bool = False

    def values(self, shift: float, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
        """Differences with this mean and the standard deviation 1."""
        noise = rng.exponential(1.0, shape) - 1 if self.skewed else rng.standard_normal(shape)
        return np.asarray(noise + shift)

    def question(self) -> Question:
        """Half a standard deviation is to be found, or 0.4 of one to be ruled out."""
        return Question(self.claim, 0.3 if self.claim == "different" else 0.0, 0.4, POWER, 1 - LEVEL)

    def shows(self, sample: Floats, question: Question) -> bool:
        """Whether the test shows the claim in a sample."""
        number = len(sample)
        error = sample.std(ddof=1) / math.sqrt(number)
        if self.claim == "different":
            return bool(abs(sample.mean()) > stats.t.ppf(0.5 + LEVEL / 2, number - 1) * error)
        half = stats.t.ppf(LEVEL, number - 1) * error
        below = sample.mean() - half > -question.margin
        return bool(below if self.claim == "not_worse" else below and sample.mean() + half < question.margin)


PAIRS = {
    "30 units, normal, a difference of 0.3": Pairs("different", 30),
    "60 units, skewed, a difference of 0.3": Pairs("different", 60, skewed=True),
    "30 units, normal, not worse by 0.4": Pairs("not_worse", 30),
    "30 units, normal, equivalent within 0.4": Pairs("equivalent", 30),
}


def measure_pairs(pairs: Pairs, pilots: int, rng: np.random.Generator) -> tuple[float, ...]:
    """Median factor, power of both plans, and how often the cautious one is enough."""
    question, shown, factors, enough = pairs.question(), np.zeros(2), [], 0
    for _ in range(pilots):
        pilot = pairs.values(question.difference, (pairs.units,), rng)
        number, skewness = len(pilot), float(stats.skew(pilot))
        degrees = 2 / (2 / (number - 1) + 1.5 * skewness**2 / number)
        deviation = float(pilot.std(ddof=1))
        safe_deviation = deviation * math.sqrt(inflation_limit(degrees))
        plans = [units_for(question, deviation, degrees) or 2, units_for(question, safe_deviation) or 2]
        shown += [pairs.shows(pairs.values(question.difference, (units,), rng), question) for units in plans]
        factors.append(plans[0] / number)
        enough += power_of(question, 1 / math.sqrt(plans[1]), plans[1] - 1.0) >= POWER
    return float(np.median(factors)), *(shown / pilots).tolist(), enough / pilots


TWO_RUNS: dict[str, tuple[int, Draw, Draw, float]] = {
    "share .80 of 300 rows, 0.05 apart": (300, Shares(0.8), Shares(0.75), 0.05),
    "share .80 of 40 clusters of 20, 0.08 apart": (40, Shares(0.8, 20, 0.1), Shares(0.72, 20, 0.1), 0.08),
    "mean .30 of 50 values, 0.08 apart": (50, Means(0.3, 3.0), Means(0.38, 3.0), 0.08),
}


def measure_two_runs(
    units: int, draws: tuple[Draw, Draw], difference: float, pilots: int, rng: np.random.Generator
) -> tuple[float, ...]:
    """Median factor, and power of both plans."""
    question, shown, factors = Question("different", difference, math.nan, POWER, 1 - LEVEL), np.zeros(2), []
    for _ in range(pilots):
        pilot = draws[0](units, rng)
        other = None if pilot is None else other_run(pilot, difference)
        if pilot is None or other is None:
            continue
        safe_side, inflation = cautious(pilot)
        plans = (
            factor_for_difference(pilot, other, question, degrees=variance_degrees(pilot)) or 1.0,
            factor_for_difference(safe_side, other, question, inflation=inflation) or 1.0,
        )
        shown += [_is_told(math.ceil(units * factor), draws, rng) for factor in plans]
        factors.append(plans[0])
    return float(np.median(factors)), *(shown / len(factors)).tolist(), math.nan


def _is_told(units: int, draws: tuple[Draw, Draw], rng: np.random.Generator) -> bool:
    """Whether two runs of so many units are told apart, as gates do it."""
    runs = [draw(units, rng) for draw in draws]
    estimates = []
    for run in filter(None, runs):
        value, lower, upper, degrees = (
            np.array([number]) for number in (run.value, run.lower, run.upper, run.degrees())
        )
        estimates.append(Estimates(value, lower, upper, degrees, LEVEL))
    return len(estimates) > 1 and bool(p_values_of_change(estimates[0], estimates[1], 0.0)[0] < 1 - LEVEL)


def main() -> None:
    """Parse the arguments and print everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pilots", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", action="append", default=[], help="designs whose name has this in it")
    options = parser.parse_args()

    def is_wanted(name: str) -> bool:
        return not options.only or any(word in name for word in options.only)

    print(f"{'test with a power of .8':<48}{'times':>7}{'power':>8}{'cautious':>9}{'enough':>9}")
    for name, pairs in filter(lambda item: is_wanted(item[0]), PAIRS.items()):
        numbers = measure_pairs(pairs, options.pilots, np.random.default_rng(options.seed))
        print(f"{name:<48}{numbers[0]:7.2f}{numbers[1]:8.3f}{numbers[2]:9.3f}{numbers[3]:9.3f}", flush=True)
    for name, (units, first, second, apart) in filter(lambda item: is_wanted(item[0]), TWO_RUNS.items()):
        rng = np.random.default_rng(options.seed)
        numbers = measure_two_runs(units, (first, second), apart, options.pilots, rng)
        print(f"{name:<48}{numbers[0]:7.2f}{numbers[1]:8.3f}{numbers[2]:9.3f}{'':>9}", flush=True)


if __name__ == "__main__":
    main()
