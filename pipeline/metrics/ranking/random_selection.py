"""Rankings against random selection: expectations and p-values of average precision and of hits."""

from __future__ import annotations

import functools
import math
import warnings
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np
import scipy

from .average_precision import (
    average_precision_moments,
    average_precision_moments_of,
    average_precision_skewness,
    check_sizes,
    expected_average_precision,
    expected_average_precision_of,
    harmonic_sums,
)
from .grid import grid_tail, shifted_lognormal_tail
from .hypergeometric import hypergeometric_tail

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from ..uncertainty.jackknife import Floats


# Distributions of average precision under random selection, from which p-values are taken.
#
# Each gives P(AP ≥ ap) for a ranking in which all orders are equally likely. Values within a relative 1e-12 count as
# equal, because different sets of hits can have the same AP and still differ in doubles.


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


# Rankings against random selection: average precision, and hits among the first t (Zhang & Su 2012, corrected).


__all__ = [
    "average_precision_moments",
    "average_precision_moments_of",
    "average_precision_p_value",
    "average_precision_p_values",
    "average_precision_skewness",
    "expected_average_precision",
    "expected_average_precision_of",
    "hits_moments",
    "hits_p_value",
    "null_method",
    "zhang_su_2012_moments",
]

NullMethod: TypeAlias = Literal["auto", "exact", "grid", "lognormal", "monte_carlo"]

_MOST_SETS = 10**6
_FEW_RANKS = 5_000
_FEW_MISSES = 30
_REPLICATES = 99_999
_ROUNDING = 1e-9


def average_precision_p_value(ap: float, n: int, m: int, *, method: NullMethod = "auto", seed: int = 0) -> float:
    """P(AP ≥ ap) under random selection: how often a random ranking is at least this good.

    The normal approximation of Zhang & Su (2012) is not offered: at n = 1,000 and m = 100 it turns a probability of 1
    in 1,000 into 1 in 120,000.

    - `exact`: enumerates the C(n, m - 1) sets of all hits but the last, up to 20 million; for m = 1 any n.
    - `grid`: the first ranks on a grid, the ranks below by their exact moments. If 1 % to 70 % of the documents are
      relevant, p-values down to 0.001 are within 2 % of the truth, otherwise within 4 %; below about 1e-8 the result is
      an upper bound. It is least accurate with fewer than 30 misses.
    - `lognormal`: shifted lognormal distribution with the exact first three moments. Within 10 % down to 0.01.
    - `monte_carlo`: (1 + better ones) / 100,000, from 99,999 random rankings. A valid test at any size.
    - `auto`: the method that `null_method` returns.

    Args:
        ap: Average precision with divisor m.
        n: Number of ranked documents, 1 to 10^12.
        m: Number of relevant documents among them, 0 to n.
        method: One of the above.
        seed: Seed of the random rankings.

    Returns:
        A probability; 1 for m = n, nan for m = 0 or where ap is nan.

    Raises:
        ValueError: ap, n or m is out of range, the method is unknown, or there are too many sets of hits for `exact`.
    """
    check_sizes(n, m)
    if method not in get_args(NullMethod):
        message = f"method must be one of {', '.join(get_args(NullMethod))}, not {method!r}"
        raise ValueError(message)
    if not (math.isnan(ap) or -_ROUNDING <= ap <= 1 + _ROUNDING):
        message = f"average precision lies in [0, 1], not {ap}"
        raise ValueError(message)
    if m == 0 or math.isnan(ap):
        return math.nan
    if m == n or ap <= 0:
        return 1.0
    chosen = null_method(n, m) if method == "auto" else method
    if chosen == "exact":
        return exact_tail(ap, n, m)
    if chosen == "monte_carlo":
        return monte_carlo_tail(ap, n, m, replicates=_REPLICATES, seed=seed)
    tail = grid_tail(ap, n, m) if chosen == "grid" else lognormal_tail(ap, n, m)
    return max(tail, math.exp(-min(log_arrangements(n, m), _LOG_OF_LARGEST)))  # the probability of a single set of hits


def null_method(n: int, m: int) -> NullMethod:
    """The method that `auto` stands for.

    It is exact for one hit, and where at most a million sets of hits have to be enumerated (n = 1,000 and m = 3; n = 28
    and m = 7). Otherwise it is the grid, except where more than half of the documents are relevant and fewer than 30
    are not: there, random rankings are drawn.

    Args:
        n: Number of ranked documents.
        m: Number of relevant documents among them, 0 to n.
    """
    if m <= 1 or (n <= _FEW_RANKS and exact_cost(n, m) <= _MOST_SETS):
        return "exact"
    return "grid" if 2 * m <= n or n - m >= _FEW_MISSES else "monte_carlo"


def average_precision_p_values(
    ap: ArrayLike, n: ArrayLike, m: ArrayLike, *, method: NullMethod = "auto", seed: int = 0
) -> tuple[Floats, list[str]]:
    """`average_precision_p_value` of many queries, and the method that was used for each.

    Queries of the same size are processed together, so that each null distribution is computed once.

    Args:
        ap: Average precision, shape (Q,); nan gives nan.
        n: Number of ranked documents, shape (Q,) or one number.
        m: Number of relevant documents among them, shape (Q,) or one number.
        method: As for one query.
        seed: As for one query.

    Raises:
        ValueError: as for one query.
    """
    values, ranked, relevant = np.broadcast_arrays(
        np.asarray(ap, dtype=np.float64), np.asarray(n, dtype=np.int64), np.asarray(m, dtype=np.int64)
    )
    p_values = np.full(len(values), np.nan)
    names = [""] * len(values)
    for i in np.lexsort((values, relevant, ranked)):
        size = int(ranked[i]), int(relevant[i])
        p_values[i] = average_precision_p_value(float(values[i]), *size, method=method, seed=seed)
        names[i] = null_method(*size) if method == "auto" else method
    return p_values, names


def hits_moments(n: ArrayLike, m: ArrayLike, t: ArrayLike) -> tuple[Floats, Floats]:
    """Mean and variance of the number of hits among the first t documents under random selection.

    They are t m / n and t m (n - m) (n - t) / (n² (n - 1)) (Zhang & Su 2012, section II.A). Divided by t and t² they
    are those of precision, equations (3) and (4); divided by m and m² they are those of recall.

    Args:
        n: Number of ranked documents, ≥ 1; any shape.
        m: Number of relevant documents among them, 0 to n.
        t: Number of first documents, 0 to n.

    Returns:
        Numbers for numbers, arrays for arrays. The variance is 0 for n = 1.

    Raises:
        ValueError: n, m or t is out of range.
    """
    n_, m_, t_ = _checked(n, m, t)
    spread = (n_ - m_) / n_ * ((n_ - t_) / np.maximum(n_ - 1, 1))
    return (t_ * (m_ / n_))[()], (t_ * (m_ / n_) * spread)[()]


def hits_p_value(hits: ArrayLike, n: ArrayLike, m: ArrayLike, t: ArrayLike) -> Floats:
    """P(h(t) ≥ hits): how often random selection has at least as many hits among the first t documents.

    Hypergeometric; relative errors of the smallest p-values stay below 1e-12.

    Args:
        hits: Number of relevant documents among the first t; nan gives nan, a fraction is rounded up.
        n: Number of ranked documents, ≥ 1.
        m: Number of relevant documents among them, 0 to n.
        t: Number of first documents, 0 to n.

    Returns:
        Numbers for numbers, arrays for arrays.

    Raises:
        ValueError: n, m or t is out of range.
    """
    n_, m_, t_ = _checked(n, m, t)
    observed = np.asarray(hits, dtype=np.float64)
    tail = hypergeometric_tail(np.ceil(np.nan_to_num(observed)), n_, m_, t_)
    return np.where(np.isnan(observed), np.nan, tail)[()]


def _checked(n: ArrayLike, m: ArrayLike, t: ArrayLike) -> tuple[Floats, Floats, Floats]:
    n_, m_, t_ = (np.asarray(numbers, dtype=np.float64) for numbers in (n, m, t))
    if not ((n_ >= 1) & (m_ >= 0) & (m_ <= n_) & (t_ >= 0) & (t_ <= n_)).all():
        message = "n must be at least 1, m and t must lie in 0 … n"
        raise ValueError(message)
    return n_, m_, t_


def zhang_su_2012_moments(n: int, m: int) -> tuple[float, float]:
    """Mean and variance of average precision as printed by Zhang & Su (2012, table III, "theoretical"): wrong.

    This is only for comparison; use `average_precision_moments`. Equations (6) and (7) divide by the wrong numbers of
    arrangements, so that (8) and (9) are the moments of other populations. The printed variances follow from them if
    the sum of covariances in (13) runs over i ≤ j and is not doubled. At n = 2,000 and m = 500 the variance is 43 % too
    large.

    Args:
        n: Number of ranked documents.
        m: Number of relevant documents among them, 2 to n.

    Raises:
        ValueError: n or m is out of range.

    Warns:
        UserWarning: always.
    """
    check_sizes(n, m)
    if m < 2:  # noqa: PLR2004 - equation (9) divides by m - 1
        message = "the covariances of Zhang & Su (2012) need at least 2 relevant documents"
        raise ValueError(message)
    warnings.warn(
        "the moments of Zhang & Su (2012) are wrong; average_precision_moments has the exact ones",
        UserWarning,
        stacklevel=2,
    )
    i = np.arange(1, m + 1, dtype=np.float64)
    expected_rank = i * n / m
    spread = i * n * (i * n + i + n - m) / (m * (m + 1)) / expected_rank**2 - 1
    variances = (m / n) ** 2 * spread * (1 - spread)
    covariances = i * ((n - 1) * (n + (n - m) / i) / (m * (m - 1)) - (n / m) ** 2) * (m / n) ** 4
    return float((m / n) * (1 + spread).mean()), float((variances.sum() + covariances.sum()) / m**2)
