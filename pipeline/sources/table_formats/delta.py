"""A version of a Delta Lake table, as the library deltalake lists its files."""

from __future__ import annotations

import re
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from pipeline.errors import DataError, NoInputError
from pipeline.sources.table_formats.live_files import LiveFile, LiveTable, moment, not_installed
from pipeline.sources.table_formats.recognising import DELTA

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from pipeline.sources.table_formats.folders import TableFolder

_NUMBERED = re.compile(r"(?P<version>\d{20})\.(?!crc$)[^/]+")
_CHECKPOINT = re.compile(
    r"(?P<version>\d{20})\.checkpoint(\.\d{10}\.(?P<parts>\d{10})|\.[0-9a-fA-F-]{36})?\.(parquet|json)"
)
_SIDECARS = "_sidecars/"
_MAPPING = "delta.columnMapping.mode"
_DELETION_VECTORS = "deletionVectors"
_IN_COMMIT = "inCommitTimestamp"


def delta_table(folder: TableFolder, version: int | None, timestamp: str | None, *, name: str) -> LiveTable:
    """List the files of a version of a Delta Lake table.

    Args:
        folder: Folder of the table.
        version: Its version; None: the latest.
        timestamp: A point in time in ISO 8601, for the version that was the latest then.
        name: Name of the input in messages.

    Raises:
        ConfigError: the library is not installed.
        NoInputError: there is no such version.
        DataError: the table cannot be read as plain files: it maps columns.
    """
    try:
        import deltalake  # noqa: PLC0415 - an optional extra
        from deltalake.exceptions import DeltaError  # noqa: PLC0415
    except ImportError as error:
        raise not_installed(DELTA, "deltalake", "delta", name=name) from error
    try:
        table = deltalake.DeltaTable(folder.delta_log(version, all_commits=timestamp is not None))
        latest = table.version()
        wanted = _version_at(table, timestamp, folder, name=name) if timestamp is not None else version
        if wanted is not None:
            _check_version(wanted, latest, folder, name=name)
            table.load_as_version(wanted)
        return _live(table, folder, name=name)
    except DeltaError as error:
        reason = str(error).strip().splitlines()[0]
        message = f"input {name}: {folder} cannot be read as a table of {DELTA}: {reason}"
        raise DataError(message, remedy="Check the table, or name another version of it.") from error


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


def _check_version(version: int, latest: int, folder: TableFolder, *, name: str) -> None:
    if version > latest:
        message = f"input {name}: {folder} has no version {version}: its latest is {latest}"
        raise NoInputError(message, remedy="Check version, or leave it out to read the latest.")


def _version_at(table: Any, timestamp: str, folder: TableFolder, *, name: str) -> int:  # noqa: ANN401 - a class of an extra
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
        message = f"input {name}: the log of {folder} does not say when its versions were committed"
        raise DataError(message, remedy="Name a version instead of timestamp.")
    before = [number for number, committed in commits.items() if committed <= milliseconds]
    if not before:
        message = f"input {name}: {folder} has no version that was there at {timestamp}"
        raise NoInputError(message, remedy="Check timestamp, which is in UTC unless it names a zone.")
    return int(max(before))


def _live(table: Any, folder: TableFolder, *, name: str) -> LiveTable:  # noqa: ANN401 - a class of an extra
    import pyarrow as pa  # noqa: PLC0415 - the command line shows its help without loading pyarrow

    version = table.version()
    if table.metadata().configuration.get(_MAPPING, "none") != "none":
        message = (
            f"input {name}: {folder} maps its columns to other names in its files ({_MAPPING}), which is not supported"
        )
        raise DataError(
            message, remedy="Write its current rows to a table without column mapping, or to Parquet files."
        )
    schema = pa.schema(table.schema().to_arrow())
    actions: pa.Table = pa.table(table.get_add_actions(flatten=False))
    columns = [key for key in ("path", "size_bytes", "partition") if key in actions.column_names]
    deleted = _deleted_rows(table) if _DELETION_VECTORS in (table.protocol().reader_features or ()) else {}
    files = tuple(
        LiveFile(
            folder.location(unquote(row["path"]), name=name),
            row["size_bytes"],
            row.get("partition") or {},
            deleted.pop(row["path"], None),
        )
        for row in actions.select(columns).to_pylist()
    )
    if deleted:
        message = f"input {name}: {folder} marks rows as deleted of a file that it does not have: {next(iter(deleted))}"
        raise DataError(message, remedy="Check the table, or name another version of it.")
    return LiveTable(str(folder), folder, DELTA, version, schema, files)


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
