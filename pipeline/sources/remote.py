"""Inputs on stores: objects are listed; of Parquet files the footers and the columns that are read are copied here.

What was copied is used again while the object is the same. Every run reads links of its own to the copies, so that
another run which makes room takes nothing from it.
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
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, TypeVar

from ..base.errors import DataError, NoInputError, PermissionDenied, StorageError, ThresherError, os_fault
from ..base.paths import remove_own
from .finding import MAGICS, Listed, Skipped
from .frames import PREFIX, PRIVATE, TemporaryFolder
from .parquet_files import MAGIC, open_file, partitions_of, ranges_of, without
from .stores import (
    CHUNK_BYTES,
    Bucket,
    Objects,
    RemoteObject,
    endpoints,
    fixed_part,
    match_keys,
    options_for_tables,
    parse_address,
)
from .table_formats import (
    DELTA,
    DELTA_LOG,
    ICEBERG,
    ICEBERG_ENDINGS,
    ICEBERG_FOLDER,
    LOG_FOLDERS,
    commits_of,
    delta_table,
    format_of_keys,
    iceberg_table,
    latest_metadata,
    remedy_for,
    tells_a_table,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from .inputs import Input
    from .parquet_files import DataFile
    from .stores import Address
    from .table_formats import TableVersion


DEFAULT_LIMIT = 20 * 1000**3
_DATA, _NOTE, _UNFINISHED = ".data", ".json", ".part"
_KEPT = re.compile(r"[0-9a-f]{64}\.data")
_HALF = re.compile(r"[0-9a-f]{64}\.[0-9a-f]{16}\.part")
_OWN = 0o600
_END = 1 << 15  # bytes at the end of a file that hold most footers
_LONGEST_NAME = 200  # bytes
_STALE_SECONDS = 24 * 60 * 60
_LONGEST_RUN_SECONDS = 30 * _STALE_SECONDS


class Copy:
    """The bytes of an object that have been asked for, at their places in a file as long as the object.

    When `stopped` is set nobody wants the content any more.
    """

    def __init__(
        self, copies: Copies, bucket: Bucket, item: RemoteObject, stopped: threading.Event, *, name: str
    ) -> None:
        self._copies, self._bucket, self._item, self._stopped, self._name = copies, bucket, item, stopped, name
        identity = [str(item.address), item.etag, item.version, item.size, endpoints()]
        self._data = copies.folder / f"{hashlib.sha256(json.dumps(identity).encode()).hexdigest()}{_DATA}"
        with self._faults():
            copies.folder.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
            self._data.touch(_OWN)
            os.truncate(self._data, item.size)
            self.path, self.holder = _linked(self._data, item)
            self._version, self._parts = self._noted()

    @property
    def identity(self) -> dict[str, int | str]:
        """The mark by which a replaced object is noticed."""
        version = {} if self._version is None else {"version_id": self._version}
        return {"size": self._item.size, "etag": self._item.etag, **version}

    def bring(self, ranges: list[tuple[int, int]]) -> None:
        """Bring bytes, (start, end) each, that are not here yet.

        Raises:
            DataError: the object was replaced since it was listed.
            StorageError: the disk is full.
            ThresherError: the store refuses, or the operating system fails.
        """
        missing = without(ranges, [(start, end) for start, end, _ in self._parts])
        if not missing:
            return
        with self._faults():
            with self.path.open("r+b") as file:
                for start, end in missing:
                    file.seek(start)
                    self._version = self._bucket.copy(self._item, file, start, end, self._stopped).version
            self._parts += [(start, end, _sha256(self.path, start, end)) for start, end in missing]
            note = {"address": str(self._item.address), "version": self._version, "parts": self._parts}
            if not self._data.exists():  # removed for others: the link of this run is left
                return
            unfinished = self._data.with_suffix(f".{secrets.token_hex(8)}{_UNFINISHED}")
            unfinished.write_text(json.dumps(note))
            unfinished.replace(self._data.with_suffix(_NOTE))

    def bring_footer(self) -> None:
        """Bring the footer of a Parquet file; of another file the beginning and the end, which tell what it is."""
        size = self._item.size
        start = max(size - _END, 0)
        self.bring([(start, size)])
        with self.path.open("r+b") as file:
            file.seek(max(size - 2 * len(MAGIC), 0))
            length, magic = int.from_bytes(file.read(len(MAGIC)), "little"), file.read()
            if magic != MAGIC or size < 2 * len(MAGIC) + length:
                self.bring([(0, min(size, _END))])
                return
            self.bring([(min(size - 2 * len(MAGIC) - length, start), start)])
            file.seek(0)
            file.write(MAGIC)  # as every such file begins

    def _noted(self) -> tuple[str | None, list[tuple[int, int, str]]]:
        """Return the version and the parts that are here and are what they were, by their hashes."""
        with suppress(OSError):
            os.utime(self._data)  # used now
        try:
            note = json.loads(self._data.with_suffix(_NOTE).read_bytes())
            noted = [(int(start), int(end), str(sha256)) for start, end, sha256 in note["parts"]]
            kept = [part for part in noted if _sha256(self.path, *part[:2]) == part[2]]
        except (OSError, ValueError, TypeError, KeyError):
            return self._item.version, []
        return note.get("version"), kept

    @contextmanager
    def _faults(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            fault = os_fault(error, f"input {self._name}: copying {self._item.address} to {self._copies.folder}")
            if isinstance(fault, StorageError):
                fault.remedy = "Free some space, or set resources.copies to a folder on a larger disk."
            raise fault from error


class Copies:
    """A folder of copies of objects, private to the user, and most bytes of them when a run has read its inputs."""

    def __init__(self, folder: Path | None = None, limit: int = DEFAULT_LIMIT) -> None:
        self._folder = folder
        self.limit = limit

    @property
    def folder(self) -> Path:
        """Where the copies are."""
        return self._folder or folder_for_caches() / "objects"

    def make_room(self) -> None:
        """Remove the copies that were not used for the longest time until the rest is within the limit."""
        with suppress(OSError):
            entries = []
            for path in self.folder.iterdir():
                with suppress(OSError):
                    status = path.lstat()
                    if _KEPT.fullmatch(path.name):
                        entries.append(
                            (status.st_mtime, path, getattr(status, "st_blocks", status.st_size / 512) * 512)
                        )
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


def _sha256(path: Path, start: int, end: int) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        file.seek(start)
        while content := file.read(min(end - file.tell(), CHUNK_BYTES)):
            digest.update(content)
    return digest.hexdigest()


T = TypeVar("T")
THREADS = 8


class RemoteFiles:
    """The search for the objects of one input; `convert` writes the rows of a copy of another format to Parquet."""

    def __init__(
        self,
        name: str,
        endings: tuple[str, ...],
        copies: Copies | None,
        is_parquet: Callable[[Path], bool],
        convert: Callable[[Path], DataFile],
    ) -> None:
        self._name = name
        self._endings = endings
        self._copies = copies or Copies()
        self._is_parquet = is_parquet
        self._convert = convert
        self._buckets: dict[str, Bucket] = {}
        self._listings: dict[str, dict[str, RemoteObject]] = {}
        self._stopped = threading.Event()
        self.passed_over: list[Listed[Skipped]] = []

    def table(self, text: str, spec: Input) -> TableVersion | None:
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
            folder = address.at("/".join(address.folders[:-depth]))
            return iceberg_table(str(address), str(address), spec, self._objects(folder), name=self._name)
        bucket = self._bucket(address)
        try:
            key, kind = format_of_keys(self._keys_of_logs(bucket, [address.key]))
        except PermissionDenied:
            if address.key and bucket.object(address.key) is not None:  # an object may be read that cannot be listed
                return None
            raise
        path = str(address).removesuffix("/")
        if key == address.key and kind == DELTA:
            log = f"{address.key}/{DELTA_LOG}".removeprefix("/")

            def commits() -> dict[int, Callable[[], bytes]]:
                listed = bucket.listed(log)
                return commits_of(
                    (each.address.folders[-1], partial(bucket.part, each, 0, each.size)) for each in listed
                )

            return delta_table(path, spec, options_for_tables(), commits, name=self._name)
        if key == address.key and kind == ICEBERG:
            files = self._objects(address)
            listed = bucket.listed(f"{address.key}/{ICEBERG_FOLDER}".removeprefix("/"))
            names = [item.address.folders[-1] for item in listed]
            metadata = latest_metadata(path, names, files, name=self._name)
            return iceberg_table(path, metadata, spec, files, name=self._name)
        return None

    def _objects(self, folder: Address) -> Objects:
        return Objects(folder, self._bucket, what=f"input {self._name}")

    def listed(self, text: str) -> list[Listed[DataFile]]:
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
        chosen, passed_over = match_keys(objects, fixed, address.folders[len(fixed) :], self._endings)
        if not chosen:
            message = f"input {self._name}: no object matches {address}"
            if passed_over:
                shown = ", ".join(str(address.at(key)) for key in passed_over[:3])
                message += f": {len(passed_over):,} below it have other endings, such as {shown}"
            remedy = "Check the bucket and the key; only folders are searched by the ending."
            raise NoInputError(message, remedy=remedy)
        root = PurePosixPath(*fixed)
        for skipped in map(objects.__getitem__, passed_over):
            look = partial(_look, bucket, skipped)
            self.passed_over.append(Listed(str(skipped.address), _partitions(skipped, root), look, is_remote=True))
        return [self._item(objects[key], root) for key in chosen]

    def open_all(self, items: Sequence[Listed[DataFile]]) -> dict[str, DataFile]:
        """Read the footers of objects, several at a time, and copy objects of other formats; return the files by name.

        Raises:
            ThresherError: as for `Copy.bring`; nothing more is copied then.
        """
        try:
            files = together([item.open for item in items], self._stopped)
        finally:
            self._copies.make_room()
        return {item.name: file for item, file in zip(items, files, strict=True)}

    def looked_at(self, looks: Sequence[Callable[[], Skipped]]) -> list[Skipped]:
        """Look at skipped objects, several at a time."""
        return together(looks, self._stopped)

    def _bucket(self, address: Address) -> Bucket:
        key = f"{address.scheme}:{address.bucket}"
        if key not in self._buckets:
            self._buckets[key] = Bucket(address, what=f"input {self._name}")
        return self._buckets[key]

    def _is_name(self, address: Address) -> bool:
        """Whether an address is the name of an object or a folder, in which `*`, `?` or `[` may stand, too."""
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

    def _item(self, item: RemoteObject, root: PurePosixPath) -> Listed[DataFile]:
        opening = partial(self._open, item, _partitions(item, root))
        return Listed(str(item.address), _partitions(item, root), opening, is_remote=True)

    def _open(self, item: RemoteObject, partitions: dict[str, str | None]) -> DataFile:
        copy = Copy(self._copies, self._bucket(item.address), item, self._stopped, name=self._name)
        label = str(item.address)
        if not self._is_parquet(copy.path):
            copy.bring([(0, item.size)])
            file = self._convert(copy.path)
            return replace(file, label=label, origin=None, identity=copy.identity, partitions=partitions)
        copy.bring_footer()
        file = open_file(copy.path, copy.path.parent, name=self._name, label=label, holder=copy.holder)

        def fetch(columns: Collection[str]) -> None:
            copy.bring(ranges_of(copy.path, columns))

        return replace(file, identity=copy.identity, partitions=partitions, fetch=fetch)

    def _refuse_tables(self, bucket: Bucket, folders: Sequence[str], keys: Iterable[str]) -> None:
        """Refuse keys, or objects below folders, of a table format: as plain Parquet, its removed files would count."""
        above = ["/".join(folders[:depth]) for depth in range(len(folders) + 1)]
        folder, kind = format_of_keys((*keys, *self._keys_of_logs(bucket, above)))
        if kind is not None:
            table = bucket.address.at(folder)
            message = f"input {self._name}: {table} is a table of {kind}, whose log decides which files count"
            raise DataError(message, remedy=remedy_for(kind, str(table)))

    def _keys_of_logs(self, bucket: Bucket, folders: Iterable[str]) -> list[str]:
        """Return a key that tells a table for every folder that is one; its log may be forbidden to be listed."""
        with ThreadPoolExecutor(THREADS) as pool:
            keys = pool.map(lambda log: bucket.first_key(log[0], log[1], tells_a_table), product(folders, LOG_FOLDERS))
            return [key for key in keys if key is not None]


def _look(bucket: Bucket, item: RemoteObject) -> Skipped:
    """A skipped object, by its last bytes; one that cannot be read is assumed to have another format."""
    end = b""
    with suppress(ThresherError):
        end = bucket.part(item, max(item.size - len(MAGICS[0]), 0), item.size)
    return Skipped(str(item.address), item.size, end in MAGICS)


def together(jobs: Sequence[Callable[[], T]], stopped: threading.Event | None = None) -> list[T]:
    """Return what jobs that wait for a store return, several at a time; the first failure ends the others."""
    pool = ThreadPoolExecutor(THREADS, thread_name_prefix="thresher-copy")
    stopped = stopped or threading.Event()
    try:
        return [future.result() for future in [pool.submit(job) for job in jobs]]
    except BaseException:
        stopped.set()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
        stopped.clear()


def _partitions(item: RemoteObject, root: PurePosixPath) -> dict[str, str | None]:
    return partitions_of(Path(item.address.key), Path(root))
