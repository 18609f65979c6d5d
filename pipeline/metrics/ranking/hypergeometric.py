"""The hypergeometric distribution, accurate in its tails and for populations of any size."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import scipy

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ..uncertainty.jackknife import Floats

_SMALL = 16  # up to here the error of Stirling's formula is computed from the factorial itself
_CLOSE_TO_MEAN = 0.1  # relative distance from the mean within which the deviance is computed as a series
_TERMS = 10  # of that series, whose terms shrink by a factor of 0.01
_BLOCK = 64  # terms of a tail that are summed before checking whether more are needed
_STIRLING = np.array(
    [0.0]
    + [math.lgamma(k + 1) - (k + 0.5) * math.log(k) + k - 0.5 * math.log(2 * math.pi) for k in range(1, _SMALL + 1)]
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
    large = np.maximum(n, _SMALL)
    square = large * large
    series = (1 / 12 - (1 / 360 - (1 / 1260 - (1 / 1680 - 1 / 1188 / square) / square) / square) / square) / large
    return np.where(n > _SMALL, series, _STIRLING[np.minimum(n, _SMALL).astype(np.int64)])


def _deviance(x: Floats, mean: Floats) -> Floats:
    """Half the deviance, x log(x / mean) + mean - x; for x close to the mean by a series (Loader 2000, bd0)."""
    v = (x - mean) / (x + mean)
    series, power = (x - mean) * v, 2 * x * v
    for j in range(1, _TERMS + 1):
        power = power * v * v
        series = series + power / (2 * j + 1)
    return np.where(np.abs(v) < _CLOSE_TO_MEAN, series, scipy.special.xlogy(x, x / mean) + mean - x)
