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

import argparse
import time
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from scipy.special import expit, ndtr

from pipeline.metrics.curves.ordered_areas import OrderedAreas, Rows, Totals
from pipeline.metrics.curves.trapezoidal_area import Retrieved, replicate_shifts, true_point_areas
from pipeline.metrics.uncertainty.clusters import Spread, area_interval
from pipeline.metrics.uncertainty.jackknife import t_quantile

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

Floats: TypeAlias = "NDArray[np.float64]"
Estimated: TypeAlias = "dict[str, NDArray[np.float64]]"

ROWS_AT_ONCE = 1_000_000
THRESHOLDS = 40
BEYOND = 2.5
CLUSTER_SIZE = 20
CLUSTER_SHIFT = 1.5
ALIKE = 0.25  # share of the variance of scores that lies between clusters
INTERCEPT = -2.2  # of the logit of a cluster's share of positives, whose standard deviation is 1
TOGETHER = 0.5  # correlation of both effects of a cluster
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(100)


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


SETTINGS = (
    *(Setting(p, n, s) for p, n, s in ((50, 500, 1.5), (200, 2000, 1.5), (50, 500, 3), (500, 500, 1), (100, 100, 1))),
    *(Setting(p, n, s) for p, n, s in ((50, 5000, 2), (20, 200, 1.5))),
    *(Setting(p, n, s, random=True) for p, n, s in ((50, 500, 1.5), (200, 2000, 1.5), (50, 500, 3), (100, 100, 1))),
    *(Setting(clusters=clusters) for clusters in (30, 100, 300)),
    *(
        Setting(p, n, s)
        for p, n, s in ((5, 200, 1.5), (10, 1000, 1.5), (10, 1000, 2.5), (15, 300, 1.5), (500, 15, 1.5))
    ),
    *(Setting(p, n, s) for p, n, s in ((20, 1000, 1.5), (20, 1000, 2.5), (30, 1000, 1), (40, 3000, 1.5))),
    *(Setting(20, n, s) for n, s in ((400, 1), (20, 2.5))),
    *(Setting(p, n, s) for p, n, s in ((50, 10_000, 1.5), (500, 20, 1.5), (500, 20, 2.5), (500, 50, 2.5))),
)


def simulate(setting: Setting, datasets: int, rng: np.random.Generator) -> tuple[Floats, NDArray[np.bool_]]:
    """Scores and labels, shape (datasets, rows); rows of a cluster stand together."""
    shape = (datasets, setting.size)
    if setting.clusters:
        u, independent = rng.standard_normal((2, datasets, setting.clusters, 1))
        share = expit(INTERCEPT + TOGETHER * u + np.sqrt(1 - TOGETHER**2) * independent)
        label = (rng.random((datasets, setting.clusters, CLUSTER_SIZE)) < share).reshape(shape)
        noise = np.sqrt(1 - ALIKE) * rng.standard_normal((datasets, setting.clusters, CLUSTER_SIZE))
        return (np.sqrt(ALIKE) * u + noise).reshape(shape) + setting.shift * label, label
    share = setting.positives / setting.size
    fixed = np.broadcast_to(np.arange(setting.size) < setting.positives, shape)
    label = rng.random(shape) < share if setting.random else fixed
    return rng.standard_normal(shape) + setting.shift * label, label


def true_rates(setting: Setting, at: Floats) -> tuple[float, Floats, Floats]:
    """Share of positives, and shares of positives and of negatives at or above each score."""
    if not setting.clusters:
        return setting.positives / setting.size, ndtr(setting.shift - at), ndtr(-at)
    u, independent = np.meshgrid(_NODES, _NODES, indexing="ij")
    weight = np.outer(_WEIGHTS, _WEIGHTS) / _WEIGHTS.sum() ** 2
    positive = (weight * expit(INTERCEPT + TOGETHER * u + np.sqrt(1 - TOGETHER**2) * independent)).sum(axis=1)
    negative = weight.sum(axis=1) - positive
    z = (at[:, None] - np.sqrt(ALIKE) * _NODES) / np.sqrt(1 - ALIKE)
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
    precision, recall, _ = (each[::-1] for each in curve(setting.thresholds))
    pr = float(precision[0] * recall[0] + np.sum(np.diff(recall) * (precision[1:] + precision[:-1]) / 2))
    return {"average_precision": average, "pr_auc": pr, "pr_auc, all": average, "roc_auc": roc}


def estimated(setting: Setting, score: Floats, label: NDArray[np.bool_]) -> Iterator[tuple[str, Estimated]]:
    """Areas, standard errors and degrees of freedom of every data set, by name."""
    datasets, size = score.shape
    order = np.argsort(score, axis=1)
    hit = np.take_along_axis(label, order, axis=1)
    replicate = (order // CLUSTER_SIZE).ravel() if setting.clusters else None
    positive = hit.astype(np.float64)
    positives, negatives = positive.sum(axis=1), size - positive.sum(axis=1)
    totals = Totals(positives, negatives, positives, negatives)
    areas = OrderedAreas(totals, setting.clusters)
    group, rising = np.repeat(np.arange(datasets), size), np.take_along_axis(score, order, axis=1).ravel()
    areas.add(Rows(group, rising, positive.ravel(), 1 - positive.ravel(), replicate=replicate))
    estimates = areas.finish(random_sizes=setting.random)
    for name in estimates.area:
        yield name, {key: getattr(estimates, key)[name] for key in ("area", "se", "degrees", "skewed")}
    if not setting.clusters:
        tp = np.cumsum(hit[:, ::-1], axis=1)
        every = Retrieved(tp, np.arange(1, size + 1) - tp, positives, negatives)
        yield "pr_auc, all", _true_points(every, setting)
        yield "pr_auc", _true_points(_retrieved(setting, score, label, 1), setting)
    else:
        yield "pr_auc", _true_points_of_clusters(setting, score, label)


def _true_points(retrieved: Retrieved, setting: Setting) -> Estimated:
    areas = true_point_areas(retrieved, random_sizes=setting.random)
    return {"area": areas.auc, "se": areas.se, "degrees": areas.degrees, "true_points": areas.se_true_points}


def _true_points_of_clusters(setting: Setting, score: Floats, label: NDArray[np.bool_]) -> Estimated:
    totals = _true_points(_retrieved(setting, score, label, 1), setting)
    clusters = _retrieved(setting, score, label, setting.clusters)
    rows_of_datasets = np.split(np.arange(len(clusters.tp)), len(score))
    spreads = [
        replicate_shifts(Retrieved(*(v[rows] for v in vars(clusters).values())))[0].spread for rows in rows_of_datasets
    ]
    se = np.sqrt([spread.variance for spread in spreads])
    degrees, skewed = (np.array([getattr(spread, name) for spread in spreads]) for name in ("degrees", "skewed"))
    return totals | {"se": se, "degrees": degrees, "skewed": skewed}


def _retrieved(setting: Setting, score: Floats, label: NDArray[np.bool_], n_parts: int) -> Retrieved:
    """Counts at falling thresholds of equal parts of every data set, shape (datasets × parts, K)."""
    rows = len(score) * n_parts
    cell = THRESHOLDS - np.searchsorted(setting.thresholds, score, side="right")
    cell = cell + (THRESHOLDS + 1) * np.repeat(np.arange(rows), score.size // rows).reshape(score.shape)

    def counts(of: NDArray[np.bool_]) -> NDArray[np.int64]:
        binned = np.bincount(cell[of], minlength=rows * (THRESHOLDS + 1))
        return np.asarray(np.cumsum(binned.reshape(rows, THRESHOLDS + 1), axis=1))

    tp, fp = counts(label), counts(~label)
    return Retrieved(tp[:, :-1], fp[:, :-1], tp[:, -1], fp[:, -1])


def measure(setting: Setting, datasets: int, confidence: float, seed: int) -> None:
    """Simulate, and print one line per area."""
    rng, started = np.random.default_rng(seed), time.perf_counter()
    collected: dict[str, defaultdict[str, list[Floats]]] = defaultdict(lambda: defaultdict(list))
    at_once = max(1, ROWS_AT_ONCE // setting.size)
    for start in range(0, datasets, at_once):
        for name, arrays in estimated(setting, *simulate(setting, min(at_once, datasets - start), rng)):
            for key, values in arrays.items():
                collected[name][key].append(values)
    print(f"\n{setting}   ({datasets} data sets, {time.perf_counter() - started:.0f} s)")
    titles = ("true", "bias", "SD", "SE", "coverage", "below", "above", "width", "plain", "true points")
    print(f"  {'':<18}" + "".join(f"{title:>{max(len(title) + 2, 9)}}" for title in titles))
    for name, true in truth(setting).items():
        if name in collected:
            arrays = {key: np.concatenate(values) for key, values in collected[name].items()}
            numbers = _line(
                arrays, true, confidence, _least(setting, name, collected), clustered=bool(setting.clusters)
            )
            cells = (f"{number:>{max(len(title) + 2, 9)}.4f}" for number, title in zip(numbers, titles, strict=False))
            print(f"  {name:<18}" + "".join(cells))


def _least(setting: Setting, name: str, collected: Mapping[str, Mapping[str, list[Floats]]]) -> Floats | float:
    """What the standard error in the limits of an area is at least: of `pr_auc` that of average precision."""
    is_raised = name.startswith("pr_auc") and not setting.clusters
    return np.concatenate(collected["average_precision"]["se"]) if is_raised else 0.0


def _line(
    arrays: Estimated, true: float, confidence: float, least: Floats | float = 0.0, *, clustered: bool
) -> Iterator[float]:
    area, se = arrays["area"], arrays["se"]
    spread = Spread(np.maximum(se, least) ** 2, arrays["degrees"], arrays.get("skewed", np.zeros_like(se)))
    lower, upper = area_interval(area, spread, confidence, clustered=clustered)
    normal = t_quantile(confidence, 1e9)
    numbers = [true, area.mean() - true, area.std(), np.sqrt(np.mean(se**2))]
    numbers += [np.mean((lower <= true) & (true <= upper)), np.mean(upper < true), np.mean(lower > true)]
    numbers += [np.nanmean(upper - lower), np.mean(np.abs(area - true) <= normal * se)]
    if "true_points" in arrays:
        numbers.append(np.mean(np.abs(area - true) <= normal * arrays["true_points"]))
    yield from (float(number) for number in numbers)


def main() -> None:
    """Parse the arguments and print everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", type=int, default=4000)
    parser.add_argument("--confidence", type=float, default=0.95)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    for setting in SETTINGS:
        measure(setting, options.datasets, options.confidence, options.seed)


if __name__ == "__main__":
    main()
