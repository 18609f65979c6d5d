"""How many units a test, and how many checked matches an interval, need without a pilot."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
import scipy

from ...base.records import dataclass
from ..before_after.estimates import audited_precision

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray


_MOST_UNITS = 10**12  # beyond which no plan is made
_SMALLEST_FACTOR, _LARGEST_FACTOR = 1e-9, 1e9
_HALVINGS = 100


def smallest_number(is_enough: Callable[[int], bool], fewest: int, most: int = _MOST_UNITS) -> int | None:
    """The smallest whole number between two that is enough, if every larger one is, too; None if none is."""
    high = fewest
    while not is_enough(high):
        if high >= most:
            return None
        fewest, high = high + 1, min(2 * high + 1, most)
    while fewest < high:
        middle = (fewest + high) // 2
        fewest, high = (fewest, middle) if is_enough(middle) else (middle + 1, high)
    return high


def smallest_factor(
    is_enough: Callable[[float], bool], lowest: float = _SMALLEST_FACTOR, highest: float = _LARGEST_FACTOR
) -> float | None:
    """The smallest factor between two that is enough, to one in 10^12, if every larger one is, too; None if none is."""
    if is_enough(lowest):
        return lowest
    if not is_enough(highest):
        return None
    low, high = math.log(lowest), math.log(highest)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if is_enough(math.exp(middle)) else (middle, high)
    return math.exp(high)


# How many units a test needs to find a difference, or to show that there is none that matters.
#
# Two systems on the same units are tested by the mean of their differences within units, by Student's t: under a true
# difference δ the statistic is noncentral t with the noncentrality δ √n / s and n - 1 degrees of freedom (Cohen 1988;
# Julious 2004, Statistics in Medicine 23, 1921-1986).
#
# | claim | the test | power |
# |---|---|---|
# | the systems differ | two-sided at level α | P(\|t\| > t(1 - α / 2)) |
# | one is not worse by the margin | one-sided at level α | P(t > t(1 - α)) with margin - \|δ\| in the place of δ |
# | they differ by less than the margin | both one-sided tests at level α (Schuirmann 1987) | both reject |
#
# The power of the last is exact for normal differences: given the standard deviation s both tests are about one
# normal number, and the mean of that probability is taken over the χ² distribution of s² (Phillips 1990, Journal of
# Pharmacokinetics and Biopharmaceutics 18, 137-144).


Claim: TypeAlias = Literal["different", "not_worse", "equivalent"]

_QUANTILES, _MANY_DEGREES = 20, 1e4  # of the variance of a pilot
_POINTS = 2000  # quantiles of the standard deviation that the mean is taken over
_FAR = 8.0  # standard errors beyond which a test is certain to reject


@dataclass(frozen=True)
class Question:
    """The claim that a test is to show, and how surely.

    Attributes:
        claim: `different`, `not_worse` or `equivalent`.
        difference: The true difference: that which is to be found; of the other claims how far the systems truly
            differ, to the worse.
        margin: From where a difference matters, > |difference|; of no use to `different`.
        power: Probability of showing it.
        significance: Level of the test.
    """

    claim: Claim
    difference: float
    margin: float = math.nan
    power: float = 0.8
    significance: float = 0.05


def power_of(question: Question, error: float, degrees: float) -> float:
    """Probability that the test shows the claim, of a standard error whose square has so many degrees of freedom."""
    if question.claim == "equivalent":
        return _power_of_both(question, error, degrees)
    if question.claim == "not_worse":
        room = (question.margin - abs(question.difference)) / error
        return _beyond(room, degrees, float(scipy.special.stdtrit(degrees, 1 - question.significance)))
    critical = float(scipy.special.stdtrit(degrees, 1 - question.significance / 2))
    shift = abs(question.difference) / error
    return _beyond(shift, degrees, critical) + _beyond(-shift, degrees, critical)


def _beyond(shift: float, degrees: float, critical: float) -> float:
    """P(t > critical) of noncentral t."""
    if shift > critical + _FAR * max(1.0, critical / math.sqrt(2 * degrees)):
        return 1.0
    if shift < -_FAR:
        return 0.0
    if math.isinf(degrees):
        return float(scipy.special.ndtr(shift - critical))
    return 1 - float(scipy.special.nctdtr(degrees, shift, critical))


def _power_of_both(question: Question, error: float, degrees: float) -> float:
    """Probability that both one-sided tests reject."""
    critical, centre = float(scipy.special.stdtrit(degrees, 1 - question.significance)), question.difference / error
    ratio = np.ones(1) if math.isinf(degrees) else _deviations(degrees)
    upper = scipy.special.ndtr(question.margin / error - centre - critical * ratio)
    lower = scipy.special.ndtr(-question.margin / error - centre + critical * ratio)
    return float(np.maximum(upper - lower, 0.0).mean())


@lru_cache(maxsize=16)
def _deviations(degrees: float) -> NDArray[np.float64]:
    """Equally likely standard deviations of samples, over the true one."""
    return np.asarray(np.sqrt(scipy.special.chdtri(degrees, (np.arange(_POINTS) + 0.5) / _POINTS) / degrees))


def units_for(question: Question, deviation: float, degrees: float = math.inf) -> int | None:
    """The smallest number of units with which the test has the power.

    Args:
        question: What is to be shown.
        deviation: Standard deviation of the differences within units, > 0.
        degrees: Degrees of freedom of its square: what they leave open, the power is a mean over; infinite: nothing.

    Returns:
        At least 2; None if no number up to 10^12 is enough.
    """

    def is_enough(units: int) -> bool:
        return expected_power(question, deviation / math.sqrt(units), units - 1.0, degrees) >= question.power

    return smallest_number(is_enough, 2)


def expected_power(question: Question, error: float, degrees: float, of_pilot: float) -> float:
    """The power of a test whose error is known from a pilot alone: its mean over what the pilot leaves open.

    The variance is that of the pilot times ν / χ² (Julious & Owen 2006, Pharmaceutical Statistics 5, 29-37). With the
    variance of the pilot itself in its place tests would have less power than wanted on average, as what is lost where
    the true variance is larger is more than what is won where it is smaller.

    Args:
        question: What is to be shown.
        error: Standard error of the difference, from the pilot.
        degrees: Degrees of freedom with which the test estimates it.
        of_pilot: Those of the pilot; infinite: the error is known.
    """
    if of_pilot > _MANY_DEGREES:
        return power_of(question, error, degrees)
    quantiles = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
    ratios = np.sqrt(of_pilot / scipy.special.chdtri(of_pilot, quantiles))
    return float(np.mean([power_of(question, error * float(ratio), degrees) for ratio in ratios]))


def detectable(question: Question, error: float, degrees: float) -> float | None:
    """The difference that the test finds with the power, or the margin that it shows; None if there is none.

    The difference of the question is what is asked for of `different`, its margin of other claims.
    """
    is_difference = question.claim == "different"

    def is_enough(times: float) -> bool:
        size = times * error
        margin = question.margin if is_difference else abs(question.difference) + size
        asked = replace(question, difference=size if is_difference else question.difference, margin=margin)
        return power_of(asked, error, degrees) >= question.power

    times = smallest_factor(is_enough, 1e-3, 1e6)
    if times is None:
        return None
    return times * error + (0.0 if is_difference else abs(question.difference))


# How many matches people must check so that the precision of these matches is known to a wanted width.
#
# The target is the share of correct matches among the M matches of the data set, and the interval that of the stage
# (`before_after.audit.audited_precision`), which knows that M is finite: with all of them checked it has no width.


def width_with_labels(matches: int, labels: int, precision: float, confidence: float) -> float:
    """Width of the interval of the precision of so many matches, if so many labels say that a share of them is correct.

    Between two numbers of correct matches it is interpolated.
    """
    right = precision * labels
    below = math.floor(right)
    numbers = np.array([below, min(below + 1, labels)], dtype=np.int64)
    of_both = audited_precision(np.full(2, matches), np.full(2, labels), numbers, confidence=confidence)
    first_width, second_width = of_both.upper - of_both.lower
    return float(first_width + (right - below) * (second_width - first_width))


def labels_for(matches: int, precision: float, width: float, confidence: float) -> int:
    """The smallest number of checked matches, at most all, with which the interval of the precision is no wider."""

    def is_enough(labels: int) -> bool:
        return width_with_labels(matches, labels, precision, confidence) <= width

    return smallest_number(is_enough, 1, matches) or matches
