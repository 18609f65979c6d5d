"""Nodes that count: queries of sql/ with exact bins, and pure functions where SQL cannot say it portably."""

from __future__ import annotations

import math
from dataclasses import field, replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar

import polars as pl
import sqlglot.expressions as exp

from ..base.columns import REPLICATE, THRESHOLD, add_up
from ..base.dialect import column, double, is_finite, kept, part
from ..base.errors import DataError, Note
from ..base.records import dataclass
from ..base.schemas import COUNT_TABLE
from ..base.sql_files import expand, load
from ..metrics.calibration.bins import Cells
from ..metrics.curves.trapezoidal_area import rounded_outwards
from ..sources.bins import ProbabilityCells
from .count_tables import BIN, LOWER, SIDES, UPPER, moments_of_scores, of_first_grouping
from .nodes import Parameters, Phase, Statement, frames_of, shown_reads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ..engines.engine import Engine, Fetch
    from ..metrics.calibration.bins import Floats
    from ..sources.bins import Grid
    from .count_tables import CountTables, Unfit
    from .nodes import Progress


MAX_DISTINCT = 100_000


@dataclass(frozen=True)
class Sweep:
    """The row relation with a bin for every row: its arithmetic cell, or the score itself without a grid.

    Attributes:
        into: Logical name of the relation that swept queries read.
        rows: Query of the rows, without a bin.
        score: The column that is compared with the thresholds; a row in which it is not finite has no bin.
        grid: The thresholds; None: every distinct score is one, and the bin is the score.
        exact: Whether every row gets its bin by comparisons: for few rows, or where rows of one bin are merged.
        replicated: Whether rows fall into replicates; else all are in replicate 0.
        missed: Whether rows without a bin count as below every threshold; else they do not count.
    """

    phase: ClassVar[Phase] = Phase.TRANSFORMS
    into: str
    rows: exp.Query
    score: str
    grid: Grid | None
    exact: bool = False
    replicated: bool = True
    missed: bool = False

    def run(self, engine: Engine, progress: Progress) -> None:  # noqa: ARG002 - all nodes are called alike
        """Define the relation."""
        engine.define(self.into, self.by_cell())

    def statements(self, by: Sequence[str]) -> Iterator[Statement]:  # noqa: ARG002 - as `run`
        """The query that defines it."""
        yield Statement(f"relation {self.into}", self.by_cell(), self.into)

    def by_cell(self) -> exp.Query:
        """Rows with their arithmetic cell as bin; without a grid the score itself, -0 as 0."""
        key = ("cells", part(self.rows), self.score, self.grid, self.exact)
        return kept(key, self._by_cell)

    def _by_cell(self) -> exp.Query:
        score = column(self.score)
        if self.exact and self.grid is not None:
            return self._with_bin(self.grid.exact(score))
        if self.grid is not None:
            return self.grid.in_cells(self.rows, score)
        return self._with_bin(exp.Case().when(is_finite(score), score.copy() + double(0)))

    def exactly(self, cells: list[int], *, within_cells: bool = False) -> exp.Select:
        """Rows of the given cells with their exact bin, by comparisons; within cells, with the sum of cell and bin."""
        if self.grid is None:
            message = "without a grid every cell is exact"
            raise ValueError(message)
        score = column(self.score)
        cell, value = self.grid.cell(score), self.grid.exact(score)
        if within_cells:
            value = exp.Add(this=exp.cast(cell.copy(), "INT"), expression=value)
        return self._with_bin(value).where(cell.isin(*cells))

    def _with_bin(self, value: exp.Expr) -> exp.Select:
        return exp.select(exp.Star(), exp.alias_(value, BIN, quoted=True)).from_(self.rows.subquery("canonical_rows"))


@dataclass(frozen=True)
class Sums:
    """Sums over the scored rows of a sweep, which its query has beside its counts: one scan makes both.

    Attributes:
        into: The count table they add to, without thresholds.
        columns: Their names in the query; they must not be NULL where a row has a bin.
        crossed: As for `Query`.
    """

    into: str
    columns: tuple[str, ...]
    crossed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Query:
    """One counting query of sql/.

    Attributes:
        name: `<stage>/<file>`.
        params: Values of its parameters.
        columns: The counts of its count table; those that the query lacks are 0.
        keys: Columns of its count table beside grouping, replicate and threshold.
        sweep: The row relation that it reads and by whose bin it groups; with a grid its query must also select the
            lowest and the highest score of a bin, as `lowest` and `highest`. None: it knows no thresholds.
        into: The count table it adds to; `counts` is the one that is saved.
        beside: Keys that it groups by as by the grouping columns, where `segment` stands.
        crossed: Count tables by the second parent of rows that have two, and by the intersections of both; the query
            then has the column `second_replicate`, which `beside` names.
        additive: Whether counts of a grouping are sums of those of a finer one; if not, as for distinct values, every
            grouping is counted by itself.
        sums: What else its query adds up, for another count table; only with a sweep that has a grid.
        of_scores: Makes the same of the number of rows of each score, where these were counted; None: nothing does.
    """

    phase: ClassVar[Phase] = Phase.COUNTS
    name: str
    params: Parameters = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    sweep: Sweep | None = None
    into: str = COUNT_TABLE
    beside: tuple[str, ...] = ()
    crossed: tuple[str, ...] = ()
    additive: bool = True
    sums: Sums | None = None
    of_scores: Callable[[CountTables, Sequence[str]], pl.DataFrame] | None = None

    def tree(self, segment: Sequence[str]) -> exp.Query:
        """The query by some grouping columns."""
        unreplicated = self.sweep is not None and not self.sweep.replicated
        return expand(load(self.name), (*self.beside, *segment), zero=[REPLICATE] if unreplicated else [])

    def run(self, engine: Engine, progress: Progress) -> None:
        """Count every grouping that is no sum of others."""
        if self.sweep is not None:
            progress.by_score = self.sweep.grid is None and not self.sweep.replicated
        for segment in progress.counts.segments(additive=self.additive):
            if self.of_scores is not None and progress.by_score:
                counts = self.of_scores(progress.counts, segment)
            else:
                counts = self._counts(engine, segment)
            progress.counts.add(self.into, segment, counts, self.keys, self.columns, self.crossed)
            if self.sums is not None:
                scored = counts.filter(pl.col(self.sums.columns[0]).is_not_null()).drop(THRESHOLD)
                progress.counts.add(self.sums.into, segment, scored, (), self.sums.columns, self.sums.crossed)

    def _counts(self, engine: Engine, segment: Sequence[str]) -> pl.DataFrame:
        """The counts by some grouping columns, and by threshold in a sweep."""
        tree, sweep = self.tree(segment), self.sweep
        if sweep is None:
            return engine.fetch(tree, self.params)
        if (grid := sweep.grid) is None:
            return _with_scores_as_thresholds(engine.fetch(tree, self.params), segment, missed=sweep.missed)
        settle = partial(_settled, self, sweep, grid, segment, engine)
        return engine.count(tree, self.params, settle, repr((grid.thresholds, grid.boundary)))

    def statements(self, by: Sequence[str]) -> Iterator[Statement]:
        """The query by all grouping columns."""
        yield Statement(f"counts {self.into}", self.tree(by), params=self.params)


@dataclass(frozen=True)
class CountFunction:
    """Counts that a pure function makes of rows, for what SQL cannot say portably.

    Attributes:
        name: For messages.
        reads: The rows it needs, by name.
        function: Turns the frames and the grouping columns into counts per group, replicate and value of the keys.
        columns: The counts it makes.
        keys: Columns of its count table beside grouping, replicate and threshold.
        into: The count table it adds to; `counts` is the one that is saved.
        crossed: As for `Query`; with the first of them as `into`, nothing is counted by the first parent.
    """

    phase: ClassVar[Phase] = Phase.COUNTS
    name: str
    reads: Mapping[str, exp.Query]
    function: Callable[[Mapping[str, pl.DataFrame], Sequence[str]], pl.DataFrame]
    columns: tuple[str, ...]
    keys: tuple[str, ...] = ()
    into: str = COUNT_TABLE
    crossed: tuple[str, ...] = ()

    def run(self, engine: Engine, progress: Progress) -> None:
        """Count every grouping that is no sum of others."""
        frames = frames_of(engine, self.reads)
        for segment in progress.counts.segments(additive=True):
            counts = self.function(frames, segment)
            progress.counts.add(self.into, segment, counts, self.keys, self.columns, self.crossed)

    def statements(self, by: Sequence[str]) -> Iterator[Statement]:  # noqa: ARG002 - all nodes are called alike
        """The queries of the rows."""
        yield from shown_reads(self.reads, f"counts {self.into}", self.function)


def _settled(
    query: Query, sweep: Sweep, grid: Grid, segment: Sequence[str], engine: Engine, fetch: Fetch, counts: pl.DataFrame
) -> pl.DataFrame:
    """Counts per cell → counts per bin; rows without a score count below all thresholds, if they count at all.

    Their sums are NULL, so that they are in none.
    """
    with_score = counts.filter(pl.col(BIN).is_not_null())
    edges = pl.Series(THRESHOLD, [None, *grid.thresholds], dtype=pl.Float64)
    binned = with_score if sweep.exact else in_exact_bins(query, sweep, grid, segment, engine, fetch, with_score)
    binned = binned.with_columns(edges.gather(binned[BIN]).alias(THRESHOLD))
    if not sweep.missed:
        return binned
    no_sum = [THRESHOLD, *(query.sums.columns if query.sums is not None else ())]
    below = counts.filter(pl.col(BIN).is_null()).with_columns(pl.lit(None).alias(name) for name in no_sum)
    return pl.concat([binned, below.select(binned.columns).cast(binned.schema)])


def in_exact_bins(
    query: Query,
    sweep: Sweep,
    grid: Grid,
    segment: Sequence[str],
    engine: Engine,
    fetch: Fetch,
    counts: pl.DataFrame,
    *,
    within_cells: bool = False,
) -> pl.DataFrame:
    """Counts with bins for cells; cells that a threshold cuts through are counted again by comparisons.

    Within cells the sum of cell and bin stands for the bin: neither falls while scores rise, so that it is the same
    only where both are.
    """
    bins = grid.bins(counts["lowest"].to_numpy())
    cut = counts.filter(pl.Series(grid.bins(counts["highest"].to_numpy()) != bins, dtype=pl.Boolean))
    cells = sorted(set(cut[BIN].to_list()))
    exact = pl.Series("_exact", bins, dtype=pl.Int64) + (pl.col(BIN).cast(pl.Int64) if within_cells else 0)
    uncut = counts.with_columns(exact).filter(~pl.col(BIN).is_in(cells))
    binned = uncut.drop(BIN).rename({"_exact": BIN})
    if not cells:
        return binned
    relation = f"{sweep.into}_again"
    engine.define(relation, sweep.exactly(cells, within_cells=within_cells))
    recounted = fetch(_reading(query.tree(segment), sweep.into, relation))
    return binned.vstack(recounted.with_columns(pl.col(BIN).cast(pl.Int64)).select(binned.columns))


def _reading(tree: exp.Query, name: str, other: str) -> exp.Query:
    """The same query over another relation of the same columns."""
    tree = tree.copy()
    for table in list(tree.find_all(exp.Table)):
        if table.name == name:
            table.replace(exp.to_table(other).as_(name))
    return tree


def _with_scores_as_thresholds(counts: pl.DataFrame, segment: Sequence[str], *, missed: bool) -> pl.DataFrame:
    """Counts per distinct score, which is a threshold; rows without a score are below all, if they count at all.

    Raises:
        DataError: a group has too many.
    """
    scored = counts.filter(pl.col(BIN).is_not_null()) if counts[BIN].null_count() else counts
    largest: object = scored.height
    if scored.height > MAX_DISTINCT:
        sizes = (
            scored.group_by(segment).agg(pl.col(BIN).n_unique()) if segment else scored.select(pl.col(BIN).n_unique())
        )
        largest = sizes[BIN].max()
    if isinstance(largest, int) and largest > MAX_DISTINCT:
        message = f'thresholds = "distinct": one group has {largest:,} distinct scores, the limit is {MAX_DISTINCT:,}'
        raise DataError(message, remedy="Give thresholds = { start = …, stop = …, count = 1000 }.")
    used = counts if missed else scored
    return used.hstack([used[BIN].cast(pl.Float64).alias(THRESHOLD)])


# Nodes in which pure functions say what SQL cannot say portably, over rows that need not fit into memory together.
#
# Rows are handed over in batches. A batch is a range of a key of whole numbers where it is known how many rows its
# values have: of files sorted by the key only the rows of a batch are read. Else a batch is a bucket of a hash.


BATCH_ROWS = 3_000_000
RANKED = "ranked"  # the relation of rows with their ranks, where workers find them


@dataclass(frozen=True)
class Transform:
    """A relation that a pure function makes of rows: maximum matching, for example.

    Attributes:
        into: Logical name of the relation.
        reads: The rows it needs, by name; each has the columns of the key.
        key: Columns within whose values the function works, for example document or series; rows of one key stay
            together.
        function: Turns the frames of a batch into the rows of the relation, with the same columns and types for any
            batch, empty ones too.
        rows: Rows of all frames together, as far as footers tell.
        sizes: Approximate `n_rows` for each value of the key, which must be a single column of integers: batches are
            then ranges of the key with about as many rows each. None: batches are made by hash.
    """

    phase: ClassVar[Phase] = Phase.TRANSFORMS
    into: str
    reads: Mapping[str, exp.Query]
    key: tuple[str, ...]
    function: Callable[[Mapping[str, pl.DataFrame]], pl.DataFrame]
    rows: int
    sizes: exp.Query | None = None

    def run(self, engine: Engine, progress: Progress) -> None:  # noqa: ARG002 - all nodes are called alike
        """Define the relation."""
        engine.transform(self.into, self.reads, self.key, self.function, self.batches(engine))

    def batches(self, engine: Engine) -> Iterator[pl.DataFrame]:
        """Rows of the relation, batch by batch, at least one."""
        for condition in self._conditions(engine):
            reads = {name: _within(query, condition) for name, query in self.reads.items()}
            yield self.function(frames_of(engine, reads))

    def _conditions(self, engine: Engine) -> Iterator[exp.Expr | None]:
        """The condition of every batch; None: one batch has all rows."""
        n_batches = max(1, -(-self.rows // BATCH_ROWS))
        if n_batches == 1:
            yield None
        elif self.sizes is not None:
            yield from _ranges(engine, self.sizes, *self.key)
        else:
            for number in range(n_batches):
                yield engine.bucket(self.key, n_batches).eq(number)

    def statements(self, by: Sequence[str]) -> Iterator[Statement]:  # noqa: ARG002 - as `run`
        """The queries of the rows, and the relation, which has no query."""
        yield from shown_reads(self.reads, f"relation {self.into}", self.function)
        yield Statement(f"relation {self.into}", None, self.into, function=self.function)


@dataclass(frozen=True)
class RankedAmong:
    """Rows that have a rank among many others: found in one pass over the others, which need no order.

    Attributes:
        rows: The rows whose ranks are asked for.
        among: The rows that they have ranks among; read once for each batch.
        key: Column of whole numbers of both, within whose values rows are ranked.
        sizes: `n_rows` of `rows` for each value of the key; batches are ranges of it.
        function: Turns the rows of a batch and the blocks of rows they stand among, in any order, into rows with ranks.
    """

    rows: exp.Query
    among: exp.Query
    key: str
    sizes: exp.Query
    function: Callable[[pl.DataFrame, Iterator[pl.DataFrame]], Iterator[pl.DataFrame]]

    def blocks(self, engine: Engine) -> Iterator[pl.DataFrame]:
        """Rows with their ranks: batch by batch, or all at once where workers have found them."""
        if engine.has_workers:
            reads = {"rows": self.rows, "among": self.among}
            engine.transform(RANKED, reads, (self.key,), self._ranked, ())
            ranked = pl.concat(engine.stream(exp.select("*").from_(RANKED)))
            if not ranked.is_empty():
                yield ranked.sort(self.key, maintain_order=True)
            return
        for condition in _ranges(engine, self.sizes, self.key):
            batch = engine.fetch(_within(self.rows, condition))
            if not batch.is_empty():
                yield from self.function(batch, engine.stream(_within(self.among, condition)))

    def _ranked(self, frames: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
        """All rows of some values of the key with their ranks."""
        return pl.concat(self.function(frames["rows"], iter([frames["among"]])))


@dataclass(frozen=True)
class Reduction:
    """A table that a pure function makes of many rows: rows in order, or rows ranked among others.

    Attributes:
        into: Name of the table.
        rows: The rows, in the order in which they are handed over; or those that are ranked among others.
        reads: Small relations it needs too, by name.
        function: Turns the blocks of rows and the frames into the table, for all groupings together.
    """

    phase: ClassVar[Phase] = Phase.FRAMES
    into: str
    rows: exp.Query | RankedAmong
    reads: Mapping[str, exp.Query]
    function: Callable[[Iterator[pl.DataFrame], Mapping[str, pl.DataFrame]], pl.DataFrame]

    def run(self, engine: Engine, progress: Progress) -> None:
        """Add the table."""
        blocks = self.rows.blocks(engine) if isinstance(self.rows, RankedAmong) else engine.stream(self.rows)
        progress.tables[self.into] = self.function(blocks, frames_of(engine, self.reads))

    def statements(self, by: Sequence[str]) -> Iterator[Statement]:  # noqa: ARG002 - all nodes are called alike
        """The queries of the rows."""
        if isinstance(self.rows, RankedAmong):
            ranked = {"to be ranked": self.rows.rows, "they are ranked among": self.rows.among}
            yield from shown_reads(ranked, self.into, self.rows.function)
            yield from shown_reads({"per batch": self.rows.sizes}, self.into, self.rows.function)
        else:
            yield Statement(f"rows in order, for {self.into}", self.rows, function=self.function)
        yield from shown_reads(self.reads, self.into, self.function)


def _within(query: exp.Query, condition: exp.Expr | None) -> exp.Query:
    return query if condition is None else exp.select("*").from_(query.subquery("rows_of_batches")).where(condition)


def _ranges(engine: Engine, sizes: exp.Query, name: str) -> Iterator[exp.Expr | None]:
    """Ranges of a key that have about as many rows as a batch may have."""
    starts = kept(("starts", part(sizes), name), lambda: _starts(sizes, column(name)))
    edges = engine.fetch(starts)["start"].sort().to_list()[1:]
    for start, stop in pairwise([None, *edges, None]):
        limits: list[exp.Expr] = [column(name) >= exp.convert(start)] if start is not None else []
        limits += [column(name) < exp.convert(stop)] if stop is not None else []
        yield exp.and_(*limits) if limits else None


def _starts(sizes: exp.Query, key: exp.Column) -> exp.Select:
    """The first key of every batch: keys in order, cut where the rows up to them fill one more batch."""
    in_order = exp.Order(expressions=[exp.Ordered(this=key.copy())])
    until = exp.Window(this=exp.Sum(this=column("n_rows")), order=in_order)
    share = exp.Div(this=exp.cast(until, "DOUBLE"), expression=exp.Literal.number(BATCH_ROWS))
    batch = exp.alias_(exp.Ceil(this=share), "batch")
    numbered = exp.select(key.copy(), batch).from_(sizes.subquery("sizes"))
    start = exp.alias_(exp.Min(this=key.copy()), "start")
    return exp.select(start).from_(numbered.subquery("numbered")).group_by(column("batch"))


# Nodes of one scan for everything: counts in narrow cells of scores, whose lowest and highest scores bound all sums.
#
# The cells are fine enough for areas, and no threshold and no edge of a bin of probabilities cuts through one: cells
# that one does cut are counted again in parts. So counts by threshold and by bin are sums of cells, exactly, and what
# else is added up of scores is known as closely as the cells are narrow.


FEWEST_CELLS, MOST_CELLS = 1 << 14, 65_533  # the most, with one below and one above all, that a small integer counts
CELLS = 4  # by the width of bounds: mostly they are fine enough
MOST_OF_GROUPS = 1 << 22  # cells of all groups, but for those that thresholds need
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
        is_counted = progress.by_score and cells is None and "weight_positive" not in self.columns
        if not is_counted:
            engine.define(ROWS, self._in_cells(cells))
        for segment in progress.counts.segments(additive=True):
            if is_counted:
                sums = moments_of_scores(progress.counts, segment)
                progress.counts.add(self.into, segment, sums, (LOWER, UPPER), self.columns)
                continue
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
        of_grouping = of_first_grouping(table)
        if sum(int(of_grouping[name].sum()) for name in SIDES) <= MOST_SCORES:
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
        if cells is not None:
            return cells.in_cells(self.rows)
        score, rows = column("probability"), self.rows.subquery("probabilities_alone")
        return exp.select(exp.Star(), exp.alias_(score + double(0.0), CELL)).from_(rows)

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
