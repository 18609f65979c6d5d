"""The table threshold_sweep_net_benefit: decision curves of scores that are probabilities.

Who acts by a threshold probability acts on the rows that the boundary of the stage retrieves: from it on, or above it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from ....metrics.curves.decisions import Payoffs, of_smaller
from ....metrics.uncertainty.cube import Cube
from ....metrics.uncertainty.limits import Interval, limit_columns, limit_names, no_limits, with_quality
from ....metrics.uncertainty.proportions import Confusion, Weights
from ....tables.columns import IN_TIME, THRESHOLD, doubles, lowest_retrieved
from ..areas import CLUSTERS
from ..contract import CROSSED, HEAVIEST
from ..uncertainty import confusion_of, kind_of_counts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ....metrics.uncertainty.cube import GroupCounts
    from ....metrics.uncertainty.jackknife import Floats, Limits
    from ..contract import ThresholdSweepParameters

TABLE = "threshold_sweep_net_benefit"
LIMITED = ("net_benefit", "net_benefit_difference")
RATIOS = ("net_benefit", "net_benefit_all", "standardized_net_benefit", "net_benefit_difference")
FEWEST_REPLICATES = 2  # that have a spread


def net_benefit_table(
    params: ThresholdSweepParameters, counts: Mapping[str, pl.DataFrame], curve: pl.DataFrame, clusters: pl.DataFrame
) -> dict[str, pl.DataFrame]:
    """The table, if it is wanted.

    Args:
        params: The parameters.
        counts: The tables of the plan, with bins at all threshold probabilities.
        curve: The curve with the heaviest weights.
        clusters: `clusters_of_groups`.
    """
    probabilities = np.asarray(params.probabilities, dtype=np.float64)
    if not params.net_benefit:
        return {}
    is_given = params.threshold_values is not None  # else bins are scores
    at = [p if is_given else lowest_retrieved(p, params.boundary) for p in params.probabilities]
    crossed = [counts[name] for name in CROSSED if name in counts]
    cube = Cube.of_groups(counts["counts"], at, crossed=crossed, in_time=IN_TIME in counts)
    keys, weighted = list(cube.keys), kind_of_counts(cube.counts) == "weight"
    groups = cube.counts.select(keys).unique(maintain_order=True)
    frame = groups.join(pl.DataFrame({THRESHOLD: at}, schema={THRESHOLD: pl.Float64}), how="cross")
    within = params.cluster is None or cube.within_budget(frame.height, params.drawn_resamples)
    heaviest = {tuple(row[:-2]): row[-2:] for row in curve.select(*keys, *HEAVIEST).unique(keys).iter_rows()}
    tables = []
    for rows, group in cube.beside(frame):
        heavy = heaviest.get(rows.select(keys).row(0), (1.0, 1.0))
        of_group = _Group(probabilities, group, heavy if weighted else None)
        tables.append(rows.with_columns(pl.Series(THRESHOLD, probabilities), *of_group.columns(params, within=within)))
    if not tables:
        return {}
    table = _defined(pl.concat(tables), counts["likelihood"], keys)
    marking = None if params.cluster is None or not params.is_replicated else clusters
    table = with_quality(table, LIMITED, clusters=marking, keys=keys, events=("tp", "fp"))
    return {TABLE: table.join(clusters.select(*keys, *CLUSTERS), on=keys, how="left", nulls_equal=True)}


class _Group:
    """One group at all threshold probabilities."""

    def __init__(self, probabilities: Floats, group: GroupCounts, heaviest: tuple[float, float] | None) -> None:
        self._probabilities, self._heaviest = probabilities, heaviest
        kind = "n" if heaviest is None else "weight"
        self._clusterings = [confusion_of(clustering, kind) for clustering in (group, *group.crossed)]
        self._rows = _summed(confusion_of(group, "n"))
        self._totals = _summed(self._clusterings[0])
        self._weights = None
        if heaviest is not None:
            self._weights = Weights(_summed(confusion_of(group, "squares")), *heaviest)

    @np.errstate(divide="ignore", invalid="ignore")
    def columns(self, params: ThresholdSweepParameters, *, within: bool) -> list[pl.Series | pl.Expr]:
        """The columns of the table but for marks; of weights if there are any.

        Args:
            params: The parameters.
            within: Whether intervals can be computed.
        """
        model, beyond = Payoffs.of_net_benefit(self._probabilities), Payoffs.beyond_all(self._probabilities)
        totals, rows = self._totals, self._rows
        positives = totals.tp + totals.fn
        share = positives / (positives + totals.fp + totals.tn)
        value, more_than_all = model.mean(totals), beyond.mean(totals)
        of_all = value - more_than_all
        values = (value, of_all, value / np.where(share > 0, share, np.nan), np.minimum(value, more_than_all))
        better = np.where(of_all > 0, "all", "none")
        row_counts = {"n": rows.tp + rows.fp + rows.fn + rows.tn, "n_positive": rows.tp + rows.fn}
        row_counts |= {"tp": rows.tp, "fp": rows.fp}
        return [
            *(pl.Series(name, count, dtype=pl.Int64) for name, count in row_counts.items()),
            *(doubles(name, column) for name, column in zip(RATIOS, values, strict=True)),
            pl.Series("better", better, dtype=pl.String),
            *self._limits(model, beyond, params, within=within),
        ]

    def _limits(
        self, model: Payoffs, beyond: Payoffs, params: ThresholdSweepParameters, *, within: bool
    ) -> list[pl.Series] | list[pl.Expr]:
        if not params.is_replicated or not within:
            return no_limits(LIMITED, "budget" if params.is_replicated else "none")
        replicates = min(len(clustering.tp) for clustering in self._clusterings)
        if params.cluster is not None and replicates < FEWEST_REPLICATES:
            return no_limits(LIMITED, "one_replicate")
        of_model, of_beyond = (self._limits_of(payoffs, params) for payoffs in (model, beyond))
        limits = (of_model, of_smaller(of_model, of_beyond))
        intervals = (Interval.of(of_mean, "undefined_ratio") for of_mean in limits)
        return list(limit_columns(dict(zip(LIMITED, intervals, strict=True))))

    def _limits_of(self, payoffs: Payoffs, params: ThresholdSweepParameters) -> Limits:
        if params.cluster is None:
            return payoffs.limits_of_rows(self._totals, self._weights, params.confidence)
        counts, *crossed = self._clusterings
        return payoffs.limits_of_clusters(
            counts, params.confidence, heaviest=self._heaviest, crossed=crossed, resampling=params.resampling
        )


def _summed(counts: Confusion) -> Confusion:
    return Confusion(*(side.sum(axis=0).astype(np.float64) for side in (counts.tp, counts.fp, counts.fn, counts.tn)))


def _defined(table: pl.DataFrame, likelihood: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """The table with `undefined`; all numbers are NULL in groups with a score that is no probability."""
    outside = likelihood.group_by(list(keys)).agg((pl.col("n_outside").sum() > 0).alias("_is_outside"))
    table = table.join(outside, on=list(keys), how="left", nulls_equal=True, maintain_order="left")
    is_outside = pl.col("_is_outside").fill_null(value=False)
    reason = (
        pl.when(is_outside)
        .then(pl.lit("no_probability"))
        .when(pl.col("net_benefit").is_null())
        .then(pl.lit("no_row"))
        .when(pl.col("standardized_net_benefit").is_null())
        .then(pl.lit("no_positive"))
    )
    names = (*RATIOS, *limit_names(LIMITED), "better")
    because = pl.when(is_outside).then(pl.lit("undefined_ratio")).otherwise("undefined_interval")
    return table.with_columns(
        reason.alias("undefined"),
        because.alias("undefined_interval"),
        *(pl.when(~is_outside).then(name).alias(name) for name in names),
    ).drop("_is_outside")
