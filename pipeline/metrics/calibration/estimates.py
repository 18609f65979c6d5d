"""Limits of the share of true rows in bins and of its gap to the mean score, bands of all bins, and tests."""

from __future__ import annotations

from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import scipy

from ...base.records import dataclass
from ..curves.influence import spread_of_means
from ..uncertainty.clusters import ONE_WAY, over_time
from ..uncertainty.proportions import Confusion, Weights, intervals_of_clusters, intervals_of_rows
from .bins import Variances, group_of_bins, pooled

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

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
_Tested: TypeAlias = "tuple[Floats, Floats]"  # the statistic and its two-sided p-value


def _spiegelhalter(groups: BinSums, observed: Floats, tail: Callable[[Floats], Floats]) -> _Tested:
    """Statistic and p-value from the observed variance of the `test_sum` of groups; nan where no score tells."""
    least = groups.test_variance_if_calibrated()
    variance = np.maximum(observed, least)
    statistic = np.where(variance > 0, groups.weighted.test_sum / np.sqrt(variance), np.nan)
    positive, negative = groups.test_expected
    chance = (positive + negative) ** 2 / least
    return statistic, _guarded(2 * tail(-np.abs(statistic)), groups.weighted.test_sum**2 / least, chance)


@np.errstate(divide="ignore", invalid="ignore")
def _hosmer_lemeshow_of_rows(sums: BinSums, variance: Floats, starts: Ints) -> _Tested:
    """Statistic and p-value of every group where rows are independent, from the variance of the surplus of each bin."""
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
def _hosmer_lemeshow_of_clusters(sums: BinSums, least: Floats, clusterings: Sequence[Moments]) -> _Tested:
    """Statistic and p-value of one group where only replicates are independent, shape (1,).

    Variances are those of independent rows times the design effect of all bins together, which is at least 1 (Rao &
    Scott 1981); with weights, in each bin that between replicates if it is larger. Correlations between bins are those
    between the sums of replicates.
    """
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
    replicates = min(len(moments.weight) for moments in clusterings)
    squares = max((replicates * squares - count * (count - 1)) / (replicates - 1), 0.0)
    spread = 2 * squares + np.sum(_spread(sums, variance)[used])
    p_value = _chi_square(statistic, np.array([float(count)]), np.array([spread]))
    of_rows = np.sum(sums.weighted.surplus[used] ** 2 / least[used], keepdims=True)
    return statistic, _guarded(p_value, of_rows, _counted(sums, least).max(keepdims=True))


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

    If scores are probabilities and rows independent, `square` is the squared sum over its variance, and `chance` the
    variance of the number of rows that the sum is worth.
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
class _BinLimits:
    """Limits of bins; nan where there are none."""

    share: Limits  # of the share of true rows
    band: Limits  # the same for all bins of a binning together
    gap: Limits  # of the share less the mean score


def _sidak_level(confidence: float, bins: Floats) -> Floats:
    """Level of each of so many limits that hold together with the confidence (Šidák 1967)."""
    return np.asarray(confidence ** (1 / np.maximum(bins, 1)))


def _limits_of_rows(sums: BinSums, heaviest: tuple[Floats, Floats] | None, confidence: Floats | float) -> Limits:
    """Limits of the share of true rows in bins where rows are independent; without weights there is no heaviest."""
    weights = None if heaviest is None else Weights(_confusion(sums.heavy.hits, sums.heavy.weight), *heaviest)
    counts = _confusion(sums.weighted.hits, sums.weighted.weight)
    return intervals_of_rows(counts, weights, confidence, names=[_SHARE])[_SHARE]


def _limits_of_clusters(
    clusterings: Sequence[Moments],
    heaviest: tuple[float, float] | None,
    confidence: float,
    resampling: Resampling | None,
) -> Limits:
    """The same of one group where only replicates are independent; none where a single replicate has rows."""
    counts, *crossed = (_confusion(moments.hits, moments.weight, in_time=moments.in_time) for moments in clusterings)
    lower, upper = intervals_of_clusters(
        counts, confidence, heaviest=heaviest, names=[_SHARE], crossed=crossed, resampling=resampling
    )[_SHARE]
    return _where_spread(clusterings, lower), _where_spread(clusterings, upper)


def _between_replicates(name: str, clusterings: Sequence[Moments]) -> Spread:
    """Sampling error of the mean of what replicates add up in a bin, such as of the gap for `surplus`."""
    sums = [(getattr(moments, name), moments.weight) for moments in clusterings]
    return spread_of_means(sums, in_time=clusterings[0].in_time)


def _where_spread(clusterings: Sequence[Moments], values: Floats) -> Floats:
    """Values, nan where a single replicate of a clustering has rows."""
    fewest = np.min([(moments.weight > 0).sum(axis=0) for moments in clusterings], axis=0)
    return np.where(fewest > 1, values, np.nan)


def _confusion(hits: Floats, weight: Floats, *, in_time: bool = False) -> Confusion:
    """Hits and misses as true and false positives, whose share is a precision."""
    nothing = np.zeros_like(hits)
    return Confusion(hits, weight - hits, nothing, nothing, in_time=in_time)


@np.errstate(divide="ignore", invalid="ignore")
def _gap_limits(sums: BinSums, share: Limits, of_share: Floats, of_gap: Floats) -> Limits:
    """Limits of the gap, from the limits of the share: as far away as these where the share shows no variance."""
    scale = np.where((of_share > 0) & (of_gap > 0), np.sqrt(of_gap / of_share), 1.0)
    lower, upper = (sums.gap + scale * (limit - sums.share) for limit in share)
    return lower, upper


@dataclass(frozen=True)
class Estimates:
    """Limits, variances and tests of groups; nan where there are none."""

    bins: _BinLimits  # limits of the bins, shape (N,)
    gap: Limits  # limits of the gap of all rows of every group, shape (groups,)
    variances: Variances  # of bins and groups
    spiegelhalter: _Tested  # statistic and p-value of every group, shape (groups,)
    hosmer_lemeshow: _Tested  # likewise


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
    levels = _sidak_level(confidence, number_of_bins)[group_of_bins(starts, count)]
    variance = sums.variance_if_calibrated(starts)
    heaviest_of_groups = None if heaviest is None else (heaviest[0][starts], heaviest[1][starts])
    share, of_all = _limits_of_rows(sums, heaviest, confidence), _limits_of_rows(groups, heaviest_of_groups, confidence)
    of_bins = _gap_limits(sums, share, sums.variance_of_share, sums.variance_of_gap)
    return Estimates(
        bins=_BinLimits(share, _limits_of_rows(sums, heaviest, levels), of_bins),
        gap=_gap_limits(groups, of_all, groups.variance_of_share, groups.variance_of_gap),
        variances=Variances(
            sums.variance_of_share,
            sums.variance_of_gap,
            variance / sums.weighted.weight**2,
            groups.variance_of_share,
        ),
        spiegelhalter=_spiegelhalter(groups, groups.test_variance, scipy.special.ndtr),
        hosmer_lemeshow=_hosmer_lemeshow_of_rows(sums, variance, starts),
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
    group, of_group = sums.of_groups(_START), [moments.over_bins() for moments in clusterings]
    # limits and variances of bins, and of all bins together
    (of_share, of_gap), (of_all, gap_of_all) = (
        [_between_replicates(name, replicates).variance for name in ("hits", "surplus")]
        for replicates in (clusterings, of_group)
    )
    share = band = _limits_of_clusters(clusterings, heaviest, confidence, resampling)
    if (number := np.count_nonzero(sums.weighted.weight)) > 1:
        level = float(_sidak_level(confidence, np.asarray(number)))
        band = _limits_of_clusters(clusterings, heaviest, level, resampling)
    least = sums.variance_if_calibrated(_START)
    known_gap = _where_spread(clusterings, of_gap)
    # tests, which one replicate has none of
    spiegelhalter = hosmer_lemeshow = np.full(1, np.nan), np.full(1, np.nan)
    if min(len(moments.weight) for moments in clusterings) > 1:
        tested = _between_replicates("test_sum", of_group)
        student = partial(scipy.special.stdtr, tested.degrees)
        spiegelhalter = _spiegelhalter(group, group.weighted.weight**2 * tested.variance, student)
        hosmer_lemeshow = _hosmer_lemeshow_of_clusters(sums, least, clusterings)
    return Estimates(
        bins=_BinLimits(share, band, _gap_limits(sums, share, of_share, of_gap)),
        gap=_gap_limits(group, _limits_of_clusters(of_group, heaviest, confidence, resampling), of_all, gap_of_all),
        variances=Variances(
            _where_spread(clusterings, of_share),
            known_gap,
            np.fmax(known_gap, least / sums.weighted.weight**2),
            _where_spread(of_group, of_all),
        ),
        spiegelhalter=spiegelhalter,
        hosmer_lemeshow=hosmer_lemeshow,
    )


def joined(items: Sequence[Any]) -> Any:  # noqa: ANN401 - arrays, tuples of them, or the dataclasses that hold them
    """Estimates of several groups, one after the other."""
    of_first = items[0]
    if isinstance(of_first, np.ndarray):
        return np.concatenate(items)
    if isinstance(of_first, tuple):
        return tuple(map(joined, zip(*items, strict=True)))
    return type(of_first)(*(joined([getattr(item, field.name) for item in items]) for field in fields(of_first)))
