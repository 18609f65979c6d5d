"""Average precision: ranks of relevant documents, its mean over ties, moments, and the hypergeometric distribution."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import scipy

from ...base.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from ..uncertainty.jackknife import Floats

    Indices = NDArray[np.int32]
    Flags = NDArray[np.bool_]
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray


# Ranks of a few selected documents in their rankings, from one pass over all documents, in blocks of any order.
#
# No ranking is sorted. Only the selected documents are sorted beforehand. For every document, a binary search, carried
# out for a block of documents at once, finds the gap between the selected documents of its ranking, and the document is
# counted there. The number of documents above a selected one is the sum of the counts in the gaps above it.


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
        """Number of documents above each selected one, shape (selected,); tied ones count by name only."""
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

    `before` says whether the element with a number, one for each row, precedes the document of the row; it is also
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


# Moments of average precision under random selection: all orders of the n ranked documents are equally likely.
#
# AP = (1/m) Σ_t y_t S_t / t, with y_t = 1 where rank t is one of the m hits and S_t = y_1 + … + y_t.


_EXACT_SUMS = 256
_LARGEST = 10**12
_FEWEST_DOCUMENTS = 4  # below, the closed form divides by 0
_SMALLEST_VARIANCES = {(2, 1): 1 / 16, (3, 1): 13 / 162, (3, 2): 19 / 648}


def average_precision_moments(n: int, m: int) -> tuple[float, float]:
    """Exact mean and variance of average precision under random selection, in constant time.

    The mean is (m - 1) / (n - 1) + (n - m) H / (n (n - 1)) with H = 1 + 1/2 + … + 1/n (Bestgen 2015). The variance is
    (n - m) / m × (a H² + b G + c H + d) with G = 1 + 1/4 + … + 1/n²; its coefficients follow from summing the second
    moments over pairs of ranks. They replace the approximations of Zhang & Su (2012), see `zhang_su_2012_moments`.
    The numerators are whole numbers, so that no digits are lost before one division each: accurate to 1e-14.

    Args:
        n: Number of ranked documents, 1 to 10^12.
        m: Number of relevant documents among them, 0 to n.

    Returns:
        (mean, variance); (nan, nan) for m = 0, where AP is undefined; (1, 0) for m = n.

    Raises:
        ValueError: n or m is out of range.
    """
    check_sizes(n, m)
    if m == 0:
        return math.nan, math.nan
    if m == n:
        return 1.0, 0.0
    harmonic, squares = (float(total) for total in harmonic_sums(n))
    mean = (m - 1) / (n - 1) + (n - m) * harmonic / (n * (n - 1))
    if n < _FEWEST_DOCUMENTS:
        return mean, _SMALLEST_VARIANCES[n, m]
    a = m * n**3 + 6 * m * n**2 - 9 * m * n - 2 * n**3 + 2 * n**2 - 2 * m**2 * n**2 - 2 * m**2 * n + 6 * m**2
    common = (n - 1) * (n - 2) * (n - 3)
    terms = (
        a / (n * n * (n - 1) * common) * harmonic**2,
        (n - 3 * m) * (n - m - 1) / (n * common) * squares,
        (m - 1) * (2 * m - n + 1) / (n * (n - 1) ** 2 * (n - 2)) * harmonic,
        (m - 1) * (m * n + m - 4 * n + 4) / ((n - 1) * common),
    )
    return mean, (n - m) / m * math.fsum(terms)


def average_precision_moments_of(n: ArrayLike, m: ArrayLike) -> tuple[Floats, Floats]:
    """`average_precision_moments` of many rankings at once: the same formulas in doubles.

    Numerators are grouped so that terms which cancel are whole numbers below 2^53, whose differences are exact.

    Args:
        n: Numbers of ranked documents, 1 to 10^12, any shape.
        m: Numbers of relevant documents among them, 0 to n, of a shape that broadcasts.

    Returns:
        Mean and variance; nan where m = 0.

    Raises:
        ValueError: an n or m is out of range.
    """
    n_, m_ = np.broadcast_arrays(np.asarray(n, dtype=np.float64), np.asarray(m, dtype=np.float64))
    if not ((n_ >= 1) & (n_ <= _LARGEST) & (m_ >= 0) & (m_ <= n_)).all():
        message = "n must lie in 1 … 10^12 and m in 0 … n"
        raise ValueError(message)
    harmonic, squares = harmonic_sums(n_)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = (m_ - 1) / (n_ - 1) + (n_ - m_) / (n_ - 1) * harmonic / n_
        variance = (n_ - m_) / m_ * _bracket(n_, m_, harmonic, squares)
    for (small, relevant), value in _SMALLEST_VARIANCES.items():
        variance = np.where((n_ == small) & (m_ == relevant), value, variance)
    all_relevant, none_relevant = m_ == n_, m_ == 0
    mean, variance = np.where(all_relevant, 1.0, mean), np.where(all_relevant, 0.0, variance)
    return np.where(none_relevant, np.nan, mean), np.where(none_relevant, np.nan, variance)


def _bracket(n: Floats, m: Floats, harmonic: Floats, squares: Floats) -> Floats:
    """The bracket a H² + b G + c H + d of the variance in `average_precision_moments`."""
    a = ((m - 2) * n - 2 * m * m + (6 * m + 2) - (2 * m + 9) * (m / n) + 6 * (m / n) * (m / n)) / (n - 1) * harmonic**2
    b = (n - 3 * m) * (n - m - 1) / n * squares
    c = (m - 1) * (2 * m - n + 1) * (n - 3) / n / (n - 1) * harmonic
    d = (m - 1) * ((m - 4) * n + (m + 4)) / (n - 1)
    return np.asarray((a + b + c + d) / (n - 1) / (n - 2) / (n - 3))


def harmonic_sums(n: ArrayLike) -> tuple[Floats, Floats]:
    """1 + 1/2 + … + 1/n and 1 + 1/4 + … + 1/n², by summation up to 256 and by special functions above.

    Args:
        n: Whole numbers ≥ 0, any shape.
    """
    n_ = np.asarray(n, dtype=np.float64)
    summed = np.minimum(n_, _EXACT_SUMS).astype(np.int64)
    first, second = _first_sums()
    large = np.maximum(n_, _EXACT_SUMS) + 1
    harmonic = np.where(n_ > _EXACT_SUMS, scipy.special.digamma(large) + np.euler_gamma, first[summed])
    return harmonic, np.where(n_ > _EXACT_SUMS, np.pi**2 / 6 - scipy.special.zeta(2, large), second[summed])


@functools.cache
def _first_sums() -> tuple[Floats, Floats]:
    terms = [1 / k for k in range(1, _EXACT_SUMS + 1)]
    squares = [1 / (k * k) for k in range(1, _EXACT_SUMS + 1)]
    first, second = ([math.fsum(series[:k]) for k in range(_EXACT_SUMS + 1)] for series in (terms, squares))
    return np.array(first), np.array(second)


def average_precision_skewness(n: int, m: int) -> float:
    """Exact skewness of average precision under random selection.

    E[X^r | k hits in t ranks] is a sum of a_j(t) (k)_j / (t)_j over j = 1 … 2r, with falling factorials (·)_j. If the
    k-th hit, at rank t, contributes w_t + v_t k, the change of a_j from t - 1 to t consists of terms of lower powers
    only, so that all a_j are cumulative sums. Hits contribute k / t to m AP. If there are fewer misses than hits, m AP
    is n minus what the misses take away, which is H_n - H_{t-1} - k / t for the k-th miss, at rank t. This preserves
    digits that differences would lose.

    Args:
        n: Number of ranked documents, 1 to about 10^7: time and memory grow with n.
        m: Number of relevant documents among them, 0 to n.

    Returns:
        The skewness; nan for m = 0 and m = n, where nothing varies. Errors are below 1e-6 up to n = 10^5.

    Raises:
        ValueError: n or m is out of range.
    """
    check_sizes(n, m)
    if m in {0, n}:
        return math.nan
    ranks = np.arange(1, n + 1, dtype=np.float64)
    if 2 * m <= n:
        return _skewness(n, m, np.zeros(n), 1 / ranks)
    below = np.cumsum(1 / ranks[::-1])[::-1]
    return -_skewness(n, n - m, below, -1 / ranks)


def _skewness(n: int, marked: int, level: Floats, slope: Floats) -> float:
    """Skewness of the sum of level_t + slope_t k over the marked ranks t, where k numbers them from the top."""
    sequences: list[list[Floats]] = [[np.ones(n)]]
    ranks = np.arange(1, n + 1, dtype=np.float64)
    raw_moments = []
    for power in (1, 2, 3):
        sequences.append([_grown(sequences, power, j, ranks, level, slope) for j in range(2 * power + 1)])
        factors = np.cumprod([1.0, *((marked - j) / (n - j) if n > j else 0.0 for j in range(2 * power))])
        # E[X^r] = Σ a_j(n) (m)_j / (n)_j
        raw_moments.append(math.fsum(a[-1] * factor for a, factor in zip(sequences[-1], factors, strict=True)))
    first, second, third = raw_moments
    variance = second - first * first
    return float((third - 3 * first * second + 2 * first**3) / variance**1.5)


def _grown(
    sequences: Sequence[Sequence[Floats]], power: int, j: int, ranks: Floats, level: Floats, slope: Floats
) -> Floats:
    """a_j(t) of one power for t = 1 … n, from the a_j of lower powers at t - 1."""
    growth = np.zeros_like(ranks)
    for lower in range(power):
        remaining = power - lower
        for degree in range(remaining + 1):
            choices = math.comb(power, lower) * math.comb(remaining, degree)
            scale = choices * level ** (remaining - degree) * slope**degree
            for shift in range(degree + 1):
                base = j - shift  # k^degree (k)_base has (k)_(base + shift) with the coefficient below
                if not 1 <= base <= len(sequences[lower]):
                    continue
                before = np.concatenate(([1.0 if lower == 0 else 0.0], sequences[lower][base - 1][:-1]))
                falling = math.prod(((ranks - base - i) for i in range(shift)), start=np.ones_like(ranks))
                growth += _stirling(degree, base, shift) * scale * before * falling
    return np.asarray(np.cumsum(growth))


def _stirling(degree: int, base: int, shift: int) -> int:
    """Coefficient of (k)_(base + shift) in k^degree (k)_base."""
    if degree == 0:
        return int(shift == 0)
    lower = _stirling(degree - 1, base, shift - 1) if shift else 0
    return lower + (base + shift) * (_stirling(degree - 1, base, shift) if shift < degree else 0)


def check_sizes(n: int, m: int) -> None:
    """Raise unless n lies in 1 … 10^12 and m in 0 … n.

    Raises:
        ValueError: n or m out of range.
    """
    if not 1 <= n <= _LARGEST or not 0 <= m <= n:
        message = f"n must lie in 1 … 10^12 and m in 0 … n, not n = {n} and m = {m}"
        raise ValueError(message)


# Average precision of rankings with ties: the mean over all orders of documents with equal scores.


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


# The hypergeometric distribution, accurate in its tails and for populations of any size.


_EXACT_FACTORIALS = 16  # up to here the error of Stirling's formula is computed from the factorial itself
_CLOSE_TO_MEAN = 0.1  # relative distance from the mean within which the deviance is computed as a series
_TERMS_OF_BD0 = 10  # of that series, whose terms shrink by a factor of 0.01
_BLOCK = 64  # terms of a tail that are summed before checking whether more are needed
_STIRLING = np.array(
    [0.0]
    + [
        math.lgamma(k + 1) - (k + 0.5) * math.log(k) + k - 0.5 * math.log(2 * math.pi)
        for k in range(1, _EXACT_FACTORIALS + 1)
    ]
)


def hypergeometric_pmf(hits: ArrayLike, population: ArrayLike, marked: ArrayLike, drawn: ArrayLike) -> Floats:
    """Probability of exactly this many marked items among those drawn without replacement.

    It is a ratio of three binomial probabilities with success probability drawn / population. Each is computed from its
    deviance and the error of Stirling's formula (Loader 2000), so that large factorials cost no digits.

    Args:
        hits: Whole numbers, any shape; outside the possible range the probability is 0.
        population: Size of the population, ≥ 1.
        marked: Number of marked items in the population, 0 to population.
        drawn: Number of items drawn, 0 to population.
    """
    k, n, m, t = np.broadcast_arrays(
        *(np.asarray(numbers, dtype=np.float64) for numbers in (hits, population, marked, drawn))
    )
    possible = (k >= np.maximum(0, m + t - n)) & (k <= np.minimum(m, t))
    k = np.where(possible, k, np.maximum(0, m + t - n))
    logs = _log_binomial(k, m, t / n, (n - t) / n) + _log_binomial(t - k, n - m, t / n, (n - t) / n)
    return np.where(possible, np.exp(logs - _log_binomial(t, n, t / n, (n - t) / n)), 0.0)


def hypergeometric_tail(hits: ArrayLike, population: ArrayLike, marked: ArrayLike, drawn: ArrayLike) -> Floats:
    """Probability of at least this many marked items among those drawn without replacement.

    The shorter tail is summed from `hits` outwards, by the ratios of neighbouring terms, until the terms no longer
    matter; a probability above one half is 1 minus the other tail.

    Args:
        hits: Whole numbers, any shape.
        population: Size of the population, ≥ 1.
        marked: Number of marked items in the population, 0 to population.
        drawn: Number of items drawn, 0 to population.
    """
    k, n, m, t = np.broadcast_arrays(
        *(np.asarray(numbers, dtype=np.float64) for numbers in (hits, population, marked, drawn))
    )
    above = k * n > m * t
    # For the n - t items that are not drawn, the lower tail is an upper one: m - k of them are marked.
    start, size = np.where(above, k, m - k + 1), np.where(above, t, n - t)
    lowest = np.maximum(0, m + size - n)
    tail = _upper_tail(np.maximum(start, lowest).ravel(), n.ravel(), m.ravel(), size.ravel()).reshape(k.shape)
    return np.asarray(np.clip(np.where(above, tail, 1 - tail), 0.0, 1.0))


def _upper_tail(k: Floats, n: Floats, m: Floats, t: Floats) -> Floats:
    """P(hits ≥ k), summed upwards: each term is the last one × (m - k) (t - k) / ((k + 1) (n - m - t + k + 1))."""
    first = hypergeometric_pmf(k, n, m, t)
    total, term, active = first.copy(), first.copy(), np.flatnonzero(first > 0)
    step = 0
    while len(active):
        current, n_, m_, t_ = term[active], n[active], m[active], t[active]
        added = np.zeros_like(current)
        k_ = k[active] + step
        for _ in range(_BLOCK):
            current = current * ((m_ - k_) / (k_ + 1)) * ((t_ - k_) / (n_ - m_ - t_ + k_ + 1))
            added += current
            k_ += 1
        total[active] += added
        term[active] = current
        step += _BLOCK
        # go on only where the next terms can still change the sum
        active = active[(current > 0) & (current > total[active] * 2.0**-60)]
    return total


def _log_binomial(k: Floats, n: Floats, p: Floats, q: Floats) -> Floats:
    """Logarithm of the binomial probability of k in n, with q = 1 - p."""
    with np.errstate(divide="ignore", invalid="ignore"):
        inner = (
            _stirling_error(n)
            - _stirling_error(k)
            - _stirling_error(n - k)
            - _deviance(k, n * p)
            - _deviance(n - k, n * q)
            + 0.5 * np.log(n / (2 * np.pi * k * (n - k)))
        )
        none, every = scipy.special.xlog1py(n, -p), scipy.special.xlogy(n, p)
    return np.where(k == 0, np.where(p < 0.5, none, scipy.special.xlogy(n, q)), np.where(k == n, every, inner))  # noqa: PLR2004


def _stirling_error(n: Floats) -> Floats:
    """log(n!) minus Stirling's formula for it."""
    large = np.maximum(n, _EXACT_FACTORIALS)
    square = large * large
    series = (1 / 12 - (1 / 360 - (1 / 1260 - (1 / 1680 - 1 / 1188 / square) / square) / square) / square) / large
    return np.where(n > _EXACT_FACTORIALS, series, _STIRLING[np.minimum(n, _EXACT_FACTORIALS).astype(np.int64)])


def _deviance(x: Floats, mean: Floats) -> Floats:
    """Half the deviance, x log(x / mean) + mean - x; for x close to the mean by a series (Loader 2000, bd0)."""
    v = (x - mean) / (x + mean)
    series, power = (x - mean) * v, 2 * x * v
    for j in range(1, _TERMS_OF_BD0 + 1):
        power = power * v * v
        series = series + power / (2 * j + 1)
    return np.where(np.abs(v) < _CLOSE_TO_MEAN, series, scipy.special.xlogy(x, x / mean) + mean - x)
