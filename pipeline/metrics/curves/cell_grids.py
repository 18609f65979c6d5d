"""Grids of cells over scores that are fine where bounds are wide."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Floats: TypeAlias = "NDArray[np.float64]"

PIECES = 24
_INSIDE = np.array([0.0, 0.25, 0.5, 0.75])
_BINADE = 1 << 52


@dataclass(frozen=True)
class CellGrid:
    """Pieces of the line, each cut into cells of one width.

    Attributes:
        edges: Rising; piece i lies between edge i and edge i + 1.
        sizes: Cells of each piece, one fewer than the edges.
    """

    edges: tuple[float, ...]
    sizes: tuple[int, ...]

    @property
    def cells(self) -> int:
        """Number of all cells, with one below and one above each piece."""
        return sum(self.sizes) + 2 * len(self.sizes)


@dataclass(frozen=True)
class OpenCells:
    """What cells leave open.

    Attributes:
        lowest: Shape (cells,), rising: lowest score in each cell; cells of several groups may overlap.
        highest: Highest score of all.
        left: Shape (cells,): upper less lower bound of what each adds.
    """

    lowest: Floats
    highest: float
    left: Floats


def finer(cells: OpenCells, count: int) -> CellGrid:
    """A grid of about `count` cells, fine where other cells leave much open.

    Cutting a cell in m parts leaves about 1/m of it open, so that the sum is least with cells in proportion to the root
    of what each leaves open. Where in a cell its rows lie is not known: its share is spread evenly over the floating
    numbers in it, which are dense near 0, as scores often are.
    """
    share = np.sqrt(np.maximum(cells.left, 0.0))
    share = share if share.any() else np.ones_like(share)
    mass = np.concatenate([np.zeros(1), np.cumsum(share)]) / share.sum()
    ordinals = _ordinal(np.append(cells.lowest, _above(cells.highest)))
    reached = np.searchsorted(mass, np.linspace(0, 1, PIECES + 1)[1:-1])
    cuts = np.unique(np.concatenate([[0, len(ordinals) - 1], reached - 1, reached]))
    coarse = np.unique(ordinals[np.clip(cuts, 0, len(ordinals) - 1)])
    between = coarse[:-1, None] + np.multiply.outer(np.diff(coarse), _INSIDE)
    wide = np.diff(coarse) > _BINADE
    ends = np.unique(np.concatenate([coarse, between[wide].ravel()]))
    shares = np.diff(np.interp(ends, *_rising(ordinals, mass)))
    edges = np.unique(_number(ends))
    if len(edges) < 2:  # noqa: PLR2004 - all scores lie nearer to each other than ordinals tell
        return CellGrid((float(cells.lowest[0]), float(_above(np.asarray(cells.highest)))), (count,))
    if len(edges) < len(ends):  # ordinals are doubles here, and neighbours may be rounded to one number
        shares = np.diff(np.interp(_ordinal(edges), *_rising(ordinals, mass)))
    return CellGrid(tuple(edges.tolist()), tuple(np.maximum(shares * count, 1).astype(np.int64).tolist()))


def _rising(ordinals: Floats, mass: Floats) -> tuple[Floats, Floats]:
    """Each place once, with the mass below it."""
    unique, first = np.unique(ordinals, return_index=True)
    kept = mass[first]
    kept[-1] = mass[-1]
    return unique, kept


def _above(number: Floats | float) -> Floats:
    """The next double; beyond the largest, infinity, without the warning that numpy gives."""
    with np.errstate(over="ignore"):
        return np.asarray(np.nextafter(number, np.inf))


def _ordinal(numbers: Floats) -> Floats:
    """Position of a double among all doubles, 0 for 0, as a double."""
    bits = np.asarray(numbers, dtype=np.float64).view(np.int64)
    return np.where(bits >= 0, bits, -(bits & 0x7FFFFFFFFFFFFFFF)).astype(np.float64)


def _number(ordinals: Floats) -> Floats:
    """The double at a position, the inverse of `_ordinal` up to the rounding of large positions."""
    size = np.abs(ordinals).astype(np.int64)
    values = size.view(np.float64)
    return np.where(ordinals >= 0, values, -values)
