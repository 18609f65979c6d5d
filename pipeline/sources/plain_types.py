"""Columns with the types that they have in a Parquet file, and what is said of types that mean something else.

An Arrow extension type gives another meaning to the values that it stores: a period of pandas is stored as an integer.
A plain type takes the place of those whose meaning is evident: `arrow.uuid` and `arrow.json` are text, `arrow.bool8` is
boolean, and text remains text. All others become `MeansSomethingElse`, which no field accepts: they may stand beside
the columns that are read, and are refused by name where they are read themselves. The same becomes of types that a
Parquet file or the engine cannot hold, such as unions and empty structs.
"""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from .encodings import check_texts

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

MOST_DIGITS = 38  # of a decimal number, for the engine
DEEPEST = 30  # levels of lists and structs: writers of Parquet files overflow their stacks at some hundred
_NAME, _DETAILS = b"ARROW:extension:name", b"ARROW:extension:metadata"
_PLAIN = {"arrow.uuid": pa.string(), "arrow.json": pa.string(), "arrow.bool8": pa.bool_()}
_VIEWS = {"string_view", "binary_view"}
_HELD = (
    *(pa.types.is_null, pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating),
    *(pa.types.is_date, pa.types.is_time, pa.types.is_timestamp, pa.types.is_duration),
    *(pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary),
)
_NESTS = (
    *(pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list),
    *(pa.types.is_map, pa.types.is_struct),
)
_UNHELD = {"Int128", "UInt128", "Object", "Unknown"}
_OURS = "thresher.means_something_else"
_REMEDIES = {
    "Int128": "cast it to Int64",
    "UInt128": "cast it to UInt64",
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


def unheld(schema: pl.Schema) -> dict[str, MeansSomethingElse]:
    """Return the columns of a Polars frame that neither Arrow nor a Parquet file can hold, by name."""
    return {name: MeansSomethingElse(str(dtype)) for name, dtype in schema.items() if not can_hold(dtype)}


def can_hold(dtype: pl.DataType | type[pl.DataType], level: int = 1) -> bool:
    """Whether Arrow and Parquet files hold values of a Polars type: no integers of 128 bits, objects, empty structs."""
    if dtype.base_type().__name__ in _UNHELD or level > DEEPEST:
        return False
    fields = getattr(dtype, "fields", None)
    if fields is not None:
        return bool(fields) and all(can_hold(field.dtype, level + 1) for field in fields)
    inner = getattr(dtype, "inner", None)
    return inner is None or (getattr(dtype, "size", 1) != 0 and can_hold(inner, level + 1))


def nothing(kind: MeansSomethingElse, length: int) -> pa.ChunkedArray:
    """Return the values of a column that is never read."""
    return pa.chunked_array([pa.ExtensionArray.from_storage(kind, pa.nulls(length))], kind)


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
        plain_kind = _plain_type(kind.value_type, {})
        return MeansSomethingElse(str(kind)) if pa.types.is_nested(plain_kind) else plain_kind
    if pa.types.is_float16(kind):
        return pa.float32()  # the engine takes halves from files only
    if pa.types.is_decimal256(kind) and kind.scale >= 0:
        return pa.decimal128(kind.precision, kind.scale) if kind.precision <= MOST_DIGITS else pa.float64()
    return kind if isinstance(kind, MeansSomethingElse) or _is_held(kind) else MeansSomethingElse(str(kind))


def _is_held(kind: pa.DataType, level: int = 1) -> bool:
    """Whether both a Parquet file and the engine can hold values of a type."""
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    if pa.types.is_dictionary(kind):
        return _is_held(kind.value_type, level)
    if pa.types.is_decimal(kind):
        return bool(0 <= kind.scale <= kind.precision <= MOST_DIGITS)
    if pa.types.is_fixed_size_binary(kind):
        return bool(kind.byte_width > 0)
    if not pa.types.is_nested(kind):
        return str(kind) in _VIEWS or any(check(kind) for check in _HELD)
    is_nest = any(check(kind) for check in _NESTS) and getattr(kind, "list_size", 1) != 0
    fields = [kind.field(number).type for number in range(kind.num_fields)]
    return is_nest and bool(fields) and level < DEEPEST and all(_is_held(field, level + 1) for field in fields)


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
    if isinstance(kind, MeansSomethingElse):
        return nothing(kind, len(column))
    if isinstance(column.type, pa.BaseExtensionType):
        column = pa.chunked_array([chunk.storage for chunk in column.chunks], column.type.storage_type)
    if name == "arrow.uuid":
        values = [None if value is None else str(uuid.UUID(bytes=value)) for value in column.to_pylist()]
        return pa.chunked_array([pa.array(values, kind)])
    return column.cast(kind)
