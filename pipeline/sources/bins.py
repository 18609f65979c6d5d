"""Bins and cells of one scan, exactly: of thresholds, and of probabilities."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Literal

import numpy as np
import sqlglot.expressions as exp

from ..base.columns import lowest_retrieved
from ..base.dialect import double, is_finite
from ..base.records import dataclass
from ..base.sql_files import statement

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from ..base.columns import Boundary


# Thresholds as bins of one scan, exactly: arithmetic cells, a certificate, and a second look where it fails.
#
# A score falls into bin b when exactly b thresholds retrieve it: 0 is below all, K above all K. Comparing every row
# with every threshold is slow, so a scan groups by a *cell*, found by arithmetic, and keeps the lowest and highest
# score in each cell. A cell whose two extremes fall into one bin holds only scores of that bin: monotone order is the
# certificate. The few cells that a threshold cuts through are counted again, by comparisons, over their rows alone.


FINE_CELLS = 4096
BLOCK = 1 << 16
_EVEN_TOLERANCE = 1e-6
_SMALL = ((exp.DataType.Type.UTINYINT, 255), (exp.DataType.Type.USMALLINT, 65_535))


@dataclass(frozen=True)
class EvenCells:
    """Cells of equal width between two scores."""

    low: float
    high: float
    count: int


@dataclass(frozen=True)
class Grid:
    """Ascending thresholds and the rule of what each retrieves.

    Attributes:
        thresholds: Distinct finite values in ascending order, at least one.
        boundary: `>=`: a score equal to the threshold is retrieved; `>`: it is not.
        fine: Cells to group by, finer than the thresholds need them; None: as few as these need.
    """

    thresholds: tuple[float, ...]
    boundary: Boundary = ">="
    fine: EvenCells | None = None

    def bins(self, scores: Sequence[float] | NDArray[np.float64]) -> NDArray[np.int64]:
        """Bin of each score: the number of thresholds that retrieve it."""
        side: Literal["left", "right"] = "right" if self.boundary == ">=" else "left"
        return np.searchsorted(np.asarray(self.thresholds), np.asarray(scores, dtype=np.float64), side=side)

    def bin(self, score: float) -> int:
        """Bin of one score."""
        return (bisect_right if self.boundary == ">=" else bisect_left)(self.thresholds, score)

    @cached_property
    def _is_even(self) -> bool:
        with np.errstate(over="ignore", invalid="ignore"):
            gaps = np.diff(self.thresholds)
            return len(gaps) > 0 and bool(np.ptp(gaps) <= _EVEN_TOLERANCE * gaps.max())

    @cached_property
    def _cells(self) -> int:
        """Number of cells between the lowest and the highest threshold."""
        steps = len(self.thresholds) - 1
        return steps if self._is_even else max(FINE_CELLS, 4 * steps)

    def in_cells(self, rows: exp.Query, score: exp.Expr) -> exp.Query:
        """The rows of a query with the cell of a score as bin, never falling while scores rise; NULL as for `cell`."""
        return _in_even_cells(rows, score, self._even)

    def cell(self, score: exp.Expr) -> exp.Expr:
        """SQL expression of the cell of a score, never falling while scores rise; NULL for NULL, NaN and infinite.

        Cell 0 is below the lowest threshold, the last cell begins with the highest. Few cells make a small integer, so
        that the engine can aggregate in a table indexed by the cell.
        """
        return even_cells(score, self._even.low, self._even.high, self._even.count)

    @property
    def _even(self) -> EvenCells:
        return self.fine or EvenCells(self.thresholds[0], self.thresholds[-1], self._cells)

    def refined(self, span: tuple[float, float], bins: int, most: int) -> Grid:
        """The thresholds, 0, 1 and the edges of bins of equal width between, and cells over a span of scores.

        All become lowest scores that are retrieved, so that the boundary is `>=`: a bin of probabilities holds its
        upper edge. As far as an even grid has them all, or at least the thresholds, among its points, so do the cells.

        Args:
            span: Lowest and highest score, of different finite values.
            bins: Number of the bins from 0 to 1.
            most: Most cells, if these are enough for the thresholds.
        """
        edges = {0.0, *(math.nextafter(number / bins, math.inf) for number in range(1, bins + 1))}
        edges |= {lowest_retrieved(each, self.boundary) for each in self.thresholds}
        most, anchor, step = max(most, self._cells), Fraction(repr(self.thresholds[0])), self._step
        cells = _aligned(span, anchor, _common(step, anchor, Fraction(1, bins)), most)
        cells = cells or _aligned(span, anchor, step, most) or EvenCells(*span, most)
        return Grid(tuple(sorted(edges)), ">=", cells)

    @property
    def _step(self) -> Fraction:
        """The widest step of an even grid that has all thresholds, as decimals, among its points."""
        decimals = [Fraction(repr(each)) for each in self.thresholds]
        if self._is_even:
            return (decimals[-1] - decimals[0]) / (len(decimals) - 1)
        return _common(*(each - decimals[0] for each in decimals))

    def exact(self, score: exp.Expr) -> exp.Expr:
        """SQL expression of the bin of a score by comparisons alone, as a balanced tree; NULL as for `cell`."""
        bins = self._tree(score, 0, len(self.thresholds))
        return exp.cast(_case((is_finite(score), bins)), "INT", copy=False)

    def _tree(self, score: exp.Expr, low: int, high: int) -> exp.Expr:
        if low == high:
            return exp.Literal.number(low)
        middle = (low + high) // 2
        compare = exp.GTE if self.boundary == ">=" else exp.GT
        retrieved = compare(this=score.copy(), expression=double(self.thresholds[middle]))
        upper, lower = self._tree(score, middle + 1, high), self._tree(score, low, middle)
        return _case((retrieved, upper)).else_(lower, copy=False)


def _common(*numbers: Fraction) -> Fraction:
    """The largest number of which all are multiples; 0 if all are 0."""
    denominator = math.lcm(*(each.denominator for each in numbers))
    return Fraction(math.gcd(*(int(each * denominator) for each in numbers)), denominator)


def _aligned(span: tuple[float, float], anchor: Fraction, unit: Fraction, most: int) -> EvenCells | None:
    """Cells over a span, whose edges are among those at whole units from an anchor; None if these are too many."""
    low, high = map(Fraction, span)
    while unit * 8 > high - low:
        unit /= 2
    if not unit:
        return None
    first, last = math.floor((low - anchor) / unit), math.ceil((high - anchor) / unit)
    steps = last - first
    if steps > most:
        return None
    return EvenCells(float(anchor + first * unit), float(anchor + last * unit), steps * (most // steps))


def _case(*branches: tuple[exp.Expr, exp.Expr]) -> exp.Case:
    """CASE over new conditions and values, which are taken as they are: copies at every level of a tree cost most."""
    case = exp.Case()
    for condition, value in branches:
        case = case.when(condition, value, copy=False)
    return case


def even_cells(score: exp.Expr, low: float, high: float, count: int) -> exp.Expr:
    """SQL expression of the cell of a score: 0 below `low`, 1 to `count` up to `high`, `count` + 1 from there on."""
    cell: exp.Expr = _in_even_cells("scores", score, EvenCells(low, high, count)).expressions[-1].this
    return cell


def _in_even_cells(rows: str | exp.Query, score: exp.Expr, cells: EvenCells) -> exp.Query:
    """The rows with the cell of a score, as sql/bins/even_cells.sql has it, in the smallest type that fits."""
    scale = _scale(cells.low, cells.high, cells.count)
    values = {"low": cells.low, "high": cells.high, "scale": scale or 1.0, "last": cells.count + 1}
    relations, columns = {"canonical_rows": rows}, {"score": score}
    tree = statement("bins/even_cells", relations=relations, columns=columns, values=values).copy()
    cell = tree.expressions[-1].this
    kind = next((kind for kind, most in _SMALL if cells.count < most), exp.DataType.Type.INT)
    cell.set("to", exp.DataType(this=kind))
    if scale is None:  # the cells are too narrow to be told apart
        cell.this.args["ifs"][0].set("true", exp.Literal.number(1))
    return tree


def piecewise_cells(score: exp.Expr, edges: Sequence[float], counts: Sequence[int]) -> exp.Expr:
    """SQL expression of the cell of a score in a grid whose fineness changes from piece to piece.

    Args:
        score: The score.
        edges: Rising; piece i lies between edge i and edge i + 1, the first and the last piece are open outwards.
        counts: Cells of each piece, one fewer than the edges.
    """
    starts = [0, *accumulate(each + 2 for each in counts)]
    last = len(counts) - 1
    if last == 0:
        return exp.cast(even_cells(score, edges[0], edges[1], counts[0]), "INT", copy=False)

    def piece(number: int) -> exp.Expr:
        """The cell of a score above the lower edge and below the upper, except at the open ends."""
        inside = _distance_in_cells(score, edges[number], edges[number + 1], counts[number])
        first_cell = exp.Literal.number(starts[number] + 1)
        cell = first_cell if inside is None else exp.Add(this=inside, expression=first_cell)
        if number == 0:
            above = exp.GTE(this=score.copy(), expression=double(edges[0]))
            return _case((above, cell)).else_(exp.Literal.number(0), copy=False)
        if number == last:
            below = exp.LT(this=score.copy(), expression=double(edges[-1]))
            return _case((below, cell)).else_(exp.Literal.number(starts[-1] - 1), copy=False)
        return cell

    def tree(low: int, high: int) -> exp.Expr:
        if high - low == 1:
            return piece(low)
        middle = (low + high) // 2
        upper = exp.GTE(this=score.copy(), expression=double(edges[middle]))
        return _case((upper, tree(middle, high))).else_(tree(low, middle), copy=False)

    return exp.cast(_case((is_finite(score), tree(0, len(counts)))), "INT", copy=False)


def _distance_in_cells(score: exp.Expr, low: float, high: float, count: int) -> exp.Expr | None:
    """How many whole cells of `count` up to `high` a score lies above `low`; None where they are too narrow."""
    scale = _scale(low, high, count)
    if scale is None:
        return None
    distance = exp.paren(exp.Sub(this=score.copy(), expression=double(low)))
    return exp.Floor(this=exp.Mul(this=distance, expression=double(scale)))


def _scale(low: float, high: float, count: int) -> float | None:
    """Cells of `count` up to `high` per unit of the score; None where they are too narrow."""
    width = high - low
    scale = count / width if 0 < width < math.inf else math.inf
    return scale if math.isfinite(scale) else None


def block_of(cell: exp.Expr, count: int) -> exp.Expr:
    """SQL expression of the block of `BLOCK` cells that a cell lies in, from 0 on.

    Block and `cell_in_block` together still index a table where one number of `count` cells has a type too wide for
    it; an engine sees from the constants how few blocks there are.
    """
    blocks = -(-count // BLOCK)

    def tree(low: int, high: int) -> exp.Expr:
        if high - low == 1:
            return exp.cast(exp.Literal.number(low), exp.DataType.Type.UTINYINT)
        middle = (low + high) // 2
        lower = exp.LT(this=cell.copy(), expression=exp.Literal.number(middle * BLOCK))
        return _case((lower, tree(low, middle))).else_(tree(middle, high), copy=False)

    return tree(0, max(blocks, 1))


def cell_in_block(cell: exp.Expr) -> exp.Expr:
    """SQL expression of the place of a cell in its block."""
    return exp.cast(
        exp.BitwiseAnd(this=cell.copy(), expression=exp.Literal.number(BLOCK - 1)), exp.DataType.Type.USMALLINT
    )


# Cells of probabilities: fixed intervals, finer towards 0 and 1, that a scan can group by.
#
# A score s lies in the cell ⌈N (⁸√s - ⁸√(1 - s))⌉: at 1/2 a cell is about 2 / N wide, and near 0 its width is about 8
# s^(7/8) / N. The eighth root is three square roots. Square roots, differences and products are rounded in one way on
# every engine, and rounded they still rise with the score, so that every engine puts a score into the same cell.
# Cells do not depend on the data, so that counts in them add up over files.
#
# Bins of equal width have edges inside cells, and no number may stand for scores of two bins. The number of a score
# is the sum of its cell and of its bin: neither falls while scores rise, so that two scores have the same number only
# if they have the same cell and the same bin.


if TYPE_CHECKING:
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

    def in_cells(self, rows: exp.Query) -> exp.Query:
        """Rows with a probability, with the number of its cell, as sql/bins/probability_cells.sql has it."""
        values = {"fineness": float(self.fineness), "bins": float(self.bins), "fewer_bins": float(self.bins - 1)}
        return statement("bins/probability_cells", relations={"probabilities_alone": rows}, values=values)

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
