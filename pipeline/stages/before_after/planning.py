"""What before_after asks of an engine."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import sqlglot.expressions as exp

from pipeline.errors import ConfigError, DataError
from pipeline.plan import rows
from pipeline.plan.checks import duplicate_check, missing_check, one_cluster_check
from pipeline.plan.counts import CountFunction, Query, Sweep
from pipeline.plan.nodes import Relation
from pipeline.plan.plan import Plan
from pipeline.queries.dialect import column, double
from pipeline.queries.load import statement
from pipeline.sources.bins import Grid
from pipeline.stages.before_after import audit, faults, fields, gold, lags, plausibility, strata, trend
from pipeline.stages.before_after.compared import check_grouping, has, resolve_compared
from pipeline.stages.before_after.matchers import Matchers
from pipeline.stages.before_after.pairs import PAIR, USED_PAIRS, UsedPairs, every_used_pair
from pipeline.stages.before_after.tables import COUNT_NAMES
from pipeline.stages.before_after.timelines import (
    N_COLUMNS,
    compared_pairs,
    given_against_timelines,
    timelines_by,
)
from pipeline.stages.before_after.units import table as units_table
from pipeline.stages.before_after.units import table_of_events
from pipeline.stages.durations import EVERYTHING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pipeline.metrics.before_after.timelines import Span
    from pipeline.plan.nodes import After, Check, CrossCheck
    from pipeline.sources.source import Source
    from pipeline.stages.before_after.contract import BeforeAfterParameters, Compared
    from pipeline.stages.before_after.lags import Lag

ACCOUNTED = ("before_start", "before_end", "after_start", "after_end")


def plan(params: BeforeAfterParameters, sources: Mapping[str, Source]) -> Plan:
    """Bind pairs, events and articles, and count matches and compared pairs.

    Raises:
        DataError: an input lacks a column that the parameters need.
        ConfigError: the parameters do not fit each other.
    """
    optional = (sources.get(name) for name in ("events", "articles", "gold", "gold_articles", "audited"))
    return _Planner(params, sources["pairs"], *optional).plan()


@dataclass(frozen=True)
class _Planner:
    params: BeforeAfterParameters
    pairs: Source
    events: Source | None
    articles: Source | None
    gold: Source | None
    coded: Source | None
    audited: Source | None

    def plan(self) -> Plan:
        by = rows.resolve_by(self.params.by, self.sources[: 1 + sum(map(bool, (self.events, self.articles)))])
        for key in ("event_id", "article_id"):
            rows.check_keys(self.sources, key)
        if self.coded is not None and self.gold is None:
            message = "gold_articles goes with gold: without gold pairs nothing can be judged"
            raise ConfigError(message, remedy="Give the gold pairs, or leave gold_articles out.")
        audit.check_inputs(self.params, self.pairs, self.audited)
        compared = resolve_compared(self.params, self.events, self.articles)
        check_grouping(compared, by)
        matchers = Matchers.of(by, compared)
        matchers.check({"audit": self.params.audit is not None})
        faults.check_zones(self.sources)
        layers = self._strata(compared)
        every = tuple(dict.fromkeys((*by, *layers.columns)))
        units = self._units(compared, timed=layers.timed_by == "events")
        core = self._core(units, by, every, layers, compared, matchers)
        return (
            core
            + self._lag_plan(by, compared, matchers)
            + self._strata_plan(layers, units, every, compared, matchers)
            + self._gold_plan(by, matchers)
            + self._audit_plan(by)
        )

    def _core(
        self,
        units: rows.Units,
        by: tuple[rows.Grouped, ...],
        every: Sequence[rows.Grouped],
        layers: strata.Strata,
        compared: Compared,
        matchers: Matchers,
    ) -> Plan:
        """Inputs, matches and compared pairs, and what became of every pair."""
        lag, missed = self._lag, self._counts_missed(compared)
        lists_articles = self._looks_up_articles(by) or lag.looks_up_articles
        accounting = "accounting_of_articles" if lists_articles else "accounting"
        return Plan(
            nodes=(
                *self._relations(units, every, timed=layers.timed_by == "pairs"),
                *matchers.relations(self._columns_of_events(units, every)),
                *self._used_pairs(units, by).relations(),
                *self._checks(units, by),
                *self._cross_checks(compared),
                *self._main_counts(units, by, compared, matchers),
                *self._after_results(compared, matchers),
            ),
            sources=self.sources,
            by=by,
            used=("m_before", "m_after"),
            accounting=Query(f"before_after/{accounting}", self._accounted | {"missed": float(missed)}),
            optional=(table_of_events(self.pairs, asked=self.params.event_counts),),
            units="events",
            key_matches=tuple(fields.key_matches(self.sources, lists_articles=lists_articles)),
            derived=fields.derived(lag, self.events, compared, timed=self._timed_events),
            inapplicable=fields.inapplicable(lag, self.events, compared),
            remedies=plausibility.remedies(self._lag, self.bounds),
            warnings=tuple(self._warnings(compared, by)),
            facts={"compared": compared, "lag": lag.words},
        )

    def _lag_plan(self, by: Sequence[rows.Grouped], compared: Compared, matchers: Matchers) -> Plan:
        """Matches and compared pairs by day; nothing without `lag_thresholds`."""
        if not self.params.lag_thresholds:
            return Plan()
        grid = Grid(self.params.lag_thresholds, self.params.boundary)
        pairs = Sweep("pairs_of_lags", every_used_pair(), "score", grid)
        matches = Query("before_after/lags", self._accounted, ("matches",), ("lag_days",), pairs, "lags")
        timed = (timelines_by(by), self._span()) if self._timed_events else None
        return Plan((matches, *trend.counts(compared, self.bounds, timed, matchers)))

    def _strata_plan(
        self,
        layers: strata.Strata,
        units: rows.Units,
        every: Sequence[rows.Grouped],
        compared: Compared,
        matchers: Matchers,
    ) -> Plan:
        """Counts by stratum; `every` holds the grouping columns and those of the strata."""
        if not layers:
            return Plan()
        used_pairs = self._used_pairs(units, every, layers.timed_by, into=strata.USED_PAIRS_OF_STRATA)
        span, missed = self._span() if compared == "timelines" else None, self._counts_missed(compared)
        grid, bounds = self.params.grid(), self._accounted
        counted = strata.plan(layers, every, compared, matchers, grid, bounds, span, missed=missed)
        return Plan(tuple(used_pairs.relations())) + counted

    def _gold_plan(self, by: Sequence[rows.Grouped], matchers: Matchers) -> Plan:
        """Counts on gold labels, if there are any."""
        if self.gold is None:
            return Plan()
        gold.check_grouping(by, matchers, self.pairs)
        numbered = matchers.numbered([*PAIR, *(grouped.name for grouped in by)])
        return gold.plan(self.gold, self.coded, by, numbered, self.bounds, self.params.grid())

    def _audit_plan(self, by: Sequence[rows.Grouped]) -> Plan:
        """The sample of matches to check, and counts of those that were checked."""
        if self.params.audit is None or self._drawn is None:
            return Plan()
        return audit.plan(self.params, self.pairs, self.audited, by, self._drawn)

    @property
    def _accounted(self) -> dict[str, float]:
        """Parameters of the queries that account for every pair."""
        return {name: self.bounds[name] for name in ACCOUNTED}

    @property
    def sources(self) -> tuple[Source, ...]:
        """The inputs that are given, the primary input first."""
        every = (self.pairs, self.events, self.articles, self.gold, self.coded, self.audited)
        return tuple(source for source in every if source is not None)

    @property
    def bounds(self) -> dict[str, float]:
        """Parameters of the queries: which lags lie before and after."""
        return EVERYTHING if self.params.window is None else self.params.window.bounds()

    @property
    def _drawn(self) -> dict[str, float] | None:
        """Parameters of the query that draws the audit sample."""
        if self.params.audit is None:
            return None
        return audit.parameters(self.params.audit, self.bounds, self.params.boundary)

    def _counts_missed(self, compared: Compared) -> bool:
        """Whether pairs without a score count: where compared pairs are rows; elsewhere they never match."""
        return self.params.counts_missed and compared == "pairs"

    def _strata(self, compared: Compared) -> strata.Strata:
        found = (self.pairs, self.events, self.articles)
        return strata.resolve(self.params.strata, {each.name: each for each in found if each is not None}, compared)

    def _units(self, compared: str, *, timed: bool) -> rows.Units:
        return rows.Units(
            "events",
            "event_id",
            fields=(
                *(N_COLUMNS if compared == "events" else ()),
                *(("event_time",) if self._timed_events or timed else ()),
            ),
            cluster=self.params.cluster_column,
            replicated=self.params.uncertainty == "jackknife",
            replicates=None if self.params.replicates == "auto" else self.params.replicates,
        )

    @property
    def _timed_events(self) -> bool:
        return self.params.window is not None and has(self.events, "event_time") and has(self.articles, "article_time")

    @cached_property
    def _lag(self) -> Lag:
        return lags.resolve(self.pairs, self.events, self.articles)

    def _computed(self) -> dict[str, exp.Expr]:
        """Columns of pairs that are computed: the lag in hours, and whole days from the event to the article."""
        computed = self._lag.derived()
        if not self.params.lag_thresholds:
            return computed
        hours = computed.get("lag_hours", column("lag_hours"))
        return computed | {"lag_day": exp.func("floor", exp.paren(hours.copy()) / double(24.0))}

    def _columns_of_events(self, units: rows.Units, by: Sequence[rows.Grouped]) -> list[str]:
        """The columns of the relation `events`, beside its flag and its replicate."""
        return [units.key, *units.fields, *(grouped.name for grouped in by if grouped.source == "events")]

    @property
    def _names_articles(self) -> bool:
        """Whether pairs and articles have the key of the articles."""
        return self.pairs.has("article_id") and has(self.articles, "article_id")

    def _looks_up_articles(self, by: Sequence[rows.Grouped]) -> bool:
        return any(each.source == "articles" for each in by)

    def _relations(self, units: rows.Units, by: Sequence[rows.Grouped], *, timed: bool) -> Iterator[Relation]:
        lag, keys = self._lag, ["article_id"] if self.pairs.has("article_id") else []
        keys += ["article_time"] if timed else []
        cluster = [units.cluster] if units.cluster else []
        own = cluster if self.events is None else []
        if self.events is not None:
            flag = ["complete_window"] if self.events.has("complete_window") else []
            moments = ["event_time"] if lag.is_timed and lag.event_time == "events" else []
            yield rows.read(self.events, ["event_id", *units.fields, *moments, *flag, *cluster], by, {})
        if self.articles is not None:
            names = [name for name in ("article_id", "article_time") if self.articles.has(name)]
            yield rows.read(self.articles, names, by, {})
            columns = [*names, *(grouped.name for grouped in by if grouped.source == "articles")]
            articles = statement("inputs/rows", columns, relations={"input_read": "articles_read"})
            yield Relation("articles", articles, keep=self._looks_up_articles(by))
            if self._timed_events:
                yield Relation("archive", statement("before_after/archive"))
        yield from lag.relations()
        wanted = ["event_id", "score", *lag.fields, *keys, *own]
        yield rows.read(self.pairs, wanted, by, self._computed(), lookups=lag.lookups(), located=lag.is_compared)
        if has(self.events, "complete_window"):
            yield from rows.units_relations(self.pairs, units, self.events, by, complete="complete_window")
        elif self._timed_events:
            window = {"before_start": self._span().before_start, "after_end": self._span().after_end}
            covered = "before_after/covered_events"
            yield from rows.units_relations(self.pairs, units, self.events, by, file=covered, values=window)
        else:
            yield from rows.units_relations(self.pairs, units, self.events, by)

    def _span(self) -> Span:
        if self.params.window is None:
            message = "a window is required to count articles around events"
            raise ConfigError(message)
        return self.params.window.span()

    def _used_pairs(
        self,
        units: rows.Units,
        by: Sequence[rows.Grouped],
        timed_by: strata.TimedBy | None = None,
        *,
        into: str = USED_PAIRS,
    ) -> UsedPairs:
        """The pairs that take part; `timed_by`: with the column that tells the time of the article."""
        has_articles = self.pairs.has("article_id")
        columns = ["event_id", *(["article_id"] if has_articles else [])]
        columns += ["lag_day"] if self.params.lag_thresholds else []
        looks_up_events = self.events is not None or units.replicated
        return UsedPairs(
            by=by,
            columns=[*columns, *(["article_time"] if timed_by == "pairs" else [])],
            looks_up_events=looks_up_events,
            of_events=["event_time"] if timed_by == "events" else [],
            looks_up_articles=timed_by == "articles" or self._looks_up_articles(by),
            of_articles=["article_time"] if timed_by == "articles" else [],
            is_event_required=self.pairs.may_be_null("event_id"),
            counts_missed=self.params.counts_missed,
            key=self._key(by) if self.params.duplicates == "max" and has_articles else None,
            into=into,
        )

    def _main_counts(
        self, units: rows.Units, by: Sequence[rows.Grouped], compared: Compared, matchers: Matchers
    ) -> Iterator[Query | CountFunction]:
        """Matches, and the compared pairs."""
        missed, grid = self._counts_missed(compared), self.params.grid()
        main = Sweep("pairs", every_used_pair(), "score", grid, replicated=units.replicated, missed=missed)
        swept = "before_after/every_pair" if compared == "pairs" else "before_after/matches"
        yield Query(swept, self.bounds, COUNT_NAMES, sweep=main)
        if compared == "events":
            yield Query("before_after/compared", {}, COUNT_NAMES)
        if compared == "timelines" or (compared == "events" and self._timed_events):
            names = ["n_near"] if compared == "events" else [*N_COLUMNS, "n_near"]
            yield compared_pairs(by, self._span(), names, matchers)

    def _key(self, by: Sequence[rows.Grouped]) -> tuple[str, ...]:
        """What a pair may occur once for: its event and article, and its groups; for an audit it occurs once at all."""
        own = () if self.params.audit is not None else (each.name for each in by if each.source == "pairs")
        return (*PAIR, *own)

    def _after_results(self, compared: Compared, matchers: Matchers) -> Iterator[After]:
        if table_of_events(self.pairs, asked=self.params.event_counts).is_possible:
            span = self._span() if compared == "timelines" else None
            yield units_table(self._accounted, self.params.boundary, (compared, span), matchers)

    def _cross_checks(self, compared: Compared) -> Iterator[CrossCheck]:
        if self._lag.is_compared:
            yield self._lag.cross_check()
        if self._timed_events and compared != "pairs" and self._names_articles and self.articles is not None:
            yield plausibility.unlisted_articles(self.pairs, self.articles, self.bounds, compared)
        if self._timed_events and has(self.events, "complete_window"):
            yield plausibility.given_windows(self._span())
        if compared == "events" and self._timed_events:
            yield given_against_timelines(self._span())

    def _checks(self, units: rows.Units, by: Sequence[rows.Grouped]) -> Iterator[Check]:
        if self.events is not None:
            yield from faults.checks_of_events(self.events, units, timed=self._lag.looks_up_events)
        if units.cluster is not None and self.events is None:
            yield missing_check(self.pairs, units.cluster)
            yield one_cluster_check(self.pairs, "events", "event_id", units.cluster)
        if self.articles is not None:
            yield from faults.checks_of_articles(self.articles, timed=self._timed_events or self._lag.looks_up_articles)
        if self._looks_up_articles(by) and not self._names_articles:
            message = "a grouping by articles needs article_id in pairs and in articles"
            raise DataError(message, remedy="Map article_id in both.")
        if self.params.duplicates == "error" and self.pairs.has("article_id"):
            remedy = 'Set duplicates = "max" to keep the highest score of each, or "keep" to count every row.'
            yield duplicate_check(self.pairs, self._key(by), remedy=remedy)

    def _warnings(self, compared: Compared, by: Sequence[rows.Grouped]) -> Iterator[str]:
        yield from faults.doubtful_types(self.sources, by)
        if names := [each.label for each in by if each.name in Matchers.of(by, compared).columns]:
            yield (
                f"by: {' and '.join(names)} of pairs names the matcher: each of its values has all compared pairs, a "
                "total has those of all matchers; a column that describes events or articles belongs in those inputs"
            )
        if compared == "pairs" and self.params.compared is None:
            yield "every compared pair must be a row of pairs, even if it scores 0; if not, give n_before and n_after"
        if self.params.window is not None and not has(self.events, "complete_window") and not self._timed_events:
            yield "no complete_window is given: events whose window runs beyond the articles are counted too"
        if self._lag.column == "lag_days":
            whole = "" if self.pairs.is_integer("lag_days") else "where they are whole days, "
            yield f"lags are in days: {whole}articles of the day of the event count as after it, whatever the hour"
        yield from faults.dates(self.sources)
        yield from plausibility.lags_and_window(self._lag, self.bounds)
