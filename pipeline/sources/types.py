"""Which file types a column of an input accepts, and the type that it is read as; nothing is lost."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from ..queries.dialect import data_type, is_finite

if TYPE_CHECKING:
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
    """Say how a column of a type that a field does not accept can be cast.

    Args:
        arrow: Its type, or the name of a folder.
        kind: What the field accepts.
        field: Canonical name of the field.
        column: Name of the column in the files.
    """
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
    """Return the SQL type of a column that is NULL throughout an input.

    Args:
        kind: What the stage expects of it.
        elsewhere: Its canonical type in another input, if it is known there, because keys must have the same type.
    """
    fixed: dict[Kind, str] = {
        "number": "DOUBLE",
        "integer": "BIGINT",
        "boolean": "BOOLEAN",
        "instant": "TIMESTAMP",
    }
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

    Args:
        value: A column of the file, or an expression on its columns.
        arrow: Its type in the file.
        sql_type: The canonical type.
        as_written: Whether a number of single precision is the shortest decimal that is read as it.
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
