"""Quantiles of beta distributions, of which limits of proportions are made: many at once.

SciPy searches for each of them. Where both shapes are large, the logarithm of the odds is so nearly normal that the
expansion of Cornish & Fisher (1938) in its cumulants, which are polygamma functions, is wrong by a few millionths of a
standard deviation, and one step of Halley's method makes it right to the last digits. Where the step is longer, and for
small shapes, SciPy is asked, once for equal arguments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import scipy

from ..sorting import on_all_cores

if TYPE_CHECKING:
    from numpy.typing import NDArray

Floats: TypeAlias = "NDArray[np.float64]"

_LARGE_SHAPE = 200.0  # smaller ones take SciPy no longer
_LEAST_LEVEL = 1e-4  # below, differences of probabilities have too few digits
_LONGEST_STEP = 3e-5  # in standard deviations; what it leaves is of the order of its cube
_SMALLEST_LOG, _HALVINGS = -745.0, 80  # of doubles above 0; enough halvings for the last bit


def beta_quantile(a: Floats, b: Floats, probability: Floats | float, *, above: bool = False) -> Floats:
    """The value below or above which a beta distribution has some probability.

    Args:
        a: First shape, > 0, any shape of array; nan gives nan.
        b: Second shape, likewise.
        probability: Between 0 and 1, of a shape that broadcasts.
        above: Whether it is the probability of larger values.
    """
    arrays = np.broadcast_arrays(np.asarray(a, np.float64), b, np.asarray(probability, np.float64))
    columns = [array.ravel() for array in arrays]
    begins = np.ones(columns[0].size, dtype=np.bool_)  # rows unlike the row before: along a curve, counts stay the same
    begins[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    quantiles = _of_rows(*(column[begins] for column in columns), above=above)
    return np.asarray(quantiles[begins.cumsum() - 1].reshape(arrays[0].shape))


def _of_rows(a: Floats, b: Floats, tail: Floats, *, above: bool) -> Floats:
    level = 1 - tail if above else tail
    is_large = (np.minimum(a, b) >= _LARGE_SHAPE) & (np.abs(level - 0.5) <= 0.5 - _LEAST_LEVEL)
    quantiles = np.full(a.shape, np.nan)
    quantiles[is_large] = on_all_cores(_of_large_shapes, a[is_large], b[is_large], level[is_large])
    lacking = np.isnan(quantiles)
    quantiles[lacking] = _searched(a[lacking], b[lacking], tail[lacking], above=above)
    return quantiles


def _of_large_shapes(a: Floats, b: Floats, level: Floats) -> Floats:
    """Quantiles from a normal distribution of the log odds; nan where that is not exact.

    Of X and 1 - X the one that is smaller on average is looked for, since it has more digits.
    """
    swapped = a > b
    small, large = np.where(swapped, b, a), np.where(swapped, a, b)
    level = np.where(swapped, 1 - level, level)
    log_odds, deviation = _cornish_fisher(small, large, scipy.special.ndtri(level))
    value = scipy.special.expit(log_odds)
    density = np.exp(small * log_odds + (small + large) * np.log1p(-value) - scipy.special.betaln(small, large))
    newton = (scipy.special.betainc(small, large, value) - level) / density
    step = newton / (1 - newton * (small - (small + large) * value) / 2)
    value = scipy.special.expit(log_odds - step)
    return np.where(np.abs(step) <= _LONGEST_STEP * deviation, np.where(swapped, 1 - value, value), np.nan)


def _cornish_fisher(a: Floats, b: Floats, normal: Floats) -> tuple[Floats, Floats]:
    """The quantile of the log odds for a quantile of the standard normal distribution, and their standard deviation.

    The cumulant of order r is the polygamma function of order r - 1 of `a`, and that of `b`, less it for odd r. The
    expansion has the terms to the third order (Abramowitz & Stegun 1964, 26.2.49).
    """
    mean, variance, third, fourth, fifth = (
        of_a + sign * of_b for of_a, of_b, sign in zip(_polygammas(a), _polygammas(b), (-1, 1, -1, 1, -1), strict=True)
    )
    deviation = np.sqrt(variance)
    skewness, excess, tailed = third / deviation**3, fourth / variance**2, fifth / deviation**5
    square = normal * normal
    first = skewness * (square - 1) / 6
    second = normal * (excess * (square - 3) / 24 - skewness**2 * (2 * square - 5) / 36)
    of_fifth = tailed * ((square - 6) * square + 3) / 120
    of_both = skewness * excess * ((square - 5) * square + 2) / 24
    of_cube = skewness**3 * ((12 * square - 53) * square + 17) / 324
    return mean + deviation * (normal + first + second + of_fifth - of_both + of_cube), deviation


def _polygammas(shape: Floats) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Polygamma functions of order 0 to 4 of a large number, by their series in 1 / (shape - 1/2)."""
    inverse = 1 / (shape - 0.5)
    square = inverse * inverse
    return (
        square * (1 / 24 - square * 7 / 960) - np.log(inverse),
        inverse * (1 - square * (1 / 12 - square * 7 / 240)),
        -square * (1 - square * (1 / 4 - square * 7 / 48)),
        2 * inverse * square * (1 - square / 2),
        -6 * square * square * (1 - square * 5 / 6),
    )


def _searched(a: Floats, b: Floats, probability: Floats, *, above: bool) -> Floats:
    """The quantiles of SciPy; where it finds none, by bisection."""
    (a, b, probability), row_of_each = _once(a, b, probability)
    quantiles = on_all_cores(scipy.special.betainccinv if above else scipy.special.betaincinv, a, b, probability)
    lacking = np.isnan(quantiles) & ~(np.isnan(a) | np.isnan(b) | np.isnan(probability))
    if lacking.any():
        shapes = (b[lacking], a[lacking]) if above else (a[lacking], b[lacking])
        bisected = _bisected(*shapes, probability[lacking])
        quantiles = quantiles.copy()
        quantiles[lacking] = 1 - bisected if above else bisected
    return np.asarray(quantiles[row_of_each])


def _once(*columns: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """Rows of numbers without repetitions, a column each, and which of them each row is: small groups repeat counts."""
    table = np.stack(columns, axis=1)
    # rows are compared by their bytes, which is several times as fast as number by number
    as_bytes = table.view(np.dtype((np.void, table.itemsize * table.shape[1]))).ravel()
    _, row_of_unique, row_of_each = np.unique(as_bytes, return_index=True, return_inverse=True)
    return table[row_of_unique].T, row_of_each


def _bisected(a: Floats, b: Floats, probability: Floats) -> Floats:
    """Beta quantiles by bisection on the log scale."""
    low, high = np.full(len(a), _SMALLEST_LOG), np.zeros(len(a))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        is_above = scipy.special.betainc(a, b, np.exp(middle)) >= probability
        low, high = np.where(is_above, low, middle), np.where(is_above, middle, high)
    return np.exp(high)
