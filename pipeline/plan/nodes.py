"""What a stage asks of an engine, as data: it can be run, rendered or looked at."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

import sqlglot.expressions as exp

from pipeline.queries.dialect import column, double, is_finite
from pipeline.queries.load import expand, load

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    import polars as pl

    from pipeline.plan.optional_tables import OptionalTable
    from pipeline.plan.rows import Grouped, Relation
    from pipeline.sources.bins import Grid
    from pipeline.sources.keys import KeyMatch
    from pipeline.sources.source import Source
    from pipeline.tables.groupings import Grouping

BIN = "bin"
REPLICATE = "replicate"

Parameters = dict[str, float]


class Options(Protocol):
    """What the parameters of every stage say of counting."""

    @property
    def groupings(self) -> tuple[Grouping, ...]:
        """The groupings that results are asked for."""
        ...

    @property
    def threshold_values(self) -> tuple[float, ...] | None:
        """The thresholds in rising order; None: every distinct score is one, or there is none."""
        ...

    @property
    def invalid_scores(self) -> str:
        """What becomes of rows without a valid score: `error`, `drop` or `missed`."""
        ...

    @property
    def allow_empty(self) -> bool:
        """Whether zeros are published where nothing can be evaluated."""
        ...


@dataclass(frozen=True)
class Check:
    """A query whose rows are faults.

    Attributes:
        query: Returns no row when all is well.
        explain: Turns the rows, as dictionaries, into (message, remedy).
        source: The input that the fault is in; the message then names its first file and row.
        problem: Turns the rows into the condition of the faulty rows of that input, on its canonical columns.
    """

    query: exp.Query
    explain: Callable[[list[dict[str, object]]], tuple[str, str]]
    source: Source | None = None
    problem: Callable[[list[dict[str, object]]], exp.Expr] | None = None


@dataclass(frozen=True)
class Sweep:
    """The row relation, with its bin still open.

    Attributes:
        name: Logical name of the relation that swept queries read.
        rows: Query of the rows, without a bin.
        score: The column that is compared with the thresholds; a row in which it is not finite has no bin.
        grid: The thresholds; None: every distinct score is one, and the bin is the score.
        exact: Whether every row gets its bin by comparisons: for few rows, or where rows of one bin are merged.
        replicated: Whether rows fall into replicates; else all are in replicate 0.
        missed: Whether rows without a bin count as below every threshold; else they do not count.
    """

    name: str
    rows: exp.Query
    score: str
    grid: Grid | None
    exact: bool = False
    replicated: bool = True
    missed: bool = False

    def by_cell(self) -> exp.Select:
        """Rows with their arithmetic cell as bin; without a grid the score itself, -0 as 0."""
        score = column(self.score)
        if self.exact and self.grid is not None:
            return self._with_bin(self.grid.exact(score))
        zero = exp.Add(this=score.copy(), expression=double(0))
        distinct = exp.Case().when(is_finite(score), zero)
        return self._with_bin(distinct if self.grid is None else self.grid.cell(score))

    def exactly(self, cells: list[int]) -> exp.Select:
        """Rows of the given cells with their exact bin, by comparisons."""
        if self.grid is None:
            message = "without a grid every cell is exact"
            raise ValueError(message)
        score = column(self.score)
        inside = exp.In(this=self.grid.cell(score), expressions=[exp.Literal.number(cell) for cell in cells])
        return self._with_bin(self.grid.exact(score)).where(inside)

    def _with_bin(self, value: exp.Expr) -> exp.Select:
        bin_column = exp.alias_(value, BIN, quoted=True)
        return exp.select("*", bin_column).from_(self.rows.subquery("canonical_rows"))


@dataclass(frozen=True)
class CountQuery:
    """One counting query of sql/.

    Attributes:
        name: `<stage>/<file>`.
        params: Values of its parameters.
        columns: The counts of its count table; those that the query lacks are 0.
        keys: Columns of its count table beside grouping, replicate and threshold.
        sweep: The row relation that it reads and by whose bin it groups; None: it knows no thresholds.
        into: The count table it adds to; `counts` is the one that is saved.
        additive: Whether counts of a grouping are sums of those of a finer one; else each grouping is counted.
    """

    name: str
    params: Parameters = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    sweep: Sweep | None = None
    into: str = "counts"
    additive: bool = True

    def tree(self, segment: Sequence[str]) -> exp.Query:
        """The query by some grouping columns."""
        known = self.sweep is not None and not self.sweep.replicated
        return expand(load(self.name), segment, zero=[REPLICATE] if known else [])


@dataclass(frozen=True)
class Computed:
    """Counts that a pure function makes of fetched rows, for what SQL cannot say portably.

    Attributes:
        name: For messages.
        frames: The rows it needs, by name.
        compute: Turns the frames and the grouping columns into counts per group, replicate and value of the keys.
        columns: The counts it makes.
        keys: Columns of its count table beside grouping, replicate and threshold.
        into: The count table it adds to; `counts` is the one that is saved.
    """

    name: str
    frames: Mapping[str, exp.Query]
    compute: Callable[[Mapping[str, pl.DataFrame], Sequence[str]], pl.DataFrame]
    columns: tuple[str, ...]
    keys: tuple[str, ...] = ()
    into: str = "counts"


@dataclass(frozen=True)
class Matched:
    """A relation that a pure function makes of rows, for what SQL cannot say portably: maximum matching.

    The rows are handed over in parts, so that they need not fit into memory together; rows of one key stay together.

    Attributes:
        name: Logical name of the relation.
        frames: The rows it needs, by name; each has the columns of the key.
        key: Columns within whose values the function works, for example document or series.
        match: Turns the frames of a part into the rows of the relation, with the same columns and types for any part,
            empty ones too.
        rows: Rows of all frames together, as far as footers tell.
        sizes: Every value of a key of one number, with about the `n_rows` that it has: parts are then ranges of the
            key with about as many rows each, and of files sorted by it only the rows of a part are read. None: parts
            are made by hash.
    """

    name: str
    frames: Mapping[str, exp.Query]
    key: tuple[str, ...]
    match: Callable[[Mapping[str, pl.DataFrame]], pl.DataFrame]
    rows: int
    sizes: exp.Query | None = None


@dataclass(frozen=True)
class Placed:
    """Rows that have a place among many others: found in one pass over the others, which need no order.

    The rows are handed over in parts, so that they need not fit into memory together; what has one key stays together.

    Attributes:
        rows: The rows whose places are asked for.
        among: The rows that they have places among; read once for each part.
        key: Column of whole numbers of both, within whose values places are counted.
        sizes: `n_rows` of `rows` for each value of the key; parts are ranges of it.
        place: Turns the rows of a part and the blocks of rows they stand among, in any order, into rows with places.
    """

    rows: exp.Select
    among: exp.Select
    key: str
    sizes: exp.Query
    place: Callable[[pl.DataFrame, Iterator[pl.DataFrame]], Iterator[pl.DataFrame]]


@dataclass(frozen=True)
class Folded:
    """A count table that a pure function makes of many rows, which need not fit into memory together.

    Attributes:
        table: Name of the count table.
        rows: The rows, in the order in which they are handed over; or those that have a place among others.
        frames: Small relations it needs too, by name.
        fold: Turns the blocks of rows and the frames into the table, for all groupings together.
    """

    table: str
    rows: exp.Query | Placed
    frames: Mapping[str, exp.Query]
    fold: Callable[[Iterator[pl.DataFrame], Mapping[str, pl.DataFrame]], pl.DataFrame]


@dataclass(frozen=True)
class Comparison:
    """A second opinion on given numbers, from fetched rows.

    Attributes:
        frames: The rows it needs, by name.
        compare: Says in words what differs; nothing when all agrees.
    """

    frames: Mapping[str, exp.Query]
    compare: Callable[[Mapping[str, pl.DataFrame]], tuple[str, ...]]


@dataclass(frozen=True)
class FollowUp:
    """A result table that needs the rows once more, after the other tables are known.

    Attributes:
        table: The result table.
        sweep: The row relation that the query reads.
        query: `<stage>/<file>`.
        params: Values of its parameters, from the tables; None: there is nothing to ask, and the table has no row.
        frames: Further rows it needs, by name.
        finish: Makes the table of the query's rows and the frames.
        segment: What the query has where it writes `segment`.
    """

    table: str
    sweep: Sweep
    query: str
    params: Callable[[Mapping[str, pl.DataFrame]], Parameters | None]
    frames: Mapping[str, exp.Query]
    finish: Callable[[pl.DataFrame, Mapping[str, pl.DataFrame]], pl.DataFrame]
    segment: tuple[str, ...] = ()


@dataclass(frozen=True)
class Areas:
    """Areas under the curves of scored and labelled rows, from every score; they become the count table `areas`.

    Attributes:
        rows: The rows: the grouping columns, `replicate`, `score`, `label` and, if weighted, `weight`.
        exact: Whether every score is put in order; else scores are counted in cells, with certified bounds.
        width: Widest bounds that are accepted.
        span: Lowest and highest score that the files promise; only a hint.
        weighted: Whether rows have weights.
        replicated: Whether replicates, not rows, are independent.
        random_sizes: Whether the number of positives would differ in another sample; see `metrics.curves.influence`.
        missed: Whether rows may have the score minus infinity: they tie below all others.
    """

    rows: exp.Select
    exact: bool
    width: float
    span: tuple[float, float] | None
    weighted: bool
    replicated: bool
    random_sizes: bool
    missed: bool = False


@dataclass(frozen=True)
class Plan:
    """Everything that reads data for one stage.

    Attributes:
        sources: The inputs, the row input first.
        by: The grouping columns in order.
        relations: Relations to define before the checks, in order.
        checks: Faults that only a scan shows; the first with rows stops the stage.
        matched: Relations that pure functions make, after the checks; counting queries may read them.
        counts: What counts; the rows of all that go into one count table add up.
        used: The count columns that together count every used row of the row input once.
        accounting: Query that says what became of every row of the row input; asked only when rows were left out.
        areas: Areas under curves that need every score; asked after the counts, whose totals they use.
        folded: Count tables that pure functions make of rows in order.
        fetched: Rows that the results are derived from as they are, by name, beside the count tables.
        comparisons: Second opinions on given numbers; what differs becomes a warning.
        follow_ups: Tables that are made after the others.
        optional: Tables that are made only if the config asks for them, or while the inputs are small.
        positive: Condition on the row input that a row is a positive; None: its rows are not labelled.
        units: Input whose rows may not take part; its relation has the column `complete`.
        other_accounting: Queries that say what became of every row of other inputs, by input; default: those that
            `where` keeps are used.
        key_matches: Keys by which inputs find each other's rows.
        derived: Fields that the stage computes from others, `input.field` → how, in words.
        unused: Mapped fields that it does not read, `input.field` → why, in words.
        remedies: What to do where a fate takes every row of an input, where the stage knows better than the runner.
        warnings: What the user should know before the numbers are used.
        facts: Choices made for the user, kept in the run record.
    """

    sources: tuple[Source, ...]
    by: tuple[Grouped, ...]
    relations: tuple[Relation, ...]
    checks: tuple[Check, ...]
    counts: tuple[CountQuery | Computed, ...]
    used: tuple[str, ...]
    accounting: CountQuery
    matched: tuple[Matched, ...] = ()
    areas: Areas | None = None
    folded: tuple[Folded, ...] = ()
    fetched: dict[str, exp.Query] = field(default_factory=dict)
    comparisons: tuple[Comparison, ...] = ()
    follow_ups: tuple[FollowUp, ...] = ()
    optional: tuple[OptionalTable, ...] = ()
    positive: exp.Expr | None = None
    units: str | None = None
    other_accounting: dict[str, CountQuery] = field(default_factory=dict)
    key_matches: tuple[KeyMatch, ...] = ()
    derived: dict[str, str] = field(default_factory=dict)
    unused: dict[str, str] = field(default_factory=dict)
    remedies: dict[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    facts: dict[str, str] = field(default_factory=dict)

    @property
    def sweeps(self) -> tuple[Sweep, ...]:
        """The row relations of the counting queries, each once."""
        sweeps = (each.sweep for each in self.counts if isinstance(each, CountQuery) and each.sweep is not None)
        return tuple({sweep.name: sweep for sweep in sweeps}.values())

    @property
    def counts_missed(self) -> bool:
        """Whether rows without a valid score are counted, below every threshold."""
        return any(sweep.missed for sweep in self.sweeps)

    def without(self, tables: Collection[str]) -> Plan:
        """The same without what makes some of the optional tables."""
        return replace(self, follow_ups=tuple(each for each in self.follow_ups if each.table not in tables))
