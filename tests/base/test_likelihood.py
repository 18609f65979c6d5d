"""Likelihoods and squared errors of rows: what saves comparisons changes no digit, whatever the score."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.base.dialect import column, render
from pipeline.base.sql_files import expand, load
from pipeline.sources.bins import even_cells

if TYPE_CHECKING:
    from pathlib import Path

PLAIN = """
SELECT
  bin,
  count_if(score < 0 OR score > 1) AS n_outside,
  sum(CAST(term AS DECIMAL(38, 15))) AS first,
  sum(CAST(term * term AS DECIMAL(38, 15))) AS second,
  sum(CAST(CASE
    WHEN score < 0 OR score > 1 THEN 0
    WHEN label THEN (1 - score) * (1 - score)
    ELSE score * score
  END AS DECIMAL(38, 15))) AS squared_errors
FROM (
  SELECT *, ln(CASE WHEN label THEN clipped ELSE 1 - clipped END) AS term
  FROM (SELECT *, least(greatest(score, 1e-15::DOUBLE), 1 - 1e-15::DOUBLE) AS clipped FROM predictions)
)
GROUP BY bin
ORDER BY bin
"""


def hard_predictions() -> pa.Table:
    """Every score once with either label, as a bin of its own: next to 0 and 1, to the limits, and outside."""
    rng = np.random.default_rng(7)
    limits = np.array([0.0, 1e-15, 1e-14, 1.0000000000000999e-14, 0.5])
    small = np.concatenate([limits, np.nextafter(limits, 2), np.nextafter(limits, -1), 10 ** -rng.uniform(0, 20, 2000)])
    outside = np.array([-5e-324, -1e-300, -1e-16, 1 + 2.3e-16, 2.0, -1e300, 1e300])
    scores = np.concatenate([small, 1 - small, rng.uniform(size=4000), outside])
    bins = np.arange(2 * len(scores))
    label = np.repeat([True, False], len(scores))
    return pa.table({"bin": bins, "score": np.tile(scores, 2), "label": label, "replicate": np.zeros_like(bins)})


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("name", ["counts_and_likelihood", "likelihood_of_rows"])
def test_sums_are_those_of_plain_comparisons(name: str) -> None:
    query = load(f"threshold_sweep/{name}")
    tree = expand(query, ["bin"]) if name == "likelihood_of_rows" else expand(query, [])
    columns = "bin, n_outside, first, second, squared_errors"
    with duckdb.connect() as connection:
        connection.register("predictions", hard_predictions())
        connection.register("weighted_predictions", hard_predictions())
        summed = connection.sql(render(tree)).project(columns).order("bin").fetchall()
        expected = connection.sql(PLAIN).fetchall()
    assert summed == expected


@pytest.mark.parametrize("scores", [[0.3, 0.3], [0.2, 0.9], [0.0, 0.0], [2.0, 2.0]])
def test_rows_that_statistics_leave_out_are_in_no_sum(tmp_path: Path, scores: list[float]) -> None:
    """Statistics leave NaN out, so that conditions may be answered from them, as if all scores were the same."""
    odd = [math.nan, math.inf, -math.inf, None]
    labels = [True, False, True, False, True, False]
    for number, others in enumerate((odd, odd[:1] * 4)):
        path = tmp_path / f"{number}.parquet"
        pq.write_table(pa.table({"score": [*scores, *others], "label": labels}), path)
        cell = render(even_cells(column("score"), 0.0, 1.0, 10))
        with duckdb.connect() as connection:
            rows = connection.read_parquet(str(path)).project(f"score, label, {cell} AS bin, 0 AS replicate")
            rows.create_view("predictions")
            tree = expand(load("threshold_sweep/counts_and_likelihood"), [])
            columns = "bin, n_outside, first, second, squared_errors"
            summed = connection.sql(render(tree)).filter("bin IS NOT NULL").project(columns).order("bin").fetchall()
            connection.register("finite", pa.table({"score": scores, "label": labels[:2]}))
            rows_alone = connection.sql("SELECT * FROM finite").project(f"score, label, {cell} AS bin")
            rows_alone.create_view("predictions", replace=True)
            assert summed == connection.sql(PLAIN).fetchall()
