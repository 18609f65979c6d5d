"""An estimate and its standard error: Student's t, and pooled precision, recall and F1 of units or clusters."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

import numpy as np
import scipy

from ...base.columns import RATIO_OF, RATIOS
from ...base.records import dataclass
from ..uncertainty.clusters import over_time
from ..uncertainty.jackknife import (
    binomial_limits,
    covariance,
    effective_degrees,
    leave_one_out,
    proportion_limit_above,
    t_quantile,
    tail,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from ..uncertainty.jackknife import Floats


# What follows from an estimate and its standard error by Student's t: interval, p-values, one-sided ones too.


_LARGEST_TO_SQUARE = 1e140  # values up to here can be squared and summed without overflow


class Inference(Protocol):
    """Inference about a difference: its interval, and p-values of hypotheses that agree with the interval."""

    def limits(self, confidence: float) -> tuple[float, float]:
        """Return the interval with equal tails."""
        ...

    def statistic(self, value: float = 0.0) -> float:
        """Return the test statistic of the hypothesis that the difference has this value."""
        ...

    def p_value_above(self, value: float) -> float:
        """Return the p-value of the hypothesis that the difference is at most `value`: small ones say it is above."""
        ...

    def p_value_below(self, value: float) -> float:
        """Return the p-value of the hypothesis that the difference is at least `value`: small ones say it is below."""
        ...


@dataclass(frozen=True)
class Student:
    """An estimate whose distance from the truth in standard errors follows Student's t.

    Attributes:
        estimate: The estimate.
        error: Its standard error; nan where there is none.
        degrees: Degrees of freedom of its square.
    """

    estimate: float
    error: float
    degrees: float

    def over_time(self, contributions: Floats) -> Student:
        """Return the same with the covariances of units nearby, see `uncertainty.serial`.

        Args:
            contributions: What each unit contributes to the estimate, shape (U,), in the order of time.
        """
        nearby = over_time(contributions)
        return replace(self, error=self.error * math.sqrt(nearby.factor), degrees=float(nearby.degrees(self.degrees)))

    def limits(self, confidence: float) -> tuple[float, float]:
        """Return the interval with equal tails; nan without a standard error."""
        half = float(t_quantile(confidence, self.degrees)) * self.error
        return self.estimate - half, self.estimate + half

    def statistic(self, value: float = 0.0) -> float:
        """Return the distance from a value in standard errors; nan without a spread."""
        return (self.estimate - value) / self.error if self.error > 0 else math.nan

    def p_value(self) -> float:
        """Return the two-sided p-value of no difference: 1 for an estimate of 0, nan without a spread."""
        if self.estimate == 0 and not math.isnan(self.error):
            return 1.0
        return 2 * float(scipy.special.stdtr(self.degrees, -abs(self.statistic())))

    def p_value_above(self, value: float) -> float:
        """Return the one-sided p-value of the hypothesis that the truth is at most `value`."""
        return float(scipy.special.stdtr(self.degrees, -self.statistic(value)))

    def p_value_below(self, value: float) -> float:
        """Return the one-sided p-value of the hypothesis that the truth is at least `value`."""
        return float(scipy.special.stdtr(self.degrees, self.statistic(value)))


NOTHING = Student(math.nan, math.nan, math.nan)


def difference_of(first: Student, second: Student) -> Student:
    """Return the difference of two independent estimates, with the degrees of freedom of Welch (1947)."""
    if not math.isfinite(first.error + second.error):
        return Student(first.estimate - second.estimate, math.nan, math.nan)
    unit = unit_of(np.array([first.error, second.error]))
    scaled = first.error / unit, second.error / unit
    variances = scaled[0] * scaled[0], scaled[1] * scaled[1]
    degrees = welch_degrees(variances, (first.degrees, second.degrees))
    return Student(first.estimate - second.estimate, math.sqrt(sum(variances)) * unit, degrees)


def welch_degrees(variances: tuple[float, float], degrees: tuple[float, float]) -> float:
    """Return the degrees of freedom of a sum of two independent variances (Welch 1947; Satterthwaite 1946).

    Returns:
        nan where both variances are 0, or one is not finite.
    """
    total = sum(variances)
    if not 0 < total < math.inf:
        return math.nan
    return 1 / sum((v / total) ** 2 / number for v, number in zip(variances, degrees, strict=True) if v)


def mean_of(values: ArrayLike, *, in_time: bool = False) -> Student:
    """Return the mean of independent values: its standard error is their standard deviation over √n.

    Args:
        values: Shape (U,), finite.
        in_time: Whether they follow each other in time, so that those nearby may be alike, see `uncertainty.serial`.

    Returns:
        The error is nan for fewer than two values.
    """
    sample: Floats = np.asarray(values, dtype=np.float64)
    if not len(sample):
        return NOTHING
    unit = unit_of(sample)
    sample = sample / unit
    deviation = float(sample.std(ddof=1)) if len(sample) > 1 else math.nan
    mean = Student(float(sample.mean()) * unit, deviation / math.sqrt(len(sample)) * unit, len(sample) - 1.0)
    return mean.over_time(sample) if in_time else mean


def unit_of(values: Floats) -> float:
    """A power of two by which values can be divided so that their squares and sums stay finite: 1 in ordinary cases."""
    largest = float(np.abs(values).max(initial=0.0))
    usual = largest == 0 or 1 / _LARGEST_TO_SQUARE < largest < _LARGEST_TO_SQUARE
    return 1.0 if usual else 2.0 ** (math.frexp(largest)[1] - 1)


# One-sided tests of published numbers, from their values and intervals alone.
#
# An interval says what a number would have to be to be called different at one level. Here its limits are moved, on
# the scale that they were made on, until one of them meets the value asked about: the level at which that happens is
# the p-value (tests and intervals are inverses: Lehmann & Romano 2005, section 3.5). At the level of the interval
# nothing is assumed: a number at one of its 95% limits has a one-sided p-value of 0.025. At other levels it is what
# the same method would give, if its standard error and its degrees of freedom stay as they are.
#
# | limits | scale on which they are moved |
# |---|---|
# | within [0, 1] | those of a binomial share of as many rows as give these limits |
# | others | as they are, their logarithms, or those of what they lack of 1: on whichever they are most symmetric |
#
# Published limits of a share cover what they should on average over shares, not for each of them. A p-value of one
# share is therefore the tail probability of so many rows itself (Clopper & Pearson 1934), which is never too small
# where rows are independent; at a published limit it lies a little above 0.025.
#
# Limits of a difference follow from those of both numbers by the square root of the sum of the squared distances on
# the sides that matter (MOVER: Newcombe 1998; Zou & Donner 2008), with the degrees of freedom of Welch (1947). That
# takes the two as independent. If they share data, as two nights of a growing archive do, they vary together, the
# variance of the difference is smaller than that sum, and the test is conservative: it calls fewer true nulls false
# than its level says, and finds real differences later.


NIGHTS_PER_YEAR = 365.0
_MOST = 35.0  # quantile beyond which tail probabilities are 0 as doubles
_HALVINGS = 44
_SMALLEST_SIZE, _LARGEST_SIZE = 1e-6, 1e15  # of a binomial sample that has the limits of a share
_SHARE, _LACK, _LOG, _PLAIN = range(4)


@dataclass(frozen=True)
class Estimates:
    """Numbers with their intervals; arrays of shape (K,), nan where there is none.

    Attributes:
        value: The numbers.
        lower: Their lower limits.
        upper: Their upper limits.
        degrees: Degrees of freedom of their variances; infinite where rows are independent.
        confidence: Two-sided level of the limits.
    """

    value: Floats
    lower: Floats
    upper: Floats
    degrees: Floats
    confidence: float

    @property
    def quantile(self) -> Floats:
        """How many standard errors the limits lie away, shape (K,)."""
        return t_quantile(self.confidence, self.degrees)


def p_values_below(estimates: Estimates, limits: Floats | float) -> Floats:
    """P-values of the hypothesis that the true number is at least so large; small ones say that it lies below.

    Limits are a number, or shape (K,).

    Returns:
        Shape (K,), in (0, 1): over 1/2 where the number lies above; nan where value or limits are.
    """
    return _p_values(estimates, np.broadcast_to(np.asarray(limits, dtype=np.float64), estimates.value.shape), 1.0)


def p_values_above(estimates: Estimates, limits: Floats | float) -> Floats:
    """P-values of the hypothesis that the true number is at most so large; the rest as for `p_values_below`."""
    return _p_values(estimates, np.broadcast_to(np.asarray(limits, dtype=np.float64), estimates.value.shape), -1.0)


def p_values_of_drop(before: Estimates, after: Estimates, allowance: float) -> Floats:
    """P-values of the hypothesis that the true numbers fell by at most the allowance; small ones say by more.

    Numbers are in the same order; the allowance is in their unit, ≥ 0.

    Returns:
        Shape (K,), in (0, 1): over 1/2 where they fell by less; nan where a value or a limit is.
    """
    return _p_values_of_difference(before, after, allowance)


def p_values_of_rise(before: Estimates, after: Estimates, allowance: float) -> Floats:
    """P-values of the hypothesis that the true numbers rose by at most the allowance; as `p_values_of_drop`."""
    return _p_values_of_difference(after, before, allowance)


def p_values_of_change(before: Estimates, after: Estimates, allowance: float) -> Floats:
    """P-values of the hypothesis that the true numbers fell or rose by at most the allowance.

    Twice the smaller of both one-sided p-values, at most 1 (Bonferroni), which holds whatever the allowance.
    """
    sides = p_values_of_drop(before, after, allowance), p_values_of_rise(before, after, allowance)
    return np.asarray(np.minimum(2 * np.minimum(*sides), 1.0))


def confidence_for(alarms_per_year: float, nights_per_year: float = NIGHTS_PER_YEAR) -> float:
    """The confidence of every night at which so many nights of a year are expected to raise a false alarm.

    The expected number of nights with a false alarm is the sum of their probabilities, whether or not nights depend on
    each other, so that a share of alarms_per_year / nights_per_year in every night keeps it.

    Args:
        alarms_per_year: The expected number that is allowed, above 0 and below the number of nights.
        nights_per_year: How many nights are judged.
    """
    return 1 - alarms_per_year / nights_per_year


@dataclass(frozen=True)
class _Side:
    """The limits on one side of some numbers, as a function of how many standard errors they lie away.

    Attributes:
        value: The numbers.
        limit: Their limits at the level of the interval.
        quantile: How many standard errors away these are.
        scale: On which scale limits are moved.
        size: Of the binomial sample that has this limit, for shares.
        is_upper: Whether these are upper limits.
        is_exact: Whether limits of shares that are moved are those of Clopper and Pearson.
    """

    value: Floats
    limit: Floats
    quantile: Floats
    scale: NDArray[np.int64]
    size: Floats
    is_upper: bool
    is_exact: bool

    @classmethod
    def of(cls, estimates: Estimates, *, is_upper: bool, is_exact: bool = False) -> _Side:
        limit = estimates.upper if is_upper else estimates.lower
        mirrored, limit_above = (estimates.value, limit) if is_upper else (1 - estimates.value, 1 - limit)
        size = _binomial_size(mirrored, limit_above, scipy.special.ndtr(-estimates.quantile))
        return cls(estimates.value, limit, estimates.quantile, _scales(estimates), size, is_upper, is_exact)

    @np.errstate(divide="ignore", invalid="ignore", over="ignore")
    def at(self, quantile: Floats) -> Floats:
        """The limits that lie so many standard errors away."""
        step = quantile / self.quantile
        mirrored = self.value if self.is_upper else 1 - self.value
        limit_of_share = _exact_share_limit if self.is_exact else _share_limit
        share = limit_of_share(mirrored, self.size, scipy.special.ndtr(-quantile))
        candidates = [
            share if self.is_upper else 1 - share,
            1 - (1 - self.value) * ((1 - self.limit) / (1 - self.value)) ** step,
            self.value * (self.limit / self.value) ** step,
            self.value + (self.limit - self.value) * step,
        ]
        moved = np.choose(self.scale, candidates)
        return np.asarray(np.where(self.limit == self.value, self.value, moved))


@np.errstate(divide="ignore", invalid="ignore")
def _scales(estimates: Estimates) -> NDArray[np.int64]:
    """The scale of each number: of shares, else the one on which its interval is the most symmetric."""
    value, lower, upper = estimates.value, estimates.lower, estimates.upper
    skews = [
        np.log((np.log1p(-value) - np.log1p(-upper)) / (np.log1p(-lower) - np.log1p(-value))),
        np.log((np.log(upper) - np.log(value)) / (np.log(value) - np.log(lower))),
        np.log((upper - value) / (value - lower)),
    ]
    most_symmetric = np.argmin([np.where(np.isfinite(skew), np.abs(skew), _MOST) for skew in skews[::-1]], axis=0)
    return np.where((lower >= 0) & (upper <= 1), _SHARE, _PLAIN - most_symmetric)


def _share_limit(share: Floats, size: Floats, tails: Floats) -> Floats:
    """Upper limit of a share of so many rows, of which one more is added that was not observed."""
    share = np.clip(share, 0.0, 1.0)
    return proportion_limit_above(size * share + 1, size * (1 - share), tails)


def _exact_share_limit(share: Floats, size: Floats, tails: Floats) -> Floats:
    """Upper limit of a share of so many rows by Clopper and Pearson."""
    share = np.clip(share, 0.0, 1.0)
    misses = size * (1 - share)
    limit = scipy.special.betainccinv(size * share + 1, np.where(misses > 0, misses, 1.0), tails)
    return np.asarray(np.where(misses > 0, limit, 1.0))


def _binomial_size(share: Floats, limit: Floats, tails: Floats) -> Floats:
    """Number of rows at which the upper limit of a share is as it is: the more rows, the nearer is the limit."""
    low, high = np.full(share.shape, np.log(_SMALLEST_SIZE)), np.full(share.shape, np.log(_LARGEST_SIZE))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        is_wide = _share_limit(share, np.exp(middle), tails) > limit
        low, high = np.where(is_wide, middle, low), np.where(is_wide, high, middle)
    return np.asarray(np.exp((low + high) / 2))


def _p_values(estimates: Estimates, limits: Floats, direction: float) -> Floats:
    """P-values that the true number lies on the near side of limits: below for direction 1, above for -1."""
    gap = direction * (limits - estimates.value)
    upper, lower = (_Side.of(estimates, is_upper=is_upper, is_exact=True) for is_upper in (True, False))
    against, in_favour = (upper, lower) if direction > 0 else (lower, upper)

    def tails(side: _Side) -> Floats:
        quantile = _solved(gap.shape, lambda moved: np.abs(gap) - np.abs(side.at(moved) - side.value))
        return np.asarray(scipy.special.stdtr(estimates.degrees, -quantile))

    p_values = np.where(gap > 0, tails(against), 1 - tails(in_favour))
    missing = np.isnan(estimates.value) | np.isnan(estimates.lower) | np.isnan(estimates.upper)
    return np.where(missing, np.nan, p_values)


def _p_values_of_difference(larger: Estimates, smaller: Estimates, allowance: float) -> Floats:
    """P-values that the first less the second exceeds an allowance."""
    gap = larger.value - smaller.value - allowance

    def tails(*, is_upper: bool) -> Floats:
        first, second = _Side.of(larger, is_upper=is_upper), _Side.of(smaller, is_upper=not is_upper)
        degrees = _welch(first, second, larger.degrees, smaller.degrees)

        def room(moved: Floats) -> Floats:
            distances = first.value - first.at(moved), second.value - second.at(moved)
            return np.asarray(np.abs(gap) - np.hypot(*distances))

        return np.asarray(scipy.special.stdtr(degrees, -_solved(gap.shape, room)))

    p_values = np.where(gap > 0, tails(is_upper=False), 1 - tails(is_upper=True))
    missing = np.isnan(gap) | np.isnan(larger.lower + larger.upper + smaller.lower + smaller.upper)
    return np.where(missing, np.nan, p_values)


@np.errstate(divide="ignore", invalid="ignore")
def _welch(first: _Side, second: _Side, of_first: Floats, of_second: Floats) -> Floats:
    """Degrees of freedom of the variance of a difference (Welch 1947; Satterthwaite 1946)."""
    variances = [((side.limit - side.value) / side.quantile) ** 2 for side in (first, second)]
    spread = variances[0] ** 2 / of_first + variances[1] ** 2 / of_second
    return np.asarray(np.where(spread > 0, (variances[0] + variances[1]) ** 2 / spread, np.inf))


def _solved(shape: tuple[int, ...], room: Callable[[Floats], Floats]) -> Floats:
    """The quantile up to which there is room; room shrinks as it grows. 0 where there is none, at most `_MOST`."""
    low, high = np.zeros(shape), np.full(shape, _MOST)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        has_room = room(middle) > 0
        low, high = np.where(has_room, middle, low), np.where(has_room, high, middle)
    return np.asarray((low + high) / 2)


# Units that lie in clusters, such as queries that are copies of each other: what stands in their place in tests.
#
# Units of one cluster are not independent, clusters are. Counts are added up within clusters, which are then the units
# of every test of pooled ratios. A mean over units is a ratio of sums over clusters, Σ s_g / Σ n_g, and what a cluster
# contributes to it is its pseudo-value (Tukey 1958): the mean of the pseudo-values is the mean over units, and their
# standard deviation over √G its standard error by leaving out each cluster in turn. Of clusters of one size they are
# the means of the clusters.


@dataclass(frozen=True)
class Clusters:
    """The clusters of some units.

    Attributes:
        of_units: Shape (U,): the number of the cluster of each unit, from 0; every number occurs.
    """

    of_units: NDArray[np.int64]

    @classmethod
    def of(cls, labels: NDArray[np.int64]) -> Clusters:
        """The clusters with these labels, one for each unit; labels that do not occur are passed over."""
        return cls(np.unique(labels, return_inverse=True)[1].reshape(-1).astype(np.int64))

    @property
    def sizes(self) -> Floats:
        """Number of units of every cluster, shape (G,)."""
        return np.bincount(self.of_units).astype(np.float64)

    @property
    def degrees(self) -> float:
        """Degrees of freedom of a variance between them: their effective number less one, at least 1."""
        return max(float(effective_number(self.sizes)) - 1, 1.0)

    def sums(self, values: Floats) -> Floats:
        """Sums over the units of every cluster, shape (G, …), of values of shape (U, …)."""
        totals = np.zeros((len(self.sizes), *values.shape[1:]))
        np.add.at(totals, self.of_units, values)
        return totals

    def means(self, values: Floats) -> Floats:
        """Means over the units of every cluster, shape (G,)."""
        return self.sums(values) / self.sizes

    def contributions(self, values: Floats) -> Floats:
        """Pseudo-values of the mean over units, shape (G,); of a single cluster the mean itself.

        Args:
            values: One value per unit, shape (U,).
        """
        sums, sizes = self.sums(values), self.sizes
        number = len(sizes)
        if number < 2:  # noqa: PLR2004 - nothing is left without a single cluster
            return sums / sizes
        without = (sums.sum() - sums) / (sizes.sum() - sizes)
        return np.asarray(sums.sum() / sizes.sum() + (number - 1) * (without.mean() - without))


# Pooled precision, recall and F1 of two systems on the same units, standard errors of the differences, and counts.


CountsUsed: TypeAlias = Literal["as_counted", "design_effect", "one_per_unit"]


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def pooled_ratios(totals: ArrayLike) -> Floats:
    """Precision, recall and F1 computed from summed counts.

    Args:
        totals: True positives, false positives and false negatives, shape (…, 3).

    Returns:
        Shape (…, 3): TP / (TP + FP), TP / (TP + FN) and 2 TP / (2 TP + FP + FN); nan for 0 / 0.
    """
    tp, fp, fn = np.moveaxis(np.asarray(totals, dtype=np.float64), -1, 0)
    return np.stack([over / under for over, under in _fractions(tp, fp, fn)], axis=-1)


@dataclass(frozen=True)
class Errors:
    """Standard errors of differences, and how far they can be trusted.

    Attributes:
        error: Standard error of each difference, shape (K,).
        degrees: Degrees of freedom of its square, shape (K,).
        factor: By which its square exceeds that of independent units, as units in time have it.
    """

    error: Floats
    degrees: Floats
    factor: Floats | float = 1.0

    def half_width(self, confidence: float) -> Floats:
        """Half the width of the intervals, by Student's t."""
        return np.asarray(t_quantile(confidence, self.degrees) * self.error)

    def p_values(self, differences: Floats) -> Floats:
        """Two-sided p-values of no difference, by Student's t: 1 for a difference of 0, nan without a spread."""
        with np.errstate(divide="ignore", invalid="ignore"):
            statistic = np.abs(differences) / self.error
        p_values = 2 * scipy.special.stdtr(self.degrees, -np.where(np.isfinite(statistic), statistic, np.nan))
        return np.asarray(np.where((differences == 0) & ~np.isnan(self.error), 1.0, p_values))


def effective_number(sizes: Floats) -> Floats:
    """How many units of equal size are worth these units: (Σ size)² / Σ size² (Kish 1965); nan without any size.

    Args:
        sizes: Shape (U, …), ≥ 0.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(sizes.sum(axis=0) ** 2 / (sizes**2).sum(axis=0))


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def standard_errors(counts_a: ArrayLike, counts_b: ArrayLike) -> Errors:
    """Standard errors of the differences of pooled precision, recall and F1, by the delete-one jackknife over units.

    Units are independent of each other, the counts of the two systems on one unit are not (Efron & Tibshirani 1993,
    chapter 11). A few large units hold most of the counts and of the variance: the degrees of freedom are those of
    Satterthwaite (`effective_degrees`), at most Kish's effective number of units less 1, the size of a unit being its
    share in the denominators of both systems.

    Args:
        counts_a: True positives, false positives and false negatives of the first system, shape (U, 3).
        counts_b: The same of the second, the same units in the same order.

    Returns:
        Shapes (3,); errors are nan for fewer than two units, and where a ratio is undefined without one of the units.
    """
    first, second = np.asarray(counts_a, dtype=np.float64), np.asarray(counts_b, dtype=np.float64)
    if len(first) < 2:  # noqa: PLR2004 - a spread needs two
        return Errors(np.full(len(RATIOS), np.nan), np.full(len(RATIOS), np.nan))
    of_first, of_second = pooled_ratios(leave_one_out(first)), pooled_ratios(leave_one_out(second))
    return jackknife_errors(of_first - of_second, effective_units(first, second))


def effective_units(counts_a: Floats, counts_b: Floats) -> Floats:
    """The effective number of the units of two systems for precision, recall and F1, shape (3,).

    Counts are true positives, false positives and false negatives, shape (U, 3), of the same units.
    """
    return effective_number(denominators(counts_a) + denominators(counts_b))


def jackknife_errors(jackknifed: Floats, units: Floats | float, *, in_time: bool = False) -> Errors:
    """Standard errors from differences without each unit in turn.

    Differences have the shape (U, K). Degrees of freedom are at most the effective number of units, shape (K,), less 1.
    """
    degrees = np.minimum(effective_degrees(jackknifed), np.maximum(np.nan_to_num(units, nan=1.0) - 1, 1.0))
    if not in_time:
        return Errors(np.sqrt(covariance(jackknifed)), degrees)
    nearby = over_time(jackknifed)
    return Errors(np.sqrt(covariance(jackknifed) * nearby.factor), nearby.degrees(degrees), nearby.factor)


def denominators(counts: Floats) -> Floats:
    """TP + FP, TP + FN and 2 TP + FP + FN of every unit, shape (U, 3), from their counts of the same shape."""
    tp, fp, fn = np.moveaxis(counts, -1, 0)
    return np.stack([under for _, under in _fractions(tp, fp, fn)], axis=-1)


def _fractions(tp: Floats, fp: Floats, fn: Floats) -> list[tuple[Floats, Floats]]:
    """Numerator and denominator of precision, recall and F1."""
    return [RATIO_OF[name].fraction({"tp": tp, "fp": fp, "fn": fn}) for name in RATIOS]


@dataclass(frozen=True)
class EffectiveCounts:
    """Counts of hits and misses as they would be of independent rows that tell as much.

    Attributes:
        hits: What the counts of hits are worth.
        misses: What the counts of misses are worth.
        design_effect: What both were divided by, ≥ 1; nan without any count.
        used: `as_counted`: no unit has more than one count, so that counts are independent as units are;
            `design_effect`: divided by the variance between units over that of independent rows; `one_per_unit`: that
            variance cannot be told, and all counts of a unit are worth one.
    """

    hits: float
    misses: float
    design_effect: float
    used: CountsUsed


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def effective_counts(hits: Floats, misses: Floats, confidence: float, *, in_time: bool = False) -> EffectiveCounts:
    """Counts divided by the design effect of their share (Kish 1965; Rao & Scott 1992).

    The design effect is the jackknife variance of Σ hits / Σ (hits + misses) over units, over its binomial variance; at
    least 1. It is itself estimated, and the posterior knows of no degrees of freedom: it is raised by the squared ratio
    of the t quantile to the normal one. Where no unit has a miss, or none a hit, or one unit alone has counts, nothing
    tells the variance; then the effective number of units takes its place, as if all counts of a unit were alike.

    Args:
        hits: Of every unit, shape (U,).
        misses: Likewise.
        confidence: For which the quantiles are taken.
        in_time: Whether units follow each other in time.
    """
    sizes = np.asarray(hits + misses, dtype=np.float64)
    total = float(sizes.sum())
    share = float(hits.sum()) / total if total else np.nan
    if sizes.max(initial=0.0) <= 1 and not in_time:
        return EffectiveCounts(float(hits.sum()), float(misses.sum()), 1.0 if total else np.nan, "as_counted")
    effect = total / float(effective_number(sizes))
    used: CountsUsed = "one_per_unit"
    if len(sizes) > 1 and 0 < share < 1:
        of_hits, of_sizes = leave_one_out(np.asarray(hits)), leave_one_out(sizes)
        errors = jackknife_errors((of_hits / of_sizes)[:, None], effective_number(sizes), in_time=in_time)
        widened = float(errors.half_width(confidence)[0] / t_quantile(confidence, np.inf))
        measured = widened**2 * total / (share * (1 - share))
        if np.isfinite(measured):
            effect, used = measured, "design_effect"
    effect = max(effect, 1.0)
    return EffectiveCounts(float(hits.sum()) / effect, float(misses.sum()) / effect, effect, used)


# Ratios of two means or of two pooled ratios, with intervals on the log scale.
#
# The logarithm of a ratio A / B has, to first order, the standard error of A/a − B/b (delta method), so that units
# which both share enter with their covariance. Student's t of the logarithm covers better than that of the ratio
# itself, which is skewed to the right. Fieller's limits (1954) cover as well, but are infinite where the lower number
# is not clearly above 0, and fall shorter where one group is small.


_LARGEST_LOGARITHM = 700.0  # of a double


@dataclass(frozen=True)
class Ratio:
    """A ratio of two numbers from 0 on.

    Attributes:
        value: The ratio; nan unless the lower number is above 0 and the upper one at least 0.
        log: What is known of its logarithm; nothing for a ratio of 0.
        upper_of_zero: The upper limit of a ratio of 0, for the level that it was made for; nan: it has none.
    """

    value: float
    log: Student = NOTHING
    upper_of_zero: float = math.nan

    def limits(self, confidence: float) -> tuple[float, float]:
        """Return the interval; nan where none can be given."""
        if self.value == 0 and not math.isnan(self.upper_of_zero):
            return 0.0, self.upper_of_zero
        if not 0 < self.log.error < math.inf:
            return math.nan, math.nan
        lower, upper = self.log.limits(confidence)
        return (math.exp(lower), math.exp(upper)) if upper < _LARGEST_LOGARITHM else (math.nan, math.nan)


UNDEFINED_RATIO = Ratio(math.nan)


@np.errstate(over="ignore", invalid="ignore")
def ratio_on_same_units(a: Floats, b: Floats, *, in_time: bool = False) -> Ratio:
    """Return the ratio of the means of two systems on the same units.

    Both have one value per unit, shape (U,), in the same order.
    """
    if not len(a):
        return UNDEFINED_RATIO
    mean_a, mean_b = mean_of(a).estimate, mean_of(b).estimate
    if not (mean_a > 0 and mean_b > 0):
        return _at_zero(mean_a, mean_b)
    return _ratio(mean_a, mean_b, mean_of(a / mean_a - b / mean_b, in_time=in_time))


def ratio_of_independent(a: Student, b: Student) -> Ratio:
    """Return the ratio of two independent estimates."""
    if not (a.estimate > 0 and b.estimate > 0):
        return _at_zero(a.estimate, b.estimate)
    shares = a.error / a.estimate, b.error / b.estimate
    variances = shares[0] * shares[0], shares[1] * shares[1]
    degrees = welch_degrees(variances, (a.degrees, b.degrees))
    return _ratio(a.estimate, b.estimate, Student(0.0, math.sqrt(sum(variances)), degrees))


def ratio_of_jackknifed(
    values: tuple[float, float], jackknifed: tuple[Floats, Floats], units: float, *, in_time: bool = False
) -> Ratio:
    """Return the ratio of two estimates from the same units.

    Values are the upper and the lower one, jackknifed those without each unit in turn, shape (U,); the effective number
    of units is above the degrees of freedom.
    """
    a, b = values
    if not (a > 0 and b > 0):
        return _at_zero(a, b)
    errors = jackknife_errors((jackknifed[0] / a - jackknifed[1] / b)[:, None], units, in_time=in_time)
    return _ratio(a, b, Student(0.0, float(errors.error[0]), float(errors.degrees[0])))


def ratio_of_no_hits(misses: float, b: Student, confidence: float, *, is_f1: bool) -> Ratio:
    """Return a ratio of 0, of a share without a single hit, with an upper limit (MOVER: Donner & Zou 2012).

    Args:
        misses: What the misses are worth as independent ones, see `effective_counts`.
        b: The share below, independent of the other.
        confidence: Level of the limit.
        is_f1: Whether the shares are F1, 2 B / (1 + B) of a share B.
    """
    if not b.estimate > 0:
        return UNDEFINED_RATIO
    upper = float(binomial_limits(np.zeros(1), np.full(1, misses), tail(confidence, np.inf))[1][0])
    upper = 2 * upper / (1 + upper) if is_f1 else upper
    lower_of_b = b.limits(confidence)[0]
    if not lower_of_b > 0:
        return Ratio(0.0)
    return Ratio(0.0, upper_of_zero=upper / math.sqrt(lower_of_b * (2 * b.estimate - lower_of_b)))


def _at_zero(a: float, b: float) -> Ratio:
    return Ratio(0.0) if a == 0 and b > 0 else UNDEFINED_RATIO


def _ratio(a: float, b: float, of_logarithm: Student) -> Ratio:
    """The ratio of two numbers above 0, with the error of its logarithm."""
    value = a / b
    return Ratio(value, replace(of_logarithm, estimate=math.log(value))) if 0 < value < math.inf else UNDEFINED_RATIO
