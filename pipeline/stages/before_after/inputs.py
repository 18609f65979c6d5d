"""The basis of counting: the pairs that take part, their lags, the pairs that are compared, and single events."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

import numpy as np
import polars as pl
import sqlglot.expressions as exp

from ...base.columns import REPLICATE, SECOND_REPLICATE, THRESHOLD, as_key, lowest_retrieved
from ...base.dialect import column, double, kept
from ...base.errors import ConfigError, DataError
from ...base.records import dataclass
from ...base.schemas import GROUPING
from ...base.sql_files import statement
from ...base.visible_text import rows_in_words, with_edges
from ...metrics.before_after.timelines import MICROSECONDS_PER_HOUR, counts_around, counts_between, lag_agreement
from ...plan import rows
from ...plan.counts import CountFunction
from ...plan.nodes import After, CrossCheck, Relation
from ..stage import CLUSTER
from .contract import EVENT_COLUMNS, N_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from ...base.columns import Boundary
    from ...metrics.before_after.timelines import Span
    from ...plan.nodes import Grouped
    from ...sources.source import Source
    from .contract import Compared
    from .planning import Matchers


# The pairs that take part: rows of pairs with the columns of their events and articles.


USED_PAIRS = "used_pairs"
PAIR = ("event_id", "article_id")
TimedBy = Literal["articles", "pairs", "events"]  # where the time of the article of a pair comes from


def time_of_article(timed_by: TimedBy | None) -> exp.Expr:
    """When the article of a pair appeared, in microseconds: as it is known, or computed from the lag."""
    if timed_by != "events":
        return column("article_time")
    return column("event_time") + column("lag")


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
    """Remedies where all pairs lie outside the window, as far as the lags tell."""
    hint = next(lags_and_window(lag, bounds), None)
    return {} if hint is None else {"outside_window": f"{hint[0].upper()}{hint[1:]}."}


def _is_near(value: float, other: float) -> bool:
    return abs(value - other) <= MOST_APART * other


def strictest_precision(curve: pl.DataFrame) -> str | None:
    """A warning that strict thresholds retrieve less after the event than before it; None where they do not.

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
    """A warning that all matches lie on one side of their events; None where they do not, or are few.

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
    counted, given = int(_around(events, articles, span)["n_before"].sum()), int(events["n_before"].sum())
    return abs(counted - given) <= MOST_APART * given


# Where the lag of a pair comes from: a column, or the times of its event and its article, looked up if need be.


GIVEN = ("lag_hours", "lag_days")
EVENT_TIMES, ARTICLE_TIMES = "event_times", "article_times"
MOST_CROSSED = 0.001
SAMPLED_ROWS, FEWEST_OF_A_FILE = 20_000, 100
Holder = Literal["pairs", "events", "articles"]


@dataclass(frozen=True)
class Lag:
    """How the lag of a pair is known.

    Attributes:
        pairs: The pairs.
        events: The events, if given.
        articles: The articles, if given.
        column: The column of pairs that holds it; None: it is the difference of the two times.
        event_time: The input that has the time of the event; None: it is not known.
        article_time: The input that has the time of the article; None: it is not known.
    """

    pairs: Source
    events: Source | None
    articles: Source | None
    column: str | None
    event_time: Holder | None
    article_time: Holder | None

    @property
    def is_timed(self) -> bool:
        """Whether both times are known."""
        return self.event_time is not None and self.article_time is not None

    @property
    def words(self) -> str:
        """Its origin in words."""
        return self.column or f"{self.article_time}.article_time - {self.event_time}.event_time"

    @property
    def fields(self) -> tuple[str, ...]:
        """Columns of pairs that it needs, and those it is compared with."""
        times = {"event_time": self.event_time, "article_time": self.article_time} if self.is_timed else {}
        keys = ["article_id"] if self.is_timed and self.article_time == "articles" else []
        column_ = [] if self.column is None else [self.column]
        return (*column_, *(name for name, holder in times.items() if holder == "pairs"), *keys)

    @property
    def looks_up_events(self) -> bool:
        """Whether pairs find the times of their events in the input events."""
        return self.column is None and self.event_time == "events"

    @property
    def looks_up_articles(self) -> bool:
        """Whether pairs find the times of their articles in the input articles."""
        return self.column is None and self.article_time == "articles"

    @property
    def is_compared(self) -> bool:
        """Whether it is given and the two times are known as well."""
        return self.column is not None and self.is_timed

    def in_microseconds(self) -> exp.Expr:
        """The lag of a pair as a DOUBLE of whole microseconds, the unit in which it is held against the window.

        A column of hours or days is rounded to the nearest: what a number with a decimal fraction of up to a
        microsecond means, exactly, for lags of up to 2^51 microseconds, which is 71 years.
        """
        return kept(("lag", self.column, self.article_time, self.event_time), self._in_microseconds)

    def _in_microseconds(self) -> exp.Expr:
        if self.column is None:
            # the difference of the times of a canonical pair and of what it has looked up, in
            # microseconds
            article = column("article_time", "canonical" if self.article_time == "pairs" else "a")
            event = column("event_time", "canonical" if self.event_time == "pairs" else "e")
            return exp.cast(exp.paren(article - event), "DOUBLE")
        unit = MICROSECONDS_PER_HOUR * (24 if self.column == "lag_days" else 1)
        return exp.func("round", column(self.column) * double(unit))

    def lookups(self) -> list[rows.Lookup]:
        """The relations in which pairs find times, before their lag is computed."""
        return [
            *([rows.Lookup(EVENT_TIMES, "event_id", "e")] if self.looks_up_events else []),
            *([rows.Lookup(ARTICLE_TIMES, "article_id", "a")] if self.looks_up_articles else []),
        ]

    def relations(self) -> Iterator[Relation]:
        """The times of events and of articles by their keys, one row each, as far as pairs find their times there."""
        if not self.is_timed:
            return
        if self.event_time == "events":
            yield Relation(EVENT_TIMES, statement("before_after/event_times"), keep=self.column is None)
        if self.article_time == "articles":
            yield Relation(ARTICLE_TIMES, statement("before_after/article_times"), keep=self.column is None)

    def cross_check(self) -> CrossCheck:
        """The lags of the first rows of every file beside the times of the same pairs."""
        n_rows = max(SAMPLED_ROWS // max(self.pairs.n_files, 1), FEWEST_OF_A_FILE)
        pairs = {"pairs_read": self._pairs_with_times()}
        sample = statement("before_after/lags_and_times", relations=pairs, values={"n_rows_of_file": n_rows})
        return CrossCheck({"sample": sample}, self._compare)

    def _pairs_with_times(self) -> str | exp.Query:
        """The relation of the pairs, with the times that they have to look up."""
        pairs: str | exp.Query = "pairs_read"
        names = ["passes_where", "file_row_number", "event_id", "lag", *self.fields]
        sides = ((self.event_time, EVENT_TIMES, "event"), (self.article_time, ARTICLE_TIMES, "article"))
        for holder, times, thing in sides:
            if holder != "pairs":
                relations = {"pairs_read": pairs, "times": times}
                columns = {"key": f"{thing}_id", "time": f"{thing}_time"}
                segment = tuple(dict.fromkeys(names))
                pairs = statement("before_after/pairs_with_times", segment, relations=relations, columns=columns)
                names.append(f"{thing}_time")
        return pairs

    def _compare(self, frames: Mapping[str, pl.DataFrame]) -> tuple[str, ...]:
        unit = "days" if self.column == "lag_days" else "hours"
        lag_name = self.pairs.source_name(str(self.column))
        agreement = lag_agreement(frames["sample"], in_days=unit == "days", dates=self._has_dates)
        if agreement is None:
            return tuple(self._other_side(frames["sample"], lag_name))
        words = (
            f"input pairs: the lag {lag_name!r}, read as {unit} from event to article, contradicts the times "
            f"({self._times_in_words()}) in {agreement.n_apart:,} of {agreement.n_rows:,} sampled rows: "
            f"{agreement.cause}; for example event {agreement.event}: {lag_name} says {agreement.lag:g} hours, the "
            f"times say {agreement.from_times:g}"
        )
        if agreement.is_rare:
            return (words,)
        remedy = agreement.remedy.format(column=lag_name) or "Mend the lag or the times."
        raise DataError(
            words, remedy=f"{remedy} columns = {{ {self.column} = false }} computes the lag from the times."
        )

    def _other_side(self, sample: pl.DataFrame, lag_name: str) -> Iterator[str]:
        """Rounded lags that put articles on the other side of their event."""
        crossed = sample.filter((pl.col("given") >= 0) != (pl.col("from_times") >= 0)).height
        if crossed > MOST_CROSSED * sample.height:
            yield (
                f"input pairs: the lag {lag_name!r} is rounded, and in {crossed:,} of {sample.height:,} sampled rows "
                f"it puts the article on the other side of the event than the times do ({self._times_in_words()}); "
                f"columns = {{ {self.column} = false }} computes the lag from the times"
            )

    def _times_in_words(self) -> str:
        return f"{self.article_time}.article_time minus {self.event_time}.event_time"

    @property
    def _has_dates(self) -> bool:
        holders = {"pairs": self.pairs, "events": self.events, "articles": self.articles}
        timed = ((self.event_time, "event_time"), (self.article_time, "article_time"))
        sources = ((holders[holder], name) for holder, name in timed if holder is not None)
        return any(source is not None and source.is_date(name) for source, name in sources)

    def inapplicable(self) -> dict[str, str]:
        """Why mapped columns of lags and times are not read."""
        if self.column is None:
            return {}
        why = f"the lag is {self.column}, and without both times there is nothing to compare"
        others = {name: f"the lag is {self.column}" for name in GIVEN if name != self.column}
        times = {} if self.is_timed else dict.fromkeys(("event_time", "article_time"), why)
        return {f"pairs.{name}": reason for name, reason in (others | times).items()}


def resolve(pairs: Source, events: Source | None, articles: Source | None) -> Lag:
    """Find the lag: a mapped column, mapped times, a column by its name, times, times looked up by key.

    Raises:
        ConfigError: it is mapped twice.
        DataError: it is known in no way.
    """
    mapped = [name for name in GIVEN if pairs.is_mapped(name)]
    if len(mapped) > 1:
        message = "input pairs: lag_hours and lag_days are both mapped, and one of them would not be used"
        raise ConfigError(message, remedy="Map one; the other can be set to false.")
    named = [name for name in GIVEN if pairs.has(name)]
    keyed = articles is not None and articles.has("article_id") and pairs.has("article_id")
    event_time = _holder("event_time", pairs, "events", events)
    article_time = _holder("article_time", pairs, "articles", articles if keyed else None)
    times_mapped = pairs.is_mapped("event_time") and pairs.is_mapped("article_time")
    chosen = mapped[0] if mapped else None if times_mapped or not named else named[0]
    lag = Lag(pairs, events, articles, chosen, event_time, article_time)
    if chosen is None and not lag.is_timed:
        message = (
            "input pairs: neither lag_hours, nor lag_days, nor both event_time (in pairs or events) and article_time "
            "(in pairs, or in articles by article_id) are there"
        )
        raise DataError(message, remedy='Map one of them, for example columns = { lag_hours = "hourdiff" }.')
    return lag


def _holder(name: str, pairs: Source, other: Holder, source: Source | None) -> Holder | None:
    if pairs.has(name):
        return "pairs"
    return other if source is not None and source.has(name) else None


# Compared pairs from the timelines of events and articles: counted, or held against given numbers.


COUNTS_AROUND = (*N_COLUMNS, "n_near")


def _around(events: pl.DataFrame, articles: pl.DataFrame, span: Span) -> dict[str, NDArray[np.int64]]:
    """`counts_around` every event, of all articles."""
    return counts_around(events["event_time"].to_numpy(), np.sort(articles["article_time"].to_numpy()), span)


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
    counts = _around(events, articles, span)
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


# Matches and compared pairs of every event: the units in which two matchers are compared.


TABLE_OF_EVENTS, CLUSTERS = "before_after_events", "clusters"


def matches_of_events(
    bounds: Mapping[str, float],
    boundary: Boundary,
    compared: tuple[Compared, Span | None],
    matchers: Matchers,
    clusters: exp.Query | None,
) -> After:
    """Matches of every event at the first criterion's threshold of the total.

    Args:
        bounds: Which lags lie before and after the event.
        boundary: Whether a score equal to the threshold is retrieved.
        compared: Where the numbers of compared pairs come from, and for timelines the window in microseconds.
        matchers: Who compared them; the matches of all are added up, as in the total, and so are the compared pairs.
        clusters: Query of the cluster of every event; None: every event is one.
    """

    def params(tables: Mapping[str, pl.DataFrame]) -> dict[str, float] | None:
        threshold = chosen_threshold(tables)
        if threshold is None:
            return None
        reference = chosen_threshold(tables, "recall_reference")
        lowest = lowest_retrieved(threshold, boundary)
        at_reference = math.inf if reference is None else lowest_retrieved(reference, boundary)
        return {"lowest_score": lowest, "reference_score": at_reference, **bounds}

    def finish(matches: pl.DataFrame, frames: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
        compared_with = matchers.repeated(_compared(frames, compared[1]), frames, ())
        compared_with = compared_with.group_by("event_id").agg(pl.col(N_COLUMNS).sum()) if matchers else compared_with
        joined = matches.join(compared_with, on="event_id", how="left").with_columns(pl.col(N_COLUMNS).fill_null(0))
        rows = joined.select(pl.lit("all").alias(GROUPING.name), *(each.name for each in EVENT_COLUMNS))
        if CLUSTERS not in frames:
            return rows
        of_events = frames[CLUSTERS].with_columns(as_key(frames[CLUSTERS][CLUSTER]))
        return rows.join(of_events, on="event_id", how="left", maintain_order="left")

    frames = _frames(compared[0], bounds) | matchers.frames() | ({} if clusters is None else {CLUSTERS: clusters})
    return After(TABLE_OF_EVENTS, None, statement("before_after/events"), params, frames, finish)


def chosen_threshold(tables: Mapping[str, pl.DataFrame], criterion: str | None = None) -> float | None:
    """The threshold of a criterion, or of the first, for the total; None without a total, or where none was reached."""
    points = tables["before_after_operating_points"].filter(pl.col(GROUPING.name) == "all")
    points = points if criterion is None else points.filter(pl.col("criterion") == criterion)
    threshold = points[THRESHOLD][0] if not points.is_empty() else None
    return float(threshold) if threshold is not None else None


def _frames(compared: Compared, bounds: Mapping[str, float]) -> dict[str, exp.Query]:
    if compared == "pairs":
        return {"pairs": statement("before_after/pairs_per_event", values=bounds)}
    if compared == "events":
        return {"events": events_of_timeline(("event_id", *N_COLUMNS))}
    return {"events": events_of_timeline(("event_id", "event_time")), "articles": articles_of_timeline()}


def _compared(frames: Mapping[str, pl.DataFrame], span: Span | None) -> pl.DataFrame:
    """n_before and n_after of every event."""
    if span is None or "articles" not in frames:
        return frames["pairs"] if "pairs" in frames else frames["events"]
    counts = _around(frames["events"], frames["articles"], span)
    return frames["events"].select("event_id").with_columns(pl.Series(name, counts[name]) for name in N_COLUMNS)
