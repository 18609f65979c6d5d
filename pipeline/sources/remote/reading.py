"""The objects that an input names on remote stores, listed now and copied when they are opened."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, TypeVar

from ...errors import DataError, NoInputError, PermissionDenied, ThresherError
from ..listed import Listed
from ..parquet_files import open_file, partitions_of
from ..skipped import MAGICS, PassedOver, Skipped
from ..spooling import TemporaryFolder
from ..table_formats.opening import table_in
from ..table_formats.recognising import (
    ICEBERG,
    ICEBERG_ENDINGS,
    ICEBERG_FOLDER,
    LOG_FOLDERS,
    format_of_keys,
    remedy_for,
    tells_a_table,
)
from .addresses import parse_address
from .copies import Copies
from .matching import Matches, fixed_part, match_keys
from .store import Bucket
from .tables import RemoteFolder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ..inputs import Input
    from ..parquet_files import DataFile
    from ..table_formats.live_files import LiveTable
    from .addresses import Address
    from .copies import CopiedObject
    from .store import RemoteObject

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
