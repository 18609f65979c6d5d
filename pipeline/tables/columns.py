"""Columns from arrays and counts: an undefined number is NULL, each quotient is rounded once."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

import numpy as np
import polars as pl

from .ratios import RATIO_OF
from .schemas import in_order, polars_types

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from .ratios import Ratio


# Columns of result tables from arrays: an undefined number is NULL, never NaN.


def doubles(name: str, values: NDArray[np.float64]) -> pl.Series:
    """A DOUBLE column; nan becomes NULL."""
    return pl.Series(name, values, dtype=pl.Float64, nan_to_null=True)


def texts(name: str, values: Iterable[object]) -> pl.Series:
    """A VARCHAR column; None and the empty text become NULL."""
    return pl.Series(name, [str(value) if value else None for value in values], dtype=pl.String)


def nulls(names: Iterable[str], kind: type[pl.DataType] = pl.Float64) -> list[pl.Expr]:
    """Columns of one type that are NULL in every row."""
    return [pl.lit(None, dtype=kind).alias(name) for name in names]


def nothing(names: Iterable[str], size: int, kind: type[pl.DataType] | pl.DataType = pl.Float64) -> list[pl.Series]:
    """The same as columns of a size, which are put beside others in no time."""
    return [pl.Series(name, [None], dtype=kind).new_from_index(0, size) for name in names]


def beside(table: pl.DataFrame, groups: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """A table with what is known of the group of every row; NULL where nothing is."""
    if is_of_group(table, groups, keys):
        others = (name for name in groups.columns if name not in keys)
        return table.hstack([groups.get_column(name).new_from_index(0, table.height) for name in others])
    return table.join(groups, on=list(keys), how="left", nulls_equal=True, maintain_order="left")


def among(table: pl.DataFrame, groups: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """The rows of a table that are of some groups."""
    if is_of_group(table, groups, keys):
        return table
    return table.join(groups, on=list(keys), how="semi", nulls_equal=True, maintain_order="left")


def is_of_group(table: pl.DataFrame, groups: pl.DataFrame, keys: Sequence[str]) -> bool:
    """Whether all rows of a table are of one group, the only one that there is: most results are."""
    if groups.height != 1 or table.is_empty():
        return False
    columns = [(table.get_column(name), groups.get_column(name)) for name in keys]
    return all(ours.n_unique() == 1 and ours[0] == other[0] and ours.dtype == other.dtype for ours, other in columns)


def runs(frame: pl.DataFrame, keys: Sequence[str]) -> NDArray[np.int64]:
    """The number of the run of equal keys that every row is in, from 0."""
    if all(frame.get_column(name).n_unique() <= 1 for name in keys):
        return np.zeros(frame.height, dtype=np.int64)
    return frame.select(pl.struct(list(keys)).rle_id()).to_series().to_numpy().astype(np.int64)


def by_group(frame: pl.DataFrame, keys: Sequence[str]) -> dict[tuple[object, ...], pl.DataFrame]:
    """The rows of every group by the values of its keys, groups and rows in the order of the frame."""
    frames = frame.partition_by(list(keys), maintain_order=True)
    return {tuple(rows.get_column(name)[0] for name in keys): rows for rows in frames if rows.height}


def as_key(values: pl.Series) -> pl.Series:
    """Return keys as a table may hold them: integers and text as they are, others (dates, flags) as text."""
    return values if values.dtype in polars_types("KEY") else values.cast(pl.String)


# Quotients, each rounded once; precision, recall and F1 from counts.


RATIOS = ("precision", "recall", "f1")


def quotient(over: pl.Series, under: pl.Series) -> pl.Series:
    """Divide one column by another, as DOUBLE; NULL where the divisor is 0 or either value is NULL.

    NumPy divides, because Polars multiplies by the reciprocal of a column that it knows to be constant: that rounds
    twice, makes 49 / 49 less than 1, and lets the last digit depend on how a frame was made.
    """
    dividend, divisor = (each.cast(pl.Float64).to_numpy() for each in (over, under))  # NULL is nan
    quotients = np.divide(dividend, divisor, out=np.full(len(divisor), np.nan), where=divisor != 0)
    return pl.Series(over.name, quotients, dtype=pl.Float64, nan_to_null=True)


def divide(over: pl.Expr, under: pl.Expr) -> pl.Expr:
    """Divide one expression by another of the same length, as `quotient` does."""
    return pl.map_batches(
        [over, under], lambda pair: quotient(pair[0], pair[1]), return_dtype=pl.Float64, is_elementwise=True
    )


def ratios(tp: pl.Expr, fp: pl.Expr, fn: pl.Expr) -> list[pl.Expr]:
    """Return the columns `precision`, `recall` and `f1` = 2 tp / (2 tp + fp + fn); NULL where the denominator is 0."""
    return [ratio_of(RATIO_OF[name], {"tp": tp, "fp": fp, "fn": fn}) for name in RATIOS]


def ratio_of(ratio: Ratio, counts: Mapping[str, pl.Expr]) -> pl.Expr:
    """Return the column of a ratio from expressions of its outcomes; NULL where the denominator is 0."""
    return divide(*ratio.fraction(counts)).alias(ratio.name)


# From counts per bin to counts at or above every threshold, for all stages.


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
    if counts.height == 1 and not any(counts.get_column(name).null_count() for name in values):
        return counts[[*keys, *values]]  # a single row is the sum
    if not keys:
        return counts.select(pl.col(values).sum())
    return counts.group_by(keys, maintain_order=False).agg(pl.col(values).sum())


def add_up_in_order(counts: pl.DataFrame, keys: Sequence[str], values: Sequence[str]) -> pl.DataFrame:
    """Do the same in the order of the keys, NULL last; rows that repeat no key, as they mostly are, are only sorted."""
    rows, repeats = in_order(counts[[*keys, *values]], keys)
    return rows.group_by(keys, maintain_order=True).agg(pl.col(values).sum()) if repeats else rows


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
        One row per group × threshold in this order, columns `keys`, `threshold`, `values`; groups without any count in
        the bins get zeros when thresholds are given.
    """
    has_others = counts.get_column(THRESHOLD).null_count()
    scored = counts.filter(pl.col(THRESHOLD).is_not_null()) if has_others else counts
    per_bin = add_up_by_threshold(scored, keys, values)
    if thresholds is not None:
        groups = counts.select(keys).unique().sort(keys, nulls_last=True)
        frame = groups.join(pl.DataFrame({THRESHOLD: sorted(thresholds)}, schema={THRESHOLD: pl.Float64}), how="cross")
        per_bin = frame.join(
            per_bin, on=[*keys, THRESHOLD], how="left", nulls_equal=True, maintain_order="left"
        ).with_columns(pl.col(values).fill_null(0))
    sums = per_bin.with_columns(pl.col(values).cum_sum(reverse=True).over(keys))
    if thresholds is not None or boundary == ">=":
        return sums
    return sums.with_columns(sums[name] - per_bin[name] for name in values)


def add_up_by_threshold(counts: pl.DataFrame, keys: Sequence[str], values: Sequence[str]) -> pl.DataFrame:
    """Sum counts over replicates, in the order of group and threshold."""
    order = [*keys, THRESHOLD]
    if counts[REPLICATE].min() == counts[REPLICATE].max():
        return add_up_in_order(counts, order, values)
    return add_up(counts, order, values).sort(order, nulls_last=True)
