"""Reading results back: a read-only connection on the catalog, and the check of every published file."""

from __future__ import annotations

import glob
import json
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from pipeline.errors import DataError, NoInputError
from pipeline.paths import local_path
from pipeline.storage.catalog import define_views
from pipeline.storage.durable import file_sha256
from pipeline.storage.layout import MANIFEST, Layout
from pipeline.storage.manifest import Manifest, faults
from pipeline.storage.publish import published_runs

if TYPE_CHECKING:
    from collections.abc import Sequence


def _runs(root: Path) -> list[tuple[Path, Manifest]]:
    runs = published_runs(Layout(root))
    if not runs:
        message = f"{root} holds no published run"
        raise NoInputError(message, remedy="Give the output folder of a run, or run the job first.")
    return runs


def open_results(results: str | Path) -> duckdb.DuckDBPyConnection:
    """A read-only connection with one view per result table of the latest run, and schema `history` for all runs.

    It shows the run that is the latest now, for as long as it is open; a run published later needs a new call. It works
    on a results folder that was moved. It may read the results and nothing else.

    Args:
        results: The output folder of a run.

    Raises:
        NoInputError: no run was published there.
        DataError: a file of the latest run is lost or damaged.
    """
    root = local_path(results, Path.cwd(), what="results").resolve()
    runs = _runs(root)
    connection = duckdb.connect(
        ":memory:", config={"autoinstall_known_extensions": False, "autoload_known_extensions": False}
    )
    connection.execute("SET enable_progress_bar = false")
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute("SET python_enable_replacements = false")
    # views ask for a file by its escaped name, and find it by its own
    connection.execute("SET allowed_directories = $1", [[str(root), glob.escape(str(root))]])
    connection.execute("SET enable_external_access = false")
    try:
        define_views(connection, runs)
    except duckdb.Error as error:
        connection.close()
        message = f"the latest run in {root} cannot be read: {str(error).strip()}"
        raise DataError(message, remedy=f"thresher verify {root} lists what is damaged.") from error
    connection.execute("SET lock_configuration = true")
    return connection


def verify(results: str | Path) -> Sequence[tuple[Path, Manifest]]:
    """Check every file of every kept run against its manifest.

    Returns:
        The runs that were checked.

    Raises:
        NoInputError: no run was published there.
        DataError: a file is missing, changed or extra; the message lists them.
    """
    layout = Layout(local_path(results, Path.cwd(), what="results").resolve())
    runs = _runs(layout.root)
    found = [fault for folder, manifest in runs for fault in faults(folder, manifest)]
    found += _pointer_faults(layout, *runs[-1])
    if found:
        message = "; ".join(found)
        raise DataError(
            message, remedy="Restore them from a copy. A damaged run that is not the latest may be deleted."
        )
    return runs


def _pointer_faults(layout: Layout, folder: Path, latest: Manifest) -> list[str]:
    """Whether the manifest of the latest run is the one that was published; a pointer that lags says nothing of it."""
    try:
        pointer = json.loads(layout.current.read_bytes())
        lags = pointer["generation"] < latest.generation
        same = pointer["run_id"] == latest.run_id and pointer["manifest_sha256"] == file_sha256(folder / MANIFEST)
    except (OSError, ValueError, KeyError, TypeError) as error:
        return [f"{layout.current} cannot be read ({error})"]
    return [] if lags or same else [f"{folder / MANIFEST} is not the one that {layout.current.name} names"]
