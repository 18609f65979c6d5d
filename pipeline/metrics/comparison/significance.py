"""Many tests at once, and how small a difference a test can find."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
import scipy

from ...records import dataclass

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ..uncertainty.jackknife import Floats
    from .student import Inference


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
