"""The folder of a table: its log, its metadata and the files that hold its rows, here or on a store."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Protocol

from ...errors import DataError, os_fault
from ..parquet_files import open_file
from .recognising import ICEBERG_FOLDER

if TYPE_CHECKING:
    from pathlib import Path

    from ..parquet_files import DataFile

_SCHEME = "file:"
_CREDENTIALS = re.compile(r"//[^/@]*:[^/@]*@")


class TableFolder(Protocol):
    """The folder of a table; its text is what messages call it.

    Attributes:
        name: Name of the input in messages.
    """

    name: str

    def delta_log(self, version: int | None, *, all_commits: bool) -> Path:
        """Return a folder on this machine whose log of Delta Lake holds a version.

        Args:
            version: The version; None: the latest.
            all_commits: Whether all commits are wanted that are left, not only those that make up the version.
        """

    def add_vectors(self) -> None:
        """See to it that this folder has the files, too, that say which rows are deleted."""

    def metadata_names(self) -> list[str]:
        """Return the names of the files with metadata of Apache Iceberg, and of its hint."""

    def metadata_text(self, file: str) -> str:
        """Return the content of one of these files."""

    def metadata_location(self, file: str) -> str:
        """Return where one of these files is."""

    def manifests(self) -> Any:  # noqa: ANN401 - a class of an extra
        """Return how pyiceberg is to read metadata and manifests; None: in its own way."""

    def location(self, written: str) -> str:
        """Return where a file is, from its address in a log or manifest.

        Raises:
            DataError: it is elsewhere: not on this machine, or not on this store.
        """

    def size(self, location: str) -> int | None:
        """Return the bytes of a file with rows; None if it is gone."""

    def open(self, location: str) -> DataFile:
        """Read the footer of a file with rows; on a store it is copied first."""


class LocalFolder:
    """The folder of a table on this machine.

    Args:
        path: Its absolute path.
        name: Name of the input in messages.
    """

    def __init__(self, path: Path, *, name: str) -> None:
        self._path = path
        self.name = name

    def __str__(self) -> str:
        return str(self._path)

    def delta_log(self, version: int | None, *, all_commits: bool) -> Path:
        """Return the folder, where all of the log is."""
        del version, all_commits
        return self._path

    def add_vectors(self) -> None:
        """Leave them where they are: in the folder."""

    def metadata_names(self) -> list[str]:
        """Return the names of the files with metadata."""
        return [file.name for file in (self._path / ICEBERG_FOLDER).iterdir()]

    def metadata_text(self, file: str) -> str:
        """Return the content of such a file."""
        return (self._path / ICEBERG_FOLDER / file).read_text(errors="replace")

    def metadata_location(self, file: str) -> str:
        """Return the path of such a file."""
        return str(self._path / ICEBERG_FOLDER / file)

    def manifests(self) -> None:
        """Let pyiceberg read files of this machine in its own way."""

    def location(self, written: str) -> str:
        """Return the path of a file.

        Raises:
            DataError: it lies on a remote store.
        """
        if not written.startswith(_SCHEME) and "://" in written:
            raise elsewhere(self, written, "Copy the whole table here, or read it where it is.")
        return str(self._path / re.sub(f"^{_SCHEME}(//)?", "", written))

    def size(self, location: str) -> int | None:
        """Return the bytes of a file; None if it is gone.

        Raises:
            ThresherError: it cannot be looked at.
        """
        path = self._path / location
        try:
            return path.stat().st_size
        except FileNotFoundError:
            return None
        except OSError as error:
            raise os_fault(error, f"input {self.name}: looking at {path}") from error

    def open(self, location: str) -> DataFile:
        """Read the footer of a file."""
        path = self._path / location
        return open_file(path, path.parent, name=self.name)


def elsewhere(folder: TableFolder, written: str, remedy: str) -> DataError:
    """Return the error that a table lists a file where it cannot be read; credentials in its address are not shown."""
    shown = _CREDENTIALS.sub("//…@", written)
    return DataError(f"input {folder.name}: {folder} lists files elsewhere, such as {shown}", remedy=remedy)
