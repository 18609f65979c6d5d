"""Intervals of precision, recall, F1 and other numbers of the four outcomes at every threshold, for labelled counts."""

from __future__ import annotations

from dataclasses import field
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from ...base.columns import FPR, OF_LABELS, PRECISION, RATIO_OF, RECALL, value_of
from ...base.records import dataclass
from .clusters import (
    implied_skewness,
    may_neighbours_be_alike,
    spread_of_clusterings,
    stretched,
    stretches,
)
from .jackknife import leave_one_out, proportion_limit_above, tail
from .replicates import otherwise, share_limits

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from ...base.columns import Index, Ratio
    from .jackknife import Floats, Limits
    from .replicates import Resampling


# Limits of numbers of all four outcomes that are no shares, such as the Matthews correlation coefficient.
#
# An index I(tp, fp, fn, tn) is a smooth function of counts that does not change when all of them are doubled. Of
# independent rows, multinomial given their number, its variance is Σ n_i (∂I/∂n_i)² (the delta method; with weights Σ
# of squared weights in the place of n_i). The derivatives are those of a complex step (Squire & Trapp 1998), exact but
# for rounding, so that an index is stated by its formula alone. Half a row is added to every outcome first (Haldane
# 1956, Anscombe 1956): without errors the counts show no variance, and are no certainty. Of clusters the variance is
# that of the jackknife, and at least that of independent rows.
#
# Limits are symmetric on Fisher's scale, artanh of the index stretched to (-1, 1).


_STEP = 1e-20  # of a complex step: nothing is subtracted, so that it can be as small as need be
_FUNCTIONS = {"sqrt": np.sqrt}


@np.errstate(divide="ignore", invalid="ignore")
def index_of(index: Index, counts: Confusion) -> Floats:
    """The value of an index; nan where it is undefined."""
    return np.asarray(value_of(index.text, _by_name(*_floats(counts)), _FUNCTIONS))


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def index_limits_of_rows(
    index: Index, counts: Confusion, squares: Confusion | None, confidence: Floats | float
) -> Limits:
    """Limits of an index where rows are independent.

    Args:
        index: The index.
        counts: Counts, or sums of weights.
        squares: Sums of squared weights; None: every weight is 1.
        confidence: Such as 0.95.

    Returns:
        Lower and upper limit, of the shape of the counts; nan where the index is undefined.
    """
    middle, variance = _with_half_a_row(index, counts, squares)
    return _index_limits(index, index_of(index, counts), middle, variance, np.asarray((1 - confidence) / 2))


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def index_limits_of_clusters(
    index: Index, replicates: Confusion, squares: Confusion | None, confidence: float, crossed: Sequence[Confusion] = ()
) -> Limits:
    """Limits of an index of one group where only replicates, groups of clusters, are independent, of shape (K,).

    The arguments are as for `intervals_of_clusters` and `index_limits_of_rows`, the squares of all rows; nan where the
    index is undefined, and for one replicate of any parent.
    """
    clusterings = (replicates, *crossed)
    total = type(replicates)(*(side.sum(axis=0) for side in replicates.outcomes))
    if min(len(each.tp) for each in clusterings) < 2:  # noqa: PLR2004 - a spread needs two
        return np.full(total.tp.shape, np.nan), np.full(total.tp.shape, np.nan)
    estimate = index_of(index, total)
    shifts = [(_index_shifts(index, each, estimate), np.add.reduce(each.outcomes)) for each in clusterings]
    spread = spread_of_clusterings(shifts, in_time=replicates.in_time)
    middle, of_rows = _with_half_a_row(index, total, squares)
    variance = np.fmax(spread.variance, of_rows)
    return _index_limits(index, estimate, middle, variance, tail(confidence, spread.degrees))


def _index_shifts(index: Index, replicates: Confusion, estimate: Floats) -> Floats:
    """How far each replicate moves an index, of shape (G, K)."""
    without = index_of(index, type(replicates)(*map(leave_one_out, replicates.outcomes)))
    without = np.where(np.isnan(without), estimate, without)
    return np.asarray(without.mean(axis=0) - without)


def _with_half_a_row(index: Index, counts: Confusion, squares: Confusion | None) -> tuple[Floats, Floats]:
    """An index with half a row more of every outcome, and its variance if rows were independent."""
    outcomes = _floats(counts)
    of_squares = outcomes if squares is None else _floats(squares)
    weight = np.add.reduce(of_squares) / np.add.reduce(outcomes)  # of a row, on average
    more = [each + weight / 2 for each in outcomes]
    variance = np.zeros_like(more[0])
    for number, square in enumerate(of_squares):
        stepped = [each + 1j * _STEP * (at == number) for at, each in enumerate(more)]
        derivative = np.imag(value_of(index.text, _by_name(*stepped), _FUNCTIONS)) / _STEP
        variance += (square + weight**2 / 2) * derivative**2
    return np.asarray(value_of(index.text, _by_name(*more), _FUNCTIONS)), variance


def _index_limits(index: Index, estimate: Floats, middle: Floats, variance: Floats, tails: Floats) -> Limits:
    """Limits around the middle on Fisher's scale, which hold the estimate."""
    stretch = 2 / (1 - index.lowest)
    scaled = (middle - index.lowest) * stretch - 1
    half = -scipy.special.ndtri(tails) * np.sqrt(variance) * stretch / (1 - scaled**2)
    sides = (np.tanh(np.arctanh(scaled) + sign * half) for sign in (-1, 1))
    lower, upper = ((side + 1) / stretch + index.lowest for side in sides)
    is_undefined = np.isnan(estimate)
    lower, upper = np.minimum(lower, estimate), np.maximum(upper, estimate)
    return np.where(is_undefined, np.nan, lower), np.where(is_undefined, np.nan, upper)


def _floats(counts: Confusion) -> list[Floats]:
    return [np.asarray(each, dtype=np.float64) for each in counts.outcomes]


def _by_name(*outcomes: NDArray[Any]) -> dict[str, NDArray[Any]]:
    return dict(zip(("tp", "fp", "fn", "tn"), outcomes, strict=True))


# Intervals of precision, recall, F1 and the false positive rate at every threshold, for labelled counts.
#
# Each is a proportion of counts: precision tp of tp + fp, recall tp of tp + fn, the false positive rate fp of fp + tn,
# and F1 = 2 J / (1 + J) of J, tp of tp + fp + fn (Jaccard). Where rows are independent, the first count is binomial
# given the sum. Weights and clusters make it vary more: the counts are divided by the factor, the design effect (Kish
# 1965), before binomial limits are taken of them.


PROPORTIONS = tuple(ratio.name for ratio in OF_LABELS)
_ROUNDING = 1e-24  # a variance of equal shares that differ by rounding
_FEW = 8192  # numbers of one ratio: of more, arrays of all ratios take memory and no less time
UNSEEN = 0.5  # what a unit that was not observed may add to a sum of values from 0 to 1, see `mean_limits`


@dataclass(frozen=True)
class Confusion:
    """Counts of true and false positives and negatives, or sums of weights, at thresholds; arrays of one shape.

    Attributes:
        in_time: Whether they are those of replicates on axis 0 that follow each other in time.
        others: Further counts that ratios are made of, by name.
    """

    tp: NDArray[Any]
    fp: NDArray[Any]
    fn: NDArray[Any]
    tn: NDArray[Any]
    in_time: bool = field(default=False, kw_only=True)
    others: Mapping[str, NDArray[Any]] = field(default_factory=dict, kw_only=True)

    @property
    def outcomes(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
        """True and false positives, false and true negatives."""
        return self.tp, self.fp, self.fn, self.tn

    def sides(self, ratio: Ratio) -> tuple[NDArray[Any], NDArray[Any]]:
        """Hits and misses of a ratio, for F1 of J."""
        return ratio.sides({**self.others, **_by_name(*self.outcomes)})


@dataclass(frozen=True)
class Weights:
    """The weights of rows, beyond their sums."""

    squares: Confusion  # sums of squared weights, of the shape of the counts
    positive: Floats | float  # the heaviest weight of a positive row, a number or of a shape that broadcasts
    negative: Floats | float  # the heaviest weight of a negative row, likewise


def _heaviest(name: str, positive: Floats | float, negative: Floats | float) -> tuple[Floats | float, Floats | float]:
    """Heaviest hit and heaviest miss of a ratio, chosen from the heaviest positive and negative."""
    of_outcome = {"tp": positive, "fn": positive, "fp": negative, "tn": negative}
    ratio = RATIO_OF[name]
    hit, miss = (reduce(np.maximum, (of_outcome[each] for each in side)) for side in (ratio.hits, ratio.misses))
    return hit, miss


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def intervals_of_rows(
    counts: Confusion,
    weights: Weights | None,
    confidence: Floats | float,
    *,
    fixed_sizes: bool = False,
    names: Sequence[str] = PROPORTIONS,
) -> dict[str, Limits]:
    """Limits of each ratio where rows are independent.

    Args:
        counts: Counts, or sums of weights.
        weights: What else is known of the weights; None: every weight is 1.
        confidence: Such as 0.95; one number, or one for every count.
        fixed_sizes: Whether every sample has as many positives and as many negatives; else as many rows. Precision and
            F1 vary less with fixed sizes.
        names: The ratios that are wanted.

    Returns:
        Lower and upper limits by ratio; nan where the ratio is undefined.
    """
    tails = np.asarray((1 - confidence) / 2)
    sides = {name: _side_by_side(name, counts, weights, tails, fixed_sizes=fixed_sizes) for name in names}
    together = [list(names)] if np.size(counts.tp) <= _FEW else [[name] for name in names]
    limits: dict[str, Limits] = {}
    for ratios in together:  # a call costs more than a few more numbers in it
        hits, misses, *spread, tails = (np.stack(each) for each in zip(*map(sides.__getitem__, ratios), strict=True))
        lower, upper = _limits(hits, misses, _CountSpread(*spread), tails)
        limits |= {name: _of_ratio(RATIO_OF[name], limit) for name, *limit in zip(ratios, lower, upper, strict=True)}
    return limits


def _side_by_side(
    name: str, counts: Confusion, weights: Weights | None, tails: Floats, *, fixed_sizes: bool
) -> list[Floats]:
    """Hits and misses of a ratio, their `_CountSpread`, and the tail probability, of one shape."""
    ratio = RATIO_OF[name]
    hits, misses = (np.asarray(side, dtype=np.float64) for side in counts.sides(ratio))
    squares = (counts if weights is None else weights.squares).sides(ratio)
    heaviest = (1.0, 1.0) if weights is None else _heaviest(name, weights.positive, weights.negative)
    effect = _effect_of_fixed_sizes(name, counts, heaviest) if fixed_sizes else 1.0
    spread = (*(effect * square for square in squares), *(effect * weight for weight in heaviest))
    return list(np.broadcast_arrays(hits, misses, *spread, tails))


def _effect_of_fixed_sizes(
    name: str, counts: Confusion, heaviest: tuple[Floats | float, Floats | float]
) -> Floats | float:
    """Variance of a ratio in samples of fixed class sizes over that in samples of as many rows; 1 for the rates.

    With fixed sizes the true and the false positives are binomial each by itself, so that by the delta method log(tp /
    fp) has the variance (1 - R) / tp + (1 - F) / fp with the rates R and F, and 1 / tp + 1 / fp with as many rows. For
    J = tp / (P + fp) of P positives it is (1 - R) / tp + fp (1 - F) / (P + fp)², and (1 - J) / tp. One unseen row is
    added to the misses of each rate, so that a rate of 1 is no certainty.
    """
    tp, fp, fn, tn = _floats(counts)
    hit, miss = heaviest
    not_recalled, not_alarmed = (fn + hit) / (tp + fn + hit), (tn + miss) / (fp + tn + miss)
    if name == "precision":
        effect = (fp * not_recalled + tp * not_alarmed) / (tp + fp)
    elif name == "f1":
        total = tp + fn + fp
        lacking = (fp + fn + miss) / (total + miss)
        effect = (not_recalled + tp * fp * not_alarmed / total**2) / lacking
    else:
        return 1.0
    return np.where(effect > 0, np.minimum(effect, 1.0), 1.0)


@dataclass(frozen=True)
class _CountSpread:
    """Variances of hits and misses if they were Poisson counts, sums of squared weights; weights of unseen ones."""

    hits: Floats
    misses: Floats
    hit: Floats | float
    miss: Floats | float


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def _effective_size(hits: Floats, misses: Floats, of_hits: Floats, of_misses: Floats) -> Floats:
    """Number of equally weighted rows that would have the variance of the weighted share."""
    total = hits + misses
    share = hits / total
    variance = (of_hits * (1 - share) ** 2 + of_misses * share**2) / total**2
    mixed = share * (1 - share) / variance
    return np.where((hits > 0) & (misses > 0), mixed, total**2 / (of_hits + of_misses))


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def intervals_of_clusters(
    replicates: Confusion,
    confidence: float,
    *,
    heaviest: tuple[float, float] | None = None,
    names: Sequence[str] = PROPORTIONS,
    ratios: Mapping[str, Ratio] = RATIO_OF,
    crossed: Sequence[Confusion] = (),
    resampling: Resampling | None = None,
    fewest_degrees: float = 0.0,
) -> dict[str, Limits]:
    """Limits of each ratio of one group where only replicates, groups of clusters, are independent.

    The design effect comes from the jackknife variance of the share. Where the share is 0 or 1 and shows no variance,
    that of the nearest lower threshold with both hits and misses stands in, and 1 at least. Degrees of freedom and
    skewness are those of `clusters`. Limits of the bootstrap take the place of these wherever it has any.

    Args:
        replicates: Shape (G, K): counts or weights of each replicate, thresholds rising.
        confidence: Such as 0.95.
        heaviest: The heaviest weight of a positive and of a negative row; None: every weight is 1.
        names: The ratios that are wanted.
        ratios: What they are, by name.
        crossed: The same of the second parent of rows that have two, and of the intersections of both.
        resampling: How the bootstrap draws; None: limits of the closed form alone.
        fewest_degrees: Degrees of freedom that the limits have at least; those of single thresholds know none.

    Returns:
        Limits of shape (K,) by ratio; nan where the ratio is undefined, and for one replicate of any parent.
    """
    limits = {}
    for name in names:
        ratio = ratios[name]
        clusterings = [counts.sides(ratio) for counts in (replicates, *crossed)]
        hits, misses = clusterings[0]
        if min(len(of_clustering[0]) for of_clustering in clusterings) < 2:  # noqa: PLR2004 - a spread needs two
            limits[name] = (np.full(hits.shape[1], np.nan), np.full(hits.shape[1], np.nan))
            continue
        of_clusters = _OfClusters.of(clusterings, in_time=replicates.in_time)
        effect, degrees = of_clusters.effect, np.maximum(of_clusters.degrees, fewest_degrees)
        hit, miss = effect, effect
        if heaviest is not None:
            hit, miss = (np.maximum(effect, weight) for weight in _heaviest(name, *heaviest))
        total_hits, total_misses = (side.sum(axis=0).astype(np.float64) for side in (hits, misses))
        spread = _CountSpread(effect * total_hits, effect * total_misses, hit, miss)
        around = _of_ratio(ratio, _limits(total_hits, total_misses, spread, tail(confidence, degrees)))
        factors = stretches(of_clusters.excess_skewness, degrees, confidence)
        limits[name] = stretched(around, ratio.of_share(of_clusters.share), factors)
        if resampling is not None:
            drawn = _of_ratio(ratio, share_limits(hits, misses, confidence, resampling))
            limits[name] = otherwise(drawn, limits[name])
    return limits


@dataclass(frozen=True)
class _OfClusters:
    """A share over clusters at every threshold, its design effect times the weight of a row, and further moments.

    The degrees of freedom are those of its variance; `excess_skewness` is what limits of a proportion do not allow for.
    """

    share: Floats
    effect: Floats
    degrees: Floats
    excess_skewness: Floats

    @classmethod
    @np.errstate(divide="ignore", invalid="ignore", over="ignore")
    def of(cls, clusterings: Sequence[tuple[NDArray[Any], NDArray[Any]]], *, in_time: bool = False) -> _OfClusters:
        """From hits and misses of shape (G, K) by each clustering: one, perhaps in time, or two parents and both."""
        hits, misses = clusterings[0]
        total_hits, total = hits.sum(axis=0).astype(np.float64), (hits + misses).sum(axis=0).astype(np.float64)
        share = total_hits / total
        # variance of the share over that of a binomial share of as many rows; without both outcomes a neighbour's
        shifts = [(_shifts(share, *sides), np.add(*sides)) for sides in clusterings]
        spread = spread_of_clusterings(shifts, in_time=in_time)
        effect = spread.variance * total / (share * (1 - share))
        mixed = (total_hits > 0) & (total_hits < total) & (spread.variance > _ROUNDING)
        effect = np.where(mixed, effect, np.maximum(_carried(effect, mixed), 1.0))
        excess = np.where(mixed, spread.skewed - implied_skewness(share, spread.variance, "beta"), 0.0)
        return cls(share, effect, spread.degrees, excess)


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def _shifts(share: Floats, hits: NDArray[Any], misses: NDArray[Any]) -> Floats:
    """How far each replicate moves a share, of shape (G, K)."""
    jackknifed_hits, jackknifed_misses = leave_one_out(hits), leave_one_out(misses)
    jackknifed = jackknifed_hits / (jackknifed_hits + jackknifed_misses)
    jackknifed = np.where(np.isnan(jackknifed), share, jackknifed)
    return np.asarray(jackknifed.mean(axis=0) - jackknifed)


@np.errstate(divide="ignore", invalid="ignore")
def may_days_be_alike(replicates: Confusion) -> bool:
    """Whether replicates in time that follow each other are alike in precision, recall or the false positive rate."""
    if not replicates.in_time or len(replicates.tp) < 2:  # noqa: PLR2004 - there are no neighbours
        return False
    sides = [replicates.sides(ratio) for ratio in (PRECISION, RECALL, FPR)]
    shares = [hits.sum(axis=0) / (hits + misses).sum(axis=0) for hits, misses in sides]
    shifts = [_shifts(share, *of_ratio) for share, of_ratio in zip(shares, sides, strict=True)]
    return may_neighbours_be_alike(np.concatenate(shifts, axis=1))


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def mean_limits(mean: Floats, variance: Floats, size: Floats, tails: Floats) -> Limits:
    """Limits of a mean of values from 0 to 1, of few units and of many.

    Values of few units may all lie in one of two modes, so that their spread says nothing of the other one and
    Student's t covers too little. The mean is taken as a share whose hits are the values and whose misses are what they
    lack of 1, with the design effect from the variance, and a unit that was not observed may add half to either side.
    That half lies between nothing, which covers too little, and 1, the most that a unit can be, which covers nearly
    always; its effect vanishes with the number of units. Without a hit or without a miss the limits are those of a
    binomial share.

    Args:
        mean: Any shape; nan gives nan.
        variance: Of the mean, likewise.
        size: Number of values that the mean is over.
        tails: Tail probability on each side, as from `jackknife.tail`.
    """
    inside = (mean > 0) & (mean < 1)
    effect = np.where(inside, variance * size / (mean * (1 - mean)), 1.0)
    hits, misses, unseen = mean * size, (1 - mean) * size, np.maximum(effect, UNSEEN)
    return _limits(hits, misses, _CountSpread(effect * hits, effect * misses, unseen, unseen), tails)


def _carried(values: Floats, usable: NDArray[np.bool_]) -> Floats:
    """Values, those not usable replaced by the nearest usable one before, or else the first; without any, by 1."""
    if not usable.any():
        return np.ones_like(values)
    nearest = np.maximum.accumulate(np.where(usable, np.arange(len(values)), -1))
    return np.asarray(values[np.where(nearest >= 0, nearest, int(np.argmax(usable)))])


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def _limits(hits: Floats, misses: Floats, spread: _CountSpread, tail_probability: Floats) -> Limits:
    """Binomial limits of effective counts; for each limit one unseen row of the side that it fears is added.

    An unseen row is as heavy as the heaviest may be (Fay & Feuer 1997, who add it to a sum of weighted Poisson counts).
    With equal weights these are the limits of `binomial_limits`.
    """
    defined, share = hits + misses > 0, hits / (hits + misses)
    miss = _with_unseen(misses, hits, (spread.misses, spread.hits), spread.miss)
    hit = _with_unseen(hits, misses, (spread.hits, spread.misses), spread.hit)
    events, others = (np.stack(each) for each in zip(miss, hit, strict=True))
    upper_miss, upper_hit = proportion_limit_above(events, others, tail_probability)
    lower, upper = np.where(hits > 0, 1 - upper_miss, 0.0), np.where(misses > 0, upper_hit, 1.0)
    lower, upper = np.minimum(lower, share), np.maximum(upper, share)  # quantiles of huge counts are rounded
    return np.where(defined, lower, np.nan), np.where(defined, upper, np.nan)


def _of_ratio(ratio: Ratio, limits: Sequence[Floats]) -> Limits:
    """Limits of a ratio from the limits of its proportion, which is J for F1."""
    lower, upper = map(ratio.of_share, limits)
    return lower, upper


def _with_unseen(
    events: Floats, others: Floats, squares: tuple[Floats, Floats], weight: Floats | float
) -> tuple[Floats, Floats]:
    """Effective counts of weighted events with one more, and of the others."""
    of_events, of_others = squares
    more = np.where(events + others > 0, events + weight, 1.0)
    size = _effective_size(more, others, of_events + np.square(weight), of_others)
    effective = size * more / (more + others)
    return effective, size - effective
