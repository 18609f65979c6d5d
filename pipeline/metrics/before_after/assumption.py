"""The equal-FPR assumption: pairs near to the event beside pairs far before it, and the trend before the event."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import scipy

from ...base.records import dataclass
from ..uncertainty.clusters import combined
from ..uncertainty.jackknife import (
    dispersion,
    mid_p_odds,
    mid_p_tail,
    negative_binomial_quantile,
    p_value,
    paired_dispersion,
    paired_squares,
    sign_flip_test,
    t_quantile,
    tail,
)
from ..uncertainty.limits import Interval, union
from .estimates import Prediction, Sums
from .intervals import FEW_MATCHES, MIN_REPLICATES, as_interval

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from ..uncertainty.jackknife import Floats
    from .estimates import Counts


# Pairs near to the event compared with pairs far before it.
#
# The comparison gives the placebo test of equal false positive rates, and the interval of the realised precision.


@dataclass(frozen=True)
class Placebo:
    """Comparison of the false positive rates near to the event and far before it, at every threshold.

    Attributes:
        log_rate_ratio: Shape (T,): log of near over far; nan where either has no match.
        lower: Lower limit of the log rate ratio; nan without matches near the event, or if there is none.
        upper: Upper limit of the log rate ratio; nan without matches far from it, or if there is none.
        p_value: Two-sided p-value of equal rates; nan where it cannot be computed.
    """

    log_rate_ratio: Floats
    lower: Floats
    upper: Floats
    p_value: Floats


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def realised_precision_interval(
    m_before: Counts,
    m_after: Counts,
    n_before: Counts,
    n_after: Counts,
    m_near: Counts,
    n_near: Counts,
    *,
    confidence: float,
    reference: int | None = None,
    reference_recalls: Sequence[float] = (1.0,),
    crossed: Sequence[NearAndFar] = (),
) -> Interval:
    """Interval of the precision realised in this data set, which depends on the false positives that occurred.

    FP / φ is predicted to be negative binomial with size M_b / φ + 1/2 and probability N_b / (N_a + N_b). φ is
    estimated by comparing the near part of the time before the event with the far part, on the assumption that the
    time after the event differs from the time before it to the same degree.

    The arguments are those of `intervals`; `m_near` and `n_near` are the shares of `m_before` and `n_before` in the
    near part, which ideally is as long as the time after the event. With a reference, FP is predicted for the N_a - A
    pairs that are negative and the limits are those of the corrected precision. Without one, FP is predicted for all
    N_a pairs and the limits are those of the uncorrected precision. Of several recalls at the reference the limits hold
    for each. Limits lie in [0, 1], except that a negative precision is its own lower limit.
    """
    counts = (m_before, m_after, n_before, n_after, m_near, n_near)
    recalls = dict.fromkeys(reference_recalls)
    predictions = [
        predicted(*counts, reference=reference, reference_recall=recall, crossed=crossed) for recall in recalls
    ]
    intervals = [
        Interval.none(m_before.shape[1], "no_before" if n_after.any() else "no_prediction")
        if prediction is None
        else _of_prediction(prediction, m_after.sum(axis=0), confidence)
        for prediction in predictions
    ]
    return union(intervals)


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def _of_prediction(prediction: Prediction, matched: Counts, confidence: float) -> Interval:
    """The interval of the realised precision among so many matches after the event."""
    size, odds, phi = prediction.size, prediction.probability, prediction.phi
    # quantiles of the predicted FP
    tails, expected = tail(confidence, prediction.degrees), prediction.expected
    fewest, most = (phi * negative_binomial_quantile(level, size, odds) for level in (tails, 1 - tails))
    skewed = expected * np.exp(
        -scipy.special.ndtri(tails)
        * np.sqrt((1 + prediction.before / prediction.after) / np.maximum(prediction.count / phi, 1.0))
    )
    most = most + np.minimum(prediction.count / FEW_MATCHES, 1.0) * np.fmax(skewed - most, 0.0)
    estimate = 1 - expected / matched
    lower, upper = np.clip(1 - most / matched, 0.0, 1.0), np.clip(1 - fewest / matched, 0.0, 1.0)
    reason = np.where(matched > 0, "", "no_prediction")
    return as_interval((np.minimum(lower, estimate), np.maximum(upper, np.minimum(estimate, 1.0))), reason)


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def predicted(
    m_before: Counts,
    m_after: Counts,
    n_before: Counts,
    n_after: Counts,
    m_near: Counts,
    n_near: Counts,
    *,
    reference: int | None = None,
    reference_recall: float = 1.0,
    crossed: Sequence[NearAndFar] = (),
) -> Prediction | None:
    """The prediction that the limits of `realised_precision_interval` are based on; the arguments are the same.

    Returns None if fewer than two replicates have pairs before the event, if there is no pair after it, or if the
    numbers of pairs in the near part are not known.
    """
    before, after = n_before.sum(), n_after.sum()
    if not (0 < n_near.sum() < before) or (n_before > 0).sum() < MIN_REPLICATES or after == 0:
        return None
    periods = NearAndFar(m_before - m_near, m_near, n_before - n_near, n_near)
    phi, degrees = dispersion(*_squares([periods, *crossed]), periods.count)
    # with a reference, only N_a - A pairs after the event are negative
    negative = np.full(1, float(after))
    if reference is not None:
        matched = m_after.sum(axis=0)
        totals = Sums(reference, reference_recall, periods.count, matched, np.full(1, before), np.full(1, after))
        negative = negative - np.nan_to_num(totals.positives[:1])
        phi = phi * np.nan_to_num(1 + totals.fpr * totals.positives / totals.tp_reference, nan=1.0) ** 2  # error of A
    return Prediction(periods.count, phi, degrees, float(before), negative)


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def placebo(
    m_far: Counts,
    m_near: Counts,
    n_far: Counts,
    n_near: Counts,
    *,
    confidence: float,
    crossed: Sequence[NearAndFar] = (),
) -> Placebo:
    """Compare the false positive rates near to the event and far before it.

    Given the sum of both, the matches near the event are binomial with probability N_near / N. Both counts are first
    divided by the dispersion of the replicates' residuals m_near - (N_near / N_far) m_far. The p-value is the mid-p
    value, with Student's t in the place of the normal, and the limits enclose the ratios that it does not reject
    (`paired_dispersion`).

    Args:
        m_far: Shape (G, T): matches in the far part of the time before the event, per replicate.
        m_near: Shape (G, T): the same in the near part.
        n_far: Shape (G,): compared pairs in the far part.
        n_near: Shape (G,): the same in the near part.
        confidence: Such as 0.95.
        crossed: The same counts by the second parent of pairs, and by the intersections of both parents.
    """
    if ((n_far + n_near) > 0).sum() < MIN_REPLICATES or n_far.sum() == 0 or n_near.sum() == 0:
        nothing = np.full(m_far.shape[1], np.nan)
        return Placebo(nothing, nothing, nothing, nothing)
    periods = NearAndFar(m_far, m_near, n_far, n_near)
    observed, _ = _squares([periods, *crossed])
    phi, degrees = paired_dispersion(observed, periods.count), _most_degrees([periods, *crossed])
    far, near = m_far.sum(axis=0), m_near.sum(axis=0)
    # p = N_near / N of the binomial distribution under equal rates
    share = periods.odds / (1 + periods.odds)
    lower, upper = mid_p_odds(near / phi, far / phi, tail(confidence, degrees))
    tails = mid_p_tail(near / phi, far / phi, share)
    # p / (1 - p) is (rate ratio) × odds
    defined = (near > 0) & (far > 0), (near > 0) & (lower > 0), (far > 0) & (upper < np.inf)
    rates = near / far, lower, upper
    ratio, low, high = (
        np.log(np.where(is_defined, rate, np.nan) / periods.odds)
        for is_defined, rate in zip(defined, rates, strict=True)
    )
    return Placebo(ratio, low, high, p_value(tails, degrees))


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def placebo_joint(
    m_far: Counts,
    m_near: Counts,
    n_far: Counts,
    n_near: Counts,
    *,
    crossed: Sequence[NearAndFar] = (),
    flips: int = 999,
    seed: int = 0,
) -> float:
    """Joint p-value of equal false positive rates at all thresholds: `sign_flip_test` of the replicates' residuals.

    Only thresholds with at least ten expected matches in both parts take part, because the residuals of rare matches
    are not symmetric; the result is nan if there is no such threshold. The signs of both parents are flipped. The
    arguments are those of `placebo`, and `flips` and `seed` those of `sign_flip_test`.
    """
    if n_far.sum() == 0 or n_near.sum() == 0 or ((n_far + n_near) > 0).sum() < MIN_REPLICATES:
        return float("nan")
    periods = NearAndFar(m_far, m_near, n_far, n_near)
    enough = periods.count * min(periods.odds, 1.0) / (1 + periods.odds) >= FEW_MATCHES
    single = placebo(m_far, m_near, n_far, n_near, confidence=0.5, crossed=crossed).p_value[enough]
    if np.isnan(single).any():
        return float("nan")
    residuals = np.concatenate([of_parent.residuals[:, enough] for of_parent in (periods, *crossed[:1])])
    return sign_flip_test(residuals, np.abs(scipy.special.ndtri(single / 2)), flips=flips, seed=seed)


@dataclass(frozen=True)
class NearAndFar:
    """The time before the event in two parts; the attributes are the arguments of `placebo`."""

    m_far: Counts
    m_near: Counts
    n_far: Counts
    n_near: Counts

    @cached_property
    def count(self) -> Floats:
        """Shape (T,): all matches before the event."""
        return np.asarray(self.m_far.sum(axis=0) + self.m_near.sum(axis=0), dtype=np.float64)

    @cached_property
    def odds(self) -> float:
        """Compared pairs in the near part over those in the far part."""
        return float(self.n_near.sum() / self.n_far.sum())

    @cached_property
    def residuals(self) -> Floats:
        """Each replicate's contribution to M_near - odds × M_far, less what is expected from its numbers of pairs."""
        rate = self.count / (self.n_far.sum() + self.n_near.sum())
        pairs = self.n_near - self.odds * self.n_far
        return np.asarray(self.m_near - self.odds * self.m_far - pairs[:, None] * rate)

    @property
    def squares(self) -> tuple[Floats, Floats]:
        """Variance of the sum of residuals relative to Poisson counts, and the degrees of freedom of that ratio."""
        with np.errstate(divide="ignore", invalid="ignore"):
            expected = (self.n_near / self.n_far)[:, None]
        pairs = self.n_near + self.n_far
        means = pairs[:, None] * (self.count / pairs.sum())
        residuals = self.residuals / math.sqrt(self.odds)
        far, near = self.m_far.astype(np.float64), self.m_near.astype(np.float64)
        return paired_squares(far, near, expected, means, residuals)


def _squares(clusterings: Sequence[NearAndFar]) -> tuple[Floats, Floats]:
    """Variance over mean of the comparison, and its degrees of freedom, over one or two parents."""
    squares, degrees = zip(*(periods.squares for periods in clusterings), strict=True)
    return combined(squares), np.min(degrees[:2], axis=0)


def _most_degrees(clusterings: Sequence[NearAndFar]) -> float:
    """One less than there are replicates with pairs, of two parents of the one that has fewer."""
    return float(min((periods.n_far + periods.n_near > 0).sum() for periods in clusterings[:2]) - 1)


# The trend of the match rate over the days before the event: a test, and a slope with limits.
#
# Before the event the match rate is a false positive rate and should be the same on every day. The model for
# replicate g and day d is E m_gd = n_gd exp(a_g + b x_d): every replicate has its own level a_g, and all share one
# slope b. Given how many matches a replicate has, its level drops out (the conditional likelihood of the Poisson
# model with fixed effects: Hausman, Hall & Griliches 1984), and each replicate contributes to the score
#
#     U_g(b) = sum over d of m_gd (x_d - x̄_g(b)),    x̄_g(b) = sum n_gd x_d exp(b x_d) / sum n_gd exp(b x_d)
#
# Its mean is 0 at the true b, whatever the variance of the counts and however they depend on each other within the
# replicate (Wooldridge 1999). The U_g(b) of independent replicates are therefore tested by Student's t, and the
# limits enclose the slopes that the test does not reject. Where pairs have a second parent, such as the day of the
# article, the variance is that over both (`metrics.uncertainty.clusters`), from the scores of the intersections.


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
