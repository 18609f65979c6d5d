"""What a plan is to reach: the width of an interval, or the power of a test."""

from __future__ import annotations

import math
from numbers import Real
from typing import TYPE_CHECKING

from ...errors import UsageError
from ...metrics.planning.power import Claim, Question
from ...records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

CLAIMS: tuple[Claim, ...] = ("not_worse", "equivalent")
DEFAULT_CONFIDENCE = 0.95


@dataclass(frozen=True)
class Goal:
    """What is wanted; one of a width, a difference and a margin.

    Attributes:
        width: Upper less lower limit of the interval.
        difference: The difference that a test is to find; with a margin how far the systems truly differ, to the worse.
        margin: The difference from which on it matters, which a test is to rule out.
        claim: What a test with a margin shows: `not_worse`, one-sided, or `equivalent`, both sides.
        power: Probability that the test shows it.
        confidence: Level of the interval, or 1 less the level of the test; None: that of the pilot.
    """

    width: float | None = None
    difference: float | None = None
    margin: float | None = None
    claim: str = "not_worse"
    power: float = 0.8
    confidence: float | None = None

    @property
    def name(self) -> str:
        """`width`, `difference` or `margin`."""
        return "width" if self.width is not None else "difference" if self.margin is None else "margin"

    @property
    def wanted(self) -> float:
        """The width, the difference or the margin."""
        return next(value for value in (self.width, self.margin, self.difference) if value is not None)

    def level(self, of_pilot: float = DEFAULT_CONFIDENCE) -> float:
        """The confidence, which is that of the pilot unless it is given."""
        return of_pilot if self.confidence is None else self.confidence

    def question(self, of_pilot: float = DEFAULT_CONFIDENCE) -> Question:
        """The test that is asked for.

        Raises:
            UsageError: the power is not above the level of the test.
        """
        significance = 1 - self.level(of_pilot)
        if self.power <= significance:
            message = f"a power of {self.power:g} is not above the level of the test, {significance:.6g}"
            raise UsageError(message, remedy="Give a power such as 0.8.")
        if self.margin is None:
            return Question("different", float(self.difference or 0), math.nan, self.power, significance)
        claim: Claim = "equivalent" if self.claim == "equivalent" else "not_worse"
        return Question(claim, float(self.difference or 0), self.margin, self.power, significance)

    def check_share(self, name: str) -> None:
        """Refuse a width that every interval of a number from 0 to 1 is within.

        Raises:
            UsageError: the interval is to be 1 wide, or wider.
        """
        if self.width is not None and self.width >= 1:
            message = f"an interval of {name} is never {self.width:g} wide: {name} lies between 0 and 1"
            raise UsageError(message, remedy="Give a width such as 0.05, which is 5 percentage points.")

    def checked(self, spell: Callable[[str], str]) -> Goal:
        """Return the goal, if it is one.

        Args:
            spell: How a parameter is written where the person writes it: `--width`.

        Raises:
            UsageError: nothing, or several things, are wanted, or a value is none.
        """
        others = {"difference": self.difference, "margin": self.margin}
        if self.width is None and all(value is None for value in others.values()):
            message = "what is wanted is missing"
            wanted = f"the width of the interval, {spell('width')} 0.05, or the difference that a test is to find"
            raise UsageError(message, remedy=f"Give {wanted}, {spell('difference')} 0.02.")
        if self.width is not None and (with_width := [name for name, value in others.items() if value is not None]):
            message = f"{spell('width')} and {spell(with_width[0])} are two plans"
            raise UsageError(message, remedy="Ask for one after the other.")
        self._check_values(spell)
        return self

    def _check_values(self, spell: Callable[[str], str]) -> None:
        for name in ("width", "difference", "margin", "power", "confidence"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, Real):
                raise _wrong(spell(name), value, "a number")
        for name, value in (("width", self.width), ("margin", self.margin)):
            if value is not None and not 0 < value < math.inf:
                raise _wrong(spell(name), value, "a number above 0")
        lowest = 0 if self.margin is not None else None
        if self.difference is not None and not (0 < abs(self.difference) < math.inf or self.difference == lowest):
            raise _wrong(spell("difference"), self.difference, "a number other than 0")
        if self.margin is not None and abs(self.difference or 0) >= self.margin:
            message = f"a true difference of {self.difference:g} is no smaller than the margin, {self.margin:g}"
            raise UsageError(message, remedy="No test can show then that there is none. Give a smaller difference.")
        if self.claim not in CLAIMS:
            message = f"unknown claim {self.claim!r}"
            raise UsageError(message, remedy=f"Choose one of {', '.join(CLAIMS)}.")
        for name, share in (("power", self.power), ("confidence", self.confidence)):
            if share is not None and not 0 < share < 1:
                raise _wrong(spell(name), share, "a number between 0 and 1, such as 0.8")


def _wrong(name: str, value: object, expected: str) -> UsageError:
    shown = f"{value:g}" if isinstance(value, Real) else repr(value)
    return UsageError(f"{name} {shown} cannot be", remedy=f"Give {expected}.")
