"""The trend of the match rate over the days before the event: a test, and a slope with limits.

Before the event the match rate is a false positive rate and should be the same on every day. The model for replicate g
and day d is E m_gd = n_gd exp(a_g + b x_d): every replicate has its own level a_g, and all share one slope b. Given how
many matches a replicate has, its level drops out (the conditional likelihood of the Poisson model with fixed effects:
Hausman, Hall & Griliches 1984), and each replicate contributes to the score

    U_g(b) = sum over d of m_gd (x_d - x̄_g(b)),    x̄_g(b) = sum n_gd x_d exp(b x_d) / sum n_gd exp(b x_d)

Its mean is 0 at the true b, whatever the variance of the counts and however they depend on each other within the
replicate (Wooldridge 1999). The U_g(b) of independent replicates are therefore tested by Student's t, and the limits
enclose the slopes that the test does not reject. Where pairs have a second parent, such as the day of the article, the
variance is that over both (`metrics.uncertainty.spread`), from the scores of the intersections.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy

from ...records import dataclass
from ..uncertainty.jackknife import t_quantile
from ..uncertainty.spread import combined

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from ..uncertainty.jackknife import Floats

MIN_REPLICATES_FOR_TREND = 10
_BISECTIONS = 60
_LARGEST_EXPONENT = 500.0  # of exp(b x) over the range of days that is searched for b


@dataclass(frozen=True)
class Trend:
    """The trend at every threshold.

    Attributes:
        slope: Shape (T,): change of the log rate per day towards the event; nan where it is infinite or not estimated.
        lower: Lower limit of the slope; nan where there is none.
        upper: Upper limit of the slope; nan where there is none.
        p_value: Two-sided p-value of no trend.
        reason: Shape (T,), objects: why `slope` or `p_value` is nan; None where neither is. `no_before` (no pairs);
            `one_day` (pairs on one day only); `no_match`; `few_replicates` (fewer than ten have matches, and pairs on
            at least two days); `unbounded` (all matches are on the first day, or all on the last: the slope is
            infinite, but there is a p-value).
    """

    slope: Floats
    lower: Floats
    upper: Floats
    p_value: Floats
    reason: NDArray[np.object_]


@dataclass(frozen=True)
class CrossedMatches:
    """Matches before the event by the intersections of both parents of pairs, of which there are C.

    Attributes:
        matches: Shape (C, T): matches at or above each threshold.
        day_sums: Shape (C, T): the sum of their days.
        first: Shape (C,): the replicate of the first parent, as a row of the arrays of `trend`.
        second: Shape (C,): the replicate of the second parent, from 0.
        n_second: Number of replicates of the second parent.
    """

    matches: Floats
    day_sums: Floats
    first: NDArray[np.int64]
    second: NDArray[np.int64]
    n_second: int


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def trend(
    matches: Floats,
    day_sums: Floats,
    pairs: NDArray[np.int64],
    days: Floats,
    *,
    confidence: float,
    crossed: CrossedMatches | None = None,
) -> Trend:
    """The trend of the match rate over the days before the event.

    Args:
        matches: Shape (G, T): matches before the event at or above each threshold, per replicate.
        day_sums: Shape (G, T): the sum of `days` over these matches.
        pairs: Shape (G, D): compared pairs of each day.
        days: Shape (D,): middle of each day, in days from the event, so negative; of a day that the window cuts, the
            middle of the part inside the window.
        confidence: Confidence of the limits, such as 0.95.
        crossed: The same matches by both parents of pairs that have two.
    """
    used = pairs.sum(axis=0) > 0
    pairs, days = pairs[:, used], days[used]
    size = matches.shape[1]
    if len(days) < 2:  # noqa: PLR2004 - a slope needs two
        return _nothing(np.full(size, "one_day" if len(days) else "no_before", dtype=object))
    scores = _Scores(matches, day_sums, pairs.astype(np.float64), days, crossed)
    enough = scores.replicates >= MIN_REPLICATES_FOR_TREND
    # the slope is where the sum of the scores is 0; the limits are where |t| reaches the quantile
    widest = np.full(size, _LARGEST_EXPONENT / (days.max() - days.min()))
    slope = _root(lambda b: scores.at(b).sum(axis=0), -widest, widest)
    quantile = t_quantile(confidence, scores.degrees)
    lower = _root(lambda b: scores.t(b) - quantile, -widest, np.where(np.isnan(slope), widest, slope))
    upper = _root(lambda b: scores.t(b) + quantile, np.where(np.isnan(slope), -widest, slope), widest)
    p_value = scores.p_value()
    reason = np.full(size, None, dtype=object)
    reason[np.isnan(slope)] = "unbounded"
    reason[~enough] = "few_replicates"
    reason[scores.total == 0] = "no_match"
    slope, lower, upper, p_value = (np.where(enough, values, np.nan) for values in (slope, lower, upper, p_value))
    return Trend(slope, lower, upper, p_value, reason)


def _nothing(reason: NDArray[np.object_]) -> Trend:
    nan = np.full(len(reason), np.nan)
    return Trend(nan, nan, nan, nan, reason)


@dataclass(frozen=True)
class _Scores:
    matches: Floats
    day_sums: Floats
    pairs: Floats
    days: Floats
    crossed: CrossedMatches | None

    @property
    def informative(self) -> NDArray[np.bool_]:
        """Shape (G, T): whether the matches of a replicate could lie on more than one day."""
        return np.asarray((self.matches > 0) & ((self.pairs > 0).sum(axis=1) > 1)[:, None])

    @property
    def replicates(self) -> NDArray[np.int64]:
        return np.asarray(self.informative.sum(axis=0))

    @property
    def total(self) -> Floats:
        return np.asarray(self.matches.sum(axis=0))

    def at(self, slope: Floats) -> Floats:
        """U_g(b), shape (G, T), for one slope per threshold."""
        return np.where(self.informative, self.day_sums - self.matches * self._mean_day(slope), 0.0)

    def _mean_day(self, slope: Floats) -> Floats:
        """x̄_g(b), shape (G, T)."""
        edge = np.where(slope > 0, self.days.max(), self.days.min())
        weights = np.exp(slope * (self.days[:, None] - edge))
        return np.asarray((self.pairs @ (self.days[:, None] * weights)) / (self.pairs @ weights))

    def t(self, slope: Floats) -> Floats:
        """One-sample t statistic of the scores of the informative replicates, with the variance over both parents."""
        scores = self.at(slope)
        variances = [_variance_of_sum(scores, self.replicates)]
        if self.crossed is not None:
            first = self.crossed.first
            residuals = self.crossed.day_sums - self.crossed.matches * self._mean_day(slope)[first]
            of_cells = np.where(self.informative[first], residuals, 0.0)
            of_second = np.zeros((self.crossed.n_second, of_cells.shape[1]))
            np.add.at(of_second, self.crossed.second, of_cells)
            variances += [_variance_of_sum(sums, (sums != 0).sum(axis=0)) for sums in (of_second, of_cells)]
        return np.asarray(scores.sum(axis=0) / np.sqrt(combined(variances)))

    @property
    def degrees(self) -> Floats:
        """Degrees of freedom of `t`, shape (T,): the informative replicates of the smaller parent less one."""
        count: NDArray[np.int64] = self.replicates
        if self.crossed is not None:
            has_matches = np.zeros((self.crossed.n_second, self.matches.shape[1]))
            np.add.at(has_matches, self.crossed.second, self.crossed.matches > 0)
            count = np.minimum(count, (has_matches > 0).sum(axis=0))
        return np.asarray(np.maximum(count - 1.0, 1.0))

    def p_value(self) -> Floats:
        """Two-sided p-value of no trend; never smaller than flipping the signs of replicates could give, 2^(1 - G)."""
        count = self.replicates
        p = 2 * scipy.special.stdtr(self.degrees, -np.abs(self.t(np.zeros(len(count)))))
        return np.where(np.isnan(p), 1.0, np.maximum(p, 2.0 ** (1.0 - count)))


def _variance_of_sum(scores: Floats, count: NDArray[np.int64]) -> Floats:
    """Variance of the sum of the scores of `count` clusters, the others being 0."""
    squares = (scores**2).sum(axis=0) - scores.sum(axis=0) ** 2 / count
    return np.asarray(np.maximum(squares, 0.0) * count / (count - 1))


def _root(function: Callable[[Floats], Floats], low: Floats, high: Floats) -> Floats:
    """Where decreasing functions reach 0, found by bisection; nan where the sign does not change."""
    inside = (function(low) > 0) & (function(high) < 0)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        positive = function(middle) > 0
        low, high = np.where(positive, middle, low), np.where(positive, high, middle)
    return np.where(inside, (low + high) / 2, np.nan)
