"""A plan: the nodes that read the data of a stage. Plans can be added."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import field, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

import polars as pl
import sqlglot.expressions as exp

from ..base.dialect import column, render
from ..base.errors import DataError, UncomputableError
from ..base.records import dataclass
from ..base.sql_files import file_of, fill
from ..engines.duckdb import files_query, hides_numbers, one_by_one, partition_column, patterns, written_list
from ..sources.bindings import WHERE, in_words, uncomputable
from ..sources.inputs import TABLE, Expression, Field
from ..sources.source import canonical_relation
from .counts import Query, Sweep, Transform
from .nodes import Phase, Relation, Statement, register

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from ..engines.engine import Engine
    from ..sources.bindings import KeyMatch
    from ..sources.source import Scan, Source
    from .count_tables import CountTables, Unfit
    from .nodes import Check, Grouped, Node, Progress


@dataclass(frozen=True)
class Plan:
    """Everything that reads data for one stage, or for a part of it.

    Attributes:
        nodes: What is asked, in the order of phases.
        sources: The inputs, the primary input first.
        by: The grouping columns in order.
        used: Count columns whose sum is the number of used rows of the primary input.
        accounting: Query that says what became of every row of the primary input; asked only when rows were left out.
        other_accounting: Queries that say what became of every row of other inputs, by input; default: those that
            `where` keeps are used.
        positive: Condition on the primary input that a row is a positive; None: its rows are not labelled.
        units: Input whose rows can be excluded; its relation has the column `complete`.
        optional: Tables that are made only if the config asks for them, or while the inputs are small.
        key_matches: Keys by which inputs find each other's rows.
        derived: Fields that the stage computes from others, `input.field` → how, in words.
        inapplicable: Mapped fields that it does not read, `input.field` → why, in words.
        remedies: What to do where a status takes every row of an input, where the stage knows better than the runner.
        warnings: What the user should know before the numbers are used.
        facts: Choices made for the user, kept in the run record.
    """

    nodes: tuple[Node, ...] = ()
    sources: tuple[Source, ...] = ()
    by: tuple[Grouped, ...] = ()
    used: tuple[str, ...] = ()
    accounting: Query | None = None
    other_accounting: dict[str, Query] = field(default_factory=dict)
    positive: exp.Expr | None = None
    units: str | None = None
    optional: tuple[OptionalTable, ...] = ()
    key_matches: tuple[KeyMatch, ...] = ()
    derived: dict[str, str] = field(default_factory=dict)
    inapplicable: dict[str, str] = field(default_factory=dict)
    remedies: dict[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    facts: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "nodes", tuple(_in_order(self.nodes)))

    def __add__(self, other: Plan) -> Plan:
        """Both together: nodes of one phase run in the order of the sum.

        Raises:
            ValueError: both set a field that is not a collection.
        """
        return Plan(**{each.name: _sum(getattr(self, each.name), getattr(other, each.name)) for each in fields(Plan)})

    @property
    def relations(self) -> tuple[Relation, ...]:
        """The relations that read the inputs."""
        return tuple(node for node in self.nodes if isinstance(node, Relation))

    @property
    def counts_missed(self) -> bool:
        """Whether rows without a valid score are counted, below every threshold."""
        return any(node.missed for node in self.nodes if isinstance(node, Sweep))

    def without(self, tables: Collection[str]) -> Plan:
        """The same without what makes some of the optional tables."""
        nodes = (node for node in self.nodes if node.phase != Phase.AFTER_RESULTS or node.into not in tables)
        return replace(self, nodes=tuple(nodes))


def _in_order(nodes: Iterable[Node]) -> list[Node]:
    """Nodes by phase, and the sweep of every counting query, each once, after the relations that it reads.

    Raises:
        ValueError: two different sweeps have one name.
    """
    sweeps: dict[str, Sweep] = {}
    listed: list[Node] = []
    for node in nodes:
        sweep = node.sweep if isinstance(node, Query) else node if isinstance(node, Sweep) else None
        if sweep is not None and sweeps.setdefault(sweep.into, sweep) != sweep:
            message = f"two sweeps are called {sweep.into!r}"
            raise ValueError(message)
        if sweep is not None and sweep not in listed:
            listed.append(sweep)
        if node is not sweep:
            listed.append(node)
    return sorted(listed, key=lambda node: node.phase)


def _sum(left: Any, right: Any) -> Any:  # noqa: ANN401 - tuples, dictionaries, or what only one of them has
    if isinstance(left, tuple):
        return left + right
    if isinstance(left, dict):
        return left | right
    if left is not None and right is not None:
        message = f"only one of two plans that are added may say this: {left!r}, {right!r}"
        raise ValueError(message)
    return right if left is None else left


# The SQL of a plan as text that runs from top to bottom: `thresher render`.


TYPES: dict[type[pl.DataType], str] = {
    pl.Boolean: "BOOLEAN",
    pl.Int8: "TINYINT",
    pl.Int16: "SMALLINT",
    pl.Int32: "INT",
    pl.Int64: "BIGINT",
    pl.UInt8: "SMALLINT",
    pl.UInt16: "INT",
    pl.UInt32: "BIGINT",
    pl.UInt64: "DECIMAL(20, 0)",
    pl.Float32: "FLOAT",
    pl.Float64: "DOUBLE",
    pl.String: "TEXT",
    pl.Null: "TEXT",
    pl.Date: "DATE",
    pl.Datetime: "TIMESTAMP",
}


def schemas_of_transforms(engine: Engine, plan: Plan, progress: Progress) -> dict[str, pl.Schema]:
    """Return columns and types of the relations that pure functions make, by name.

    Args:
        engine: An engine without rows.
        plan: The plan.
        progress: Where its nodes put what comes out.
    """
    schemas: dict[str, pl.Schema] = {}
    for node in plan.nodes:
        if node.phase == Phase.RELATIONS or isinstance(node, Transform):
            node.run(engine, progress)
            without_query = (each.relation for each in node.statements(()) if each.query is None and each.relation)
            schemas |= {name: engine.fetch(exp.select("*").from_(name)).schema for name in without_query}
    return schemas


def render_stage(stage: str, plan: Plan, schemas: Mapping[str, pl.Schema], *, dialect: str) -> str:
    """Return every statement of a stage with its title, in a dialect, parameters filled in.

    A pure function is a comment that names it; the relation that it makes has its columns and types, and no row.

    Args:
        stage: Name of the stage.
        plan: Its plan.
        schemas: Columns and types of the relations that pure functions make, by name.
        dialect: `duckdb` or `spark`.
    """
    by = [grouped.name for grouped in plan.by]
    statements = (statement for node in plan.nodes for statement in node.statements(by))
    blocks = (block for statement in statements for block in _blocks(stage, statement, schemas, dialect))
    return "\n\n".join(blocks) + "\n"


def _blocks(stage: str, statement: Statement, schemas: Mapping[str, pl.Schema], dialect: str) -> Iterator[str]:
    for scan in statement.scans:
        view = _view(scan.name, _scan_query(scan, dialect, located=statement.located), dialect)
        named = scan.frame or scan.engine_rows
        origin = f"{len(scan.files):,} files of one schema" if named is None else named.name
        yield f"-- {stage}: relation {scan.name}, of {origin}\n{view}"
    file = file_of(statement.query) if statement.query is not None else None
    origin = "" if file is None else f", from sql/{file}.sql"
    verb = "made" if statement.query is None else "read"
    function = "" if statement.function is None else f", {verb} by {_name(statement.function)}"
    title = f"-- {stage}: {statement.title}{origin}{function}"
    query = statement.query
    if query is None and statement.relation is not None:
        # a query of no row with some columns and types
        schema = schemas[statement.relation]
        columns = [
            exp.alias_(exp.cast(exp.null(), _sql_type(dtype), dialect="duckdb"), name, quoted=True)
            for name, dtype in schema.items()
        ]
        query = exp.select(*columns).where(exp.false())
    elif query is not None:
        query = fill(query, statement.params)
    if query is None:
        yield title
    elif statement.relation is None:
        yield f"{title}\n{render(query, dialect)};"
    else:
        yield f"{title}\n{_view(statement.relation, query, dialect)}"


def _view(name: str, query: exp.Query, dialect: str) -> str:
    temporary = exp.Properties(expressions=[exp.TemporaryProperty()])
    view = exp.Create(this=exp.to_table(name), kind="VIEW", expression=query, replace=True, properties=temporary)
    return f"{render(view, dialect)};"


def _scan_query(scan: Scan, dialect: str, *, located: bool) -> exp.Query:
    if scan.frame is not None:
        return exp.select("*").from_(exp.to_table("a_frame"))
    if (rows := scan.engine_rows) is not None:
        table = exp.to_table(rows.target, dialect="spark") if rows.kind == TABLE else _parquet(rows.target)
        # the numbers of rows without a place are made elsewhere
        return exp.select("*", *_location(located=located and rows.has_places)).from_(table)
    if dialect == "duckdb":
        if (located or scan.partitions) and hides_numbers(scan.files[0]):
            return one_by_one(scan.files, scan.partitions, located=located)
        of_files = files_query(written_list(patterns(scan.files)), located=located)
        return of_files.select(*(partition_column(each, written_list(each.values)) for each in scan.partitions))
    queries = [
        exp.select("*", *_location(located=located), *(each.constant(number) for each in scan.partitions)).from_(
            _parquet(file)
        )
        for number, file in enumerate(scan.files)
    ]
    return queries[0] if len(queries) == 1 else exp.union(*queries, distinct=False)


def _location(*, located: bool) -> list[exp.Expr]:
    names = ("file_path", "source_file"), ("row_index", "file_row_number")
    return [exp.alias_(exp.column(name, table="_metadata"), alias) for name, alias in names] if located else []


def _parquet(target: str) -> exp.Table:
    return exp.Table(this=exp.to_identifier(target, quoted=True), db=exp.to_identifier("parquet"))


def _sql_type(dtype: pl.DataType) -> str:
    if isinstance(dtype, pl.Decimal):
        return f"DECIMAL({dtype.precision}, {dtype.scale})"
    return TYPES[type(dtype)]


def _name(function: object) -> str:
    """Return the name of a pure function, with its module."""
    target = getattr(function, "__func__", function)
    return f"{getattr(target, '__module__', '')}.{getattr(target, '__qualname__', type(target).__qualname__)}"


# A node that samples rows once results are known: it reads them in blocks and keeps a bounded number.


class Sampler(Protocol):
    """Keeps some of the rows that it is shown."""

    def see(self, rows: pl.DataFrame) -> None:
        """Keep the rows of a block that belong to the sample, as far as can be told."""
        ...

    def sample(self) -> pl.DataFrame:
        """Return the sample."""
        ...


@dataclass(frozen=True)
class Sample:
    """A result table of single rows that are chosen by the other tables, in bounded memory.

    Attributes:
        into: The result table.
        query: The rows.
        sampler: Makes what chooses among them, from the result tables.
    """

    phase: ClassVar[Phase] = Phase.AFTER_RESULTS
    into: str
    query: exp.Query
    sampler: Callable[[Mapping[str, pl.DataFrame]], Sampler]

    def run(self, engine: Engine, progress: Progress) -> None:
        """Replace the table, which has no row so far, by the sample."""
        sampler = self.sampler(progress.tables)
        for block in engine.stream(self.query):
            sampler.see(block)
        table = sampler.sample()
        if not table.is_empty():
            progress.fill(self.into, table)

    def statements(self, by: Sequence[str]) -> Iterator[Statement]:  # noqa: ARG002 - the query has its columns already
        """The rows that are sampled."""
        yield Statement(f"rows for table {self.into}", self.query, function=self.sampler)


# Result tables that are made only on request, while the inputs are small, or of rows that fit them.


ANY_NUMBER_OF_ROWS = 1 << 62


@dataclass(frozen=True)
class OptionalTable:
    """A result table that is made if the config asks for it, or while the inputs are small and their rows fit it.

    Attributes:
        table: The result table.
        key: The key of the config that asks for it.
        asked: Its value: `auto` makes the table while the inputs have at most `limit` rows after `where`. Of a key with
            other values, whether it asks for the table.
        limit: Most rows of the inputs together.
        sources: The inputs whose rows are counted.
        wish: What in a config would ask for it, in words that `does` follows; empty: the value `true` of the key.
        told: Whether a run warns that the table is not made for its size; the record says so in any case.
        unfit: Says of the counts why `auto` does not make it of such rows; None: it fits all rows.
        lacking: What the inputs lack that the table is made of, in words; empty: nothing.
        check: A check whose faults leave the table out.
    """

    table: str
    key: str
    asked: Literal["auto"] | bool
    limit: int = ANY_NUMBER_OF_ROWS
    sources: tuple[Source, ...] = ()
    wish: str = ""
    told: bool = True
    unfit: Callable[[CountTables], Unfit | None] | None = None
    lacking: str = ""
    check: Check | None = None

    @property
    def is_possible(self) -> bool:
        """Whether the table may be made, as far as config and footers tell: `where` may leave few enough rows."""
        if self.lacking:
            return False
        return self.asked is True or (self.asked == "auto" and (self.is_small(self.rows) or self.is_filtered))

    @property
    def is_open(self) -> bool:
        """Whether the rows have to be counted after `where`, as the footers alone hold too many."""
        return self.asked == "auto" and self.is_filtered and not self.is_small(self.rows)

    @property
    def is_filtered(self) -> bool:
        """Whether an input has a `where`."""
        return any(source.spec.where is not None for source in self.sources)

    @property
    def rows(self) -> int:
        """Rows in the files, before `where`."""
        return sum(source.rows for source in self.sources)

    def is_small(self, rows: int) -> bool:
        """Whether so many rows are few enough."""
        return rows <= self.limit

    def why_unfit(self, counts: CountTables) -> str | None:
        """Why the rows that were counted do not fit the table, which is made of them all the same if asked for."""
        unfit = counts.say(self.unfit) if self.asked == "auto" and self.unfit is not None else None
        return None if unfit is None else unfit.reason

    def reason(self, rows: int) -> str:
        """Why the table is not made, and how to get it.

        Args:
            rows: Rows of the inputs, after `where` where it was asked.
        """
        if self.asked is False and self.wish:
            return f"nothing asks for it; {self.wish} does"
        if self.asked is False:
            return f"{self.key} = false; {self.key} = true makes it"
        if self.lacking:
            return self.lacking
        names = " and ".join(source.name for source in self.sources)
        have, together = ("have", " together") if len(self.sources) > 1 else ("has", "")
        return (
            f'{self.key} = "auto" makes it while {names} {have} at most {self.limit:,} rows{together}, and there are '
            f"{rows:,}; {self.key} = true makes it"
        )


# Whose fault it is that an engine could not compute a value: that of SQL of the user, or of a file.


@contextmanager
def naming_user_sql(engine: Engine, plan: Plan) -> Iterator[None]:
    """Name the input and its `where`, or the expression of a column, when that could not be computed for some row.

    Which one it was is asked for only then: each is computed by itself, and must fail where its columns can be read.

    Raises:
        DataError: names the input, its SQL and what the engine says.
    """
    try:
        yield
    except UncomputableError:
        sources = {each.source.name: each.source for each in plan.relations if each.source is not None}
        for source in sources.values():
            for words, field, reads in _user_sql(source):
                _compute(engine, source, words, field, reads)
        raise


def _user_sql(source: Source) -> Iterator[tuple[str, Field | None, tuple[str, ...]]]:
    """Every piece of SQL of an input, in words, with the field that it is mapped to and the columns that it reads."""
    if source.spec.where is not None:
        yield in_words(WHERE, source.spec.where), None, source.where_columns
    for name, mapped in source.spec.columns.items():
        if isinstance(mapped, Expression):
            field = source.contract.field(name) or Field(name, "any", "a column")
            yield in_words(name, mapped.sql), field, source.columns_read(name)


def _compute(engine: Engine, source: Source, words: str, field: Field | None, reads: tuple[str, ...]) -> None:
    wanted = {} if field is None else {field.name: field}
    for scan in source.scans:
        register(engine, scan)
    rows = canonical_relation(source, wanted).subquery("rows_of_files")
    if field is None:
        query = exp.select(exp.Count(this=exp.Star())).from_(rows).where(column("passes_where"))
    else:
        query = exp.select(exp.Count(this=column(field.name))).from_(rows)
    try:
        engine.fetch(query)
    except UncomputableError as error:
        if not _is_readable(engine, source, reads):
            return
        raise uncomputable(source.name, words, error.reason) from error


def _is_readable(engine: Engine, source: Source, reads: tuple[str, ...]) -> bool:
    for scan, files in zip(source.scans, source.groups, strict=True):
        columns = {name.lower() for name in files[0].schema.names}  # other names are those of folders
        read = [name for name in reads if name.lower() in columns]
        try:
            if read:
                engine.fetch(exp.select(exp.Max(this=engine.bucket(read, 2))).from_(exp.to_table(scan.name)))
        except DataError:
            return False
    return True
