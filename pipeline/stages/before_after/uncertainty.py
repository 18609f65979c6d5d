"""Intervals at every threshold: from the replicates of the count table to the columns `…_lower` and `…_upper`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from pipeline.metrics.before_after import estimates as estimator
from pipeline.metrics.before_after.intervals import NAMES, TWO, intervals
from pipeline.metrics.before_after.placebo import placebo, placebo_joint, realised_precision_interval
from pipeline.metrics.before_after.simultaneous import precision_at_least
from pipeline.plan.count_tables import REPLICATE
from pipeline.tables.sweep import THRESHOLD

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from pipeline.metrics.before_after.intervals import Interval
    from pipeline.stages.before_after.contract import BeforeAfterParameters

BUDGET = 50_000_000
SWEPT = ("m_before", "m_after", "m_near")
TOTALS = ("n_before", "n_after", "n_near")


@dataclass(frozen=True)
class GroupCounts:
    """Counts of one group by replicate.

    Attributes:
        rows: Rows of the group in the estimates, in order of the thresholds.
        replicates: The replicates, ascending.
        swept: Counts at or above each threshold, by name, each of shape (replicates, thresholds).
        totals: Compared pairs, by name, each of shape (replicates,).
    """

    rows: pl.DataFrame
    replicates: NDArray[np.int64]
    swept: dict[str, NDArray[np.int64]]
    totals: dict[str, NDArray[np.int64]]

    @property
    def reference(self) -> int | None:
        """Index of the recall reference."""
        found = np.nonzero(self.rows["is_reference"].to_numpy())[0]
        return int(found[0]) if len(found) else None


def group_counts(
    curve: pl.DataFrame, counts: pl.DataFrame, keys: Sequence[str], params: BeforeAfterParameters
) -> Iterator[GroupCounts]:
    """The counts of every group as arrays.

    Args:
        curve: Estimates, one row per group × threshold.
        counts: The count table.
        keys: Columns that identify a group.
        params: The parameters of the stage.
    """
    own = params.threshold_values is None and not params.inclusive
    parts = {_label(part, keys): part for part in counts.partition_by(list(keys), maintain_order=True)}
    for rows in curve.sort(THRESHOLD).partition_by(list(keys), maintain_order=True):
        yield _arrays(rows, parts[_label(rows, keys)], above_own=own)


def _label(part: pl.DataFrame, keys: Sequence[str]) -> tuple[object, ...]:
    return part.select(keys).row(0)


def _arrays(rows: pl.DataFrame, counts: pl.DataFrame, *, above_own: bool) -> GroupCounts:
    """Arrays of a group; `above_own`: the bins are scores, and a score equal to the threshold is not retrieved."""
    thresholds = rows[THRESHOLD].to_numpy()
    replicates, replicate = np.unique(counts[REPLICATE].to_numpy(), return_inverse=True)
    edge = counts[THRESHOLD].to_numpy()
    inside = ~np.isnan(edge)
    bins = np.searchsorted(thresholds, edge[inside])
    shape = (len(replicates), len(thresholds))
    swept = {}
    for name in SWEPT:
        table = np.zeros(shape, dtype=np.int64)
        np.add.at(table, (replicate[inside], bins), counts[name].to_numpy()[inside])
        swept[name] = table[:, ::-1].cumsum(axis=1)[:, ::-1] - (table if above_own else np.zeros_like(table))
    totals = {}
    for name in TOTALS:
        totals[name] = np.zeros(len(replicates), dtype=np.int64)
        np.add.at(totals[name], replicate, counts[name].to_numpy())
    too_many = swept["m_near"].max(axis=1, initial=0) > totals["n_near"]
    if (totals["n_near"] > totals["n_before"]).any() or too_many.any():  # given numbers that the timelines contradict
        totals["n_near"] = np.zeros_like(totals["n_near"])
    return GroupCounts(rows, replicates, swept, totals)


def with_intervals(
    curve: pl.DataFrame, counts: pl.DataFrame, keys: Sequence[str], params: BeforeAfterParameters
) -> pl.DataFrame:
    """The estimates with `<ratio>_lower`, `<ratio>_upper` and `undefined_interval`.

    While rows × replicates are more than 50 million no interval is computed (`budget`); with `uncertainty = "none"`
    there is none either (`none`).
    """
    if params.uncertainty == "none":
        return curve.with_columns(*_empty("none"))
    if curve.height * counts[REPLICATE].n_unique() > BUDGET:
        return curve.with_columns(*_empty("budget"))
    parts = []
    for group in group_counts(curve, counts, keys, params):
        found = intervals(
            group.swept["m_before"],
            group.swept["m_after"],
            group.totals["n_before"],
            group.totals["n_after"],
            reference=group.reference,
            confidence=params.confidence,
            reference_recall=params.recall_reference.recall,
        )
        realised = _realised(group, params.confidence, params.recall_reference.recall)
        unknown = None if group.totals["n_near"].any() else "no_near"
        parts.append(group.rows.with_columns(*_columns(found, unknown), *_limits("precision_realised", realised)))
    return pl.concat(parts) if parts else curve.with_columns(*_empty("none"))


def _realised(group: GroupCounts, confidence: float, reference_recall: float) -> Interval:
    return realised_precision_interval(
        group.swept["m_before"],
        group.swept["m_after"],
        group.totals["n_before"],
        group.totals["n_after"],
        group.swept["m_near"],
        group.totals["n_near"],
        confidence=confidence,
        reference=group.reference,
        reference_recall=reference_recall,
    )


def _limits(name: str, interval: Interval) -> Iterator[pl.Series]:
    yield pl.Series(f"{name}_lower", interval.lower, dtype=pl.Float64).fill_nan(None)
    yield pl.Series(f"{name}_upper", interval.upper, dtype=pl.Float64).fill_nan(None)


def _columns(found: dict[str, Interval], otherwise: str | None) -> Iterator[pl.Series]:
    """Limits and the first reason why one is missing; `otherwise` where all of these are given."""
    for name in NAMES:
        yield from _limits(name, found[name])
    reasons = zip(*(found[name].reason for name in NAMES), strict=True)
    first = [next((reason for reason in row if reason is not None), otherwise) for row in reasons]
    yield pl.Series("undefined_interval", first, dtype=pl.String)


def _empty(reason: str) -> list[pl.Expr]:
    names = [f"{name}_{side}" for name in (*NAMES, "precision_realised") for side in ("lower", "upper")]
    nothing = [pl.lit(None, dtype=pl.Float64).alias(name) for name in names]
    return [*nothing, pl.lit(reason).alias("undefined_interval")]


def with_safe_limits(
    curve: pl.DataFrame, counts: pl.DataFrame, keys: Sequence[str], params: BeforeAfterParameters
) -> pl.DataFrame:
    """The estimates with a working column for each confidence: precision limits that hold at all thresholds together.

    It is NULL where no limit can be given, without replicates, or over the budget.
    """
    confidences = list(dict.fromkeys(each.confidence for each in params.operating_points if each.confidence))
    names = [estimator.safe_column(each) for each in confidences]
    if not names or curve.height * counts[REPLICATE].n_unique() > BUDGET:
        return curve.with_columns(pl.lit(None, dtype=pl.Float64).alias(name) for name in names)
    groups = group_counts(curve, counts, keys, params)
    return pl.concat([group.rows.with_columns(*_safe_limits(group, confidences)) for group in groups])


def _safe_limits(group: GroupCounts, confidences: Sequence[float]) -> Iterator[pl.Series]:
    arrays = (*(group.swept[name] for name in SWEPT[:2]), *(group.totals[name] for name in TOTALS[:2]))
    for confidence in confidences:
        lower = precision_at_least(*arrays, confidence=confidence)
        yield pl.Series(estimator.safe_column(confidence), lower, dtype=pl.Float64).fill_nan(None)


def placebo_table(
    curve: pl.DataFrame, counts: pl.DataFrame, keys: Sequence[str], params: BeforeAfterParameters
) -> pl.DataFrame:
    """The table `before_after_placebo`: near against far part of the time before the event.

    One row per group and threshold, and one with a NULL threshold for the joint test; only the latter where the two
    parts cannot be compared at all. It has no row with `uncertainty = "none"`.
    """
    order = [*keys, THRESHOLD, *PLACEBO_COUNTS, *PLACEBO_VALUES, *PLACEBO_PRECISIONS, "undefined"]
    if params.uncertainty == "none" or curve.is_empty():
        return _untested(curve.clear().select(keys), None).select(order)
    if curve.height * counts[REPLICATE].n_unique() > BUDGET:
        return _untested(curve.select(keys).unique(maintain_order=True), "budget").select(order)
    parts = []
    for group in group_counts(curve, counts, keys, params):
        reason = _no_parts(group, counts, params)
        label = group.rows.head(1).select(keys)
        parts.append(_untested(label, reason) if reason else _placebo(group, keys, params.confidence))
    return pl.concat([part.select(order) for part in parts])


def _no_parts(group: GroupCounts, counts: pl.DataFrame, params: BeforeAfterParameters) -> str | None:
    """Why the time before the event of a group has not two parts to compare; None if it has."""
    if params.window is None:
        return "no_window"
    if not group.totals["n_before"].any():
        return "no_before"
    if not group.totals["n_near"].any():
        return "no_near" if counts["n_near"].sum() else "unknown_pairs"
    return None if (group.totals["n_before"] > group.totals["n_near"]).any() else "no_far"


def _untested(labels: pl.DataFrame, reason: str | None) -> pl.DataFrame:
    """The row of the joint test alone, for each of the groups."""
    zeros = [pl.lit(0, dtype=pl.Int64).alias(name) for name in PLACEBO_COUNTS[:2]]
    matches = [pl.lit(None, dtype=pl.Int64).alias(name) for name in PLACEBO_COUNTS[2:]]
    numbers = (THRESHOLD, *PLACEBO_VALUES, *PLACEBO_PRECISIONS)
    nothing = [pl.lit(None, dtype=pl.Float64).alias(name) for name in numbers]
    return labels.with_columns(*zeros, *matches, *nothing, pl.lit(reason, dtype=pl.String).alias("undefined"))


PLACEBO_COUNTS = ("n_far", "n_near", "m_far", "m_near")
PLACEBO_PRECISIONS = ("precision_far", "precision_near")
PLACEBO_VALUES = ("log_rate_ratio", "log_rate_ratio_lower", "log_rate_ratio_upper", "p_value")


def _placebo(group: GroupCounts, keys: Sequence[str], confidence: float) -> pl.DataFrame:
    m_near, n_near = group.swept["m_near"], group.totals["n_near"]
    m_far, n_far = group.swept["m_before"] - m_near, group.totals["n_before"] - n_near
    found = placebo(m_far, m_near, n_far, n_near, confidence=confidence)
    size = group.rows.height
    counts = (np.full(size, n_far.sum()), np.full(size, n_near.sum()), m_far.sum(axis=0), m_near.sum(axis=0))
    values = (found.log_rate_ratio, found.lower, found.upper, found.p_value)
    rows = group.rows.select(*keys, THRESHOLD).with_columns(
        *(pl.Series(name, each, dtype=pl.Int64) for name, each in zip(PLACEBO_COUNTS, counts, strict=True)),
        *(pl.Series(name, each).fill_nan(None) for name, each in zip(PLACEBO_VALUES, values, strict=True)),
        _precision_of_part(group, counts[2], n_far.sum()).alias("precision_far"),
        _precision_of_part(group, counts[3], n_near.sum()).alias("precision_near"),
    )
    unknown = (THRESHOLD, "m_far", "m_near", *PLACEBO_VALUES[:-1], *PLACEBO_PRECISIONS)
    single = ((n_far + n_near) > 0).sum() < TWO
    joint = pl.Series("p_value", [placebo_joint(m_far, m_near, n_far, n_near)]).fill_nan(None)
    last = rows.head(1).with_columns(*(pl.lit(None, dtype=rows.schema[name]).alias(name) for name in unknown), joint)
    reason = pl.when(pl.col("p_value").is_null()).then(pl.lit("one_replicate" if single else "few_matches"))
    return pl.concat([rows, last]).with_columns(reason.alias("undefined"))


def _precision_of_part(group: GroupCounts, matches: NDArray[np.int64], pairs: np.int64) -> pl.Series:
    """Precision with the false positive rate of one part of the time before the event."""
    after, compared = group.swept["m_after"].sum(axis=0), group.totals["n_after"].sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        precision = 1 - (matches / pairs) * compared / after
    return pl.Series(np.where(np.isfinite(precision), precision, np.nan)).fill_nan(None)
