"""Certified bounds of areas from counts per cell of scores, when the order of the rows inside a cell is unknown."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ...records import dataclass
from .ordered_areas import ROW_AREAS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from .ordered_areas import Rows


Floats: TypeAlias = "NDArray[np.float64]"

_ROUNDING = 4e-16


@dataclass(frozen=True)
class Bounds:
    """Lowest and highest area over all possible orders inside the cells, and how much each cell leaves open.

    Attributes:
        lowest: The lower bound.
        highest: The upper bound.
        open: Shape (cells,): upper minus lower bound of what each cell contributes.
    """

    lowest: float
    highest: float
    open: Floats


def average_precision_bounds(positive: Floats, negative: Floats, single: NDArray[np.bool_], first: Floats) -> Bounds:
    """Bounds of the average precision of one group.

    Take a cell with p positives and q negatives, with T positives and F negatives above it. It contributes at most
    p (T + p) / (T + p + F), if its positives tie above its negatives, and at least the sum over i = 1..p of
    (T + i) / (T + i + F + q), if its positives come one by one below its negatives. The sum is replaced by that of its
    chord, which is smaller because the terms are concave in i. A cell with a single score contributes exactly
    p (T + p) / (T + p + F + q).

    Args:
        positive: Shape (cells,), cells in ascending order of score: weight of the positives.
        negative: Weight of the negatives.
        single: Whether all scores of the cell are known to be equal.
        first: Smallest weight that a positive of the cell can have: 1 without weights, otherwise 0.
    """
    total = positive.sum()
    hits, false = _above(positive), _above(negative)

    def precision(p: Floats, q: Floats) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(hits + p > 0, (hits + p) / (hits + p + false + q), 0.0)

    least = positive * (precision(np.minimum(first, positive), negative) + precision(positive, negative)) / 2
    tied, most = positive * precision(positive, negative), positive * precision(positive, np.zeros_like(negative))
    return _bounds(np.where(single, tied, least) / total, np.where(single, tied, most) / total)


def roc_auc_bounds(positive: Floats, negative: Floats, single: NDArray[np.bool_]) -> Bounds:
    """Bounds of the area under the ROC curve of one group; the arguments are those of `average_precision_bounds`.

    The area is the share of positive-negative pairs in the right order. A cell contributes p times the negatives below
    it, and none to all of the p q pairs inside it; half of them if they tie.
    """
    below = np.cumsum(negative) - negative
    pairs = positive.sum() * negative.sum()
    least, inside = positive * below, positive * negative
    most = least + np.where(single, inside / 2, inside)
    return _bounds((least + np.where(single, inside / 2, 0.0)) / pairs, most / pairs)


def _above(values: Floats) -> Floats:
    return np.cumsum(values[::-1])[::-1] - values


def _bounds(least: Floats, most: Floats) -> Bounds:
    """Sums of the contributions, widened by the largest possible rounding error."""
    slack = _ROUNDING * (1 + np.sqrt(len(least)))
    lowest, highest = max(float(least.sum()) - slack, 0.0), min(float(most.sum()) + slack, 1.0)
    return Bounds(lowest, highest, most - least)


# Grids of cells over scores that are fine where the bounds of the areas are wide.


PIECES = 24
_QUARTERS = np.array([0.0, 0.25, 0.5, 0.75])
_BINADE = 1 << 52  # doubles between one power of two and the next


@dataclass(frozen=True)
class CellGrid:
    """Intervals of scores, each divided into cells of equal width.

    Attributes:
        edges: Ascending; interval i lies between edge i and edge i + 1.
        sizes: Number of cells in each interval, one fewer than the edges.
    """

    edges: tuple[float, ...]
    sizes: tuple[int, ...]

    @property
    def cells(self) -> int:
        """Total number of cells, including one below and one above each interval."""
        return sum(self.sizes) + 2 * len(self.sizes)


@dataclass(frozen=True)
class OpenCells:
    """How much cells leave open.

    Attributes:
        lowest: Shape (cells,), ascending: lowest score in each cell; cells of different groups may overlap.
        highest: Highest score of all cells.
        left: Shape (cells,): upper minus lower bound of what each cell contributes.
    """

    lowest: Floats
    highest: float
    left: Floats


def finer(cells: OpenCells, count: int) -> CellGrid:
    """A grid of about `count` cells that is fine where the previous cells leave much open.

    Dividing a cell into m cells leaves about 1/m of it open. The sum is smallest if the new cells are distributed in
    proportion to the square root of what each previous cell leaves open. Where the rows lie inside a cell is unknown:
    its share is spread evenly over the floating-point numbers in it, which are dense near 0, as scores often are.
    """
    # cumulative share of the new cells, over the ordinals of the scores among all doubles
    share = np.sqrt(np.maximum(cells.left, 0.0))
    share = share if share.any() else np.ones_like(share)
    mass = np.concatenate([np.zeros(1), np.cumsum(share)]) / share.sum()
    ordinals = _ordinal(np.append(cells.lowest, _next_double(cells.highest)))
    reached = np.searchsorted(mass, np.linspace(0, 1, PIECES + 1)[1:-1])
    cuts = np.unique(np.concatenate([[0, len(ordinals) - 1], reached - 1, reached]))
    # about PIECES intervals with equal shares; those wider than a binade are divided in four
    coarse = np.unique(ordinals[np.clip(cuts, 0, len(ordinals) - 1)])
    between = coarse[:-1, None] + np.multiply.outer(np.diff(coarse), _QUARTERS)
    wide = np.diff(coarse) > _BINADE
    ends = np.unique(np.concatenate([coarse, between[wide].ravel()]))
    shares = np.diff(np.interp(ends, *_rising(ordinals, mass)))
    # back to scores, with a number of cells for every interval
    edges = np.unique(_number(ends))
    if len(edges) < 2:  # noqa: PLR2004 - all scores lie nearer to each other than ordinals tell
        return CellGrid((float(cells.lowest[0]), float(_next_double(np.asarray(cells.highest)))), (count,))
    if len(edges) < len(ends):  # ordinals are doubles here, and neighbours may be rounded to one number
        shares = np.diff(np.interp(_ordinal(edges), *_rising(ordinals, mass)))
    return CellGrid(tuple(edges.tolist()), tuple(np.maximum(shares * count, 1).astype(np.int64).tolist()))


def _rising(ordinals: Floats, mass: Floats) -> tuple[Floats, Floats]:
    """Each ordinal once, with the mass below it."""
    unique, first = np.unique(ordinals, return_index=True)
    mass_below = mass[first]
    mass_below[-1] = mass[-1]
    return unique, mass_below


def _next_double(number: Floats | float) -> Floats:
    """The next double; beyond the largest, infinity, without the warning that numpy gives."""
    with np.errstate(over="ignore"):
        return np.asarray(np.nextafter(number, np.inf))


def _ordinal(numbers: Floats) -> Floats:
    """Ordinal of a double among all doubles, 0 for 0; returned as a double."""
    bits = np.asarray(numbers, dtype=np.float64).view(np.int64)
    return np.where(bits >= 0, bits, -(bits & 0x7FFFFFFFFFFFFFFF)).astype(np.float64)


def _number(ordinals: Floats) -> Floats:
    """The double with this ordinal, the inverse of `_ordinal` except for the rounding of large ordinals."""
    size = np.abs(ordinals).astype(np.int64)
    values = size.view(np.float64)
    return np.where(ordinals >= 0, values, -values)


def rounded_outwards(low: float, high: float) -> tuple[float, float]:
    """Round the ends of an interval outwards, so that somewhat other ends are rounded to the same.

    Args:
        low: The lower end.
        high: The upper end.

    Returns:
        The next multiples of a power of two of which 8 to 16 fit between the ends; the ends themselves where these are
        equal, or too near or too far apart for such a number.
    """
    width = high - low
    unit = 2.0 ** (math.floor(math.log2(width)) - 3) if 0 < width < math.inf else 0.0
    if not unit:
        return low, high
    # an end that is tiny beside the unit is 0 once divided: it must not be left outside
    wider = min(low, math.floor(low / unit) * unit), max(high, math.ceil(high / unit) * unit)
    return wider if all(map(math.isfinite, wider)) else (low, high)


# Counts of labels in cells of scores, group by group, and how uncertain they leave the areas.


@dataclass(frozen=True)
class Extremes:
    """Lowest and highest score of each cell.

    Attributes:
        lowest: Shape (cells,).
        highest: Shape (cells,).
    """

    lowest: NDArray[np.float64]
    highest: NDArray[np.float64]


@dataclass(frozen=True)
class AreaCells:
    """Cells in ascending order of group and score.

    Attributes:
        rows: Counts, one row for each cell.
        extremes: Lowest and highest score of each cell; None if unknown, in which case no cell is taken to hold a
            single score.
    """

    rows: Rows
    extremes: Extremes | None

    def bounds(self, groups: int, *, weighted: bool) -> dict[str, list[Bounds]]:
        """Bounds for every group, by name of the area.

        Args:
            groups: Number of groups; the bounds of a group without cells are undefined.
            weighted: Whether rows have weights.
        """
        rows = self.rows
        by_area: dict[str, list[Bounds]] = {area: [] for area in ROW_AREAS}
        single = np.zeros(len(rows), dtype=np.bool_)
        if self.extremes is not None:
            single = self.extremes.lowest == self.extremes.highest
        for cells in _cells_of_groups(rows.group, groups):
            positive, negative = rows.positive[cells], rows.negative[cells]
            first = np.full(len(positive), 0.0 if weighted else 1.0)
            with np.errstate(divide="ignore", invalid="ignore"):
                by_area["average_precision"].append(average_precision_bounds(positive, negative, single[cells], first))
                by_area["roc_auc"].append(roc_auc_bounds(positive, negative, single[cells]))
        return by_area

    def open(self, bounds: dict[str, list[Bounds]], extremes: Extremes) -> OpenCells:
        """How much the cells leave open, in ascending order of score over all groups.

        Args:
            bounds: Bounds as returned by `bounds`.
            extremes: Lowest and highest score of each cell.
        """
        groups = len(bounds[ROW_AREAS[0]])
        left = np.zeros(len(self.rows))
        for number, cells in enumerate(_cells_of_groups(self.rows.group, groups)):
            left[cells] = sum(np.nan_to_num(bounds[area][number].open) for area in ROW_AREAS)
        order = np.argsort(extremes.lowest, kind="stable")
        order = order[np.isfinite(extremes.lowest[order])]  # a tie at minus infinity is one cell, and stays one
        return OpenCells(extremes.lowest[order], float(extremes.highest.max()), left[order])


def _cells_of_groups(group: NDArray[np.int64], groups: int) -> Iterator[slice]:
    """The cells of each group, in the order of the group numbers; the cells of one group are contiguous."""
    starts = np.flatnonzero(np.concatenate([np.ones(min(len(group), 1), dtype=bool), group[1:] != group[:-1]]))
    ends = np.append(starts[1:], len(group))[: len(starts)]
    slices = {int(group[start]): slice(int(start), int(end)) for start, end in zip(starts, ends, strict=True)}
    for number in range(groups):
        yield slices.get(number, slice(0, 0))
