"""Rankings against random selection: expectations and p-values of average precision and of hits."""

from __future__ import annotations

import functools
import math
import warnings
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np
import scipy

from ...base.records import dataclass
from .average_precision import (
    average_precision_moments,
    average_precision_moments_of,
    average_precision_skewness,
    check_sizes,
    expected_average_precision,
    expected_average_precision_of,
    harmonic_sums,
    hypergeometric_pmf,
    hypergeometric_tail,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from ..uncertainty.jackknife import Floats


# The shifted lognormal distribution with a given skewness.


_SYMMETRIC = 1e-6  # skewness below which the distribution is taken as normal


def shifted_lognormal_tail(standard: Floats, skewness: float) -> Floats:
    """P(Z ≥ standard) for a lognormal Z, shifted and scaled to mean 0 and variance 1; reflected for negative skewness.

    With r = exp(σ²) - 1, σ being the standard deviation of the logarithm, the skewness is (r + 3) √r.
    """
    if abs(skewness) < _SYMMETRIC:
        return np.asarray(scipy.special.ndtr(-standard))
    # √r solves x³ + 3 x = |skewness|
    root = 2 * math.sinh(math.asinh(abs(skewness) / 2) / 3)
    sigma = math.sqrt(math.log1p(root * root))
    sign = math.copysign(1.0, skewness)
    with np.errstate(divide="ignore"):
        quantile = np.log(np.maximum(1 + sign * root * standard, 0.0)) / sigma + sigma / 2
    return np.asarray(scipy.special.ndtr(-sign * quantile))


# Average precision under random selection: the first ranks on a grid, the ranks below by their moments.
#
# Let S be what the first T ranks contribute to m AP. Given k hits among them, all arrangements of these hits are
# equally likely, whatever n and m are: one table of the distribution of S serves all queries. Under random selection
# k is hypergeometric, and what the ranks below T contribute, given k, has a mean and variance in closed form. Its
# distribution is taken to be a shifted lognormal with the skewness that gives m AP its exact third moment.


HITS = 32  # largest number of hits among the first ranks for which the table has a row
STEP = 0.01  # between neighbouring sums, on the log scale
_STANDARD_DEVIATIONS = 6.0  # by which the expected number of hits stays below HITS
_TABLE_GROWTH = 1.12
_SINGLE_RANKS = 128  # up to here, tables are extended rank by rank
_BLUR = 0.25  # smallest standard deviation of what a cell stands for, in cell widths
_MOST_SKEWED = 1.0  # a larger skewness is a rounding error divided by nearly 0
_SMALL_SHARE = 0.1  # of the variance, below which the skewness inside cells does not matter
_LONGEST = 10**6  # ranks up to which the third moment is summed
_RARE = 1e-13  # cells with a smaller probability are left out of a null distribution
_LEAST_DEVIATION = 1e-12  # of m AP where nothing varies
_NEGLIGIBLE = 1e-18  # numbers of hits in a step with a smaller probability are left out
_RANKS_PER_STEP = 8  # beyond the single ranks, a step is one such part of the ranks before it


@dataclass(frozen=True)
class Lead:
    """Hits at the very top, which contribute so much that the distribution is discrete there; a cell would blur it.

    Attributes:
        hits: Number of hits at the top.
        sum: What they contribute to m AP.
    """

    hits: int
    sum: float

    def alone(self, ranks: int) -> float:
        """Probability that the hits are exactly at the top, given that there are as many hits among the first ranks."""
        return 1 / math.comb(ranks, self.hits)


LEADS = (Lead(0, 0.0), Lead(1, 1.0))  # no hit or a hit at rank 1
_LEAD_RANKS = 1


@dataclass(frozen=True)
class Top:
    """Distribution of S, the contribution of the first ranks to m AP, given the number of hits among them.

    Attributes:
        ranks: Number of ranks, T.
        mass: For each of `LEADS` an array of shape (hits, cells). Given k hits in all, row k - 1 holds the
            probabilities of this lead together with each sum that the ranks below it contribute, where they contribute
            anything; k = 1 … min(T, HITS).
    """

    ranks: int
    mass: tuple[Floats, ...]


def sums(cells: int) -> Floats:
    """The sums that the cells stand for, descending from HITS."""
    return np.asarray(HITS * np.exp(-STEP * np.arange(cells)))


def _cells(ranks: int) -> int:
    """Number of cells down to the smallest sum above 0, of one hit at the last rank."""
    return math.ceil(math.log(HITS * ranks) / STEP) + 2


def _spread(mass: Floats, sizes: Floats, cells: int) -> Floats:
    """Distribute masses over the cells by their new sums; each is split between two cells so that means stay exact.

    Masses and sums have the same shape (rows, any).

    Returns:
        Shape (rows, cells).
    """
    # the two neighbouring cells of every sum, and the share of the lower one
    grid = sums(cells)
    upper = ((math.log(HITS) - np.log(sizes)) * (1 / STEP)).astype(np.int64)
    np.clip(upper, 0, cells - 2, out=upper)
    high, low = grid[upper], grid[upper + 1]
    lowered = np.clip((high - sizes) / (high - low), 0.0, 1.0) * mass
    # add up all rows at once, as one long row
    upper += np.arange(len(mass))[:, None] * cells
    flat, length = upper.ravel(), len(mass) * cells
    total = np.bincount(flat, (mass - lowered).ravel(), length) + np.bincount(flat + 1, lowered.ravel(), length)
    return np.asarray(total, dtype=np.float64).reshape(len(mass), cells)


def _advance(top: Top, ranks: int) -> Top:
    """The table extended to more ranks.

    Of k hits, a hypergeometric number lies among the added ranks; they are taken to be evenly spaced there.
    """
    block, cells = ranks - top.ranks, _cells(ranks)
    hits, added = np.arange(1, min(ranks, HITS) + 1), np.arange(min(block, HITS) + 1)
    chances = hypergeometric_pmf(added[:, None], ranks, hits, block)
    mass, before = [np.zeros((len(hits), cells)) for _ in LEADS], sums(top.mass[0].shape[1])
    for h, chance in zip(added, chances, strict=True):
        earlier = hits - h
        rows = np.flatnonzero((earlier > 0) & (earlier <= len(top.mass[0])) & (chance > _NEGLIGIBLE))
        index = np.arange(1, h + 1)
        # precision at the h new hits, summed, for every number of earlier hits
        gains = ((earlier[:, None] + index) / (top.ranks + index * (block + 1) / (h + 1))).sum(axis=1)
        for new, old, lead in zip(mass, top.mass, LEADS, strict=True):
            if h == 0:
                new[rows, : len(before)] += chance[rows, None] * old[rows]
                continue
            if len(rows):
                new[rows] += _spread(chance[rows, None] * old[earlier[rows] - 1], before + gains[rows, None], cells)
            row = h + lead.hits - 1
            if row < len(hits):  # no other hit in the earlier ranks
                alone = chance[row : row + 1, None] * lead.alone(top.ranks)
                new[row] += _spread(alone, gains[row : row + 1, None], cells)[0]
    return Top(ranks, tuple(mass))


@functools.cache
def _table(number: int) -> Top:
    """The cached tables, each for about 12 % more ranks than the one before."""
    if number == 0:
        return Top(_LEAD_RANKS, tuple(np.zeros((_LEAD_RANKS, _cells(_LEAD_RANKS))) for _ in LEADS))
    top = _table(number - 1)
    goal = max(top.ranks + 1, int(top.ranks * _TABLE_GROWTH))
    while top.ranks < goal:
        block = 1 if top.ranks < _SINGLE_RANKS else top.ranks // _RANKS_PER_STEP
        top = _advance(top, min(goal, top.ranks + block))
    return top


def remainder_moments(n: int, m: int, ranks: int, hits: Floats) -> tuple[Floats, Floats]:
    """Mean and variance of what the ranks below the first T contribute to m AP, given the hits above.

    They are sums over single ranks and over pairs of ranks s < t, as in `average_precision_moments`.

    Args:
        n: Number of ranked documents.
        m: Number of relevant documents among them.
        ranks: T, 1 to n.
        hits: Number of relevant documents among the first T, any shape.
    """
    below, hits_below, k = n - ranks, m - hits, hits
    if below == 0:
        return np.zeros_like(k), np.zeros_like(k)
    # probability that one, two, three or four different ranks below T are all hits
    chances = [np.ones_like(k)]
    for j in range(4):
        chances.append(chances[-1] * np.maximum(hits_below - j, 0.0) / max(below - j, 1))
    one, two, three, four = chances[1:]
    # h = Σ 1/s and g = Σ 1/s² over the ranks s below T
    h, g = (float(end - start) for end, start in zip(harmonic_sums(n), harmonic_sums(ranks), strict=True))
    first = ranks + 1
    u = below - first * h  # Σ (s - first) / s
    # Σ over s of the expectation of a hit's precision, and of its square
    mean = one * (k + 1) * h + two * u
    square = one * (k + 1) ** 2 * g + two * (2 * k + 3) * (h - first * g)
    square = square + three * (below - (2 * first + 1) * h + first * (first + 1) * g)
    # Σ over s < t of the expectation of the product of two hits' precisions
    both = (h * h - g) / 2  # Σ 1 / (s t)
    lower = n * h - below  # Σ 1 / s
    product = below * (below - 1) / 2 - (first + 2) * u - first * lower + first * (first + 2) * both
    cross = two * (k + 1) * (k + 2) * both + four * product
    cross = cross + three * ((k + 1) * (lower - (first + 1) * both) + (k + 3) * (u - first * both))
    return mean, np.maximum(square + 2 * cross - mean * mean, 0.0)


def _top_for(n: int, m: int) -> Top:
    """The longest table with at most half the ranks for which more than `HITS` hits are practically impossible."""
    number = 0
    while _fits(_table(number + 1).ranks, n, m):
        number += 1
    return _table(number)


def _fits(ranks: int, n: int, m: int) -> bool:
    mean = ranks * m / n
    return 2 * ranks <= n and (min(ranks, m) <= HITS or mean + _STANDARD_DEVIATIONS * math.sqrt(mean) + 1 <= HITS)


@dataclass(frozen=True)
class Grid:
    """Cells of m AP under random selection: a shifted lognormal for each number of hits and sum in the first ranks.

    Attributes:
        weight: Probability of each cell, shape (cells,).
        centre: Mean of m AP in each cell.
        deviation: Standard deviation of m AP in each cell.
        skewness: Skewness of m AP within a cell, the same for all cells.
        beyond: Probability of more than `HITS` hits and of the cells that are left out; both count as an AP of 1.
    """

    weight: Floats
    centre: Floats
    deviation: Floats
    skewness: float
    beyond: float

    def tail(self, total: float) -> float:
        """Probability that m AP is at least this large."""
        above = shifted_lognormal_tail((total - self.centre) / self.deviation, self.skewness)
        return min(float(self.weight @ above) + self.beyond, 1.0)


@functools.lru_cache(maxsize=32)
def grid_for(n: int, m: int) -> Grid:
    """The null distribution of m AP for n ranked documents with m relevant ones."""
    top = _top_for(n, m)
    hits = np.arange(min(top.ranks, HITS, m) + 1, dtype=np.float64)
    mass, below, lead = _side_by_side(top, len(hits))
    mean, variance = remainder_moments(n, m, top.ranks, hits)
    weight = hypergeometric_pmf(hits, n, m, top.ranks)[:, None] * mass
    used = weight > _RARE
    # a cell combines a sum of the first ranks with the moments of what the ranks below contribute
    centre = (_corrected(top.ranks, hits, mass, below + lead) + mean[:, None])[used]
    deviation = np.maximum(np.sqrt(variance)[:, None], np.maximum(STEP * _BLUR * below, _LEAST_DEVIATION))[used]
    beyond = float(hypergeometric_tail(HITS + 1, n, m, top.ranks)) if min(top.ranks, m) > HITS else 0.0
    beyond += float(weight[~used].sum())
    skewness = _remaining_skewness(n, m, weight[used], centre, deviation)
    return Grid(weight[used], centre, deviation, skewness, beyond)


def _remaining_skewness(n: int, m: int, weight: Floats, centre: Floats, deviation: Floats) -> float:
    """Skewness within cells, the same for all, that gives m AP its exact third moment."""
    mean, variance = average_precision_moments(n, m)
    spread = m * math.sqrt(variance)
    if float(weight @ deviation**2) < _SMALL_SHARE * spread**2:
        return 0.0
    if n > _LONGEST:  # there it depends on the number of hits only, or decreases with its square root
        fewer = max(min(m, _LONGEST // 10), m * _LONGEST // n)
        return grid_for(_LONGEST, fewer).skewness * math.sqrt(fewer / m)
    # third moment: Σ w (d³ + 3 d σ²) of the cells' centres, plus skewness × Σ w σ³
    distance = centre - m * mean
    between_cells = float(weight @ (distance**3 + 3 * distance * deviation**2))
    skewness = (average_precision_skewness(n, m) * spread**3 - between_cells) / float(weight @ deviation**3)
    return skewness if abs(skewness) <= _MOST_SKEWED else 0.0


def _side_by_side(top: Top, rows: int) -> tuple[Floats, Floats, Floats]:
    """All leads side by side: probabilities given 0, 1, … hits, sums below the leads, and sums of the leads."""
    cells = top.mass[0].shape[1] + 1
    mass = np.zeros((rows, len(LEADS), cells))
    for i, (lead, lead_mass) in enumerate(zip(LEADS, top.mass, strict=True)):
        mass[1:, i, :-1] = lead_mass[: rows - 1]
        if lead.hits < rows:
            mass[lead.hits, i, -1] = lead.alone(top.ranks)
    below = np.tile(np.append(sums(cells - 1), 0.0), len(LEADS))
    return mass.reshape(rows, -1), below, np.repeat([lead.sum for lead in LEADS], cells)


def _corrected(ranks: int, hits: Floats, mass: Floats, values: Floats) -> Floats:
    """The sums S, moved so that their means and variances given the hits are exact.

    Splitting masses between cells increases the variance slightly, and steps over many ranks decrease it.
    """
    mean = mass @ values
    variance = mass @ values**2 - mean**2
    exact_mean, exact_variance = average_precision_moments_of(ranks, hits)
    exact_mean, exact_variance = np.nan_to_num(exact_mean) * hits, np.nan_to_num(exact_variance) * hits**2
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(variance > 0, np.sqrt(exact_variance / variance), 1.0)
    return np.asarray(exact_mean[:, None] + (values - mean[:, None]) * ratio[:, None])


def grid_tail(ap: float, n: int, m: int) -> float:
    """P(AP ≥ ap) under random selection; an upper bound where it is below about 1e-8.

    Of n ranked documents m, 1 to n - 1, are relevant.
    """
    return grid_for(n, m).tail(m * ap)


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

    Of n ranked documents m, 1 to n, are relevant.
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

    Of n ranked documents m, 1 to n, are relevant, and ap is above 0.

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
    Of n ranked documents, up to about 10^7, m, 1 to n - 1, are relevant.
    """
    mean, variance = average_precision_moments(n, m)
    standard = np.array((ap * (1 - _TOLERANCE) - mean) / math.sqrt(variance))
    return float(shifted_lognormal_tail(standard, _skewness(n, m)))


@functools.lru_cache(maxsize=4096)
def _skewness(n: int, m: int) -> float:
    return average_precision_skewness(n, m)


def monte_carlo_tail(ap: float, n: int, m: int, *, replicates: int, seed: int) -> float:
    """P(AP ≥ ap) as (1 + random rankings that are at least as good) / (1 + random rankings), a valid p-value.

    Of n ranked documents m, 1 to n, are relevant; the same seed gives the same result.
    """
    drawn = _random_sums(n, m, replicates, seed)
    better = len(drawn) - np.searchsorted(drawn, ap * m * (1 - _TOLERANCE))
    return float((1 + better) / (1 + replicates))


def monte_carlo_tail_of_mean(total: float, n: Sequence[int], m: Sequence[int], *, replicates: int, seed: int) -> float:
    """P(sum of average precisions ≥ total) for several random rankings, like `monte_carlo_tail`.

    Of the n documents of each ranking m, 1 to n, are relevant.
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
    are not: there, random rankings are drawn. Of n ranked documents m are relevant.
    """
    if m <= 1 or (n <= _FEW_RANKS and exact_cost(n, m) <= _MOST_SETS):
        return "exact"
    return "grid" if 2 * m <= n or n - m >= _FEW_MISSES else "monte_carlo"


def average_precision_p_values(
    ap: ArrayLike, n: ArrayLike, m: ArrayLike, *, method: NullMethod = "auto", seed: int = 0
) -> tuple[Floats, list[str]]:
    """`average_precision_p_value` of many queries, and the method that was used for each.

    Queries of the same size are processed together, so that each null distribution is computed once. Queries have the
    shape (Q,); n and m may be one number each, and where ap is nan the result is, too.

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
