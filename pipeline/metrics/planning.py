"""How many units an interval of a wanted width, or a test of a wanted power, needs: from a pilot, or without one."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
import scipy

from ..base.records import dataclass
from .before_after.estimates import audited_precision
from .uncertainty.jackknife import binomial_limits, logit_interval, t_quantile, tail
from .uncertainty.proportions import mean_limits

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray


_MOST_UNITS = 10**12  # beyond which no plan is made
_SMALLEST_FACTOR, _LARGEST_FACTOR = 1e-9, 1e9
_HALVINGS = 100


def smallest_number(is_enough: Callable[[int], bool], fewest: int, most: int = _MOST_UNITS) -> int | None:
    """The smallest whole number between two that is enough, if every larger one is, too; None if none is."""
    high = fewest
    while not is_enough(high):
        if high >= most:
            return None
        fewest, high = high + 1, min(2 * high + 1, most)
    while fewest < high:
        middle = (fewest + high) // 2
        fewest, high = (fewest, middle) if is_enough(middle) else (middle + 1, high)
    return high


def smallest_factor(
    is_enough: Callable[[float], bool], lowest: float = _SMALLEST_FACTOR, highest: float = _LARGEST_FACTOR
) -> float | None:
    """The smallest factor between two that is enough, to one in 10^12, if every larger one is, too; None if none is."""
    if is_enough(lowest):
        return lowest
    if not is_enough(highest):
        return None
    low, high = math.log(lowest), math.log(highest)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if is_enough(math.exp(middle)) else (middle, high)
    return math.exp(high)


# How many units a test needs to find a difference, or to show that there is none that matters.
#
# Two systems on the same units are tested by the mean of their differences within units, by Student's t: under a true
# difference δ the statistic is noncentral t with the noncentrality δ √n / s and n - 1 degrees of freedom (Cohen 1988;
# Julious 2004, Statistics in Medicine 23, 1921-1986).
#
# | claim | the test | power |
# |---|---|---|
# | the systems differ | two-sided at level α | P(\|t\| > t(1 - α / 2)) |
# | one is not worse by the margin | one-sided at level α | P(t > t(1 - α)) with margin - \|δ\| in the place of δ |
# | they differ by less than the margin | both one-sided tests at level α (Schuirmann 1987) | both reject |
#
# The power of the last is exact for normal differences: given the standard deviation s both tests are about one
# normal number, and the mean of that probability is taken over the χ² distribution of s² (Phillips 1990, Journal of
# Pharmacokinetics and Biopharmaceutics 18, 137-144).


Claim: TypeAlias = Literal["different", "not_worse", "equivalent"]

_QUANTILES, _MANY_DEGREES = 20, 1e4  # of the variance of a pilot
_POINTS = 2000  # quantiles of the standard deviation that the mean is taken over
_FAR = 8.0  # standard errors beyond which a test is certain to reject


@dataclass(frozen=True)
class Question:
    """The claim that a test is to show, and how surely.

    Attributes:
        claim: `different`, `not_worse` or `equivalent`.
        difference: The true difference: that which is to be found; of the other claims how far the systems truly
            differ, to the worse.
        margin: From where a difference matters, > |difference|; of no use to `different`.
        power: Probability of showing it.
        significance: Level of the test.
    """

    claim: Claim
    difference: float
    margin: float = math.nan
    power: float = 0.8
    significance: float = 0.05


def power_of(question: Question, error: float, degrees: float) -> float:
    """Probability that the test shows the claim, of a standard error whose square has so many degrees of freedom."""
    if question.claim == "equivalent":
        return _power_of_both(question, error, degrees)
    if question.claim == "not_worse":
        room = (question.margin - abs(question.difference)) / error
        return _beyond(room, degrees, float(scipy.special.stdtrit(degrees, 1 - question.significance)))
    critical = float(scipy.special.stdtrit(degrees, 1 - question.significance / 2))
    shift = abs(question.difference) / error
    return _beyond(shift, degrees, critical) + _beyond(-shift, degrees, critical)


def _beyond(shift: float, degrees: float, critical: float) -> float:
    """P(t > critical) of noncentral t."""
    if shift > critical + _FAR * max(1.0, critical / math.sqrt(2 * degrees)):
        return 1.0
    if shift < -_FAR:
        return 0.0
    if math.isinf(degrees):
        return float(scipy.special.ndtr(shift - critical))
    return 1 - float(scipy.special.nctdtr(degrees, shift, critical))


def _power_of_both(question: Question, error: float, degrees: float) -> float:
    """Probability that both one-sided tests reject."""
    critical, centre = float(scipy.special.stdtrit(degrees, 1 - question.significance)), question.difference / error
    ratio = np.ones(1) if math.isinf(degrees) else _deviations(degrees)
    upper = scipy.special.ndtr(question.margin / error - centre - critical * ratio)
    lower = scipy.special.ndtr(-question.margin / error - centre + critical * ratio)
    return float(np.maximum(upper - lower, 0.0).mean())


@lru_cache(maxsize=16)
def _deviations(degrees: float) -> NDArray[np.float64]:
    """Equally likely standard deviations of samples, over the true one."""
    return np.asarray(np.sqrt(scipy.special.chdtri(degrees, (np.arange(_POINTS) + 0.5) / _POINTS) / degrees))


def units_for(question: Question, deviation: float, degrees: float = math.inf) -> int | None:
    """The smallest number of units with which the test has the power.

    Args:
        question: What is to be shown.
        deviation: Standard deviation of the differences within units, > 0.
        degrees: Degrees of freedom of its square: what they leave open, the power is a mean over; infinite: nothing.

    Returns:
        At least 2; None if no number up to 10^12 is enough.
    """

    def is_enough(units: int) -> bool:
        return expected_power(question, deviation / math.sqrt(units), units - 1.0, degrees) >= question.power

    return smallest_number(is_enough, 2)


def expected_power(question: Question, error: float, degrees: float, of_pilot: float) -> float:
    """The power of a test whose error is known from a pilot alone: its mean over what the pilot leaves open.

    The variance is that of the pilot times ν / χ² (Julious & Owen 2006, Pharmaceutical Statistics 5, 29-37). With the
    variance of the pilot itself in its place tests would have less power than wanted on average, as what is lost where
    the true variance is larger is more than what is won where it is smaller.

    Args:
        question: What is to be shown.
        error: Standard error of the difference, from the pilot.
        degrees: Degrees of freedom with which the test estimates it.
        of_pilot: Those of the pilot; infinite: the error is known.
    """
    if of_pilot > _MANY_DEGREES:
        return power_of(question, error, degrees)
    quantiles = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
    ratios = np.sqrt(of_pilot / scipy.special.chdtri(of_pilot, quantiles))
    return float(np.mean([power_of(question, error * float(ratio), degrees) for ratio in ratios]))


def detectable(question: Question, error: float, degrees: float) -> float | None:
    """The difference that the test finds with the power, or the margin that it shows; None if there is none.

    The difference of the question is what is asked for of `different`, its margin of other claims.
    """
    is_difference = question.claim == "different"

    def is_enough(times: float) -> bool:
        size = times * error
        margin = question.margin if is_difference else abs(question.difference) + size
        asked = replace(question, difference=size if is_difference else question.difference, margin=margin)
        return power_of(asked, error, degrees) >= question.power

    times = smallest_factor(is_enough, 1e-3, 1e6)
    if times is None:
        return None
    return times * error + (0.0 if is_difference else abs(question.difference))


# How many matches people must check so that the precision of these matches is known to a wanted width.
#
# The target is the share of correct matches among the M matches of the data set, and the interval that of the stage
# (`before_after.audit.audited_precision`), which knows that M is finite: with all of them checked it has no width.


def width_with_labels(matches: int, labels: int, precision: float, confidence: float) -> float:
    """Width of the interval of the precision of so many matches, if so many labels say that a share of them is correct.

    Between two numbers of correct matches it is interpolated.
    """
    right = precision * labels
    below = math.floor(right)
    numbers = np.array([below, min(below + 1, labels)], dtype=np.int64)
    of_both = audited_precision(np.full(2, matches), np.full(2, labels), numbers, confidence=confidence)
    first_width, second_width = of_both.upper - of_both.lower
    return float(first_width + (right - below) * (second_width - first_width))


def labels_for(matches: int, precision: float, width: float, confidence: float) -> int:
    """The smallest number of checked matches, at most all, with which the interval of the precision is no wider."""

    def is_enough(labels: int) -> bool:
        return width_with_labels(matches, labels, precision, confidence) <= width

    return smallest_number(is_enough, 1, matches) or matches


# What an interval would be with more units, from the interval of a pilot.
#
# A published interval says how much its number varies: it is turned back into what it was made from, and made again for
# another number of units. How limits are made decides on which scale that is done:
#
# | scale | limits are | what grows with the units |
# |---|---|---|
# | `share` | beta quantiles of a binomial share (`jackknife.binomial_limits`) | rows over their design effect |
# | `jaccard` | those of J, tp of tp + fp + fn, for F1 = 2 J / (1 + J) | the same |
# | `mean` | those of a mean of values from 0 to 1 (`proportions.mean_limits`) | the number of values |
# | `logit` | symmetric about the logit, by Student's t | the inverse of the variance |
# | `log`, `lack`, `plain` | the same about the logarithm, that of what is lacking of 1, or the number | likewise |
#
# Student's t takes its degrees of freedom from the effective number of clusters (Kish 1965), and these grow with the
# units, too. A stage gives each of up to 1,000 clusters a replicate of its own, and puts more of them into 64: then the
# degrees are 63, and just above 1,000 clusters an interval is 2 % wider than just below.
#
# Near 0 and 1 the limits of a share are not those of a normal distribution, and do not shrink with the root of the
# number of rows; this is why they are made anew, and not only scaled.


Scale: TypeAlias = Literal["share", "jaccard", "mean", "logit", "log", "lack", "plain"]

_MOST_OWN_REPLICATES, HASH_GROUPS = 1000, 64
FEWEST_UNITS = 2  # a spread needs two
OF_SHARES: tuple[Scale, ...] = ("share", "jaccard", "mean", "logit")  # numbers from 0 to 1
_SCALES: dict[Scale, tuple[Callable[[float], float], Callable[[float], float]]] = {
    "logit": (lambda value: float(scipy.special.logit(value)), lambda moved: float(scipy.special.expit(moved))),
    "log": (math.log, math.exp),
    "lack": (lambda value: -math.log1p(-value), lambda moved: -math.expm1(-moved)),
    "plain": (lambda value: value, lambda moved: moved),
}


@dataclass(frozen=True)
class Pilot:
    """A number with its interval.

    Attributes:
        value: The number.
        lower: Its lower limit.
        upper: Its upper limit.
        confidence: Two-sided level of the limits, such as 0.95.
        scale: How limits are made.
        units: Number of independent units, all of them.
        effective: Their effective number (Kish 1965); infinite where rows are independent.
        size: Number of values, for the scale `mean`; for `share` and `jaccard` the number of independent rows that have
            such limits, nan where it is to follow from the limits.
        rows: Number of rows that the number rests on; nan where it is not known.
        rows_per_cluster: Mean size of the cluster of such a row, Σ n² / Σ n; nan where it is not known.
        bounds: Where limits are cut off; a limit that lies there says nothing of the spread.
        is_grouped: Whether the units are already put into groups of them.
        has_groups: Whether more than 1,000 units are put into groups.
    """

    value: float
    lower: float
    upper: float
    confidence: float
    scale: Scale
    units: float
    effective: float = math.inf
    size: float = math.nan
    rows: float = math.nan
    rows_per_cluster: float = math.nan
    bounds: tuple[float, float] = (-math.inf, math.inf)
    is_grouped: bool = False
    has_groups: bool = False

    @property
    def width(self) -> float:
        """Width of the interval of the pilot itself."""
        return self.upper - self.lower

    def degrees(self, factor: float = 1.0) -> float:
        """Degrees of freedom of Student's t with so many times the units."""
        degrees = max(self.effective * factor - 1, 1.0)
        is_grouped = self.is_grouped or (self.has_groups and self.units * factor > _MOST_OWN_REPLICATES)
        return min(degrees, HASH_GROUPS - 1.0) if is_grouped and math.isfinite(degrees) else degrees

    def limits(self, factor: float, confidence: float | None = None, *, inflation: float = 1.0) -> tuple[float, float]:
        """The limits with so many times the units, if the number is the same.

        Their level is that of the pilot if it is None. The variance of a unit is multiplied by the inflation.
        """
        level = self.confidence if confidence is None else confidence
        degrees = self.degrees(factor)
        if self.scale in {"share", "jaccard"}:
            lower, upper = _share_limits(self.share, self.binomial_size * factor / inflation, level, degrees)
            return (_f1(lower), _f1(upper)) if self.scale == "jaccard" else (lower, upper)
        if self.scale == "mean":
            return self._mean_limits(self.variance * inflation / factor, self.size * factor, tail(level, degrees))
        step = float(t_quantile(level, degrees) / t_quantile(self.confidence, self.degrees()))
        down, up = (distance * step * math.sqrt(inflation / factor) for distance in self._distances)
        transform, inverse = _SCALES[self.scale]
        centre = transform(self.value)
        return max(inverse(centre - down), self.bounds[0]), min(inverse(centre + up), self.bounds[1])

    def width_with(self, factor: float, confidence: float | None = None, *, inflation: float = 1.0) -> float:
        """Width of these limits."""
        lower, upper = self.limits(factor, confidence, inflation=inflation)
        return upper - lower

    def error(self, factor: float = 1.0, *, inflation: float = 1.0) -> float:
        """Standard error of the number itself with so many times the units."""
        if self.scale == "share" and 0 < self.value < 1:
            return math.sqrt(self.value * (1 - self.value) * inflation / (self.binomial_size * factor))
        if self.scale == "mean":
            return math.sqrt(self.variance * inflation / factor)
        width = self.width_with(factor, inflation=inflation)
        return width / 2 / float(t_quantile(self.confidence, self.degrees(factor)))

    def factor_for(self, width: float, confidence: float | None = None, *, inflation: float = 1.0) -> float | None:
        """The smallest factor with which the interval is no wider than this; None if none is; else as `limits`."""

        def is_enough(factor: float) -> bool:
            return self.width_with(factor, confidence, inflation=inflation) <= width

        return _smallest_in_both_ways(self, is_enough)

    def moved(self, share: float) -> Pilot:
        """The same with another share, of as many rows."""
        value = _f1(share) if self.scale == "jaccard" else share
        return replace(self, value=value, size=self.binomial_size)

    @property
    def share(self) -> float:
        """The share that the limits are made of: the number, or J of F1."""
        return self.value / (2 - self.value) if self.scale == "jaccard" else self.value

    @cached_property
    def binomial_size(self) -> float:
        """Number of rows with which a binomial share has an interval as wide as the pilot's."""
        if not math.isnan(self.size):
            return self.size

        def is_enough(size: float) -> bool:
            lower, upper = _share_limits(self.share, size, self.confidence, self.degrees())
            return (_f1(upper) - _f1(lower) if self.scale == "jaccard" else upper - lower) <= self.width

        return smallest_factor(is_enough) or math.nan

    @cached_property
    def variance(self) -> float:
        """Variance of the mean, for the scale `mean`, with which its interval is as wide as the pilot's."""
        tails = tail(self.confidence, self.degrees())

        def is_enough(precision: float) -> bool:
            lower, upper = self._mean_limits(1 / precision, self.size, tails)
            return upper - lower <= self.width

        return 1 / (smallest_factor(is_enough, 1.0, 1e15) or math.nan)

    def _mean_limits(self, variance: float, size: float, tails: object) -> tuple[float, float]:
        numbers = (np.asarray(number, dtype=np.float64) for number in (self.value, variance, size, tails))
        lower, upper = mean_limits(*numbers)
        return float(lower), float(upper)

    @property
    def error_on_scale(self) -> float:
        """Standard error of the number on its scale, where that is one."""
        return sum(self._distances) / 2 / float(t_quantile(self.confidence, self.degrees()))

    @property
    def _distances(self) -> tuple[float, float]:
        """Distances of the limits from the number on the scale.

        A limit that is cut off has the distance of the other one, or that of the bound if it is larger.
        """
        down, up = (self._distance(limit) for limit in (self.lower, self.upper))
        return (max(down, up) if self.is_cut(self.lower) else down), (max(down, up) if self.is_cut(self.upper) else up)

    def _distance(self, limit: float) -> float:
        transform, _ = _SCALES[self.scale]
        is_end = (self.scale in {"lack", "logit"} and limit >= 1) or (self.scale in {"log", "logit"} and limit <= 0)
        return 0.0 if is_end else abs(transform(limit) - transform(self.value))

    def is_cut(self, limit: float) -> bool:
        """Whether a limit lies where limits are cut off."""
        return limit in self.bounds


def _smallest_in_both_ways(pilot: Pilot, is_enough: Callable[[float], bool]) -> float | None:
    """The smallest factor that is enough, with clusters that are replicates of their own or else groups of them."""
    lowest = FEWEST_UNITS / pilot.units if math.isfinite(pilot.units) else 1e-9
    if pilot.has_groups and not pilot.is_grouped:
        most = _MOST_OWN_REPLICATES / pilot.units
        if most > lowest and (factor := smallest_factor(is_enough, lowest, most)) is not None:
            return factor
        lowest = max(lowest, math.nextafter(most, math.inf))
    return smallest_factor(is_enough, lowest, max(1e9, 2 * lowest))


def _share_limits(share: float, size: float, confidence: float, degrees: float) -> tuple[float, float]:
    hits, misses = np.asarray(size * share), np.asarray(size * (1 - share))
    lower, upper = binomial_limits(hits, misses, tail(confidence, degrees))
    return float(lower), float(upper)


def _f1(jaccard: float) -> float:
    return 2 * jaccard / (1 + jaccard)


# More clusters, or more rows in the same clusters: what the intra-cluster correlation says.
#
# The variance of a share over clusters of m rows is that of independent rows times the design effect 1 + (m - 1) ρ,
# where ρ is the correlation of two rows of a cluster (Kish 1965, Survey Sampling, chapter 5). With r times the rows
# in the same clusters it is multiplied by (1 + (r m - 1) ρ) / (r (1 + (m - 1) ρ)), and however many rows there are it
# does not fall below m ρ / (1 + (m - 1) ρ) of what it was: only more clusters take it further. Where clusters are of
# unequal size, m is the mean size of the cluster of a row, Σ n² / Σ n. Of a ratio that is over some of the rows of
# each cluster, such as those that are kept, the number in a cluster varies as a Poisson number does, with the mean λ,
# and m is 1 + λ.


_ROUNDING = 1e-9


def intracluster_correlation(design_effect: float, rows_per_cluster: float) -> float:
    """Correlation of two rows of a cluster, (d - 1) / (m - 1), of the design effect d and rows per cluster m.

    At most 1, below 0 where rows of a cluster are less alike than others; nan for a row per cluster.
    """
    if not rows_per_cluster > 1 + _ROUNDING:
        return math.nan
    return min((design_effect - 1) / (rows_per_cluster - 1), 1.0)


def variance_with_more_rows(times: float, correlation: float, rows_per_cluster: float) -> float:
    """Variance with so many times the rows in the same clusters, which may be infinite, over that of the pilot.

    The correlation is as from `intracluster_correlation`; below 0 it counts as 0.
    """
    rho = max(correlation, 0.0)
    effect = 1 + (rows_per_cluster - 1) * rho
    return ((1 - rho) / times + rows_per_cluster * rho) / effect


def rows_for_variance(wanted: float, correlation: float, rows_per_cluster: float) -> float:
    """How many times the rows in the same clusters multiply the variance by this; infinite if no number does."""
    rho = max(correlation, 0.0)
    room = wanted * (1 + (rows_per_cluster - 1) * rho) - rows_per_cluster * rho
    return (1 - rho) / room if room > 0 else math.inf


# How far the spread of a pilot can be trusted: the upper limit of its variance.
#
# The variance of a pilot is itself an estimate. With ν degrees of freedom its upper limit is V ν / χ²(0.2; ν): in 80
# of 100 pilots the true variance lies below. A plan that rests on the limit reaches what is wanted in about 80 of 100
# cases, one that rests on the estimate in about half of them (Browne 1995, Statistics in Medicine 14, 1933-1940;
# Kieser & Wassmer 1996, Biometrical Journal 38, 941-949).
#
# Of a normal sample ν is n - 1. Shares of clusters are not normal: the relative variance of V is 2 / (n - 1) + κ / n
# with their excess kurtosis κ, and ν is two over that (Satterthwaite 1946). κ is that of a beta-binomial distribution
# with the share, the rows per cluster and the intra-cluster correlation of the pilot; of single rows, that of a
# binomial one, where near a share of 1/2 the variance is known nearly without error. Where clusters are of unequal
# size, the squares of their sizes are still more unequal: n_e² / n clusters of n with the effective number n_e take
# the place of n_e. This lies between the clusters that count where variances grow with sizes and those where they
# grow with their squares.
#
# Of areas and of matches without labels what a row adds is taken as normal, and their number in a cluster as Poisson:
# then κ is 3 over their mean number. Where limits lie on a scale, such as that of the logarithm, their width goes
# along with the number itself, whose error adds to that of V.
#
# Measured in `studies/sample_sizes.py`.


ASSURANCE = 0.8  # of reaching what is wanted
_OF_NORMAL = 3.0  # fourth moment over the squared variance
_FEWEST_DEGREES, _MOST_DEGREES = 1.0, 1e9
_SHARES = frozenset({"share", "jaccard"})
_LEAST_CORRELATION, _MOST_CORRELATION = 1e-6, 1 - 1e-6


def inflation_limit(degrees: float, assurance: float = ASSURANCE) -> float:
    """The upper limit of a variance over its estimate with so many degrees of freedom, ν / χ²(1 - assurance; ν)."""
    return degrees / float(scipy.special.chdtri(degrees, assurance))


def _kurtosis_of_shares(share: float, correlation: float, rows: float) -> float:
    """Excess kurtosis of the hits of a cluster of so many rows, if they are beta-binomial; 0 where they do not vary."""
    if not 0 < share < 1:
        return 0.0
    if rows <= 1:
        return (1 - 6 * share * (1 - share)) / (share * (1 - share))
    rho = min(max(correlation, _LEAST_CORRELATION), _MOST_CORRELATION)
    a, b = share * (1 - rho) / rho, (1 - share) * (1 - rho) / rho
    total, product = a + b, a * b
    scale = total**2 * (1 + total) / (rows * product * (total + 2) * (total + 3) * (total + rows))
    moment = total * (total - 1 + 6 * rows) + 3 * product * (rows - 2) + 6 * rows**2
    moment -= 3 * product * rows * (6 - rows) / total + 18 * product * rows**2 / total**2
    return scale * moment - 3


def _kurtosis_of_values(mean: float, variance: float) -> float:
    """Excess kurtosis of values from 0 to 1, if they have a beta distribution with this mean and variance."""
    total = max(mean * (1 - mean) / variance - 1, 1e-6)
    a, b = mean * total, (1 - mean) * total
    top = (a - b) ** 2 * (total + 1) - a * b * (total + 2)
    return 6 * top / (a * b * (total + 2) * (total + 3))


def variance_degrees(pilot: Pilot) -> float:
    """Degrees of freedom of the variance of a pilot."""
    # relative variance of the variance, of independent clusters or of rows
    if not math.isinf(pilot.effective):
        alike = max(pilot.effective**2 / max(pilot.units, pilot.effective), FEWEST_UNITS)
        relative = 2 / max(alike - 1, 1.0) + _kurtosis(pilot) / max(pilot.effective, 1.0)
    elif pilot.scale in _SHARES:
        relative = (2 + _kurtosis_of_shares(pilot.share, 0.0, 1.0)) / pilot.binomial_size
    else:
        relative = 2 / max((pilot.units if math.isnan(pilot.rows) else pilot.rows) - 1, 1.0)
    # the number's own error adds to it where the width of its interval depends on the number
    slope = {"log": 1.0, "lack": 1.0, "logit": abs(1 - 2 * pilot.value)}.get(pilot.scale, 0.0)
    relative += 4 * slope**2 * pilot.error_on_scale**2 if slope else 0.0
    return float(np.clip(2 / max(relative, 2 / _MOST_DEGREES), _FEWEST_DEGREES, _MOST_DEGREES))


def _kurtosis(pilot: Pilot) -> float:
    """Excess kurtosis of what a cluster adds; 0 where nothing is known of it."""
    if pilot.scale == "mean" and 0 < pilot.value < 1:
        return max(_kurtosis_of_values(pilot.value, pilot.variance * pilot.size), 0.0)
    if pilot.scale not in _SHARES:
        return 0.0 if math.isnan(pilot.rows) else _OF_NORMAL * pilot.effective / max(pilot.rows, 1.0)
    rows = pilot.rows_per_cluster
    if math.isnan(rows):
        return max(_kurtosis_of_shares(pilot.share, 0.0, 1.0), 0.0) * pilot.effective / pilot.binomial_size
    correlation = intracluster_correlation(pilot.rows / pilot.binomial_size, rows)
    return max(_kurtosis_of_shares(pilot.share, correlation if math.isfinite(correlation) else 0.0, rows), 0.0)


def cautious(pilot: Pilot, assurance: float = ASSURANCE) -> tuple[Pilot, float]:
    """The pilot on the safe side, and by what its variance is multiplied.

    A share of 0 or 1 shows no variance: the limit of the share itself takes the place of that of its variance.
    """
    if pilot.scale in _SHARES and pilot.share in {0.0, 1.0}:
        unseen = 1 - (1 - assurance) ** (1 / pilot.binomial_size)
        return pilot.moved(unseen if pilot.share == 0.0 else 1 - unseen), 1.0
    return pilot, inflation_limit(variance_degrees(pilot), assurance)


# How many units two runs need, each on units of its own, so that a difference between their numbers is found.
#
# The standard error of a difference of independent numbers is the root of the sum of their squared errors, with the
# degrees of freedom of Welch (1947). Of two shares one lies the difference away from the other, on the side where
# shares vary more, towards 1/2. A comparison on the same units needs fewer of them: see `power`.


def other_run(pilot: Pilot, difference: float) -> Pilot | None:
    """The pilot with the number that lies the difference away, where it varies more; None if there is no such share."""
    if pilot.scale not in {*_SHARES, "mean"}:
        return pilot
    candidates = [value for value in (pilot.value - difference, pilot.value + difference) if 0 < value < 1]
    if not candidates:
        return None
    if pilot.scale == "mean":
        return pilot
    nearest = min(candidates, key=lambda value: abs(value - 1 / 2))
    return pilot.moved(nearest / (2 - nearest) if pilot.scale == "jaccard" else nearest)


def _error_of_difference(pilot: Pilot, other: Pilot, factor: float, *, inflation: float = 1.0) -> tuple[float, float]:
    """Standard error of the difference of two runs with so many times the units, and its degrees of freedom."""
    squares = [run.error(factor, inflation=inflation) ** 2 for run in (pilot, other)]
    spread = sum(square**2 / pilot.degrees(factor) for square in squares)
    return math.sqrt(sum(squares)), (sum(squares) ** 2 / spread if spread > 0 else math.inf)


def factor_for_difference(
    pilot: Pilot, other: Pilot, question: Question, *, inflation: float = 1.0, degrees: float = math.inf
) -> float | None:
    """The smallest factor with which a test of `different`, against `other_run`, has the power; None if none has.

    The degrees of freedom are those of the variance of the pilot, as for `power.units_for`.
    """

    def is_enough(factor: float) -> bool:
        of_both = _error_of_difference(pilot, other, factor, inflation=inflation)
        return expected_power(question, *of_both, degrees) >= question.power

    return _smallest_in_both_ways(pilot, is_enough)


def detectable_now(pilot: Pilot, question: Question) -> float | None:
    """The difference that two runs of the size of the pilot show with the power; None if there is none."""
    return detectable(question, *_error_of_difference(pilot, pilot, 1.0))


# How many units an interval or a test needs where there is no pilot, from what is expected.
#
# Half of all samples of the size that is needed have a wider interval than wanted, because their share lies nearer to
# 1/2 or their spread is larger than expected. The number on the safe side is the smallest with which the interval is no
# wider in 80 of 100 samples (assurance; Beal 1989, Biometrics 45, 969-977).
#
# The variance of ROC AUC is that of Hanley and McNeil (1982, Radiology 143, 29-36), for scores of both classes with
# exponential distributions, which is on the safe side of that of normal ones.


_FEWEST = 2


def of_expected_share(value: float, design_effect: float, confidence: float, scale: Scale = "share") -> Pilot:
    """A pilot of one row whose share is the expected one, or whose F1 is for the scale `jaccard`."""
    return Pilot(value, math.nan, math.nan, confidence, scale, 1.0, size=1 / design_effect)


def rows_for_share(expected: Pilot, width: float) -> int | None:
    """The smallest number of rows with which the interval of `of_expected_share` is no wider; None if none is."""
    return smallest_number(lambda rows: expected.width_with(float(rows)) <= width, _FEWEST)


def rows_for_share_assured(expected: Pilot, width: float, assurance: float = ASSURANCE) -> int | None:
    """The smallest number of rows with which it is no wider in so many of all samples."""
    share, distance = expected.share, float(scipy.special.ndtri(assurance))
    toward = 1.0 if share <= 1 / 2 else -1.0

    def is_enough(rows: int) -> bool:
        error = math.sqrt(share * (1 - share) / (expected.binomial_size * rows))
        moved = share + toward * min(distance * error, abs(1 / 2 - share))
        return expected.moved(moved).width_with(float(rows)) <= width

    return smallest_number(is_enough, _FEWEST)


def units_for_mean(deviation: float, width: float, confidence: float, assurance: float | None = None) -> int | None:
    """The smallest number of units with which the interval of a mean, by Student's t, is no wider.

    With an assurance it is so in this share of samples; with None if the standard deviation is as expected.
    """

    def is_enough(units: int) -> bool:
        degrees = units - 1.0
        spread = 1.0 if assurance is None else math.sqrt(float(scipy.special.chdtri(degrees, 1 - assurance)) / degrees)
        return 2 * float(t_quantile(confidence, degrees)) * deviation * spread / math.sqrt(units) <= width

    return smallest_number(is_enough, _FEWEST)


def _auc_error(area: float, positives: float, negatives: float) -> float:
    """Standard error of ROC AUC (Hanley & McNeil 1982)."""
    of_positives, of_negatives = area / (2 - area) - area**2, 2 * area**2 / (1 + area) - area**2
    variance = area * (1 - area) + (positives - 1) * of_positives + (negatives - 1) * of_negatives
    return math.sqrt(variance / (positives * negatives))


def rows_for_auc(
    area: float, share_positive: float, width: float, confidence: float, design_effect: float = 1.0
) -> int | None:
    """The smallest number of rows with which the interval of ROC AUC on the logit scale is no wider.

    Args:
        area: The expected area, between 0 and 1, exclusive.
        share_positive: Share of positives, likewise.
        width: Upper less lower limit, > 0.
        confidence: Level of the interval.
        design_effect: Variance over that of independent rows.
    """
    quantile = float(t_quantile(confidence, math.inf))

    def is_enough(rows: int) -> bool:
        error = _auc_error(area, max(rows * share_positive, 1.0), max(rows * (1 - share_positive), 1.0))
        wider = np.asarray(error * math.sqrt(design_effect))
        lower, upper = logit_interval(np.asarray(area), wider, quantile)
        return float(upper - lower) <= width

    return smallest_number(is_enough, _FEWEST)
