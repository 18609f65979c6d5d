"""Limits of the share of true rows in bins, of its gap to the mean score, and bands that hold for all bins together.

Limits of a share are those of proportions, see `uncertainty.proportions`. The gap of a share y and a mean score s
varies with y - s: its limits lie as far from it as those of the share from the share, times the standard error of the
gap over that of the share, which keeps limits of few events as wide, and as uneven, as they must be.

Bands have limits of the level confidence^(1/K) in each of K bins, so that all K hold together with at least the
confidence (Šidák 1967): exactly if bins are independent, as bins of independent rows are, and more often if clusters
make them alike.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ...records import dataclass
from ..uncertainty.proportions import Confusion, Weights, intervals_of_clusters, intervals_of_rows
from .bins import group_of_bins, spread_of_means
from .errors import Variances
from .significance import (
    hosmer_lemeshow_of_clusters,
    hosmer_lemeshow_of_rows,
    spiegelhalter_of_clusters,
    spiegelhalter_of_rows,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from ..uncertainty.bootstrap import Resampling
    from ..uncertainty.clusters import Spread
    from ..uncertainty.jackknife import Limits
    from .bins import BinSums, Ints, Moments
    from .significance import Tested


Floats: TypeAlias = "NDArray[np.float64]"
_SHARE = "precision"  # the proportion of hits among hits and misses


@dataclass(frozen=True)
class BinLimits:
    """Limits of bins; nan where there are none.

    Attributes:
        share: Of the share of true rows.
        band: The same for all bins of a binning together.
        gap: Of the share less the mean score.
    """

    share: Limits
    band: Limits
    gap: Limits


@dataclass(frozen=True)
class ClusterSpread:
    """What the replicates of one group say of its bins.

    Attributes:
        share: Sampling error of the share of true rows.
        gap: Of its gap to the mean score.
        replicates: Fewest replicates of any clustering that have rows in the bin.
    """

    share: Spread
    gap: Spread
    replicates: Floats

    @classmethod
    def of(cls, clusterings: Sequence[Moments]) -> ClusterSpread:
        """From sums by replicate and bin, shape (G, K), of the one clustering, or of both parents and of both."""
        present = [(moments.weight > 0).sum(axis=0).astype(np.float64) for moments in clusterings]
        return cls(
            spread_of_means(lambda moments: moments.hits, clusterings),
            spread_of_means(lambda moments: moments.surplus, clusterings),
            np.min(present, axis=0),
        )

    def known(self, variances: Floats) -> Floats:
        """Variances, nan where a single replicate has rows."""
        return np.where(self.replicates > 1, variances, np.nan)


def sidak_level(confidence: float, bins: Floats) -> Floats:
    """Level of each of so many limits that hold together with the confidence (Šidák 1967)."""
    return np.asarray(confidence ** (1 / np.maximum(bins, 1)))


def bin_limits_of_rows(
    sums: BinSums, heaviest: tuple[Floats, Floats] | None, confidence: float, level_of_band: Floats
) -> BinLimits:
    """Limits of bins where rows are independent.

    Args:
        sums: Of the bins, shape (N,).
        heaviest: The heaviest weight of a positive and of a negative row of the group of each bin; None: no weights.
        confidence: Such as 0.95.
        level_of_band: Shape (N,), see `sidak_level`.
    """
    hits, weight = sums.weighted.hits, sums.weighted.weight
    squares = None if heaviest is None else _confusion(sums.heavy.hits, sums.heavy.weight)
    weights = None if squares is None or heaviest is None else Weights(squares, *heaviest)
    share, band = (
        intervals_of_rows(_confusion(hits, weight), weights, level, names=[_SHARE])[_SHARE]
        for level in (confidence, level_of_band)
    )
    return BinLimits(share, band, _gap_limits(sums, share, sums.variance_of_share, sums.variance_of_gap))


def bin_limits_of_clusters(
    sums: BinSums,
    clusterings: Sequence[Moments],
    spread: ClusterSpread,
    heaviest: tuple[float, float] | None,
    confidence: float,
    resampling: Resampling | None,
) -> BinLimits:
    """Limits of the bins of one group where only replicates, groups of clusters, are independent.

    Args:
        sums: Of the bins, shape (K,).
        clusterings: Sums by replicate and bin, as for `ClusterSpread.of`.
        spread: What that gives.
        heaviest: The heaviest weight of a positive and of a negative row of the group; None: no weights.
        confidence: Such as 0.95.
        resampling: How the bootstrap draws; None: limits of the closed form.
    """
    counts, *crossed = (_confusion(moments.hits, moments.weight, in_time=moments.in_time) for moments in clusterings)

    def limits(level: float) -> Limits:
        of_share = intervals_of_clusters(
            counts, level, heaviest=heaviest, names=[_SHARE], crossed=crossed, resampling=resampling
        )[_SHARE]
        return _without_single(of_share, spread.replicates)

    number, share = np.count_nonzero(sums.weighted.weight), limits(confidence)
    band = limits(float(sidak_level(confidence, np.asarray(number)))) if number > 1 else share
    return BinLimits(share, band, _gap_limits(sums, share, spread.share.variance, spread.gap.variance))


def _confusion(hits: Floats, weight: Floats, *, in_time: bool = False) -> Confusion:
    """Hits and misses as true and false positives, whose share is a precision."""
    nothing = np.zeros_like(hits)
    return Confusion(hits, weight - hits, nothing, nothing, in_time=in_time)


def _without_single(limits: Limits, replicates: Floats) -> Limits:
    """No limits where a single replicate has rows, which has no spread."""
    lower, upper = (np.where(replicates > 1, limit, np.nan) for limit in limits)
    return lower, upper


@np.errstate(divide="ignore", invalid="ignore")
def _gap_limits(sums: BinSums, share: Limits, of_share: Floats, of_gap: Floats) -> Limits:
    """Limits of the gap from those of the share; where the share shows no variance, as far from it as those are."""
    scale = np.where((of_share > 0) & (of_gap > 0), np.sqrt(of_gap / of_share), 1.0)
    lower, upper = (sums.gap + scale * (limit - sums.share) for limit in share)
    return lower, upper


# What bins of scores say of calibration, with limits and tests: of independent rows, or of independent clusters.


@dataclass(frozen=True)
class Estimates:
    """Limits, variances and tests of groups; nan where there are none.

    Attributes:
        bins: Limits of the bins, shape (N,).
        gap: Limits of the gap of all rows of every group, shape (groups,).
        variances: Of bins and groups.
        spiegelhalter: Statistic and p-value of every group, shape (groups,).
        hosmer_lemeshow: Likewise.
    """

    bins: BinLimits
    gap: Limits
    variances: Variances
    spiegelhalter: Tested
    hosmer_lemeshow: Tested


@np.errstate(divide="ignore", invalid="ignore")
def estimates_of_rows(
    sums: BinSums, starts: Ints, heaviest: tuple[Floats, Floats] | None, confidence: float
) -> Estimates:
    """Estimates of many groups at once where rows are independent.

    Args:
        sums: Of bins with rows, those of one group one after the other, shape (N,).
        starts: Index of the first bin of every group, rising.
        heaviest: The heaviest weight of a positive and of a negative row of the group of each bin, shape (N,); None:
            rows have no weights.
        confidence: Of the limits, such as 0.95.
    """
    groups, count = sums.of_groups(starts), len(sums.rows)
    number_of_bins = np.diff([*starts, count]).astype(np.float64)
    levels = sidak_level(confidence, number_of_bins)[group_of_bins(starts, count)]
    variance = sums.variance_if_calibrated(starts)
    heaviest_of_groups = None if heaviest is None else (heaviest[0][starts], heaviest[1][starts])
    return Estimates(
        bins=bin_limits_of_rows(sums, heaviest, confidence, levels),
        gap=bin_limits_of_rows(groups, heaviest_of_groups, confidence, np.full(len(starts), confidence)).gap,
        variances=Variances(
            sums.variance_of_share,
            sums.variance_of_gap,
            variance / sums.weighted.weight**2,
            groups.variance_of_share,
        ),
        spiegelhalter=spiegelhalter_of_rows(sums, starts),
        hosmer_lemeshow=hosmer_lemeshow_of_rows(sums, variance, starts),
    )


@np.errstate(divide="ignore", invalid="ignore")
def estimates_of_clusters(
    sums: BinSums,
    clusterings: Sequence[Moments],
    heaviest: tuple[float, float] | None,
    confidence: float,
    resampling: Resampling | None = None,
) -> Estimates:
    """Estimates of one group where only replicates, groups of clusters, are independent.

    Args:
        sums: Of its bins with rows, shape (K,).
        clusterings: The same sums by replicate, shape (G, K): of the one clustering, or of both parents and of both.
        heaviest: The heaviest weight of a positive and of a negative row; None: rows have no weights.
        confidence: Of the limits, such as 0.95.
        resampling: How the bootstrap draws; None: limits of the closed form.
    """
    start = np.zeros(1, dtype=np.int64)
    together, together_by_replicate = sums.of_groups(start), [moments.over_bins() for moments in clusterings]
    spread, spread_together = ClusterSpread.of(clusterings), ClusterSpread.of(together_by_replicate)
    least = sums.variance_if_calibrated(start)
    variance = np.fmax(spread.known(spread.gap.variance), least / sums.weighted.weight**2)
    return Estimates(
        bins=bin_limits_of_clusters(sums, clusterings, spread, heaviest, confidence, resampling),
        gap=bin_limits_of_clusters(
            together, together_by_replicate, spread_together, heaviest, confidence, resampling
        ).gap,
        variances=Variances(
            spread.known(spread.share.variance),
            spread.known(spread.gap.variance),
            variance,
            spread_together.known(spread_together.share.variance),
        ),
        spiegelhalter=spiegelhalter_of_clusters(sums, clusterings),
        hosmer_lemeshow=hosmer_lemeshow_of_clusters(sums, least, clusterings),
    )


def joined(estimates: Sequence[Estimates]) -> Estimates:
    """Estimates of several groups, one after the other."""
    joined_estimates: Estimates = _joined(estimates)
    return joined_estimates


def _joined(items: Sequence[Any]) -> Any:  # noqa: ANN401 - arrays, tuples of them, or the dataclasses that hold them
    if isinstance(items[0], np.ndarray):
        return np.concatenate(items)
    if isinstance(items[0], tuple):
        return tuple(_joined(entries) for entries in zip(*items, strict=True))
    names = [field.name for field in fields(items[0])]
    return type(items[0])(*(_joined([getattr(item, name) for item in items]) for name in names))
