"""What follows from an estimate and its standard error by Student's t: interval, p-values, one-sided ones too."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import numpy as np
import scipy

from ...records import dataclass
from ..uncertainty.jackknife import t_quantile
from ..uncertainty.serial import over_time

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ..uncertainty.jackknife import Floats


_LARGEST_TO_SQUARE = 1e140  # values up to here can be squared and summed without overflow


class Inference(Protocol):
    """What is known of a difference: its interval, and p-values of hypotheses about it that agree with the interval."""

    def limits(self, confidence: float) -> tuple[float, float]:
        """Return the interval with equal tails."""
        ...

    def statistic(self, value: float = 0.0) -> float:
        """Return the test statistic of the hypothesis that the difference has this value."""
        ...

    def p_value_above(self, value: float) -> float:
        """Return the p-value of the hypothesis that the difference is at most `value`: small ones say it is above."""
        ...

    def p_value_below(self, value: float) -> float:
        """Return the p-value of the hypothesis that the difference is at least `value`: small ones say it is below."""
        ...


@dataclass(frozen=True)
class Student:
    """An estimate whose distance from the truth in standard errors follows Student's t.

    Attributes:
        estimate: The estimate.
        error: Its standard error; nan where there is none.
        degrees: Degrees of freedom of its square.
    """

    estimate: float
    error: float
    degrees: float

    def over_time(self, contributions: Floats) -> Student:
        """Return the same with the covariances of units nearby, see `uncertainty.serial`.

        Args:
            contributions: What each unit contributes to the estimate, shape (U,), in the order of time.
        """
        nearby = over_time(contributions)
        return replace(self, error=self.error * math.sqrt(nearby.factor), degrees=float(nearby.degrees(self.degrees)))

    def limits(self, confidence: float) -> tuple[float, float]:
        """Return the interval with equal tails; nan without a standard error."""
        half = float(t_quantile(confidence, self.degrees)) * self.error
        return self.estimate - half, self.estimate + half

    def statistic(self, value: float = 0.0) -> float:
        """Return the distance from a value in standard errors; nan without a spread."""
        return (self.estimate - value) / self.error if self.error > 0 else math.nan

    def p_value(self) -> float:
        """Return the two-sided p-value of no difference: 1 for an estimate of 0, nan without a spread."""
        if self.estimate == 0 and not math.isnan(self.error):
            return 1.0
        return 2 * float(scipy.special.stdtr(self.degrees, -abs(self.statistic())))

    def p_value_above(self, value: float) -> float:
        """Return the one-sided p-value of the hypothesis that the truth is at most `value`."""
        return float(scipy.special.stdtr(self.degrees, -self.statistic(value)))

    def p_value_below(self, value: float) -> float:
        """Return the one-sided p-value of the hypothesis that the truth is at least `value`."""
        return float(scipy.special.stdtr(self.degrees, self.statistic(value)))


NOTHING = Student(math.nan, math.nan, math.nan)


def difference_of(first: Student, second: Student) -> Student:
    """Return the difference of two independent estimates, with the degrees of freedom of Welch (1947).

    Args:
        first: The one that it is taken from.
        second: The other.
    """
    if not math.isfinite(first.error + second.error):
        return Student(first.estimate - second.estimate, math.nan, math.nan)
    unit = unit_of(np.array([first.error, second.error]))
    scaled = first.error / unit, second.error / unit
    variances = scaled[0] * scaled[0], scaled[1] * scaled[1]
    degrees = welch_degrees(variances, (first.degrees, second.degrees))
    return Student(first.estimate - second.estimate, math.sqrt(sum(variances)) * unit, degrees)


def welch_degrees(variances: tuple[float, float], degrees: tuple[float, float]) -> float:
    """Return the degrees of freedom of a sum of two independent variances (Welch 1947; Satterthwaite 1946).

    Args:
        variances: The two estimated variances.
        degrees: Their degrees of freedom.

    Returns:
        nan where both variances are 0, or one is not finite.
    """
    total = sum(variances)
    if not 0 < total < math.inf:
        return math.nan
    return 1 / sum((v / total) ** 2 / number for v, number in zip(variances, degrees, strict=True) if v)


def mean_of(values: ArrayLike, *, in_time: bool = False) -> Student:
    """Return the mean of independent values: its standard error is their standard deviation over √n.

    Args:
        values: Shape (U,), finite.
        in_time: Whether they follow each other in time, so that those nearby may be alike, see `uncertainty.serial`.

    Returns:
        The error is nan for fewer than two values.
    """
    sample: Floats = np.asarray(values, dtype=np.float64)
    if not len(sample):
        return NOTHING
    unit = unit_of(sample)
    sample = sample / unit
    deviation = float(sample.std(ddof=1)) if len(sample) > 1 else math.nan
    mean = Student(float(sample.mean()) * unit, deviation / math.sqrt(len(sample)) * unit, len(sample) - 1.0)
    return mean.over_time(sample) if in_time else mean


def unit_of(values: Floats) -> float:
    """A power of two by which values can be divided so that their squares and sums stay finite: 1 in ordinary cases."""
    largest = float(np.abs(values).max(initial=0.0))
    usual = largest == 0 or 1 / _LARGEST_TO_SQUARE < largest < _LARGEST_TO_SQUARE
    return 1.0 if usual else 2.0 ** (math.frexp(largest)[1] - 1)
