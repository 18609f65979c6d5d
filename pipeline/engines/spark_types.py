"""Types of Arrow that Spark has, and what it has instead of the others."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from types import ModuleType

    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType, StructType

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
    for field in schema:
        if (name := type_name(field.type)) is not None:
            struct = struct.add(field.name, _parsed(name))
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
