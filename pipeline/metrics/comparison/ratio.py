"""Ratios of two means or of two pooled ratios, with intervals on the log scale.

The logarithm of a ratio A / B has, to first order, the standard error of A/a − B/b (delta method), so that units which
both share enter with their covariance. Student's t of the logarithm covers better than that of the ratio itself, which
is skewed to the right. Fieller's limits (1954) cover as well, but are infinite where the lower number is not clearly
above 0, and fall shorter where one group is small.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ...records import dataclass
from ..uncertainty.jackknife import binomial_limits, tail
from .pooled import jackknife_errors
from .student import NOTHING, Student, mean_of, welch_degrees

if TYPE_CHECKING:
    from ..uncertainty.jackknife import Floats


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
