"""Estimated precision beside that of gold pairs: their difference, with an interval over events."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from pipeline.metrics.uncertainty.jackknife import covariance, leave_one_out, t_quantile
from pipeline.plan.count_tables import REPLICATE
from pipeline.stages.before_after.uncertainty import BUDGET, group_counts
from pipeline.tables.sweep import THRESHOLD

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from pipeline.stages.before_after.contract import BeforeAfterParameters
    from pipeline.stages.before_after.uncertainty import GroupCounts

NAMES = ("precision_difference", "precision_difference_lower", "precision_difference_upper")


def with_difference(
    table: pl.DataFrame,
    curve: pl.DataFrame,
    counts: Mapping[str, pl.DataFrame],
    keys: Sequence[str],
    params: BeforeAfterParameters,
) -> pl.DataFrame:
    """The table `before_after_gold` with the difference at the level of matches.

    Both numbers come from the same events, so the jackknife leaves out an event's pairs and its gold pairs together.
    NULL at the level of articles, without replicates, and where one of the two is undefined.

    Args:
        table: The table without the difference.
        curve: Estimates, one row per group × threshold.
        counts: The count tables `counts` and `gold`.
        keys: Columns that identify a group.
        params: The parameters of the stage.
    """
    within = curve.height * counts["counts"][REPLICATE].n_unique() <= BUDGET
    if "gold" not in counts or params.uncertainty == "none" or not within:
        return table.with_columns(pl.lit(None, dtype=pl.Float64).alias(name) for name in NAMES)
    gold = counts["gold"].filter(pl.col("level") == "match", pl.col(THRESHOLD).is_not_null())
    parts = {part.select(keys).row(0): part for part in gold.partition_by(list(keys))}
    found = [
        group.rows.select(*keys, THRESHOLD).with_columns(
            pl.lit("match").alias("level"), *_difference(group, part, params)
        )
        for group in group_counts(curve, counts["counts"], keys, params)
        if (part := parts.get(group.rows.select(keys).row(0))) is not None
    ]
    if not found:
        return table.with_columns(pl.lit(None, dtype=pl.Float64).alias(name) for name in NAMES)
    return table.join(pl.concat(found), on=[*keys, THRESHOLD, "level"], how="left", nulls_equal=True)


def _difference(group: GroupCounts, gold: pl.DataFrame, params: BeforeAfterParameters) -> list[pl.Series]:
    found = _at_or_above(group, gold, above_own=params.threshold_values is None and not params.inclusive)
    arrays = [group.swept["m_before"], group.swept["m_after"], *found]
    pairs = [group.totals["n_before"][:, None], group.totals["n_after"][:, None]]
    full = _of_totals(*(each.sum(axis=0).astype(np.float64) for each in (*arrays, *pairs)))
    if len(group.replicates) < 2:  # noqa: PLR2004 - a spread needs two
        half = np.full(len(full), np.nan)
    else:
        rest = _of_totals(*(leave_one_out(each) for each in (*arrays, *pairs)))
        half = t_quantile(params.confidence, len(group.replicates) - 1) * np.sqrt(covariance(rest))
    values = (full, full - half, full + half)
    return [pl.Series(name, value, dtype=pl.Float64).fill_nan(None) for name, value in zip(NAMES, values, strict=True)]


def _of_totals(
    m_before: NDArray[np.float64],
    m_after: NDArray[np.float64],
    tp: NDArray[np.float64],
    fp: NDArray[np.float64],
    n_before: NDArray[np.float64],
    n_after: NDArray[np.float64],
) -> NDArray[np.float64]:
    with np.errstate(divide="ignore", invalid="ignore"):
        difference = (1 - m_before / n_before * n_after / m_after) - tp / (tp + fp)
    return np.where(np.isfinite(difference), difference, np.nan)


def _at_or_above(group: GroupCounts, gold: pl.DataFrame, *, above_own: bool) -> list[NDArray[np.int64]]:
    """True and false gold-judged pairs retrieved at every threshold, by replicate."""
    thresholds = group.rows[THRESHOLD].to_numpy()
    place = np.searchsorted(group.replicates, gold[REPLICATE].to_numpy())
    bins = np.searchsorted(thresholds, gold[THRESHOLD].to_numpy(), side="right") - 1
    inside = bins >= 0
    tables = []
    for name in ("tp", "fp"):
        table = np.zeros((len(group.replicates), len(thresholds)), dtype=np.int64)
        np.add.at(table, (place[inside], bins[inside]), gold[name].to_numpy()[inside])
        tables.append(table[:, ::-1].cumsum(axis=1)[:, ::-1] - (table if above_own else np.zeros_like(table)))
    return tables
