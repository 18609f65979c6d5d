"""The catalog: tables of the latest run, the same tables of all kept runs, and how runs and attempts went.

A new catalog is a copy of the existing one with the rows of one more run: no other run is read, and what grows with
the runs is only what copy and hash take, a few milliseconds for a megabyte. It is built from the run folders where the
existing one is missing, damaged, of another version or of another folder, or where it lacks a kept run.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from contextlib import suppress
from dataclasses import replace
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import duckdb
from duckdb import BinderException, CatalogException, ConversionException, TransactionException

from ..errors import StorageError, os_error_number, os_fault
from ..records import dataclass
from ..safe_files import remove_own
from .catalog_check import faults_after_writing, first_line
from .catalog_fill import (
    LeftOut,
    attach,
    detach,
    drop_views,
    existing_shapes,
    fill,
    forget_runs,
    make_tables,
    update_attempts,
)
from .catalog_schema import RunFolder, Shape, shapes
from .durable import own_sha256, reading_back, storage_errors, sync_file
from .foreign import foreign_in_catalog
from .layout import run_id_of, run_name_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from .chain import Link
    from .layout import Layout
    from .statements import View

CATALOG_VERSION = 5  # another number makes every run build the catalog again
_MOST_TEMPLATES = 16
_templates: dict[tuple[tuple[View, Shape], ...], bytes] = {}


@dataclass(frozen=True)
class StagedCatalog:
    """A catalog that readers cannot see yet.

    Attributes:
        path: Its file.
        sha256: Hash of the file.
        shows: Version of the catalog, and hash of the runs that it shows.
        identity: Size and time of the file, by which a reader recognises it without reading it.
    """

    path: Path
    sha256: str
    shows: str
    identity: str

    def named_by(self, link: Link, left_out: LeftOut, lost: Iterable[str]) -> Link:
        """Return a link that names this catalog, and what it leaves out."""
        return replace(
            link,
            catalog_sha256=self.sha256,
            catalog_shows=self.shows,
            catalog_identity=self.identity,
            left_out=dict(left_out),
            lost=tuple(sorted(lost)),
        )


@dataclass(frozen=True)
class Content:
    """What a new catalog has to show.

    Attributes:
        kept: Names of the folders of all kept runs, oldest first, the latest last.
        latest: Folder and manifest of the latest run, without its damaged tables.
        left_out: Damaged files by the name of the run's folder.
        runs: Reads folder and manifest of every kept run, without damaged tables; called where all are needed.
        existing_shows: What the existing catalog shows; empty if it is missing or not as it was published.
        attempt: The record that the attempt will have that publishes the latest run; None if it is there already.
    """

    kept: Sequence[str]
    latest: RunFolder
    left_out: LeftOut
    runs: Callable[[], Sequence[RunFolder]]
    existing_shows: str
    attempt: Mapping[str, Any] | None = None

    def shows(self, layout: Layout) -> str:
        """Return version and hash, as `what_is_shown`."""
        return what_is_shown(layout, self.kept, self.left_out)


def what_is_shown(layout: Layout, kept: Sequence[str], left_out: LeftOut) -> str:
    """Return the version of the catalog, and the hash of what it shows: its folder, its runs, and what they lack."""
    shown = [layout.address or str(layout.root), [[name, *left_out.get(name, ())] for name in kept]]
    content = json.dumps(shown).encode()  # without indents, which take ten times as long for a thousand runs
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


def stage_catalog(layout: Layout, name: str, content: Content) -> StagedCatalog:
    """Make a catalog in the staging folder, check it, and force it to disk.

    Raises:
        StorageError: the disk is full or failing, or the file does not show the rows of the manifests.
    """
    path = layout.staging / f"{name}.duckdb"
    with storage_errors(f"writing {path}"):
        layout.staging.mkdir(exist_ok=True)
        remove_own(path, layout.root)
        build_catalog(layout, path, content)
        status = path.stat()
    with reading_back(path):
        digest = own_sha256(path)
    return StagedCatalog(path, digest, content.shows(layout), f"{status.st_size}:{status.st_mtime_ns}")


def build_catalog(layout: Layout, path: Path, content: Content) -> None:
    """Write a catalog under a new name and check it before anyone sees it; errors are those of `stage_catalog`."""
    with duckdb.connect(":memory:") as connection:
        if not (_may_be_carried(content) and _carried(connection, layout, path, content)):
            remove_own(path, layout.root)
            _build(connection, layout, path, content)
        if path.with_name(path.name + ".wal").exists():
            message = f"{path} was not written completely"
            raise StorageError(message, remedy="Free some space and run again.")
        faults = _faults_as_read(connection, path, content)
    for fault in faults:
        raise StorageError(fault, remedy="Run again; if it happens again the disk is failing.")
    sync_file(path)


def _may_be_carried(content: Content) -> bool:
    return version_of(content.existing_shows) == _version()


def _carried(connection: duckdb.DuckDBPyConnection, layout: Layout, path: Path, content: Content) -> bool:
    """As `_carry`; False, too, if a table is missing or another one, since somebody else made the catalog."""
    try:
        return _carry(connection, layout, path, content)
    except (CatalogException, BinderException, ConversionException):
        with suppress(TransactionException):
            connection.execute("ROLLBACK")
        detach(connection)
        return False


def _carry(connection: duckdb.DuckDBPyConnection, layout: Layout, path: Path, content: Content) -> bool:
    """Copy the existing catalog, remove the runs that have gone, and add the latest.

    It returns False if the catalog lacks another run, or is of another folder, as after results were copied.
    """
    shutil.copyfile(layout.catalog, path, follow_symlinks=False)
    attach(connection, path, is_used=False)
    if foreign_in_catalog(connection, None):
        detach(connection)
        return False
    connection.execute("USE catalog")
    drop_views(connection)
    shown = {
        folder: tuple(left_out) for folder, left_out in connection.execute("SELECT path, left_out FROM runs").fetchall()
    }
    front = layout.named_folders()
    wanted = {front + name: content.left_out.get(name, ()) for name in content.kept}
    latest = front + content.latest[0].name
    is_new = latest not in shown
    is_of_another_folder = any(folder != front + run_name_of(folder) for folder in shown)
    if is_of_another_folder or any(
        shown.get(folder) != left_out for folder, left_out in wanted.items() if folder != latest or not is_new
    ):
        detach(connection)
        return False
    connection.execute("BEGIN TRANSACTION")  # one, so that the disk is waited for once
    if shown.keys() - wanted.keys():
        forget_runs(connection, [run_id_of(name) for name in content.kept], existing_shapes(connection))
    if is_new:
        tables = shapes([content.latest], holds_all=bool(layout.address))
        make_tables(connection, tables, content.latest, fresh=False)
        fill(connection, [content.latest], tables, content.left_out, fresh=False)
    update_attempts(connection, layout, content.attempt)
    _finish(connection)
    return True


def _build(connection: duckdb.DuckDBPyConnection, layout: Layout, path: Path, content: Content) -> None:
    """Build a catalog from the folders of all kept runs."""
    runs = content.runs()
    tables = shapes(runs, holds_all=bool(layout.address))
    key = tuple(tables.items())
    template = _templates.get(key) if len(runs) == 1 else None
    if template is not None:
        path.write_bytes(template)
    attach(connection, path)
    connection.execute("BEGIN TRANSACTION")
    if template is None:
        make_tables(connection, tables, content.latest, fresh=True)
        if len(runs) == 1:
            _finish(connection)
            _keep_template(key, path.read_bytes())
            attach(connection, path)
            connection.execute("BEGIN TRANSACTION")
    fill(connection, runs, tables, content.left_out, fresh=True)
    update_attempts(connection, layout, content.attempt)
    _finish(connection)


def _keep_template(key: tuple[tuple[View, Shape], ...], content: bytes) -> None:
    """Remember a catalog without a row: to make and comment tables takes longer than all else in a small catalog."""
    while len(_templates) >= _MOST_TEMPLATES:
        del _templates[next(iter(_templates))]
    _templates[key] = content


def _finish(connection: duckdb.DuckDBPyConnection) -> None:
    """Write what is pending to the file, so that an error of the disk is raised here, and let go of it."""
    connection.execute("COMMIT")
    connection.execute("CHECKPOINT catalog")
    detach(connection)


def _faults_as_read(connection: duckdb.DuckDBPyConnection, path: Path, content: Content) -> list[str]:
    """What the written file shows otherwise than it should; through the same connection, as opening one is slow."""
    try:
        attach(connection, path, read_only=True)
        faults = faults_after_writing(connection, content.latest, len(content.kept))
        detach(connection)
    except duckdb.Error as error:
        if os_error_number(error) is not None:
            raise os_fault(error, f"reading {path}") from error
        return [f"{path} cannot be opened: {first_line(error)}"]
    return [f"{path}: {fault}" for fault in faults]
