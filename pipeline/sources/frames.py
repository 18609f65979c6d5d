"""Rows that are no files of the user's: frames, streams and tables of DuckDB files, in memory or spooled to Parquet."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import weakref
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import duckdb
import polars as pl
import pyarrow as pa
import sqlglot.expressions as exp

from ..base.dialect import render
from ..base.errors import BusyError, DataError, StorageError, ThresherError, os_error_number, os_fault
from ..base.records import dataclass
from .parquet_files import DataFile, open_file
from .types import MeansSomethingElse, RowsError, nothing, plain, unheld

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping


SPOOLED = "rows.parquet"
PRIVATE = 0o700
PREFIX = "thresher-rows-"


class TemporaryFolder:
    """A folder, made in another or where the system has its own, that is removed when nothing refers to this object."""

    def __init__(self, scratch: Path | None) -> None:
        if scratch is not None:
            scratch.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=scratch))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


def spooled(write: Callable[[Path], None], label: str, scratch: Path | None, *, name: str) -> DataFile:
    """Write rows to a Parquet file in a folder for temporary data, which is removed once nothing refers to it.

    `label` is what messages call the rows.

    Raises:
        DataError: a file that the rows come from is not there, or a Parquet file cannot hold the rows.
        StorageError: the folder is full.
        ThresherError: the operating system fails; by the number of its error.
    """
    with spooling(label, name=name):
        folder = TemporaryFolder(scratch)
        target = folder.path / SPOOLED
        write(target)
    return open_file(target, folder.path, name=name, label=label, holder=folder)


@contextmanager
def spooling(label: str, *, name: str) -> Iterator[None]:
    """Tell in one sentence why rows cannot be written to the folder for temporary data; errors as for `spooled`."""
    try:
        yield
    except FileNotFoundError as error:  # of what the rows come from: the folder is there
        message = f"input {name}: the rows of {label} cannot be read: {str(error).splitlines()[0]}"
        raise DataError(message, remedy="Check the paths that it reads.") from error
    except OSError as error:
        if os_error_number(error) is None:  # Arrow raises it of rows that it cannot hold, too
            reason = next(iter(str(error).splitlines()), type(error).__name__)
            message = f"input {name}: the rows of {label} cannot be read: {reason}"
            remedy = "Leave out the columns that are not needed, or give them other types."
            raise DataError(message, remedy=remedy) from error
        fault = os_fault(error, f"input {name}: writing the rows of {label} to the folder for temporary data")
        if isinstance(fault, StorageError):
            fault.remedy = "Free some space, or set resources.scratch to a larger folder."
        raise fault from error


_MOST_KINDS = 3
# what Arrow raises of values that it cannot hold; pandas raises ValueError where a name is there twice
_NOT_TAKEN = (pa.ArrowException, TypeError, ValueError, OverflowError)


def _table_of_pandas(content: Any) -> pa.Table:  # noqa: ANN401 - pandas need not be installed
    """The rows of a pandas frame, without its index.

    A column that Arrow cannot hold, such as one of values of several types, becomes `MeansSomethingElse`: it may stand
    beside those that are read. Sparse columns are read as what they stand for, and names may be there twice.
    """
    try:
        return pa.Table.from_pandas(content, preserve_index=False)
    except _NOT_TAKEN:
        columns = [_column(content.iloc[:, [number]]) for number in range(content.shape[1])]
        if not columns:
            raise
    fields = [column.schema.field(0) for column in columns]
    return pa.Table.from_arrays([column.column(0) for column in columns], schema=pa.schema(fields))


def _column(content: Any) -> pa.Table:  # noqa: ANN401 - a pandas frame
    values = content.iloc[:, 0]
    if hasattr(values.dtype, "fill_value") and hasattr(values, "sparse"):
        content = values.sparse.to_dense().to_frame()
    try:
        return pa.Table.from_pandas(content, preserve_index=False)
    except _NOT_TAKEN:
        kind = MeansSomethingElse(_words(values))
        return pa.table([nothing(kind, len(values))], schema=pa.schema([pa.field(str(content.columns[0]), kind)]))


def _words(values: Any) -> str:  # noqa: ANN401 - a pandas series
    """Its type, and of objects of several types the first row of each: `object (int from row 1, str from row 7)`."""
    if str(values.dtype) != "object":
        return str(values.dtype)
    firsts = list(islice(_firsts(values), _MOST_KINDS + 1))
    shown = ", ".join(f"{kind} from row {row:,}" for kind, row in firsts[:_MOST_KINDS])
    return f"object ({shown}{', …' if len(firsts) > _MOST_KINDS else ''})"


def _firsts(values: Any) -> Iterator[tuple[str, int]]:  # noqa: ANN401 - a pandas series
    seen = set()
    for row, (value, is_missing) in enumerate(zip(values, values.isna(), strict=True), start=1):
        kind = type(value).__name__
        if not is_missing and kind not in seen:
            seen.add(kind)
            yield kind, row


LOCATION = ("source_file", "file_row_number")
_KINDS = {"DataFrame", "LazyFrame", "Table", "RecordBatch", "RecordBatchReader", "DuckDBPyRelation"}
_ROWS_TOGETHER = 1 << 17
_OF_TABLES = "Give every column a name of its own and values of one type."
_OF_STREAMS = "Compute it by itself to see the whole message."
_readers_read: weakref.WeakSet[Any] = weakref.WeakSet()


class Frame:
    """A frame in the place of a path.

    Attributes:
        content: A Polars DataFrame or LazyFrame, a pandas DataFrame, an Arrow table, reader or dataset, a DuckDB
            relation, or anything with `__arrow_c_stream__`.
    """

    __slots__ = ("content",)

    def __init__(self, content: Any) -> None:  # noqa: ANN401 - any frame
        self.content = content

    @property
    def kind(self) -> str:
        """Its type, as people write it: `polars.DataFrame`."""
        kind = type(self.content)
        return f"{kind.__module__.partition('.')[0].lstrip('_')}.{kind.__name__}"


class Unpartitioned:
    """Rows none of whose columns comes from the name of a folder."""

    partitions: ClassVar[Mapping[str, str | None]] = {}
    partition_types: ClassVar[Mapping[str, pa.DataType]] = {}


@dataclass(frozen=True, eq=False)
class FrameRows(Unpartitioned):
    """The rows of a frame, in memory.

    Attributes:
        name: What messages and tables call it.
        table: Its rows.
        source: The frame itself, if its owner could change it in place; else None.
        opened_as: Hash of the rows when it was opened, if it could be changed; else empty.
        index: Names of the levels of its index, which are not read.
    """

    name: str
    table: pa.Table
    source: Frame | None = None
    opened_as: str = ""
    index: tuple[str, ...] = ()

    @property
    def identity(self) -> dict[str, int]:
        """Nothing but its content identifies it."""
        return {}

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self.table.num_rows)

    @property
    def schema(self) -> pa.Schema:
        """Columns and types."""
        return self.table.schema

    @cached_property
    def digest(self) -> str:
        """Hash of its rows."""
        return self.opened_as or _digest(self.table)

    def has_changed(self) -> bool:
        """Whether its owner has changed it since it was opened."""
        return self.source is not None and _digest(_table(self.source.content)) != self.opened_as

    def null_free(self, column: str) -> bool:
        """Whether a column has no NULL."""
        return column in self.schema.names and self.table[column].null_count == 0

    def bounds(self, column: str) -> tuple[float, float] | None:
        """Return the lowest and highest number of a column, a hint; None if it has none, or holds no numbers."""
        if self.schema.names.count(column) != 1:
            return None
        kind = self.schema.field(column).type
        is_number = (pa.types.is_integer, pa.types.is_float32, pa.types.is_float64, pa.types.is_decimal)
        if not any(each(kind) for each in is_number):
            return None
        import pyarrow.compute as pc  # noqa: PLC0415 - it takes its time to load

        limits = pc.min_max(self.table[column]).as_py()
        return None if limits["min"] is None else (float(limits["min"]), float(limits["max"]))

    def located(self) -> pa.Table:
        """Return its rows with the columns `source_file` and `file_row_number`, as scans of files have them."""
        import numpy as np  # noqa: PLC0415 - only for frames

        zeros = pa.array(np.zeros(self.rows, dtype=np.int32))
        file = pa.DictionaryArray.from_arrays(zeros, pa.array([self.name], pa.string())).dictionary_decode()
        numbers = pa.array(np.arange(self.rows, dtype=np.int64))
        return self.table.append_column(LOCATION[0], file).append_column(LOCATION[1], numbers)


def is_frame(value: object) -> bool:
    """Whether a value can be read as a frame; a class of frames is none."""
    if isinstance(value, type):
        return False
    if hasattr(value, "__arrow_c_stream__"):
        return True
    kinds = [kind for kind in type(value).__mro__ if kind.__module__.partition(".")[0] != "builtins"]
    names = {(kind.__module__.partition(".")[0].lstrip("_"), kind.__name__) for kind in kinds}
    libraries = {"polars", "pandas", "pyarrow", "duckdb"}
    return any(library in libraries and (kind in _KINDS or kind == "Dataset") for library, kind in names)


def open_frame(frame: Frame, label: str, scratch: Path | None, *, name: str) -> DataFile | FrameRows:
    """Make the rows of a frame readable, more than once and by several readers.

    A table that lies in memory is used as it is. The rows of a lazy frame, a reader, a dataset or a relation are
    written to a Parquet file in a folder for temporary data, in a stream, and removed when nothing refers to them.

    Raises:
        DataError: its rows cannot be computed, do not fit into Arrow columns, or have been read already and come once.
        StorageError: the folder for temporary data is full.
    """
    if isinstance(frame.content, pa.RecordBatchReader):
        if frame.content in _readers_read:  # its rows are gone, and it would look empty
            message = f"input {name}: {label} has been read already, and a reader yields its rows once"
            raise DataError(message, remedy="Pass a table instead: reader.read_all().")
        _readers_read.add(frame.content)
    remedy = _OF_TABLES
    try:
        table = _table(frame.content)
        if table is None:
            remedy, unheld_fields = _OF_STREAMS, list[pa.Field]()
            file = spooled(lambda path: unheld_fields.extend(_write(frame.content, path)), label, scratch, name=name)
            return replace(file, schema=pa.schema([*file.schema, *unheld_fields])) if unheld_fields else file
    except (ThresherError, OSError, MemoryError):
        raise
    except Exception as error:  # rows that stream are computed by code of their owner, which may raise anything
        remedy = error.remedy if isinstance(error, RowsError) else remedy
        lines = [line.strip() for argument in error.args for line in str(argument).splitlines()[:1]]
        message = f"input {name}: the rows of {label} cannot be read: {'; '.join(lines) or type(error).__name__}"
        raise DataError(message, remedy=remedy) from error
    if frame.kind.startswith("pandas"):
        index = tuple(str(level) for level in frame.content.index.names if level is not None)
        return FrameRows(label, table, frame, _digest(table), index=index)
    return FrameRows(label, table)


def _table(content: Any) -> pa.Table | None:  # noqa: ANN401 - any frame
    """The rows of a frame that lies in memory; None for one whose rows stream."""
    if type(content).__name__ == "Series":
        message = "it is a column, not a table"
        raise TypeError(message)
    if isinstance(content, pl.DataFrame):
        kinds = unheld(content.schema)
        held = content.drop(*kinds) if kinds else content
        table = plain(held.to_arrow(compat_level=pl.CompatLevel.oldest()))
        for number, name in enumerate(content.columns):
            if name in kinds:
                table = table.add_column(number, pa.field(name, kinds[name]), nothing(kinds[name], content.height))
        return table
    if isinstance(content, pa.RecordBatch):
        return plain(pa.Table.from_batches([content]))
    if isinstance(content, pa.Table):
        return plain(content)
    if type(content).__module__.partition(".")[0] == "pandas":
        return plain(_table_of_pandas(content))
    return None


def _write(content: Any, path: Path) -> list[pa.Field]:  # noqa: ANN401 - any frame
    """Write rows that stream to a Parquet file, and return the columns that it cannot hold."""
    if not isinstance(content, pl.LazyFrame):
        with _reader(content) as reader:  # that of a relation holds its connection until it is closed
            write_batches(reader.schema, _batches(reader), path)
        return []
    kinds = unheld(content.collect_schema())
    content.drop(*kinds).sink_parquet(path)
    return [pa.field(*item) for item in kinds.items()]


def write_batches(schema: pa.Schema, batches: Iterable[pa.RecordBatch], path: Path) -> None:
    """Write batches of rows in order to a Parquet file, small ones together, with the types that they have in a frame.

    Raises:
        RowsError: a column holds text that is not UTF-8.
    """
    import pyarrow.parquet as pq  # noqa: PLC0415 - only where rows are spooled

    n_written = 0
    with pq.ParquetWriter(path, plain(pa.Table.from_batches([], schema)).schema) as writer:
        for group in _groups(batches):
            writer.write_table(plain(pa.Table.from_batches(group, schema), start=n_written))
            n_written += sum(batch.num_rows for batch in group)


def _groups(batches: Iterable[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    """Yield batches in lists of some hundred thousand rows."""
    group: list[pa.RecordBatch] = []
    for batch in batches:
        group.append(batch)
        if sum(each.num_rows for each in group) >= _ROWS_TOGETHER:
            yield group
            group = []
    if group:
        yield group


def _batches(reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a stream; what its owner fails with is no fault of the file that they are written to."""
    while True:
        try:
            batch = reader.read_next_batch()
        except StopIteration:
            return
        except OSError as error:  # Arrow raises it of all streams
            if error.errno is not None:
                raise
            raise RowsError(str(error).splitlines()[0], remedy=_OF_STREAMS) from error
        yield batch


def _reader(content: Any) -> pa.RecordBatchReader:  # noqa: ANN401 - any frame

    if isinstance(content, pa.RecordBatchReader):
        return content
    if hasattr(content, "scanner"):  # a dataset
        return content.scanner().to_reader()
    if type(content).__name__ == "DuckDBPyRelation":
        return content.to_arrow_reader()
    return pa.RecordBatchReader.from_stream(content)


def _digest(table: pa.Table) -> str:

    digest = hashlib.sha256()
    with pa.ipc.new_stream(pa.PythonFile(_Hashing(digest), mode="w"), table.schema) as writer:
        writer.write_table(table)
    return digest.hexdigest()


class _Hashing:
    """A file that only hashes what is written to it."""

    closed = False

    def __init__(self, digest: Any) -> None:  # noqa: ANN401 - a hash object
        self._digest = digest

    def write(self, data: Any) -> int:  # noqa: ANN401 - bytes or a buffer
        self._digest.update(data)
        return len(data)

    def flush(self) -> None:
        """Do nothing: nothing is kept."""

    close = flush


def labelled(paths: tuple[str | Frame, ...], *, name: str) -> Iterator[tuple[Frame, str]]:
    """Yield the frames of an input, each with what messages call it.

    Raises:
        DataError: one is there twice.
    """
    frames = [path for path in paths if isinstance(path, Frame)]
    digits = len(str(len(frames)))  # rows are ordered by the names of their frames
    for number, frame in enumerate(frames, start=1):
        label = f"the {frame.kind}" + (f" ({number:0{digits}} of {len(frames)})" if len(frames) > 1 else "")
        if any(frame.content is earlier.content for earlier in frames[: number - 1]):
            message = f"input {name}: {label} is passed twice"
            raise DataError(message, remedy="Its rows would count twice: name it once.")
        yield frame, label


_LOCKED_UP: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": "false",
    "autoload_known_extensions": "false",
    "memory_limit": "1GB",
}
_TABLES = """
SELECT database_name, schema_name, table_name FROM duckdb_tables() WHERE NOT internal
UNION ALL SELECT database_name, schema_name, view_name FROM duckdb_views() WHERE NOT internal
ORDER BY ALL
"""
_MOST_TABLES = 10
_OTHER_FILE = "Name a file that has tables."


def write_rows(path: Path, table: str | None, target: Path, *, name: str) -> None:
    """Write the rows of a table or view of a DuckDB file to a Parquet file, in a stream; None: of its only one.

    A view may read what is in the file, and nothing else.

    Raises:
        DataError: the file is no whole database, has no such table, or its view cannot be computed.
        BusyError: another program writes to it.
    """
    log = path.with_name(f"{path.name}.wal")
    if log.exists() and log.stat().st_size:
        message = f"input {name}: {path} has changes that are only in {log.name} yet"
        raise BusyError(message, remedy="Close the program that writes to it, or run CHECKPOINT there.")
    try:
        with closing(duckdb.connect(path, read_only=True, config=_LOCKED_UP)) as connection:
            chosen = _chosen(path, table, connection.execute(_TABLES).fetchall(), name=name)
            try:
                reader = connection.sql(render(exp.select("*").from_(chosen))).to_arrow_reader()
                write_batches(reader.schema, reader, target)
            except duckdb.Error as error:
                message = f"input {name}: {table} of {path} cannot be read: {_reason(error)}"
                raise DataError(message, remedy="A view can read the tables of its own file alone.") from error
    except (duckdb.IOException, duckdb.ConnectionException) as error:
        if "lock" in str(error).lower() or isinstance(error, duckdb.ConnectionException):
            owner = "this process" if isinstance(error, duckdb.ConnectionException) else "another program"
            message = f"input {name}: {owner} has {path} open for writing"
            raise BusyError(message, remedy="Close it there, or name a copy of the file.") from error
        raise _no_database(path, error, name=name) from error


def tables_of(path: Path, name: str) -> list[str]:
    """Return the names of the tables and views of a DuckDB file, with their schema where it is not the usual one.

    Raises:
        DataError: it is no whole database, or has no table.
    """
    try:
        with closing(duckdb.connect(path, read_only=True, config=_LOCKED_UP)) as connection:
            tables = connection.execute(_TABLES).fetchall()
    except duckdb.Error as error:
        raise _no_database(path, error, name=name) from error
    if not tables:
        message = f"input {name}: {path} has no table"
        raise DataError(message, remedy=_OTHER_FILE)
    return _with_schemas(tables)


def _no_database(path: Path, error: duckdb.Error, *, name: str) -> DataError:
    message = f"input {name}: {path} cannot be read as a DuckDB file: {_reason(error)}"
    return DataError(message, remedy="Open it with the version of DuckDB that wrote it.")


def _with_schemas(tables: list[tuple[str, str, str]]) -> list[str]:
    return [table if schema == "main" else f"{schema}.{table}" for _, schema, table in tables]


def _chosen(path: Path, table: str | None, tables: list[tuple[str, str, str]], *, name: str) -> exp.Table:
    """Return the table that is meant, or refuse the file where there is none, or several."""
    fitting = [names for names in tables if table in {None, names[2], f"{names[1]}.{names[2]}"}]
    if len(fitting) == 1:
        database, schema, own_name = (exp.to_identifier(part, quoted=True) for part in fitting[0])
        return exp.Table(this=own_name, db=schema, catalog=database)
    shown = _with_schemas(tables)
    asked = f"no table {table!r}" if table and not fitting else "several tables" if tables else "no table"
    more = f" and {len(shown) - _MOST_TABLES:,} more" if len(shown) > _MOST_TABLES else ""
    message = f"input {name}: {path} has {asked}"
    names = f"It has {', '.join(shown[:_MOST_TABLES])}{more}: name one, table = …"
    raise DataError(message, remedy=names if shown else _OTHER_FILE)


def _reason(error: duckdb.Error) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
