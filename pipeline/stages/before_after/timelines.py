"""Compared pairs from the timelines of events and articles: counted, or held against given numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from ...metrics.before_after.timelines import MICROSECONDS_PER_HOUR, counts_around, counts_between
from ...plan.counts import CountFunction
from ...plan.nodes import CrossCheck
from ...queries.load import statement
from ...tables.sweep import REPLICATE, SECOND_REPLICATE
from .plausibility import fit_given_numbers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import sqlglot.expressions as exp
    from numpy.typing import NDArray

    from ...metrics.before_after.timelines import Span
    from ...plan.rows import Grouped
    from .matchers import Matchers

N_COLUMNS = ("n_before", "n_after")
COUNTS_AROUND = (*N_COLUMNS, "n_near")


def timeline_counts(
    events: pl.DataFrame, articles: pl.DataFrame, span: Span, segment: Sequence[str], names: Sequence[str]
) -> pl.DataFrame:
    """Compared pairs by segment and replicate.

    Args:
        events: Columns `event_time` (microseconds), `replicate` and grouping columns of events.
        articles: Columns `article_time` and grouping columns of articles.
        span: The window.
        segment: Grouping columns of the result.
        names: The counts that are wanted of n_before, n_after and n_near.
    """
    moments = events["event_time"].to_numpy()
    groups, group_of_event = _groups(events, segment)
    sums = [_no_counts(events, articles, segment, names)]
    for times, labels in _archives(articles, segment):
        counts = counts_around(moments, times, span)
        of_groups = [_summed(name, counts[name], group_of_event, groups.height) for name in names]
        sums.append(_beside(groups, labels, of_groups)[[*segment, REPLICATE, *names]])
    return pl.concat(sums)


def _groups(events: pl.DataFrame, segment: Sequence[str]) -> tuple[pl.DataFrame, NDArray[np.int64]]:
    """Grouping columns and replicate of the events, a row for each that there is, and which of them an event has."""
    labels = events.select(*(name for name in segment if name in events.columns), REPLICATE)
    groups = labels.unique(maintain_order=True).with_row_index("_group")
    numbers = labels.join(groups, on=labels.columns, how="left", nulls_equal=True, maintain_order="left")["_group"]
    return groups.drop("_group"), numbers.cast(pl.Int64).to_numpy()


def _summed(name: str, counts: NDArray[np.int64], groups: NDArray[np.int64], n_groups: int) -> pl.Series:
    """The counts of all events of each group."""
    sums = np.zeros(n_groups, dtype=np.int64)
    np.add.at(sums, groups, counts)
    return pl.Series(name, sums)


def _beside(groups: pl.DataFrame, labels: Sequence[pl.Series], counts: Sequence[pl.Series]) -> pl.DataFrame:
    """Groups of events in one archive, with the values that stand for it."""
    return groups.hstack([*(label.new_from_index(0, groups.height) for label in labels), *counts])


def _archives(articles: pl.DataFrame, segment: Sequence[str]) -> Iterator[tuple[NDArray[np.int64], list[pl.Series]]]:
    """Sorted times of the articles of every value of their grouping columns, and these values."""
    names = [name for name in segment if name in articles.columns]
    if not names:
        yield np.sort(articles["article_time"].to_numpy()), []
        return
    for group in articles.sort("article_time").partition_by(names, maintain_order=True):
        yield np.sort(group["article_time"].to_numpy()), [group[name][:1] for name in names]


def crossed_counts(events: pl.DataFrame, articles: pl.DataFrame, span: Span, segment: Sequence[str]) -> pl.DataFrame:
    """Compared pairs by segment, replicate and second replicate.

    Args:
        events: As for `timeline_counts`.
        articles: As for `timeline_counts`, and `second_replicate`.
        span: The window.
        segment: Grouping columns of the result.
    """
    counts = timeline_counts(events, articles, span, (*segment, SECOND_REPLICATE), COUNTS_AROUND)
    return counts.filter(pl.any_horizontal(pl.col(COUNTS_AROUND) > 0))


def pairs_by_day(events: pl.DataFrame, articles: pl.DataFrame, span: Span, segment: Sequence[str]) -> pl.DataFrame:
    """Compared pairs by segment, replicate and day before the event; days that the window cuts have only their part.

    Args:
        events: As for `timeline_counts`.
        articles: As for `timeline_counts`.
        span: The window.
        segment: Grouping columns of the result, which also has `lag_days` (-1: the last day before) and `n_pairs`.
    """
    day = 24 * MICROSECONDS_PER_HOUR
    days = range(span.before_start // day, -(-span.before_end // day))
    edges = [max(number * day, span.before_start) for number in days] + [span.before_end]
    moments = events["event_time"].to_numpy()
    groups, group_of_event = _groups(events, segment)
    sums = [_no_counts(events, articles, segment, ("lag_days", "n_pairs"))]
    for times, labels in _archives(articles, segment):
        for number, n_pairs in zip(days, counts_between(moments, times, edges), strict=True):
            of_day = pl.Series("lag_days", [number], dtype=pl.Int64)
            of_groups = _summed("n_pairs", n_pairs, group_of_event, groups.height)
            rows = _beside(groups, [*labels, of_day], [of_groups])
            sums.append(rows[[*segment, REPLICATE, "lag_days", "n_pairs"]])
    return pl.concat(sums)


def _no_counts(
    events: pl.DataFrame, articles: pl.DataFrame, segment: Sequence[str], names: Sequence[str]
) -> pl.DataFrame:
    types = {**articles.schema, **events.schema, **dict.fromkeys(names, pl.Int64())}
    return pl.DataFrame(schema={name: types[name] for name in (*segment, REPLICATE, *names)})


def events_of_timeline(columns: Sequence[str]) -> exp.Query:
    """Some columns of the events that take part."""
    return statement("before_after/timeline_of_events", columns)


def articles_of_timeline(columns: Sequence[str] = ("article_time",)) -> exp.Query:
    """Some columns of the articles."""
    return statement("before_after/timeline_of_articles", columns)


def timelines_by(by: Sequence[Grouped], *of_events: str) -> dict[str, exp.Query]:
    """Events and articles with their times and grouping columns, events with further columns."""
    names = {source: [each.name for each in by if each.source == source] for source in ("events", "articles")}
    return {
        "events": events_of_timeline([*names["events"], REPLICATE, "event_time", *of_events]),
        "articles": articles_of_timeline([*names["articles"], "article_time"]),
    }


def compared_pairs(by: Sequence[Grouped], span: Span, names: Sequence[str], matchers: Matchers) -> CountFunction:
    """Compared pairs per group and replicate, from the two timelines.

    Where they do not fit the numbers that are given, they count for nothing.

    Args:
        by: The grouping columns.
        span: The window.
        names: The counts that are wanted; n_before and n_after are given where they are not among them.
        matchers: Who compared the pairs.
    """
    has_given_numbers = set(N_COLUMNS).isdisjoint(names)

    def compute(frames: Mapping[str, pl.DataFrame], segment: Sequence[str]) -> pl.DataFrame:
        counts = timeline_counts(frames["events"], frames["articles"], span, matchers.known(segment), names)
        if has_given_numbers and not fit_given_numbers(frames["events"], frames["articles"], span):
            counts = counts.with_columns(pl.lit(0, dtype=pl.Int64).alias(name) for name in names)
        return matchers.repeated(counts, frames, segment)

    reads = timelines_by(by, *(["n_before"] if has_given_numbers else [])) | matchers.frames()
    return CountFunction("before_after/timelines", reads, compute, tuple(names))


def given_against_timelines(span: Span) -> CrossCheck:
    """The given numbers of compared articles beside those that the timelines show."""
    events = events_of_timeline(("event_id", "event_time", *N_COLUMNS))
    frames = {"events": events, "articles": articles_of_timeline()}
    return CrossCheck(frames, lambda frames: compare_counts(frames["events"], frames["articles"], span))


def compare_counts(events: pl.DataFrame, articles: pl.DataFrame, span: Span) -> tuple[str, ...]:
    """Where given numbers of compared articles differ from the timelines.

    Args:
        events: Columns `event_id`, `event_time` (microseconds), `n_before`, `n_after`.
        articles: Column `article_time`.
        span: The window.
    """
    counts = counts_around(events["event_time"].to_numpy(), np.sort(articles["article_time"].to_numpy()), span)
    messages = []
    for name in N_COLUMNS:
        counted = events.with_columns(pl.Series("counted", counts[name]))
        differing = counted.filter(pl.col(name) != pl.col("counted")).sort("event_id")
        if not differing.is_empty():
            example = differing.row(0, named=True)
            messages.append(
                f"{name} of {differing.height:,} of {events.height:,} events differs from the timelines "
                f"(event {example['event_id']}: given {example[name]:,}, counted {example['counted']:,}): "
                "it may be of another window, or not every article was compared; where every article is compared with "
                'every event in its window, compared = "timelines" counts them'
            )
    return tuple(messages)
