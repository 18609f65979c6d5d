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
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, TypeVar

from ...errors import DataError, NoInputError, PermissionDenied, StorageError, ThresherError, os_fault
from ...records import dataclass
from ...safe_files import remove_own
from ..finding import MAGICS, PassedOver, Skipped
from ..listed import Listed
from ..parquet_files import open_file, partitions_of
from ..spooling import PREFIX, PRIVATE, TemporaryFolder
from ..table_formats.folders import (
    ICEBERG,
    ICEBERG_ENDINGS,
    ICEBERG_FOLDER,
    LOG_FOLDERS,
    format_of_keys,
    remedy_for,
    tells_a_table,
)
from ..table_formats.opening import table_in
from .store import Bucket, Matches, RemoteObject, endpoints, fixed_part, match_keys, parse_address
from .tables import RemoteFolder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ..inputs import Input
    from ..parquet_files import DataFile
    from ..table_formats.folders import LiveTable
    from .store import Address


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


# The objects that an input names on remote stores, listed now and copied when they are opened.


T = TypeVar("T")
THREADS = 8


class RemoteFiles:
    """The search for the objects of one input.

    Args:
        name: Name of the input in messages.
        endings: Endings of the names of its files in folders, in lower case.
        copies: Where copies are.
        convert: Writes the rows of a copy of another format to a Parquet file; None for a copy in Parquet.
    """

    def __init__(
        self,
        name: str,
        endings: tuple[str, ...],
        copies: Copies | None,
        convert: Callable[[Path], DataFile | None] = lambda _path: None,
    ) -> None:
        self._name = name
        self._endings = endings
        self._copies = copies or Copies()
        self._convert = convert
        self._buckets: dict[str, Bucket] = {}
        self._listings: dict[str, dict[str, RemoteObject]] = {}
        self._stopped = threading.Event()
        self.passed_over: list[PassedOver] = []

    def table(self, text: str, spec: Input) -> LiveTable | None:
        """Return the version of a table that an input asks for; None if an address leads to no table.

        Raises:
            ConfigError: the address cannot be read, or a library is not installed.
            NoInputError: there is no such bucket, or no such version.
            DataError: the table cannot be read.
            ThresherError: the store refuses, or does not answer.
        """
        address = parse_address(text, what=f"input {self._name}")
        if not self._is_name(address):
            return None
        if address.key.endswith(ICEBERG_ENDINGS):
            depth = 2 if address.folders[-2:-1] == (ICEBERG_FOLDER,) else 1
            folder = self._folder(address.at("/".join(address.folders[:-depth])))
            return table_in(folder, ICEBERG, spec, metadata=str(address))
        bucket = self._bucket(address)
        try:
            key, kind = format_of_keys(self._keys_of_logs(bucket, [address.key]))
        except PermissionDenied:
            if address.key and bucket.object(address.key) is not None:  # an object may be read that cannot be listed
                return None
            raise
        return table_in(self._folder(address), kind, spec) if key == address.key else None

    def listed(self, text: str) -> list[Listed]:
        """Return the objects that an address or pattern names, sorted by key; none of them is copied yet.

        Raises:
            ConfigError: the address cannot be read, or the library is not installed.
            NoInputError: there is no such bucket, or no object that matches.
            DataError: they belong to a table of a table format.
            ThresherError: the store refuses, or does not answer.
        """
        address = parse_address(text, what=f"input {self._name}")
        bucket = self._bucket(address)
        is_name = self._is_name(address)
        single = bucket.object(address.key) if is_name and address.key else None
        if single is not None:
            with suppress(PermissionDenied):  # who may get an object need not be able to list what is beside it
                self._refuse_tables(bucket, address.folders[:-1], [])
            return [self._item(single, PurePosixPath(single.address.key).parent)]
        fixed = address.folders if is_name else fixed_part(address.folders)
        objects = self._listing(address, fixed)
        self._listings.pop(str(address), None)
        self._refuse_tables(bucket, fixed[:-1], objects)
        matches = match_keys(objects, fixed, address.folders[len(fixed) :], self._endings)
        if not matches.chosen:
            raise self._nothing(address, matches)
        root = PurePosixPath(*fixed)
        self.passed_over += self._looked_at(bucket, [objects[key] for key in matches.passed_over], root)
        return [self._item(objects[key], root) for key in matches.chosen]

    def open_all(self, items: Sequence[Listed]) -> dict[str, DataFile]:
        """Copy objects, several at a time, and read their footers; return the files by name.

        Raises:
            ThresherError: as for `Copies.fetch`; nothing more is copied then.
        """
        files = self._together([item.open for item in items])
        return {item.name: file for item, file in zip(items, files, strict=True)}

    def below(self, folder: Address) -> list[RemoteObject]:
        """Return the objects below a folder."""
        return self._bucket(folder).listed(folder.key)

    def object_at(self, address: Address) -> RemoteObject | None:
        """Return an object; None if there is none."""
        return self._bucket(address).object(address.key)

    def copy(self, item: RemoteObject) -> CopiedObject:
        """Copy an object."""
        return self._copies.fetch(self._bucket(item.address), item, self._stopped, name=self._name)

    def copies(self, items: Sequence[RemoteObject]) -> list[CopiedObject]:
        """Copy objects, several at a time."""
        return self._together([partial(self.copy, item) for item in items])

    def opened(self, item: RemoteObject) -> DataFile:
        """Copy an object in Parquet, whatever it is called, and read its footer."""
        return self._open(item, {}, lambda _path: None)

    def folder_beside_copies(self) -> TemporaryFolder:
        """Return an empty folder on the disk of the copies."""
        return TemporaryFolder(self._copies.folder)

    def _together(self, jobs: Sequence[Callable[[], T]]) -> list[T]:
        """Return what jobs that copy objects return, several at a time; the first failure ends the others."""
        pool = ThreadPoolExecutor(THREADS, thread_name_prefix="thresher-copy")
        try:
            futures = [pool.submit(job) for job in jobs]
            return [future.result() for future in futures]
        finally:
            self._stopped.set()
            pool.shutdown(cancel_futures=True)
            self._stopped.clear()
            if jobs:
                self._copies.make_room()

    def _bucket(self, address: Address) -> Bucket:
        key = f"{address.scheme}:{address.bucket}"
        if key not in self._buckets:
            self._buckets[key] = Bucket(address, what=f"input {self._name}")
        return self._buckets[key]

    def _is_name(self, address: Address) -> bool:
        """Whether an address is the name of an object or a folder: as among files, it may have `*`, `?` or `[` in it.

        Raises:
            ThresherError: as for `listed`.
        """
        fixed = fixed_part(address.folders)
        if fixed == address.folders:
            return True
        try:
            keys = self._listings[str(address)] = self._listing(address, fixed)
        except PermissionDenied:
            item = None
            with suppress(ThresherError):
                item = self._bucket(address).object(address.key)  # which may be read though it cannot be listed
            if item is None:
                raise
            return True
        is_name = any(key == address.key or key.startswith(f"{address.key}/") for key in keys)
        if is_name:
            del self._listings[str(address)]
        return is_name

    def _listing(self, address: Address, folder: Sequence[str]) -> dict[str, RemoteObject]:
        """Return the objects below a folder by key; those that were looked at for a pattern are not listed twice."""
        if str(address) in self._listings:
            return self._listings[str(address)]
        return {item.address.key: item for item in self._bucket(address).listed("/".join(folder))}

    def _item(self, item: RemoteObject, root: PurePosixPath) -> Listed:
        partitions = _partitions(item, root)
        opening = partial(self._open, item, partitions, self._convert)
        return Listed(str(item.address), partitions, opening, is_remote=True)

    def _open(
        self, item: RemoteObject, partitions: dict[str, str | None], convert: Callable[[Path], DataFile | None]
    ) -> DataFile:
        copy = self.copy(item)
        label = str(item.address)
        converted = convert(copy.path)
        file = converted or open_file(copy.path, copy.path.parent, name=self._name, label=label, holder=copy.holder)
        return replace(file, label=label, origin=None, identity=copy.identity, partitions=partitions)

    def _refuse_tables(self, bucket: Bucket, folders: Sequence[str], keys: Iterable[str]) -> None:
        """Refuse objects of a table format: read as plain Parquet, its removed files would count.

        Args:
            bucket: Their bucket.
            folders: The names of the folders above them that are not listed.
            keys: Keys that are listed.

        Raises:
            DataError: names the folder and its format.
        """
        above = ["/".join(folders[:depth]) for depth in range(len(folders) + 1)]
        folder, kind = format_of_keys((*keys, *self._keys_of_logs(bucket, above)))
        if kind is not None:
            table = bucket.address.at(folder)
            message = f"input {self._name}: {table} is a table of {kind}, whose log decides which files count"
            raise DataError(message, remedy=remedy_for(kind, str(table)))

    def _keys_of_logs(self, bucket: Bucket, folders: Iterable[str]) -> list[str]:
        """Return a key that tells a table for every folder that is one.

        Raises:
            PermissionDenied: the store does not let its log be listed.
        """
        with ThreadPoolExecutor(THREADS) as pool:
            keys = pool.map(lambda log: bucket.first_key(log[0], log[1], tells_a_table), product(folders, LOG_FOLDERS))
            return [key for key in keys if key is not None]

    def _folder(self, address: Address) -> RemoteFolder:
        return RemoteFolder(address, self, name=self._name)

    def _looked_at(self, bucket: Bucket, items: list[RemoteObject], root: PurePosixPath) -> list[PassedOver]:
        length = len(MAGICS[0])
        with ThreadPoolExecutor(THREADS) as pool:
            ends = list(pool.map(lambda item: bucket.ends_with(item, length), items))
        looked_at = [
            Skipped(str(item.address), item.size, end in MAGICS) for item, end in zip(items, ends, strict=True)
        ]
        return [
            PassedOver(skipped.path, _partitions(item, root), remote=skipped)
            for item, skipped in zip(items, looked_at, strict=True)
        ]

    def _nothing(self, address: Address, matches: Matches) -> NoInputError:
        message = f"input {self._name}: no object matches {address}"
        if matches.passed_over:
            shown = ", ".join(str(address.at(key)) for key in matches.passed_over[:3])
            message += f": {len(matches.passed_over):,} below it have other endings, such as {shown}"
        return NoInputError(message, remedy="Check the bucket and the key; only folders are searched by the ending.")


def _partitions(item: RemoteObject, root: PurePosixPath) -> dict[str, str | None]:
    return partitions_of(Path(item.address.key), Path(root))
