"""Distributions of average precision under random selection, from which p-values are taken.

Each gives P(AP ≥ ap) for a ranking in which all orders are equally likely. Values within a relative 1e-12 count as
equal, because different sets of hits can have the same AP and still differ in doubles.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

import numpy as np
import scipy

from .moments import average_precision_moments, average_precision_skewness, harmonic_sums
from .shifted_lognormal import shifted_lognormal_tail

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..uncertainty.jackknife import Floats

_TOLERANCE = 1e-12
_MOST_LISTED = 2 * 10**7
_MOST_RANKS = 20_000
_LOG_OF_LARGEST = 700.0  # below the logarithm of the largest double
_FACTORS = 64  # up to here a binomial coefficient is multiplied factor by factor
_RANKS_AT_ONCE = 2 * 10**6


def exact_cost(n: int, m: int) -> float:
    """Number of sets that `exact_tail` enumerates, each of all hits but the last; inf where a double cannot hold it.

    Args:
        n: Number of ranked documents.
        m: Number of relevant documents among them, 1 to n.
    """
    size = log_arrangements(n, m - 1)
    return math.exp(size) if size < _LOG_OF_LARGEST else math.inf


def log_arrangements(n: int, m: int) -> float:
    """Logarithm of the number of sets of m ranks among n."""
    fewer = min(m, n - m)
    if fewer < _FACTORS:
        return math.fsum(math.log((n - i) / (i + 1)) for i in range(fewer))
    return float(scipy.special.gammaln(n + 1) - scipy.special.gammaln(fewer + 1) - scipy.special.gammaln(n - fewer + 1))


def exact_tail(ap: float, n: int, m: int) -> float:
    """P(AP ≥ ap) by enumeration: sets of all hits but the last are listed, and the ranks of the last hit are counted.

    Args:
        ap: Average precision, above 0.
        n: Number of ranked documents.
        m: Number of relevant documents among them, 1 to n.

    Raises:
        ValueError: there are more than 20 million sets of all hits but the last, or more than 20,000 ranks and m > 1.
    """
    least = ap * m * (1 - _TOLERANCE)
    if m == 1:
        return float(_last_ranks(np.array([least]), n, 1, 0)) / n
    if exact_cost(n, m) > _MOST_LISTED or n > _MOST_RANKS:
        message = f"n = {n} and m = {m} have too many sets of hits to list; use another method"
        raise ValueError(message)
    at_least, nothing = 0, np.empty(0)
    by_hits = {0: np.zeros(1)}  # by number of hits above the rank: the sums of all sets of so many hits
    for rank in range(1, n):
        at_least += _last_ranks(least - (by_hits.get(m - 2, nothing) + (m - 1) / rank), n, m, rank)
        # sets with and without a hit at this rank, as far as m - 2 hits can still be reached
        fewest, most = max(0, m - 2 - (n - rank)), min(m - 2, rank)
        by_hits = {
            k: np.concatenate([by_hits.get(k, nothing), by_hits.get(k - 1, nothing) + k / rank])
            for k in range(fewest, most + 1)
        }
    return at_least / math.comb(n, m)


def _last_ranks(needed: Floats, n: int, m: int, above: int) -> int:
    """Number of ranks below `above` that are high enough for the last of m hits, summed over all needed sums."""
    with np.errstate(divide="ignore", invalid="ignore"):
        lowest = np.where(needed > m / n, np.floor(m / needed), n)
    return int(np.maximum(lowest - above, 0).sum())


def lognormal_tail(ap: float, n: int, m: int) -> float:
    """P(AP ≥ ap) by the shifted lognormal distribution with the exact mean, variance and skewness.

    It is reflected where the skewness is negative, and a good approximation where the absolute skewness is below 0.8.

    Args:
        ap: Average precision.
        n: Number of ranked documents, up to about 10^7.
        m: Number of relevant documents among them, 1 to n - 1.
    """
    mean, variance = average_precision_moments(n, m)
    standard = np.array((ap * (1 - _TOLERANCE) - mean) / math.sqrt(variance))
    return float(shifted_lognormal_tail(standard, _skewness(n, m)))


@functools.lru_cache(maxsize=4096)
def _skewness(n: int, m: int) -> float:
    return average_precision_skewness(n, m)


def monte_carlo_tail(ap: float, n: int, m: int, *, replicates: int, seed: int) -> float:
    """P(AP ≥ ap) as (1 + random rankings that are at least as good) / (1 + random rankings), a valid p-value.

    Args:
        ap: Average precision.
        n: Number of ranked documents.
        m: Number of relevant documents among them, 1 to n.
        replicates: Number of random rankings.
        seed: The same seed gives the same result.
    """
    drawn = _random_sums(n, m, replicates, seed)
    better = len(drawn) - np.searchsorted(drawn, ap * m * (1 - _TOLERANCE))
    return float((1 + better) / (1 + replicates))


def monte_carlo_tail_of_mean(total: float, n: Sequence[int], m: Sequence[int], *, replicates: int, seed: int) -> float:
    """P(sum of average precisions ≥ total) for several random rankings, like `monte_carlo_tail`.

    Args:
        total: Sum of the average precisions.
        n: Number of ranked documents of each ranking.
        m: Number of relevant documents among them, 1 to n.
        replicates: Number of random sets of rankings.
        seed: The same seed gives the same result.
    """
    rng = np.random.default_rng([seed, 1])
    sums = np.zeros(replicates)
    for number, (ranked, relevant) in enumerate(zip(n, m, strict=True)):
        drawn = _random_sums.__wrapped__(ranked, relevant, replicates, seed + number)
        sums += rng.permutation(drawn) / relevant
    better = int((sums >= total * (1 - _TOLERANCE)).sum())
    return (1 + better) / (1 + replicates)


@functools.lru_cache(maxsize=16)
def _random_sums(n: int, m: int, replicates: int, seed: int) -> Floats:
    """Values of m AP of random rankings, ascending.

    The ranks of the hits are drawn, or those of the misses if there are fewer of them.
    """
    rng = np.random.default_rng(seed)
    marked = min(m, n - m)
    order = np.arange(1, marked + 1)
    batches: list[Floats] = []
    missing = replicates
    while missing:
        ranks = _random_ranks(rng, n, marked, min(missing, max(1, _RANKS_AT_ONCE // max(marked, 1))))
        if 2 * m <= n:
            batches.append((order / ranks).sum(axis=1))
        else:
            # m AP is n minus what the misses take away, as in `average_precision_skewness`
            lost = float(harmonic_sums(n)[0]) - harmonic_sums(ranks - 1)[0] - order / ranks
            batches.append(m - lost.sum(axis=1))
        missing -= len(ranks)
    return np.sort(np.concatenate(batches))


def _random_ranks(rng: np.random.Generator, n: int, marked: int, rows: int) -> Floats:
    """Ascending ranks of random sets, one set per row; ranks that are drawn twice are drawn again."""
    ranks = np.sort(rng.integers(1, n + 1, (rows, marked)), axis=1)
    open_rows = np.arange(rows)
    while len(open_rows):
        redrawn = ranks[open_rows]
        twice = np.pad(np.diff(redrawn, axis=1) == 0, ((0, 0), (1, 0)))
        redrawn[twice] = rng.integers(1, n + 1, int(twice.sum()))
        redrawn.sort(axis=1)
        ranks[open_rows] = redrawn
        open_rows = open_rows[twice.any(axis=1)]
    return ranks.astype(np.float64)
