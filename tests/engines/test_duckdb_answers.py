"""Answers that a release of DuckDB, between the first that thresher could use and the newest, got wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import sqlglot

from pipeline.engines.duckdb import DuckDB, Resources
from pipeline.interrupts import StopRequest

if TYPE_CHECKING:
    from pathlib import Path

COUNTED = """
SELECT events.k, coalesce(matches.n, 0) AS n FROM events
LEFT JOIN (SELECT k, count(*) AS n FROM pairs WHERE x >= $low OR x >= $high GROUP BY k) AS matches
ON events.k = matches.k WHERE events.complete
"""


def write(folder: Path, name: str, frame: pl.DataFrame, files: int) -> list[str]:
    paths = [folder / f"{name}_{number}.parquet" for number in range(files)]
    for number, path in enumerate(paths):
        frame[number::files].write_parquet(path)
    return [str(path) for path in paths]


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
