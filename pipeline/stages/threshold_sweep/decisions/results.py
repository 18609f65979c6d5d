"""What threshold_sweep has for decisions: costs, net benefit, groups put together, and other prevalences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from ....metrics.curves.decisions import Payoffs, Rate, Rates, correlation_of_rates, of_smaller
from ....metrics.curves.operating_points import CRITERION, Outcomes, RowValues, pick
from ....metrics.uncertainty.cube import Cube
from ....metrics.uncertainty.interval_quality import INTERVAL_QUALITY
from ....metrics.uncertainty.limits import (
    UNDEFINED_INTERVAL,
    Interval,
    limit_columns,
    limit_names,
    limit_series,
    no_limits,
    with_quality,
)
from ....metrics.uncertainty.proportions import Confusion, Weights
from ....tables.columns import IN_TIME, THRESHOLD, divide, doubles, lowest_retrieved, nulls
from ..areas import CLUSTERS
from ..contract import CROSSED, HEAVIEST
from ..uncertainty import confusion_of, kind_of_counts
from .costs import COST_PER_ROW, CUT, Cuts, with_cost_per_row
from .pooled_points import Swept, pooled_tables

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ....metrics.curves.operating_points import Criterion
    from ....metrics.uncertainty.cube import GroupCounts
    from ....metrics.uncertainty.jackknife import Floats, Limits
    from ..contract import ThresholdSweepParameters


# The table threshold_sweep_net_benefit: decision curves of scores that are probabilities.
#
# Who acts by a threshold probability acts on the rows that the boundary of the stage retrieves: from it on, or above
# it.


NET_BENEFIT = "threshold_sweep_net_benefit"
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
    return {NET_BENEFIT: table.join(clusters.select(*keys, *CLUSTERS), on=keys, how="left", nulls_equal=True)}


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


# The tables of threshold_sweep at another prevalence: all thresholds, and the operating points chosen there.


AT_PREVALENCE = ("threshold_sweep_at_prevalence", "threshold_sweep_points_at_prevalence")
PREVALENCE, NPV, ALERT_SHARE = "prevalence", "negative_predictive_value", "alert_share"
RATES = ("recall", "fpr")
_CORRELATION = "_correlation"


def tables_at_prevalence(params: ThresholdSweepParameters, cube: Cube, curve: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Both tables, if a prevalence is asked for.

    Args:
        params: The parameters.
        cube: The counts.
        curve: The curve, with the limits of recall and of the false positive rate.
    """
    if not params.prevalences:
        return {}
    keys = list(cube.keys)
    names = [THRESHOLD, *RATES, *limit_names(RATES), "undefined", UNDEFINED_INTERVAL, INTERVAL_QUALITY]
    rows = _with_correlation(curve, cube, params).select(*keys, *names, _CORRELATION)
    table = pl.concat(_at(rows, prevalence) for prevalence in params.prevalences)
    points = [_point(table, [*keys, PREVALENCE], criterion, params) for criterion in criteria_at_prevalence(params)]
    of_points = pl.concat(points) if points else _costs(table.clear().with_columns(nulls([CRITERION], pl.String)), None)
    return dict(zip(AT_PREVALENCE, (table.drop(_CORRELATION), of_points.drop(_CORRELATION)), strict=True))


def criteria_at_prevalence(params: ThresholdSweepParameters) -> list[Criterion]:
    """The criteria that rates and a share of positives decide: no number of alerts, and no promise."""
    return [point for point in params.operating_points if point.max_alerts is None and point.confidence is None]


def _with_correlation(curve: pl.DataFrame, cube: Cube, params: ThresholdSweepParameters) -> pl.DataFrame:
    """The curve with the correlation of the errors of both rates; 0 where rows are independent, or nothing is given."""
    if params.cluster is None or not params.is_replicated or not cube.within_budget(curve.height):
        return curve.with_columns(pl.lit(0.0).alias(_CORRELATION))
    kind, frames = kind_of_counts(cube.counts), []
    for rows, group in cube.beside(curve):
        clusterings = [confusion_of(clustering, kind) for clustering in (group, *group.crossed)]
        has_spread = min(len(clustering.tp) for clustering in clusterings) > 1
        correlation = correlation_of_rates(clusterings) if has_spread else np.zeros(rows.height)
        frames.append(rows.with_columns(pl.Series(_CORRELATION, correlation)))
    return pl.concat(frames) if frames else curve.with_columns(pl.lit(0.0).alias(_CORRELATION))


def _rates(rows: pl.DataFrame) -> Rates:
    def rate(name: str) -> Rate:
        columns = (rows[column].cast(pl.Float64) for column in (name, *limit_names([name])))
        return Rate(*(column.to_numpy() for column in columns))

    return Rates(rate("recall"), rate("fpr"), rows[_CORRELATION].to_numpy())


@np.errstate(divide="ignore", invalid="ignore")
def _at(rows: pl.DataFrame, prevalence: float) -> pl.DataFrame:
    """The rows of the curve at a prevalence."""
    rates = _rates(rows)
    values = {
        "precision": rates.precision(prevalence),
        "f1": rates.f1(prevalence),
        NPV: rates.negative_predictive_value(prevalence),
    }
    columns = [doubles(name, rate.value) for name, rate in values.items()]
    columns += [side for name, rate in values.items() for side in limit_series(name, (rate.lower, rate.upper))]
    undefined = pl.when(pl.col("undefined").is_not_null() | (pl.col(ALERT_SHARE) > 0)).then("undefined")
    return rows.with_columns(
        pl.lit(prevalence).alias(PREVALENCE), *columns, doubles(ALERT_SHARE, rates.alert_share(prevalence))
    ).with_columns(undefined.otherwise(pl.lit("no_prediction")).alias("undefined"))


def _point(
    table: pl.DataFrame, keys: Sequence[str], criterion: Criterion, params: ThresholdSweepParameters
) -> pl.DataFrame:
    """The row of every group and prevalence that a criterion chooses there."""
    outcomes = _outcomes()
    among, best = RowValues(_f_beta, outcomes, params.boundary).asked(criterion)
    chosen = pick(
        table,
        keys,
        criterion=criterion.text,
        among=among,
        best=best.cast(pl.Float64).fill_nan(None),
        is_given=criterion.is_given,
    )
    return _costs(chosen, criterion)


def _outcomes() -> Outcomes[pl.Expr]:
    """Shares of the outcomes among all rows."""
    positives = pl.col(PREVALENCE)
    negatives = 1 - positives
    recall, fpr = (pl.col(name) for name in RATES)
    return Outcomes(recall * positives, fpr * negatives, (1 - recall) * positives, (1 - fpr) * negatives)


def _f_beta(beta: float) -> pl.Expr:
    counts, square = _outcomes(), beta**2
    return divide((1 + square) * counts.tp, (1 + square) * counts.tp + square * counts.fn + counts.fp)


def _costs(points: pl.DataFrame, criterion: Criterion | None) -> pl.DataFrame:
    """Points with the cost per row of their criterion, if it has costs."""
    names = [COST_PER_ROW, *limit_names([COST_PER_ROW])]
    if criterion is None or criterion.cost is None:
        return points.with_columns(nulls(names))
    frames = []
    for (prevalence,), rows in points.partition_by(PREVALENCE, as_dict=True, maintain_order=True).items():
        filled = rows.with_columns(pl.col(_CORRELATION).fill_null(0.0))
        rate = _rates(filled).cost_per_row(criterion.cost, float(str(prevalence)))
        sides = zip(names, (rate.value, rate.lower, rate.upper), strict=True)
        frames.append(rows.with_columns(doubles(name, values) for name, values in sides))
    return pl.concat(frames)


# The tables that the parameters ask for, and costs.


def decision_tables(
    params: ThresholdSweepParameters, counts: Mapping[str, pl.DataFrame], swept: Swept
) -> dict[str, pl.DataFrame]:
    """The tables that the parameters ask for.

    Args:
        params: The parameters.
        counts: The tables of the plan, as they were counted.
        swept: What has been derived from them.
    """
    return {
        **pooled_tables(params, swept),
        **net_benefit_table(params, counts, swept.curve, swept.clusters),
        **tables_at_prevalence(params, swept.cube, swept.curve),
    }


def with_costs(points: pl.DataFrame, cube: Cube, params: ThresholdSweepParameters, *, within: bool) -> pl.DataFrame:
    """Operating points with their cost per row, if a criterion has costs.

    Args:
        points: As from `choices.operating_points`, with the squares and the heaviest weights of the curve.
        cube: The counts.
        params: The parameters.
        within: Whether intervals between clusters can be computed.
    """
    labels = [*cube.keys, CRITERION]

    def cuts() -> Cuts:
        return Cuts.of(cube, points.with_columns(pl.col(THRESHOLD).alias(CUT)), labels)

    return with_cost_per_row(points, labels, params, cuts if within else None)


def at_own_thresholds(
    params: ThresholdSweepParameters, counts: Mapping[str, pl.DataFrame]
) -> Mapping[str, pl.DataFrame]:
    """The tables of the plan with bins at the thresholds of the stage, where threshold probabilities cut finer."""
    values = params.threshold_values
    if values is None or len(params.counted_thresholds or ()) == len(values):
        return counts
    names = [name for name in ("counts", *CROSSED) if name in counts]
    return {**counts, **{name: _in_bins_of(counts[name], values) for name in names}}


def _in_bins_of(counts: pl.DataFrame, thresholds: tuple[float, ...]) -> pl.DataFrame:
    """Counts whose bins begin at the highest threshold that is not above them; NULL below all."""
    thresholds_of_stage = pl.DataFrame({"_own": thresholds}, schema={"_own": pl.Float64})
    edges = counts.select(THRESHOLD).unique().drop_nulls().sort(THRESHOLD)
    joined = edges.join_asof(
        thresholds_of_stage, left_on=THRESHOLD, right_on="_own", strategy="backward", coalesce=False
    )
    names = counts.columns
    moved = counts.join(joined, on=THRESHOLD, how="left", maintain_order="left")
    return moved.with_columns(pl.col("_own").alias(THRESHOLD)).select(names)
