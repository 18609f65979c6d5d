"""A version of a Delta Lake table, as the library deltalake lists its files."""

from __future__ import annotations

import re
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from ...errors import DataError, NoInputError
from ..paths import shortened
from .folders import DELTA, LiveFile, LiveTable, moment, not_installed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from .folders import TableFolder

_NUMBERED = re.compile(r"(?P<version>\d{20})\.(?!crc$)[^/]+")
_CHECKPOINT = re.compile(
    r"(?P<version>\d{20})\.checkpoint(\.\d{10}\.(?P<parts>\d{10})|\.[0-9a-fA-F-]{36})?\.(parquet|json)"
)
_SIDECARS = "_sidecars/"
_MAPPING = "delta.columnMapping.mode"
_NUMBER, _PHYSICAL = b"delta.columnMapping.id", b"delta.columnMapping.physicalName"
_DELETION_VECTORS = "deletionVectors"
_IN_COMMIT = "inCommitTimestamp"
_ENCODED = re.compile("%[0-9A-Fa-f]{2}")
_NO_LOG = "No files in log segment"


def delta_table(folder: TableFolder, version: int | None, timestamp: str | None) -> LiveTable:
    """List the files of a version of a Delta Lake table.

    Args:
        folder: Folder of the table.
        version: Its version; None: the latest.
        timestamp: A point in time in ISO 8601, for the version that was the latest then.

    Raises:
        ConfigError: the library is not installed.
        NoInputError: there is no such version, or not any more.
        DataError: the table cannot be read.
    """
    try:
        import deltalake  # noqa: PLC0415 - an optional extra
        from deltalake.exceptions import DeltaError  # noqa: PLC0415
    except ImportError as error:
        raise not_installed(DELTA, "deltalake", "delta", name=folder.name) from error
    log = folder.delta_log(version, all_commits=timestamp is not None)
    _refuse_encoded(log, folder)
    wanted = None
    try:
        table = deltalake.DeltaTable(log)
        latest = table.version()
        wanted = _version_at(table, timestamp, folder) if timestamp is not None else version
        if wanted is not None:
            _check_version(wanted, latest, folder)
            table.load_as_version(wanted)
        return _live(table, folder)
    except DeltaError as error:
        reason = _reason(error, log, folder)
        if wanted is not None and _NO_LOG in reason:
            message = f"input {folder.name}: {folder} has no version {wanted} any more: {reason}"
            raise NoInputError(message, remedy="Name a later version: the log of old ones is removed.") from error
        message = f"input {folder.name}: {folder} cannot be read as a table of {DELTA}: {reason}"
        raise DataError(message, remedy="Check the table, or name another version of it.") from error


def _refuse_encoded(log: Path, folder: TableFolder) -> None:
    """Refuse a folder whose path looks encoded: the library would read the log of another one."""
    if (encoded := _ENCODED.search(str(log))) is not None:
        what = f"{encoded[0]} in {log}"
        message = f"input {folder.name}: deltalake takes {what} for a character, and reads another folder"
        raise DataError(message, remedy="Rename the folder.")


def _reason(error: Exception, log: Path, folder: TableFolder) -> str:
    """Return what the library says, with the folder of the table in the place of that of a copy of its log."""
    line = next(iter(str(error).strip().splitlines()), type(error).__name__)
    for path in (log.as_uri(), str(log), str(log).lstrip("/")):
        line = line.replace(path, str(folder))
    return shortened(line)


def needed_log(names: Iterable[str], version: int | None) -> list[str]:
    """Return the files of a log that make up a version and all after it, from the last whole checkpoint up to it.

    Args:
        names: The files of the log, relative to its folder.
        version: The version; None: the latest.
    """
    names = list(names)
    parts_of = Counter(
        (int(match["version"]), int(match["parts"] or 1)) for name in names if (match := _CHECKPOINT.fullmatch(name))
    )
    checkpoints = [number for (number, wanted), there in parts_of.items() if there >= wanted]
    first = max((number for number in checkpoints if version is None or number <= version), default=0)
    numbered = [name for name in names if (match := _NUMBERED.fullmatch(name)) and int(match["version"]) >= first]
    return [*numbered, *(name for name in names if name.startswith(_SIDECARS))]


def _check_version(version: int, latest: int, folder: TableFolder) -> None:
    if version > latest:
        message = f"input {folder.name}: {folder} has no version {version}: its latest is {latest}"
        raise NoInputError(message, remedy="Check version, or leave it out to read the latest.")


def _version_at(table: Any, timestamp: str, folder: TableFolder) -> int:  # noqa: ANN401 - a class of an extra
    """Return the last version that was committed at a point in time, according to the commits themselves.

    The library goes by the times of the files of the log, which a copy changes, and takes the first version for every
    earlier time.

    Raises:
        NoInputError: no version that is left is so old.
        DataError: a commit does not say when it was made.
    """
    milliseconds = moment(timestamp).timestamp() * 1000
    commits = {commit["version"]: commit.get(_IN_COMMIT, commit.get("timestamp")) for commit in table.history()}
    if not commits or None in commits.values():
        message = f"input {folder.name}: the log of {folder} does not say when its versions were committed"
        raise DataError(message, remedy="Name a version instead of timestamp.")
    before = [number for number, committed in commits.items() if committed <= milliseconds]
    if not before:
        message = f"input {folder.name}: {folder} has no version that was there at {timestamp}"
        raise NoInputError(message, remedy="Check timestamp, which is in UTC unless it names a zone.")
    return int(max(before))


def _live(table: Any, folder: TableFolder) -> LiveTable:  # noqa: ANN401 - a class of an extra
    import pyarrow as pa  # noqa: PLC0415 - the command line shows its help without loading pyarrow

    version = table.version()
    schema = pa.schema(table.schema().to_arrow())
    actions: pa.Table = pa.table(table.get_add_actions(flatten=False))
    columns = [key for key in ("path", "size_bytes", "partition") if key in actions.column_names]
    deleted: dict[str, Callable[[], NDArray[np.int64]]] = {}
    if _DELETION_VECTORS in (table.protocol().reader_features or ()):
        folder.add_vectors()
        deleted = _deleted_rows(table)
    files = tuple(
        LiveFile(
            folder.location(unquote(row["path"])),
            row["size_bytes"],
            row.get("partition") or {},
            deleted.pop(row["path"], None),
        )
        for row in actions.select(columns).to_pylist()
    )
    if deleted:
        unknown = next(iter(deleted))
        message = f"input {folder.name}: {folder} marks rows as deleted of a file that it does not have: {unknown}"
        raise DataError(message, remedy="Check the table, or name another version of it.")
    return LiveTable(str(folder), folder, DELTA, version, schema, files, **_mapping(table, schema))


def _mapping(table: Any, schema: pa.Schema) -> dict[str, Any]:  # noqa: ANN401 - a class of an extra
    """Return how columns are found in the files of a table that maps them to other names, or to numbers."""
    mode = table.metadata().configuration.get(_MAPPING, "none")
    facts = {field.name: field.metadata or {} for field in schema}
    if mode == "id":
        return {"ids": {column: int(of_column[_NUMBER]) for column, of_column in facts.items()}}
    if mode == "name":
        return {"names": {of_column[_PHYSICAL].decode(): column for column, of_column in facts.items()}}
    return {}


def _deleted_rows(table: Any) -> dict[str, Callable[[], NDArray[np.int64]]]:  # noqa: ANN401 - a class of an extra
    """Return what tells the rows that are marked as deleted, by the path of the file in the log."""
    import numpy as np  # noqa: PLC0415 - see _live
    import pyarrow as pa  # noqa: PLC0415

    deleted: dict[str, Callable[[], NDArray[np.int64]]] = {}
    for vectors in map(pa.record_batch, table.deletion_vectors()):
        for address, is_left in zip(vectors["filepath"].to_pylist(), vectors["selection_vector"], strict=True):
            rows = np.flatnonzero(~is_left.values.to_numpy(zero_copy_only=False)).astype(np.int64)
            deleted[address.removeprefix(table.table_uri)] = partial(np.asarray, rows)
    return deleted
