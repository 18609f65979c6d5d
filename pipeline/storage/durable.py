"""Writes that survive a crash: nothing is visible before it is complete and on disk."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import duckdb
from polars.exceptions import ComputeError

from ..errors import CannotCreateError, os_fault
from ..safe_files import remove_own

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

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
