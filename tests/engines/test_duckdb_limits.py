"""What the engine's connection may do, and how its errors are told."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq
import pytest
import sqlglot

from pipeline.base.errors import DataError, Interrupted, PermissionDenied, ResourceError, ThresherError
from pipeline.base.interrupts import StopRequest
from pipeline.engines import duckdb as duckdb_engine
from pipeline.engines.duckdb import DuckDB
from pipeline.engines.engine import Resources

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import sqlglot.expressions as exp


def query(text: str) -> exp.Query:
    tree = sqlglot.parse_one(text, read="duckdb")
    assert isinstance(tree, sqlglot.exp.Query)
    return tree


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    (tmp_path / "secret").mkdir()
    for name in ("in", "secret"):
        pl.DataFrame({"a": range(10)}).write_parquet(tmp_path / name / "f.parquet")
    return tmp_path


@pytest.fixture
def engine(folder: Path) -> Iterator[DuckDB]:
    with DuckDB(Resources(threads=1, scratch=folder / "scratch"), [folder / "in"], StopRequest()) as engine:
        yield engine


def test_a_scan_reads_its_files(engine: DuckDB, folder: Path) -> None:
    engine.scan("f", [str(folder / "in" / "f.parquet")])
    assert engine.fetch(query("SELECT sum(a) AS s FROM f"))["s"].to_list() == [45]


@pytest.mark.parametrize(
    "path", ["secret/f.parquet", "in/../secret/f.parquet", "in/link.parquet", "/etc/passwd", "in/folder/f.parquet"]
)
def test_files_outside_the_allowed_folders_are_refused(engine: DuckDB, folder: Path, path: str) -> None:
    (folder / "in" / "link.parquet").symlink_to(folder / "secret" / "f.parquet")
    (folder / "in" / "folder").symlink_to(folder / "secret")
    with pytest.raises(PermissionDenied):
        engine.scan("f", [str(folder / path)])


@pytest.mark.parametrize(
    "text",
    [
        "SET threads = 4",
        "SET enable_external_access = true",
        "INSTALL httpfs",
        "LOAD httpfs",
        "ATTACH '/tmp/x.duckdb'",
        "COPY (SELECT 1) TO '/tmp/x.csv'",
        "SET lock_configuration = false",
    ],
)
def test_the_connection_is_locked(engine: DuckDB, text: str) -> None:
    with pytest.raises(duckdb.Error):
        engine._connection.execute(text)


def test_a_variable_of_python_is_no_table(engine: DuckDB) -> None:
    hidden = pl.DataFrame({"a": [1]})
    with pytest.raises(ThresherError):
        engine.fetch(query("SELECT * FROM hidden"))
    assert hidden.height == 1


def test_the_scratch_folder_is_private(engine: DuckDB, folder: Path) -> None:
    assert engine.name == "duckdb"
    assert (folder / "scratch").stat().st_mode & 0o777 == 0o700


def test_a_value_that_cannot_be_converted_is_a_fault_of_the_data(engine: DuckDB) -> None:
    with pytest.raises(DataError, match="cannot be converted"):
        engine.fetch(query("SELECT CAST('x' AS INT)"))


def test_exhausted_memory_names_the_limits(folder: Path) -> None:
    limits = Resources(threads=1, memory="20MB", scratch=folder / "scratch", scratch_limit="1MB")
    with DuckDB(limits, [], StopRequest()) as small, pytest.raises(ResourceError, match="memory") as caught:
        small.fetch(query("SELECT list(range ORDER BY random()) FROM range(20000000)"))
    assert caught.value.remedy is not None
    assert "[resources]" in caught.value.remedy


def test_wrong_sql_is_our_bug_and_is_shown(engine: DuckDB) -> None:
    with pytest.raises(ThresherError, match="a query failed") as caught:
        engine.fetch(query("SELECT nope"))
    assert caught.value.code == 70


def test_nothing_is_asked_after_a_stop(folder: Path) -> None:
    stop = StopRequest()
    with DuckDB(Resources(scratch=folder / "scratch"), [], stop) as engine:
        stop(signal.SIGTERM, None)
        with pytest.raises(Interrupted) as caught:
            engine.fetch(query("SELECT 1"))
    assert caught.value.code == 143


def test_progress_is_told_while_a_query_works(folder: Path) -> None:
    told: list[float] = []
    with DuckDB(Resources(threads=1, scratch=folder / "scratch"), [], StopRequest(), told.append) as engine:
        engine.fetch(query("SELECT count(*) FROM range(30000) a, range(20000) b WHERE a.range % 7 = b.range % 3"))
    assert told


def test_the_first_broken_file_is_named(engine: DuckDB, folder: Path) -> None:
    good, bad = folder / "in" / "f.parquet", folder / "in" / "g.parquet"
    content = bytearray(good.read_bytes())
    content[4:24] = b"\xa5" * 20
    bad.write_bytes(content)
    engine.scan("f", [str(good), str(bad)])
    with pytest.raises(DataError, match=r"g\.parquet"):
        engine.fetch(query("SELECT max(hash(a)) FROM f"))


def test_text_that_is_not_utf8_is_told_by_column_and_row(engine: DuckDB, folder: Path) -> None:
    options = pyarrow.compute.CastOptions(target_type=pa.string(), allow_invalid_utf8=True)
    texts = pyarrow.compute.cast(pa.array([b"a", b"caf\xe9", None, b"\xff"]), options=options)
    pq.write_table(pa.table({"x": ["a", "b", "c", "d"], "words": texts}), folder / "in" / "broken.parquet")
    engine.scan("broken", [str(folder / "in" / "broken.parquet")])
    words = r"broken\.parquet holds text that is not UTF-8: column 'words' in 2 rows \(first at row 2: b'caf\\xe9'\)"
    with pytest.raises(DataError, match=words):
        engine.fetch(query("SELECT words FROM broken"))


@pytest.mark.parametrize(("limit", "size"), [("64MB", 64e6), ("2GiB", 2**31), (None, None)])
def test_the_engine_tells_its_memory_limit(tmp_path: Path, limit: str | None, size: float | None) -> None:
    with DuckDB(Resources(memory=limit, scratch=tmp_path), [], StopRequest()) as engine:
        assert engine.memory() == pytest.approx(size, rel=0.01) if size else engine.memory() > 1e8


def test_engines_of_one_kind_share_a_database_and_nothing_in_it(folder: Path) -> None:
    limits, stop = Resources(threads=1, scratch=folder / "scratch"), StopRequest()
    with DuckDB(limits, [folder / "in"], stop) as first, DuckDB(limits, [folder / "in"], stop) as second:
        first.define("mine", query("SELECT 1 AS a"), keep=True)
        assert first.fetch(query("SELECT a FROM mine"))["a"].to_list() == [1]
        with pytest.raises(ThresherError, match="a query failed"):
            second.fetch(query("SELECT a FROM mine"))
        second.define("mine", query("SELECT 2 AS a"))
        assert [each.fetch(query("SELECT a FROM mine")).item() for each in (first, second)] == [1, 2]
        settings = "SELECT current_setting('TimeZone') AS z, current_setting('python_enable_replacements') AS r"
        assert second.fetch(query(settings)).row(0) == ("UTC", False)
    with DuckDB(limits, [folder / "secret"], stop) as other, pytest.raises(PermissionDenied):
        other.scan("f", [str(folder / "in" / "f.parquet")])


@pytest.mark.parametrize(("rows", "bits"), [(None, 20), (100_001, 20), (100_000, 12), (0, 12)])
def test_few_rows_are_counted_in_small_tables(tmp_path: Path, rows: int | None, bits: int) -> None:
    with DuckDB(Resources(threads=1, scratch=tmp_path), [], StopRequest(), rows=rows) as engine:
        assert engine.fetch(query("SELECT current_setting('perfect_ht_threshold') AS bits")).item() == bits


def test_a_database_is_another_after_an_error_that_may_have_broken_it(folder: Path) -> None:
    limits = Resources(threads=1, memory="20MB", scratch=folder / "scratch", scratch_limit="1MB")
    with DuckDB(limits, [], StopRequest()) as engine, pytest.raises(ResourceError):
        engine.fetch(query("SELECT list(range ORDER BY random()) FROM range(20000000)"))
    assert duckdb_engine._KEPT == {}
    with DuckDB(limits, [], StopRequest()) as engine:
        assert engine.fetch(query("SELECT 1 AS a")).item() == 1


@pytest.mark.parametrize("params", [None, {"least": 3.0}])
def test_rows_are_the_same_where_a_connection_runs_no_statements_itself(
    engine: DuckDB, monkeypatch: pytest.MonkeyPatch, params: dict[str, float] | None
) -> None:
    condition = "true" if params is None else "range > $least"
    rows = query(f"SELECT range AS a, 'x' || range AS b FROM range(10) WHERE {condition} ORDER BY a")  # noqa: S608
    submitted = engine.fetch(rows, params)
    connection = engine._connection

    class Older:
        def sql(self, *arguments: object, **keywords: object) -> object:
            return connection.sql(*arguments, **keywords)  # type: ignore[arg-type]

    monkeypatch.setattr(engine, "_connection", Older())
    related = engine.fetch(rows, params)
    monkeypatch.undo()
    assert related.equals(submitted)
    assert related.schema == submitted.schema
