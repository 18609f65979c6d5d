"""The files that hold the rows of one version of a table, as the library of its format lists them."""

from __future__ import annotations

from dataclasses import field, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from ...errors import ConfigError, DataError, NoInputError
from ...records import dataclass
from ..listed import Listed
from ..types import column_type
from .rewriting import rewritten

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from ..parquet_files import DataFile
    from .folders import TableFolder

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
