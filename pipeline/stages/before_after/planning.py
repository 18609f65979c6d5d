"""What before_after asks of an engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import DataError
from ...plan.checks import duplicate_check, missing_check, one_cluster_check
from ...plan.counts import CountFunction, Query, Sweep
from ...plan.plan import Plan
from ...plan.roles import UnmappedId, pooled_systems
from ...sources.bins import Grid
from ...tables.sweep import SECOND_REPLICATE
from . import audit, faults, fields, gold, plausibility, strata, trend
from .compared import has
from .crossing import PAIRS_OF_BOTH, unknown_parent
from .estimate_tables import COUNT_NAMES
from .pairs import PAIR, USED_PAIRS, every_used_pair
from .relations import columns_of_events, key_of_pair, relations, used_pairs
from .resolved import Resolved
from .timelines import (
    N_COLUMNS,
    compared_pairs,
    given_against_timelines,
    timelines_by,
)
from .units import table as units_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ...plan.nodes import After, Check, CrossCheck, Relation
    from ...sources.source import Source
    from .contract import BeforeAfterParameters


def plan(params: BeforeAfterParameters, sources: Mapping[str, Source]) -> Plan:
    """Bind pairs, events and articles, and count matches and compared pairs.

    Raises:
        DataError: an input lacks a column that the parameters need.
        ConfigError: the parameters do not fit each other.
    """
    optional = (sources.get(name) for name in ("events", "articles", "gold", "gold_articles", "audited"))
    run = Resolved(params, sources["pairs"], *optional)
    run.check()
    return _core(run) + _lag_plan(run) + _strata_plan(run) + _gold_plan(run) + _audit_plan(run)


def _core(run: Resolved) -> Plan:
    """Inputs, matches and compared pairs, and what became of every pair."""
    units, lag = run.units, run.lag
    lists_articles = run.groups_by_articles or lag.looks_up_articles
    accounting = "accounting_of_articles" if lists_articles else "accounting"
    return Plan(
        nodes=(
            *relations(run),
            *run.matchers.relations(columns_of_events(run)),
            *_used_pairs(run),
            *_checks(run),
            *_cross_checks(run),
            pooled_systems(run.pairs, run.by),
            *_unmapped_articles(run),
            *_main_counts(run),
            *_after_results(run),
        ),
        sources=run.sources,
        by=run.by,
        used=("m_before", "m_after"),
        accounting=Query(f"before_after/{accounting}", run.ends_of_window | {"missed": float(run.counts_missed)}),
        optional=(run.table_of_events,),
        units=units.name,
        key_matches=tuple(fields.key_matches(run.sources, lists_articles=lists_articles)),
        derived=fields.derived(lag, run.events, run.compared, timed=run.has_timelines),
        inapplicable=fields.inapplicable(lag, run.events, run.compared),
        remedies=plausibility.remedies(lag, run.bounds),
        warnings=tuple(_warnings(run)),
        facts={"compared": run.compared, "lag": lag.words, "independent": run.independent},
    )


def _lag_plan(run: Resolved) -> Plan:
    """Matches and compared pairs by day; nothing without `lag_thresholds`."""
    if not run.params.lag_thresholds:
        return Plan()
    grid = Grid(run.params.lag_thresholds, run.params.boundary)
    relation, beside = _pairs_and_second_parent(run)
    pairs = Sweep("pairs_of_lags", every_used_pair(relation), "score", grid)
    keys = ("lag_days", *beside)
    matches = Query("before_after/lags", run.ends_of_window, ("matches",), keys, pairs, "lags", beside=beside)
    timelines = (timelines_by(run.by), run.span()) if run.has_timelines else None
    return Plan((matches, *trend.counts(run.compared, run.bounds, timelines, run.matchers)))


def _strata_plan(run: Resolved) -> Plan:
    """Counts by stratum; nothing without `strata`."""
    if not run.strata:
        return Plan()
    pairs = used_pairs(run, run.groups_and_strata, run.strata.timed_by, into=strata.USED_PAIRS_OF_STRATA)
    counts = strata.plan(
        run.strata,
        run.groups_and_strata,
        run.compared,
        run.matchers,
        run.params.grid(),
        run.ends_of_window,
        run.span() if run.compared == "timelines" else None,
        missed=run.counts_missed,
    )
    return Plan(tuple(pairs.relations())) + counts


def _gold_plan(run: Resolved) -> Plan:
    """Counts on gold labels, if there are any."""
    if run.gold is None:
        return Plan()
    gold.check_grouping(run.by, run.matchers, run.pairs)
    numbered = run.matchers.numbered([*PAIR, *(grouped.name for grouped in run.by)])
    return gold.plan(run.gold, run.coded, run.by, numbered, run.bounds, run.params.grid())


def _audit_plan(run: Resolved) -> Plan:
    """The sample of matches to check, and counts of those that were checked; nothing without `audit`."""
    if run.params.audit is None:
        return Plan()
    drawn = audit.parameters(run.params.audit, run.bounds, run.params.boundary)
    return audit.plan(run.params, run.pairs, run.audited, run.by, drawn)


def _used_pairs(run: Resolved) -> Iterator[Relation]:
    """The pairs that take part, and with a second parent the same for each clustering."""
    timed_by = None if run.crossing is None or run.crossing.timed_by == "articles" else run.crossing.timed_by
    yield from used_pairs(run, run.by, timed_by).relations()
    if run.crossing is not None:
        groups = [grouped.name for grouped in run.by] + (["lag_day"] if run.params.lag_thresholds else [])
        yield from run.crossing.relations(groups)


def _pairs_and_second_parent(run: Resolved) -> tuple[str, tuple[str, ...]]:
    """The relation of the pairs that take part, and its column of the second parent, if they have one."""
    return (USED_PAIRS, ()) if run.crossing is None else (PAIRS_OF_BOTH, (SECOND_REPLICATE,))


def _main_counts(run: Resolved) -> Iterator[Query | CountFunction]:
    """Matches, and the compared pairs."""
    relation, beside = _pairs_and_second_parent(run)
    replicated, missed = run.units.replicated, run.counts_missed
    main = Sweep("pairs", every_used_pair(relation), "score", run.params.grid(), replicated=replicated, missed=missed)
    query = "before_after/every_pair" if run.compared == "pairs" else "before_after/matches"
    crossed = () if run.crossing is None else run.crossing.tables
    yield Query(query, run.bounds, COUNT_NAMES, sweep=main, beside=beside, crossed=crossed)
    if run.compared == "events":
        yield Query("before_after/compared", {}, COUNT_NAMES)
    if run.compared == "timelines" or (run.compared == "events" and run.has_timelines):
        names = ["n_near"] if run.compared == "events" else [*N_COLUMNS, "n_near"]
        yield compared_pairs(run.by, run.span(), names, run.matchers)
        if run.crossing is not None:
            yield run.crossing.compared_pairs(run.by, run.span(), run.matchers)


def _after_results(run: Resolved) -> Iterator[After]:
    if run.table_of_events.is_possible:
        span = run.span() if run.compared == "timelines" else None
        yield units_table(run.ends_of_window, run.params.boundary, (run.compared, span), run.matchers)


def _cross_checks(run: Resolved) -> Iterator[CrossCheck]:
    if run.lag.is_compared:
        yield run.lag.cross_check()
    for holder in dict.fromkeys((run.strata.timed_by, None if run.crossing is None else run.crossing.timed_by)):
        if holder is not None:
            source = next(each for each in run.sources if each.name == holder)
            yield plausibility.unknown_times(source, "event_time" if holder == "events" else "article_time")
    if not run.has_timelines:
        return
    if run.compared != "pairs" and run.names_articles and run.articles is not None:
        yield plausibility.unlisted_articles(run.pairs, run.articles, run.bounds, run.compared)
    if has(run.events, "complete_window"):
        yield plausibility.given_windows(run.span())
    if run.compared == "events":
        yield given_against_timelines(run.span())


def _unmapped_articles(run: Resolved) -> Iterator[UnmappedId]:
    """Pairs that may repeat, where it is not known which column names the article."""
    if run.params.duplicates != "keep" and not run.pairs.has("article_id"):
        yield UnmappedId(run.pairs, run.by, "article_id", ("event_id",), "each of which counts as a pair")


def _checks(run: Resolved) -> Iterator[Check]:
    if run.events is not None:
        yield from faults.checks_of_events(run.events, run.units, timed=run.lag.looks_up_events)
    elif run.units.cluster is not None:
        yield missing_check(run.pairs, run.units.cluster)
        yield one_cluster_check(run.pairs, "events", "event_id", run.units.cluster)
    if run.articles is not None:
        has_times = run.has_timelines or run.lag.looks_up_articles
        yield from faults.checks_of_articles(run.articles, timed=has_times)
    if run.groups_by_articles and not run.names_articles:
        message = "a grouping by articles needs article_id in pairs and in articles"
        raise DataError(message, remedy="Map article_id in both.")
    if run.params.duplicates == "error" and run.pairs.has("article_id"):
        remedy = 'Set duplicates = "max" to keep the highest score of each, or "keep" to count every row.'
        yield duplicate_check(run.pairs, key_of_pair(run, run.by), remedy=remedy, of_systems=True)


def _warnings(run: Resolved) -> Iterator[str]:
    yield from faults.doubtful_types(run.sources, run.by)
    if names := [grouped.label for grouped in run.by if grouped.name in run.matchers.columns]:
        yield (
            f"by: {' and '.join(names)} of pairs names the matcher: each of its values has all compared pairs, a "
            "total has those of all matchers; a column that describes events or articles belongs in those inputs"
        )
    if run.compared == "pairs" and run.params.compared is None:
        yield "every compared pair must be a row of pairs, even if it scores 0; if not, give n_before and n_after"
    if run.params.window is not None and not has(run.events, "complete_window") and not run.has_timelines:
        yield "no complete_window is given: events whose window runs beyond the articles are counted too"
    if run.lag.column == "lag_days":
        condition = "" if run.pairs.is_integer("lag_days") else "where they are whole days, "
        yield f"lags are in days: {condition}articles of the day of the event count as after it, whatever the hour"
    if run.crossing is None and run.units.replicated and run.params.second_parent == "auto":
        yield unknown_parent(run.lacking)
    yield from faults.dates(run.sources)
    yield from plausibility.lags_and_window(run.lag, run.bounds)
