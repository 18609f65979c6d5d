"""From counts per bin to counts at or above every threshold, for all stages."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Sequence

REPLICATE, THRESHOLD = "replicate", "threshold"
IN_TIME = "clusters_in_time"  # frame that is there if replicates follow each other in time
SECOND_REPLICATE = "second_replicate"  # that of the second parent of rows that have two
Boundary = Literal[">=", ">"]
"""Whether a threshold retrieves a score that equals it: with `>=` it does, with `>` it does not."""


def lowest_retrieved(threshold: float, boundary: Boundary) -> float:
    """The lowest score that a threshold retrieves."""
    return threshold if boundary == ">=" else math.nextafter(threshold, math.inf)


def add_up(counts: pl.DataFrame, keys: Sequence[str], values: Sequence[str]) -> pl.DataFrame:
    """Sum integer counts by keys; counts add up over files, replicates and bins."""
    if not keys:
        return counts.select(pl.col(values).sum())
    return counts.group_by(keys, maintain_order=False).agg(pl.col(values).sum())


def at_or_above(
    counts: pl.DataFrame,
    keys: Sequence[str],
    values: Sequence[str],
    thresholds: Sequence[float] | None,
    boundary: Boundary = ">=",
) -> pl.DataFrame:
    """Return the counts at or above every threshold: running sums over the bins from the highest down.

    Args:
        counts: Columns `keys`, `threshold` (lower edge of the bin; NULL below all thresholds) and `values` (BIGINT).
        keys: Columns that identify a group; NULL is a value like any other.
        values: The counts to add up.
        thresholds: Every group gets a row for each; None: a group gets a row for each of its own bins.
        boundary: Without thresholds, where bins are scores: whether a score equal to the threshold is retrieved. With
            thresholds the bins have been made by their boundary.

    Returns:
        One row per group × threshold, columns `keys`, `threshold`, `values`; groups without any count in the bins get
        zeros when thresholds are given.
    """
    per_bin = add_up(counts.filter(pl.col(THRESHOLD).is_not_null()), [*keys, THRESHOLD], values)
    if thresholds is not None:
        groups = counts.select(keys).unique()
        frame = groups.join(pl.DataFrame({THRESHOLD: thresholds}, schema={THRESHOLD: pl.Float64}), how="cross")
        per_bin = frame.join(per_bin, on=[*keys, THRESHOLD], how="left", nulls_equal=True)
        per_bin = per_bin.with_columns(pl.col(values).fill_null(0))
    descending = per_bin.sort([*keys, THRESHOLD], descending=[False] * len(keys) + [True], nulls_last=True)
    sums = descending.with_columns(pl.col(values).cum_sum().over(keys))
    if thresholds is not None or boundary == ">=":
        return sums
    return sums.with_columns(sums[name] - descending[name] for name in values)
