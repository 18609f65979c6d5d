"""A results folder: its names, and how its files are written and read so that they survive a crash."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import stat
import uuid
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import duckdb
from polars.exceptions import ComputeError

from ..errors import CannotCreateError, os_fault
from ..records import dataclass
from ..safe_files import read_file, remove_own

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


# The layout of a results folder.
#
# results/
#   catalog.duckdb                        tables of the latest run and of all kept runs; replaced as a whole
#   latest                                link to the folder of the latest run, replaced as a whole
#   CURRENT                               the latest run, the hash of every kept manifest, and that of the catalog
#   runs/<generation>-<run_id>/           immutable: manifest.json, run.json, <table>/<stage>.parquet, …
#   attempts/<run_id>.json                every attempt, failed ones too
#   .staging/                             the only place with unfinished things
#     CURRENT.next                        what `CURRENT` will be once the next catalog is in its place
#     <run_id>/                           the files of an unfinished run
#     <run_id>.finished/<stage>.json      a stage that it has finished: what it was counted from, and its files
#   .lock                                 held by the run that may publish; never deleted
#   .store                                in the mirror of results on a store: the address where they live


FORMAT_VERSION = 1
MANIFEST = "manifest.json"
CURRENT, CATALOG, RUNS, ATTEMPTS = "CURRENT", "catalog.duckdb", "runs", "attempts"
RUN_RECORD = "run.json"
FINISHED = ".finished"
RUN_ID = re.compile(r"[0-9a-f]{12}")
RUN_NAME = re.compile(r"(?P<generation>\d{8,})-(?P<run_id>[0-9a-f]{12})")
UNFINISHED_NAME = re.compile(  # of what the program makes in `.staging/`, and of temporary files
    r"(\d{8,}-)?[0-9a-f]{12}(\.finished|\.expired|\.removed|\.duckdb[.\w]*)?|healed\.duckdb[.\w]*"
    r"|latest\.\d+(\.copy)?|\..+\.\d+\.tmp"
)


@dataclass(frozen=True)
class Layout:
    """Paths of one results folder.

    Attributes:
        root: The folder, absolute.
    """

    root: Path

    @property
    def catalog(self) -> Path:
        """The DuckDB catalog."""
        return self.root / CATALOG

    @property
    def current(self) -> Path:
        """The pointer to the latest run."""
        return self.root / CURRENT

    @property
    def pending(self) -> Path:
        """What the pointer will be: it counts from the moment at which the catalog that it names is in its place."""
        return self.staging / f"{CURRENT}.next"

    @property
    def latest(self) -> Path:
        """The link to the folder of the latest run."""
        return self.root / "latest"

    @property
    def runs(self) -> Path:
        """The published runs."""
        return self.root / RUNS

    @property
    def wal(self) -> Path:
        """The file that DuckDB leaves beside a catalog that somebody opened for writing."""
        return self.root / "catalog.duckdb.wal"

    @property
    def attempts(self) -> Path:
        """The records of all attempts."""
        return self.root / ATTEMPTS

    @property
    def staging(self) -> Path:
        """The folder of unfinished files."""
        return self.root / ".staging"

    @property
    def states(self) -> Path:
        """The folder of what single input files answered; it can be removed at any time, at the cost of time."""
        return self.root / ".cache"

    @property
    def lock(self) -> Path:
        """The lock file."""
        return self.root / ".lock"

    @property
    def store(self) -> Path:
        """The file that names the store of which the folder is a mirror."""
        return self.root / ".store"

    @property
    def address(self) -> str:
        """Where the results live, if the folder is the mirror of a store; empty if they live in the folder itself."""
        with suppress(OSError, ValueError):
            return read_file(self.store).decode()
        return ""

    def named_folders(self) -> str:
        """What stands in front of the name of a run where the catalog names its folder: the place where it lives."""
        address = self.address
        return f"{address}/{RUNS}/" if address else os.path.join(self.runs, "")  # noqa: PTH118 - the start of a text

    def finished(self, run_id: str) -> Path:
        """The folder that notes which stages an unfinished run has finished."""
        return self.staging / f"{run_id}{FINISHED}"

    def unfinished(self) -> list[str]:
        """Ids of the unfinished runs that have finished a stage, in order of their last one."""
        folders = [path for path in self.staging.glob(f"*{FINISHED}") if path.is_dir() and not path.is_symlink()]
        noted = [(path.stat().st_mtime_ns, path) for path in folders if any(path.glob("*.json"))]
        run_ids = [path.name.removesuffix(FINISHED) for _, path in sorted(noted)]
        return [run_id for run_id in run_ids if RUN_ID.fullmatch(run_id) and (self.staging / run_id).is_dir()]

    def run(self, generation: int, run_id: str) -> Path:
        """Folder of one published run."""
        return self.runs / run_name(generation, run_id)

    def attempt_ids(self) -> list[str]:
        """Ids of all attempts that left a record, sorted."""
        names = os.listdir(self.attempts) if self.attempts.is_dir() else []  # noqa: PTH208 - many, and names suffice
        return sorted(name[:-5] for name in names if name.endswith(".json") and RUN_ID.fullmatch(name[:-5]))

    def attempt(self, run_id: str) -> Path:
        """The record of one attempt."""
        return self.attempts / f"{run_id}.json"


def run_name(generation: int, run_id: str) -> str:
    """Name of a run's folder."""
    return f"{generation:08d}-{run_id}"


def generation_of(name: str) -> int:
    """The generation in the name of a run's folder."""
    return int(name.partition("-")[0])


def run_id_of(name: str) -> str:
    """The id in the name of a run's folder."""
    return name.partition("-")[2]


def run_name_of(folder: str) -> str:
    """The name of a run in the text of its folder, as any system writes it, or in its address."""
    return folder.replace("\\", "/").rpartition("/")[2]


def new_run_id() -> str:
    """A fresh run id: 12 hexadecimal digits."""
    return uuid.uuid4().hex[:12]


# Writes that survive a crash: nothing is visible before it is complete and on disk.


PROBE = ".probe"
_CHUNK = 1 << 16
_NO_LINK, _NO_WAIT = getattr(os, "O_NOFOLLOW", 0), getattr(os, "O_NONBLOCK", 0)
_DAMAGE = {
    errno.ENOENT: "is missing",
    errno.ENOTDIR: "is missing",
    errno.EISDIR: "is not a file",
    errno.ENXIO: "is not a file",
    errno.ELOOP: "is a link",
    errno.EIO: f"cannot be read: {os.strerror(errno.EIO)}",
}
_OF_THE_PATH = {errno.EACCES, errno.EPERM, errno.EROFS, errno.EEXIST, errno.ENOTDIR, errno.ENOENT, errno.ELOOP}
_LIBRARY_ERRORS = (MemoryError, duckdb.IOException, duckdb.TransactionException, duckdb.FatalException, ComputeError)


def sync_file(path: Path) -> None:
    """Force the content of a file to disk."""
    descriptor = os.open(path, os.O_RDONLY if os.name == "posix" else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(path: Path) -> None:
    """Force the entries of a folder to disk, if the system can do that."""
    if os.name == "posix":
        sync_file(path)


class DamagedError(Exception):
    """A file that this package wrote is missing, is not a regular file, or cannot be read from the disk."""


def read_own(path: Path) -> bytes:
    """Read a file that this package wrote; a link in its place is never followed.

    Raises:
        DamagedError: it is missing, a link, not a regular file, or the disk fails.
        ThresherError: the system refuses for a reason that has nothing to do with the file.
    """
    with _opened_own(path) as descriptor, os.fdopen(descriptor, "rb", closefd=False) as file:
        return file.read()


def read_record(path: Path) -> dict[str, Any] | None:
    """Return a record in JSON, or None if it is missing or damaged."""
    with suppress(DamagedError, ValueError):
        record = json.loads(read_own(path))
        return record if isinstance(record, dict) else None
    return None


def read_start(path: Path, n_bytes: int) -> bytes:
    """Read the first bytes of a file that this package wrote; errors are those of `read_own`."""
    with _opened_own(path) as descriptor:
        return os.read(descriptor, n_bytes)


def own_sha256(path: Path) -> str:
    """Return the hash of a file that this package wrote; errors are those of `read_own`."""
    digest = hashlib.sha256()
    chunk = memoryview(bytearray(_CHUNK))
    with _opened_own(path) as descriptor, os.fdopen(descriptor, "rb", buffering=0, closefd=False) as file:
        while n_bytes := file.readinto(chunk):
            digest.update(chunk[:n_bytes])
    return digest.hexdigest()


@contextmanager
def reading_back(path: Path) -> Iterator[None]:
    """Treat damage to a file that this process has just written as what it is: an error of the disk.

    Raises:
        ThresherError: the file cannot be read back; see `os_fault`.
    """
    try:
        yield
    except DamagedError as error:
        raise os_fault(error.__cause__ if isinstance(error.__cause__, OSError) else error, f"reading {path}") from error


@contextmanager
def _opened_own(path: Path) -> Iterator[int]:
    try:
        descriptor = os.open(path, os.O_RDONLY | _NO_LINK | _NO_WAIT)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                message = f"{path} is not a file"
                raise DamagedError(message)
            yield descriptor
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno not in _DAMAGE:
            raise os_fault(error, f"reading {path}") from error
        message = f"{path} {_DAMAGE[error.errno]}"
        raise DamagedError(message) from error


def json_bytes(value: Any) -> bytes:  # noqa: ANN401 - whatever JSON can hold
    """Return JSON with the keys in their order, which is the order of columns in a manifest."""
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()


def write_json(path: Path, value: Any, *, scratch: Path | None = None) -> None:  # noqa: ANN401 - see json_bytes
    """Replace a JSON file atomically; arguments and errors are those of `write_whole`."""
    write_whole(path, json_bytes(value), scratch=scratch)


def write_whole(path: Path, content: bytes, *, scratch: Path | None = None) -> None:
    """Replace a file atomically: write a temporary file, force it to disk, rename it, and force the folder to disk.

    Args:
        path: The file.
        content: Its content.
        scratch: Folder of the temporary file, on the same file system; by default the folder of the file.

    Raises:
        ThresherError: the disk is full or failing; see `os_fault`.
    """
    temporary = (scratch or path.parent) / f".{path.name}.{os.getpid()}.tmp"
    with storage_errors(f"writing {path}"):
        try:
            remove_own(temporary, temporary.parent)
            with temporary.open("xb") as file:  # never through a link that stands there
                file.write(content)
            sync_file(temporary)
            temporary.replace(path)
        finally:
            remove_own(temporary, temporary.parent)
        sync_folder(path.parent)


def remove_whole(path: Path, scratch: Path, root: Path) -> None:
    """Remove a folder by one rename: it is there or gone, never a part of it. What lies in its place is removed, too.

    Args:
        path: The folder.
        scratch: Folder on the same file system that takes it; what a kill leaves there is the next run's to remove.
        root: A folder above both, see `remove_own`.
    """
    if path.is_symlink() or not path.is_dir():
        remove_own(path, root)
        return
    scratch.mkdir(exist_ok=True)
    aside = scratch / f"{path.name}.removed"
    remove_own(aside, root, as_far_as_possible=True)
    path.rename(aside)
    sync_folder(path.parent)
    remove_own(aside, root)


def make_folder(path: Path, option: str = "output") -> None:
    """Create a folder that must be writable.

    Args:
        path: The folder.
        option: What names it: a key of a config, or an option of a command.

    Raises:
        CannotCreateError: it cannot be created or written, or DuckDB could not open a catalog in it.
        StorageError: the disk is full or failing.
    """
    refused = next((sign for sign in "?\\" if sign in str(path) and sign != os.sep), None)
    if refused is not None:
        message = f"the output folder {path} has a '{refused}' in its path, where DuckDB cannot open files"
        raise CannotCreateError(message, remedy=f"Choose another folder with {option}.")
    try:
        path.mkdir(parents=True, exist_ok=True)
        probe = path / f"{PROBE}.{os.getpid()}"
        probe.touch()
        remove_own(probe, path)
    except OSError as error:
        fault = os_fault(error, f"the output folder {path} cannot be written")
        if error.errno in _OF_THE_PATH:
            raise CannotCreateError(
                fault.message, remedy=f"Choose another folder with {option}, or change its permissions."
            ) from error
        raise fault from error


@contextmanager
def storage_errors(what: str) -> Iterator[None]:
    """Translate errors of the operating system, also as libraries report them, into a `ThresherError`.

    Raises:
        ThresherError: the error that `os_fault` returns.
    """
    try:
        yield
    except (OSError, *_LIBRARY_ERRORS) as error:
        raise os_fault(error, what) from error
