"""Apache Spark as an engine: a session of our own that reads the inputs; only small results come back from it."""

from __future__ import annotations

import hashlib
import logging
import re
import uuid
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self, TypeVar

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import sqlglot.expressions as exp
from sqlglot.errors import UnsupportedError

from ..base import errors
from ..base.dialect import Description, column, render
from ..base.errors import (
    ConfigError,
    DataError,
    Interrupted,
    InvalidQueryError,
    NoInputError,
    ResourceError,
    ThresherError,
    UnavailableError,
    UncomputableError,
)
from ..base.records import dataclass
from .engine import UNREADABLE, QueryThread
from .spark_session import NANOSECONDS, SparkSettings, started_session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from types import ModuleType, TracebackType

    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from ..base.dialect import Partition
    from ..base.interrupts import StopRequest
    from .engine import Function, Place, Resources, Settle

T = TypeVar("T")
LOCATION = ("source_file", "file_row_number")
TABLE, PARQUET = "table", "parquet"
_FOLDER = "folder_"  # what the names of columns begin with that are dropped again
_IN_PATTERNS = re.compile(r"([{}\[\]*?\\,])")


class Spark:
    """A session of Spark for one stage.

    Args:
        settings: Where it runs, and with which options.
        resources: Limits, for a Spark that runs on this machine.
        stop: Checked while a query runs; a request to stop cancels the query.
        targets: What Spark reads itself: it is found before a relation of the stage can take its name.
    """

    name = "spark"
    has_workers = True

    def __init__(
        self, settings: SparkSettings, resources: Resources, stop: StopRequest, targets: Iterable[Place] = ()
    ) -> None:
        self._session = started_session(settings, resources)
        self._tag = f"thresher-{uuid.uuid4()}"
        self._thread = QueryThread(stop, lambda: self._session.interruptTag(self._tag))
        self._run(lambda: self._session.addTag(self._tag), "")
        self._kept: list[DataFrame] = []
        self._files: dict[str, None] = {}
        self.most_in_order: int | None = settings.driver_rows
        self._places: dict[tuple[str, str], str] = {}
        for target in targets:
            self._run(partial(self._find, target), target.target)

    @staticmethod
    def version() -> str:
        """Version of the library."""
        import pyspark  # noqa: PLC0415 - an optional extra

        return str(pyspark.__version__)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give back what was kept; Spark itself goes on for the next stage, and ends with the process."""
        self._thread.close()
        if not self._thread.is_abandoned:
            for frame in self._kept:
                frame.unpersist()

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
        self._files |= dict.fromkeys(files)
        schema = pq.read_schema(files[0])
        self._run(lambda: self._read(files, schema, partitions, located=located).createOrReplaceTempView(name), name)

    def _read(
        self, files: Sequence[str], schema: pa.Schema, partitions: Sequence[Partition], *, located: bool
    ) -> DataFrame:
        reader = self._session.read.schema(struct_of(schema)).option("recursiveFileLookup", "true")
        frame = reader.parquet(*[_IN_PATTERNS.sub(r"\\\1", file) for file in files])
        columns = [_timed(frame, field) for field in schema if field.name in frame.columns]
        rows = frame.select(*columns, *(_location(frame) if located or partitions else ()))
        if partitions:
            # add the values of partitions, which are looked up by the path of the file that a row comes
            # from
            sql = functions_of(rows)
            texts = {f"{_FOLDER}{number}": pa.array(each.values, pa.string()) for number, each in enumerate(partitions)}
            looked_up = self._session.createDataFrame(pa.table({_FOLDER: list(files)} | texts))
            joined = rows.join(sql.broadcast(looked_up), rows[LOCATION[0]] == looked_up[_FOLDER], "left")
            unknown = sql.raise_error(sql.concat(sql.lit("the folders are not known of "), sql.col(LOCATION[0])))
            is_unknown = looked_up[_FOLDER].isNull()
            with_texts = joined.withColumns(
                {text: sql.when(is_unknown, unknown).otherwise(looked_up[text]) for text in texts}
            )
            typed = [render(each.typed(column(text)), "spark") for each, text in zip(partitions, texts, strict=True)]
            rows = with_texts.selectExpr("*", *typed).drop(_FOLDER, *texts)
        return rows if located else rows.drop(*LOCATION)

    def _find(self, target: Place) -> None:
        """Name a relation with the columns of a table or an address, and with the place of each row."""
        frame, schema = frame_of(self._session, target.kind, target.target), target.schema
        columns = [_timed(frame, field) for field in schema if schema.names.count(field.name) == 1]
        if tells(frame, "file_path", "row_index"):
            columns += _location(frame)
        else:
            columns += made_places(frame, target.target, target.rows)
        name = self._places.setdefault((target.kind, target.target), f"place_{len(self._places)}")
        frame.select(*columns).createOrReplaceTempView(name)

    def scan_place(self, name: str, target: Place, *, located: bool = False) -> None:
        """Register a table, or files at an address, as a relation; see `ReadsPlaces.scan_place`."""

        def scan() -> None:
            frame = self._session.table(self._places[target.kind, target.target])
            (frame if located else frame.drop(*LOCATION)).createOrReplaceTempView(name)

        self._run(scan, target.target)

    def hand_over(self, name: str, table: pa.Table) -> None:
        """Register a table that lies in memory as a relation."""
        rows = sparkable(table)
        self._run(lambda: self._session.createDataFrame(rows).createOrReplaceTempView(name), name)

    def define(self, name: str, query: exp.Query, *, keep: bool = False) -> None:
        """Give a query a name; with `keep` its rows are computed once and kept by the workers."""
        text = _text(query)
        self._run(lambda: self._define(name, self._session.sql(text), keep=keep), text)

    def _define(self, name: str, frame: DataFrame, *, keep: bool) -> None:
        if keep:
            self._kept.append(frame.cache())
        frame.createOrReplaceTempView(name)

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
            ResourceError: memory or disk space is exhausted.
            Interrupted: a signal asked to stop.
        """
        text = _text(query)
        values = (
            {name: params[name] for name in dict.fromkeys(str(node.this) for node in query.find_all(exp.Placeholder))}
            if params
            else None
        )
        table = self._run(lambda: self._session.sql(text, args=values).toArrow(), text)
        return _with_unsigned(pl.DataFrame(pl.from_arrow(table)))

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
        """Run a query and return its rows in order; all of them are brought to this machine, up to a limit.

        Raises:
            DataError: there are more rows.
            ThresherError: the errors of `fetch`.
        """
        without_order = query.copy()
        without_order.set("order", None)
        n_rows = exp.alias_(exp.Count(this=exp.Star()), "n_rows")
        number = self.fetch(exp.select(n_rows).from_(without_order.subquery("rows_in_order"))).item()
        if self.most_in_order is not None and number > self.most_in_order:
            message = (
                f"a step needs {number:,} rows in order, which Spark would have to bring to this machine; the limit is "
                f"{self.most_in_order:,}"
            )
            raise DataError(message, remedy="Raise driver_rows in [spark], or leave out what needs this step.")
        yield self.fetch(query)

    def fill(self, name: str, frames: Iterable[pl.DataFrame]) -> None:
        """Create a relation from at least one frame, all with the same columns."""
        rows = pl.concat(list(frames))
        self.hand_over(name, rows.to_arrow(compat_level=pl.CompatLevel.oldest()))

    def transform(
        self,
        name: str,
        reads: Mapping[str, exp.Query],
        key: Sequence[str],
        function: Function,
        batches: Iterable[pl.DataFrame],  # noqa: ARG002 - all engines are called alike
    ) -> None:
        """Create a relation that a function makes of the rows of each key, on the workers; it is made once."""
        texts = {label: _text(query) for label, query in reads.items()}

        def made() -> None:
            frames = {label: self._session.sql(text) for label, text in texts.items()}
            self._define(name, by_key(frames, key, function), keep=True)

        self._run(made, "\n\n".join(texts.values()))

    def bucket(self, keys: Sequence[str], count: int) -> exp.Expr:
        """Return an expression for a number from 0 to count - 1 that is the same for all rows with the same key."""
        digest = exp.func("xxhash64", *(column(key) for key in keys))
        return exp.func("pmod", digest, exp.Literal.number(count))

    def memory(self) -> int:
        """Return how many bytes may be brought to this machine: nothing is put in order here beyond the limit."""
        return 0

    def _run(self, work: Callable[[], T], text: str) -> T:
        try:
            return self._thread.run(work)
        except (ThresherError, Interrupted):
            raise
        except Exception as error:  # pyspark, py4j and grpc have no class of errors in common
            raise translated(error, text) from error


def _text(query: exp.Query) -> str:
    """The text of a query.

    Raises:
        ConfigError: SQL of the user in it has no meaning, or another one, on Spark.
    """
    try:
        return render(query, "spark")
    except UnsupportedError as error:
        remedy = 'Compute the column beforehand, write it otherwise, or use engine = "duckdb".'
        raise ConfigError(str(error), remedy=remedy) from error


def _with_unsigned(frame: pl.DataFrame) -> pl.DataFrame:
    """Give whole numbers back the type that they have in files and Spark lacks: unsigned, of 64 bits."""
    unsigned = [name for name, dtype in frame.schema.items() if dtype == pl.Decimal(20, 0)]
    return frame.with_columns(pl.col(name).cast(pl.UInt64) for name in unsigned if (frame[name].min() or 0) >= 0)  # type: ignore[operator]


def _timed(frame: DataFrame, field: pa.Field) -> Column:
    """A column; nanoseconds become microseconds, the finest that Spark has."""
    sql = functions_of(frame)
    name = _quoted(field.name)
    if not is_nanoseconds(field.type):
        return frame[name]
    nearest = f"CASE WHEN {name} < 0 THEN -((500 - {name}) DIV 1000) ELSE ({name} + 500) DIV 1000 END"  # as DuckDB
    instant = sql.expr(f"timestamp_micros({nearest})")
    return (instant if field.type.tz else instant.cast("timestamp_ntz")).alias(field.name)


def _location(frame: DataFrame) -> tuple[Column, Column]:
    """The columns `source_file` and `file_row_number` of rows in files."""
    sql = functions_of(frame)
    address, index = sql.col("_metadata.file_path"), sql.col("_metadata.row_index")
    return _path_of(address, sql).alias("source_file"), index.alias("file_row_number")


def _path_of(address: Column, sql: ModuleType) -> Column:
    """The path of a file by its address, in which some characters are written as numbers."""
    no_space = sql.replace(sql.regexp_replace(address, "^file:/+", "/"), sql.lit("+"), sql.lit("%2B"))
    path: Column = sql.url_decode(no_space)
    return path


# Types of Arrow that Spark has, and what it has instead of the others.


_OTHERS = {  # what values of a type that Spark lacks are handed over as
    "null": pa.string(),
    "large_string": pa.string(),
    "string_view": pa.string(),
    "large_binary": pa.binary(),
    "binary_view": pa.binary(),
    "halffloat": pa.float32(),
    "uint8": pa.int16(),
    "uint16": pa.int32(),
    "uint32": pa.int64(),
    "uint64": pa.decimal128(20, 0),
}
_READ = {"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float", "double", "bool", "string"}
_READ |= {"large_string", "string_view", "binary", "large_binary", "date32[day]"}


def struct_of(schema: pa.Schema) -> StructType:
    """Return the columns of files that Spark can read, for a scan; the others are left out.

    Timestamps of nanoseconds, which Spark has not, are whole numbers of nanoseconds.
    """
    from pyspark.sql.pandas.types import from_arrow_type  # noqa: PLC0415 - an optional extra
    from pyspark.sql.types import StructType  # noqa: PLC0415

    struct = StructType()
    for field in schema:
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        is_decimal = pa.types.is_decimal(kind) and kind.precision <= 38  # noqa: PLR2004 - the widest of Spark
        if str(kind) in _READ or is_decimal or pa.types.is_timestamp(kind):
            read_as = pa.int64() if is_nanoseconds(kind) else _OTHERS.get(str(kind), kind)
            struct = struct.add(field.name, from_arrow_type(read_as, prefer_timestamp_ntz=True))
    return struct


def functions_of(frame: DataFrame) -> ModuleType:
    """Return the module of column functions that a frame needs: of Spark Connect, or of Spark in this process."""
    is_remote = type(frame).__module__.startswith("pyspark.sql.connect")
    return import_module("pyspark.sql.connect.functions" if is_remote else "pyspark.sql.functions")


def is_nanoseconds(arrow: pa.DataType) -> bool:
    """Whether values are timestamps that Spark reads as whole numbers."""
    return bool(pa.types.is_timestamp(arrow) and arrow.unit == "ns")


def sparkable(table: pa.Table) -> pa.Table:
    """Return a table with the types that Spark has, every value the same; nanoseconds are rounded, as DuckDB does."""
    columns = {}
    for field, values in zip(table.schema, table.columns, strict=True):
        columns[field.name] = _converted(values, field.type)
    return pa.table(columns)


def _converted(values: pa.ChunkedArray, arrow: pa.DataType) -> pa.ChunkedArray:
    if pa.types.is_dictionary(arrow):
        return _converted(values.cast(arrow.value_type), arrow.value_type)
    if is_nanoseconds(arrow):
        return _microseconds(values).cast(pa.timestamp("us", tz=arrow.tz))
    if pa.types.is_timestamp(arrow):
        return values.cast(pa.timestamp("us", tz=arrow.tz))
    other = _OTHERS.get(str(arrow))
    return values if other is None else values.cast(other)


def _microseconds(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """The nearest number of microseconds; halves away from zero."""
    number = values.cast(pa.int64())
    below = pc.negate(pc.divide(pc.subtract(500, number), 1000))
    return pc.if_else(pc.less(number, 0), below, pc.divide(pc.add(number, 500), 1000))


# What Spark reads itself: tables and views that it knows by name, and Parquet files at addresses that it reaches.


_LOGS = {"_delta_log/*": "Delta Lake", ".hoodie/*": "Apache Hudi", "metadata/*.metadata.json": "Apache Iceberg"}
_WILD = re.compile(r"[*?\[{]")
_FILE_FACTS = ("file_path", "file_size", "file_modification_time")


def looks(settings: SparkSettings, resources: Resources) -> Callable[..., Description]:
    """Return a function that describes what Spark reads itself; Spark is started when it is first called.

    Args:
        settings: Where Spark runs.
        resources: Limits, for a Spark that runs on this machine.
    """
    sessions: list[SparkSession] = []

    def look(kind: str, target: str, *, name: str) -> Description:
        if not sessions:
            sessions.append(started_session(settings, resources))
        return described(sessions[0], kind, target, name=name)

    return look


def described(session: SparkSession, kind: str, target: str, *, name: str) -> Description:
    """Describe a table or the files at an address: no more is read than schemas and footers, unless it is a view.

    Args:
        session: The session that knows it.
        kind: `table` or `parquet`.
        target: Name of the table or view, or an address, in which `*`, `?`, `[…]` and `{…}` are patterns.
        name: Name of the input in messages.

    Raises:
        NoInputError: there is no such table, or nothing at the address.
        ConfigError: it is no name of a table, or Spark knows no such store.
        DataError: the files have different types, or belong to a table format.
        UnavailableError: the store does not answer.
    """
    logging.getLogger("DataFrameQueryContextLogger").setLevel(logging.CRITICAL + 1)  # it repeats every error on stderr
    has_nanoseconds = False
    try:
        if kind == PARQUET:
            _refuse_table_formats(session, target, name=name)
            has_nanoseconds = _has_nanoseconds(session, target)
        frame = frame_of(session, kind, target)
        schema, unreadable = arrow_schema(frame.schema, has_nanoseconds=has_nanoseconds)
        rows, identity, files = _counted(frame)
    except ThresherError:
        raise
    except Exception as error:  # pyspark, py4j and grpc have no class of errors in common
        raise fault_of(error, kind, target, name=name) from error
    return Description(schema, unreadable, rows, tells(frame, "file_path", "row_index"), identity, files)


def arrow_schema(struct: StructType, *, has_nanoseconds: bool) -> tuple[pa.Schema, dict[str, str]]:
    """Return columns of Spark with their Arrow types, null for those that Arrow has no type for, which stand beside."""
    from pyspark.errors import PySparkException  # noqa: PLC0415 - an optional extra
    from pyspark.sql.pandas.types import to_arrow_type  # noqa: PLC0415

    fields, unreadable = [], {}
    for field in struct.fields:
        try:
            kind = to_arrow_type(field.dataType, timezone="UTC")
        except PySparkException:
            kind, unreadable[field.name] = pa.null(), field.dataType.simpleString()
        if has_nanoseconds and pa.types.is_int64(kind):
            kind, unreadable[field.name] = (
                pa.null(),
                "a whole number, or a time in nanoseconds: Spark does not say which",
            )
        fields.append(pa.field(field.name, kind))
    return pa.schema(fields), unreadable


def _has_nanoseconds(session: SparkSession, target: str) -> bool:
    """Whether a column of the files holds timestamps of nanoseconds, which Spark takes for whole numbers."""
    session.conf.set(NANOSECONDS, "false")
    try:
        return not frame_of(session, PARQUET, target).schema  # on Spark Connect nothing is looked at before
    except Exception as error:
        if "INT64 (TIMESTAMP(NANOS" in str(error):
            return True
        raise
    finally:
        session.conf.set(NANOSECONDS, "true")


def frame_of(session: SparkSession, kind: str, target: str) -> DataFrame:
    """Return the rows of a table, or of the Parquet files at an address, which must have types that go together."""
    if kind == TABLE:
        return session.table(target)
    reader = session.read.option("mergeSchema", "true")
    if (wild := _WILD.search(target)) is not None:  # names of folders are columns from there on, as without pattern
        reader = reader.option("basePath", target[: target.rindex("/", 0, wild.start()) + 1])
    return reader.parquet(target)


def tells(frame: DataFrame, *facts: str) -> bool:
    """Whether Spark tells facts of the file of every row: `file_path`, `row_index`."""
    try:
        return bool(frame.select(*(f"_metadata.{fact}" for fact in facts)).schema.names)
    except Exception:  # noqa: BLE001 - classic and Connect sessions have different errors
        return False


def made_places(frame: DataFrame, target: str, rows: int) -> tuple[Column, Column]:
    """Return columns in the place of `source_file` and `file_row_number` for rows without a place.

    The number is made from the values of a row, and is below the number of rows, so that the lowest numbers are a
    sample, the same in every run.
    """
    sql = functions_of(frame)
    hashable = [column for column, kind in frame.dtypes if not kind.startswith(("map", "array", "struct", "variant"))]
    names = [_quoted(column) for column in hashable if hashable.count(column) == 1]
    digest = sql.xxhash64(*names) if names else sql.lit(0)
    number = sql.pmod(digest, sql.lit(max(rows, 1)).cast("bigint"))
    return sql.lit(target).alias("source_file"), number.alias("file_row_number")


def _counted(frame: DataFrame) -> tuple[int, dict[str, Any], tuple[str, ...]]:
    """Count the rows, of every file if Spark tells the files."""
    sql = functions_of(frame)
    if not tells(frame, *_FILE_FACTS):
        return frame.count(), {}, ()
    of_rows = frame.select(*(sql.col(f"_metadata.{fact}").alias(fact) for fact in _FILE_FACTS))
    files = of_rows.groupBy(*_FILE_FACTS).agg(sql.count("*").alias("rows")).toArrow().to_pylist()
    files.sort(key=lambda file: file["file_path"])
    lines = (repr((*(file[fact] for fact in _FILE_FACTS), file["rows"])) for file in files)
    identity: dict[str, Any] = {
        "n_files": len(files),
        "size": sum(file["file_size"] for file in files),
        "files_sha256": hashlib.sha256("\n".join(lines).encode()).hexdigest(),
    }
    if files:
        latest: datetime = max(file["file_modification_time"] for file in files)
        identity["modified_at"] = latest.astimezone(UTC).isoformat()
    return sum(file["rows"] for file in files), identity, tuple(file["file_path"] for file in files)


def _refuse_table_formats(session: SparkSession, target: str, *, name: str) -> None:
    wild = _WILD.search(target)
    folder = target.rstrip("/") if wild is None else target[: target.rindex("/", 0, wild.start())]
    for log, kind in _LOGS.items():
        if _exists(session, f"{folder}/{log}"):
            message = f"input {name}: {folder} is a table of {kind}, whose log decides which files count"
            short = kind.split()[-1].lower() if kind != "Delta Lake" else "delta"
            remedy = f'Name it as a table: table = "{short}.`{folder}`", or by its name in a catalog of Spark.'
            raise DataError(message, remedy=remedy)


def _exists(session: SparkSession, pattern: str) -> bool:
    try:
        return bool(session.read.text(pattern).schema.names)
    except Exception as error:
        if "PATH_NOT_FOUND" in str(error):
            return False
        raise


# Pure functions over rows that Spark brings together by a key, on its workers. Rows of several queries travel as one
# relation: its key columns, the number of the query, and for every query a struct of its columns, which is NULL in the
# rows of the others.


NUMBER = "number_of_query"


def by_key(frames: Mapping[str, DataFrame], key: Sequence[str], function: Function) -> DataFrame:
    """Return the rows that a function makes of all rows of each key, as a relation that is made when it is read.

    Args:
        frames: The rows it needs, by name; each has the columns of the key.
        key: Columns; rows with the same values stay together.
        function: As `Engine.transform` has it.
    """
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415 - an optional extra

    tagged = [_tagged(frame, number, list(frames.values()), key) for number, frame in enumerate(frames.values())]
    rows = tagged[0]
    for other in tagged[1:]:
        rows = rows.unionAll(other)
    keys = [f"key_{number}" for number in range(len(key))]
    rows = rows.repartition(*keys)
    made_of_nothing = _made({name: frame.limit(0).toArrow() for name, frame in frames.items()}, function)
    schema = pa.schema([field.with_nullable(True) for field in made_of_nothing.schema])
    struct = from_arrow_schema(schema, prefer_timestamp_ntz=True)
    return rows.mapInArrow(partial(_on_worker, names=tuple(frames), function=function, schema=schema), struct)


def _tagged(frame: DataFrame, number: int, frames: Sequence[DataFrame], key: Sequence[str]) -> DataFrame:
    from pyspark.sql.types import StructType  # noqa: PLC0415 - an optional extra

    sql = functions_of(frame)
    keys = [frame[_quoted(name)].alias(f"key_{position}") for position, name in enumerate(key)]
    structs = [
        sql.struct(*[frame[_quoted(name)] for name in frame.columns]).alias(f"rows_{position}")
        if position == number
        else sql.lit(None).cast(StructType(other.schema.fields)).alias(f"rows_{position}")
        for position, other in enumerate(frames)
    ]
    return frame.select(*keys, sql.lit(number).alias(NUMBER), *structs)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _on_worker(
    batches: Iterator[pa.RecordBatch], *, names: Sequence[str], function: Function, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Call the function with all rows of one part."""
    held = list(batches)
    if not held:
        return
    rows = pa.Table.from_batches(held)
    tables = {}
    for number, name in enumerate(names):
        of_query = rows.filter(pc.equal(rows[NUMBER], number))[f"rows_{number}"].combine_chunks()
        tables[name] = pa.Table.from_struct_array(of_query)
    yield from _made(tables, function).cast(schema).to_batches()


def _made(tables: Mapping[str, pa.Table], function: Function) -> pa.Table:
    frames = {name: pl.DataFrame(pl.from_arrow(table)) for name, table in tables.items()}
    return sparkable(function(frames).to_arrow(compat_level=pl.CompatLevel.oldest()))


# Errors of Spark in our words: while a query runs, and while it looks at a table or an address.


_CONDITION = re.compile(r"\[(?P<name>[A-Z][A-Z0-9_.]+)\]\s*(?P<reason>.*?) SQLSTATE: (?P<state>\w{5})", re.DOTALL)
_OF_VALUES, _OF_SQL = "22", "42"  # classes of SQLSTATE (ISO/IEC 9075): data exception; syntax error or access rule
_OF_FILES = ("FAILED_READ_FILE", "CANNOT_READ_FILE", "PATH_NOT_FOUND", "PARQUET_", "UNABLE_TO_INFER", "FILE_NOT_EXIST")
_OF_MEMORY = ("OutOfMemoryError", "MemoryError", "maxResultSize")
_OURS = re.compile(
    rf"^{re.escape(errors.__name__)}\.(?P<kind>\w+): (?P<text>.*?)(?=^\s*SQLSTATE|^\s+at |\Z)", re.MULTILINE | re.DOTALL
)
_RAISED = re.compile(r"^[\w.]+(Error|Exception|Interrupt): .+$", re.MULTILINE)


def translated(error: Exception, text: str) -> ThresherError:
    """Return an error that Spark raised for a query as one of ours: it says what is at fault, and what to do."""
    message = str(error)
    if "from the Python worker" in message:
        return _of_worker(message)
    conditions = list(_conditions(message))
    return _of_conditions(conditions, text) or _of_process(error, message) or InvalidQueryError(message.strip(), text)


@dataclass(frozen=True)
class _Condition:
    """A named condition of an error: what is said of it, and its SQLSTATE."""

    name: str
    reason: str
    state: str


def _conditions(message: str) -> Iterator[_Condition]:
    for match in _CONDITION.finditer(message):
        yield _Condition(match["name"], " ".join(match["reason"].split()), match["state"])


def _of_conditions(conditions: list[_Condition], text: str) -> ThresherError | None:
    """Values are at fault before files, and files before SQL: a broken value is told as a file that cannot be read."""
    for condition in conditions:
        if condition.state.startswith(_OF_VALUES):
            remedy = "Check the types of the columns that `where` compares, and the values of text that is cast."
            reason = condition.reason.partition(" Use `")[0].partition(" If necessary set ")[0]
            return UncomputableError("a value cannot be computed", reason, remedy=remedy)
    for condition in conditions:
        if condition.name.startswith(_OF_FILES):
            return DataError(f"an input cannot be read: {condition.reason}", remedy=UNREADABLE)
        if condition.state.startswith(_OF_SQL):
            return InvalidQueryError(condition.reason, text)
    return None


def _of_process(error: Exception, message: str) -> ThresherError | None:
    if any(word in message for word in _OF_MEMORY):
        remedy = "Raise memory in [resources], or spark.driver.memory and spark.executor.memory in [spark] options."
        return ResourceError(f"Spark ran out of memory: {_first_line(message)}", remedy=remedy)
    if "No space left on device" in message:
        return ResourceError("Spark ran out of disk space for its scratch data", remedy="Free space, or set scratch.")
    if type(error).__module__.startswith(("py4j", "grpc")) or "Connection refused" in message:
        return UnavailableError(f"Spark does not answer: {_first_line(message)}", remedy="Run again.")
    return None


def _of_worker(message: str) -> ThresherError:
    """Return the error of a pure function on a worker: one of ours as it is, another as a fault of the worker."""
    if (ours := _OURS.search(message)) is not None:
        kind: type[ThresherError] = getattr(errors, ours["kind"], DataError)
        text, _, remedy = ours["text"].strip().partition("\n")
        return kind(text, remedy=remedy or None)
    reason = next((match[0] for match in reversed(list(_RAISED.finditer(message)))), "no reason is given")
    remedy = "thresher and what it needs must be installed in the Python of the workers."
    return UnavailableError(f"a worker of Spark failed: {reason}", remedy=remedy)


def _first_line(message: str) -> str:
    return next((line.strip() for line in message.splitlines() if line.strip()), "no reason is given")


_NO_TABLE = ("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND", "CATALOG_NOT_FOUND", "REQUIRES_SINGLE_PART_NAMESPACE")
_NO_NAME = ("PARSE_", "INVALID_IDENTIFIER", "IDENTIFIER_TOO_MANY")
_NO_STORE = re.compile(r'No FileSystem for scheme "(?P<scheme>[^"]+)"|Class (?P<library>[\w.$]+FileSystem) not found')
_NOT_MERGED = re.compile(
    r'Initial schema:\s*"(?P<one>.*?)"\s*Schema that cannot be merged[^"]*"(?P<other>.*?)"', re.DOTALL
)


def fault_of(error: Exception, kind: str, target: str, *, name: str) -> ThresherError:
    """Return what went wrong in looking at a table or an address as one of our errors."""
    text = str(error)
    told = _of_table(text, kind, target) or _of_address(text, target) or _of_types(text, target)
    if told is None:
        told = translated(error, target)
        if isinstance(told, InvalidQueryError):
            reason = re.sub(r"^\[[A-Z_.]+\]\s*", "", told.reason)
            told = UnavailableError(f"Spark cannot look at {target}: {reason}", remedy="Check that Spark reads it.")
    error_class = DataError if isinstance(told, UncomputableError) else type(told)
    return error_class(f"input {name}: {told.message}", remedy=told.remedy)


def _of_table(text: str, kind: str, target: str) -> ThresherError | None:
    if any(f"[{condition}" in text for condition in _NO_TABLE):
        remedy = (
            "Write catalog.schema.table. A temporary view is known in this process only, on the Spark that it joins."
        )
        return NoInputError(f"Spark knows no table or view {target}", remedy=remedy)
    if kind == "table" and any(f"[{condition}" in text for condition in _NO_NAME):
        remedy = "Write catalog.schema.table, with backquotes around a name that is no word."
        return ConfigError(f"table = {target!r} is not the name of a table", remedy=remedy)
    return None


def _of_address(text: str, target: str) -> ThresherError | None:
    if "[PATH_NOT_FOUND]" in text:
        return NoInputError(f"Spark finds nothing at {target}", remedy="Check the address.")
    if "[UNABLE_TO_INFER_SCHEMA]" in text:
        return NoInputError(f"Spark finds no Parquet file at {target}", remedy="Check the address.")
    store = _NO_STORE.search(text)
    if store is None:
        return None
    lacks = f"no file system for {store['scheme']}://" if store["scheme"] else f"not the class {store['library']}"
    remedy = "Give Spark the package of the store, spark.jars.packages in [spark] options; Hadoop writes s3a://."
    return ConfigError(f"Spark has {lacks}, which {target} needs", remedy=remedy)


def _of_types(text: str, target: str) -> ThresherError | None:
    types = _NOT_MERGED.search(text)
    if types is None:
        return None
    message = f"the files at {target} have different types: {types['one']} and {types['other']}"
    return DataError(message, remedy="Give every column one type everywhere, or name files of one schema.")
