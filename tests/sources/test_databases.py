"""Tables and views of DuckDB files as inputs: the same results as from Parquet, and the file is left as it is."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import thresher
from pipeline.base.errors import BusyError, ConfigError, DataError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MAKE = """
CREATE TABLE rows AS FROM given;
CREATE VIEW dawn AS SELECT score AS p, label FROM rows WHERE source = 'dawn';
CREATE SCHEMA "old one";
CREATE TABLE "old one"."it's ""so" AS FROM given LIMIT 50;
CREATE VIEW elsewhere AS FROM 'secret.parquet';
CREATE TABLE odd AS SELECT *, INTERVAL 1 DAY AS unread, [source] AS nested FROM rows;
"""


@pytest.fixture(scope="module")
def rows() -> pl.DataFrame:
    rng = np.random.default_rng(3)
    score = np.round(rng.uniform(size=200), 2)
    return pl.DataFrame(
        {"score": score, "label": rng.uniform(size=200) < score, "source": rng.choice(["dawn", "noon"], 200)}
    )


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory, rows: pl.DataFrame) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("databases")
    rows.write_parquet(folder / "secret.parquet")
    path = folder / "matches.duckdb"
    with pytest.MonkeyPatch.context() as patch, closing(duckdb.connect(path)) as connection:
        patch.chdir(folder)
        connection.register("given", rows)
        connection.execute(MAKE)
    before = hashlib.sha256(path.read_bytes()).digest()
    yield path
    assert hashlib.sha256(path.read_bytes()).digest() == before


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(
    ("table", "keys", "kept"),
    [
        ("rows", {}, True),
        ("main.rows", {"where": "score > 0.3"}, pl.col("score") > 0.3),
        ("dawn", {"columns": {"score": "p"}}, pl.col("source") == "dawn"),
        ("old one.it's \"so", {}, pl.int_range(pl.len()) < 50),
        ("odd", {}, True),
    ],
)
def test_a_table_has_the_results_of_its_rows(
    database: Path, rows: pl.DataFrame, table: str, keys: dict[str, Any], kept: pl.Expr
) -> None:
    of_table = thresher.threshold_sweep(predictions={"database": database, "table": table, **keys})
    of_frame = thresher.threshold_sweep(predictions=rows.filter(kept))
    for name in ("curve", "areas", "operating_points"):
        assert_frame_equal(of_table[name], of_frame[name], check_exact=True)


def test_the_ending_of_a_file_is_enough_and_its_only_table_needs_no_name(tmp_path: Path, rows: pl.DataFrame) -> None:
    with closing(duckdb.connect(tmp_path / "one.duckdb")) as connection:
        connection.register("given", rows)
        connection.execute("CREATE TABLE single AS FROM given")
    assert thresher.threshold_sweep(predictions=tmp_path / "one.duckdb").areas["n"].item() == 200


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (None, r"has several tables\nIt has dawn, elsewhere, odd, rows, old one\.it's \"so: name one, table = …"),
        ("row", r"has no table 'row'\nIt has dawn, "),
        ("elsewhere", r"elsewhere of .* cannot be read: Permission Error.*\nA view can read the tables of its"),
    ],
)
def test_what_is_no_table_of_the_file_is_refused(database: Path, table: str | None, words: str) -> None:
    with pytest.raises(DataError, match=words):
        thresher.threshold_sweep(predictions={"database": database} | ({} if table is None else {"table": table}))


def test_what_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.duckdb").write_bytes(b"score,label\n1,1\n")
    with pytest.raises(DataError, match=r"cannot be read as a DuckDB file: IO Error"):
        thresher.threshold_sweep(predictions={"database": tmp_path / "x.duckdb", "table": "x"})
    with pytest.raises(ConfigError, match="database names a DuckDB file: leave path and format out"):
        thresher.threshold_sweep(predictions={"database": "x.duckdb", "path": "x.parquet"})


OPEN = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print(flush=True); sys.stdin.read()"


def test_a_file_that_another_program_writes_to_is_busy(database: Path) -> None:
    words = [sys.executable, "-c", OPEN, str(database)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout
        other.stdout.readline()
        with pytest.raises(BusyError, match=r"another program has .* open for writing\nClose it there, or name a copy"):
            thresher.threshold_sweep(predictions={"database": database, "table": "rows"})
        other.communicate()
    assert thresher.threshold_sweep(predictions={"database": database, "table": "rows"}).areas["n"].item() == 200


def test_a_file_that_this_process_writes_to_is_busy(tmp_path: Path, rows: pl.DataFrame) -> None:
    path = tmp_path / "x.duckdb"
    with closing(duckdb.connect(path)) as connection:
        connection.register("given", rows)
        connection.execute("CREATE TABLE rows AS FROM given")
        with pytest.raises(BusyError, match=r"only in x\.duckdb\.wal yet\nClose the program that writes to it, or"):
            thresher.threshold_sweep(predictions={"database": path, "table": "rows"})
        connection.execute("CHECKPOINT")
        with pytest.raises(BusyError, match=r"this process has .* open for writing"):
            thresher.threshold_sweep(predictions={"database": path, "table": "rows"})
    assert thresher.threshold_sweep(predictions={"database": path, "table": "rows"}).areas["n"].item() == 200


@pytest.mark.wide
def test_a_run_of_a_table_is_unchanged_until_the_file_changes(tmp_path: Path, rows: pl.DataFrame) -> None:
    path = tmp_path / "x.duckdb"
    config = {
        "output": str(tmp_path / "results"),
        "stages": [{"kind": "threshold_sweep", "predictions": {"database": str(path), "table": "rows"}}],
    }
    with closing(duckdb.connect(path)) as connection:
        connection.register("given", rows)
        connection.execute("CREATE TABLE rows AS FROM given")
    assert [thresher.run(config).status for _ in range(2)] == ["published", "unchanged"]
    with closing(duckdb.connect(path)) as connection:
        connection.execute("DELETE FROM rows WHERE source = 'noon'")
    again = thresher.run(config)
    assert again.status == "published"
    assert again.table("threshold_sweep_areas")["n"].item() == rows.filter(source="dawn").height
