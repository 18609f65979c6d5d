"""Sorting scores and labels of many rows in memory, as one 64-bit number for each row.

A finite score takes all 64 bits. Scores below zero are stored at the front of their group and the others behind them,
so that the sign is not needed and its bit is free for the label: 1 for a positive. Among scores of one sign, the order
of these numbers is that of the scores; below zero, where it would be reversed, all other bits are flipped.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ..sorting import in_rising_order

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

Integers: TypeAlias = "NDArray[np.int64]"
Floats: TypeAlias = "NDArray[np.float64]"
Labels: TypeAlias = "NDArray[np.bool_]"
Numbers: TypeAlias = "NDArray[np.uint64]"

BYTES = 16  # peak memory for each row: its number, and a copy while numbers are sorted
MOST_GROUPS = 1 << 12  # because each is sorted separately
_ONE, _SIGN = np.uint64(1), np.uint64(63)


class SizesDifferError(ValueError):
    """The number of rows of a group differs from the announced size."""


class PackedScores:
    """Collects rows in any order and returns them by group, ascending score and label.

    Args:
        sizes: Rows of each group, shape (groups,), at most `MOST_GROUPS` of them.
    """

    def __init__(self, sizes: Integers) -> None:
        self._ends = np.cumsum(sizes)
        self._numbers: Numbers = np.empty(int(sizes.sum()), dtype=np.uint64)
        self._front, self._back = self._ends - sizes, self._ends.copy()  # free space of each group

    def add(self, group: Integers, score: Floats, label: Labels) -> None:
        """Take rows.

        Args:
            group: Index of the group in `sizes`, shape (rows,).
            score: Finite; -0 counts as 0.
            label: Whether the row is a positive.

        Raises:
            SizesDifferError: a group has more rows than its size.
        """
        if not len(score):
            return
        # the sign bit is shifted out (also that of -0), and the label takes the lowest bit
        below = score < 0
        numbers = _flipped(score.view(np.uint64) << _ONE | label, below)
        bucket = (2 * group + below).astype(np.uint16)
        # bring together the rows of each group and sign, and store them
        if (bucket != bucket[0]).any():
            order = np.argsort(bucket, kind="stable")
            bucket, numbers = bucket[order], numbers[order]
        edges = [0, *(np.flatnonzero(bucket[1:] != bucket[:-1]) + 1).tolist(), len(bucket)]
        for start, stop in pairwise(edges):
            self._put(*divmod(int(bucket[start]), 2), numbers[start:stop])

    def in_order(self, rows: int) -> Iterator[tuple[Integers, Floats, Labels]]:
        """Group, score and label of all rows in order, in blocks of `rows` rows; the last block may be shorter.

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
        """Fill the free space of a group, from its front for scores below zero and else from its back."""
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
    """Numbers in which all bits but that of the label are flipped where the score is below zero."""
    return numbers ^ (-below.astype(np.int64) << 1).view(np.uint64)
