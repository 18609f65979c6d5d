"""Pooled precision, recall and F1 of two systems: differences and ratios with standard errors, of units or clusters."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
import scipy

from ...records import dataclass
from ...tables.columns import RATIOS
from ...tables.ratios import RATIO_OF
from ..uncertainty.jackknife import binomial_limits, covariance, effective_degrees, leave_one_out, t_quantile, tail
from ..uncertainty.serial import over_time
from .student import NOTHING, Student, mean_of, welch_degrees

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from ..uncertainty.jackknife import Floats


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

    Args:
        counts_a: True positives, false positives and false negatives of the first system, shape (U, 3).
        counts_b: The same of the second.
    """
    return effective_number(denominators(counts_a) + denominators(counts_b))


def jackknife_errors(jackknifed: Floats, units: Floats | float, *, in_time: bool = False) -> Errors:
    """Standard errors from differences without each unit in turn.

    Args:
        jackknifed: Shape (U, K).
        units: The effective number of units, shape (K,); degrees of freedom are at most this number less 1.
        in_time: Whether units follow each other in time, so that those nearby may be alike, see `uncertainty.serial`.
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
    """What is divided by what, for precision, recall and F1."""
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

    Args:
        a: One value per unit, shape (U,).
        b: The same units in the same order.
        in_time: Whether units follow each other in time.
    """
    if not len(a):
        return UNDEFINED_RATIO
    mean_a, mean_b = mean_of(a).estimate, mean_of(b).estimate
    if not (mean_a > 0 and mean_b > 0):
        return _at_zero(mean_a, mean_b)
    return _ratio(mean_a, mean_b, mean_of(a / mean_a - b / mean_b, in_time=in_time))


def ratio_of_independent(a: Student, b: Student) -> Ratio:
    """Return the ratio of two independent estimates.

    Args:
        a: The upper one.
        b: The lower one.
    """
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

    Args:
        values: The upper and the lower estimate.
        jackknifed: The same without each unit in turn, shapes (U,).
        units: The effective number of units, above the degrees of freedom.
        in_time: Whether units follow each other in time.
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
