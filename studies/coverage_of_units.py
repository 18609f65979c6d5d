"""Error rates and coverage of paired differences of areas, from the contributions of units, on data with known truth.

    python studies/coverage_of_units.py [--datasets 2000] [--seed 1] [--only clusters]

Two systems score the same rows. The score of a row is its label, what both systems see of it, and what each sees for
itself; in clusters each system adds an effect of the cluster, and clusters differ in their share of positives.

- `items`: every row is a unit; numbers of rows, and shares of positives.
- `clusters`: 15, 30 and 100 clusters of equal, exponential, log-normal(1) or Pareto(1.5) size, 20 rows in the mean.
- `intervals`: how wide intervals of one system and of the difference are, and how often each tells two systems apart.

`equal` is the share of data sets in which the test calls equal systems different at the level of 5 %, `unmarked` the
same among those that `interval_quality` of compare does not mark, `differ` the share in which the 95 % interval holds
the true difference of systems that differ, which comes from a sample of four million rows.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from harness import Bools, Floats, Integers, Table, Tally, print_parts

from pipeline.metrics.comparison.paired import paired_t
from pipeline.metrics.comparison.significance import bootstrap_t, skewness
from pipeline.metrics.curves.influence import Steps, UnitSums, contributions, influences_of_ties
from pipeline.metrics.uncertainty.limits import FEWEST_CLUSTERS, UNITS_PER_SQUARED_SKEWNESS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.random import Generator

    from pipeline.metrics.curves.influence import Independent

LEVEL = 0.05
RESAMPLES = 499
ROWS_PER_CLUSTER = 20
AREAS = ("average_precision", "roc_auc")
ITEMS = ((100, 0.5), (200, 0.2), (500, 0.1), (1000, 0.02), (2000, 0.1))
SIZES = ("equal", "exponential", "lognormal(1)", "Pareto(1.5)")
CLUSTERS = (15, 30, 100)
SHIFT, BETTER, SHARED, OWN = 1.2, 1.6, 0.8, 0.6
OF_LABELS, OF_SCORES, LOGIT = 0.7, 0.5, -1.5  # deviations of the effects of clusters, and the logit of a positive
TRUTH_ROWS = 4_000_000


def values(scores: Floats, labels: Bools, units: Integers, independent: Independent) -> list[Floats]:
    """Contributions of the units to each area, in the order of the units; their mean is the area."""
    size, zeros = int(units.max()) + 1, np.zeros(len(scores), dtype=np.int64)
    order = np.argsort(scores, kind="stable")
    labels, units = labels[order], units[order]
    ties = Steps.of_ties(zeros, labels.astype(np.float64), (~labels).astype(np.float64), 1)

    def of_classes(positive: Floats, negative: Floats) -> tuple[Floats, Floats]:
        sums = (
            np.bincount(units[labels], positive[labels], size),
            np.bincount(units[~labels], negative[~labels], size),
        )
        return np.asarray(sums[0], dtype=np.float64), np.asarray(sums[1], dtype=np.float64)

    ones, contributed = np.ones(len(labels)), []
    for area, influences in influences_of_ties(ties).items():
        sums = of_classes(influences.positive, influences.negative)
        area_of_all = area_of(ties, area, influences.positive)
        of_units = UnitSums(zeros[:size], of_classes(ones, ones), sums)
        contributed.append(contributions(of_units, area_of_all, influences.slope, independent))
    return contributed


def area_of(ties: Steps, area: str, psi: Floats) -> Floats:
    """The area itself: of ROC the mean influence of positives, of precision the mean precision at positives."""
    if area == "roc_auc":
        return np.array([(ties.positive * psi).sum() / ties.positives[0]])
    above = np.cumsum(ties.positive[::-1])[::-1]
    rows = np.arange(len(above), 0, -1)
    return np.array([(ties.positive * above / rows).sum() / ties.positives[0]])


def sizes(rng: Generator, name: str, clusters: int) -> Integers:
    """Rows of each cluster, at least one."""
    means = {
        "equal": np.full(clusters, 1.0),
        "exponential": rng.exponential(size=clusters),
        "lognormal(1)": rng.lognormal(-0.5, 1.0, clusters),
        "Pareto(1.5)": np.minimum((1 + rng.pareto(1.5, clusters)) / 3, 60.0),
    }[name]
    return np.full(clusters, ROWS_PER_CLUSTER) if name == "equal" else 1 + rng.poisson((ROWS_PER_CLUSTER - 1) * means)


def scored(rng: Generator, labels: Bools, units: Integers | None, second: float) -> list[Floats]:
    """Scores of two systems; `second`: what a positive has more in the second."""
    shared = rng.standard_normal(len(labels))
    systems = []
    for shift in (SHIFT, second):
        effect = 0.0 if units is None else rng.normal(0, OF_SCORES, int(units.max()) + 1)[units]
        systems.append(shift * labels + SHARED * shared + OWN * rng.standard_normal(len(labels)) + effect)
    return systems


def clustered(rng: Generator, rows: Integers) -> tuple[Bools, Integers]:
    """Labels and clusters of rows."""
    units = np.repeat(np.arange(len(rows)), rows)
    logits = LOGIT + rng.normal(0, OF_LABELS, len(rows))[units]
    return rng.random(len(units)) < 1 / (1 + np.exp(-logits)), units


def truth(rng: Generator, share: float | None) -> Floats:
    """The true differences of systems that differ, of rows or of rows in clusters."""
    if share is None:
        labels, units = clustered(rng, np.full(TRUTH_ROWS // ROWS_PER_CLUSTER, ROWS_PER_CLUSTER))
        systems = scored(rng, labels, units, BETTER)
    else:
        labels = rng.random(TRUTH_ROWS) < share
        systems = scored(rng, labels, None, BETTER)
    rows = np.arange(TRUTH_ROWS)
    first, second = ([np.nanmean(each) for each in values(scores, labels, rows, "rows")] for scores in systems)
    return np.asarray(np.subtract(first, second), dtype=np.float64)


def rates(datasets: int, system: Callable[[float], list[list[Floats]]], true: Floats) -> list[float]:
    """By area how often tests reject equal systems, and how often limits hold the difference of those that differ."""
    tallies = [Tally() for _ in AREAS]
    for _ in range(datasets):
        equal, differ = (system(second) for second in (SHIFT, BETTER))
        for area, tally in enumerate(tallies):
            a, b = equal[0][area], equal[1][area]
            tally.add({"equal": paired_t(a, b).p_value <= LEVEL})
            tally.add({"boot": bootstrap_t(a, b, resamples=RESAMPLES).p_value <= LEVEL})
            tally.add({"few": len(a) < max(FEWEST_CLUSTERS, UNITS_PER_SQUARED_SKEWNESS * skewness(a - b) ** 2)})
            limits = paired_t(differ[0][area], differ[1][area])
            tally.add({"differ": limits.lower <= true[area] <= limits.upper})
    cells = []
    for tally in tallies:
        unmarked = np.nan_to_num(tally.mean("equal", tally["few"] == 0))
        cells += [*map(tally.mean, ("equal", "boot")), unmarked, *map(tally.mean, ("few", "differ"))]
    return [float(cell) for cell in cells]


def items(datasets: int, rng: Generator) -> Table:
    """Rows that are units."""
    for rows, share in ITEMS:
        true, units = truth(rng, share), np.arange(rows)

        def system(second: float, share: float = share, units: Integers = units) -> list[list[Floats]]:
            labels = rng.random(len(units)) < share
            labels[:2], labels[2:4] = True, False
            return [values(s, labels, units, "rows") for s in scored(rng, labels, None, second)]

        yield f"{rows:,} rows, {share:.0%} positive", *rates(datasets, system, true)


def clusters(datasets: int, rng: Generator) -> Table:
    """Clusters that are units."""
    true = truth(rng, None)
    for name, number in product(SIZES, CLUSTERS):

        def system(second: float, name: str = name, number: int = number) -> list[list[Floats]]:
            labels, units = clustered(rng, sizes(rng, name, number))
            return [values(s, labels, units, "clusters") for s in scored(rng, labels, units, second)]

        yield f"{number} clusters, {name}", *rates(datasets, system, true)


def intervals(datasets: int, rng: Generator) -> Table:
    """Deviation and power of paired and of unpaired differences: two correlated systems, one a little better."""
    for name, number in (("rows", 500), ("lognormal(1)", 100)):
        tally = Tally()
        for _ in range(datasets):
            a, b = _two_systems(rng, name, number)
            paired, alone = (a - b).std(ddof=1) / np.sqrt(len(a)), [x.std(ddof=1) / np.sqrt(len(x)) for x in (a, b)]
            errors = np.array([paired, np.hypot(*alone)])
            tally.add({"errors": errors, "detected": np.abs((a - b).mean()) > 1.96 * errors})
        yield name, *(f"{error:.4f}" for error in tally.mean("errors")), *tally.mean("detected").tolist()


def _two_systems(rng: Generator, name: str, number: int) -> Iterator[Floats]:
    """Contributions of two systems to average precision."""
    if name == "rows":
        labels, units = rng.random(number) < 0.2, np.arange(number)
    else:
        labels, units = clustered(rng, sizes(rng, name, number))
    kind: Independent = "rows" if name == "rows" else "clusters"
    systems = scored(rng, labels, None if name == "rows" else units, SHIFT + 0.25)
    return (values(scores, labels, units, kind)[0] for scores in systems)


RATES = tuple(f"{name}, {area}" for area in ("AP", "ROC") for name in ("equal", "boot", "unmarked", "marked", "differ"))
PARTS = {
    "items": (items, ("rows, share of positives", *RATES)),
    "clusters": (clusters, ("clusters", *RATES)),
    "intervals": (intervals, ("units", "paired sd", "unpaired", "found", "unpaired")),
}


if __name__ == "__main__":
    print_parts(__doc__, 2000, PARTS)
