"""Publishing: a run is staged, verified and made visible at once; what is damaged later is told, and rebuilt."""

from __future__ import annotations

import io
import os
import shutil
import stat
import time
from contextlib import contextmanager, suppress
from dataclasses import field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import polars as pl
from filelock import FileLock, Timeout

from ..base.errors import BusyError, CannotCreateError, DataError, ThresherError, UsageError
from ..base.paths import kind_in_words, remove_own
from ..base.records import dataclass
from ..base.schemas import COUNT_TABLE, DESCRIPTION
from .catalog import catalog_faults, stage_catalog, version_of, what_is_shown
from .layout import (
    MANIFEST,
    PROBE,
    RUN_NAME,
    RUN_RECORD,
    UNFINISHED_NAME,
    DamagedError,
    KeptRun,
    Layout,
    Manifest,
    PublishedFile,
    json_bytes,
    make_folder,
    own_sha256,
    read_own,
    read_record,
    reading_back,
    remove_whole,
    run_id_of,
    storage_errors,
    sync_file,
    sync_folder,
    write_json,
    write_whole,
)
from .state import (
    OLDER_RUNS,
    RUNNING,
    Hashed,
    Latest,
    Pointer,
    State,
    crashed,
    latest_faults,
    latest_notes,
    no_run,
    point_to_latest,
    read_state,
    settle,
    utc_now,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from ..base.schemas import Table
    from .mirror import Mirror


# A run is made visible by renaming the catalog once.
#
# In order, each step forced to disk before the next: the files of the run and its manifest; its folder under `runs/`;
# the new catalog, and the pointer that names its hash, still in `.staging/`; the catalog in the place of the old one,
# from then on readers see the run; the pointer. Whenever the writer ends, a reader sees either the new run or the old
# one, complete, and the next run does the missing step or removes what nobody has seen.


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

    In messages `option`, a key of a config or an option, names it.

    Raises:
        CannotCreateError: it cannot be created or written; what has the name of a folder of ours is a link or no
            folder, or lies on another device, so that no run could be moved there; the lock, the pointer or the catalog
            are somebody else's.
        StorageError: the disk is full or failing.
    """
    make_folder(layout.root, option)
    with storage_errors(f"looking at {layout.root}"):
        for path, fault in _faults_of_names(layout):
            message = f"the output folder {path.parent} cannot be written: {path} {fault}"
            remedy = f"Choose another folder with {option}, or move {path.name} elsewhere."
            raise CannotCreateError(message, remedy=remedy)


def _faults_of_names(layout: Layout) -> Iterator[tuple[Path, str]]:
    """Yield what has the name of something of ours, and why runs cannot be kept with it."""
    device = _device(layout.root.stat())
    for path in (layout.runs, layout.attempts, layout.staging):
        if os.path.lexists(path) and (fault := _fault_of_folder(path, device)):
            yield path, fault
    if os.path.lexists(layout.lock):
        status = layout.lock.lstat()
        if kind := kind_in_words(status.st_mode):
            yield layout.lock, f"is {kind}, not the lock of thresher"
        elif status.st_size:
            yield layout.lock, "has a content, and the lock of thresher has none"
    if not _has_own_names(layout):
        yield from ((path, "is not of thresher") for path in (layout.current, layout.catalog) if os.path.lexists(path))


def _fault_of_folder(path: Path, device: int) -> str:
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode):
        return f"is a link (to {os.readlink(path)}), and thresher keeps its files in folders of its own"  # noqa: PTH115 - as text
    if not stat.S_ISDIR(status.st_mode):
        return f"is {kind_in_words(status.st_mode) or 'a file'}, not a folder"
    if _device(status) != device:
        return "lies on another device, to which a finished run cannot be moved in one step"
    return ""


def _device(status: os.stat_result) -> int:
    return status.st_dev


def _has_own_names(layout: Layout) -> bool:
    """Whether a run or an attempt has left anything in a results folder."""
    if layout.attempt_ids():
        return True
    return layout.runs.is_dir() and any(map(RUN_NAME.fullmatch, os.listdir(layout.runs)))  # noqa: PTH208 - names suffice


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

        The frame has the users' names of grouping columns; the file keeps what table and columns mean, and more
        metadata by key.
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

    def take(self, stage: str, files: Iterable[PublishedFile], folder: Path) -> str:
        """Take the files of a stage of another run, as `adopt`; if one is damaged take none, and say which."""
        try:
            for file in files:
                self.adopt(file, folder)
        except DamagedError as error:
            self.drop(stage)
            return str(error)
        return ""

    def drop(self, stage: str) -> None:
        """Remove what has been written of a stage."""
        for file in self.files:
            if file.stage == stage:
                remove_own(self.folder / file.path, self.layout.root)
        for path in self.folder.glob(f"*/{stage}.parquet"):  # half written
            remove_own(path, self.layout.root)
        self.files = [file for file in self.files if file.stage != stage]

    def discard(self) -> None:
        """Remove what has been written."""
        remove_own(self.folder, self.layout.root, as_far_as_possible=True)

    def commit(self, *, base: Latest, manifest: Manifest, record: dict[str, Any]) -> Path:
        """Make the run visible, and return its folder.

        The manifest lacks its files yet; `base` is the run that was the latest when this one began.

        Raises:
            BusyError: another run was published in the meantime.
            StorageError: the disk is full or failing; readers see no change.
        """
        target = self.layout.run(manifest.generation, self.run_id)
        with storage_errors(f"publishing {target}"), reading_back(self.folder / RUN_RECORD):
            (self.folder / RUN_RECORD).write_bytes(json_bytes(record))
            self._record(RUN_RECORD, "", "", 0, {})
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
            if self.mirror is None:
                catalog.replace(self.layout.catalog)
                return pointer
            self.mirror.publish(target, manifest, pointer)
            self.warnings_after_commit += self.mirror.complete(pointer, catalog)
        with self._warning(f"{pointer.run} is published, but its catalog is missing in {self.layout.root}"):
            catalog.replace(self.layout.catalog)
        return pointer

    def _point(self, pointer: Pointer) -> None:
        with self._warning(f"{pointer.run} is published, but may not survive a loss of power"):
            sync_folder(self.layout.root)
            write_whole(self.layout.current, pointer.to_bytes(), scratch=self.layout.staging)
            remove_own(self.layout.pending, self.layout.root)
            self.warnings_after_commit += point_to_latest(self.layout, pointer.run)

    @contextmanager
    def _warning(self, words: str) -> Iterator[None]:
        """Make a warning of an error: readers see the run already."""
        try:
            with storage_errors(words):
                yield
        except ThresherError as error:
            self.warnings_after_commit.append(error.message)


def sql_type(kind: pl.DataType) -> str:
    """SQL type of a written column."""
    if isinstance(kind, pl.Decimal):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    if isinstance(kind, pl.Datetime):
        return "TIMESTAMP" if kind.time_zone is None else "TIMESTAMPTZ"
    return _SQL_TYPES[type(kind)]


# Verification and healing: what is not as it was published is told, and rebuilt from the run folders.


MOST_DAMAGE = 20
ABANDONED_SECONDS = 3600.0
HEALING = "healed"


@dataclass(frozen=True)
class Healed:
    """The state of a results folder as it was found, before it was healed.

    Attributes:
        notes: What was rebuilt, and what is damaged and could not be rebuilt.
        crashes: What attempts were reading that ended without a word.
    """

    state: State
    notes: tuple[str, ...]
    crashes: tuple[str, ...] = ()


def heal(layout: Layout, hashed: Hashed = "latest") -> Healed:
    """Tidy up after a crash, and rebuild catalog, pointer and the stable path from the run folders.

    The caller holds the lock. Every file is read of the runs that are `hashed`; with `all` every kept run is looked at,
    else the latest and some older ones in turn.

    Raises:
        ThresherError: the disk is full or failing, or refuses access.
    """
    with storage_errors(f"healing {layout.root}"):
        state = read_state(layout, hashed, older=None if hashed == "all" else OLDER_RUNS)
        _remove_leftovers(state)
        folders = {run_id_of(name): layout.runs / name for name in state.kept}
        crashes = tuple(settle(layout, folders, state.latest.run_id))
        notes = []
        if layout.states.is_symlink():
            words = "is a link, which is not followed: runs read every file again until it is a folder"
            notes.append(f"{layout.states} {words}")
        if state.runs:
            layout.staging.mkdir(exist_ok=True)
            notes += [*_mend(state, hashed), *point_to_latest(layout, state.latest.name), *_losses(state)]
        remove_own(layout.pending, layout.root)
    return Healed(state, tuple(notes), crashes)


def _remove_leftovers(state: State) -> None:
    """Remove what a crashed run left: staged files, and run folders that never became visible."""
    layout = state.layout
    clear_staging(layout, unless=layout.unfinished()[-1:])
    for path in layout.root.glob(f"{PROBE}.*"):
        if path.name.removeprefix(f"{PROBE}.").isdecimal():
            remove_own(path, layout.root)
    for path in layout.attempts.glob(".*.json.*.tmp"):  # they may belong to a run that starts just now
        with suppress(FileNotFoundError):
            if UNFINISHED_NAME.fullmatch(path.name) and time.time() - path.lstat().st_mtime > ABANDONED_SECONDS:
                remove_own(path, layout.root)
    for folder in state.leftovers:
        remove_whole(folder, layout.staging, layout.root)


def clear_staging(layout: Layout, *, unless: Sequence[str] = ()) -> None:
    """Remove unfinished things, as far as possible, of a results folder whose lock the caller holds.

    What stays is of the runs whose ids `unless` names: the next run can take over the stages that they have finished.
    """
    kept = {name for run_id in unless for name in (run_id, layout.finished(run_id).name)}
    if layout.staging.is_symlink() or not layout.staging.is_dir():
        return
    for path in layout.staging.iterdir():
        if path.name not in kept and UNFINISHED_NAME.fullmatch(path.name):
            remove_own(path, layout.root, as_far_as_possible=True)
    if not kept:
        with suppress(OSError):  # somebody else's things lie there, too
            layout.staging.rmdir()


def _mend(state: State, hashed: Hashed) -> Iterator[str]:
    """Write catalog and pointer again where they do not fit the runs; yield what was wrong."""
    layout, reason = state.layout, _wrong_with_catalog(state, hashed)
    if reason and state.runs[-1].is_readable:
        existing_shows = "" if "not of thresher" in reason else state.catalog_shows
        path, pointer = stage_catalog(state, HEALING, existing_shows=existing_shows)
        content = pointer.to_bytes()
        write_whole(layout.pending, content)
        remove_own(layout.wal, layout.root)
        path.replace(layout.catalog)
        sync_folder(layout.root)
        yield f"{layout.catalog} {reason}, and was built again"
    elif state.pointer is not None:
        content = state.pointer_to(state.pointer.catalog).to_bytes()
    else:
        return
    try:
        is_written = read_own(layout.current) == content
    except DamagedError:
        is_written = False
    if not is_written:
        write_whole(layout.current, content, scratch=layout.staging)
    if state.pointer is None:
        yield f"{layout.current} was missing or damaged, and was written again"


def _wrong_with_catalog(state: State, hashed: Hashed) -> str:
    """Say why the catalog has to be built again; empty if it is the one that the pointer names, and shows all runs."""
    catalog, wal = state.layout.catalog, state.layout.wal
    if state.catalog_sha256 is None:
        return "was missing" if catalog.is_symlink() or not catalog.exists() else "could not be read"
    if not state.catalog_shows:
        return "was not the one that was published"
    if state.catalog_shows != (shows := what_is_shown(state)):
        is_other_version = version_of(state.catalog_shows) != version_of(shows)
        return "was made by another version of thresher" if is_other_version else "showed another folder or other runs"
    if hashed == "all" and any(catalog_faults(catalog, state.shown)):
        return "held what is not of thresher"
    return "had been opened for writing" if wal.is_symlink() or wal.exists() else ""


def _losses(state: State) -> Iterator[str]:
    """Yield a sentence for each run with damage that cannot be healed."""
    for run in state.runs:
        if run.damage:
            first, *more = run.damage.values()
            others = f", and {len(more):,} more" if more else ""
            effect = "this run is made again" if run is state.runs[-1] else "history leaves it out"
            yield f"a published run is damaged: {first}{others}; {effect}"


@dataclass(frozen=True)
class Verified:
    """A results folder that is as it was published: numbers of kept runs and of files, and what was healed."""

    runs: int
    files: int
    notes: tuple[str, ...]


def repair_on_store(mirror: Mirror) -> tuple[str, ...]:
    """Build catalog and pointer of results on a store from the runs there; return what was done."""
    with exclusive(mirror.layout):
        mirror.bring_here()
        notes = heal(mirror.layout, "all").notes
        sent = mirror.send_back() if mirror.layout.current.is_file() else ()
        return (*notes, *sent)


def verify(results: Path, *, repair: bool = False) -> Verified:
    """Check every file of every kept run, the pointer, and the catalog; with `repair` rebuild these two first.

    Raises:
        NoInputError: no run was published there.
        DataError: something is missing, changed or extra; the message lists it.
        BusyError: with `repair`, a run holds the folder.
    """
    layout = Layout(results.resolve())
    healed: tuple[str, ...] = ()
    if repair and layout.root.is_dir():
        with exclusive(layout):
            mended = heal(layout, "all")
            healed = (*mended.crashes, *mended.notes)
    state = read_state(layout, "all", older=None)
    if not state.latest.generation:
        raise no_run(layout)
    damage = [*_pointer_faults(state), *_catalog_faults(state), *latest_faults(layout), *state.damage]
    if damage:
        more = f"; and {len(damage) - MOST_DAMAGE:,} more" if len(damage) > MOST_DAMAGE else ""
        while_mended = f" (while it was mended: {'; '.join(healed)})" if healed and not state.damage else ""
        raise DataError("; ".join(damage[:MOST_DAMAGE]) + more + while_mended, remedy=_remedy(state, repair=repair))
    files = sum(len(run.manifest.files) for run in state.runs if run.manifest is not None)
    return Verified(len(state.runs), files, (*healed, *_notes(state)))


def _remedy(state: State, *, repair: bool) -> str:
    if not state.damage:
        if repair:  # what it needs of the runs could not be read a moment ago
            return "Repair it again; if that does not help, check the disk or the network share."
        return f"thresher verify {state.layout.root} --repair writes them again, and so does the next run."
    if state.runs[-1].damage:
        return "Run the job again, which publishes a new run; or restore what is damaged from a copy."
    return "Restore what is damaged from a copy; or delete the folder of the damaged run and go on without it."


def _pointer_faults(state: State) -> Iterator[str]:
    if state.pointer is None:
        yield state.pointer_fault
    elif state.pointer.run != state.latest.name:
        yield f"{state.layout.current} names {state.pointer.run}, and the latest run is {state.latest.name}"


def _catalog_faults(state: State) -> Iterator[str]:
    layout = state.layout
    if layout.wal.is_symlink() or layout.wal.exists():
        yield f"{layout.wal} should not be there: the catalog was opened for writing"
    elif state.catalog_sha256 is None:
        yield f"{layout.catalog} is {'a link or not a file' if layout.catalog.is_symlink() else 'missing'}"
    elif state.pointer is not None and not state.catalog_shows:
        yield f"{layout.catalog} is not the one that was published"
    elif not _shows_others(state):
        yield from catalog_faults(layout.catalog, state.shown)


def _shows_others(state: State) -> bool:
    return state.catalog_shows != what_is_shown(state)


def _notes(state: State) -> Iterator[str]:
    if _shows_others(state):
        yield (
            f"{state.layout.catalog} shows another folder or deleted runs, or was made by another version of "
            "thresher; it is built again by the next run, or with --repair"
        )
    yield from latest_notes(state.layout)
    for path in crashed(state.layout):
        yield f"{path} says `running`, but its process is gone: it crashed"


# Expiry: old runs are removed whole, then the catalog is made again without their rows.
#
# A run's folder is moved to `.staging/` by one rename, so that it is there or gone, never a part of it; what a kill
# leaves there the next run removes. A catalog that still shows rows of runs that have gone is no damage: every reader
# leaves them out, and the next run, or this one a moment later, makes it again.


EXPIRED = ".expired"
MOST_DAYS = 100_000


@dataclass(frozen=True)
class Keeping:
    """Which runs stay: the last `n_runs`, and those of the last `n_days`; the latest always does.

    Raises:
        UsageError: both are None, or one is out of range.
    """

    n_runs: int | None
    n_days: float | None

    def __post_init__(self) -> None:
        if self.n_runs is None and self.n_days is None:
            message = "nothing says which runs to keep"
            raise UsageError(message, remedy="Give --keep N, --keep-days D, or both: a run stays that either keeps.")
        if self.n_runs is not None and self.n_runs < 1:
            message = f"--keep {self.n_runs}: at least the latest run stays"
            raise UsageError(message, remedy="Give a number from 1.")
        if self.n_days is not None and not 0 <= self.n_days <= MOST_DAYS:
            message = f"--keep-days {self.n_days:g} is not a number of days"
            raise UsageError(message, remedy=f"Give a number from 0 to {MOST_DAYS:,}.")


@dataclass(frozen=True)
class Expired:
    """Names of the folders of the runs that were removed, and that stay, oldest first; and what was healed before."""

    removed: tuple[str, ...]
    kept: tuple[str, ...]
    attempts: int
    notes: tuple[str, ...]


def expire(results: Path, keeping: Keeping, *, dry_run: bool = False, mirror: Mirror | None = None) -> Expired:
    """Remove old runs, the records of attempts as old, and their rows in the catalog.

    With `dry_run` it only says what would be removed. Where the folder is the mirror of results on a store, they are
    removed from there, too.

    Raises:
        NoInputError: no run was published there.
        BusyError: a run holds the folder.
        StorageError: the disk is full or failing.
        UnavailableError: the store does not answer.
    """
    layout = Layout(results.resolve())
    if not layout.root.is_dir() and mirror is None:
        raise no_run(layout)
    if dry_run:
        state = read_state(layout, older=None)
        removed, attempts = _outdated(state, keeping)
        return Expired(removed, _without(state.kept, removed), len(attempts), ())
    with exclusive(layout):
        if mirror is not None:
            mirror.bring_here()
        healed = heal(layout)
        notes = (*healed.crashes, *healed.notes)
        state = read_state(layout, older=None)
        removed, attempts = _outdated(state, keeping)
        with storage_errors(f"removing old runs of {layout.root}"):
            _remove(state, removed, attempts)
        heal(layout)
        if mirror is not None:
            notes = (*notes, *mirror.send_back())
            mirror.remove_runs(removed, attempts)
    return Expired(removed, _without(state.kept, removed), len(attempts), notes)


def _without(names: Sequence[str], removed: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for name in names if name not in set(removed))


def _outdated(state: State, keeping: Keeping) -> tuple[tuple[str, ...], tuple[Path, ...]]:
    """Return the names of the runs, and the paths of the records of attempts, that do not stay."""
    if not state.latest.generation:
        raise no_run(state.layout)
    moments, too_old = _moments(state), utc_now(-timedelta(days=keeping.n_days or 0))
    last_ones = () if keeping.n_runs is None else state.kept[-keeping.n_runs :]
    removed = tuple(name for name in state.kept[:-1] if name not in last_ones and moments[name] < too_old)
    kept_ids = {run_id_of(name) for name in _without(state.kept, removed)}
    oldest = min(moments[last_ones[0]], too_old) if last_ones else too_old
    return removed, tuple(_old_attempts(state.layout, oldest, kept_ids))


def _moments(state: State) -> dict[str, str]:
    """When every kept run was published, by name; a run whose manifest is damaged counts as the one after it."""
    moments, last = {}, utc_now()
    for run in reversed(state.runs):
        last = last if run.manifest is None else run.manifest.published_at
        moments[run.folder.name] = last
    return moments


def _old_attempts(layout: Layout, limit: str, kept_ids: set[str]) -> Iterator[Path]:
    """Yield the records of attempts that began before a moment, except of kept runs and of attempts at work."""
    for run_id in layout.attempt_ids():
        record = None if run_id in kept_ids else read_record(layout.attempt(run_id))
        if record is not None and record.get("status") != RUNNING and str(record.get("started_at")) < limit:
            yield layout.attempt(run_id)


def _remove(state: State, names: Sequence[str], attempts: Sequence[Path]) -> None:
    """Remove runs and records of attempts."""
    layout = state.layout
    layout.staging.mkdir(exist_ok=True)
    aside = [layout.staging / f"{name}{EXPIRED}" for name in names]
    for name, path in zip(names, aside, strict=True):
        (layout.runs / name).rename(path)
    sync_folder(layout.runs)
    for path in (*aside, *attempts):
        remove_own(path, layout.root)
