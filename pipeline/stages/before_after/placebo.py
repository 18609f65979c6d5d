"""The table `before_after_placebo`: the near against the far part of the time before the event."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from ...metrics.before_after.intervals import MIN_REPLICATES
from ...metrics.before_after.placebo import placebo, placebo_joint
from ...metrics.before_after.sums import Sums
from ...tables.columns import doubles, nulls
from ...tables.sweep import THRESHOLD
from .uncertainty import groups_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from ...metrics.uncertainty.cube import Cube
    from ...metrics.uncertainty.reasons import Reason
    from .contract import BeforeAfterParameters
    from .uncertainty import EstimatedGroup

TABLE = "before_after_placebo"
COUNTS = ("n_far", "n_near", "m_far", "m_near")
PRECISIONS = ("precision_far", "precision_near")
VALUES = ("log_rate_ratio", "log_rate_ratio_lower", "log_rate_ratio_upper", "p_value")


def table(curve: pl.DataFrame, cube: Cube, params: BeforeAfterParameters) -> pl.DataFrame:
    """The table `before_after_placebo`.

    One row per group and threshold, and one with a NULL threshold for the joint test; only the latter where the two
    parts cannot be compared at all.
    """
    keys = list(cube.keys)
    order = [*keys, THRESHOLD, *COUNTS, *VALUES, *PRECISIONS, "undefined"]
    if not cube.within_budget(curve.height):
        return _untested(curve.select(keys).unique(maintain_order=True), "budget").select(order)
    pairs_known = bool(cube.counts["n_near"].sum())
    frames = []
    for group in groups_of(curve, cube):
        reason = _why_untested(group, params, pairs_known=pairs_known)
        label = group.rows.head(1).select(keys)
        frames.append(_untested(label, reason) if reason else _tested(group, keys, params))
    return pl.concat([frame.select(order) for frame in frames])


def _why_untested(group: EstimatedGroup, params: BeforeAfterParameters, *, pairs_known: bool) -> Reason | None:
    """Why the time before the event of a group has not two parts to compare; None if it has."""
    n_before, n_near = group.sides[2], group.near[1]
    if params.window is None:
        return "no_window"
    if not n_before.any():
        return "no_before"
    if not n_near.any():
        return "no_near" if pairs_known else "unknown_pairs"
    return None if (n_before > n_near).any() else "no_far"


def _untested(labels: pl.DataFrame, reason: Reason | None) -> pl.DataFrame:
    """The row of the joint test alone, for each of the groups."""
    zeros = [pl.lit(0, dtype=pl.Int64).alias(name) for name in COUNTS[:2]]
    undefined = pl.lit(reason, dtype=pl.String).alias("undefined")
    return labels.with_columns(
        *zeros, *nulls(COUNTS[2:], pl.Int64), *nulls((THRESHOLD, *VALUES, *PRECISIONS)), undefined
    )


def _tested(group: EstimatedGroup, keys: Sequence[str], params: BeforeAfterParameters) -> pl.DataFrame:
    """The rows of one group, that of the joint test last."""
    m_before, _, n_before, _ = group.sides
    m_near, n_near = group.near
    m_far, n_far = m_before - m_near, n_before - n_near
    tests = placebo(m_far, m_near, n_far, n_near, confidence=params.confidence, crossed=group.crossed_periods)
    size = group.rows.height
    counts = (np.full(size, n_far.sum()), np.full(size, n_near.sum()), m_far.sum(axis=0), m_near.sum(axis=0))
    values = (tests.log_rate_ratio, tests.lower, tests.upper, tests.p_value)
    rows = group.rows.select(*keys, THRESHOLD).with_columns(
        *(pl.Series(name, column, dtype=pl.Int64) for name, column in zip(COUNTS, counts, strict=True)),
        *(doubles(name, column) for name, column in zip(VALUES, values, strict=True)),
        doubles("precision_far", _precision(group, counts[2], n_far.sum(), params)),
        doubles("precision_near", _precision(group, counts[3], n_near.sum(), params)),
    )
    single = ((n_far + n_near) > 0).sum() < MIN_REPLICATES
    joint = doubles("p_value", np.array([placebo_joint(m_far, m_near, n_far, n_near, crossed=group.crossed_periods)]))
    empty = (THRESHOLD, "m_far", "m_near", *VALUES[:-1], *PRECISIONS)
    last = rows.head(1).with_columns(*(pl.lit(None, dtype=rows.schema[name]).alias(name) for name in empty), joint)
    reason = pl.when(pl.col("p_value").is_null()).then(pl.lit("one_replicate" if single else "few_matches"))
    return pl.concat([rows, last]).with_columns(reason.alias("undefined"))


def _precision(
    group: EstimatedGroup, matches: NDArray[np.int64], pairs: np.int64, params: BeforeAfterParameters
) -> NDArray[np.float64]:
    """Precision with the false positive rate of one part of the time before the event."""
    _, m_after, _, n_after = group.sides
    with np.errstate(divide="ignore", invalid="ignore"):
        counts = (matches, m_after.sum(axis=0), np.full(1, pairs), np.full(1, n_after.sum()))
        sums = Sums.of(group.reference, params.recall_reference.middle, counts)
        precision = np.where((sums.tp_reference > 0) & sums.is_possible, sums.precision, np.nan)
    return np.where(np.isfinite(precision), precision, np.nan)
