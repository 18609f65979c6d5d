"""A snapshot of an Apache Iceberg table, as the library pyiceberg lists its files."""

from __future__ import annotations

import gzip
import re
from contextlib import suppress
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from ...errors import DataError, NoInputError
from .folders import ICEBERG, ICEBERG_ENDINGS, ICEBERG_HINT, LiveFile, LiveTable, moment, not_installed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy as np
    from numpy.typing import NDArray

    from .folders import TableFolder

_NUMBERED = re.compile(r"v?(?P<number>\d+)[-.].*")
_GZIP = b"\x1f\x8b"
_IDENTITY = "identity"
_AS_TEXT = ("int", "long", "string", "boolean")


def iceberg_table(folder: TableFolder, metadata: str | None, version: int | None, timestamp: str | None) -> LiveTable:
    """List the files of a snapshot of an Apache Iceberg table.

    Args:
        folder: Folder of the table.
        metadata: Where the metadata file is that the config names; None: it names the folder.
        version: Id of the snapshot; None: the current one.
        timestamp: A point in time in ISO 8601, for the snapshot that was current then.

    Raises:
        ConfigError: the library is not installed.
        NoInputError: there is no such snapshot.
        DataError: the table cannot be read as plain files: it has others than Parquet, or marks rows in other ways
            than by their numbers.
    """
    try:
        from pyiceberg.exceptions import NotInstalledError, ValidationError  # noqa: PLC0415 - an optional extra
        from pyiceberg.io.pyarrow import schema_to_pyarrow  # noqa: PLC0415
        from pyiceberg.table import StaticTable  # noqa: PLC0415
    except ImportError as error:
        raise not_installed(ICEBERG, "pyiceberg", "iceberg", name=folder.name) from error
    named, location = metadata or str(folder), metadata or _latest_metadata(folder)
    try:
        table = _table(StaticTable, location, folder.manifests())
        snapshot = _snapshot(table, version, timestamp, named, folder.name)
        scan = table.scan(snapshot_id=None if version is None and timestamp is None else snapshot.snapshot_id)
        columns = scan.projection()
        return LiveTable(
            named,
            folder,
            ICEBERG,
            None if snapshot is None else snapshot.snapshot_id,
            schema_to_pyarrow(columns),
            () if snapshot is None else tuple(_files(table, scan, folder)),
            ids={field.name: field.field_id for field in columns.fields},
            metadata=location,
            defaults=frozenset(field.name for field in columns.fields if field.initial_default is not None),
        )
    except NotInstalledError as error:
        raise not_installed(ICEBERG, "pyiceberg", "iceberg", name=folder.name) from error
    except (OSError, EOFError, LookupError, TypeError, ValueError, ValidationError) as error:
        message = (
            f"input {folder.name}: {location} cannot be read as the metadata of an {ICEBERG} table: {_reason(error)}"
        )
        raise DataError(message, remedy="Check the table, or name another metadata file of it.") from error


def _reason(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def _table(kind: Any, metadata: str, manifests: Any) -> Any:  # noqa: ANN401 - classes of an extra
    """Return the table that a metadata file describes; `manifests` as `TableFolder.manifests` says."""
    from pyiceberg.catalog.noop import NoopCatalog  # noqa: PLC0415 - an optional extra
    from pyiceberg.io import load_file_io  # noqa: PLC0415
    from pyiceberg.table.metadata import TableMetadataUtil  # noqa: PLC0415

    files = manifests or load_file_io(location=metadata)
    with files.new_input(metadata).open() as stream:
        content = stream.read()
    text = gzip.decompress(content) if content.startswith(_GZIP) else content
    described = TableMetadataUtil.parse_raw(text.decode())
    files = manifests or load_file_io(described.properties, location=metadata)
    return kind(("table", metadata), described, metadata, files, NoopCatalog("table"))


def _latest_metadata(folder: TableFolder) -> str:
    """Return where the metadata file is that the version hint names, or that of the highest number.

    Raises:
        DataError: there is none, or two files have the highest number.
    """
    names = folder.metadata_names()
    files = [file for file in names if file.endswith(ICEBERG_ENDINGS)]
    numbers = {file: int(match["number"]) for file in files if (match := _NUMBERED.fullmatch(file))}
    hinted = folder.metadata_text(ICEBERG_HINT).strip() if ICEBERG_HINT in names else ""
    if hinted and not hinted.isdigit():  # a name, with or without its ending
        latest = [file for file in files if file == hinted or file.startswith(f"{hinted}.")]
    else:
        highest = int(hinted) if hinted else max(numbers.values(), default=None)
        latest = sorted(file for file, number in numbers.items() if number == highest)
    if len(latest) == 1:
        return folder.metadata_location(latest[0])
    shown = ", ".join(latest[:3]) or "none"
    files_of_latest = f"{len(latest)} files of its latest metadata: {shown}"
    message = f"input {folder.name}: {folder} is a table of {ICEBERG} with {files_of_latest}"
    remedy = f'Name the one that the catalog names: path = "{folder.metadata_location("….metadata.json")}".'
    raise DataError(message, remedy=remedy)


def _snapshot(table: Any, version: int | None, timestamp: str | None, named: str, name: str) -> Any:  # noqa: ANN401
    """Return the snapshot that is asked for; None for a table without rows.

    Raises:
        NoInputError: there is no such snapshot.
    """
    if timestamp is not None:
        snapshot = table.snapshot_as_of_timestamp(int(moment(timestamp).timestamp() * 1000))
        if snapshot is None:
            message = f"input {name}: {named} has no snapshot that was current at {timestamp}"
            raise NoInputError(message, remedy="Check timestamp, which is in UTC unless it names a zone.")
        return snapshot
    if version is None:
        return table.current_snapshot()
    snapshot = table.snapshot_by_id(version)
    if snapshot is None:
        ids = [str(each.snapshot_id) for each in table.snapshots()]
        message = f"input {name}: {named} has no snapshot {version}: it has {', '.join(ids[-5:]) or 'none'}"
        raise NoInputError(message, remedy="Check version, which is the id of a snapshot, or leave it out.")
    return snapshot


def _files(table: Any, scan: Any, folder: TableFolder) -> Iterator[LiveFile]:  # noqa: ANN401
    """Yield the files of a snapshot.

    Raises:
        DataError: they cannot be read as plain files.
    """
    columns, specs = scan.projection(), table.specs()
    rows_marked = cache(partial(_rows_marked, folder))  # a file of deletes may name rows of many files
    for task in scan.plan_files():
        file = task.file
        if (kind := str(file.file_format.value)).upper() != "PARQUET":
            message = f"input {folder.name}: {folder} has files in the format {kind}, which is not supported"
            raise DataError(message, remedy="Let the table's files be rewritten as Parquet.")
        if not all(_has_positions(deletes) for deletes in task.delete_files):
            message = f"input {folder.name}: {folder} marks rows of its files as deleted in a way that is not supported"
            remedy = "Files of positions in Parquet are: let the table be rewritten, by rewrite_data_files."
            raise DataError(message, remedy=remedy)
        location = folder.location(file.file_path)
        marks = sorted((folder.location(each.file_path), each.file_size_in_bytes) for each in task.delete_files)
        partitions = _partitions(specs[file.spec_id], file.partition, columns)
        deleted = partial(_deleted_rows, location, marks, rows_marked) if marks else None
        yield LiveFile(location, file.file_size_in_bytes, partitions, deleted)


def _has_positions(deletes: Any) -> bool:  # noqa: ANN401 - a class of an extra
    """Whether a file of deletes names rows by their numbers, in Parquet."""
    is_parquet = str(deletes.file_format.value).upper() == "PARQUET"
    return is_parquet and deletes.content.name == "POSITION_DELETES"


def _deleted_rows(
    location: str, marks: list[tuple[str, int]], rows_marked: Callable[[str, int], dict[str, NDArray[np.int64]]]
) -> NDArray[np.int64]:
    """Return the numbers of the rows of a file that files of deletes name."""
    import numpy as np  # noqa: PLC0415 - the command line shows its help without loading it

    rows = [rows_marked(*each).get(location, np.empty(0, np.int64)) for each in marks]
    return np.unique(np.concatenate(rows)).astype(np.int64)


def _rows_marked(folder: TableFolder, location: str, size: int) -> dict[str, NDArray[np.int64]]:
    """Return the numbers of the rows that a file of deletes names, by the file that they are in.

    Raises:
        NoInputError: it is gone.
        DataError: it is not the file that the table lists, or is damaged.
    """
    import numpy as np  # noqa: PLC0415 - the command line shows its help without loading them
    import polars as pl  # noqa: PLC0415

    there = folder.size(location)
    if there is None:
        message = f"input {folder.name}: {location}, which says which rows are deleted, is gone"
        raise NoInputError(message, remedy="Read a later version, or restore the file.")
    if there != size:
        message = f"input {folder.name}: {location} has {there:,} bytes, but {size:,} according to {folder}"
        raise DataError(message, remedy="Somebody else than the table's own writers wrote it: restore the file.")
    file = folder.open(location)
    try:
        rows = pl.read_parquet(file.path, columns=["file_path", "pos"], hive_partitioning=False)
    except (pl.exceptions.PolarsError, OSError) as error:
        message = f"input {folder.name}: {location} does not say which rows are deleted: {_reason(error)}"
        raise DataError(message, remedy="The file is damaged: restore it.") from error
    marked = rows.group_by("file_path").agg(pl.col("pos").cast(pl.Int64))
    by_file: dict[str, NDArray[np.int64]] = {}
    for written, positions in marked.iter_rows():
        with suppress(DataError):  # of a file elsewhere, which this snapshot has not
            location_of_file = folder.location(written)
            before = by_file.get(location_of_file, np.empty(0, np.int64))
            by_file[location_of_file] = np.concatenate([before, np.array(positions, np.int64)])
    return by_file


def _partitions(spec: Any, values: Any, columns: Any) -> dict[str, Any]:  # noqa: ANN401 - classes of an extra
    """Return the columns that partition a file by their own values, with these; not those of years or buckets."""
    from pyiceberg.types import DateType  # noqa: PLC0415 - an optional extra
    from pyiceberg.utils.datetime import days_to_date  # noqa: PLC0415

    fields = {field.field_id: field for field in columns.fields}
    partitions = {}
    for number, field in enumerate(spec.fields):
        column = fields.get(field.source_id)
        if column is None or str(field.transform) != _IDENTITY:
            continue
        value = values[number]
        if isinstance(column.field_type, DateType):
            partitions[column.name] = days_to_date(value) if isinstance(value, int) else value
        elif str(column.field_type) in _AS_TEXT:
            partitions[column.name] = value
    return partitions
