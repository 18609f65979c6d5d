"""Rows that repeat, lack what they need, or contradict the numbers of compared pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

if TYPE_CHECKING:
    from runs.inputs.workplace import Workplace


def repeat_pairs(place: Workplace) -> None:
    """Three pairs come twice, the second time with another score."""
    again = place.pairs.head(3).with_columns(pl.col("score") + 1.0)
    pl.concat([place.pairs, again]).write_parquet(place.folder / "pairs.parquet")


def test_duplicate_pairs_are_refused_with_two_examples(place: Workplace) -> None:
    place.publish()
    repeat_pairs(place)
    called = place.refuse(65, "event_id and article_id repeat", 'duplicates = "max"')
    assert called.err.count("(2 rows)") == 2


def test_duplicates_in_two_files_are_found(place: Workplace) -> None:
    place.pairs.head(1).write_parquet(place.folder / "pairs2.parquet")
    called = place.refuse(65, "repeat", "article_id = 0 (2 rows)", pairs="pairs*.parquet")
    assert called.err.count("(2 rows)") == 1


def test_max_counts_every_pair_once_with_its_highest_score(place: Workplace) -> None:
    repeat_pairs(place)
    place.publish(duplicates="max")
    assert place.rows_by_status() == {"used": 500, "duplicate": 3}
    frame = place.table("before_after_estimates")
    best = place.pairs.with_columns(pl.when(pl.col("article_id") < 3).then(pl.col("score") + 1.0).otherwise("score"))
    best.write_parquet(place.folder / "pairs.parquet")
    place.publish()
    assert place.table("before_after_estimates").equals(frame)


def test_keep_counts_every_row(place: Workplace) -> None:
    repeat_pairs(place)
    place.publish(duplicates="keep")
    assert place.rows_by_status() == {"used": 503}


def test_duplicate_events_are_refused(place: Workplace) -> None:
    pl.concat([place.events, place.events.head(2)]).write_parquet(place.folder / "events.parquet")
    place.refuse(65, "event_id repeats: event_id = 0 (2 rows); event_id = 1 (2 rows)", "Keep one row per event")


@pytest.mark.parametrize("column", ["n_before", "n_after"])
def test_a_negative_number_of_pairs_is_refused(place: Workplace, column: str) -> None:
    negative = pl.when(pl.col("event_id") == 4).then(-1).otherwise(pl.col(column)).alias(column)
    place.events.with_columns(negative).write_parquet(place.folder / "events.parquet")
    place.refuse(65, f"'{column}' is negative in 1 row")


@pytest.mark.parametrize("column", ["event_id", "n_before", "n_after"])
def test_null_in_a_column_of_events_is_refused(place: Workplace, column: str) -> None:
    missing = pl.when(pl.col("source") == "dusk").then(None).otherwise(pl.col(column)).alias(column)
    place.events.with_columns(missing).write_parquet(place.folder / "events.parquet")
    place.refuse(65, f"'{column}' is NULL or not finite in 10 rows")


@pytest.mark.parametrize("events", ["events.parquet", None])
@pytest.mark.parametrize("column", ["event_id", "lag_hours"])
def test_null_in_a_required_column_of_pairs_is_refused(place: Workplace, column: str, events: str | None) -> None:
    missing = pl.when(pl.col("article_id").is_between(10, 12)).then(None).otherwise(pl.col(column)).alias(column)
    place.pairs.with_columns(missing).write_parquet(place.folder / "pairs.parquet")
    by = ["source"] if events else None
    place.refuse(65, f"{column!r} is NULL", "3 rows", "pairs.parquet", "first at row 11", events=events, by=by)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_lag_that_is_not_finite_is_refused(place: Workplace, value: float) -> None:
    odd = pl.when(pl.col("article_id") == 3).then(value).otherwise("lag_hours").alias("lag_hours")
    place.pairs.with_columns(odd).write_parquet(place.folder / "pairs.parquet")
    place.refuse(65, "'lag_hours' is NULL or not finite in 1 row", "first at row 4")


def test_faults_in_rows_that_where_leaves_out_do_not_matter(place: Workplace) -> None:
    missing = pl.when(pl.col("article_id") < 10).then(None).otherwise("lag_hours").alias("lag_hours")
    place.pairs.with_columns(missing).write_parquet(place.folder / "pairs.parquet")
    place.publish(pairs={"path": "pairs.parquet", "where": "article_id >= 10"})
    assert place.rows_by_status() == {"used": 490, "where": 10}


@pytest.mark.parametrize("side", ["before", "after"])
def test_more_matches_than_compared_pairs_are_refused(place: Workplace, side: str) -> None:
    place.events.with_columns(pl.lit(1).alias(f"n_{side}")).write_parquet(place.folder / "events.parquet")
    place.refuse(65, f"n_{side} adds up to", "but pairs has", "must count every compared pair")


def test_pairs_of_unlisted_events_and_outside_the_window_are_counted_by_reason(place: Workplace) -> None:
    place.events.filter(pl.col("event_id") < 25).write_parquet(place.folder / "events.parquet")
    place.publish(window={"before": "50h", "after": "50h"})
    unlisted = place.pairs.filter(pl.col("event_id") >= 25).height
    outside = place.pairs.filter((pl.col("event_id") < 25) & (pl.col("lag_hours").abs() > 50)).height
    expected = {"used": 500 - unlisted - outside, "unlisted_event": unlisted, "outside_window": outside}
    assert place.rows_by_status() == expected


def test_events_without_a_complete_window_leave_with_their_pairs(place: Workplace) -> None:
    place.events.with_columns(complete_window=pl.col("event_id") >= 10).write_parquet(place.folder / "events.parquet")
    place.publish(events={"path": "events.parquet", "columns": {"complete_window": "complete_window"}})
    out = place.pairs.filter(pl.col("event_id") < 10).height
    assert place.rows_by_status() == {"used": 500 - out, "incomplete_window": out}
    assert place.rows_by_status("events") == {"used": 20, "incomplete_window": 10}
