"""The type of an expression, and whether a predicate holds for given values, asked of DuckDB without reading a row."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import duckdb
import sqlglot.expressions as exp

from ..base.dialect import apart, render, table
from ..base.errors import InvalidQueryError, UncomputableError
from .duckdb import DuckDB

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from ..base.dialect import Partition
    from .engine import Place


# The type that DuckDB gives an expression on the columns of a schema, found without reading a row.


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


# Whether DuckDB finds that a predicate holds for values that lie in memory, without an input being read.


_VALUES = "values_to_test"


def truths(predicate: exp.Expr, values: pa.Table) -> list[bool | None]:
    """Say of every row of a table whether a predicate holds, as a scan of a file would find it.

    Args:
        predicate: A predicate on the columns of the table.
        values: The table.

    Returns:
        Per row whether the predicate is true; None where it cannot be computed, and everywhere if it does not fit the
        columns.
    """
    holds = exp.Coalesce(this=exp.paren(predicate.copy()), expressions=[exp.false()])
    holds, lists = apart(holds)  # what has a list apart has a subquery, which cannot be tried
    text = render(exp.select(exp.alias_(holds if lists else exp.func("try", holds), "holds")).from_(_VALUES))
    with connected() as connection:
        for name, listed in lists.items():
            connection.register(name, table(listed))
        connection.register(_VALUES, values)
        try:
            return [row[0] for row in connection.sql(text).fetchall()]
        except duckdb.Error:
            return [None] * values.num_rows


# DuckDB as an engine that reads no row.


class DuckDBWithoutRows(DuckDB):
    """An engine that reads the footers of files and none of their rows: it tells the types of all that a plan makes."""

    def scan(
        self, name: str, files: Sequence[str], partitions: Sequence[Partition] = (), *, located: bool = False
    ) -> None:
        """Register a relation that has the columns of some files and no row; takes the arguments of `DuckDB.scan`."""
        self.define(name, self._rows_of(name, files, partitions, located=located).limit(0))

    def scan_place(self, name: str, target: Place, *, located: bool = False) -> None:
        """Register a relation with the columns of another engine's table and no row; see `ReadsPlaces.scan_place`."""
        import pyarrow as pa  # noqa: PLC0415 - only those whose rows Spark reads need it here

        plain = [column for column in target.schema if not isinstance(column.type, pa.BaseExtensionType)]
        location = [pa.field("source_file", pa.string()), pa.field("file_row_number", pa.int64())] if located else []
        super().hand_over(name, pa.schema([*plain, *location]).empty_table())

    def hand_over(self, name: str, table: pa.Table) -> None:
        """Register no row of a table as a relation."""
        super().hand_over(name, table.schema.empty_table())
