"""Writes that survive a crash: nothing is visible before it is whole and on disk."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import duckdb
from polars.exceptions import ComputeError

from pipeline.errors import CannotCreateError, os_fault

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

READ_ONLY = 0o444
PROBE = ".probe"
_CHUNK = 1 << 20
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
    """Force the names in a folder to disk, where the system can do that."""
    if os.name == "posix":
        sync_file(path)


def file_sha256(path: Path) -> str:
    """Hash of a file's content."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def json_bytes(value: Any) -> bytes:  # noqa: ANN401 - whatever JSON can hold
    """JSON that keeps the order of keys, which is the order of columns in a manifest."""
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()


def write_json(path: Path, value: Any, *, scratch: Path | None = None) -> None:  # noqa: ANN401 - see json_bytes
    """Replace a JSON file as a whole: temporary file, on disk, renamed, folder on disk.

    Args:
        path: The file.
        value: Its content.
        scratch: Folder of the temporary file, on the same file system; default: beside the file.

    Raises:
        StorageError: the disk is full or failing.
    """
    temporary = (scratch or path.parent) / f".{path.name}.{os.getpid()}.tmp"
    with storage_errors(f"writing {path}"):
        try:
            temporary.write_bytes(json_bytes(value))
            sync_file(temporary)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
        sync_folder(path.parent)


def make_folder(path: Path) -> None:
    """Make a folder that must be writable.

    Raises:
        CannotCreateError: it cannot be made or written, or DuckDB could not open a catalog in it.
        StorageError: the disk is full or failing.
    """
    if "?" in str(path):
        message = f"the output folder {path} has a '?' in its path, and DuckDB opens no file there"
        raise CannotCreateError(message, remedy="Choose another folder with output.")
    try:
        path.mkdir(parents=True, exist_ok=True)
        probe = path / f"{PROBE}.{os.getpid()}"
        probe.touch()
        probe.unlink(missing_ok=True)
    except OSError as error:
        fault = os_fault(error, f"the output folder {path} cannot be written")
        if error.errno in _OF_THE_PATH:
            raise CannotCreateError(
                fault.message, remedy="Choose another folder with output, or change its permissions."
            ) from error
        raise fault from error


@contextmanager
def storage_errors(what: str) -> Iterator[None]:
    """Turn errors of the operating system, also as the libraries report them, into ours.

    Raises:
        ThresherError: what `os_fault` makes of it.
    """
    try:
        yield
    except (OSError, *_LIBRARY_ERRORS) as error:
        raise os_fault(error, what) from error
