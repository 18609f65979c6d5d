"""Intervals of the curve of change_points: series, or clusters of them, are independent."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import polars as pl

from pipeline.metrics.uncertainty.proportions import Confusion, intervals_of_clusters
from pipeline.plan.count_tables import REPLICATE
from pipeline.stages.change_points.contract import COUNT_NAMES, RATIOS
from pipeline.tables.sweep import THRESHOLD

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from pipeline.metrics.uncertainty.proportions import Limits
    from pipeline.stages.change_points.contract import ChangePointsParameters

    Floats: TypeAlias = NDArray[np.float64]

BUDGET = 50_000_000
_ROUNDING = 1e-9
_SWEPT = {"n_predicted": "n_always", "tp": "tp_always", "recall_sum": "recall_always"}


def with_intervals(
    curve: pl.DataFrame, counts: pl.DataFrame, keys: Sequence[str], params: ChangePointsParameters
) -> pl.DataFrame:
    """The curve with `<ratio>_lower`, `<ratio>_upper` and `undefined_interval`."""
    if params.uncertainty == "none":
        return curve.with_columns(*_none("none"))
    if curve.height * counts[REPLICATE].n_unique() > BUDGET:
        return curve.with_columns(*_none("budget"))
    table = counts.with_columns(pl.col(COUNT_NAMES).cast(pl.Float64))
    replicates = {part.select(keys).row(0): part for part in table.partition_by(list(keys))}
    parts = [
        part.with_columns(*_of_group(part, replicates[part.select(keys).row(0)], params))
        for part in curve.sort([*keys, THRESHOLD]).partition_by(list(keys), maintain_order=True)
    ]
    return pl.concat(parts) if parts else curve.with_columns(*_none("none"))


def _of_group(curve: pl.DataFrame, counts: pl.DataFrame, params: ChangePointsParameters) -> Iterator[pl.Series]:
    """Limits of one group, thresholds rising.

    Under `any` a prediction may serve several true points, so precision and F1 are no proportions; under `tcpd` F1 is
    none, because precision and recall count different things.
    """
    swept, totals = _replicates(curve[THRESHOLD].to_numpy(), counts, params)
    nothing = np.zeros_like(swept["tp"])
    wrong, missed = swept["n_predicted"] - swept["tp"], totals["n_true"] - swept["tp"]
    found: dict[str, Limits] = {}
    with_all = (wrong >= 0).all() and params.rule != "any"
    if with_all:
        found = intervals_of_clusters(Confusion(swept["tp"], wrong, missed, nothing), params.confidence)
    if params.annotators == "tcpd":
        recalled = swept["recall_sum"]
        own = Confusion(recalled, nothing, np.maximum(totals["n_series"] - recalled, 0.0), nothing)
        lower, upper = intervals_of_clusters(own, params.confidence)["recall"]
        shown = (upper - lower > _ROUNDING) | np.isnan(upper - lower)  # equal series show no variance but rounding
        found["recall"] = (np.where(shown, lower, np.nan), np.where(shown, upper, np.nan))
        found.pop("f1", None)
    elif not with_all:
        own = Confusion(swept["tp"], nothing, missed, nothing)
        found["recall"] = intervals_of_clusters(own, params.confidence)["recall"]
    yield from _columns(found, curve, one_replicate=len(totals["n_true"]) < 2)  # noqa: PLR2004 - a spread needs two


def _replicates(
    thresholds: Floats, counts: pl.DataFrame, params: ChangePointsParameters
) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """Counts of every replicate at or above every threshold (G, K), and those without a threshold (G, 1)."""
    edge = counts[THRESHOLD].to_numpy()
    known = np.flatnonzero(~np.isnan(edge))
    names, replicate = np.unique(counts[REPLICATE].to_numpy(), return_inverse=True)
    bins = np.searchsorted(thresholds, edge[known])
    totals = {}
    for name in COUNT_NAMES:
        totals[name] = np.zeros((len(names), 1))
        totals[name][:, 0] = np.bincount(replicate, weights=counts[name].to_numpy(), minlength=len(names))
    swept = {}
    for name, always in _SWEPT.items():
        cells = np.zeros((len(names), len(thresholds)))
        np.add.at(cells, (replicate[known], bins), counts[name].to_numpy()[known])
        above = cells[:, ::-1].cumsum(axis=1)[:, ::-1]
        exclusive = params.threshold_values is None and not params.inclusive
        swept[name] = (above - cells if exclusive else above) + totals[always]
    return swept, totals


def _columns(found: dict[str, Limits], curve: pl.DataFrame, *, one_replicate: bool) -> Iterator[pl.Series]:
    gone, missing, undefined = (np.zeros(curve.height, dtype=bool) for _ in range(3))
    for name in RATIOS:
        limits = found.get(name)
        gone |= limits is None
        undefined |= curve[name].is_null().to_numpy()
        for side in (0, 1):
            values = np.full(curve.height, np.nan) if limits is None else limits[side]
            yield pl.Series(f"{name}_{('lower', 'upper')[side]}", values, dtype=pl.Float64).fill_nan(None)
            missing |= np.isnan(values)
    reason = np.where(gone, "not_a_proportion", np.where(undefined, "undefined_ratio", "no_limit"))
    if one_replicate:
        reason = np.full(curve.height, "one_replicate")
    words = [str(why) if each else None for why, each in zip(reason, missing, strict=True)]
    yield pl.Series("undefined_interval", words, dtype=pl.String)


def _none(reason: str) -> list[pl.Expr]:
    names = [f"{name}_{side}" for name in RATIOS for side in ("lower", "upper")]
    return [*(pl.lit(None, dtype=pl.Float64).alias(name) for name in names), pl.lit(reason).alias("undefined_interval")]
