"""Cells of scores are asked for once: what coarser groups have is put together from finer ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from pipeline.base.interrupts import StopRequest
from pipeline.base.sql_files import expand, load
from pipeline.engines.duckdb import DuckDB
from pipeline.engines.engine import Resources
from pipeline.metrics.curves.trapezoidal_area import CellGrid
from pipeline.plan.rows import IN_CELLS, SCORED, FirstCells, rows_in_cells

if TYPE_CHECKING:
    from pathlib import Path

    import sqlglot.expressions as exp

GRID = CellGrid((0.0, 1.0), (5,))


class Watched(DuckDB):
    """An engine that counts what it is asked."""

    asked = 0

    def fetch(self, query: exp.Query, *args: object, **keys: object) -> pl.DataFrame:
        """Count and run a query."""
        self.asked += 1
        return super().fetch(query, *args, **keys)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["areas/cells", "areas/weighted_cells", "areas/extremes"])
def test_cells_of_coarser_groups_are_those_that_the_engine_would_return(tmp_path: Path, name: str) -> None:
    rows = pl.DataFrame(
        {
            "g": ["a", None, "b", "a", None, "b", "a"] * 3,
            "h": [1.0, -0.0, 0.0] * 7,
            "score": [number / 21 for number in range(21)],
            "label": [number % 3 == 0 for number in range(21)],
            "weight": [number / 8 for number in range(21)],
        }
    )
    with Watched(Resources(), [tmp_path], StopRequest()) as engine:
        engine.fill(SCORED, [rows])
        engine.define(IN_CELLS, rows_in_cells(GRID, missed=False))
        cells, query = FirstCells(engine), load(name)
        cells.fetch(query, ("g", "h"), GRID)
        asked = engine.asked
        coarser = {names: cells.fetch(query, names, GRID) for names in ((), ("g",), ("h",))}
        assert engine.asked == asked
        for names, merged in coarser.items():
            assert_frame_equal(merged, engine.fetch(expand(query, names)), check_exact=True)
        asked = engine.asked
        cells.fetch(query, (), CellGrid((0.0, 1.0), (6,)))
        assert engine.asked == asked + 1
