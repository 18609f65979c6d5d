"""Places of a few documents in their rankings, from one pass over all documents, block by block in any order.

No ranking is sorted. The documents whose places are asked for, the marked ones, stand in order beforehand. Every other
document finds its gap between those of its ranking by a binary search, done for a whole block at a time, and is
counted there; the documents above a marked one are the sum of the gaps above it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from pipeline.metrics.uncertainty.jackknife import Floats

    Indices = NDArray[np.int32]
    Flags = NDArray[np.bool_]

CHUNK_ROWS = 1 << 17  # whose columns stay in the cache of a core


@dataclass(frozen=True)
class Documents:
    """Documents of rankings, one element each.

    Attributes:
        ranking: Number of the ranking, shape (D,).
        value: Score, the highest first; never nan, shape (D,).
        name: Text that orders documents of equal values, the last in the order of bytes first; None: they share their
            places.
    """

    ranking: NDArray[np.int32]
    value: Floats
    name: pl.Series | None = None


class Places:
    """Counts the documents above marked ones.

    Args:
        marked: At least one document, in the order of rankings (ascending) and of documents in them, the first first.
            Marked documents with the same ranking, value and name are repetitions, and stand one after the other.
            Without names there is only one for each ranking and value.
    """

    def __init__(self, marked: Documents) -> None:
        ranking, value, self._name = marked.ranking, marked.value, marked.name
        self._lowest, self._highest = int(ranking[0]), int(ranking[-1])
        tie = _changes(ranking) | _changes(value)
        self._value = value[tie]
        self._mark_of_tie = np.append(np.flatnonzero(tie), len(ranking)).astype(np.int32)
        numbers = np.arange(self._lowest, self._highest + 2)
        self._ties = np.searchsorted(ranking[tie], numbers).astype(np.int32)
        self._marks = np.searchsorted(ranking, numbers).astype(np.int32)
        self._own = (ranking - self._lowest).astype(np.int32)
        self._gaps = np.zeros(len(ranking) + len(numbers), dtype=np.int64)
        self._equal = np.zeros(len(self._value), dtype=np.int64)

    def add(self, block: Documents) -> None:
        """Count some documents of the rankings, marked or not; every document must come in one block once.

        Args:
            block: In any order, with names if the marked ones have them. Documents of rankings without a marked one
                have no effect.
        """
        for start in range(0, len(block.ranking), CHUNK_ROWS):
            rows = slice(start, start + CHUNK_ROWS)
            name = None if block.name is None else block.name[rows]
            self._add(block.ranking[rows], block.value[rows], name)

    def _add(self, ranking: NDArray[np.int32], value: Floats, name: pl.Series | None) -> None:
        outside = (ranking < self._lowest) | (ranking > self._highest)
        if outside.any():
            ranking, value = ranking[~outside], value[~outside]
            name = None if name is None else name.filter(pl.Series(~outside))
        own = ranking - np.int32(self._lowest)
        first, end = self._ties[own], self._ties[own + 1]
        tie = _search(first, end, lambda place: self._value.take(place, mode="clip") > value)
        equal = np.flatnonzero((tie < end) & (self._value.take(tie, mode="clip") == value))
        mark = self._mark_of_tie[tie]
        if self._name is None or name is None:
            np.add.at(self._equal, tie[equal], 1)
        else:
            mark[equal] = self._within(self._name, tie[equal], name.gather(equal))
        np.add.at(self._gaps, mark + own, 1)  # every ranking has one gap more than marks

    def _within(self, marks: pl.Series, tie: Indices, name: pl.Series) -> Indices:
        """The mark before which a document of a tie stands; one that is marked itself stands after its mark."""

        def before(place: Indices) -> Flags:
            return (marks.gather(np.minimum(place, len(marks) - 1)) >= name).to_numpy()

        return _search(self._mark_of_tie[tie], self._mark_of_tie[tie + 1], before)

    def before(self) -> NDArray[np.int64]:
        """Documents above each marked one, shape (marked,); those of its tie are above it only as names say."""
        above = np.cumsum(self._gaps)
        place = np.arange(len(self._own), dtype=np.int64)
        first = self._marks[self._own].astype(np.int64) + self._own
        found = above[place + self._own] - above[first] + self._gaps[first]
        return np.asarray(found - self._equal if self._name is None else found + self._repetitions())

    def equal(self) -> NDArray[np.int64]:
        """Documents with the value of each marked one, itself included; shape (marked,). Only without names."""
        return self._equal

    def _repetitions(self) -> NDArray[np.int64]:
        """How many marked documents with the same ranking, value and name stand before each."""
        place = np.arange(len(self._own), dtype=np.int64)
        start = np.zeros(len(self._own), dtype=bool)
        start[self._mark_of_tie[:-1]] = True
        if self._name is not None:
            start |= self._name.ne_missing(self._name.shift(1)).to_numpy()
        return place - np.maximum.accumulate(np.where(start, place, 0))


def _changes(values: NDArray[np.int32] | Floats) -> Flags:
    """Where a value differs from the one before; the first does."""
    return np.concatenate([np.ones(1, dtype=bool), values[1:] != values[:-1]])


def _search(first: Indices, end: Indices, before: Callable[[Indices], Flags]) -> Indices:
    """For each row the first place from `first` to `end` whose mark does not stand before it; `end` if all do.

    Args:
        first: Shape (D,).
        end: Shape (D,).
        before: Whether the mark at a place, one for each row, stands before the document of the row; places beyond the
            last mark are asked for too.
    """
    found = first.copy()
    step = 1 << int((end - first).max(initial=0)).bit_length()
    while step := step >> 1:
        ahead = found + np.int32(step)
        passed = before(ahead - np.int32(1)) & (ahead <= end)
        found += passed * np.int32(step)
    return found
