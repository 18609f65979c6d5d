"""The catalog: views on the latest run, the same views on all kept runs, and the views `runs` and `inputs`."""

from __future__ import annotations

import glob
from typing import TYPE_CHECKING

import duckdb
import sqlglot.expressions as exp

from pipeline.dialect import column, render
from pipeline.errors import StorageError
from pipeline.storage.durable import sync_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from pipeline.storage.manifest import Manifest, PublishedFile

HISTORY = "history"
STORAGE_VERSION = "v1.0.0"
RUN_COLUMNS = {"run_id": "VARCHAR", "generation": "BIGINT", "published_at": "TIMESTAMP", "path": "VARCHAR"}

RunFolder = tuple["Path", "Manifest"]


def build_catalog(path: Path, runs: Sequence[RunFolder]) -> None:
    """Write a catalog under a new name and check it before anyone sees it.

    Args:
        path: A path that does not exist yet.
        runs: Folder and manifest of every kept run, oldest first; the last is the latest.

    Raises:
        StorageError: the catalog on disk does not show the rows of the manifest.
    """
    with duckdb.connect(":memory:") as connection:
        attach = exp.Attach(
            this=exp.alias_(exp.Literal.string(str(path)), "catalog"),
            expressions=[
                exp.AttachOption(this=exp.var("STORAGE_VERSION"), expression=exp.Literal.string(STORAGE_VERSION))
            ],
        )
        connection.execute(render(attach))
        connection.execute("USE catalog")
        define_views(connection, runs)
        connection.execute("CHECKPOINT catalog")
        connection.execute("USE memory")
        connection.execute("DETACH catalog")
    if path.with_name(path.name + ".wal").exists():
        message = f"{path} was not written completely"
        raise StorageError(message, remedy="Free some space and run again.")
    _check(path, runs[-1])
    sync_file(path)


def define_views(connection: duckdb.DuckDBPyConnection, runs: Sequence[RunFolder]) -> None:
    """Create every view in the current database of a connection.

    A file of an earlier run that was lost or cut is left out of `history`: it must not keep the next run from being
    published, and `verify` tells of it.
    """
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
        files = [each for each in _files(runs, table) if _stands(each[0], each[2])]
        if not files:
            continue
        columns = _columns(file for _, _, file in files)
        parts = [_select(folder, file, columns, run=manifest) for folder, manifest, file in files]
        _create(connection, exp.table_(table, db=HISTORY, quoted=True), _union(parts))


def _tables(runs: Iterable[RunFolder]) -> list[str]:
    return sorted({file.table for _, manifest in runs for file in manifest.files if file.table})


def _files(runs: Iterable[RunFolder], table: str) -> list[tuple[Path, Manifest, PublishedFile]]:
    return [(folder, manifest, file) for folder, manifest in runs for file in manifest.files if file.table == table]


def _stands(folder: Path, file: PublishedFile) -> bool:
    path = folder / file.path
    return path.is_file() and path.stat().st_size == file.size


def _columns(files: Iterable[PublishedFile]) -> dict[str, str]:
    """Union of the columns in order of appearance; a column whose type differs between files is VARCHAR."""
    columns: dict[str, str] = {}
    for file in files:
        for name, sql_type in file.schema.items():
            known = columns.setdefault(name, sql_type)
            if known != sql_type:
                columns[name] = "VARCHAR"
    return columns


def _select(folder: Path, file: PublishedFile, columns: dict[str, str], run: Manifest | None = None) -> exp.Select:
    literal = exp.Literal.string(glob.escape(str(folder / file.path)))
    # hive_partitioning is off so that a folder above the results called `a=b` adds no column
    options = exp.EQ(this=exp.column("hive_partitioning"), expression=exp.false())
    items = [
        exp.alias_(
            exp.cast(column(name) if name in file.schema else exp.null(), sql_type, dialect="duckdb"), name, quoted=True
        )
        for name, sql_type in columns.items()
    ]
    if run is not None:
        items = [*_run_items(run), *items]
    return exp.select(*items).from_(exp.func("read_parquet", literal, options))


def _run_items(run: Manifest) -> list[exp.Expr]:
    moment = exp.cast(exp.Literal.string(run.published_at), "TIMESTAMP")
    return [exp.alias_(exp.Literal.string(run.run_id), "run_id"), exp.alias_(moment, "published_at")]


def _run_row(folder: Path, run: Manifest) -> exp.Select:
    run_id, published_at = _run_items(run)
    generation = exp.alias_(exp.cast(exp.Literal.number(run.generation), "BIGINT"), "generation")
    return exp.select(run_id, generation, published_at, exp.alias_(exp.Literal.string(str(folder)), "path"))


def _union(parts: Iterable[exp.Select]) -> exp.Query:
    selects = list(parts)
    return selects[0] if len(selects) == 1 else exp.union(*selects, distinct=False)


def _create(connection: duckdb.DuckDBPyConnection, name: exp.Table, query: exp.Query) -> None:
    connection.execute(render(exp.Create(this=name, kind="VIEW", expression=query, replace=True), pretty=False))


def _check(path: Path, latest: RunFolder) -> None:
    _, manifest = latest
    expected: dict[str, int] = {}
    for file in manifest.files:
        if file.table:
            expected[file.table] = expected.get(file.table, 0) + file.rows
    with duckdb.connect(str(path), read_only=True) as connection:
        for table, rows in expected.items():
            counted = exp.select(exp.Count(this=exp.Star())).from_(exp.table_(table, quoted=True))
            row = connection.execute(render(counted)).fetchone()
            if row is None or row[0] != rows:
                message = f"{path}: view {table} has {row and row[0]} rows, its manifest says {rows}"
                raise StorageError(message, remedy="Run again; if it happens again the disk is failing.")
