"""How many units two runs need, each on units of its own, so that a difference between their numbers is found.

The standard error of a difference of independent numbers is the root of the sum of their squared errors, with the
degrees of freedom of Welch (1947). Of two shares one lies the difference away from the other, on the side where
shares vary more, towards 1/2. A comparison on the same units needs fewer of them: see `power`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from .pilot import smallest_in_both_ways
from .power import detectable, expected_power

if TYPE_CHECKING:
    from .pilot import Pilot
    from .power import Question

_SHARES = frozenset({"share", "jaccard", "mean"})


def other_run(pilot: Pilot, difference: float) -> Pilot | None:
    """The pilot with the number that lies the difference away, where it varies more; None if there is no such share.

    Args:
        pilot: The pilot.
        difference: > 0.
    """
    if pilot.scale not in _SHARES:
        return pilot
    candidates = [value for value in (pilot.value - difference, pilot.value + difference) if 0 < value < 1]
    if not candidates:
        return None
    nearest = min(candidates, key=lambda value: abs(value - 1 / 2))
    if pilot.scale == "mean":
        return pilot
    return pilot.moved(nearest / (2 - nearest) if pilot.scale == "jaccard" else nearest)


def error_of_difference(pilot: Pilot, other: Pilot, factor: float, *, inflation: float = 1.0) -> tuple[float, float]:
    """Standard error of the difference of two runs with so many times the units, and its degrees of freedom.

    Args:
        pilot: The first run.
        other: The other one, as from `other_run`.
        factor: Units of each run over those of the pilot.
        inflation: By what the variance of a unit is multiplied.
    """
    squares = [run.error(factor, inflation=inflation) ** 2 for run in (pilot, other)]
    spread = sum(square**2 / pilot.degrees(factor) for square in squares)
    return math.sqrt(sum(squares)), (sum(squares) ** 2 / spread if spread > 0 else math.inf)


def factor_for_difference(
    pilot: Pilot, other: Pilot, question: Question, *, inflation: float = 1.0, degrees: float = math.inf
) -> float | None:
    """The smallest factor with which the test has the power; None if none has.

    Args:
        pilot: The first run.
        other: As from `other_run`.
        question: What is to be found, of the claim `different`.
        inflation: By what the variance of a unit is multiplied.
        degrees: Degrees of freedom of the variance of the pilot, as for `power.units_for`.
    """

    def is_enough(factor: float) -> bool:
        of_both = error_of_difference(pilot, other, factor, inflation=inflation)
        return expected_power(question, *of_both, degrees) >= question.power

    return smallest_in_both_ways(pilot, is_enough)


def detectable_now(pilot: Pilot, question: Question) -> float | None:
    """The difference that two runs of the size of the pilot show with the power; None if there is none."""
    return detectable(question, *error_of_difference(pilot, pilot, 1.0))
