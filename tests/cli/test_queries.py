"""`thresher query`: one SELECT on the results, and nothing else."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import polars as pl
import pytest
from runs.inputs.workplace import Workplace, assert_error

from cli.calls import call, spawn

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Workplace:
    """Results that every test here only reads."""
    workplace = Workplace(tmp_path_factory.mktemp("published"))
    workplace.publish()
    return workplace


@pytest.mark.wide
def test_query_writes_csv_to_a_pipe(published: Workplace) -> None:
    called = spawn("query", published.results, "SELECT 1 AS a, NULL AS b, 'x,y' AS c")
    assert (called.code, called.out, called.err) == (0, 'a,b,c\n1,,"x,y"\n', "")


@pytest.mark.wide
def test_query_writes_every_row_at_full_precision(published: Workplace, tmp_path: Path) -> None:
    sql = "FROM before_after_estimates ORDER BY ALL"
    expected = published.table("before_after_estimates").sort(pl.all(), nulls_last=True)
    csv = call("query", published.results, sql, "--format", "csv").out
    (tmp_path / "a.csv").write_text(csv)
    read = pl.read_csv(tmp_path / "a.csv", schema_overrides=expected.schema)
    assert read.equals(expected)
    (tmp_path / "a.parquet").write_bytes(call("query", published.results, sql, "--format", "parquet").raw)
    assert pl.read_parquet(tmp_path / "a.parquet").equals(expected)
    rows = json.loads(call("query", published.results, sql, "-f", "json").out)
    assert [row["precision"] for row in rows] == expected["precision"].to_list()


def test_query_as_a_table_says_how_much_it_left_out(published: Workplace) -> None:
    called = call("query", published.results, "FROM before_after_estimates", "--format", "table")
    assert "40 of 76 rows; --format csv for all" in called.out


@pytest.mark.parametrize("form", ["table", "markdown", "latex"])
def test_null_and_the_text_null_look_different(published: Workplace, form: str) -> None:
    shown = call("query", published.results, "SELECT NULL::VARCHAR AS a, 'null' AS b", "--format", form).out
    assert (shown.count("null"), len(re.findall(r'("|symbol\{34\})null("|\\symbol\{34\})', shown))) == (2, 1)


def test_bytes_that_are_no_text_are_no_sql(published: Workplace) -> None:
    called = call("query", published.results, "SELECT 'caf\udce9'")
    assert_error(called, 2, "the SQL is not UTF-8")


def test_query_without_rows_still_has_a_header(published: Workplace) -> None:
    assert call("query", published.results, "SELECT stage FROM inputs WHERE false").out == "stage\n"
    assert call("query", published.results, "SELECT stage FROM inputs WHERE false", "-f", "json").out == "[]\n"


@pytest.mark.first_cases(4)
@pytest.mark.parametrize(
    "sql",
    [
        "SELEC 1",
        "FROM nope",
        "",
        "SELECT 1; SELECT 2",
        "DROP VIEW inputs",
        "CREATE TABLE t (a INT)",
        "INSERT INTO inputs VALUES (1)",
        "COPY (SELECT 1) TO 'out.csv'",
        "ATTACH 'other.duckdb'",
        "PRAGMA enable_profiling",
        "SET threads = 1",
        "INSTALL httpfs",
        "EXPLAIN SELECT 1",
        "SELECT 1/",
    ],
)
def test_what_is_no_single_select_is_refused(published: Workplace, sql: str) -> None:
    assert_error(call("query", published.results, sql), 2)


@pytest.mark.parametrize(
    "sql",
    [
        "FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_text('/etc/passwd')",
        "FROM '{pairs}'",
        "SELECT * FROM glob('/etc/*')",
        "SELECT getenv('HOME')",
        "FROM read_parquet('https://example.org/x.parquet')",
    ],
)
def test_query_reads_nothing_outside_the_results(published: Workplace, sql: str) -> None:
    called = call("query", published.results, sql.format(pairs=published.folder / "pairs.parquet"))
    assert_error(called, 2)


def test_an_unknown_format_is_a_usage_error(published: Workplace) -> None:
    assert_error(call("query", published.results, "SELECT 1", "-f", "xml"), 2, "unknown format 'xml'", "csv")


def test_timestamps_with_a_zone_can_be_queried(published: Workplace) -> None:
    called = call("query", published.results, "SELECT TIMESTAMPTZ '2024-01-01 12:00:00+02' AS t")
    assert called.code == 0, called.err
    assert "10:00:00" in called.out


def test_verify_says_how_much_it_checked(published: Workplace) -> None:
    called = call("verify", published.results)
    assert re.fullmatch(r".*: 1 run, \d+ files, all as published\n", called.out)


@pytest.mark.wide
def test_a_closed_pipe_is_no_error(published: Workplace) -> None:
    words = [
        sys.executable,
        "-m",
        "pipeline",
        "query",
        str(published.results),
        "SELECT repeat('x', 100) FROM range(100000)",
    ]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert b"Traceback" not in process.stderr.read()
