"""Sections of rows for `thresher explain`: which rows stand at their edges, and in which order ties come."""

from __future__ import annotations

from typing import Any

import duckdb
import polars as pl
import pytest

from pipeline.base.dialect import render
from pipeline.base.sql_files import expand, load

WHERE = {"source_file": "a.parquet", "file_row_number": [0, 1, 2]}
HOUR = 3.6e9  # microseconds
WINDOW = {"before_start": -4.0, "before_end": -2.0, "after_start": 0.0, "after_end": 3.0}


@pytest.mark.parametrize(
    ("name", "rows", "params", "column", "expected"),
    [
        (  # of two scores at one distance the higher comes first
            "threshold_sweep/explain/nearest",
            WHERE | {"score": [0.25, 0.75, 0.5], "label": True},
            {"threshold": 0.5, "lowest_score": 0.5},
            "score",
            [0.5, 0.75, 0.25],
        ),
        (
            "threshold_sweep/explain/at_threshold",
            WHERE | {"score": [0.25, 0.5, 0.75], "label": True},
            {"threshold": 0.5},
            "score",
            [0.5],
        ),
        (  # the window includes its start on either side, and the end of the side after the event
            "before_after/explain/nearest",
            {"score": [5.0, 4.0, 3.0, 2.0, 1.0], "lag": [hours * HOUR for hours in (-4.0, -2.0, -1.0, 0.0, 3.0)]},
            {"threshold": 5.0, "lowest_score": 0.5, **{name: hours * HOUR for name, hours in WINDOW.items()}},
            "lag_hours",
            [-4.0, 0.0, 3.0],
        ),
        (  # a pair that the matcher did not store comes first
            "before_after/explain/gold_misses",
            {"score": [0.2, None, 0.1], "is_gold": True},
            {"lowest_score": 0.5},
            "score",
            [None, 0.1, 0.2],
        ),
        (  # a document that is not judged is not relevant
            "ranking/explain/irrelevant_first",
            {"query_id": "q", "doc_id": ["a", "b", "c"], "rank": [2, 1, 3], "value": 0.5, "relevance": [None, 1, 0]},
            {"relevance_level": 1.0},
            "doc_id",
            ["a", "c"],
        ),
        (
            "change_points/explain/points",
            {
                "series_id": "s",
                "run_number": 1,
                "position": [1, 2],
                "true_position": 1,
                "score": [0.1, 0.9],
                "status": 1,
            },
            {},
            "score",
            [0.9, 0.1],
        ),
    ],
)
def test_rows_of_a_section(
    name: str, rows: dict[str, Any], params: dict[str, float], column: str, expected: list[Any]
) -> None:
    with duckdb.connect() as connection:
        connection.register("explained_gold" if "gold" in name else "explained_rows", pl.DataFrame(rows).to_arrow())
        answer = connection.execute(render(expand(load(name), ())), params)
        index = [name for name, *_ in answer.description].index(column)
        assert [row[index] for row in answer.fetchall()] == expected
