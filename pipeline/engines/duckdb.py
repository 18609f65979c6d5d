"""DuckDB as an engine: a locked-down connection in memory, on a thread of its own, with errors in our words."""

from __future__ import annotations

import atexit
import glob
import os
import threading
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar

import duckdb
import sqlglot.expressions as exp

from ..base.dialect import FILE, all_rows, apart, column, number_of, render, table
from ..base.dialect import text as kept_text
from ..base.errors import (
    DataError,
    InvalidQueryError,
    PermissionDenied,
    ResourceError,
    ThresherError,
    UncomputableError,
    os_error_number,
    os_fault,
)
from ..base.interrupts import NOTES, NOTHING, Note
from .engine import MIB, UNREADABLE, QueryThread, Resources, default_limit, process_limit, scratch_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from concurrent.futures import Future
    from pathlib import Path
    from types import TracebackType

    import polars as pl
    import pyarrow as pa
    import pyarrow.parquet as pq

    from ..base.dialect import Partition
    from ..base.interrupts import StopRequest
    from .engine import Function, Settle

T = TypeVar("T")


# Queries of the rows of Parquet files, as DuckDB reads them.


_NUMBER = "file_index"


def patterns(files: Iterable[str]) -> list[str]:
    """Return the paths of files with wildcard characters that are taken literally."""
    return [glob.escape(file) for file in files]


def written_list(texts: Sequence[str | None]) -> exp.Expr:
    """Return a list of texts; None is NULL."""
    return exp.Array(expressions=[exp.null() if text is None else exp.Literal.string(text) for text in texts])


def hides_numbers(file: str) -> bool:
    """Whether a file has a column of the name by which DuckDB numbers files, which then stands for that column."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - rows that lie in memory do without

    return any(name.lower() == _NUMBER for name in pq.read_schema(file).names)


def files_query(paths: exp.Expr, *, located: bool, numbered: bool = True) -> exp.Select:
    """Return a query of the rows of Parquet files.

    DuckDB 2.0 reads only files whose names a filter lets through, and `file_index` would number those that are left. It
    does not filter by a name that is computed with that number before it has read rows.

    Args:
        paths: A list of their paths, in which wildcard characters have a meaning.
        located: As for `DuckDB.scan`.
        numbered: Whether files can be told by their numbers.
    """
    no_folders = exp.EQ(this=exp.column("hive_partitioning"), expression=exp.false())
    rows = exp.func("read_parquet", paths, no_folders, *_location(located=located))
    name = exp.Case().when(column(_NUMBER).is_(exp.null()).not_(), column("source_file"))
    names = [exp.alias_(name, "source_file")] if located and numbered else []
    return exp.select(exp.Star(replace=names)).from_(rows)


def one_by_one(
    files: Sequence[str], partitions: Sequence[Partition], numbers: Sequence[int] = (), *, located: bool
) -> exp.Query:
    """Return a query of the rows of files that cannot be told by their numbers: one scan of each.

    Args:
        files: Their paths.
        partitions: Columns to add, with their values in each file.
        numbers: The number of each file, in the column `FILE`; empty: none.
        located: As for `DuckDB.scan`.
    """
    queries = []
    for index, file in enumerate(files):
        rows = files_query(written_list(patterns([file])), located=located, numbered=False)
        number = [file_number(each) for each in numbers[index : index + 1]]
        queries.append(rows.select(*(each.constant(index) for each in partitions), *number))
    return queries[0] if len(queries) == 1 else exp.union(*queries, distinct=False)


def read_every_value(file: str) -> None:
    """Decode a file, in a connection of its own.

    Raises:
        duckdb.Error: it cannot be decoded.
    """
    with duckdb.connect(":memory:") as connection:
        read_every_value_through(connection, file)


def read_every_value_through(connection: duckdb.DuckDBPyConnection, file: str) -> None:
    """Decode a file; as `read_every_value`."""
    text = "SELECT max(hash(whole_row)) FROM read_parquet($file, hive_partitioning = false) AS whole_row"
    connection.execute(text, {"file": glob.escape(file)}).fetchall()  # a result left open would block the next one


def file_number(first: int, together: int | None = None) -> exp.Expr:
    """Return a select item of `files_query`, the column `FILE`: a number of the file that a row comes from.

    Args:
        first: The lowest number.
        together: How many files in a row have one number; None: all have the lowest, a key that costs nothing.
    """
    number: exp.Expr = exp.Literal.number(first)
    if together is not None:
        group = exp.IntDiv(this=column(_NUMBER), expression=exp.Literal.number(together))
        number = exp.Add(this=group, expression=number)
    return exp.alias_(exp.cast(number, "INT"), FILE, quoted=True)


def partition_column(partition: Partition, values: exp.Expr) -> exp.Expr:
    """Return a select item of `files_query`: the value of a partition in the file that a row comes from.

    Args:
        partition: The partition.
        values: The list of its values.
    """
    number = exp.Add(this=exp.cast(column(_NUMBER), "BIGINT"), expression=exp.Literal.number(1))
    return partition.typed(exp.func("list_extract", values, number))


def _location(*, located: bool) -> tuple[exp.Expr, ...]:
    if not located:
        return ()
    name = exp.EQ(this=exp.column("filename"), expression=exp.Literal.string("source_file"))
    return name, exp.EQ(this=exp.column("file_row_number"), expression=exp.true())


# Text in Parquet files that is not UTF-8: which columns hold it, and in how many rows.


REMEDY = "Decode its values with the encoding that they have before the file is written, or leave the file out."
_TEXTS = {"string", "large_string", "string_view"}
_MOST_SHOWN = 60


def broken_text(file: str) -> str | None:
    """Say which text columns of a Parquet file hold what is not UTF-8, in how many rows, and where first.

    Returns:
        None if all text is UTF-8, or if Arrow cannot read the file either.
    """
    import pyarrow as pa  # noqa: PLC0415 - the command line shows its help without it
    import pyarrow.parquet as pq  # noqa: PLC0415 - see above

    try:
        with pq.ParquetFile(file) as reader:
            names = [
                field.name
                for field in reader.schema_arrow
                if str(getattr(field.type, "value_type", field.type)) in _TEXTS
            ]
            columns = [words for name in names if (words := _broken_column(reader, name)) is not None]
    except (pa.ArrowException, OSError):
        return None
    return f"{file} holds text that is not UTF-8: {', '.join(columns)}" if columns else None


def _broken_column(reader: pq.ParquetFile, name: str) -> str | None:
    """A column with the number of its broken rows and the first of them; None if there is none."""
    numbered = enumerate(_texts(reader, name), start=1)
    broken = [(row, value) for row, value in numbered if not _is_utf8(value)]
    if not broken:
        return None
    row, value = broken[0]
    shown = repr(value if len(value) <= _MOST_SHOWN else value[:_MOST_SHOWN] + b"...")
    rows = f"{len(broken):,} row" + ("s" if len(broken) > 1 else "")
    return f"column {name!r} in {rows} (first at row {row:,}: {shown})"


def _texts(reader: pq.ParquetFile, name: str) -> Iterator[bytes]:
    import pyarrow as pa  # noqa: PLC0415 - see broken_text

    for batch in reader.iter_batches(columns=[name]):
        column = batch.column(0)
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        kind = pa.binary_view() if str(column.type) == "string_view" else pa.large_binary()
        yield from (value or b"" for value in column.cast(kind).to_pylist())


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


# Errors of DuckDB in our words.


_TOO_LARGE = "Arrow Appender: The maximum total string size"
_KINDS: dict[str, type[duckdb.Error]] = {
    "Out of Memory Error": duckdb.OutOfMemoryException,
    "Conversion Error": duckdb.ConversionException,
    "Out of Range Error": duckdb.OutOfRangeException,
    "Invalid Input Error": duckdb.InvalidInputException,
    "IO Error": duckdb.IOException,
}


def of_reader(error: OSError) -> Exception:
    """Return the error of DuckDB that Arrow, reading rows, has turned into one of the system; others as they are."""
    kind = _KINDS.get(str(error).partition(":")[0])
    return error if kind is None or error.errno is not None else kind(str(error))


def translated(error: duckdb.Error, text: str) -> ThresherError:
    """Return an error of DuckDB, raised by a query, as one of ours: it says what is at fault, and what to do."""
    reason = str(error).partition("Possible solutions:")[0].strip()  # they are settings of DuckDB's
    if isinstance(error, duckdb.OutOfMemoryException) or _TOO_LARGE in reason:
        return ResourceError(
            f"the engine ran out of memory or scratch space: {reason}",
            remedy="Raise memory or scratch_limit in [resources], or use fewer groups or thresholds.",
        )
    if isinstance(error, duckdb.IOException) and os_error_number(error) is not None:
        return os_fault(error, "reading the inputs, or writing scratch data")
    if isinstance(error, duckdb.PermissionException):
        return PermissionDenied(f"DuckDB may not do this: {reason}")
    return _fault_of_data(error, reason) or InvalidQueryError(reason, text)


def _fault_of_data(error: duckdb.Error, whole_reason: str) -> DataError | None:
    """Translate the error of a correct query that fails because of its input; return None for other errors."""
    reason = whole_reason.splitlines()[0].split(". Use ")[0]  # the rest shows our SQL, or settings to change
    if isinstance(error, duckdb.ConversionException | duckdb.OutOfRangeException):
        remedy = "Check the types of the columns that `where` compares, and the values of text that is cast."
        verb = "converted" if isinstance(error, duckdb.ConversionException) else "computed"
        return UncomputableError(f"a value cannot be {verb}", reason, remedy=remedy)
    if isinstance(error, duckdb.InvalidInputException | duckdb.SyntaxException):  # of a function, or of a file
        return UncomputableError("an input cannot be read", reason, remedy=UNREADABLE)
    if isinstance(error, duckdb.IOException):
        return DataError(f"an input cannot be read: {whole_reason}", remedy=UNREADABLE)
    return None


# DuckDB as an engine: a locked-down in-memory connection that reads the inputs and nothing else.


PERFECT_HASH_BITS = 20  # four blocks of cells
FEW_ROWS, BITS_OF_FEW = 100_000, 12  # a table of a million groups takes longer to make than few rows to be counted
BLOCK_ROWS = 1 << 20
_HANDED_OVER = "rows_handed_over"


class DuckDB:
    """A DuckDB connection for one run.

    Args:
        resources: Its limits.
        folders: The only folders it may read.
        stop: Checked while a query runs; a request to stop interrupts the query.
        progress: Called with the percentage done while a query runs; None if nobody watches.
        rows: Rows that it reads; None: it may be any number.
    """

    name = "duckdb"
    has_workers = False
    most_in_order: int | None = None  # what does not fit into memory goes to scratch

    def __init__(
        self,
        resources: Resources,
        folders: Iterable[Path],
        stop: StopRequest,
        progress: Callable[[float], None] | None = None,
        rows: int | None = None,
    ) -> None:
        names = {str(folder) for folder in folders}
        # a file is asked for by its escaped name, and found by its own: both must lie in an allowed folder
        allowed = sorted(names | {glob.escape(name) for name in names})
        bits = PERFECT_HASH_BITS if rows is None or rows > FEW_ROWS else BITS_OF_FEW
        self._connection = _connect(resources, allowed, bits, watched=progress is not None)
        watch = None if progress is None else lambda: progress(self._connection.query_progress())
        self._thread = QueryThread(stop, self._connection.interrupt, watch)
        self._files: dict[str, None] = {}
        self._lists: set[str] = set()

    @staticmethod
    def version() -> str:
        """Version of the library."""
        return str(duckdb.__version__)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection and end its thread; a query that does not stop is abandoned."""
        self._thread.close()
        if self._thread.is_abandoned:
            forget_databases()
        else:
            self._connection.close()
        NOTES.put(NOTHING)

    def scan(
        self, name: str, files: Sequence[str], partitions: Sequence[Partition] = (), *, located: bool = False
    ) -> None:
        """Register files with the same schema as a relation.

        Args:
            name: The relation.
            files: Absolute paths; wildcard characters in them are taken literally.
            partitions: Columns to add, with their values in each file.
            located: Add the columns `source_file` and `file_row_number`.
        """
        self.define(name, self._rows_of(name, files, partitions, located=located))

    def scan_numbered(
        self,
        name: str,
        files: Sequence[str],
        first: int,
        together: int = 1,
        *,
        partitions: Sequence[Partition] = (),
        located: bool = False,
    ) -> None:
        """Register files as `scan` does, with the column `FILE`: the number of the file that a row comes from.

        Args:
            name: The relation.
            files: Absolute paths.
            first: The lowest number.
            together: How many files in a row have one number.
            partitions: As for `scan`.
            located: As for `scan`.
        """
        numbers = [first + index // together for index in range(len(files))]
        number = file_number(first, together if numbers[-1] > first else None)
        self.define(name, self._rows_of(name, files, partitions, number, numbers, located=located))

    def _rows_of(
        self,
        name: str,
        files: Sequence[str],
        partitions: Sequence[Partition],
        number: exp.Expr | None = None,
        numbers: Sequence[int] = (),
        *,
        located: bool,
    ) -> exp.Query:
        """A query of the rows of the files of a relation.

        Args:
            name: The relation.
            files: Absolute paths.
            partitions: As for `scan`.
            number: A select item of the number of a row's file; None: it is not asked for.
            numbers: The same of each file.
            located: As for `scan`.
        """
        self._note_files(files)
        are_told_apart = located or partitions or numbers[:1] != numbers[-1:]
        if are_told_apart and hides_numbers(files[0]):
            return one_by_one(files, partitions, numbers, located=located)
        rows = files_query(self._variable(f"files_of_{name}", patterns(files)), located=located)
        values = [self._variable(f"partition_{index}_of_{name}", each.values) for index, each in enumerate(partitions)]
        return rows.select(*map(partition_column, partitions, values), *([] if number is None else [number]))

    def _note_files(self, files: Sequence[str]) -> None:
        self._files |= dict.fromkeys(files)
        NOTES.put(Note(tuple(self._files)))

    def _variable(self, name: str, texts: Sequence[str | None]) -> exp.Expr:
        """An expression for a list of texts: a variable.

        In the text of a view the names of 100,000 files take most of a gigabyte, and again in every view on it.
        """
        value = exp.EQ(this=exp.column(name, quoted=True), expression=exp.Placeholder(this="texts"))
        text = render(exp.Set(expressions=[exp.SetItem(this=value, kind="VARIABLE")]), copy=False)
        self._run(lambda: self._connection.execute(text, {"texts": list(texts)}), text)
        return exp.func("getvariable", exp.Literal.string(name))

    def hand_over(self, name: str, table: pa.Table) -> None:
        """Register a table that lies in memory as a relation; its rows are not copied."""
        self._run(lambda: self._connection.register(name, table), name)

    def define(self, name: str, query: exp.Query, *, keep: bool = False) -> None:
        """Give a query a name; with `keep` its rows are computed once and stored."""
        query = self._apart(query)
        kind, number = "TABLE" if keep else "VIEW", number_of(query)
        key = None if number is None else ("define", name, kind, number)
        text = kept_text(key, lambda: render(_temporary(exp.table_(name), query, kind), copy=False))
        self._run(lambda: self._connection.execute(text), text)

    def fetch(
        self,
        query: exp.Query,
        params: Mapping[str, float] | None = None,
        *,
        once: bool = False,  # noqa: ARG002 - all engines are called alike
    ) -> pl.DataFrame:
        """Run a query and return its rows.

        Raises:
            DataError: a file cannot be read, or a value cannot be converted.
            ResourceError: memory or scratch space is exhausted.
            Interrupted: a signal asked to stop.
        """
        text = render(self._apart(query))
        return self._run(lambda: self._fetched(text, params), text)

    def _apart(self, query: exp.Query) -> exp.Query:
        """Return a query that reads its long lists from tables, which are made when they are first met."""
        query, lists = apart(query)
        for name, values in lists.items():
            if name not in self._lists:
                rows = exp.select(exp.Star()).from_(exp.table_(_HANDED_OVER))
                text = render(_temporary(exp.table_(name), rows, "TABLE"))
                self._run(partial(self._take, table(values), text), text)
                self._lists.add(name)
        return query

    def _fetched(self, text: str, params: Mapping[str, float] | None) -> pl.DataFrame:
        """The rows of a statement."""
        import polars as pl  # noqa: PLC0415 - as in `stream`

        result = self._submitted(text, params)
        if result is None:
            frame: pl.DataFrame = self._connection.sql(text, params=dict(params or {})).pl()
            return frame
        return pl.DataFrame(pl.from_arrow(result.arrow_table(to_polars=True), rechunk=False))

    def _reader(self, text: str) -> pa.RecordBatchReader:
        """The rows of a statement, batch by batch."""
        result = self._submitted(text)
        return self._connection.sql(text).to_arrow_reader(BLOCK_ROWS) if result is None else result.arrow_reader()

    def _submitted(self, text: str, params: Mapping[str, float] | None = None) -> Any:  # noqa: ANN401 - it has no type
        """Run a statement once: a relation is bound when it is made, and again when its rows are asked for.

        What relations use themselves has no public name; None where it is missing, for them to do it.
        """
        submit = getattr(self._connection, "_submit", None)
        return None if submit is None else submit(text, dict(params) if params else None, "arrow", BLOCK_ROWS)

    def count(
        self,
        query: exp.Query,
        params: Mapping[str, float],
        settle: Settle,
        settled_by: str,  # noqa: ARG002 - all engines are called alike
    ) -> pl.DataFrame:
        """Run a query whose counts are settled: of all files together."""
        return settle(lambda other: self.fetch(other, params), self.fetch(query, params))

    def stream(self, query: exp.Query) -> Iterator[pl.DataFrame]:
        """Run a query and return its rows in blocks of `BLOCK_ROWS`, in order, the last one shorter.

        The next rows are read while the caller works on a block; the caller must not run another query before the end.

        Raises:
            The errors of `fetch`.
        """
        import polars as pl  # noqa: PLC0415 - only those who stream need it here

        text = render(self._apart(query))
        reader = self._run(lambda: self._reader(text), text)
        held: list[pl.DataFrame] = []
        ahead = self._thread.submit(lambda: _frames(reader, BLOCK_ROWS))
        while frames := self._result(ahead, text):
            ahead = self._thread.submit(lambda: _frames(reader, BLOCK_ROWS))
            pending = pl.concat([*held, *frames])
            while pending.height >= BLOCK_ROWS:
                yield pending[:BLOCK_ROWS]
                pending = pending[BLOCK_ROWS:]
            held = [pending]
        if held and held[0].height:
            yield held[0]

    def fill(self, name: str, frames: Iterable[pl.DataFrame]) -> None:
        """Create a relation from at least one frame, all with the same columns; rows beyond the limit go to scratch.

        Raises:
            The errors of `fetch`.
        """
        exists = False
        for frame in frames:
            text = kept_text(("fill", name, exists), partial(_filling, name, exists=exists))
            self._run(partial(self._take, frame.to_arrow(), text), text)
            exists = True

    def transform(
        self,
        name: str,
        reads: Mapping[str, exp.Query],  # noqa: ARG002 - all engines are called alike
        key: Sequence[str],  # noqa: ARG002
        function: Function,  # noqa: ARG002
        batches: Iterable[pl.DataFrame],
    ) -> None:
        """Create a relation that a pure function makes of rows that lie together by a key: from its batches."""
        self.fill(name, batches)

    def _take(self, rows: pa.Table, text: str) -> None:
        self._connection.register(_HANDED_OVER, rows)
        try:
            self._connection.execute(text)
        finally:
            self._connection.unregister(_HANDED_OVER)

    def bucket(self, keys: Sequence[str], count: int) -> exp.Expr:
        """Return an expression for a number from 0 to count - 1 that is the same for all rows with the same key."""
        digest = exp.func("hash", *(column(key) for key in keys))
        return exp.Mod(this=digest, expression=exp.Literal.number(count))

    def memory(self) -> int:
        """Return the memory limit of the connection in bytes."""
        return int(self._run(lambda: _memory_limit(self._connection), "memory_limit"))

    def _run(self, work: Callable[[], T], text: str) -> T:
        return self._result(self._thread.submit(work), text)

    def _result(self, future: Future[T], text: str) -> T:
        try:
            return self._thread.result(future)
        except duckdb.Error as error:
            if isinstance(error, duckdb.FatalException | duckdb.InternalException | duckdb.OutOfMemoryException):
                forget_databases()
            unclear = type(error) is duckdb.Error  # what the decoder of a page raises: it names no file
            broken = self._broken_file() if unclear or isinstance(error, duckdb.InvalidInputException) else None
            if broken is not None and (message := broken_text(broken)) is not None:
                raise DataError(message, remedy=REMEDY) from error
            if unclear or broken is not None:
                message = f"{broken or 'an input'} cannot be read: {str(error).strip()}"
                raise DataError(message, remedy=UNREADABLE) from error
            raise translated(error, text) from error

    def _broken_file(self) -> str | None:
        """Return the first file, in the order of the scans, that cannot be decoded, or None if all can."""
        for file in self._files:
            try:
                self._thread.run(partial(read_every_value_through, self._connection, file))
            except duckdb.Error:
                return file
        return None


def _frames(reader: pa.RecordBatchReader, rows: int) -> list[pl.DataFrame]:
    """Read the next frames until they have that many rows together; return an empty list at the end."""
    import polars as pl  # noqa: PLC0415 - as in `stream`

    frames: list[pl.DataFrame] = []
    try:
        while sum(frame.height for frame in frames) < rows and (batch := next(reader, None)) is not None:
            frames.append(pl.DataFrame(pl.from_arrow(batch)))
    except OSError as error:
        raise of_reader(error) from error
    return frames


def _filling(name: str, *, exists: bool) -> str:
    rows, table = all_rows(_HANDED_OVER), exp.table_(name)
    return render(exp.Insert(this=table, expression=rows.copy()) if exists else _temporary(table, rows, "TABLE"))


def _temporary(name: exp.Table, query: exp.Query, kind: str) -> exp.Create:
    properties = exp.Properties(expressions=[exp.TemporaryProperty()])
    return exp.Create(this=name.copy(), kind=kind, expression=query.copy(), replace=True, properties=properties)


_KEPT: dict[tuple[object, ...], duckdb.DuckDBPyConnection] = {}
_MOST_KEPT = 4
_KEEPING = threading.Lock()


def _connect(resources: Resources, folders: list[str], bits: int, *, watched: bool) -> duckdb.DuckDBPyConnection:
    """Return a connection of its own to a database of this process with these limits and folders.

    To start and lock a database takes longer than to count a few rows. Views, temporary tables and variables belong to
    a connection and vanish with it. Where somebody watches, the database is a new one: to tell its progress is set for
    one connection, before the database is locked.
    """
    scratch = str(scratch_folder(resources.scratch))
    if watched:
        return _database(resources, scratch, folders, bits, watched=True)
    free = process_limit() if resources.memory is None else None
    key = (resources, scratch, tuple(folders), bits, free)
    with _KEEPING:
        database = _KEPT.pop(key, None) or _database(resources, scratch, folders, bits)
        _KEPT[key] = database
        while len(_KEPT) > _MOST_KEPT:
            del _KEPT[next(iter(_KEPT))]
        return database.cursor()


def forget_databases() -> None:
    """Start a new database for the next connection, as after an error that may have broken one."""
    with _KEEPING:
        _KEPT.clear()


def _leave_databases() -> None:
    """Do the same in a forked process without ending the databases of its parent, whose threads it does not have."""
    global _KEPT, _KEEPING
    _LEFT.append(_KEPT)
    _KEPT, _KEEPING = {}, threading.Lock()


_LEFT: list[object] = []
atexit.register(forget_databases)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_databases)


def _database(
    resources: Resources, scratch: str, folders: list[str], bits: int, *, watched: bool = False
) -> duckdb.DuckDBPyConnection:
    config: dict[str, str | bool | int | float | list[str]] = {
        "temp_directory": scratch,
        "preserve_insertion_order": False,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "enable_external_file_cache": False,  # the system keeps what was read of files, within no limit of ours
        "python_enable_replacements": False,
        "perfect_ht_threshold": bits,
    }
    limits = {
        "memory_limit": resources.memory,
        "threads": resources.threads,
        "max_temp_directory_size": resources.scratch_limit,
    }
    config |= {key: value for key, value in limits.items() if value is not None}
    try:
        connection = duckdb.connect(":memory:", config=config)
        if resources.memory is None:
            connection.execute("SET memory_limit = $1", [f"{_default_memory(connection) // MIB}MiB"])
        set_progress(connection, watched=watched)
        if duckdb.__version__.startswith("1."):  # a join would push filters into frames that their scan cannot apply
            connection.execute("SET disabled_optimizers = 'join_filter_pushdown'")
        connection.execute("SET GLOBAL TimeZone = 'UTC'")
        connection.execute("SET allowed_directories = $1", [folders])
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
    except duckdb.Error as error:
        message = f"DuckDB cannot start with these resources: {error}"
        raise ResourceError(message, remedy="Check memory, threads and scratch in [resources].") from error
    return connection


def set_progress(connection: duckdb.DuckDBPyConnection, *, watched: bool) -> None:
    """Switch the progress of queries on or off; the connection never draws a bar itself.

    In a Jupyter kernel without ipywidgets DuckDB refuses every setting of its bar, and shows no bar.
    """
    with suppress(duckdb.InvalidInputException):
        connection.execute("SET enable_progress_bar = $1", [watched])
        connection.execute("SET enable_progress_bar_print = false")


def _default_memory(connection: duckdb.DuckDBPyConnection) -> int:
    return default_limit(_memory_limit(connection), process_limit())


def _memory_limit(connection: duckdb.DuckDBPyConnection) -> int:
    ((limit,),) = connection.execute("SELECT parse_formatted_bytes(current_setting('memory_limit'))").fetchall()
    return int(limit)
