"""The type that DuckDB gives an expression on the columns of a schema, found without reading a row."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import duckdb
import sqlglot.expressions as exp

from pipeline.errors import InvalidQueryError, UncomputableError
from pipeline.queries.dialect import render

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

_ROWS = "rows_alike"
_FAULTS_OF_VALUES = (duckdb.InvalidInputException, duckdb.OutOfRangeException)


def type_of(expression: exp.Expr, schema: pa.Schema) -> pa.DataType:
    """Return the Arrow type of an expression, which is computed of a row of NULLs: a constant must fit the columns.

    What fails for a value that no row may have is told where rows are read.

    Args:
        expression: An expression on the columns.
        schema: The columns.

    Raises:
        InvalidQueryError: it does not fit the columns, or has a constant that cannot be converted, as in n = 'x'.
        UncomputableError: it cannot be computed whatever the rows are, as of a pattern that is broken.
    """
    text = render(exp.select(exp.alias_(expression.copy(), "value")).from_(_ROWS))
    nulls = _row_of_nulls(schema, {each.name for each in expression.find_all(exp.Column)})
    with connected() as connection, _errors_in_words(text):
        try:
            return _type_on(connection, text, nulls)
        except _FAULTS_OF_VALUES:
            return _type_on(connection, text, nulls[:0])


@contextmanager
def _errors_in_words(text: str) -> Iterator[None]:
    try:
        yield
    except _FAULTS_OF_VALUES as error:
        message = "a value cannot be computed"
        raise UncomputableError(message, str(error).strip()) from error
    except duckdb.Error as error:
        raise InvalidQueryError(str(error).strip(), text) from error


def _type_on(connection: duckdb.DuckDBPyConnection, text: str, rows: pa.Table) -> pa.DataType:
    connection.register(_ROWS, rows)
    return connection.sql(text).to_arrow_table().schema.field("value").type


def _row_of_nulls(schema: pa.Schema, names: set[str]) -> pa.Table:
    import pyarrow as pa  # noqa: PLC0415 - only those who have SQL of their own need it here

    columns = {field.name: pa.nulls(1, field.type) for field in schema if field.name in names}
    return pa.table(columns or {"": pa.nulls(1)})


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
