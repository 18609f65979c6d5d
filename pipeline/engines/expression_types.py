"""The type that DuckDB gives an expression on the columns of a schema, found without reading a row."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import duckdb
import sqlglot.expressions as exp

from ..errors import InvalidQueryError, UncomputableError
from ..queries.dialect import render
from ..queries.value_lists import apart, table

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

_NO_ROWS = "no_rows"


def type_of(expression: exp.Expr, schema: pa.Schema) -> pa.DataType:
    """Return the Arrow type of an expression.

    Args:
        expression: An expression on the columns.
        schema: The columns.

    Raises:
        InvalidQueryError: it does not fit the columns.
        UncomputableError: it cannot be computed whatever the rows are, as of a pattern that is broken.
    """
    query, lists = apart(exp.select(exp.alias_(expression.copy(), "value")).from_(_NO_ROWS))
    text = render(query)
    with connected() as connection:
        for name, values in lists.items():
            connection.register(name, table(values))
        connection.register(_NO_ROWS, _as_read(schema, expression).empty_table())
        try:
            return connection.sql(text).to_arrow_table().schema.field("value").type
        except (duckdb.InvalidInputException, duckdb.OutOfRangeException) as error:
            message = "a value cannot be computed"
            raise UncomputableError(message, str(error).strip()) from error
        except duckdb.Error as error:
            raise InvalidQueryError(str(error).strip(), text) from error


def _as_read(schema: pa.Schema, expression: exp.Expr) -> pa.Schema:
    """The columns that an expression reads, with the types that DuckDB gives them in Parquet files.

    It cannot take all of these types from Arrow.
    """
    import pyarrow as pa  # noqa: PLC0415 - only those who have SQL of their own need it here

    read = {each.name.lower() for each in expression.find_all(exp.Column)}
    schema = pa.schema([field for field in schema if field.name.lower() in read] or [pa.field("nothing", pa.null())])
    for index, field in enumerate(schema):
        if pa.types.is_float16(field.type) or pa.types.is_decimal256(field.type):
            kind = pa.float32() if pa.types.is_float16(field.type) else pa.float64()
            schema = schema.set(index, field.with_type(kind))
    return schema


@contextmanager
def connected() -> Iterator[duckdb.DuckDBPyConnection]:
    """Connect to an engine that reads nothing but what is registered with it, and takes times to be in UTC."""
    config: dict[str, str | bool | int | float | list[str]] = {
        "threads": 1,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "python_enable_replacements": False,
        "enable_external_access": False,
    }
    with duckdb.connect(":memory:", config=config) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        yield connection
