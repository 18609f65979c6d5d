"""Rows that repeat, lack what they need, or contradict the numbers of compared pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

if TYPE_CHECKING:
    from runs.inputs.workplace import Workplace


def repeat_pairs(workplace: Workplace) -> None:
    """Three pairs come twice, the second time with another score."""
    again = workplace.pairs.head(3).with_columns(pl.col("score") + 1.0)
    pl.concat([workplace.pairs, again]).write_parquet(workplace.folder / "pairs.parquet")


def test_duplicate_pairs_are_refused_with_two_examples(workplace: Workplace) -> None:
    workplace.publish()
    repeat_pairs(workplace)
    called = workplace.refuse(65, "event_id and article_id repeat", 'duplicates = "max"')
    assert called.err.count("(2 rows)") == 2


def test_duplicates_in_two_files_are_found(workplace: Workplace) -> None:
    workplace.pairs.head(1).write_parquet(workplace.folder / "pairs2.parquet")
    called = workplace.refuse(65, "repeat", "article_id = 0 (2 rows)", pairs="pairs*.parquet")
    assert called.err.count("(2 rows)") == 1


def test_duplicates_that_where_leaves_out_are_allowed(workplace: Workplace) -> None:
    repeat_pairs(workplace)
    workplace.publish(pairs={"path": "pairs.parquet", "where": "article_id >= 3"})
    assert workplace.rows_by_status() == {"used": 497, "where": 6}


@pytest.mark.wide
def test_max_counts_every_pair_once_with_its_highest_score(workplace: Workplace) -> None:
    repeat_pairs(workplace)
    workplace.publish(duplicates="max")
    assert workplace.rows_by_status() == {"used": 500, "duplicate": 3}
    frame = workplace.table("before_after_estimates")
    best = workplace.pairs.with_columns(
        pl.when(pl.col("article_id") < 3).then(pl.col("score") + 1.0).otherwise("score")
    )
    best.write_parquet(workplace.folder / "pairs.parquet")
    workplace.publish()
    assert workplace.table("before_after_estimates").equals(frame)


def test_keep_counts_every_row(workplace: Workplace) -> None:
    repeat_pairs(workplace)
    workplace.publish(duplicates="keep")
    assert workplace.rows_by_status() == {"used": 503}


def test_duplicate_events_are_refused(workplace: Workplace) -> None:
    pl.concat([workplace.events, workplace.events.head(2)]).write_parquet(workplace.folder / "events.parquet")
    workplace.refuse(65, "event_id repeats: event_id = 0 (2 rows); event_id = 1 (2 rows)", "Keep one row per event")


@pytest.mark.parametrize("column", ["n_before", "n_after"])
def test_a_negative_number_of_pairs_is_refused(workplace: Workplace, column: str) -> None:
    negative = pl.when(pl.col("event_id") == 4).then(-1).otherwise(pl.col(column)).alias(column)
    workplace.events.with_columns(negative).write_parquet(workplace.folder / "events.parquet")
    workplace.refuse(65, f"'{column}' is negative in 1 row")


@pytest.mark.parametrize("column", ["event_id", "n_before", "n_after"])
def test_null_in_a_column_of_events_is_refused(workplace: Workplace, column: str) -> None:
    missing = pl.when(pl.col("source") == "dusk").then(None).otherwise(pl.col(column)).alias(column)
    workplace.events.with_columns(missing).write_parquet(workplace.folder / "events.parquet")
    workplace.refuse(65, f"'{column}' is NULL or not finite in 10 rows")


@pytest.mark.parametrize(("column", "events"), [("event_id", None), ("lag_hours", "events.parquet")])
def test_null_in_a_required_column_of_pairs_is_refused(workplace: Workplace, column: str, events: str | None) -> None:
    missing = pl.when(pl.col("article_id").is_between(10, 12)).then(None).otherwise(pl.col(column)).alias(column)
    workplace.pairs.with_columns(missing).write_parquet(workplace.folder / "pairs.parquet")
    by = ["source"] if events else None
    workplace.refuse(65, f"{column!r} is NULL", "3 rows", "pairs.parquet", "first at row 11", events=events, by=by)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_lag_that_is_not_finite_is_refused(workplace: Workplace, value: float) -> None:
    odd = pl.when(pl.col("article_id") == 3).then(value).otherwise("lag_hours").alias("lag_hours")
    workplace.pairs.with_columns(odd).write_parquet(workplace.folder / "pairs.parquet")
    workplace.refuse(65, "'lag_hours' is NULL or not finite in 1 row", "first at row 4")


def test_faults_in_rows_that_where_leaves_out_do_not_matter(workplace: Workplace) -> None:
    missing = pl.when(pl.col("article_id") < 10).then(None).otherwise("lag_hours").alias("lag_hours")
    workplace.pairs.with_columns(missing).write_parquet(workplace.folder / "pairs.parquet")
    workplace.publish(pairs={"path": "pairs.parquet", "where": "article_id >= 10"})
    assert workplace.rows_by_status() == {"used": 490, "where": 10}


@pytest.mark.parametrize("side", ["before", "after"])
def test_more_matches_than_compared_pairs_are_refused(workplace: Workplace, side: str) -> None:
    workplace.events.with_columns(pl.lit(1).alias(f"n_{side}")).write_parquet(workplace.folder / "events.parquet")
    workplace.refuse(65, f"n_{side} adds up to", "but pairs has", "must count every compared pair")


def test_pairs_of_unlisted_events_and_outside_the_window_are_counted_by_reason(workplace: Workplace) -> None:
    workplace.events.filter(pl.col("event_id") < 25).write_parquet(workplace.folder / "events.parquet")
    workplace.publish(window={"before": "50h", "after": "50h"})
    unlisted = workplace.pairs.filter(pl.col("event_id") >= 25).height
    outside = workplace.pairs.filter((pl.col("event_id") < 25) & (pl.col("lag_hours").abs() > 50)).height
    expected = {"used": 500 - unlisted - outside, "unlisted_event": unlisted, "outside_window": outside}
    assert workplace.rows_by_status() == expected


def test_events_without_a_complete_window_leave_with_their_pairs(workplace: Workplace) -> None:
    workplace.events.with_columns(complete_window=pl.col("event_id") >= 10).write_parquet(
        workplace.folder / "events.parquet"
    )
    workplace.publish(events={"path": "events.parquet", "columns": {"complete_window": "complete_window"}})
    out = workplace.pairs.filter(pl.col("event_id") < 10).height
    assert workplace.rows_by_status() == {"used": 500 - out, "incomplete_window": out}
    assert workplace.rows_by_status("events") == {"used": 20, "incomplete_window": 10}
