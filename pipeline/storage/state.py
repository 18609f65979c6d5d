"""The state of a results folder: pointer, kept runs, damage, attempts, what a crash left, what files answered."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import stat
from contextlib import suppress
from dataclasses import field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ..base.errors import DataError, NoInputError, ThresherError
from ..base.interrupts import NOTES, noted
from ..base.paths import remove_own
from ..base.records import dataclass
from .layout import (
    FORMAT_VERSION,
    MANIFEST,
    RUN_ID,
    RUN_NAME,
    RUN_RECORD,
    DamagedError,
    KeptRun,
    Layout,
    Manifest,
    faults,
    generation_of,
    json_bytes,
    own_sha256,
    parse_manifest,
    read_kept_run,
    read_own,
    read_record,
    read_start,
    run_id_of,
    run_name,
    storage_errors,
    sync_folder,
    write_json,
    write_whole,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator


# Records of attempts, written when an attempt starts and ends; attempts that were killed are recognised.


RUNNING, CRASHED, PUBLISHED = "running", "crashed", "published"
FAILED, INTERRUPTED = "failed", "interrupted"
ABANDONED, ABANDONED_ON_STORES = timedelta(hours=1), timedelta(days=1)
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_START = 1024  # bytes: the status is the third key of a record
_LARGEST_PID = (1 << 31) - 1
_START_FIELD = 19  # of what follows the name of the program in /proc/<pid>/stat


@dataclass
class Attempt:
    """The record of one attempt, in a file, which `send` puts on the store where the results live, if they do."""

    path: Path
    record: dict[str, Any]
    send: Callable[[Path], None] = lambda _path: None

    def write(self, **facts: Any) -> None:  # noqa: ANN401 - whatever JSON can hold
        """Add facts to the record and write it anew."""
        self.record |= facts
        with storage_errors(f"writing {self.path}"):
            self.path.parent.mkdir(exist_ok=True)
        write_json(self.path, self.record)
        if self.record["status"] == RUNNING:
            NOTES.keep_beside(self.path)
        else:
            NOTES.forget()
        self.send(self.path)


def process_facts() -> dict[str, Any]:
    """Return what identifies this process, even after its number was reused or the machine restarted."""
    pid = os.getpid()
    return {"pid": pid, "host": platform.node(), "boot_id": _boot_id(), "process_start": _process_start(pid)}


def status_of(layout: Layout, run_id: str) -> str | None:
    """Return the status in the record of an attempt, or None if there is no such record."""
    record = read_record(layout.attempt(run_id))
    return None if record is None else str(record.get("status"))


def crashed(layout: Layout, *, held: bool = False, settled: Collection[str] = ()) -> list[Path]:
    """Return the records that say `running` although the process is gone, but for attempts known to have ended.

    Where the caller holds the lock (`held`), no process on another host can have been at work for long, either; on a
    store, which has no lock, for a day.
    """
    longest = (ABANDONED_ON_STORES if layout.address else ABANDONED) if held else None
    paths = [layout.attempt(run_id) for run_id in layout.attempt_ids() if run_id not in settled]
    return [path for path in paths if _is_running(path) and _is_gone(read_record(path) or {}, longest)]


def settle(layout: Layout, published: dict[str, Path], latest: str) -> list[str]:
    """Complete the record of every attempt that was killed; return what these were reading when they ended.

    It is `crashed`, or `published` if its run exists, by the folders of kept runs by id; runs before the latest have
    been settled. The caller holds the lock.
    """
    sentences = []
    for path in crashed(layout, held=True, settled=published.keys() - {latest}):
        record = read_record(path)
        if record is None:
            continue
        folder = published.get(path.stem)
        existing = None if folder is None else read_record(folder / RUN_RECORD)
        facts = {"status": CRASHED, "noticed_at": utc_now()}
        if existing is None and (words := noted(path)):
            facts["error"] = f"the process crashed or was killed while {words}"
            sentences.append(
                f"attempt {path.stem} of {record.get('started_at')} crashed or was killed while {words}; "
                "if this run ends there, too, without a word, then that file is damaged"
            )
        write_json(path, existing or record | facts)
    for path in layout.attempts.glob(".*.reading"):
        if RUN_ID.fullmatch(path.stem[1:]) and status_of(layout, path.stem[1:]) != RUNNING:
            remove_own(path, layout.root)
    return sentences


def settle_ended(path: Path, status: str, code: int, error: str) -> None:
    """Complete the record of an attempt whose process ends, unless it is complete; if it cannot be written, go on."""
    record = read_record(path)
    if record is not None and record.get("status") == RUNNING:
        with suppress(ThresherError):
            write_json(path, record | {"status": status, "exit": code, "error": error, "ended_at": utc_now()})


def _is_running(path: Path) -> bool:
    try:
        return b'"status": "running"' in read_start(path, _START)
    except DamagedError:
        return False


def _is_gone(record: dict[str, Any], longest: timedelta | None) -> bool:
    """Whether the process of a record that says `running` has ended; False if that is uncertain.

    On another host it can have been at work for `longest`; None: as long as it likes.
    """
    if record.get("status") != RUNNING:
        return False
    if record.get("host") != platform.node() or os.name != "posix":
        return longest is not None and str(record.get("started_at")) < utc_now(-longest)
    if record.get("boot_id", _boot_id()) != _boot_id():
        return True
    pid = record.get("pid")
    if type(pid) is not int or not 0 < pid <= _LARGEST_PID or not _is_alive(pid):
        return True
    start = _process_start(pid)
    return bool(record.get("process_start", start) != start)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it is another user's
        return True
    return True


def _boot_id() -> str:
    with suppress(OSError):
        return _BOOT_ID.read_text("ascii").strip()
    return ""


def _process_start(pid: int) -> str:
    """Return when a process started, in ticks since the machine was booted; empty if the system does not tell."""
    with suppress(OSError, IndexError):
        return Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()[_START_FIELD]
    return ""


def utc_now(after: timedelta = timedelta(0)) -> str:
    """Return the current time in UTC, or one some time after it: ISO 8601 with microseconds, without a zone."""
    return (datetime.now(UTC) + after).replace(tzinfo=None).isoformat(timespec="microseconds")


# The state of a results folder: the pointer, the latest run, the kept runs, their damage, and what a crash left.
#
# `CURRENT` names the latest run, the hash of the manifest of every kept run, and the catalog that shows them. The next
# one lies complete in `.staging/` before the catalog is replaced. So one rename makes a run visible: whichever of the
# two names the catalog as it is counts.


UNFINISHED = {RUNNING, CRASHED, "failed", "interrupted"}
READINGS = 5
OLDER_RUNS = 20  # kept runs before the latest that every run looks at, in turn

Hashed = Literal["none", "latest", "all"]


@dataclass(frozen=True)
class CatalogFacts:
    """By what a catalog is recognised.

    Attributes:
        sha256: Hash of the file.
        shows: Its version, and hash of what it shows: folder, runs and what they lack.
        identity: Size and time of the file, by which a reader recognises it without reading it.
    """

    sha256: str
    shows: str
    identity: str


@dataclass(frozen=True)
class Pointer:
    """The content of `CURRENT`.

    Attributes:
        generation: The generation of the latest run.
        run_id: Its id.
        manifests: Hash of the manifest by name of every kept run, oldest first; empty where it is not known.
        catalog: The catalog that shows them.
        left_out: Damaged files that it leaves out, by name of the run.
    """

    generation: int
    run_id: str
    manifests: dict[str, str]
    catalog: CatalogFacts
    left_out: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def run(self) -> str:
        """Name of the latest run's folder."""
        return run_name(self.generation, self.run_id)

    def to_bytes(self) -> bytes:
        """Return the content of its file; the last key is the hash of all others."""
        record = {
            "format_version": FORMAT_VERSION,
            "generation": self.generation,
            "run_id": self.run_id,
            "run": self.run,
            "manifest_sha256": self.manifests[self.run],
            "catalog_sha256": self.catalog.sha256,
            "catalog_shows": self.catalog.shows,
            "catalog_identity": self.catalog.identity,
            "left_out": {name: list(paths) for name, paths in self.left_out.items()},
            "manifests": self.manifests,
        }
        return _signed(record)


def _signed(record: dict[str, Any]) -> bytes:
    return json_bytes(record | {"sha256": hashlib.sha256(json_bytes(record)).hexdigest()})


def parse_pointer(content: bytes, path: Path) -> Pointer:
    """Parse the content of a pointer.

    Raises:
        DamagedError: it is not what was written.
        DataError: another version of thresher wrote it.
    """
    changed = DamagedError(f"{path} has changed since it was written")
    try:
        record = json.loads(content)
        record.pop("sha256")
        if _signed(record) != content:
            raise changed
        if record["format_version"] != FORMAT_VERSION:
            message = f"{path} was written by another version of thresher"
            raise DataError(message, remedy="Read it with the version of thresher that wrote it.")
        catalog = CatalogFacts(*(str(record[f"catalog_{key}"]) for key in ("sha256", "shows", "identity")))
        left_out = {name: tuple(map(str, paths)) for name, paths in record["left_out"].items()}
        numbers = int(record["generation"]), str(record["run_id"])
        pointer = Pointer(*numbers, dict(record["manifests"]), catalog, left_out)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise changed from error
    if pointer.run not in pointer.manifests or not all(map(RUN_NAME.fullmatch, pointer.manifests)):
        raise changed
    return pointer


def _try_pointer(path: Path) -> tuple[Pointer | None, str]:
    """Return a pointer and an empty text, or None and what is wrong with it."""
    try:
        return parse_pointer(read_own(path), path), ""
    except DamagedError as error:
        return None, str(error)


@dataclass(frozen=True)
class Latest:
    """The latest run: generation 0 and an empty id before the first."""

    generation: int = 0
    run_id: str = ""

    @property
    def name(self) -> str:
        """Name of its folder."""
        return run_name(self.generation, self.run_id)


@dataclass(frozen=True)
class State:
    """The state of a results folder.

    Attributes:
        layout: The folder.
        latest: The latest run.
        kept: Names of the folders of all kept runs, oldest first, the latest last, even if its folder is gone.
        runs: Those kept runs that were read, in the same order; the latest is among them.
        leftovers: Run folders that were never made visible.
        pointer: The pointer that counts; None if it is missing or damaged.
        pointer_fault: Why it is None.
        catalog_sha256: Hash of the catalog; None if it is missing or not a file.
    """

    layout: Layout
    latest: Latest
    kept: tuple[str, ...]
    runs: tuple[KeptRun, ...]
    leftovers: tuple[Path, ...]
    pointer: Pointer | None
    pointer_fault: str
    catalog_sha256: str | None

    @property
    def latest_run(self) -> KeptRun | None:
        """The latest run as it was read; None before the first."""
        return self.runs[-1] if self.runs else None

    @property
    def shown(self) -> list[tuple[Path, Manifest]]:
        """Folder and manifest of the runs that readers can see, of those that were read, without damaged tables."""
        pairs = ((run.folder, run.shown()) for run in self.runs)
        return [(folder, manifest) for folder, manifest in pairs if manifest is not None]

    @property
    def catalog_shows(self) -> str:
        """The runs that the catalog shows, if the pointer to the latest run names it; else empty."""
        if self.pointer is None or self.pointer.run != self.latest.name:
            return ""
        return self.pointer.catalog.shows if self.pointer.catalog.sha256 == self.catalog_sha256 else ""

    @property
    def visible(self) -> list[str]:
        """Names of the folders of the runs that readers can see, oldest first: those whose manifests are intact."""
        left_out = self.left_out
        return [name for name in self.kept if MANIFEST not in left_out.get(name, ())]

    @property
    def left_out(self) -> dict[str, tuple[str, ...]]:
        """Damaged files by name of the run; of runs that were not read, as it was noted."""
        noted = {} if self.pointer is None else self.pointer.left_out
        every = noted | {run.folder.name: run.left_out for run in self.runs}
        return {name: every[name] for name in self.kept if every.get(name)}

    @property
    def damage(self) -> list[str]:
        """All damage of runs, as sentences."""
        return [sentence for run in self.runs for sentence in run.damage.values()]

    def kept_run(self, name: str, *, hashes: bool) -> KeptRun:
        """Read one kept run; `hashes` as for `read_kept_run`."""
        expected = "" if self.pointer is None else self.pointer.manifests.get(name, "")
        marked = () if self.pointer is None else self.pointer.left_out.get(name, ())
        return read_kept_run(self.layout, name, expected, marked, hashes=hashes)

    def with_all_runs(self) -> State:
        """Return the state with every kept run: those that were not read before are read now."""
        read = {run.folder.name: run for run in self.runs}
        return replace(self, runs=tuple(read.get(name) or self.kept_run(name, hashes=False) for name in self.kept))

    def with_new_run(self, run: KeptRun) -> State:
        """Return the state that follows once a further run is visible, which is complete in its folder."""
        latest = Latest(generation_of(run.folder.name), run.run_id)
        return replace(self, latest=latest, kept=(*self.kept, latest.name), runs=(*self.runs, run))

    def pointer_to(self, catalog: CatalogFacts) -> Pointer:
        """Return what the pointer has to say of the runs once a catalog is in its place."""
        noted = {} if self.pointer is None else self.pointer.manifests
        read = {run.folder.name: run.manifest_sha256 for run in self.runs}
        manifests = {name: noted.get(name) or read.get(name, "") for name in self.kept}
        return Pointer(self.latest.generation, self.latest.run_id, manifests, catalog, self.left_out)


def read_state(layout: Layout, hashed: Hashed = "none", *, older: int | None = None) -> State:
    """Read the state of a results folder, and read it again if a run is published in the meantime.

    Args:
        layout: The folder.
        hashed: The runs of which every file is read. Manifests are always hashed. With `none` a catalog that has the
            size and the time of the one that was published is taken for it.
        older: How many runs before the latest are read, in turn; None: all.
    """
    for _ in range(READINGS):
        before = _version(layout.catalog), _version(layout.current)  # which change when a run is published
        state = _read_state(layout, hashed, older)
        if (_version(layout.catalog), _version(layout.current)) == before:
            break
    return state


def _version(path: Path) -> tuple[int, int, int] | None:
    with suppress(OSError):
        status = path.lstat()
        return status.st_ino, status.st_mtime_ns, status.st_size
    return None


def _read_state(layout: Layout, hashed: Hashed, older: int | None) -> State:
    folders = _folders(layout)
    current, fault = _try_pointer(layout.current)
    pending, _ = _try_pointer(layout.pending)
    present_sha256 = _catalog_sha256(layout, [current, pending] if hashed == "none" else [])
    if current is not None and not (
        current.run in folders or current.catalog.sha256 == present_sha256 or layout.attempt(current.run_id).exists()
    ):
        current, fault = None, f"{layout.current} names a run of another folder"
    if pending is not None and pending.run in folders and _counts(layout, pending, current, present_sha256):
        current, fault = pending, ""
    latest = _latest(layout, current, folders)
    kept = [name for name in folders if generation_of(name) < latest.generation]
    if latest.generation:
        kept.append(latest.name)
    state = State(layout, latest, tuple(kept), (), (), current, fault, present_sha256)
    read = kept if older is None else _in_turn(kept, older)
    hashed_names = {"none": [], "latest": kept[-1:], "all": read}[hashed]
    runs = tuple(state.kept_run(name, hashes=name in hashed_names) for name in read)
    unseen = (name for name in folders if name not in kept and status_of(layout, run_id_of(name)) != PUBLISHED)
    return replace(state, runs=runs, leftovers=tuple(layout.runs / name for name in unseen))


def _counts(layout: Layout, pending: Pointer, current: Pointer | None, present_sha256: str | None) -> bool:
    """Whether the next pointer counts: it names the catalog as it is, or no pointer names the catalog that is there.

    In that case readers may have seen its run, which was complete when the pointer was written.
    """
    is_named = current is not None and current.catalog.sha256 == present_sha256
    return pending.catalog.sha256 == present_sha256 or (not is_named and os.path.lexists(layout.catalog))


def _catalog_sha256(layout: Layout, trusted: Iterable[Pointer | None]) -> str | None:
    """Return the hash of the catalog, of which a pointer may tell by size and time; None: it is missing, or no file."""
    with suppress(OSError, DamagedError):
        status = layout.catalog.lstat()
        for pointer in trusted if stat.S_ISREG(status.st_mode) else ():
            if pointer is not None and pointer.catalog.identity == f"{status.st_size}:{status.st_mtime_ns}":
                return pointer.catalog.sha256
        return own_sha256(layout.catalog)
    return None


def _in_turn(kept: list[str], older: int) -> list[str]:
    """Return the latest run and some before it: others after every publication, so that all have their turn."""
    if len(kept) <= older + 1:
        return kept
    first = generation_of(kept[-1]) * older
    chosen = {(first + step) % (len(kept) - 1) for step in range(older)}
    return [*(kept[place] for place in sorted(chosen)), kept[-1]]


def _latest(layout: Layout, pointer: Pointer | None, folders: list[str]) -> Latest:
    """Return the latest run: the one that the pointer names, or a later one that its attempt calls published.

    Without a pointer, the last complete one counts, unless its attempt says that it did not finish.
    """
    latest = Latest() if pointer is None else Latest(pointer.generation, pointer.run_id)
    for name in reversed(folders):
        if generation_of(name) <= latest.generation:
            break
        status = status_of(layout, run_id_of(name))
        is_complete = pointer is None and status not in UNFINISHED and (layout.runs / name / MANIFEST).is_file()
        if status == PUBLISHED or is_complete:
            return Latest(generation_of(name), run_id_of(name))
    return latest


def require_latest(layout: Layout) -> tuple[State, KeptRun, Manifest]:
    """Return the state of a results folder, its latest run, and the manifest of that run.

    Raises:
        NoInputError: no run was published there.
        DataError: the latest run is damaged.
    """
    state = read_state(layout, older=0)
    if not state.latest.generation:
        raise no_run(layout)
    run = state.runs[-1]
    if run.manifest is None or not run.is_readable:
        message = f"the latest run in {layout.root} is damaged: {next(iter(run.damage.values()))}"
        remedy = f"Run the job again, which publishes a new run; thresher verify {layout.root} lists what is damaged."
        raise DataError(message, remedy=remedy)
    return state, run, run.manifest


def no_run(layout: Layout) -> NoInputError:
    """Return the error that there is nothing to read."""
    message = f"{layout.root} holds no published run"
    return NoInputError(message, remedy="Give the output folder of a run, or run the job first.")


def _folders(layout: Layout) -> list[str]:
    """Names of the folders of runs, in order of their generation."""
    if not layout.runs.is_dir():
        return []
    with storage_errors(f"reading {layout.runs}"):
        names = os.listdir(layout.runs)  # noqa: PTH208 - of a thousand names, without a path for each
    return sorted((name for name in names if RUN_NAME.fullmatch(name)), key=lambda name: (generation_of(name), name))


def point_to_latest(layout: Layout, name: str) -> Iterator[str]:
    """Make `latest` a link to the folder of a run, by one rename; yield what was wrong with it, or prevents it.

    Where the system has no symbolic links, or permits none, as Windows by default, there is no `latest`. A tool that
    follows links while it copies a results folder leaves a copy of a run in its place: the copy gives way to the link.
    """
    target = os.path.join(layout.runs.name, name)  # noqa: PTH118 - the text of a link, relative to its folder
    if _target(layout) == target:
        return
    if not layout.latest.is_symlink() and layout.latest.exists():
        if not _is_copy_of_a_run(layout.latest):
            yield f"{layout.latest} is not the link that thresher makes: move it away, then it is made"
            return
        aside = layout.staging / f"latest.{os.getpid()}.copy"
        layout.latest.rename(aside)
        remove_own(aside, layout.root)
    temporary = layout.staging / f"latest.{os.getpid()}"
    with suppress(OSError, NotImplementedError):
        remove_own(temporary, layout.root)
        temporary.symlink_to(target, target_is_directory=True)
        temporary.replace(layout.latest)
        sync_folder(layout.root)


def latest_faults(layout: Layout) -> Iterator[str]:
    """Yield what is wrong with `latest`; to be missing, or to lag behind at an earlier run, is a trace of a crash."""
    target = _target(layout)
    if target is not None:
        if not (layout.root / target).is_dir():
            yield f"{layout.latest} leads to {target}, which is missing"
    elif layout.latest.is_symlink() or (layout.latest.exists() and not _is_copy_of_a_run(layout.latest)):
        yield f"{layout.latest} is not a link to a published run"


def latest_notes(layout: Layout) -> Iterator[str]:
    """Yield what is no damage but worth knowing: a copy of a run in the place of the link."""
    if not layout.latest.is_symlink() and layout.latest.is_dir() and _is_copy_of_a_run(layout.latest):
        yield f"{layout.latest} is a copy of a run, not a link to it; the next run, or --repair, makes it a link"


def _is_copy_of_a_run(folder: Path) -> bool:
    """Whether a folder holds the files of a manifest, by name and size, and nothing else."""
    path = folder / MANIFEST
    try:
        return not faults(folder, parse_manifest(read_own(path), path), hashes=False)
    except (ThresherError, DamagedError):
        return False


def _target(layout: Layout) -> str | None:
    """Return where `latest` leads; None if it is missing, or not a link to a folder in `runs`."""
    try:
        target = os.readlink(layout.latest)  # noqa: PTH115 - as text
    except (OSError, NotImplementedError):
        return None
    folder, _, name = target.replace(os.sep, "/").partition("/")
    return target if folder == layout.runs.name and RUN_NAME.fullmatch(name) else None


# What single input files answered to queries, kept in the results folder for the next run: bytes by key, a file each.
#
# A file begins with the hash of the rest, so that one which was damaged is told, and removed: whoever asks for it
# counts again. What was not used for longest goes first when the files take more than they may.


SUFFIX = ".answers"
_N_HASH = hashlib.sha256().digest_size
_OWN = re.compile(rf"(?P<start>[0-9a-f]{{2}})/(?P=start)[0-9a-f]{{62}}{re.escape(SUFFIX)}")
_TEMPORARY = re.compile(rf"\.[0-9a-f]{{64}}{re.escape(SUFFIX)}\.\d+\.tmp")


@dataclass
class AnswerCache:
    """The answers that a results folder keeps in a folder `root`, which after a run take at most `limit` bytes."""

    root: Path
    limit: int
    _written: list[Path] = field(default_factory=list, init=False)
    _failed: bool = field(default=False, init=False)

    def _path(self, key: str) -> Path:
        return self.root / key[:2] / f"{key}{SUFFIX}"

    def read(self, key: str) -> bytes | None:
        """Return what is kept under a key, 64 hexadecimal digits; what is damaged is removed."""
        path = self._path(key)
        try:
            content = read_own(path)
            path.touch()
        except (DamagedError, ThresherError, OSError):
            content = b""
        if hashlib.sha256(content[_N_HASH:]).digest() == content[:_N_HASH]:
            return content[_N_HASH:]
        self._remove(path)
        return None

    def write(self, key: str, content: bytes) -> None:
        """Keep something in the place of what was under its key; an error of the disk only costs the next run time."""
        path = self._path(key)
        if self._failed:
            return
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, hashlib.sha256(content).digest() + content, scratch=self.root)
            self._written.append(path)
        except (ThresherError, OSError):  # a full disk: room for the results is worth more
            self._failed = True
            for own_path in self._written:
                self._remove(own_path)

    def clean_up(self) -> None:
        """Remove what a kill left, and what was not used for longest, until the rest is within the limit."""
        with suppress(OSError):  # of what cannot be listed nothing is removed
            for path in self.root.glob(".*.tmp"):
                if _TEMPORARY.fullmatch(path.name):
                    self._remove(path)
            files = sorted((path.lstat().st_mtime, path) for path in self.root.glob("*/*") if self._is_own(path))
            total = sum(path.lstat().st_size for _, path in files)
            for _, path in files:
                if total <= self.limit:
                    return
                total -= path.lstat().st_size
                self._remove(path)

    def _is_own(self, path: Path) -> bool:
        """Whether a file has a name of ours, and neither it nor the folder around it is a link."""
        is_named = _OWN.fullmatch(path.relative_to(self.root).as_posix()) is not None
        return is_named and path.is_file() and not (path.is_symlink() or path.parent.is_symlink())

    def _remove(self, path: Path) -> None:
        with suppress(OSError):
            remove_own(path, self.root.parent, as_far_as_possible=True)
            if path.parent != self.root:
                path.parent.rmdir()  # unless something else lies there, too
