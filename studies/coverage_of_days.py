"""How often 95% intervals of labelled rows hold the truth if days are the clusters, and the days go together.

    python studies/coverage_of_days.py [DATA_SETS]

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

import sys
from dataclasses import replace

import numpy as np

from pipeline.metrics.comparison.paired import paired_t, randomization_test
from pipeline.metrics.comparison.pooled import effective_units, jackknife_errors, pooled_ratios
from pipeline.metrics.comparison.significance import bootstrap_of_pairs
from pipeline.metrics.curves.trapezoidal_area import Retrieved, replicate_shifts, true_point_areas
from pipeline.metrics.uncertainty.clusters import area_interval, may_neighbours_be_alike, over_time
from pipeline.metrics.uncertainty.jackknife import leave_one_out
from pipeline.metrics.uncertainty.proportions import Confusion, intervals_of_clusters, may_days_be_alike
from pipeline.tables.columns import RATIO_OF

THRESHOLDS = np.linspace(-2.0, 4.0, 25)
AT = 14  # the threshold whose ratios are shown
ROWS = 40  # of a day
LEVEL = 0.05
NAMES = ("fpr", "precision", "recall")
DESIGNS = [
    *((days, 0.0, "") for days in (30, 60, 120, 365)),
    *((days, 0.3, "") for days in (60, 365)),
    *((days, 0.5, "") for days in (50, 60, 120, 365)),
    *((days, 0.7, "") for days in (30, 60, 120, 365)),
    *((days, 0.9, "") for days in (60, 365)),
    (120, 0.0, "cycle"),
    (120, 0.0, "unequal"),
    (120, 0.7, "unequal"),
]


def levels(rng: np.random.Generator, days: int, rho: float) -> np.ndarray:
    """An autoregression with the standard deviation 1."""
    noise, level = rng.normal(size=days), np.empty(days)
    level[0] = noise[0]
    for day in range(1, days):
        level[day] = rho * level[day - 1] + np.sqrt(1 - rho**2) * noise[day]
    return level


def counts(rng: np.random.Generator, days: int, rho: float, design: str) -> tuple[np.ndarray, np.ndarray]:
    """Positives and negatives at or above each threshold, by day; the first column counts all."""
    prevalence, shift = levels(rng, days, rho), levels(rng, days, rho)
    if design == "cycle":
        prevalence -= 1.5 * (np.arange(days) % 7 > 4)
    sizes = np.full(days, ROWS)
    if design == "unequal":
        sizes = np.maximum(rng.lognormal(np.log(ROWS) - 0.32, 0.8, days).astype(np.int64), 1)
    day = np.repeat(np.arange(days), sizes)
    label = rng.random(len(day)) < 1 / (1 + np.exp(1.2 - 0.6 * prevalence[day]))
    score = rng.normal(size=len(day)) + np.where(label, 1.5, 0.5 * shift[day])
    bins = np.searchsorted(THRESHOLDS, score, side="right")
    table = np.zeros((2, days, len(THRESHOLDS) + 1))
    np.add.at(table, (label.astype(np.int64), day, bins), 1)
    above = table[:, :, ::-1].cumsum(axis=2)[:, :, ::-1]
    return above[1], above[0]


def confusion(positives: np.ndarray, negatives: np.ndarray) -> Confusion:
    """Outcomes of every day at every threshold."""
    tp, fp = positives[:, 1:], negatives[:, 1:]
    return Confusion(tp, fp, positives[:, :1] - tp, negatives[:, :1] - fp, in_time=True)


def retrieved(positives: np.ndarray, negatives: np.ndarray) -> Retrieved:
    """The same for the area, thresholds falling."""
    return Retrieved(positives[:, :0:-1], negatives[:, :0:-1], positives[:, 0], negatives[:, 0])


def area_of(positives: np.ndarray, negatives: np.ndarray) -> float:
    """The area under the curve of all days."""
    total = retrieved(positives.sum(axis=0, keepdims=True), negatives.sum(axis=0, keepdims=True))
    return float(true_point_areas(total, total, total, random_sizes=True).auc[0])


def values(positives: np.ndarray, negatives: np.ndarray) -> dict[str, float]:
    """What the limits are to hold, of many days."""
    total = confusion(positives.sum(axis=0, keepdims=True), negatives.sum(axis=0, keepdims=True))
    sides = {name: total.sides(RATIO_OF[name]) for name in NAMES}
    shown = {name: float(hits[0, AT] / (hits + misses)[0, AT]) for name, (hits, misses) in sides.items()}
    return shown | {"pr_auc": area_of(positives, negatives)}


def held(positives: np.ndarray, negatives: np.ndarray, truth: dict[str, float], *, in_time: bool) -> list[bool]:
    """Whether the limits of each number hold the truth."""
    used = replace(confusion(positives, negatives), in_time=in_time)
    limits = intervals_of_clusters(used, 0.95, names=NAMES)
    covered = [limits[name][0][AT] <= truth[name] <= limits[name][1][AT] for name in NAMES]
    spread = replicate_shifts(retrieved(positives, negatives), in_time=in_time)[0].spread
    lower, upper = area_interval(np.asarray(area_of(positives, negatives)), spread, 0.95, clustered=True)
    return [*map(bool, covered), bool(lower <= truth["pr_auc"] <= upper)]


def compared(rng: np.random.Generator, days: int, rho: float) -> list[bool]:
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
    lower, upper = student.limits(0.95)
    return [
        may_neighbours_be_alike((a - b)[:, None]),
        may_neighbours_be_alike(jackknifed[:, 2:]),
        lower <= 0 <= upper,
        bool(abs(gap[2]) <= errors.half_width(0.95)[2]),
        bootstrapped.p_value() <= LEVEL,
        randomization_test(a, b, resamples=999, factor=factor).p_value <= LEVEL,
        randomization_test(a, b, resamples=999).p_value <= LEVEL,
    ]


def compare(data_sets: int) -> None:
    """Print the table of two systems."""
    print("\n| days | ρ | marked | hold: paired_t, F1 | of those not marked | bootstrap_t, randomization | no order |")
    for days, rho in ((days, rho) for days in (30, 60, 120, 365) for rho in (0.0, 0.3, 0.5, 0.7)):
        rng = np.random.default_rng(7)
        table = np.array([compared(rng, days, rho) for _ in range(data_sets)], dtype=np.float64)
        unmarked = [table[table[:, mark] == 0, 2 + mark] for mark in (0, 1)]
        of_good = [f"{held.mean():.3f}" if len(held) >= data_sets / 20 else "–" for held in unmarked]
        cells = [f"{share:.3f}" for share in table[:, 2:].mean(axis=0)]
        groups = (cells[:2], of_good, cells[2:4], cells[4:])
        print(f"| {days} | {rho:g} | {table[:, 0].mean():.2f} | {' | '.join(map(' · '.join, groups))} |", flush=True)


def main(data_sets: int) -> None:
    """Print the tables."""
    picked = [4, 8, 12, 16, 20]
    print("| days | ρ | | marked | in time: fpr, precision, recall, pr_auc | of those not marked | no order |")
    for days, rho, design in DESIGNS:
        rng = np.random.default_rng(7)
        truth = values(*counts(rng, 20_000, 0.0, design))
        rows = []
        for _ in range(data_sets):
            sides = counts(rng, days, rho, design)
            chosen = [side[:, [0, *(index + 1 for index in picked)]] for side in sides]
            rows.append(
                [
                    may_days_be_alike(confusion(*chosen)),
                    *held(*sides, truth, in_time=True),
                    *held(*sides, truth, in_time=False),
                ]
            )
        table = np.array(rows, dtype=np.float64)
        marked, in_time, plain = table[:, 0] > 0, table[:, 1:5], table[:, 5:]
        unmarked = in_time[~marked].mean(axis=0) if (~marked).sum() >= data_sets / 20 else np.full(4, np.nan)
        cells = [" · ".join(f"{each:.3f}" for each in group) for group in (in_time.mean(axis=0), unmarked)]
        no_order = " · ".join(f"{each:.3f}" for each in plain.mean(axis=0))
        which = f"| {days} | {rho:g} | {design} | {marked.mean():.2f} |"
        print(f"{which} {cells[0]} | {cells[1]} | {no_order} |", flush=True)
    compare(data_sets)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 300)
