"""Bootstrap-t limits of statistics of clusters."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import scipy

from ...records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from .jackknife import Limits


if TYPE_CHECKING:
    Floats: TypeAlias = NDArray[np.float64]


# How the bootstrap draws replicates again, and which of the ordered results bound the tails.


DEFAULT_RESAMPLES, FEWEST_RESAMPLES, MOST_RESAMPLES = 999, 99, 100_000
MOST_UNITS = 1_000  # units that are resampled each by itself; more of them are put together
_WEIGHTS_AT_ONCE = 4_000_000
_NEAR = 1e-9


@dataclass(frozen=True)
class Resampling:
    """How replicates are drawn again.

    Attributes:
        resamples: Number of resamples, B.
        seed: The same seed draws the same replicates.
    """

    resamples: int = DEFAULT_RESAMPLES
    seed: int = 0

    def weights(self, replicates: int) -> Iterator[Floats]:
        """How often each of G replicates is drawn: blocks of resamples, shape (b, G), whole numbers that add up to G.

        The same resamples come whatever the size of the blocks.
        """
        if self.resamples * replicates <= _WEIGHTS_AT_ONCE:
            yield _all_weights(self, replicates)
            return
        rng, at_once = np.random.default_rng(self.seed), max(1, _WEIGHTS_AT_ONCE // replicates)
        for start in range(0, self.resamples, at_once):
            yield _drawn(rng, replicates, min(at_once, self.resamples - start))

    def rank(self, confidence: float) -> int:
        """Which of the ordered values bounds the tail on each side, from 1; 0: too few resamples for the confidence."""
        return math.floor((self.resamples + 1) * (1 - confidence) / 2 + _NEAR)

    def quantiles(self, distances: Floats, confidence: float) -> tuple[Floats, Floats]:
        """Quantiles of studentised distances, shape (B, …): those with equal tails, or the symmetric ones if farther.

        Those with equal tails follow the skewness of the sample, which may be that of one large cluster: on the short
        side they can be as near as one standard error. Quantiles of the absolute distances (Hall 1988) bound them from
        below. A distance that is nan counts as beyond both limits.

        Returns:
            Lower and upper quantile, shape (…); infinite where so many distances are.
        """
        rank = self.rank(confidence)
        if rank == 0:
            nothing = np.full(distances.shape[1:], np.inf)
            return -nothing, nothing
        is_missing, last = np.isnan(distances), len(distances)
        low = np.partition(np.where(is_missing, -np.inf, distances), rank - 1, axis=0)[rank - 1]
        above = np.where(is_missing, np.inf, distances)
        high = np.partition(above, last - rank, axis=0)[-rank]
        of_both = math.floor((last + 1) * (1 - confidence) + _NEAR)
        symmetric = np.partition(np.abs(above), last - of_both, axis=0)[-of_both]
        return np.minimum(low, -symmetric), np.maximum(high, symmetric)


def _drawn(rng: np.random.Generator, replicates: int, resamples: int) -> Floats:
    shares = np.full(replicates, 1 / replicates)
    return rng.multinomial(replicates, shares, size=resamples).astype(np.float64)


@lru_cache(maxsize=2)
def _all_weights(resampling: Resampling, replicates: int) -> Floats:
    weights = _drawn(np.random.default_rng(resampling.seed), replicates, resampling.resamples)
    weights.flags.writeable = False
    return weights


# Bootstrap-t limits of statistics of clusters, from the counts of replicates.
#
# Replicates are drawn with replacement, as many as there are, and the statistic is taken again from the counts of
# those drawn. How often each is drawn is multinomial, so that totals of resamples are products of a matrix of weights
# with the counts, and rows are not needed. Every resample has a standard error of its own, from the influences of its
# replicates (the infinitesimal jackknife), by which its distance from the estimate is divided. Quantiles of these
# studentised distances take the place of those of Student's t (Efron & Tibshirani 1993, chapter 12.5; with clusters
# Cameron, Gelbach & Miller 2008). Every threshold has quantiles of its own; see `Resampling.quantiles`.
#
# Statistics are taken on the scale on which they are nearly normal: ratios as differences of logarithms, which for a
# share of hits and misses is the logit, areas on the logit scale, and ratios with an uncertain denominator as
# N - r D with the ratio r of the sample, which gives limits like those of Fieller (Hwang 1995).
#
# A resample that has no value, such as a share of nothing, counts as beyond both limits. Where so many have none, or
# an infinite one, that a limit would be infinite, there is none (nan), and callers take that of the closed form.


Valued: TypeAlias = "tuple[Floats, Sequence[Floats]]"  # a statistic, and its derivatives by the totals
Statistic: TypeAlias = "Callable[[Sequence[Floats], Sequence[Floats]], Valued]"  # of totals and those of the sample

_CELLS_AT_ONCE = 2_000_000
_ROUNDING = 1e-12  # a variance that is less of its largest part is rounding


@dataclass(frozen=True)
class Studentised:
    """A statistic with its standard error and the quantiles of its studentised resamples; arrays of shape (K,).

    Attributes:
        value: The statistic.
        error: Its standard error.
        low: Lower quantile of (value* - value) / error*, usually below 0; -inf where the tail has no value.
        high: Upper quantile.
    """

    value: Floats
    error: Floats
    low: Floats
    high: Floats

    @property
    @np.errstate(invalid="ignore", over="ignore")
    def limits(self) -> Limits:
        """Limits on the scale of the statistic, which they hold; nan where a quantile is infinite."""
        ends = self.value - self.high * self.error, self.value - self.low * self.error
        lower, upper = (np.where(np.isfinite(end), end, np.nan) for end in ends)
        return np.minimum(lower, self.value), np.maximum(upper, self.value)


def studentised(
    statistic: Statistic, counts: Sequence[NDArray[Any]], confidence: float, resampling: Resampling
) -> Studentised:
    """Resample a statistic of totals.

    Args:
        statistic: From totals of resamples, in the order of `counts` and each of shape (b, K) or (b, 1), its value and
            its derivatives by each of them; beside it the totals of the sample, of shape (1, K) or (1, 1).
        counts: By replicate, each of shape (G, K) or (G, 1), G ≥ 2.
        confidence: Such as 0.95.
        resampling: How to draw.
    """
    replicates, width = len(counts[0]), max(count.shape[1] for count in counts)
    at_once = max(1, _CELLS_AT_ONCE // max(resampling.resamples, replicates))
    blocks = []
    for start in range(0, width, at_once):
        columns = slice(start, start + at_once)
        block = [np.asarray(count if count.shape[1] == 1 else count[:, columns], np.float64) for count in counts]
        blocks.append(_of_block(statistic, block, slice(start, min(start + at_once, width)), confidence, resampling))
    return Studentised(*(np.concatenate(values) for values in zip(*blocks, strict=True)))


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def _of_block(
    statistic: Statistic, counts: Sequence[Floats], columns: slice, confidence: float, resampling: Resampling
) -> tuple[Floats, Floats, Floats, Floats]:
    """The attributes of `Studentised` at some thresholds."""
    moments = _Moments(counts)
    width = columns.stop - columns.start
    value, error = moments.taken(statistic, np.ones((1, len(counts[0]))), width)
    distances = np.empty((resampling.resamples, width))
    start = 0
    for weights in resampling.weights(len(counts[0])):
        resampled, errors = moments.taken(statistic, weights, width)
        distances[start : start + len(weights)] = (resampled - value) / errors
        start += len(weights)
    low, high = resampling.quantiles(distances, confidence)
    return value[0], error[0], low, high


@np.errstate(invalid="ignore")
def _on_grid(values: Floats) -> Floats:
    """Values rounded so little that sums of G of them, however often each is drawn, are exact in any order.

    Matrix products add up in an order that depends on the number of threads. Multiples of a power of two of which G of
    the largest value have fewer than 2^53 are added without rounding. Whole numbers stay as they are.

    Args:
        values: Shape (G, …); each column has a grid of its own.
    """
    _, exponent = np.frexp(np.abs(values).max(axis=0) * len(values))
    unit = np.ldexp(1.0, exponent - 52)
    return np.asarray(np.rint(values / unit) * unit)


class _Moments:
    """Totals of weighted replicates, and the variance of what depends on them.

    Args:
        counts: By replicate, each of shape (G, K) or (G, 1).
    """

    def __init__(self, counts: Sequence[Floats]) -> None:
        self._counts = [_on_grid(count) for count in counts]
        pairs = [(row, column) for row in range(len(counts)) for column in range(row, len(counts))]
        self._sample = [count.sum(axis=0, keepdims=True) for count in self._counts]
        self._products = {(row, column): _on_grid(counts[row] * counts[column]) for row, column in pairs}

    def taken(self, statistic: Statistic, weights: Floats, width: int) -> tuple[Floats, Floats]:
        """A statistic of resamples and its standard errors, each of shape (b, K).

        The variance is G / (G - 1) × the weighted sum of squares of the influences d · x_g about their mean, where d
        are the derivatives: the squares need only the sums of products of counts.

        Args:
            statistic: As for `studentised`.
            weights: Shape (b, G).
            width: K.
        """
        replicates = weights.shape[1]
        totals = [weights @ count for count in self._counts]
        value, derivatives = statistic(totals, self._sample)
        squares, largest, mean = np.zeros((3, len(weights), width))
        for (row, column), product in self._products.items():
            term = derivatives[row] * derivatives[column] * (weights @ product)
            squares += term if row == column else 2 * term
            np.maximum(largest, np.abs(term), out=largest)
        for derivative, total in zip(derivatives, totals, strict=True):
            mean += derivative * total
        variance = (squares - mean**2 / replicates) * (replicates / (replicates - 1))
        variance = np.where(variance > _ROUNDING * largest, variance, 0.0)
        # an infinite value has no error; its distance is infinite whatever that is
        errors = np.where(np.isinf(value), 1.0, np.sqrt(variance))
        return np.broadcast_to(value, errors.shape), errors


def _log_ratio(totals: Sequence[Floats], _sample: Sequence[Floats]) -> Valued:
    """The difference log N - log D, and its derivatives."""
    top, bottom = totals
    return np.log(top) - np.log(bottom), (1 / top, -1 / bottom)


def ratio_limits(
    tops: NDArray[Any], bottoms: NDArray[Any], confidence: float, resampling: Resampling
) -> tuple[Floats, Floats]:
    """Limits of the ratio of two totals on the log scale.

    Args:
        tops: Numerators by replicate, shape (G, K), ≥ 0, G ≥ 2.
        bottoms: Denominators, likewise.
        confidence: Such as 0.95.
        resampling: How to draw.

    Returns:
        Shape (K,); nan where there is no limit, as where a total is 0.
    """
    lower, upper = studentised(_log_ratio, (tops, bottoms), confidence, resampling).limits
    return np.exp(lower), np.exp(upper)


def share_limits(
    hits: NDArray[Any], misses: NDArray[Any], confidence: float, resampling: Resampling
) -> tuple[Floats, Floats]:
    """Limits of the share of hits on the logit scale, log hits - log misses; arguments as for `ratio_limits`."""
    lower, upper = studentised(_log_ratio, (hits, misses), confidence, resampling).limits
    return scipy.special.expit(lower), scipy.special.expit(upper)


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def area_quantiles(shifts: Floats, area: float, confidence: float, resampling: Resampling) -> tuple[float, float]:
    """Quantiles of the studentised logit of an area, from what each replicate shifts: the linearised bootstrap-t.

    An area* is taken as the area and the shifts of the replicates drawn, so that rows need not be put in order again.

    Args:
        shifts: Shape (G,): how far each replicate moves the area up.
        area: Between 0 and 1.
        confidence: Such as 0.95.
        resampling: How to draw.

    Returns:
        As `Studentised.low` and `high`; (-inf, inf) for fewer than two replicates.
    """
    replicates = len(shifts)
    if replicates < 2 or not 0 < area < 1:  # noqa: PLR2004 - a spread needs two
        return -math.inf, math.inf
    centred = _on_grid(shifts - shifts.mean())
    squares = _on_grid(centred * centred)
    distances = []
    for weights in resampling.weights(replicates):
        moved, total = weights @ centred, weights @ squares
        resampled = area + moved
        variance = (total - moved**2 / replicates) * (replicates / (replicates - 1))
        slope = np.where(variance > _ROUNDING * total, np.sqrt(variance), 0.0) / (resampled * (1 - resampled))
        far = np.where(resampled <= 0, -np.inf, np.inf)
        inside = (resampled > 0) & (resampled < 1)
        distances.append(
            np.where(
                inside, (scipy.special.logit(np.clip(resampled, 0.0, 1.0)) - scipy.special.logit(area)) / slope, far
            )
        )
    low, high = resampling.quantiles(np.concatenate(distances), confidence)
    return float(low), float(high)


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def area_limits(areas: Floats, errors: Floats, quantiles: Limits) -> Limits:
    """Limits of areas on the logit scale; nan where a quantile is nan or infinite.

    Args:
        areas: Between 0 and 1, any shape.
        errors: Their standard errors.
        quantiles: As from `area_quantiles`.
    """
    centre, error = scipy.special.logit(areas), errors / (areas * (1 - areas))
    ends = (centre - quantile * error for quantile in reversed(quantiles))
    lower, upper = (np.where(np.isfinite(end), scipy.special.expit(end), np.nan) for end in ends)
    return np.minimum(lower, areas), np.maximum(upper, areas)


def otherwise(limits: Limits, closed: Limits) -> Limits:
    """Limits of the bootstrap, and those of the closed form where it has none."""
    lower, upper = (np.where(np.isnan(limit), form, limit) for limit, form in zip(limits, closed, strict=True))
    return lower, upper
