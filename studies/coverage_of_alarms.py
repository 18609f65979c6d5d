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

from dataclasses import dataclass
from itertools import product

import numpy as np
from harness import Asked, Floats, Integers, Table, Tally, options, print_error, report

from pipeline.metrics.change_points.alarms import Leads, rate_limits
from pipeline.metrics.uncertainty.limits import quality_of_events, quality_of_sizes

POPULATION = 400_000
FEWEST_UNMARKED = 0.1
SHARES = (0.1, 0.25, 0.5, 0.75, 0.9)
SMALLEST, MEAN = 5, 10


@dataclass(frozen=True)
class Rates:
    """Series whose lengths and false alarms are of a kind, with so many alarms in one unit of time on average."""

    series: int
    lengths: str
    alarms: str
    rate: float

    def __str__(self) -> str:
        return f"{self.series} | {self.lengths} | {self.alarms}"

    def draw(self, series: int, rng: np.random.Generator) -> tuple[Integers, Floats]:
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


def coverage_of_rates(design: Rates, asked: Asked) -> Table:
    """One row of the table of rates."""
    events, time = design.draw(POPULATION, np.random.default_rng([asked.seed, 0]))
    true, rng, tally = events.sum() / time.sum(), np.random.default_rng([asked.seed, 1]), Tally()
    for _ in range(asked.datasets):
        events, time = design.draw(design.series, rng)
        lower, upper = (float(limit[0]) for limit in rate_limits(events[:, None], time, asked.confidence))
        is_good = quality_of_sizes(time) == quality_of_events(int(events.sum())) == "good"
        tally.add({"n": events.sum(), "all": not (true < lower or true > upper)})
        tally.add({"low": true < lower, "high": true > upper, "good": is_good})
    shares = [float(tally.mean(name)) for name in ("all", "low", "high", "good")]
    yield str(design), f"{tally.mean('n'):.0f}", *shares, _of_unmarked(tally)


@dataclass(frozen=True)
class OfLeads:
    """Series whose true points, a number or log-normal, have leads of a kind; they are correlated within a series."""

    series: int
    points: str
    leads: str
    correlation: float

    def __str__(self) -> str:
        return f"{self.series} | {self.points} | {self.leads} | {self.correlation:g}"

    def draw(self, series: int, rng: np.random.Generator) -> tuple[Floats, Integers]:
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
    OfLeads(*design)
    for design in product((10, 20, 40, 100), ("2", "5", "lognormal"), ("normal", "lognormal"), (0.0, 0.3))
)


def coverage_of_leads(design: OfLeads, asked: Asked) -> Table:
    """One row of the table of leads."""
    lead, _ = design.draw(POPULATION // 4, np.random.default_rng([asked.seed, 0]))
    true = [float(lead.mean()), *np.quantile(lead, SHARES).tolist(), float((lead > 0).mean())]
    rng, tally = np.random.default_rng([asked.seed, 1]), Tally()
    for _ in range(asked.datasets):
        lead, of_series = design.draw(design.series, rng)
        leads = Leads.of(lead, of_series, np.ones(len(lead), dtype=np.int64))
        limits = [leads.mean_limits(asked.confidence), *leads.quantile_limits(SHARES, asked.confidence)]
        limits.append(leads.ahead_limits(asked.confidence))
        held = [not (value < low or value > high) for value, (low, high) in zip(true, limits, strict=True)]
        tally.add({"every": np.array(held), "all": held[0], "good": quality_of_sizes(leads.sizes) == "good"})
    yield str(design), *tally.mean("every").tolist(), float(tally.mean("good")), _of_unmarked(tally)


def _of_unmarked(tally: Tally) -> float:
    """The share of unmarked data sets that hold the truth; nan if these are too few."""
    good = tally["good"] > 0
    return float(tally.mean("all", good)) if good.mean() >= FEWEST_UNMARKED else np.nan


def main() -> None:
    """Print both tables."""
    asked = options(__doc__, 2500, confidence=0.95)
    print_error(asked.datasets)
    of_rates = ("series", "lengths", "alarms", "n", "all", "low", "high", "not marked", "unmarked")
    report("rates", of_rates, coverage_of_rates, RATES, asked)
    shares = [f"{share:.0%}" for share in SHARES]
    head = ("series", "points", "leads", "r", "mean", *shares, "ahead", "not marked", "mean, unmarked")
    report("leads", head, coverage_of_leads, LEADS, asked)


if __name__ == "__main__":
    main()
