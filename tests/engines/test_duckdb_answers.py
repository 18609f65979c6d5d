"""Answers that a release of DuckDB, between the first that thresher could use and the newest, got wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest
import sqlglot

from pipeline.base.dialect import FILE, Partition, column
from pipeline.base.interrupts import StopRequest
from pipeline.engines.duckdb import DuckDB
from pipeline.engines.engine import Resources

if TYPE_CHECKING:
    from pathlib import Path

COUNTED = """
SELECT events.k, coalesce(matches.n, 0) AS n FROM events
LEFT JOIN (SELECT k, count(*) AS n FROM pairs WHERE x >= $low OR x >= $high GROUP BY k) AS matches
ON events.k = matches.k WHERE events.complete
"""


KEPT = {
    "k >= 6": set(range(6, 12)),
    "k IN (1, 7)": {1, 7},
    "source_file LIKE '%_3.parquet'": {3, 7, 11},
    "source_file > $path": {2, 3, 6, 7, 10, 11},
    "file_row_number = 1": {4, 5, 6, 7},
}


def write(folder: Path, name: str, frame: pl.DataFrame, files: int) -> list[str]:
    paths = [folder / f"{name}_{number}.parquet" for number in range(files)]
    for number, path in enumerate(paths):
        frame[number::files].write_parquet(path)
    return [str(path) for path in paths]


@pytest.mark.wide
def test_a_join_of_several_files_never_loses_its_matches(tmp_path: Path) -> None:
    """DuckDB 1.5.0 to 1.5.2 gave zeros for all of them, in some runs."""
    events = pl.DataFrame({"k": ["a", "b"], "complete": [True, True]})
    pairs = pl.DataFrame({"k": ["a", "a", "a", "b", "b", "b"], "x": [1.0] * 6})
    counted = sqlglot.parse_one(COUNTED, read="duckdb")
    assert isinstance(counted, sqlglot.exp.Query)
    with DuckDB(Resources(scratch=tmp_path / "scratch"), [tmp_path], StopRequest()) as engine:
        engine.scan("events", write(tmp_path, "events", events, 2))
        engine.scan("pairs", write(tmp_path, "pairs", pairs, 3))
        answers = [engine.fetch(counted, {"low": 0.2, "high": 0.5}) for _ in range(300)]
    assert {tuple(sorted(answer.rows())) for answer in answers} == {(("a", 3), ("b", 3))}


@pytest.mark.parametrize("where", KEPT)
def test_values_of_partitions_stay_with_their_files_whatever_a_filter_leaves_out(tmp_path: Path, where: str) -> None:
    """DuckDB 2.0 numbers only those files that a filter of their names lets through."""
    paths = write(tmp_path, "p", pl.DataFrame({"k": range(12)}), 4)
    day = Partition("day", "VARCHAR", ("a", None, "c", "d"))
    number = Partition("number", "BIGINT", ("10", "11", None, "13"))
    columns = "source_file", "k", day.column, number.column
    rows = sqlglot.exp.select(*(column(name) for name in columns)).from_("rows")
    query = rows.where(where.replace("$path", f"'{paths[1]}'"), dialect="duckdb").order_by("k")
    with DuckDB(Resources(scratch=tmp_path / "scratch"), [tmp_path], StopRequest()) as engine:
        engine.scan("rows", paths, (day, number), located=True)
        seen = engine.fetch(query).rows()
    assert seen
    texts, numbers = ("a", None, "c", "d"), (10, 11, None, 13)
    assert seen == [(paths[k % 4], k, texts[k % 4], numbers[k % 4]) for _, k, *_ in seen]
    assert {k for _, k, *_ in seen} == KEPT[where]


@pytest.mark.parametrize("name", ["k2", "file_index"])
@pytest.mark.parametrize("together", [1, 2, 5])
def test_numbers_of_files_are_theirs_whatever_their_columns_are_called(
    tmp_path: Path, name: str, together: int
) -> None:
    paths = write(tmp_path, "p", pl.DataFrame({"k": range(12), name: [7] * 12}), 4)
    day = Partition("day", "VARCHAR", ("a", None, "c", "d"))
    with DuckDB(Resources(scratch=tmp_path / "scratch"), [tmp_path], StopRequest()) as engine:
        engine.scan_numbered("rows", paths, 10, together, partitions=(day,), located=True)
        query = sqlglot.exp.select(*map(column, ("k", "day", "source_file", FILE, name))).from_("rows").order_by("k")
        seen = engine.fetch(query).rows()
    expected = [(k, day.values[k % 4], paths[k % 4], 10 + k % 4 // together, 7) for k in range(12)]
    assert seen == expected
