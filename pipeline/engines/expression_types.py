"""The type that DuckDB gives an expression on the columns of a schema, found without reading a row."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import duckdb
import sqlglot.expressions as exp

from pipeline.errors import InvalidQueryError
from pipeline.queries.dialect import render

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
    """
    text = render(exp.select(exp.alias_(expression.copy(), "value")).from_(_NO_ROWS))
    with connected() as connection:
        connection.register(_NO_ROWS, schema.empty_table())
        try:
            return connection.sql(text).to_arrow_table().schema.field("value").type
        except duckdb.Error as error:
            raise InvalidQueryError(str(error).strip(), text) from error


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
