"""Folders of table formats, whose logs decide which of their Parquet files count: they are not plain Parquet."""

from __future__ import annotations

import hashlib
import re
from dataclasses import field, replace
from datetime import UTC, datetime
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Protocol

from ...errors import ConfigError, DataError, NoInputError, os_error_number, os_fault
from ...records import dataclass
from ..listed import Listed
from ..parquet_files import open_file
from ..spooling import spooled
from ..types import column_type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from ..parquet_files import DataFile


DELTA, ICEBERG, HUDI = "Delta Lake", "Apache Iceberg", "Apache Hudi"
ICEBERG_ENDINGS = (".metadata.json", ".metadata.json.gz")
ICEBERG_FOLDER = "metadata"
ICEBERG_HINT = "version-hint.text"
DELTA_LOG = "_delta_log"
_LOGS = {DELTA_LOG: DELTA, ".hoodie": HUDI}


def refuse_table_formats(name: str, folders: Iterable[Path]) -> None:
    """Refuse files of a folder that belongs to a table format: read as plain Parquet, its removed files would count.

    Args:
        name: Name of the input in messages.
        folders: Folders of its files; the folders above them, and those that links lead to, are looked at too.

    Raises:
        DataError: names the folder and its format.
    """
    seen: set[Path] = set()
    for folder in dict.fromkeys(folders):
        for path in (*_not_seen(folder, seen), *_not_seen(folder.resolve(), seen)):
            kind = format_of_table(path)
            if kind is not None:
                message = f"input {name}: {path} is a table of {kind}, whose log decides which files count"
                raise DataError(message, remedy=remedy_for(kind, str(path)))


def _not_seen(folder: Path, seen: set[Path]) -> list[Path]:
    """Return a folder and those above it, but for those that were seen before, and all above them."""
    new = list(takewhile(lambda path: path not in seen, (folder, *folder.parents)))
    seen.update(new)
    return new


def remedy_for(kind: str, path: str) -> str:
    """Return what helps where a file, a folder or a pattern in a table is named: `path` is that of the table."""
    if kind == HUDI:
        return "Tables of this kind are not supported: write its current rows to plain Parquet files."
    return f'Name the folder of the table itself, path = "{path}", with where for some of its rows.'


def format_of_table(folder: Path) -> str | None:
    """Return the format of the table that a folder holds; None if it holds none."""
    for log, kind in _LOGS.items():
        if (folder / log).is_dir():
            return kind
    try:
        names = [path.name for path in (folder / ICEBERG_FOLDER).iterdir()]
    except OSError:
        return None
    is_iceberg = ICEBERG_HINT in names or any(name.endswith(ICEBERG_ENDINGS) for name in names)
    return ICEBERG if is_iceberg else None


def format_of_keys(keys: Iterable[str]) -> tuple[str, str | None]:
    """Return the folder and the format of a table among the keys of a bucket; no format if there is none."""
    for key in keys:
        *folders, name = key.split("/")
        for log, kind in _LOGS.items():
            if log in folders:
                return "/".join(folders[: folders.index(log)]), kind
        if folders[-1:] == [ICEBERG_FOLDER] and (name == ICEBERG_HINT or name.endswith(ICEBERG_ENDINGS)):
            return "/".join(folders[:-1]), ICEBERG
    return "", None


def tells_a_table(key: str) -> bool:
    """Whether a key of a bucket is that of a file by which a table is known."""
    return format_of_keys([key])[1] is not None


LOG_FOLDERS = (*_LOGS, ICEBERG_FOLDER)


# The folder of a table: its log, its metadata and the files that hold its rows, here or on a store.


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


# Files of tables that are not read as they are: some rows are marked as deleted, or columns have other names now.


def rewritten(
    file: DataFile, names: Mapping[str, str], deleted: NDArray[np.int64], scratch: Path | None, *, name: str
) -> DataFile:
    """Return a file with the rows of another one that are not marked as deleted, in their order, under other names.

    Args:
        file: The file.
        names: Its columns that are kept, with their names now.
        deleted: Numbers of the rows that are marked, from 0, each once, rising.
        scratch: Folder for temporary data; None: that of the system.
        name: Name of the input in messages.

    Raises:
        DataError: the file has no such row, or is damaged.
        StorageError: the folder for temporary data is full.
    """
    if len(deleted) and not 0 <= deleted[0] <= deleted[-1] < file.rows:
        message = (
            f"input {name}: row {int(deleted[-1]):,} of {file.name} is marked as deleted, and it has {file.rows:,}"
        )
        raise DataError(message, remedy="Somebody else than the table's own writers wrote it: restore the file.")

    def write(target: Path) -> None:
        _write(file, names, deleted, target, name=name)

    path, holder = spooled(write, file.name, scratch, name=name)
    kept = open_file(path, path.parent, name=name, label=file.name, holder=holder)
    marks = {"n_deleted": len(deleted), "deleted_sha256": hashlib.sha256(deleted.tobytes()).hexdigest()}
    identity = file.identity | (marks if len(deleted) else {})
    origin = None if file.is_remote else file.path
    return replace(kept, origin=origin, identity=identity, partitions=file.partitions)


def _write(file: DataFile, names: Mapping[str, str], deleted: NDArray[np.int64], target: Path, *, name: str) -> None:
    import numpy as np  # noqa: PLC0415 - the command line shows its help without loading them
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    start = 0
    try:
        with pq.ParquetFile(file.path) as rows:
            fields = [field for field in rows.schema_arrow if field.name in names]
            schema = pa.schema([field.with_name(names[field.name]) for field in fields])
            with pq.ParquetWriter(target, schema) as writer:
                for batch in rows.iter_batches(columns=[field.name for field in fields]):
                    is_left = np.ones(batch.num_rows, bool)
                    first, last = np.searchsorted(deleted, (start, start + batch.num_rows))
                    is_left[deleted[first:last] - start] = False
                    left = batch.filter(pa.array(is_left))
                    writer.write_batch(pa.record_batch(left.columns, schema=schema))
                    start += batch.num_rows
    except (pa.ArrowException, OSError) as error:
        if os_error_number(error) is not None:
            raise
        message = f"input {name}: {file.name} cannot be read: {str(error).splitlines()[0]}"
        raise DataError(message, remedy="The file is damaged: restore it.") from error


# The files that hold the rows of one version of a table, as the library of its format lists them.


FIELD_ID = b"PARQUET:field_id"


@dataclass(frozen=True)
class LiveFile:
    """A file of a version of a table.

    Attributes:
        location: Where it is: its absolute path, or its address on a store.
        size: Its bytes, according to the table.
        partitions: Column → value; None is NULL.
        deleted: Returns the numbers of the rows that are marked as deleted, from 0, rising; None: all rows are left.
    """

    location: str
    size: int
    partitions: dict[str, Any]
    deleted: Callable[[], NDArray[np.int64]] | None = None


@dataclass(frozen=True)
class LiveTable:
    """A version of a table.

    Attributes:
        path: What the config names: the folder of the table, or a metadata file.
        folder: The folder of the table.
        kind: Its format.
        version: Its number; for Apache Iceberg the id of the snapshot, None for a table without one.
        schema: Its columns.
        files: The files that hold its rows.
        ids: Number of every column, where the format tells columns apart by numbers.
        names: Column in the files → column of the table, where the format tells them apart by other names.
        metadata: The metadata file that was read, where the format has several.
        defaults: Columns that have another value than NULL in files that were written before them.
    """

    path: str
    folder: TableFolder
    kind: str
    version: int | None
    schema: pa.Schema
    files: tuple[LiveFile, ...]
    ids: dict[str, int] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    metadata: str | None = None
    defaults: frozenset[str] = frozenset()

    @property
    def words(self) -> str:
        """The version in messages."""
        return f"version {self.version} of the {self.kind} table {self.path}"

    def listed(self, name: str, scratch: Path | None, *, is_remote: bool) -> Iterator[Listed]:
        """Yield its files, sorted by name.

        Args:
            name: Name of the input in messages.
            scratch: Folder for temporary data; None: that of the system.
            is_remote: Whether they have to be copied from a store.
        """
        for file in sorted(self.files, key=lambda file: file.location):
            types = {column: self.schema.field(column).type for column in file.partitions}
            types = {column: arrow for column, arrow in types.items() if _is_plain(arrow)}
            texts = {column: _text(file.partitions[column]) for column in types}
            opening = partial(_open, self, file, texts, types, scratch, name=name)
            yield Listed(file.location, texts, opening, types, of_table=True, is_remote=is_remote)

    def record(self) -> dict[str, Any]:
        """Return what was read, as JSON."""
        record = {"path": self.path, "format": self.kind, "version": self.version, "metadata": self.metadata}
        return {key: value for key, value in record.items() if value is not None}


def not_installed(kind: str, library: str, extra: str, *, name: str) -> ConfigError:
    """Return the error that the library of a format is not installed."""
    message = f"input {name}: tables of {kind} need the package {library}, which is not installed"
    return ConfigError(message, remedy=f'Install it: pip install "thresher[{extra}]"')


def moment(timestamp: str) -> datetime:
    """Return the point in time that a text in ISO 8601 means, in UTC where it names no zone."""
    value = datetime.fromisoformat(timestamp)
    return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)


def _open(
    table: LiveTable,
    live: LiveFile,
    partitions: dict[str, str | None],
    types: dict[str, pa.DataType],
    scratch: Path | None,
    *,
    name: str,
) -> DataFile:
    """Open a file of a table: its rows that are left, under the names of today; columns that were added are NULL.

    Raises:
        NoInputError: the file is gone.
        DataError: it is not the file that the table lists, or was written before a column that has a default.
    """
    import numpy as np  # noqa: PLC0415 - the command line shows its help without loading them
    import pyarrow as pa  # noqa: PLC0415

    size = table.folder.size(live.location)
    if size is None:
        message = f"input {name}: {live.location} is gone, and {table.words} needs it"
        remedy = "Read a later version; old files are removed when a table is cleaned up (VACUUM, expired snapshots)."
        raise NoInputError(message, remedy=remedy)
    if size != live.size:
        message = f"input {name}: {live.location} has {size:,} bytes, but {live.size:,} according to {table.words}"
        raise DataError(message, remedy="Somebody else than the table's own writers wrote it: restore the file.")
    file = table.folder.open(live.location)
    names = _names_now(file.schema, table)
    if live.deleted is not None or any(column != now for column, now in names.items()):
        deleted = np.empty(0, np.int64) if live.deleted is None else live.deleted()
        file = rewritten(file, names, deleted, scratch, name=name)
    schema = pa.schema([field for field in file.schema if field.name in names.values()], metadata=file.schema.metadata)
    missing = [column for column in table.schema if column.name not in (*schema.names, *live.partitions)]
    if invented := [column.name for column in missing if column.name in table.defaults]:
        message = (
            f"input {name}: {file.name} was written before column {invented[0]!r} of {table.words}, which has a default"
        )
        raise DataError(message, remedy="Defaults are not supported: let the table's files be rewritten.")
    nulls = {column.name: column.type for column in missing if _is_plain(column.type)}
    partitions = dict.fromkeys(nulls) | partitions
    return replace(file, schema=schema, partitions=partitions, partition_types=nulls | types)


def _names_now(schema: pa.Schema, table: LiveTable) -> dict[str, str]:
    """Return the columns of a file that the table still has, with the names that they have in the table."""
    if table.names:
        return {column: table.names[column] for column in schema.names if column in table.names}
    if not table.ids:
        return {column: column for column in schema.names}
    name_of = {number: column for column, number in table.ids.items()}
    numbers = {field.name: int((field.metadata or {}).get(FIELD_ID, -1)) for field in schema}
    by_name = {column: column for column, number in numbers.items() if number < 0 and column in table.ids}
    return by_name | {column: name_of[number] for column, number in numbers.items() if number in name_of}


def _is_plain(arrow: pa.DataType) -> bool:
    try:
        column_type(arrow)
    except KeyError:
        return False
    return True


def _text(value: Any) -> str | None:  # noqa: ANN401 - any value of a partition
    if isinstance(value, bool):
        return "true" if value else "false"
    return None if value is None else str(value)
