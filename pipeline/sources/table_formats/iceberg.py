"""A snapshot of an Apache Iceberg table, as the library pyiceberg lists its files."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any

from pipeline.errors import DataError, NoInputError
from pipeline.sources.table_formats.live_files import LiveFile, LiveTable, moment, not_installed
from pipeline.sources.table_formats.recognising import ICEBERG, ICEBERG_ENDINGS, ICEBERG_HINT

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

    from pipeline.sources.table_formats.folders import TableFolder

_NUMBERED = re.compile(r"v?(?P<number>\d+)[-.].*")
_IDENTITY = "identity"
_AS_TEXT = ("int", "long", "string", "boolean")


def iceberg_table(
    folder: TableFolder, metadata: str | None, version: int | None, timestamp: str | None, *, name: str
) -> LiveTable:
    """List the files of a snapshot of an Apache Iceberg table.

    Args:
        folder: Folder of the table.
        metadata: Where the metadata file is that the config names; None: it names the folder.
        version: Id of the snapshot; None: the current one.
        timestamp: A point in time in ISO 8601, for the snapshot that was current then.
        name: Name of the input in messages.

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
        raise not_installed(ICEBERG, "pyiceberg", "iceberg", name=name) from error
    named, location = metadata or str(folder), metadata or _latest_metadata(folder, name=name)
    try:
        table = _table(StaticTable, location, folder.manifests())
        snapshot = _snapshot(table, version, timestamp, named, name=name)
        scan = table.scan(snapshot_id=None if version is None and timestamp is None else snapshot.snapshot_id)
        columns = scan.projection()
        return LiveTable(
            named,
            folder,
            ICEBERG,
            None if snapshot is None else snapshot.snapshot_id,
            schema_to_pyarrow(columns),
            () if snapshot is None else tuple(_files(table, scan, folder, name=name)),
            ids={field.name: field.field_id for field in columns.fields},
            metadata=location,
            defaults=frozenset(field.name for field in columns.fields if field.initial_default is not None),
        )
    except NotInstalledError as error:
        raise not_installed(ICEBERG, "pyiceberg", "iceberg", name=name) from error
    except (OSError, EOFError, LookupError, TypeError, ValueError, ValidationError) as error:
        message = f"input {name}: {location} cannot be read as the metadata of an {ICEBERG} table: {_reason(error)}"
        raise DataError(message, remedy="Check the table, or name another metadata file of it.") from error


def _reason(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def _table(kind: Any, metadata: str, manifests: Any) -> Any:  # noqa: ANN401 - classes of an extra
    """Return the table that a metadata file describes; `manifests` as `TableFolder.manifests` says."""
    if manifests is None:
        return kind.from_metadata(metadata)
    from pyiceberg.catalog.noop import NoopCatalog  # noqa: PLC0415 - an optional extra
    from pyiceberg.serializers import FromInputFile  # noqa: PLC0415

    described = FromInputFile.table_metadata(manifests.new_input(metadata))
    return kind(("table", metadata), described, metadata, manifests, NoopCatalog("table"))


def _latest_metadata(folder: TableFolder, *, name: str) -> str:
    """Return where the metadata file is that the version hint names, or that of the highest number.

    Raises:
        DataError: there is none, or two files have the highest number.
    """
    names = folder.metadata_names()
    numbers = {
        file: int(match["number"])
        for file in names
        if file.endswith(ICEBERG_ENDINGS) and (match := _NUMBERED.fullmatch(file))
    }
    hinted = folder.metadata_text(ICEBERG_HINT).strip() if ICEBERG_HINT in names else ""
    highest = int(hinted) if hinted.isdigit() else max(numbers.values(), default=None)
    latest = sorted(file for file, number in numbers.items() if number == highest)
    if len(latest) == 1:
        return folder.metadata_location(latest[0])
    shown = ", ".join(latest[:3]) or "none"
    message = f"input {name}: {folder} is a table of {ICEBERG} with {len(latest)} files of its latest metadata: {shown}"
    remedy = f'Name the one that the catalog names: path = "{folder.metadata_location("….metadata.json")}".'
    raise DataError(message, remedy=remedy)


def _snapshot(table: Any, version: int | None, timestamp: str | None, named: str, *, name: str) -> Any:  # noqa: ANN401
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


def _files(table: Any, scan: Any, folder: TableFolder, *, name: str) -> Iterator[LiveFile]:  # noqa: ANN401
    """Yield the files of a snapshot.

    Raises:
        DataError: they cannot be read as plain files.
    """
    columns, specs = scan.projection(), table.specs()
    for task in scan.plan_files():
        file = task.file
        if (kind := str(file.file_format.value)).upper() != "PARQUET":
            message = f"input {name}: {folder} has files in the format {kind}, which is not supported"
            raise DataError(message, remedy="Let the table's files be rewritten as Parquet.")
        if not all(_has_positions(deletes) for deletes in task.delete_files):
            message = f"input {name}: {folder} marks rows of its files as deleted in a way that is not supported"
            remedy = "Files of positions in Parquet are: let the table be rewritten, by rewrite_data_files."
            raise DataError(message, remedy=remedy)
        marks = [folder.location(deletes.file_path, name=name) for deletes in task.delete_files]
        yield LiveFile(
            folder.location(file.file_path, name=name),
            file.file_size_in_bytes,
            _partitions(specs[file.spec_id], file.partition, columns),
            partial(_deleted_rows, folder, sorted(marks), file.file_path, name=name) if marks else None,
        )


def _has_positions(deletes: Any) -> bool:  # noqa: ANN401 - a class of an extra
    """Whether a file of deletes names rows by their numbers, in Parquet."""
    is_parquet = str(deletes.file_format.value).upper() == "PARQUET"
    return is_parquet and deletes.content.name == "POSITION_DELETES"


def _deleted_rows(folder: TableFolder, marks: list[str], written: str, *, name: str) -> NDArray[np.int64]:
    """Return the numbers of the rows of a file that files of deletes name, as they write its address."""
    import numpy as np  # noqa: PLC0415 - the command line shows its help without loading them
    import pyarrow.parquet as pq  # noqa: PLC0415

    rows: list[NDArray[np.int64]] = []
    for location in marks:
        file = folder.open(location, name=name)
        of_file = pq.read_table(file.path, columns=["file_path", "pos"], filters=[("file_path", "==", written)])
        rows.append(of_file["pos"].to_numpy())
    return np.unique(np.concatenate(rows)).astype(np.int64)


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
