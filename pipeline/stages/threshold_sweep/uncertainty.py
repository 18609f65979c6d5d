"""Intervals of the curve of threshold_sweep, and the counts of its replicates as arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import polars as pl

from pipeline.metrics.uncertainty.proportions import RATIOS, Confusion, intervals_of_clusters, intervals_of_rows
from pipeline.plan.count_tables import REPLICATE
from pipeline.stages.threshold_sweep.contract import COUNT_NAMES
from pipeline.tables.sweep import THRESHOLD, add_up

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from pipeline.metrics.uncertainty.proportions import Limits
    from pipeline.stages.threshold_sweep.contract import ThresholdSweepParameters

BUDGET = 50_000_000
ARRAY_SIZE = 2_000_000
CELLS = ("tp", "fp", "fn", "tn")


@dataclass(frozen=True)
class GroupCounts:
    """Counts of one group by replicate.

    Attributes:
        key: Values of the keys.
        thresholds: Shape (K,), rising.
        swept: Counts or weights by name at or above each threshold, each of shape (replicates, K).
        totals: Counts or weights by name, each of shape (replicates,).
    """

    key: tuple[object, ...]
    thresholds: NDArray[np.float64]
    swept: dict[str, NDArray[np.float64]]
    totals: dict[str, NDArray[np.float64]]


def group_counts(
    counts: pl.DataFrame, keys: Sequence[str], thresholds: Sequence[float] | None, *, inclusive: bool
) -> Iterator[GroupCounts]:
    """The counts of every group as arrays.

    Args:
        counts: The count table.
        keys: Columns that identify a group.
        thresholds: The thresholds; None: every score of the group.
        inclusive: Without thresholds: whether a score equal to the threshold is retrieved.
    """
    for part in counts.partition_by(list(keys), maintain_order=True):
        edge = part[THRESHOLD].to_numpy()
        inside = ~np.isnan(edge)
        values = np.unique(edge[inside]) if thresholds is None else np.asarray(thresholds)
        replicates, replicate = np.unique(part[REPLICATE].to_numpy(), return_inverse=True)
        bins = np.searchsorted(values, edge[inside])
        swept: dict[str, NDArray[np.float64]] = {}
        totals: dict[str, NDArray[np.float64]] = {}
        for name in COUNT_NAMES:
            numbers = part[name].cast(pl.Float64).to_numpy()
            table = np.zeros((len(replicates), len(values)))
            np.add.at(table, (replicate[inside], bins), numbers[inside])
            above = table[:, ::-1].cumsum(axis=1)[:, ::-1]
            swept[name] = above - table if thresholds is None and not inclusive else above
            totals[name] = np.zeros(len(replicates))
            np.add.at(totals[name], replicate, numbers)
        yield GroupCounts(part.select(keys).row(0), values, swept, totals)


@dataclass(frozen=True)
class SweptGroups:
    """Counts of several groups, all replicates together.

    Attributes:
        groups: Values of the keys, one row per group.
        swept: Counts or weights by name at or above each threshold, thresholds falling, each of shape (groups, K).
        totals: Counts or weights by name, each of shape (groups,).
    """

    groups: pl.DataFrame
    swept: dict[str, NDArray[np.float64]]
    totals: dict[str, NDArray[np.float64]]


def swept_groups(
    counts: pl.DataFrame, keys: Sequence[str], thresholds: Sequence[float] | None
) -> Iterator[SweptGroups]:
    """The counts of all groups as arrays, as many groups at a time as make arrays of a few million numbers.

    Args:
        counts: The count table.
        keys: Columns that identify a group.
        thresholds: The thresholds; None: every score of the group, which then retrieves itself. Groups with fewer
            scores than others have their lowest one repeated.
    """
    totals = add_up(counts, keys, COUNT_NAMES)  # added up as they are counted, exactly, and doubles only then
    summed = add_up(counts, [*keys, THRESHOLD], COUNT_NAMES).with_columns(pl.col(COUNT_NAMES).cast(pl.Float64))
    inside = pl.col(THRESHOLD).is_not_null()
    place: pl.Expr = pl.lit(0)
    if thresholds is None:
        place = pl.col(THRESHOLD).rank("dense", descending=True).over(keys).cast(pl.Int64) - 1
    else:
        falling = pl.DataFrame({THRESHOLD: list(thresholds)[::-1]}, schema={THRESHOLD: pl.Float64})
        summed = summed.join(falling.with_row_index("_place"), on=THRESHOLD, how="left")
        place = pl.col("_place").cast(pl.Int64)
    summed = summed.with_columns(pl.when(inside).then(place).fill_null(-1).alias("_place"))
    sizes = summed.group_by(keys).agg((pl.col("_place").max() + 1).alias("_size")).sort(["_size", *keys])
    width = max(len(thresholds) if thresholds is not None else max(sizes["_size"].to_list(), default=0), 1)
    step = max(1, ARRAY_SIZE // width)
    for chunk in sizes.iter_slices(step):
        groups = chunk.select(keys).with_row_index("_group")
        part = summed.join(groups, on=list(keys), how="inner", nulls_equal=True)
        most = len(thresholds) if thresholds is not None else max(*chunk["_size"].to_list(), 1)
        own = groups.join(totals, on=list(keys), how="left", nulls_equal=True, maintain_order="left")
        yield _swept(part, groups.drop("_group"), own, most)


def _swept(part: pl.DataFrame, groups: pl.DataFrame, totals: pl.DataFrame, width: int) -> SweptGroups:
    group, place = part["_group"].to_numpy().astype(np.int64), part["_place"].to_numpy()
    known = place >= 0
    swept = {}
    for name in COUNT_NAMES:
        table = np.zeros((groups.height, width))
        table[group[known], place[known]] = part[name].to_numpy()[known]
        swept[name] = np.cumsum(table, axis=1)
    return SweptGroups(groups, swept, {name: totals[name].cast(pl.Float64).to_numpy() for name in COUNT_NAMES})


def with_intervals(
    curve: pl.DataFrame, counts: pl.DataFrame, keys: Sequence[str], params: ThresholdSweepParameters
) -> pl.DataFrame:
    """The curve with `<ratio>_lower`, `<ratio>_upper` and `undefined_interval`."""
    if params.uncertainty == "none":
        return curve.with_columns(*_none("none"))
    if params.cluster is None:
        return curve.with_columns(*_of_rows(curve, params.confidence))
    if curve.height * counts[REPLICATE].n_unique() > BUDGET:
        return curve.with_columns(*_none("budget"))
    parts, kind = [], kind_of_counts(counts)
    for group in group_counts(counts, keys, params.threshold_values, inclusive=params.inclusive):
        found = intervals_of_clusters(_replicates(group, kind), params.confidence)
        reason = "one_replicate" if len(group.totals["n_positive"]) == 1 else None
        labels = {name: [value] * len(group.thresholds) for name, value in zip(keys, group.key, strict=True)}
        frame = pl.DataFrame(labels, schema={name: curve.schema[name] for name in keys})
        parts.append(frame.with_columns(pl.Series(THRESHOLD, group.thresholds), *_columns(found, reason)))
    if not parts:
        return curve.with_columns(*_none("none"))
    return curve.join(pl.concat(parts), on=[*keys, THRESHOLD], how="left", nulls_equal=True)


def kind_of_counts(counts: pl.DataFrame) -> Literal["weight", "n"]:
    """`weight` where rows have weights, else `n`; a run whose weights are all 0 is refused before it counts."""
    return "weight" if counts.select((pl.col("weight_positive") + pl.col("weight_negative")).sum()).item() else "n"


def _replicates(group: GroupCounts, kind: str) -> Confusion:
    positive, negative = group.swept[f"{kind}_positive"], group.swept[f"{kind}_negative"]
    all_positive, all_negative = (group.totals[f"{kind}_{name}"][:, None] for name in ("positive", "negative"))
    return Confusion(positive, negative, all_positive - positive, all_negative - negative)


def _of_rows(curve: pl.DataFrame, confidence: float) -> Iterator[pl.Series]:
    weighted = curve["tp_weight"].is_not_null().to_numpy()

    def confusion(suffix: str) -> Confusion:
        plain = [curve[cell].cast(pl.Float64).to_numpy() for cell in CELLS]
        other = [curve[f"{cell}{suffix}"].cast(pl.Float64).fill_null(0.0).to_numpy() for cell in CELLS]
        return Confusion(*(np.where(weighted, heavy, light) for light, heavy in zip(plain, other, strict=True)))

    squares = confusion("_squares") if weighted.any() else None
    yield from _columns(intervals_of_rows(confusion("_weight"), squares, confidence), None)


def _columns(found: Mapping[str, Limits], reason: str | None) -> Iterator[pl.Series]:
    missing = np.zeros(len(found[RATIOS[0]][0]), dtype=bool)
    for name in RATIOS:
        for side, values in zip(("lower", "upper"), found[name], strict=True):
            yield pl.Series(f"{name}_{side}", values, dtype=pl.Float64).fill_nan(None)
            missing |= np.isnan(values)
    words = pl.Series([reason or "undefined_ratio" if each else None for each in missing.tolist()], dtype=pl.String)
    yield words.alias("undefined_interval")


def _none(reason: str) -> list[pl.Expr]:
    names = [f"{name}_{side}" for name in RATIOS for side in ("lower", "upper")]
    return [*(pl.lit(None, dtype=pl.Float64).alias(name) for name in names), pl.lit(reason).alias("undefined_interval")]
