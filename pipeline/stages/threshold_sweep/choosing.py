"""What the criteria of threshold_sweep choose from: limits and counts by fold of every group."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from ...metrics.curves.choices import Candidates, f_beta_of_counts, ratios_of_counts
from ...metrics.curves.cross_fitting import FOLDS, at_choices, split_rows
from ...metrics.curves.outcome_counts import Outcomes
from ...metrics.uncertainty.proportions import Confusion, Weights, intervals_of_clusters, intervals_of_rows
from ...tables.ratios import RATIOS
from .contract import HEAVIEST
from .uncertainty import (
    CONFUSION,
    confusion_of,
    counts_of_clusters,
    limits_of_clusters,
    limits_of_rows,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ...metrics.curves.cross_fitting import Ints
    from ...metrics.uncertainty.cube import Cube, GroupCounts
    from ...metrics.uncertainty.jackknife import Floats, Limits
    from .contract import ThresholdSweepParameters


def candidates(curve: pl.DataFrame, cube: Cube, params: ThresholdSweepParameters) -> Iterator[Candidates]:
    """Every group of the curve, with the working columns of squares and heaviest weights.

    A promise allows for other class sizes, whatever `class_sizes` says, as the next data may have others.
    """
    within_budget = params.cluster is None or cube.within_budget(curve.height)
    promises = params.is_replicated and within_budget
    any_weight = curve["tp_weight"].null_count() < curve.height
    for rows, group in cube.beside(curve):

        def lower(name: str, confidence: float, rows: pl.DataFrame = rows, group: GroupCounts = group) -> Floats:
            if params.cluster is None:
                return limits_of_rows(rows, confidence, [name], fixed_sizes=False)[name][0]
            return limits_of_clusters(rows, group, confidence, [name])[name][0]

        is_split = params.cluster is None or params.uncertainty != "none"
        counts = _by_fold(rows, group, params, weighted=any_weight) if is_split else None
        yield Candidates(
            rows=rows,
            lower=lower if promises else None,
            retrieved=(rows["tp"] + rows["fp"]).to_numpy().astype(np.float64),
            counts="none" if counts is None else counts,
            ratios=ratios_of_counts,
            f_beta=f_beta_of_counts,
            outcomes=lambda counts: Outcomes(*counts),
            **_limits(rows, group, params, counts) if promises and counts is not None else {},
        )


def _limits(
    rows: pl.DataFrame, group: GroupCounts, params: ThresholdSweepParameters, counts: Sequence[Floats]
) -> dict[str, Callable[..., Any]]:
    """How `Candidates` has its limits."""
    if params.cluster is not None:
        return {"at_folds": partial(_limits_of_clusters, rows, group, params)}
    weighted = rows["tp_weight"].null_count() < rows.height
    at_folds = partial(_weights_at_folds, rows, counts) if weighted else _counts_at_folds
    return {"at_folds": at_folds, "limits": partial(_limits_of_rows, params)}


def _counts_at_folds(_chosen: Ints, pooled: Sequence[Floats]) -> Sequence[Floats]:
    """The outcomes of independent rows whose folds have thresholds of their own."""
    return pooled


def _weights_at_folds(
    rows: pl.DataFrame, weights: Sequence[Floats], chosen: Ints, _pooled: Sequence[Floats]
) -> list[Floats]:
    """The same of weights, their squares, and the heaviest ones."""
    heaviest = [rows[name][:1].to_numpy() for name in HEAVIEST]
    return [at_choices(side, chosen).sum(axis=0) for side in (*weights, *_of_rows(rows, "_squares"))] + heaviest


def _limits_of_rows(params: ThresholdSweepParameters, at_folds: Sequence[Sequence[Floats]]) -> dict[str, Limits]:
    """Limits of the ratios of several groups, from `_counts_at_folds` or `_weights_at_folds`."""
    counts = [np.concatenate(sides) for sides in zip(*at_folds, strict=True)]
    squares = counts[len(CONFUSION) :]
    weights = Weights(Confusion(*squares[: len(CONFUSION)]), *squares[len(CONFUSION) :]) if squares else None
    fixed = params.class_sizes == "fixed"
    outcomes = Confusion(*counts[: len(CONFUSION)])
    return intervals_of_rows(outcomes, weights, params.confidence, fixed_sizes=fixed, names=RATIOS)


def _limits_of_clusters(
    rows: pl.DataFrame,
    group: GroupCounts,
    params: ThresholdSweepParameters,
    chosen: Ints,
    _pooled: Sequence[Floats],
) -> dict[str, Limits]:
    """Limits of the ratios of a group whose folds have thresholds of their own.

    Of two parents the first is in folds; the second, which tells the spread alone, is taken at the middle one of their
    thresholds.
    """
    (first, *crossed), heaviest = counts_of_clusters(rows, group)
    middle = np.full(1, np.sort(chosen)[len(chosen) // 2])
    of_folds, *of_others = (
        Confusion(*(at_choices(side, at) for side in (each.tp, each.fp, each.fn, each.tn)), in_time=each.in_time)
        for each, at in zip((first, *crossed), (chosen, *[middle] * len(crossed)), strict=True)
    )
    resampling = params.resampling
    return intervals_of_clusters(
        of_folds, params.confidence, heaviest=heaviest, names=RATIOS, crossed=of_others, resampling=resampling
    )


def _by_fold(
    rows: pl.DataFrame, group: GroupCounts, params: ThresholdSweepParameters, *, weighted: bool
) -> tuple[Floats, Floats, Floats, Floats]:
    """The four outcomes by fold, or their weights: of clusters, else of rows."""
    if params.cluster is not None:
        counts = confusion_of(group.in_folds(FOLDS), "weight" if weighted else "n")
        return counts.tp, counts.fp, counts.fn, counts.tn
    return _of_rows(rows, "_weight" if weighted else "")


def _of_rows(rows: pl.DataFrame, suffix: str) -> tuple[Floats, Floats, Floats, Floats]:
    """The four outcomes of independent rows by fold, or what the columns with this suffix hold of them."""
    true, positives = _split(rows, ("tp", "fn"), suffix, seed=0)
    false, negatives = _split(rows, ("fp", "tn"), suffix, seed=1)
    return true, false, positives - true, negatives - false


def _split(rows: pl.DataFrame, names: tuple[str, str], suffix: str, *, seed: int) -> tuple[Floats, Floats]:
    """What is retrieved of one class, and all of it, by fold."""
    retrieved, missed = (rows[name].to_numpy() for name in names)
    weights = None
    if suffix:
        heavy, heavy_missed = (rows[f"{name}{suffix}"].to_numpy() for name in names)
        weights = (heavy, float(heavy[0] + heavy_missed[0]))
    return split_rows(retrieved, int(retrieved[0] + missed[0]), weights, seed=seed)


def outcomes() -> Outcomes[pl.Expr]:
    """Outcomes of a row of the curve, of weights if there are any."""
    return Outcomes(*(pl.coalesce(f"{name}_weight", pl.col(name).cast(pl.Float64)) for name in CONFUSION))


def f_beta(beta: float) -> pl.Expr:
    """F-beta of a row of the curve, of weights if there are any."""
    square = beta**2
    counts = outcomes()
    tp, fp, fn = counts.tp, counts.fp, counts.fn
    return (1 + square) * tp / ((1 + square) * tp + square * fn + fp)
