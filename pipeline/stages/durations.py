"""Durations in configs, and the window around an event."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, model_validator

from ..metrics.before_after.timelines import MICROSECONDS_PER_HOUR, Span

_MICROSECONDS = {
    "s": 1_000_000,
    "m": 60_000_000,
    "h": MICROSECONDS_PER_HOUR,
    "d": 24 * MICROSECONDS_PER_HOUR,
    "w": 168 * MICROSECONDS_PER_HOUR,
}
LONGEST_HOURS = 36525 * 24  # a century: days are counted one by one
RECORDED = "recorded"  # key of the context in which parameters are read back from the record of a run
_DURATION = re.compile(r"(?P<number>\d+(?:\.\d+)?)(?P<unit>[smhdw])")


def parse_microseconds(value: object) -> int:
    """Whole microseconds of a duration such as `90m`, `168h`, `7.3d`; what is finer is rounded, halves to even.

    Raises:
        ValueError: it is written otherwise, or longer than a century.
    """
    match = _DURATION.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        message = f'{value!r} is no duration: write a number and s, m, h, d or w, for example "168h"'
        raise ValueError(message)
    exact = Fraction(match["number"]) * _MICROSECONDS[match["unit"]]
    if exact > LONGEST_HOURS * MICROSECONDS_PER_HOUR:
        message = f"{value!r} is longer than a century (36525d)"
        raise ValueError(message)
    return round(exact)


def parse_hours(value: object) -> float:
    """Hours of a duration, of its whole microseconds; `parse_microseconds` says how it may be written."""
    return parse_microseconds(value) / MICROSECONDS_PER_HOUR


def microseconds(hours: float) -> int:
    """Whole microseconds of hours: exact for hours that are the nearest to whole microseconds, up to a century."""
    return round(hours * MICROSECONDS_PER_HOUR)


def _hours(value: object, info: ValidationInfo) -> float:
    """Hours as a config writes them, or as the record of a run holds them: as a number."""
    is_recorded = bool(info.context and info.context.get(RECORDED))
    return float(value) if is_recorded and isinstance(value, int | float) else parse_hours(value)


Hours = Annotated[float, BeforeValidator(_hours)]


class Window(BaseModel):
    """Time around an event, in hours from the event to the article.

    Attributes:
        before: Length of the part before the event; it starts inclusive.
        after: Length of the part after the event; lag 0 belongs to it.
        closed: `both`: a lag of exactly `after` belongs to the window; `left`: it does not.
        gap: Length of a guard gap: lags in [-gap, 0) belong to neither part.
        near: Length of the part nearest to the event, up to the gap, that the placebo test compares with the rest of
            the window before; default: as long as the part after the event, at most half of it.
    """

    model_config = ConfigDict(defer_build=True, frozen=True, extra="forbid")

    before: Hours = Field()
    after: Hours = Field()
    closed: Literal["both", "left"] = "both"
    gap: Hours = 0.0
    near: Hours | None = None

    @model_validator(mode="after")
    def _room(self) -> Window:
        room = microseconds(self.before) - microseconds(self.gap)
        if room <= 0 or self.after < 0:
            message = f"the window before the event ({self.before:g} h) must be longer than the gap ({self.gap:g} h)"
            raise ValueError(message)
        if self.near is not None and not 0 < microseconds(self.near) < room:
            message = f"near ({self.near:g} h) must be shorter than the window before the event without its gap"
            raise ValueError(message)
        return self

    def span(self) -> Span:
        """The window in whole microseconds."""
        before, gap, after = microseconds(self.before), microseconds(self.gap), microseconds(self.after)
        half = (before - gap + 1) // 2
        near = (min(after, half) or half) if self.near is None else microseconds(self.near)
        return Span(
            before_start=-before,
            before_end=-gap,
            near_start=-gap - near,
            after_start=0,
            after_end=after,
            closed=self.closed == "both",
        )

    def bounds(self) -> dict[str, float]:
        """Lags that belong to it: [before_start, before_end) and [after_start, after_end], in whole microseconds."""
        span = self.span()
        return {
            "before_start": float(span.before_start),
            "before_end": float(span.before_end),
            "near_start": float(span.near_start),
            "after_start": 0.0,
            "after_end": float(span.after_end if span.closed else span.after_end - 1),
        }


EVERYTHING = {
    "before_start": -math.inf,
    "before_end": 0.0,
    "near_start": math.inf,
    "after_start": 0.0,
    "after_end": math.inf,
}
