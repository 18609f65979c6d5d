"""Queries of the rows of Parquet files, as DuckDB reads them."""

from __future__ import annotations

import glob
from typing import TYPE_CHECKING

import duckdb
import sqlglot.expressions as exp

from ..queries.dialect import FILE, column

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow.parquet as pq

    from ..queries.dialect import Partition


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


# Text in Parquet files that is not UTF-8: which columns hold it, and in how many rows.


REMEDY = "Decode its values with the encoding that they have before the file is written, or leave the file out."
_TEXTS = {"string", "large_string", "string_view"}
_MOST_SHOWN = 60


def broken_text(file: str) -> str | None:
    """Say which text columns of a Parquet file hold what is not UTF-8, in how many rows, and where first.

    Returns:
        None if all text is UTF-8, or if Arrow cannot read the file either.
    """
    import pyarrow as pa  # noqa: PLC0415 - the command line shows its help without it
    import pyarrow.parquet as pq  # noqa: PLC0415 - see above

    try:
        with pq.ParquetFile(file) as reader:
            names = [
                field.name
                for field in reader.schema_arrow
                if str(getattr(field.type, "value_type", field.type)) in _TEXTS
            ]
            columns = [words for name in names if (words := _broken_column(reader, name)) is not None]
    except (pa.ArrowException, OSError):
        return None
    return f"{file} holds text that is not UTF-8: {', '.join(columns)}" if columns else None


def _broken_column(reader: pq.ParquetFile, name: str) -> str | None:
    """A column with the number of its broken rows and the first of them; None if there is none."""
    numbered = enumerate(_texts(reader, name), start=1)
    broken = [(row, value) for row, value in numbered if not _is_utf8(value)]
    if not broken:
        return None
    row, value = broken[0]
    shown = repr(value if len(value) <= _MOST_SHOWN else value[:_MOST_SHOWN] + b"...")
    rows = f"{len(broken):,} row" + ("s" if len(broken) > 1 else "")
    return f"column {name!r} in {rows} (first at row {row:,}: {shown})"


def _texts(reader: pq.ParquetFile, name: str) -> Iterator[bytes]:
    import pyarrow as pa  # noqa: PLC0415 - see broken_text

    for batch in reader.iter_batches(columns=[name]):
        column = batch.column(0)
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        kind = pa.binary_view() if str(column.type) == "string_view" else pa.large_binary()
        yield from (value or b"" for value in column.cast(kind).to_pylist())


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True
