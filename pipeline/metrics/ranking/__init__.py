"""Measures of rankings, and their distributions under random selection.

The functions that `__all__` names are for users; they are loaded when they are used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .random_selection import (
        average_precision_moments,
        average_precision_p_value,
        expected_average_precision,
        hits_moments,
        hits_p_value,
    )

__all__ = [
    "average_precision_moments",
    "average_precision_p_value",
    "expected_average_precision",
    "hits_moments",
    "hits_p_value",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - what __all__ names
    if name not in __all__:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    from . import random_selection  # noqa: PLC0415 - other modules of the folder need none of it

    return getattr(random_selection, name)
