"""Figures of what before_after rests on: matches by day, and whether false positives are as frequent at all times."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from pipeline.stages.figures import Axis, Figure, Rule, Series
from pipeline.stages.stage import number
from pipeline.stages.standard_figures import caption, drawn, intervals, keys_of, thinned, with_limits
from pipeline.tables.sweep import THRESHOLD

if TYPE_CHECKING:
    from collections.abc import Iterator

DAY = "lag_days"
X_TITLE = "Threshold: score from which a pair counts as a match"


def by_day(lags: pl.DataFrame | None) -> Iterator[Figure]:
    """Matches by day of the lag, a figure for each threshold of `lag_thresholds`.

    Args:
        lags: The table of the lags, if it was made: days without a match have no row.
    """
    if lags is None or lags.is_empty():
        return
    days = _all_days(lags)
    thresholds = lags[THRESHOLD].unique().sort().to_list()
    for index, threshold in enumerate(thresholds, start=1):
        yield _at_threshold(days, lags.filter(pl.col(THRESHOLD) == threshold), index, threshold)


def _all_days(lags: pl.DataFrame) -> pl.DataFrame:
    """All days on which a match of any group can lie, on both sides of the event."""
    sides = [lags[DAY].filter(lags[DAY] < 0).to_list(), lags[DAY].filter(lags[DAY] >= 0).to_list()]
    ranges = [range(min(days), max(days) + 1) for days in sides if days]
    return pl.DataFrame({DAY: [day for days in ranges for day in days]}, schema={DAY: pl.Int64})


def _at_threshold(days: pl.DataFrame, lags: pl.DataFrame, index: int, threshold: float) -> Figure:
    keys = keys_of(lags)
    every = lags.select(keys).unique(maintain_order=True).join(days, how="cross")
    table = every.join(lags, on=[*keys, DAY], how="left", nulls_equal=True).sort([*keys, DAY])
    matches, is_before = pl.col("matches").fill_null(0), pl.col(DAY) < 0
    table = table.with_columns(
        pl.when(is_before).then(matches).alias("before"), pl.when(~is_before).then(matches).alias("after")
    ).with_columns(pl.col("before").mean().over(keys).alias("by_chance"))
    series = (
        Series("before", "Before the event", "before", "bar"),
        Series("after", "After the event", "after", "bar"),
        Series("by_chance", "Expected by chance", "chance"),
    )
    words = (
        f"Matches with a score of {number(threshold)} or more. Those before the event are false. The line is their "
        "mean per day: about as many are false on a day after the event if as many pairs are compared then. The last "
        "day may lie in the window only in part."
    )
    return Figure(
        name=f"matches_by_day_{index}",
        title=f"Matches by day, at threshold {number(threshold)}",
        caption=words,
        frame=drawn(table, DAY, series),
        x=Axis(DAY, "Days from the event to the article (0: the day that follows the event)", "integer"),
        y=Axis("", "Matches per day", "integer", includes=(0.0,)),
        series=series,
    )


def placebo(table: pl.DataFrame | None, confidence: float) -> Figure | None:
    """The match rate near the event over that far before it, on the log scale, by threshold.

    Args:
        table: The table of the placebo test, if it was made.
        confidence: The level of its intervals.
    """
    if table is None or table.is_empty():
        return None
    rising = table.filter(pl.col(THRESHOLD).is_not_null()).sort([*keys_of(table), THRESHOLD])
    series = (with_limits(table, Series("log_rate_ratio", "Log of the ratio", "estimate")),)
    words = (
        "Natural logarithm of the rate of matches shortly before the event over the rate long before it: 0 if both are "
        "equal, as the method assumes, 0.1 if matches shortly before are about 10% more frequent."
    )
    return Figure(
        name="placebo",
        title="Placebo test: matches shortly before the event against matches long before",
        caption=caption(words, intervals(series, confidence), "A gap: one of the two times has no match."),
        frame=drawn(thinned(rising), THRESHOLD, series),
        x=Axis(THRESHOLD, X_TITLE),
        y=Axis("", "Log ratio of match rates, near / far", includes=(0.0,)),
        series=series,
        rules=(Rule("Equal rates", 0.0, "y"),),
    )


def trend(table: pl.DataFrame | None, confidence: float) -> Figure | None:
    """The change of the match rate per day before the event, by threshold of `lag_thresholds`.

    Args:
        table: The table of the trend, if it was made.
        confidence: The level of its intervals.
    """
    if table is None or table.is_empty():
        return None
    rising = table.sort([*keys_of(table), THRESHOLD])
    series = (with_limits(table, Series("slope", "Change per day", "estimate", "point")),)
    words = (
        "Change of the natural logarithm of the rate of matches from one day to the next before the event: 0 if the "
        "rate stays the same, as the method assumes, 0.1 if it rises by about 10% a day."
    )
    return Figure(
        name="trend",
        title="Trend of the rate of matches before the event",
        caption=caption(words, intervals(series, confidence, "Bars")),
        frame=drawn(rising, THRESHOLD, series),
        x=Axis(THRESHOLD, X_TITLE),
        y=Axis("", "Change of the log rate per day", includes=(0.0,)),
        series=series,
        rules=(Rule("No trend", 0.0, "y"),),
    )
