"""Thresholds that keep a minimum on new data, although they are chosen on the same rows that are counted.

A threshold that is picked because its precision is high looks better than it is. What is promised here holds for
whatever threshold is chosen among those that pass: with probability `confidence` all of them keep the minimum. Two
arguments give it without a correction for the number of thresholds, which may be as many as there are scores:

- Recall never rises with the threshold, so there is a strictest threshold that keeps the minimum. The thresholds are
  tested from the lowest up until a test fails, each at the full level: to pass one that is too strict, the test of the
  lowest of these must err (closed, fixed-sequence tests: Maurer, Hothorn & Lehmacher 1995).
- Precision may rise and fall. Its thresholds are tested in sequences from stricter to lower ones, each sequence until a
  test fails. A sequence starts where a number of rows is retrieved that does not depend on labels: at the fewest rows
  that could pass, if all were true, at four times as many, and so on. Every sequence has its share of the level
  (fixed sequences with several starts: Angelopoulos, Bates, Candès, Jordan & Lei 2025, section 4.2).

The tests are one-sided limits, so that a promise is as good as these are for a single threshold.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from ..uncertainty.jackknife import Floats

Bools: TypeAlias = "NDArray[np.bool_]"
Lower: TypeAlias = "Callable[[float], Floats]"  # lower limits at all thresholds, rising, by two-sided confidence

_WIDER = 4  # each sequence starts at so many times the rows of the one before
_MOST_STARTS = 64


def keeps_recall(lower: Lower, minimum: float, confidence: float) -> Bools:
    """Whether each threshold keeps a minimum recall.

    Args:
        lower: Lower limits of recall, shape (K,), at rising thresholds; nan where there is none.
        minimum: The least recall.
        confidence: Of all that pass together, such as 0.95.

    Returns:
        Shape (K,); true up to the first threshold whose limit is below the minimum.
    """
    return np.logical_and.accumulate(lower(2 * confidence - 1) >= minimum)


def keeps_precision(lower: Lower, retrieved: Floats, minimum: float, confidence: float) -> Bools:
    """Whether each threshold keeps a minimum precision.

    Args:
        lower: Lower limits of precision, shape (K,), at rising thresholds; nan where there is none.
        retrieved: Rows that each threshold retrieves, shape (K,), not rising.
        minimum: The least precision.
        confidence: Of all that pass together, such as 0.95.

    Returns:
        Shape (K,).
    """
    starts = _starts(retrieved, minimum, 1 - confidence)
    keeps = np.zeros(len(retrieved), dtype=np.bool_)
    if not starts:
        return keeps
    passes = lower(1 - 2 * (1 - confidence) / len(starts)) >= minimum
    for start in starts:
        # from the start down to the first threshold that fails
        run = passes[start::-1]
        length = len(run) if run.all() else int(np.argmin(run))
        keeps[start - length + 1 : start + 1] = True
    return keeps


def _starts(retrieved: Floats, minimum: float, level: float) -> list[int]:
    """Where the sequences of tests of precision start: thresholds by number, the strictest first."""
    most = retrieved.max(initial=0)
    starts: list[int] = []
    for number in range(1, _MOST_STARTS):
        sizes = _fewest(minimum, level / number) * float(_WIDER) ** np.arange(number + 1)
        # the strictest threshold that retrieves so many rows; several sizes may share one
        sizes = sizes[sizes <= most]
        starts = list(dict.fromkeys(int(np.flatnonzero(retrieved >= size)[-1]) for size in sizes))
        if len(starts) <= number:
            break
    return starts


def _fewest(minimum: float, level: float) -> float:
    """The fewest rows that could pass: all true, their exact lower limit is the minimum; infinite for 1."""
    if minimum <= 0:
        return 1.0
    return math.ceil(math.log(level) / math.log(minimum)) if minimum < 1 else math.inf
