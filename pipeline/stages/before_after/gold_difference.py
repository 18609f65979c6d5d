"""Estimated precision beside that of gold pairs: their difference, with an interval over events."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from ...metrics.before_after.sums import Sums
from ...metrics.uncertainty.cube import jackknifed
from ...metrics.uncertainty.jackknife import covariance, t_quantile
from ...metrics.uncertainty.limits import with_quality
from ...tables.columns import by_group, doubles, nulls
from ...tables.sweep import THRESHOLD
from . import marks
from .uncertainty import groups_of

if TYPE_CHECKING:
    from ...metrics.uncertainty.cube import Cube
    from ...metrics.uncertainty.jackknife import Floats
    from .contract import BeforeAfterParameters
    from .uncertainty import EstimatedGroup

NAMES = ("precision_difference", "precision_difference_lower", "precision_difference_upper")


def with_difference(
    table: pl.DataFrame, curve: pl.DataFrame, cube: Cube, gold: pl.DataFrame, params: BeforeAfterParameters
) -> pl.DataFrame:
    """The table `before_after_gold` with the difference at the level of matches.

    Both numbers come from the same events, so the jackknife leaves out an event's pairs and its gold pairs together.
    NULL at the level of articles, without replicates, and where one of the two is undefined.

    Args:
        table: The table without the difference.
        curve: Estimates, one row per group × threshold.
        cube: The counts that the estimates rest on.
        gold: The count table `gold`.
        params: The parameters of the stage.
    """
    parents = marks.clusters(cube, params, crossed=False)
    compared = _joined(table, curve, cube, gold, params)
    return with_quality(compared, NAMES[:1], clusters=parents, keys=cube.keys, events=("tp", "fp"))


def _joined(
    table: pl.DataFrame, curve: pl.DataFrame, cube: Cube, gold: pl.DataFrame, params: BeforeAfterParameters
) -> pl.DataFrame:
    """The table with the difference and its limits."""
    if params.uncertainty == "none" or not cube.within_budget(curve.height):
        return table.with_columns(nulls(NAMES))
    keys = list(cube.keys)
    matches = by_group(gold.filter(pl.col("level") == "match", pl.col(THRESHOLD).is_not_null()), keys)
    groups = ((group, matches.get(group.rows.select(keys).row(0))) for group in groups_of(curve, cube))
    frames = [
        group.rows.select(*keys, THRESHOLD).with_columns(
            pl.lit("match").alias("level"), *_difference(group, annotated, params)
        )
        for group, annotated in groups
        if annotated is not None
    ]
    if not frames:
        return table.with_columns(nulls(NAMES))
    return table.join(pl.concat(frames), on=[*keys, THRESHOLD, "level"], how="left", nulls_equal=True)


def _difference(group: EstimatedGroup, gold: pl.DataFrame, params: BeforeAfterParameters) -> list[pl.Series]:
    """The difference and its limits at every threshold of a group."""
    m_before, m_after, n_before, n_after = group.sides
    annotated = group.counts.with_counts(gold)
    tp, fp = annotated.at_or_above("tp"), annotated.at_or_above("fp")
    counts = (m_before, m_after, n_before[:, None], n_after[:, None], tp, fp)

    def difference_of(*totals: Floats) -> Floats:
        return _of_totals(Sums.of(group.reference, params.recall_reference.middle, totals[:4]), *totals[4:])

    if len(n_before) < 2:  # noqa: PLR2004 - a spread needs two
        difference = difference_of(*(count.sum(axis=0).astype(np.float64) for count in counts))
        half = np.full(len(difference), np.nan)
    else:
        difference, without_each = jackknifed(difference_of, *counts)
        half = t_quantile(params.confidence, len(n_before) - 1) * np.sqrt(covariance(without_each))
    values = (difference, difference - half, difference + half)
    return [doubles(name, column) for name, column in zip(NAMES, values, strict=True)]


def _of_totals(sums: Sums, tp: Floats, fp: Floats) -> Floats:
    """Estimated precision minus that of the gold pairs; nan where one of them is undefined."""
    with np.errstate(divide="ignore", invalid="ignore"):
        is_possible = (sums.tp_reference > 0) & sums.is_possible
        difference = np.where(is_possible, sums.precision, np.nan) - tp / (tp + fp)
    return np.where(np.isfinite(difference), difference, np.nan)
