"""Average precision of rankings with ties: expected over the orders of documents with equal scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from pipeline.metrics.uncertainty.jackknife import Floats

_SINGLE = 16
_NEAR = 0.1
_TERMS = 16


def expected_average_precision(sizes: Sequence[int], relevant: Sequence[int]) -> float:
    """Expected average precision when documents with equal scores come in random order.

    Args:
        sizes: Documents in each block of equal scores, best score first.
        relevant: Relevant documents in each block.

    Returns:
        The mean over all orders within blocks; the divisor is the sum of `relevant`. nan where that is 0.

    Raises:
        ValueError: lengths that differ, or a block with more relevant documents than documents.
    """
    return float(expected_average_precision_of(np.zeros(len(sizes), dtype=np.int64), sizes, relevant, queries=1)[0])


def expected_average_precision_of(
    query: ArrayLike, sizes: ArrayLike, relevant: ArrayLike, *, queries: int, n_relevant: ArrayLike | None = None
) -> Floats:
    """`expected_average_precision` of many queries, from all their blocks.

    After N ranks with R hits, the i-th place of a block of size g with r relevant documents holds a hit with
    probability r / g, and its expected precision then is [R + 1 + (i - 1) (r - 1) / (g - 1)] / (N + i) (McSherry &
    Najork 2008).

    Args:
        query: Number of the query of each block, 0 to queries - 1, ascending; shape (B,).
        sizes: Documents in each block; within a query, best score first; shape (B,).
        relevant: Relevant documents in each block; shape (B,).
        queries: Number of queries.
        n_relevant: Divisor of each query, such as all relevant documents, ranked or not; by default the sum of
            `relevant`. Shape (queries,).

    Returns:
        Shape (queries,); nan where the divisor is 0.

    Raises:
        ValueError: shapes that differ, queries out of order, or a block with more relevant documents than documents.
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


def tie_gains(before: Floats, above: Floats, size: Floats, hits: Floats) -> Floats:
    """Expected sum of the precision at the relevant documents of ties, over the orders of the documents in each.

    Args:
        before: Documents ranked above the tie, N; any shape.
        above: Relevant ones among them, R.
        size: Documents of the tie, g.
        hits: Relevant ones among them, r.
    """
    gain = np.divide(hits * (above + 1), before + 1, out=np.zeros_like(size), where=size > 0)
    tied = size > 1
    if tied.any():
        inverse, weighted = _block_sums(before[tied], size[tied])
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

    Ranks up to 16 one by one, further ones by the asymptotic series of the digamma function, with the common factor of
    its differences taken out.
    """
    inverse, weighted = np.zeros_like(size), np.zeros_like(size)
    for rank in range(1, _SINGLE + 1):
        inside = (rank > before) & (rank <= before + size)
        inverse += inside / rank
        weighted += inside * (rank - before - 1) / rank
    skipped = np.clip(_SINGLE - before, 0, size)
    start, count = np.maximum(before, _SINGLE) + 1, size - skipped
    end = start + count
    p, q = 1 / start**2, 1 / end**2
    bernoulli = 1 / 12 - (p + q) / 120 + (p * p + p * q + q * q) / 252 - (p + q) * (p * p + q * q) / 240
    correction = count / (start * end) * (0.5 + (1 / start + 1 / end) * bernoulli)
    total = np.log1p(count / start) + correction
    return inverse + total, weighted + skipped * total + start * (_less_log1p(count / start) - correction)


def _less_log1p(x: Floats) -> Floats:
    """What log(1 + x) is less than x, for small x by its series."""
    small = np.minimum(x, _NEAR)
    series = np.zeros_like(x)
    for power in range(_TERMS, 1, -1):
        series = (1 / power if power % 2 == 0 else -1 / power) + small * series
    return np.where(x < _NEAR, series * small * small, x - np.log1p(x))
