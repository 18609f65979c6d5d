"""What messages advise works: each remedy is followed, and files of other kinds are named as what they are."""

from __future__ import annotations

import ast
import gzip
import re
import sqlite3
import zipfile
from typing import TYPE_CHECKING, Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import thresher
from pipeline.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def counted(predictions: Any) -> tuple[int, int, int]:  # noqa: ANN401 - any input
    row = thresher.threshold_sweep(predictions=predictions, thresholds=[0.5]).curve.row(0, named=True)
    return row["tp"], row["fp"], row["fn"]


@pytest.mark.parametrize("scores", [["10%", "40 %", "60%", "90%"], ["10,5%", "40%", "60,25%", "90%"]])
def test_the_expression_for_shares_in_percent_reads_them(scores: list[str], tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    pl.DataFrame({"my score": scores, "label": [0, 1, 0, 1]}).write_csv(path)
    with pytest.raises(DataError) as caught:
        counted({"path": str(path), "columns": {"score": "my score"}})
    (sql,) = re.findall(r"\{\"sql\": ('.*'|\".*\")\}", str(caught.value))
    assert counted({"path": str(path), "columns": {"score": {"sql": ast.literal_eval(sql)}}}) == (1, 1, 1)


def points(days: list[str], folder: Path, event_time: object = "day", timezone: str | None = None) -> int:
    """The number of pairs that are counted where events have some times."""
    n = len(days)
    pl.DataFrame({"event_id": [str(i) for i in range(n)], "day": days}).write_csv(folder / "events.csv")
    ids = pl.Series([str(i) for i in range(n)])
    articles = pl.DataFrame({"event_id": ids, "score": [0.9] * n, "article_time": ["2026-01-19 12:00:00"] * n})
    articles.write_csv(folder / "pairs.csv")
    result = thresher.before_after(
        pairs={"path": str(folder / "pairs.csv"), "timezone": timezone},
        events={"path": str(folder / "events.csv"), "columns": {"event_time": event_time}},
        thresholds=[0.5],
    )
    return int(result.tables["inputs"].filter(input="pairs", status="used")["n_rows"].sum())


def test_dates_among_times_are_midnights(tmp_path: Path) -> None:
    assert points(["2026-01-18", "2026-01-18 10:00:00", "2026-01-19T01:30"], tmp_path) == 3


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(
    ("days", "timezone"),
    [
        (["18-01-2026", "19-01-2026"], None),
        (["1/18/2026 10:00", "1/19/2026 9:00"], None),
        (["20260118"], None),
        (["1768700000"], "UTC"),  # seconds since 1970 are of a zone, so that the other times need one
    ],
)
def test_the_expression_for_other_dates_reads_them(days: list[str], timezone: str | None, tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        points(days, tmp_path)
    (sql,) = re.findall(r"\{\"sql\": ('.*'|\".*\")\}", str(caught.value))
    assert points(days, tmp_path, {"sql": ast.literal_eval(sql)}, timezone) == len(days)


def test_no_expression_is_advised_that_some_rows_do_not_fit(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        points(["18-01-2026", "2026-01-18"], tmp_path)
    assert "strptime" not in str(caught.value)
    assert "first at row 1: '18-01-2026'" in str(caught.value)


def as_duckdb(path: Path) -> None:
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE my_table AS SELECT 0.5 AS score, true AS label")


def as_sqlite(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE my_table (score REAL)")
    connection.commit()
    connection.close()


def as_zip(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("a.csv", "score\n")


KINDS: dict[str, Callable[[Path], Any]] = {
    "a DuckDB database": as_duckdb,
    "an SQLite database": as_sqlite,
    "an Arrow file": pl.DataFrame({"score": [0.5]}).write_ipc,
    "an Avro file": pl.DataFrame({"score": [0.5]}).write_avro,
    "a zip archive, or a spreadsheet": as_zip,
    "compressed with gzip": lambda path: path.write_bytes(gzip.compress(b"score,label\n")),
}


@pytest.mark.parametrize("name", ["rows.db", "rows.parquet"])
@pytest.mark.parametrize("kind", KINDS)
def test_files_of_other_kinds_are_named(kind: str, name: str, tmp_path: Path) -> None:
    KINDS[kind](tmp_path / name)
    with pytest.raises(DataError, match=rf"rows\.\w+ is not a Parquet file, it is {kind}") as caught:
        counted(str(tmp_path / name))
    assert not re.search(r"remove|write it again|write the file again", str(caught.value), re.IGNORECASE)


def test_a_footer_that_contradicts_its_row_groups_is_the_fault_of_the_file(tmp_path: Path) -> None:
    """Whatever single byte of a footer is another, the counts are right or the file is named."""
    path = tmp_path / "rows.parquet"
    table = pa.table({"score": [0.1, 0.4, 0.6, 0.9], "label": [False, True, False, True]})
    pq.write_table(table, path, store_schema=False)
    undamaged = path.read_bytes()
    length = int.from_bytes(undamaged[-8:-4], "little")
    footer = undamaged[-8 - length : -8]
    number = footer.index(b"\x16\x08")  # the number of rows, 4, as it is coded
    damaged = bytearray(undamaged)
    damaged[len(undamaged) - 8 - length + number + 1] = 0x0A
    path.write_bytes(damaged)
    with pytest.raises(DataError, match=r"rows\.parquet is not a whole Parquet file \(its footer counts 5 rows, and 4"):
        counted(str(path))
