"""Files of JSON lines: one object a line, its columns with the types that all their values have together.

A column whose values have no type together, or one that a Parquet file cannot hold, is read as the text of its values
in JSON, so that it may stand beside those that are used.
"""

from __future__ import annotations

import io
import json
from functools import reduce
from typing import TYPE_CHECKING, Any, NoReturn

import polars as pl
import pyarrow as pa

from .plain_types import can_hold

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_LARGEST = 1 << 63


class LineError(ValueError):
    """A line that is not one object in JSON."""


def json_lines(path: Path) -> pl.LazyFrame:
    """Read a file whose columns have each values of one type.

    Raises:
        PolarsError: a line is no object, or a column has values of several types, which may be found only later.
    """
    frame = pl.scan_ndjson(path, infer_schema_length=None)
    texts = {column: pl.String() for column, dtype in frame.collect_schema().items() if not can_hold(dtype)}
    return pl.scan_ndjson(path, infer_schema_length=None, schema_overrides=texts) if texts else frame


def mixed_json_lines(path: Path) -> pl.LazyFrame:
    """Read a file whose columns may have values of several types, after it has been read once for these.

    Raises:
        LineError: a line is no object.
    """
    types: dict[str, pl.DataType] = {}
    for row in _rows(path):
        for column, value in row.items():
            dtype = _type(value)
            earlier = types.get(column, dtype)
            types[column] = earlier if earlier == dtype else _together(earlier, dtype)
    return pl.scan_ndjson(
        path, schema={column: dtype if can_hold(dtype) else pl.String() for column, dtype in types.items()}
    )


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with io.BufferedReader(pa.input_stream(str(path))) as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line, parse_constant=_refuse)
            except (ValueError, RecursionError) as error:
                message = f"line {number:,} is not JSON ({error})"
                raise LineError(message) from error
            if not isinstance(row, dict):
                message = f"line {number:,} is no object"
                raise LineError(message)
            yield row


def _refuse(word: str) -> NoReturn:
    message = f"{word} is no value"
    raise ValueError(message)


def _type(value: object) -> pl.DataType:
    if isinstance(value, dict):
        return pl.Struct({key: _type(each) for key, each in value.items()})
    if isinstance(value, list):
        nothing: pl.DataType = pl.Null()
        return pl.List(reduce(_together, map(_type, value), nothing))
    if isinstance(value, int) and not isinstance(value, bool):
        return pl.Int64() if -_LARGEST <= value < _LARGEST else pl.String()
    types: dict[type, pl.DataType] = {bool: pl.Boolean(), float: pl.Float64(), str: pl.String()}
    return types.get(type(value), pl.Null())


def _together(one: pl.DataType, other: pl.DataType) -> pl.DataType:
    """The type that holds the values of two types; text if none does."""
    if one == other or other == pl.Null():
        return one
    if one == pl.Null():
        return other
    if isinstance(one, pl.List) and isinstance(other, pl.List):
        return pl.List(_together(_dtype(one.inner), _dtype(other.inner)))
    if isinstance(one, pl.Struct) and isinstance(other, pl.Struct):
        fields, others = ({each.name: _dtype(each.dtype) for each in kind.fields} for kind in (one, other))
        shared = {key: _together(fields[key], others[key]) for key in fields if key in others}
        return pl.Struct(fields | others | shared)
    return pl.Float64() if {one, other} == {pl.Int64(), pl.Float64()} else pl.String()


def _dtype(dtype: Any) -> pl.DataType:  # noqa: ANN401 - Polars has classes in the place of types without parameters
    return dtype if isinstance(dtype, pl.DataType) else dtype()
