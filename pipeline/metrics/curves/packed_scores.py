"""Scores and labels of many rows put in order in memory: one number of 64 bits for each row, and one sort of these.

A finite score takes all 64 bits. Scores below zero stand at the front of their group and the others behind them, so the
sign need not be kept, and the label has its bit: 1 for a positive. For scores of one sign the order of these numbers is
that of the scores, read backwards below zero, where all other bits are flipped.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from pipeline.metrics.sorting import in_rising_order

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

Integers: TypeAlias = "NDArray[np.int64]"
Floats: TypeAlias = "NDArray[np.float64]"
Labels: TypeAlias = "NDArray[np.bool_]"
Numbers: TypeAlias = "NDArray[np.uint64]"

BYTES = 16  # for each row at the peak: its number, and once more while they are sorted
MOST_GROUPS = 1 << 12  # each is sorted by itself
_ONE, _SIGN = np.uint64(1), np.uint64(63)


class SizesDifferError(ValueError):
    """A group does not have as many rows as was said."""


class PackedScores:
    """Collects rows in any order, and gives them back by group, rising score and label.

    Args:
        sizes: Rows of each group, shape (groups,), at most `MOST_GROUPS` of them.
    """

    def __init__(self, sizes: Integers) -> None:
        self._ends = np.cumsum(sizes)
        self._numbers: Numbers = np.empty(int(sizes.sum()), dtype=np.uint64)
        self._front, self._back = self._ends - sizes, self._ends.copy()  # what is free of each group

    def add(self, group: Integers, score: Floats, label: Labels) -> None:
        """Take rows.

        Args:
            group: Position of the group in `sizes`, shape (rows,).
            score: Finite; -0 counts as 0.
            label: Whether the row is a positive.

        Raises:
            SizesDifferError: a group has more rows than its size.
        """
        if not len(score):
            return
        below = score < 0
        numbers = _flipped(score.view(np.uint64) << _ONE | label, below)  # the sign is shifted out, also of -0
        bucket = (2 * group + below).astype(np.uint16)
        if (bucket != bucket[0]).any():
            order = np.argsort(bucket, kind="stable")
            bucket, numbers = bucket[order], numbers[order]
        edges = [0, *(np.flatnonzero(bucket[1:] != bucket[:-1]) + 1).tolist(), len(bucket)]
        for start, stop in pairwise(edges):
            self._put(*divmod(int(bucket[start]), 2), numbers[start:stop])

    def in_order(self, rows: int) -> Iterator[tuple[Integers, Floats, Labels]]:
        """Group, score and label of all rows in order, so many at a time and less at the end.

        Raises:
            SizesDifferError: a group has fewer rows than its size.
        """
        if (self._front != self._back).any():
            message = "a group has fewer rows than its size"
            raise SizesDifferError(message)
        starts = np.append(0, self._ends[:-1])
        for start, middle, end in zip(starts.tolist(), self._front.tolist(), self._ends.tolist(), strict=True):
            for numbers in (self._numbers[start:middle], self._numbers[middle:end]):
                if len(numbers) > 1:
                    numbers[:] = in_rising_order(numbers)
        for start in range(0, len(self._numbers), rows):
            yield self._unpacked(start, min(start + rows, len(self._numbers)))

    def _put(self, group: int, below: int, numbers: Numbers) -> None:
        """Fill what is free of a group, from its front or from its back."""
        if len(numbers) > self._back[group] - self._front[group]:
            message = "a group has more rows than its size"
            raise SizesDifferError(message)
        if below:
            start = self._front[group]
            self._front[group] += len(numbers)
        else:
            self._back[group] -= len(numbers)
            start = self._back[group]
        self._numbers[start : start + len(numbers)] = numbers

    def _unpacked(self, start: int, stop: int) -> tuple[Integers, Floats, Labels]:
        first, last = np.searchsorted(self._ends, [start, stop - 1], side="right")
        edges = np.append(start, np.clip(self._ends[first : last + 1], start, stop))
        group = np.repeat(np.arange(first, last + 1), edges[1:] - edges[:-1])
        below = np.arange(start, stop) < self._front[group]
        numbers = self._numbers[start:stop]
        bits = _flipped(numbers, below) >> _ONE | below.astype(np.uint64) << _SIGN
        return group, bits.view(np.float64), (numbers & _ONE).astype(np.bool_)


def _flipped(numbers: Numbers, below: Labels) -> Numbers:
    """All bits but that of the label flipped where a score is below zero."""
    return numbers ^ (-below.astype(np.int64) << 1).view(np.uint64)
