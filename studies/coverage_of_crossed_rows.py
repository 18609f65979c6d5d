"""Coverage of threshold_sweep where rows have two parents, such as users and items, which both differ.

    python studies/coverage_of_crossed_rows.py [--datasets 1000] [--seed 1]

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

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from scipy.special import expit

from pipeline.metrics.curves.decisions import FOLDS, cross_fitted, keeps_precision, keeps_recall
from pipeline.metrics.curves.operating_points import f_beta_of_counts, ratios_of_counts
from pipeline.metrics.curves.ordered_areas import ROW_AREAS, Estimates, OrderedAreas, Rows, Totals
from pipeline.metrics.uncertainty.clusters import Spread, area_interval, replicate_of_both
from pipeline.metrics.uncertainty.proportions import Confusion, intervals_of_clusters, intervals_of_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

Floats: TypeAlias = "NDArray[np.float64]"
Integers: TypeAlias = "NDArray[np.int64]"
Limits: TypeAlias = "dict[str, tuple[float, float]]"

REPLICATES = 64
THRESHOLDS = (0.0, 0.5, 1.0)
RATIOS = ("precision", "recall", "f1")
NAMES = (*ROW_AREAS, *(f"{name} {threshold:g}" for name in RATIOS for threshold in THRESHOLDS))
WAYS = ("rows", "users", "items", "both")
SHIFT, INTERCEPT, TOGETHER = 1.5, -1.0, 0.5
ROWS_OF_TRUTH = 2_000_000
RECALL, TINY = 0.8, 1e-9
GRID = np.linspace(-2, 4, 40)  # thresholds to choose from


@dataclass(frozen=True)
class Design:
    """Users and items.

    Attributes:
        users: Their number.
        items: Their number.
        share: Share of all items that a user meets.
        user: Standard deviation of the effects of users.
        item: Standard deviation of the effects of items.
    """

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
    label: NDArray[np.bool_]
    score: Floats

    def clusterings(self, way: str) -> list[Integers]:
        """The replicates of every row by each clustering that intervals know."""
        user, item = self.user % REPLICATES, self.item % REPLICATES
        both = [user, item, np.asarray(replicate_of_both(user, item))]
        return {"users": [self.user], "items": [self.item], "both": both}[way]


def _effects(size: int, deviation: float, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Effects on the logit of being positive and on the score."""
    of_label, alone = deviation * rng.standard_normal((2, size))
    return of_label, (TOGETHER * of_label + np.sqrt(1 - TOGETHER**2) * alone) / 2


def draw(design: Design, rng: np.random.Generator) -> Data:
    """One data set; users and items come in random order, so that their replicates are random."""
    met = rng.random((design.users, design.items)) < design.share
    user, item = np.nonzero(met)
    return _rows(user, item, _effects(design.users, design.user, rng), _effects(design.items, design.item, rng), rng)


def _rows(
    user: Integers,
    item: Integers,
    of_users: tuple[Floats, Floats],
    of_items: tuple[Floats, Floats],
    rng: np.random.Generator,
) -> Data:
    chance = expit(INTERCEPT + of_users[0][user] + of_items[0][item])
    label = rng.random(len(user)) < chance
    score = of_users[1][user] + of_items[1][item] + rng.standard_normal(len(user)) + SHIFT * label
    return Data(user, item, label, score)


def _ratios(counts: Confusion) -> tuple[Floats, Floats, Floats]:
    """Precision, recall and F1."""
    outcomes = [counts.tp, counts.fp, counts.fn]
    return *ratios_of_counts(outcomes), f_beta_of_counts(outcomes, 1.0)


def truth(design: Design, rng: np.random.Generator) -> tuple[dict[str, float], Confusion]:
    """The statistics of rows of new users and items, and what thresholds retrieve of them."""
    numbers = np.arange(ROWS_OF_TRUTH)
    users, items = (_effects(ROWS_OF_TRUTH, deviation, rng) for deviation in (design.user, design.item))
    data = _rows(numbers, numbers, users, items, rng)
    collected = _areas(data, [])
    values = {name: float(collected.area[name][0]) for name in ROW_AREAS}
    counts = confusion(data, [np.zeros(ROWS_OF_TRUTH, dtype=np.int64)], np.array(THRESHOLDS))[0]
    ratios = _ratios(counts)
    for name, at_thresholds in zip(RATIOS, ratios, strict=True):
        values |= {f"{name} {t:g}": float(at_thresholds[0, place]) for place, t in enumerate(THRESHOLDS)}
    return values, confusion(data, [np.zeros(ROWS_OF_TRUTH, dtype=np.int64)], GRID)[0]


def confusion(data: Data, clusterings: Sequence[Integers], thresholds: Floats) -> list[Confusion]:
    """Counts by the replicates of each clustering at every threshold."""
    counted = []
    for replicate in clusterings:
        _, numbers = np.unique(replicate, return_inverse=True)
        width = len(thresholds) + 1
        bins = numbers * width + np.searchsorted(thresholds, data.score, side="right")
        tables = []
        for rows in (data.label, ~data.label):
            table = np.bincount(bins[rows], minlength=(int(numbers.max()) + 1) * width).reshape(-1, width)
            tables.append((table[:, :0:-1].cumsum(axis=1)[:, ::-1], table.sum(axis=1)[:, None]))
        (tp, positives), (fp, negatives) = tables
        counted.append(Confusion(tp, fp, positives - tp, negatives - fp))
    return counted


def _areas(data: Data, clusterings: Sequence[Integers]) -> Estimates:
    order = np.argsort(data.score)
    positive = data.label[order].astype(np.float64)
    sizes = np.array([positive.sum()]), np.array([len(positive) - positive.sum()])
    labels: dict[str, Any] = dict(
        zip(("replicate", "second_replicate"), (numbers[order] for numbers in clusterings), strict=False)
    )
    replicates = [int(numbers.max()) + 1 for numbers in clusterings[:2]]
    collected = OrderedAreas(Totals(*sizes, *sizes), *replicates)
    collected.add(Rows(np.zeros(len(order), dtype=np.int64), data.score[order], positive, 1 - positive, **labels))
    return collected.finish(random_sizes=True)


def limits_of(data: Data, way: str) -> Limits:
    """Intervals of a data set that know rows, users, items or both."""
    clusterings = [] if way == "rows" else data.clusterings(way)
    estimates, limits = _areas(data, clusterings), {}
    for name in ROW_AREAS:
        spread = Spread(estimates.se[name] ** 2, estimates.degrees[name], estimates.skewed[name])
        lower, upper = area_interval(estimates.area[name], spread, 0.95, clustered=bool(clusterings))
        limits[name] = (float(lower[0]), float(upper[0]))
    thresholds = np.array(THRESHOLDS)
    if clusterings:
        counts, *crossed = confusion(data, clusterings, thresholds)
        of_ratios = intervals_of_clusters(counts, 0.95, crossed=crossed)
    else:
        counts = confusion(data, [np.zeros(len(data.label), dtype=np.int64)], thresholds)[0]
        rows = Confusion(counts.tp[0], counts.fp[0], counts.fn[0], counts.tn[0])
        of_ratios = intervals_of_rows(rows, None, 0.95)
    for name in RATIOS:
        lower, upper = of_ratios[name]
        limits |= {f"{name} {t:g}": (lower[place], upper[place]) for place, t in enumerate(THRESHOLDS)}
    return limits


def coverage(design: Design, datasets: int, seed: int) -> dict[str, dict[str, float]]:
    """The share of data sets whose interval holds the truth, by what the intervals know and by statistic."""
    true, _ = truth(design, np.random.default_rng([seed, 0]))
    rng = np.random.default_rng([seed, 1])
    held: dict[str, dict[str, list[bool]]] = {way: {name: [] for name in NAMES} for way in WAYS}
    for _ in range(datasets):
        data = draw(design, rng)
        for way in WAYS:
            for name, (lower, upper) in limits_of(data, way).items():
                held[way][name].append(bool(lower <= true[name] <= upper))
    return {way: {name: float(np.mean(values)) for name, values in of_way.items()} for way, of_way in held.items()}


def choices(design: Design, datasets: int, seed: int) -> dict[str, tuple[float, ...]]:
    """Wrong promises of precision and of recall, and the optimism of the best F1 as it stands and cross-fitted."""
    _, true = truth(design, np.random.default_rng([seed, 0]))
    precision, recall, f1 = (ratio[0] for ratio in _ratios(true))
    strictest = int((recall >= RECALL).sum()) - 1
    too_low = precision <= precision[strictest], recall <= recall[strictest]
    minima = precision[strictest] + TINY, recall[strictest] + TINY
    rng = np.random.default_rng([seed, 2])
    measured: dict[str, list[tuple[float, ...]]] = {way: [] for way in WAYS[1:]}
    for _ in range(datasets):
        data = draw(design, rng)
        for way, numbers in measured.items():
            counts, *crossed = confusion(data, data.clusterings(way), GRID)
            keeps = _promised(counts, crossed, minima)
            wrong = (float((kept & low).any()) for kept, low in zip(keeps, too_low, strict=True))
            numbers.append((*wrong, *_optimism(counts, f1)))
    return {way: tuple(map(float, np.mean(numbers, axis=0))) for way, numbers in measured.items()}


def _promised(
    counts: Confusion, crossed: Sequence[Confusion], minima: tuple[float, float]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Whether each threshold keeps a minimum of precision, and one of recall."""

    def lower(name: str, level: float) -> Floats:
        return intervals_of_clusters(counts, level, names=[name], crossed=crossed)[name][0]

    retrieved = (counts.tp + counts.fp).sum(axis=0).astype(np.float64)
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
    pooled = cross_fitted(in_folds, lambda sums: np.argmax(of(sums), axis=1))
    fitted = of(pooled)[0]
    return float(of_sample[best] - f1[best]), float(fitted - f1[best])


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(f"Monte Carlo error {np.sqrt(0.0475 / options.datasets):.3f}")
    print("| users × items | intervals know | average precision | ROC AUC | precision, recall, F1: mean | lowest |")
    print("|---|---|---|---|---|---|")
    for design in DESIGNS:
        for way, shares in coverage(design, options.datasets, options.seed).items():
            ratios = [share for name, share in shares.items() if name not in ROW_AREAS]
            numbers = (*(shares[name] for name in ROW_AREAS), np.mean(ratios), min(ratios))
            print(f"| {design} | {way} | " + " | ".join(f"{number:.3f}" for number in numbers) + " |", flush=True)
    print(
        "\n| users × items | intervals know | wrong precision | wrong recall | best F1 | cross-fitted |\n"
        + "|---" * 6
        + "|"
    )
    for design in DESIGNS[4:]:
        for way, numbers in choices(design, options.datasets, options.seed).items():
            print(f"| {design} | {way} | " + " | ".join(f"{number:.4f}" for number in numbers) + " |", flush=True)


if __name__ == "__main__":
    main()
