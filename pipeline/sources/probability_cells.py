"""Cells of probabilities: fixed intervals, finer towards 0 and 1, that a scan can group by.

A score s lies in the cell ⌈N (⁸√s - ⁸√(1 - s))⌉: at 1/2 a cell is about 2 / N wide, and near 0 its width is about
8 s^(7/8) / N. The eighth root is three square roots. Square roots, differences and products are rounded in one way on
every engine, and rounded they still rise with the score, so that every engine puts a score into the same cell. Cells do
not depend on the data, so that counts in them add up over files.

Bins of equal width have edges inside cells, and no number may stand for scores of two bins. The number of a score is
the sum of its cell and of its bin: neither falls while scores rise, so that two scores have the same number only if
they have the same cell and the same bin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import sqlglot.expressions as exp

from ..queries.dialect import double
from ..records import dataclass

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

    def first_bin(self, score: exp.Expr) -> exp.Expr:
        """SQL expression of a bin that a score lies in, or just below its bin; bins count from 0.

        One bin fewer makes it certain, whatever is rounded, that it is never a bin above.
        """
        return exp.Floor(this=exp.Mul(this=score.copy(), expression=double(float(self.bins - 1))))

    def number(self, first_bin: exp.Expr, score: exp.Expr) -> exp.Expr:
        """SQL expression of the number of a score: the sum of its cell and of its bin, neither of which ever falls.

        Args:
            first_bin: `first_bin` of the score.
            score: The score.
        """
        complement = exp.paren(exp.Sub(this=exp.Literal.number(1), expression=score.copy()))
        difference = exp.paren(exp.Sub(this=_eighth_root(score.copy()), expression=_eighth_root(complement)))
        cell = exp.Ceil(this=exp.Mul(this=double(float(self.fineness)), expression=difference))
        next_bin = exp.paren(exp.Add(this=first_bin.copy(), expression=exp.Literal.number(1)))
        edge = exp.Div(this=next_bin, expression=double(float(self.bins)))
        is_above = exp.cast(exp.paren(exp.GT(this=score.copy(), expression=edge)), "DOUBLE")
        number = exp.Add(this=exp.Add(this=cell, expression=first_bin.copy()), expression=is_above)
        return exp.cast(number, "SMALLINT")  # an engine can aggregate in a table that it indexes

    def numbers(self, scores: Floats) -> NDArray[np.int64]:
        """The numbers of scores, by the same arithmetic as in SQL."""
        roots = [np.sqrt(np.sqrt(np.sqrt(values))) for values in (scores, 1 - scores)]
        cells = np.ceil(float(self.fineness) * (roots[0] - roots[1]))
        first_bins = np.floor(scores * float(self.bins - 1))
        return (cells + first_bins + (scores > (first_bins + 1) / self.bins)).astype(np.int64)

    def edges(self, numbers: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """The lower and the upper edges of numbers: their scores lie above the lower, and the upper may be one of them.

        The upper edge is the highest double that has the number or a lower one; it is found by bisection.
        """
        return np.where(numbers <= -self.fineness, 0.0, self._highest(numbers - 1)), self._highest(numbers)

    def _highest(self, numbers: NDArray[np.int64]) -> Floats:
        """The highest double up to 1 whose number is not above a number; 0 where there is none."""
        low, step = np.zeros(len(numbers), dtype=np.int64), 1 << (_BITS - 1)
        highest = int(np.float64(1.0).view(np.int64))
        while step:
            raised = low + step
            inside = raised <= highest
            scores = np.where(inside, raised, 0).view(np.float64)
            low = np.where(inside & (self.numbers(scores) <= numbers), raised, low)
            step >>= 1
        return low.view(np.float64)


def _eighth_root(value: exp.Expr) -> exp.Expr:
    return exp.Sqrt(this=exp.Sqrt(this=exp.Sqrt(this=value)))
