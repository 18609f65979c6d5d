"""Does the match rate rise or fall over the days before the event? A test, and a slope with limits.

Before the event the rate of matches is a false positive rate and should be the same on every day. The model of a
replicate g and day d is E m_gd = n_gd exp(a_g + b x_d): its own level a_g, one slope b for all. Given how many matches
a replicate has, its level drops out (the conditional likelihood of the Poisson model with fixed effects: Hausman, Hall
& Griliches 1984), and each replicate adds to the score

    U_g(b) = sum over d of m_gd (x_d - x̄_g(b)),    x̄_g(b) = sum n_gd x_d exp(b x_d) / sum n_gd exp(b x_d)

whose mean is 0 at the true b whatever the variance of the counts and however they hang together within the replicate
(Wooldridge 1999). So U_g(b) of independent replicates are tested by Student's t, and the limits are the slopes that the
test does not refuse.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy

from pipeline.metrics.uncertainty.jackknife import t_quantile

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from pipeline.metrics.uncertainty.jackknife import Floats

FEWEST_REPLICATES = 10
_STEPS = 60
_WIDEST = 500.0


@dataclass(frozen=True)
class Trend:
    """The trend at every threshold.

    Attributes:
        slope: Shape (T,): change of the log rate per day towards the event; nan where it is infinite or not estimated.
        lower: Its lower limit; nan where there is none.
        upper: Its upper limit; nan where there is none.
        p_value: Two-sided, of no trend.
        reason: Shape (T,), objects: why `slope` or `p_value` is nan, None where both are given. `no_before` (no pairs);
            `one_day` (pairs on one day only); `no_match`; `few_replicates` (fewer than ten with matches and pairs on
            two days); `unbounded` (all matches on the first day, or all on the last: the slope is infinite, but
            p_value is given).
    """

    slope: Floats
    lower: Floats
    upper: Floats
    p_value: Floats
    reason: NDArray[np.object_]


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def trend(matches: Floats, moments: Floats, pairs: NDArray[np.int64], days: Floats, *, confidence: float) -> Trend:
    """The trend of the match rate over the days before the event.

    Args:
        matches: Shape (G, T): matches before the event at or above each threshold, per replicate.
        moments: Shape (G, T): the sum of `days` over these matches.
        pairs: Shape (G, D): compared pairs of each day.
        days: Shape (D,): middle of each day, in days from the event, so negative; a day that the window cuts has the
            middle of its part in the window.
        confidence: Of the limits, such as 0.95.
    """
    used = pairs.sum(axis=0) > 0
    pairs, days = pairs[:, used], days[used]
    size = matches.shape[1]
    if len(days) < 2:  # noqa: PLR2004 - a slope needs two
        return _nothing(np.full(size, "one_day" if len(days) else "no_before", dtype=object))
    scores = _Scores(matches, moments, pairs.astype(np.float64), days)
    enough = scores.replicates >= FEWEST_REPLICATES
    widest = np.full(size, _WIDEST / (days.max() - days.min()))
    slope = _root(lambda b: scores.at(b).sum(axis=0), -widest, widest)
    quantile = t_quantile(confidence, np.maximum(scores.replicates - 1.0, 1.0))
    lower = _root(lambda b: scores.t(b) - quantile, -widest, np.where(np.isnan(slope), widest, slope))
    upper = _root(lambda b: scores.t(b) + quantile, np.where(np.isnan(slope), -widest, slope), widest)
    p_value = scores.p_value()
    reason = np.full(size, None, dtype=object)
    reason[np.isnan(slope)] = "unbounded"
    reason[~enough] = "few_replicates"
    reason[scores.total == 0] = "no_match"
    slope, lower, upper, p_value = (np.where(enough, each, np.nan) for each in (slope, lower, upper, p_value))
    return Trend(slope, lower, upper, p_value, reason)


def _nothing(reason: NDArray[np.object_]) -> Trend:
    nan = np.full(len(reason), np.nan)
    return Trend(nan, nan, nan, nan, reason)


@dataclass(frozen=True)
class _Scores:
    matches: Floats
    moments: Floats
    pairs: Floats
    days: Floats

    @property
    def informative(self) -> NDArray[np.bool_]:
        """Shape (G, T): replicates whose matches could lie on more than one day."""
        return np.asarray((self.matches > 0) & ((self.pairs > 0).sum(axis=1) > 1)[:, None])

    @property
    def replicates(self) -> NDArray[np.int64]:
        return np.asarray(self.informative.sum(axis=0))

    @property
    def total(self) -> Floats:
        return np.asarray(self.matches.sum(axis=0))

    def at(self, slope: Floats) -> Floats:
        """U_g(b), shape (G, T), for one slope per threshold."""
        edge = np.where(slope > 0, self.days.max(), self.days.min())
        weights = np.exp(slope * (self.days[:, None] - edge))
        mean = (self.pairs @ (self.days[:, None] * weights)) / (self.pairs @ weights)
        return np.where(self.informative, self.moments - self.matches * mean, 0.0)

    def t(self, slope: Floats) -> Floats:
        """One-sample t statistic of the scores of the informative replicates."""
        scores, count = self.at(slope), self.replicates
        total = scores.sum(axis=0)
        squares = (scores**2).sum(axis=0) - total**2 / count
        return np.asarray(total / np.sqrt(np.maximum(squares, 0.0) * count / (count - 1)))

    def p_value(self) -> Floats:
        """Of no trend; never below what flipping the signs of whole replicates could give."""
        count = self.replicates
        p = 2 * scipy.special.stdtr(np.maximum(count - 1.0, 1.0), -np.abs(self.t(np.zeros(len(count)))))
        return np.where(np.isnan(p), 1.0, np.maximum(p, 2.0 ** (1.0 - count)))


def _root(function: Callable[[Floats], Floats], low: Floats, high: Floats) -> Floats:
    """Where falling functions reach 0, by bisection; nan where there is no change of sign."""
    inside = (function(low) > 0) & (function(high) < 0)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        positive = function(middle) > 0
        low, high = np.where(positive, middle, low), np.where(positive, high, middle)
    return np.where(inside, (low + high) / 2, np.nan)
