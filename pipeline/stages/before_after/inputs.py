"""The pairs that take part, with the columns of their events and articles, and whether all these fit each other."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

import numpy as np
import polars as pl
import sqlglot.expressions as exp

from ...errors import DataError
from ...metrics.before_after.timelines import MICROSECONDS_PER_HOUR, counts_around
from ...plan.nodes import CrossCheck, Relation
from ...queries.dialect import column, double
from ...queries.load import statement
from ...records import dataclass
from ...visible_text import rows_in_words, with_edges

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ...metrics.before_after.timelines import Span
    from ...plan.rows import Grouped
    from ...sources.source import Source
    from .contract import Compared
    from .lags import Lag


# The pairs that take part: rows of pairs with the columns of their events and articles.


USED_PAIRS = "used_pairs"
PAIR = ("event_id", "article_id")
TimedBy = Literal["articles", "pairs", "events"]  # where the time of the article of a pair comes from


def time_of_article(timed_by: TimedBy | None) -> exp.Expr:
    """When the article of a pair appeared, in microseconds: as it is known, or computed from the lag."""
    if timed_by != "events":
        return column("article_time")
    return column("event_time") + column("lag")


def every_used_pair(relation: str = USED_PAIRS) -> exp.Select:
    """All columns of the pairs that take part."""
    return exp.select("*").from_(relation)


@dataclass(frozen=True)
class UsedPairs:
    """A relation of the pairs that take part, with `replicate`, `score` and `lag`, in microseconds.

    Attributes:
        by: The grouping columns that it has, of pairs, events and articles.
        columns: Further columns of pairs, the keys among them.
        looks_up_events: Whether pairs find their event; else all take part, and are in replicate 0.
        of_events: Columns that pairs take over from their event, beside grouping columns.
        looks_up_articles: Whether pairs find their article; those of an article that is not listed are left out.
        of_articles: Columns that pairs take over from their article, beside grouping columns.
        is_event_required: Whether some pairs have no event, and are left out.
        counts_missed: Whether a score that is NULL, NaN or infinite is minus infinity: below every threshold.
        key: What a pair may occur once for, with its highest score; None: every row counts.
        into: Name of the relation.
    """

    by: Sequence[Grouped]
    columns: Sequence[str]
    looks_up_events: bool
    of_events: Sequence[str] = ()
    looks_up_articles: bool = False
    of_articles: Sequence[str] = ()
    is_event_required: bool = False
    counts_missed: bool = False
    key: Sequence[str] | None = None
    into: str = USED_PAIRS

    def relations(self) -> Iterator[Relation]:
        """The relation, after those that it reads."""
        pairs, origin = [*self.columns, *self._grouping("pairs")], "pairs_read"
        score: str | exp.Expr = self._score() if self.counts_missed else "score"
        if self.looks_up_articles:
            articles = [*self.of_articles, *self._grouping("articles")]
            segment = {"pairs_read": pairs, "articles": articles}
            query = statement("before_after/pairs_with_articles", segment, columns={"used_score": score})
            pairs, origin, score = [*pairs, *articles], f"{self.into}_with_articles", "score"
            yield Relation(origin, query)
        file = "pairs_with_events" if self.looks_up_events else "pairs_without_events"
        joined = statement(
            f"before_after/{file}",
            {"pairs_read": pairs, "events": [*self.of_events, *self._grouping("events")]},
            relations={"pairs_read": origin},
            columns={"used_score": score, "required": "event_id" if self.is_event_required else exp.true()},
        )
        if self.key is None:
            yield Relation(self.into, joined)
        else:
            every_row = f"{self.into}_of_every_row"
            yield Relation(every_row, joined)
            yield Relation(self.into, self._distinct(every_row, self.key))

    def _score(self) -> exp.Expr:
        """The score or, where it is not finite, minus infinity."""
        return exp.func("coalesce", column("score", "pairs_read"), double(-math.inf))

    def _distinct(self, origin: str, key: Sequence[str]) -> exp.Query:
        columns = [*(grouped.name for grouped in self.by), *self.columns, *self.of_events, *self.of_articles]
        further = [name for name in dict.fromkeys(columns) if name not in key]
        segment = {"": further, "pairs_of_key": key, "ranked": key}
        return statement("before_after/distinct_pairs", segment, relations={"pairs_of_key": origin})

    def _grouping(self, source: str) -> list[str]:
        return [grouped.name for grouped in self.by if grouped.source == source]


# Whether pairs, events, articles and the window fit each other; what does not is said, with the input at fault.


HALF = 0.5
FAR_TOO_SHORT, FAR_TOO_LONG = 20, 50
MOST_APART = 0.05
ENOUGH_MATCHES = 20
SIDES = ("before", "after")


def unlisted_articles(pairs: Source, articles: Source, bounds: Mapping[str, float], compared: Compared) -> CrossCheck:
    """Pairs whose article the articles lack: numbers of compared articles counted from them are then too small."""
    params = {name: bounds[name] for name in ("before_start", "after_end")}
    query = statement("before_after/unlisted_articles", values=params)

    def compare(frames: Mapping[str, pl.DataFrame]) -> tuple[str, ...]:
        row = frames["articles"].row(0, named=True)
        if not row["n_unlisted"]:
            return ()
        examples = f"pairs has for example {pairs.source_name('article_id')} = {with_edges(row['unlisted_example'])}"
        if row["listed_example"] is not None:
            examples += f", articles has {articles.source_name('article_id')} = {with_edges(row['listed_example'])}"
        message = (
            f"input articles lacks the articles of {row['n_unlisted']:,} of {row['n_rows']:,} rows of pairs in the "
            f"window ({examples}): numbers of compared articles that are counted from it are too small"
        )
        if compared == "timelines" and row["n_unlisted"] >= HALF * row["n_rows"]:
            remedy = "Give every article that was compared, or leave the pairs of the others out with where."
            raise DataError(message, remedy=remedy)
        return (message,)

    return CrossCheck({"articles": query}, compare)


def unknown_times(source: Source, name: str) -> CrossCheck:
    """Rows without the time that tells the day of their article, which no lag needs."""
    query = statement("checks/missing", relations={"input_read": f"{source.name}_read"}, columns={"value": name})

    def tell(frames: Mapping[str, pl.DataFrame]) -> tuple[str, ...]:
        if frames["missing"].is_empty():
            return ()
        words = (
            f"input {source.name}: column {source.source_name(name)!r} is NULL in "
            f"{rows_in_words(frames['missing'].item())}: on which day an article appeared is not known there, so that "
            "intervals and strata of time take all of them for one day"
        )
        return (words,)

    return CrossCheck({"missing": query}, tell)


def given_windows(span: Span) -> CrossCheck:
    """The given `complete_window` of the events beside what their times, the window and the articles tell."""

    def compare(frames: Mapping[str, pl.DataFrame]) -> tuple[str, ...]:
        events = frames["events"].filter(pl.col("first_time").is_not_null())  # else there are no articles
        slack = (
            pl.when("complete")
            .then(int(min(24 * MICROSECONDS_PER_HOUR, (span.after_end - span.before_start) / 10)))
            .otherwise(0)
        )  # the archive may begin before its first article
        is_inside = (pl.col("event_time") + span.before_start >= pl.col("first_time") - slack) & (
            pl.col("event_time") + span.after_end <= pl.col("last_time") + slack
        )
        computed = events.with_columns(is_inside.alias("computed"))
        differing = computed.filter(pl.col("complete") != pl.col("computed"))
        if differing.is_empty():
            return ()
        message = (
            f"complete_window of {differing.height:,} of {computed.height:,} events is not what the articles and the "
            f"window tell (event {differing['event_id'][0]}: given {str(differing['complete'][0]).lower()}): it may be "
            "of another window, or articles beyond those given were searched; complete_window = false computes it"
        )
        return (message,)

    return CrossCheck({"events": statement("before_after/given_windows")}, compare)


def lags_and_window(lag: Lag, bounds: Mapping[str, float]) -> Iterator[str]:
    """Lags, as far as the footers tell, that are far too short or far too long for the window."""
    reach = None if lag.column is None else lag.pairs.span(lag.column)
    if reach is None or not np.isfinite(bounds["before_start"]) or not np.isfinite(bounds["after_end"]):
        return
    hours = [value * (24 if lag.column == "lag_days" else 1) for value in reach]
    before, after = (bound / MICROSECONDS_PER_HOUR for bound in (-bounds["before_start"], bounds["after_end"]))
    window, longest = max(before, after), max(abs(value) for value in hours)
    words = f"the lags {lag.pairs.source_name(str(lag.column))!r} reach from {hours[0]:g} to {hours[1]:g} hours"
    around = f"the window from {-before:g} to {after:g}"
    mirrored = hours[0] < 0 < hours[1] and _is_near(-hours[0], after) and _is_near(hours[1], before)
    if mirrored and not _is_near(before, after):
        yield f"{words}, and {around}: is their sign the other way round? A lag is article time minus event time"
    elif 0 < longest <= window / FAR_TOO_SHORT:
        yield f"{words}, and {around}: are they in days? Then map lag_days instead of lag_hours"
    elif longest >= window * FAR_TOO_LONG:
        yield f"{words}, and {around}: are they in minutes or seconds? Then map lag_hours to an expression"


def remedies(lag: Lag, bounds: Mapping[str, float]) -> dict[str, str]:
    """What to do where all pairs lie outside the window, as far as the lags tell."""
    hint = next(lags_and_window(lag, bounds), None)
    return {} if hint is None else {"outside_window": f"{hint[0].upper()}{hint[1:]}."}


def _is_near(value: float, other: float) -> bool:
    return abs(value - other) <= MOST_APART * other


def strictest_precision(curve: pl.DataFrame) -> str | None:
    """What it means that strict thresholds retrieve less after the event than before it; None where they do not.

    Args:
        curve: The estimates of one group.
    """
    enough = curve.filter(pl.col("m_before") + pl.col("m_after") >= ENOUGH_MATCHES, pl.col("precision").is_not_null())
    strict = enough.sort("threshold").tail(1)
    if strict.is_empty() or strict["precision"][0] >= 0:
        return None
    return (
        f"at the strictest threshold with {ENOUGH_MATCHES} matches, {strict['threshold'][0]:g}, matches are rarer "
        "after the event than before it: is the lag article time minus event time, and does a higher "
        "score mean more alike?"
    )


def one_sided(curve: pl.DataFrame) -> str | None:
    """What it means that all matches lie on one side of their events; None where they do not, or are few.

    Args:
        curve: The estimates of one group.
    """
    most = curve.select(pl.col("^[mn]_(before|after)$").max().fill_null(0)).row(0, named=True)
    sides = {side: (most[f"m_{side}"], most[f"n_{side}"]) for side in SIDES}
    for side, other in (SIDES, SIDES[::-1]):
        (matches, compared), (others, elsewhere) = sides[side], sides[other]
        if not compared and elsewhere:
            return (
                f"no article {side} its event was compared, and {elsewhere:,} {other} it were: without both sides "
                "nothing can be estimated; is the lag article time minus event time, and are all compared pairs there?"
            )
        if not matches and compared and others >= ENOUGH_MATCHES:
            return (
                f"no match lies {side} its event at any threshold, although {compared:,} articles {side} the events "
                f"were compared, and {others:,} lie {other} it: were pairs left out by their lags? n_before and "
                "n_after must count the pairs that could have matched"
            )
    return None


def fit_given_numbers(events: pl.DataFrame, articles: pl.DataFrame, span: Span) -> bool:
    """Whether the timelines hold about as many compared pairs before the events as are given, 5 percent more or less.

    Args:
        events: Columns `event_time` (microseconds) and `n_before`.
        articles: Column `article_time`.
        span: The window.
    """
    times = np.sort(articles["article_time"].to_numpy())
    counted = int(counts_around(events["event_time"].to_numpy(), times, span)["n_before"].sum())
    given = int(events["n_before"].sum())
    return abs(counted - given) <= MOST_APART * given
