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

import argparse
from typing import TYPE_CHECKING

import numpy as np

from pipeline.metrics.comparison.paired import paired_t
from pipeline.metrics.comparison.significance import bootstrap_t, skewness
from pipeline.metrics.curves.influence import Steps, UnitSums, contributions, influences_of_ties
from pipeline.metrics.uncertainty.limits import FEWEST_CLUSTERS, UNITS_PER_SQUARED_SKEWNESS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.random import Generator
    from numpy.typing import NDArray

    from pipeline.metrics.curves.influence import Independent

    Floats = NDArray[np.float64]

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


def values(
    scores: Floats, labels: NDArray[np.bool_], units: NDArray[np.int64], independent: Independent
) -> list[Floats]:
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


def sizes(rng: Generator, name: str, clusters: int) -> NDArray[np.int64]:
    """Rows of each cluster, at least one."""
    means = {
        "equal": np.full(clusters, 1.0),
        "exponential": rng.exponential(size=clusters),
        "lognormal(1)": rng.lognormal(-0.5, 1.0, clusters),
        "Pareto(1.5)": np.minimum((1 + rng.pareto(1.5, clusters)) / 3, 60.0),
    }[name]
    return np.full(clusters, ROWS_PER_CLUSTER) if name == "equal" else 1 + rng.poisson((ROWS_PER_CLUSTER - 1) * means)


def scored(rng: Generator, labels: NDArray[np.bool_], units: NDArray[np.int64] | None, second: float) -> list[Floats]:
    """Scores of two systems; `second`: what a positive has more in the second."""
    shared = rng.standard_normal(len(labels))
    systems = []
    for shift in (SHIFT, second):
        effect = 0.0 if units is None else rng.normal(0, OF_SCORES, int(units.max()) + 1)[units]
        systems.append(shift * labels + SHARED * shared + OWN * rng.standard_normal(len(labels)) + effect)
    return systems


def clustered(rng: Generator, rows: NDArray[np.int64]) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
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


class Rates:
    """Counts of what tests say, by area."""

    def __init__(self) -> None:
        self.rejected = np.zeros((2, 2))
        self.unmarked = np.zeros((2, 2))
        self.n_unmarked = np.zeros(2)
        self.covered = np.zeros(2)
        self.n = 0

    def add(self, equal: list[list[Floats]], differ: list[list[Floats]], true: Floats) -> None:
        """Test one data set of equal systems and one of systems that differ."""
        self.n += 1
        for area in range(2):
            a, b = equal[0][area], equal[1][area]
            tests = [paired_t(a, b), bootstrap_t(a, b, resamples=RESAMPLES)]
            rejected = np.array([test.p_value <= LEVEL for test in tests])
            self.rejected[area] += rejected
            few = len(a) < FEWEST_CLUSTERS or len(a) < UNITS_PER_SQUARED_SKEWNESS * skewness(a - b) ** 2
            if not few:
                self.unmarked[area] += rejected
                self.n_unmarked[area] += 1
            limits = paired_t(differ[0][area], differ[1][area])
            self.covered[area] += limits.lower <= true[area] <= limits.upper

    def line(self, name: str) -> str:
        """The rates of a design."""
        cells = []
        for area in range(2):
            unmarked = self.unmarked[area][0] / max(self.n_unmarked[area], 1)
            cells += [*self.rejected[area] / self.n, unmarked, 1 - self.n_unmarked[area] / self.n]
            cells.append(self.covered[area] / self.n)
        return f"{name:<32}" + "".join(f"{value:>8.3f}" for value in cells)


def head(title: str) -> None:
    """The heads of the columns."""
    names = ("equal", "boot", "unmark.", "marked", "differ")
    print(f"\n{title:<32}" + "".join(f"{f'{name}':>8}" for _ in AREAS for name in names) + "   (AP, then ROC AUC)")


def items(datasets: int, rng: Generator) -> None:
    """Rows that are units."""
    head("rows, share of positives")
    for rows, share in ITEMS:
        true, rates, units = truth(rng, share), Rates(), np.arange(rows)
        for _ in range(datasets):
            systems = []
            for second in (SHIFT, BETTER):
                labels = rng.random(rows) < share
                labels[:2], labels[2:4] = True, False
                systems.append([values(s, labels, units, "rows") for s in scored(rng, labels, None, second)])
            rates.add(systems[0], systems[1], true)
        print(rates.line(f"{rows:,} rows, {share:.0%} positive"), flush=True)


def clusters(datasets: int, rng: Generator) -> None:
    """Clusters that are units."""
    head("clusters")
    true = truth(rng, None)
    for name in SIZES:
        for number in CLUSTERS:
            rates = Rates()
            for _ in range(datasets):
                systems = []
                for second in (SHIFT, BETTER):
                    labels, units = clustered(rng, sizes(rng, name, number))
                    systems.append([values(s, labels, units, "clusters") for s in scored(rng, labels, units, second)])
                rates.add(systems[0], systems[1], true)
            print(rates.line(f"{number} clusters, {name}"), flush=True)


def intervals(datasets: int, rng: Generator) -> None:
    """Deviation and power of paired and of unpaired differences: two correlated systems, one a little better."""
    print(f"\n{'':<32}{'paired sd':>12}{'unpaired':>12}{'found':>10}{'unpaired':>10}")
    for name, number in (("rows", 500), ("lognormal(1)", 100)):
        errors, is_detected = np.zeros((datasets, 2)), np.zeros((datasets, 2), dtype=bool)
        for dataset in range(datasets):
            a, b = _two_systems(rng, name, number)
            paired, alone = (a - b).std(ddof=1) / np.sqrt(len(a)), [x.std(ddof=1) / np.sqrt(len(x)) for x in (a, b)]
            errors[dataset] = paired, np.hypot(*alone)
            is_detected[dataset] = np.abs((a - b).mean()) > 1.96 * errors[dataset]
        print(f"{name:<32}" + "".join(f"{x:>12.4f}" for x in errors.mean(axis=0)), end="")
        print("".join(f"{x:>10.3f}" for x in is_detected.mean(axis=0)))


def _two_systems(rng: Generator, name: str, number: int) -> Iterator[Floats]:
    """Contributions of two systems to average precision."""
    if name == "rows":
        labels, units = rng.random(number) < 0.2, np.arange(number)
    else:
        labels, units = clustered(rng, sizes(rng, name, number))
    kind: Independent = "rows" if name == "rows" else "clusters"
    systems = scored(rng, labels, None if name == "rows" else units, SHIFT + 0.25)
    return (values(scores, labels, units, kind)[0] for scores in systems)


PARTS = {"items": items, "clusters": clusters, "intervals": intervals}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=list(PARTS))
    asked = parser.parse_args()
    print(f"{asked.datasets} data sets; Monte Carlo error of 5 %: {np.sqrt(0.05 * 0.95 / asked.datasets):.3f}")
    for number, (name, measure) in enumerate(PARTS.items()):
        if asked.only in {None, name}:
            measure(asked.datasets, np.random.default_rng([asked.seed, number]))


if __name__ == "__main__":
    main()
