"""The folder of a table on a store: what tells its files is copied here, and its files when they are opened."""

from __future__ import annotations

import re
import threading
from io import BytesIO
from typing import TYPE_CHECKING, Protocol

from ...errors import NoInputError
from ..table_formats.delta import needed_log
from ..table_formats.folders import DELTA_LOG, ICEBERG_FOLDER, elsewhere
from .store import SEPARATOR, address_in_table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from typing import BinaryIO

    from ..parquet_files import DataFile
    from ..spooling import TemporaryFolder
    from .reading import CopiedObject
    from .store import Address, RemoteObject


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


_VECTOR = re.compile(r"(.*/)?deletion_vector_[0-9a-f-]{36}\.bin")  # says which rows are deleted


class RemoteFolder:
    """The folder of a table on a store.

    What tells its files is listed before its files are, so that a commit between the two lists takes none of them away.

    Args:
        address: Its address.
        objects: How its objects are listed and copied.
        name: Name of the input in messages.
    """

    def __init__(self, address: Address, objects: Objects, *, name: str) -> None:
        self._address = address
        self._objects = objects
        self._lock = threading.Lock()
        self._holder: TemporaryFolder | None = None
        self._metadata: dict[str, RemoteObject] = {}
        self._listed: dict[str, RemoteObject] | None = None
        self.name = name

    def __str__(self) -> str:
        return str(self._address).removesuffix("/")

    def delta_log(self, version: int | None, *, all_commits: bool) -> Path:
        """Return a folder with copies of the log that a version needs."""
        try:
            return self._copied_log(version, all_commits=all_commits)
        except NoInputError:  # cleaned up since it was listed
            return self._copied_log(version, all_commits=all_commits)

    def add_vectors(self) -> None:
        """Copy the vectors of deleted rows into this folder."""
        named = {self._name(item): item for item in self._listing().values()}
        self._copy_to({name: item for name, item in named.items() if _VECTOR.fullmatch(name)})

    def metadata_names(self) -> list[str]:
        """Return the names of the objects with metadata."""
        self._metadata = {str(item.address): item for item in self._below(ICEBERG_FOLDER).values()}
        return [location.removeprefix(f"{self}/{ICEBERG_FOLDER}/") for location in self._metadata]

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

    def location(self, written: str) -> str:
        """Return the address of a file.

        Raises:
            DataError: it is not on this store.
        """
        if SEPARATOR not in written and not written.startswith(("file:", "/")):
            return f"{self}/{written}"
        address = address_in_table(written)
        if address is None or address.scheme != self._address.scheme:
            raise elsewhere(self, written, "Only tables whose files lie on the store of the table are supported.")
        return str(address)

    def size(self, location: str) -> int | None:
        """Return the bytes of an object; None if it is gone."""
        item = self._object(location)
        return None if item is None else item.size

    def open(self, location: str) -> DataFile:
        """Copy an object, and read its footer.

        Raises:
            NoInputError: it has been removed since it was listed.
        """
        item = self._object(location)
        try:
            if item is not None:
                return self._objects.opened(item)
        except NoInputError:
            item = None
        message = f"input {self.name}: {location} was removed while the table was read"
        raise NoInputError(message, remedy="Run again, or read a later version.")

    def _copied_log(self, version: int | None, *, all_commits: bool) -> Path:
        log = {name.removeprefix(f"{DELTA_LOG}/"): item for name, item in self._below(DELTA_LOG).items()}
        self._holder = self._objects.folder_beside_copies()
        names = needed_log(log, 0 if all_commits else version)
        return self._copy_to({f"{DELTA_LOG}/{name}": log[name] for name in names})

    def _copy_to(self, items: dict[str, RemoteObject]) -> Path:
        """Copy objects into the folder here; return it."""
        self._holder = self._holder or self._objects.folder_beside_copies()
        for name, copy in zip(items, self._objects.copies(list(items.values())), strict=True):
            target = self._holder.path / name
            target.parent.mkdir(parents=True, exist_ok=True)
            copy.path.rename(target)
        return self._holder.path

    def _below(self, folder: str) -> dict[str, RemoteObject]:
        """Return the objects below a folder of the table, by their names in it."""
        address = self._address.at(f"{self._address.key}/{folder}".removeprefix("/"))
        return {self._name(item): item for item in self._objects.below(address)}

    def _listing(self) -> dict[str, RemoteObject]:
        with self._lock:
            if self._listed is None:
                self._listed = {str(item.address): item for item in self._objects.below(self._address)}
            return self._listed

    def _name(self, item: RemoteObject) -> str:
        return str(item.address).removeprefix(f"{self}/")

    def _object(self, location: str) -> RemoteObject | None:
        """Return the object at an address; one that came after the listing is asked for alone."""
        listed = self._listing().get(location) if location.startswith(f"{self}/") else None
        address = address_in_table(location)
        return listed or (None if address is None else self._objects.object_at(address))

    def _copy(self, written: str) -> CopiedObject:
        """Copy what metadata or a manifest names.

        Raises:
            NoInputError: it is not there.
        """
        location = self.location(written)
        address = address_in_table(location)
        item = self._metadata.get(location) or (None if address is None else self._objects.object_at(address))
        if item is None:
            message = f"input {self.name}: {location} is not there, and the table needs it"
            raise NoInputError(message, remedy="Check the table, or read a later version of it.")
        return self._objects.copy(item)


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
