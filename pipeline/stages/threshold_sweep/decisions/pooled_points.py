"""All groups together: each cut at its own threshold or all at a common one, and alerts shared out over them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import polars as pl

from ....metrics.curves.decisions import NOTHING, allocate
from ....metrics.curves.operating_points import COST, CRITERION
from ....metrics.uncertainty.cube import Cube
from ....metrics.uncertainty.limits import Interval, intervals_of, limit_columns, no_limits, of_chosen, with_quality
from ....metrics.uncertainty.proportions import PROPORTIONS, intervals_of_clusters
from ....records import dataclass
from ....tables.columns import THRESHOLD, by_group, divide, nulls, ratios
from ....tables.groupings import TOTAL
from ....tables.schemas import GROUPING
from ..areas import CLUSTERS
from ..contract import HEAVIEST
from ..uncertainty import CONFUSION, limits_of_rows, outcomes
from .costs import COST_PER_ROW, CUT, Cuts, with_cost_per_row

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ....metrics.curves.operating_points import Criterion
    from ..contract import ThresholdSweepParameters


# The table threshold_sweep_allocations: how many of the alerts that all groups share each group gets.


N_ALERTS = "n_alerts"
_ROUNDING = 1e-9


def allocations(params: ThresholdSweepParameters, curve: pl.DataFrame, label: str) -> pl.DataFrame:
    """The threshold of every group of a grouping, for every criterion with a capacity.

    Rows with weights have no allocation, and neither has a capacity for which the exact search would be too large.

    Args:
        params: The parameters.
        curve: The curve.
        label: The grouping.
    """
    keys = curve.columns[: curve.columns.index(THRESHOLD)]
    rows = curve.filter(pl.col(GROUPING.name) == label).sort([*keys, THRESHOLD], nulls_last=True)
    retrieved = (pl.col("tp") + pl.col("fp")).alias(N_ALERTS)
    rows = rows.select(*keys, THRESHOLD, *CONFUSION, retrieved, pl.col("tp_weight").is_not_null().alias("_is_weighted"))
    nothing = _allocated(rows.clear(), "")
    limited = [criterion for criterion in params.operating_points if criterion.has_capacity]
    if not limited or rows["_is_weighted"].any():
        return nothing
    groups = list(by_group(rows, keys).values())
    counts = [(group[N_ALERTS].to_numpy(), group["tp"].to_numpy()) for group in groups]
    shares = [allocate(counts, _capacity(criterion, groups)) for criterion in limited]
    allocated = (
        _allocated(pl.concat(map(_at, groups, numbers)), criterion.text)
        for criterion, numbers in zip(limited, shares, strict=True)
        if numbers is not None
    )
    return pl.concat([nothing, *allocated])


def not_allocated(tables: Mapping[str, pl.DataFrame]) -> tuple[str, ...]:
    """A warning of criteria whose alerts were not shared out because the search was too large; none without any."""
    pooled = tables.get("threshold_sweep_pooled_points")
    if pooled is None:
        return ()
    counted = pooled.filter(pl.col("tp_weight").is_null(), pl.col(CRITERION).str.starts_with("max_alert"))
    without = counted.group_by("pooled", CRITERION, maintain_order=True).agg(
        (pl.col("thresholds") == "allocated").any().alias("is_allocated")
    )
    texts = without.filter(~pl.col("is_allocated"))[CRITERION].unique(maintain_order=True).to_list()
    if not texts:
        return ()
    words = (
        "the alerts are not shared out over groups: an exact search would be too large; give fewer alerts or thresholds"
    )
    return (f"{', '.join(texts)}: {words}",)


def _capacity(criterion: Criterion, groups: list[pl.DataFrame]) -> int:
    """The most rows to retrieve of all groups."""
    if criterion.max_alerts is not None:
        return criterion.max_alerts
    total = sum(sum(group.row(0, named=True)[name] for name in CONFUSION) for group in groups)
    return math.floor(total * (criterion.max_alert_share or 1.0) * (1 + _ROUNDING))


def _at(group: pl.DataFrame, number: int) -> pl.DataFrame:
    """The row of a group at a threshold; without one nothing is retrieved."""
    if number != NOTHING:
        return group[[number]]
    nothing = pl.lit(0, dtype=pl.Int64)
    return group[[0]].with_columns(
        pl.lit(None, dtype=pl.Float64).alias(THRESHOLD),
        nothing.alias("tp"),
        nothing.alias("fp"),
        nothing.alias(N_ALERTS),
        (pl.col("tp") + pl.col("fn")).alias("fn"),
        (pl.col("fp") + pl.col("tn")).alias("tn"),
    )


def _allocated(rows: pl.DataFrame, criterion: str) -> pl.DataFrame:
    """The rows of a criterion, with the columns of the table."""
    tp, fp, fn = (pl.col(name) for name in ("tp", "fp", "fn"))
    return rows.with_columns(
        pl.lit(criterion).alias(CRITERION),
        divide(tp, tp + fp).alias("precision"),
        divide(tp, tp + fn).alias("recall"),
    ).drop("_is_weighted")


# The table threshold_sweep_pooled_points: all groups together, each cut at its own threshold or all at a common one.
#
# A threshold for each group does better on the rows that it was chosen on than one for all, and may do so on new
# rows. A group in which a criterion is not reached has no threshold, and nothing of it is retrieved. Alerts that all
# groups share are given to the groups where they hold the most true positives (`allocations`).


POOLED, THRESHOLDS = "pooled", "thresholds"
OWN, COMMON, ALLOCATED = "own", "common", "allocated"
LABELS = (POOLED, CRITERION, THRESHOLDS)
OF_COSTS = (COST, COST_PER_ROW, f"{COST_PER_ROW}_lower", f"{COST_PER_ROW}_upper")
TABLES = ("threshold_sweep_pooled_points", "threshold_sweep_allocations")


@dataclass(frozen=True)
class Swept:
    """What the stage has derived already.

    Attributes:
        cube: Its counts.
        curve: The curve with squares and heaviest weights.
        points: The operating points, likewise.
        clusters: `clusters_of_groups`.
    """

    cube: Cube
    curve: pl.DataFrame
    points: pl.DataFrame
    clusters: pl.DataFrame


def pooled_tables(params: ThresholdSweepParameters, swept: Swept) -> dict[str, pl.DataFrame]:
    """The table of pooled points and that of allocated alerts; none without the total, or without a group beside it."""
    groupings = groupings_to_pool(params)
    if not groupings or swept.curve.is_empty():
        return {}
    allocated = pl.concat([allocations(params, swept.curve, label) for label in groupings])
    rows = []
    for label in groupings:
        cuts = _cuts(params, swept, allocated, label)
        if cuts.is_empty():
            continue
        counted = Cuts.of(_of_grouping(swept.cube, label), cuts, LABELS)
        rows.append(_with_intervals(_with_ratios(counted, cuts, swept), counted, params))
    if not rows:
        return {}
    table = _marked(pl.concat(rows), swept, params)
    return dict(zip(TABLES, (table, allocated), strict=True))


def groupings_to_pool(params: ThresholdSweepParameters) -> list[str]:
    """The groupings whose groups are put together: those beside the total, none without it."""
    labels = [grouping.label for grouping in params.groupings if grouping.columns]
    return labels if len(labels) < len(params.groupings) else []


def _of_grouping(cube: Cube, label: str) -> Cube:
    """The counts of the groups of one grouping."""
    counts, *crossed = (table.filter(pl.col(GROUPING.name) == label) for table in (cube.counts, *cube.crossed))
    return Cube.of(counts, cube.keys, cube.thresholds, cube.boundary, crossed, in_time=cube.in_time)


def _cuts(params: ThresholdSweepParameters, swept: Swept, allocated: pl.DataFrame, label: str) -> pl.DataFrame:
    """Where each group is cut: its keys, `LABELS`, `_cut`, and the criterion's threshold where it is common to all."""
    keys = list(swept.cube.keys)
    is_own = {point.text: not point.is_given and point.max_alerts is None for point in params.operating_points}
    of_groups = swept.points.filter(pl.col(GROUPING.name) == label)
    groups = of_groups.select(keys).unique(maintain_order=True)
    common = swept.points.filter(pl.col(GROUPING.name) == TOTAL).select(CRITERION, THRESHOLD)
    criteria = [text for text, wanted in is_own.items() if wanted]
    frames = {
        OWN: of_groups.filter(pl.col(CRITERION).is_in(criteria)),
        COMMON: groups.join(common, how="cross"),
        ALLOCATED: allocated.filter(pl.col(GROUPING.name) == label),
    }
    at = pl.col(THRESHOLD)
    return pl.concat(
        frame.select(
            *keys,
            pl.lit(label).alias(POOLED),
            CRITERION,
            pl.lit(name).alias(THRESHOLDS),
            at.alias(CUT),
            (at if name == COMMON else pl.lit(None, dtype=pl.Float64)).alias(THRESHOLD),
        )
        for name, frame in frames.items()
    )


def _with_ratios(counted: Cuts, cuts: pl.DataFrame, swept: Swept) -> pl.DataFrame:
    """One row per cut, with the columns of a curve; a common threshold that is not reached leaves all NULL."""
    n_groups = cuts.group_by(LABELS).agg(
        pl.len().cast(pl.Int64).alias("n_groups"),
        pl.col(CUT).is_null().sum().cast(pl.Int64).alias("n_without_threshold"),
        pl.col(THRESHOLD).first(),
    )
    is_weighted = pl.lit(counted.kind == "weight")
    totals = counted.totals().select(
        *LABELS,
        *(pl.col(f"n_{name}").cast(pl.Int64).alias(name) for name in CONFUSION),
        *(pl.when(is_weighted).then(f"weight_{name}").alias(f"{name}_weight") for name in CONFUSION),
        *(pl.col(f"squares_{name}").alias(f"{name}_squares") for name in CONFUSION),
    )
    rows = totals.join(n_groups, on=list(LABELS), how="left", maintain_order="left")
    heaviest = swept.curve.filter(pl.col(GROUPING.name) == TOTAL).select(HEAVIEST).head(1)
    counts = outcomes()
    tp, fp, fn, tn = counts.tp, counts.fp, counts.fn, pl.lit(0.0) if counts.tn is None else counts.tn
    reason = pl.when(tp + fp <= 0).then(pl.lit("no_prediction")).when(tp + fn <= 0).then(pl.lit("no_positive"))
    return rows.join(heaviest, how="cross").with_columns(
        *ratios(tp, fp, fn),
        divide(fp, fp + tn).alias("fpr"),
        reason.when(fp + tn <= 0).then(pl.lit("no_negative")).alias("undefined"),
    )


def _with_intervals(rows: pl.DataFrame, counted: Cuts, params: ThresholdSweepParameters) -> pl.DataFrame:
    """The rows with limits of the ratios, costs, and limits of these."""
    outcome = outcomes()
    cost = pl.lit(None, dtype=pl.Float64)
    for point in params.operating_points:
        if point.cost is not None:
            cost = pl.when(pl.col(CRITERION) == point.text).then(outcome.cost(point.cost)).otherwise(cost)
    rows = with_cost_per_row(rows.with_columns(cost.alias(COST)), LABELS, params, lambda: counted)
    rows = rows.with_columns(nulls(name for name in OF_COSTS if name not in rows.columns))
    if not params.is_replicated:
        return rows.with_columns(no_limits(PROPORTIONS, "none"))
    if params.cluster is None:
        fixed = params.class_sizes == "fixed"
        limits = limits_of_rows(rows, params.confidence, PROPORTIONS, fixed_sizes=fixed)
        intervals = {name: Interval.of(limits[name], "undefined_ratio") for name in PROPORTIONS}
        return rows.with_columns(*limit_columns(intervals))
    return pl.concat(_of_clusters(rows, counted, params))


def _of_clusters(rows: pl.DataFrame, counted: Cuts, params: ThresholdSweepParameters) -> Iterator[pl.DataFrame]:
    """Each row with its limits between clusters."""
    by_label = {label: rows[[number]] for number, label in enumerate(rows.select(LABELS).iter_rows())}
    for label, (counts, *crossed) in counted.by_replicate():
        row = by_label[label]
        heaviest = row.select(HEAVIEST).row(0) if counted.kind == "weight" else None
        limits = intervals_of_clusters(
            counts, params.confidence, heaviest=heaviest, crossed=crossed, resampling=params.resampling
        )
        replicates = min(len(clustering.tp) for clustering in (counts, *crossed))
        yield row.with_columns(*limit_columns(intervals_of(limits, replicates)))


def _marked(rows: pl.DataFrame, swept: Swept, params: ThresholdSweepParameters) -> pl.DataFrame:
    """The rows as those of the total, with what is said of their intervals."""
    keys = list(swept.cube.keys)
    by = [pl.lit(None, dtype=swept.points.schema[name]).alias(name) for name in keys if name != GROUPING.name]
    rows = rows.with_columns(pl.lit(TOTAL).alias(GROUPING.name), *by)
    clusters = None if params.cluster is None else swept.clusters
    rows = with_quality(rows, PROPORTIONS, clusters=clusters, keys=keys, events=CONFUSION)
    rows = rows.join(swept.clusters.select(*keys, *CLUSTERS), on=keys, how="left", nulls_equal=True)
    chosen = [not point.is_given and point.confidence is None for point in params.operating_points]
    texts = [point.text for point, wanted in zip(params.operating_points, chosen, strict=True) if wanted]
    is_chosen = pl.col(CRITERION).is_in(texts)
    rows = pl.concat([of_chosen(rows.filter(is_chosen)), rows.filter(~is_chosen)])
    return rows.drop(*(f"{name}_squares" for name in CONFUSION), *HEAVIEST)
