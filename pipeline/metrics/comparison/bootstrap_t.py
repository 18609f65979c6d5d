"""A test of equal means, with its interval, for differences that are skewed.

Student's t takes the distribution of the t statistic as symmetric. Where differences are skewed it is not: t is too
often far on the side of the short tail. The three corrections here each estimate that asymmetry to second order:

- the bootstrap-t with equal tails: quantiles of (x̄* − x̄) / s* over resamples of units (Efron 1982; Hall 1988),
- the symmetric bootstrap-t: quantiles of |x̄* − x̄| / s* (Hall 1988),
- Student's t of Hall's (1992) transformation of x̄ / s, a cubic that takes the skewness out.

Each errs on its own: the first by resamples that hold too little of the long tail, the second by power on the short
side, the third by the skewness of the sample, which underestimates that of the population. The interval is the smallest
that holds all three, and the p-value is the largest of the three, so that p ≤ 1 − confidence says that 0 lies outside.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import scipy

from pipeline.metrics.comparison.paired_tests import PairedT, differences, paired_t
from pipeline.metrics.uncertainty.jackknife import t_quantile

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from pipeline.metrics.uncertainty.jackknife import Floats

_MOST_DRAWS, _FEWEST_RESAMPLES = 10**8, 999
_DRAWS_AT_ONCE = 2**21
_ROUNDING = 1e-9
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
    gap = differences(a, b)
    gap = gap / np.abs(gap).max()  # a scale on which squares are finite
    centre = student.difference
    error = (student.upper - centre) / float(t_quantile(confidence, len(gap) - 1))
    resampled = _resampled(gap, resamples, seed)
    tails, ends = _equal_tails(resampled, student.statistic, confidence)
    symmetric, reach = _symmetric(resampled, student.statistic, confidence)
    skew = skewness(gap)
    hall, bounds = _hall(0.0 if math.isnan(skew) else skew, len(gap), student.statistic, confidence)
    low, high = min(ends[0], -reach, bounds[0]), max(ends[1], reach, bounds[1])
    lower, upper = (
        limit if math.isfinite(limit) else math.nan for limit in (centre - high * error, centre - low * error)
    )
    return replace(student, p_value=max(tails, symmetric, hall), lower=lower, upper=upper)


def _resampled(gap: Floats, resamples: int, seed: int) -> Floats:
    """The t statistic of every resample of units about the mean of the sample; infinite without a spread."""
    rng, units = np.random.default_rng(seed), len(gap)
    resamples = min(resamples, max(_MOST_DRAWS // units, _FEWEST_RESAMPLES))
    centred = gap - gap.mean()
    centred = centred / np.abs(centred).max()
    at_once = max(1, _DRAWS_AT_ONCE // units)
    statistics = []
    for start in range(0, resamples, at_once):
        drawn = centred[rng.integers(0, units, (min(at_once, resamples - start), units))]
        mean, deviation = drawn.mean(axis=1), drawn.std(axis=1, ddof=1)
        # a resample of one and the same value has no spread but that of rounding
        deviation = np.where(deviation > _ROUNDING * np.abs(mean), deviation, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            statistics.append(
                np.nan_to_num(mean / deviation * math.sqrt(units), nan=0.0, posinf=np.inf, neginf=-np.inf)
            )
    return np.concatenate(statistics)


def _equal_tails(resampled: Floats, statistic: float, confidence: float) -> tuple[float, tuple[float, float]]:
    """P-value, and the statistics between which it exceeds 1 - confidence."""
    count, near = len(resampled), _ROUNDING * (1 + abs(statistic))  # few different values give equal statistics
    fewer = min((resampled <= statistic + near).sum(), (resampled >= statistic - near).sum())
    rank = math.floor((count + 1) * (1 - confidence) / 2 + _ROUNDING)
    if rank == 0:
        return min(2 * float(1 + fewer) / (1 + count), 1.0), (-math.inf, math.inf)
    ordered = np.sort(resampled)
    return min(2 * float(1 + fewer) / (1 + count), 1.0), (float(ordered[rank - 1]), float(ordered[-rank]))


def _symmetric(resampled: Floats, statistic: float, confidence: float) -> tuple[float, float]:
    """P-value, and the absolute statistic up to which it exceeds 1 - confidence."""
    distances, count = np.abs(resampled), len(resampled)
    least = abs(statistic) - _ROUNDING * (1 + abs(statistic))
    p_value = float(1 + (distances >= least).sum()) / (1 + count)
    rank = math.floor((count + 1) * (1 - confidence) + _ROUNDING)
    return p_value, float(np.sort(distances)[-rank]) if rank else math.inf


def _hall(skew: float, units: int, statistic: float, confidence: float) -> tuple[float, tuple[float, float]]:
    """P-value of Hall's transformation with Student's t, and the statistics between which it exceeds 1 - confidence.

    The transformation of S = (x̄ − μ) / s is S + γ S²/3 + γ² S³/27 + γ/(6n) = ((1 + γ S/3)³ − 1)/γ + γ/(6n) (Hall 1992,
    equation 2.8), which rises with S and can therefore be inverted.
    """
    root = math.sqrt(units)
    standardised, shift = statistic / root, skew / (6 * units)
    transformed = standardised + skew * standardised**2 / 3 + skew**2 * standardised**3 / 27 + shift
    p_value = 2 * float(scipy.special.stdtr(units - 1, -abs(transformed) * root))
    quantile = float(t_quantile(confidence, units - 1)) / root
    ends = np.array([-quantile, quantile]) - shift
    # the inverse; without skewness the transformation changes nothing
    low, high = (3 * (np.cbrt(1 + skew * ends) - 1) / skew if abs(skew) > _NEGLIGIBLE_SKEWNESS else ends) * root
    return p_value, (float(low), float(high))
