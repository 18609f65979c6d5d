"""The groups of the estimates from their counts by replicate: intervals, parents of pairs, and the rate by strata."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypedDict, get_args

import numpy as np
import polars as pl
import sqlglot.expressions as exp

from ...base.columns import REPLICATE, THRESHOLD, add_up, by_group, doubles, nulls, texts
from ...base.dialect import column
from ...base.errors import ConfigError, DataError
from ...base.records import dataclass
from ...base.schemas import GROUPING
from ...base.sql_files import statement
from ...metrics.before_after import estimates as estimator
from ...metrics.before_after.assumption import NearAndFar, realised_precision_interval
from ...metrics.before_after.estimates import Sides
from ...metrics.before_after.intervals import INTERVAL_NAMES, MIN_REPLICATES, intervals, precision_at_least
from ...metrics.before_after.sensitivity import (
    ADJUSTED_NAMES,
    Standardised,
    Stratum,
    adjusted_intervals,
    adjusted_sums,
    standardise,
)
from ...metrics.before_after.timelines import correlation_of_days, spread_of
from ...metrics.uncertainty.clusters import InTime
from ...metrics.uncertainty.jackknife import leave_one_out
from ...metrics.uncertainty.limits import (
    DESIGN_EFFECT,
    INTERVAL_QUALITY,
    Interval,
    clusters_of_parents,
    marked,
    with_limits,
    with_quality,
)
from ...plan import rows
from ...plan.counts import CountFunction, Query, Sweep
from ...plan.nodes import Grouped, Relation
from ...plan.plan import Plan
from .contract import N_COLUMNS, REALISED, Parent
from .inputs import (
    COUNTS_AROUND,
    TimedBy,
    crossed_counts,
    fit_given_numbers,
    time_of_article,
    timeline_counts,
    timelines_by,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from ...metrics.before_after.estimates import Counts
    from ...metrics.before_after.intervals import Choice
    from ...metrics.before_after.timelines import Span
    from ...metrics.uncertainty.jackknife import Floats
    from ...metrics.uncertainty.limits import Reason
    from ...metrics.uncertainty.replicates import Cube, GroupCounts
    from ...sources.bins import Grid
    from ...sources.source import Source
    from .contract import BeforeAfterParameters, Compared
    from .planning import Matchers


# Intervals at every threshold, from the replicates of the count table.


class _Known(TypedDict):
    """The recall reference as known from the data: arguments of `intervals`."""

    reference: int | None
    reference_recalls: tuple[float, ...]
    choice: Choice | None


@dataclass(frozen=True)
class EstimatedGroup:
    """The estimates of one group and the counts that they rest on.

    Attributes:
        rows: Its rows of the estimates, by rising threshold.
        counts: Its counts by replicate at these thresholds.
    """

    rows: pl.DataFrame
    counts: GroupCounts

    @cached_property
    def sides(self) -> tuple[Counts, Counts, Counts, Counts]:
        """Matches before and after the event, shape (G, T), and compared pairs before and after it, shape (G,)."""
        sides = self.clusterings[0]
        return sides.m_before, sides.m_after, sides.n_before, sides.n_after

    @cached_property
    def near(self) -> tuple[Counts, Counts]:
        """Matches and compared pairs in the near part of the time before the event.

        No pair at all where user-supplied numbers contradict the timelines.
        """
        matches, pairs = self.counts.at_or_above("m_near"), self.counts.totals("n_near")
        more_pairs = pairs > self.counts.totals("n_before")
        more_matches = matches.max(axis=1, initial=0) > pairs
        return matches, np.zeros_like(pairs) if more_pairs.any() or more_matches.any() else pairs

    @cached_property
    def crossed_periods(self) -> tuple[NearAndFar, ...]:
        """The time before the event in two parts, by the second parent of pairs and by both; none: they have none."""
        crossed = []
        for sides, counts in zip(self.clusterings[1:], self.counts.crossed, strict=False):
            m_near, n_near = counts.at_or_above("m_near"), counts.totals("n_near")
            crossed.append(NearAndFar(sides.m_before - m_near, m_near, sides.n_before - n_near, n_near))
        is_known = all(periods.n_near.any() and periods.n_far.any() for periods in crossed)
        return tuple(crossed) if is_known else ()

    @cached_property
    def clusterings(self) -> tuple[Sides, ...]:
        """The counts by every clustering of the pairs, that over events first.

        That alone where the compared pairs of the second parent are not known, or where one of its replicates has all.
        """
        by_events, *crossed = (_sides(counts) for counts in (self.counts, *self.counts.crossed))
        is_known = all(sides.n_before.astype(bool).sum() >= MIN_REPLICATES for sides in crossed)
        return (by_events, *crossed) if is_known else (by_events,)

    @property
    def reference(self) -> int | None:
        """Index of the recall reference."""
        references = np.flatnonzero(self.rows["is_reference"].to_numpy())
        return int(references[0]) if len(references) else None


def _sides(counts: GroupCounts) -> Sides:
    """The four counts of one clustering."""
    swept, totals = counts.at_or_above, counts.totals
    numbers = np.nan_to_num(counts.replicates, nan=-1).astype(np.int64)  # the time of an article may not be known
    in_time = None if counts.cycle is None else InTime(numbers, counts.cycle)
    return Sides(swept("m_before"), swept("m_after"), totals("n_before"), totals("n_after"), in_time)


def groups_of(curve: pl.DataFrame, cube: Cube) -> Iterator[EstimatedGroup]:
    """Every group of the estimates."""
    for thresholds, counts in cube.beside(curve):
        yield EstimatedGroup(thresholds, counts)


def with_intervals(
    curve: pl.DataFrame, cube: Cube, params: BeforeAfterParameters, clusters: pl.DataFrame
) -> pl.DataFrame:
    """The estimates with `<ratio>_lower`, `<ratio>_upper`, `undefined_interval` and `interval_quality`."""

    def of_group(rows: pl.DataFrame, counts: GroupCounts) -> dict[str, Interval]:
        # intervals of the expected ratios and, last, of the realised precision
        group = EstimatedGroup(rows, counts)
        expected = intervals(
            group.clusterings, **_known(group, params), confidence=params.confidence, resampling=params.resampling
        )
        realised = realised_precision_interval(
            *group.sides,
            *group.near,
            confidence=params.confidence,
            reference=group.reference,
            reference_recalls=params.recall_reference.recalls,
            crossed=group.crossed_periods,
        )
        # Where the realised interval is missing for another reason, one of the others is missing for it, too.
        missing = np.full(group.rows.height, None if group.near[1].any() else "no_near", dtype=object)
        return expected | {REALISED: Interval(realised.lower, realised.upper, missing)}

    return with_limits(
        curve,
        cube,
        (*INTERVAL_NAMES, REALISED),
        of_group,
        wanted=params.is_replicated,
        clusters=clusters,
        events=("m_before", "m_after"),
        resamples=params.drawn_resamples,
    )


def with_design_effects(points: pl.DataFrame, cube: Cube, *, wanted: bool) -> pl.DataFrame:
    """Operating points with `design_effect`: the variance of the false positive rate relative to independent pairs.

    Kish (1965): V / (FPR (1 - FPR) / N_b), V being the jackknife variance over events, or over both parents with the
    correlation of days. NULL where V or its divisor is not known or 0.

    Args:
        points: Columns of the keys, `threshold`, `fpr`, `n_before` and others.
        cube: The counts that the estimates rest on.
        wanted: Whether intervals are asked for.
    """
    chosen = points.select(*cube.keys, THRESHOLD, "fpr", "n_before").drop_nulls([THRESHOLD, "fpr"])
    chosen = chosen.unique([*cube.keys, THRESHOLD], maintain_order=True)
    if not wanted or chosen.is_empty() or not cube.within_budget(chosen.height):
        return points.with_columns(nulls([DESIGN_EFFECT]))
    groups = groups_of(chosen, cube)
    effects = pl.concat([group.rows.with_columns(doubles(DESIGN_EFFECT, _design_effect(group))) for group in groups])
    effects = effects.drop("fpr", "n_before")
    return points.join(
        effects, on=[*cube.keys, THRESHOLD], how="left", nulls_equal=True, maintain_order="left", validate="m:1"
    )


@np.errstate(divide="ignore", invalid="ignore")
def _design_effect(group: EstimatedGroup) -> Floats:
    """The design effect of the false positive rate at every threshold of a group; nan where it is not known."""
    used = [sides.with_data for sides in group.clusterings]
    if len(used[0].n_before) < MIN_REPLICATES:
        return np.full(group.rows.height, np.nan)
    without = [leave_one_out(sides.m_before) / leave_one_out(sides.n_before)[:, None] for sides in used]
    fpr, pairs = group.rows["fpr"].to_numpy(), group.rows["n_before"].to_numpy()
    independent = fpr * (1 - fpr) / pairs
    effect = spread_of(used).variance(np.concatenate(without)) / independent
    return np.where(np.isfinite(effect) & (effect > 0), effect, np.nan)


def with_safe_limits(curve: pl.DataFrame, cube: Cube, params: BeforeAfterParameters) -> pl.DataFrame:
    """The estimates with a working column for each confidence: precision limits that hold at all thresholds together.

    It is NULL where no limit can be given, without replicates, or over the budget.
    """
    confidences = list(dict.fromkeys(point.confidence for point in params.operating_points if point.confidence))
    if not confidences or not cube.within_budget(curve.height):
        return curve.with_columns(nulls(map(estimator.safe_column, confidences)))

    def limit(group: EstimatedGroup, confidence: float) -> pl.Series:
        lower = precision_at_least(group.clusterings, **_known(group, params), confidence=confidence)
        return doubles(estimator.safe_column(confidence), lower)

    groups = groups_of(curve, cube)
    return pl.concat([each.rows.with_columns(limit(each, of_point) for of_point in confidences) for each in groups])


def _known(group: EstimatedGroup, params: BeforeAfterParameters) -> _Known:
    """The reference of a group, as known from the data."""
    reference = params.recall_reference
    return {"reference": group.reference, "reference_recalls": reference.recalls, "choice": reference.choice}


# How far intervals of before_after can be trusted: the parents of its pairs, and how unequal these are.


MATCHES = ("m_before", "m_after")


def clusters(cube: Cube, params: BeforeAfterParameters, *, crossed: bool = True) -> pl.DataFrame:
    """`clusters_of` the parents of the pairs of every group, by their matches, with `one_parent` where it holds.

    Args:
        cube: The counts that intervals rest on.
        params: The parameters of the stage.
        crossed: Whether the intervals know the second parent wherever its counts are known.
    """
    if params.second_parent is None:  # the config says that events alone are parents
        return clusters_of_parents(cube, MATCHES)
    if not crossed or not cube.crossed:
        return marked(clusters_of_parents(replace(cube, crossed=()), MATCHES), "one_parent")
    return marked(clusters_of_parents(cube, MATCHES), "one_parent", _without_second_parent(cube))


def with_correlated_days(clusters: pl.DataFrame, curve: pl.DataFrame, cube: Cube) -> pl.DataFrame:
    """`clusters` with `correlated_days` where neighbouring days are alike in how often pairs match by chance.

    Args:
        clusters: What `clusters` gives.
        curve: Estimates, one row per group × threshold.
        cube: The counts that they rest on.
    """
    if cube.cycle is None or not cube.within_budget(curve.height):
        return clusters
    correlated = [
        group.rows.head(1).select(cube.keys)
        for group in groups_of(curve, cube)
        if correlation_of_days([sides.with_data for sides in group.clusterings]) is not None
    ]
    return marked(clusters, "correlated_days", pl.concat(correlated)) if correlated else clusters


def warnings(tables: Mapping[str, pl.DataFrame]) -> Iterator[str]:
    """Whether days in a row go together in any group, and what to do."""
    if (tables["before_after_estimates"][INTERVAL_QUALITY] == "correlated_days").any():
        yield (
            "neighbouring days are alike in how often pairs match by chance: limits allow for it as far as these days "
            "tell, see interval_quality (correlated_days); more days tell more, and where it is weekdays that differ, "
            'strata = "weekday" takes it out'
        )


def _without_second_parent(cube: Cube) -> pl.DataFrame:
    """The groups whose intervals know events alone: the second parent has no compared pairs before the event."""
    keys = list(cube.keys)
    compared = cube.crossed[0].filter(pl.col("n_before") > 0).group_by(keys).agg(pl.col(REPLICATE).n_unique())
    known = compared.filter(pl.col(REPLICATE) >= MIN_REPLICATES)
    return cube.counts.select(keys).unique().join(known, on=keys, how="anti", nulls_equal=True)


# The second parent of a pair: pairs of one event are alike, and so are those of one article, or of one day.
#
# Intervals rest on how counts vary between independent units. A pair has two: its event, and its article with the day
# that the article shares with others. Counts are made by both, and by their intersections (see
# `metrics.uncertainty`).


CROSSED: dict[Parent, tuple[str, str]] = {  # count tables
    "day": ("counts_of_days", "counts_of_events_and_days"),
    "article_id": ("counts_of_articles", "counts_of_events_and_articles"),
}
MOST_REPLICATES = 64  # of days, in turn, and of articles, so that counts by both parents stay few
PAIRS_OF_BOTH = "pairs_with_both_parents"
PARENTS: tuple[Parent, ...] = get_args(Parent)
_WORDS = {"day": "day", "article_id": "article"}


def unknown_parent(lacking: Mapping[Parent, str]) -> str:
    """The warning that the pairs have no second parent, with what would give them one, see `choose_parent`."""
    return (
        "intervals may be too narrow (one_parent): they know that pairs of one event are alike, but not that pairs of "
        "one article or one day are, because it is not known how many of these were compared. Give "
        f'{lacking["day"]}; or write cluster = "event_id" if articles are not shared by events'
    )


@dataclass(frozen=True)
class Crossing:
    """The second parent of a run.

    Attributes:
        parent: Whether it is the article, or the day on which the article appeared (UTC).
        timed_by: For days: where the time of the article of a pair comes from. A pair whose article is not listed there
            is in replicate 0.
        compared: Where the numbers of compared pairs come from.
    """

    parent: Parent
    timed_by: TimedBy | None
    compared: Compared

    @property
    def tables(self) -> tuple[str, str]:
        """The count tables by the second parent and by both."""
        return CROSSED[self.parent]

    def relations(self, groups: Sequence[str]) -> Iterator[Relation]:
        """The pairs with the replicate of their second parent.

        Args:
            groups: Columns of the pairs by which they are counted.
        """
        if self.parent == "day" and self.timed_by != "articles":
            columns = {"time_of_article": time_of_article(self.timed_by)}
            yield Relation(PAIRS_OF_BOTH, statement("before_after/pairs_with_days", groups, columns=columns))
            return
        if self.parent == "day":
            yield Relation("replicates_of_articles", statement("before_after/days_of_articles"), keep=True)
        else:
            source = "pairs_read" if self.compared == "pairs" else "articles_read"
            yield from rows.replicate_relations(source, "article_id", MOST_REPLICATES, of="articles")
        yield Relation(PAIRS_OF_BOTH, statement("before_after/pairs_with_article_replicates", groups))

    def compared_pairs(self, by: Sequence[Grouped], span: Span, matchers: Matchers) -> CountFunction:
        """Numbers of compared pairs by the second parent and by both, from the timelines.

        They count for nothing where the timelines do not fit the numbers that are given.

        Args:
            by: The grouping columns.
            span: The window.
            matchers: The grouping columns that name the matcher.
        """
        has_given_numbers = self.compared == "events"

        def compute(frames: Mapping[str, pl.DataFrame], segment: Sequence[str]) -> pl.DataFrame:
            events, articles = frames["events"], frames["articles"]
            if has_given_numbers and not fit_given_numbers(events, articles, span):
                events = events.clear()
            counts = crossed_counts(events, articles, span, matchers.known(segment))
            return matchers.repeated(counts, frames, segment)

        reads = timelines_by(by, *(["n_before"] if has_given_numbers else []))
        groups = [grouped.name for grouped in by if grouped.source == "articles"]
        file = "timeline_of_articles_by_day" if self.parent == "day" else "timeline_of_articles_with_replicates"
        reads["articles"] = statement(f"before_after/{file}", groups)
        return CountFunction(
            "before_after/crossed_timelines",
            reads | matchers.frames(),
            compute,
            COUNTS_AROUND,
            into=self.tables[0],
            crossed=self.tables,
        )


def choose_parent(wanted: Parent | Literal["auto"], lacking: Mapping[Parent, str]) -> Parent | None:
    """Choose the second parent of the pairs; None: there is none.

    By default it is the day where the times of the articles are known, else the article where every compared pair is a
    row, and none where the numbers of compared pairs of a day or an article are not known.

    Args:
        wanted: The parent that the config names, or `auto`.
        lacking: Of every parent, what would make its numbers of compared pairs known, in words; empty: they are.

    Raises:
        DataError: those of the parent that the config names are not.
    """
    if wanted == "auto":
        return next((parent for parent in PARENTS if not lacking[parent]), None)
    if lacking[wanted]:
        message = f"cluster: the compared pairs of every {_WORDS[wanted]} are not known"
        raise DataError(message, remedy=f"Give {lacking[wanted]}, or cluster by the events alone.")
    return wanted


# Strata: what the false positive rate is adjusted for, where their values come from, and what they need counted.


OF_TIME = ("weekday", "hour", "volume")
STRATUM = ("event_stratum", "article_stratum")
COUNTS_OF_STRATUM = (*N_COLUMNS, "m_before")
COUNTED_BY_STRATUM = "strata"
USED_PAIRS_OF_STRATA = "used_pairs_of_strata"
COLUMNS_OF_TIME = {"weekday": "weekday", "hour": "hour_of_day", "volume": "volume"}  # columns of the queries


@dataclass(frozen=True)
class Strata:
    """The strata of a run.

    Attributes:
        columns: Those that are columns of an input.
        of_time: Those that are computed of the time of the article.
        timed_by: Where the time of the article of a pair comes from: the row of `articles`, the pair itself, or the
            time of the event and the lag; None: it is not needed.
    """

    columns: tuple[Grouped, ...]
    of_time: tuple[str, ...]
    timed_by: TimedBy | None

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self.columns or self.of_time)

    def relations(
        self, compared: Compared, by: Sequence[Grouped], columns_of_matchers: Sequence[str]
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
        """Rows with the texts of their values: of the event's columns, and of columns of other inputs."""
        events = [column(grouped.name) for grouped in self.columns if grouped.source == "events"]
        of_articles = [column(grouped.name) for grouped in self.columns if grouped.source in of_others]
        times = [column(COLUMNS_OF_TIME[name]) for name in self.of_time]
        labels = {"event_label": _label(events), "article_label": _label([*of_articles, *times])}
        return statement(f"before_after/{file}", columns, relations=relations, columns=labels)


def _with_dates(name: str, relation: str, columns: Sequence[str], time: exp.Expr) -> Relation:
    """Some columns of a relation, with the weekday, the hour and how busy the day is of a time in microseconds."""
    relations, times = {"timed_rows": relation}, {"time_of_article": time}
    return Relation(name, statement("before_after/with_dates", columns, relations=relations, columns=times))


def _label(values: Sequence[exp.Expr]) -> exp.Expr:
    """One text for several values, different for different values: each with its length in front, NULL as a dash."""
    text: exp.Expr = exp.Literal.string("")
    for value in values:
        written = exp.cast(value.copy(), "VARCHAR")
        length = exp.cast(exp.func("length", written.copy()), "VARCHAR")
        with_length = exp.DPipe(this=exp.DPipe(this=length, expression=exp.Literal.string(":")), expression=written)
        label = exp.Case().when(value.is_(exp.null()), exp.Literal.string("-")).else_(with_length)
        text = exp.DPipe(this=text, expression=label)
    return text


def resolve_strata(names: Sequence[str], sources: Mapping[str, Source], compared: Compared) -> Strata:
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
    if "volume" in of_time and not _has_field(sources, "articles", "article_time"):
        message = 'strata: "volume" needs the input articles with article_time'
        raise DataError(message, remedy="Give the articles, or leave volume out.")
    keyed = _has_field(sources, "articles", "article_id") and _has_field(sources, "pairs", "article_id")
    if any(each.source == "articles" for each in columns) and not keyed:
        message = "strata of articles need article_id in pairs and in articles"
        raise DataError(message, remedy="Map article_id in both.")
    return Strata(columns, of_time, _holder_of_time(sources, keyed=keyed) if of_time else None)


def _check_known(columns: Sequence[Grouped], of_time: Sequence[str], compared: Compared) -> None:
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


def _has_field(sources: Mapping[str, Source], name: str, field: str) -> bool:
    return name in sources and sources[name].has(field)


def _holder_of_time(sources: Mapping[str, Source], *, keyed: bool) -> TimedBy:
    if keyed and _has_field(sources, "articles", "article_time"):
        return "articles"
    if _has_field(sources, "pairs", "article_time"):
        return "pairs"
    if _has_field(sources, "events", "event_time"):
        return "events"
    message = "strata: the times of the articles are not known"
    raise DataError(
        message,
        remedy="Give articles with article_id and article_time, or article_time in pairs, or event_time in events.",
    )


def plan_of_strata(
    strata: Strata,
    by: Sequence[Grouped],
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
    matches = Query("before_after/matches_by_stratum", before, COUNTS_OF_STRATUM, STRATUM, sweep, COUNTED_BY_STRATUM)
    pairs: Query | CountFunction = Query(
        "before_after/compared_by_stratum", {}, COUNTS_OF_STRATUM, STRATUM, into=COUNTED_BY_STRATUM
    )
    if compared == "pairs":
        pairs = Query(
            "before_after/pairs_by_stratum", dict(bounds), COUNTS_OF_STRATUM, STRATUM, into=COUNTED_BY_STRATUM
        )
    elif span is not None:
        # compared pairs by stratum, where events and articles have their times
        def compute(frames: Mapping[str, pl.DataFrame], segment: Sequence[str]) -> pl.DataFrame:
            keys = [*matchers.known(segment), *STRATUM]
            counted = timeline_counts(frames["events"], frames["articles"], span, keys, N_COLUMNS)
            return matchers.repeated(counted, frames, segment)

        names = {source: [each.name for each in by if each.source == source] for source in ("events", "articles")}
        reads = {"events": strata.events(names["events"]), "articles": strata.articles(names["articles"])}
        reads |= matchers.frames()
        pairs = CountFunction(
            "before_after/timelines_by_stratum", reads, compute, COUNTS_OF_STRATUM, STRATUM, COUNTED_BY_STRATUM
        )
    return Plan((*strata.relations(compared, by, matchers.columns), matches, pairs))


# Estimates with a false positive rate that is adjusted for strata: the table `before_after_adjusted`.


ADJUSTED_TABLE = "before_after_adjusted"
ADJUSTED_COUNTS = ("n_strata", "n_after_unsupported")
ADJUSTED_RATIOS = ("fpr", "fp", "precision", "recall", "f1")
ADJUSTED_VALUES = (
    *("fpr_adjusted", "fpr_adjusted_lower", "fpr_adjusted_upper", "fp_adjusted", "precision_adjusted"),
    *("precision_adjusted_lower", "precision_adjusted_upper", "recall_adjusted", "f1_adjusted"),
)
ADJUSTED = ("fpr_adjusted", "precision_adjusted")
WORDS = ("pairs before", "pairs after", "scored pairs before")


def adjusted_table(
    curve: pl.DataFrame, counts: Mapping[str, pl.DataFrame], cube: Cube, params: BeforeAfterParameters
) -> pl.DataFrame:
    """The table `before_after_adjusted`; without strata it has no row.

    Args:
        curve: Estimates, one row per group × threshold.
        counts: The count tables, `counts` and `strata` among them.
        cube: The counts of `counts`.
        params: The parameters of the stage.

    Raises:
        DataError: the strata do not hold the pairs that the estimates hold.
    """
    keys = list(cube.keys)
    _check_complete(counts, keys)
    strata = by_group(counts[COUNTED_BY_STRATUM], keys)
    no_strata = counts[COUNTED_BY_STRATUM].clear()
    frames = [
        _adjusted_group(group, strata.get(group.rows.select(keys).row(0), no_strata), params)
        for group in groups_of(curve, cube)
    ]
    order = [*keys, THRESHOLD, *ADJUSTED_COUNTS, *ADJUSTED_VALUES, "undefined", "undefined_interval", *MATCHES]
    table = pl.concat([frame.select(order) for frame in frames])
    parents = clusters(cube, params, crossed=False)
    return with_quality(table, ADJUSTED, clusters=parents, keys=keys, events=MATCHES).drop(MATCHES)


def _check_complete(counts: Mapping[str, pl.DataFrame], keys: Sequence[str]) -> None:
    """Every pair of the estimates must lie in a stratum, and a stratum cannot have more matches than pairs."""
    names = ["n_before", "n_after", "m_before"]
    pairs = add_up(counts["counts"], keys, names)
    strata = add_up(counts[COUNTED_BY_STRATUM], keys, names)
    both = pairs.join(strata, on=list(keys), how="left", nulls_equal=True, suffix="_strata").sort(keys)
    for name, words in zip(names, WORDS, strict=True):
        odd = both.filter(pl.col(name) != pl.col(f"{name}_strata").fill_null(0))
        if not odd.is_empty():
            row = odd.row(0, named=True)
            message = (
                f"strata: only {row[f'{name}_strata'] or 0:,} of {row[name]:,} {words} the event have an article that "
                f"is listed in articles ({row[GROUPING.name]})"
            )
            raise DataError(message, remedy="List every article of pairs, or stratify by columns of events.")
    by_stratum = add_up(counts[COUNTED_BY_STRATUM], [*keys, *STRATUM], names)
    if not by_stratum.filter(pl.col("m_before") > pl.col("n_before")).is_empty():
        message = "strata: a stratum has more matches than compared pairs before the event"
        raise DataError(message, remedy="The lags of pairs do not fit the times of events and articles: check these.")


def _adjusted_group(group: EstimatedGroup, strata: pl.DataFrame, params: BeforeAfterParameters) -> pl.DataFrame:
    """The rows of one group."""
    _, m_after, n_before, n_after = group.sides
    used = n_before + n_after > 0
    standardised = standardise(_strata(group, strata, used), int(used.sum()), group.rows.height)
    intervals = _adjusted_limits(standardised, group, used, params)
    counts = [np.atleast_1d(column.sum(axis=0)).astype(np.float64) for column in (m_after, n_before, n_after)]
    values, reason = _adjusted_estimates(standardised, counts, group.reference, params.recall_reference.middle)
    for name, interval in intervals.items():  # rounding apart, an interval holds its estimate
        estimate = values[f"{name}_adjusted"]
        values[f"{name}_adjusted_lower"] = np.minimum(interval.lower, estimate)
        values[f"{name}_adjusted_upper"] = np.maximum(interval.upper, estimate)
    first = (a or b for a, b in zip(intervals["fpr"].reason, intervals["precision"].reason, strict=True))
    return group.rows.with_columns(
        pl.lit(standardised.n_strata, dtype=pl.Int64).alias("n_strata"),
        pl.lit(standardised.n_unsupported, dtype=pl.Int64).alias("n_after_unsupported"),
        *(doubles(name, values[name]) for name in ADJUSTED_VALUES),
        texts("undefined", reason),
        texts("undefined_interval", first),
    )


def _strata(group: EstimatedGroup, strata: pl.DataFrame, used: NDArray[np.bool_]) -> Iterator[Stratum]:
    """The strata of a group in a fixed order, with the replicates that have data."""
    for stratum in strata.sort(STRATUM).partition_by(STRATUM, maintain_order=True):
        counts = group.counts.with_counts(stratum)
        n_before, n_after = (counts.totals(name)[used] for name in ("n_before", "n_after"))
        yield Stratum(counts.at_or_above("m_before")[used], n_before, n_after)


def _adjusted_limits(
    standardised: Standardised, group: EstimatedGroup, used: NDArray[np.bool_], params: BeforeAfterParameters
) -> dict[str, Interval]:
    if params.uncertainty == "none" or not group.counts.within_budget():
        reason: Reason = "none" if params.uncertainty == "none" else "budget"
        return dict.fromkeys(ADJUSTED_NAMES, Interval.none(group.rows.height, reason))
    _, m_after, n_before, n_after = group.sides
    return adjusted_intervals(
        standardised,
        m_after[used],
        n_before[used],
        n_after[used],
        reference=group.reference,
        confidence=params.confidence,
        reference_recalls=params.recall_reference.recalls,
        choice=params.recall_reference.choice,
    )


@np.errstate(divide="ignore", invalid="ignore")
def _adjusted_estimates(
    standardised: Standardised, counts: Sequence[Floats], reference: int | None, reference_recall: float
) -> tuple[dict[str, Floats], NDArray[np.object_]]:
    """The ratios, by the null rules of the plain estimates, and why the first of them is missing.

    Args:
        standardised: The false positives, if all pairs after the event were negative.
        counts: M_a, N_b and N_a.
        reference: Index of the recall reference.
        reference_recall: What recall is believed to be there.
    """
    is_supported = bool(counts[1] > 0) and not standardised.n_unsupported
    fp = standardised.fp if is_supported else np.full_like(standardised.fp, np.nan)
    sums = adjusted_sums(fp, counts, reference, reference_recall)
    tp = np.where(sums.is_identified, sums.tp_corrected, np.nan)
    found = np.where(tp >= 0, tp, np.nan)
    recall = np.minimum(found / sums.positives, 1.0)
    f1 = 2 * found / (sums.m_after + np.maximum(found, sums.positives))
    values = (sums.fpr, sums.m_after - tp, tp / sums.m_after, recall, f1)
    reasons = {
        "unsupported_stratum" if counts[1] > 0 else "no_before": not is_supported,
        "no_prediction": sums.m_after == 0,
        "no_reference": ~(sums.tp_reference > 0),
        "unidentified": ~(sums.gap > 0),
        "all_positive": ~sums.is_possible,
        "negative_tp": tp < 0,
    }
    reason = np.full(len(fp), None, dtype=object)
    for name, holds in reversed(reasons.items()):
        reason[np.broadcast_to(holds, len(fp))] = name
    named = {
        f"{name}_adjusted": np.where(np.isfinite(of_name), of_name, np.nan)
        for name, of_name in zip(ADJUSTED_RATIOS, values, strict=True)
    }
    return named, reason
