"""Expected reciprocal rank: a reader looks at documents in order and stops at the one that satisfies."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from ..uncertainty.jackknife import Floats
    from .grades import Grades
    from .measures import Ties

_CELLS = 1 << 20  # of one matrix of ties and ranks
_NEGLIGIBLE = 1e-18  # probability that a reader comes this far


def expected_reciprocal_rank(ties: Ties, grades: Grades, stop: Floats, count: int, counted: Floats) -> Floats:
    """Σ_rank 1 / rank · R_rank Π_{i < rank} (1 - R_i), R being the probability to stop at a document.

    Chapelle, Metzler, Zhang and Grinspan (2009) take R = (2^relevance - 1) / 2^(highest relevance). For a tie of g
    documents after N others, let E_j be the mean of the product of 1 - R over all sets of j of its documents. The
    document at place j + 1 of a random order stops a reader who came that far with the probability E_j - E_{j + 1}, so
    that the tie adds

        Π_above (1 - R)  Σ_{j=0…c-1} (E_j - E_{j+1}) / (N + j + 1)

    Args:
        ties: The ties of all rankings.
        grades: The judged documents of the ties.
        stop: Probability to stop at each of them, shape (G,), below 1.
        count: Number of rankings.
        counted: Ranks of every tie that count, c, shape (B,).

    Returns:
        Shape (count,).
    """
    number = len(ties.size)
    passing = np.ones(number)
    np.multiply.at(passing, grades.of, (1 - stop) ** grades.number)
    satisfied = grades.totals(stop, number)
    added = np.where(counted > 0, satisfied / (ties.before + 1), 0.0)  # of single documents
    tied = np.flatnonzero((ties.size > 1) & (counted > 0) & (satisfied > 0))
    # E_j is at most the mean of 1 - R to the power of j (Maclaurin's inequality): few readers come far
    mean = np.clip(satisfied[tied] / ties.size[tied], np.finfo(np.float64).tiny, 0.999)
    counted = counted.copy()
    counted[tied] = np.minimum(counted[tied], np.ceil(np.log(_NEGLIGIBLE) / np.log1p(-mean)))
    for chunk in _chunks(tied, counted):
        added[chunk] = _stops(ties, grades, stop, chunk, counted)
    return np.bincount(ties.ranking, _reached(ties, passing) * added, count).astype(np.float64)


def _reached(ties: Ties, passing: Floats) -> Floats:
    """Product of what the earlier ties of the same ranking let pass."""
    reached = np.ones(len(passing))
    index = np.arange(len(passing)) - np.searchsorted(ties.ranking, ties.ranking)
    order = np.argsort(index, kind="stable")
    ends = np.cumsum(np.bincount(index))
    for start, end in pairwise(ends.tolist()):
        later = order[start:end]
        reached[later] = reached[later - 1] * passing[later - 1]
    return reached


def _chunks(tied: NDArray[np.int64], counted: Floats) -> Iterator[NDArray[np.int64]]:
    """Ties with about as many ranks, together."""
    ordered = tied[np.argsort(counted[tied], kind="stable")]
    start = 0
    while start < len(ordered):
        size = max(1, int(_CELLS // (counted[ordered[start]] + 1)))
        while size > 1 and counted[ordered[min(start + size, len(ordered)) - 1]] * size > 2 * _CELLS:
            size //= 2
        yield ordered[start : start + size]
        start += size


def _stops(ties: Ties, grades: Grades, stop: Floats, chunk: NDArray[np.int64], counted: Floats) -> Floats:
    """Σ (E_j - E_{j+1}) / (N + j + 1) of some ties.

    E_j of m documents follows from that of one fewer: ((m - j) E_j + j (1 - R) E_{j - 1}) / m for the one with R.
    """
    row_of = np.full(len(ties.size), -1, dtype=np.int64)
    row_of[chunk] = np.arange(len(chunk))
    is_in = (row_of[grades.of] >= 0) & (stop > 0)
    number = grades.number[is_in].astype(np.int64)
    row = np.repeat(row_of[grades.of[is_in]], number)
    passing = np.repeat(1 - stop[is_in], number)
    order = np.argsort(row, kind="stable")
    row, passing = row[order], passing[order]
    index = np.arange(len(row)) - np.searchsorted(row, row)  # of the document among those of its tie
    n_stopping = np.bincount(row, minlength=len(chunk))
    by_index, ends = np.argsort(index, kind="stable"), np.cumsum(np.bincount(index))
    ranks = np.arange(int(counted[chunk].max()) + 1)
    means = (ranks <= (ties.size[chunk] - n_stopping)[:, None]).astype(np.float64)
    for step, (start, end) in enumerate(pairwise([0, *ends.tolist()])):
        rows, factor = row[by_index[start:end]], passing[by_index[start:end], None]
        size = (ties.size[chunk] - n_stopping)[rows, None] + step + 1
        before = means[rows]
        shifted = np.concatenate([np.zeros((len(rows), 1)), before[:, :-1]], axis=1)
        means[rows] = ((size - ranks) * before + ranks * factor * shifted) / size
    weights = np.where(ranks[:-1] < counted[chunk, None], 1 / (ties.before[chunk, None] + ranks[:-1] + 1), 0.0)
    return np.asarray(((means[:, :-1] - means[:, 1:]) * weights).sum(axis=1))
