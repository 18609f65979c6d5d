"""Simulated rows with scores and labels: their counts at thresholds and their areas, as stages have them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pipeline.metrics.curves.ordered_areas import ROW_AREAS, Estimates, OrderedAreas, Rows, Totals
from pipeline.metrics.uncertainty.clusters import Spread, area_interval
from pipeline.metrics.uncertainty.proportions import Confusion

if TYPE_CHECKING:
    from harness import Bools, Floats, Integers

Limits = tuple[float, float]
RATIOS = ("precision", "recall", "f1")


def nodes(number: int) -> tuple[Floats, Floats]:
    """Nodes of a standard normal effect, and their weights, which add up to 1."""
    values, weights = np.polynomial.hermite_e.hermegauss(number)
    return values, weights / weights.sum()


def lognormal(rng: np.random.Generator, variation: float, shape: int | tuple[int, ...]) -> Floats:
    """Numbers with mean 1 and a coefficient of variation."""
    square = np.log1p(variation**2)
    return np.asarray(rng.lognormal(-square / 2, np.sqrt(square), shape))


def autoregression(noise: Floats, correlation: float) -> Floats:
    """Levels with the standard deviation 1, of which neighbours are correlated, from independent ones."""
    level = noise.copy()
    for step in range(1, len(level)):
        level[step] = correlation * level[step - 1] + np.sqrt(1 - correlation**2) * level[step]
    return level


def confusion(
    thresholds: Floats, score: Floats, label: Bools, cluster: Integers | None = None, weight: Floats | None = None
) -> Confusion:
    """Rows, or sums of their weights, of every cluster, or of all in one, at every threshold, shape (G, T)."""
    cluster = np.zeros(len(score), dtype=np.int64) if cluster is None else cluster
    width, clusters = len(thresholds) + 1, int(cluster.max()) + 1
    cell = cluster * width + np.searchsorted(thresholds, score, side="right")
    sides = []
    for rows in (label, ~label):
        table = np.bincount(cell[rows], None if weight is None else weight[rows], clusters * width)
        above = table.reshape(clusters, width)[:, ::-1].cumsum(axis=1)[:, ::-1].astype(np.float64)
        sides.append((above[:, 1:], above[:, :1] - above[:, 1:]))
    (tp, fn), (fp, tn) = sides
    return Confusion(tp, fp, fn, tn)


def total(counts: Confusion) -> Confusion:
    """Counts of all clusters together, shape (T,)."""
    return Confusion(*(side.sum(axis=0) for side in (counts.tp, counts.fp, counts.fn, counts.tn)))


def areas(score: Floats, label: Bools, *clusters: Integers, random_sizes: bool = True) -> Estimates:
    """Average precision and ROC AUC of rows that are independent, or that have one or two parents."""
    order = np.argsort(score)
    positive = label[order].astype(np.float64)
    sizes = np.array([positive.sum()]), np.array([len(positive) - positive.sum()])
    names = ("replicate", "second_replicate")
    parents: dict[str, Any] = dict(zip(names, (numbers[order] for numbers in clusters), strict=False))
    collected = OrderedAreas(Totals(*sizes, *sizes), *(int(numbers.max()) + 1 for numbers in clusters[:2]))
    collected.add(Rows(np.zeros(len(order), dtype=np.int64), score[order], positive, 1 - positive, **parents))
    return collected.finish(random_sizes=random_sizes)


def area_limits(estimates: Estimates, confidence: float, *, clustered: bool) -> dict[str, tuple[Floats, Floats]]:
    """The limits of both areas, as stages have them."""
    spreads = {
        name: Spread(estimates.se[name] ** 2, estimates.degrees[name], estimates.skewed[name]) for name in ROW_AREAS
    }
    return {
        name: area_interval(estimates.area[name], spread, confidence, clustered=clustered)
        for name, spread in spreads.items()
    }
