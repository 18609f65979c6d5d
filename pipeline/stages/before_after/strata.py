"""Strata: what the false positive rate is adjusted for, where their values come from, and what they need counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlglot.expressions as exp

from ...errors import ConfigError, DataError
from ...plan import rows
from ...plan.counts import CountFunction, Query, Sweep
from ...plan.nodes import Relation
from ...plan.plan import Plan
from ...queries.dialect import column
from ...queries.load import statement
from ...records import dataclass
from ...tables.sweep import REPLICATE
from .pairs import TimedBy, time_of_article
from .timelines import N_COLUMNS, timeline_counts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import polars as pl

    from ...metrics.before_after.timelines import Span
    from ...sources.bins import Grid
    from ...sources.source import Source
    from .contract import Compared
    from .matchers import Matchers

OF_TIME = ("weekday", "hour", "volume")
KEYS = ("event_stratum", "article_stratum")
COLUMNS = (*N_COLUMNS, "m_before")
COUNTED = "strata"
USED_PAIRS_OF_STRATA = "used_pairs_of_strata"
VALUES_OF_TIME = {"weekday": "weekday", "hour": "hour_of_day", "volume": "volume"}  # columns of the queries


@dataclass(frozen=True)
class Strata:
    """The strata of a run.

    Attributes:
        columns: Those that are columns of an input.
        of_time: Those that are computed of the time of the article.
        timed_by: Where the time of the article of a pair comes from: the row of `articles`, the pair itself, or the
            time of the event and the lag; None: it is not needed.
    """

    columns: tuple[rows.Grouped, ...]
    of_time: tuple[str, ...]
    timed_by: TimedBy | None

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self.columns or self.of_time)

    def relations(
        self, compared: Compared, by: Sequence[rows.Grouped], columns_of_matchers: Sequence[str]
    ) -> Iterator[Relation]:
        """How busy the days are, pairs and articles with their dates, and the events with their stratum.

        Args:
            compared: Where the numbers of compared pairs come from.
            by: The grouping columns and those of the strata.
            columns_of_matchers: The grouping columns that name the matcher.
        """
        names = {source: [each.name for each in by if each.source == source] for source in ("events", "articles")}
        if self.of_time:
            volumes = "volumes" if "volume" in self.of_time else "no_volumes"
            yield Relation("volumes", statement(f"before_after/{volumes}"), keep=True)
            columns = [*(grouped.name for grouped in by), REPLICATE, "score", "lag"]
            yield _with_dates("dated_pairs", USED_PAIRS_OF_STRATA, columns, time_of_article(self.timed_by))
        if self.of_time and compared == "timelines":
            columns = [*names["articles"], "article_time"]
            yield _with_dates("dated_articles", "articles", columns, column("article_time"))
        if compared == "events":
            columns = [*names["events"], *columns_of_matchers]
            yield Relation("events_of_strata", self._labelled("events_of_strata", columns))

    def events(self, columns: Sequence[str]) -> exp.Query:
        """Events with their times, their stratum and some of their columns."""
        return self._labelled("timeline_of_events_by_stratum", columns)

    def articles(self, columns: Sequence[str]) -> exp.Query:
        """Articles with their times, their stratum and some of their columns."""
        relations = {"articles": "dated_articles"} if self.of_time else {}
        return self._labelled("timeline_of_articles_by_stratum", columns, relations, ("articles",))

    def pairs(self, columns: Sequence[str]) -> exp.Query:
        """Pairs with both strata and some of their columns."""
        relations = {"used_pairs": "dated_pairs" if self.of_time else USED_PAIRS_OF_STRATA}
        return self._labelled("pairs_of_strata", columns, relations, ("articles", "pairs"))

    def _labelled(
        self,
        file: str,
        columns: Sequence[str],
        relations: Mapping[str, str] | None = None,
        of_others: Sequence[str] = (),
    ) -> exp.Query:
        """Rows with the texts of their values: those of the event, and those of inputs other than events."""
        events = [column(grouped.name) for grouped in self.columns if grouped.source == "events"]
        of_articles = [column(grouped.name) for grouped in self.columns if grouped.source in of_others]
        times = [column(VALUES_OF_TIME[name]) for name in self.of_time]
        labels = {"event_label": _text(events), "article_label": _text([*of_articles, *times])}
        return statement(f"before_after/{file}", columns, relations=relations, columns=labels)


def _with_dates(name: str, relation: str, columns: Sequence[str], time: exp.Expr) -> Relation:
    """Some columns of a relation, with the weekday, the hour and how busy the day is of a time in microseconds."""
    relations, times = {"timed_rows": relation}, {"time_of_article": time}
    return Relation(name, statement("before_after/with_dates", columns, relations=relations, columns=times))


def _text(values: Sequence[exp.Expr]) -> exp.Expr:
    """One text for several values, different for different values: each with its length in front, NULL as a dash."""
    text: exp.Expr = exp.Literal.string("")
    for value in values:
        written = exp.cast(value.copy(), "VARCHAR")
        length = exp.cast(exp.func("length", written.copy()), "VARCHAR")
        with_length = exp.DPipe(this=exp.DPipe(this=length, expression=exp.Literal.string(":")), expression=written)
        label = exp.Case().when(value.is_(exp.null()), exp.Literal.string("-")).else_(with_length)
        text = exp.DPipe(this=text, expression=label)
    return text


def resolve(names: Sequence[str], sources: Mapping[str, Source], compared: Compared) -> Strata:
    """Find where the strata come from.

    Args:
        names: As in the config.
        sources: The inputs that may have columns of strata, the primary input first.
        compared: Where the numbers of compared pairs come from.

    Raises:
        ConfigError: the compared pairs are not known for such strata.
        DataError: an input lacks a column.
    """
    of_time = tuple(name for name in OF_TIME if name in names)
    plain = [name for name in names if name not in OF_TIME]
    columns = rows.resolve_by([plain], list(sources.values()), key="strata")
    _check_known(columns, of_time, compared)
    if "volume" in of_time and not _has(sources, "articles", "article_time"):
        message = 'strata: "volume" needs the input articles with article_time'
        raise DataError(message, remedy="Give the articles, or leave volume out.")
    keyed = _has(sources, "articles", "article_id") and _has(sources, "pairs", "article_id")
    if any(each.source == "articles" for each in columns) and not keyed:
        message = "strata of articles need article_id in pairs and in articles"
        raise DataError(message, remedy="Map article_id in both.")
    return Strata(columns, of_time, _timed_by(sources, keyed=keyed) if of_time else None)


def _check_known(columns: Sequence[rows.Grouped], of_time: Sequence[str], compared: Compared) -> None:
    allowed = {"events": ("events",), "timelines": ("events", "articles"), "pairs": ("events", "articles", "pairs")}
    refused = [
        f"{each.label!r} is a column of {each.source}" for each in columns if each.source not in allowed[compared]
    ]
    refused += [f"{name!r} is one of articles" for name in of_time if compared == "events"]
    if refused:
        where = "given per event" if compared == "events" else "counted from events and articles"
        message = f"strata: {refused[0]}, but the compared pairs are {where}"
        instead = '"timelines" or "pairs"' if compared == "events" else '"pairs"'
        raise ConfigError(message, remedy=f"Use compared = {instead} if the data allow it, or other strata.")


def _has(sources: Mapping[str, Source], name: str, field: str) -> bool:
    return name in sources and sources[name].has(field)


def _timed_by(sources: Mapping[str, Source], *, keyed: bool) -> TimedBy:
    if keyed and _has(sources, "articles", "article_time"):
        return "articles"
    if _has(sources, "pairs", "article_time"):
        return "pairs"
    if _has(sources, "events", "event_time"):
        return "events"
    message = "strata: the times of the articles are not known"
    raise DataError(
        message,
        remedy="Give articles with article_id and article_time, or article_time in pairs, or event_time in events.",
    )


def plan(
    strata: Strata,
    by: Sequence[rows.Grouped],
    compared: Compared,
    matchers: Matchers,
    grid: Grid | None,
    bounds: Mapping[str, float],
    span: Span | None,
    *,
    missed: bool,
) -> Plan:
    """Matches and compared pairs by stratum.

    Args:
        strata: The strata.
        by: The grouping columns and those of the strata.
        compared: Where the numbers of compared pairs come from.
        matchers: Who compared them.
        grid: The thresholds.
        bounds: Which lags lie before and after the event.
        span: The window, for timelines.
        missed: Whether pairs without a score count, below every threshold.
    """
    sweep = Sweep("pairs_of_strata", strata.pairs([grouped.name for grouped in by]), "score", grid, missed=missed)
    before = {name: bounds[name] for name in ("before_start", "before_end")}
    matches = Query("before_after/matches_by_stratum", before, COLUMNS, KEYS, sweep, COUNTED)
    pairs: Query | CountFunction = Query("before_after/compared_by_stratum", {}, COLUMNS, KEYS, into=COUNTED)
    if compared == "pairs":
        pairs = Query("before_after/pairs_by_stratum", dict(bounds), COLUMNS, KEYS, into=COUNTED)
    elif span is not None:
        pairs = _pairs_of_timelines(strata, by, matchers, span)
    return Plan((*strata.relations(compared, by, matchers.columns), matches, pairs))


def _pairs_of_timelines(strata: Strata, by: Sequence[rows.Grouped], matchers: Matchers, span: Span) -> CountFunction:
    """Compared pairs by stratum, where events and articles have their times."""

    def compute(frames: Mapping[str, pl.DataFrame], segment: Sequence[str]) -> pl.DataFrame:
        keys = [*matchers.known(segment), *KEYS]
        counted = timeline_counts(frames["events"], frames["articles"], span, keys, N_COLUMNS)
        return matchers.repeated(counted, frames, segment)

    names = {source: [each.name for each in by if each.source == source] for source in ("events", "articles")}
    reads = {"events": strata.events(names["events"]), "articles": strata.articles(names["articles"])}
    reads |= matchers.frames()
    return CountFunction("before_after/timelines_by_stratum", reads, compute, COLUMNS, KEYS, COUNTED)
