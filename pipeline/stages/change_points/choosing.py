"""What the criteria of change_points choose from: limits and counts by fold of every group."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from ...metrics.curves.cross_fitting import FOLDS
from ...metrics.curves.operating_points import Candidates, Outcomes
from ...tables.columns import THRESHOLD, divide
from .uncertainty import limits_of, retrieved

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ...metrics.curves.cross_fitting import Ints
    from ...metrics.uncertainty.cube import Cube, GroupCounts
    from ...metrics.uncertainty.jackknife import Floats, Limits
    from .contract import ChangePointsParameters


IGNORED = "n_ignored"


def candidates(curve: pl.DataFrame, cube: Cube, params: ChangePointsParameters) -> Iterator[Candidates]:
    """Every group of a curve whose rows have a threshold."""
    wanted = params.is_replicated
    promises = wanted and cube.within_budget(curve.height)
    is_mean = params.annotators == "tcpd"
    for rows, group in cube.beside(curve):

        def lower(name: str, confidence: float, group: GroupCounts = group) -> Floats:
            limits = limits_of(group, params, confidence)
            return limits[name][0] if name in limits else np.full(len(group.thresholds), np.nan)

        yield Candidates(
            rows=rows,
            lower=lower if promises else None,
            retrieved=rows["n_predicted"].to_numpy().astype(np.float64),
            counts=_by_fold(group) if wanted else "none",
            ratios=_of_mean_recall if is_mean else _of_points,
            f_beta=_f_beta_of_mean_recall if is_mean else _f_beta_of_points,
            outcomes=_outcomes,
            at_folds=partial(_limits, group, params) if promises else None,
        )


def _limits(
    group: GroupCounts, params: ChangePointsParameters, chosen: Ints, _pooled: Sequence[Floats]
) -> dict[str, Limits]:
    """Limits of the ratios of a group whose folds have thresholds of their own."""
    return limits_of(group, params, params.confidence, params.resampling, chosen)


def _by_fold(group: GroupCounts) -> Sequence[Floats]:
    """True positives, predictions, true points, sums of recalls, series, and ignored repeats, by fold and threshold."""
    folds = group.in_folds(FOLDS)
    tp, predicted = retrieved(folds, "tp", "tp_always"), retrieved(folds, "n_predicted", "n_always")
    recalls, ignored = retrieved(folds, "recall_sum", "recall_always"), retrieved(folds, IGNORED, f"{IGNORED}_always")
    totals = (np.broadcast_to(folds.totals(name)[:, None], tp.shape) for name in ("n_true", "n_series"))
    n_true, n_series = totals
    return tp, predicted, n_true, recalls, n_series, ignored


def _outcomes(counts: Sequence[Floats]) -> Outcomes[Floats]:
    """True positives, false positives, misses and ignored repeats of counts of points."""
    tp, predicted, n_true, _, _, ignored = counts
    return Outcomes(tp, predicted - tp, n_true - tp, neither=ignored)


@np.errstate(divide="ignore", invalid="ignore")
def _of_points(counts: Sequence[Floats]) -> tuple[Floats, Floats]:
    """Precision and recall of counts of points."""
    tp, predicted, n_true = counts[:3]
    return tp / predicted, tp / n_true


@np.errstate(divide="ignore", invalid="ignore")
def _f_beta_of_points(counts: Sequence[Floats], beta: float) -> Floats:
    """F-beta of counts of points."""
    tp, predicted, n_true = counts[:3]
    square = beta**2
    return (1 + square) * tp / (square * n_true + predicted)


@np.errstate(divide="ignore", invalid="ignore")
def _of_mean_recall(counts: Sequence[Floats]) -> tuple[Floats, Floats]:
    """Precision and recall where recall is a mean over series."""
    tp, predicted, _, recalls, n_series = counts[:5]
    return tp / predicted, recalls / n_series


@np.errstate(divide="ignore", invalid="ignore")
def _f_beta_of_mean_recall(counts: Sequence[Floats], beta: float) -> Floats:
    """The weighted harmonic mean of these two."""
    (precision, recall), square = _of_mean_recall(counts), beta**2
    mean = (1 + square) * precision * recall / (square * precision + recall)
    return np.where(precision + recall == 0, 0.0, mean)


def outcomes() -> Outcomes[pl.Expr]:
    """True positives, false positives, misses and ignored repeats of a row of the curve."""
    tp, predicted, n_true, ignored = (
        pl.col(name).cast(pl.Float64) for name in ("tp", "n_predicted", "n_true", IGNORED)
    )
    return Outcomes(tp, predicted - tp, n_true - tp, neither=ignored)


def with_ignored(curve: pl.DataFrame, cube: Cube) -> pl.DataFrame:
    """A curve with the alarms at or above its thresholds that count neither as true nor as false, as `IGNORED`."""
    keys, always = list(cube.keys), f"{IGNORED}_always"
    swept = curve.join(cube.at_or_above([IGNORED]), on=[*keys, THRESHOLD], how="left", nulls_equal=True)
    joined = swept.join(cube.totals([always]), on=keys, how="left", nulls_equal=True)
    return joined.with_columns(pl.col(IGNORED).fill_null(0) + pl.col(always)).drop(always)


def f_beta(params: ChangePointsParameters, beta: float) -> pl.Expr:
    """F-beta of a row of the curve."""
    square = beta**2
    if params.annotators != "tcpd":
        tp, predicted, n_true = (pl.col(name).cast(pl.Float64) for name in ("tp", "n_predicted", "n_true"))
        return divide((1 + square) * tp, square * n_true + predicted)
    precision, recall = pl.col("precision"), pl.col("recall")
    mean = divide((1 + square) * precision * recall, square * precision + recall)
    return pl.when(precision + recall == 0).then(0.0).otherwise(mean)
