"""Intervals of the curve of change_points: series, or clusters of them, are independent."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import polars as pl

from ...metrics.curves.cross_fitting import at_choices
from ...metrics.uncertainty.limits import Interval, clusters_of, marked_in_time, with_limits
from ...metrics.uncertainty.proportions import UNSEEN, Confusion, intervals_of_clusters
from ...tables.columns import RATIOS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ...metrics.curves.cross_fitting import Ints
    from ...metrics.uncertainty.bootstrap import Resampling
    from ...metrics.uncertainty.cube import Cube, GroupCounts
    from ...metrics.uncertainty.proportions import Limits
    from .contract import ChangePointsParameters

    Floats: TypeAlias = NDArray[np.float64]

SIZES = ("n_series", "n_true", "n_predicted", "n_always")  # what makes a series, or a cluster of them, large
_ROUNDING = 1e-9


def clusters_of_groups(params: ChangePointsParameters, cube: Cube) -> pl.DataFrame:
    """How many clusters each group rests on, and how far intervals that rest on them alone can be trusted."""

    def confusion(group: GroupCounts) -> Confusion:
        of_true = _recalled(group, None) if params.annotators == "tcpd" else _of_true(group, None)
        return of_true if params.rule == "any" else replace(of_true, fp=_wrong(group, None))

    return marked_in_time(clusters_of(cube.counts, cube.keys, SIZES), cube, ["n_predicted"], confusion)


def with_intervals(curve: pl.DataFrame, cube: Cube, params: ChangePointsParameters) -> pl.DataFrame:
    """The curve with `<ratio>_lower`, `<ratio>_upper`, `undefined_interval` and `interval_quality`."""
    clusters = clusters_of_groups(params, cube)

    def intervals(rows: pl.DataFrame, group: GroupCounts) -> dict[str, Interval]:
        limits = limits_of(group, params, params.confidence, params.resampling)
        return _with_reasons(limits, rows, one_replicate=len(group.replicates) == 1)

    with_events = curve.with_columns(
        (pl.col("n_predicted") - pl.col("tp")).alias("_wrong"), (pl.col("n_true") - pl.col("tp")).alias("_missed")
    )
    events = ("tp", "_wrong", "_missed")
    wanted, resamples = params.is_replicated, params.drawn_resamples
    limited = with_limits(
        with_events, cube, RATIOS, intervals, wanted=wanted, clusters=clusters, events=events, resamples=resamples
    )
    return limited.drop("_wrong", "_missed")


def limits_of(
    group: GroupCounts,
    params: ChangePointsParameters,
    confidence: float,
    resampling: Resampling | None = None,
    chosen: Ints | None = None,
) -> dict[str, Limits]:
    """Limits of the ratios of one group that are proportions: at its thresholds, or where each fold has one of its own.

    Under `any` a prediction may serve several true points, so precision and F1 are no proportions; under `tcpd` F1 is
    none, because precision and recall count different things.
    """
    of_true, wrong = _of_true(group, chosen), _wrong(group, chosen)
    limits: dict[str, Limits] = {}
    with_precision = (wrong >= 0).all() and params.rule != "any"
    if with_precision:
        limits = intervals_of_clusters(replace(of_true, fp=wrong), confidence, resampling=resampling)
    if params.annotators == "tcpd":
        limits["recall"] = _of_mean_recall(group, confidence, resampling, chosen)
        limits.pop("f1", None)
    elif not with_precision:
        limits["recall"] = intervals_of_clusters(of_true, confidence, resampling=resampling)["recall"]
    return limits


def _of_true(group: GroupCounts, chosen: Ints | None) -> Confusion:
    """True points that are found or missed by each replicate."""
    tp = _retrieved(group, "tp", "tp_always", chosen)
    nothing = np.zeros_like(tp)
    return Confusion(tp, nothing, group.totals("n_true")[:, None] - tp, nothing, in_time=group.in_time)


def _wrong(group: GroupCounts, chosen: Ints | None) -> Floats:
    """Predictions that are no true positives; below 0 where one serves several true points."""
    return _retrieved(group, "n_predicted", "n_always", chosen) - _retrieved(group, "tp", "tp_always", chosen)


def _recalled(group: GroupCounts, chosen: Ints | None) -> Confusion:
    """The recalls of series as hits, and what they lack of 1 as misses, see `mean_limits`."""
    recalled = _retrieved(group, "recall_sum", "recall_always", chosen)
    nothing = np.zeros_like(recalled)
    missed = np.maximum(group.totals("n_series")[:, None] - recalled, 0.0)
    return Confusion(recalled, nothing, missed, nothing, in_time=group.in_time)


def _of_mean_recall(
    group: GroupCounts, confidence: float, resampling: Resampling | None, chosen: Ints | None
) -> Limits:
    """Limits of the mean recall of the series: of a share whose hits are the recalls."""
    recalls, names, heaviest = _recalled(group, chosen), ["recall"], (UNSEEN, UNSEEN)
    return intervals_of_clusters(recalls, confidence, heaviest=heaviest, names=names, resampling=resampling)["recall"]


def _retrieved(group: GroupCounts, scored: str, always: str, chosen: Ints | None) -> Floats:
    """`retrieved` at all thresholds, shape (G, K), or at that of the fold of each replicate, shape (G, 1)."""
    counts = retrieved(group, scored, always)
    return counts if chosen is None else at_choices(counts, chosen)


def retrieved(group: GroupCounts, scored: str, always: str) -> Floats:
    """Counts of every replicate at or above every threshold, with those that count at every threshold."""
    return np.asarray(group.at_or_above(scored) + group.totals(always)[:, None], dtype=np.float64)


def _with_reasons(limits: dict[str, Limits], rows: pl.DataFrame, *, one_replicate: bool) -> dict[str, Interval]:
    """The limits of all ratios; a row gives one reason for all of them."""
    nothing = np.full(rows.height, np.nan)
    undefined = np.logical_or.reduce([rows[name].is_null().to_numpy() for name in RATIOS])
    reasons = np.where(undefined, "undefined_ratio", "no_limit")
    if one_replicate or any(name not in limits for name in RATIOS):
        reasons = np.full(rows.height, "one_replicate" if one_replicate else "not_a_proportion")
    return {name: Interval.of(limits.get(name, (nothing, nothing)), reasons) for name in RATIOS}
