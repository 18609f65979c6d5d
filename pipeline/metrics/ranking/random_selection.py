"""Rankings against random selection: average precision, and hits among the first t (Zhang & Su 2012, corrected)."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np

from .grid import grid_tail
from .hypergeometric import hypergeometric_tail
from .moments import (
    average_precision_moments,
    average_precision_moments_of,
    average_precision_skewness,
    check_sizes,
)
from .null import (
    exact_cost,
    exact_tail,
    log_arrangements,
    lognormal_tail,
    monte_carlo_tail,
)
from .ties import expected_average_precision, expected_average_precision_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ..uncertainty.jackknife import Floats

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
_LOG_OF_LARGEST = 700.0  # below the logarithm of the largest double


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
