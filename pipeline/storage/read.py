"""Reading results: a read-only connection with the views of the catalog."""

from __future__ import annotations

import glob
import json
from contextlib import suppress
from typing import TYPE_CHECKING

import duckdb

from pipeline.errors import DataError
from pipeline.storage.catalog import define_views
from pipeline.storage.layout import RUN_RECORD, Layout
from pipeline.storage.state import require_latest

if TYPE_CHECKING:
    from pathlib import Path


def open_results(results: Path) -> duckdb.DuckDBPyConnection:
    """Open a read-only connection with one view per result table of the latest run, and all runs in schema `history`.

    The connection keeps showing the run that was the latest when it was opened; call again to see a later one. It works
    on a results folder that has been moved, and can read the results and nothing else. Earlier runs that were deleted
    or are damaged are missing from `history`.

    Args:
        results: The output folder of a run.

    Raises:
        NoInputError: no run was published there.
        DataError: a file of the latest run is lost or damaged.
    """
    root = results.resolve()
    state, _, _ = require_latest(Layout(root))
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
    try:
        define_views(connection, state.shown)
    except duckdb.Error as error:
        connection.close()
        message = f"the latest run in {root} cannot be read: {str(error).strip()}"
        raise DataError(message, remedy=f"thresher verify {root} lists what is damaged.") from error
    connection.execute("SET lock_configuration = true")
    return connection


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
        record = json.loads(path.read_bytes())
        return {stage: dict(tables) for stage, tables in record.get("omitted", {}).items()}
    except (OSError, ValueError, AttributeError, TypeError) as error:
        message = f"{path} is not the record of a run ({error})"
        raise DataError(message, remedy=f"thresher verify {results} lists what is damaged.") from error
