"""Copies of remote objects here: verified by their content, bounded in size, used while the object is the same.

Every run reads links of its own to the copies, so that another run which makes room takes nothing from it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import shutil
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import StorageError, os_fault
from ...records import dataclass
from ...safe_files import remove_own
from ..spooling import PREFIX, PRIVATE, TemporaryFolder
from .store import RemoteObject, endpoints

if TYPE_CHECKING:
    import threading

    from .store import Bucket

DEFAULT_LIMIT = 20 * 1000**3
_DATA, _NOTE, _UNFINISHED = ".data", ".json", ".part"
_KEPT = re.compile(r"[0-9a-f]{64}\.data")
_HALF = re.compile(r"[0-9a-f]{64}\.[0-9a-f]{16}\.part")
_OWN = 0o600
_LONGEST_NAME = 200  # bytes
_STALE_SECONDS = 24 * 60 * 60
_LONGEST_RUN_SECONDS = 30 * _STALE_SECONDS


@dataclass(frozen=True)
class CopiedObject:
    """A copy of an object.

    Attributes:
        path: The copy; its name is that of the object.
        item: The object, with the version that was read.
        sha256: Hash of its content.
        holder: What removes the copy once nothing refers to it.
    """

    path: Path
    item: RemoteObject
    sha256: str
    holder: object

    @property
    def identity(self) -> dict[str, int | str]:
        """What tells whether the object was replaced."""
        version = {} if self.item.version is None else {"version_id": self.item.version}
        return {"size": self.item.size, "etag": self.item.etag, **version, "sha256": self.sha256}


class Copies:
    """A folder of copies of objects.

    Args:
        folder: The folder, private to the user; None: `thresher/objects` in the user's folder for caches.
        limit: Bytes that all copies may have together when a run has read what it needs.
    """

    def __init__(self, folder: Path | None = None, limit: int = DEFAULT_LIMIT) -> None:
        self._folder = folder
        self.limit = limit

    @property
    def folder(self) -> Path:
        """Where the copies are."""
        return self._folder or folder_for_caches() / "objects"

    def fetch(self, bucket: Bucket, item: RemoteObject, stopped: threading.Event, *, name: str) -> CopiedObject:
        """Return a copy of an object: the one that is there if its content is as it was, otherwise a new one.

        Args:
            bucket: Where the object is.
            item: The object, as it was listed.
            stopped: Set when nobody wants the content any more.
            name: Name of the input in messages.

        Raises:
            StorageError: the disk is full.
            ThresherError: the store refuses, or the operating system fails.
        """
        try:
            self.folder.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
            return self._kept(item) or self._copied(bucket, item, stopped)
        except OSError as error:
            fault = os_fault(error, f"input {name}: copying {item.address} to {self.folder}")
            if isinstance(fault, StorageError):
                fault.remedy = "Free some space, or set resources.copies to a folder on a larger disk."
            raise fault from error

    def make_room(self) -> None:
        """Remove the copies that were not used for the longest time until the rest is within the limit."""
        with suppress(OSError):
            entries = []
            for path in self.folder.iterdir():
                with suppress(OSError):
                    status = path.lstat()
                    if _KEPT.fullmatch(path.name):
                        entries.append((status.st_mtime, path, status.st_size))
                    elif _HALF.fullmatch(path.name) and time.time() - status.st_mtime > _STALE_SECONDS:
                        remove_own(path, self.folder)
                    elif path.name.startswith(PREFIX) and time.time() - status.st_mtime > _LONGEST_RUN_SECONDS:
                        remove_own(path, self.folder, as_far_as_possible=True)  # of a run that was killed
            excess = sum(size for _, _, size in entries) - self.limit
            for _, path, size in sorted(entries):
                if excess <= 0:
                    break
                remove_own(path.with_suffix(_NOTE), self.folder)
                remove_own(path, self.folder)
                excess -= size

    def _kept(self, item: RemoteObject) -> CopiedObject | None:
        """Return the copy that is there, or None if there is none whose content is as it was."""
        data = self._place(item)
        try:
            note = json.loads(data.with_suffix(_NOTE).read_bytes())
            sha256, version = str(note["sha256"]), note["version"]
            path, holder = _linked(data, item)
        except (OSError, ValueError, TypeError, KeyError):
            return None
        if (path.stat().st_size, _sha256(path)) != (item.size, sha256):
            return None
        with suppress(OSError):
            os.utime(data)  # used now
        return CopiedObject(path, RemoteObject(item.address, item.size, item.etag, version), sha256, holder)

    def _copied(self, bucket: Bucket, item: RemoteObject, stopped: threading.Event) -> CopiedObject:
        data = self._place(item)
        unfinished = data.with_suffix(f".{secrets.token_hex(8)}{_UNFINISHED}")
        try:
            unfinished.touch(_OWN, exist_ok=False)
            with unfinished.open("wb") as file:
                read = bucket.copy(item, file, stopped)
                file.flush()
                os.fsync(file.fileno())
            sha256 = _sha256(unfinished)
            path, holder = _linked(unfinished, item)
            remove_own(data.with_suffix(_NOTE), self.folder)  # never the note of another copy beside this one
            unfinished.replace(data)
        finally:
            remove_own(unfinished, self.folder)
        note = {"address": str(item.address), "etag": item.etag, "version": read.version, "sha256": sha256}
        unfinished.write_text(json.dumps(note))
        unfinished.replace(data.with_suffix(_NOTE))
        return CopiedObject(path, read, sha256, holder)

    def _place(self, item: RemoteObject) -> Path:
        identity = [str(item.address), item.etag, item.version, item.size, endpoints()]
        return self.folder / f"{hashlib.sha256(json.dumps(identity).encode()).hexdigest()}{_DATA}"


def bytes_of(size: str) -> int:
    """Return the number of bytes that a size such as `4GB` or `512 MiB` means."""
    number, unit = float(size.rstrip("BGIKMTbgikmt ")), size.lstrip("0123456789. ").lower()
    return int(number * (1024 if "i" in unit else 1000) ** ("kmgt".index(unit[0]) + 1))


def folder_for_caches() -> Path:
    """Return `thresher` in the user's folder for caches."""
    caches = os.environ.get("XDG_CACHE_HOME") or ""
    return (Path(caches) if os.path.isabs(caches) else Path.home() / ".cache") / "thresher"  # noqa: PTH117


def _linked(data: Path, item: RemoteObject) -> tuple[Path, object]:
    """Return a link to a copy, under the name of the object, and what removes it."""
    holder = TemporaryFolder(data.parent)
    path = holder.path / item.address.folders[-1].encode()[-_LONGEST_NAME:].decode(errors="ignore")
    try:
        path.hardlink_to(data)
    except OSError:  # a file system without links
        shutil.copyfile(data, path)
    return path, holder


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
