"""What messages advise works: each remedy is followed, and files of other kinds are named as what they are."""

from __future__ import annotations

import ast
import gzip
import re
import sqlite3
import zipfile
from contextlib import nullcontext
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import thresher
from pipeline.base.errors import DataError
from pipeline.sources.parquet_files import _check_places

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


CHUNK = {
    "physical_type": "DOUBLE",
    "num_values": 4,
    "data_page_offset": 30,
    "dictionary_page_offset": 4,
    "has_dictionary_page": True,
    "total_compressed_size": 60,
    "total_uncompressed_size": 90,
    "statistics": SimpleNamespace(has_min_max=True, min=-1.0, max=2.0),
}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, None),
        ({"data_page_offset": 4, "has_dictionary_page": False}, None),
        ({"data_page_offset": 4, "dictionary_page_offset": 0}, None),
        ({"total_compressed_size": 96}, None),
        ({"statistics": None}, None),
        (
            {"total_compressed_size": 97},
            "puts column 'score' of row group 1 at byte 4, 97 long, where 4 to 100 are free",
        ),
        ({"total_compressed_size": -1}, "at byte 4, -1 long"),
        ({"dictionary_page_offset": 3}, "at byte 3, 60 long"),
        ({"data_page_offset": 2**62, "has_dictionary_page": False}, "at byte 4,611,686,018,427,387,904, 60 long"),
        ({"data_page_offset": -2, "has_dictionary_page": False}, "at byte -2, 60 long"),
        ({"total_uncompressed_size": -5}, "that it has -5 bytes"),
        ({"physical_type": "INT64"}, "that it holds INT64, and in its schema DOUBLE"),
        ({"num_values": 5}, "that 4 rows have 5 values"),
        ({"num_values": -4}, "that 4 rows have -4 values"),
        ({"statistics": SimpleNamespace(has_min_max=True, min=2.0, max=-1.0)}, "that its values reach from 2 to -1"),
    ],
)
def test_what_a_footer_says_of_a_column_must_be_possible(changes: dict[str, Any], words: str | None) -> None:
    chunk = SimpleNamespace(**CHUNK | changes)
    group = SimpleNamespace(num_rows=4, column=lambda _: chunk)
    leaf = SimpleNamespace(path="score", physical_type="DOUBLE", max_repetition_level=0)
    metadata: Any = SimpleNamespace(
        schema=SimpleNamespace(column=lambda _: leaf), num_columns=1, num_row_groups=1, row_group=lambda _: group
    )
    with nullcontext() if words is None else pytest.raises(OSError, match=re.escape(words)):
        _check_places(metadata, 100)


@pytest.mark.wide
def test_columns_of_a_footer_lie_one_behind_the_other(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    table = pa.table({"score": [0.1, 0.4, 0.6, 0.9], "label": [False, True, False, True], "note": ["a", "b", "a", "b"]})
    for keys in (
        {},
        {"row_group_size": 2},
        {"use_dictionary": False},
        {"compression": "zstd", "data_page_version": "2.0"},
    ):
        pq.write_table(table, path, **keys)
        assert counted(str(path)) == (1, 1, 1)
    content = path.read_bytes()
    first, second = (pq.read_metadata(path).row_group(0).column(number).dictionary_page_offset for number in (0, 2))
    varint = {each: b"\x26" + _zigzag(each) for each in (first, second)}
    path.write_bytes(content.replace(varint[second], b"\x26" + _zigzag(second - 8)))
    assert path.read_bytes() != content
    with pytest.raises(
        DataError, match=r"rows\.parquet is not a whole Parquet file \(its footer puts column 'note' of"
    ):
        counted(str(path))


def _zigzag(number: int) -> bytes:
    """A whole number as footers write it."""
    number, coded = number << 1, []
    while number >= 128:
        coded.append(number & 127 | 128)
        number >>= 7
    return bytes([*coded, number])
