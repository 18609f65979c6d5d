"""How many matches people must check so that the precision of these matches is known to a wanted width.

The target is the share of correct matches among the M matches of the data set, and the interval that of the stage
(`before_after.audit.audited_precision`), which knows that M is finite: with all of them checked it has no width.
"""

from __future__ import annotations

import math

import numpy as np

from ..before_after.audit import audited_precision
from .searching import smallest_number


def width_with_labels(matches: int, labels: int, precision: float, confidence: float) -> float:
    """Width of the interval of the precision of so many matches, if so many of them are checked.

    Between two numbers of correct matches it is interpolated.

    Args:
        matches: All matches.
        labels: Checked ones, from 1 to all.
        precision: Share of correct ones among those that are checked.
        confidence: Level of the interval.
    """
    right = precision * labels
    below = math.floor(right)
    numbers = np.array([below, min(below + 1, labels)], dtype=np.int64)
    of_both = audited_precision(np.full(2, matches), np.full(2, labels), numbers, confidence=confidence)
    first_width, second_width = of_both.upper - of_both.lower
    return float(first_width + (right - below) * (second_width - first_width))


def labels_for(matches: int, precision: float, width: float, confidence: float) -> int:
    """The smallest number of checked matches with which the interval is no wider, at most all of them.

    Args:
        matches: All matches.
        precision: The share of correct ones that is expected.
        width: Upper less lower limit, > 0.
        confidence: Level of the interval.
    """

    def is_enough(labels: int) -> bool:
        return width_with_labels(matches, labels, precision, confidence) <= width

    return smallest_number(is_enough, 1, matches) or matches
