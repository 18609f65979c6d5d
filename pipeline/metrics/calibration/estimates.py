"""Limits of the share of true rows in bins and of its gap to the mean score, bands of all bins, and tests."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import scipy

from ...records import dataclass
from ..uncertainty.clusters import ONE_WAY, over_time
from ..uncertainty.proportions import Confusion, Weights, intervals_of_clusters, intervals_of_rows
from .bins import Variances, group_of_bins, pooled, spread_of_means

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from ..uncertainty.clusters import Spread
    from ..uncertainty.jackknife import Limits
    from ..uncertainty.replicates import Resampling
    from .bins import BinSums, Ints, Moments


# Tests of the hypothesis that scores are probabilities of their labels.
#
# - *Spiegelhalter* (1986): the sum of (y - s) (1 - 2 s), which is the excess of the Brier score over what is expected,
#   over its standard error. Scores that are too extreme raise it, scores that are too near to 1/2 lower it.
# - *Hosmer & Lemeshow* (1980): squares of what true rows in bins exceed the scores by, over their variances, added up.
#
# Where rows are independent the scores give the variances, and the sum of squares is held against a scaled chi-square
# distribution with its mean and its variance (Satterthwaite 1946), after bins in which hardly a true row is expected
# have been put together with their neighbours (`pooling`). Weights may depend on labels: with them Spiegelhalter's
# variance is the sum of squares of what rows add. Where only clusters are independent, the standard error is that
# between clusters, with Student's t. Either is at least what scores say of independent rows: samples in which by chance
# no true row occurs show no spread.
#
# Where even all rows together hold less than one row's worth of chance, no distribution with a density comes near. The
# p-value is then at least the largest that any distribution with their variance can have, 1 / z² (Chebyshev).


Floats: TypeAlias = "NDArray[np.float64]"
Tested: TypeAlias = "tuple[Floats, Floats]"  # the statistic and its two-sided p-value


@np.errstate(divide="ignore", invalid="ignore")
def spiegelhalter_of_rows(sums: BinSums, starts: NDArray[np.int64]) -> Tested:
    """Statistic z and p-value of every group where rows are independent; nan where no score tells.

    Args:
        sums: Of bins with a weight above 0, those of one group one after the other.
        starts: Index of the first bin of every group, rising.
    """
    groups = sums.of_groups(starts)
    least = groups.test_variance_if_calibrated()
    variance = np.maximum(groups.test_variance, least)
    z = np.where(variance > 0, groups.weighted.test_sum / np.sqrt(variance), np.nan)
    return z, _guarded_test(2 * scipy.special.ndtr(-np.abs(z)), groups, least)


@np.errstate(divide="ignore", invalid="ignore")
def spiegelhalter_of_clusters(sums: BinSums, clusterings: Sequence[Moments]) -> Tested:
    """Statistic and p-value of one group where only replicates are independent, shape (1,); nan without a spread.

    Args:
        sums: Of the bins of the group, shape (K,).
        clusterings: Sums by replicate and bin, shape (G, K): of the one clustering, or of both parents and of both.
    """
    if _replicates(clusterings) == 1:
        return np.full(1, np.nan), np.full(1, np.nan)
    group = sums.of_groups(_START)
    weight = group.weighted.weight
    spread = spread_of_means(lambda moments: moments.test_sum, [moments.over_bins() for moments in clusterings])
    least = group.test_variance_if_calibrated()
    variance = np.maximum(weight**2 * spread.variance, least)
    statistic = np.where(variance > 0, group.weighted.test_sum / np.sqrt(variance), np.nan)
    return statistic, _guarded_test(2 * scipy.special.stdtr(spread.degrees, -np.abs(statistic)), group, least)


@np.errstate(divide="ignore", invalid="ignore")
def hosmer_lemeshow_of_rows(sums: BinSums, variance: Floats, starts: NDArray[np.int64]) -> Tested:
    """Statistic and p-value of every group where rows are independent; arguments as for `spiegelhalter_of_rows`.

    Args:
        sums: As for `spiegelhalter_of_rows`.
        variance: Of the surplus of each bin, see `BinSums.variance_if_calibrated`.
        starts: As for `spiegelhalter_of_rows`.
    """
    pools, first = pooled(_counted(sums, variance), starts)
    is_excluded = np.logical_or.reduceat(_is_excluded(sums, variance), starts)
    sums, variance = sums.of_groups(pools), np.add.reduceat(variance, pools)
    terms, spread = (
        np.where(variance > 0, values, 0.0) for values in (sums.weighted.surplus**2 / variance, _spread(sums, variance))
    )
    statistic, mean, of_statistic = (
        np.add.reduceat(values, first) for values in (terms, (variance > 0).astype(np.float64), spread)
    )
    statistic = np.where(is_excluded, np.inf, statistic)
    chance = np.maximum.reduceat(_counted(sums, variance), first)
    return statistic, _guarded(_chi_square(statistic, mean, of_statistic), statistic, chance)


@np.errstate(divide="ignore", invalid="ignore")
def hosmer_lemeshow_of_clusters(sums: BinSums, least: Floats, clusterings: Sequence[Moments]) -> Tested:
    """Statistic and p-value of one group where only replicates are independent, shape (1,).

    Variances are those of independent rows times the design effect of all bins together, which is at least 1 (Rao &
    Scott 1981); with weights, in each bin that between replicates if it is larger. Correlations between bins are those
    between the sums of replicates.

    Args:
        sums: Of the bins of the group, shape (K,).
        least: Variance of the surplus of each bin if rows were independent, see `BinSums.variance_if_calibrated`.
        clusterings: As for `spiegelhalter_of_clusters`.
    """
    replicates = _replicates(clusterings)
    if replicates == 1:
        return np.full(1, np.nan), np.full(1, np.nan)
    if _is_excluded(sums, least).any():
        return np.full(1, np.inf), np.zeros(1)
    pools, _ = pooled(_counted(sums, least), _START)
    sums, least = sums.of_groups(pools), np.add.reduceat(least, pools)
    together = _between([moments.of_groups(pools) for moments in clusterings])
    # one design effect for all bins: those of single bins with few true rows say little, but weights make them differ
    effect = max(np.trace(together) / least.sum(), 1.0) if least.any() else 1.0
    variance = np.maximum(np.diag(together), least) if sums.is_weighted else effect * least
    used = variance > 0
    if not used.any():
        return np.full(1, np.nan), np.full(1, np.nan)
    correlation = together[np.ix_(used, used)] / np.sqrt(np.outer(variance[used], variance[used]))
    statistic = np.array([np.sum(sums.weighted.surplus[used] ** 2 / variance[used])])
    count = used.sum()
    squares = np.sum(correlation**2) - np.sum(np.diag(correlation) ** 2)
    # squares of correlations that are 0 are 1 / G on average
    squares = max((replicates * squares - count * (count - 1)) / (replicates - 1), 0.0)
    spread = 2 * squares + np.sum(_spread(sums, variance)[used])
    p_value = _chi_square(statistic, np.array([float(count)]), np.array([spread]))
    of_rows = np.sum(sums.weighted.surplus[used] ** 2 / least[used], keepdims=True)
    return statistic, _guarded(p_value, of_rows, _counted(sums, least).max(keepdims=True))


def _guarded_test(p_value: Floats, groups: BinSums, least: Floats) -> Floats:
    """The p-value of Spiegelhalter's test, see `_guarded`; `least` is `test_variance_if_calibrated`."""
    positive, negative = groups.test_expected
    return _guarded(p_value, groups.weighted.test_sum**2 / least, (positive + negative) ** 2 / least)


def _replicates(clusterings: Sequence[Moments]) -> int:
    """Fewest replicates of any clustering."""
    return min(len(moments.weight) for moments in clusterings)


def _between(clusterings: Sequence[Moments]) -> Floats:
    """Products of the surpluses of bins, summed over replicates: over each parent less over both, or over the one.

    Those of replicates in time are raised by what neighbours add to the variances.
    """
    products = [moments.surplus.T @ moments.surplus for moments in clusterings]
    if len(products) == ONE_WAY:
        root = np.sqrt(over_time(clusterings[0].surplus).factor) if clusterings[0].in_time else 1.0
        return np.asarray(products[0] * np.multiply.outer(root, root))
    together = products[0] + products[1] - products[2]
    of_one = np.minimum(np.diag(products[0]), np.diag(products[1]))
    np.fill_diagonal(together, np.maximum(np.diag(together), of_one))
    return together


def _is_excluded(sums: BinSums, variance: Floats) -> NDArray[np.bool_]:
    """Whether a bin has a label that its scores, all 0 or 1, exclude."""
    return (variance <= 0) & (np.abs(sums.weighted.surplus) > _ROUNDING)


@np.errstate(divide="ignore", invalid="ignore")
def _counted(sums: BinSums, variance: Floats) -> Floats:
    """Variance of the number of true rows that the surplus is worth: without weights and clusters Σ s (1 - s)."""
    return np.where(variance > 0, sums.weighted.expected_variance**2 / variance, 0.0)


@np.errstate(divide="ignore")
def _guarded(p_value: Floats, square: Floats, chance: Floats) -> Floats:
    """The p-value of a statistic, at least Chebyshev's bound where chance amounts to less than one row.

    Args:
        p_value: Of the statistic by a distribution with a density.
        square: The squared sum over its variance if scores are probabilities and rows independent.
        chance: Variance of the number of rows that the sum is worth then.
    """
    return np.where(chance < 1, np.maximum(p_value, np.minimum(1 / square, 1.0)), p_value)


@np.errstate(divide="ignore", invalid="ignore")
def _spread(sums: BinSums, variance: Floats) -> Floats:
    """Variance of the squared surplus of bins over its variance: 2 if it is normal, and its excess kurtosis.

    Without weights the fourth cumulant is Σ p q (1 - 6 p q) of probabilities p and q = 1 - p, which follows from the
    sums of p q and of p q (1 - 4 p q). With weights the kurtosis is that of a binomial count with the variance of the
    share.
    """
    if not sums.is_weighted:
        fourth = 1.5 * sums.test_variance - 0.5 * sums.weighted.expected_variance
        return np.maximum(2 + fourth / variance**2, _LEAST_SPREAD)
    product = sums.weighted.expected_variance / sums.weighted.weight
    kurtosis = (1 - 6 * product) / _counted(sums, variance)
    return np.maximum(2 + kurtosis, _LEAST_SPREAD)


@np.errstate(divide="ignore", invalid="ignore")
def _chi_square(statistic: Floats, mean: Floats, variance: Floats) -> Floats:
    """Probability of more than the statistic under the scaled chi-square distribution with a mean and a variance."""
    degrees = 2 * mean**2 / variance
    return np.where(np.isinf(statistic), 0.0, scipy.special.chdtrc(degrees, statistic * degrees / mean))


_START = np.zeros(1, dtype=np.int64)  # of the bins of one group
_ROUNDING = 1e-12  # sums of decimals that are 0 but for their last digits
_LEAST_SPREAD = 0.01


# Limits of the share of true rows in bins, of its gap to the mean score, and bands that hold for all bins together.
#
# Limits of a share are those of proportions, see `uncertainty.proportions`. The gap of a share y and a mean score s
# varies with y - s: its limits lie as far from it as those of the share from the share, times the standard error of the
# gap over that of the share, which keeps limits of few events as wide, and as uneven, as they must be.
#
# Bands have limits of the level confidence^(1/K) in each of K bins, so that all K hold together with at least the
# confidence (Šidák 1967): exactly if bins are independent, as bins of independent rows are, and more often if clusters
# make them alike.


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
    """The spread of the bins of one group between its replicates.

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
    """Limits of the gap, from the limits of the share: as far away as these where the share shows no variance."""
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
