"""Columns that are missing, renamed, twice there, or of another type than in the file beside."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from runs.inputs.workplace import Workplace


@pytest.mark.parametrize("column", ["event_id", "score", "lag_hours"])
def test_a_missing_column_is_named_with_the_nearest_and_the_remedy(workplace: Workplace, column: str) -> None:
    workplace.pairs.rename({column: f"{column}s"}).write_parquet(workplace.folder / "pairs.parquet")
    words = [f"Did you mean '{column}s'?", "pairs.parquet"] if column != "lag_hours" else ["neither lag_hours"]
    workplace.refuse(65, *words, "columns = {")


def test_a_column_missing_from_one_file_is_named_with_that_file(workplace: Workplace) -> None:
    workplace.pairs.head(9).drop("lag_hours").write_parquet(workplace.folder / "pairs2.parquet")
    workplace.refuse(65, "pairs2.parquet has no column 'lag_hours'", pairs="pairs*.parquet")


def test_a_renamed_column_can_be_mapped(workplace: Workplace) -> None:
    workplace.evaluate()
    frame = workplace.table("before_after_estimates")
    workplace.pairs.rename({"score": "weight"}).write_parquet(workplace.folder / "pairs.parquet")
    workplace.evaluate(pairs={"path": "pairs.parquet", "columns": {"score": "weight"}})
    assert workplace.table("before_after_estimates").equals(frame)


def test_a_mapping_to_a_column_that_is_not_there(workplace: Workplace) -> None:
    workplace.refuse(65, "no column 'wieght'", pairs={"path": "pairs.parquet", "columns": {"score": "wieght"}})


@pytest.mark.parametrize(
    ("column", "dtype", "words"),
    [
        ("score", pl.String, "not a number"),
        ("score", pl.Boolean, "not a number"),
        ("score", pl.Date, "not a number"),
        ("lag_hours", pl.String, "not a number"),
        ("event_id", pl.Float64, "not an integer or text"),
    ],
)
def test_a_column_of_a_wrong_type_is_named(
    workplace: Workplace, column: str, dtype: type[pl.DataType], words: str
) -> None:
    workplace.pairs.with_columns(pl.lit(None).cast(dtype).alias(column)).write_parquet(
        workplace.folder / "pairs.parquet"
    )
    workplace.refuse(65, f"column '{column}'", "pairs.parquet", words)


def test_durations_as_lags_are_refused(workplace: Workplace) -> None:
    workplace.pairs.with_columns(pl.duration(hours="event_id").alias("lag_hours")).write_parquet(
        workplace.folder / "pairs.parquet"
    )
    workplace.refuse(65, "'lag_hours'", "not a number")


@pytest.mark.parametrize("column", ["n_before", "n_after"])
def test_counts_that_are_no_integers_are_refused(workplace: Workplace, column: str) -> None:
    workplace.events.with_columns(pl.col(column).cast(pl.Float64)).write_parquet(workplace.folder / "events.parquet")
    workplace.refuse(65, f"column '{column}'", "not an integer")


def drifted(workplace: Workplace, second: pl.DataFrame, *, swap: bool = False) -> None:
    """The pairs in two files; `swap` decides which of them comes first by name."""
    names = ["b.parquet", "a.parquet"] if swap else ["a.parquet", "b.parquet"]
    (workplace.folder / "in").mkdir()
    workplace.pairs.head(250).write_parquet(workplace.folder / "in" / names[0])
    second.write_parquet(workplace.folder / "in" / names[1])


@pytest.mark.parametrize("swap", [False, True])
def test_keys_that_are_numbers_here_and_text_there_are_refused(workplace: Workplace, swap: bool) -> None:  # noqa: FBT001
    drifted(workplace, workplace.pairs.tail(250).with_columns(pl.col("event_id").cast(pl.String)), swap=swap)
    workplace.refuse(
        65, "'event_id' has different types", "BIGINT in", "VARCHAR in", "a.parquet", "b.parquet", pairs="in"
    )


CHANGES: dict[str, Callable[[pl.DataFrame], pl.DataFrame]] = {
    "narrow": lambda frame: frame.with_columns(pl.col("event_id").cast(pl.Int16)),
    "extra": lambda frame: frame.with_columns(note=pl.lit("x")),
    "reordered": lambda frame: frame.select(reversed(frame.columns)),
    "decimal": lambda frame: frame.with_columns(pl.col("score").cast(pl.Decimal(20, 2))),
}


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize("change", CHANGES)
def test_harmless_drift_gives_the_same_counts_in_any_order(
    workplace: Workplace,
    change: str,
    swap: bool,  # noqa: FBT001
) -> None:
    drifted(workplace, CHANGES[change](workplace.pairs.tail(250)), swap=swap)
    workplace.evaluate(pairs="in", by=None)
    rows = workplace.table("before_after_estimates").sort("threshold")
    expected = [workplace.pairs.filter(pl.col("score") >= threshold).height for threshold in rows["threshold"]]
    assert (rows["m_before"] + rows["m_after"]).to_list() == expected


@pytest.mark.parametrize("swap", [False, True])
def test_single_beside_double_precision_is_compared_as_double(workplace: Workplace, swap: bool) -> None:  # noqa: FBT001
    single = workplace.pairs.tail(250).with_columns(pl.col("score").cast(pl.Float32))
    drifted(workplace, single, swap=swap)
    workplace.evaluate(pairs="in")
    scores = pl.concat([workplace.pairs["score"].head(250), single["score"].cast(pl.Float64)])
    rows = workplace.table("before_after_estimates").filter(pl.col("grouping") == "all").sort("threshold")
    expected = [int((scores >= threshold).sum()) for threshold in rows["threshold"]]
    assert (rows["m_before"] + rows["m_after"]).to_list() == expected


def test_a_column_that_is_null_throughout_one_file_fits_any_type(workplace: Workplace) -> None:
    drifted(workplace, workplace.pairs.tail(250).with_columns(score=pl.lit(None)))
    workplace.evaluate(pairs="in", invalid_scores="drop")
    assert workplace.rows_by_status() == {"used": 250, "null_score": 250}


@pytest.mark.parametrize("twin", ["score", "Score", "SCORE"])
def test_a_column_that_a_file_has_twice_is_refused(workplace: Workplace, twin: str) -> None:
    table = workplace.pairs.to_arrow().append_column(twin, pa.array([0.0] * 500))
    pq.write_table(table, workplace.folder / "pairs.parquet")
    workplace.refuse(65, "2 columns named 'score'", "Rename")


def test_twins_that_nobody_reads_do_no_harm(workplace: Workplace) -> None:
    table = workplace.pairs.to_arrow()
    for name in ("note", "Note", "note"):
        table = table.append_column(name, pa.array(["x"] * 500))
    pq.write_table(table, workplace.folder / "pairs.parquet")
    workplace.evaluate()


def test_a_name_in_another_case_is_not_the_name(workplace: Workplace) -> None:
    workplace.pairs.rename({"score": "Score"}).write_parquet(workplace.folder / "pairs.parquet")
    workplace.refuse(65, "no column 'score'", "Did you mean 'Score'?")


def test_names_in_different_case_in_two_files(workplace: Workplace) -> None:
    drifted(workplace, workplace.pairs.tail(250).rename({"score": "Score"}))
    workplace.refuse(65, "b.parquet has no column 'score'", pairs="in")


def test_an_unsigned_64_bit_key_finds_a_signed_one_and_is_never_cut(workplace: Workplace) -> None:
    name = "before_after_estimates/before_after.parquet"
    plain = workplace.evaluate()[name]
    workplace.pairs.with_columns(pl.col("event_id").cast(pl.UInt64)).write_parquet(workplace.folder / "pairs.parquet")
    assert workplace.evaluate()[name] == plain


def test_unsigned_keys_beyond_the_signed_range_work_on_both_sides(workplace: Workplace) -> None:
    workplace.evaluate()
    plain = workplace.table("before_after_estimates")
    high = pl.col("event_id").cast(pl.UInt64) + 2**63
    workplace.pairs.with_columns(high).write_parquet(workplace.folder / "pairs.parquet")
    workplace.events.with_columns(high).write_parquet(workplace.folder / "events.parquet")
    workplace.evaluate()
    columns = ["threshold", "m_before", "m_after", "precision", "recall"]
    assert workplace.table("before_after_estimates")[columns].equals(plain[columns])
    assert workplace.table("before_after_events")["event_id"].dtype == pl.UInt64
    assert all(key >= 2**63 for key in workplace.table("before_after_events")["event_id"])


def test_numbers_of_pairs_beyond_64_bits_in_sum_are_refused(workplace: Workplace) -> None:
    workplace.events.with_columns(n_before=pl.lit(2**62)).write_parquet(workplace.folder / "events.parquet")
    called = workplace.run()
    assert called.code in {65, 70}
    assert not (workplace.results / "catalog.duckdb").exists()
