"""The plan of before_after: from its inputs and parameters to its relations and counts."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import sqlglot.expressions as exp

from ...base.columns import SECOND_REPLICATE
from ...base.dialect import all_rows, double, kept, part
from ...base.errors import ConfigError, DataError
from ...base.records import dataclass
from ...base.sql_files import statement
from ...base.visible_text import listed
from ...metrics.before_after.timelines import MICROSECONDS_PER_HOUR
from ...plan import rows
from ...plan.counts import CountFunction, Query, Sweep
from ...plan.nodes import (
    Relation,
    doubtful_groups,
    doubtful_scores,
    duplicate_check,
    missing_check,
    negative_check,
    one_cluster_check,
)
from ...plan.plan import OptionalTable, Plan
from ...plan.roles import UnmappedId, pooled_systems
from ...sources.bins import Grid
from ..parameters import EVERYTHING
from . import assumption, contract, groups, inputs, labels
from .contract import COUNT_NAMES, N_COLUMNS
from .groups import PAIRS_OF_BOTH, Crossing, choose_parent, unknown_parent
from .inputs import (
    PAIR,
    USED_PAIRS,
    UsedPairs,
    compared_pairs,
    given_against_timelines,
    timelines_by,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import polars as pl

    from ...metrics.before_after.timelines import Span
    from ...plan.nodes import After, Check, CrossCheck, Grouped
    from ...plan.rows import Units
    from ...sources.source import Source
    from .contract import BeforeAfterParameters, Compared, Parent
    from .groups import Strata
    from .inputs import Lag, TimedBy


# What before_after asks of an engine.


def plan(params: BeforeAfterParameters, sources: Mapping[str, Source]) -> Plan:
    """Bind pairs, events and articles, and count matches and compared pairs.

    Raises:
        DataError: an input lacks a column that the parameters need.
        ConfigError: the parameters do not fit each other.
    """
    optional = (sources.get(name) for name in ("events", "articles", "gold", "gold_articles", "audited"))
    run = Resolved(params, sources["pairs"], *optional)
    run.check()
    audit = labels.plan_of_audit(params, run.pairs, run.audited, run.by, run.bounds)
    return _core(run) + _lag_plan(run) + _strata_plan(run) + _gold_plan(run) + audit


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
            *checks_of(run),
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
        key_matches=tuple(contract.key_matches(run.sources, lists_articles=lists_articles)),
        derived=contract.derived(lag, run.events, run.compared, timed=run.has_timelines),
        inapplicable=contract.inapplicable(lag, run.events, run.compared),
        remedies=inputs.remedies(lag, run.bounds),
        warnings=tuple(_warnings(run)),
        facts={"compared": run.compared, "lag": lag.words, "independent": run.independent},
    )


def _lag_plan(run: Resolved) -> Plan:
    """Matches and compared pairs by day; nothing without `lag_thresholds`."""
    if not run.params.lag_thresholds:
        return Plan()
    grid = Grid(run.params.lag_thresholds, run.params.boundary)
    relation, beside = _pairs_and_second_parent(run)
    pairs = Sweep("pairs_of_lags", all_rows(relation), "score", grid)
    keys = ("lag_days", *beside)
    matches = Query("before_after/lags", run.ends_of_window, ("matches",), keys, pairs, "lags", beside=beside)
    timelines = (timelines_by(run.by), run.span()) if run.has_timelines else None
    return Plan((matches, *assumption.counts(run.compared, run.bounds, timelines, run.matchers)))


def _strata_plan(run: Resolved) -> Plan:
    """Counts by stratum; nothing without `strata`."""
    if not run.strata:
        return Plan()
    pairs = used_pairs(run, run.groups_and_strata, run.strata.timed_by, into=groups.USED_PAIRS_OF_STRATA)
    counts = groups.plan_of_strata(
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
    labels.check_grouping_of_gold(run.by, run.matchers, run.pairs)
    numbered = run.matchers.numbered([*PAIR, *(grouped.name for grouped in run.by)])
    return labels.plan_of_gold(run.gold, run.coded, run.by, numbered, run.bounds, run.params.grid())


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
    main = Sweep("pairs", all_rows(relation), "score", run.params.grid(), replicated=replicated, missed=missed)
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
        compared = (run.compared, span)
        yield inputs.matches_of_events(
            run.ends_of_window, run.params.boundary, compared, run.matchers, _clusters_of_events(run)
        )


def _clusters_of_events(run: Resolved) -> exp.Query | None:
    """The query of the cluster of every event; None: every event is one."""
    if run.units.cluster is None:
        return None
    read = f"{(run.events or run.pairs).name}_read"
    columns = {"unit_cluster": run.units.cluster}
    return statement("before_after/clusters_of_events", relations={"rows_read": read}, columns=columns)


# What the inputs and the parameters of a run say together: where each thing comes from that counting needs.


MOST_ROWS = 10_000_000  # of pairs, which the table of events reads once more
ENDS_OF_WINDOW = ("before_start", "before_end", "after_start", "after_end")


@dataclass(frozen=True)
class Resolved:
    """The parameters and inputs of a run, and what follows from both; each is resolved when it is first asked for.

    Attributes:
        params: The parameters.
        pairs: The primary input.
        events: The events, if they are an input.
        articles: The articles, if they are an input.
        gold: The gold pairs, if they are an input.
        coded: The input `gold_articles`, if there is one.
        audited: The labels of an earlier sample, if they are an input.
    """

    params: BeforeAfterParameters
    pairs: Source
    events: Source | None
    articles: Source | None
    gold: Source | None
    coded: Source | None
    audited: Source | None

    def check(self) -> None:
        """Refuse inputs and parameters that do not fit each other.

        Raises:
            DataError: an input lacks what the parameters need.
            ConfigError: the parameters do not fit each other.
        """
        by = self.by
        is_sheet = self.audited is not None and labels.is_sheet(self.audited)  # whose keys are compared as texts
        for key in PAIR:
            rows.check_keys(self.sources[:-1] if is_sheet else self.sources, key)
        if self.coded is not None and self.gold is None:
            message = "gold_articles goes with gold: without gold pairs nothing can be judged"
            raise ConfigError(message, remedy="Give the gold pairs, or leave gold_articles out.")
        labels.check_audit(self.params, self.pairs, self.audited)
        check_grouping(self.compared, by)
        self.matchers.check({"audit": self.params.audit is not None})
        check_zones(self.sources)

    @cached_property
    def by(self) -> tuple[Grouped, ...]:
        """The grouping columns, of pairs, events or articles."""
        n_sources = 1 + sum(source is not None for source in (self.events, self.articles))
        return rows.resolve_by(self.params.by, self.sources[:n_sources])

    @cached_property
    def compared(self) -> Compared:
        """Where the numbers of compared pairs come from."""
        return resolve_compared(self.params, self.events, self.articles)

    @cached_property
    def matchers(self) -> Matchers:
        """The grouping columns that name the matcher."""
        return Matchers.of(self.by, self.compared)

    @cached_property
    def strata(self) -> Strata:
        """The columns that the false positive rate is adjusted for."""
        sources = (source for source in (self.pairs, self.events, self.articles) if source is not None)
        return groups.resolve_strata(self.params.strata, {source.name: source for source in sources}, self.compared)

    @cached_property
    def groups_and_strata(self) -> tuple[Grouped, ...]:
        """The columns of groups and strata, each once."""
        return tuple(dict.fromkeys((*self.by, *self.strata.columns)))

    @cached_property
    def lag(self) -> Lag:
        """How the lag of a pair is known."""
        return inputs.resolve(self.pairs, self.events, self.articles)

    @cached_property
    def units(self) -> rows.Units:
        """The events, or the clusters that they lie in."""
        has_times = self.has_timelines or self.strata.timed_by == "events" or has(self.events, "event_time")
        return rows.Units(
            "events",
            "event_id",
            fields=(*(N_COLUMNS if self.compared == "events" else ()), *(("event_time",) if has_times else ())),
            cluster=self.params.cluster_column,
            replicated=self.params.is_replicated,
            replicates=self.params.n_replicates,
        )

    @cached_property
    def crossing(self) -> Crossing | None:
        """The second parent of the pairs; None: intervals treat events, or their clusters, as the only parent.

        Raises:
            DataError: the config names a parent whose numbers of compared pairs are not known.
        """
        wanted = self.params.second_parent
        if not self.units.replicated or wanted is None:
            return None
        parent = choose_parent(wanted, self.lacking)
        return None if parent is None else Crossing(parent, self._timed_by if parent == "day" else None, self.compared)

    @cached_property
    def lacking(self) -> dict[Parent, str]:
        """Of every second parent, what would make its numbers of compared pairs known, in words; empty: they are."""
        are_rows = self.compared == "pairs"
        of_timelines = [] if are_rows or self.has_timelines else list(self._lacking_of_timelines())
        of_day, of_article = list(of_timelines), list(of_timelines)
        if self._timed_by is None and (not of_timelines or self.lag.column == "lag_days"):
            of_day.append("article_time in pairs")
        if not self.pairs.has("article_id"):
            of_article.insert(0, "article_id in pairs")
        if not are_rows and not has(self.articles, "article_id"):
            of_article.append("article_id in articles")
        every_pair = ", or every compared pair with its times" if of_timelines else ""
        other = ", or article_id in pairs" if are_rows and of_article else ""
        return {
            "day": f"{listed(of_day)}{every_pair}{other}" if of_day else "",
            "article_id": f"{listed(of_article)}{every_pair}" if of_article else "",
        }

    def _lacking_of_timelines(self) -> Iterator[str]:
        """Data that timelines need and the run lacks."""
        if self.params.window is None:
            yield "the window"
        if not has(self.events, "event_time"):
            yield "events with event_time"
        if not has(self.articles, "article_time"):
            yield "articles with article_time"

    @property
    def _timed_by(self) -> TimedBy | None:
        """Where the time of the article of a pair comes from; None: it is not known to the day.

        A lag in days cannot tell it: rounded, it puts most articles on a day beside their own.
        """
        if self.pairs.has("article_time"):
            return "pairs"
        if self.names_articles and has(self.articles, "article_time"):
            return "articles"
        return "events" if has(self.events, "event_time") and self.lag.column != "lag_days" else None

    @property
    def independent(self) -> str:
        """The independent units in words: events, or their clusters, and the second parent of pairs."""
        second = [] if self.crossing is None else [self.crossing.parent]
        return " and ".join([self.params.first_cluster or "event_id", *second])

    @property
    def sources(self) -> tuple[Source, ...]:
        """The inputs of the run, the primary input first."""
        inputs = (self.pairs, self.events, self.articles, self.gold, self.coded, self.audited)
        return tuple(source for source in inputs if source is not None)

    @property
    def bounds(self) -> dict[str, float]:
        """Parameters of the queries: which lags lie before and after."""
        return EVERYTHING if self.params.window is None else self.params.window.bounds()

    @property
    def ends_of_window(self) -> dict[str, float]:
        """Those of `bounds` that tell which pairs lie in the window."""
        return {name: self.bounds[name] for name in ENDS_OF_WINDOW}

    @property
    def counts_missed(self) -> bool:
        """Whether pairs without a score count: where compared pairs are rows; elsewhere they never match."""
        return self.params.counts_missed and self.compared == "pairs"

    @property
    def has_timelines(self) -> bool:
        """Whether there is a window, and events and articles have their times."""
        return self.params.window is not None and has(self.events, "event_time") and has(self.articles, "article_time")

    @property
    def names_articles(self) -> bool:
        """Whether pairs and articles have the key of the articles."""
        return self.pairs.has("article_id") and has(self.articles, "article_id")

    @property
    def groups_by_articles(self) -> bool:
        """Whether a grouping column is one of articles."""
        return any(grouped.source == "articles" for grouped in self.by)

    @property
    def table_of_events(self) -> OptionalTable:
        """When counts per event are made."""
        return OptionalTable(inputs.TABLE_OF_EVENTS, "event_counts", self.params.event_counts, MOST_ROWS, (self.pairs,))

    def span(self) -> Span:
        """The window in microseconds.

        Raises:
            ConfigError: there is no window.
        """
        if self.params.window is None:
            message = "a window is required to count articles around events"
            raise ConfigError(message)
        return self.params.window.span()


# Where the numbers of compared pairs come from: rows of pairs, numbers per event, or the two timelines.


def resolve_compared(params: BeforeAfterParameters, events: Source | None, articles: Source | None) -> Compared:
    """Find where the numbers of compared pairs come from, unless the config says so.

    Raises:
        DataError: the inputs lack what the config asks for.
    """
    counted = has(events, *N_COLUMNS)
    timed = has(events, "event_time") and has(articles, "article_time") and params.window is not None
    default: Compared = "events" if counted else "timelines" if timed else "pairs"
    compared = params.compared or default
    if compared == "events" and not counted:
        message = 'compared = "events" needs the input events with n_before and n_after'
        raise DataError(message, remedy='Map them, or use compared = "pairs" if every compared pair is a row.')
    if compared == "timelines" and not timed:
        message = 'compared = "timelines" needs events with event_time and articles with article_time'
        raise DataError(message, remedy='Map them, for example columns = { event_time = "date" }.')
    return compared


def check_grouping(compared: Compared, by: Sequence[Grouped]) -> None:
    """Refuse groups whose number of compared pairs is not known.

    Raises:
        DataError: the pairs are counted per event, and a grouping column is one of articles.
    """
    for grouped in by:
        if compared == "events" and grouped.source == "articles":
            message = f"by: {grouped.label!r} is a column of articles, but the compared pairs are given per event"
            remedy = 'Their number for each value is not known: use compared = "timelines" if the data allow it.'
            raise DataError(message, remedy=remedy)


def has(source: Source | None, *names: str) -> bool:
    """Whether an input is given and has all of some fields."""
    return source is not None and all(source.has(name) for name in names)


# Matchers side by side in one input of pairs: each of them compared the same pairs, so these are counted for each.


MATCHER = "matcher"
MATCHERS = "matchers"
COMPARED_EVENTS = "compared_events"


@dataclass(frozen=True)
class Matchers:
    """The grouping columns of pairs that name the matcher.

    Where every compared pair is a row there are none: a column of pairs then describes the compared pairs.

    Attributes:
        columns: Their internal names; none: all pairs are of one matcher.
    """

    columns: tuple[str, ...]

    @classmethod
    def of(cls, by: Sequence[Grouped], compared: Compared) -> Matchers:
        """Those of a run."""
        return cls(tuple(each.name for each in by if each.source == "pairs" and compared != "pairs"))

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self.columns)

    def relations(self, of_events: Sequence[str]) -> Iterator[Relation]:
        """The matchers, numbered from 1, and the events that pairs were compared with, once for each of them.

        Args:
            of_events: Columns of the events that counting needs.
        """
        query = statement("before_after/matchers", self.columns) if self else statement("before_after/one_matcher")
        yield Relation(MATCHERS, query, keep=True)
        segment = {"events": of_events, "matchers": self.columns}
        yield Relation(COMPARED_EVENTS, statement("before_after/compared_events", segment))

    def numbered(self, columns: Sequence[str]) -> exp.Query:
        """Used pairs with the number of their matcher, and with some of their columns."""
        return statement("before_after/pairs_of_matchers", {"used_pairs": columns, "matchers": self.columns})

    def frames(self) -> dict[str, exp.Query]:
        """The frames that `repeated` needs."""
        return {MATCHERS: statement("before_after/known_matchers", self.columns)} if self else {}

    def known(self, segment: Sequence[str]) -> list[str]:
        """Those of some grouping columns that do not name the matcher."""
        return [name for name in segment if name not in self.columns]

    def repeated(
        self, counts: pl.DataFrame, frames: Mapping[str, pl.DataFrame], segment: Sequence[str]
    ) -> pl.DataFrame:
        """Counts of compared pairs, once for each matcher; the rows of matchers that a segment does not part add up.

        Args:
            counts: Counts by the columns of the segment that do not name the matcher.
            frames: Those of `frames`.
            segment: The grouping columns of the result.
        """
        if not self:
            return counts
        matchers = frames[MATCHERS]
        if matchers.is_empty():  # no pair tells of any: the compared pairs are there all the same
            matchers = matchers.clear(1)
        matcher_columns = [name for name in segment if name in self.columns]
        copies = counts.join(matchers.select(*matcher_columns, MATCHER), how="cross").drop(MATCHER)
        return copies.select(*segment, *(name for name in counts.columns if name not in segment))

    def check(self, others: Mapping[str, bool]) -> None:
        """Refuse what has no meaning with several matchers.

        Args:
            others: What is asked for beside them, and whether it is.

        Raises:
            DataError: names it.
        """
        for name, wanted in others.items():
            if self and wanted:
                message = f"{name} does not go with a grouping column of pairs, which names the matcher"
                raise DataError(message, remedy="Run one stage for each matcher: name it in where of pairs.")


# The relations of a run: its inputs as they are read, the events that pairs belong to, the pairs that take part.


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
    run: Resolved, groups: tuple[Grouped, ...], timed_by: TimedBy | None = None, *, into: str = USED_PAIRS
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


def key_of_pair(run: Resolved, groups: Sequence[Grouped]) -> tuple[str, ...]:
    """The key that a pair may have once: event, article and groups; for an audit, event and article."""
    if run.params.audit is not None:
        return PAIR
    return (*PAIR, *(grouped.name for grouped in groups if grouped.source == "pairs"))


def _computed(run: Resolved) -> dict[str, exp.Expr]:
    """Columns of pairs that are computed: the lag in microseconds, and whole days from the event to the article."""
    lag = run.lag.in_microseconds()
    if not run.params.lag_thresholds:
        return {"lag": lag}
    day = double(24 * MICROSECONDS_PER_HOUR)
    return {"lag": lag, "lag_day": kept(("lag day", part(lag)), lambda: exp.func("floor", lag.copy() / day))}


# Faults of the inputs, and warnings about them.


TIMES = ("event_time", "article_time")


def _cross_checks(run: Resolved) -> Iterator[CrossCheck]:
    if run.lag.is_compared:
        yield run.lag.cross_check()
    for holder in dict.fromkeys((run.strata.timed_by, None if run.crossing is None else run.crossing.timed_by)):
        if holder is not None:
            source = next(each for each in run.sources if each.name == holder)
            yield inputs.unknown_times(source, "event_time" if holder == "events" else "article_time")
    if not run.has_timelines:
        return
    if run.compared != "pairs" and run.names_articles and run.articles is not None:
        yield inputs.unlisted_articles(run.pairs, run.articles, run.bounds, run.compared)
    if has(run.events, "complete_window"):
        yield inputs.given_windows(run.span())
    if run.compared == "events":
        yield given_against_timelines(run.span())


def _unmapped_articles(run: Resolved) -> Iterator[UnmappedId]:
    """Pairs that may repeat, where it is not known which column names the article."""
    if run.params.duplicates != "keep" and not run.pairs.has("article_id"):
        yield UnmappedId(run.pairs, run.by, "article_id", ("event_id",), "each of which counts as a pair")


def checks_of(run: Resolved) -> Iterator[Check]:
    """Every row has its keys, once, and all that is counted of it."""
    if run.events is not None:
        yield from checks_of_events(run.events, run.units, timed=run.lag.looks_up_events)
    elif run.units.cluster is not None:
        yield missing_check(run.pairs, run.units.cluster)
        yield one_cluster_check(run.pairs, "events", "event_id", run.units.cluster)
    if run.articles is not None:
        has_times = run.has_timelines or run.lag.looks_up_articles
        yield from checks_of_articles(run.articles, timed=has_times)
    if run.groups_by_articles and not run.names_articles:
        message = "a grouping by articles needs article_id in pairs and in articles"
        raise DataError(message, remedy="Map article_id in both.")
    if run.params.duplicates == "error" and run.pairs.has("article_id"):
        remedy = 'Set duplicates = "max" to keep the highest score of each, or "keep" to count every row.'
        yield duplicate_check(run.pairs, key_of_pair(run, run.by), remedy=remedy, of_systems=True)


def _warnings(run: Resolved) -> Iterator[str]:
    yield from doubtful_types(run.sources, run.by)
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
    yield from dates(run.sources)
    yield from inputs.lags_and_window(run.lag, run.bounds)


def checks_of_events(events: Source, units: Units, *, timed: bool) -> Iterator[Check]:
    """Events are listed once, with all that is counted of them; `timed`: with their time."""
    flag = ["complete_window"] if events.has("complete_window") else []
    time = ["event_time"] if timed else []
    for name in dict.fromkeys(("event_id", *units.fields, *time, *flag, *([units.cluster] if units.cluster else []))):
        yield missing_check(events, name)
    for name in (name for name in N_COLUMNS if name in units.fields):
        yield negative_check(events, name)
    yield duplicate_check(events, ("event_id",), remedy="Keep one row per event.")


def checks_of_articles(articles: Source, *, timed: bool) -> Iterator[Check]:
    """Articles are listed once; `timed`: with their time."""
    if articles.has("article_time") and timed:
        yield missing_check(articles, "article_time")
    if articles.has("article_id"):
        yield duplicate_check(articles, ("article_id",), remedy="Keep one row per article.")


def doubtful_types(sources: Sequence[Source], by: Sequence[Grouped]) -> Iterator[str]:
    """Floating numbers where they may surprise; `sources` has the primary input first."""
    yield from doubtful_groups(sources, by)
    yield from doubtful_scores(sources[0])


def dates(sources: Sequence[Source]) -> Iterator[str]:
    """Times that are dates."""
    for name in TIMES:
        for source in sources:
            if _knows(source, name) and source.is_date(name):
                yield f"{source.name}.{name} has dates without a time of day: coverage may fall before the event"


def _knows(source: Source, name: str) -> bool:
    """Whether an input has a field; sheets show columns of the same name to people."""
    return source.contract.field(name) is not None and source.has(name)


def check_zones(sources: Sequence[Source]) -> None:
    """Times of events and articles must be on one clock: both with a zone, or both without.

    Raises:
        DataError: one has a zone and the other neither has nor declares one.
    """
    all_zones = {
        f"{source.name}.{name}": source.is_zoned(name) for source in sources for name in TIMES if _knows(source, name)
    }
    zoned = {name: has_zone for name, has_zone in all_zones.items() if has_zone is not None}
    if len(set(zoned.values())) > 1:
        naive = sorted(name for name, has_zone in zoned.items() if not has_zone)
        message = f"no time zone in {' and '.join(naive)}, but in {' and '.join(sorted(set(zoned) - set(naive)))}"
        raise DataError(message, remedy='Declare it with timezone = "Europe/Amsterdam" (or "UTC") on that input.')
