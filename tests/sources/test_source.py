from __future__ import annotations

import datetime as dt
import tomllib
from typing import TYPE_CHECKING, Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from running import estimates_of, read_table, rows_by_status, run_before_after, run_threshold_sweep

from pipeline.base.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NAN, INF = float("nan"), float("inf")
PAIRS = pl.DataFrame(
    {
        "event_id": [1, 1, 2, 2],
        "article_id": [1, 2, 3, 4],
        "score": [0.9, 0.2, 0.7, 0.8],
        "lag_hours": [1.0, -1.0, 2.0, -3.0],
    }
)


def counts(table: pl.DataFrame) -> list[tuple[Any, ...]]:
    return table.select("n_before", "n_after", "m_before", "m_after").rows()


def by_polars(frame: pl.DataFrame, path: Path) -> None:
    frame.write_parquet(path)


def by_pyarrow(frame: pl.DataFrame, path: Path) -> None:
    pq.write_table(frame.to_arrow(), path)


def by_duckdb(frame: pl.DataFrame, path: Path) -> None:
    with duckdb.connect() as connection:
        connection.register("frame", frame.to_arrow())
        connection.table("frame").write_parquet(str(path))


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("write", [by_polars, by_pyarrow, by_duckdb])
@pytest.mark.parametrize(("threshold", "boundary"), [(0.5, ">="), (5.0, ">="), (0.2, ">"), (1.0, ">=")])
def test_scores_that_are_not_finite_never_count_whoever_wrote_the_file(
    tmp_path: Path, write: Callable[[pl.DataFrame, Path], None], threshold: float, boundary: str
) -> None:
    """Statistics of Parquet files leave NaN out, so a raw comparison in the engine gives wrong counts."""
    scores = [0.5, NAN, None, 0.2, 1.0, INF, -INF]
    frame = pl.DataFrame({"event_id": [1] * 7, "score": scores, "lag_hours": [1.0] * 7})
    write(frame, tmp_path / "pairs.parquet")
    run = run_before_after(
        tmp_path,
        {},
        pairs=str(tmp_path / "pairs.parquet"),
        thresholds=[threshold],
        boundary=boundary,
        invalid_scores="drop",
    )
    expected = sum(score > threshold or (boundary == ">=" and score == threshold) for score in (0.5, 0.2, 1.0))
    assert counts(read_table(run, "before_after_estimates")) == [(0, 3, 0, expected)]
    assert rows_by_status(run) == {"used": 3, "nan_score": 1, "null_score": 1, "infinite_score": 2}


@pytest.mark.parametrize(("score", "words"), [(None, "NULL"), (NAN, "NaN"), (INF, "infinite"), (-INF, "infinite")])
def test_a_score_that_is_not_finite_is_refused_with_its_file_and_row(
    tmp_path: Path, score: float | None, words: str
) -> None:
    pairs = PAIRS.with_columns(score=pl.Series([0.9, 0.2, score, 0.8]))
    with pytest.raises(
        DataError, match=rf"column 'score' is {words} in 1 row \(1 in .*pairs\.parquet, first at row 3\)"
    ):
        run_before_after(tmp_path, {"pairs": pairs}, thresholds=[0.5])


@pytest.mark.first_cases(2)
@pytest.mark.parametrize(
    ("dtype", "scores"),
    [
        (pl.Float32, [0.75, 0.25, 0.5, 1.0]),
        (pl.Decimal(10, 4), ["0.75", "0.25", "0.5", "1"]),
        (pl.Int8, [3, 0, 1, 4]),
        (pl.UInt32, [3, 0, 1, 4]),
    ],
)
def test_numbers_of_every_type_are_compared_as_double(
    tmp_path: Path, dtype: pl.DataType, scores: list[float | str]
) -> None:
    pairs = PAIRS.with_columns(score=pl.Series(scores).cast(pl.Float64).cast(dtype))
    assert counts(estimates_of(tmp_path, {"pairs": pairs}, thresholds=[0.5])) == [(2, 2, 1, 2)]


def test_single_precision_is_compared_as_double_and_said_so(tmp_path: Path) -> None:
    pairs = PAIRS.with_columns(score=pl.Series([0.9, 0.9, 0.1, 0.1], dtype=pl.Float32))
    run = run_before_after(tmp_path, {"pairs": pairs}, thresholds=[0.1, 0.9])
    assert [row[2:] for row in counts(read_table(run, "before_after_estimates"))] == [(2, 2), (0, 0)]
    assert any("FLOAT" in warning for warning in run.notes)


def test_columns_are_found_under_the_names_that_the_files_have(tmp_path: Path) -> None:
    theirs = {"event_id": "doc x", "score": "weight", "lag_hours": 'hour"diff', "article_id": "to"}
    pairs = PAIRS.rename(theirs)
    table = estimates_of(tmp_path, {"pairs": pairs}, pairs={"columns": theirs}, thresholds=[0.5])
    assert counts(table) == [(2, 2, 1, 2)]


def test_files_may_order_their_columns_and_narrow_their_types_differently(tmp_path: Path) -> None:
    folder = tmp_path / "pairs"
    folder.mkdir()
    PAIRS[:2].write_parquet(folder / "a.parquet")
    other = PAIRS[2:].select("lag_hours", "score", "event_id", "article_id", extra=1)
    other.cast({"event_id": pl.Int32, "lag_hours": pl.Float32}).write_parquet(folder / "b.parquet")
    run = run_before_after(tmp_path, {}, pairs=str(folder), thresholds=[0.5])
    assert counts(read_table(run, "before_after_estimates")) == [(2, 2, 1, 2)]


def test_a_type_that_changes_between_files_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "pairs"
    folder.mkdir()
    PAIRS[:2].write_parquet(folder / "a.parquet")
    PAIRS[2:].cast({"event_id": pl.String}).write_parquet(folder / "b.parquet")
    with pytest.raises(DataError, match=r"'event_id' has different types: BIGINT in .*a\.parquet; VARCHAR in .*b\."):
        run_before_after(tmp_path, {}, pairs=str(folder), thresholds=[0.5])


@pytest.mark.parametrize("column", ["event_id", "score"])
def test_text_is_never_taken_for_a_number(tmp_path: Path, column: str) -> None:
    pairs = PAIRS.cast({column: pl.String})
    events = pl.DataFrame({"event_id": [1, 2], "n_before": [5, 5], "n_after": [5, 5]})
    with pytest.raises(DataError, match=column):
        run_before_after(tmp_path, {"pairs": pairs, "events": events}, thresholds=[0.5])


def test_a_missing_column_names_the_file_and_the_nearest_name(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"(?s)pairs\.parquet has no column 'score'.*'scores'"):
        run_before_after(tmp_path, {"pairs": PAIRS.rename({"score": "scores"})}, thresholds=[0.5])


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(
    "written", ["SCORES / 100", '"Ja/Nein" + scores', "CASE WHEN scores > 1 THEN 1 ELSE scores END"]
)
def test_an_expression_in_the_place_of_a_name_is_answered_with_how_it_is_written(tmp_path: Path, written: str) -> None:
    frame = PAIRS.rename({"score": "scores"}).with_columns(pl.lit(0.5).alias("Ja/Nein"))
    with pytest.raises(DataError) as caught:
        run_before_after(tmp_path, {"pairs": frame}, thresholds=[0.5], pairs={"columns": {"score": written}})
    remedy = str(caught.value.remedy)
    assert remedy.startswith("An expression is written columns = ")
    shown = tomllib.loads(remedy.removeprefix("An expression is written ").removesuffix("."))
    assert shown == {"columns": {"score": {"sql": written}}}
    run_before_after(tmp_path, {"pairs": frame}, thresholds=[0.5], pairs=shown)


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("key", ["by", "cluster"])
def test_an_expression_that_no_field_is_mapped_to_needs_a_name(tmp_path: Path, key: str) -> None:
    frame = pl.DataFrame({"score": [0.1, 0.7, 0.8], "label": [False, True, True], "size": [1, 2, 3]})
    with pytest.raises(DataError) as caught:
        run_threshold_sweep(tmp_path, frame, thresholds=[0.5], **{key: ["size % 2"] if key == "by" else "size % 2"})
    remedy = str(caught.value.remedy)
    shown = tomllib.loads(remedy[remedy.index("columns = ") :].removesuffix("."))
    assert shown == {"columns": {"my_column": {"sql": "size % 2"}}}
    named = ["my_column"] if key == "by" else "my_column"
    run_threshold_sweep(tmp_path, frame, thresholds=[0.5], predictions=shown, **{key: named})


@pytest.mark.parametrize("written", ["scores-b", "scores", "1", "b * 2"])
def test_a_name_that_only_looks_like_an_expression_is_answered_as_a_name(tmp_path: Path, written: str) -> None:
    frame = PAIRS.rename({"score": "SCORE2"})
    with pytest.raises(DataError, match="Its columns are") as caught:
        run_before_after(tmp_path, {"pairs": frame}, thresholds=[0.5], pairs={"columns": {"score": written}})
    assert "sql =" not in str(caught.value.remedy)


def test_columns_that_differ_only_in_case_are_refused(tmp_path: Path) -> None:
    pairs = PAIRS.with_columns(Score=1.0)
    with pytest.raises(DataError, match="2 columns named 'score'"):
        run_before_after(tmp_path, {"pairs": pairs}, thresholds=[0.5])


def test_a_column_that_is_named_twice_is_refused(tmp_path: Path) -> None:
    table = PAIRS.to_arrow()
    doubled = pa.Table.from_arrays([*table.columns, table["score"]], names=[*table.schema.names, "score"])
    pq.write_table(doubled, tmp_path / "pairs.parquet")
    with pytest.raises(DataError, match="2 columns named 'score'"):
        run_before_after(tmp_path, {}, pairs=str(tmp_path / "pairs.parquet"), thresholds=[0.5])


@pytest.mark.first_cases(2)
@pytest.mark.parametrize(
    "values",
    [
        pytest.param(["b", None, "a", "a"], id="text"),
        pytest.param([2, None, 1, 1], id="integer"),
        pytest.param([True, None, False, False], id="boolean"),
        pytest.param([dt.date(2024, 2, 1), None, dt.date(2024, 1, 1), dt.date(2024, 1, 1)], id="date"),
        pytest.param([dt.datetime(2024, 2, 1), None, dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 1)], id="timestamp"),  # noqa: DTZ001
        pytest.param([2.5, None, 1.5, 1.5], id="double"),
    ],
)
def test_values_of_every_type_can_group_and_null_is_a_group(tmp_path: Path, values: list[Any]) -> None:
    pairs = PAIRS.with_columns(g=pl.Series(values))
    table = estimates_of(tmp_path, {"pairs": pairs}, by=[["g"]], thresholds=[0.5])
    assert table["g"].to_list() == [values[2], values[0], None]
    assert counts(table) == [(1, 1, 1, 1), (0, 1, 0, 1), (1, 0, 0, 0)]
