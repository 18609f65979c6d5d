"""Two systems on different units: two groups of people, two languages, two months. Nothing is paired.

Each system has its own estimate with its own standard error, and the difference has the degrees of freedom of Welch
(1947). Where all values of a group are equal its standard deviation is 0, which says little of few units: three
documents without a miss are no proof of perfection. Then a rule stands in for the spread, and limits are marked
`at_edge`:

- means: the standard deviation of the other group,
- shares: the binomial standard error with one hit and one miss added, of the effective number of units (Agresti & Caffo
  2000).
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import scipy

from ...tables.columns import RATIOS
from ..uncertainty.jackknife import leave_one_out
from .paired import ratios_of_matcher
from .pooled import denominators, effective_number, jackknife_errors, pooled_ratios
from .student import NOTHING, Student, mean_of, unit_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..uncertainty.jackknife import Floats


_FEWEST_UNITS = 2  # a spread needs two


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

    Args:
        a: Values of the first group, shape (A,).
        b: Values of the other, shape (B,).
    """
    (third_a, variance_a), (third_b, variance_b) = _cumulants(a, b)
    total = variance_a + variance_b
    return (third_a - third_b) / total**1.5 if total > 0 else 0.0


def largest_skewness(a: Floats, b: Floats) -> float:
    """Return how far the difference or the ratio of two means can be skewed.

    As `skewness_of_difference`, but the skewness of equal groups, which cancels in the difference and not in the ratio,
    is added, and that of the smaller group is taken to be at least that of the larger one: few values seldom show it.

    Args:
        a: Values of the first group, shape (A,).
        b: Values of the other, shape (B,).
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

    Args:
        counts: The counts around events, shape (E, 6), see `metrics.comparison.paired`.
        in_time: Whether events follow each other in time.
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
