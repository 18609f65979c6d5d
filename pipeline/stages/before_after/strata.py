"""Strata: what the false positive rate is adjusted for, where their values come from, and what they need counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import sqlglot.expressions as exp

from pipeline.errors import ConfigError, DataError
from pipeline.plan import rows
from pipeline.plan.counts import CountFunction, Query, Sweep
from pipeline.plan.nodes import Relation
from pipeline.queries.dialect import column, double
from pipeline.queries.load import expand, load
from pipeline.stages.before_after.matchers import COMPARED_EVENTS
from pipeline.stages.before_after.timelines import N_COLUMNS, timeline_counts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import polars as pl

    from pipeline.metrics.before_after.timelines import Span
    from pipeline.sources.bins import Grid
    from pipeline.sources.source import Source
    from pipeline.stages.before_after.contract import Compared
    from pipeline.stages.before_after.matchers import Matchers

OF_TIME = ("weekday", "hour", "volume")
KEYS = ("event_stratum", "article_stratum")
COLUMNS = (*N_COLUMNS, "m_before")
COUNTED = "strata"
HOUR, DAY = 3.6e9, 86.4e9
Moment = Literal["articles", "pairs", "events"]


@dataclass(frozen=True)
class Strata:
    """The strata of a run.

    Attributes:
        columns: Those that are columns of an input.
        of_time: Those that are computed of the time of the article.
        moment: Where the time of the article of a pair comes from: the row of `articles`, the pair itself, or the time
            of the event and the lag; None: it is not needed.
    """

    columns: tuple[rows.Grouped, ...]
    of_time: tuple[str, ...]
    moment: Moment | None

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self.columns or self.of_time)

    def relations(self) -> Iterator[Relation]:
        """How busy the days are, and the events with their stratum."""
        if "volume" in self.of_time:
            day = exp.alias_(_whole(column("article_time"), DAY), "article_day")
            yield Relation("days_of_articles", exp.select(day).from_("articles"))
            yield Relation("volumes", expand(load("before_after/volumes"), ()), keep=True)
        yield Relation("events_of_strata", self.of_events(exp.select("*").from_(COMPARED_EVENTS)))

    def of_events(self, query: exp.Query) -> exp.Select:
        """Rows of events with their stratum; that of the article is empty."""
        return self._labelled(query, ("events",), None)

    def of_articles(self, query: exp.Query) -> exp.Select:
        """Rows of articles with their stratum; that of the event is empty."""
        return self._labelled(query, ("articles",), column("article_time"))

    def of_pairs(self, query: exp.Query) -> exp.Select:
        """Rows of pairs, with the columns of the strata and the time of `moment`, with both strata."""
        moment: exp.Expr = column("article_time")
        if self.moment == "events":
            lag = exp.Add(this=exp.Mul(this=column("lag_hours"), expression=double(HOUR)), expression=double(0.5))
            moment = exp.Add(this=column("event_time"), expression=exp.Floor(this=lag))
        return self._labelled(query, ("events", "articles", "pairs"), moment)

    def _labelled(self, query: exp.Query, sources: Sequence[str], moment: exp.Expr | None) -> exp.Select:
        of_events = [column(each.name) for each in self.columns if each.source == "events" and "events" in sources]
        others: list[exp.Expr] = []
        others += [column(each.name) for each in self.columns if each.source != "events" and each.source in sources]
        labelled = exp.select("*").from_(query.subquery("rows_of_strata"))
        if moment is not None and self.of_time:
            labelled = self._timed(labelled, moment)
            day, hour = column("day_of_stratum"), column("hour_of_stratum")
            values = {
                "weekday": _remainder(day, 7),
                "hour": _remainder(hour, 24),
                "volume": column("quartile_of_volume", "v"),
            }
            others += [values[name] for name in self.of_time]
        texts = (_text(of_events), _text(others))
        return labelled.select(*(exp.alias_(text, name) for name, text in zip(KEYS, texts, strict=True)))

    def _timed(self, query: exp.Query, moment: exp.Expr) -> exp.Select:
        """With the day and the hour of a moment, and how busy the day was."""
        named = (("day_of_stratum", DAY), ("hour_of_stratum", HOUR))
        timed = query.select(*(exp.alias_(_whole(moment, unit), name) for name, unit in named))
        timed = exp.select("*").from_(timed.subquery("timed"))
        if "volume" not in self.of_time:
            return timed
        on = exp.EQ(this=column("day_of_stratum"), expression=column("article_day", "v"))
        return timed.join(exp.to_table("volumes").as_("v"), on=on, join_type="left")


def _whole(moment: exp.Expr, unit: float) -> exp.Expr:
    """Whole units since 1970 of a moment in microseconds, rounded down."""
    quotient = exp.Div(this=exp.cast(exp.paren(moment.copy()), "DOUBLE"), expression=double(unit))
    return exp.cast(exp.Floor(this=quotient), "BIGINT")


def _remainder(value: exp.Expr, divisor: int) -> exp.Expr:
    """Never negative, before 1970 too."""
    number = exp.Literal.number(divisor)
    once = exp.Mod(this=value, expression=number)
    return exp.Mod(this=exp.paren(exp.Add(this=once, expression=number.copy())), expression=number.copy())


def _text(values: Sequence[exp.Expr]) -> exp.Expr:
    """One text for several values, different for different values: each with its length in front, NULL as a dash."""
    text: exp.Expr = exp.Literal.string("")
    for value in values:
        written = exp.cast(value.copy(), "VARCHAR")
        length = exp.cast(exp.Length(this=written.copy()), "VARCHAR")
        told = exp.DPipe(this=exp.DPipe(this=length, expression=exp.Literal.string(":")), expression=written)
        missing = exp.Is(this=value.copy(), expression=exp.null())
        text = exp.DPipe(this=text, expression=exp.Case().when(missing, exp.Literal.string("-")).else_(told))
    return text


def resolve(names: Sequence[str], sources: Mapping[str, Source], compared: Compared) -> Strata:
    """Find where the strata come from.

    Args:
        names: As in the config.
        sources: The inputs that may have columns of strata, the row input first.
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
    moment = _moment(sources, keyed=keyed) if of_time else None
    return Strata(columns, of_time, moment)


def _check_known(columns: Sequence[rows.Grouped], of_time: Sequence[str], compared: Compared) -> None:
    known = {"events": ("events",), "timelines": ("events", "articles"), "pairs": ("events", "articles", "pairs")}
    odd = [f"{each.label!r} is a column of {each.source}" for each in columns if each.source not in known[compared]]
    odd += [f"{name!r} is one of articles" for name in of_time if compared == "events"]
    if odd:
        where = "given per event" if compared == "events" else "counted from events and articles"
        message = f"strata: {odd[0]}, but the compared pairs are {where}"
        instead = '"timelines" or "pairs"' if compared == "events" else '"pairs"'
        raise ConfigError(message, remedy=f"Use compared = {instead} if the data allow it, or other strata.")


def _has(sources: Mapping[str, Source], name: str, field: str) -> bool:
    return name in sources and sources[name].has(field)


def _moment(sources: Mapping[str, Source], *, keyed: bool) -> Moment:
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


def queries(
    strata: Strata,
    compared: Compared,
    pairs: exp.Select,
    grid: Grid | None,
    bounds: Mapping[str, float],
    timelines: tuple[Mapping[str, exp.Query], Span] | None,
    matchers: Matchers,
    *,
    missed: bool = False,
) -> Iterator[Query | CountFunction]:
    """What counts matches and compared pairs by stratum.

    Args:
        strata: The strata.
        compared: Where the numbers of compared pairs come from.
        pairs: The rows that take part, with the columns of the strata and the time of their `moment`.
        grid: The thresholds.
        bounds: Which lags lie before and after the event.
        timelines: The rows of events and of articles, and the window; only for timelines.
        matchers: Who compared them.
        missed: Whether pairs without a score count, below every threshold.
    """
    sweep = Sweep("pairs_of_strata", strata.of_pairs(pairs), "score", grid, missed=missed)
    before = {name: bounds[name] for name in ("before_start", "before_end")}
    yield Query("before_after/matches_by_stratum", before, COLUMNS, KEYS, sweep, COUNTED)
    if compared == "pairs":
        yield Query("before_after/pairs_by_stratum", dict(bounds), COLUMNS, KEYS, into=COUNTED)
    elif compared == "events":
        yield Query("before_after/compared_by_stratum", {}, COLUMNS, KEYS, into=COUNTED)
    elif timelines is not None:
        found, span = timelines
        frames: dict[str, exp.Query] = {
            "events": strata.of_events(found["events"]),
            "articles": strata.of_articles(found["articles"]),
        }
        frames |= matchers.frames()

        def compute(frames: Mapping[str, pl.DataFrame], segment: Sequence[str]) -> pl.DataFrame:
            events, articles = frames["events"].drop(KEYS[1]), frames["articles"].drop(KEYS[0])
            counted = timeline_counts(events, articles, span, [*matchers.known(segment), *KEYS], N_COLUMNS)
            return matchers.repeated(counted, frames, segment)

        yield CountFunction("before_after/timelines_by_stratum", frames, compute, COLUMNS, KEYS, COUNTED)
