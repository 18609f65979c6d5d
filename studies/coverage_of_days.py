"""How often 95% intervals of labelled rows hold the truth if days are the clusters, and the days go together.

    python studies/coverage_of_days.py [--datasets 300] [--only rows|systems]

Every day has a level of prevalence and a level of the scores of its negatives, two autoregressions of the first order
with the correlation ρ between neighbouring days; `cycle` adds quiet weekends, `unequal` makes sizes of days lognormal.
It prints the share of data sets that are marked `correlated_days`, and in which the limits of the false positive rate,
precision, recall and `pr_auc` hold the truth: as days in time, those of them that are not marked, and as clusters whose
order means nothing.

A second table has two systems of equal quality whose differences within days follow such an autoregression: how often
the limits of `paired_t` and of the pooled F1 hold 0, of all data sets and of those not marked, and how often
`bootstrap_t` and `randomization` call the systems different at 5%, beside `randomization` of days as independent units.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from harness import Asked, Bools, Floats, Table, Tally, held, options, report
from labelled_rows import autoregression, confusion, total

from pipeline.base.columns import RATIO_OF
from pipeline.metrics.comparison.paired import paired_t, randomization_test
from pipeline.metrics.comparison.pooled import effective_units, jackknife_errors, pooled_ratios
from pipeline.metrics.comparison.significance import bootstrap_of_pairs
from pipeline.metrics.curves.trapezoidal_area import Retrieved, replicate_shifts, true_point_areas
from pipeline.metrics.uncertainty.clusters import area_interval, may_neighbours_be_alike, over_time
from pipeline.metrics.uncertainty.jackknife import leave_one_out
from pipeline.metrics.uncertainty.proportions import Confusion, intervals_of_clusters, may_days_be_alike

THRESHOLDS = np.linspace(-2.0, 4.0, 25)
AT, PICKED = 14, [4, 8, 12, 16, 20]  # the threshold whose ratios are shown, and those by which days are marked
ROWS = 40  # of a day
LEVEL = 0.05
NAMES = ("fpr", "precision", "recall")
DESIGNS = (
    *((days, 0.0, "") for days in (30, 60, 120, 365)),
    *((days, 0.3, "") for days in (60, 365)),
    *((days, 0.5, "") for days in (50, 60, 120, 365)),
    *((days, 0.7, "") for days in (30, 60, 120, 365)),
    *((days, 0.9, "") for days in (60, 365)),
    (120, 0.0, "cycle"),
    (120, 0.0, "unequal"),
    (120, 0.7, "unequal"),
)
SYSTEMS = tuple((days, rho) for days in (30, 60, 120, 365) for rho in (0.0, 0.3, 0.5, 0.7))


def levels(rng: np.random.Generator, days: int, rho: float) -> Floats:
    """An autoregression with the standard deviation 1."""
    return autoregression(rng.normal(size=days), rho)


def counts(rng: np.random.Generator, days: int, rho: float, design: str) -> Confusion:
    """Outcomes of every day at every threshold."""
    prevalence, shift = levels(rng, days, rho), levels(rng, days, rho)
    if design == "cycle":
        prevalence -= 1.5 * (np.arange(days) % 7 > 4)
    sizes = np.full(days, ROWS)
    if design == "unequal":
        sizes = np.maximum(rng.lognormal(np.log(ROWS) - 0.32, 0.8, days).astype(np.int64), 1)
    day = np.repeat(np.arange(days), sizes)
    label = rng.random(len(day)) < 1 / (1 + np.exp(1.2 - 0.6 * prevalence[day]))
    score = rng.normal(size=len(day)) + np.where(label, 1.5, 0.5 * shift[day])
    return replace(confusion(THRESHOLDS, score, label, day), in_time=True)


def retrieved(outcomes: Confusion) -> Retrieved:
    """The same for the area, thresholds falling."""
    positives, negatives = outcomes.tp + outcomes.fn, outcomes.fp + outcomes.tn
    return Retrieved(outcomes.tp[:, ::-1], outcomes.fp[:, ::-1], positives[:, 0], negatives[:, 0])


def area_of(outcomes: Confusion) -> float:
    """The area under the curve of all days."""
    of_days = vars(retrieved(outcomes)).values()
    of_all = Retrieved(*(np.asarray(side.sum(axis=0, keepdims=True)) for side in of_days))
    return float(true_point_areas(of_all, of_all, of_all, random_sizes=True).auc[0])


def values(outcomes: Confusion) -> dict[str, float]:
    """What the limits are to hold, of many days."""
    sides = {name: total(outcomes).sides(RATIO_OF[name]) for name in NAMES}
    ratios = {name: float(hits[AT] / (hits + misses)[AT]) for name, (hits, misses) in sides.items()}
    return ratios | {"pr_auc": area_of(outcomes)}


def holds(outcomes: Confusion, truth: dict[str, float], *, in_time: bool) -> Floats:
    """Whether the limits of each number hold the truth."""
    limits = intervals_of_clusters(replace(outcomes, in_time=in_time), 0.95, names=NAMES)
    covered = [limits[name][0][AT] <= truth[name] <= limits[name][1][AT] for name in NAMES]
    spread = replicate_shifts(retrieved(outcomes), in_time=in_time)[0].spread
    lower, upper = area_interval(np.asarray(area_of(outcomes)), spread, 0.95, clustered=True)
    return np.array([*covered, lower <= truth["pr_auc"] <= upper], dtype=np.float64)


def measure_rows(design: tuple[int, float, str], asked: Asked) -> Table:
    """A row of the first table."""
    days, rho, kind = design
    rng, tally = np.random.default_rng(asked.seed), Tally()
    truth = values(counts(rng, 20_000, 0.0, kind))
    for _ in range(asked.datasets):
        outcomes = counts(rng, days, rho, kind)
        sides = (outcomes.tp, outcomes.fp, outcomes.fn, outcomes.tn)
        marked = may_days_be_alike(Confusion(*(side[:, PICKED] for side in sides), in_time=True))
        tally.add({"marked": marked, "in time": holds(outcomes, truth, in_time=True)})
        tally.add({"no order": holds(outcomes, truth, in_time=False)})
    unmarked = _of_unmarked(tally, "in time", tally["marked"] > 0)
    groups = (tally.mean("in time"), unmarked, tally.mean("no order"))
    yield str(days), f"{rho:g}", kind, f"{tally.mean('marked'):.2f}", *map(_cells, groups)


def _of_unmarked(tally: Tally, name: str, marked: Bools) -> Floats:
    """The mean of the data sets that are not marked; nan if fewer than one in twenty are not."""
    return tally.mean(name, ~marked) if (~marked).mean() >= 1 / 20 else np.nan * tally[name][0]


def _cells(numbers: Floats) -> str:
    return " · ".join("–" if np.isnan(number) else f"{number:.3f}" for number in numbers)


def compared(rng: np.random.Generator, days: int, rho: float) -> dict[str, float | Floats]:
    """Whether a pair of equal systems is marked, which limits hold 0, and which tests reject."""
    of_system, of_day = levels(rng, days, rho), levels(rng, days, rho)
    a, b = (0.5 + 0.1 * of_day + sign * (0.05 * of_system + 0.025 * rng.normal(size=days)) for sign in (1, -1))
    student, factor = paired_t(a, b).student.over_time(a - b), float(over_time(a - b).factor)
    bootstrapped = replace(bootstrap_of_pairs(a, b, resamples=999), student=student)
    rights = [rng.binomial(ROWS, 1 / (1 + np.exp(-1 - 0.5 * of_day - sign * 0.6 * of_system))) for sign in (1, -1)]
    first, second = (np.stack([right, ROWS - right, ROWS - right], axis=1).astype(np.float64) for right in rights)
    jackknifed = pooled_ratios(leave_one_out(first)) - pooled_ratios(leave_one_out(second))
    errors = jackknife_errors(jackknifed, effective_units(first, second), in_time=True)
    gap = pooled_ratios(first.sum(axis=0)) - pooled_ratios(second.sum(axis=0))
    in_order = randomization_test(a, b, resamples=999, factor=factor)
    rejects = [test <= LEVEL for test in (bootstrapped.p_value(), in_order.p_value)]
    return {
        "marked": may_neighbours_be_alike((a - b)[:, None]),
        "F1 marked": may_neighbours_be_alike(jackknifed[:, 2:]),
        "paired_t": held(student.limits(0.95), 0.0),
        "F1": abs(gap[2]) <= errors.half_width(0.95)[2],
        "tests": np.array(rejects),
        "no order": randomization_test(a, b, resamples=999).p_value <= LEVEL,
    }


def measure_systems(design: tuple[int, float], asked: Asked) -> Table:
    """A row of the second table."""
    days, rho = design
    rng, tally = np.random.default_rng(asked.seed), Tally()
    for _ in range(asked.datasets):
        tally.add(compared(rng, days, rho))
    marks = {"paired_t": "marked", "F1": "F1 marked"}
    unmarked = [_of_unmarked(tally, name, tally[mark] > 0) for name, mark in marks.items()]
    of_all = [tally.mean(name) for name in marks]
    cells = [_cells(np.array(shares)) for shares in (of_all, unmarked, tally.mean("tests"))]
    yield str(days), f"{rho:g}", f"{tally.mean('marked'):.2f}", *cells, float(tally.mean("no order"))


def main() -> None:
    """Print the tables."""
    asked = options(__doc__, 300, 7)
    names = "fpr, precision, recall, pr_auc"
    head = ("days", "ρ", "", "marked", f"in time: {names}", "of those not marked", "no order")
    report("rows", head, measure_rows, DESIGNS, asked)
    head = ("days", "ρ", "marked", "hold: paired_t, F1", "unmarked", "bootstrap_t, randomization", "no order")
    report("systems", head, measure_systems, SYSTEMS, asked)


if __name__ == "__main__":
    main()
