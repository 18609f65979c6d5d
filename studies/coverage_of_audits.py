"""Measured coverage of the precision of a checked sample, alone and combined with the estimate that needs no labels.

    python studies/coverage_of_audits.py [--datasets 400] [--seed 1]

Events differ in their false positive rate (gamma, CV 1), false matches come alone or in bursts of three, and the rate
after the event is κ times that before it. The precision of the data set at hand is to be held by 95 % intervals.
`certain` is the combination as if κ = 1 were certain; `silent` is the share of data sets
whose audit does not contradict the estimate (p ≥ 0.05) although κ is not 1.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from pipeline.metrics.before_after.assumption import predicted
from pipeline.metrics.before_after.estimates import audited_precision, combined_precision
from pipeline.metrics.before_after.sensitivity import kappa_variance, placebo_ratio

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

FAR, NEAR, AFTER = 96, 72, 72  # pairs of an event, in thousands
KAPPAS = (0.75, 0.9, 1.0, 1.15, 1.3, 1.5)
EVENTS, AUDITED, PRECISIONS = (30, 100, 300), (20, 50, 200), (0.5, 0.8, 0.95)
TRUE = 6.0  # mean number of true matches of an event


@dataclass(frozen=True)
class Design:
    """Events, sampled matches, expected precision at κ = 1, κ, matches in a burst, and drift before the event."""

    events: int
    audited: int
    precision: float
    kappa: float
    burst: int = 1
    drift: float = 1.0

    def data_set(self, rng: Generator) -> tuple[NDArray[np.int64], ...]:
        """Matches far, near and false and true ones after the event, each of shape (events, 1)."""
        level = rng.gamma(1.0, 1.0, self.events) * TRUE * (1 - self.precision) / self.precision / AFTER
        rates = FAR, NEAR * self.drift, AFTER * self.kappa
        false = [self.burst * rng.poisson(pairs * level / self.burst)[:, None] for pairs in rates]
        return (*false, rng.poisson(rng.gamma(1.0, TRUE, self.events))[:, None])


def measured(design: Design, datasets: int, rng: Generator) -> NDArray[np.float64]:
    """Coverage of the audit, of the combination and of the certain one, their mean widths, and the silent share."""
    sums, count = np.zeros(7), 0
    ones = np.ones(design.events, dtype=np.int64)
    while count < datasets:
        far, near, false, true = design.data_set(rng)
        matches, right = int((false + true).sum()), int(true.sum())
        if matches < design.audited:
            continue
        sampled = int(rng.hypergeometric(right, matches - right, design.audited))
        sample = tuple(np.array([value]) for value in (matches, design.audited, sampled))
        drawn = sample[0], sample[1], sample[2]
        pairs = [1000 * ones * number for number in (FAR + NEAR, AFTER, FAR, NEAR)]
        prediction = predicted(far + near, false + true, pairs[0], pairs[1], near, pairs[3])
        if prediction is None:
            continue
        doubt = kappa_variance(placebo_ratio(far, near, pairs[2], pairs[3]))
        alone = audited_precision(*drawn, confidence=0.95)
        combined, p_value = combined_precision(*drawn, prediction, confidence=0.95, kappa_variance=doubt)
        certain, _ = combined_precision(*drawn, prediction, confidence=0.95)
        share, results = right / matches, (alone, combined, certain)
        held = [float(each.lower[0] - 1e-9 <= share <= each.upper[0] + 1e-9) for each in results]
        sums += [*held, *(each.upper[0] - each.lower[0] for each in results), float(p_value[0] >= 0.05)]
        count += 1
    return sums / count


def designs() -> list[tuple[str, list[Design]]]:
    """What a line of the printed table is the mean and the worst of, for every κ."""
    cells = list(product(EVENTS, AUDITED, PRECISIONS))
    lines = []
    for kappa in KAPPAS:
        lines.append((f"κ {kappa:<5} alone", [Design(*cell, kappa) for cell in cells]))
        lines.append((f"κ {kappa:<5} in bursts", [Design(*cell, kappa, burst=3) for cell in cells]))
    lines += [
        (f"κ {drift:<5} near to far, too", [Design(*cell, drift, drift=drift) for cell in cells])
        for drift in (0.75, 1.5)
    ]
    return lines


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    cells = len(EVENTS) * len(AUDITED) * len(PRECISIONS)
    error = np.sqrt(0.05 * 0.95 / asked.datasets)
    print(f"{cells} designs of {asked.datasets} data sets in a line; Monte Carlo error {error:.3f} of one design")
    print(f"{'':<24}{'audit':>16}{'combined':>16}{'certain':>16}{'widths':>24}{'silent':>8}")
    for number, (name, line) in enumerate(designs()):
        rng = np.random.default_rng([asked.seed, number])
        rows = np.array([measured(design, asked.datasets, rng) for design in line])
        mean, worst = rows.mean(axis=0), rows[:, :3].min(axis=0)
        shares = "".join(f"{mean[column]:9.3f} {worst[column]:.3f}" + " " for column in range(3))
        print(f"{name:<24}{shares}" + "".join(f"{value:8.3f}" for value in mean[3:]), flush=True)


if __name__ == "__main__":
    main()
