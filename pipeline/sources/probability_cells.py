"""Cells of probabilities: fixed intervals, finer towards 0 and 1, that a scan can group by.

Halving intervals run from 1/2 down to 2⁻²⁰ and, mirrored, up to 1 - 2⁻²⁰; each is cut into as many cells of equal
width, so that the width of a cell is a fixed share of the distance from 0 or from 1. Edges and widths are powers of
two, so that the arithmetic that finds the cell of a score is exact on every engine: a cell holds the scores above its
lower edge, up to its upper edge. The edges of bins of equal width, which are no powers of two, are compared with as
they are, so that no cell lies in two of these bins. The cells do not depend on the data, so that counts in them add up
over files.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import sqlglot.expressions as exp

from pipeline.queries.dialect import double

if TYPE_CHECKING:
    from numpy.typing import NDArray

HALVINGS = 20


@dataclass(frozen=True)
class _Piece:
    """Part of a halving interval between two edges of bins.

    Attributes:
        lower: Its lower edge, which it does not hold.
        upper: Its upper edge, which it holds.
        origin: The lower edge of the halving interval.
        scale: Cells for 1 there.
        first: Number of the cell that would begin at the origin, less one.
    """

    lower: float
    upper: float
    origin: float
    scale: float
    first: int

    @property
    def last(self) -> int:
        """Number of its highest cell."""
        return self.first + math.ceil((self.upper - self.origin) * self.scale)


@dataclass(frozen=True)
class ProbabilityCells:
    """Cells from 0 to 1; cell 0 holds the score 0 alone.

    Attributes:
        fineness: Cells of every halving interval, a power of two.
        bins: Bins of equal width, none of whose edges lies inside a cell.
    """

    fineness: int
    bins: int

    @cached_property
    def _pieces(self) -> tuple[_Piece, ...]:
        falling = [2.0**-power for power in range(HALVINGS, 0, -1)]
        halvings = [0.0, *falling, *(1 - edge for edge in reversed(falling[:-1])), 1.0]
        edges_of_bins = [number / self.bins for number in range(1, self.bins)]
        pieces: list[_Piece] = []
        for origin, end in pairwise(halvings):
            scale = self.fineness / (end - origin)
            inside = [edge for edge in edges_of_bins if origin < edge < end]
            for lower, upper in pairwise([origin, *inside, end]):
                begun = math.floor((lower - origin) * scale)
                pieces.append(_Piece(lower, upper, origin, scale, (pieces[-1].last if pieces else 0) - begun))
        return tuple(pieces)

    @property
    def count(self) -> int:
        """Number of the cells."""
        return self._pieces[-1].last + 1

    def cell(self, score: exp.Expr) -> exp.Expr:
        """SQL expression of the cell of a score from 0 to 1, as INT; it rises with the score."""

        def tree(low: int, high: int) -> exp.Expr:
            if high - low == 1:
                return _number(score, self._pieces[low])
            middle = (low + high) // 2
            above = exp.GT(this=score.copy(), expression=double(self._pieces[middle].lower))
            return exp.Case().when(above, tree(middle, high), copy=False).else_(tree(low, middle), copy=False)

        return exp.cast(tree(0, len(self._pieces)), "INT", copy=False)

    def edges(self, cells: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The lower and the upper edges of cells; a cell holds its upper edge, and cell 0 is one number."""
        pieces = self._pieces
        number = np.searchsorted([piece.last for piece in pieces], cells)
        lower, upper, origin, scale = (
            np.array([getattr(piece, name) for piece in pieces])[number]
            for name in ("lower", "upper", "origin", "scale")
        )
        steps = cells - np.array([piece.first for piece in pieces])[number]
        below = np.maximum(lower, origin + np.maximum(steps - 1, 0) / scale)
        return below, np.minimum(upper, origin + steps / scale)


def _number(score: exp.Expr, piece: _Piece) -> exp.Expr:
    """SQL expression of the cell of a score that lies in a piece."""
    distance = exp.paren(exp.Sub(this=score.copy(), expression=double(piece.origin)), copy=False)
    steps = exp.Ceil(this=exp.Mul(this=distance, expression=double(piece.scale)))
    return exp.Add(this=steps, expression=exp.convert(piece.first))
