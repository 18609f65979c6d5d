"""Nodes of one scan for everything: counts in narrow cells of scores, whose lowest and highest scores bound all sums.

The cells are fine enough for areas, and no threshold and no edge of a bin of probabilities cuts through one: cells that
one does cut are counted again in parts. So counts by threshold and by bin are sums of cells, exactly, and what else is
added up of scores is known as closely as the cells are narrow.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import polars as pl
import sqlglot.expressions as exp

from ..metrics.calibration.cells import Cells
from ..metrics.curves.cell_grids import rounded_outwards
from ..queries.dialect import column
from ..records import dataclass
from ..tables.sweep import REPLICATE, THRESHOLD, add_up
from .count_tables import BIN
from .counts import Query, in_exact_bins
from .nodes import Phase

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ..engines.engine import Engine, Fetch
    from ..metrics.calibration.cells import Floats
    from ..sources.bins import Grid
    from .nodes import Progress, Statement

FEWEST_CELLS, MOST_CELLS = 1 << 14, 65_533  # the most, with one below and one above all, that a small integer counts
CELLS = 4  # by the width of bounds: mostly they are fine enough
MOST_OF_GROUPS = 1 << 22  # cells of all groups, but for those that thresholds need
SIDES = ("n_positive", "n_negative")
LOWEST, HIGHEST = "lowest", "highest"
LOSSES_OPEN = ("first_open", "squared_errors_open")
_PLACE, _MOST_NUMBERS = "place_of_cell", 1 << 32
_MERGED = {LOWEST: pl.Expr.min, HIGHEST: pl.Expr.max}


@dataclass(frozen=True)
class Fineness:
    """How fine cells are wanted.

    Attributes:
        thresholds: The thresholds.
        bins: Bins of equal width from 0 to 1 that no cell may be in two of.
        span: Lowest and highest score, of different finite values; a hint.
        width: Widest bounds that are accepted.
    """

    thresholds: Grid
    bins: int
    span: tuple[float, float]
    width: float

    @classmethod
    def of(cls, thresholds: Grid, bins: int, span: tuple[float, float] | None, width: float) -> Fineness | None:
        """The same over rounded ends; None where it is not known that scores differ, or they do too much."""
        low, high = (0.0, 0.0) if span is None else rounded_outwards(*span)
        return cls(thresholds, bins, (low, high), width) if 0 < high - low < math.inf else None

    def grid(self, groups: int = 1) -> Grid:
        """The thresholds, the edges of the bins, and cells; a few groups more have the same."""
        of_group = MOST_OF_GROUPS >> max(groups - 1, 0).bit_length()
        most = min(MOST_CELLS, max(FEWEST_CELLS, math.ceil(CELLS / self.width)), of_group)
        return self.thresholds.refined(self.span, self.bins, most)


@dataclass(frozen=True, kw_only=True)
class SweptCells(Query):
    """A counting query by cells, of rows without weights and replicates; its counts by threshold are sums of cells.

    Attributes:
        fineness: How fine the cells are, if there are few groups.
    """

    fineness: Fineness

    def run(self, engine: Engine, progress: Progress) -> None:
        """Count in cells, and keep these for others."""
        thresholds = self.fineness.thresholds
        edges = pl.Series(THRESHOLD, [None, *thresholds.thresholds], dtype=pl.Float64)
        for segment in progress.counts.segments(additive=True):
            cells = self._cells(engine, segment)
            threshold = edges.gather(thresholds.bins(cells[LOWEST].to_numpy()))
            counts = add_up(cells.with_columns(threshold), [*segment, REPLICATE, THRESHOLD], SIDES)
            progress.cells[segment] = cells
            progress.counts.add(self.into, segment, counts, self.keys, self.columns)

    def _cells(self, engine: Engine, segment: Sequence[str]) -> pl.DataFrame:
        """Counts, lowest and highest score by group and cell, or part of a cell, in rising order."""
        if self.sweep is None:
            message = "cells are those of a sweep"
            raise ValueError(message)
        grid = self.fineness.grid(_number_of_groups(engine, self.sweep.into, segment))
        sweep = replace(self.sweep, grid=grid)
        engine.define(sweep.into, sweep.by_cell())

        def settle(fetch: Fetch, counts: pl.DataFrame) -> pl.DataFrame:
            scored = counts.filter(pl.col(BIN).is_not_null())
            return in_exact_bins(self, sweep, grid, segment, engine, fetch, scored, within_cells=True)

        counted = engine.count(self.tree(segment), self.params, settle, repr((grid.thresholds, "cells")))
        return merged_cells(counted, segment)


def _number_of_groups(engine: Engine, relation: str, segment: Sequence[str]) -> int:
    names = [column(name) for name in segment]
    groups = exp.select(*names).from_(relation).group_by(*(name.copy() for name in names))
    return engine.fetch(groups).height if segment else 1


def merged_cells(cells: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """The cells of groups, which lie in several files or finer groups, together in each group, in rising order.

    Args:
        cells: Counts, lowest and highest score by cell.
        names: Columns that identify a group.
    """
    # one whole number for group and cell: to sort millions of texts takes longer than to count
    keys, values = [*names, REPLICATE], [*SIDES, LOWEST, HIGHEST]
    groups = cells.select(keys).unique().sort(keys, nulls_last=True).with_row_index(_PLACE)
    number = pl.col(_PLACE).cast(pl.Int64) * _MOST_NUMBERS + pl.col(BIN)
    numbered = cells.join(groups, on=keys, nulls_equal=True).select(number, BIN, *values)
    in_order = numbered.sort(_PLACE)
    if (in_order[_PLACE].diff() == 0).any():
        merged = [_MERGED.get(name, pl.Expr.sum)(pl.col(name)) for name in values]
        in_order = in_order.group_by(_PLACE, maintain_order=True).agg(pl.col(BIN).first(), *merged)
    of_cells = groups.select(pl.col(keys).gather(in_order[_PLACE] // _MOST_NUMBERS))
    return of_cells.hstack(in_order.drop(_PLACE))


def cells_of(counted: Mapping[tuple[str, ...], pl.DataFrame], names: Sequence[str]) -> pl.DataFrame | None:
    """The cells of a grouping, put together from those of a finer one; None where none were counted."""
    finer = [segment for segment in counted if set(names) <= set(segment)]
    if not finer:
        return None
    segment = min(finer, key=len)
    return counted[segment] if segment == tuple(names) else merged_cells(counted[segment], names)


def as_probabilities(cells: pl.DataFrame) -> Cells:
    """Cells of scores from 0 to 1 as arrays."""
    return Cells(*(cells[name].cast(pl.Float64).to_numpy() for name in (*SIDES, LOWEST, HIGHEST)))


def with_sums(cells: pl.DataFrame, sums: Mapping[str, Floats]) -> pl.DataFrame:
    """Cells with sums over their rows, as decimals, which add up exactly."""
    return cells.with_columns(pl.Series(name, values).cast(pl.Decimal(38, 15)) for name, values in sums.items())


def are_narrow(sums: pl.DataFrame, left: Sequence[str], width: float) -> bool:
    """Whether means are known within a width in all groups of probabilities.

    Args:
        sums: One row per group, with `n` and `n_outside`.
        left: Columns of half of what is open of sums.
        width: The width.
    """
    is_wide = 2 * pl.max_horizontal(left).cast(pl.Float64) > width * pl.col("n")
    return sums.filter((pl.col("n_outside") == 0) & is_wide).is_empty()


@dataclass(frozen=True)
class LossesOfCells:
    """Sums of the log-likelihood and of squared errors, from cells where these bound them closely, else by a query.

    Attributes:
        query: What adds them up row by row, into the table that they go to.
        width: The widest bounds of a mean.
    """

    phase: ClassVar[Phase] = Phase.COUNTS
    query: Query
    width: float

    @property
    def into(self) -> str:
        """The count table."""
        return self.query.into

    def run(self, engine: Engine, progress: Progress) -> None:
        """Add up."""
        of_cells = {segment: _losses(cells, segment) for segment, cells in progress.cells.items()}
        if not all(are_narrow(losses, LOSSES_OPEN, self.width) for losses in of_cells.values()):
            self.query.run(engine, progress)
            return
        for segment, losses in of_cells.items():
            progress.counts.add(self.into, segment, losses, (), self.query.columns)

    def statements(self, by: Sequence[str]) -> Iterator[Statement]:
        """The query."""
        for statement in self.query.statements(by):
            yield replace(statement, title=f"{statement.title}, where cells leave wider bounds than {self.width:g}")


def _losses(cells: pl.DataFrame, segment: Sequence[str]) -> pl.DataFrame:
    """The columns of the table of likelihoods by group; of scores outside [0, 1] only their number."""
    n = pl.sum_horizontal(SIDES)
    is_inside = (pl.col(LOWEST) >= 0) & (pl.col(HIGHEST) <= 1)
    counted = cells.with_columns(n.alias("n"), pl.when(is_inside).then(0).otherwise(n).alias("n_outside"))
    inside = counted.filter(is_inside)
    sums = as_probabilities(inside).losses()
    every = pl.concat([with_sums(inside, sums), counted.filter(~is_inside)], how="diagonal")
    total = add_up(every, [*segment, REPLICATE], ["n", "n_outside", *sums])
    return total.with_columns(pl.col("n").alias("weights"), pl.col("n").alias("squares"), weighted=pl.col("first"))
