"""The tables of threshold_sweep at another prevalence: all thresholds, and the operating points chosen there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from ....metrics.curves.decisions import Rate, Rates, correlation_of_rates
from ....metrics.curves.operating_points import CRITERION, Outcomes, RowValues, pick
from ....metrics.uncertainty.interval_quality import INTERVAL_QUALITY
from ....metrics.uncertainty.limits import UNDEFINED_INTERVAL, limit_names, limit_series
from ....tables.columns import THRESHOLD, divide, doubles, nulls
from ..uncertainty import confusion_of, kind_of_counts
from .costs import COST_PER_ROW

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ....metrics.curves.operating_points import Criterion
    from ....metrics.uncertainty.cube import Cube
    from ..contract import ThresholdSweepParameters

TABLES = ("threshold_sweep_at_prevalence", "threshold_sweep_points_at_prevalence")
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
    return dict(zip(TABLES, (table.drop(_CORRELATION), of_points.drop(_CORRELATION)), strict=True))


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
