"""Curves over thresholds, the areas under them, and points on them.

`pr_auc` and its result `PrAuc` are for users; they are loaded when they are used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .trapezoidal_area import PrAuc, pr_auc

__all__ = ["PrAuc", "pr_auc"]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - what __all__ names
    if name not in __all__:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    from . import trapezoidal_area  # noqa: PLC0415 - other modules of the folder need none of it

    return getattr(trapezoidal_area, name)
