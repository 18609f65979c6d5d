"""Permutation tests of two groups of different units: units change groups at random.

The statistic is the difference of the two means, or of the two ratios of sums, over its standard error. Where both
groups have the same distribution the test is exact. The division by the standard error makes it right, as the numbers
of units grow, also where only the means, or the ratios, are equal (Janssen 1997; Chung & Romano 2013); without it,
groups of different size whose values vary differently are told apart although their means are equal.
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import scipy

from .pooled import denominators
from .student import unit_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..uncertainty.jackknife import Floats

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

    Args:
        a: True positives, false positives and false negatives of the units of the first group, shape (A, 3).
        b: The same of the other, shape (B, 3).
        resamples: As for `permuted_means`.
        seed: Likewise.
        factor: Likewise, of each ratio.

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

    Args:
        numerators: Of every unit, shape (U, K).
        sizes: Likewise.
        first: Number of units of the first group, which are the first rows.
        resamples: Number of random splits.
        seed: Seed of the splits.
        factor: As for `permuted_means`.
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
