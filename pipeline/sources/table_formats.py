"""Tables of Delta Lake and Apache Iceberg: their own libraries read a version of them, into a Parquet file like frames.

What they are known by, so that their files are never read as plain ones, and where their logs lie, is said here, too.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import sqlglot.expressions as exp

from ..base.dialect import data_type
from ..base.errors import ConfigError, DataError, NoInputError, ThresherError, os_error_number, os_fault
from ..base.paths import shortened
from ..base.records import dataclass
from .frames import SPOOLED, TemporaryFolder, spooling, write_batches
from .parquet_files import DataFile
from .types import column_type, plain_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from .inputs import Input


DELTA, ICEBERG, HUDI = "Delta Lake", "Apache Iceberg", "Apache Hudi"
ICEBERG_ENDINGS = (".metadata.json", ".metadata.json.gz")
ICEBERG_FOLDER = "metadata"
ICEBERG_HINT = "version-hint.text"
DELTA_LOG = "_delta_log"
_LOGS = {DELTA_LOG: DELTA, ".hoodie": HUDI}


def refuse_table_formats(name: str, folders: Iterable[Path]) -> None:
    """Refuse files of a folder that belongs to a table format: read as plain Parquet, its removed files would count.

    The folders above them, and those that links lead to, are looked at, too.

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


_GONE = re.compile(r"not found|no such file|does not exist|NoSuchKey", re.IGNORECASE)
_ENCODED = re.compile("%[0-9A-Fa-f]{2}")
_TREE = re.compile(r"\s*\x1b\[31m↳\x1b\[0m\s*")  # how deltalake shows causes
_CREDENTIALS = re.compile(r"//[^/@]*:[^/@]*@")
_IN_COMMIT = "inCommitTimestamp"
_COMMIT = re.compile(r"(\d{20})\.json")
_NO_LOG = "No files in log segment"
_NUMBERED = re.compile(r"v?(?P<number>\d+)[-.].*")
_GZIP = b"\x1f\x8b"


@dataclass(frozen=True)
class FileGroup:
    """The paths of the files of a version of a table that have the same values, as text, in its partition columns."""

    partitions: dict[str, str | None]
    partition_types: dict[str, pa.DataType]
    files: tuple[str, ...]


@dataclass(frozen=True)
class TableVersion:
    """A version of a table.

    Attributes:
        name: What the config names: the path of the folder of the table, or of a metadata file.
        kind: Its format.
        version: Its number; for Apache Iceberg the id of the snapshot, None for a table without one.
        schema: Its columns.
        groups: Its files.
        digest: Hash of what it consists of.
        batches: Returns the rows of some columns, of all groups or of some, in batches and always in the same order.
        count: Returns the number of rows of groups.
        metadata: The metadata file that was read, where the format has several.
    """

    name: str
    kind: str
    version: int | None
    schema: pa.Schema
    groups: tuple[FileGroup, ...]
    digest: str
    batches: Callable[[Sequence[str], Sequence[FileGroup]], Iterable[pa.RecordBatch]]
    count: Callable[[Sequence[FileGroup]], int]
    metadata: str | None = None

    @property
    def words(self) -> str:
        """The version in messages."""
        return f"version {self.version} of the {self.kind} table {self.name}"

    def record(self) -> dict[str, Any]:
        """Return what was read, as JSON."""
        record = {"path": self.name, "format": self.kind, "version": self.version, "metadata": self.metadata}
        return {key: value for key, value in record.items() if value is not None}

    def open(self, groups: Sequence[FileGroup], scratch: Path | None, *, name: str) -> DataFile:
        """Return the rows of some groups as a file, which is written once it is known which columns are read.

        Raises:
            NoInputError: a file of the table is gone.
            DataError: the table cannot be read.
        """
        with _faults(self.name, self.kind, name):
            rows = self.count(groups) if groups else 0
        with spooling(self.name, name=name):
            folder = TemporaryFolder(scratch)
        target, written = folder.path / SPOOLED, set[str]()

        def fetch(columns: Collection[str]) -> None:
            if target.exists() and written.issuperset({*columns} & {*self.schema.names}):
                return
            written.update({*columns} & {*self.schema.names} or self.schema.names[:1])
            self._write([column for column in self.schema.names if column in written], groups, target, name)

        kept = [each.partitions for each in groups] if len(groups) < len(self.groups) else []
        digest = hashlib.sha256(json.dumps([self.digest, kept]).encode()).hexdigest()
        identity = {"table_version": self.version}
        return DataFile(target, rows, self.schema, {}, identity, digest, self.name, folder, fetch=fetch)

    def _write(self, columns: Sequence[str], groups: Sequence[FileGroup], target: Path, name: str) -> None:

        schema = pa.schema([self.schema.field(column) for column in columns])
        unfinished = target.with_suffix(".part")
        with spooling(self.name, name=name):
            write_batches(schema, self._read(columns, groups, schema, name), unfinished)
            unfinished.replace(target)

    def _read(
        self, columns: Sequence[str], groups: Sequence[FileGroup], schema: pa.Schema, name: str
    ) -> Iterator[pa.RecordBatch]:
        with _faults(self.name, self.kind, name):
            batches = iter(self.batches(columns, groups) if groups else ())
        while True:
            with _faults(self.name, self.kind, name):
                batch = next(batches, None)
            if batch is None:
                return
            # files may have other types than the table, such as text with longer offsets
            columns_of_table = [batch[field.name].cast(field.type) for field in schema]
            yield pa.RecordBatch.from_arrays(columns_of_table, schema=schema)


@contextmanager
def _faults(path: str, kind: str, name: str) -> Iterator[None]:
    """Tell in one sentence what the libraries raise, which have no class of errors in common."""
    try:
        yield
    except (ThresherError, MemoryError):
        raise
    except Exception as error:
        what = f"input {name}: {path} cannot be read as a table of {kind}"
        text = _TREE.sub(": ", _CREDENTIALS.sub("//…@", str(error))).strip() or type(error).__name__
        reason = shortened(text.splitlines()[0])
        if "://" in path:
            from .stores import fault_of_text  # noqa: PLC0415 - only where a table is on a store

            told = fault_of_text(f"input {name}: reading {path}", text)
            if told is not None:
                raise told from None  # its text may hold secrets
        if _GONE.search(text):
            message = f"{what}: a file of it is gone: {reason}"
            remedy = "Read a later version; old files go when a table is cleaned up (VACUUM, expired snapshots)."
            raise NoInputError(message, remedy=remedy) from error
        if os_error_number(error) is not None:
            raise os_fault(error, f"input {name}: reading {path}") from error
        message = f"{what}: {reason}"
        raise DataError(message, remedy="Check the table, or name another version of it.") from error


def table_at(path: Path, spec: Input, *, name: str) -> TableVersion | None:
    """Return the version of a table that an input asks for; None if a path leads to no table.

    The path is the folder of a table, or a metadata file of an Apache Iceberg table.

    Raises:
        ConfigError: the library of the format is not installed.
        NoInputError: there is no such version.
        DataError: the table cannot be read.
    """
    if not os.path.exists(path):  # noqa: PTH110 - Path.exists raises for names that are too long
        return None
    if path.name.endswith(ICEBERG_ENDINGS) and path.is_file():
        return iceberg_table(str(path), str(path), spec, None, name=name)
    kind = format_of_table(path)
    if kind == DELTA:
        log = path / DELTA_LOG
        return delta_table(
            str(path), spec, {}, lambda: commits_of((file.name, file.read_bytes) for file in log.iterdir()), name=name
        )
    if kind == ICEBERG:
        names = [file.name for file in (path / ICEBERG_FOLDER).iterdir()]
        return iceberg_table(str(path), latest_metadata(str(path), names, None, name=name), spec, None, name=name)
    return None


def _not_installed(kind: str, library: str, extra: str, *, name: str) -> ConfigError:
    message = f"input {name}: tables of {kind} need the package {library}, which is not installed"
    return ConfigError(message, remedy=f'Install it: pip install "thresher[{extra}]"')


def _moment(timestamp: str) -> datetime:
    """Return the point in time that a text in ISO 8601 means, in UTC where it names no zone."""
    value = datetime.fromisoformat(timestamp)
    return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)


def _groups(files: Iterable[tuple[str, dict[str, Any]]], schema: pa.Schema) -> tuple[FileGroup, ...]:
    """Sort files with their values of partition columns into groups."""
    types = {}
    files = sorted(files, key=lambda file: file[0])
    for column in files[0][1] if files else ():
        try:
            column_type(schema.field(column).type)
        except KeyError:
            continue  # of a type that conditions are not decided of beforehand
        types[column] = schema.field(column).type
    of_values: dict[tuple[str | None, ...], list[str]] = {}
    for path, values in files:
        of_values.setdefault(tuple(_text(values.get(column)) for column in types), []).append(path)
    return tuple(
        FileGroup(dict(zip(types, values, strict=True)), types, tuple(paths)) for values, paths in of_values.items()
    )


def _text(value: Any) -> str | None:  # noqa: ANN401 - any value of a partition
    if isinstance(value, bool):
        return "true" if value else "false"
    return None if value is None else str(value)


def _hash(*facts: object) -> str:
    return hashlib.sha256(json.dumps(facts, default=str).encode()).hexdigest()


# Delta Lake, by the library deltalake: DataFusion reads the rows, without those that vectors mark as deleted.


def delta_table(
    path: str,
    spec: Input,
    options: dict[str, str],
    commits: Callable[[], Mapping[int, Callable[[], bytes]]],
    *,
    name: str,
) -> TableVersion:
    """Return a version of a Delta Lake table.

    Args:
        path: Its folder, absolute, or its address.
        spec: What the config says about the input: `version`, or `timestamp`.
        options: How its store is reached.
        commits: Returns what reads the commits of its log, by version.
        name: Name of the input in messages.

    Raises:
        The errors of `table_at`.
    """
    try:
        import deltalake  # noqa: PLC0415 - an optional extra
    except ImportError as error:
        raise _not_installed(DELTA, "deltalake", "delta", name=name) from error
    if "://" not in path and (encoded := _ENCODED.search(path)) is not None:
        message = f"input {name}: deltalake takes {encoded[0]} in {path} for a character, and reads another folder"
        raise DataError(message, remedy="Rename the folder.")
    with _faults(path, DELTA, name):
        table = deltalake.DeltaTable(path, storage_options=options or None)
        latest, wanted = table.version(), spec.version
        if spec.timestamp is not None:
            wanted = _version_at(commits(), spec.timestamp, path, name)
        if wanted is not None and wanted > latest:
            message = f"input {name}: {path} has no version {wanted}: its latest is {latest}"
            raise NoInputError(message, remedy="Check version, or leave it out to read the latest.")
        try:
            if wanted is not None:
                table.load_as_version(wanted)
            return _delta_version(table, path)
        except deltalake.exceptions.DeltaError as error:
            if wanted is None or _NO_LOG not in str(error):
                raise
            message = f"input {name}: {path} has no version {wanted} any more"
            raise NoInputError(message, remedy="Name a later version: the log of old ones is removed.") from error


def _delta_version(table: Any, path: str) -> TableVersion:  # noqa: ANN401 - a class of an extra

    schema = plain_schema(pa.schema(table.schema().to_arrow()))
    actions = pa.table(table.get_add_actions(flatten=False))
    columns = [key for key in ("path", "size_bytes", "partition", "deletion_vector") if key in actions.column_names]
    added = actions.select(columns).to_pylist()
    groups = _groups([(row["path"], row.get("partition") or {}) for row in added], schema)

    def rows(columns: Sequence[exp.Expr], chosen: Sequence[FileGroup]) -> pa.RecordBatchReader:
        from deltalake import QueryBuilder  # noqa: PLC0415 - an optional extra

        query = exp.select(*columns).from_(exp.to_table("of_table"))
        for condition in _conditions(chosen, groups):
            query = query.where(condition)
        builder = QueryBuilder().register("of_table", table)
        builder.execute("SET datafusion.execution.target_partitions = 1")  # the order of rows is that of the log
        return pa.RecordBatchReader.from_stream(builder.execute(query.sql(dialect="postgres")))

    def count(chosen: Sequence[FileGroup]) -> int:
        number = exp.alias_(exp.Count(this=exp.Star()), "n_rows")
        return int(rows([number], chosen).read_all()["n_rows"][0].as_py())

    return TableVersion(
        path,
        DELTA,
        table.version(),
        schema,
        groups,
        _hash(table.metadata().id, table.version(), added),
        lambda columns, chosen: rows([exp.column(column, quoted=True) for column in columns], chosen),
        count,
    )


def _conditions(chosen: Sequence[FileGroup], groups: Sequence[FileGroup]) -> Iterator[exp.Expr]:
    """Yield what holds for the rows of chosen groups, and for few of others: conditions on one column each."""
    for column, kind in groups[0].partition_types.items() if len(chosen) < len(groups) else ():
        values = dict.fromkeys(group.partitions[column] for group in chosen)
        if len(values) == len({group.partitions[column] for group in groups}):
            continue
        name, sql_type = exp.column(column, quoted=True), data_type(column_type(kind))
        texts = [exp.cast(exp.Literal.string(text), sql_type) for text in values if text is not None]
        cases = [exp.In(this=name, expressions=texts)] if texts else []
        yield exp.or_(*cases, *([exp.Is(this=name.copy(), expression=exp.null())] if None in values else []))


def _version_at(commits: Mapping[int, Callable[[], bytes]], timestamp: str, path: str, name: str) -> int:
    """The last version that was committed at a point in time, according to the commits themselves.

    The library goes by the times of the files of the log, which a copy changes.
    """
    milliseconds = _moment(timestamp).timestamp() * 1000
    for version in sorted(commits, reverse=True):
        actions = map(json.loads, commits[version]().splitlines())
        commit_info: dict[str, Any] = next((action["commitInfo"] for action in actions if "commitInfo" in action), {})
        committed = commit_info.get(_IN_COMMIT, commit_info.get("timestamp"))
        if committed is None:
            message = f"input {name}: the log of {path} does not say when its versions were committed"
            raise DataError(message, remedy="Name a version instead of timestamp.")
        if committed <= milliseconds:
            return version
    message = f"input {name}: {path} has no version that was there at {timestamp}"
    raise NoInputError(message, remedy="Check timestamp, which is in UTC unless it names a zone.")


def commits_of(files: Iterable[tuple[str, Callable[[], bytes]]]) -> dict[int, Callable[[], bytes]]:
    """Return what reads the commits of a log of Delta Lake, by version, of its files with their names."""
    return {int(match[1]): read for file, read in files if (match := _COMMIT.fullmatch(file))}


# Apache Iceberg, by the library pyiceberg, one data file after the other.


def iceberg_table(path: str, metadata: str, spec: Input, files: Any, *, name: str) -> TableVersion:  # noqa: ANN401
    """Return a snapshot of an Apache Iceberg table.

    Args:
        path: What the config names.
        metadata: Where its metadata file is.
        spec: What the config says about the input: `version`, the id of a snapshot, or `timestamp`.
        files: How pyiceberg is to read files; None: in its own way.
        name: Name of the input in messages.

    Raises:
        The errors of `table_at`.
    """
    try:
        from pyiceberg.exceptions import NotInstalledError  # noqa: PLC0415 - an optional extra
        from pyiceberg.table import StaticTable  # noqa: PLC0415
    except ImportError as error:
        raise _not_installed(ICEBERG, "pyiceberg", "iceberg", name=name) from error
    with _faults(path, ICEBERG, name):
        try:
            table = _table(StaticTable, metadata, files)
            snapshot = _snapshot(table, spec.version, spec.timestamp, path, name)
            number = None if snapshot is None else snapshot.snapshot_id
            is_asked = spec.version is not None or spec.timestamp is not None
            scan = table.scan(snapshot_id=number if is_asked else None)
            tasks = [] if snapshot is None else list(scan.plan_files())
            return _iceberg_version(table, scan, tasks, path, number, metadata, is_here=files is None, name=name)
        except NotInstalledError as error:
            raise _not_installed(ICEBERG, "pyiceberg", "iceberg", name=name) from error


def _iceberg_version(
    table: Any,  # noqa: ANN401 - classes of an extra
    scan: Any,  # noqa: ANN401
    tasks: Sequence[Any],
    path: str,
    number: int | None,
    metadata: str,
    *,
    is_here: bool,
    name: str,
) -> TableVersion:
    from pyiceberg.io.pyarrow import ArrowScan, schema_to_pyarrow  # noqa: PLC0415 - an optional extra

    if is_here:
        refuse_elsewhere(path, (task.file.file_path for task in tasks if "://" in task.file.file_path), name=name)
    schema = plain_schema(schema_to_pyarrow(scan.projection(), include_field_ids=False))
    by_path = {task.file.file_path: task for task in tasks}
    specs, columns = table.specs(), scan.projection()
    partitions = [(each.file.file_path, _partitions(specs[each.file.spec_id], each.file, columns)) for each in tasks]

    def batches(
        names: Sequence[str], chosen: Iterable[FileGroup], *, only_marked: bool = False
    ) -> Iterator[pa.RecordBatch]:
        projection = scan.select(*names).projection()
        arrow = ArrowScan(scan.table_metadata, scan.io, projection, scan.row_filter)
        for file in (file for group in chosen for file in group.files):
            if by_path[file].delete_files or not only_marked:
                yield from arrow.to_record_batches([by_path[file]])

    def count(chosen: Sequence[FileGroup]) -> int:
        unmarked = [by_path[file].file for group in chosen for file in group.files if not by_path[file].delete_files]
        marked = batches(schema.names[:1], chosen, only_marked=True)
        return int(sum(file.record_count for file in unmarked) + sum(batch.num_rows for batch in marked))

    digest = _hash(str(table.metadata.table_uuid), number, sorted(by_path))
    return TableVersion(path, ICEBERG, number, schema, _groups(partitions, schema), digest, batches, count, metadata)


def refuse_elsewhere(path: str, files: Iterable[str], *, name: str) -> None:
    """Refuse a table that lists files where they cannot be read; credentials in an address are not shown."""
    for file in files:
        shown = _CREDENTIALS.sub("//…@", file)
        message = f"input {name}: {path} lists files elsewhere, such as {shown}"
        raise DataError(message, remedy="Copy the whole table to one place, or read it where it is.")


def _table(kind: Any, metadata: str, files_of: Any) -> Any:  # noqa: ANN401 - classes of an extra
    """Return the table that a metadata file describes."""
    from pyiceberg.catalog.noop import NoopCatalog  # noqa: PLC0415 - an optional extra
    from pyiceberg.io import load_file_io  # noqa: PLC0415
    from pyiceberg.table.metadata import TableMetadataUtil  # noqa: PLC0415

    files = files_of or load_file_io(location=metadata)
    with files.new_input(metadata).open() as stream:
        content = stream.read()
    text = gzip.decompress(content) if content.startswith(_GZIP) else content
    described = TableMetadataUtil.parse_raw(text.decode())
    files = files_of or load_file_io(described.properties, location=metadata)
    return kind(("table", metadata), described, metadata, files, NoopCatalog("table"))


def latest_metadata(path: str, names: Sequence[str], files: Any, *, name: str) -> str:  # noqa: ANN401
    """Return where the metadata file of a table is that the version hint names, or that of the highest number.

    Raises:
        DataError: there is none, or two files have the highest number.
    """
    folder = f"{path}/{ICEBERG_FOLDER}"
    described = [file for file in names if file.endswith(ICEBERG_ENDINGS)]
    numbers = {file: int(match["number"]) for file in described if (match := _NUMBERED.fullmatch(file))}
    hinted = ""
    if ICEBERG_HINT in names:
        hint = f"{folder}/{ICEBERG_HINT}"
        content = Path(hint).read_bytes() if files is None else files.new_input(hint).open().read()
        hinted = content.decode(errors="replace").strip()
    if hinted and not hinted.isdigit():  # a name, with or without its ending
        latest = [file for file in described if file == hinted or file.startswith(f"{hinted}.")]
    else:
        highest = int(hinted) if hinted else max(numbers.values(), default=None)
        latest = sorted(file for file, number in numbers.items() if number == highest)
    if len(latest) == 1:
        return f"{folder}/{latest[0]}"
    shown = ", ".join(latest[:3]) or "none"
    message = f"input {name}: {path} is a table of {ICEBERG} with {len(latest)} files of its latest metadata: {shown}"
    raise DataError(message, remedy=f'Name the one that the catalog names: path = "{folder}/….metadata.json".')


def _snapshot(table: Any, version: int | None, timestamp: str | None, named: str, name: str) -> Any:  # noqa: ANN401
    """The snapshot that is asked for; None for a table without rows."""
    if timestamp is not None:
        snapshot = table.snapshot_as_of_timestamp(int(_moment(timestamp).timestamp() * 1000))
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


def _partitions(spec: Any, file: Any, columns: Any) -> dict[str, Any]:  # noqa: ANN401 - classes of an extra
    """Return the columns that partition a file by their own values, with these; not those of years or buckets."""
    from pyiceberg.types import DateType  # noqa: PLC0415 - an optional extra
    from pyiceberg.utils.datetime import days_to_date  # noqa: PLC0415

    fields = {field.field_id: field for field in columns.fields}
    partitions = {}
    for number, source in enumerate(spec.fields):
        column, value = fields.get(source.source_id), file.partition[number]
        if column is None or str(source.transform) != "identity":
            continue
        if isinstance(column.field_type, DateType):
            partitions[column.name] = days_to_date(value) if isinstance(value, int) else value
        elif str(column.field_type) in {"int", "long", "string", "boolean"}:
            partitions[column.name] = value
    return partitions
