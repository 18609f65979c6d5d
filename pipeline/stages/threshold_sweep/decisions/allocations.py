"""The table threshold_sweep_allocations: how many of the alerts that all groups share each group gets."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import polars as pl

from ....metrics.curves.allocation import NOTHING, allocate
from ....metrics.curves.operating_points import CRITERION
from ....tables.columns import by_group
from ....tables.ratios import divide
from ....tables.schemas import GROUPING
from ....tables.sweep import THRESHOLD
from ..uncertainty import CONFUSION

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ....metrics.curves.operating_points import Criterion
    from ..contract import ThresholdSweepParameters

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
