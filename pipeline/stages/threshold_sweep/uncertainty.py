"""Intervals of the curve of threshold_sweep: rows are independent, or only clusters of them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np
import polars as pl

from ...metrics.uncertainty.limits import (
    Interval,
    clusters_of_parents,
    intervals_of,
    limit_columns,
    marked_in_time,
    no_clusters,
    no_limits,
    with_limits,
    with_quality,
)
from ...metrics.uncertainty.proportions import (
    PROPORTIONS,
    Confusion,
    Weights,
    intervals_of_clusters,
    intervals_of_rows,
)
from ...metrics.uncertainty.qualities import FEWEST_EVENTS
from .contract import HEAVIEST, LIGHTEST

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...metrics.uncertainty.cube import Cube, GroupCounts
    from ...metrics.uncertainty.jackknife import Limits
    from ...metrics.uncertainty.resampling import Resampling
    from .contract import ThresholdSweepParameters

CONFUSION = ("tp", "fp", "fn", "tn")
SEEN = "_seen"  # events of a kind of row that a group has none of
FAR_HEAVIER = 10  # times
_BY_LABEL = "_by_label"


def with_intervals(
    curve: pl.DataFrame, cube: Cube, params: ThresholdSweepParameters, clusters: pl.DataFrame
) -> pl.DataFrame:
    """The curve, with the heaviest weights, with `<ratio>_lower`, `<ratio>_upper` and what is said of them."""
    if params.cluster is None:
        if not params.is_replicated:
            return with_quality(curve.with_columns(no_limits(PROPORTIONS, "none")), PROPORTIONS)
        fixed = params.class_sizes == "fixed"
        limits = limits_of_rows(curve, params.confidence, PROPORTIONS, fixed_sizes=fixed)
        intervals = {name: Interval.of(limits[name], "undefined_ratio") for name in PROPORTIONS}
        return with_quality(curve.with_columns(*limit_columns(intervals)), PROPORTIONS, events=CONFUSION)

    def of_clusters(rows: pl.DataFrame, group: GroupCounts) -> dict[str, Interval]:
        replicates = min(len(counts.replicates) for counts in (group, *group.crossed))
        limits = limits_of_clusters(rows, group, params.confidence, PROPORTIONS, params.resampling)
        return intervals_of(limits, replicates)

    return with_limits(
        curve,
        cube,
        PROPORTIONS,
        of_clusters,
        wanted=params.is_replicated,
        clusters=clusters,
        events=CONFUSION,
        resamples=params.drawn_resamples,
    )


def clusters_of_groups(params: ThresholdSweepParameters, cube: Cube) -> pl.DataFrame:
    """`clusters_of` the groups, of two parents the fewer; NULL where rows are independent or not in replicates."""
    if params.cluster is None or not params.is_replicated:
        return no_clusters(cube)
    kind = kind_of_counts(cube.counts)
    table = clusters_of_parents(cube, sizes_of(kind))
    return marked_in_time(table, cube, sizes_of(kind), partial(confusion_of, kind=kind))


def with_heaviest(rows: pl.DataFrame, heaviest: pl.DataFrame | None, keys: Sequence[str]) -> pl.DataFrame:
    """Rows with how heavy a positive and a negative row of their group may be that was not observed.

    Where all rows of a label weigh the same, in both labels, the label gave the weight, and a row weighs what those of
    its label do; in place of a label without rows that of the other. Otherwise something else gave it, such as the
    score that rows were sampled by, so that a row may be as heavy as any of its group: that no positive was drawn from
    the stratum of the heaviest rows is no sign that it has none.
    """
    if heaviest is None:
        return rows.with_columns(pl.lit(1.0).alias(name) for name in HEAVIEST)
    either = pl.max_horizontal(HEAVIEST)
    is_own = (pl.when(pl.col(_BY_LABEL) & (pl.col(name) > 0)).then(name) for name in HEAVIEST)
    names = zip(is_own, HEAVIEST, strict=True)
    largest = _weights(heaviest, keys).select(*keys, *(own.otherwise(either).alias(name) for own, name in names))
    return rows.join(largest, on=list(keys), how="left", nulls_equal=True, maintain_order="left")


def with_fewest_seen(rows: pl.DataFrame, heaviest: pl.DataFrame | None, keys: Sequence[str]) -> pl.DataFrame:
    """Rows with `SEEN`: few where a label has no row nearly as heavy as the heaviest of the group, which may hide one.

    It is NULL elsewhere, and where the label gave the weights, see `with_heaviest`.
    """
    if heaviest is None:
        return rows.with_columns(pl.lit(None, dtype=pl.Int64).alias(SEEN))
    hides = ~pl.col(_BY_LABEL) & (pl.min_horizontal(HEAVIEST) * FAR_HEAVIER < pl.max_horizontal(HEAVIEST))
    few = _weights(heaviest, keys).select(*keys, pl.when(hides).then(pl.lit(FEWEST_EVENTS - 1)).alias(SEEN))
    return rows.join(few, on=list(keys), how="left", nulls_equal=True, maintain_order="left")


def _weights(heaviest: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """The heaviest row of each label by group, and whether all rows of a label weigh the same, in both labels."""
    extremes = heaviest.group_by(keys).agg(
        *(pl.col(name).cast(pl.Float64).max() for name in HEAVIEST),
        *(pl.col(name).cast(pl.Float64).min() for name in LIGHTEST),
    )
    sides = zip(HEAVIEST, LIGHTEST, strict=True)
    alike = ((pl.col(high) <= 0) | (pl.col(high) == pl.col(low)) for high, low in sides)
    return extremes.with_columns(pl.all_horizontal(*alike).alias(_BY_LABEL))


def sizes_of(kind: str) -> tuple[str, str]:
    """The counts that make the size of a cluster."""
    return f"{kind}_positive", f"{kind}_negative"


def kind_of_counts(counts: pl.DataFrame) -> Literal["weight", "n"]:
    """`weight` where rows have weights, else `n`; a run whose weights are all 0 is refused before it counts."""
    return "weight" if counts["weight_positive"].sum() or counts["weight_negative"].sum() else "n"


def confusion_of(group: GroupCounts, kind: str) -> Confusion:
    """Counts or weights of each replicate at each threshold."""
    tp, fp = (group.at_or_above(f"{kind}_{side}") for side in ("positive", "negative"))
    positives, negatives = (group.totals(f"{kind}_{side}")[:, None] for side in ("positive", "negative"))
    return Confusion(tp, fp, positives - tp, negatives - fp, in_time=group.in_time)


def limits_of_clusters(
    rows: pl.DataFrame,
    group: GroupCounts,
    confidence: float,
    names: Sequence[str],
    resampling: Resampling | None = None,
) -> dict[str, Limits]:
    """Limits of the ratios of one group where replicates are independent, of two parents those that share neither."""
    (counts, *crossed), heaviest = counts_of_clusters(rows, group)
    return intervals_of_clusters(
        counts, confidence, heaviest=heaviest, names=names, crossed=crossed, resampling=resampling
    )


def counts_of_clusters(rows: pl.DataFrame, group: GroupCounts) -> tuple[list[Confusion], tuple[float, float] | None]:
    """Counts or weights of one group by each of its clusterings, and the heaviest weights where rows have any."""
    weighted = rows["tp_weight"].null_count() < rows.height
    heaviest = (rows[HEAVIEST[0]][0], rows[HEAVIEST[1]][0]) if weighted else None
    kind: Literal["weight", "n"] = "weight" if weighted else "n"
    return [confusion_of(clustering, kind) for clustering in (group, *group.crossed)], heaviest


def limits_of_rows(
    curve: pl.DataFrame, confidence: float, names: Sequence[str], *, fixed_sizes: bool
) -> dict[str, Limits]:
    """Limits where rows are independent: of the counts, or of weights with their squares."""
    counts, weights = confusion_of_rows(curve)
    return intervals_of_rows(counts, weights, confidence, fixed_sizes=fixed_sizes, names=names)


def confusion_of_rows(curve: pl.DataFrame) -> tuple[Confusion, Weights | None]:
    """Outcomes of rows of the curve, of weights where there are any, and what else is known of the weights."""
    weighted = curve["tp_weight"].is_not_null().to_numpy()
    counts = [curve[name].cast(pl.Float64).to_numpy() for name in CONFUSION]

    if not weighted.any():
        return Confusion(*counts), None

    def confusion(suffix: str) -> Confusion:
        weights = [curve[f"{name}{suffix}"].cast(pl.Float64).fill_null(0.0).to_numpy() for name in CONFUSION]
        return Confusion(*(np.where(weighted, heavy, light) for light, heavy in zip(counts, weights, strict=True)))

    heaviest = (np.where(weighted, curve[name].to_numpy(), 1.0) for name in HEAVIEST)
    return confusion("_weight"), Weights(confusion("_squares"), *heaviest)
