"""The tables of a catalog: the statements that make and fill them, and what of a catalog is not ours."""

from __future__ import annotations

import glob
import json
import re
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any

import duckdb
import polars as pl
import sqlglot.expressions as exp
from sqlglot import parse_one

from ..base.dialect import column, data_type, render
from ..base.records import dataclass
from ..base.run_tables import ATTEMPTS, GATES, HISTORY_COLUMNS, METRICS, RECORD_TABLES, RUNS
from ..base.schemas import DESCRIPTION
from ..base.sql_files import macro_names, macros
from .layout import attempts_frame, history_frame, in_history, read_record, record_frames, runs_frame

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from pathlib import Path

    from ..base.schemas import Column
    from .layout import Layout, Manifest, PublishedFile


MAIN, HISTORY = "main", "history"
FILE_PATH = ",path"  # no grouping column has a comma in its name

ATTEMPTS_NOW = """
CREATE TEMP TABLE attempts AS
SELECT * FROM attempts WHERE NOT list_contains($stale, run_id) UNION ALL BY NAME FROM added ORDER BY started_at, run_id
"""
DROP = {"TABLE": "DROP TABLE target", "VIEW": "DROP VIEW target"}
EMPTY = "DELETE FROM target"
FORGET = "DELETE FROM target WHERE NOT list_contains($run_ids, run_id)"
ADD_ROWS = "INSERT INTO target BY NAME SELECT * FROM added"
ROWS_OF_RUNS = "SELECT run_id, count(*) FROM target GROUP BY run_id"
Columns = tuple[tuple[str, str], ...]  # name and SQL type, in order
View = tuple[str, str]  # schema and name


def table(view: View) -> exp.Table:
    """Return a table of the current database as a tree."""
    schema, name = view
    return exp.table_(name, db=schema, quoted=True)


def text(tree: exp.Expr) -> str:
    """Return a statement on one line."""
    return render(tree, pretty=False, copy=False)


@cache
def on(view: View, statement: str) -> str:
    """Return a statement about a table that its text calls `target`."""
    tree = parse_one(statement, read="duckdb")
    for target in [found for found in tree.find_all(exp.Table) if found.name == "target"]:
        target.replace(table(view))
    return text(tree)


@cache
def create(view: View, columns: Columns) -> str:
    """Create a table."""
    items = [_definition(name, sql_type) for name, sql_type in columns]
    return text(exp.Create(this=exp.Schema(this=table(view), expressions=items), kind="TABLE"))


@cache
def comment(view: View, words: str, *, kind: str = "TABLE", name: str | None = None) -> str:
    """Comment on a table, on a view, or on one of their columns."""
    target: exp.Expr = table(view)
    if name is not None:
        kind = "COLUMN"
        target = exp.column(exp.to_identifier(name, quoted=True), table=view[1], db=view[0], quoted=True)
    return text(exp.Comment(this=target, kind=kind, expression=exp.Literal.string(words)))


@cache
def add_column(view: View, name: str, sql_type: str) -> str:
    """Add a column, which is NULL in the existing rows."""
    return text(exp.Alter(this=table(view), kind="TABLE", actions=[_definition(name, sql_type)]))


@cache
def make_text(view: View, name: str) -> str:
    """Turn a column into VARCHAR."""
    changed = exp.AlterColumn(this=exp.to_identifier(name, quoted=True), dtype=_type("VARCHAR"))
    return text(exp.Alter(this=table(view), kind="TABLE", actions=[changed]))


@cache
def insert_file(view: View, columns: Columns, names: tuple[str, ...]) -> str:
    """Add the rows of the Parquet file `$path`, which has columns of the given names, and NULL in the others."""
    select = _row(_cast_items(columns, names)).from_(_read(exp.Placeholder(this="path")), copy=False)
    return text(exp.Insert(this=table(view), expression=select))


@cache
def insert_files(view: View, leading: Columns, columns: Columns) -> str:
    """Add the rows of the Parquet files `$paths` to a table of history; in front what `listed` has by their paths."""
    files = _read(exp.Placeholder(this="paths"), filename=exp.Literal.string(FILE_PATH))
    names = [name for name, _ in columns]
    items = [*(column(name, "listed") for name, _ in leading), *_cast_items(columns, names, "files")]
    listed = exp.EQ(this=column(FILE_PATH, "files"), expression=column("path", "listed"))
    aliased = exp.Table(this=files, alias=exp.TableAlias(this=exp.to_identifier("files")))
    select = _row(items).from_(aliased, copy=False).join("listed", on=listed, copy=False)
    return text(exp.Insert(this=table(view), expression=select, by_name=True))


@cache
def remember(name: str, leading: Columns) -> str:
    """Add the rows of the latest run to its table in history, with parameters of the names of `leading` in front."""
    values = (named(exp.Cast(this=exp.Placeholder(this=key), to=_type(sql_type)), key) for key, sql_type in leading)
    select = _row([*values, exp.Star()]).from_(table((MAIN, name)), copy=False)
    return text(exp.Insert(this=table((HISTORY, name)), expression=select, by_name=True))


@cache
def count_rows(views: tuple[View, ...], *, of_run: bool) -> str:
    """Count the rows of each table, with its number; with `of_run`, only rows of `$run_id`."""
    selects = []
    for number, view in enumerate(views):
        select = exp.select(exp.Literal.number(number), exp.Count(this=exp.Star())).from_(table(view), copy=False)
        if of_run:
            select = select.where(exp.EQ(this=column("run_id"), expression=exp.Placeholder(this="run_id")), copy=False)
        selects.append(select)
    return text(union(selects))


def view_of_files(view: View, columns: Columns, files: Mapping[str, Collection[str]]) -> str:
    """A view of Parquet files by their paths, each with names of columns as in `insert_file`."""
    selects = [
        _row(_cast_items(columns, names)).from_(_read(exp.Literal.string(path)), copy=False)
        for path, names in files.items()
    ]
    return text(exp.Create(this=table(view), kind="VIEW", expression=union(selects), replace=True))


def show_through(view: View, run_ids: tuple[str, ...] | None) -> str:
    """A view of a table of the attached catalog, without the runs that are not among the given ids."""
    select = exp.select("*").from_(exp.table_(view[1], db=view[0], catalog="catalog", quoted=True), copy=False)
    if run_ids is not None:
        select = select.where(column("run_id").isin(*run_ids), copy=False)
    return text(exp.Create(this=table(view), kind="VIEW", expression=select))


def runs_in_place(run_ids: tuple[str, ...], front: str, columns: Columns) -> str:
    """The view `runs` of the attached catalog, of runs with the given ids; `front` now stands before their names."""
    path = exp.func("replace", column("path"), exp.Literal.string("\\"), exp.Literal.string("/"))
    name = exp.func("list_extract", exp.func("string_split", path, exp.Literal.string("/")), exp.Literal.number(-1))
    moved = named(exp.DPipe(this=exp.Literal.string(front), expression=name), "path")
    items = [moved if name == "path" else column(name) for name, _ in columns]
    select = _row(items).from_(exp.table_("runs", db=MAIN, catalog="catalog", quoted=True), copy=False)
    select = select.where(column("run_id").isin(*run_ids), copy=False)
    return text(exp.Create(this=table((MAIN, "runs")), kind="VIEW", expression=select))


def union(selects: list[exp.Select]) -> exp.Query:
    """All rows of queries."""
    return selects[0] if len(selects) == 1 else exp.union(*selects, distinct=False, copy=False)


def named(value: exp.Expr, name: str) -> exp.Expr:
    """A value under a name."""
    return exp.Alias(this=value, alias=exp.to_identifier(name, quoted=True))


def _read(path: exp.Expr, **options: exp.Expr) -> exp.Expr:
    # hive_partitioning is off so that a folder above the results called `a=b` adds no column
    options = {"hive_partitioning": exp.false(), **options}
    words = [exp.EQ(this=exp.column(name), expression=value) for name, value in options.items()]
    return exp.func("read_parquet", path, *words)


def _cast_items(columns: Columns, names: Collection[str], files: str | None = None) -> list[exp.Expr]:
    return [
        named(exp.Cast(this=column(name, files) if name in names else exp.null(), to=_type(sql_type)), name)
        for name, sql_type in columns
    ]


def _definition(name: str, sql_type: str) -> exp.Expr:
    return exp.ColumnDef(this=exp.to_identifier(name, quoted=True), kind=_type(sql_type))


def _type(sql_type: str) -> exp.DataType:
    return data_type(sql_type).copy()


def _row(items: list[exp.Expr]) -> exp.Select:
    """A SELECT of new items: they are taken as they are, since a copy of every tree costs more than all the rest."""
    return exp.select(*items, copy=False)


TABLE_ROWS = 100_000  # a table of the latest run that has more rows is a view of its files
RunFolder = tuple["Path", "Manifest"]


@dataclass(frozen=True)
class Shape:
    """The columns of a table of a catalog, and whether it is a view of files."""

    columns: Columns
    is_view: bool = False


def shapes(runs: Sequence[RunFolder], *, holds_all: bool = False) -> dict[View, Shape]:
    """Return the tables of a catalog of runs, the last of which is the latest, by schema and name.

    With `holds_all` no table is a view of files, however large, so that the catalog can be read without them.
    """
    wanted: dict[View, Shape] = {(MAIN, table.name): Shape(of_contract(table.columns)) for table in (RUNS, ATTEMPTS)}
    leading = of_contract(HISTORY_COLUMNS)
    for table in (METRICS, GATES, *RECORD_TABLES):  # also where a run made no such table: macros and readers need them
        columns = of_contract(table.columns)
        wanted[MAIN, table.name], wanted[HISTORY, table.name] = Shape(columns), Shape(leading + columns)
    for name in tables_of(runs[-1:]):
        files = files_of(runs[-1:], name)
        is_view = not holds_all and name != METRICS.name and sum(file.rows for _, _, file in files) > TABLE_ROWS
        wanted[MAIN, name] = Shape(columns_of(file for _, _, file in files), is_view)
    for name in tables_of(runs):
        wanted[HISTORY, name] = Shape(_with_front([file for _, _, file in files_of(runs, name)]))
    return wanted


def _with_front(files: Sequence[PublishedFile]) -> Columns:
    """Return the columns of a table of history; text where some files name a grouping column as one in front."""
    columns, named = columns_of(files), [{name.lower() for name in file.schema} for file in files]
    mixed = {name for name, _ in of_contract(HISTORY_COLUMNS) if not all(name in names for names in named)}
    texts = tuple((name, "VARCHAR" if name.lower() in mixed else sql_type) for name, sql_type in columns)
    return in_front(columns) + texts


def in_front(columns: Columns) -> Columns:
    """Return the columns that a table has in addition in `history`; a grouping column of the same name comes first."""
    taken = {name.lower() for name, _ in columns}
    return tuple(column for column in of_contract(HISTORY_COLUMNS) if column[0] not in taken)


def of_contract(columns: Iterable[Column]) -> Columns:
    """Return the columns of a contract."""
    return tuple((column.name, column.type) for column in columns)


def tables_of(runs: Iterable[RunFolder]) -> list[str]:
    """Return the names of the result tables of runs, sorted."""
    return sorted({file.table for _, manifest in runs for file in manifest.files if file.table})


def files_of(runs: Iterable[RunFolder], table: str) -> list[tuple[Path, Manifest, PublishedFile]]:
    """Return the files of a table in runs, each with the folder and the manifest of its run."""
    return [(folder, manifest, file) for folder, manifest in runs for file in manifest.files if file.table == table]


def stored_files(runs: Iterable[RunFolder], table: str) -> list[tuple[Path, Manifest, PublishedFile]]:
    """Return the files of a table in runs whose rows are in history."""
    return [listed for listed in files_of(runs, table) if in_history(listed[2], listed[1])]


def columns_of(files: Iterable[PublishedFile]) -> Columns:
    """Return the union of the columns in order of appearance; a column whose type differs between files is VARCHAR."""
    columns: dict[str, str] = {}
    for file in files:
        for name, sql_type in file.schema.items():
            if columns.setdefault(name, sql_type) != sql_type:
                columns[name] = "VARCHAR"
    return tuple(columns.items())


_COLUMNS = """
SELECT schema_name, table_name, column_name, data_type
FROM duckdb_columns()
WHERE NOT internal AND database_name = current_database()
ORDER BY schema_name, table_name, column_index
"""
_TABLES = (
    "SELECT schema_name, table_name FROM duckdb_tables() WHERE NOT internal AND database_name = current_database()"
)
_VIEWS = "SELECT schema_name, view_name FROM duckdb_views() WHERE NOT internal AND database_name = current_database()"
_LONG_NAMES = {"TIMESTAMPTZ": "TIMESTAMP WITH TIME ZONE"}

STORAGE_VERSION = "v1.4.0"  # DuckDB 1.4 and later read it; older ones take five times as much space and time
BLOCK_SIZE = 65536  # bytes: smaller ones leave numbers uncompressed, larger ones waste space in small tables

LeftOut = dict[str, tuple[str, ...]]  # damaged files by the name of the run's folder


def attach(connection: duckdb.DuckDBPyConnection, path: Path, *, read_only: bool = False, is_used: bool = True) -> None:
    """Attach a catalog to a connection, and make it the current database if it is to be used."""
    options: dict[str, exp.Expr] = {
        "STORAGE_VERSION": exp.Literal.string(STORAGE_VERSION),
        "BLOCK_SIZE": exp.Literal.number(BLOCK_SIZE),
    }
    if read_only:
        options = {"READ_ONLY": exp.true()}
    words = [exp.AttachOption(this=exp.var(name), expression=value) for name, value in options.items()]
    connection.execute(render(exp.Attach(this=exp.alias_(exp.Literal.string(str(path)), "catalog"), expressions=words)))
    if is_used:
        connection.execute("USE catalog")


def detach(connection: duckdb.DuckDBPyConnection) -> None:
    """Undo `attach`."""
    connection.execute("USE memory")
    connection.execute("DETACH catalog")


def existing_shapes(connection: duckdb.DuckDBPyConnection) -> dict[View, Shape]:
    """Return the tables and views of the current database."""
    tables = set(connection.execute(_TABLES).fetchall())  # the same question about views takes nine times as long
    columns: dict[View, list[tuple[str, str]]] = {}
    for schema, table, name, sql_type in connection.execute(_COLUMNS).fetchall():
        columns.setdefault((schema, table), []).append((name, sql_type))
    return {view: Shape(tuple(listed), view not in tables) for view, listed in columns.items()}


def drop_views(connection: duckdb.DuckDBPyConnection) -> None:
    """Remove the views of the current database without running them: views of the latest run are made again."""
    for view in connection.execute(_VIEWS).fetchall():
        connection.execute(on(view, DROP["VIEW"]))


def make_tables(
    connection: duckdb.DuckDBPyConnection, wanted: Mapping[View, Shape], latest: RunFolder, *, fresh: bool
) -> None:
    """Make what is missing and change what differs, so that the tables can take the rows of the latest run.

    A table of history keeps the columns that it has: further ones are added, and one of another type becomes VARCHAR.
    Views of files are not made here. Macros are defined.
    """
    if fresh:
        connection.execute("CREATE SCHEMA IF NOT EXISTS history")
    existing = {} if fresh else existing_shapes(connection)
    for view, shape in existing.items():
        target = wanted.get(view)
        is_same = target is not None and not (shape.is_view or target.is_view) and _long(shape) == _long(target)
        if view[0] == MAIN and not is_same:
            connection.execute(on(view, DROP["VIEW" if shape.is_view else "TABLE"]))
    describing = _Describing(latest)
    for view, shape in wanted.items():
        if shape.is_view:
            continue
        before = existing.get(view)
        if before is not None and view[0] == HISTORY:
            _widen(connection, view, before, shape, describing)
        elif before is None or before.is_view or _long(before) != _long(shape):
            connection.execute(create(view, shape.columns))
            comment_on(connection, view, shape, describing)
    if fresh:
        define_macros(connection)


def _widen(
    connection: duckdb.DuckDBPyConnection, view: View, before: Shape, shape: Shape, describing: _Describing
) -> None:
    existing = dict(_long(before) or ())
    for name, sql_type in shape.columns:
        if name not in existing:
            connection.execute(add_column(view, name, sql_type))
            connection.execute(comment(view, describing.column(view, name), name=name))
        elif existing[name] not in {_long_name(sql_type), "VARCHAR"}:
            connection.execute(make_text(view, name))


def _long(shape: Shape | None) -> tuple[tuple[str, str], ...] | None:
    """Return the columns with the names of types that DuckDB shows."""
    return None if shape is None else tuple((name, _long_name(sql_type)) for name, sql_type in shape.columns)


def _long_name(sql_type: str) -> str:
    return _LONG_NAMES.get(sql_type, sql_type.replace(", ", ","))


def define_macros(connection: duckdb.DuckDBPyConnection) -> None:
    """Define the macros of sql/catalog."""
    for macro in macros():
        connection.execute(macro)


class _Describing:
    """The comments on tables and columns: of contracts, and of what the Parquet files of a run say themselves."""

    def __init__(self, run: RunFolder) -> None:
        self._run = run
        contracts = (RUNS, ATTEMPTS, METRICS, GATES, *RECORD_TABLES)
        self._texts: dict[str, dict[str, Any]] = {
            table.name: json.loads(table.description(column.name for column in table.columns)) for table in contracts
        }
        self._of_history = {column.name: column.comment for column in HISTORY_COLUMNS}

    def table(self, view: View) -> str:
        grain = str(self._of(view[1]).get("grain", ""))
        return f"{grain}, of every kept run" if view[0] == HISTORY and grain else grain

    def column(self, view: View, name: str) -> str:
        own_text = self._of(view[1]).get("columns", {}).get(name)
        if own_text is None and view[0] == HISTORY:
            return self._of_history.get(name, "")
        return str(own_text or "")

    def _of(self, table: str) -> dict[str, Any]:
        if table not in self._texts:
            self._texts[table] = self._read(table)
        return self._texts[table]

    def _read(self, table: str) -> dict[str, Any]:
        folder, manifest = self._run
        for file in manifest.files:
            if file.table == table:
                # an earlier version's has none
                with suppress(OSError, ValueError, KeyError, pl.exceptions.PolarsError):
                    return dict(json.loads(pl.read_parquet_metadata(folder / file.path)[DESCRIPTION]))
        return {}


def comment_on(
    connection: duckdb.DuckDBPyConnection, view: View, shape: Shape, describing: _Describing, *, more: str = ""
) -> None:
    """Comment on a table or view and on its columns."""
    texts = [comment(view, describing.table(view) + more, kind="VIEW" if shape.is_view else "TABLE")]
    texts += [comment(view, describing.column(view, name), name=name) for name, _ in shape.columns]
    for text in texts:
        connection.execute(text)


def fill(
    connection: duckdb.DuckDBPyConnection,
    runs: Sequence[RunFolder],
    wanted: Mapping[View, Shape],
    left_out: LeftOut,
    *,
    fresh: bool,
) -> None:
    """Add the rows of runs, the latest last, and put those of the latest run into the tables of schema `main`.

    `fresh` says that the tables have no row yet; `left_out` are damaged files by the name of the run's folder.
    """
    latest = runs[-1]
    _insert(connection, (MAIN, RUNS.name), runs_frame(runs, left_out))
    _remember_older(connection, runs[:-1])
    in_history = history_frame([latest]).row(0, named=True)
    for table in tables_of([latest]):
        _replace(connection, (MAIN, table), wanted[MAIN, table], latest, fresh=fresh)
        if any(file.rows for _, _, file in stored_files([latest], table)):
            leading = in_front(columns_of(file for _, _, file in files_of([latest], table)))
            connection.execute(remember(table, leading), {name: in_history[name] for name, _ in leading})
    for name, frame in record_frames(runs).items():
        _insert(connection, (HISTORY, name), frame)
        if not fresh:
            connection.execute(on((MAIN, name), EMPTY))
        of_latest = frame.filter(pl.col("run_id") == latest[1].run_id)
        _insert(connection, (MAIN, name), of_latest.drop(column.name for column in HISTORY_COLUMNS))


def _replace(
    connection: duckdb.DuckDBPyConnection, view: View, shape: Shape, latest: RunFolder, *, fresh: bool
) -> None:
    if shape.is_view:
        view_of_latest(connection, view, shape, latest)
        more = f"; a view of files, because it has over {TABLE_ROWS:,} rows: a copy of this catalog does not hold them"
        comment_on(connection, view, shape, _Describing(latest), more=more)
        return
    if not fresh:
        connection.execute(on(view, EMPTY))
    for _, _, file in files_of([latest], view[1]):
        if file.rows:
            path = glob.escape(str(latest[0] / file.path))
            connection.execute(insert_file(view, shape.columns, tuple(file.schema)), {"path": path})


def view_of_latest(connection: duckdb.DuckDBPyConnection, view: View, shape: Shape, latest: RunFolder) -> None:
    """Make a view of the files of the latest run."""
    files = [file for _, _, file in files_of([latest], view[1])]
    names = {glob.escape(str(latest[0] / file.path)): file.schema.keys() for file in files}
    connection.execute(view_of_files(view, columns_of(files) or shape.columns, names))


def _remember_older(connection: duckdb.DuckDBPyConnection, runs: Sequence[RunFolder]) -> None:
    """Add the rows of many runs to history, reading files with the same columns together."""
    runs_in_front = history_frame(runs)
    for table in tables_of(runs):
        alike: dict[Columns, list[tuple[Path, Manifest, PublishedFile]]] = {}
        for stored in stored_files(runs, table):
            alike.setdefault(tuple(stored[2].schema.items()), []).append(stored)
        for stored_alike in alike.values():
            paths = [str(folder / file.path) for folder, _, file in stored_alike]
            run_ids = [manifest.run_id for _, manifest, _ in stored_alike]
            listed = pl.DataFrame({"path": paths, "run_id": run_ids})
            connection.register("listed", listed.join(runs_in_front, on="run_id", maintain_order="left"))
            columns = columns_of([stored_alike[0][2]])
            text = insert_files((HISTORY, table), in_front(columns), columns)
            connection.execute(text, {"paths": list(map(glob.escape, paths))})
            connection.unregister("listed")


def _insert(connection: duckdb.DuckDBPyConnection, view: View, frame: pl.DataFrame) -> None:
    if frame.is_empty():
        return
    connection.register("added", frame)
    connection.execute(on(view, ADD_ROWS))
    connection.unregister("added")


def forget_runs(connection: duckdb.DuckDBPyConnection, kept: Iterable[str], existing: Iterable[View]) -> None:
    """Remove the rows of all runs but the given ones."""
    run_ids = list(kept)
    for view in existing:
        if view[0] == HISTORY or view == (MAIN, RUNS.name):
            connection.execute(on(view, FORGET), {"run_ids": run_ids})


def newer_attempts(connection: duckdb.DuckDBPyConnection, layout: Layout) -> tuple[list[str], pl.DataFrame]:
    """Return the ids in the table `attempts` that are out of date, and the rows that it lacks.

    The truth of attempts are their records: the table is compared with the names of these, and only what is new or had
    not ended is read.
    """
    listed = dict(connection.execute("SELECT run_id, status FROM attempts").fetchall())
    names = set(layout.attempt_ids())
    stale = [run_id for run_id, status in listed.items() if run_id not in names or status in {None, "running"}]
    wanted = sorted(names - (listed.keys() - set(stale)))
    records = ((run_id, read_record(layout.attempt(run_id)) or {}) for run_id in wanted)
    return stale, attempts_frame(records)


def update_attempts(connection: duckdb.DuckDBPyConnection, layout: Layout, attempt: Mapping[str, Any] | None) -> None:
    """Bring the table `attempts` up to date; `attempt` is how the attempt that publishes will have ended."""
    stale, frame = newer_attempts(connection, layout)
    if attempt is not None:
        frame = frame.filter(pl.col("run_id") != attempt["run_id"])
        frame = pl.concat([frame, attempts_frame([(str(attempt["run_id"]), dict(attempt))])])
    connection.execute("DELETE FROM attempts WHERE list_contains($stale, run_id)", {"stale": stale})
    _insert(connection, (MAIN, ATTEMPTS.name), frame)


# What a catalog holds that this package did not put there: it is told before anything of it is run.


_FOREIGN = {  # what must find nothing: how it is told
    """
    SELECT schema_name FROM duckdb_schemas()
    WHERE database_name = 'catalog' AND NOT internal AND schema_name NOT IN ('main', 'history')
    """: "has the schema",
    """
    SELECT schema_name, table_name, column_name FROM duckdb_columns()
    WHERE database_name = 'catalog' AND NOT internal AND column_default IS NOT NULL
    """: "computes the column",
    """
    SELECT schema_name, type_name FROM duckdb_types() WHERE database_name = 'catalog' AND NOT internal
    """: "has the type",
}
_VIEWS_OF_CATALOG = "SELECT schema_name, view_name, sql FROM duckdb_views() WHERE database_name = $1 AND NOT internal"
_MACROS = """
SELECT schema_name, function_name, function_type, parameters, macro_definition
FROM duckdb_functions()
WHERE database_name = $1 AND NOT internal
"""


def locked_connection(root: Path) -> duckdb.DuckDBPyConnection:
    """Return a connection in memory that can read files below a folder and nothing else, whatever it is asked to run.

    It is locked before a catalog is attached: the catalog may be one that somebody else made.
    """
    connection = duckdb.connect(
        ":memory:", config={"autoinstall_known_extensions": False, "autoload_known_extensions": False}
    )
    with suppress(duckdb.InvalidInputException):  # in a Jupyter kernel without ipywidgets, which shows no bar anyway
        connection.execute("SET enable_progress_bar = false")
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute("SET python_enable_replacements = false")
    # views ask for a file by its escaped name, and find it by its own
    connection.execute("SET allowed_directories = $1", [[str(root), glob.escape(str(root))]])
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection


def foreign_in_catalog(connection: duckdb.DuckDBPyConnection, views: Collection[View] | None) -> str:
    """Say what an attached catalog holds that thresher does not put there; nothing of the catalog is run to tell.

    The catalog is not the current database, so that no macro of it is taken for a function of DuckDB. It may have
    `views`; None: any, because neither they nor macros are used. The answer is a sentence without its subject.
    """
    for text, words in _FOREIGN.items():
        first = connection.execute(text).fetchone()
        if first is not None:
            return f"{words} {'.'.join(map(str, first))}, which is not of thresher"
    for view in connection.execute(_VIEWS_OF_CATALOG, ["catalog"]).fetchall():
        if views is not None and view[:2] not in views:
            return f"has the view {view[0]}.{view[1]}, which no manifest explains"
    existing = _macros_of(connection, "catalog")
    named_otherwise = {name for _, name, *_ in existing} - macro_names()
    if named_otherwise or (views is not None and existing - _own_macros()):  # a run calls none
        return f"has the macro {min(named_otherwise, default='of another text')}, which is not of thresher"
    return ""


def _macros_of(connection: duckdb.DuckDBPyConnection, database: str) -> frozenset[tuple[str, ...]]:
    """Return the macros of an attached database: schema, name, kind, parameters and text.

    The text is without blanks and double quotes: some versions of DuckDB put names of types in quotes before a macro
    has been in a file.
    """
    macros = connection.execute(_MACROS, [database]).fetchall()
    return frozenset((*map(str, names), re.sub(r'[\s"]', "", str(text))) for *names, text in macros)


@cache
def _own_macros() -> frozenset[tuple[str, ...]]:
    with duckdb.connect(":memory:") as connection:
        connection.execute("CREATE SCHEMA history")
        for view, shape in shapes(()).items():  # the tables that macros name have to be there
            connection.execute(create(view, shape.columns))
        define_macros(connection)
        return _macros_of(connection, "memory")
