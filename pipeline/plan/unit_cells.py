"""Sums over the rows of every unit where rows are too many to be put in order: they are added up by the engine.

Influences are those of cells of scores, as if the rows of a cell tied. Cells are made finer until the areas of all
groups are certain to `WIDTH`, or `ROUNDS` have passed: then the influence of hardly any row is off by more than that.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import sqlglot.expressions as exp

from ..metrics.curves.area_cells import AreaCells, Extremes
from ..metrics.curves.cell_grids import CellGrid, finer, rounded_outwards
from ..metrics.curves.ordered_areas import ROW_AREAS, Rows
from ..metrics.curves.unit_influences import Influences, Steps, influences_of_thresholds, influences_of_ties
from ..queries.dialect import column, is_finite
from ..queries.load import expand, load
from ..records import dataclass
from ..sources.bins import BLOCK
from ..tables.columns import doubles
from .score_cells import CELL, rows_in_cells
from .unit_sums import AREAS, PLACE, SIDES, UNIT, SummedUnits, slopes_of

if TYPE_CHECKING:
    from ..engines.engine import Engine
    from .unit_sums import Floats, GroupCurves, Integers

UNIT_ROWS, IN_CELLS, GROUPS, INFLUENCES = "unit_rows", "unit_rows_in_cells", "groups_of_units", "influences_in_cells"
INFLUENCE = "influence_"  # and the area: a column of the relation
CELLS = 65_000  # one block of cells, which engines count in a table indexed by the cell
FEWEST_CELLS = 64
MOST_CELLS_OF_GROUPS = 1 << 21
WIDTH = 1e-4
ROUNDS = 3
_MOST_BITS = 62  # of a sum


@dataclass(frozen=True)
class UnitCells:
    """The rows of one grouping, in the relation `UNIT_ROWS`.

    Attributes:
        engine: Where they are.
        curves: What is known of the groups.
        weighted: Whether rows have weights.
        missed: Whether rows may have the score minus infinity.
        span: Lowest and highest score that the files promise, for the first cells; None: rows are asked.
    """

    engine: Engine
    curves: GroupCurves
    weighted: bool
    missed: bool
    span: tuple[float, float] | None

    def sums(self) -> SummedUnits:
        """Add up the rows of every unit."""
        cells, extremes = self._narrowed()
        influences = self._influences(cells, extremes)
        scales = {area: self._scale(influences[area]) for area in AREAS}
        numbers = int(cells.score.max(initial=0)) + 1
        self.engine.fill(INFLUENCES, [self._steps(cells, influences, scales, numbers)])
        self.engine.fill(GROUPS, [self._groups(numbers)])
        query = load("areas/weighted_units" if self.weighted else "areas/units")
        counted = self.engine.fetch(expand(query, self.curves.columns), once=True)
        return SummedUnits(_by_unit(counted, scales, weighted=self.weighted), slopes_of(influences))

    def _narrowed(self) -> tuple[Rows, Extremes]:
        """Counts and extremes of cells that are fine enough; in the last round of those that there are."""
        count = max(FEWEST_CELLS, min(CELLS, MOST_CELLS_OF_GROUPS // max(self.curves.size, 1)))
        grid = CellGrid(self._span(), (count,))
        for number in range(ROUNDS):
            rows, extremes = self._cells(grid)
            cells = AreaCells(rows, extremes)
            bounds = cells.bounds(self.curves.size, weighted=self.weighted)
            open_ = max(np.nan_to_num(each.highest - each.lowest) for area in ROW_AREAS for each in bounds[area])
            if open_ <= WIDTH or number == ROUNDS - 1:
                break
            grid = finer(cells.open(bounds, extremes), count)
        return rows, extremes

    def _span(self) -> tuple[float, float]:
        if self.span is not None:
            return rounded_outwards(*self.span)
        ends = (exp.alias_(exp.Min(this=column("score")), "low"), exp.alias_(exp.Max(this=column("score")), "high"))
        query = exp.select(*ends).from_(UNIT_ROWS).where(is_finite(column("score")))
        low, high = self.engine.fetch(query, once=True).row(0)
        return (0.0, 0.0) if low is None else rounded_outwards(float(low), float(high))

    def _cells(self, grid: CellGrid) -> tuple[Rows, Extremes]:
        """Counts and extremes in the cells of a grid, in ascending order of group and cell."""
        self.engine.define(IN_CELLS, rows_in_cells(grid, missed=self.missed, rows=UNIT_ROWS))
        query = load("areas/weighted_cells_of_units" if self.weighted else "areas/cells_of_units")
        counted = self.engine.fetch(expand(query, self.curves.columns), once=True)
        counted = counted.with_columns(self.curves.places(counted)).sort(PLACE, *CELL)
        block, cell, lowest, highest, positive, negative = (
            counted[name].cast(pl.Float64).to_numpy() for name in (*CELL, "lowest", "highest", "positive", "negative")
        )
        rows = Rows(counted[PLACE].to_numpy(), block * BLOCK + cell, positive, negative)
        return rows, Extremes(lowest, highest)

    def _influences(self, cells: Rows, extremes: Extremes) -> dict[str, Influences]:
        """Influences of each cell; on `pr_auc` those of its lowest and its highest score in the mean."""
        of_thresholds = influences_of_thresholds(self.curves.retrieved)
        ends = [self.curves.steps(cells.group, end) for end in (extremes.lowest, extremes.highest)]
        psi = []
        for values in (of_thresholds.positive, of_thresholds.negative):
            padded = np.append(values, 0.0)  # 0 at step -1, where no threshold retrieves
            psi.append((padded[ends[0]] + padded[ends[1]]) / 2)
        ties = Steps.of_ties(cells.group, cells.positive, cells.negative, self.curves.size)
        return influences_of_ties(ties) | {"pr_auc": Influences(psi[0], psi[1], of_thresholds.slope)}

    def _scale(self, influences: Influences) -> float:
        """A power of two by which influences are multiplied: to whole numbers whose sums do not overflow, or to 1."""
        values = np.concatenate([influences.positive, influences.negative])
        largest = float(np.abs(values[np.isfinite(values)]).max(initial=0.0))
        exponent = math.frexp(largest)[1] if largest else 0
        bits = 0 if self.weighted else _MOST_BITS - max(self.curves.rows, 1).bit_length()
        return 2.0 ** (bits - exponent)

    def _steps(
        self, cells: Rows, influences: dict[str, Influences], scales: dict[str, float], numbers: int
    ) -> pl.DataFrame:
        """Two rows for each cell: the influences of its negatives and of its positives."""
        cell = 2 * (cells.group * numbers + cells.score.astype(np.int64))
        columns: dict[str, Integers | Floats] = {"step": np.concatenate([cell, cell + 1])}
        for area in AREAS:
            values = np.concatenate([influences[area].negative, influences[area].positive]) * scales[area]
            finite = np.where(np.isfinite(values), values, 0.0)
            columns[f"{INFLUENCE}{area}"] = finite if self.weighted else np.rint(finite).astype(np.int64)
        return pl.DataFrame(columns)

    def _groups(self, numbers: int) -> pl.DataFrame:
        """The groups with the first of their steps."""
        lowest = doubles("lowest_score", self.curves.lowest)
        first = (2 * numbers * pl.col(PLACE)).alias("first_step")
        return self.curves.numbered.with_columns(first, lowest).rename({PLACE: "place"})


def _by_unit(counted: pl.DataFrame, scales: dict[str, float], *, weighted: bool) -> pl.DataFrame:
    """Sums by unit and label → sums by unit, those of each side beside each other."""
    names = ["n", "n_retrieved", *(["weight", "weight_retrieved"] if weighted else [])]
    values = [pl.col(names[:2]), pl.col(names[2:]).cast(pl.Float64)]
    values += [(pl.col(area).cast(pl.Float64) / scales[area]).alias(area) for area in AREAS]
    keys, summed = ["place", UNIT], counted.select("place", UNIT, "label", *values)
    sides = [
        summed.filter(pl.col("label") == bool(label)).drop("label").rename({n: f"{n}_{side}" for n in (*names, *AREAS)})
        for label, side in enumerate(SIDES)
    ]
    joined = sides[0].join(sides[1], on=keys, how="full", coalesce=True, nulls_equal=True)
    zeros = joined.with_columns(pl.exclude(keys).fill_null(0))
    return zeros.rename({"place": PLACE}).sort(PLACE, UNIT)
