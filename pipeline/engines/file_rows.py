"""Queries of the rows of Parquet files, as DuckDB reads them."""

from __future__ import annotations

import glob
from typing import TYPE_CHECKING

import duckdb
import sqlglot.expressions as exp

from ..queries.by_file import FILE
from ..queries.dialect import column

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..queries.partitions import Partition

_NUMBER = "file_index"


def patterns(files: Iterable[str]) -> list[str]:
    """Return the paths of files with wildcard characters that are taken literally."""
    return [glob.escape(file) for file in files]


def written_list(texts: Sequence[str | None]) -> exp.Expr:
    """Return a list of texts; None is NULL."""
    return exp.Array(expressions=[exp.null() if text is None else exp.Literal.string(text) for text in texts])


def hides_numbers(file: str) -> bool:
    """Whether a file has a column of the name by which DuckDB numbers files, which then stands for that column."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - rows that lie in memory do without

    return any(name.lower() == _NUMBER for name in pq.read_schema(file).names)


def files_query(paths: exp.Expr, *, located: bool, numbered: bool = True) -> exp.Select:
    """Return a query of the rows of Parquet files.

    DuckDB 2.0 reads only files whose names a filter lets through, and `file_index` would number those that are left. It
    does not filter by a name that is computed with that number before it has read rows.

    Args:
        paths: A list of their paths, in which wildcard characters have a meaning.
        located: As for `DuckDB.scan`.
        numbered: Whether files can be told by their numbers.
    """
    no_folders = exp.EQ(this=exp.column("hive_partitioning"), expression=exp.false())
    rows = exp.func("read_parquet", paths, no_folders, *_location(located=located))
    name = exp.Case().when(column(_NUMBER).is_(exp.null()).not_(), column("source_file"))
    names = [exp.alias_(name, "source_file")] if located and numbered else []
    return exp.select(exp.Star(replace=names)).from_(rows)


def one_by_one(
    files: Sequence[str], partitions: Sequence[Partition], numbers: Sequence[int] = (), *, located: bool
) -> exp.Query:
    """Return a query of the rows of files that cannot be told by their numbers: one scan of each.

    Args:
        files: Their paths.
        partitions: Columns to add, with their values in each file.
        numbers: The number of each file, in the column `FILE`; empty: none.
        located: As for `DuckDB.scan`.
    """
    queries = []
    for index, file in enumerate(files):
        rows = files_query(written_list(patterns([file])), located=located, numbered=False)
        number = [file_number(each) for each in numbers[index : index + 1]]
        queries.append(rows.select(*(each.constant(index) for each in partitions), *number))
    return queries[0] if len(queries) == 1 else exp.union(*queries, distinct=False)


def read_every_value(file: str) -> None:
    """Decode a file, in a connection of its own.

    Raises:
        duckdb.Error: it cannot be decoded.
    """
    with duckdb.connect(":memory:") as connection:
        read_every_value_through(connection, file)


def read_every_value_through(connection: duckdb.DuckDBPyConnection, file: str) -> None:
    """Decode a file; as `read_every_value`."""
    text = "SELECT max(hash(whole_row)) FROM read_parquet($file, hive_partitioning = false) AS whole_row"
    connection.execute(text, {"file": glob.escape(file)}).fetchall()  # a result left open would block the next one


def file_number(first: int, together: int | None = None) -> exp.Expr:
    """Return a select item of `files_query`, the column `FILE`: a number of the file that a row comes from.

    Args:
        first: The lowest number.
        together: How many files in a row have one number; None: all have the lowest, a key that costs nothing.
    """
    number: exp.Expr = exp.Literal.number(first)
    if together is not None:
        group = exp.IntDiv(this=column(_NUMBER), expression=exp.Literal.number(together))
        number = exp.Add(this=group, expression=number)
    return exp.alias_(exp.cast(number, "INT"), FILE, quoted=True)


def partition_column(partition: Partition, values: exp.Expr) -> exp.Expr:
    """Return a select item of `files_query`: the value of a partition in the file that a row comes from.

    Args:
        partition: The partition.
        values: The list of its values.
    """
    number = exp.Add(this=exp.cast(column(_NUMBER), "BIGINT"), expression=exp.Literal.number(1))
    return partition.typed(exp.func("list_extract", values, number))


def _location(*, located: bool) -> tuple[exp.Expr, ...]:
    if not located:
        return ()
    name = exp.EQ(this=exp.column("filename"), expression=exp.Literal.string("source_file"))
    return name, exp.EQ(this=exp.column("file_row_number"), expression=exp.true())
