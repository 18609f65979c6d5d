"""Simultaneous bands of precision, recall and the false positive rate over all thresholds of a group.

A band has the limits of single thresholds at a higher confidence, see `critical_values`, with two differences:

- *Recall and the false positive rate never rise with the threshold.* As all limits hold together, a lower limit holds
  at every lower threshold, too, and an upper limit at every stricter one. So the band of a rate is nowhere wider than
  at the thresholds that have data enough.
- *Degrees of freedom.* At single thresholds the variance between clusters may rest on few of them, and with 3 degrees
  the quantile of t that belongs to c = 3.2 is 11.6. Variances of neighbouring thresholds are alike, and a band over all
  of them does not hang on the one with the fewest degrees: it takes at least half of what the clusters of the whole
  group allow for, (effective number - 1) / 2.

It is nowhere narrower than the limits of single thresholds. Measured in `benchmarks/coverage_of_bands.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ...records import dataclass
from ..uncertainty.clusters import effective_number
from ..uncertainty.proportions import intervals_of_clusters, intervals_of_rows
from .critical_values import (
    DRAWS,
    RATIOS,
    Critical,
    critical_values,
    largest_of_clusters,
    largest_of_rows,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..uncertainty.jackknife import Limits
    from ..uncertainty.proportions import Confusion, Weights

    Single: TypeAlias = Mapping[str, Limits]

_FALLING = ("recall", "fpr")


@dataclass(frozen=True)
class Draws:
    """How errors are drawn.

    Attributes:
        number: Number of draws.
        seed: The same seed gives the same draws.
    """

    number: int = DRAWS
    seed: int = 0


@dataclass(frozen=True)
class Band:
    """The band of one group.

    Attributes:
        limits: By ratio, shape (K,), thresholds rising; nan where there is none.
        critical: What took the place of the normal quantile.
    """

    limits: dict[str, Limits]
    critical: Critical


def band_of_rows(
    counts: Confusion,
    weights: Weights | None,
    confidence: float,
    single: Single,
    *,
    fixed_sizes: bool = False,
    draws: Draws | None = None,
) -> Band:
    """The band where rows are independent.

    Args:
        counts: Shape (K,), thresholds rising: counts, or sums of weights.
        weights: What else is known of the weights; None: every weight is 1.
        confidence: That the limits of a curve hold at all thresholds, such as 0.95.
        single: The limits of single thresholds, by ratio.
        fixed_sizes: Whether every sample has as many positives and as many negatives; else as many rows.
        draws: How errors are drawn; None: as ever.
    """
    draws = draws or Draws()
    squares = counts if weights is None else weights.squares
    largest = largest_of_rows(counts, squares, fixed_sizes=fixed_sizes, draws=draws.number, seed=draws.seed)
    critical = critical_values(largest, confidence)
    limits: dict[str, Limits] = {}
    for name in RATIOS:
        level = critical.confidence(name)
        limits |= intervals_of_rows(counts, weights, level, fixed_sizes=fixed_sizes, names=[name])
    return Band(_finished(limits, single), critical)


def band_of_clusters(
    replicates: Confusion,
    confidence: float,
    single: Single,
    *,
    heaviest: tuple[float, float] | None = None,
    crossed: Sequence[Confusion] = (),
    draws: Draws | None = None,
) -> Band:
    """The band where only replicates, groups of clusters, are independent.

    Args:
        replicates: Shape (G, K): counts or weights of each replicate, thresholds rising.
        confidence: That the limits of a curve hold at all thresholds, such as 0.95.
        single: The limits of single thresholds, by ratio.
        heaviest: The heaviest weight of a positive and of a negative row; None: every weight is 1.
        crossed: The same of the second parent of rows that have two, and of the intersections of both.
        draws: How errors are drawn; None: as ever.
    """
    draws = draws or Draws()
    parents = (replicates, *crossed[:1])
    critical = critical_values(largest_of_clusters(parents, draws=draws.number, seed=draws.seed), confidence)
    fewest_degrees = float(np.nan_to_num(min((_effective(parent) - 1) / 2 for parent in parents)))
    limits: dict[str, Limits] = {}
    for name in RATIOS:
        limits |= intervals_of_clusters(
            replicates,
            critical.confidence(name),
            heaviest=heaviest,
            names=[name],
            crossed=crossed,
            fewest_degrees=fewest_degrees,
        )
    return Band(_finished(limits, single), critical)


def _effective(parent: Confusion) -> float:
    """Effective number of the replicates of a parent."""
    return float(effective_number((parent.tp + parent.fp + parent.fn + parent.tn)[:, 0]))


def _finished(limits: Mapping[str, Limits], single: Single) -> dict[str, Limits]:
    """Limits of rates that fall with the threshold as they do, and nowhere nearer than those of single thresholds."""
    finished = {}
    for name, of_ratio in limits.items():
        is_given = ~(np.isnan(of_ratio[0]) | np.isnan(of_ratio[1]))
        lower, upper = _falling(of_ratio) if name in _FALLING else of_ratio
        farther = np.fmin(lower, single[name][0]), np.fmax(upper, single[name][1])
        finished[name] = np.where(is_given, farther[0], np.nan), np.where(is_given, farther[1], np.nan)
    return finished


def _falling(limits: Limits) -> Limits:
    """What limits that hold together say of a rate that never rises with the threshold."""
    lower, upper = limits
    return np.fmax.accumulate(lower[::-1])[::-1], np.fmin.accumulate(upper)
