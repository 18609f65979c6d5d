"""Publishing: a run is staged, verified and made visible by one rename of the catalog.

A reader sees the whole new run or the whole old one. Whatever ends the writer, nothing outside `.staging/` is partial;
a run folder that no catalog names is removed by the next run.
"""

from __future__ import annotations

import json
import shutil
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import polars as pl
from filelock import FileLock, Timeout

from pipeline.errors import BusyError, DataError, ThresherError
from pipeline.storage.catalog import build_catalog
from pipeline.storage.durable import (
    PROBE,
    READ_ONLY,
    file_sha256,
    json_bytes,
    make_folder,
    storage_errors,
    sync_file,
    sync_folder,
    write_json,
)
from pipeline.storage.layout import COUNTS, MANIFEST, RUN_RECORD, Layout
from pipeline.storage.manifest import Manifest, PublishedFile, read_manifest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ABANDONED_SECONDS = 3600.0
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


@contextmanager
def exclusive(layout: Layout) -> Iterator[None]:
    """Hold the results for one run.

    Raises:
        BusyError: another run holds them.
        CannotCreateError: the folder cannot be written.
    """
    make_folder(layout.root)
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
        lock.release()


def published_runs(layout: Layout) -> list[tuple[Path, Manifest]]:
    """Every kept run up to the latest, oldest first; what no pointer reaches is not listed."""
    latest = current_generation(layout)
    folders = sorted(layout.runs.glob("*-*")) if layout.runs.is_dir() else []
    named = [(folder, folder.name.partition("-")) for folder in folders if (folder / MANIFEST).is_file()]
    reached = [folder for folder, (number, _, _) in named if number.isdigit() and int(number) <= latest.generation]
    runs = [(folder, read_manifest(folder)) for folder in reached]
    return [(folder, run) for folder, run in runs if run.generation < latest.generation or run.run_id == latest.run_id]


@dataclass(frozen=True)
class Current:
    """The latest run: generation 0 and an empty id before the first."""

    generation: int = 0
    run_id: str = ""


def current_generation(layout: Layout) -> Current:
    """The latest run that a reader of the catalog sees; the pointer file may lag behind it after a crash."""
    return max(_pointer(layout), _catalog_generation(layout), key=lambda current: current.generation)


def _pointer(layout: Layout) -> Current:
    try:
        record = json.loads(layout.current.read_bytes())
        return Current(record["generation"], record["run_id"])
    except (OSError, ValueError, KeyError, TypeError):  # the catalog says it too, and the next run writes it anew
        return Current()


def _catalog_generation(layout: Layout) -> Current:
    import duckdb  # noqa: PLC0415 - only here does a pointer need the catalog

    if not layout.catalog.is_file():
        return Current()
    try:
        with duckdb.connect(str(layout.catalog), read_only=True) as connection:
            row = connection.execute("SELECT generation, run_id FROM runs ORDER BY generation DESC LIMIT 1").fetchone()
    except duckdb.Error:  # a catalog that does not open is rebuilt by the next run; the pointer still stands
        return Current()
    return Current() if row is None else Current(*row)


def clean(layout: Layout) -> None:
    """Remove what a crashed run left: staged things, and run folders that were never made visible.

    Raises:
        DataError: a published run is named by no pointer, so that it cannot be told from a leftover.
    """
    with storage_errors("cleaning up after an earlier run"):
        shutil.rmtree(layout.staging, ignore_errors=True)
        _remove_temporary(layout)
        kept = {folder for folder, _ in published_runs(layout)}
        for folder in layout.runs.iterdir() if layout.runs.is_dir() else ():
            if folder not in kept:
                _refuse_published(layout, folder)
                shutil.rmtree(folder)


def _remove_temporary(layout: Layout) -> None:
    """Temporary files of writers that were killed; those of attempts may belong to a run that starts just now."""
    for path in layout.root.glob(f"{PROBE}.*"):
        path.unlink(missing_ok=True)
    for path in layout.attempts.glob(".*.tmp"):
        with suppress(FileNotFoundError):
            if time.time() - path.stat().st_mtime > ABANDONED_SECONDS:
                path.unlink()


def _refuse_published(layout: Layout, folder: Path) -> None:
    try:
        record = json.loads((layout.attempts / f"{folder.name.partition('-')[2]}.json").read_bytes())
    except (OSError, ValueError):
        return
    if isinstance(record, dict) and record.get("status") == "published":
        message = f"{folder} was published, but neither {layout.current.name} nor {layout.catalog.name} names it"
        raise DataError(message, remedy="Restore one of the two from a copy, or move the folder away.")


@dataclass
class Staging:
    """A run that is being written.

    Attributes:
        layout: The results folder.
        run_id: The run's id.
        files: What has been written so far.
        doubts: What failed after readers saw the run.
    """

    layout: Layout
    run_id: str
    files: list[PublishedFile] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)

    @property
    def folder(self) -> Path:
        """Where it is written."""
        return self.layout.staging / self.run_id

    def write(self, table: str, stage: str, frame: pl.DataFrame, metadata: dict[str, str]) -> None:
        """Write one table of one stage; counts are a table called `counts_<stage>` in the folder `counts`."""
        counts = table == COUNTS
        relative = f"{table}/{stage}.parquet"
        path = self.folder / relative
        with storage_errors(f"writing {path}"):
            path.parent.mkdir(parents=True, exist_ok=True)
            frame.write_parquet(path, compression="zstd", statistics=True, metadata=metadata)
        schema = {name: sql_type(kind) for name, kind in frame.schema.items()}
        view = f"{COUNTS}_{stage}" if counts else table
        self._record(relative, view, stage, frame.height, schema)

    def _record(self, relative: str, table: str, stage: str, rows: int, schema: dict[str, str]) -> None:
        path = self.folder / relative
        with storage_errors(f"writing {path}"):
            path.chmod(READ_ONLY)
            sync_file(path)
            sync_folder(path.parent)
            size, sha256 = path.stat().st_size, file_sha256(path)
        self.files.append(PublishedFile(relative, table, stage, rows, size, sha256, schema))

    def results(self) -> dict[str, str]:
        """Hash by path of what has been written."""
        return {file.path: file.sha256 for file in self.files}

    def commit(self, *, base: Current, manifest: Manifest, record: dict[str, Any]) -> Path:
        """Make the run visible.

        Args:
            base: The latest run when this one began.
            manifest: The commit record, still without files.
            record: Content of run.json.

        Returns:
            The folder of the published run.

        Raises:
            BusyError: another run was published meanwhile.
            StorageError: the disk is full or failing; nothing has changed for readers.
        """
        target = self.layout.run(manifest.generation, self.run_id)
        with storage_errors(f"publishing {target}"):
            (self.folder / RUN_RECORD).write_bytes(json_bytes(record))
            self._record(RUN_RECORD, "", "", 0, {})
            whole = replace(manifest, files=tuple(self.files))
            write_json(self.folder / MANIFEST, whole.to_json())
            (self.folder / MANIFEST).chmod(READ_ONLY)
            for folder in (*(path for path in self.folder.iterdir() if path.is_dir()), self.folder):
                sync_folder(folder)
            self.layout.runs.mkdir(exist_ok=True)
            self.folder.rename(target)
            sync_folder(self.layout.runs)
            catalog = self.layout.staging / f"{self.run_id}.duckdb"
            build_catalog(catalog, [*published_runs(self.layout), (target, whole)])
            if current_generation(self.layout) != base:
                message = f"another run was published to {self.layout.root} meanwhile"
                raise BusyError(message, remedy="Run again.")
            catalog.chmod(READ_ONLY)
            catalog.replace(self.layout.catalog)
        self._point(target, whole)
        return target

    def _point(self, target: Path, whole: Manifest) -> None:
        """Write the pointer. Readers see the run already: what fails now is a doubt, not a failure."""
        pointer = {"generation": whole.generation, "run_id": self.run_id, "run": target.name}
        try:
            with storage_errors(f"{target.name} is published, but may not survive a loss of power"):
                sync_folder(self.layout.root)
                pointer["manifest_sha256"] = file_sha256(target / MANIFEST)
                write_json(self.layout.current, pointer, scratch=self.layout.staging)
        except ThresherError as error:
            self.doubts.append(error.message)


def sql_type(kind: pl.DataType) -> str:
    """SQL type of a written column."""
    if isinstance(kind, pl.Decimal):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    if isinstance(kind, pl.Datetime):
        return "TIMESTAMP" if kind.time_zone is None else "TIMESTAMPTZ"
    return _SQL_TYPES[type(kind)]


def utc_now() -> str:
    """The moment, in UTC, ISO 8601 with microseconds and without zone."""
    return datetime.now(UTC).replace(tzinfo=None).isoformat(timespec="microseconds")
