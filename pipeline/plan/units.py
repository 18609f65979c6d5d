"""The node of a table with a row per unit, in which the units of every group add up to its areas."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Protocol

import polars as pl
import sqlglot.expressions as exp

from ..queries.dialect import column
from ..queries.kept import kept
from ..queries.load import expand, load
from ..records import dataclass
from .nodes import Phase, Statement
from .score_cells import rows_in_cells
from .unit_cells import GROUPS, IN_CELLS, INFLUENCE, INFLUENCES, UNIT_ROWS, UnitCells
from .unit_sums import AREAS, UNIT, SummedUnits, sums_of_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ..engines.engine import Engine
    from .nodes import Progress
    from .unit_sums import GroupCurves

MOST_ROWS_IN_ORDER = 250_000


class MakesTable(Protocol):
    """Makes the rows of one grouping from its units."""

    def __call__(self, units: SummedUnits, curves: GroupCurves, /) -> pl.DataFrame:
        """Make the rows."""
        ...


@dataclass(frozen=True)
class Units:
    """A table with a row per group and unit, from the rows once more.

    Few rows are put in order here; of more the engine adds up what cells of scores add to the areas.

    Attributes:
        into: The result table.
        rows: The rows: the grouping columns, `unit`, `score`, `label` and `weight`.
        by: All grouping columns.
        weighted: Whether rows have weights.
        missed: Whether rows may have the score minus infinity.
        span: Lowest and highest score that the files promise; only a hint.
        curves: What is known of the groups of every grouping, from the result tables.
        function: Makes the table.
    """

    phase: ClassVar[Phase] = Phase.AFTER_RESULTS
    into: str
    rows: exp.Query
    by: tuple[str, ...]
    weighted: bool
    missed: bool
    span: tuple[float, float] | None
    curves: Callable[[Mapping[str, pl.DataFrame]], Sequence[GroupCurves]]
    function: MakesTable

    def run(self, engine: Engine, progress: Progress) -> None:
        """Replace the table, which has no row so far."""
        engine.define(UNIT_ROWS, self.rows)
        curves = self.curves(progress.tables)
        summed = self._in_order(engine, curves) if self._fits(engine, curves) else self._in_cells(engine, curves)
        tables = [self.function(units, of_grouping) for units, of_grouping in zip(summed, curves, strict=True)]
        schema = progress.tables[self.into].schema
        table = pl.concat(tables, how="diagonal_relaxed") if tables else progress.tables[self.into]
        lacking = [pl.lit(None, dtype=dtype).alias(name) for name, dtype in schema.items() if name not in table.columns]
        progress.tables[self.into] = table.with_columns(lacking)

    @staticmethod
    def _fits(engine: Engine, curves: Sequence[GroupCurves]) -> bool:
        most = min(MOST_ROWS_IN_ORDER, engine.most_in_order or MOST_ROWS_IN_ORDER)
        return max((of_grouping.rows for of_grouping in curves), default=0) <= most

    def _in_order(self, engine: Engine, curves: Sequence[GroupCurves]) -> Iterator[SummedUnits]:
        blocks = list(engine.stream(self._selected()))
        rows = pl.concat(blocks) if blocks else engine.fetch(self._selected().limit(0))
        for of_grouping in curves:
            yield sums_of_rows(rows, of_grouping, weighted=self.weighted)

    def _in_cells(self, engine: Engine, curves: Sequence[GroupCurves]) -> Iterator[SummedUnits]:
        for of_grouping in curves:
            yield UnitCells(engine, of_grouping, self.weighted, self.missed, self.span).sums()

    def _selected(self) -> exp.Select:
        names = (*self.by, UNIT, "score", "label", *(["weight"] if self.weighted else []))
        return kept(("unit rows", names), lambda: exp.select(*map(column, names)).from_(UNIT_ROWS))

    def statements(self, by: Sequence[str]) -> Iterator[Statement]:
        """The rows, and what is asked of them where they are many; with every score a cell."""
        in_cells = rows_in_cells(None, missed=self.missed, rows=UNIT_ROWS)
        weighted = "weighted_" if self.weighted else ""
        title = f"rows for table {self.into}, while there are at most {MOST_ROWS_IN_ORDER:,}"
        yield Statement(f"relation {UNIT_ROWS}", self.rows, UNIT_ROWS)
        yield Statement(title, self._selected(), function=sums_of_rows)
        yield Statement(f"relation {IN_CELLS} of more rows", in_cells, IN_CELLS)
        cells = expand(load(f"areas/{weighted}cells_of_units"), by)
        yield Statement(f"cells for table {self.into}", cells, function=UnitCells.sums)
        yield Statement(f"relation {GROUPS}, made of the results", _no_group(by), GROUPS)
        yield Statement(f"relation {INFLUENCES}, made of the cells", _no_influence(weighted=self.weighted), INFLUENCES)
        yield Statement(f"units for table {self.into}", expand(load(f"areas/{weighted}units"), by))


def _no_group(by: Sequence[str]) -> exp.Select:
    """The relation of groups without a row."""
    types = {"place": "BIGINT", "first_step": "BIGINT", "lowest_score": "DOUBLE"}
    return exp.select(*map(column, by), *_nulls(types)).from_(UNIT_ROWS).where(exp.false())


def _no_influence(*, weighted: bool) -> exp.Select:
    """The relation of influences without a row."""
    types = {"step": "BIGINT"} | {f"{INFLUENCE}{area}": "DOUBLE" if weighted else "BIGINT" for area in AREAS}
    return exp.select(*_nulls(types)).where(exp.false())


def _nulls(types: Mapping[str, str]) -> list[exp.Expr]:
    return [exp.alias_(exp.cast(exp.null(), sql_type), name) for name, sql_type in types.items()]
