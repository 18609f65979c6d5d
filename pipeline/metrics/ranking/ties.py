"""Average precision of rankings with ties: the mean over all orders of documents with equal scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from ..uncertainty.jackknife import Floats

_SINGLE_RANKS = 16  # summed one by one
_SMALL = 0.1  # below, log(1 + x) - x is computed as a series
_TERMS = 16


def expected_average_precision(sizes: Sequence[int], relevant: Sequence[int]) -> float:
    """Expected average precision when documents with equal scores are in random order.

    Args:
        sizes: Number of documents in each block of equal scores, best score first.
        relevant: Number of relevant documents in each block.

    Returns:
        The mean over all orders within blocks; the divisor is the sum of `relevant`. It is nan if that is 0.

    Raises:
        ValueError: the lengths differ, or a block has more relevant documents than documents.
    """
    return float(expected_average_precision_of(np.zeros(len(sizes), dtype=np.int64), sizes, relevant, queries=1)[0])


def expected_average_precision_of(
    query: ArrayLike, sizes: ArrayLike, relevant: ArrayLike, *, queries: int, n_relevant: ArrayLike | None = None
) -> Floats:
    """`expected_average_precision` of many queries, from the blocks of all of them.

    After N ranks with R hits, the i-th document of a block of g documents with r relevant ones is a hit with
    probability r / g; given a hit, the expected precision there is [R + 1 + (i - 1) (r - 1) / (g - 1)] / (N + i)
    (McSherry & Najork 2008).

    Args:
        query: Number of the query of each block, 0 to queries - 1, ascending; shape (B,).
        sizes: Number of documents in each block; within a query, the best score comes first; shape (B,).
        relevant: Number of relevant documents in each block; shape (B,).
        queries: Number of queries.
        n_relevant: Divisor of each query, such as the number of all relevant documents, ranked or not; None: the sum of
            `relevant`. Shape (queries,).

    Returns:
        Shape (queries,); nan where the divisor is 0.

    Raises:
        ValueError: the shapes differ, the queries are not in order, or a block has more relevant documents than
            documents.
    """
    of, size, hits = np.asarray(query, dtype=np.int64), np.asarray(sizes, np.float64), np.asarray(relevant, np.float64)
    if not of.shape == size.shape == hits.shape or (np.diff(of) < 0).any():
        message = "query, sizes and relevant must have one length, and queries must not fall"
        raise ValueError(message)
    if not ((hits >= 0) & (hits <= size)).all():
        message = "a block has fewer documents than relevant documents, or a negative number of them"
        raise ValueError(message)
    before, above = _sums_before(of, size), _sums_before(of, hits)
    gain = tie_gains(before, above, size, hits)
    total = np.bincount(of, gain, queries)
    divisor = np.bincount(of, hits, queries) if n_relevant is None else np.asarray(n_relevant, dtype=np.float64)
    return np.asarray(np.divide(total, divisor, out=np.full(queries, np.nan), where=divisor > 0))


def tie_gains(before: Floats, above: Floats, size: Floats, hits: Floats, counted: Floats | None = None) -> Floats:
    """Sum of the precision at the relevant documents of each tie, as the mean over the orders of its documents.

    Args:
        before: Number of documents ranked above the tie, N; any shape.
        above: Number of relevant documents among them, R.
        size: Number of documents in the tie, g.
        hits: Number of relevant documents in the tie, r.
        counted: Number of ranks of the tie that count, the first ones; None: all.
    """
    counted = size if counted is None else counted
    gain = np.divide(hits * (above + 1), before + 1, out=np.zeros_like(size), where=counted > 0)
    tied = size > 1
    if tied.any():
        inverse, weighted = _block_sums(before[tied], counted[tied])
        pairs = (hits[tied] - 1) / (size[tied] - 1)
        gain[tied] = hits[tied] / size[tied] * ((above[tied] + 1) * inverse + pairs * weighted)
    return gain


def _sums_before(query: NDArray[np.int64], values: Floats) -> Floats:
    """Sum of the earlier values of the same query."""
    before = np.cumsum(values) - values
    first = np.searchsorted(query, query)
    return np.asarray(before - before[first] if len(before) else before)


def _block_sums(before: Floats, size: Floats) -> tuple[Floats, Floats]:
    """Σ 1 / (N + i) and Σ (i - 1) / (N + i) over i = 1 … g, without differences of large numbers.

    Ranks up to 16 are summed one by one. Later ranks are summed by the asymptotic series of the digamma function, whose
    differences have a common factor that is taken out.
    """
    # ranks up to 16
    inverse, weighted = np.zeros_like(size), np.zeros_like(size)
    for rank in range(1, _SINGLE_RANKS + 1):
        inside = (rank > before) & (rank <= before + size)
        inverse += inside / rank
        weighted += inside * (rank - before - 1) / rank
    # later ranks: ψ(end) - ψ(start), as log(end / start) plus the correction of the series
    skipped = np.clip(_SINGLE_RANKS - before, 0, size)
    start, count = np.maximum(before, _SINGLE_RANKS) + 1, size - skipped
    end = start + count
    p, q = 1 / start**2, 1 / end**2
    bernoulli = 1 / 12 - (p + q) / 120 + (p * p + p * q + q * q) / 252 - (p + q) * (p * p + q * q) / 240
    correction = count / (start * end) * (0.5 + (1 / start + 1 / end) * bernoulli)
    total = np.log1p(count / start) + correction
    return inverse + total, weighted + skipped * total + start * (_less_log1p(count / start) - correction)


def _less_log1p(x: Floats) -> Floats:
    """The difference x - log(1 + x), for small x by its series."""
    small = np.minimum(x, _SMALL)
    series = np.zeros_like(x)
    for power in range(_TERMS, 1, -1):
        series = (1 / power if power % 2 == 0 else -1 / power) + small * series
    return np.where(x < _SMALL, series * small * small, x - np.log1p(x))
