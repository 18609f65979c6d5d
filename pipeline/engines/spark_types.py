"""Types of Arrow that Spark has, and what it has instead of the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Callable

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
_WIDER = {"uint8": pa.int16(), "uint16": pa.int32(), "uint32": pa.int64(), "uint64": pa.decimal128(20, 0)}


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
    from pyspark.sql.types import _parse_datatype_string  # noqa: PLC0415 - an optional extra

    return _parse_datatype_string(name)


def is_nanoseconds(arrow: pa.DataType) -> bool:
    """Whether values are timestamps that Spark reads as whole numbers."""
    return pa.types.is_timestamp(arrow) and arrow.unit == "ns"


def sparkable(table: pa.Table) -> pa.Table:
    """Return a table with the types that Spark has, every value the same; nanoseconds are cut to microseconds."""
    columns = {}
    for field, values in zip(table.schema, table.columns, strict=True):
        columns[field.name] = _converted(values, field.type)
    return pa.table(columns)


def _converted(values: pa.ChunkedArray, arrow: pa.DataType) -> pa.ChunkedArray:
    if pa.types.is_dictionary(arrow):
        return _converted(values.cast(arrow.value_type), arrow.value_type)
    if pa.types.is_null(arrow) or str(arrow) in {"large_string", "string_view"}:
        return values.cast(pa.string())
    if str(arrow) in {"large_binary", "binary_view"}:
        return values.cast(pa.binary())
    if str(arrow) in _WIDER:
        return values.cast(_WIDER[str(arrow)])
    if pa.types.is_timestamp(arrow) and arrow.unit != "us":
        convert: Callable[[pa.ChunkedArray], pa.ChunkedArray] = (
            lambda each: pc.floor_temporal(each, unit="microsecond") if arrow.unit == "ns" else each
        )
        return convert(values).cast(pa.timestamp("us", tz=arrow.tz))
    return values


def arrow_schema(struct: StructType) -> tuple[pa.Schema, dict[str, str]]:
    """Return columns of Spark with their Arrow types, null for those that Arrow has no type for, which stand beside."""
    from pyspark.errors import PySparkException  # noqa: PLC0415 - an optional extra
    from pyspark.sql.pandas.types import to_arrow_type  # noqa: PLC0415

    fields, unreadable = [], {}
    for field in struct.fields:
        try:
            kind = to_arrow_type(field.dataType, timezone="UTC")
        except PySparkException:
            kind, unreadable[field.name] = pa.null(), field.dataType.simpleString()
        fields.append(pa.field(field.name, kind))
    return pa.schema(fields), unreadable
