"""The folder of a table on a store: what tells its files is copied here, and its files when they are opened."""

from __future__ import annotations

import threading
from io import BytesIO
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Protocol

from pipeline.errors import DataError, NoInputError
from pipeline.sources.remote.addresses import SEPARATOR, address_in_table
from pipeline.sources.table_formats.delta import needed_log
from pipeline.sources.table_formats.recognising import DELTA_LOG, ICEBERG_FOLDER

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from typing import BinaryIO

    from pipeline.sources.parquet_files import DataFile
    from pipeline.sources.remote.addresses import Address
    from pipeline.sources.remote.copies import CopiedObject
    from pipeline.sources.remote.store import RemoteObject
    from pipeline.sources.spooling import TemporaryFolder


class Objects(Protocol):
    """The objects of one store, for one input."""

    def below(self, folder: Address) -> list[RemoteObject]:
        """Return the objects below a folder."""

    def object_at(self, address: Address) -> RemoteObject | None:
        """Return an object; None if there is none."""

    def copy(self, item: RemoteObject) -> CopiedObject:
        """Copy an object."""

    def copies(self, items: Sequence[RemoteObject]) -> list[CopiedObject]:
        """Copy objects, several at a time."""

    def opened(self, item: RemoteObject) -> DataFile:
        """Copy an object, and read its footer."""

    def folder_beside_copies(self) -> TemporaryFolder:
        """Return an empty folder on the disk of the copies."""


_VECTORS = "deletion_vector_"  # names of files that say which rows are deleted start so


class RemoteFolder:
    """The folder of a table on a store.

    Args:
        address: Its address.
        objects: How its objects are listed and copied.
    """

    def __init__(self, address: Address, objects: Objects) -> None:
        self._address = address
        self._objects = objects
        self._listed: dict[str, RemoteObject] | None = None
        self._lock = threading.Lock()
        self._holder: TemporaryFolder | None = None

    def __str__(self) -> str:
        return str(self._address).removesuffix("/")

    def delta_log(self, version: int | None, *, all_commits: bool) -> Path:
        """Return a folder with copies of the log that a version needs, and of vectors of deleted rows."""
        by_name = {self._name(item): item for item in self._listing().values()}
        log = {
            name.removeprefix(f"{DELTA_LOG}/"): item
            for name, item in by_name.items()
            if name.startswith(f"{DELTA_LOG}/")
        }
        wanted = {f"{DELTA_LOG}/{name}": log[name] for name in needed_log(log, 0 if all_commits else version)}
        wanted |= {name: item for name, item in by_name.items() if PurePosixPath(name).name.startswith(_VECTORS)}
        self._holder = self._objects.folder_beside_copies()
        for name, copy in zip(wanted, self._objects.copies(list(wanted.values())), strict=True):
            target = self._holder.path / name
            target.parent.mkdir(parents=True, exist_ok=True)
            copy.path.rename(target)
        return self._holder.path

    def metadata_names(self) -> list[str]:
        """Return the names of the objects with metadata."""
        names = map(self._name, self._listing().values())
        return [name.removeprefix(f"{ICEBERG_FOLDER}/") for name in names if name.startswith(f"{ICEBERG_FOLDER}/")]

    def metadata_text(self, file: str) -> str:
        """Return the content of such an object."""
        with self.manifests().new_input(self.metadata_location(file)).open() as stream:
            return stream.read().decode(errors="replace")

    def metadata_location(self, file: str) -> str:
        """Return the address of such an object."""
        return f"{self}/{ICEBERG_FOLDER}/{file}"

    def manifests(self) -> _Manifests:
        """Return how pyiceberg is to read metadata and manifests: from copies."""
        return _Manifests(self._copy)

    def location(self, written: str, *, name: str) -> str:
        """Return the address of a file.

        Raises:
            DataError: it is not on this store.
        """
        if SEPARATOR not in written and not written.startswith(("file:", "/")):
            return f"{self}/{written}"
        address = address_in_table(written)
        if address is not None and address.scheme == self._address.scheme:
            return str(address)
        message = f"input {name}: {self} lists files elsewhere, such as {written}"
        raise DataError(message, remedy="Only tables whose files lie on the store of the table are supported.")

    def size(self, location: str, *, name: str) -> int | None:
        """Return the bytes of an object; None if it is gone."""
        del name
        item = self._object(location)
        return None if item is None else item.size

    def open(self, location: str, *, name: str) -> DataFile:
        """Copy an object, and read its footer.

        Raises:
            NoInputError: it has gone just now.
        """
        return self._objects.opened(self._present(location, what=f"input {name}"))

    def _listing(self) -> dict[str, RemoteObject]:
        with self._lock:
            if self._listed is None:
                self._listed = {str(item.address): item for item in self._objects.below(self._address)}
            return self._listed

    def _name(self, item: RemoteObject) -> str:
        return str(item.address).removeprefix(f"{self}/")

    def _object(self, location: str) -> RemoteObject | None:
        """Return the object at an address, from the listing where that has the folder."""
        if location.startswith(f"{self}/"):
            return self._listing().get(location)
        address = address_in_table(location)
        return None if address is None else self._objects.object_at(address)

    def _present(self, location: str, *, what: str) -> RemoteObject:
        item = self._object(location)
        if item is None:
            message = f"{what}: {location} is gone"
            raise NoInputError(message, remedy="Check the table, or read a later version of it.")
        return item

    def _copy(self, written: str) -> CopiedObject:
        location = self.location(written, name="table")
        return self._objects.copy(self._present(location, what=f"the table {self}"))


class _Manifests:
    """What pyiceberg reads files through."""

    properties: dict[str, str] = {}  # noqa: RUF012 - as pyiceberg has it

    def __init__(self, copy: Callable[[str], CopiedObject]) -> None:
        self._copy = copy

    def new_input(self, location: str) -> _Manifest:
        return _Manifest(self._copy, location)


class _Manifest:
    """A file as pyiceberg reads it."""

    def __init__(self, copy: Callable[[str], CopiedObject], location: str) -> None:
        self._copy = copy
        self.location = location

    def open(self, *, seekable: bool = True) -> BinaryIO:
        del seekable
        copy = self._copy(self.location)  # which is removed once nothing refers to it
        return BytesIO(copy.path.read_bytes())
