"""Grids of cells over scores that are fine where the bounds of the areas are wide."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ...records import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

Floats: TypeAlias = "NDArray[np.float64]"

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
    ordinals = _ordinal(np.append(cells.lowest, _above(cells.highest)))
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
        return CellGrid((float(cells.lowest[0]), float(_above(np.asarray(cells.highest)))), (count,))
    if len(edges) < len(ends):  # ordinals are doubles here, and neighbours may be rounded to one number
        shares = np.diff(np.interp(_ordinal(edges), *_rising(ordinals, mass)))
    return CellGrid(tuple(edges.tolist()), tuple(np.maximum(shares * count, 1).astype(np.int64).tolist()))


def _rising(ordinals: Floats, mass: Floats) -> tuple[Floats, Floats]:
    """Each ordinal once, with the mass below it."""
    unique, first = np.unique(ordinals, return_index=True)
    mass_below = mass[first]
    mass_below[-1] = mass[-1]
    return unique, mass_below


def _above(number: Floats | float) -> Floats:
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
