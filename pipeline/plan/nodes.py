"""What can be asked of an engine: every node runs, and shows the SQL that it runs."""

from __future__ import annotations

from dataclasses import field
from enum import IntEnum
from typing import TYPE_CHECKING, ClassVar, Protocol

import sqlglot.expressions as exp

from ..engines.engine import ReadsPlaces
from ..errors import DataError, InvalidQueryError, ThresherError
from ..queries.dialect import column
from ..records import dataclass
from ..sources.inputs import Field
from ..sources.source import canonical_relation
from ..tables.columns import nothing
from ..tables.groupings import users_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import polars as pl

    from ..engines.engine import Engine
    from ..sources.source import Scan, Source
    from .count_tables import CountTables

Parameters = dict[str, float]


class Phase(IntEnum):
    """The order in which the nodes of a plan run; nodes of one phase run in the order of the plan."""

    RELATIONS = 1
    CHECKS = 2
    TRANSFORMS = 3
    CROSS_CHECKS = 4
    COUNTS = 5
    AREAS = 6
    FRAMES = 7
    AFTER_RESULTS = 8


@dataclass(frozen=True)
class Statement:
    """One statement that a node runs, to be shown.

    Attributes:
        title: What it is for.
        query: The query; None: `function` makes the relation.
        relation: The relation that it defines; None: its rows are fetched.
        params: Values of its parameters.
        scans: Files that are registered before it.
        located: Whether the scans have the columns `source_file` and `file_row_number`.
        function: Name of the pure function that its rows are handed to, or that makes the relation.
    """

    title: str
    query: exp.Query | None
    relation: str | None = None
    params: Mapping[str, float] = field(default_factory=dict)
    scans: tuple[Scan, ...] = ()
    located: bool = False
    function: Callable[..., object] | None = None


@dataclass
class Progress:
    """What the nodes of a plan have brought so far.

    Attributes:
        counts: The count tables.
        tables: Frames by name: rows as they are, and tables made of rows in order.
        cells: Counts in cells of scores by the grouping columns that they were counted by, see `plan.swept_cells`.
        by_score: Whether the counts have every score as a threshold, and no replicates.
        faults: What the checks found.
        warnings: What the cross-checks found.
        alarms: What cross-checks found that must be said before all other warnings.
    """

    counts: CountTables
    tables: dict[str, pl.DataFrame] = field(default_factory=dict)
    cells: dict[tuple[str, ...], pl.DataFrame] = field(default_factory=dict)
    by_score: bool = False
    faults: list[DataError] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    alarms: list[str] = field(default_factory=list)

    def fill(self, table: str, rows: pl.DataFrame) -> None:
        """Put rows in the place of a result table that has none so far; a column that they lack is NULL."""
        lacking = [(name, kind) for name, kind in self.tables[table].schema.items() if name not in rows.columns]
        columns = [column for name, kind in lacking for column in nothing([name], rows.height, kind)]
        self.tables[table] = rows.hstack(columns)


class Node(Protocol):
    """Something that is asked of an engine."""

    phase: ClassVar[Phase]

    @property
    def into(self) -> str:
        """Name of what it makes: a relation, a count table, a frame or a result table; for a check, the input."""
        ...

    def run(self, engine: Engine, progress: Progress) -> None:
        """Define a relation, or put what comes out into `progress`."""
        ...

    def statements(self, by: Sequence[str]) -> Iterator[Statement]:
        """The statements that it runs, by all grouping columns."""
        ...


# Rows of inputs become relations of an engine: files are scanned, tables in memory handed over, its own named.


def register(engine: Engine, scan: Scan, *, located: bool = False) -> None:
    """Make the rows of a scan a relation of an engine.

    Args:
        engine: The engine.
        scan: Files of one schema, a frame, or what the engine reads itself.
        located: Whether to add the columns `source_file` and `file_row_number`.
    """
    if (rows := scan.engine_rows) is not None:
        if not isinstance(engine, ReadsPlaces):
            message = f"the engine {engine.name} does not read {rows.name}"
            raise ThresherError(message)
        engine.scan_place(scan.name, rows, located=located)
    elif scan.frame is None:
        engine.scan(scan.name, scan.files, scan.partitions, located=located)
    else:
        engine.hand_over(scan.name, scan.frame.located() if located else scan.frame.table)


# Where a fault lies: the first file and row, asked for only once something is wrong.


ROWS = "rows_of_files"


def first_place(engine: Engine, source: Source, problem: exp.Expr) -> str:
    """The first file with rows that have a problem, how many it has, and the first of them, in words after a message.

    Args:
        engine: Reads the files of the input again, with the place of every row.
        source: The input.
        problem: A condition on its canonical columns; where it asks for rows of other relations, `ROWS` qualifies them.

    Returns:
        Text that starts with a blank; empty where the condition reads what no file holds, no row satisfies it, or
        rows have no place.
    """
    names = tuple(dict.fromkeys(each.name for each in problem.find_all(exp.Column) if each.table in {"", ROWS}))
    fields = {name: _field(source, name) for name in names}
    score = "score" if "score_state" in fields else None
    if score is not None:
        fields = {"score": source.contract.field("score") or Field("score", "number", "the score")}
    if (
        source.without_places is not None
        or not fields
        or not all(source.offers(field.name) for field in fields.values())
    ):
        return ""
    for scan in source.scans:
        register(engine, scan, located=True)
    query = canonical_relation(source, fields, score=score, located=True)
    numbers = [
        exp.alias_(exp.Min(this=column("file_row_number")), "first"),
        exp.alias_(exp.Count(this=exp.Star()), "n"),
    ]
    faults = exp.select(column("source_file"), *numbers).from_(query.subquery(ROWS))
    faults = (
        faults.where(column("passes_where"), problem).group_by(column("source_file")).order_by(column("source_file"))
    )
    frame = engine.fetch(faults.limit(1))
    if frame.is_empty():
        return ""
    file, first_row, n_rows = frame.row(0)
    return f" ({n_rows:,} in {file}, first at row {first_row + 1:,})"


def _field(source: Source, name: str) -> Field:
    """What a column of the canonical relation is read from; a grouping column is read as it is."""
    field = source.field(name)
    if field is not None:
        return field
    column_name = users_name(name)
    return Field(column_name if source.offers(column_name) else column_name.partition(".")[2], "any", "a column")


# The nodes.


def frames_of(engine: Engine, reads: Mapping[str, exp.Query]) -> dict[str, pl.DataFrame]:
    """The rows of several queries, by name."""
    return {name: engine.fetch(query) for name, query in reads.items()}


def shown_reads(
    reads: Mapping[str, exp.Query], into: str, function: Callable[..., object] | None
) -> Iterator[Statement]:
    """The statements whose rows a pure function is handed."""
    for name, query in reads.items():
        yield Statement(f"rows {name}, for {into}", query, function=function)


@dataclass(frozen=True)
class Relation:
    """A named query over scans and earlier relations.

    Attributes:
        into: Logical name that later queries read.
        query: Its SQL as a tree.
        keep: Whether the engine keeps its rows (small, read often) or reads through it.
        scans: Files to register before it is defined.
        source: The input that it reads, if it reads files.
        located: Whether its scans have the columns `source_file` and `file_row_number`.
        reads: Our names of the columns that it reads of that input.
    """

    phase: ClassVar[Phase] = Phase.RELATIONS
    into: str
    query: exp.Query
    keep: bool = False
    scans: tuple[Scan, ...] = ()
    source: Source | None = None
    located: bool = False
    reads: tuple[str, ...] = ()

    def run(self, engine: Engine, progress: Progress) -> None:  # noqa: ARG002 - all nodes are called alike
        """Define it.

        Raises:
            DataError: `where` does not fit the columns of its input.
        """
        for scan in self.scans:
            register(engine, scan, located=self.located)
        try:
            engine.define(self.into, self.query, keep=self.keep)
        except InvalidQueryError as error:
            if self.source is None or not self.source.has_user_sql:
                raise
            words = "where" if self.source.spec.where is not None else "SQL of columns"
            message = f"input {self.source.name}: {words} does not fit its columns: {error.reason}"
            raise DataError(
                message, remedy="It must be true or false for a row; check the types of its columns."
            ) from error

    def statements(self, by: Sequence[str]) -> Iterator[Statement]:  # noqa: ARG002 - as `run`
        """The query that defines it."""
        yield Statement(f"relation {self.into}", self.query, self.into, scans=self.scans, located=self.located)


@dataclass(frozen=True)
class Check:
    """A query whose rows are faults.

    Attributes:
        query: Returns no row when all is well.
        explain: Turns the rows, as dictionaries, into (message, remedy).
        source: The input that the fault is in; the message then names its first file and row.
        problem: Turns the rows into the condition of the faulty rows of that input, on its canonical columns.
    """

    phase: ClassVar[Phase] = Phase.CHECKS
    query: exp.Query
    explain: Callable[[list[dict[str, object]]], tuple[str, str]]
    source: Source | None = None
    problem: Callable[[list[dict[str, object]]], exp.Expr] | None = None

    @property
    def into(self) -> str:
        """The input that it checks."""
        return "" if self.source is None else self.source.name

    def run(self, engine: Engine, progress: Progress) -> None:
        """Add a fault if a row comes back."""
        fault_rows = engine.fetch(self.query).to_dicts()
        if fault_rows:
            message, remedy = self.explain(fault_rows)
            if self.source is not None and self.problem is not None:
                message += first_place(engine, self.source, self.problem(fault_rows))
            progress.faults.append(DataError(message, remedy=remedy))

    def statements(self, by: Sequence[str]) -> Iterator[Statement]:  # noqa: ARG002 - all nodes are called alike
        """The query; no row may come back."""
        yield Statement("check: no row may come back", self.query)


@dataclass(frozen=True)
class CrossCheck:
    """A pure function that holds user-supplied counts, times or coordinates against others; what differs is a warning.

    Attributes:
        reads: The rows it needs, by name.
        function: Says in words what differs; nothing when all agrees.
        is_alarm: Whether that must be said before all other warnings.
    """

    phase: ClassVar[Phase] = Phase.CROSS_CHECKS
    reads: Mapping[str, exp.Query]
    function: Callable[[Mapping[str, pl.DataFrame]], tuple[str, ...]]
    is_alarm: bool = False

    @property
    def into(self) -> str:
        """Its words are warnings."""
        return "warnings"

    def run(self, engine: Engine, progress: Progress) -> None:
        """Add what differs to the warnings.

        Raises:
            DataError: the difference is too large for a warning.
        """
        found = progress.alarms if self.is_alarm else progress.warnings
        found += self.function(frames_of(engine, self.reads))

    def statements(self, by: Sequence[str]) -> Iterator[Statement]:  # noqa: ARG002 - all nodes are called alike
        """The queries of the rows."""
        yield from shown_reads(self.reads, "a cross-check", self.function)


@dataclass(frozen=True)
class Frame:
    """Rows that results are derived from as they are.

    Attributes:
        into: Name of the frame, beside the count tables.
        query: The query of the rows.
    """

    phase: ClassVar[Phase] = Phase.FRAMES
    into: str
    query: exp.Query

    def run(self, engine: Engine, progress: Progress) -> None:
        """Fetch the rows."""
        progress.tables[self.into] = engine.fetch(self.query)

    def statements(self, by: Sequence[str]) -> Iterator[Statement]:  # noqa: ARG002 - all nodes are called alike
        """The query."""
        yield Statement(f"rows {self.into}", self.query)


@dataclass(frozen=True)
class After:
    """A result table that needs the rows once more, after the other tables are known.

    Attributes:
        into: The result table.
        relation: The rows that the query reads.
        query: The query.
        params: Values of its parameters, or what finds them in the tables; None: there is nothing to ask, and the table
            has no row.
        reads: Further rows it needs, by name.
        function: Makes the table from the rows of `query` and those of `reads`.
    """

    phase: ClassVar[Phase] = Phase.AFTER_RESULTS
    into: str
    relation: Relation | None
    query: exp.Query
    params: Parameters | Callable[[Mapping[str, pl.DataFrame]], Parameters | None]
    reads: Mapping[str, exp.Query]
    function: Callable[[pl.DataFrame, Mapping[str, pl.DataFrame]], pl.DataFrame]

    def run(self, engine: Engine, progress: Progress) -> None:
        """Make the table, which has no row so far, from the rows."""
        params, query = self.params(progress.tables) if callable(self.params) else self.params, self.query
        if self.relation is not None:
            self.relation.run(engine, progress)
        if params is None:  # nothing to ask, but the columns have their types
            params = dict.fromkeys((str(node.this) for node in query.find_all(exp.Placeholder)), 0.0)
            query = exp.select("*").from_(query.subquery("nothing")).limit(0)
        progress.fill(self.into, self.function(engine.fetch(query, params), frames_of(engine, self.reads)))

    def statements(self, by: Sequence[str]) -> Iterator[Statement]:
        """The rows and the query; parameters that are found in the results are 0 here."""
        placeholders = (str(node.this) for node in self.query.find_all(exp.Placeholder))
        params = dict.fromkeys(placeholders, 0.0) if callable(self.params) else self.params
        if self.relation is not None:
            yield from self.relation.statements(by)
        yield from shown_reads(self.reads, self.into, self.function)
        yield Statement(f"rows for table {self.into}", self.query, params=params, function=self.function)
