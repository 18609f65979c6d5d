"""A snapshot of an Apache Iceberg table, as the library pyiceberg lists its files."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pipeline.errors import DataError, NoInputError
from pipeline.sources.table_formats.live_files import LiveFile, LiveTable, moment, not_installed
from pipeline.sources.table_formats.recognising import ICEBERG, ICEBERG_ENDINGS, ICEBERG_FOLDER, ICEBERG_HINT

if TYPE_CHECKING:
    from pathlib import Path

_NUMBERED = re.compile(r"v?(?P<number>\d+)[-.].*")
_IDENTITY = "identity"
_AS_TEXT = ("int", "long", "string", "boolean")


def iceberg_table(path: Path, version: int | None, timestamp: str | None, *, name: str) -> LiveTable:
    """List the files of a snapshot of an Apache Iceberg table.

    Args:
        path: Folder of the table, or one of its metadata files.
        version: Id of the snapshot; None: the current one.
        timestamp: A point in time in ISO 8601, for the snapshot that was current then.
        name: Name of the input in messages.

    Raises:
        ConfigError: the library is not installed.
        NoInputError: there is no such snapshot.
        DataError: the table cannot be read as plain files: it has files of deletes, or others than Parquet.
    """
    try:
        from pyiceberg.exceptions import NotInstalledError, ValidationError  # noqa: PLC0415 - an optional extra
        from pyiceberg.table import StaticTable  # noqa: PLC0415
    except ImportError as error:
        raise not_installed(ICEBERG, "pyiceberg", "iceberg", name=name) from error
    metadata = path if path.is_file() else _latest_metadata(path, name=name)
    try:
        table = StaticTable.from_metadata(str(metadata))
        snapshot = _snapshot(table, version, timestamp, path, name=name)
        scan = table.scan(snapshot_id=None if version is None and timestamp is None else snapshot.snapshot_id)
        return _live(table, scan, snapshot, path, metadata, name=name)
    except NotInstalledError as error:
        raise not_installed(ICEBERG, "pyiceberg", "iceberg", name=name) from error
    except (OSError, EOFError, LookupError, TypeError, ValueError, ValidationError) as error:
        message = f"input {name}: {metadata} cannot be read as the metadata of an {ICEBERG} table: {_reason(error)}"
        raise DataError(message, remedy="Check the table, or name another metadata file of it.") from error


def _reason(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def _latest_metadata(folder: Path, *, name: str) -> Path:
    """Return the metadata file that the version hint names, or that of the highest number.

    Raises:
        DataError: there is none, or two files have the highest number.
    """
    files = [file for file in (folder / ICEBERG_FOLDER).iterdir() if file.name.endswith(ICEBERG_ENDINGS)]
    number_of = {file: int(match["number"]) for file in files if (match := _NUMBERED.fullmatch(file.name))}
    hint = folder / ICEBERG_FOLDER / ICEBERG_HINT
    hinted = hint.read_text().strip() if hint.is_file() else ""
    highest = int(hinted) if hinted.isdigit() else max(number_of.values(), default=None)
    latest = sorted(file for file, number in number_of.items() if number == highest)
    if len(latest) == 1:
        return latest[0]
    names = ", ".join(file.name for file in latest[:3]) or "none"
    message = f"input {name}: {folder} is a table of {ICEBERG} with {len(latest)} files of its latest metadata: {names}"
    remedy = f'Name the one that the catalog names: path = "{folder / ICEBERG_FOLDER}/….metadata.json".'
    raise DataError(message, remedy=remedy)


def _snapshot(table: Any, version: int | None, timestamp: str | None, path: Path, *, name: str) -> Any:  # noqa: ANN401
    """Return the snapshot that is asked for; None for a table without rows.

    Raises:
        NoInputError: there is no such snapshot.
    """
    if timestamp is not None:
        snapshot = table.snapshot_as_of_timestamp(int(moment(timestamp).timestamp() * 1000))
        if snapshot is None:
            message = f"input {name}: {path} has no snapshot that was current at {timestamp}"
            raise NoInputError(message, remedy="Check timestamp, which is in UTC unless it names a zone.")
        return snapshot
    if version is None:
        return table.current_snapshot()
    snapshot = table.snapshot_by_id(version)
    if snapshot is None:
        ids = [str(each.snapshot_id) for each in table.snapshots()]
        message = f"input {name}: {path} has no snapshot {version}: it has {', '.join(ids[-5:]) or 'none'}"
        raise NoInputError(message, remedy="Check version, which is the id of a snapshot, or leave it out.")
    return snapshot


def _live(table: Any, scan: Any, snapshot: Any, path: Path, metadata: Path, *, name: str) -> LiveTable:  # noqa: ANN401
    from pyiceberg.io.pyarrow import schema_to_pyarrow  # noqa: PLC0415 - an optional extra

    columns = scan.projection()
    specs = table.specs()
    files = []
    for task in scan.plan_files() if snapshot is not None else ():
        if task.delete_files:
            message = f"input {name}: {path} marks rows of its files as deleted (delete files), which is not supported"
            raise DataError(message, remedy="Let the table be rewritten without them: rewrite_data_files.")
        file = task.file
        if (kind := str(file.file_format.value)).upper() != "PARQUET":
            message = f"input {name}: {path} has files in the format {kind}, which is not supported"
            raise DataError(message, remedy="Let the table's files be rewritten as Parquet.")
        partitions = _partitions(specs[file.spec_id], file.partition, columns)
        files.append(LiveFile(_local(file.file_path, path, name=name), file.file_size_in_bytes, partitions))
    return LiveTable(
        path,
        ICEBERG,
        None if snapshot is None else snapshot.snapshot_id,
        schema_to_pyarrow(columns),
        tuple(files),
        ids={field.name: field.field_id for field in columns.fields},
        metadata=str(metadata),
        defaults=frozenset(field.name for field in columns.fields if field.initial_default is not None),
    )


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


def _local(written: str, path: Path, *, name: str) -> Path:
    """Return the path of a file of the table, from its address in a manifest.

    Raises:
        DataError: it lies on a remote store.
    """
    if written.startswith("file:"):
        return path.absolute() / re.sub("^file:(//)?", "", written)
    if "://" in written:
        message = f"input {name}: {path} lists files elsewhere, such as {written}"
        raise DataError(message, remedy="Only tables whose files lie on this machine are supported.")
    return path.absolute() / written
