"""Columns with the types that they have in a Parquet file, and what is said of types that mean something else.

An Arrow extension type gives another meaning to the values that it stores: a period of pandas is stored as an integer.
A plain type takes the place of those whose meaning is evident: `arrow.uuid` and `arrow.json` are text, `arrow.bool8` is
boolean, and text remains text. All others become `MeansSomethingElse`, which no field accepts: they may stand beside
the columns that are read, and are refused by name where they are read themselves.
"""

from __future__ import annotations

import io
import json
import uuid
from functools import cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.sources.encodings import RowsError, check_texts

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

MOST_DIGITS = 38  # of a decimal number, for the engine
_WIDE_INTEGERS = {"Int128", "UInt128"}
_NAME, _DETAILS = b"ARROW:extension:name", b"ARROW:extension:metadata"
_PLAIN = {"arrow.uuid": pa.string(), "arrow.json": pa.string(), "arrow.bool8": pa.bool_()}
_OURS = "thresher.means_something_else"
_REMEDIES = {
    "period": "convert it to dates or text",
    "interval": "convert it to text, or give its limits columns of their own",
}


class MeansSomethingElse(pa.ExtensionType):  # type: ignore[misc] # pyarrow has no types
    """The type of a column that is never read, because its values mean something else than they store.

    Its values are NULL. In a Parquet file the metadata of the column name it, so that it need not be known to Arrow.

    Args:
        words: What the library of the column calls its type.
    """

    def __init__(self, words: str) -> None:
        self.words = words
        super().__init__(pa.null(), _OURS)

    def __arrow_ext_serialize__(self) -> bytes:
        """The words."""
        return self.words.encode()

    @classmethod
    def __arrow_ext_deserialize__(cls, _storage: pa.DataType, serialized: bytes) -> MeansSomethingElse:
        """Make it from its words."""
        return cls(serialized.decode("utf-8", "replace"))


def plain(table: pa.Table, *, start: int = 0) -> pa.Table:
    """Return a table with plain types: no dictionaries, no types of other libraries, no text but UTF-8.

    Nothing is copied of columns that are plain already.

    Args:
        table: The rows.
        start: Number of rows that came before them, for messages.

    Raises:
        RowsError: a column holds text that is not UTF-8.
    """
    columns, fields = [], []
    for column, field in zip(table.columns, table.schema, strict=True):
        kind = _plain_type(field.type, field.metadata or {})
        columns.append(_converted(column, kind, _name(field.type, field.metadata or {})))
        fields.append(pa.field(field.name, kind))
    result = pa.Table.from_arrays(columns, schema=pa.schema(fields))
    check_texts(result, start=start)
    return result


def storable(table: pa.Table) -> pa.Table:
    """Return a table that a Parquet file can hold: columns of types that it has not become `MeansSomethingElse`.

    Args:
        table: Its columns have plain types.
    """
    for number, field in enumerate(table.schema):
        if not isinstance(field.type, MeansSomethingElse) and not _is_storable(field.type):
            kind = MeansSomethingElse(str(field.type))
            table = table.set_column(number, pa.field(field.name, kind), _converted(table.column(number), kind, ""))
    return table


@cache
def _is_storable(kind: pa.DataType) -> bool:
    """Whether Arrow can write a type to a Parquet file, which it does not tell otherwise."""
    try:
        pq.write_table(pa.schema([pa.field("column", kind)]).empty_table(), io.BytesIO())
    except pa.ArrowNotImplementedError:
        return False
    return True


def refuse_wide_integers(schema: pl.Schema) -> None:
    """Refuse integers of 128 bits, which Arrow does not have.

    Raises:
        RowsError: a column of a Polars frame holds them.
    """
    for column, dtype in schema.items():
        if str(dtype) in _WIDE_INTEGERS:
            message = f"column {column!r} is {dtype}"
            raise RowsError(message, remedy="Cast it to Int64.")


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return the columns of a file with plain types in the place of extension types."""
    for number, field in enumerate(schema):
        metadata = field.metadata or {}
        values = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if isinstance(values, pa.BaseExtensionType) or _NAME in metadata:
            schema = schema.set(number, pa.field(field.name, _meaning(values, metadata)))
    return schema


def refused(kind: object) -> tuple[str, str] | None:
    """Return what to call a type whose values mean something else than they store, and a remedy; None for others."""
    if not isinstance(kind, MeansSomethingElse):
        return None
    name = kind.words
    remedy = _REMEDIES.get(name.partition("[")[0], "convert it to numbers, text, dates or times")
    return name, f"{remedy[0].upper()}{remedy[1:]} before it is read."


def _plain_type(kind: pa.DataType, metadata: Mapping[bytes, bytes]) -> pa.DataType:
    kind = _meaning(kind, metadata)
    if pa.types.is_dictionary(kind):
        return _plain_type(kind.value_type, {})
    if pa.types.is_float16(kind):
        return pa.float32()  # the engine takes halves from files only
    if pa.types.is_decimal256(kind):
        return pa.decimal128(min(kind.precision, MOST_DIGITS), kind.scale)
    return kind


def _name(kind: pa.DataType, metadata: Mapping[bytes, bytes]) -> str:
    """The name of an extension type; where Arrow does not know it, the metadata of the column do. Else empty."""
    if isinstance(kind, pa.BaseExtensionType):
        return str(kind.extension_name)
    return metadata.get(_NAME, b"").decode("utf-8", "replace")


def _meaning(kind: pa.DataType, metadata: Mapping[bytes, bytes]) -> pa.DataType:
    """The plain type of a column, or `MeansSomethingElse`."""
    if isinstance(kind, MeansSomethingElse):
        return kind
    name, details, storage = _name(kind, metadata), metadata.get(_DETAILS, b""), kind
    if isinstance(kind, pa.BaseExtensionType):
        storage = kind.storage_type
        serialize = getattr(kind, "__arrow_ext_serialize__", bytes)
        details = serialize()
    if not name or _is_text(storage):
        return storage
    return _PLAIN[name] if name in _PLAIN else MeansSomethingElse(_words(name, details))


def _words(name: str, details: bytes) -> str:
    """A type as its library calls it: `period[D]`, `interval[int64, right]`."""
    if name == _OURS:
        return details.decode("utf-8", "replace")
    try:
        parameters: Any = json.loads(details)
    except ValueError:
        return name
    keys = {"pandas.period": ("freq",), "pandas.interval": ("subtype", "closed")}.get(name, ())
    if not keys or not isinstance(parameters, dict):
        return name
    return f"{name.removeprefix('pandas.')}[{', '.join(str(parameters.get(key)) for key in keys)}]"


def _is_text(kind: pa.DataType) -> bool:
    return str(kind) in {"string", "large_string", "string_view"}


def _converted(column: pa.ChunkedArray, kind: pa.DataType, name: str) -> pa.ChunkedArray:
    if kind == column.type:
        return column
    if isinstance(kind, MeansSomethingElse):  # it is never read
        return pa.chunked_array([pa.ExtensionArray.from_storage(kind, pa.nulls(len(column)))], kind)
    if isinstance(column.type, pa.BaseExtensionType):
        column = pa.chunked_array([chunk.storage for chunk in column.chunks], column.type.storage_type)
    if name == "arrow.uuid":
        values = [None if value is None else str(uuid.UUID(bytes=value)) for value in column.to_pylist()]
        return pa.chunked_array([pa.array(values, kind)])
    return column.cast(kind)
