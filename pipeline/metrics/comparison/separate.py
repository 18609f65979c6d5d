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
from typing import TYPE_CHECKING

import numpy as np

from ...tables.ratios import RATIOS
from ..uncertainty.jackknife import leave_one_out
from .paired import ratios_of_matcher
from .pooled import (
    denominators,
    effective_number,
    jackknife_errors,
    pooled_ratios,
)
from .student import NOTHING, Student, mean_of, unit_of

if TYPE_CHECKING:
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
