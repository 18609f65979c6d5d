"""The relations of a run: its inputs as they are read, the events that pairs belong to, the pairs that take part."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlglot.expressions as exp

from ...metrics.before_after.timelines import MICROSECONDS_PER_HOUR
from ...plan import rows
from ...plan.nodes import Relation
from ...queries.dialect import double
from ...queries.load import statement
from .compared import has
from .pairs import PAIR, USED_PAIRS, UsedPairs

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ...sources.source import Source
    from .pairs import TimedBy
    from .resolved import Resolved


def relations(run: Resolved) -> Iterator[Relation]:
    """Events, articles and pairs as they are read, and the units."""
    cluster = [run.units.cluster] if run.units.cluster else []
    columns = ["event_id", "score", *run.lag.fields]
    columns += ["article_id"] if run.pairs.has("article_id") else []
    timed_by = (run.strata.timed_by, None if run.crossing is None else run.crossing.timed_by)
    columns += ["article_time"] if "pairs" in timed_by else []
    if run.events is None:
        columns += cluster
    else:
        yield _events_read(run, run.events, cluster)
    if run.articles is not None:
        yield from _relations_of_articles(run, run.articles)
    yield from run.lag.relations()
    lookups, is_compared = run.lag.lookups(), run.lag.is_compared
    groups = run.groups_and_strata
    yield rows.read(run.pairs, columns, groups, _computed(run), lookups=lookups, located=is_compared)
    yield from _units_relations(run)


def _events_read(run: Resolved, events: Source, cluster: Sequence[str]) -> Relation:
    flag = ["complete_window"] if events.has("complete_window") else []
    times = ["event_time"] if run.lag.is_timed and run.lag.event_time == "events" else []
    columns = ["event_id", *run.units.fields, *times, *flag, *cluster]
    return rows.read(events, columns, run.groups_and_strata, {})


def _relations_of_articles(run: Resolved, articles: Source) -> Iterator[Relation]:
    names = [name for name in ("article_id", "article_time") if articles.has(name)]
    yield rows.read(articles, names, run.groups_and_strata, {})
    columns = [*names, *(grouped.name for grouped in run.groups_and_strata if grouped.source == "articles")]
    listed = statement("inputs/rows", columns, relations={"input_read": "articles_read"})
    yield Relation("articles", listed, keep=any(grouped.source == "articles" for grouped in run.groups_and_strata))
    if run.has_timelines:
        yield Relation("archive", statement("before_after/archive"))


def _units_relations(run: Resolved) -> tuple[Relation, ...]:
    """Events with their replicate, and whether their window is complete: as given, or as their times tell."""
    groups = run.groups_and_strata
    if has(run.events, "complete_window"):
        return rows.units_relations(run.pairs, run.units, run.events, groups, complete="complete_window")
    if not run.has_timelines:
        return rows.units_relations(run.pairs, run.units, run.events, groups)
    window = {"before_start": run.span().before_start, "after_end": run.span().after_end}
    covered = "before_after/covered_events"
    return rows.units_relations(run.pairs, run.units, run.events, groups, file=covered, values=window)


def columns_of_events(run: Resolved) -> list[str]:
    """The columns of the relation `events`, beside its flag and its replicate."""
    groups = (grouped.name for grouped in run.groups_and_strata if grouped.source == "events")
    return [run.units.key, *run.units.fields, *groups]


def used_pairs(
    run: Resolved, groups: tuple[rows.Grouped, ...], timed_by: TimedBy | None = None, *, into: str = USED_PAIRS
) -> UsedPairs:
    """The pairs that take part; `timed_by`: with the column that tells the time of the article."""
    columns = ["event_id", *(["article_id"] if run.pairs.has("article_id") else [])]
    columns += ["lag_day"] if run.params.lag_thresholds else []
    has_groups_of_articles = any(grouped.source == "articles" for grouped in groups)
    return UsedPairs(
        by=groups,
        columns=[*columns, *(["article_time"] if timed_by == "pairs" else [])],
        looks_up_events=run.events is not None or run.units.replicated,
        of_events=["event_time"] if timed_by == "events" else [],
        looks_up_articles=timed_by == "articles" or has_groups_of_articles,
        of_articles=["article_time"] if timed_by == "articles" else [],
        is_event_required=run.pairs.may_be_null("event_id"),
        counts_missed=run.params.counts_missed,
        key=key_of_pair(run, groups) if run.params.duplicates == "max" and run.pairs.has("article_id") else None,
        into=into,
    )


def key_of_pair(run: Resolved, groups: Sequence[rows.Grouped]) -> tuple[str, ...]:
    """What a pair may occur once for: its event and article, and its groups; for an audit it occurs once at all."""
    if run.params.audit is not None:
        return PAIR
    return (*PAIR, *(grouped.name for grouped in groups if grouped.source == "pairs"))


def _computed(run: Resolved) -> dict[str, exp.Expr]:
    """Columns of pairs that are computed: the lag in microseconds, and whole days from the event to the article."""
    lag = run.lag.in_microseconds()
    if not run.params.lag_thresholds:
        return {"lag": lag}
    return {"lag": lag, "lag_day": exp.func("floor", lag.copy() / double(24 * MICROSECONDS_PER_HOUR))}
