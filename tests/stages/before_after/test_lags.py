"""Lags of before_after: looked up by key, compared with the times, and held against the window."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from running import read_table, rows_by_status, run_before_after

from pipeline.base.errors import DataError
from pipeline.metrics.before_after.timelines import MICROSECONDS_PER_HOUR, Span, lag_agreement
from pipeline.stages.before_after.inputs import given_windows

if TYPE_CHECKING:
    from pathlib import Path

HOUR = dt.timedelta(hours=1)
START = dt.datetime(2026, 1, 10)  # noqa: DTZ001 - times without a zone are UTC
EVENTS = pl.DataFrame({"event_id": list(range(8)), "event_time": [START + 31 * number * HOUR for number in range(8)]})
ARTICLES = pl.DataFrame(
    {"article_id": list(range(120)), "article_time": [START + (3.7 * number - 60) * HOUR for number in range(120)]}
)
PAIRS = (
    EVENTS.join(ARTICLES, how="cross")
    .with_columns(lag_hours=(pl.col("article_time") - pl.col("event_time")).dt.total_seconds() / 3600)
    .filter(pl.col("lag_hours").is_between(-48, 24))
    .with_columns(score=(pl.col("article_id") * 7 % 13 + (pl.col("lag_hours") >= 0) * 4).cast(pl.Float64))
    .select("event_id", "article_id", "lag_hours", "score")
)
KEYS: dict[str, Any] = {"thresholds": [2, 5, 8, 12], "window": {"before": "48h", "after": "24h"}}
TABLE = "before_after_estimates"


def run(folder: Path, pairs: pl.DataFrame, columns: dict[str, Any] | None = None, **more: Any) -> Any:  # noqa: ANN401
    frames = {"pairs": pairs, "events": EVENTS, "articles": ARTICLES} | more.pop("frames", {})
    frames = {name: frame for name, frame in frames.items() if frame is not None}
    return run_before_after(folder, frames, pairs={"columns": columns or {}}, **(KEYS | more))


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("compared", ["timelines", "pairs"])
def test_pairs_without_times_find_them_by_key(tmp_path: Path, compared: str) -> None:
    given = run(tmp_path / "given", PAIRS, compared=compared)
    looked_up = run(tmp_path / "looked_up", PAIRS.drop("lag_hours"), compared=compared)
    assert_frame_equal(read_table(looked_up, TABLE, "before_after"), read_table(given, TABLE, "before_after"))
    bindings = read_table(looked_up, "bindings", "before_after").filter(pl.col("field") == "lag_hours")
    assert bindings.select("source", "sql").rows() == [("derived", "articles.article_time - events.event_time")]


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("holder", ["event_time", "article_time"])
def test_one_time_may_stand_in_pairs_and_the_other_be_looked_up(tmp_path: Path, holder: str) -> None:
    frame, key = (EVENTS, "event_id") if holder == "event_time" else (ARTICLES, "article_id")
    pairs = PAIRS.drop("lag_hours").join(frame, on=key)
    given = run(tmp_path / "given", PAIRS)
    looked_up = run(tmp_path / "looked_up", pairs)
    assert_frame_equal(read_table(looked_up, TABLE, "before_after"), read_table(given, TABLE, "before_after"))


def test_pairs_of_articles_without_a_time_are_left_out_and_counted(tmp_path: Path) -> None:
    few = ARTICLES.filter(pl.col("article_id") % 10 != 3)
    missing = PAIRS.filter(pl.col("article_id") % 10 == 3).height
    found = run(tmp_path, PAIRS.drop("lag_hours"), frames={"articles": few}, compared="pairs")
    incomplete = rows_by_status(found).get("incomplete_window", 0)
    assert rows_by_status(found)["unlisted_article"] + incomplete >= missing > 0
    assert rows_by_status(found)["used"] == PAIRS.height - rows_by_status(found)["unlisted_article"] - incomplete


@pytest.fixture(scope="module")
def matches_before(tmp_path_factory: pytest.TempPathFactory) -> list[int]:
    """Matches before the events at every threshold, with lags that are right."""
    right = run(tmp_path_factory.mktemp("right"), PAIRS)
    return read_table(right, TABLE, "before_after")["m_before"].to_list()


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(
    ("factor", "column", "cause", "remedy"),
    [
        (-1.0, "lag_hours", "its sign is the other way round", "'-x'"),
        (3600.0, "lag_hours", "it is in seconds", "'x / 3600'"),
        (60.0, "lag_hours", "it is in minutes", "'x / 60'"),
        (-3.6e6, "lag_hours", "its sign is the other way round and it is in milliseconds", "'-x / 3600000'"),
        (1 / 24, "lag_hours", "it is in days", "'x * 24'"),
        (1.0, "lag_days", "it is in hours", "'x / 24'"),
        (3600.0, "lag_days", "it is in seconds", "'x / 86400'"),
    ],
)
def test_a_lag_that_contradicts_the_times_stops_the_run_with_its_cause(
    tmp_path: Path, matches_before: list[int], factor: float, column: str, cause: str, remedy: str
) -> None:
    pairs = PAIRS.with_columns(x=pl.col("lag_hours") * factor).drop("lag_hours")
    with pytest.raises(DataError, match=cause) as caught:
        run(tmp_path / "wrong", pairs, {column: "x"})
    assert remedy in str(caught.value)
    mended = run(tmp_path / "mended", pairs, {column: {"sql": remedy.strip("'")}})
    assert read_table(mended, TABLE, "before_after")["m_before"].to_list() == matches_before


@pytest.mark.parametrize(("shift", "words"), [([2], r"\(\+2\)"), ([1, 2], r"\(\+1 to \+2\)"), ([-5], r"\(-5\)")])
def test_clocks_that_differ_by_whole_hours_are_told(tmp_path: Path, shift: list[int], words: str) -> None:
    hours = pl.Series([shift[row % len(shift)] for row in range(PAIRS.height)])
    with pytest.raises(DataError, match=f"whole hours {words}, as if one time were in local time"):
        run(tmp_path, PAIRS.with_columns(pl.col("lag_hours") + hours))


def test_no_simple_cause_is_made_up(tmp_path: Path) -> None:
    odd = PAIRS.with_columns(pl.col("lag_hours") * 1.7 + 3.3)
    with pytest.raises(DataError, match="no single sign, unit or shift explains it"):
        run(tmp_path, odd)


def test_few_rows_that_disagree_are_a_warning() -> None:
    times = pl.Series([float(number) + 0.25 for number in range(400)])
    given = times.clone()
    given[7] = 1000.5
    sample = pl.DataFrame({"event_id": range(400), "given": given, "from_times": times})
    found = lag_agreement(sample, in_days=False, dates=False)
    assert found is not None
    assert (found.is_rare, found.n_apart, found.event) == (True, 1, 7)


@pytest.mark.parametrize("rounded", [pl.col("lag_hours").round(0), pl.col("lag_hours").floor()])
def test_rounded_lags_agree_and_are_told_where_they_cross_the_event(tmp_path: Path, rounded: pl.Expr) -> None:
    pairs = PAIRS.with_columns(rounded)
    crossed = (pairs["lag_hours"] >= 0) != (PAIRS["lag_hours"] >= 0)
    found = run(tmp_path, pairs, compared="pairs")
    assert bool([said for said in found.warnings if "is rounded" in said]) == bool(crossed.any())


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("column", ["lag_hours", "lag_days"])
@pytest.mark.parametrize("step", [0.5, 0.25, 0.1])
def test_lags_rounded_to_parts_of_a_unit_agree(tmp_path: Path, step: float, column: str) -> None:
    unit = 24 if column == "lag_days" else 1
    pairs = PAIRS.select(pl.exclude("lag_hours"), ((pl.col("lag_hours") / unit / step).round() * step).alias(column))
    found = run(tmp_path, pairs, compared="pairs")
    assert not [said for said in found.warnings if "contradicts" in said]


def test_rounding_hides_no_other_unit(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="it is in days"):
        run(tmp_path, PAIRS.with_columns((pl.col("lag_hours") / 24).round(1)), compared="pairs")


@pytest.mark.parametrize(("kind", "words"), [(pl.Int64, "days: articles"), (pl.Float64, "where they are whole days")])
def test_lags_in_days_that_may_be_whole_are_told_as_such(tmp_path: Path, kind: type[pl.DataType], words: str) -> None:
    pairs = PAIRS.select(pl.exclude("lag_hours"), lag_days=(pl.col("lag_hours") / 24).floor().cast(kind))
    found = run(tmp_path, pairs, compared="pairs")
    assert [said for said in found.warnings if words in said]


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(("side", "kept"), [("before", pl.col("lag_hours") >= 0), ("after", pl.col("lag_hours") < 0)])
def test_matches_on_one_side_alone_are_told(tmp_path: Path, side: str, kept: pl.Expr) -> None:
    found = run(tmp_path / "one", PAIRS.filter(kept), compared="timelines")
    assert [said for said in found.warnings if f"no match lies {side} its event at any threshold" in said]
    both = run(tmp_path / "both", PAIRS, compared="timelines")
    assert not [said for said in both.warnings if "no match lies" in said]


def test_articles_of_other_data_are_told_with_an_example_of_both_keys(tmp_path: Path) -> None:
    other = ARTICLES.with_columns(pl.col("article_id") + 1000)
    with pytest.raises(DataError, match=r"pairs has for example article_id = \d+, articles has article_id = 1000"):
        run(tmp_path, PAIRS, frames={"articles": other}, compared="timelines")


@pytest.mark.parametrize(
    ("factor", "words"),
    [(1 / 24, "are they in days?"), (-1.0, "is their sign")],
)
def test_without_times_the_window_tells_what_the_lags_may_be(tmp_path: Path, factor: float, words: str) -> None:
    events = EVENTS.select("event_id", n_before=pl.lit(20), n_after=pl.lit(20))
    lags = PAIRS.with_columns(pl.col("lag_hours") * factor)
    found = run(tmp_path, lags, frames={"events": events, "articles": None})
    assert [said for said in found.warnings if words in said]


def test_lags_that_all_lie_outside_the_window_are_refused_with_the_unit_they_may_be_in(tmp_path: Path) -> None:
    events = EVENTS.select("event_id", n_before=pl.lit(20), n_after=pl.lit(20))
    lags = PAIRS.with_columns(pl.col("lag_hours") * 3600)
    with pytest.raises(DataError, match=r"outside window 156\nThe lags .* are they in minutes or seconds\? Then map"):
        run(tmp_path, lags, frames={"events": events, "articles": None})


def test_articles_that_lack_most_of_the_articles_of_pairs_are_named(tmp_path: Path) -> None:
    few = ARTICLES.filter(pl.col("article_id") % 3 == 0)
    with pytest.raises(DataError, match="input articles lacks the articles of"):
        run(tmp_path, PAIRS, frames={"articles": few}, compared="timelines")


def test_articles_that_lack_some_are_a_warning_and_given_numbers_then_have_no_placebo(tmp_path: Path) -> None:
    spans = PAIRS.group_by("event_id").agg(
        n_before=(pl.col("lag_hours") < 0).sum().cast(pl.Int64), n_after=(pl.col("lag_hours") >= 0).sum().cast(pl.Int64)
    )
    events = EVENTS.join(spans, on="event_id")
    whole = run(tmp_path / "whole", PAIRS, frames={"events": events})
    few = ARTICLES.filter((pl.col("article_id") % 2 == 0) | pl.col("article_id").is_in([0, 119]))
    found = run(tmp_path / "few", PAIRS, frames={"events": events, "articles": few})
    assert [said for said in found.warnings if "input articles lacks the articles of" in said]
    tested = [
        read_table(each, "before_after_placebo", "before_after")["p_value"].drop_nulls() for each in (whole, found)
    ]
    assert [series.len() > 0 for series in tested] == [True, False]


def test_a_given_window_that_is_not_this_one_is_told(tmp_path: Path) -> None:
    events = EVENTS.with_columns(complete_window=pl.Series([True] * 7 + [False]))
    found = run_before_after(
        tmp_path,
        {"pairs": PAIRS, "events": events, "articles": ARTICLES},
        events={"columns": {"complete_window": "complete_window"}},
        **KEYS,
    )
    assert [said for said in found.warnings if "complete_window of" in said and "computes it" in said]


@pytest.mark.parametrize(
    ("complete", "late_hours", "is_told"),
    [(True, 0, False), (True, 24, False), (True, 25, True), (False, 1, False), (False, 0, True)],
)
def test_an_archive_may_have_begun_a_night_before_its_first_article(
    complete: bool,  # noqa: FBT001
    late_hours: int,
    is_told: bool,  # noqa: FBT001
) -> None:
    hour = MICROSECONDS_PER_HOUR
    span = Span(-168 * hour, 0, -24 * hour, 0, 72 * hour, closed=True)
    first, last = (late_hours - 168) * hour, 72 * hour
    events = {"event_id": [1], "event_time": [0], "complete": [complete], "first_time": [first], "last_time": [last]}
    assert bool(given_windows(span).function({"events": pl.DataFrame(events)})) is is_told


@pytest.mark.parametrize(
    ("reach_hours", "late_hours", "is_told"),
    [(24, 4, False), (24, 6, True), (1000, 23, False), (1000, 25, True)],  # a tenth of the window, and at most a night
)
def test_how_much_earlier_an_archive_may_begin(reach_hours: int, late_hours: int, is_told: bool) -> None:  # noqa: FBT001
    reach = reach_hours * MICROSECONDS_PER_HOUR
    span = Span(-reach, 0, 0, 0, reach, closed=True)
    first = late_hours * MICROSECONDS_PER_HOUR - reach
    events = {"event_id": [1], "event_time": [0], "complete": [True], "first_time": [first], "last_time": [reach]}
    assert bool(given_windows(span).function({"events": pl.DataFrame(events)})) is is_told


def at_bounds(microseconds: int) -> dict[str, pl.DataFrame]:
    """Three events with articles at both ends of a window, a microsecond inside and a microsecond outside."""
    offsets = [sign * (microseconds + step) for sign in (-1, 1) for step in (-1, 0, 1)]
    events = pl.DataFrame({"event_id": [0, 1, 2], "event_time": [START, START + 900 * HOUR, START + 1800 * HOUR]})
    around = events.join(pl.DataFrame({"offset": offsets}), how="cross").with_row_index("article_id")
    pairs = around.with_columns(
        article_time=pl.col("event_time") + pl.duration(microseconds=pl.col("offset")), score=pl.lit(0.5)
    )
    ends = pl.DataFrame({"article_id": [90, 91], "article_time": [START - 900 * HOUR, START + 2700 * HOUR]})
    articles = pl.concat([pairs.select("article_id", "article_time"), ends], how="vertical_relaxed")
    n_in = pl.lit(2, pl.Int64)
    return {
        "pairs": pairs.drop("event_time"),
        "events": events.with_columns(n_before=n_in, n_after=n_in),
        "articles": articles,
    }


def counted(folder: Path, frames: dict[str, pl.DataFrame], **keys: Any) -> list[tuple[int, ...]]:  # noqa: ANN401
    found = run_before_after(folder, frames, thresholds=[0.5], **keys)
    table = read_table(found, TABLE, "before_after")
    return table.select("n_before", "n_after", "m_before", "m_after").rows()


@pytest.mark.first_cases(3)
@pytest.mark.parametrize("compared", ["events", "timelines", "pairs"])
@pytest.mark.parametrize("spelling", ["7.3m", "438s", "1.1d", "26.4h"])
def test_n_and_m_are_of_one_window_however_it_is_written(tmp_path: Path, compared: str, spelling: str) -> None:
    exact = Fraction(spelling[:-1]) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[spelling[-1]] * 1_000_000
    frames, window = at_bounds(int(exact)), {"before": spelling, "after": spelling}
    frames |= {"pairs": frames["pairs"].join(frames["articles"], on="article_id")}
    assert counted(tmp_path / "closed", frames, window=window, compared=compared) == [(6, 6, 6, 6)]
    half_open = counted(tmp_path / "open", frames, window=window | {"closed": "left"}, compared=compared)
    assert half_open[0][2:] == (6, 3)
    assert compared == "events" or half_open == [(6, 3, 6, 3)]
    if compared == "events":  # the given numbers are of the first window
        return
    gap = counted(tmp_path / "gap", frames, window={"before": "9d", "after": "9d", "gap": spelling}, compared=compared)
    assert gap[0][2:] == (3, 9)  # a lag at the end of the gap belongs to it


@pytest.mark.wide
@settings(max_examples=15, deadline=None)
@given(
    days=st.fractions(Fraction(1, 1000), 30, max_denominator=1000).map(lambda days: Fraction(round(days * 1000), 1000)),
    unit=st.sampled_from(["lag_hours", "lag_days"]),
    kind=st.sampled_from([pl.Float64, pl.Float32, pl.Decimal(18, 6), pl.Int32]),
    spelled=st.sampled_from(["d", "h", "m", "s"]),
)
def test_lags_of_a_column_are_at_the_bound_that_is_written_alike(
    tmp_path_factory: pytest.TempPathFactory,
    days: Fraction,
    unit: str,
    kind: type[pl.DataType] | pl.Decimal,
    spelled: str,
) -> None:
    days = Fraction(max(round(days), 1)) if kind == pl.Int32 else Fraction(round(days * 10) or 1, 10)
    number = decimal(days * (24 if unit == "lag_hours" else 1))
    window = f"{decimal(days * {'d': 1, 'h': 24, 'm': 1440, 's': 86400}[spelled])}{spelled}"
    lags = [-number, number, -number * 2, number * 2]
    pairs = pl.DataFrame({"event_id": [1] * 4, "score": [0.5] * 4}).with_columns(
        pl.Series(unit, [str(lag) for lag in lags]).cast(pl.Decimal(18, 6)).cast(kind)
    )
    sides = {"before": window, "after": window}
    folder = tmp_path_factory.mktemp("lags")
    assert counted(folder, {"pairs": pairs}, window=sides, compared="pairs") == [(1, 1, 1, 1)]
    without_end = sides | {"closed": "left", "gap": "1s"}
    assert counted(folder, {"pairs": pairs}, window=without_end, compared="pairs") == [(1, 0, 1, 0)]


def decimal(number: Fraction) -> Decimal:
    """A fraction whose decimals end, as it is written."""
    written = Decimal(number.numerator) / Decimal(number.denominator)
    assert Fraction(written) == number
    return written
