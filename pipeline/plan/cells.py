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

from ..errors import Note
from ..metrics.calibration.bins import Cells
from ..metrics.curves.trapezoidal_area import rounded_outwards
from ..queries.dialect import column, double
from ..queries.kept import kept, part
from ..queries.load import expand, load
from ..records import dataclass
from ..sources.bins import ProbabilityCells
from ..tables.columns import REPLICATE, THRESHOLD, add_up
from ..tables.schemas import COUNT_TABLE, GROUPING
from .count_tables import BIN
from .counts import Query, in_exact_bins
from .nodes import Phase, Statement

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ..engines.engine import Engine, Fetch
    from ..metrics.calibration.bins import Floats
    from ..sources.bins import Grid
    from .count_tables import CountTables
    from .nodes import Progress
    from .plan import Unfit


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
    """The cells of a grouping, put together from the cells of a finer one; None where none were counted."""
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


# A node that counts rows and adds up their probabilities by cells of the probability, for tables of calibration.


ROWS = "probabilities"  # the relation of the rows
CELL = "cell"
LOWER, UPPER = "cell_lower", "cell_upper"  # keys of the count table: edges of a cell, the same if it is one score
MOST_SCORES = 250_000  # rows that have a cell for every score
MOST_SUMS = 1 << 21  # cells of all groups and replicates
FINEST, COARSEST = 1024, 32


@dataclass(frozen=True)
class ProbabilitySums:
    """Sums over rows with a score from 0 to 1, by group, replicate and cell of the score.

    Few rows have a cell for every score. Of many rows cells are fixed intervals, so that sums add up over files; these
    are coarser where there are many groups or replicates.

    Attributes:
        into: The count table, with the edges of the cell as keys `LOWER` and `UPPER`.
        name: The query, which groups by `cell`.
        rows: The query of the rows, with `probability`.
        columns: Its sums.
        bins: Bins of equal width that cells must not cross.
        width: Widest bounds of a mean score that cells of the counts may leave.
        unfit: Says why the rows that were counted are no probabilities, in no group; None: in some group they are.
        replicated: Whether rows fall into replicates; else all are in replicate 0.
        beside: As for `counts.Query`.
        crossed: Likewise.
        replicated_like: Count tables whose replicates rows fall into: of both parents where they have two.
    """

    phase: ClassVar[Phase] = Phase.AREAS
    into: str
    name: str
    rows: exp.Query
    columns: tuple[str, ...]
    bins: int
    width: float
    unfit: Callable[[CountTables], Unfit | None]
    replicated: bool = False
    beside: tuple[str, ...] = ()
    crossed: tuple[str, ...] = ()
    replicated_like: tuple[str, ...] = (COUNT_TABLE,)

    def run(self, engine: Engine, progress: Progress) -> None:
        """Count, unless no group has probabilities."""
        if progress.counts[COUNT_TABLE].is_empty():
            return
        unfit = progress.counts.say(self.unfit)
        if unfit is not None:
            if not unfit.is_obvious:
                words = f"{self.into} is left out: {unfit.reason}; {self.into} = true names the first"
                progress.warnings.append(Note(words))
            return
        cells = self._cells(progress.counts)
        of_cells = {segment: _of_cells(counted, segment, cells) for segment, counted in progress.cells.items()}
        if of_cells and all(map(self._are_narrow, of_cells.values(), of_cells)):
            for segment, sums in of_cells.items():
                progress.counts.add(self.into, segment, sums, (LOWER, UPPER), self.columns)
            return
        engine.define(ROWS, self._in_cells(cells))
        for segment in progress.counts.segments(additive=True):
            sums = _with_edges(engine.fetch(self._query(segment)), cells)
            progress.counts.add(self.into, segment, sums, (LOWER, UPPER), self.columns, self.crossed)

    def _are_narrow(self, sums: pl.DataFrame, segment: Sequence[str]) -> bool:
        """Whether cells bound the mean score of every group closely."""
        n = (pl.col("n_positive") + pl.col("n_negative")).alias("n")
        of_groups = add_up(sums.with_columns(n), segment, ["n", "scores_open"])
        return are_narrow(of_groups.with_columns(n_outside=0), ["scores_open"], self.width)

    def _cells(self, counts: CountTables) -> ProbabilityCells | None:
        """The cells; None: every score is one."""
        table = counts[COUNT_TABLE]
        of_grouping = table.filter(pl.col(GROUPING.name) == table[GROUPING.name].first())
        if of_grouping.select(pl.sum_horizontal("n_positive", "n_negative").sum()).item() <= MOST_SCORES:
            return None
        groups = table.select(table.columns[: table.columns.index(REPLICATE)]).n_unique()
        replicates = math.prod(counts[name][REPLICATE].n_unique() for name in self.replicated_like)
        most = MOST_SUMS // (groups * replicates)
        fineness = FINEST
        while fineness > COARSEST and ProbabilityCells(fineness, self.bins).count > most:
            fineness //= 2
        return ProbabilityCells(fineness, self.bins)

    def _in_cells(self, cells: ProbabilityCells | None) -> exp.Query:
        """The rows with the number of their cell; without cells, with their score as cell, -0 as 0."""
        return kept(("in_cells", part(self.rows), cells), lambda: self._made_in_cells(cells))

    def _made_in_cells(self, cells: ProbabilityCells | None) -> exp.Query:
        score, first_bin, rows = column("probability"), column("first_bin"), self.rows.subquery("probabilities_alone")
        if cells is None:
            return exp.select(exp.Star(), exp.alias_(score + double(0.0), CELL)).from_(rows)
        in_bins = exp.select(exp.Star(), exp.alias_(cells.first_bin(score), first_bin.name)).from_(rows)
        in_cells = exp.select(exp.Star(), exp.alias_(cells.number(first_bin, score), CELL))
        return in_cells.from_(in_bins.subquery("in_bins"))

    def _query(self, segment: Sequence[str]) -> exp.Query:
        return expand(load(self.name), (*self.beside, *segment), zero=[] if self.replicated else [REPLICATE])

    def statements(self, by: Sequence[str]) -> Iterator[Statement]:
        """The rows in the finest cells, and the sums."""
        cells = ProbabilityCells(FINEST, self.bins)
        yield Statement(f"relation {ROWS}, of many rows", self._in_cells(cells), ROWS)
        yield Statement(f"counts {self.into}", self._query(by))


def _of_cells(counted: pl.DataFrame, segment: Sequence[str], cells: ProbabilityCells | None) -> pl.DataFrame:
    """Sums by cell of the probability, from those narrower cells of scores that lie in it or begin in it.

    The edges of a cell are the lowest and the highest score of all groups in it, so that they add up over groups.
    """
    inside = counted.filter((pl.col(LOWEST) >= 0) & (pl.col(HIGHEST) <= 1))
    moments = as_probabilities(inside).moments()
    sums, values = with_sums(inside, moments), [*SIDES, *moments]
    edges = sums.group_by(BIN).agg(pl.col(LOWEST).min().alias(LOWER), pl.col(HIGHEST).max().alias(UPPER)).sort(BIN)
    if cells is not None:
        number = pl.Series(CELL, cells.numbers(edges[LOWER].to_numpy()))
        edges = edges.with_columns(pl.col(LOWER).min().over(number), pl.col(UPPER).max().over(number))
    return add_up(sums.join(edges, on=BIN), [*segment, REPLICATE, LOWER, UPPER], values)


def _with_edges(sums: pl.DataFrame, cells: ProbabilityCells | None) -> pl.DataFrame:
    """The sums with the edges of their cell in its place."""
    if cells is None:
        edges = (sums[CELL].to_numpy(), sums[CELL].to_numpy())
    else:
        edges = cells.edges(sums[CELL].cast(pl.Int64).to_numpy())
    series = [pl.Series(name, values, dtype=pl.Float64) for name, values in zip((LOWER, UPPER), edges, strict=True)]
    return sums.drop(CELL).with_columns(*series)
