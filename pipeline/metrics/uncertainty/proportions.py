"""Intervals of precision, recall, F1 and the false positive rate at every threshold, for labelled counts.

Each is a proportion of counts: precision tp of tp + fp, recall tp of tp + fn, the false positive rate fp of fp + tn,
and F1 = 2 J / (1 + J) of J, tp of tp + fp + fn (Jaccard). Where rows are independent, the first count is binomial given
the sum. Weights and clusters make it vary more: the counts are divided by the factor, the design effect (Kish 1965),
before binomial limits are taken of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from pipeline.metrics.uncertainty.clusters import (
    effective_number,
    implied_skewness,
    spread_of_shifts,
    stretched,
    stretches,
)
from pipeline.metrics.uncertainty.jackknife import binomial_limits, leave_one_out, tail

if TYPE_CHECKING:
    from numpy.typing import NDArray

Floats: TypeAlias = "NDArray[np.float64]"
Limits: TypeAlias = "tuple[Floats, Floats]"

RATIOS = ("precision", "recall", "f1", "fpr")
_MANY_DEGREES = 1e6


@dataclass(frozen=True)
class Confusion:
    """Counts, or sums of weights, at thresholds; arrays of one shape.

    Attributes:
        tp: True positives.
        fp: False positives.
        fn: False negatives.
        tn: True negatives.
    """

    tp: NDArray[Any]
    fp: NDArray[Any]
    fn: NDArray[Any]
    tn: NDArray[Any]

    def proportions(self) -> dict[str, tuple[NDArray[Any], NDArray[Any]]]:
        """Hits and misses of each proportion; that of F1 is J."""
        return {
            "precision": (self.tp, self.fp),
            "recall": (self.tp, self.fn),
            "f1": (self.tp, self.fp + self.fn),
            "fpr": (self.fp, self.tn),
        }


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def intervals_of_rows(counts: Confusion, squares: Confusion | None, confidence: float) -> dict[str, Limits]:
    """Limits of each ratio where rows are independent.

    Args:
        counts: Counts, or sums of weights.
        squares: Sums of squared weights; None: every weight is 1.
        confidence: Such as 0.95.

    Returns:
        Lower and upper limits by ratio; nan where the ratio is undefined.
    """
    squares_by_ratio = {} if squares is None else squares.proportions()
    limits = {}
    for name, (hits, misses) in counts.proportions().items():
        total = np.asarray(hits + misses, dtype=np.float64)
        size = total if squares is None else _effective_size(hits, misses, *squares_by_ratio[name])
        share = hits / total
        limits[name] = _limits(name, share, size, tail(confidence, _MANY_DEGREES))
    return limits


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def _effective_size(hits: Floats, misses: Floats, of_hits: Floats, of_misses: Floats) -> Floats:
    """Number of equally weighted rows that would have the variance of the weighted share."""
    total = hits + misses
    share = hits / total
    variance = (of_hits * (1 - share) ** 2 + of_misses * share**2) / total**2
    mixed = share * (1 - share) / variance
    return np.where((hits > 0) & (misses > 0), mixed, total**2 / (of_hits + of_misses))


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def intervals_of_clusters(replicates: Confusion, confidence: float) -> dict[str, Limits]:
    """Limits of each ratio of one group where only replicates, groups of clusters, are independent.

    The design effect comes from the jackknife variance of the share. Where the share is 0 or 1 and shows no variance,
    that of the nearest lower threshold with both hits and misses stands in, and 1 at least. Degrees of freedom and
    skewness are those of `clusters`.

    Args:
        replicates: Shape (G, K): counts or weights of each replicate, thresholds rising.
        confidence: Such as 0.95.

    Returns:
        Limits of shape (K,) by ratio; nan where the ratio is undefined, and for one replicate.
    """
    limits = {}
    for name, (hits, misses) in replicates.proportions().items():
        total_hits, total = hits.sum(axis=0).astype(np.float64), (hits + misses).sum(axis=0).astype(np.float64)
        if len(hits) < 2:  # noqa: PLR2004 - a spread needs two
            limits[name] = (np.full(len(total), np.nan), np.full(len(total), np.nan))
            continue
        jackknifed_hits, jackknifed_misses = leave_one_out(hits), leave_one_out(misses)
        share, jackknifed = total_hits / total, jackknifed_hits / (jackknifed_hits + jackknifed_misses)
        jackknifed = np.where(np.isnan(jackknifed), share, jackknifed)
        spread = spread_of_shifts(jackknifed.mean(axis=0) - jackknifed, effective_number(hits + misses))
        effect = spread.variance * total / (share * (1 - share))
        mixed = (total_hits > 0) & (total_hits < total) & (effect > 0)
        effect = np.where(mixed, effect, np.maximum(_carried(effect, mixed), 1.0))
        around = _limits(name, share, total / effect, tail(confidence, spread.degrees))
        excess = np.where(mixed, spread.skewed - implied_skewness(share, spread.variance, "beta"), 0.0)
        factors = stretches(excess, spread.degrees, confidence)
        limits[name] = stretched(around, 2 * share / (1 + share) if name == "f1" else share, factors)
    return limits


def _carried(values: Floats, usable: NDArray[np.bool_]) -> Floats:
    """Values in which those that are not usable are replaced by the nearest usable one before.

    Without one before, the first usable value takes its place; without any, 1.
    """
    if not usable.any():
        return np.ones_like(values)
    nearest = np.maximum.accumulate(np.where(usable, np.arange(len(values)), -1))
    return np.asarray(values[np.where(nearest >= 0, nearest, int(np.argmax(usable)))])


def _limits(name: str, share: Floats, size: Floats, tail_probability: Floats) -> Limits:
    defined = size > 0
    hits, misses = np.where(defined, share * size, 0.0), np.where(defined, (1 - share) * size, 0.0)
    lower, upper = _once(hits, misses, np.broadcast_to(tail_probability, hits.shape))
    lower, upper = np.minimum(lower, share), np.maximum(upper, share)  # quantiles of huge counts are rounded
    lower, upper = (np.where(defined, limit, np.nan) for limit in (lower, upper))
    return (2 * lower / (1 + lower), 2 * upper / (1 + upper)) if name == "f1" else (lower, upper)


def _once(hits: Floats, misses: Floats, tails: Floats) -> Limits:
    """`binomial_limits`, computed once for equal rows, because small groups repeat counts and quantiles are slow."""
    rows = np.stack([hits.ravel(), misses.ravel(), tails.ravel()], axis=1)
    unique, row_of_each = np.unique(rows, axis=0, return_inverse=True)
    lower, upper = binomial_limits(*unique.T)
    row_of_each = row_of_each.reshape(hits.shape)
    return lower[row_of_each], upper[row_of_each]
