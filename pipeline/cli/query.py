"""`thresher query`: run one SELECT on the published results and write its rows to stdout."""

from __future__ import annotations

import json
import re
import shutil
import sys
from typing import TYPE_CHECKING

import duckdb
import polars as pl
from rich.cells import cell_len

from pipeline.cli.terminal import cleaned, write
from pipeline.errors import UsageError
from pipeline.queries.load import page
from pipeline.storage.read import omitted_tables, open_results

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from duckdb.sqltypes import DuckDBPyType

FORMATS = ("table", "csv", "json", "jsonl", "parquet")
MOST_TABLE_ROWS = 40
MOST_RECORDS = 10
GAP = "  "
_NUMBERS = frozenset({"tinyint", "smallint", "integer", "bigint", "utinyint", "usmallint", "uinteger", "ubigint"})
_SHOWN = _NUMBERS | {"boolean", "float", "double"}
_PLAIN = _SHOWN | {"null", "varchar", "enum", "uuid", "hugeint", "decimal", "date", "time", "timestamp"}
_PLAIN |= {"timestamp_s", "timestamp_ms", "timestamp_ns", "timestamp with time zone"}
_NESTED = frozenset({"list", "array", "struct", "map", "union", "variant"})
_NO_JSON = re.compile(r'("(?:[^"\\]|\\.)*")|-?\b(?:NaN|Infinity)\b')


def write_answer(results: Path, sql: str, format_: str) -> None:
    """Run a query on the results and write its rows.

    Args:
        results: The output folder of a run.
        sql: One SELECT; schema `history` holds all kept runs.
        format_: `table` for people (at most 40 rows), or csv, json (one array), jsonl (one object per line), parquet,
            all rows at full precision. Lists and other nested values are JSON in csv; what Parquet does not know, such
            as an interval, is text there.

    Raises:
        UsageError: the SQL is wrong or not one SELECT, it names a table that was not made, or the format is unknown.
    """
    if format_ not in FORMATS:
        message = f"unknown format {format_!r}"
        raise UsageError(message, remedy=f"Choose one of {', '.join(FORMATS)}.")
    if format_ == "parquet" and sys.stdout.isatty():
        message = "Parquet is not for a terminal"
        raise UsageError(message, remedy="Send it to a file: … --format parquet > answer.parquet")
    with open_results(results) as connection:
        try:
            statements = connection.extract_statements(sql)
            if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
                message = "write one SELECT"
                raise UsageError(message, remedy='For example "FROM before_after_estimates LIMIT 5".')
            answer = _fetch(connection.sql(sql), format_)
        except duckdb.Error as error:
            message = f"the SQL cannot be run: {str(error).strip()}"
            absent = " ".join(_absent(results, sql))
            remedy = absent or f'Tables: see "SHOW TABLES" in DuckDB, or {page("results")}'
            raise UsageError(message, remedy=remedy) from error
    for sentence in _absent(results, sql):
        sys.stderr.write(cleaned(f"note: {sentence}\n"))
    _WRITERS[format_](answer)


def _absent(results: Path, sql: str) -> list[str]:
    """Return why tables that a query names were not made, as the latest run tells it."""
    words = {word.lower() for word in re.findall(r"\w+", sql)}
    return [
        f"Stage {stage!r} did not make the table {table}: {reason}."
        for stage, omitted in omitted_tables(results).items()
        for table, reason in omitted.items()
        if table in words
    ]


def _fetch(rows: duckdb.DuckDBPyRelation, format_: str) -> pl.DataFrame:
    """Fetch the rows, with texts in place of values that the format, or Polars, cannot represent."""
    named = rows.project("*")  # names that repeat get numbers
    columns = [
        _as_written(duckdb.ColumnExpression(name), kind, format_).alias(name)
        for name, kind in zip(named.columns, named.types, strict=True)
    ]
    answer: pl.DataFrame = named.select(*columns).pl()
    return answer


def _as_written(column: duckdb.Expression, kind: DuckDBPyType, format_: str) -> duckdb.Expression:
    as_json = duckdb.FunctionExpression("to_json", column).cast("VARCHAR")
    if format_ in {"json", "jsonl"}:
        return as_json
    if format_ == "parquet":
        return column if _fits_parquet(kind) else column.cast("VARCHAR")
    if kind.id in (_SHOWN if format_ == "table" else _PLAIN):
        return column
    return as_json if kind.id in _NESTED else column.cast("VARCHAR")


def _fits_parquet(kind: DuckDBPyType) -> bool:
    """Whether Polars can hold the type, nested ones by their parts, and write it to Parquet."""
    if kind.id in {"list", "struct", "map"}:
        return all(_fits_parquet(inner) for _, inner in kind.children if not isinstance(inner, int | list))
    return kind.id in _PLAIN or kind.id == "blob"


def _write_csv(answer: pl.DataFrame) -> None:
    write(answer.write_csv())


def _objects(answer: pl.DataFrame) -> list[str]:
    """Return the rows as JSON objects; the cells are JSON already. A number that JSON does not know is null."""
    cells = [
        pl.lit(f"{json.dumps(name, ensure_ascii=False)}:") + pl.col(name).fill_null("null") for name in answer.columns
    ]
    texts = answer.select(pl.concat_str(cells, separator=",")).to_series()
    return [f"{{{_NO_JSON.sub(lambda match: match[1] or 'null', text)}}}" for text in texts]


def _write_json(answer: pl.DataFrame) -> None:
    rows = ",\n".join(_objects(answer))
    write(f"[{rows}]\n")


def _write_lines(answer: pl.DataFrame) -> None:
    write("".join(f"{row}\n" for row in _objects(answer)))


def _write_parquet(answer: pl.DataFrame) -> None:
    answer.write_parquet(sys.stdout.buffer)


def _write_table(answer: pl.DataFrame) -> None:
    """Write a table, or, on a terminal that is too narrow for it, one record below the other."""
    names = [cleaned(name, layout="") for name in answer.columns]
    rows = [[_cell(value) for value in row] for row in answer.head(MOST_TABLE_ROWS).iter_rows()]
    widths = [max(map(cell_len, column)) for column in zip(names, *rows, strict=True)]
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    shown = len(rows)
    if width is None or sum(widths) + len(GAP) * (len(widths) - 1) <= width:
        right = [dtype.is_numeric() for dtype in answer.dtypes]
        lines = list(_table_lines(names, rows, widths, right))
    else:
        shown = min(shown, MOST_RECORDS)
        lines = list(_record_lines(names, rows[:shown]))
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    if answer.height > shown:
        sys.stdout.write(f"{shown} of {answer.height:,} rows; --format csv for all\n")


def _table_lines(
    names: Sequence[str], rows: Sequence[Sequence[str]], widths: Sequence[int], right: Sequence[bool]
) -> Iterator[str]:
    for number, row in enumerate((names, *rows)):
        padded = (
            f"{' ' * (width - cell_len(cell))}{cell}" if flush else f"{cell}{' ' * (width - cell_len(cell))}"
            for cell, width, flush in zip(row, widths, right, strict=True)
        )
        yield GAP.join(padded).rstrip()
        if number == 0:
            yield GAP.join("─" * width for width in widths)


def _record_lines(names: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    width = max(map(cell_len, names))
    for number, row in enumerate(rows, start=1):
        yield f"── row {number} ──"
        for name, cell in zip(names, row, strict=True):
            yield f"{name}{' ' * (width - cell_len(name))}{GAP}{cell}"


def _cell(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.6g}" if isinstance(value, float) else cleaned(str(value), layout="")


_WRITERS: dict[str, Callable[[pl.DataFrame], None]] = {
    "table": _write_table,
    "csv": _write_csv,
    "json": _write_json,
    "jsonl": _write_lines,
    "parquet": _write_parquet,
}
