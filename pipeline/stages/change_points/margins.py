"""The margin of change_points as a config writes it."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, field_validator, model_validator

from ...metrics.change_points.windows import Margin
from ..durations import parse_microseconds


class MarginSides(BaseModel):
    """How far a prediction may lie from a true point.

    Attributes:
        before: How much earlier: a number in the unit of the positions, or a duration where they are times.
        after: How much later.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    forms: ClassVar[str] = 'a number, a duration such as "2h", or a table { before = …, after = … }'

    before: int | float | str  # an int stays exact
    after: int | float | str

    @model_validator(mode="before")
    @classmethod
    def _one_for_both(cls, value: object) -> object:
        return {"before": value, "after": value} if isinstance(value, int | float | str) else value

    @field_validator("before", "after", mode="before")
    @classmethod
    def _side(cls, value: object) -> object:
        if isinstance(value, str):
            parse_microseconds(value)
            return value
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not math.isfinite(value) or value < 0:  # type: ignore[arg-type, operator]
            message = f'{value!r}: write a number from 0 on, or a duration such as "2h"'
            raise ValueError(message)
        return value

    @model_validator(mode="after")
    def _alike(self) -> MarginSides:
        if isinstance(self.before, str) != isinstance(self.after, str):
            message = "both sides must be numbers, or both durations"
            raise ValueError(message)
        return self

    @property
    def is_duration(self) -> bool:
        """Whether it is for positions that are times."""
        return isinstance(self.before, str)

    @property
    def has_zero(self) -> bool:
        """Whether a side is 0."""
        return 0 in {_number(self.before), _number(self.after)}

    def closed(self, *, closed: bool) -> Margin:
        """The margin in the unit of the positions: microseconds where it is a duration.

        Args:
            closed: Whether a distance equal to the margin matches.
        """
        return Margin(_number(self.before), _number(self.after), closed=closed)


def _number(side: Any) -> float:  # noqa: ANN401 - a number or a duration
    return parse_microseconds(side) if isinstance(side, str) else side
