"""The catalog: views on the latest run, the same views on all kept runs, and the views `runs` and `inputs`."""

from __future__ import annotations

import glob
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import duckdb
import sqlglot.expressions as exp

from pipeline.errors import StorageError
from pipeline.queries.dialect import column, data_type, render
from pipeline.storage.durable import json_bytes, own_sha256, storage_errors, sync_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from pipeline.storage.layout import Layout
    from pipeline.storage.manifest import Manifest, PublishedFile

HISTORY = "history"
STORAGE_VERSION = "v1.0.0"
VIEWS_VERSION = 2  # another number makes every run build the catalog again
RENAMED_COLUMNS = {"inputs": {"fate": "status"}}  # table: {name in kept runs of earlier versions: name in the views}
RUN_COLUMNS = {"run_id": "VARCHAR", "generation": "BIGINT", "published_at": "TIMESTAMP", "path": "VARCHAR"}

_HISTORY_COLUMNS = ("run_id", "published_at")
_VIEWS = "SELECT schema_name, view_name FROM duckdb_views() WHERE NOT internal"
_COLUMNS = """
SELECT schema_name, table_name, list(column_name ORDER BY column_index)
FROM duckdb_columns()
WHERE NOT internal AND database_name = current_database()
GROUP BY ALL
"""

RunFolder = tuple["Path", "Manifest"]
View = tuple[str, str]  # schema and name


@dataclass(frozen=True)
class StagedCatalog:
    """A catalog that readers cannot see yet.

    Attributes:
        path: Its file.
        sha256: Hash of the file.
        shows: Hash of the runs and tables that it shows.
    """

    path: Path
    sha256: str
    shows: str


def stage_catalog(layout: Layout, name: str, runs: Sequence[RunFolder]) -> StagedCatalog:
    """Build a catalog in the staging folder and force it to disk; arguments and errors are those of `build_catalog`."""
    path = layout.staging / f"{name}.duckdb"
    with storage_errors(f"writing {path}"):
        layout.staging.mkdir(exist_ok=True)
        path.unlink(missing_ok=True)
        build_catalog(path, runs)
    return StagedCatalog(path, own_sha256(path), what_is_shown(runs))


def what_is_shown(runs: Sequence[RunFolder]) -> str:
    """Return the hash of what a catalog of these runs shows: their folders and tables."""
    shown = [[str(folder), run.run_id, run.published_at, [*run.results.items()]] for folder, run in runs]
    return hashlib.sha256(json_bytes([VIEWS_VERSION, shown])).hexdigest()


def build_catalog(path: Path, runs: Sequence[RunFolder]) -> None:
    """Write a catalog under a new name and check it before anyone sees it.

    Args:
        path: A path that does not exist yet.
        runs: Folder and manifest of every kept run, oldest first; the last is the latest.

    Raises:
        StorageError: the catalog on disk does not show the rows of the manifest.
    """
    with duckdb.connect(":memory:") as connection:
        _attach(connection, path, STORAGE_VERSION=exp.Literal.string(STORAGE_VERSION))
        connection.execute("BEGIN TRANSACTION")  # one, so that the disk is waited for once
        define_views(connection, runs)
        connection.execute("COMMIT")
        connection.execute("CHECKPOINT catalog")
        _detach(connection)
        if path.with_name(path.name + ".wal").exists():
            message = f"{path} was not written completely"
            raise StorageError(message, remedy="Free some space and run again.")
        faults = _faults_as_read(connection, path, runs)
    for fault in faults:
        raise StorageError(fault, remedy="Run again; if it happens again the disk is failing.")
    sync_file(path)


def _faults_as_read(connection: duckdb.DuckDBPyConnection, path: Path, runs: Sequence[RunFolder]) -> list[str]:
    """What the written file shows otherwise than it should; through the same connection, as opening one is slow."""
    try:
        _attach(connection, path, READ_ONLY=exp.true())
        faults = _view_faults(connection, path, runs, history=False)
        _detach(connection)
    except duckdb.Error as error:
        return [f"{path} cannot be opened: {_first_line(error)}"]
    return faults


def _attach(connection: duckdb.DuckDBPyConnection, path: Path, **options: exp.Expr) -> None:
    """Make a catalog the current database of a connection."""
    named = [exp.AttachOption(this=exp.var(name), expression=value) for name, value in options.items()]
    connection.execute(render(exp.Attach(this=exp.alias_(exp.Literal.string(str(path)), "catalog"), expressions=named)))
    connection.execute("USE catalog")


def _detach(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("USE memory")
    connection.execute("DETACH catalog")


def define_views(connection: duckdb.DuckDBPyConnection, runs: Sequence[RunFolder]) -> None:
    """Create every view in the current database of a connection; the last run is the latest."""
    connection.execute("CREATE SCHEMA IF NOT EXISTS history")
    rows = [_run_row(folder, manifest) for folder, manifest in runs]
    _create(connection, exp.to_table("runs"), _union(rows))
    for table in _tables(runs[-1:]):
        files = _files(runs[-1:], table)
        columns = _columns(file for _, _, file in files)
        _create(
            connection,
            exp.table_(table, quoted=True),
            _union(_select(folder, file, columns) for folder, _, file in files),
        )
    for table in _tables(runs):
        files = _files(runs, table)
        columns = _columns(file for _, _, file in files)
        selects = [_select(folder, file, columns, run=manifest) for folder, manifest, file in files]
        _create(connection, exp.table_(table, db=HISTORY, quoted=True), _union(selects))


def _tables(runs: Iterable[RunFolder]) -> list[str]:
    return sorted({file.table for _, manifest in runs for file in manifest.files if file.table})


def _files(runs: Iterable[RunFolder], table: str) -> list[tuple[Path, Manifest, PublishedFile]]:
    return [(folder, manifest, file) for folder, manifest in runs for file in manifest.files if file.table == table]


def _columns(files: Iterable[PublishedFile]) -> dict[str, str]:
    """Union of the columns in order of appearance; a column whose type differs between files is VARCHAR."""
    columns: dict[str, str] = {}
    for file in files:
        for name, name_in_file in _names_in_file(file).items():
            sql_type = file.schema[name_in_file]
            if columns.setdefault(name, sql_type) != sql_type:
                columns[name] = "VARCHAR"
    return columns


def _names_in_file(file: PublishedFile) -> dict[str, str]:
    """Name in the file by name in the views; they differ where an earlier version used another name."""
    renamed = RENAMED_COLUMNS.get(file.table, {})
    return {renamed.get(name, name): name for name in file.schema}


def _select(folder: Path, file: PublishedFile, columns: dict[str, str], run: Manifest | None = None) -> exp.Select:
    literal = exp.Literal.string(glob.escape(str(folder / file.path)))
    # hive_partitioning is off so that a folder above the results called `a=b` adds no column
    options = exp.EQ(this=exp.column("hive_partitioning"), expression=exp.false())
    names = _names_in_file(file)
    items = [
        _named(_cast(column(names[name]) if name in names else exp.null(), sql_type), name)
        for name, sql_type in columns.items()
    ]
    if run is not None:
        items = [*_run_items(run), *items]
    return _row(items).from_(exp.func("read_parquet", literal, options), copy=False)


def _run_items(run: Manifest) -> list[exp.Expr]:
    timestamp = _cast(exp.Literal.string(run.published_at), "TIMESTAMP")
    return [_named(exp.Literal.string(run.run_id), "run_id"), _named(timestamp, "published_at")]


def _run_row(folder: Path, run: Manifest) -> exp.Select:
    run_id, published_at = _run_items(run)
    generation = _named(_cast(exp.Literal.number(run.generation), "BIGINT"), "generation")
    return _row([run_id, generation, published_at, _named(exp.Literal.string(str(folder)), "path")])


def _row(items: Sequence[exp.Expr]) -> exp.Select:
    """A SELECT of new items: they are taken as they are, since a copy of every tree costs more than all the rest."""
    return exp.select(*items, copy=False)


def _named(value: exp.Expr, name: str) -> exp.Expr:
    return exp.Alias(this=value, alias=exp.to_identifier(name, quoted=True))


def _cast(value: exp.Expr, sql_type: str) -> exp.Expr:
    return exp.Cast(this=value, to=data_type(sql_type).copy())


def _union(queries: Iterable[exp.Select]) -> exp.Query:
    selects = list(queries)
    return selects[0] if len(selects) == 1 else exp.union(*selects, distinct=False, copy=False)


def _create(connection: duckdb.DuckDBPyConnection, name: exp.Table, query: exp.Query) -> None:
    view = exp.Create(this=name, kind="VIEW", expression=query, replace=True)
    connection.execute(render(view, pretty=False, copy=False))


def view_faults(path: Path, runs: Sequence[RunFolder], *, history: bool = True) -> list[str]:
    """Compare the views of a catalog, their columns and numbers of rows with the manifests; return the differences.

    Args:
        path: The catalog.
        runs: What it was built from.
        history: Whether to open the views on all runs, too.
    """
    try:
        with duckdb.connect(str(path), read_only=True) as connection:
            return _view_faults(connection, path, runs, history=history)
    except duckdb.Error as error:
        return [f"{path} cannot be opened: {_first_line(error)}"]


def _view_faults(
    connection: duckdb.DuckDBPyConnection, path: Path, runs: Sequence[RunFolder], *, history: bool
) -> list[str]:
    """As `view_faults`, of the current database of a connection."""
    names = {(schema, name) for schema, name in connection.execute(_VIEWS).fetchall()}
    expected = {("main", "runs"): (list(RUN_COLUMNS), len(runs))}
    expected |= {("main", table): _promise(runs[-1:], table) for table in _tables(runs[-1:])}
    promised = {(HISTORY, table): _promise(runs, table, [*_HISTORY_COLUMNS]) for table in _tables(runs)}
    if names != expected.keys() | promised.keys():
        return [f"{path} has other views than its runs have tables"]
    expected |= promised if history else {}
    columns = {(schema, name): names for schema, name, names in connection.execute(_COLUMNS).fetchall()}
    rows = _rows(connection, list(expected))
    faults = (_view_fault(view, promise, columns[view], rows[view]) for view, promise in expected.items())
    return [f"{path}: {fault}" for fault in faults if fault]


def _promise(runs: Sequence[RunFolder], table: str, leading: Sequence[str] = ()) -> tuple[list[str], int]:
    """Return the columns and the number of rows that a view must have."""
    files = [file for _, _, file in _files(runs, table)]
    return [*leading, *_columns(files)], sum(file.rows for file in files)


def _rows(connection: duckdb.DuckDBPyConnection, views: Sequence[View]) -> dict[View, int | str]:
    """Return the number of rows of every view, or why it cannot be opened.

    One statement counts all, and one view after another if that fails. To count them is to open them: our views name
    each of their columns, so that one cannot be counted whose files lack a column.
    """
    counts = [
        exp.select(exp.Literal.number(number), exp.Count(this=exp.Star())).from_(
            exp.table_(name, db=schema, quoted=True)
        )
        for number, (schema, name) in enumerate(views)
    ]
    try:
        answer = connection.execute(render(_union(counts), pretty=False, copy=False)).fetchall()
    except duckdb.Error as error:
        if len(views) == 1:
            return {views[0]: _first_line(error)}
        return {view: rows for each in views for view, rows in _rows(connection, [each]).items()}
    return {views[number]: rows for number, rows in answer}


def _view_fault(view: View, promise: tuple[list[str], int], columns: list[str], rows: int | str) -> str | None:
    name = ".".join(view)
    if isinstance(rows, str):
        return f"view {name} cannot be opened: {rows}"
    if columns != promise[0]:
        return f"view {name} has other columns than its manifest says"
    if rows != promise[1]:
        return f"view {name} has {rows} rows, its manifest says {promise[1]}"
    return None


def _first_line(error: duckdb.Error) -> str:
    return str(error).strip().splitlines()[0]
