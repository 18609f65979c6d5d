"""Measured coverage of the precision of a checked sample, alone and combined with the estimate that needs no labels.

    python studies/coverage_of_audits.py [--datasets 400] [--seed 1]

Events differ in their false positive rate (gamma, CV 1), false matches come alone or in bursts of three, and the rate
after the event is κ times that before it. The precision of the data set at hand is to be held by 95 % intervals: means
over 27 designs, and the worst of them. `certain` is the combination as if κ = 1 were certain; `silent` is the share of
data sets whose audit does not contradict the estimate (p ≥ 0.05) although κ is not 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from harness import Asked, Floats, Integers, Table, Tally, held, options, print_error, report

from pipeline.metrics.before_after.assumption import predicted
from pipeline.metrics.before_after.estimates import audited_precision, combined_precision
from pipeline.metrics.before_after.sensitivity import kappa_variance, placebo_ratio

if TYPE_CHECKING:
    from numpy.random import Generator

FAR, NEAR, AFTER = 96, 72, 72  # pairs of an event, in thousands
KAPPAS = (0.75, 0.9, 1.0, 1.15, 1.3, 1.5)
CELLS = tuple(product((30, 100, 300), (20, 50, 200), (0.5, 0.8, 0.95)))  # events, audited, precision at κ = 1
TRUE = 6.0  # mean number of true matches of an event


@dataclass(frozen=True)
class Line:
    """A line of the table: the number of its seed, κ, matches in a burst, and drift before the event."""

    number: int
    name: str
    kappa: float
    burst: int = 1
    drift: float = 1.0

    def __str__(self) -> str:
        return f"κ {self.kappa} {self.name}"

    def data_set(self, events: int, precision: float, rng: Generator) -> tuple[Integers, ...]:
        """Matches far, near and false and true ones after the event, each of shape (events, 1)."""
        level = rng.gamma(1.0, 1.0, events) * TRUE * (1 - precision) / precision / AFTER
        rates = FAR, NEAR * self.drift, AFTER * self.kappa
        false = [self.burst * rng.poisson(pairs * level / self.burst)[:, None] for pairs in rates]
        return (*false, rng.poisson(rng.gamma(1.0, TRUE, events))[:, None])


LINES = (
    *(
        Line(2 * number + (burst > 1), "in bursts" if burst > 1 else "alone", kappa, burst)
        for number, kappa in enumerate(KAPPAS)
        for burst in (1, 3)
    ),
    *(Line(12 + number, "near to far, too", drift, drift=drift) for number, drift in enumerate((0.75, 1.5))),
)


def measured(line: Line, cell: tuple[int, int, float], datasets: int, rng: Generator) -> Floats:
    """Coverage of the audit, of the combination and of the certain one, their mean widths, and the silent share."""
    events, audited, precision = cell
    tally, count = Tally(), 0
    while count < datasets:
        far, near, false, true = line.data_set(events, precision, rng)
        matches, right = int((false + true).sum()), int(true.sum())
        if matches < audited:
            continue
        sampled = int(rng.hypergeometric(right, matches - right, audited))
        drawn = np.array([matches]), np.array([audited]), np.array([sampled])
        ones = np.ones(events, dtype=np.int64)
        before, after, n_far, n_near = (1000 * ones * number for number in (FAR + NEAR, AFTER, FAR, NEAR))
        prediction = predicted(far + near, false + true, before, after, near, n_near)
        if prediction is None:
            continue
        doubt = kappa_variance(placebo_ratio(far, near, n_far, n_near))
        alone = audited_precision(*drawn, confidence=0.95)
        combined, p_value = combined_precision(*drawn, prediction, confidence=0.95, kappa_variance=doubt)
        certain, _ = combined_precision(*drawn, prediction, confidence=0.95)
        limits = [(result.lower[0], result.upper[0]) for result in (alone, combined, certain)]
        numbers = [held(pair, right / matches, 1e-9) for pair in limits] + [upper - lower for lower, upper in limits]
        tally.add({"numbers": np.array([*numbers, p_value[0] >= 0.05])})
        count += 1
    return tally.mean("numbers")


def measure(line: Line, asked: Asked) -> Table:
    """A row of the table."""
    rng = np.random.default_rng([asked.seed, line.number])
    rows = np.array([measured(line, cell, asked.datasets, rng) for cell in CELLS])
    mean, worst = rows.mean(axis=0), rows.min(axis=0)
    shares = [f"{mean[column]:.3f} {worst[column]:.3f}" for column in range(3)]
    yield str(line), *shares, *mean[3:].tolist()


def main() -> None:
    """Print the table."""
    asked = options(__doc__, 400)
    print_error(asked.datasets)
    widths = [f"width {name}" for name in ("audit", "combined", "certain")]
    title = f"{len(CELLS)} designs of {asked.datasets} data sets in a line: mean and worst"
    report(title, ("line", "audit", "combined", "certain", *widths, "silent"), measure, LINES, asked)


if __name__ == "__main__":
    main()
