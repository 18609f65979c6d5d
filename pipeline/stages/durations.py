"""Durations in configs, and the window around an event."""

from __future__ import annotations

import math
import re
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, model_validator

from pipeline.metrics.before_after.timelines import MICROSECONDS_PER_HOUR, Span

_HOURS = {"s": 1 / 3600, "m": 1 / 60, "h": 1.0, "d": 24.0, "w": 168.0}
LONGEST_HOURS = 36525 * 24.0  # a century: days are counted one by one
RECORDED = "recorded"  # key of the context in which parameters are read back from the record of a run
_DURATION = re.compile(r"(?P<number>\d+(?:\.\d+)?)(?P<unit>[smhdw])")


def parse_hours(value: object) -> float:
    """Hours of a duration such as `90m`, `168h`, `7d`, `4w`.

    Raises:
        ValueError: it is written otherwise, or longer than a century.
    """
    match = _DURATION.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        message = f'{value!r} is no duration: write a number and s, m, h, d or w, for example "168h"'
        raise ValueError(message)
    number, unit = float(match["number"]), match["unit"]
    hours = number / 3600 if unit == "s" else number / 60 if unit == "m" else number * _HOURS[unit]
    if hours > LONGEST_HOURS:
        message = f"{value!r} is longer than a century (36525d)"
        raise ValueError(message)
    return hours


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

    model_config = ConfigDict(frozen=True, extra="forbid")

    before: Hours = Field()
    after: Hours = Field()
    closed: Literal["both", "left"] = "both"
    gap: Hours = 0.0
    near: Hours | None = None

    @model_validator(mode="after")
    def _room(self) -> Window:
        if self.before <= self.gap or self.after < 0:
            message = f"the window before the event ({self.before:g} h) must be longer than the gap ({self.gap:g} h)"
            raise ValueError(message)
        if self.near is not None and not 0 < self.near < self.before - self.gap:
            message = f"near ({self.near:g} h) must be shorter than the window before the event without its gap"
            raise ValueError(message)
        return self

    @property
    def near_start(self) -> float:
        """Lag at which the near part begins, inclusive, in hours."""
        half = (self.before - self.gap) / 2
        return -self.gap - (self.near or (min(self.after, half) if self.after > 0 else half))

    def span(self) -> Span:
        """The window in whole microseconds."""
        return Span(
            before_start=round(-self.before * MICROSECONDS_PER_HOUR),
            before_end=round(-self.gap * MICROSECONDS_PER_HOUR),
            near_start=round(self.near_start * MICROSECONDS_PER_HOUR),
            after_start=0,
            after_end=round(self.after * MICROSECONDS_PER_HOUR),
            closed=self.closed == "both",
        )

    def bounds(self) -> dict[str, float]:
        """Lags that belong to it: [before_start, before_end) and [after_start, after_end], in hours."""
        end = self.after if self.closed == "both" else math.nextafter(self.after, -math.inf)
        before = {"before_start": -self.before, "before_end": -self.gap, "near_start": self.near_start}
        return before | {"after_start": 0.0, "after_end": end}


EVERYTHING = {
    "before_start": -math.inf,
    "before_end": 0.0,
    "near_start": math.inf,
    "after_start": 0.0,
    "after_end": math.inf,
}
