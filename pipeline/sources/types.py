"""Which file types a column of an input accepts, text too, and the type that it is read as; nothing is lost."""

from __future__ import annotations

import csv
import io
import json
import re
import uuid
from itertools import islice
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa
from sqlglot import exp

from ..base.dialect import data_type, is_finite
from ..base.errors import DataError
from ..base.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from .inputs import Kind


TIME_TYPES = frozenset({"DATE", "TIMESTAMP", "TIMESTAMPTZ"})
TEXTS = frozenset({"string", "large_string", "string_view"})
UNKNOWN = "NULL"
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")  # what TOML takes as a key without quotes
_PLAIN_TYPES = {
    "bool": "BOOLEAN",
    "int8": "TINYINT",
    "int16": "SMALLINT",
    "int32": "INTEGER",
    "int64": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "date32[day]": "DATE",
}
ACCEPTS: dict[Kind, str] = {
    "number": "a number",
    "integer": "an integer",
    "boolean": "a boolean, or an integer 0 or 1",
    "key": "an integer or text",
    "instant": "a date or timestamp",
    "position": "a number, date or timestamp",
    "any": "a number, text, boolean, date or timestamp",
}


def canonical_type(arrow: pa.DataType, kind: Kind) -> str | None:
    """Return the SQL type that a column of a file is read as, or None if the kind does not accept it.

    A column that is NULL throughout its file (Arrow type null) fits every kind: the result is then `UNKNOWN`.
    """
    if pa.types.is_dictionary(arrow):
        arrow = arrow.value_type
    if pa.types.is_null(arrow):
        return UNKNOWN
    accepted = {
        "number": {"DOUBLE", "BIGINT", "UBIGINT", "DECIMAL"},
        "integer": {"BIGINT", "UBIGINT"},
        "boolean": {"BOOLEAN", "BIGINT", "UBIGINT"},
        "key": {"BIGINT", "UBIGINT", "VARCHAR"},
        "instant": TIME_TYPES,
        "position": {"DOUBLE", "BIGINT", "UBIGINT", "DECIMAL"} | TIME_TYPES,
        "any": {
            *("DOUBLE", "BIGINT", "UBIGINT", "DECIMAL", "VARCHAR"),
            *("BOOLEAN", "DATE", "TIMESTAMP", "TIMESTAMPTZ"),
        },
    }[kind]
    sql_type = _own_type(arrow)
    if sql_type not in accepted:
        return None
    if kind == "number" or (kind == "position" and sql_type == "DECIMAL"):
        return "DOUBLE"
    if kind == "integer" or (kind == "position" and sql_type == "UBIGINT"):
        return "BIGINT"
    if kind == "boolean":
        return "BOOLEAN"
    return f"DECIMAL({arrow.precision}, {arrow.scale})" if sql_type == "DECIMAL" else sql_type


def decimals_of(kind: pa.DataType | str | None) -> int | None:
    """Digits behind the point of the numbers of a type; None for other types, and for floating-point numbers."""
    scale = getattr(kind, "scale", None)
    return scale if isinstance(scale, int) else 0 if "int" in str(kind) else None


_NUMBERS = frozenset({"BIGINT", "UBIGINT", "DOUBLE", "DECIMAL", "BOOLEAN"})
_CASTS: dict[Kind, str] = {
    "number": "DOUBLE",
    "integer": "BIGINT",
    "boolean": "BIGINT",
    "key": "VARCHAR",
    "instant": "TIMESTAMP",
    "position": "DOUBLE",
}


def in_expression(column: str) -> str:
    """How an expression of a config names a column."""
    return column if column.isidentifier() else '"{}"'.format(column.replace('"', '""'))


def _as_key(field: str) -> str:
    return field if _BARE_KEY.fullmatch(field) else json.dumps(field, ensure_ascii=False)


def as_renaming(field: str, column: str) -> str:
    """How a config maps a field to a column of the files, as a line of TOML."""
    return f"columns = {{ {_as_key(field)} = {json.dumps(column, ensure_ascii=False)} }}"


def as_mapping(field: str, expression: str) -> str:
    """How a config maps a field to an expression, as a line of TOML."""
    return f"columns = {{ {_as_key(field)} = {{ sql = {_as_text(expression)} }} }}"


def as_where(condition: str) -> str:
    """How a config leaves out rows that do not satisfy a condition, as a line of TOML."""
    return f"where = {_as_text(condition)}"


def _as_text(expression: str) -> str:
    plain = "'" not in expression and expression.isprintable()
    return f"'{expression}'" if plain else json.dumps(expression, ensure_ascii=False)


def how_to_cast(arrow: pa.DataType | str, kind: Kind, *, field: str, column: str) -> str:
    """Say how a column of a type, or the name of a folder, that a field does not accept can be cast."""
    of_column = "VARCHAR" if isinstance(arrow, str) else _own_type(arrow)
    is_text, is_number = of_column == "VARCHAR", of_column in _NUMBERS
    is_other = of_column is None and not isinstance(arrow, str) and pa.types.is_nested(arrow)
    if (
        kind not in _CASTS
        or is_other
        or (kind != "key" and not (is_text or is_number))
        or (kind == "instant" and of_column == "BOOLEAN")
    ):
        return "Convert it before it is read; nothing is cast silently."
    name = in_expression(column)
    if kind == "instant" and is_number:
        seconds = as_mapping(field, f"to_timestamp({name})")
        return f"Of seconds since 1970 write {seconds}, of milliseconds epoch_ms({name}); nothing is cast silently."
    if kind == "boolean" and is_text:
        condition = as_mapping(field, f"{name} = 'yes'")
        return f"Say which text is true: {condition}; nothing is cast silently."
    if kind == "boolean" and of_column in {"DOUBLE", "DECIMAL"}:  # as frames have them where some are missing
        which = as_mapping(field, f"{name} = 1")
        return f"Of 0 and 1 write {which}, {as_where(f'{name} IN (0, 1)')}, which leaves out rows without one."
    wanted = _CASTS[kind]
    note = ", which rounds" if wanted == "BIGINT" and not is_text else ""
    if kind == "key" and of_column in {"DOUBLE", "DECIMAL"}:  # no two values become one, and 7.0 is the key 7
        integer, fraction = f"CAST(CAST({name} AS HUGEINT) AS VARCHAR)", f"CAST({name} AS VARCHAR)"
        apart = as_mapping(field, f"CASE WHEN {name} = floor({name}) THEN {integer} ELSE {fraction} END")
        return f"Make it text, and so in every input that has it: {apart}; nothing is cast silently."
    cast = f"Cast it: {as_mapping(field, f'CAST({name} AS {wanted})')}{note}; nothing is cast silently."
    return cast + _of_text(name, wanted) if is_text else cast


def _of_text(name: str, wanted: str) -> str:
    """What reads text that a cast to a type cannot read; empty where it reads all text."""
    if wanted == "TIMESTAMP":
        return f" Of text such as '31-12-2026' write strptime({name}, '%d-%m-%Y')."
    if wanted == "DOUBLE":
        share, comma = f"CAST(rtrim({name}, ' %') AS DOUBLE) / 100", f"CAST(replace({name}, ',', '.') AS DOUBLE)"
        return f" Of text such as '57%' write {share}, of '0,57' {comma}."
    return f" Of text such as '1,234' write CAST(replace({name}, ',', '') AS BIGINT)." if wanted == "BIGINT" else ""


def type_of_nulls(kind: Kind, elsewhere: str | None = None) -> str:
    """Return the SQL type of a column that is NULL throughout an input; of keys that of another input, if known."""
    fixed: dict[Kind, str] = {"number": "DOUBLE", "integer": "BIGINT", "boolean": "BOOLEAN", "instant": "TIMESTAMP"}
    return fixed.get(kind) or elsewhere or ("BIGINT" if kind == "position" else "VARCHAR")


def _own_type(arrow: pa.DataType) -> str | None:
    types = pa.types
    rules: tuple[tuple[str, bool], ...] = (
        ("BIGINT", types.is_integer(arrow) and not types.is_uint64(arrow)),
        ("UBIGINT", types.is_uint64(arrow)),
        ("DOUBLE", types.is_floating(arrow)),
        ("DECIMAL", types.is_decimal(arrow)),
        ("VARCHAR", str(arrow) in TEXTS),
        ("BOOLEAN", types.is_boolean(arrow)),
        ("DATE", types.is_date(arrow)),
        ("TIMESTAMP", types.is_timestamp(arrow) and arrow.tz is None),
        ("TIMESTAMPTZ", types.is_timestamp(arrow) and arrow.tz is not None),
    )
    return next((name for name, fits in rules if fits), None)


def column_type(arrow: pa.DataType) -> str:
    """Return the SQL type that the engine gives a column of plain Arrow type, from 8 to 64 bits wide.

    Raises:
        KeyError: it is another type, such as a list.
    """
    if pa.types.is_decimal(arrow):
        return f"DECIMAL({arrow.precision}, {arrow.scale})"
    if str(arrow) in TEXTS:
        return "VARCHAR"
    if pa.types.is_timestamp(arrow):
        return "TIMESTAMP" if arrow.tz is None else "TIMESTAMPTZ"
    return _PLAIN_TYPES[str(arrow)]


def finite(value: exp.Expr) -> exp.Case:
    """Apply the finite barrier: keep the value, or NULL if it is NaN or infinite.

    It must be the first thing done to a floating-point column: comparing the raw column gives wrong counts for files
    whose statistics leave out NaN.
    """
    return exp.Case().when(is_finite(value), value.copy())


def microseconds(value: exp.Expr, sql_type: str, timezone: str | None) -> exp.Expr:
    """Convert a date or timestamp to microseconds since 1970 in UTC; one without a zone is in `timezone`, or in UTC."""
    if sql_type == "TIMESTAMPTZ":
        return exp.UnixMicros(this=value)
    timestamp = exp.cast(value, "TIMESTAMP")
    if timezone is None:
        return exp.UnixMicros(this=timestamp)
    return exp.UnixMicros(this=exp.AtTimeZone(this=timestamp, zone=exp.Literal.string(timezone)))


def typed(value: exp.Expr, arrow: pa.DataType, sql_type: str, *, as_written: bool = False) -> exp.Expr:
    """Read a value of a file as its canonical type; floating-point values pass the finite barrier.

    `as_written`: whether a number of single precision is the shortest decimal that is read as it.
    """
    if sql_type == "BOOLEAN" and pa.types.is_integer(arrow):
        number = exp.Case(this=value.copy()).when(exp.Literal.number(0), exp.false())
        return number.when(exp.Literal.number(1), exp.true())
    read = exp.cast(value.copy(), data_type(sql_type), dialect="duckdb")
    if sql_type != "DOUBLE" or not pa.types.is_floating(arrow):
        return read
    if not as_written or pa.types.is_float64(arrow):
        return finite(read)
    return exp.Case().when(is_finite(read), exp.cast(exp.cast(value.copy(), "VARCHAR"), "DOUBLE"))


# Columns with the types that they have in a Parquet file, and what is said of types that mean something else.
#
# An Arrow extension type gives another meaning to the values that it stores: a period of pandas is stored as an
# integer. A plain type takes the place of those whose meaning is evident: `arrow.uuid` and `arrow.json` are text,
# `arrow.bool8` is boolean, and text remains text. All others become `MeansSomethingElse`, which no field accepts:
# they may stand beside the columns that are read, and are refused by name where they are read themselves. The same
# becomes of types that a Parquet file or the engine cannot hold, such as unions and empty structs.


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
    Its words are what the library of the column calls its type.
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

    Nothing is copied of columns that are plain already. `start` rows came before it, which messages count.

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
    if not name or (str(storage) in {"string", "large_string", "string_view"}):
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


# Text that is not UTF-8: which column of a table, or which line of a file, holds the first of it.


_WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff")  # of UTF-16
_COMPRESSED = (".gz", ".zst")
_MOST_SHOWN = 60
_OF_TABLES = 'Decode its values with the encoding that they have, for example value.decode("latin-1").'


class RowsError(ValueError):
    """Rows of a frame that cannot be read: what is wrong, with the column, and what to do about it."""

    def __init__(self, message: str, *, remedy: str) -> None:
        super().__init__(message)
        self.remedy = remedy


def check_texts(table: pa.Table, *, start: int = 0) -> None:
    """Check that the text columns of a table hold UTF-8, which Arrow does not do by itself; `start` as for `plain`.

    Raises:
        RowsError: a value is none; names the column, the row and the value.
    """
    for name, column in zip(table.column_names, table.columns, strict=True):
        if str(column.type) not in {"string", "large_string", "string_view"}:
            continue
        try:
            column.validate(full=True)
        except pa.ArrowInvalid:
            kind = pa.binary_view() if str(column.type) == "string_view" else pa.large_binary()
            values = (value or b"" for chunk in column.chunks for value in chunk.cast(kind).to_pylist())
            row, value = next(pair for pair in enumerate(values, start=start + 1) if not _is_utf8(pair[1]))
            message = f"column {name!r} holds text that is not UTF-8 (first at row {row:,}: {_shown(value)})"
            raise RowsError(message, remedy=_OF_TABLES) from None


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _shown(value: bytes) -> str:
    return repr(value if len(value) <= _MOST_SHOWN else value[:_MOST_SHOWN] + b"...")


def not_utf8(
    path: Path, separator: str | None, *, is_json: bool = False, most_lines: int | None = None, name: str
) -> DataError | None:
    """Return the error that a text file, compressed or not, is not UTF-8; None if it is.

    Args:
        path: The file.
        separator: What separates the columns of a file with a header; None: it has none.
        is_json: Whether every line is an object.
        most_lines: Number of lines to look at; None: all.
        name: Name of the input in messages.
    """
    header: bytes | None = None
    with io.BufferedReader(pa.input_stream(str(path))) as lines:
        for number, line in enumerate(islice(lines, most_lines), start=1):
            header = line if header is None else header
            if _is_utf8(line):
                continue
            if number == 1 and line.startswith(_WIDE_MARKS):
                message = f"input {name}: {path} is text in UTF-16, not UTF-8"
                return DataError(message, remedy=_recoding(path, "UTF-16"))
            where, value = _place(line, header, separator, is_json=is_json)
            message = (
                f"input {name}: {where}{path} holds text that is not UTF-8 (first in line {number:,}: {_shown(value)})"
            )
            return DataError(message, remedy=_recoding(path, "WINDOWS-1252"))
    return None


def _recoding(path: Path, encoding: str) -> str:
    if path.name.lower().endswith(_COMPRESSED):
        return "Write it as UTF-8 before it is compressed."
    return f"Write it as UTF-8, for example with: iconv -f {encoding} -t UTF-8 {path.name!r} > {'utf8_' + path.name!r}"


def _place(line: bytes, header: bytes, separator: str | None, *, is_json: bool) -> tuple[str, bytes]:
    """Name the column of the first value of a line that is not UTF-8, and return that value."""
    text = line.decode("latin-1").rstrip("\r\n")  # one character for each byte
    try:
        if is_json:
            values = {key: json.dumps(value, ensure_ascii=False) for key, value in json.loads(text).items()}
        elif separator is not None:
            names, fields = csv.reader([header.decode("latin-1"), text], delimiter=separator)
            values = dict(zip(names, fields, strict=False))
        else:
            values = {}
    except (ValueError, AttributeError, csv.Error):  # a line that is damaged in other ways, too
        values = {}
    for column, value in values.items():
        if not _is_utf8(value.encode("latin-1", "replace")):
            readable = column.encode("latin-1", "replace").decode("utf-8", "replace")
            return f"column {readable!r} of ", value.encode("latin-1", "replace")
    return "", line.strip()


_DAYS = ("%d-%m-%Y", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%Y%m%d")
_OF_DAY = ("", " %H:%M", " %H:%M:%S")
_TRUE = {  # beside the word for false
    "yes": "no",
    "y": "n",
    "true": "false",
    "t": "f",
    "1": "0",
    "1.0": "0.0",
    "positive": "negative",
    "pos": "neg",
    "match": "nonmatch",
    "relevant": "irrelevant",
    "correct": "incorrect",
    "right": "wrong",
}
_MOST_WORDS = 20


@dataclass(frozen=True)
class TextCast:
    """How a column of text is read: the expression for `{ sql = "…" }`, and the same of a column in Polars.

    It is plain if it is a cast alone, which text formats do without being told, or only has decimal commas.
    """

    sql: str
    reading: Callable[[pl.Expr], pl.Expr]
    is_plain: bool = False
    has_decimal_commas: bool = False


def text_cast(rows: pl.LazyFrame, column: str, kind: Kind) -> TextCast | None:
    """Return what reads all values of a column of text as what a field expects; None if no known form fits."""
    texts = rows.select(pl.col(column).str.strip_chars().alias("value")).drop_nulls()
    if kind == "boolean":
        return _cast_of_words(texts, in_expression(column))
    forms: dict[str, Callable[[str], Iterable[tuple[str, TextCast]]]] = {
        "number": _numbers,
        "integer": _integers,
        "instant": _times,
        "position": lambda name: (*_integers(name), *_numbers(name), *_times(name)),
    }
    candidates = list(forms[kind](in_expression(column))) if kind in forms else []
    for pattern, cast in candidates:
        value = pl.col("value")
        fits = cast.reading(value).is_not_null() & (value.str.contains(pattern) if pattern else True)
        if texts.select(fits.all()).collect(engine="streaming").item():
            return cast
    return None


def _numbers(name: str) -> Iterator[tuple[str, TextCast]]:
    """Forms of numbers: with a point, in percent, with separators of thousands, with decimal commas."""

    def cast_of(sql: str, text_of: Callable[[pl.Expr], pl.Expr], *, per: int = 1, **about: bool) -> TextCast:
        cast = f"CAST({sql} AS DOUBLE)"
        shown = cast if per == 1 else f"{cast} / {per}"
        return TextCast(shown, lambda text: text_of(text).cast(pl.Float64, strict=False) / per, **about)

    def bare(text: pl.Expr) -> pl.Expr:
        return text.str.strip_chars_end(" %")

    def swapped(text: pl.Expr, old: str, new: str) -> pl.Expr:
        return text.str.replace_all(old, new, literal=True)

    pointed, without_points = "replace({}, ',', '.')", f"replace({name}, '.', '')"
    yield "", cast_of(name, lambda text: text, is_plain=True)
    yield "%$", cast_of(f"rtrim({name}, ' %')", bare, per=100)
    yield "%$", cast_of(pointed.format(f"rtrim({name}, ' %')"), lambda text: swapped(bare(text), ",", "."), per=100)
    grouped = r"^[+-]?[1-9]\d{0,2}(,\d{3})*(\.\d+)?$|^[+-]?\d+(\.\d+)?$"
    yield grouped, cast_of(f"replace({name}, ',', '')", lambda text: swapped(text, ",", ""))
    commas = cast_of(pointed.format(name), lambda text: swapped(text, ",", "."), has_decimal_commas=True)
    yield r"^[+-]?\d*,?\d+$", commas
    both = cast_of(pointed.format(without_points), lambda text: swapped(swapped(text, ".", ""), ",", "."))
    yield r"^[+-]?\d{1,3}(\.\d{3})*(,\d+)?$|^[+-]?\d+(,\d+)?$", both


def _integers(name: str) -> Iterator[tuple[str, TextCast]]:
    """Forms of whole numbers: plain, with separators of thousands, with a point and zeros."""

    def integer(text: pl.Expr) -> pl.Expr:
        return text.cast(pl.Int64, strict=False)

    yield "", TextCast(f"CAST({name} AS BIGINT)", integer, is_plain=True)
    yield (
        r"^[+-]?\d{1,3}(,\d{3})*$",
        TextCast(
            f"CAST(replace({name}, ',', '') AS BIGINT)",
            lambda text: integer(text.str.replace_all(",", "", literal=True)),
        ),
    )
    yield (
        r"^[+-]?\d+\.0*$",
        TextCast(
            f"CAST(CAST({name} AS DOUBLE) AS BIGINT)", lambda text: text.cast(pl.Float64, strict=False).cast(pl.Int64)
        ),
    )


def _times(name: str) -> Iterator[tuple[str, TextCast]]:
    """Forms of times: ISO 8601, seconds since 1970, and days and times of day in the usual orders."""
    iso = TextCast(
        f"CAST({name} AS TIMESTAMP)",
        lambda text: text.str.slice(0, 10).str.to_date("%Y-%m-%d", strict=False).cast(pl.Datetime("us")),
        is_plain=True,
    )
    yield r"^\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d+)?)?)?$", iso
    seconds = TextCast(
        f"to_timestamp(CAST({name} AS BIGINT))",
        lambda text: pl.from_epoch(text.cast(pl.Int64, strict=False), time_unit="s"),
    )
    yield r"^\d{9,10}$", seconds
    for pattern in (day + time for day in _DAYS for time in _OF_DAY):
        yield (
            "",
            TextCast(
                f"strptime({name}, '{pattern}')",
                lambda text, pattern=pattern: text.str.to_datetime(pattern, strict=False),  # type: ignore[misc]
            ),
        )


def _cast_of_words(texts: pl.LazyFrame, name: str) -> TextCast | None:
    """The words of a column that mean true, where all of them are such words or mean false."""
    written = sorted(texts.unique().head(_MOST_WORDS).collect()["value"].to_list())
    if not all(word.lower() in {*_TRUE, *_TRUE.values()} for word in written):
        return None
    true = [word for word in written if word.lower() in _TRUE]
    plain = all(word.lower() in {"true", "false", "1", "0"} for word in written)
    if not true:
        true = [word for word, opposite in _TRUE.items() if opposite in {each.lower() for each in written}]
    listed = ", ".join(f"'{word}'" for word in true)
    sql = f"{name} = {listed}" if len(true) == 1 else f"{name} IN ({listed})"
    return TextCast(sql, lambda text: text.is_in(true), is_plain=plain)
