"""Two systems on the same units or on different ones: tests of differences, and matchers without gold labels."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from ...base.columns import RATIOS
from ...base.records import dataclass
from ..uncertainty.jackknife import leave_one_out, t_quantile
from .pooled import (
    NOTHING,
    Errors,
    Student,
    denominators,
    effective_number,
    jackknife_errors,
    mean_of,
    pooled_ratios,
    unit_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl
    from numpy.typing import ArrayLike, NDArray

    from ..uncertainty.jackknife import Floats


# Two matchers on the same events, without gold labels: differences of precision, recall and F1.


EVENT_COUNTS = ("n_before", "n_after", "m_before", "m_after", "m_before_reference", "m_after_reference")


@dataclass(frozen=True)
class PairedRatio:
    """One ratio of two matchers.

    Attributes:
        value_a: Of the first, over all events; nan where undefined.
        value_b: The same of the other.
        jackknifed_a: The first without each event in turn, shape (E,).
        jackknifed_b: The same of the other.
        errors: The standard error of the difference and its degrees of freedom.
    """

    value_a: float
    value_b: float
    jackknifed_a: Floats
    jackknifed_b: Floats
    errors: Errors

    @property
    def difference(self) -> float:
        """The first less the other."""
        return self.value_a - self.value_b

    @property
    def jackknifed(self) -> Floats:
        """The difference without each event in turn, shape (E,)."""
        return self.jackknifed_a - self.jackknifed_b

    def half_width(self, confidence: float) -> float:
        """Half the width of the interval of the difference, by Student's t."""
        return float(self.errors.half_width(confidence)[0])

    def t_p_value(self) -> float:
        """Two-sided p-value of equal ratios, by Student's t; agrees with the interval."""
        return float(self.errors.p_values(np.array([self.difference]))[0])

    def flip_p_value(self, flips: int, seed: int) -> float:
        """Two-sided p-value that what each event adds to the difference is symmetric about 0, by random signs.

        An event adds the difference itself less its deviation in the jackknife: the pseudo-value without the correction
        of bias (E - 1)(difference - mean), which is as large as the difference itself where a denominator is small or
        F1 has its kink, and let the test reject a true null hypothesis in up to 19 of 100 cases. As a flip changes no
        square, it orders the flips as the studentised sum would (Efron & Tibshirani 1993, chapters 11 and 15).
        """
        deviations = self.jackknifed - self.jackknifed.mean()
        contributions = self.difference - (len(deviations) - 1) * deviations
        factor = float(np.max(self.errors.factor))
        return sign_flip_p_value(contributions, resamples=flips, seed=seed, factor=factor)


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def paired_ratios(units_a: pl.DataFrame, units_b: pl.DataFrame, *, in_time: bool = False) -> dict[str, PairedRatio]:
    """Precision, recall and F1 of two matchers over the same events, from their tables `before_after_events`.

    Both matchers process the same events, so that the difficulty of an event is common to both and cancels in the
    difference. `in_time` tells that events follow each other in time, in the order of their ids.

    Raises:
        ValueError: the events of the two tables differ, or there are fewer than two.
    """
    joined = units_a.select("event_id", *EVENT_COUNTS).join(
        units_b.select("event_id", *EVENT_COUNTS), on="event_id", suffix="_b"
    )
    if not joined.height == units_a.height == units_b.height or joined.height < 2:  # noqa: PLR2004 - a spread needs two
        message = f"the matchers share {joined.height:,} of {units_a.height:,} and {units_b.height:,} events"
        raise ValueError(message)
    joined = joined.sort("event_id")
    counts = [np.column_stack([joined[f"{name}{side}"].to_numpy() for name in EVENT_COUNTS]) for side in ("", "_b")]
    of_a, of_b = (ratios_of_matcher(table) for table in counts)
    ratios = {}
    for name in RATIOS:
        (value_a, jackknifed_a), (value_b, jackknifed_b) = of_a[name], of_b[name]
        errors = jackknife_errors((jackknifed_a - jackknifed_b)[:, None], joined.height, in_time=in_time)
        ratios[name] = PairedRatio(value_a, value_b, jackknifed_a, jackknifed_b, errors)
    return ratios


def ratios_of_matcher(counts: NDArray[Any]) -> dict[str, tuple[float, Floats]]:
    """Precision, recall and F1 of one matcher, and the same without each event in turn, shape (E,); nan if undefined.

    Counts are in the order of `EVENT_COUNTS`, shape (E, 6), of two events or more.
    """
    totals, jackknifed = _values(counts.sum(axis=0).astype(np.float64)), _values(leave_one_out(counts))
    return {name: (float(totals[name]), jackknifed[name]) for name in RATIOS}


def _values(totals: Floats) -> dict[str, Floats]:
    """Precision, recall and F1 from totals whose last axis holds the counts in the order of `EVENT_COUNTS`.

    They are corrected for the positives among the pairs after the event (`metrics.before_after.estimates`), with a
    recall of 1 at the reference.
    """
    n_before, n_after, m_before, m_after, before_reference, after_reference = np.moveaxis(totals, -1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        # the positives, A = TP(reference) / (1 - FPR(reference))
        at_reference = after_reference - before_reference / n_before * n_after
        gap = 1 - before_reference / n_before
        positives = np.where((at_reference > 0) & (gap > 0), at_reference / gap, np.nan)
        positives = np.where(positives <= n_after, positives, np.nan)
        tp = m_after - m_before / n_before * (n_after - positives)
        return {
            "precision": np.asarray(tp / np.where(m_after > 0, m_after, np.nan)),
            "recall": np.asarray(tp / positives),
            "f1": np.asarray(2 * tp / (m_after + np.maximum(tp, positives))),
        }


# Two-sided tests of two systems on the same units (queries, documents, series, events).
#
# A unit that is hard for one system tends to be hard for the other; only differences within units remove this effect.
# Values that differ by less than 1e-12 of the largest value count as equal, because in doubles 0.3 - 0.2 is not
# 0.2 - 0.1.


_DIGITS = 12
_MOST_EXACT = 500  # non-zero differences up to which the signed-rank distribution is exact
_BYTES_AT_ONCE = 2**22  # of random numbers
_COINS = 8  # in a byte
_FEWEST_UNITS = 2  # a spread needs two


@dataclass(frozen=True)
class PairedTest:
    """Result of one test.

    Attributes:
        n_units: Number of units in the test.
        mean_a: Mean, or pooled ratio, of the first system.
        mean_b: The same of the second system.
        difference: mean_a - mean_b.
        statistic: The test statistic; nan where the test has none.
        p_value: Two-sided; nan where the test is undefined.
    """

    n_units: int
    mean_a: float
    mean_b: float
    difference: float
    statistic: float
    p_value: float


@dataclass(frozen=True)
class PairedT(PairedTest):
    """Result of the paired t test.

    Attributes:
        lower: Lower limit of the difference.
        upper: Upper limit of the difference.
        effect_size: Mean of the differences over their standard deviation (Cohen 1988, d_z).
        error: Standard error of the difference.
        degrees: Its degrees of freedom; nan: one less than there are units.
    """

    lower: float
    upper: float
    effect_size: float
    error: float = math.nan
    degrees: float = math.nan

    @property
    def student(self) -> Student:
        """The inference by Student's t; without a standard error where there is no statistic."""
        degrees = self.n_units - 1.0 if math.isnan(self.degrees) else self.degrees
        return Student(self.difference, self.error, degrees)


def differences(a: ArrayLike, b: ArrayLike) -> Floats:
    """Values of a minus values of b; mere rounding error becomes 0, and equal differences become equal bit patterns.

    Both have one value per unit, shape (U,), of the same units in the same order.

    Raises:
        ValueError: the shapes are different, or a value or difference is not finite; the caller decides whether to
            drop units without a value.
    """
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if first.ndim != 1 or first.shape != second.shape:
        message = f"two systems need one value per unit each, not shapes {first.shape} and {second.shape}"
        raise ValueError(message)
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        message = "a unit has no finite value"
        raise ValueError(message)
    scale = max(np.abs(first).max(initial=0.0), np.abs(second).max(initial=0.0)) or 1.0
    with np.errstate(over="ignore"):
        gap = first - second
    if not np.isfinite(gap).all():
        message = "two values of a unit differ by more than a double holds"
        raise ValueError(message)
    return np.asarray(np.round(gap / scale, _DIGITS) * scale)


def paired_t(a: ArrayLike, b: ArrayLike, *, confidence: float = 0.95) -> PairedT:
    """Paired t test, its interval and effect size (Student 1908).

    Args:
        a: One value per unit, shape (U,).
        b: The same units in the same order.
        confidence: Confidence of the interval.

    Returns:
        If all differences are 0, p_value is 1. If there are fewer than two units, or all differences are equal but not
        0, p_value is nan. In both cases the statistic, the interval and the effect size are nan.

    Raises:
        ValueError: as for `differences`.
    """
    gap = differences(a, b)
    units, means = len(gap), _means(a, b)
    if not gap.any():
        p_value = 1.0 if units else math.nan
        return PairedT(units, *means, math.nan, p_value, math.nan, math.nan, math.nan)
    if units < _FEWEST_UNITS or (gap == gap[0]).all():
        return PairedT(units, *means, math.nan, math.nan, math.nan, math.nan, math.nan)
    gap = np.asarray(a, dtype=np.float64) - np.asarray(b, dtype=np.float64)
    unit = unit_of(gap)
    gap = gap / unit
    deviation = float(gap.std(ddof=1))
    error = deviation / math.sqrt(units)
    half = float(t_quantile(confidence, units - 1)) * error * unit
    statistic = float(gap.mean()) / error
    p_value = 2 * float(scipy.special.stdtr(units - 1, -abs(statistic)))
    limits = means[2] - half, means[2] + half
    return PairedT(units, *means, statistic, p_value, *limits, float(gap.mean()) / deviation, error * unit)


def _means(a: ArrayLike, b: ArrayLike) -> tuple[float, float, float]:
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if not len(first):
        return math.nan, math.nan, math.nan
    return _mean(first), _mean(second), _mean(first - second)


def _mean(values: Floats) -> float:
    unit = unit_of(values)
    return float((values / unit).mean()) * unit


def wilcoxon_signed_rank(a: ArrayLike, b: ArrayLike) -> PairedTest:
    """Wilcoxon's (1945) signed-rank test: units without a difference are dropped, ties get their mean rank.

    Given the ranks that occurred, all signs are equally likely. Up to 500 differences the distribution is exact, also
    with ties; beyond that it is taken as normal, with the exact variance and half a step of continuity correction.
    Values are as for `differences`.

    Returns:
        The statistic is the smaller of the rank sums of the positive and of the negative differences. p_value is 1
        where all differences are 0, and nan without any unit.

    Raises:
        ValueError: as for `differences`.
    """
    gap = differences(a, b)
    nonzero = gap[gap != 0]
    if not len(nonzero):
        return PairedTest(len(gap), *_means(a, b), math.nan, 1.0 if len(gap) else math.nan)
    doubled = doubled_ranks(np.abs(nonzero))
    positive, total = int(doubled[nonzero > 0].sum()), int(doubled.sum())
    smaller = min(positive, total - positive)
    if len(nonzero) <= _MOST_EXACT:
        probability = signed_rank_distribution(doubled)
        is_central = not probability[smaller + 1 : total - smaller].any()  # both tails are all there is
        p_value = 1.0 if is_central else 2 * float(probability[: smaller + 1].sum())
    else:
        step = 1.0 if (doubled % 2).any() else 2.0
        deviation = math.sqrt(float(doubled @ doubled))
        p_value = 2 * float(scipy.special.ndtr((2 * smaller - total + step) / deviation))
    return PairedTest(len(gap), *_means(a, b), smaller / 2, min(p_value, 1.0))


def doubled_ranks(values: Floats) -> Floats:
    """Twice the ascending ranks of the values, from 1; ties share their mean rank, so that doubled ranks are whole."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((2 * last - counts + 1)[inverse])


def signed_rank_distribution(doubled: Floats) -> Floats:
    """Probability of each sum of the doubled ranks with a positive sign, from 0 to the total, for random signs."""
    probability = np.ones(1)
    for rank in doubled.astype(np.int64):
        extended = np.zeros(len(probability) + rank)
        extended[: len(probability)] = probability
        extended[rank:] += probability
        probability = extended / 2
    return probability


def sign_test(a: ArrayLike, b: ArrayLike) -> PairedTest:
    """Exact sign test: each unit with a difference is won by either system with probability one half.

    Values are as for `differences`.

    Returns:
        The statistic is the number of units that a wins. p_value is 1 where all differences are 0, and nan without any
        unit.

    Raises:
        ValueError: as for `differences`.
    """
    wins, _, losses = win_tie_loss(a, b)
    fewer, decided = min(wins, losses), wins + losses
    is_central = decided - 2 * fewer <= 1  # both tails are all there is, whatever the rounding of one
    p_value = 1.0 if is_central else min(2 * float(scipy.special.bdtr(fewer, decided, 0.5)), 1.0)
    units = len(np.asarray(a))
    return PairedTest(units, *_means(a, b), float(wins), p_value if units else math.nan)


def win_tie_loss(a: ArrayLike, b: ArrayLike) -> tuple[int, int, int]:
    """Numbers of units where a is higher, where both are equal, and where b is higher.

    Values are as for `differences`.

    Raises:
        ValueError: as for `differences`.
    """
    gap = differences(a, b)
    return int((gap > 0).sum()), int((gap == 0).sum()), int((gap < 0).sum())


def randomization_test(
    a: ArrayLike, b: ArrayLike, *, resamples: int = 9999, seed: int = 0, factor: float = 1.0
) -> PairedTest:
    """Randomization test of the mean difference: the values of the systems are swapped within units at random.

    Args:
        a: One value per unit, shape (U,).
        b: The same units in the same order.
        resamples: Number of random swaps T.
        seed: The same seed gives the same p-value.
        factor: As for `sign_flip_p_value`.

    Returns:
        p_value is (count + 1) / (T + 1), where count is the number of swaps with a mean difference at least as large
        (Noreen 1989); nan without any unit.

    Raises:
        ValueError: as for `differences`.
    """
    gap = differences(a, b)
    p_value = sign_flip_p_value(gap, resamples=resamples, seed=seed, factor=factor) if len(gap) else math.nan
    return PairedTest(len(gap), *_means(a, b), math.nan, p_value)


def sign_flip_p_value(values: Floats, *, resamples: int, seed: int, factor: float = 1.0) -> float:
    """Two-sided p-value, by random signs, of the hypothesis that values are symmetric about 0.

    Args:
        values: Shape (U,).
        resamples: Number of random flips.
        seed: The same seed gives the same result.
        factor: By which the variance of the sum exceeds that of independent units: random flips know of no time, so
            that the sum is divided by the root of it before it is held against theirs.

    Returns:
        (1 + flips at least as extreme) / (1 + flips); nan if a value is nan.
    """
    if np.isnan(values).any():
        return math.nan
    values = values / unit_of(values)
    least = abs(values.sum()) / math.sqrt(factor) * (1 - 10.0**-_DIGITS)
    sums = _random_sums(values[:, None], -values[:, None], resamples, seed)
    return float((1 + (np.abs(sums) >= least).sum()) / (1 + resamples))


def _random_sums(first: Floats, second: Floats, resamples: int, seed: int) -> Floats:
    """Sums over the units of either their first or their second values, with a coin for every unit and resample.

    One random byte decides for eight units at once. Their 256 possible sums are computed beforehand, so that a resample
    takes one look-up for eight units. Both have the shape (U, K).

    Returns:
        Shape (R, K).
    """
    rng = np.random.default_rng(seed)
    sums = np.zeros((first.shape[1], resamples))
    step = _COINS * max(1, _BYTES_AT_ONCE // resamples)
    for start in range(0, len(first), step):
        tables = _sums_of_bytes(first[start : start + step], second[start : start + step])
        coins = rng.integers(0, 2**_COINS, (tables.shape[1], resamples), dtype=np.uint8)
        for column, of_column in enumerate(tables):
            for table, drawn_bytes in zip(of_column, coins, strict=True):
                sums[column] += table[drawn_bytes]
    return sums.T


def _sums_of_bytes(first: Floats, second: Floats) -> Floats:
    """Sums over eight units for every byte, whose bits select a side of each unit; shape (K, ⌈U / 8⌉, 256)."""
    sides = np.unpackbits(np.arange(2**_COINS, dtype=np.uint8)[None], axis=0)
    padding = ((0, -len(first) % _COINS), (0, 0))
    of_first, of_second = (
        np.pad(values, padding).T.reshape(first.shape[1], -1, _COINS) @ side
        for values, side in ((first, 1.0 - sides), (second, sides.astype(np.float64)))
    )
    return np.asarray(of_first + of_second)


def pooled_randomization_tests(
    counts_a: ArrayLike, counts_b: ArrayLike, *, resamples: int = 9999, seed: int = 0, factor: ArrayLike = 1.0
) -> dict[str, PairedTest]:
    """Randomization tests of precision, recall and F1 pooled over all units (Yeh 2000).

    These ratios are computed from sums over units, so that there is no value per unit to average. Instead, the counts
    of the units are swapped between the systems at random, and the ratios are computed from the new sums.

    Args:
        counts_a: True positives, false positives and false negatives of the first system, shape (U, 3), whole numbers.
        counts_b: The same of the second, the same units in the same order.
        resamples: Number of random swaps, T; all three tests use the same swaps.
        seed: The same seed gives the same p-values.
        factor: As for `sign_flip_p_value`, of each ratio.

    Returns:
        A test for each of `precision`, `recall` and `f1`, with p_value (count + 1) / (T + 1). Swaps for which a ratio
        is undefined count as at least as extreme. p_value is nan where the ratio of a system is itself undefined.

    Raises:
        ValueError: the shapes differ or are not (U, 3).
    """
    first, second = np.asarray(counts_a, dtype=np.float64), np.asarray(counts_b, dtype=np.float64)
    if first.shape != second.shape or first.ndim != 2 or first.shape[1] != 3:  # noqa: PLR2004
        message = f"counts need the shape (units, 3), not {first.shape} and {second.shape}"
        raise ValueError(message)
    observed, both = (pooled_ratios(first.sum(axis=0)), pooled_ratios(second.sum(axis=0))), (first + second).sum(axis=0)
    # the smallest difference that counts as at least as extreme, less an allowance for rounding
    least = np.abs(observed[0] - observed[1]) / np.sqrt(factor) * (1 - 10.0**-_DIGITS) - 10.0 ** -(_DIGITS + 2)
    totals = _random_sums(first, second, resamples, seed)
    count = (~(np.abs(pooled_ratios(totals) - pooled_ratios(both - totals)) < least)).sum(axis=0)
    p_values = np.where(np.isnan(least), np.nan, (1 + count) / (1 + resamples))
    return {
        name: PairedTest(len(first), float(a), float(b), float(a - b), math.nan, float(p))
        for name, a, b, p in zip(("precision", "recall", "f1"), *observed, p_values, strict=True)
    }


# Two systems on different units: two groups of people, two languages, two months. Nothing is paired.
#
# Each system has its own estimate with its own standard error, and the difference has the degrees of freedom of Welch
# (1947). Where all values of a group are equal its standard deviation is 0, which says little of few units: three
# documents without a miss are no proof of perfection. Then a rule stands in for the spread, and limits are marked
# `at_edge`:
#
# - means: the standard deviation of the other group, - shares: the binomial standard error with one hit and one miss
# added, of the effective number of units (Agresti & Caffo 2000).


def is_constant(values: Floats) -> bool:
    """Whether all values are equal, so that they have no spread."""
    return bool(len(values)) and bool((values == values[0]).all())


def means_of(a: Floats, b: Floats, *, in_time: bool = False) -> tuple[Student, Student]:
    """Return the means of two groups of independent units.

    Args:
        a: One value per unit of the first, shape (A,), finite.
        b: The same of the other, shape (B,).
        in_time: Whether the units of each follow each other in time.

    Returns:
        An error is nan for fewer than two units. A group of equal values has the standard deviation of the other one;
        both errors are 0 where both groups are constant.
    """
    of_a, of_b = mean_of(a, in_time=in_time), mean_of(b, in_time=in_time)
    if is_constant(a) and len(b) >= _FEWEST_UNITS and len(a) >= _FEWEST_UNITS:
        of_a = replace(of_a, error=0.0 if is_constant(b) else of_b.error * math.sqrt(len(b) / len(a)))
    if is_constant(b) and len(b) >= _FEWEST_UNITS and len(a) >= _FEWEST_UNITS:
        of_b = replace(of_b, error=0.0 if is_constant(a) else of_a.error * math.sqrt(len(a) / len(b)))
    return of_a, of_b


def skewness_of_difference(a: Floats, b: Floats) -> float:
    """Return the skewness of the difference of two means, which decides how far its t is skewed; 0 without a spread.

    It is the third cumulant of x̄ − ȳ, μ₃(x)/m² − μ₃(y)/n², over its standard error cubed: γ/√n for one sample.
    """
    (third_a, variance_a), (third_b, variance_b) = _cumulants(a, b)
    total = variance_a + variance_b
    return (third_a - third_b) / total**1.5 if total > 0 else 0.0


def largest_skewness(a: Floats, b: Floats) -> float:
    """Return how far the difference or the ratio of two means can be skewed.

    As `skewness_of_difference`, but the skewness of equal groups, which cancels in the difference and not in the ratio,
    is added, and that of the smaller group is taken to be at least that of the larger one: few values seldom show it.
    """
    smaller, larger = sorted((a, b), key=len)
    (third, variance), (third_of_larger, variance_of_larger) = _cumulants(smaller, larger)
    total = variance + variance_of_larger
    if not total > 0:
        return 0.0
    if variance_of_larger > 0 and 0 < len(smaller) < len(larger):
        skewness = abs(third_of_larger) / variance_of_larger**1.5 * math.sqrt(len(larger))
        third = max(abs(third), skewness * variance**1.5 / math.sqrt(len(smaller)))
    return float((abs(third) + abs(third_of_larger)) / total**1.5)


def _cumulants(*groups: Floats) -> list[tuple[float, float]]:
    """Third cumulant and variance of the mean of every group, on a scale on which they are finite."""
    centred = []
    for values in groups:
        scaled = values / unit_of(values) / 2
        centred.append((scaled - scaled.mean()) * unit_of(values) if len(values) else scaled)
    largest = max((float(np.abs(values).max(initial=0.0)) for values in centred), default=0.0) or 1.0
    shares = [values / largest for values in centred]
    return [
        (float((values**3).sum()) / max(len(values), 1) ** 3, float((values**2).sum()) / max(len(values), 1) ** 2)
        for values in shares
    ]


def pooled_estimates(counts: Floats, *, in_time: bool = False) -> dict[str, Student]:
    """Return precision, recall and F1 of all counts of a system, with standard errors by the jackknife over units.

    Degrees of freedom are those of `jackknife_errors`; at 0 and at 1 the error is that of the rule above.

    Args:
        counts: True positives, false positives and false negatives of every unit, shape (U, 3).
        in_time: Whether units follow each other in time.

    Returns:
        An estimate is nan for 0 / 0; its error is nan for fewer than two units, and where the ratio is 0 / 0 without
        one of the units.
    """
    if not len(counts):
        return dict.fromkeys(RATIOS, NOTHING)
    values, sizes = pooled_ratios(counts.sum(axis=0)), denominators(counts)
    if len(counts) < _FEWEST_UNITS:
        return {name: Student(float(value), math.nan, math.nan) for name, value in zip(RATIOS, values, strict=True)}
    units = effective_number(sizes)
    errors = jackknife_errors(pooled_ratios(leave_one_out(counts)), units, in_time=in_time)
    estimates = {}
    for number, name in enumerate(RATIOS):
        value, error, degrees = (float(each[number]) for each in (values, errors.error, errors.degrees))
        if value in {0.0, 1.0} and not math.isnan(error):
            error, degrees = _error_at_edge(float(units[number])), max(float(units[number]) - 1, 1.0)
        estimates[name] = Student(value, error, degrees)
    return estimates


def _error_at_edge(units: float) -> float:
    """Standard error of a share without a miss, or without a hit, of so many independent rows."""
    share = 1 / (units + 2)
    return math.sqrt(share * (1 - share) / (units + 2))


def event_estimates(counts: Floats, *, in_time: bool = False) -> dict[str, Student]:
    """Return precision, recall and F1 of a matcher without labels, with standard errors by the jackknife over events.

    Counts around events have the shape (E, 6), see `metrics.comparison.paired`.
    """
    if len(counts) < _FEWEST_UNITS:
        return dict.fromkeys(RATIOS, NOTHING)
    estimates = {}
    for name, (value, jackknifed) in ratios_of_matcher(counts).items():
        errors = jackknife_errors(jackknifed[:, None], float(len(counts)), in_time=in_time)
        estimates[name] = Student(value, float(errors.error[0]), float(errors.degrees[0]))
    return estimates


# Permutation tests of two groups of different units: units change groups at random.
#
# The statistic is the difference of the two means, or of the two ratios of sums, over its standard error. Where both
# groups have the same distribution the test is exact. The division by the standard error makes it right, as the
# numbers of units grow, also where only the means, or the ratios, are equal (Janssen 1997; Chung & Romano 2013);
# without it, groups of different size whose values vary differently are told apart although their means are equal.


_MOST_DRAWS, _FEWEST_RESAMPLES = 5 * 10**7, 999
_DRAWS_AT_ONCE = 2**20
_ROUNDING = 1e-9
_MOST_LISTED = 20_000  # splits that are taken one by one
_SUMS = 5  # that a ratio of sums and its standard error need


def permuted_means(a: Floats, b: Floats, *, resamples: int = 9999, seed: int = 0, factor: float = 1.0) -> float:
    """Return the two-sided p-value of equal distributions, by differences of means.

    Args:
        a: One value per unit of the first group, shape (A,), finite.
        b: The same of the other, shape (B,).
        resamples: Number of random splits T; if there are no more splits than these, and at most 20,000, every one is
            taken. Where they would take over 50 million draws of a unit fewer, but at least 999.
        seed: The same seed gives the same result.
        factor: By which the variance of the difference exceeds that of independent units, as units in time have it.

    Returns:
        (1 + splits at least as extreme) / (1 + T), or the share of all splits; nan if a group has no unit.
    """
    if not (len(a) and len(b)):
        return math.nan
    values = np.concatenate([a, b])
    values = values / unit_of(values) / 2  # so that differences are finite
    centred = values - values.mean()
    scale = float(np.abs(centred).max()) or 1.0
    p_values = _permuted(centred[:, None] / scale, np.ones((len(values), 1)), len(a), resamples, seed, factor)
    return float(p_values[0])


def permuted_ratios(
    a: Floats, b: Floats, *, resamples: int = 9999, seed: int = 0, factor: Floats | float = 1.0
) -> Floats:
    """Return the same for precision, recall and F1 of all counts, which share their splits.

    Counts are true positives, false positives and false negatives of units, shape (A, 3) and (B, 3); else as for
    `permuted_means`.

    Returns:
        Shape (3,); splits for which a ratio is 0 / 0 count as at least as extreme; nan where that of a group is.
    """
    if not (len(a) and len(b)):
        return np.full(3, np.nan)
    counts = np.concatenate([a, b])
    hits = np.stack([counts[:, 0], counts[:, 0], 2 * counts[:, 0]], axis=-1)
    return _permuted(hits, denominators(counts), len(a), resamples, seed, factor)


def _permuted(
    numerators: Floats, sizes: Floats, first: int, resamples: int, seed: int, factor: Floats | float
) -> Floats:
    """P-values of K ratios of sums.

    Numerators and sizes of units have the shape (U, K); the first rows are those of the first group. The factor is as
    for `permuted_means`.
    """
    units, ratios = numerators.shape
    sums = [numerators, sizes, numerators**2, numerators * sizes, sizes**2]
    table = np.concatenate(sums, axis=1)
    total = table.sum(axis=0)

    def statistics(chosen: Floats) -> Floats:
        of_first = (chosen @ table).reshape(len(chosen), _SUMS, ratios)
        return _studentised(of_first, total.reshape(_SUMS, ratios) - of_first, first, units - first)

    observed = statistics((np.arange(units) < first).astype(np.float64)[None])[0]
    least = np.abs(observed) / np.sqrt(factor) * (1 - _ROUNDING) - _ROUNDING
    is_every = scipy.special.comb(units, first) <= min(resamples, _MOST_LISTED)
    splits = _every_split(units, first) if is_every else _random_splits(units, first, resamples, seed)
    count, number = np.zeros(ratios), 0
    for chosen in splits:
        count += (~(np.abs(statistics(chosen)) < least)).sum(axis=0)
        number += len(chosen)
    p_values = count / number if is_every else (1 + count) / (1 + number)
    return np.where(np.isnan(observed), np.nan, p_values)


@np.errstate(divide="ignore", invalid="ignore")
def _studentised(of_first: Floats, of_second: Floats, first: int, second: int) -> Floats:
    """Differences of ratios over their standard errors, from sums, shape (R, 5, K); 0 for a difference of 0."""
    ratios, variances = [], []
    for sums, units in ((of_first, first), (of_second, second)):
        numerator, size, squares, products, square_sizes = np.moveaxis(sums, 1, 0)
        ratio = numerator / size
        spread = np.maximum(squares - 2 * ratio * products + ratio**2 * square_sizes, 0.0)
        spread = np.where(spread > _ROUNDING * squares, spread, 0.0)
        ratios.append(ratio)
        variances.append(spread / size**2 * (units / max(units - 1, 1)))
    gap = ratios[0] - ratios[1]
    gap = np.where(np.abs(gap) > _ROUNDING, gap, np.where(np.isnan(gap), np.nan, 0.0))
    return np.asarray(np.where(gap == 0, 0.0, gap / np.sqrt(variances[0] + variances[1])))


def _every_split(units: int, first: int) -> Iterator[Floats]:
    """Every choice of so many units, as rows of 0 and 1."""
    choices = np.array(list(combinations(range(units), first)))
    chosen = np.zeros((len(choices), units))
    np.put_along_axis(chosen, choices, 1.0, axis=1)
    yield chosen


def _random_splits(units: int, first: int, resamples: int, seed: int) -> Iterator[Floats]:
    """Random choices of so many units, as rows of 0 and 1, some at a time: those with the smallest of random keys."""
    rng = np.random.default_rng(seed)
    resamples = min(resamples, max(_MOST_DRAWS // units, _FEWEST_RESAMPLES))
    at_once = max(1, _DRAWS_AT_ONCE // units)
    for start in range(0, resamples, at_once):
        keys = rng.integers(0, 2**64, (min(at_once, resamples - start), units), dtype=np.uint64)  # never equal
        largest = np.partition(keys, first - 1, axis=1)[:, first - 1]
        yield (keys <= largest[:, None]).astype(np.float64)
