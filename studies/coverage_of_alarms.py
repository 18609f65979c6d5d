"""Measured coverage of the limits of false alarms over time and of leads, on simulated data whose truth is known.

    python studies/coverage_of_alarms.py [--datasets 2500] [--confidence 0.95] [--seed 1] [--only rates|leads]

Rates: every series has a length, 10, or 10 × log-normal (σ 0.5 or 1), or 5 × Pareto (shape 1.5, up to 100 times), and
a number of false alarms. It is a Poisson count of a rate that is the same in all series, or that differs as a gamma
(shape 1) or log-normal (σ 1) variable does, or goes along with the square root of the length; `regular` alarms keep
apart, so that their number varies half as much as a Poisson count. The truth is that of 400,000 series. `n` is the mean
number of false alarms in a data set, `low` and `high` are the shares of data sets whose limits lie above and below the
truth.

Leads: every series has 2 or 5 true points, or 3 × log-normal (σ 0.7), with leads that are normal, or log-normal, and
have a correlation of 0 or 0.3 within a series. The quantiles are those of `change_points_alarm_points`.

`all` are the shares of all data sets whose limits hold the truth, `unmarked` those of the data sets with the mark
`good`, if these are at least a tenth. The Monte Carlo error of a share near .95 is √(.0475 / datasets).
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from pipeline.metrics.change_points.alarms import Leads, rate_limits
from pipeline.metrics.uncertainty.limits import quality_of_events, quality_of_sizes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

Floats: TypeAlias = "NDArray[np.float64]"
Ints: TypeAlias = "NDArray[np.int64]"
Bools: TypeAlias = "NDArray[np.bool_]"

POPULATION = 400_000
FEWEST_UNMARKED = 0.1
SHARES = (0.1, 0.25, 0.5, 0.75, 0.9)
SMALLEST, MEAN = 5, 10


@dataclass(frozen=True)
class Rates:
    """Series with false alarms.

    Attributes:
        series: Their number.
        lengths: `equal`, `lognormal(0.5)`, `lognormal(1)` or `pareto(1.5)`.
        alarms: `poisson`, `gamma`, `lognormal`, `regular`, or `along` the length.
        rate: Mean number for one unit of time.
    """

    series: int
    lengths: str
    alarms: str
    rate: float

    def __str__(self) -> str:
        return f"{self.series} | {self.lengths} | {self.alarms}"

    def draw(self, series: int, rng: np.random.Generator) -> tuple[Ints, Floats]:
        """False alarms and lengths of so many series."""
        time = np.full(series, float(MEAN))
        if self.lengths.startswith("lognormal"):
            time = np.ceil(MEAN * np.exp(float(self.lengths[10:-1]) * rng.standard_normal(series)))
        elif self.lengths.startswith("pareto"):
            time = np.ceil(SMALLEST * np.minimum(1 + rng.pareto(1.5, series), 100))
        if self.alarms == "regular":
            return rng.binomial(np.ceil(2 * self.rate * time).astype(np.int64), 0.5), time
        rate = np.full(series, self.rate)
        if self.alarms == "gamma":
            rate = rate * rng.gamma(1.0, 1.0, series)
        elif self.alarms == "lognormal":
            rate = rate * np.exp(rng.standard_normal(series) - 0.5)
        elif self.alarms == "along":
            rate = rate * np.sqrt(time / MEAN)
        return rng.poisson(rate * time), time


RATES = (
    *(Rates(n, "equal", "poisson", rate) for n, rate in product((10, 20, 40, 100), (0.02, 0.1, 1.0))),
    *(Rates(n, "equal", alarms, 0.1) for n, alarms in product((20, 40, 100), ("gamma", "lognormal", "regular"))),
    *(Rates(n, "lognormal(0.5)", alarms, 0.1) for n, alarms in product((20, 40, 100), ("poisson", "gamma", "along"))),
    *(Rates(n, "lognormal(1)", alarms, 0.1) for n, alarms in product((40, 100), ("poisson", "gamma", "along"))),
    *(Rates(n, "pareto(1.5)", alarms, 0.1) for n, alarms in product((40, 100), ("poisson", "gamma", "along"))),
)


def coverage_of_rates(design: Rates, datasets: int, confidence: float, seed: int) -> str:
    """One row of the table of rates."""
    events, time = design.draw(POPULATION, np.random.default_rng([seed, 0]))
    true, rng = events.sum() / time.sum(), np.random.default_rng([seed, 1])
    below, above, unmarked = (np.zeros(datasets, dtype=np.bool_) for _ in range(3))
    number = 0
    for row in range(datasets):
        events, time = design.draw(design.series, rng)
        lower, upper = rate_limits(events[:, None], time, confidence)
        below[row], above[row] = true < lower[0], true > upper[0]
        marks = {quality_of_sizes(time), quality_of_events(int(events.sum()))}
        unmarked[row] = marks == {"good"}
        number += events.sum()
    held = ~(below | above)
    shares = (held.mean(), below.mean(), above.mean(), unmarked.mean())
    shown = " | ".join(_share(share) for share in shares)
    return f"| {design} | {number / datasets:.0f} | {shown} | {_share(_unmarked(held, unmarked))} |"


@dataclass(frozen=True)
class OfLeads:
    """Series with true points that have leads.

    Attributes:
        series: Their number.
        points: `2`, `5` or `lognormal`: true points of a series.
        leads: `normal` or `lognormal`.
        correlation: Of leads within a series, on the scale where they are normal.
    """

    series: int
    points: str
    leads: str
    correlation: float

    def __str__(self) -> str:
        return f"{self.series} | {self.points} | {self.leads} | {self.correlation:g}"

    def draw(self, series: int, rng: np.random.Generator) -> tuple[Floats, Ints]:
        """Leads and the series of each."""
        if self.points == "lognormal":
            number = np.maximum(1, np.ceil(3 * np.exp(0.7 * rng.standard_normal(series)))).astype(np.int64)
        else:
            number = np.full(series, int(self.points))
        of_series = np.repeat(np.arange(series), number)
        alike, alone = rng.standard_normal(series)[of_series], rng.standard_normal(len(of_series))
        lead = np.sqrt(self.correlation) * alike + np.sqrt(1 - self.correlation) * alone
        return np.exp(lead) - 1 if self.leads == "lognormal" else lead, of_series


LEADS = tuple(
    OfLeads(series, points, leads, correlation)
    for series, points, leads, correlation in product(
        (10, 20, 40, 100), ("2", "5", "lognormal"), ("normal", "lognormal"), (0.0, 0.3)
    )
)


def coverage_of_leads(design: OfLeads, datasets: int, confidence: float, seed: int) -> str:
    """One row of the table of leads."""
    lead, _ = design.draw(POPULATION // 4, np.random.default_rng([seed, 0]))
    true = [float(lead.mean()), *np.quantile(lead, SHARES).tolist(), float((lead > 0).mean())]
    rng = np.random.default_rng([seed, 1])
    held, unmarked = np.zeros((datasets, len(true)), dtype=np.bool_), np.zeros(datasets, dtype=np.bool_)
    for row in range(datasets):
        lead, of_series = design.draw(design.series, rng)
        leads = Leads.of(lead, of_series, np.ones(len(lead), dtype=np.int64))
        limits = [leads.mean_limits(confidence), *leads.quantile_limits(SHARES, confidence)]
        limits.append(leads.ahead_limits(confidence))
        held[row] = [not (value < low or value > high) for value, (low, high) in zip(true, limits, strict=True)]
        unmarked[row] = quality_of_sizes(leads.sizes) == "good"
    everything = " | ".join(_share(share) for share in held.mean(axis=0))
    return f"| {design} | {everything} | {_share(unmarked.mean())} | {_share(_unmarked(held[:, 0], unmarked))} |"


def _unmarked(held: Bools, unmarked: Bools) -> float:
    return float(held[unmarked].mean()) if unmarked.mean() >= FEWEST_UNMARKED else np.nan


def _share(share: float) -> str:
    return "" if np.isnan(share) else f"{share:.3f}".removeprefix("0")


def _tables(only: str | None) -> Iterator[tuple[str, Sequence[Rates] | Sequence[OfLeads]]]:
    if only != "leads":
        head = "| series | lengths | alarms | n | all | low | high | not marked | unmarked |"
        yield f"{head}\n|---|---|---" + "|--:" * 6 + "|", RATES
    if only != "rates":
        shares = " | ".join(f"{share:.0%}" for share in SHARES)
        head = f"| series | points | leads | r | mean | {shares} | ahead | not marked | mean, unmarked |"
        yield f"{head}\n|---|---|---|--:" + "|--:" * 9 + "|", LEADS


def main() -> None:
    """Parse the arguments and print everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", type=int, default=2500)
    parser.add_argument("--confidence", type=float, default=0.95)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=("rates", "leads"))
    options = parser.parse_args()
    print(f"Monte Carlo error {np.sqrt(0.0475 / options.datasets):.3f}")
    arguments = (options.datasets, options.confidence, options.seed)
    for head, designs in _tables(options.only):
        print(head)
        for design in designs:
            row = (
                coverage_of_rates(design, *arguments)
                if isinstance(design, Rates)
                else coverage_of_leads(design, *arguments)
            )
            print(row, flush=True)


if __name__ == "__main__":
    main()
