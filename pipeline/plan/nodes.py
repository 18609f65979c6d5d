"""Nodes: each asks an engine something, and shows the SQL that it runs; and checks for faults that a scan shows."""

from __future__ import annotations

from dataclasses import field
from enum import IntEnum
from functools import cache
from typing import TYPE_CHECKING, ClassVar, Protocol

import sqlglot.expressions as exp

from ..base.columns import nothing
from ..base.dialect import column, from_clause, kept, part
from ..base.errors import DataError, InvalidQueryError, Note, ThresherError
from ..base.records import dataclass
from ..base.schemas import internal_name, users_name
from ..base.sql_files import file_of, load, statement
from ..base.visible_text import listed, rows_in_words
from ..engines.engine import ReadsPlaces
from ..sources.inputs import Field
from ..sources.source import MOST_EXACT, PASSES_WHERE, canonical_relation
from ..sources.types import as_mapping, in_expression

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

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
    """The results of the nodes of a plan so far.

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


@dataclass(frozen=True)
class Grouped:
    """A grouping column and the input it comes from.

    Attributes:
        label: As written in `by`; the name in the results.
        source: Name of the input that has it.
        column: Our name of the column in that input.
    """

    label: str
    source: str
    column: str

    @property
    def name(self) -> str:
        """Its name in relations, queries and frames."""
        return internal_name(self.label)

    @property
    def field(self) -> Field:
        """Contract of a grouping column: any type that can be grouped, read as it is even where we know its name."""
        return Field(self.column, "any", "a grouping column")


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
    """The field that a column of the canonical relation is read from; a grouping column is read as it is."""
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
        before: A query that costs less and has a row wherever `query` has one; None: there is none.
    """

    phase: ClassVar[Phase] = Phase.CHECKS
    query: exp.Query
    explain: Callable[[list[dict[str, object]]], tuple[str, str]]
    source: Source | None = None
    problem: Callable[[list[dict[str, object]]], exp.Expr] | None = None
    before: exp.Query | None = None

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


def doubtful(engine: Engine, nodes: Iterable[Node]) -> list[Node]:
    """Nodes without the checks that have no row, as far as one statement for all checks of a relation tells.

    To plan a statement takes longer than to read a few rows, and many rows are then read once.
    """
    nodes = list(nodes)
    of_relations: dict[tuple[str, str], list[tuple[Check, exp.Query]]] = {}
    for check in (node for node in nodes if isinstance(node, Check)):
        query = check.before or check.query
        name, clause = file_of(query), from_clause(query)
        if name is not None and _meets_condition(name) and clause is not None and isinstance(clause.this, exp.Table):
            of_relations.setdefault((clause.this.name, clause.this.alias), []).append((check, query))
    clean: list[Check] = []
    for together in of_relations.values():
        if len(together) > 1:
            numbers = engine.fetch(_numbers_of_rows([query for _, query in together])).row(0)
            clean += [check for (check, _), n_rows in zip(together, numbers, strict=True) if not n_rows]
    return [node for node in nodes if not any(node is check for check in clean)]


@cache
def _meets_condition(name: str) -> bool:
    """Whether a query of sql/ has a row just where a row of its only relation passes `where` and meets a condition."""
    query = load(name).tree
    group, having, where = (query.args.get(key) for key in ("group", "having", "where"))
    if where is None or len(list(query.find_all(exp.Table))) != 1 or (group is None) == (having is None):
        return False
    is_any = having is None or having.this.sql() == "COUNT(*) > 0"
    return is_any and len(_conditions(query)) < len(_terms(where.this))


def _numbers_of_rows(queries: Sequence[exp.Query]) -> exp.Query:
    """How many rows of their relation meet the condition of each query: one row, a column for each."""

    def build() -> exp.Query:
        numbers = (exp.cast(exp.CountIf(this=exp.and_(*_conditions(query))), "BIGINT") for query in queries)
        columns = (exp.alias_(number, f"n_{index}") for index, number in enumerate(numbers))
        relation = next(queries[0].find_all(exp.Table))
        return exp.select(*columns).from_(relation.copy()).where(column(PASSES_WHERE))

    return kept(("numbers of rows", *map(part, queries)), build)


def _conditions(query: exp.Query) -> list[exp.Expr]:
    """The conditions of a query, but for the `where` of the relation that it reads first."""
    tables = {"", next(query.find_all(exp.Table)).alias_or_name}
    terms = _terms(query.args["where"].this)
    passes = (isinstance(each, exp.Column) and each.name == PASSES_WHERE and each.table in tables for each in terms)
    return [term.copy() for term, is_flag in zip(terms, passes, strict=True) if not is_flag]


def _terms(condition: exp.Expr) -> list[exp.Expr]:
    return list(condition.flatten()) if isinstance(condition, exp.And) else [condition]


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


# Faults that only a scan shows, as queries whose rows are the fault; the same for every stage.


Faults = list[dict[str, object]]


def shown_name(source: Source, name: str) -> str:
    """The name that people know a column of a canonical relation by: its name in the files."""
    return source.source_name(users_name(name))


def doubtful_groups(sources: Sequence[Source], by: Sequence[Grouped]) -> Iterator[str]:
    """Notes on floating-point numbers as grouping columns."""
    by_name = {source.name: source for source in sources}
    for grouped in by:
        if by_name[grouped.source].types(grouped.column, grouped.field) == "DOUBLE":
            yield Note(f"grouping column {grouped.label!r} is a floating number: NaN and infinite values count as NULL")


REPEATED_KEY = "checks/repeated_key"
OF_THRESHOLDS = "they are compared with the thresholds as DOUBLE"
OF_ORDER = "scores that are equal in it are ties"
_SYSTEMS = "A column that tells systems apart belongs in by."


def doubtful_scores(source: Source, consequence: str = OF_THRESHOLDS) -> Iterator[str]:
    """Warnings of scores that are rounded, or were, so that some which differ are equal.

    Args:
        source: An input that has scores.
        consequence: What follows of single precision.
    """
    if source.has_float32("score"):
        yield Note(f"scores are single precision (FLOAT): {consequence}")
    if source.is_beyond_doubles("score"):
        yield (
            f"scores of input {source.name} have more digits than a DOUBLE, which rounds whole numbers beyond "
            f"{MOST_EXACT:,}, and decimal ones likewise: some that differ become equal; map an expression with fewer "
            "digits, such as score // 1000"
        )


@dataclass(frozen=True)
class ShownNames:
    """The names that people know the columns of a check by: `names[column]` in its message.

    Attributes:
        source: The input that the fault is in.
        columns: Columns of its canonical relation by the names that the file gives them; default: the same name.
    """

    source: Source
    columns: Mapping[str, str]

    def __getitem__(self, name: str) -> str:
        """The name in the files."""
        return shown_name(self.source, self.columns.get(name, name))


def file_check(
    name: str,
    source: Source,
    segment: Sequence[str] = (),
    *,
    relations: Mapping[str, str | exp.Query] | None = None,
    columns: Mapping[str, str] | None = None,
    values: Mapping[str, float | str] | None = None,
    words: Callable[[Faults], Mapping[str, object]] | None = None,
    located: bool = True,
) -> Check:
    """A check of sql/: its query, with the message and the remedy of its header.

    The placeholders of these texts are `input`, the name of the input; `names[column]`, what people call a column;
    `rows`, the column `n_rows` in words; the columns of the first row; the values of the parameters; and `words`.
    The rows that the message locates are those of the first group or, where the query does not group, those that
    satisfy its condition.

    Args:
        name: `<stage>/checks/<file>`, or `checks/<file>`.
        source: The input that the fault is in.
        segment: The columns of a key: what stands where the file says `segment`.
        relations: The relation to read, or its query, by the name that the file gives it; `input_read` is that of the
            input.
        columns: The column to read, by the name that the file gives it; default: the same name.
        values: Values of the parameters.
        words: Further words for the texts, from the rows.
        located: Whether the message tells where the first fault is.
    """
    canonical, columns = f"{source.name}_read", columns or {}
    query = statement(
        name, segment, relations={"input_read": canonical, **(relations or {})}, columns=columns, values=values or {}
    )

    def explain(faults: Faults) -> tuple[str, str]:
        fault = faults[0] | {alias: faults[0].get(column_name) for alias, column_name in columns.items()}
        rows = {"rows": rows_in_words(fault["n_rows"])} if "n_rows" in fault else {}
        texts = {"input": source.name, "names": ShownNames(source, columns), **fault, **rows, **(values or {})}
        texts |= words(faults) if words is not None else {}
        header = load(name).header
        return header["message"].format_map(texts), header["remedy"].format_map(texts)

    if not located:
        return Check(query, explain)
    return Check(query, explain, source, lambda faults: _faulty_rows(query, canonical, faults[0]))


def _faulty_rows(query: exp.Query, canonical: str, fault: Mapping[str, object]) -> exp.Expr:
    """The condition of the rows of an input that a check is about; none where it does not read these rows alone."""
    group, where = query.args.get("group"), query.args.get("where")
    if group is not None:
        return _with_key(fault, [key.name for key in group.expressions])
    tables = list(query.find_all(exp.Table))
    if where is None or not tables or tables[0].name != canonical:
        return exp.false()
    first, joins, terms = tables[0].alias_or_name, query.args.get("joins") or [], _conditions(query)
    if len(tables) == 1:
        return exp.and_(*terms).transform(lambda node: column(node.name) if isinstance(node, exp.Column) else node)
    if len(tables) != len(joins) + 1 or len(joins) > 1 or joins[0].side:
        return exp.false()
    met = exp.select(exp.convert(1)).from_(tables[1].copy()).where(joins[0].args["on"].copy(), *terms)
    return exp.Exists(this=met).transform(lambda node: _of_rows(node, first))


def _of_rows(node: exp.Expr, first: str) -> exp.Expr:
    """A column of the rows of an input where a query that reads other rows, too, names it."""
    return column(node.name, ROWS) if isinstance(node, exp.Column) and node.table == first else node


def missing_check(source: Source, name: str) -> Check:
    """Check that a required column is nowhere NULL or not finite."""
    words = {"missing": missing_words(source, name), "or_map": or_map(source, name)}
    return file_check("checks/missing", source, columns={"value": name}, words=lambda _: words)


def missing_words(source: Source, name: str) -> str:
    """How a required column is described where the canonical relation has NULL."""
    field = source.contract.field(name)
    return "NULL, or neither 0 nor 1," if field is not None and field.kind == "boolean" else "NULL or not finite"


def or_map(source: Source, name: str) -> str:
    """How other numbers than 0 and 1 are mapped to a boolean, or how a column that is only named so is left alone."""
    field, file_column = source.contract.field(name), source.binding(name).column
    if field is not None and field.named_beside:
        return f" If it is something else: columns = {{ {name} = false }}."
    if field is None or field.kind != "boolean" or file_column is None or not source.is_integer(name):
        return ""
    mapped = as_mapping(name, f"{in_expression(file_column)} = 1")
    return f" Of other numbers say which are true: {mapped}."


def negative_check(source: Source, name: str) -> Check:
    """Check that no count is below zero."""
    return file_check("checks/negative", source, columns={"value": name})


def outside_check(source: Source, name: str, low: float, high: float) -> Check:
    """Check that no number lies below or above its range."""
    limits = {"lowest": float(low), "highest": float(high)}
    return file_check("checks/outside_range", source, columns={"value": name}, values=limits)


def duplicate_check(
    source: Source, keys: Sequence[str], *, remedy: str, of_systems: bool = False, relation: str = ""
) -> Check:
    """Check that no key repeats; the message names two that do, how many more there are, and where the first is.

    Args:
        source: The input.
        keys: The columns of the key.
        remedy: What the user can do.
        of_systems: Whether rows may be those of several systems, so that keys may repeat by a column that names them.
        relation: The canonical relation of all rows, where that of the input holds some of them.
    """

    def words(faults: Faults) -> dict[str, object]:
        return _repeats(source, keys, faults) | {"remedy": f"{remedy} {_SYSTEMS}" if of_systems else remedy}

    relations = {"input_read": relation} if relation else {}
    return file_check(REPEATED_KEY, source, keys, relations=relations, words=words)


def repeats_check(source: Source, keys: Sequence[str], consequence: str) -> CrossCheck:
    """Warn of keys that repeat, where every row counts all the same.

    Args:
        source: The input.
        keys: The columns of the key.
        consequence: What follows, and what the user can do.
    """

    def words(frames: Mapping[str, pl.DataFrame]) -> tuple[str, ...]:
        found = frames["repeated"].to_dicts()
        if not found:
            return ()
        texts = _repeats(source, keys, found)
        return (f"input {source.name}: {texts['keys']} repeat: {texts['examples']}{texts['others']}. {consequence}",)

    query = statement(REPEATED_KEY, keys, relations={"input_read": f"{source.name}_read"})
    return CrossCheck({"repeated": query}, words)


def _repeats(source: Source, keys: Sequence[str], faults: Faults) -> dict[str, object]:
    """The words about keys that repeat: two of them, and how many more there are."""
    examples = "; ".join(
        ", ".join(f"{shown_name(source, key)} = {fault[key]}" for key in keys) + f" ({rows_in_words(fault['n_rows'])})"
        for fault in faults
    )
    more = int(str(faults[0]["n_keys"])) - len(faults)
    return {
        "keys": listed(shown_name(source, key) for key in keys),
        "repeat": "repeats" if len(keys) == 1 else "repeat",
        "examples": examples,
        "others": f"; and {more:,} more" if more else "",
    }


def one_cluster_check(source: Source, relation: str, key: str, cluster: str) -> Check:
    """Check that every unit lies in one cluster: the rows of a unit in two would count twice."""
    words = {"cluster": users_name(cluster)}
    return file_check(
        "checks/several_clusters",
        source,
        relations={"units": relation},
        columns={"unit": key},
        words=lambda _: words,
    )


def _with_key(fault: Mapping[str, object], keys: Sequence[str]) -> exp.Expr:
    """The rows that have the key of a fault; none if a value is neither number nor text, which no literal can say."""
    if not all(isinstance(fault[key], int | str) for key in keys):
        return exp.false()
    return exp.and_(*(column(key).eq(exp.convert(fault[key])) for key in keys))
