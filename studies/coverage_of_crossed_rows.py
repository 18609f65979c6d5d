"""Coverage of threshold_sweep where rows have two parents, such as users and items, which both differ.

    python studies/coverage_of_crossed_rows.py [--datasets 1000] [--seed 1] [--only coverage|choices]

Every user meets some items, drawn at random. The logit of a row's being positive and its score have effects of the
user and of the item, which go together (correlation 0.5); a positive scores 1.5 higher. The truth is that of rows of
new users and new items. The table compares intervals that take rows as independent, that know users alone, items alone,
and both: coverage of nominal 95 % intervals of average precision and ROC AUC, and the mean and the lowest coverage of
precision, recall and F1 at three thresholds. Of both, replicates are made as the stage makes them: 64 of each parent.

Then choices. A minimum just above what a threshold has in truth is asked for with a confidence of .95: how often some
threshold below the minimum passes nevertheless, for precision and for recall. And by how much the best F1, as it stands
and cross-fitted between users or items, is above the F1 that its threshold has in truth.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from harness import Asked, Bools, Floats, Integers, Table, Tally, held, options, print_error, report
from labelled_rows import RATIOS, area_limits, areas, confusion, total
from scipy.special import expit

from pipeline.metrics.curves.decisions import FOLDS, cross_fitted, keeps_precision, keeps_recall
from pipeline.metrics.curves.operating_points import f_beta_of_counts, ratios_of_counts
from pipeline.metrics.curves.ordered_areas import ROW_AREAS
from pipeline.metrics.uncertainty.clusters import replicate_of_both
from pipeline.metrics.uncertainty.proportions import Confusion, intervals_of_clusters, intervals_of_rows

if TYPE_CHECKING:
    from collections.abc import Sequence


Effects: TypeAlias = "tuple[Floats, Floats]"  # on the logit of being positive, and on the score

REPLICATES = 64
THRESHOLDS = np.array([0.0, 0.5, 1.0])
WAYS = ("rows", "users", "items", "both")
SHIFT, INTERCEPT, TOGETHER = 1.5, -1.0, 0.5
ROWS_OF_TRUTH = 2_000_000
RECALL, TINY = 0.8, 1e-9
GRID = np.linspace(-2, 4, 40)  # thresholds to choose from


@dataclass(frozen=True)
class Design:
    """Users and items, of which a user meets a share, and the standard deviations of their effects."""

    users: int
    items: int
    share: float
    user: float
    item: float

    def __str__(self) -> str:
        effects = {(False, False): "neither", (True, False): "users", (False, True): "items", (True, True): "both"}
        differ = effects[self.user > 0, self.item > 0]
        return f"{self.users} × {self.items}, {self.share:.0%}, {differ} differ"


DESIGNS = (
    Design(40, 40, 0.5, 0.0, 0.0),
    Design(40, 40, 0.5, 0.7, 0.0),
    Design(40, 40, 0.5, 0.0, 0.7),
    Design(20, 20, 1.0, 0.7, 0.7),
    Design(40, 40, 0.5, 0.7, 0.7),
    Design(100, 30, 0.3, 0.5, 0.7),
    Design(30, 100, 0.3, 0.7, 0.5),
    Design(60, 60, 1.0, 0.7, 0.7),
    Design(200, 200, 0.1, 0.7, 0.7),
)


@dataclass(frozen=True)
class Data:
    """Rows: who, of what, whether it is true, and its score."""

    user: Integers
    item: Integers
    label: Bools
    score: Floats

    def clusterings(self, way: str) -> list[Integers]:
        """The replicates of every row by each clustering that intervals know."""
        user, item = self.user % REPLICATES, self.item % REPLICATES
        both = [user, item, np.asarray(replicate_of_both(user, item))]
        return {"rows": [], "users": [self.user], "items": [self.item], "both": both}[way]

    def counts(self, clusterings: Sequence[Integers], thresholds: Floats) -> list[Confusion]:
        """Counts by the replicates of each clustering at every threshold."""
        numbered = (np.unique(replicate, return_inverse=True)[1] for replicate in clusterings)
        return [confusion(thresholds, self.score, self.label, numbers) for numbers in numbered]


def _effects(size: int, deviation: float, rng: np.random.Generator) -> Effects:
    of_label, alone = deviation * rng.standard_normal((2, size))
    return of_label, (TOGETHER * of_label + np.sqrt(1 - TOGETHER**2) * alone) / 2


def draw(design: Design, rng: np.random.Generator) -> Data:
    """One data set; users and items come in random order, so that their replicates are random."""
    met = rng.random((design.users, design.items)) < design.share
    user, item = np.nonzero(met)
    return _rows(user, item, _effects(design.users, design.user, rng), _effects(design.items, design.item, rng), rng)


def _rows(user: Integers, item: Integers, users: Effects, items: Effects, rng: np.random.Generator) -> Data:
    label = rng.random(len(user)) < expit(INTERCEPT + users[0][user] + items[0][item])
    score = users[1][user] + items[1][item] + rng.standard_normal(len(user)) + SHIFT * label
    return Data(user, item, label, score)


def _ratios(counts: Confusion) -> tuple[Floats, Floats, Floats]:
    """Precision, recall and F1."""
    outcomes = [counts.tp, counts.fp, counts.fn]
    return *ratios_of_counts(outcomes), f_beta_of_counts(outcomes, 1.0)


def population(design: Design, seed: int) -> Data:
    """Rows of new users and items, which stand for the truth."""
    rng, numbers = np.random.default_rng([seed, 0]), np.arange(ROWS_OF_TRUTH)
    users, items = (_effects(ROWS_OF_TRUTH, deviation, rng) for deviation in (design.user, design.item))
    return _rows(numbers, numbers, users, items, rng)


def limits_of(data: Data, way: str) -> dict[str, tuple[Floats, Floats]]:
    """Intervals of a data set that know rows, users, items or both; of ratios one for each threshold."""
    clusterings = data.clusterings(way)
    of_areas = area_limits(areas(data.score, data.label, *clusterings), 0.95, clustered=bool(clusterings))
    if clusterings:
        counts, *crossed = data.counts(clusterings, THRESHOLDS)
        of_ratios = intervals_of_clusters(counts, 0.95, crossed=crossed)
    else:
        of_ratios = intervals_of_rows(total(confusion(THRESHOLDS, data.score, data.label)), None, 0.95)
    return of_areas | {name: of_ratios[name] for name in RATIOS}


def coverage(design: Design, datasets: int, seed: int) -> dict[str, dict[str, Floats]]:
    """The share of data sets whose interval holds the truth, by what the intervals know and by statistic."""
    rows = population(design, seed)
    ratios = _ratios(total(confusion(THRESHOLDS, rows.score, rows.label)))
    true = areas(rows.score, rows.label).area | dict(zip(RATIOS, ratios, strict=True))
    rng, tallies = np.random.default_rng([seed, 1]), {way: Tally() for way in WAYS}
    for _ in range(datasets):
        data = draw(design, rng)
        for way, tally in tallies.items():
            tally.add({name: held(limits, true[name]) for name, limits in limits_of(data, way).items()})
    return {way: tally.means() for way, tally in tallies.items()}


def measure(design: Design, asked: Asked) -> Table:
    """A row for each way."""
    for way, shares in coverage(design, asked.datasets, asked.seed).items():
        ratios = np.concatenate([shares[name] for name in RATIOS])
        yield str(design), way, *(float(shares[name][0]) for name in ROW_AREAS), ratios.mean(), ratios.min()


def choices(design: Design, asked: Asked) -> Table:
    """Wrong promises of precision and of recall, and the optimism of the best F1 as it stands and cross-fitted."""
    rows = population(design, asked.seed)
    precision, recall, f1 = _ratios(total(confusion(GRID, rows.score, rows.label)))
    strictest = int((recall >= RECALL).sum()) - 1
    too_low = precision <= precision[strictest], recall <= recall[strictest]
    minima = precision[strictest] + TINY, recall[strictest] + TINY
    rng, tally = np.random.default_rng([asked.seed, 2]), Tally()
    for _ in range(asked.datasets):
        data = draw(design, rng)
        for way in WAYS[1:]:
            counts, *crossed = data.counts(data.clusterings(way), GRID)
            keeps = _promised(counts, crossed, minima)
            wrong = [float((kept & low).any()) for kept, low in zip(keeps, too_low, strict=True)]
            tally.add({way: np.array([*wrong, *_optimism(counts, f1)])})
    for way, means in tally.means().items():
        yield str(design), way, *(f"{number:.4f}" for number in means)


def _promised(counts: Confusion, crossed: Sequence[Confusion], minima: tuple[float, float]) -> tuple[Bools, Bools]:
    """Whether each threshold keeps a minimum of precision, and one of recall."""

    def lower(name: str, level: float) -> Floats:
        return intervals_of_clusters(counts, level, names=[name], crossed=crossed)[name][0]

    retrieved = (counts.tp + counts.fp).sum(axis=0)
    return (
        keeps_precision(lambda level: lower("precision", level), retrieved, minima[0], 0.95),
        keeps_recall(lambda level: lower("recall", level), minima[1], 0.95),
    )


def _optimism(counts: Confusion, f1: Floats) -> tuple[float, float]:
    """The best F1 less that of its threshold in truth, in the sample and cross-fitted."""
    sides = (counts.tp, counts.fp, counts.fn)

    def of(sums: Sequence[Floats]) -> Floats:
        return np.nan_to_num(f_beta_of_counts(sums, 1.0))

    of_sample = of([side.sum(axis=0, keepdims=True) for side in sides])[0]
    best = int(np.argmax(of_sample))
    in_folds = [np.array([[side[fold::FOLDS].sum(axis=0) for fold in range(FOLDS)]]) for side in sides]
    fitted = of(cross_fitted(in_folds, lambda sums: np.argmax(of(sums), axis=1)))[0]
    return float(of_sample[best] - f1[best]), float(fitted - f1[best])


def main() -> None:
    """Print both tables."""
    asked = options(__doc__, 1000)
    print_error(asked.datasets)
    head = ("users × items", "intervals know")
    areas_and_ratios = ("average precision", "ROC AUC", "precision, recall, F1: mean", "lowest")
    report("coverage", (*head, *areas_and_ratios), measure, DESIGNS, asked)
    promises = ("wrong precision", "wrong recall", "best F1", "cross-fitted")
    report("choices", (*head, *promises), choices, DESIGNS[4:], asked)


if __name__ == "__main__":
    main()
