"""Intervals as columns: the one writer of limits, of the reason why one is missing, and of how far to trust them.

The words for both, the same in all stages, are listed first.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import polars as pl

from ...base.columns import REPLICATE, THRESHOLD, beside, by_group, doubles, nothing, nulls, texts
from ...base.records import dataclass
from ...base.schemas import Column
from .clusters import effective_number
from .proportions import may_days_be_alike
from .replicates import GroupCounts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from .jackknife import Floats, Limits
    from .proportions import Confusion
    from .replicates import Cube

    Intervals: TypeAlias = Mapping[str, "Interval"]


# How far an interval can be trusted: every value of `interval_quality`, and the columns that tell why.
#
# A row gives one value, the worst of those that hold for any of its intervals. The list is the same for all stages.


Quality: TypeAlias = Literal[
    "assumption_failed",
    "unequal_clusters",
    "few_clusters",
    "one_parent",
    "correlated_days",
    "skewed",
    "at_edge",
    "few_events_of_interest",
    "chosen_on_same_data",
    "good",
]
ON_SAME_DATA: Quality = "chosen_on_same_data"

FEWEST_CLUSTERS = 15  # effective clusters below which coverage is not vouched for
_LARGEST_SHARE = 1 / 3  # of all rows that one cluster may hold
FEWEST_EVENTS = 10  # of the rarer of what a ratio weighs against each other
FEWEST_OF_CLASS = 20  # positives, and negatives, of an area
UNITS_PER_SQUARED_SKEWNESS = 25  # that Student's t needs (Cochran 1977, section 2.15)

MEANINGS: dict[Quality, str] = {  # the worst first
    "assumption_failed": (
        "the tests before the event contradict equal false positive rates, which these numbers rest on: the truth may "
        "lie far outside their limits"
    ),
    "unequal_clusters": "one cluster holds over a third of the rows, and over twice what it would if all were equal",
    "few_clusters": f"the effective number of clusters (Kish) is below {FEWEST_CLUSTERS}",
    "one_parent": "the rows have a second parent, such as articles, of which these intervals know nothing",
    "correlated_days": (
        "neighbouring days, or other clusters in the order of time, are alike, or fewer than 50 so that it is not "
        "excluded: limits allow for it as far as they tell"
    ),
    "skewed": f"fewer units than {UNITS_PER_SQUARED_SKEWNESS} × the squared skewness of their values, by Student's t",
    "at_edge": "a ratio is 0 or 1, so that one of its limits rests on a rule and not on a spread",
    "few_events_of_interest": (
        f"fewer than {FEWEST_EVENTS} of the rarer of what a ratio weighs against each other; of areas fewer than "
        f"{FEWEST_OF_CLASS} positives or negatives"
    ),
    "chosen_on_same_data": "the threshold was chosen on these rows, by a criterion without confidence",
    "good": "none of these",
}

INTERVAL_QUALITY = "interval_quality"
_WHY: dict[Quality, str] = {  # of marks that warn, to people
    "assumption_failed": "what these numbers assume does not hold",
    "unequal_clusters": "one cluster has over a third of the rows",
    "few_clusters": "they rest on few independent clusters",
    "one_parent": "pairs of one article or day are alike, which the intervals do not know",
    "correlated_days": "neighbouring days are alike, which the intervals allow for only as far as these days tell",
    "skewed": "there are too few units for values so unevenly spread",
}
DOUBTFUL = tuple(_WHY)
N_CLUSTERS, N_EFFECTIVE, DESIGN_EFFECT = "n_clusters", "n_clusters_effective", "design_effect"

QUALITY_COLUMN = Column(
    INTERVAL_QUALITY,
    "VARCHAR",
    "[how far to trust the intervals](#how-far-to-trust-an-interval) of the row, the worst that holds: "
    f"`{'`, `'.join(MEANINGS)}`; NULL: no interval is given",
)
CLUSTER_COLUMNS = (
    Column(
        N_CLUSTERS,
        "BIGINT",
        "clusters with rows, or replicates that more than 1,000 of them are put in; NULL: rows are independent",
    ),
    Column(
        N_EFFECTIVE,
        "DOUBLE",
        "how many clusters of equal size would weigh as much: (Σ n)² / Σ n² of their sizes; NULL: rows are independent",
    ),
)


def worst(qualities: Iterable[Quality | None]) -> Quality | None:
    """The worst of several; None stands for no interval, and is given if there is no other."""
    present = set(qualities)
    return next((quality for quality in MEANINGS if quality in present), None)


def design_effect_column(ratio: str) -> Column:
    """The column `design_effect` of a table whose main ratio has this name."""
    meaning = f"variance of {ratio} between clusters over that of independent rows"
    rule = "rows are independent, or one is not known"
    return Column(DESIGN_EFFECT, "DOUBLE", f"{meaning}; NULL: {rule}")


# Why an interval or a test is missing: every value of `undefined_interval`, and of `undefined` of tables of tests.
#
# A row gives one reason. The list of reasons is the same for all stages.


Reason: TypeAlias = Literal[
    "none",  # no interval is wanted
    "budget",  # rows of the result × replicates are more than intervals are computed for
    "one_replicate",  # fewer than two replicates have data, and one has no spread
    "undefined_ratio",  # the ratio itself is undefined
    "not_a_proportion",  # the ratio is no share of what it is divided by
    "no_limit",  # the replicates are too few, or too much alike, for a limit
    "harmonic_mean",  # a harmonic mean of averages has no limits
    "few_positives",  # fewer than two positives with a weight above 0
    "few_negatives",  # fewer than two negatives with a weight above 0
    "at_limit",  # an area is 0 or 1, where the logit scale ends
    "no_spread",  # the rows show no spread of an area, as if all scores are equal
    "no_query",  # no query has a relevant document
    "one_query",  # a single query has no spread
    "no_before",  # fewer than two replicates have pairs before the event
    "no_near",  # the compared pairs near to the event are not known
    "no_far",  # no pair in the far part of the time before the event was compared
    "no_window",  # without a window the time before the event has no near and no far part
    "no_prediction",  # nothing is retrieved
    "unidentified",  # the false positive rate at the reference of recall is not below the recall believed there
    "no_reference",  # no threshold serves as the reference of recall
    "negative_tp",  # the estimated number of true positives is below 0
    "all_positive",  # no pair after the event is left to be negative
    "unbounded",  # the data allow anything from 0 to 1
    "unsupported_stratum",  # a stratum has pairs after the event and none before it
    "thin_stratum",  # all pairs before the event of a stratum lie in one replicate
    "unknown_pairs",  # the compared pairs of a day, or near to the event, are not known
    "few_matches",  # too few matches to compare
    "few_replicates",  # too few replicates have matches that could lie on more than one day
    "no_match",  # there is no match
    "one_day",  # all compared pairs lie on one day
    "no_audit",  # no checked match is retrieved
]


UNDEFINED_INTERVAL = "undefined_interval"
_SIDES = ("lower", "upper")
_OF_CLUSTERS = "_quality_of_clusters"
_SHARES = np.array([0.1, 0.25, 0.5, 0.75, 0.9])  # of rows below thresholds at which neighbours in time are compared


@dataclass(frozen=True)
class Interval:
    """Limits of one ratio at every threshold, or of every group.

    Attributes:
        lower: Shape (T,); nan where no interval can be given.
        upper: Shape (T,); likewise.
        reason: Shape (T,), objects: why there is none, see `interval_quality.Reason`; None where there is one.
    """

    lower: Floats
    upper: Floats
    reason: NDArray[np.object_]

    @classmethod
    def of(cls, limits: Limits, reason: Reason | NDArray[np.str_]) -> Interval:
        """Limits with the reason why they are missing where one of them is nan."""
        lower, upper = limits
        missing = np.isnan(lower) | np.isnan(upper)
        reasons = np.full(missing.shape, None, dtype=object)
        reasons[missing] = np.broadcast_to(np.asarray(reason, dtype=object), missing.shape)[missing]
        return cls(lower, upper, reasons)

    @classmethod
    def none(cls, size: int, reason: Reason) -> Interval:
        """No limits at all, for one reason."""
        return cls.of((np.full(size, np.nan), np.full(size, np.nan)), reason)


def union(intervals: Sequence[Interval]) -> Interval:
    """The smallest interval that holds several; none where one of them is missing, for its reason."""
    lower, upper = (
        np.stack(sides) for sides in zip(*((limits.lower, limits.upper) for limits in intervals), strict=True)
    )
    reasons = np.full(lower.shape[1:], None, dtype=object)
    for limits in reversed(intervals):
        reasons = np.where(limits.reason.astype(bool), limits.reason, reasons)
    return Interval(lower.min(axis=0), upper.max(axis=0), reasons)


def intervals_of(limits: Mapping[str, Limits], replicates: int) -> dict[str, Interval]:
    """Limits of ratios that are undefined where they are missing, or for all of which one replicate is too few."""
    reason: Reason = "one_replicate" if replicates == 1 else "undefined_ratio"
    return {name: Interval.of(of_ratio, reason) for name, of_ratio in limits.items()}


def limit_names(names: Sequence[str]) -> list[str]:
    """The columns of the limits of some ratios."""
    return [f"{name}_{side}" for name in names for side in _SIDES]


def limit_series(name: str, limits: Limits) -> Iterator[pl.Series]:
    """The columns of the limits of one ratio."""
    for side, values in zip(_SIDES, limits, strict=True):
        yield doubles(f"{name}_{side}", values)


def limit_columns(intervals: Intervals) -> Iterator[pl.Series]:
    """The limits of all ratios, and `undefined_interval`: the reason of the first ratio that has one."""
    for name, interval in intervals.items():
        yield from limit_series(name, (interval.lower, interval.upper))
    first, *others = (interval.reason for interval in intervals.values())
    for reason in others:
        first = np.where(first.astype(np.bool_), first, reason)
    yield texts(UNDEFINED_INTERVAL, first.tolist())


def no_limits(names: Sequence[str], reason: Reason) -> list[pl.Expr]:
    """The columns of `limit_columns` without any interval."""
    return [*nulls(limit_names(names)), pl.lit(reason).alias(UNDEFINED_INTERVAL)]


def with_limits(
    curve: pl.DataFrame,
    cube: Cube,
    names: Sequence[str],
    intervals: Callable[[pl.DataFrame, GroupCounts], Intervals],
    *,
    wanted: bool,
    clusters: pl.DataFrame | None = None,
    events: Sequence[str] = (),
    resamples: int = 0,
) -> pl.DataFrame:
    """A curve with the limits of its ratios, `undefined_interval` and `interval_quality`.

    Args:
        curve: One row per group × threshold.
        cube: The counts of its groups.
        names: The ratios.
        intervals: Their intervals from the rows of a group, by rising threshold, and its counts by replicate.
        wanted: Whether intervals are asked for; beyond the budget there is none all the same.
        clusters: `clusters_of` its groups; None: their sizes are made of all counts.
        events: As for `with_quality`.
        resamples: Of the bootstrap, which belong to the budget.
    """
    if clusters is None:
        sizes = [name for name in cube.counts.columns if name not in {*cube.keys, REPLICATE, THRESHOLD}]
        clusters = clusters_of(cube.counts, cube.keys, sizes)
    if not wanted or curve.is_empty():
        limited = curve.with_columns(*no_limits(names, "none"))
    elif not cube.within_budget(curve.height, resamples):
        limited = curve.with_columns(*no_limits(names, "budget"))
    else:
        frames: list[pl.DataFrame] = []
        of_groups: list[Intervals] = []
        for rows, group in cube.beside(curve):
            frames.append(rows)
            of_groups.append(intervals(rows, group))
        # columns are made once for all groups: to make them costs more than to fill them
        joined = {name: _joined([limits[name] for limits in of_groups]) for name in of_groups[0]}
        limited = pl.concat(frames).with_columns(*limit_columns(joined))
    return with_quality(limited, names, clusters=clusters, keys=cube.keys, events=events)


def _joined(intervals: Sequence[Interval]) -> Interval:
    """The intervals of one ratio in several groups, one after the other."""
    return Interval(
        np.concatenate([limits.lower for limits in intervals]),
        np.concatenate([limits.upper for limits in intervals]),
        np.concatenate([limits.reason for limits in intervals]),
    )


def clusters_of(counts: pl.DataFrame, keys: Sequence[str], sizes: Sequence[str]) -> pl.DataFrame:
    """How many clusters each group rests on, and how unequal they are.

    Args:
        counts: A count table: columns `keys`, `replicate` and counts.
        keys: Columns that identify a group.
        sizes: Names of the counts that make the size of a cluster.

    Returns:
        Columns `keys`, `n_clusters`, `n_clusters_effective` (Kish 1965; NULL without any row) and what
        `quality_of_sizes` says of them, which `with_quality` takes away.
    """
    size = pl.sum_horizontal(pl.col(name).cast(pl.Float64) for name in sizes)
    by_cluster = counts.group_by([*keys, REPLICATE]).agg(size.sum().alias("_size"))
    rows = by_cluster.sort(REPLICATE).filter(pl.col("_size") > 0)  # sums do not depend on the order of the table
    total, squares, number = pl.col("_size").sum(), (pl.col("_size") ** 2).sum(), pl.len()
    effective, largest = total**2 / squares, pl.col("_size").max() / total
    quality = (
        pl.when(largest > pl.max_horizontal(pl.lit(_LARGEST_SHARE), 2 / number))
        .then(_named("unequal_clusters"))
        .when(effective < FEWEST_CLUSTERS)
        .then(_named("few_clusters"))
        .otherwise(_named("good"))
    )
    return rows.group_by(list(keys), maintain_order=True).agg(
        number.cast(pl.Int64).alias(N_CLUSTERS), effective.alias(N_EFFECTIVE), quality.alias(_OF_CLUSTERS)
    )


def no_clusters(cube: Cube) -> pl.DataFrame:
    """The columns of `clusters_of`, NULL in every group."""
    types = {N_CLUSTERS: pl.Int64(), N_EFFECTIVE: pl.Float64(), _OF_CLUSTERS: pl.String()}
    groups = cube.counts[list(cube.keys)].unique(maintain_order=True)
    return groups.hstack([column for name, kind in types.items() for column in nothing([name], groups.height, kind)])


def clusters_of_parents(cube: Cube, sizes: Sequence[str]) -> pl.DataFrame:
    """`clusters_of` rows that may have two parents: in each group of the one with the smaller effective number."""
    parents = [clusters_of(counts, cube.keys, sizes) for counts in (cube.counts, *cube.crossed[:1])]
    if len(parents) == 1:
        return parents[0]
    order = [N_EFFECTIVE, N_CLUSTERS]
    return pl.concat(parents).sort(order, nulls_last=True).unique(list(cube.keys), keep="first", maintain_order=True)


def marked(clusters: pl.DataFrame, mark: Quality, groups: pl.DataFrame | None = None) -> pl.DataFrame:
    """The columns of `clusters_of`, with a mark such as `one_parent` in the place of `good`, of some groups or all."""
    keys = clusters.columns[: clusters.columns.index(N_CLUSTERS)]
    groups = clusters.select(keys) if groups is None else groups
    is_marked = pl.col("_is_marked").is_not_null() & (pl.col(_OF_CLUSTERS) == "good")
    quality = pl.when(is_marked).then(_named(mark)).otherwise(pl.col(_OF_CLUSTERS)).alias(_OF_CLUSTERS)
    labels = groups.select(*keys, pl.lit(value=True).alias("_is_marked"))
    joined = clusters.join(labels, on=keys, how="left", nulls_equal=True, maintain_order="left")
    return joined.with_columns(quality).drop("_is_marked")


def marked_with(mark: Quality) -> pl.Expr:
    """Whether a row of what `clusters_of` gives has a mark."""
    return pl.col(_OF_CLUSTERS) == mark


def marked_in_time(
    clusters: pl.DataFrame, cube: Cube, sizes: Sequence[str], confusion: Callable[[GroupCounts], Confusion]
) -> pl.DataFrame:
    """The columns of `clusters_of`, marked where neighbours in time are alike in ratios at a few thresholds.

    The sizes are names of the counts that tell how many rows lie between thresholds.
    """
    if not cube.in_time:
        return clusters
    keys, alike = list(cube.keys), []
    for key, counts in by_group(cube.counts, keys).items():
        size = pl.sum_horizontal(pl.col(name).cast(pl.Float64) for name in sizes).sum()
        rows = counts.drop_nulls(THRESHOLD).group_by(THRESHOLD).agg(size.alias("_size")).sort(THRESHOLD)
        edges, below = rows[THRESHOLD].to_numpy(), rows["_size"].cum_sum().to_numpy()
        chosen = edges[compared_at(below)] if len(below) else [-np.inf]
        group = replace(GroupCounts.of(counts, chosen), in_time=True)
        alike += [key] if may_days_be_alike(confusion(group)) else []
    groups = pl.DataFrame(alike, schema={name: cube.counts.schema[name] for name in keys}, orient="row")
    return marked(clusters, "correlated_days", groups)


def compared_at(below: Floats) -> NDArray[np.int64]:
    """At which of some rising thresholds neighbours in time are compared, from the rows below the next of each."""
    return np.unique(np.searchsorted(below, _SHARES * below[-1]))


def with_numbers(
    table: pl.DataFrame, clusters: pl.DataFrame, keys: Sequence[str], *, wanted: bool = True
) -> pl.DataFrame:
    """A table with `n_clusters` and `n_clusters_effective` of the group of every row; NULL where not wanted.

    The clusters are as from `clusters_of`.
    """
    names = (N_CLUSTERS, N_EFFECTIVE)
    if not wanted or not clusters[N_CLUSTERS].count():
        kinds = clusters.schema
        return table.with_columns(column for name in names for column in nothing([name], table.height, kinds[name]))
    return beside(table, clusters[[*keys, *names]], keys)


def with_quality(
    table: pl.DataFrame,
    names: Sequence[str],
    *,
    clusters: pl.DataFrame | None = None,
    keys: Sequence[str] = (),
    events: Sequence[str] = (),
    fewest: int = FEWEST_EVENTS,
) -> pl.DataFrame:
    """A table with `interval_quality`; NULL in rows without an interval.

    Args:
        table: With the limits of some ratios.
        names: The ratios.
        clusters: `clusters_of` its groups; None: rows are independent.
        keys: Columns that identify a group.
        events: Columns that the ratios weigh against each other, such as tp, fp and fn: where one is 0 a ratio is 0
            or 1, and where one is small a ratio rests on few events.
        fewest: How many of the rarest are not few.
    """
    if all(table[limit].null_count() == table.height for limit in limit_names(names)):
        return table.with_columns(nothing([INTERVAL_QUALITY], table.height, pl.String))
    quality = pl.when(pl.coalesce(limit_names(names)).is_not_null()).then(_of_events(events, fewest))
    if clusters is None or not clusters[_OF_CLUSTERS].count():
        return table.with_columns(quality.alias(INTERVAL_QUALITY))
    of_clusters = pl.when(pl.col(_OF_CLUSTERS) != "good", quality.is_not_null()).then(_OF_CLUSTERS).otherwise(quality)
    table = beside(table, clusters[[*keys, _OF_CLUSTERS]], keys)
    return table.with_columns(of_clusters.alias(INTERVAL_QUALITY)).drop(_OF_CLUSTERS)


def _of_events(events: Sequence[str], fewest: int) -> pl.Expr:
    """The worst that holds by the rarest of some events, see `qualities.MEANINGS`."""
    if not events:
        return _named("good")
    rarest = pl.min_horizontal(events)
    few = pl.when(rarest < fewest).then(_named("few_events_of_interest"))
    return pl.when(rarest == 0).then(_named("at_edge")).otherwise(few.otherwise(_named("good")))


def of_chosen(points: pl.DataFrame) -> pl.DataFrame:
    """Rows of a curve that were chosen by their values: the mark `good` becomes that of a chosen threshold."""
    if INTERVAL_QUALITY not in points.columns:
        return points
    chosen = pl.when(pl.col(INTERVAL_QUALITY) == "good").then(_named("chosen_on_same_data"))
    return points.with_columns(chosen.otherwise(pl.col(INTERVAL_QUALITY)).alias(INTERVAL_QUALITY))


def _named(quality: Quality) -> pl.Expr:
    return pl.lit(quality)


_MISSING: dict[Reason, str] = {  # reasons that lie in what was asked for, or in the data as a whole
    "one_replicate": "a single cluster has no spread",
    "budget": "thresholds × replicates are too many, ask for fewer of either",
}
_COUNTS = frozenset(  # columns of which one is above 0 wherever there are rows
    {
        *("n", "tp", "fp", "fn", "n_before", "n_after", "m_before", "m_after"),
        *("n_documents", "n_gold", "n_series", "n_true", "n_predicted", "n_queries"),
    }
)


def quality_of_sizes(sizes: NDArray[Any]) -> Quality:
    """The quality of an interval that rests on clusters of these sizes alone, shape (G,)."""
    sizes = sizes[sizes > 0]
    if sizes.max(initial=0) > max(_LARGEST_SHARE, 2 / max(len(sizes), 1)) * sizes.sum():
        return "unequal_clusters"
    return "good" if effective_number(sizes) >= FEWEST_CLUSTERS else "few_clusters"


def quality_of_events(*numbers: float) -> Quality:
    """The quality of an interval for the numbers of what its ratio weighs against each other."""
    rarest = min(numbers)
    if rarest <= 0:
        return "at_edge"
    return "few_events_of_interest" if rarest < FEWEST_EVENTS else "good"


def worst_of(qualities: pl.Expr) -> pl.Expr:
    """The worst of the values of `interval_quality` in some rows, as an aggregate; NULL without any."""
    severity = {quality: number for number, quality in enumerate(MEANINGS)}
    ranks = qualities.replace_strict(severity, default=None, return_dtype=pl.Int64)
    return ranks.min().replace_strict(dict(enumerate(MEANINGS)), default=None, return_dtype=pl.String)


def warnings_of_marks(tables: Mapping[str, pl.DataFrame], without: Sequence[Quality] = ()) -> tuple[str, ...]:
    """Sentences on the doubtful and the missing intervals of the tables of a stage: why, in which tables; or none.

    Tables without `interval_quality` are passed over, and marks that something else tells of left out.
    """
    return (*_doubtful(tables, without), *_missing(tables))


def _missing(tables: Mapping[str, pl.DataFrame]) -> Iterator[str]:
    """A warning of rows without limits where limits were asked for; nothing where nothing was counted."""
    counts = [table[name] for table in tables.values() for name in table.columns if name in _COUNTS]
    if counts and not any((column > 0).any() for column in counts):
        return
    reasons = {
        name: _values(table[UNDEFINED_INTERVAL])
        for name, table in tables.items()
        if {INTERVAL_QUALITY, UNDEFINED_INTERVAL} <= set(table.columns)
    }
    if phrases := _phrases(reasons, _MISSING):
        yield f"some intervals are missing: {phrases}"


def _phrases(marks: Mapping[str, set[str]], meanings: Mapping[Any, str]) -> str:
    """What marks mean and in which tables they stand, from those of each table."""
    tables = {mark: ", ".join(name for name, of_table in marks.items() if mark in of_table) for mark in meanings}
    return "; ".join(f"{meanings[mark]} ({mark} in {names})" for mark, names in tables.items() if names)


def _values(column: pl.Series) -> set[str]:
    """The values that are there, but NULL."""
    return {value for value in column.value_counts().to_series().to_list() if value is not None}


def _doubtful(tables: Mapping[str, pl.DataFrame], without: Sequence[Quality]) -> Iterator[str]:
    """The marks that stand in each table."""
    marked = {name: table for name, table in tables.items() if INTERVAL_QUALITY in table.columns}
    qualities = {name: _values(table[INTERVAL_QUALITY]) for name, table in marked.items()}
    told = [quality for quality in DOUBTFUL if quality in set().union(*qualities.values()) and quality not in without]
    why = {quality: f"{_WHY[quality]}{_fewest(marked, quality)}" for quality in told}
    if phrases := _phrases(qualities, why):
        yield f"some intervals may be too narrow: {phrases}"


def _fewest(tables: Mapping[str, pl.DataFrame], quality: Quality) -> str:
    """The fewest clusters of the rows with a mark, as words; empty where not known."""
    columns = [N_EFFECTIVE, N_CLUSTERS]
    counted = [table for table in tables.values() if set(columns) <= set(table.columns)]
    if not counted or quality not in {"unequal_clusters", "few_clusters"}:
        return ""
    rows = (table.filter(pl.col(INTERVAL_QUALITY) == quality)[columns].drop_nulls().sort(columns) for table in counted)
    fewest = [frame.row(0) for frame in rows if frame.height]
    if not fewest:
        return ""
    effective, number = min(fewest)
    words = f"{number:,}" if effective > number - 1 else f"{number:,} that count as {effective:.1f}"
    return f", {words} at the fewest"
