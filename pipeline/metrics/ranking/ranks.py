"""Ranks of a few selected documents in their rankings, from one pass over all documents, in blocks of any order.

No ranking is sorted. Only the selected documents are sorted beforehand. For every document, a binary search, carried
out for a block of documents at once, finds the gap between the selected documents of its ranking, and the document is
counted there. The number of documents above a selected one is the sum of the counts in the gaps above it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from ...records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from ..uncertainty.jackknife import Floats

    Indices = NDArray[np.int32]
    Flags = NDArray[np.bool_]

_CHUNK_ROWS = 1 << 17  # whose columns fit into the cache of a core


@dataclass(frozen=True)
class Documents:
    """Documents of rankings, one element for each.

    Attributes:
        ranking: Number of the ranking, shape (D,).
        value: Score, of which the highest ranks first; never nan, shape (D,).
        name: Text that orders documents of equal values, the last in byte order first; None: such documents share their
            ranks.
    """

    ranking: NDArray[np.int32]
    value: Floats
    name: pl.Series | None = None


class RankCounter:
    """Counts the documents ranked above selected ones.

    Args:
        selected: At least one document, sorted by ranking (ascending) and then by rank, the first first. Selected
            documents with the same ranking, value and name are repetitions, and are listed one after the other. Without
            names there is only one for each ranking and value.
    """

    def __init__(self, selected: Documents) -> None:
        ranking, value, self._name = selected.ranking, selected.value, selected.name
        self._lowest, self._highest = int(ranking[0]), int(ranking[-1])
        # ties of selected documents: their values, and where each begins among the selected documents
        tie = _changes(ranking) | _changes(value)
        self._value = value[tie]
        self._first_of_tie = np.append(np.flatnonzero(tie), len(ranking)).astype(np.int32)
        # where each ranking begins among the ties and among the selected documents
        numbers = np.arange(self._lowest, self._highest + 2)
        self._ties = np.searchsorted(ranking[tie], numbers).astype(np.int32)
        self._firsts = np.searchsorted(ranking, numbers).astype(np.int32)
        self._ranking_index = (ranking - self._lowest).astype(np.int32)
        # documents counted in each gap: a ranking has one gap more than selected documents
        self._gaps = np.zeros(len(ranking) + len(numbers), dtype=np.int64)
        self._equal = np.zeros(len(self._value), dtype=np.int64)

    def add(self, block: Documents) -> None:
        """Count a block of documents, selected or not; every document must be in exactly one block.

        Args:
            block: Documents in any order, with names if the selected ones have names. Documents of rankings without a
                selected document have no effect.
        """
        for start in range(0, len(block.ranking), _CHUNK_ROWS):
            rows = slice(start, start + _CHUNK_ROWS)
            name = None if block.name is None else block.name[rows]
            self._add(block.ranking[rows], block.value[rows], name)

    def _add(self, ranking: NDArray[np.int32], value: Floats, name: pl.Series | None) -> None:
        outside = (ranking < self._lowest) | (ranking > self._highest)
        if outside.any():
            ranking, value = ranking[~outside], value[~outside]
            name = None if name is None else name.filter(pl.Series(~outside))
        index = ranking - np.int32(self._lowest)
        # the first tie of the ranking that is not above the document, and the documents that belong to it
        first, end = self._ties[index], self._ties[index + 1]
        tie = _search(first, end, lambda number: self._value.take(number, mode="clip") > value)
        equal = np.flatnonzero((tie < end) & (self._value.take(tie, mode="clip") == value))
        # the selected document before which the document is counted
        following = self._first_of_tie[tie]
        if self._name is None or name is None:
            np.add.at(self._equal, tie[equal], 1)
        else:
            following[equal] = self._within(self._name, tie[equal], name.gather(equal))
        np.add.at(self._gaps, following + index, 1)

    def _within(self, names: pl.Series, tie: Indices, name: pl.Series) -> Indices:
        """The selected document that follows each document of a tie; a selected document does not follow itself."""

        def before(number: Indices) -> Flags:
            return (names.gather(np.minimum(number, len(names) - 1)) >= name).to_numpy()

        return _search(self._first_of_tie[tie], self._first_of_tie[tie + 1], before)

    def before(self) -> NDArray[np.int64]:
        """Number of documents above each selected one, shape (selected,); those of its tie count only by name."""
        above = np.cumsum(self._gaps)
        number = np.arange(len(self._ranking_index), dtype=np.int64)
        first_gap = self._firsts[self._ranking_index].astype(np.int64) + self._ranking_index
        n_above = above[number + self._ranking_index] - above[first_gap] + self._gaps[first_gap]
        return np.asarray(n_above - self._equal if self._name is None else n_above + self._repetitions())

    def equal(self) -> NDArray[np.int64]:
        """Number of documents with the value of each selected one, itself included; only without names."""
        return self._equal

    def _repetitions(self) -> NDArray[np.int64]:
        """Number of earlier selected documents with the same ranking, value and name as each."""
        number = np.arange(len(self._ranking_index), dtype=np.int64)
        start = np.zeros(len(self._ranking_index), dtype=bool)
        start[self._first_of_tie[:-1]] = True
        if self._name is not None:
            start |= self._name.ne_missing(self._name.shift(1)).to_numpy()
        return number - np.maximum.accumulate(np.where(start, number, 0))


def _changes(values: NDArray[np.int32] | Floats) -> Flags:
    """Whether each value differs from the one before; the first one does."""
    return np.concatenate([np.ones(1, dtype=bool), values[1:] != values[:-1]])


def _search(first: Indices, end: Indices, before: Callable[[Indices], Flags]) -> Indices:
    """For each row the first number from `first` to `end` whose element does not precede it; `end` if all precede it.

    Args:
        first: Shape (D,).
        end: Shape (D,).
        before: Whether the element with a number, one number for each row, precedes the document of the row; it is also
            called with numbers beyond the last element.
    """
    # all rows advance by halving steps, as long as the elements that they skip precede them
    position = first.copy()
    step = 1 << int((end - first).max(initial=0)).bit_length()
    while step := step >> 1:
        ahead = position + np.int32(step)
        passed = before(ahead - np.int32(1)) & (ahead <= end)
        position += passed * np.int32(step)
    return position
