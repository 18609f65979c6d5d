"""Rows that come in blocks: all of them, in order, in blocks of one size; and what goes wrong on the way."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import polars as pl
import pytest
import sqlglot

from pipeline.base.errors import DataError, Interrupted
from pipeline.base.interrupts import StopRequest
from pipeline.engines import duckdb as module
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
def stop() -> StopRequest:
    return StopRequest()


@pytest.fixture
def engine(tmp_path: Path, stop: StopRequest) -> Iterator[DuckDB]:
    (tmp_path / "in").mkdir()
    with DuckDB(Resources(threads=2, scratch=tmp_path / "scratch"), [tmp_path / "in"], stop) as engine:
        yield engine


@pytest.mark.parametrize("rows", [0, 1, 6999, 7000, 7001, 50_000])
def test_blocks_are_all_rows_in_order_and_of_one_size(
    engine: DuckDB, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    monkeypatch.setattr(module, "BLOCK_ROWS", 7000)
    text = f"SELECT range AS a, 'x' || range AS b FROM range({rows}) ORDER BY hash(range)"  # noqa: S608 - a number
    blocks = list(engine.stream(query(text)))
    heights = [block.height for block in blocks]
    assert heights == [7000] * (rows // 7000) + ([rows % 7000] if rows % 7000 else [])
    if rows:
        assert pl.concat(blocks).equals(engine.fetch(query(text)))


def test_a_stream_that_is_left_leaves_the_engine_free(engine: DuckDB, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BLOCK_ROWS", 100)
    first = next(engine.stream(query("SELECT range AS a FROM range(100000) ORDER BY a")))
    assert first["a"].to_list() == list(range(100))
    assert engine.fetch(query("SELECT 1 AS a"))["a"].to_list() == [1]


def test_faults_of_a_stream_are_those_of_a_fetch(engine: DuckDB, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be converted"):
        list(engine.stream(query("SELECT CAST('x' || range AS INT) FROM range(10)")))
    broken = tmp_path / "in" / "f.parquet"
    pl.DataFrame({"a": range(10)}).write_parquet(broken)
    content = bytearray(broken.read_bytes())
    content[4:24] = b"\xa5" * 20
    broken.write_bytes(content)
    engine.scan("f", [str(broken)])
    with pytest.raises(DataError, match=r"f\.parquet"):
        list(engine.stream(query("SELECT a FROM f ORDER BY a")))


def test_a_stop_ends_a_stream_between_blocks(
    engine: DuckDB, stop: StopRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BLOCK_ROWS", 10)
    blocks = engine.stream(query("SELECT range AS a FROM range(1000) ORDER BY a"))
    assert next(blocks).height == 10
    stop(signal.SIGTERM, None)
    with pytest.raises(Interrupted):
        list(blocks)
