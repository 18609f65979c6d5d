"""Lengths of time, or of positions, as a config writes them."""

from __future__ import annotations

import math
from typing import Annotated, Any

from pydantic import BeforeValidator

from ..durations import parse_microseconds


def _length(value: object) -> object:
    """A positive number, or a positive duration, as it is written."""
    if isinstance(value, str):
        if parse_microseconds(value) > 0:
            return value
    elif isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value > 0:
        return value
    message = f'{value!r}: write a number above 0, or a duration such as "6h"'
    raise ValueError(message)


Length = Annotated[int | float | str, BeforeValidator(_length)]  # an int stays exact


def is_duration(length: Any) -> bool:  # noqa: ANN401 - a number or a duration
    """Whether a length is for positions that are times."""
    return isinstance(length, str)


def in_positions(length: Any) -> float:  # noqa: ANN401 - a number or a duration
    """A length in the unit of the positions: microseconds where it is a duration."""
    return parse_microseconds(length) if isinstance(length, str) else length
