"""`thresher show`: what a published run shows a person, at any time and in a pipe."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

import duckdb
import polars as pl

from ..base.errors import UsageError
from ..base.sql_files import page
from ..base.visible_text import cleaned
from ..report import summary, text
from ..report.diff import blocks_of, run_difference
from ..report.evidence import checked_rows
from ..report.explanation import written
from ..report.published import published_run, run_before
from ..report.summary import Paragraph, cells_of
from ..storage.catalog import omitted_tables, open_results
from .session import width_of_output, write

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from duckdb.sqltypes import DuckDBPyType

    from ..report.explaining import Explanation
    from ..report.published import PublishedRun
    from ..report.summary import Block


FORMATS = ("text", "markdown", "latex")


def show_run(published: PublishedRun, stages: Sequence[str], format_: str, *, methods_only: bool) -> None:
    """Write to stdout what a run shows of the stages that are wanted, all if none is; or a methods section of them."""
    blocks_of = summary.blocks_of_methods if methods_only else summary.blocks_of_run
    _write_blocks(blocks_of(published, published.chosen(stages)), format_)


def _write_blocks(blocks: Iterable[Block], format_: str) -> None:
    """Write blocks to stdout; text is fitted to the terminal, and in a pipe to COLUMNS, or to 80."""
    if format_ == "markdown":
        written = text.markdown_text(blocks)
    elif format_ == "latex":
        written = text.latex_text(blocks)
    else:
        written = text.plain_text(blocks, width_of_output() or text.WIDTH_OF_PIPES)
    sys.stdout.write(written)


def write_explanation(explanation: Explanation, format_: str, *, brief: bool) -> None:
    """Write an explanation to stdout, fitted to the terminal if that is one, and in a pipe to COLUMNS if that is set.

    It is `text`, `markdown`, `csv` (the rows of one section) or `json` (all of it); `brief`: the number, and its rows.

    Raises:
        UsageError: the format is unknown, or CSV is asked of several sections.
    """
    write(written(explanation, format_, width_of_output(), brief=brief))


def write_checked(run: PublishedRun, name: str, path: Path) -> None:
    """Write the verdicts of a filled-in sheet, CSV, as Parquet to stdout, from the stage of the run that drew it.

    Raises:
        UsageError: stdout is a terminal, or the stage has no sample.
        DataError: the sheet is not that of the sample, or has a verdict that is none.
    """
    if sys.stdout.isatty():
        message = "Parquet is not for a terminal"
        raise UsageError(message, remedy=f"Send it to a file: … --checked {path} > audited.parquet")
    checked_rows(run.chosen([name])[0], path).write_parquet(sys.stdout.buffer)


DIFF_FORMATS = ("text", "markdown", "json")


def diff_runs(results: Path, before: str | None, after: str | None, with_results: Path | None, format_: str) -> None:
    """Write to stdout what changed between two runs, each by its generation, run id or folder.

    The second is the latest where it is not given, perhaps of another results folder; the first the one before it, or
    with another results folder the latest.

    Raises:
        UsageError: there is no such run or format.
    """
    text.check_format(format_, DIFF_FORMATS)
    second = published_run(with_results or results, after)
    if before is None and with_results is None:
        first = run_before(results, second)
        if first is None:
            _say(f"No run before {second.folder.name} is kept, so there is nothing to compare it with.", format_)
            return
    else:
        first = published_run(results, before)
    if first.folder == second.folder:
        _say(f"Both are the run {first.folder.name}: nothing changed.", format_)
        return
    difference = run_difference(first, second)
    if format_ == "json":
        sys.stdout.write(f"{json.dumps(asdict(difference), indent=2, ensure_ascii=False)}\n")
    else:
        _write_blocks(blocks_of(difference, first, second), format_)


def _say(sentence: str, format_: str) -> None:
    if format_ == "json":
        sys.stdout.write(f"{json.dumps({'nothing_changed': sentence}, ensure_ascii=False)}\n")
    else:
        _write_blocks([Paragraph(sentence)], format_)


FORMATS_OF_ANSWERS = ("table", "csv", "tsv", "json", "jsonl", "parquet", "markdown", "latex")
MOST_TABLE_ROWS = 40
MOST_RECORDS = 10
FOR_PEOPLE = frozenset({"table", "markdown", "latex"})
_NUMBERS = frozenset({"tinyint", "smallint", "integer", "bigint", "utinyint", "usmallint", "uinteger", "ubigint"})
_SHOWN = _NUMBERS | {"boolean", "float", "double"}
_PLAIN = _SHOWN | {"null", "varchar", "enum", "uuid", "hugeint", "decimal", "date", "time", "timestamp"}
_PLAIN |= {"timestamp_s", "timestamp_ms", "timestamp_ns", "timestamp with time zone"}
_NESTED = frozenset({"list", "array", "struct", "map", "union", "variant"})
_NO_JSON = re.compile(r'("(?:[^"\\]|\\.)*")|-?\b(?:NaN|Infinity)\b')


def write_answer(results: Path, sql: str, format_: str) -> None:
    """Run a query, one SELECT, on the results in a folder and write its rows.

    They are a `table` for people (at most 40 rows); `markdown` or `latex`, a table of all rows with six digits; or csv,
    tsv, json (one array), jsonl (one object per line), parquet, all rows at full precision. Lists and other nested
    values are JSON in csv and tsv; what Parquet does not know, such as an interval, is text there.

    Raises:
        UsageError: the SQL is wrong or not one SELECT, it names a table that was not made, or the format is unknown.
    """
    text.check_format(format_, FORMATS_OF_ANSWERS)
    if format_ == "parquet" and sys.stdout.isatty():
        message = "Parquet is not for a terminal"
        raise UsageError(message, remedy="Send it to a file: … --format parquet > answer.parquet")
    if re.search("[\ud800-\udfff]", sql):  # bytes that Python could not decode
        message = "the SQL is not UTF-8"
        raise UsageError(message, remedy="Set the encoding of the terminal, or of what calls the command, to UTF-8.")
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
    if kind.id in (_SHOWN if format_ in FOR_PEOPLE else _PLAIN):
        return column
    return as_json if kind.id in _NESTED else column.cast("VARCHAR")


def _fits_parquet(kind: DuckDBPyType) -> bool:
    """Whether Polars can hold the type, nested ones by their parts, and write it to Parquet."""
    if kind.id in {"list", "struct", "map"}:
        return all(_fits_parquet(inner) for _, inner in kind.children if not isinstance(inner, int | list))
    return kind.id in _PLAIN or kind.id == "blob"


def _objects(answer: pl.DataFrame) -> list[str]:
    """Return the rows as JSON objects; the cells are JSON already. A number that JSON does not know is null."""
    cells = [
        pl.lit(f"{json.dumps(name, ensure_ascii=False)}:") + pl.col(name).fill_null("null") for name in answer.columns
    ]
    texts = answer.select(pl.concat_str(cells, separator=",")).to_series()
    return [f"{{{_NO_JSON.sub(lambda match: match[1] or 'null', text)}}}" for text in texts]


def _write_table(answer: pl.DataFrame) -> None:
    """Write a table, or, on a terminal that is too narrow for it, one record below the other."""
    cells = text.cleaned_cells(cells_of(answer.head(MOST_TABLE_ROWS), _cell))
    widths = text.natural_widths(cells.headers, cells.rows)
    width = width_of_output()
    shown = len(cells.rows)
    if width is None or text.total_width(widths) <= width:
        _write_lines_of(text.table_lines(cells.headers, cells.rows, widths, cells.flush_right))
    else:
        shown = min(shown, MOST_RECORDS)
        _write_lines_of(text.record_lines(cells.headers, cells.rows[:shown], width))
    if answer.height > shown:
        sys.stdout.write(f"{shown} of {answer.height:,} rows; --format csv for all\n")


def _write_typeset(answer: pl.DataFrame, table_lines: Callable[..., Iterator[str]]) -> None:
    cells = cells_of(answer, _cell)
    _write_lines_of(table_lines(cells.headers, cells.rows, cells.flush_right))


def _write_lines_of(lines: Iterator[str]) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))


def _cell(value: object) -> str:
    if value is None:
        return "null"
    if value == "null":
        return '"null"'  # as names of groups are shown
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.6g}" if isinstance(value, float) else str(value)


_WRITERS: dict[str, Callable[[pl.DataFrame], None]] = {
    "table": _write_table,
    "csv": lambda answer: write(answer.write_csv()),
    "tsv": lambda answer: write(answer.write_csv(separator="\t")),
    "json": lambda answer: write("[{}]\n".format(",\n".join(_objects(answer)))),
    "jsonl": lambda answer: write("".join(f"{row}\n" for row in _objects(answer))),
    "parquet": lambda answer: answer.write_parquet(sys.stdout.buffer),
    "markdown": lambda answer: _write_typeset(answer, text.markdown_table),
    "latex": lambda answer: _write_typeset(answer, text.latex_table),
}
