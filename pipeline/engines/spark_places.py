"""Types of Arrow that Spark has, and what it has instead of the others."""

from __future__ import annotations

import hashlib
import logging
import re
from dataclasses import field
from datetime import UTC, datetime
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import DataError, ThresherError
from ..records import dataclass
from .spark_faults import fault_of
from .spark_session import started_session

if TYPE_CHECKING:
    from types import ModuleType

    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

    from .duckdb import Resources
    from .spark_session import SparkSettings


_PLAIN = {
    "bool": "boolean",
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "uint8": "smallint",
    "uint16": "int",
    "uint32": "bigint",
    "uint64": "decimal(20, 0)",
    "float": "float",
    "double": "double",
    "string": "string",
    "large_string": "string",
    "string_view": "string",
    "binary": "binary",
    "large_binary": "binary",
    "date32[day]": "date",
}
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


def type_name(arrow: pa.DataType) -> str | None:
    """Return the Spark type that values of an Arrow type are read as from Parquet; None if Spark cannot read them.

    Timestamps of nanoseconds, which Spark has not, are whole numbers of nanoseconds.
    """
    if pa.types.is_dictionary(arrow):
        arrow = arrow.value_type
    if pa.types.is_decimal(arrow) and arrow.precision <= 38:  # noqa: PLR2004 - the widest of Spark
        return f"decimal({arrow.precision}, {arrow.scale})"
    if pa.types.is_timestamp(arrow):
        return "bigint" if arrow.unit == "ns" else ("timestamp_ntz" if arrow.tz is None else "timestamp")
    return _PLAIN.get(str(arrow))


def struct_of(schema: pa.Schema) -> StructType:
    """Return the columns of files that Spark can read, for a scan; the others are left out."""
    from pyspark.sql.types import StructType  # noqa: PLC0415 - an optional extra

    struct = StructType()
    for column in schema:
        if (name := type_name(column.type)) is not None:
            struct = struct.add(column.name, _parsed(name))
    return struct


def _parsed(name: str) -> DataType:
    """The type of a name, made here: Spark would ask a process in Java, which a session of Spark Connect lacks."""
    from pyspark.sql import types  # noqa: PLC0415 - an optional extra

    if name.startswith("decimal"):
        precision, scale = name.removeprefix("decimal(").removesuffix(")").split(",")
        return types.DecimalType(int(precision), int(scale))
    kinds: dict[str, DataType] = {
        "boolean": types.BooleanType(),
        "tinyint": types.ByteType(),
        "smallint": types.ShortType(),
        "int": types.IntegerType(),
        "bigint": types.LongType(),
        "float": types.FloatType(),
        "double": types.DoubleType(),
        "string": types.StringType(),
        "binary": types.BinaryType(),
        "date": types.DateType(),
        "timestamp": types.TimestampType(),
        "timestamp_ntz": types.TimestampNTZType(),
    }
    return kinds[name]


def functions_of(frame: DataFrame) -> ModuleType:
    """Return the functions of columns that go with a frame: those of Spark Connect, or those of a Spark in Java."""
    is_remote = type(frame).__module__.startswith("pyspark.sql.connect")
    return import_module("pyspark.sql.connect.functions" if is_remote else "pyspark.sql.functions")


def is_nanoseconds(arrow: pa.DataType) -> bool:
    """Whether values are timestamps that Spark reads as whole numbers."""
    return bool(pa.types.is_timestamp(arrow) and arrow.unit == "ns")


def sparkable(table: pa.Table) -> pa.Table:
    """Return a table with the types that Spark has, every value the same; nanoseconds are rounded, as DuckDB does."""
    columns = {}
    for column, values in zip(table.schema, table.columns, strict=True):
        columns[column.name] = _converted(values, column.type)
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


TABLE, PARQUET = "table", "parquet"
_LOGS = {"_delta_log/*": "Delta Lake", ".hoodie/*": "Apache Hudi", "metadata/*.metadata.json": "Apache Iceberg"}
_WILD = re.compile(r"[*?\[{]")
_NANOSECONDS = "INT64 (TIMESTAMP(NANOS"
_INSTANTS = re.compile(r"\bint64 (?P<name>.+) \(TIMESTAMP\(NANOS,(?P<zoned>true|false)\)\)")
_FILE_FACTS = ("file_path", "file_size", "file_modification_time")


@dataclass(frozen=True)
class Description:
    """What Spark tells of a table or of files before their rows are read.

    Attributes:
        schema: Columns with their Arrow types; null for those that Arrow has no type for.
        unreadable: The columns that Arrow has no type for, with what Spark calls their types.
        rows: Rows, as Spark counts them.
        has_places: Whether Spark tells the file of every row, and its number there.
        identity: What is recorded of them: number, bytes, latest change and a hash of the list of their files, as far
            as Spark tells.
        files: Addresses of the files; none where Spark does not tell.
    """

    schema: pa.Schema
    unreadable: dict[str, str]
    rows: int
    has_places: bool
    identity: dict[str, Any] = field(default_factory=dict)
    files: tuple[str, ...] = ()


class Looks(Protocol):
    """A function that looks at a table, or at an address."""

    def __call__(self, kind: str, target: str, *, name: str) -> Description:
        """Describe it; `name` is that of the input in messages."""
        ...


def looks(settings: SparkSettings, resources: Resources) -> Looks:
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
    try:
        if kind == PARQUET:
            _refuse_table_formats(session, target, name=name)
        frame = frame_of(session, kind, target)
        schema, unreadable = arrow_schema(frame.schema)
        if kind == PARQUET:
            schema = _with_nanoseconds(session, target, schema, frame)
        rows, identity, files = _counted(frame)
    except ThresherError:
        raise
    except Exception as error:  # pyspark, py4j and grpc have no class of errors in common
        raise fault_of(session, error, kind, target, name=name) from error
    return Description(schema, unreadable, rows, tells(frame, "file_path", "row_index"), identity, files)


def arrow_schema(struct: StructType) -> tuple[pa.Schema, dict[str, str]]:
    """Return columns of Spark with their Arrow types, null for those that Arrow has no type for, which stand beside."""
    from pyspark.errors import PySparkException  # noqa: PLC0415 - an optional extra
    from pyspark.sql.pandas.types import to_arrow_type  # noqa: PLC0415

    fields, unreadable = [], {}
    for column in struct.fields:
        try:
            kind = to_arrow_type(column.dataType, timezone="UTC")
        except PySparkException:
            kind, unreadable[column.name] = pa.null(), column.dataType.simpleString()
        fields.append(pa.field(column.name, kind))
    return pa.schema(fields), unreadable


def frame_of(session: SparkSession, kind: str, target: str) -> DataFrame:
    """Return the rows of a table, or of the Parquet files at an address, which must have types that go together."""
    if kind == TABLE:
        return session.table(target)
    reader = session.read.option("mergeSchema", "true")
    if (
        wild := _WILD.search(target)
    ) is not None:  # names of folders count as columns from there on, as without pattern
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
    names = ["`" + column.replace("`", "``") + "`" for column in hashable if hashable.count(column) == 1]
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


def _with_nanoseconds(session: SparkSession, target: str, schema: pa.Schema, frame: DataFrame) -> pa.Schema:
    """Return the schema with timestamps of nanoseconds, which Spark reads as whole numbers, as what they are.

    Raises:
        DataError: there are some, and Spark does not tell which columns they are.
    """
    numbers = [column.name for column in schema if pa.types.is_int64(column.type)]
    files = frame.inputFiles() if numbers and _has_nanoseconds(session, target) else ()
    instants = [instant for file in files[:1] for instant in _INSTANTS.finditer(_footer(session, file, target))]
    if files and not instants:
        message = f"the first file at {target} has no timestamps of nanoseconds, and a later one has"
        raise DataError(message, remedy="Write all files with timestamps of microseconds.")
    for instant in instants:
        index = schema.get_field_index(instant["name"])
        zone = "UTC" if instant["zoned"] == "true" else None
        if index >= 0:
            schema = schema.set(index, pa.field(instant["name"], pa.timestamp("ns", tz=zone)))
    return schema


def _has_nanoseconds(session: SparkSession, target: str) -> bool:
    """Whether a column of the files holds timestamps of nanoseconds."""
    session.conf.set("spark.sql.legacy.parquet.nanosAsLong", "false")
    try:
        return not frame_of(session, PARQUET, target).schema  # on Spark Connect nothing is looked at before
    except Exception as error:
        if _NANOSECONDS in str(error):
            return True
        raise
    finally:
        session.conf.set("spark.sql.legacy.parquet.nanosAsLong", "true")


def _footer(session: SparkSession, file: str, target: str) -> str:
    """Return the schema of a Parquet file as Parquet writes it."""
    virtual_machine = getattr(session, "_jvm", None)
    if virtual_machine is None:
        message = f"{target} has timestamps of nanoseconds, which Spark Connect takes for whole numbers"
        raise DataError(message, remedy="Write them with microseconds.")
    hadoop, parquet = virtual_machine.org.apache.hadoop, virtual_machine.org.apache.parquet.hadoop
    settings = session._jsparkSession.sessionState().newHadoopConf()  # noqa: SLF001
    path = hadoop.fs.Path(virtual_machine.java.net.URI(file))
    reader = parquet.ParquetFileReader.open(parquet.util.HadoopInputFile.fromPath(path, settings))
    try:
        return str(reader.getFileMetaData().getSchema().toString())
    finally:
        reader.close()
