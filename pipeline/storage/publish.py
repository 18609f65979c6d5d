"""Publishing: a run is staged, verified, and made visible by renaming the catalog once.

In order, each step forced to disk before the next: the files of the run and its manifest; its folder under `runs/`; the
new catalog, and the pointer that names its hash, still in `.staging/`; the catalog in the place of the old one, from
then on readers see the run; the pointer. Whenever the writer ends, a reader sees either the new run or the old one,
complete, and the next run does the missing step or removes what nobody has seen.
"""

from __future__ import annotations

import io
import os
import shutil
import stat
from contextlib import contextmanager, suppress
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

import polars as pl
from filelock import FileLock, Timeout

from ..errors import BusyError, CannotCreateError, ThresherError, os_fault
from ..records import dataclass
from ..safe_files import kind_in_words, remove_own
from ..tables.schemas import COUNT_TABLE, DESCRIPTION
from .catalog import stage_catalog
from .layout import (
    MANIFEST,
    RUN_ID,
    RUN_NAME,
    RUN_RECORD,
    DamagedError,
    Layout,
    json_bytes,
    make_folder,
    own_sha256,
    reading_back,
    remove_whole,
    storage_errors,
    sync_file,
    sync_folder,
    write_json,
    write_whole,
)
from .manifest import KeptRun, Manifest, PublishedFile
from .state import Latest, Pointer, point_to_latest, read_state

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ..tables.schemas import Table
    from .mirror import Mirror

_SQL_TYPES = {
    pl.Int64: "BIGINT",
    pl.Int32: "INTEGER",
    pl.Int16: "SMALLINT",
    pl.UInt64: "UBIGINT",
    pl.Float64: "DOUBLE",
    pl.String: "VARCHAR",
    pl.Boolean: "BOOLEAN",
    pl.Date: "DATE",
}


def make_results_folder(layout: Layout, option: str = "output") -> None:
    """Create a results folder, or see that what is there is one, into which a run can be written and published.

    Args:
        layout: The folder.
        option: What names it: a key of a config, or an option of a command.

    Raises:
        CannotCreateError: it cannot be created or written; what has the name of a folder of ours is a link or no
            folder, or lies on another device, so that no run could be moved there; the lock, the pointer or the catalog
            are somebody else's.
        StorageError: the disk is full or failing.
    """
    make_folder(layout.root, option)
    with storage_errors(f"looking at {layout.root}"):
        device = _device(layout.root.stat())
        for path in (layout.runs, layout.attempts, layout.staging):
            _refuse_unless(_fault_of_folder(path, device), path, option)
        _refuse_unless(_fault_of_lock(layout.lock), layout.lock, option)
        if not _has_own_names(layout):
            for path in (layout.current, layout.catalog):
                _refuse_unless("is not of thresher" if os.path.lexists(path) else "", path, option)


def _refuse_unless(fault: str, path: Path, option: str) -> None:
    if fault:
        message = f"the output folder {path.parent} cannot be written: {path} {fault}"
        raise CannotCreateError(message, remedy=f"Choose another folder with {option}, or move {path.name} elsewhere.")


def _fault_of_folder(path: Path, device: int) -> str:
    """Say why runs cannot be kept in a folder; empty if they can, or it is not there."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return ""
    if stat.S_ISLNK(status.st_mode):
        return f"is a link (to {os.readlink(path)}), and thresher keeps its files in folders of its own"  # noqa: PTH115 - as text
    if not stat.S_ISDIR(status.st_mode):
        return f"is {kind_in_words(status.st_mode) or 'a file'}, not a folder"
    if _device(status) != device:
        return "lies on another device, to which a finished run cannot be moved in one step"
    return ""


def _device(status: os.stat_result) -> int:
    return status.st_dev


def _fault_of_lock(path: Path) -> str:
    try:
        status = path.lstat()
    except FileNotFoundError:
        return ""
    if kind := kind_in_words(status.st_mode):
        return f"is {kind}, not the lock of thresher"
    return "has a content, and the lock of thresher has none" if status.st_size else ""


def _has_own_names(layout: Layout) -> bool:
    """Whether a run or an attempt has left anything in a results folder."""
    for folder, ending, pattern in (
        (layout.runs, "", RUN_NAME),
        (layout.attempts, ".json", RUN_ID),
    ):
        try:
            names = os.listdir(folder)  # noqa: PTH208 - names suffice
        except FileNotFoundError:
            continue
        except OSError as error:
            raise os_fault(error, f"reading {folder}") from error
        if any(name.endswith(ending) and pattern.fullmatch(name.removesuffix(ending)) for name in names):
            return True
    return False


class LostRaceError(BusyError):
    """Another run was published to the store of the results while this one was being made."""


@contextmanager
def exclusive(layout: Layout) -> Iterator[None]:
    """Hold the lock of a results folder.

    Raises:
        BusyError: another run holds them.
        CannotCreateError: the folder cannot be written.
    """
    make_results_folder(layout)
    lock = FileLock(layout.lock, timeout=0)
    with storage_errors(f"locking {layout.root}"):
        try:
            lock.acquire()
        except Timeout as error:
            message = f"another run is writing to {layout.root}"
            raise BusyError(message, remedy="Wait for it to end, then run again.") from error
    try:
        yield
    finally:
        with suppress(OSError):  # what was done is done: the end of the process releases it at the latest
            lock.release()


@dataclass
class Staging:
    """A run that is being written.

    Attributes:
        layout: The results folder.
        run_id: The run's id.
        files: What has been written so far.
        warnings_after_commit: What failed after the run had become visible.
        mirror: The mirror that the folder is of the store where the results live; None: they live in the folder itself.
    """

    layout: Layout
    run_id: str
    mirror: Mirror | None = None
    files: list[PublishedFile] = field(default_factory=list)
    warnings_after_commit: list[str] = field(default_factory=list)

    @property
    def folder(self) -> Path:
        """Where it is written."""
        return self.layout.staging / self.run_id

    def write(self, table: Table, stage: str, frame: pl.DataFrame, metadata: dict[str, str]) -> None:
        """Write one table of one stage; counts are a table called `counts_<stage>` in the folder `counts`.

        Args:
            table: Its contract, of which the file keeps what table and columns mean.
            stage: Name of the stage.
            frame: Its rows, with the users' names of grouping columns.
            metadata: What else the file keeps, by key.
        """
        relative = f"{table.name}/{stage}.parquet"
        path = self.folder / relative
        described = metadata | {DESCRIPTION: table.description(frame.columns)}
        with storage_errors(f"writing {path}"):
            path.parent.mkdir(parents=True, exist_ok=True)
            buffer = io.BytesIO()
            frame.write_parquet(buffer, compression="zstd", statistics=True, metadata=described)
            path.write_bytes(buffer.getbuffer())  # Polars would not always pass on what the system says is wrong
        schema = {name: sql_type(kind) for name, kind in frame.schema.items()}
        view = f"{COUNT_TABLE}_{stage}" if table.name == COUNT_TABLE else table.name
        with reading_back(path):
            self._record(relative, view, stage, frame.height, schema)

    def _record(self, relative: str, table: str, stage: str, rows: int, schema: dict[str, str]) -> None:
        path = self.folder / relative
        with storage_errors(f"writing {path}"):
            sync_file(path)
            sync_folder(path.parent)
            size, sha256 = path.stat().st_size, own_sha256(path)
        self.files.append(PublishedFile(relative, table, stage, rows, size, sha256, schema))

    def adopt(self, file: PublishedFile, folder: Path) -> None:
        """Take a file of another run as it is.

        It is copied: damage to one of the two does not reach the other, and a link would change the time of a file that
        others may be reading.

        Args:
            file: The file.
            folder: Folder of the other run, published or not.

        Raises:
            DamagedError: it is missing, or no longer what was written.
            StorageError: the disk is full or failing.
        """
        source, path = folder / file.path, self.folder / file.path
        with storage_errors(f"writing {path}"):
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                shutil.copyfile(source, path, follow_symlinks=False)
            except FileNotFoundError as error:
                message = f"{source} is missing"
                raise DamagedError(message) from error
        self._record(file.path, file.table, file.stage, file.rows, file.schema)
        if self.files[-1].sha256 != file.sha256:
            message = f"{source} has changed since it was written"
            raise DamagedError(message)

    def drop(self, stage: str) -> None:
        """Remove what has been written of a stage."""
        for file in self.files:
            if file.stage == stage:
                remove_own(self.folder / file.path, self.layout.root)
        for path in self.folder.glob(f"*/{stage}.parquet"):  # half written
            remove_own(path, self.layout.root)
        self.files = [file for file in self.files if file.stage != stage]

    def write_record(self, name: str, content: bytes) -> None:
        """Write a file of the run that is no table."""
        with storage_errors(f"writing {self.folder / name}"):
            (self.folder / name).write_bytes(content)
        with reading_back(self.folder / name):
            self._record(name, "", "", 0, {})

    def discard(self) -> None:
        """Remove what has been written."""
        remove_own(self.folder, self.layout.root, as_far_as_possible=True)

    def commit(self, *, base: Latest, manifest: Manifest, record: dict[str, Any]) -> Path:
        """Make the run visible.

        Args:
            base: The run that was the latest when this one began.
            manifest: The commit record, without its files.
            record: Content of run.json.

        Returns:
            The folder of the published run.

        Raises:
            BusyError: another run was published in the meantime.
            StorageError: the disk is full or failing; readers see no change.
        """
        target = self.layout.run(manifest.generation, self.run_id)
        with storage_errors(f"publishing {target}"):
            self.write_record(RUN_RECORD, json_bytes(record))
            complete = replace(manifest, files=tuple(self.files))
            write_json(self.folder / MANIFEST, complete.to_json())
            for folder in (*(path for path in self.folder.iterdir() if path.is_dir()), self.folder):
                sync_folder(folder)
            self.layout.runs.mkdir(exist_ok=True)
            self.folder.rename(target)
        try:
            pointer = self._make_visible(base, target, complete, record)
        except ThresherError:
            # remove what no reader has seen; what cannot be removed, the next run removes
            with suppress(ThresherError, OSError):
                if read_state(self.layout, older=0).latest == base:
                    remove_own(self.layout.pending, self.layout.root)
                    if self.mirror is None:
                        remove_whole(target, self.layout.staging, self.layout.root)
                    else:
                        self.mirror.take_back(target)
            raise
        self._point(pointer)
        return target

    def _make_visible(self, base: Latest, target: Path, manifest: Manifest, record: dict[str, Any]) -> Pointer:
        """Write the catalog that shows the run, and the next pointer, then do what readers notice."""
        with storage_errors(f"publishing {target}"), reading_back(target / MANIFEST):
            sync_folder(self.layout.runs)
            before = read_state(self.layout, older=0)
            run = KeptRun(target, self.run_id, manifest, own_sha256(target / MANIFEST), {})
            state = before.with_new_run(run)
            catalog, pointer = stage_catalog(state, self.run_id, existing_shows=before.catalog_shows, attempt=record)
            if self.mirror is None:
                write_whole(self.layout.pending, pointer.to_bytes())
            if read_state(self.layout, older=0).latest != base:
                message = f"another run was published to {self.layout.root} meanwhile"
                raise BusyError(message, remedy="Run again.")
            if self.mirror is not None:
                self.mirror.publish(target, manifest, pointer)
                self._complete(self.mirror, pointer, catalog)
            else:
                catalog.replace(self.layout.catalog)
        return pointer

    def _complete(self, mirror: Mirror, pointer: Pointer, catalog: Path) -> None:
        """Write what follows once the store shows the run; what fails is a warning now."""
        self.warnings_after_commit += mirror.complete(pointer, catalog)
        try:
            with storage_errors(f"{pointer.run} is published, but its catalog is missing in {self.layout.root}"):
                catalog.replace(self.layout.catalog)
        except ThresherError as error:
            self.warnings_after_commit.append(error.message)

    def _point(self, pointer: Pointer) -> None:
        """Write the pointer. Readers see the run already, so an error is a warning now, not a failure."""
        try:
            with storage_errors(f"{pointer.run} is published, but may not survive a loss of power"):
                sync_folder(self.layout.root)
                write_whole(self.layout.current, pointer.to_bytes(), scratch=self.layout.staging)
                remove_own(self.layout.pending, self.layout.root)
                self.warnings_after_commit += point_to_latest(self.layout, pointer.run)
        except ThresherError as error:
            self.warnings_after_commit.append(error.message)


def sql_type(kind: pl.DataType) -> str:
    """SQL type of a written column."""
    if isinstance(kind, pl.Decimal):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    if isinstance(kind, pl.Datetime):
        return "TIMESTAMP" if kind.time_zone is None else "TIMESTAMPTZ"
    return _SQL_TYPES[type(kind)]
