"""Cells of probabilities: fixed intervals, finer towards 0 and 1, that a scan can group by.

A score s lies in the cell ⌈N (⁸√s - ⁸√(1 - s))⌉: at 1/2 a cell is about 2 / N wide, and near 0 its width is about
8 s^(7/8) / N. The eighth root is three square roots. Square roots, differences and products are rounded in one way on
every engine, and rounded they still rise with the score, so that every engine puts a score into the same cell. Cells do
not depend on the data, so that counts in them add up over files.

Bins of equal width have edges inside cells. Scores above such an edge have a number of their own, so that no number
stands for scores of two bins.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import sqlglot.expressions as exp

from pipeline.queries.dialect import double

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_BITS = 62  # of doubles from 0 to 1, whose order is that of their bits


@dataclass(frozen=True)
class ProbabilityCells:
    """Cells from 0 to 1.

    Attributes:
        fineness: N, half the number of the cells.
        bins: Bins of equal width, none of whose edges lies between scores of one number.
    """

    fineness: int
    bins: int

    @property
    def count(self) -> int:
        """How many numbers there are."""
        return 2 * self.fineness + self.bins

    @cached_property
    def _edges(self) -> dict[int, float]:
        """The edges of bins by the cell that they lie in."""
        edges = np.arange(1, self.bins) / self.bins
        return dict(zip(self._cells(edges).tolist(), edges.tolist(), strict=True))

    def cell(self, score: exp.Expr) -> exp.Expr:
        """SQL expression of the cell of a score from 0 to 1; it rises with the score."""
        complement = exp.paren(exp.Sub(this=exp.Literal.number(1), expression=score.copy()))
        difference = exp.paren(exp.Sub(this=_eighth_root(score.copy()), expression=_eighth_root(complement)))
        steps = exp.Ceil(this=exp.Mul(this=double(float(self.fineness)), expression=difference))
        return exp.cast(steps, "INT")

    def number(self, cell: exp.Expr, score: exp.Expr) -> exp.Expr:
        """SQL expression of the number of a score: twice its cell, and 1 more above the edge of a bin inside the cell.

        Args:
            cell: The cell of the score.
            score: The score.
        """
        edge = exp.Case(this=cell.copy())
        for cell_of_edge, value in self._edges.items():
            edge = edge.when(exp.convert(cell_of_edge), double(value), copy=False)
        is_above = exp.and_(cell.copy().isin(*self._edges), exp.GT(this=score.copy(), expression=edge))
        twice = exp.Mul(this=exp.Literal.number(2), expression=cell.copy())
        more = exp.Add(this=twice.copy(), expression=exp.Literal.number(1))
        return exp.cast(exp.Case().when(is_above, more).else_(twice), "INT")

    def _cells(self, scores: Floats) -> NDArray[np.int64]:
        """The cells of scores, by the same arithmetic as in SQL."""
        roots = [np.sqrt(np.sqrt(np.sqrt(values))) for values in (scores, 1 - scores)]
        return np.ceil(float(self.fineness) * (roots[0] - roots[1])).astype(np.int64)

    def _numbers(self, scores: Floats) -> NDArray[np.int64]:
        cells = self._cells(scores)
        edges = np.array([self._edges.get(cell, 1.0) for cell in range(-self.fineness, self.fineness + 1)])
        return 2 * cells + (scores > edges[cells + self.fineness])

    def edges(self, numbers: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """The lower and the upper edges of numbers: their scores lie above the lower, and the upper may be one of them.

        The upper edge is the highest double that has the number or a lower one; it is found by bisection.
        """
        return np.where(numbers <= -2 * self.fineness, 0.0, self._highest(numbers - 1)), self._highest(numbers)

    def _highest(self, numbers: NDArray[np.int64]) -> Floats:
        """The highest double up to 1 whose number is not above a number; 0 where there is none."""
        low, step = np.zeros(len(numbers), dtype=np.int64), 1 << (_BITS - 1)
        highest = int(np.float64(1.0).view(np.int64))
        while step:
            raised = low + step
            inside = raised <= highest
            scores = np.where(inside, raised, 0).view(np.float64)
            low = np.where(inside & (self._numbers(scores) <= numbers), raised, low)
            step >>= 1
        return low.view(np.float64)


def _eighth_root(value: exp.Expr) -> exp.Expr:
    return exp.Sqrt(this=exp.Sqrt(this=exp.Sqrt(this=value)))
