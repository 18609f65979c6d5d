"""What bins of scores say of calibration, with limits and tests: of independent rows, or of independent clusters."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ...records import dataclass
from .errors import Variances
from .limits import (
    BinLimits,
    ClusterSpread,
    bin_limits_of_clusters,
    bin_limits_of_rows,
    sidak_level,
)
from .significance import (
    hosmer_lemeshow_of_clusters,
    hosmer_lemeshow_of_rows,
    spiegelhalter_of_clusters,
    spiegelhalter_of_rows,
)
from .sums import group_of_bins

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from ..uncertainty.jackknife import Limits
    from ..uncertainty.resampling import Resampling
    from .significance import Tested
    from .sums import BinSums, Ints, Moments

Floats: TypeAlias = "NDArray[np.float64]"


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
