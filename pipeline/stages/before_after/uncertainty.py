"""Intervals of before_after at every threshold, what its pairs are clustered by, and how far to trust them."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypedDict, get_args

import numpy as np
import polars as pl

from ...errors import DataError
from ...metrics.before_after import estimates as estimator
from ...metrics.before_after.assumption import NearAndFar, realised_precision_interval
from ...metrics.before_after.estimates import Sides
from ...metrics.before_after.intervals import INTERVAL_NAMES, MIN_REPLICATES, intervals, precision_at_least
from ...metrics.before_after.timelines import correlation_of_days, spread_of
from ...metrics.uncertainty.clusters import InTime
from ...metrics.uncertainty.interval_quality import DESIGN_EFFECT, INTERVAL_QUALITY
from ...metrics.uncertainty.jackknife import leave_one_out
from ...metrics.uncertainty.limits import Interval, clusters_of_parents, marked, with_limits
from ...plan import rows
from ...plan.counts import CountFunction
from ...plan.nodes import Relation
from ...queries.load import statement
from ...records import dataclass
from ...tables.columns import REPLICATE, THRESHOLD, doubles, nulls
from .contract import Parent
from .inputs import COUNTS_AROUND, crossed_counts, fit_given_numbers, time_of_article, timelines_by
from .tables import REALISED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ...metrics.before_after.estimates import Counts
    from ...metrics.before_after.intervals import Choice
    from ...metrics.before_after.timelines import Span
    from ...metrics.uncertainty.cube import Cube, GroupCounts
    from ...metrics.uncertainty.jackknife import Floats
    from .contract import BeforeAfterParameters, Compared
    from .inputs import TimedBy
    from .tables import Matchers


# Intervals at every threshold, from the replicates of the count table.


class _Known(TypedDict):
    """What is known of the recall reference: arguments of `intervals`."""

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
    """Operating points with `design_effect`: the variance of the false positive rate over that of independent pairs.

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
    groups = groups_of(curve, cube)
    return pl.concat([each.rows.with_columns(_safe_limits(each, confidences, _known(each, params))) for each in groups])


def _safe_limits(group: EstimatedGroup, confidences: Sequence[float], known: _Known) -> Iterator[pl.Series]:
    for confidence in confidences:
        lower = precision_at_least(group.clusterings, **known, confidence=confidence)
        yield doubles(estimator.safe_column(confidence), lower)


def _known(group: EstimatedGroup, params: BeforeAfterParameters) -> _Known:
    """What is known of the reference of a group."""
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

    def compared_pairs(self, by: Sequence[rows.Grouped], span: Span, matchers: Matchers) -> CountFunction:
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
