"""Reading results: a read-only connection with the tables of the catalog, and runs by the day that they are about."""

from __future__ import annotations

import json
from datetime import date
from typing import TYPE_CHECKING, Any

import duckdb

from ..errors import DataError
from ..safe_files import read_file
from ..tables.run_tables import RUNS
from . import catalog_tables
from .catalog import is_readable
from .catalog_tables import (
    HISTORY,
    MAIN,
    attach,
    define_macros,
    detach,
    existing_shapes,
    fill,
    foreign_in_catalog,
    locked_connection,
    make_tables,
    newer_attempts,
    shapes,
    update_attempts,
    view_of_latest,
)
from .layout import RUN_RECORD, Layout, run_id_of, run_name_of
from .state import READINGS, State, read_state, require_latest

if TYPE_CHECKING:
    from pathlib import Path

    from .catalog_tables import RunFolder
    from .manifest import KeptRun


# Reading results: a read-only connection with the tables of the catalog.


def open_results(results: Path) -> duckdb.DuckDBPyConnection:
    """Open a read-only connection with one table per result table of the latest run, and all runs in schema `history`.

    The connection keeps showing the run that was the latest when it was opened; call again to see a later one. It works
    on a results folder that has been moved, and can read the results and nothing else. Earlier runs that were deleted
    are missing from `history`. The table `attempts` has the attempts since the latest run, too. Where the catalog is
    missing or not the one that was published, the tables are built from the run folders, which takes longer.

    Args:
        results: The output folder of a run.

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
    _rebuild(connection, layout)


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
    """Put views into a database in memory that show the catalog without the runs that have gone, where it is now.

    Args:
        connection: Its current database is the catalog.
        latest: The latest run.
        shown: Folders of the runs that are still there, as the catalog names them.
    """
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


def _rebuild(connection: duckdb.DuckDBPyConnection, layout: Layout) -> None:
    """Build the tables in memory from the folders of all kept runs."""
    require_latest(layout)
    state = read_state(layout, older=None)
    runs = state.shown
    tables = shapes(runs)
    make_tables(connection, tables, runs[-1], fresh=True)
    fill(connection, runs, tables, state.left_out, fresh=True)
    update_attempts(connection, layout, None)


def omitted_tables(results: Path) -> dict[str, dict[str, str]]:
    """Return the tables that the stages of the latest run did not make, with the reasons, by stage.

    Args:
        results: The output folder of a run.

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


# Published runs by the day that they are about.


_OF_DAY = "SELECT path FROM catalog.main.runs WHERE ds = CAST($1 AS DATE) ORDER BY generation DESC LIMIT 1"
_SHOWN_AND_LAST = "SELECT max_by(ds, generation), max(ds) FROM catalog.main.runs"


def run_to_repeat(state: State, ds: str | None) -> KeptRun | None:
    """Return the run that a new run may turn out to repeat.

    It is the latest run; for a day before the one that the latest run is about, the last run of that day. A later day
    has to be published even if a run of it is kept: until then readers of the latest run see an earlier day.

    Args:
        state: The healed results folder, whose lock the caller holds.
        ds: The day that the new run is about; None if it has none.
    """
    latest = state.latest_run
    if latest is None:
        return None
    if ds is None or not (shown := shown_and_last_day(state.layout)[0]) or ds >= shown:
        return latest
    row = _asked(state.layout, _OF_DAY, [ds])
    if row is None:
        return None
    return state.kept_run(run_name_of(row[0]), hashes=True)


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
