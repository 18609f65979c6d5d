"""The catalog: tables of the latest run, the same tables of all kept runs, and how runs and attempts went.

A new catalog is a copy of the existing one with the rows of one more run: no other run is read, and what grows with
the runs is only what copy and hash take, a few milliseconds for a megabyte. It is built from the run folders where the
existing one is missing, damaged, of another version or of another folder, or where it lacks a kept run.
"""

from __future__ import annotations

import errno
import hashlib
import json
import shutil
from contextlib import suppress
from datetime import date
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import duckdb
from duckdb import BinderException, CatalogException, ConversionException, TransactionException

from ..base.errors import DataError, StorageError, os_error_number, os_fault
from ..base.paths import read_file, remove_own
from ..base.run_tables import RUNS
from . import catalog_tables
from .catalog_tables import (
    HISTORY,
    MAIN,
    RunFolder,
    Shape,
    attach,
    define_macros,
    detach,
    drop_views,
    existing_shapes,
    files_of,
    fill,
    foreign_in_catalog,
    forget_runs,
    locked_connection,
    make_tables,
    newer_attempts,
    shapes,
    stored_files,
    tables_of,
    update_attempts,
    view_of_latest,
)
from .layout import RUN_RECORD, Layout, own_sha256, reading_back, run_id_of, run_name_of, storage_errors, sync_file
from .state import READINGS, CatalogFacts, State, read_state, require_latest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from .catalog_tables import View
    from .layout import KeptRun
    from .state import Pointer


CATALOG_VERSION = 5  # another number makes every run build the catalog again
_MOST_TEMPLATES = 16
_templates: dict[tuple[tuple[View, Shape], ...], bytes] = {}


def what_is_shown(state: State) -> str:
    """Return the version of a catalog, and the hash of what it has to show: folder, runs, and what they lack."""
    left_out = state.left_out
    shown = [state.layout.address or str(state.layout.root)]
    content = json.dumps([*shown, [[name, *left_out.get(name, ())] for name in state.visible]]).encode()
    return f"{_version()}:{hashlib.sha256(content).hexdigest()}"


def version_of(shows: str) -> str:
    """Return the version in what `what_is_shown` returned."""
    return shows.partition(":")[0]


def is_readable(shows: str) -> bool:
    """Whether a catalog has the tables that this version of the package reads; `shows` as in its link."""
    return shows.partition("/")[0] == str(CATALOG_VERSION)


@cache
def _version() -> str:
    return f"{CATALOG_VERSION}/{version('thresher')}"  # comments may change with the version of the package


def stage_catalog(
    state: State, name: str, *, existing_shows: str = "", attempt: Mapping[str, Any] | None = None
) -> tuple[Path, Pointer]:
    """Make a catalog in the staging folder, check it, and force it to disk; return it, and the pointer that names it.

    Args:
        state: The runs that it has to show, the latest of them intact; those that were not read are read where it has
            to be built.
        name: Name of the file.
        existing_shows: What the existing catalog shows; empty if it is missing or not as it was published.
        attempt: The record that the attempt will have that publishes the latest run; None if it is there already.

    Raises:
        StorageError: the disk is full or failing, or the file does not show the rows of the manifests.
    """
    path = state.layout.staging / f"{name}.duckdb"
    with storage_errors(f"writing {path}"):
        state.layout.staging.mkdir(exist_ok=True)
        remove_own(path, state.layout.root)
        is_carried = False
        with duckdb.connect(":memory:") as connection:
            if version_of(existing_shows) == _version():
                try:
                    is_carried = _carry(connection, path, state, attempt)
                except (CatalogException, BinderException, ConversionException):  # somebody else made the catalog
                    with suppress(TransactionException):
                        connection.execute("ROLLBACK")
                    detach(connection)
            if not is_carried:
                remove_own(path, state.layout.root)
                state = state.with_all_runs()
                _build(connection, path, state, attempt)
            if path.with_name(path.name + ".wal").exists():
                message = f"{path} was not written completely"
                raise StorageError(message, remedy="Free some space and run again.")
            faults = _faults_as_read(connection, path, state)
        for fault in faults:
            raise StorageError(fault, remedy="Run again; if it happens again the disk is failing.")
        sync_file(path)
        status = path.stat()
    with reading_back(path):
        facts = CatalogFacts(own_sha256(path), what_is_shown(state), f"{status.st_size}:{status.st_mtime_ns}")
    return path, state.pointer_to(facts)


def _carry(connection: duckdb.DuckDBPyConnection, path: Path, state: State, attempt: Mapping[str, Any] | None) -> bool:
    """Copy the existing catalog, remove the runs that have gone, and add the latest.

    It returns False if the catalog lacks another run, or is of another folder, as after results were copied.
    """
    layout, kept, left_out, run = state.layout, state.visible, state.left_out, state.shown[-1]
    shutil.copyfile(layout.catalog, path, follow_symlinks=False)
    attach(connection, path, is_used=False)
    if foreign_in_catalog(connection, None):
        detach(connection)
        return False
    connection.execute("USE catalog")
    drop_views(connection)
    shown = {folder: tuple(paths) for folder, paths in connection.execute("SELECT path, left_out FROM runs").fetchall()}
    front = layout.named_folders()
    wanted = {front + name: left_out.get(name, ()) for name in kept}
    latest = front + run[0].name
    is_new = latest not in shown
    expected = {folder: paths for folder, paths in wanted.items() if folder != latest or not is_new}
    is_of_another_folder = any(folder != front + run_name_of(folder) for folder in shown)
    if is_of_another_folder or any(shown.get(folder) != paths for folder, paths in expected.items()):
        detach(connection)
        return False
    connection.execute("BEGIN TRANSACTION")  # one, so that the disk is waited for once
    if shown.keys() - wanted.keys():
        forget_runs(connection, [run_id_of(name) for name in kept], existing_shapes(connection))
    if is_new:
        tables = shapes([run], holds_all=bool(layout.address))
        make_tables(connection, tables, run, fresh=False)
        fill(connection, [run], tables, left_out, fresh=False)
    update_attempts(connection, layout, attempt)
    _finish(connection)
    return True


def _build(connection: duckdb.DuckDBPyConnection, path: Path, state: State, attempt: Mapping[str, Any] | None) -> None:
    """Build a catalog from the folders of all kept runs."""
    layout, runs = state.layout, state.shown
    tables = shapes(runs, holds_all=bool(layout.address))
    key = tuple(tables.items())
    template = _templates.get(key) if len(runs) == 1 else None
    if template is not None:
        path.write_bytes(template)
    attach(connection, path)
    connection.execute("BEGIN TRANSACTION")
    if template is None:
        make_tables(connection, tables, runs[-1], fresh=True)
        if len(runs) == 1:
            _finish(connection)
            # remember one without a row: to make and comment tables takes longer than all else in a small catalog
            content = path.read_bytes()
            while len(_templates) >= _MOST_TEMPLATES:
                del _templates[next(iter(_templates))]
            _templates[key] = content
            attach(connection, path)
            connection.execute("BEGIN TRANSACTION")
    fill(connection, runs, tables, state.left_out, fresh=True)
    update_attempts(connection, layout, attempt)
    _finish(connection)


def _finish(connection: duckdb.DuckDBPyConnection) -> None:
    """Write what is pending to the file, so that an error of the disk is raised here, and let go of it."""
    connection.execute("COMMIT")
    connection.execute("CHECKPOINT catalog")
    detach(connection)


def _faults_as_read(connection: duckdb.DuckDBPyConnection, path: Path, state: State) -> list[str]:
    """Faults in how the written file shows the latest run; the connection is the writer's."""
    latest, tables = state.shown[-1], tables_of(state.shown[-1:])
    shown = {(MAIN, table): _n_rows(latest, table) for table in tables} | {(MAIN, RUNS.name): len(state.visible)}
    remembered = {(HISTORY, table): _n_rows(latest, table, stored=True) for table in tables}
    try:
        attach(connection, path, read_only=True)
        faults = [*_differing(connection, shown), *_differing(connection, remembered, latest[1].run_id)]
        detach(connection)
    except duckdb.Error as error:
        if os_error_number(error) is not None:
            raise os_fault(error, f"reading {path}") from error
        return [_cannot_be_read(path, error)]
    return [f"{path}: {fault}" for fault in faults]


def _cannot_be_read(path: Path, error: duckdb.Error) -> str:
    return f"{path} cannot be read: {str(error).strip().splitlines()[0]}"


def catalog_faults(path: Path, runs: Sequence[RunFolder]) -> list[str]:
    """Return where tables, columns and numbers of rows of a catalog differ from the manifests of all kept runs.

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
        return [_cannot_be_read(path, error)]
    return [f"{path}: {fault}" for fault in faults]


def _shape_faults(connection: duckdb.DuckDBPyConnection, runs: Sequence[RunFolder]) -> Iterator[str]:
    wanted, existing = shapes(runs), existing_shapes(connection)
    for view, shape in wanted.items():
        if view not in existing:
            yield f"table {'.'.join(view)} is missing"
            continue
        names, promised = ([name for name, _ in each.columns] for each in (existing[view], shape))
        # a table of history may also have columns of runs that were deleted since
        if names != promised if view[0] == MAIN else not set(promised) <= set(names):
            yield f"table {'.'.join(view)} has other columns than its manifest says"
    for schema, name in existing:
        if schema == MAIN and (schema, name) not in wanted:
            yield f"table {name} is not one of the latest run"


def _row_faults(connection: duckdb.DuckDBPyConnection, runs: Sequence[RunFolder]) -> Iterator[str]:
    existing = existing_shapes(connection)  # views are not run: nobody reads them, and the files have been hashed
    held = [table for table in tables_of(runs[-1:]) if not existing.get((MAIN, table), Shape(())).is_view]
    promised = {(MAIN, table): _n_rows(runs[-1], table) for table in held}
    promised[MAIN, RUNS.name] = len(runs)
    yield from _differing(connection, promised)
    for table in tables_of(runs):
        wanted = {run[1].run_id: number for run in runs if (number := _n_rows(run, table, stored=True))}
        shown = connection.execute(catalog_tables.on((HISTORY, table), catalog_tables.ROWS_OF_RUNS)).fetchall()
        if dict(shown) != wanted:
            yield f"table {HISTORY}.{table} has other rows than the manifests say"


def _differing(
    connection: duckdb.DuckDBPyConnection, promised: Mapping[View, int], run_id: str | None = None
) -> Iterator[str]:
    """Count the rows of tables, of all runs or of one, in one statement; yield where another number was promised.

    To count a view is to open its files: it names each of its columns, so that it cannot be counted if its files lack
    one.
    """
    text = catalog_tables.count_rows(tuple(promised), of_run=run_id is not None)
    counted = dict(connection.execute(text, None if run_id is None else {"run_id": run_id}).fetchall())
    for number, (view, rows) in enumerate(promised.items()):
        if counted[number] != rows:
            yield f"table {'.'.join(view)} has {counted[number]} rows, its manifest says {rows}"


def _n_rows(run: RunFolder, table: str, *, stored: bool = False) -> int:
    """How many rows of a table a run has, or has in history."""
    return sum(file.rows for _, _, file in (stored_files if stored else files_of)([run], table))


def open_results(results: Path) -> duckdb.DuckDBPyConnection:
    """Open a read-only connection with one table per result table of the latest run, and all runs in schema `history`.

    The connection keeps showing the run that was the latest when it was opened; call again to see a later one. It works
    on a results folder that has been moved, and can read the results and nothing else. Earlier runs that were deleted
    are missing from `history`. The table `attempts` has the attempts since the latest run, too. Where the catalog is
    missing or not the one that was published, the tables are built from the run folders, which takes longer.

    Raises:
        NoInputError: no run was published there.
        DataError: a file of the latest run is lost or damaged.
    """
    layout = Layout(results.resolve())
    connection = locked_connection(layout.root)
    try:
        _show(connection, layout)
    except duckdb.Error as error:
        connection.close()
        message = f"the latest run in {layout.root} cannot be read: {str(error).strip()}"
        raise DataError(message, remedy=f"thresher verify {layout.root} lists what is damaged.") from error
    except BaseException:
        connection.close()
        raise
    return connection


def _show(connection: duckdb.DuckDBPyConnection, layout: Layout) -> None:
    """Make the catalog the current database; or, where it cannot serve, a database in memory with the same tables."""
    for _ in range(READINGS):  # a run may be published between the two readings
        state, run, manifest = require_latest(layout)
        latest = (run.folder, manifest)
        if is_readable(state.catalog_shows) and _attached(connection, layout, latest):
            folders = [row[0] for row in connection.execute("SELECT path FROM runs ORDER BY generation").fetchall()]
            if folders and folders[-1].endswith(run.folder.name):
                _adapt(connection, state, latest, folders)
                return
            detach(connection)
    # build the tables in memory from the folders of all kept runs
    require_latest(layout)
    state = read_state(layout, older=None)
    tables = shapes(state.shown)
    make_tables(connection, tables, state.shown[-1], fresh=True)
    fill(connection, state.shown, tables, state.left_out, fresh=True)
    update_attempts(connection, layout, None)


def _attached(connection: duckdb.DuckDBPyConnection, layout: Layout, latest: RunFolder) -> bool:
    """Make the catalog the current database, unless it cannot be opened, or holds what a run did not put there."""
    try:
        attach(connection, layout.catalog, read_only=True, is_used=False)
    except duckdb.Error:
        return False
    wanted = shapes([latest], holds_all=bool(layout.address))
    if foreign_in_catalog(connection, [view for view, shape in wanted.items() if shape.is_view]):
        detach(connection)
        return False
    connection.execute("USE catalog")
    return True


def _adapt(connection: duckdb.DuckDBPyConnection, state: State, latest: RunFolder, folders: list[str]) -> None:
    """Show the catalog as it is, or through views that leave out runs that have gone.

    Where the catalog itself has views, of large tables, these are made anew: who made the catalog could have put any
    query there, and their paths are those of where the folder was.
    """
    layout = state.layout
    stale, newer = newer_attempts(connection, layout)
    front, kept = layout.named_folders(), set(state.kept)
    has_views = any(shape.is_view for shape in existing_shapes(connection).values())
    if set(folders) - {front + name for name in kept} or has_views:
        _show_through(connection, latest, [folder for folder in folders if run_name_of(folder) in kept])
    if stale or not newer.is_empty():
        connection.register("added", newer)
        connection.execute(catalog_tables.ATTEMPTS_NOW, {"stale": stale})
        connection.unregister("added")


def _show_through(connection: duckdb.DuckDBPyConnection, latest: RunFolder, shown: list[str]) -> None:
    """Put views into a database in memory that show of the catalog the runs that are still there, where it is now."""
    tables = existing_shapes(connection)
    connection.execute("USE memory")
    connection.execute("CREATE SCHEMA history")
    run_ids = tuple(run_id_of(run_name_of(folder)) for folder in shown)
    front = Layout(latest[0].parent.parent).named_folders()
    for view, shape in tables.items():
        if view == (MAIN, RUNS.name):
            connection.execute(catalog_tables.runs_in_place(run_ids, front, shape.columns))
        elif shape.is_view:
            view_of_latest(connection, view, shape, latest)
        else:
            connection.execute(catalog_tables.show_through(view, run_ids if view[0] == HISTORY else None))
    define_macros(connection)


def omitted_tables(results: Path) -> dict[str, dict[str, str]]:
    """Return the tables that the stages of the latest run did not make, with the reasons, by stage.

    Raises:
        NoInputError: no run was published there.
        DataError: the record of the latest run cannot be read.
    """
    _, latest, _ = require_latest(Layout(results.resolve()))
    path = latest.folder / RUN_RECORD
    try:
        record = json.loads(read_file(path))
        return {stage: dict(tables) for stage, tables in record.get("omitted", {}).items()}
    except (OSError, ValueError, AttributeError, TypeError) as error:
        message = f"{path} is not the record of a run ({error})"
        raise DataError(message, remedy=f"thresher verify {results} lists what is damaged.") from error


_OF_DAY = "SELECT path FROM catalog.main.runs WHERE ds = CAST($1 AS DATE) ORDER BY generation DESC LIMIT 1"
_SHOWN_AND_LAST = "SELECT max_by(ds, generation), max(ds) FROM catalog.main.runs"


def run_to_repeat(state: State, ds: str | None) -> KeptRun | None:
    """Return the run that a new run may turn out to repeat.

    It is the latest run; for a day before the one that the latest run is about, the last run of that day. A later day
    has to be published even if a run of it is kept: until then readers of the latest run see an earlier day.
    """
    latest = state.latest_run
    if latest is None or ds is None or not (shown := shown_and_last_day(state.layout)[0]) or ds >= shown:
        return latest
    row = _asked(state.layout, _OF_DAY, [ds])
    return None if row is None else state.kept_run(run_name_of(row[0]), hashes=True)


def shown_and_last_day(layout: Layout) -> tuple[str, str]:
    """Return the day of the latest run and the last day of all kept runs, ISO; empty where there is none."""
    days = _asked(layout, _SHOWN_AND_LAST, []) or (None, None)
    shown, last = (day.isoformat() if isinstance(day, date) else "" for day in days)
    return shown, last


def _asked(layout: Layout, sql: str, values: list[str]) -> tuple[Any, ...] | None:
    """Return the first row of an answer of the catalog; None if there is none, or no catalog."""
    try:
        with locked_connection(layout.root) as connection:
            attach(connection, layout.catalog, read_only=True, is_used=False)
            if foreign_in_catalog(connection, None):
                return None
            return connection.execute(sql, values).fetchone()
    except duckdb.Error:
        return None
