"""The smallest number that is enough."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_UNITS = 10**12  # beyond which no plan is made
_SMALLEST_FACTOR, _LARGEST_FACTOR = 1e-9, 1e9
_HALVINGS = 100


def smallest_number(is_enough: Callable[[int], bool], fewest: int, most: int = MOST_UNITS) -> int | None:
    """The smallest whole number that is enough; every larger one is taken to be enough, too.

    Args:
        is_enough: Whether a number is.
        fewest: The first number that is tried.
        most: The last one.

    Returns:
        The number; None if not even `most` is enough.
    """
    high = fewest
    while not is_enough(high):
        if high >= most:
            return None
        fewest, high = high + 1, min(2 * high + 1, most)
    while fewest < high:
        middle = (fewest + high) // 2
        fewest, high = (fewest, middle) if is_enough(middle) else (middle + 1, high)
    return high


def smallest_factor(
    is_enough: Callable[[float], bool], lowest: float = _SMALLEST_FACTOR, highest: float = _LARGEST_FACTOR
) -> float | None:
    """The smallest factor that is enough; every larger one is taken to be enough, too.

    Args:
        is_enough: Whether a factor is.
        lowest: The first factor that is tried, above 0.
        highest: The last one.

    Returns:
        The factor, to one in 10^12; None if not even `highest` is enough.
    """
    if is_enough(lowest):
        return lowest
    if not is_enough(highest):
        return None
    low, high = math.log(lowest), math.log(highest)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if is_enough(math.exp(middle)) else (middle, high)
    return math.exp(high)
