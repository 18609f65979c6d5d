"""Scores in cells: the relation of the rows, and what is asked once of the first cells for all groupings."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

import polars as pl
import sqlglot.expressions as exp

from ..queries.dialect import column
from ..queries.load import Query, expand
from ..records import dataclass
from ..sources.bins import block_of, cell_in_block, piecewise_cells

if TYPE_CHECKING:
    from ..engines.engine import Engine
    from ..metrics.curves.cell_grids import CellGrid

SCORED, IN_CELLS = "scored", "scored_cells"  # the relations of the rows
CELL = ("cell_block", "cell")
_MERGED = {"lowest": pl.Expr.min, "highest": pl.Expr.max}


@dataclass
class FirstCells:
    """What was asked of the cells that do not depend on the rows of a grouping.

    Attributes:
        engine: Where the relation of the cells is defined.
    """

    engine: Engine
    _fetched: dict[tuple[str, CellGrid, tuple[str, ...]], pl.DataFrame] = field(default_factory=dict)

    def fetch(self, query: Query, names: tuple[str, ...], grid: CellGrid) -> pl.DataFrame:
        """Counts or extremes by group and cell, in the order of groups and cells.

        Those of a coarser grouping are put together from those of a finer one, if that was asked for before.

        Args:
            query: What is asked of the cells, with `segment` for the grouping columns.
            names: The grouping columns.
            grid: The grid in which the relation has its cells now.
        """
        for (asked, grid_of_rows, finer), rows in self._fetched.items():
            if asked == query.name and grid_of_rows == grid and set(names) < set(finer):
                return _merged(rows, names, finer)
        rows = self.engine.fetch(expand(query, names))
        self._fetched[query.name, grid, names] = rows
        return rows


def _merged(rows: pl.DataFrame, names: tuple[str, ...], finer: tuple[str, ...]) -> pl.DataFrame:
    """What the cells of finer groups have together in each group."""
    keys = [*names, *CELL]
    values = [name for name in rows.columns if name not in {*finer, *CELL}]
    merged = rows.group_by(keys).agg(_MERGED.get(name, pl.Expr.sum)(pl.col(name)) for name in values)
    return merged.sort(keys, nulls_last=True).select(*keys, *values)


def rows_in_cells(grid: CellGrid | None, *, missed: bool, rows: str = SCORED) -> exp.Select:
    """The rows with their cell in a grid; None: with their score as cell.

    Args:
        grid: The grid.
        missed: Whether rows may have the score minus infinity: they have the first cell, below those of the grid.
        rows: The relation of the rows.
    """
    score = column("score")
    if grid is None:
        block, cell = exp.cast(exp.Literal.number(0), exp.DataType.Type.UTINYINT), score
        return exp.select("*", exp.alias_(block, CELL[0]), exp.alias_(cell, CELL[1])).from_(rows)
    number, count = piecewise_cells(score, grid.edges, grid.sizes), grid.cells
    if missed:
        above = exp.Add(this=exp.paren(number), expression=exp.Literal.number(1))
        number, count = exp.Coalesce(this=above, expressions=[exp.Literal.number(0)]), count + 1
    value, whole_cell = exp.alias_(number, "whole_cell", copy=False), column("whole_cell")
    split = (block_of(whole_cell, count), cell_in_block(whole_cell))
    columns = (exp.alias_(each, name) for each, name in zip(split, CELL, strict=True))
    numbered = exp.select("*", value, copy=False).from_(rows, copy=False).subquery("scored_in_cells", copy=False)
    return exp.select("*", *columns, copy=False).from_(numbered, copy=False)
