"""Intervals as columns: the one writer of `<name>_lower`, `<name>_upper`, and of the reason why one is missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import polars as pl

from pipeline.tables.columns import doubles, nulls, texts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from pipeline.metrics.uncertainty.cube import Cube, GroupCounts
    from pipeline.metrics.uncertainty.jackknife import Floats, Limits
    from pipeline.metrics.uncertainty.reasons import Reason

    Intervals: TypeAlias = Mapping[str, "Interval"]

UNDEFINED_INTERVAL = "undefined_interval"
_SIDES = ("lower", "upper")


@dataclass(frozen=True)
class Interval:
    """Limits of one ratio at every threshold, or of every group.

    Attributes:
        lower: Shape (T,); nan where no interval can be given.
        upper: Shape (T,); likewise.
        reason: Shape (T,), objects: why there is none, see `reasons`; None where there is one.
    """

    lower: Floats
    upper: Floats
    reason: NDArray[np.object_]

    @classmethod
    def of(cls, limits: Limits, reason: Reason | NDArray[np.str_]) -> Interval:
        """Limits with the reason why they are missing where one of them is nan."""
        lower, upper = limits
        missing = np.isnan(lower) | np.isnan(upper)
        reasons = np.full(missing.shape, None, dtype=object)
        reasons[missing] = np.broadcast_to(np.asarray(reason, dtype=object), missing.shape)[missing]
        return cls(lower, upper, reasons)

    @classmethod
    def none(cls, size: int, reason: Reason) -> Interval:
        """No limits at all, for one reason."""
        return cls.of((np.full(size, np.nan), np.full(size, np.nan)), reason)


def union(intervals: Sequence[Interval]) -> Interval:
    """The smallest interval that holds several; none where one of them is missing, for its reason."""
    lower, upper = (
        np.stack(sides) for sides in zip(*((limits.lower, limits.upper) for limits in intervals), strict=True)
    )
    reasons = [next(filter(None, row), None) for row in zip(*(limits.reason for limits in intervals), strict=True)]
    return Interval(lower.min(axis=0), upper.max(axis=0), np.array(reasons, dtype=object))


def intervals_of(limits: Mapping[str, Limits], replicates: int) -> dict[str, Interval]:
    """Limits of ratios that are undefined where they are missing, or for all of which one replicate is too few."""
    reason: Reason = "one_replicate" if replicates == 1 else "undefined_ratio"
    return {name: Interval.of(of_ratio, reason) for name, of_ratio in limits.items()}


def limit_names(names: Sequence[str]) -> list[str]:
    """The columns of the limits of some ratios."""
    return [f"{name}_{side}" for name in names for side in _SIDES]


def limit_series(name: str, limits: Limits) -> Iterator[pl.Series]:
    """The columns of the limits of one ratio."""
    for side, values in zip(_SIDES, limits, strict=True):
        yield doubles(f"{name}_{side}", values)


def limit_columns(intervals: Intervals) -> Iterator[pl.Series]:
    """The limits of all ratios, and `undefined_interval`: the reason of the first ratio that has one.

    Args:
        intervals: By name, in the order in which reasons are taken.
    """
    for name, interval in intervals.items():
        yield from limit_series(name, (interval.lower, interval.upper))
    reasons = zip(*(interval.reason for interval in intervals.values()), strict=True)
    yield texts(UNDEFINED_INTERVAL, (next(filter(None, row), None) for row in reasons))


def no_limits(names: Sequence[str], reason: Reason) -> list[pl.Expr]:
    """The columns of `limit_columns` without any interval."""
    return [*nulls(limit_names(names)), pl.lit(reason).alias(UNDEFINED_INTERVAL)]


def with_limits(
    curve: pl.DataFrame,
    cube: Cube,
    names: Sequence[str],
    intervals: Callable[[pl.DataFrame, GroupCounts], Intervals],
    *,
    wanted: bool,
) -> pl.DataFrame:
    """A curve with the limits of its ratios and `undefined_interval`.

    Args:
        curve: One row per group × threshold.
        cube: The counts of its groups.
        names: The ratios.
        intervals: Their intervals from the rows of a group, by rising threshold, and its counts by replicate.
        wanted: Whether intervals are asked for; beyond the budget there is none all the same.
    """
    if not wanted or curve.is_empty():
        return curve.with_columns(*no_limits(names, "none"))
    if not cube.within_budget(curve.height):
        return curve.with_columns(*no_limits(names, "budget"))
    return pl.concat([rows.with_columns(*limit_columns(intervals(rows, group))) for rows, group in cube.beside(curve)])
