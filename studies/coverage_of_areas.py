"""Measured coverage of the intervals of areas, on simulated scores whose true areas are known.

    python studies/coverage_of_areas.py [--datasets 4000] [--confidence 0.95] [--seed 1]

Scores of false rows are N(0, 1), those of true rows N(shift, 1). Rows are independent, with as many positives and
negatives in every data set or with random labels; or they come in clusters of 20, whose common effects shift the scores
and the share of positives, and go together. `pr_auc` has 40 thresholds, `pr_auc, all` every score.

`coverage` is that of the stage's interval, `below` and `above` are the shares of data sets whose interval lies below or
above the truth, `width` is the mean width. `plain` is the coverage of area ± 1.96 standard errors, `true points` that
of area ± 1.96 pr_auc_se_true_points. `bias`, `SD` and `SE` are of the area: mean error, standard deviation, and root
mean square of the standard errors.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from harness import Asked, Bools, Floats, Table, options, report
from labelled_rows import nodes
from scipy.special import expit, ndtr

from pipeline.metrics.curves.ordered_areas import OrderedAreas, Rows, Totals
from pipeline.metrics.curves.trapezoidal_area import Retrieved, replicate_shifts, true_point_areas
from pipeline.metrics.uncertainty.clusters import Spread, area_interval
from pipeline.metrics.uncertainty.jackknife import t_quantile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness import Integers

Estimated: TypeAlias = "dict[str, Floats]"

ROWS_AT_ONCE = 1_000_000
THRESHOLDS = 40
BEYOND = 2.5
CLUSTER_SIZE = 20
CLUSTER_SHIFT = 1.5
ALIKE = 0.25  # share of the variance of scores that lies between clusters
INTERCEPT = -2.2  # of the logit of a cluster's share of positives, whose standard deviation is 1
TOGETHER = 0.5  # correlation of both effects of a cluster


@dataclass(frozen=True)
class Setting:
    """What is simulated: numbers of rows, or of clusters."""

    positives: int = 0
    negatives: int = 0
    shift: float = CLUSTER_SHIFT
    random: bool = False
    clusters: int = 0

    @property
    def size(self) -> int:
        """Rows of a data set."""
        return self.positives + self.negatives + self.clusters * CLUSTER_SIZE

    @property
    def thresholds(self) -> Floats:
        """Rising thresholds, shape (K,)."""
        return np.linspace(-BEYOND, self.shift + BEYOND, THRESHOLDS)

    def __str__(self) -> str:
        if self.clusters:
            return f"{self.clusters} clusters of {CLUSTER_SIZE} rows, shift {self.shift:g}"
        sizes = "on average, random labels" if self.random else "in every data set"
        return f"{self.positives} positives and {self.negatives} negatives {sizes}, shift {self.shift:g}"


FIXED = ((50, 500, 1.5), (200, 2000, 1.5), (50, 500, 3), (500, 500, 1), (100, 100, 1), (50, 5000, 2), (20, 200, 1.5))
RANDOM = ((50, 500, 1.5), (200, 2000, 1.5), (50, 500, 3), (100, 100, 1))
FEW = (
    *((5, 200, 1.5), (10, 1000, 1.5), (10, 1000, 2.5), (15, 300, 1.5), (500, 15, 1.5)),
    *((20, 1000, 1.5), (20, 1000, 2.5), (30, 1000, 1), (40, 3000, 1.5), (20, 400, 1), (20, 20, 2.5)),
    *((50, 10_000, 1.5), (500, 20, 1.5), (500, 20, 2.5), (500, 50, 2.5)),
)
SETTINGS = (
    *(Setting(p, n, s) for p, n, s in FIXED),
    *(Setting(p, n, s, random=True) for p, n, s in RANDOM),
    *(Setting(clusters=clusters) for clusters in (30, 100, 300)),
    *(Setting(p, n, s) for p, n, s in FEW),
)


def simulate(setting: Setting, datasets: int, rng: np.random.Generator) -> tuple[Floats, Bools]:
    """Scores and labels, shape (datasets, rows); rows of a cluster stand together."""
    shape = (datasets, setting.size)
    if setting.clusters:
        u, independent = rng.standard_normal((2, datasets, setting.clusters, 1))
        share = expit(INTERCEPT + TOGETHER * u + np.sqrt(1 - TOGETHER**2) * independent)
        label = (rng.random((datasets, setting.clusters, CLUSTER_SIZE)) < share).reshape(shape)
        noise = np.sqrt(1 - ALIKE) * rng.standard_normal((datasets, setting.clusters, CLUSTER_SIZE))
        return (np.sqrt(ALIKE) * u + noise).reshape(shape) + setting.shift * label, label
    fixed = np.broadcast_to(np.arange(setting.size) < setting.positives, shape)
    label = rng.random(shape) < setting.positives / setting.size if setting.random else fixed
    return rng.standard_normal(shape) + setting.shift * label, label


def true_rates(setting: Setting, at: Floats) -> tuple[float, Floats, Floats]:
    """Share of positives, and shares of positives and of negatives at or above each score."""
    if not setting.clusters:
        return setting.positives / setting.size, ndtr(setting.shift - at), ndtr(-at)
    values, weights = nodes(100)
    u, independent = np.meshgrid(values, values, indexing="ij")
    share = expit(INTERCEPT + TOGETHER * u + np.sqrt(1 - TOGETHER**2) * independent)
    positive = (np.outer(weights, weights) * share).sum(axis=1)
    negative = weights - positive
    z = (at[:, None] - np.sqrt(ALIKE) * values) / np.sqrt(1 - ALIKE)
    true, false = ndtr(setting.shift / np.sqrt(1 - ALIKE) - z) @ positive, ndtr(-z) @ negative
    return float(positive.sum()), true / positive.sum(), false / negative.sum()


def truth(setting: Setting) -> dict[str, float]:
    """True areas: sums over a fine grid of scores, and the trapezoids of `pr_auc` at its thresholds."""

    def curve(at: Floats) -> tuple[Floats, Floats, Floats]:
        share, recall, fpr = true_rates(setting, at)
        return share * recall / (share * recall + (1 - share) * fpr), recall, fpr

    precision, recall, fpr = curve(np.linspace(-10, setting.shift + 10, 200_001))
    average = float(np.sum(-np.diff(recall) * (precision[1:] + precision[:-1]) / 2))
    roc = float(np.sum(-np.diff(fpr) * (recall[1:] + recall[:-1]) / 2))
    precision, recall, _ = (ratio[::-1] for ratio in curve(setting.thresholds))
    pr = float(precision[0] * recall[0] + np.sum(np.diff(recall) * (precision[1:] + precision[:-1]) / 2))
    return {"average_precision": average, "pr_auc": pr, "pr_auc, all": average, "roc_auc": roc}


def estimated(setting: Setting, score: Floats, label: Bools) -> Iterator[tuple[str, Estimated]]:
    """Areas, standard errors and degrees of freedom of every data set, by name."""
    datasets, size = score.shape
    order = np.argsort(score, axis=1)
    hit = np.take_along_axis(label, order, axis=1)
    replicate = (order // CLUSTER_SIZE).ravel() if setting.clusters else None
    positive = hit.astype(np.float64)
    positives, negatives = positive.sum(axis=1), size - positive.sum(axis=1)
    areas = OrderedAreas(Totals(positives, negatives, positives, negatives), setting.clusters)
    group, rising = np.repeat(np.arange(datasets), size), np.take_along_axis(score, order, axis=1).ravel()
    areas.add(Rows(group, rising, positive.ravel(), 1 - positive.ravel(), replicate=replicate))
    estimates = areas.finish(random_sizes=setting.random)
    for name in estimates.area:
        yield name, {key: getattr(estimates, key)[name] for key in ("area", "se", "degrees", "skewed")}
    of_thresholds = _true_points(_retrieved(setting, score, label, 1), setting)
    if not setting.clusters:
        tp = np.cumsum(hit[:, ::-1], axis=1)
        every = Retrieved(tp, np.arange(1, size + 1) - tp, positives, negatives)
        yield "pr_auc, all", _true_points(every, setting)
        yield "pr_auc", of_thresholds
        return
    clusters = _retrieved(setting, score, label, setting.clusters)
    rows_of_datasets = np.split(np.arange(len(clusters.tp)), datasets)
    of_datasets = [Retrieved(*(values[rows] for values in vars(clusters).values())) for rows in rows_of_datasets]
    spreads = [replicate_shifts(of_dataset)[0].spread for of_dataset in of_datasets]
    se = np.sqrt([spread.variance for spread in spreads])
    degrees, skewed = (np.array([getattr(spread, name) for spread in spreads]) for name in ("degrees", "skewed"))
    yield "pr_auc", of_thresholds | {"se": se, "degrees": degrees, "skewed": skewed}


def _true_points(retrieved: Retrieved, setting: Setting) -> Estimated:
    areas = true_point_areas(retrieved, random_sizes=setting.random)
    return {"area": areas.auc, "se": areas.se, "degrees": areas.degrees, "true_points": areas.se_true_points}


def _retrieved(setting: Setting, score: Floats, label: Bools, n_parts: int) -> Retrieved:
    """Counts at falling thresholds of equal parts of every data set, shape (datasets × parts, K)."""
    rows = len(score) * n_parts
    cell = THRESHOLDS - np.searchsorted(setting.thresholds, score, side="right")
    cell = cell + (THRESHOLDS + 1) * np.repeat(np.arange(rows), score.size // rows).reshape(score.shape)

    def counts(of: Bools) -> Integers:
        binned = np.bincount(cell[of], minlength=rows * (THRESHOLDS + 1))
        return np.asarray(np.cumsum(binned.reshape(rows, THRESHOLDS + 1), axis=1))

    tp, fp = counts(label), counts(~label)
    return Retrieved(tp[:, :-1], fp[:, :-1], tp[:, -1], fp[:, -1])


def measure(setting: Setting, asked: Asked) -> Table:
    """One row for each area."""
    rng = np.random.default_rng(asked.seed)
    collected: dict[str, defaultdict[str, list[Floats]]] = defaultdict(lambda: defaultdict(list))
    at_once = max(1, ROWS_AT_ONCE // setting.size)
    for start in range(0, asked.datasets, at_once):
        for name, arrays in estimated(setting, *simulate(setting, min(at_once, asked.datasets - start), rng)):
            for key, values in arrays.items():
                collected[name][key].append(values)
    estimates = {
        name: {key: np.concatenate(values) for key, values in arrays.items()} for name, arrays in collected.items()
    }
    for name, true in truth(setting).items():
        if name in estimates:  # the standard error of `pr_auc` is at least that of average precision
            is_raised = name.startswith("pr_auc") and not setting.clusters
            least = estimates["average_precision"]["se"] if is_raised else 0.0
            numbers = _numbers(estimates[name], true, asked.confidence, least, clustered=bool(setting.clusters))
            yield str(setting), name, *(f"{number:.4f}" for number in numbers)


def _numbers(
    arrays: Estimated, true: float, confidence: float, least: Floats | float, *, clustered: bool
) -> Iterator[float]:
    area, se = arrays["area"], arrays["se"]
    spread = Spread(np.maximum(se, least) ** 2, arrays["degrees"], arrays.get("skewed", np.zeros_like(se)))
    lower, upper = area_interval(area, spread, confidence, clustered=clustered)
    normal = t_quantile(confidence, 1e9)
    yield from (true, float(area.mean() - true), float(area.std()), float(np.sqrt(np.mean(se**2))))
    yield float(np.mean((lower <= true) & (true <= upper)))
    yield from (float(np.mean(upper < true)), float(np.mean(lower > true)), float(np.nanmean(upper - lower)))
    yield float(np.mean(np.abs(area - true) <= normal * se))
    if "true_points" in arrays:
        yield float(np.mean(np.abs(area - true) <= normal * arrays["true_points"]))


def main() -> None:
    """Print the table."""
    asked = options(__doc__, 4000, confidence=0.95)
    numbers = ("true", "bias", "SD", "SE", "coverage", "below", "above", "width", "plain", "true points")
    report(f"{asked.datasets} data sets", ("rows", "area", *numbers), measure, SETTINGS, asked)


if __name__ == "__main__":
    main()
