"""What a catalog shows, compared with what the manifests of its runs say."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

import duckdb

from ..errors import os_error_number, os_fault
from ..tables.run_tables import RUNS
from . import statements
from .catalog_fill import attach, existing_shapes
from .catalog_schema import Shape, files_of, shapes, stored_files, tables_of
from .foreign import foreign_in_catalog, locked_connection
from .statements import HISTORY, MAIN

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from .catalog_schema import RunFolder
    from .statements import View


def faults_after_writing(connection: duckdb.DuckDBPyConnection, latest: RunFolder, n_runs: int) -> list[str]:
    """Compare a new catalog, the current database, with the manifest of the latest run, whose rows were just written.

    Args:
        connection: Its current database is the catalog.
        latest: The latest run.
        n_runs: Number of kept runs.
    """
    promised = {(MAIN, table): _n_rows(latest, table) for table in tables_of([latest])}
    remembered = {(HISTORY, table): _n_stored([latest], table) for table in tables_of([latest])}
    counted = count(connection, [*promised, (MAIN, RUNS.name)])
    run_id = latest[1].run_id
    counted |= count(connection, list(remembered), run_id=run_id)
    return list(_differing(counted, promised | remembered | {(MAIN, RUNS.name): n_runs}))


def catalog_faults(path: Path, runs: Sequence[RunFolder]) -> list[str]:
    """Compare tables, columns and numbers of rows of a catalog with the manifests of all its runs.

    Args:
        path: The catalog.
        runs: Folder and manifest of every kept run, without damaged tables, oldest first; the last is the latest.

    Returns:
        The differences, as sentences.

    Raises:
        ThresherError: the system refuses to open it, for a reason that has nothing to do with its content.
    """
    try:
        with locked_connection(path.parent) as connection:
            attach(connection, path, read_only=True, is_used=False)
            wanted = shapes(runs[-1:])
            foreign = foreign_in_catalog(connection, [view for view, shape in wanted.items() if shape.is_view])
            if foreign:
                return [f"{path} {foreign}"]
            connection.execute("USE catalog")
            faults = [*_shape_faults(connection, runs), *_row_faults(connection, runs)]
    except duckdb.Error as error:
        if os_error_number(error) not in {None, errno.EIO}:
            raise os_fault(error, f"reading {path}") from error
        return [f"{path} cannot be opened: {first_line(error)}"]
    return [f"{path}: {fault}" for fault in faults]


def _shape_faults(connection: duckdb.DuckDBPyConnection, runs: Sequence[RunFolder]) -> Iterator[str]:
    wanted, existing = shapes(runs), existing_shapes(connection)
    for view, shape in wanted.items():
        shown = existing.get(view)
        if shown is None:
            yield f"table {'.'.join(view)} is missing"
        elif not _holds(shown, shape, exactly=view[0] == MAIN):
            yield f"table {'.'.join(view)} has other columns than its manifest says"
    for schema, name in existing:
        if schema == MAIN and (schema, name) not in wanted:
            yield f"table {name} is not one of the latest run"


def _holds(shown: Shape, wanted: Shape, *, exactly: bool) -> bool:
    """Whether a table has the columns; a table of history may also have those of runs that were deleted since."""
    names = [name for name, _ in shown.columns]
    promised = [name for name, _ in wanted.columns]
    return names == promised if exactly else set(promised) <= set(names)


def _row_faults(connection: duckdb.DuckDBPyConnection, runs: Sequence[RunFolder]) -> Iterator[str]:
    existing = existing_shapes(connection)  # views are not run: nobody reads them, and the files have been hashed
    held = [table for table in tables_of(runs[-1:]) if not existing.get((MAIN, table), Shape(())).is_view]
    promised = {(MAIN, table): _n_rows(runs[-1], table) for table in held}
    promised[MAIN, RUNS.name] = len(runs)
    yield from _differing(count(connection, list(promised)), promised)
    for table in tables_of(runs):
        n_rows = {run[1].run_id: _n_stored([run], table) for run in runs}
        wanted = {run_id: number for run_id, number in n_rows.items() if number}
        shown = connection.execute(statements.rows_of_runs((HISTORY, table))).fetchall()
        if dict(shown) != wanted:
            yield f"table {HISTORY}.{table} has other rows than the manifests say"


def count(
    connection: duckdb.DuckDBPyConnection, views: Sequence[View], *, run_id: str | None = None
) -> dict[View, int | str]:
    """Return the number of rows of every table, or why it cannot be read.

    One statement counts all, and one table after another if that fails. To count a view is to open its files: it names
    each of its columns, so that it cannot be counted if its files lack one.
    """
    text = statements.count_rows(tuple(views), of_run=run_id is not None)
    try:
        answer = connection.execute(text, {"run_id": run_id} if run_id is not None else None).fetchall()
    except duckdb.Error as error:
        if len(views) == 1:
            return {views[0]: first_line(error)}
        return {view: rows for view in views for view, rows in count(connection, [view], run_id=run_id).items()}
    return {views[number]: rows for number, rows in answer}


def _differing(counted: Mapping[View, int | str], promised: Mapping[View, int]) -> Iterator[str]:
    for view, rows in counted.items():
        name = ".".join(view)
        if isinstance(rows, str):
            yield f"table {name} cannot be read: {rows}"
        elif rows != promised[view]:
            yield f"table {name} has {rows} rows, its manifest says {promised[view]}"


def _n_rows(run: RunFolder, table: str) -> int:
    return sum(file.rows for _, _, file in files_of([run], table))


def _n_stored(runs: Sequence[RunFolder], table: str) -> int:
    return sum(file.rows for _, _, file in stored_files(runs, table))


def first_line(error: duckdb.Error) -> str:
    """Return what an error of DuckDB says first."""
    return str(error).strip().splitlines()[0]
