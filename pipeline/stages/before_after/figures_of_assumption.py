"""Figures of what before_after rests on: matches by day, and whether false positives are as frequent at all times."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import polars as pl

from ...tables.sweep import THRESHOLD
from ..figure_blocks import caption, drawn, intervals, keys_of, rising, thinned, with_limits
from ..figures import Axis, Figure, Rule, Series
from ..stage import number

if TYPE_CHECKING:
    from collections.abc import Iterator

DAY = "lag_days"
MOST_BARS, MOST_FIGURES = 120, 6
X_TITLE = "Threshold: score from which a pair counts as a match"


def by_day(lags: pl.DataFrame | None) -> Iterator[Figure]:
    """Matches by day of the lag, a figure for each threshold of `lag_thresholds`; of many thresholds a few.

    Args:
        lags: The table of the lags, if it was made: days without a match have no row.
    """
    if lags is None or lags.is_empty():
        return
    thresholds = lags[THRESHOLD].unique().sort()
    thresholds = thresholds.gather_every(math.ceil(len(thresholds) / MOST_FIGURES))
    days = lags[DAY].to_list()
    width = math.ceil((max(days) - min(days) + 1) / MOST_BARS)
    binned = _binned(lags, width)
    for index, threshold in enumerate(thresholds, start=1):
        yield _at_threshold(binned.filter(pl.col(THRESHOLD) == threshold), index, threshold, width)


def _binned(lags: pl.DataFrame, width: int) -> pl.DataFrame:
    """Matches in bins of so many days, none of which holds the event inside; bins without a match are 0.

    Columns: groups, `threshold`, `lag_days`: the first day of the bin, `before` and `after`: matches, one of the two
    NULL, and `by_chance`: the mean of those before.
    """
    keys = [*keys_of(lags), THRESHOLD]
    start = (pl.col(DAY).floordiv(width) * width).alias(DAY)
    counted = lags.group_by(*keys, start).agg(pl.col("matches").sum())
    every = lags.select(keys).unique().join(_bins(counted[DAY], width), how="cross")
    table = every.join(counted, on=[*keys, DAY], how="left", nulls_equal=True).sort([*keys, DAY])
    matches, is_before = pl.col("matches").fill_null(0), pl.col(DAY) < 0
    sides = [pl.when(is_before).then(matches).alias("before"), pl.when(~is_before).then(matches).alias("after")]
    return table.with_columns(sides).with_columns(pl.col("before").mean().over(keys).alias("by_chance"))


def _bins(starts: pl.Series, width: int) -> pl.DataFrame:
    """First days of all bins in which a match of any group lies or can lie, on both sides of the event."""
    sides = [starts.filter(starts < 0).to_list(), starts.filter(starts >= 0).to_list()]
    days = [day for side in sides if side for day in range(min(side), max(side) + 1, width)]
    return pl.DataFrame({DAY: days}, schema={DAY: pl.Int64})


def _at_threshold(table: pl.DataFrame, index: int, threshold: float, width: int) -> Figure:
    series = (
        Series("before", "Before the event", "before", "bar"),
        Series("after", "After the event", "after", "bar"),
        Series("by_chance", "Expected by chance", "chance"),
    )
    per = "day" if width == 1 else f"{width} days"
    words = (
        f"Matches with a score of {number(threshold)} or more. Those before the event are false. The line is their "
        f"mean per {per}: about as many are false after the event if as many pairs are compared then. The window may "
        "hold the bars at its ends only in part."
    )
    return Figure(
        name=f"matches_by_day_{index}",
        title=f"Matches by day, at threshold {number(threshold)}",
        caption=words,
        frame=drawn(table, DAY, series),
        x=Axis(DAY, "Days from the event to the article (0: within 24 hours after the event)", "integer"),
        y=Axis("", f"Matches per {per}", "integer", includes=(0.0,)),
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
    by_threshold = rising(table)
    series = (with_limits(table, Series("log_rate_ratio", "Log of the ratio", "estimate")),)
    words = (
        "Natural logarithm of the rate of matches shortly before the event over the rate long before it: 0 if both are "
        "equal, as the method assumes, 0.1 if matches shortly before are about 10% more frequent."
    )
    return Figure(
        name="placebo",
        title="Placebo test: matches near to and far before the event",
        caption=caption(words, intervals(series, confidence), "A gap: one of the two times has no match."),
        frame=drawn(thinned(by_threshold, THRESHOLD), THRESHOLD, series),
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
    texts = pl.Series("at", [number(threshold) for threshold in table[THRESHOLD]], dtype=pl.String)
    series = (with_limits(table, Series("slope", "Change per day", "estimate", "point")),)
    words = (
        "Change of the natural logarithm of the rate of matches from one day to the next before the event: 0 if the "
        "rate stays the same, as the method assumes, 0.1 if it rises by about 10% a day. A row for each threshold of "
        "lag_thresholds."
    )
    return Figure(
        name="trend",
        title="Trend of the rate of matches before the event",
        caption=caption(words, intervals(series, confidence)),
        frame=drawn(rising(table.with_columns(texts)), "at", series),
        x=Axis("at", X_TITLE, "category"),
        y=Axis("", "Change of the log rate per day", includes=(0.0,)),
        series=series,
        rules=(Rule("No trend", 0.0, "y"),),
    )
