"""Many tests at once, how small a difference a test can find, and means of skewed differences."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
import scipy

from ...base.records import dataclass
from ..uncertainty.jackknife import t_quantile
from .paired import PairedT, differences, is_constant, means_of, paired_t, skewness_of_difference
from .pooled import Student, difference_of, unit_of

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import ArrayLike

    from ..uncertainty.jackknife import Floats
    from .pooled import Inference


# Many tests at once, and how small a difference a test can find.


Correction: TypeAlias = Literal["holm", "bh", "none"]


_LARGE_CRITICAL = 100.0  # value of t beyond which the noncentral distribution takes for ever, and is not needed


def adjust_p_values(p_values: ArrayLike, correction: Correction = "holm") -> Floats:
    """P-values adjusted for multiple testing; those that are nan stay nan and do not count.

    Args:
        p_values: Shape (K,).
        correction: `holm` controls the probability of any false discovery (Holm 1979); `bh` controls the expected
            share of false discoveries among all discoveries, for independent or positively dependent tests (Benjamini &
            Hochberg 1995); `none` changes nothing.

    Returns:
        Shape (K,), in the same order, at most 1.

    Raises:
        ValueError: a p-value lies outside [0, 1], or the correction is unknown.
    """
    values = np.asarray(p_values, dtype=np.float64)
    is_defined = ~np.isnan(values)
    defined = values[is_defined]
    if not ((defined >= 0) & (defined <= 1)).all():
        message = "p-values lie in [0, 1]"
        raise ValueError(message)
    order, tests = np.argsort(defined, kind="stable"), len(defined)
    if correction == "holm":
        adjusted = np.maximum.accumulate(defined[order] * np.arange(tests, 0, -1))
    elif correction == "bh":
        adjusted = np.minimum.accumulate((defined[order] * tests / np.arange(1, tests + 1))[::-1])[::-1]
    elif correction == "none":
        adjusted = defined[order]
    else:
        message = f"the correction must be holm, bh or none, not {correction!r}"
        raise ValueError(message)
    result = np.full(len(values), np.nan)
    result[np.flatnonzero(is_defined)[order]] = np.minimum(adjusted, 1.0)
    return result


def minimum_detectable_difference(
    deviation: float, n_units: int, *, power: float = 0.8, significance: float = 0.05
) -> float:
    """The true mean difference that a two-sided paired t test detects with this power.

    It follows from the noncentral t distribution (Cohen 1988); rejections in the wrong direction, which are next to
    impossible, do not count.

    Args:
        deviation: Standard deviation of the differences within units, ≥ 0.
        n_units: Number of units.
        power: Probability of detecting the difference, above `significance`.
        significance: Level of the test.

    Returns:
        The difference in the unit of `deviation`; nan for fewer than two units.

    Raises:
        ValueError: the deviation is negative, or the power does not lie between the level of the test and 1.
    """
    if deviation < 0 or not 0 < significance < power < 1:
        message = "the deviation must not be negative, and 0 < significance < power < 1 is needed"
        raise ValueError(message)
    if n_units < 2 or math.isnan(deviation):  # noqa: PLR2004 - a spread needs two
        return math.nan
    return detectable_difference(deviation / math.sqrt(n_units), n_units - 1, power=power, significance=significance)


def detectable_difference(error: float, degrees: float, *, power: float = 0.8, significance: float = 0.05) -> float:
    """The true difference that a two-sided t test with this standard error detects with this power (Cohen 1988).

    Args:
        error: Standard error of the difference.
        degrees: Degrees of freedom of its square.
        power: Probability of detecting the difference, above `significance`.
        significance: Level of the test.

    Returns:
        The difference in the unit of `error`; nan where an argument is.
    """
    critical = float(scipy.special.stdtrit(degrees, 1 - significance / 2))
    if critical > _LARGE_CRITICAL:  # the noise of the mean is nothing beside that of its standard error
        return critical * math.sqrt(float(scipy.special.chdtri(degrees, 1 - power)) / degrees) * error
    return float(scipy.special.nctdtrinc(degrees, 1 - power, critical)) * error


# One-sided claims about a difference with a margin: not worse by more than the margin, and equivalent within it.
#
# A large p-value of a test of no difference shows nothing: the data may be few. A claim is shown by rejecting its
# contrary, with the margin that was chosen beforehand (Schuirmann 1987; Blackwelder 1982):
#
# | claim | what is rejected |
# |---|---|
# | a is not worse than b | a is worse than b by the margin or more |
# | b is not worse than a | b is worse than a by the margin or more |
# | equivalent | a and b differ by the margin or more: both of the former, each at the level of the test |
#
# Two one-sided tests at the level α reject both exactly where the interval of the level 1 − 2α lies within the
# margin.


Claim: TypeAlias = Literal["a_not_worse", "b_not_worse", "equivalent"]


@dataclass(frozen=True)
class ClaimTest:
    """The test of one claim.

    Attributes:
        claim: What is claimed.
        statistic: Distance of the difference from the margin towards the claim, in standard errors; of two tests the
            smaller; nan where there is none.
        p_value: One-sided p-value of the contrary of the claim, of two tests the larger; nan where undefined.
    """

    claim: Claim
    statistic: float
    p_value: float


def claims_within(difference: Inference, margin: float, *, higher_is_better: bool = True) -> tuple[ClaimTest, ...]:
    """Test every claim about a difference of a less b.

    Args:
        difference: What is known of it.
        margin: The largest difference that does not matter, > 0.
        higher_is_better: Whether the system with the higher value is the better one.

    Raises:
        ValueError: the margin is not above 0.
    """
    if not margin > 0:
        message = f"the margin must be above 0, not {margin}"
        raise ValueError(message)
    above = difference.statistic(-margin), difference.p_value_above(-margin)
    below = -difference.statistic(margin), difference.p_value_below(margin)
    of_a, of_b = (above, below) if higher_is_better else (below, above)
    return (
        ClaimTest("a_not_worse", *of_a),
        ClaimTest("b_not_worse", *of_b),
        ClaimTest("equivalent", min(of_a[0], of_b[0]), max(of_a[1], of_b[1])),
    )


def level_of_claims(confidence: float) -> float:
    """Return the level of the interval that lies within the margin where two one-sided tests reject: 2c − 1.

    Args:
        confidence: 1 less the level of each test; up to 1/2 there is no such interval, and the result is not above 0.
    """
    return round(2 * confidence - 1, 12)  # 0.9, where the doubles give 0.8999999999999999


# A test of equal means, with its interval, for differences that are skewed.
#
# Student's t takes the distribution of the t statistic as symmetric. Where differences are skewed it is not: t is too
# often far on the side of the short tail. The three corrections here each estimate that asymmetry to second order:
#
# - the bootstrap-t with equal tails: quantiles of (x̄* − x̄) / s* over resamples of units (Efron 1982; Hall 1988),
# - the symmetric bootstrap-t: quantiles of |x̄* − x̄| / s* (Hall 1988),
# - Student's t of Hall's (1992) transformation of x̄ / s, a cubic that takes the skewness out.
#
# Each errs on its own: the first by resamples that hold too little of the long tail, the second by power on the short
# side, the third by the skewness of the sample, which underestimates that of the population. The interval is the
# smallest that holds all three, and the p-value is the largest of the three, so that p ≤ 1 − confidence says that 0
# lies outside.


_MOST_DRAWS, _FEWEST_RESAMPLES = 10**8, 999
_DRAWS_AT_ONCE = 2**21
_ROUNDING = 1e-9
_LARGEST_STATISTIC = 1e90  # whose cube is finite
_NEGLIGIBLE_SKEWNESS = 1e-6
_FEWEST_FOR_SKEWNESS = 3


def skewness(values: Floats) -> float:
    """Third central moment over the cube of the standard deviation; nan for fewer than three or equal values."""
    if len(values) < _FEWEST_FOR_SKEWNESS or (values == values[0]).all():
        return math.nan
    centred = values - values.mean()
    centred = centred / np.abs(centred).max()
    return float((centred**3).mean() / (centred**2).mean() ** 1.5)


def skewness_error(count: int) -> float:
    """Standard error of the skewness of normal values (Cramér 1946); inf for fewer than three."""
    if count < _FEWEST_FOR_SKEWNESS:
        return math.inf
    return math.sqrt(6 * (count - 2) / ((count + 1) * (count + 3)))


@dataclass(frozen=True)
class BootstrapT:
    """The three corrections combined for a mean, or for a difference of means; see the head of this file.

    Attributes:
        student: The estimate, its standard error and degrees of freedom.
        resampled: The t statistic of every resample about the estimate, shape (B,); infinite without a spread.
        skewness: Skewness of the estimate itself, γ/√n for the mean of one sample.
    """

    student: Student
    resampled: Floats
    skewness: float

    def statistic(self, value: float = 0.0) -> float:
        """Return Student's t of the hypothesis that the truth has this value."""
        return self.student.statistic(value)

    def limits(self, confidence: float) -> tuple[float, float]:
        """Return the smallest interval that holds all three; nan where a limit is infinite."""
        centre, error = self.student.estimate, self.student.error
        if math.isnan(error):
            return math.nan, math.nan
        ends, reach = self._equal_tails(confidence), self._reach(confidence)
        bounds = _hall_bounds(self.skewness, float(t_quantile(confidence, self.student.degrees)))
        low, high = min(ends[0], -reach, bounds[0]), max(ends[1], reach, bounds[1])
        low, high = (end if math.isfinite(end) else math.nan for end in (low, high))
        return centre - high * error, centre - low * error

    def p_value(self) -> float:
        """Return the largest two-sided p-value of the three of no difference."""
        statistic = self.student.statistic()
        if math.isnan(statistic):
            return self.student.p_value()
        tails = min(2 * min(self._tail(statistic, 1), self._tail(statistic, -1)), 1.0)
        transformed = _hall(self.skewness, statistic)
        hall = 2 * float(scipy.special.stdtr(self.student.degrees, -abs(transformed)))
        return max(tails, self._symmetric(statistic), hall)

    def p_value_above(self, value: float) -> float:
        """Return the largest one-sided p-value of the three that the truth is at most `value`."""
        return self._one_sided(self.statistic(value), 1)

    def p_value_below(self, value: float) -> float:
        """Return the largest one-sided p-value of the three that the truth is at least `value`."""
        return self._one_sided(self.statistic(value), -1)

    def _one_sided(self, statistic: float, direction: int) -> float:
        if math.isnan(statistic):
            return math.nan
        symmetric = self._symmetric(statistic) / 2
        if statistic * direction < 0:
            symmetric = 1 - symmetric
        hall = float(scipy.special.stdtr(self.student.degrees, -direction * _hall(self.skewness, statistic)))
        return max(self._tail(statistic, direction), symmetric, hall)

    def _tail(self, statistic: float, direction: int) -> float:
        """Share of resamples at least as far on one side; few different values give equal statistics."""
        least = direction * statistic - _ROUNDING * (1 + abs(statistic))
        return float(1 + (direction * self.resampled >= least).sum()) / (1 + len(self.resampled))

    def _symmetric(self, statistic: float) -> float:
        """Share of resamples at least as far on either side."""
        least = abs(statistic) - _ROUNDING * (1 + abs(statistic))
        return float(1 + (np.abs(self.resampled) >= least).sum()) / (1 + len(self.resampled))

    def _equal_tails(self, confidence: float) -> tuple[float, float]:
        """The statistics between which the p-value of equal tails exceeds 1 - confidence."""
        rank = math.floor((len(self.resampled) + 1) * (1 - confidence) / 2 + _ROUNDING)
        ordered = np.sort(self.resampled)
        return (float(ordered[rank - 1]), float(ordered[-rank])) if rank else (-math.inf, math.inf)

    def _reach(self, confidence: float) -> float:
        """The absolute statistic up to which the symmetric p-value exceeds 1 - confidence."""
        rank = math.floor((len(self.resampled) + 1) * (1 - confidence) + _ROUNDING)
        return float(np.sort(np.abs(self.resampled))[-rank]) if rank else math.inf


def bootstrap_t(
    a: ArrayLike, b: ArrayLike, *, confidence: float = 0.95, resamples: int = 9999, seed: int = 0
) -> PairedT:
    """Test of equal means that allows for skewed differences, and its interval; see the head of this file.

    Args:
        a: One value per unit, shape (U,).
        b: The same units in the same order.
        confidence: Confidence of the interval.
        resamples: Number of resamples of units, B; fewer, but at least 999, where they would take over 100 million
            draws.
        seed: The same seed gives the same result.

    Returns:
        The statistic is Student's t, p_value at least 1 / (B + 1). What is undefined for `paired_t` is undefined here.
        A limit is nan where so many resamples have no spread that it is infinite, or where B is too small for the
        confidence.

    Raises:
        ValueError: as for `differences`.
    """
    student = paired_t(a, b, confidence=confidence)
    if math.isnan(student.statistic):
        return student
    bootstrapped = bootstrap_of_pairs(a, b, resamples=resamples, seed=seed)
    lower, upper = bootstrapped.limits(confidence)
    return replace(student, p_value=bootstrapped.p_value(), lower=lower, upper=upper)


def bootstrap_of_pairs(a: ArrayLike, b: ArrayLike, *, resamples: int = 9999, seed: int = 0) -> BootstrapT:
    """Resample the differences of two systems on the same units; arguments and errors as for `bootstrap_t`.

    Returns:
        Its standard error is nan where `paired_t` has no statistic.
    """
    student = paired_t(a, b).student
    if math.isnan(student.error):
        return BootstrapT(student, np.zeros(0), math.nan)
    gap = differences(a, b)
    rng, count = np.random.default_rng(seed), _affordable(resamples, len(gap))
    mean, variance = _resampled_moments(gap / np.abs(gap).max(), count, rng)
    skew = skewness(gap)
    skew = 0.0 if math.isnan(skew) else skew
    return BootstrapT(student, _statistics(mean, variance), skew / math.sqrt(len(gap)))


def bootstrap_of_groups(a: Floats, b: Floats, *, resamples: int = 9999, seed: int = 0) -> BootstrapT:
    """Resample two groups of different units, each for itself (Hall & Martin 1988).

    Both have one finite value per unit, shape (A,) and (B,); resamples and seed are as for `bootstrap_t`.

    Returns:
        Its standard error is nan where one of the groups has fewer than two units, or no spread.
    """
    student = difference_of(*means_of(a, b))
    if is_constant(a) or is_constant(b) or math.isnan(student.error):
        return BootstrapT(replace(student, error=math.nan), np.zeros(0), math.nan)
    unit = unit_of(np.concatenate([a, b]))
    halves = [values / unit / 2 for values in (a, b)]  # whose differences are finite
    centred = [values - values.mean() for values in halves]
    scale = max(float(np.abs(values).max()) for values in centred)
    rng, count = np.random.default_rng(seed), _affordable(resamples, len(a) + len(b))
    (mean_a, variance_a), (mean_b, variance_b) = (_resampled_moments(values / scale, count, rng) for values in centred)
    skew = skewness_of_difference(a, b)
    return BootstrapT(student, _statistics(mean_a - mean_b, variance_a + variance_b), skew)


def _affordable(resamples: int, units: int) -> int:
    return min(resamples, max(_MOST_DRAWS // units, _FEWEST_RESAMPLES))


def _resampled_moments(values: Floats, resamples: int, rng: Generator) -> tuple[Floats, Floats]:
    """Means of resamples about the mean of the values, and the variances of these means; each of shape (B,)."""
    centred = values - values.mean()
    units, at_once = len(values), max(1, _DRAWS_AT_ONCE // len(values))
    means, variances = [], []
    for start in range(0, resamples, at_once):
        drawn = centred[rng.integers(0, units, (min(at_once, resamples - start), units))]
        mean, deviation = drawn.mean(axis=1), drawn.std(axis=1, ddof=1)
        # a resample of one and the same value has no spread but that of rounding
        deviation = np.where(deviation > _ROUNDING * np.abs(mean), deviation, 0.0)
        means.append(mean)
        variances.append(deviation**2 / units)
    return np.concatenate(means), np.concatenate(variances)


def _statistics(means: Floats, variances: Floats) -> Floats:
    """T statistics; infinite without a spread."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num(means / np.sqrt(variances), nan=0.0, posinf=np.inf, neginf=-np.inf)


def _hall(skew: float, statistic: float) -> float:
    """Hall's transformation of t, which takes its skewness out.

    Of S = (x̄ − μ) / s it is S + γ S²/3 + γ² S³/27 + γ/(6n) = ((1 + γ S/3)³ − 1)/γ + γ/(6n) (Hall 1992, equation 2.8);
    written here for t = √n S and the skewness of the mean, κ = γ/√n: t + κ t²/3 + κ² t³/27 + κ/6, which rises with t
    and can therefore be inverted. For two samples κ is the skewness of the difference (Hall & Martin 1988).
    """
    t = max(-_LARGEST_STATISTIC, min(statistic, _LARGEST_STATISTIC))
    return t + skew * t**2 / 3 + skew**2 * t**3 / 27 + skew / 6


def _hall_bounds(skew: float, quantile: float) -> tuple[float, float]:
    """The statistics between which the p-value of Hall's transformation exceeds 1 - confidence."""
    ends = np.array([-quantile, quantile]) - skew / 6
    # the inverse; without skewness the transformation changes nothing
    low, high = 3 * (np.cbrt(1 + skew * ends) - 1) / skew if abs(skew) > _NEGLIGIBLE_SKEWNESS else ends
    return float(low), float(high)
