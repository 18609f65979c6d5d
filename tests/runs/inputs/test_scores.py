"""Scores that are no finite numbers: refused, or left out and counted."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING

import duckdb
import polars as pl
import pyarrow.parquet as pq
import pytest
from cli.calls import spawn
from storage.promises import assert_results_ok

import thresher
from runs.inputs.workplace import assert_error

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from runs.inputs.workplace import Workplace

INVALID = {"null_score": None, "nan_score": math.nan, "infinite_score": math.inf}


def by_duckdb(frame: pl.DataFrame, path: Path) -> None:
    with duckdb.connect() as connection:
        connection.register("frame", frame.to_arrow())
        connection.execute("COPY (FROM frame) TO $1 (FORMAT parquet)", [str(path)])


def by_pyarrow(frame: pl.DataFrame, path: Path) -> None:
    pq.write_table(frame.to_arrow(), path)


def by_polars(frame: pl.DataFrame, path: Path) -> None:
    frame.write_parquet(path)


WRITERS = [by_duckdb, by_polars, by_pyarrow]


def with_invalid(frame: pl.DataFrame) -> pl.DataFrame:
    """The same rows among others whose score is NULL, NaN, inf or -inf."""
    odd = [None, math.nan, math.nan, math.inf, -math.inf, -math.inf]
    extra = frame.head(len(odd)).with_columns(
        pl.Series("score", odd, dtype=pl.Float64), pl.col("article_id") + 1_000_000
    )
    return pl.concat([frame.head(100), extra, frame.tail(-100)])


@pytest.mark.wide
def test_an_invalid_score_is_refused_with_file_row_and_remedy(workplace: Workplace) -> None:
    workplace.publish()
    for value, words in ((None, "NULL"), (math.nan, "NaN"), (math.inf, "infinite"), (-math.inf, "infinite")):
        scores = workplace.pairs["score"].to_list()
        scores[41] = value
        workplace.pairs.with_columns(pl.Series("score", scores, dtype=pl.Float64)).write_parquet(
            workplace.folder / "pairs.parquet"
        )
        workplace.refuse(
            65, f"column 'score' is {words} in 1 row", "pairs.parquet", "first at row 42", 'invalid_scores = "drop"'
        )


@pytest.mark.wide
def test_dropped_scores_leave_the_bytes_of_the_file_without_them(workplace: Workplace) -> None:
    clean = workplace.evaluate(invalid_scores="drop")
    for write in WRITERS:
        write(with_invalid(workplace.pairs), workplace.folder / "pairs.parquet")
        hashes = workplace.evaluate(invalid_scores="drop")
        assert workplace.rows_by_status() == {"used": 500, "null_score": 1, "nan_score": 2, "infinite_score": 3}
        assert {name: hashes[name] for name in hashes if not name.startswith("inputs/")} == {
            name: clean[name] for name in clean if not name.startswith("inputs/")
        }


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize(("status", "value"), [*INVALID.items(), ("infinite_score", -math.inf)])
def test_an_invalid_score_beside_equal_ones_is_called_by_its_name(
    workplace: Workplace, write: Callable[[pl.DataFrame, Path], None], status: str, value: float | None
) -> None:
    """Statistics leave NaN out, so that those of the file say that every score is 5."""
    scores = [5.0] * workplace.pairs.height
    changed = pl.Series("score", [value, *scores[1:]], dtype=pl.Float64)
    write(workplace.pairs.with_columns(changed), workplace.folder / "pairs.parquet")
    workplace.evaluate(invalid_scores="drop")
    assert workplace.rows_by_status() == {"used": workplace.pairs.height - 1, status: 1}


@pytest.mark.wide
def test_dropped_scores_leave_compared_pairs_too(workplace: Workplace) -> None:
    keys = {"invalid_scores": "drop", "events": None, "by": None, "compared": "pairs"}
    clean = workplace.evaluate(**keys)
    for write in WRITERS:
        write(with_invalid(workplace.pairs), workplace.folder / "pairs.parquet")
        hashes = workplace.evaluate(**keys)
        assert workplace.rows_by_status()["nan_score"] == 2
        name = "before_after_estimates/before_after.parquet"
        assert hashes[name] == clean[name]


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("write", WRITERS)
def test_where_on_a_column_with_nan_keeps_what_compares_as_true(
    workplace: Workplace, write: Callable[[pl.DataFrame, Path], None]
) -> None:
    weight = [math.nan if index % 7 == 0 else float(index) for index in range(500)]
    write(workplace.pairs.with_columns(pl.Series("weight", weight)), workplace.folder / "pairs.parquet")
    workplace.evaluate(pairs={"path": "pairs.parquet", "where": "weight > 250"})
    kept = sum(value > 250 for value in weight)
    assert workplace.rows_by_status() == {"used": kept, "where": 500 - kept}


def test_scores_that_are_all_null_leave_nothing_used(workplace: Workplace) -> None:
    workplace.pairs.with_columns(score=pl.lit(None)).write_parquet(workplace.folder / "pairs.parquet")
    workplace.refuse(65, "input pairs: 500 of 500 rows left out: null score 500", invalid_scores="drop")
    workplace.evaluate(invalid_scores="drop", allow_empty=True)
    assert workplace.rows_by_status() == {"used": 0, "null_score": 500}
    assert workplace.table("before_after_estimates")["m_after"].to_list() == [0] * (19 * 4)


def test_scores_of_single_precision_raise_a_warning(workplace: Workplace) -> None:
    workplace.pairs.with_columns(pl.col("score").cast(pl.Float32)).write_parquet(workplace.folder / "pairs.parquet")
    assert "single precision" in workplace.run().err


@pytest.mark.first_cases(3)
@pytest.mark.parametrize("value", [-0.0, 5e-324, -1.0, 1e308, 2.0, 2.5])
def test_an_odd_finite_score_counts_as_comparison_says(workplace: Workplace, value: float) -> None:
    workplace.pairs.with_columns(score=pl.lit(value), lag_hours=pl.lit(1.0)).head(5).write_parquet(
        workplace.folder / "pairs.parquet"
    )
    thresholds = [-0.5, 0.0, 5e-324, 2.0, 2.5, 1e300]
    workplace.evaluate(thresholds=thresholds, by=None)
    rows = workplace.table("before_after_estimates").sort("threshold")
    assert rows["m_after"].to_list() == [5 * (value >= threshold) for threshold in thresholds]


@pytest.mark.wide
def test_the_process_exits_with_65_for_nan(workplace: Workplace) -> None:
    workplace.publish()
    before = assert_results_ok(workplace.results)
    by_pyarrow(with_invalid(workplace.pairs), workplace.folder / "pairs.parquet")
    called = spawn("run", workplace.config())
    assert_error(called, 65, "column 'score' is", "pairs.parquet")
    assert assert_results_ok(workplace.results) == before


@pytest.mark.first_cases(2)
@pytest.mark.parametrize("as_file", [True, False])
@pytest.mark.parametrize(
    ("dtype", "unit", "is_rounded"),
    [
        (pl.Int64(), "1", False),
        (pl.Int64(), "2251799813685248", False),  # the largest is 2^53
        (pl.Int64(), "1152921504606846976", True),
        (pl.Decimal(38, 15), "0.000000000000001", False),
        (pl.Decimal(38, 18), "0.1", True),
        (pl.Decimal(38, 20), "0.00000000000001", False),
        (pl.Float64(), "1e17", False),
    ],
)
def test_scores_with_more_digits_than_a_double_are_told(
    tmp_path: Path, dtype: pl.DataType, unit: str, *, is_rounded: bool, as_file: bool
) -> None:
    scores = [Decimal(unit) * number for number in (1, 2, 3, 4)]
    values = [float(score) if dtype.is_float() else int(score) if dtype.is_integer() else score for score in scores]
    rows = pl.DataFrame({"score": pl.Series(values, dtype=dtype), "label": [False, True, False, True]})
    rows.write_parquet(tmp_path / "rows.parquet")
    swept = thresher.threshold_sweep(predictions=str(tmp_path / "rows.parquet") if as_file else rows)
    assert any("have more digits than a DOUBLE" in warning for warning in swept.warnings) == is_rounded
