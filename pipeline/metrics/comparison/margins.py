"""One-sided claims about a difference with a margin: not worse by more than the margin, and equivalent within it.

A large p-value of a test of no difference shows nothing: the data may be few. A claim is shown by rejecting its
contrary, with the margin that was chosen beforehand (Schuirmann 1987; Blackwelder 1982):

| claim | what is rejected |
|---|---|
| a is not worse than b | a is worse than b by the margin or more |
| b is not worse than a | b is worse than a by the margin or more |
| equivalent | a and b differ by the margin or more: both of the former, each at the level of the test |

Two one-sided tests at the level α reject both exactly where the interval of the level 1 − 2α lies within the margin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from ...records import dataclass

if TYPE_CHECKING:
    from .student import Inference

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
