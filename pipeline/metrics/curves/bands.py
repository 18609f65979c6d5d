"""Bands that hold the whole curve: of rows and of clusters, with their critical values."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
import scipy

from ...base.records import dataclass
from ..uncertainty.clusters import effective_number
from ..uncertainty.proportions import intervals_of_clusters, intervals_of_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from ..uncertainty.jackknife import Limits
    from ..uncertainty.proportions import Confusion, Weights


# _Critical values of simultaneous bands, which hold the whole curve of precision and recall, or the whole ROC curve.
#
# Limits at single thresholds hold the truth at each threshold with their confidence, and miss it somewhere far more
# often. A band takes the same limits with a critical value c in place of the normal quantile z, so that all of them
# hold at once (sup-t bands: Montiel Olea & Plagborg-Møller 2019; of ROC curves Jensen, Müller & Schäfer 2000):
#
#     P(max over thresholds and both ratios of |error / standard error| ≤ c) = confidence
#
# The errors of a curve come from the same rows, and so are nearly normal together. Their joint distribution is drawn:
#
# - *Independent rows.* Every bin of scores has normal noise with the variance of its count, or of its sum of weights,
#   positives and negatives each by themselves. Running sums of the noise are the errors of tp and fp at each threshold;
#   from these the errors of the ratios follow by the delta method. Where class sizes are fixed, the noise of a class
#   adds up to 0.
# - *Clusters.* The contribution of a cluster to the error of a ratio p = h / (h + m) is h_g (1 - p) - m_g p.
# Each cluster gets one normal multiplier for all its contributions; of rows with two parents a cluster of either.
#
# Normal noise has no Student's t and no bounds at 0 and 1; limits have both. So c serves as a level: `bands` takes the
# limits of single thresholds at the confidence 1 - 2 Φ(-c).


Floats: TypeAlias = "NDArray[np.float64]"
_Method: TypeAlias = Literal["sup_t_rows", "sup_t_clusters", "sup_t_sample", "bonferroni"]

RATIOS = ("precision", "recall", "fpr")
CURVES = (("recall", "precision"), ("recall", "fpr"))  # the ratios whose limits hold a curve together
DRAWS = 1999
_FEWEST_BEYOND = 20  # draws beyond a critical value; with fewer it is not known
_DIGITS = 1000  # critical values are rounded up to so many parts of 1, the same on every machine
_CELLS_AT_ONCE = 250_000
_ROUNDING = 1e-12  # what is no more beside a whole class is nothing but rounding
_UNSEEN = 0.5


@dataclass(frozen=True)
class Largest:
    """The largest standardised error of each ratio over all thresholds, draw by draw."""

    draws: dict[str, Floats]  # by ratio, shape (B,); 0 where a ratio has no spread at any threshold
    looks: dict[str, int]  # by ratio, the number of thresholds at which it is defined
    method: _Method  # how the errors were drawn


@dataclass(frozen=True)
class _Critical:
    """The numbers that replace the normal quantile in the limits of a band."""

    values: dict[str, float]  # by ratio, c
    method: _Method  # how they were found

    def confidence(self, name: str) -> float:
        """The two-sided confidence of the limits at single thresholds that make the band of a ratio."""
        return 1.0 - 2.0 * float(scipy.special.ndtr(-self.values[name]))


def spread_out(size: int, most: int) -> NDArray[np.int64]:
    """At most so many of the numbers from 0 to size - 1: half of them evenly, the others denser towards either end.

    Towards the ends of a curve the next threshold changes the ratios most.
    """
    if size <= most:
        return np.arange(size)
    even = np.linspace(0, size - 1, most // 2)
    end = np.geomspace(1, size, most // 4) - 1
    return np.unique(np.concatenate([even, end, size - 1 - end]).round().astype(np.int64))


@np.errstate(divide="ignore", invalid="ignore")
def _largest_of_rows(
    counts: Confusion, squares: Confusion, *, fixed_sizes: bool = False, draws: int = DRAWS, seed: int = 0
) -> Largest:
    """The largest errors where rows are independent, of sums of weights and of squared weights, shape (K,)."""
    sides = np.array([[counts.tp, counts.fn], [counts.fp, counts.tn]], dtype=np.float64)[:, :, ::-1]
    variances = np.array([[squares.tp, squares.fn], [squares.fp, squares.tn]], dtype=np.float64)[:, :, ::-1]
    retrieved, rates = variances[:, 0], sides[:, 0] / sides.sum(axis=1)
    in_bins = np.diff(np.concatenate([np.zeros((2, 1)), retrieved, variances.sum(axis=1)[:, -1:]], axis=1))
    of_retrieved, of_all = retrieved, variances.sum(axis=1)
    if fixed_sizes:
        of_retrieved = retrieved * (1 - 2 * rates) + rates**2 * of_all
        of_retrieved = np.where(of_retrieved > _ROUNDING * of_all, of_retrieved, 0.0)
    (tp, fn), (fp, tn) = sides
    precision = _Ratio.of(tp, fp, of_retrieved[0], of_retrieved[1])
    recall, fpr = (_Ratio.of(*sides[i], *variances[i]) for i in (0, 1))
    largest: dict[str, list[Floats]] = {name: [] for name in RATIOS}
    for noise in _noise(np.sqrt(np.maximum(in_bins, 0.0)), draws, seed):
        sums = np.cumsum(noise, axis=2)
        errors, totals = sums[:, :, :-1], sums[:, :, -1:]
        for name, ratio, side in (("recall", recall, 0), ("fpr", fpr, 1)):
            largest[name].append(ratio.largest(errors[side], totals[side] - errors[side]))
        bridges = errors - totals * rates[:, None, :] if fixed_sizes else errors
        largest["precision"].append(precision.largest(bridges[0], bridges[1]))
    looks = {name: int((hits + misses > 0).sum()) for name, hits, misses in _by_ratio(tp, fp, fn, tn)}
    return Largest({name: np.concatenate(blocks) for name, blocks in largest.items()}, looks, "sup_t_rows")


def _by_ratio(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> tuple[tuple[str, Floats, Floats], ...]:
    return ("precision", tp, fp), ("recall", tp, fn), ("fpr", fp, tn)


def _noise(scales: Floats, draws: int, seed: int) -> Iterator[Floats]:
    """Normal noise of two classes, shape (2, b, bins), in blocks of draws; `scales` has the shape (2, bins)."""
    rng = np.random.default_rng(seed)
    at_once = max(1, _CELLS_AT_ONCE // scales.shape[1])
    for start in range(0, draws, at_once):
        yield rng.standard_normal((2, min(at_once, draws - start), scales.shape[1])) * scales[:, None, :]


@dataclass(frozen=True)
class _Ratio:
    """The standardised error of a ratio of hits and misses, linear in the errors of both."""

    used: NDArray[np.bool_]  # shape (K,): where it has a spread, even if the share itself is 0 or 1
    of_hits: Floats  # what an error of the hits adds, at the thresholds that are used
    of_misses: Floats  # what an error of the misses takes away

    @classmethod
    def of(cls, hits: Floats, misses: Floats, variance_of_hits: Floats, variance_of_misses: Floats) -> _Ratio:
        """From hits, misses and the variances of both, shape (K,)."""
        share = _share(hits, misses)
        variance = (1 - share) ** 2 * variance_of_hits + share**2 * variance_of_misses
        used = variance > 0
        error = np.sqrt(variance[used])
        return cls(used, (1 - share[used]) / error, share[used] / error)

    def largest(self, hits: Floats, misses: Floats) -> Floats:
        """The largest absolute value of each draw, shape (B,), of errors of shape (B, K)."""
        return _largest(hits[:, self.used] * self.of_hits - misses[:, self.used] * self.of_misses)


def _share(hits: Floats, misses: Floats) -> Floats:
    """Hits over hits and misses, half of one more on both sides: a share of 0 or 1 would have no error."""
    return np.asarray((hits + _UNSEEN) / (hits + misses + 2 * _UNSEEN))


def _largest(errors: Floats) -> Floats:
    return np.asarray(np.abs(errors).max(axis=1, initial=0.0))


@np.errstate(divide="ignore", invalid="ignore")
def _largest_of_clusters(parents: Sequence[Confusion], *, draws: int = DRAWS, seed: int = 0) -> Largest:
    """The largest errors where only replicates, groups of clusters, are independent, of counts of shape (G, K).

    Of rows with two parents they are counts by each, as each of their replicates has a multiplier of its own.
    """
    by_parent = [_by_ratio(*(np.asarray(side, dtype=np.float64) for side in parent.outcomes)) for parent in parents]
    looks = {name: int(((hits + misses).sum(axis=0) > 0).sum()) for name, hits, misses in by_parent[0]}
    contributions = {of_ratio[0][0]: _contributions(of_ratio) for of_ratio in zip(*by_parent, strict=True)}
    number, width = sum(len(parent.tp) for parent in parents), parents[0].tp.shape[1]
    rng, at_once = np.random.default_rng(seed), max(1, _CELLS_AT_ONCE // max(number, width))
    largest: dict[str, list[Floats]] = {name: [] for name in RATIOS}
    for start in range(0, draws, at_once):
        multipliers = rng.standard_normal((min(at_once, draws - start), number))
        for name, of_ratio in contributions.items():
            largest[name].append(_largest(multipliers @ of_ratio))
    return Largest({name: np.concatenate(blocks) for name, blocks in largest.items()}, looks, "sup_t_clusters")


def _contributions(by_parent: Sequence[tuple[str, Floats, Floats]]) -> Floats:
    """The addition of each replicate of each parent to the standardised error of a share, where that has a spread."""
    added = []
    for _, hits, misses in by_parent:
        share = _share(hits.sum(axis=0), misses.sum(axis=0))
        added.append(hits * (1 - share) - misses * share)
    every = np.concatenate(added)
    scale, (_, hits, misses) = np.sqrt((every**2).sum(axis=0)), by_parent[0]
    used = scale > _ROUNDING * (hits + misses).sum(axis=0)
    return np.asarray(every[:, used] / scale[used])


def _critical_values(largest: Largest, confidence: float) -> _Critical:
    """The critical value of every ratio, such that both curves are held with the confidence.

    Recall belongs to both curves and has one band, with the larger of the values that hold precision and recall, and
    recall and the false positive rate. The value of the other ratio is then as small as the confidence of its curve
    allows. No value is below the normal quantile, or above that of Bonferroni's correction, which takes the place of
    draws where the confidence is so high that these say too little.
    """
    bounds = _bonferroni(largest.looks, confidence)
    draws = min(len(values) for values in largest.draws.values())
    if (draws + 1) * (1 - confidence) < _FEWEST_BEYOND - 1e-9:
        return _Critical(bounds, "bonferroni")
    least = float(-scipy.special.ndtri((1 - confidence) / 2))
    values = {name: min(max(least, value), bounds[name]) for name, value in _sup_t(largest.draws, confidence).items()}
    rounded = {name: math.ceil(values[name] * _DIGITS) / _DIGITS for name in RATIOS}
    return _Critical(rounded, largest.method)


def _bonferroni(looks: Mapping[str, int], confidence: float) -> dict[str, float]:
    """_Critical values of Bonferroni's correction over the thresholds of both ratios of a curve."""
    of_curves = [-float(scipy.special.ndtri((1 - confidence) / 2 / max(looks[a] + looks[b], 1))) for a, b in CURVES]
    return {"precision": of_curves[0], "recall": max(of_curves), "fpr": of_curves[1]}


def _sup_t(draws: Mapping[str, Floats], confidence: float) -> dict[str, float]:
    """_Critical values of the draws alone."""
    recall = max(_quantile(np.maximum(draws[first], draws[second]), confidence) for first, second in CURVES)
    values = {"recall": recall}
    for _, name in CURVES:
        # draws in which recall leaves its band are lost already
        values[name] = _quantile(np.where(draws["recall"] > recall, np.inf, draws[name]), confidence)
    return values


def _quantile(values: Floats, confidence: float) -> float:
    """The value that the confidence of all draws, and the one that was observed, do not exceed."""
    rank = math.ceil((len(values) + 1) * confidence - 1e-9)
    return float(np.partition(values, rank - 1)[rank - 1])


# Simultaneous bands of precision, recall and the false positive rate over all thresholds of a group.
#
# A band has the limits of single thresholds at a higher confidence, see `_critical_values`, with two differences:
#
# - *Recall and the false positive rate never rise with the threshold.* As all limits hold together, a lower limit holds
#   at every lower threshold, too, and an upper limit at every stricter one. So the band of a rate is nowhere wider than
#   at the thresholds that have data enough.
# - *Degrees of freedom.* At single thresholds the variance between clusters may rest on few of them, and with 3
#   degrees the quantile of t that belongs to c = 3.2 is 11.6. Variances of neighbouring thresholds are alike, and a
#   band over all of them does not hang on the one with the fewest degrees: it takes at least half of what the
#   clusters of the whole group allow for, (effective number - 1) / 2.
#
# It is nowhere narrower than the limits of single thresholds. Measured in `studies/coverage_of_bands.py`.


if TYPE_CHECKING:
    Single: TypeAlias = Mapping[str, Limits]

_FALLING = ("recall", "fpr")


@dataclass(frozen=True)
class Draws:
    """How many errors are drawn, and their seed: the same gives the same draws."""

    number: int = DRAWS
    seed: int = 0


@dataclass(frozen=True)
class Band:
    """The band of one group."""

    limits: dict[str, Limits]  # by ratio, shape (K,), thresholds rising; nan where there is none
    critical: _Critical  # what took the place of the normal quantile


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
    largest = _largest_of_rows(counts, squares, fixed_sizes=fixed_sizes, draws=draws.number, seed=draws.seed)
    critical = _critical_values(largest, confidence)
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
        confidence: As for `band_of_rows`.
        single: Likewise.
        heaviest: As for `intervals_of_clusters`.
        crossed: Likewise.
        draws: As for `band_of_rows`.
    """
    draws = draws or Draws()
    parents = (replicates, *crossed[:1])
    critical = _critical_values(_largest_of_clusters(parents, draws=draws.number, seed=draws.seed), confidence)
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


def band_of_sample(
    largest: Largest, confidence: float, values: Mapping[str, Floats], single: Single, scarcest: Floats
) -> Band:
    """The band of a curve that is estimated from a sample: limits of single thresholds, farther away.

    How much farther is r = c / z where limits are those of normal errors, and r² where an outcome was not seen at all,
    of whose number log(1 / probability) bounds the tail; r (1 + (r - 1) / (m + 1)) lies between, and above the ratio of
    the quantiles of gamma of m events.

    Args:
        largest: The largest errors of draws.
        confidence: Such as 0.95.
        values: By ratio, shape (K,).
        single: Limits of single thresholds.
        scarcest: Shape (K,): labelled rows with the outcome that fewest have.
    """
    critical = _critical_values(largest, confidence)
    normal = -float(scipy.special.ndtri((1 - confidence) / 2))
    limits: dict[str, Limits] = {}
    for name in RATIOS:
        ratio = critical.values[name] / normal
        farther = ratio * (1 + (ratio - 1) / (scarcest + 1))
        low, high = (values[name] + (side - values[name]) * farther for side in single[name])
        limits[name] = np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)
    return Band(_finished(limits, single), critical)


def _effective(parent: Confusion) -> float:
    """Effective number of the replicates of a parent."""
    return float(effective_number((parent.tp + parent.fp + parent.fn + parent.tn)[:, 0]))


def _finished(limits: Mapping[str, Limits], single: Single) -> dict[str, Limits]:
    """Limits that fall with the threshold as the rates do, and are nowhere narrower than at single thresholds."""
    finished = {}
    for name, of_ratio in limits.items():
        is_given = ~(np.isnan(of_ratio[0]) | np.isnan(of_ratio[1]))
        lower, upper = _falling(of_ratio) if name in _FALLING else of_ratio
        farther = np.fmin(lower, single[name][0]), np.fmax(upper, single[name][1])
        finished[name] = np.where(is_given, farther[0], np.nan), np.where(is_given, farther[1], np.nan)
    return finished


def _falling(limits: Limits) -> Limits:
    """Joint limits of a rate that never rises with the threshold, made to fall with it."""
    lower, upper = limits
    return np.fmax.accumulate(lower[::-1])[::-1], np.fmin.accumulate(upper)
