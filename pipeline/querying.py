"""`thresher query`: one SELECT on the published results, written to stdout."""

from __future__ import annotations

import re
import shutil
import sys
from typing import TYPE_CHECKING

import duckdb
import polars as pl

from pipeline.errors import UsageError
from pipeline.storage.read import omitted_tables, open_results

if TYPE_CHECKING:
    from pathlib import Path

FORMATS = ("table", "csv", "json", "parquet")
MOST_ROWS = 40
WIDE = 10_000


def write_answer(results: Path, sql: str, format_: str) -> None:
    """Run a query on the results and write its rows.

    Args:
        results: The output folder of a run.
        sql: One SELECT; schema `history` holds all kept runs.
        format_: `table` for people (at most 40 rows), or csv, json (one array), parquet, all rows at full precision.

    Raises:
        UsageError: the SQL is wrong or no single SELECT, it names a table that was not made, or the format is unknown.
    """
    if format_ not in FORMATS:
        message = f"unknown format {format_!r}"
        raise UsageError(message, remedy=f"Choose one of {', '.join(FORMATS)}.")
    with open_results(results) as connection:
        try:
            statements = connection.extract_statements(sql)
            if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
                message = "write one SELECT"
                raise UsageError(message, remedy='For example "FROM before_after_estimates LIMIT 5".')
            answer = connection.sql(sql).pl()
        except duckdb.Error as error:
            message = f"the SQL cannot be run: {str(error).strip()}"
            absent = " ".join(_absent(results, sql))
            raise UsageError(
                message, remedy=absent or 'Tables: see "SHOW TABLES" in DuckDB, or docs/results.md.'
            ) from error
    for sentence in _absent(results, sql):
        sys.stderr.write(f"note: {sentence}\n")
    _write(answer, format_)


def _absent(results: Path, sql: str) -> list[str]:
    """What the latest run says of the tables that a query names and a stage did not make."""
    words = {word.lower() for word in re.findall(r"\w+", sql)}
    return [
        f"Stage {stage!r} did not make the table {table}: {reason}."
        for stage, omitted in omitted_tables(results).items()
        for table, reason in omitted.items()
        if table in words
    ]


def _write(answer: pl.DataFrame, format_: str) -> None:
    if format_ == "csv":
        sys.stdout.write(answer.write_csv())
    elif format_ == "json":
        sys.stdout.write(answer.write_json() + "\n")
    elif format_ == "parquet":
        answer.write_parquet(sys.stdout.buffer)
    else:
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else WIDE
        with pl.Config(
            tbl_width_chars=width,
            tbl_rows=MOST_ROWS,
            tbl_cols=-1,
            tbl_hide_column_data_types=True,
            tbl_hide_dataframe_shape=True,
        ):
            sys.stdout.write(f"{answer}\n")
        if answer.height > MOST_ROWS:
            sys.stdout.write(f"{MOST_ROWS} of {answer.height:,} rows; --format csv for all\n")
