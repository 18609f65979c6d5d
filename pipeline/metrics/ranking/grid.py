"""The distribution of average precision under random selection, from a grid and a shifted lognormal."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

import numpy as np
import scipy

from ...records import dataclass
from .average_precision import (
    average_precision_moments,
    average_precision_moments_of,
    average_precision_skewness,
    harmonic_sums,
)
from .hypergeometric import hypergeometric_pmf, hypergeometric_tail

if TYPE_CHECKING:
    from ..uncertainty.jackknife import Floats


# The shifted lognormal distribution with a given skewness.


_SYMMETRIC = 1e-6  # skewness below which the distribution is taken as normal


def shifted_lognormal_tail(standard: Floats, skewness: float) -> Floats:
    """P(Z ≥ standard) for a lognormal Z, shifted and scaled to mean 0 and variance 1; reflected for negative skewness.

    With r = exp(σ²) - 1, σ being the standard deviation of the logarithm, the skewness is (r + 3) √r.

    Args:
        standard: Standardised values, any shape.
        skewness: The third standardised moment.
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
    """Number of cells down to the smallest sum above 0, which is that of one hit at the last rank."""
    return math.ceil(math.log(HITS * ranks) / STEP) + 2


def _spread(mass: Floats, sizes: Floats, cells: int) -> Floats:
    """Distribute masses over the cells by their new sums; each is split between two cells so that means stay exact.

    Args:
        mass: Probabilities, shape (rows, any).
        sizes: Sums, of the same shape.
        cells: Number of cells.

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

    Args:
        ap: Average precision.
        n: Number of ranked documents.
        m: Number of relevant documents among them, 1 to n - 1.
    """
    return grid_for(n, m).tail(m * ap)
