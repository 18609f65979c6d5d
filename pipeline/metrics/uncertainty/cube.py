"""Counts by group × replicate × threshold, the one form in which uncertainty meets the count tables.

A count table holds integers, or decimals, by group, replicate and threshold bin. A `Cube` turns it into counts at or
above every threshold:

- as a frame, of all replicates together: `at_or_above`, `totals`;
- as arrays of one group, with the replicates on axis 0, as the functions of `jackknife` take them: `groups`, `beside`;
- as arrays of many groups at a time, of all replicates together: `blocks`.

All work is bounded here: intervals are computed for at most `MOST_CELLS` cells, and `BLOCK_CELLS` of them are in one
block of groups.

The bins of a table need not be thresholds: a bin counts for all thresholds up to its lower edge. Rows with a NULL
threshold lie below all thresholds; they count in totals only.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import polars as pl

from ...records import dataclass
from ...tables.columns import REPLICATE, THRESHOLD, add_up, add_up_by_threshold, at_or_above, by_group, runs
from .jackknife import leave_one_out

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from ...tables.columns import Boundary
    from .clusters import Cycle

Counts: TypeAlias = "NDArray[Any]"  # int64, or float64 for decimals and doubles
Floats: TypeAlias = "NDArray[np.float64]"
Ints: TypeAlias = "NDArray[np.int64]"
Key: TypeAlias = tuple[object, ...]

MOST_CELLS = 50_000_000  # thresholds of all groups × replicates for which intervals are computed
BLOCK_CELLS = 2_000_000  # groups × thresholds of one block


@dataclass(frozen=True)
class GroupCounts:
    """Counts of one group by replicate and threshold.

    Attributes:
        counts: Its rows of a count table, with `replicate` and `threshold`.
        thresholds: Shape (K,), rising. A single nan: a row of a result without a threshold, which retrieves nothing.
        replicates: Shape (G,), rising; at least those of the counts.
        boundary: `>`: the bins are scores, and a score equal to the threshold is not retrieved.
        crossed: The counts of the same group by other clusterings; none: its rows have one parent.
        cycle: How the replicates follow each other in time; None: their order means nothing.
        in_time: Whether the replicates, of the only parent of rows, follow each other in time.
    """

    counts: pl.DataFrame
    thresholds: Floats
    replicates: Ints
    boundary: Boundary = ">="
    crossed: tuple[GroupCounts, ...] = ()
    cycle: Cycle | None = None
    in_time: bool = False

    @classmethod
    def of(
        cls,
        counts: pl.DataFrame,
        thresholds: Sequence[float] | Floats | None = None,
        boundary: Boundary = ">=",
        replicates: Ints | None = None,
    ) -> GroupCounts:
        """The counts of one group.

        Args:
            counts: Its rows of a count table.
            thresholds: The thresholds, rising; None: every score of the group is one.
            boundary: Without thresholds: whether a score equal to the threshold is retrieved. With thresholds the bins
                have been made by their boundary.
            replicates: Replicates that count even if they have no row, in any order.
        """
        if thresholds is None:
            thresholds = counts[THRESHOLD].drop_nulls().unique().sort().to_numpy()
        else:
            boundary = ">="
        present = counts[REPLICATE].to_numpy()
        every = present if replicates is None else np.concatenate([present, replicates])
        return cls(counts, np.asarray(thresholds, dtype=np.float64), np.unique(every), boundary)

    def with_counts(self, counts: pl.DataFrame) -> GroupCounts:
        """Other counts of the same group, at the same thresholds and of the same replicates."""
        return GroupCounts(counts, self.thresholds, self.replicates, self.boundary, in_time=self.in_time)

    def in_folds(self, folds: int) -> GroupCounts:
        """The same counts with replicates put together: the g-th of them is in fold g modulo `folds`."""
        fold = np.searchsorted(self.replicates, self.counts[REPLICATE].to_numpy()) % folds
        counts = self.counts.with_columns(pl.Series(REPLICATE, fold, dtype=pl.Int64))
        return GroupCounts(counts, self.thresholds, np.arange(min(folds, len(self.replicates))), self.boundary)

    @property
    def within_budget(self) -> bool:
        """Whether intervals of the group can be computed."""
        return self.within_budget_of(0)

    def within_budget_of(self, resamples: int) -> bool:
        """Whether they can be computed from so many resamples of the bootstrap."""
        return len(self.thresholds) * max(len(self.replicates), resamples) <= MOST_CELLS

    @cached_property
    def _cell(self) -> tuple[Ints, Ints]:
        """Replicate and bin of every row by number; bin 0 lies below all thresholds."""
        edges = self.counts[THRESHOLD].to_numpy()
        bins = np.searchsorted(self.thresholds, edges, side="right")
        return np.searchsorted(self.replicates, self.counts[REPLICATE].to_numpy()), np.where(np.isnan(edges), 0, bins)

    def _by_bin(self, name: str) -> Counts:
        """Counts by replicate and bin, shape (G, K + 1), added in the order of the rows."""
        values = self._values(name)
        table = np.zeros((len(self.replicates), len(self.thresholds) + 1), dtype=values.dtype)
        np.add.at(table, self._cell, values)
        return table

    def _values(self, name: str) -> Counts:
        column = self.counts[name]
        return column.cast(pl.Int64 if column.dtype.is_integer() else pl.Float64).to_numpy()

    def at_or_above(self, name: str) -> Counts:
        """Counts that each threshold retrieves, shape (G, K)."""
        bins = self._by_bin(name)[:, 1:]
        above = bins[:, ::-1].cumsum(axis=1)[:, ::-1]
        return np.asarray(above if self.boundary == ">=" else above - bins)

    def below(self, name: str) -> Counts:
        """Counts below all thresholds, shape (G,)."""
        return np.asarray(self._by_bin(name)[:, 0])

    def totals(self, name: str) -> Counts:
        """All counts, shape (G,)."""
        values = self._values(name)
        sums = np.zeros(len(self.replicates), dtype=values.dtype)
        np.add.at(sums, self._cell[0], values)
        return sums


def jackknifed(statistic: Callable[..., Floats], *counts: Counts) -> tuple[Floats, Floats]:
    """A statistic of totals, and the same statistic of the totals without each replicate in turn.

    Args:
        statistic: A function of totals, of any shape.
        counts: Its arguments by replicate, each of shape (G, …) with G ≥ 2.

    Returns:
        Shape (…) and (G, …); `jackknife.covariance` of the second is the variance of the first.
    """
    totals = (count.sum(axis=0).astype(np.float64) for count in counts)
    return statistic(*totals), statistic(*(leave_one_out(count) for count in counts))


@dataclass(frozen=True)
class Block:
    """Counts of several groups, all replicates together.

    Attributes:
        groups: Values of the keys, one row per group.
        at_or_above: Counts by name that each threshold retrieves, thresholds falling, each of shape (groups, K).
        totals: Counts by name, each of shape (groups,).
    """

    groups: pl.DataFrame
    at_or_above: dict[str, Floats]
    totals: dict[str, Floats]


@dataclass(frozen=True)
class Cube:
    """Counts of all groups by replicate and threshold.

    Attributes:
        counts: The count table: columns `keys`, `replicate`, `threshold` (lower edge of the bin; NULL below all
            thresholds) and counts.
        keys: Columns that identify a group; NULL is a value like any other.
        thresholds: The thresholds, rising; None: every group has a threshold for each of its scores.
        boundary: Without thresholds: whether a score equal to the threshold is retrieved.
        crossed: The count tables of the same rows by the second parent of rows that have two, and by the intersections
            of both; none: rows have one parent.
        cycle: How the second parents follow each other in time; None: they do not, or there are none.
        in_time: Whether the replicates of rows with one parent follow each other in time.
    """

    counts: pl.DataFrame
    keys: tuple[str, ...]
    thresholds: tuple[float, ...] | None
    boundary: Boundary = ">="
    crossed: tuple[pl.DataFrame, ...] = ()
    cycle: Cycle | None = None
    in_time: bool = False

    @classmethod
    def of(
        cls,
        counts: pl.DataFrame,
        keys: Sequence[str],
        thresholds: Sequence[float] | None,
        boundary: Boundary = ">=",
        crossed: Sequence[pl.DataFrame] = (),
        *,
        in_time: bool = False,
    ) -> Cube:
        """The cube of a count table."""
        values = None if thresholds is None else tuple(thresholds)
        return cls(counts, tuple(keys), values, boundary, tuple(crossed), in_time=in_time)

    @classmethod
    def of_groups(
        cls,
        counts: pl.DataFrame,
        thresholds: Sequence[float] | None,
        boundary: Boundary = ">=",
        crossed: Sequence[pl.DataFrame] = (),
        *,
        in_time: bool = False,
    ) -> Cube:
        """The cube of a count table whose groups are told by the columns in front of `replicate`."""
        keys = counts.columns[: counts.columns.index(REPLICATE)]
        return cls.of(counts, keys, thresholds, boundary, crossed, in_time=in_time)

    def at_or_above(self, names: Sequence[str]) -> pl.DataFrame:
        """Counts of all replicates that each threshold retrieves: one row per group × threshold, added exactly."""
        return at_or_above(self.counts, self.keys, names, self.thresholds, self.boundary)

    def totals(self, names: Sequence[str]) -> pl.DataFrame:
        """All counts: one row per group, added exactly."""
        return add_up(self.counts, self.keys, names)

    def curve(self, swept: Sequence[str], totals: Sequence[str]) -> pl.DataFrame:
        """`at_or_above` of some counts beside the `totals` of others: one row per group × threshold."""
        return self.at_or_above(swept).join(self.totals(totals), on=list(self.keys), how="left", nulls_equal=True)

    def within_budget(self, rows: int, resamples: int = 0) -> bool:
        """Whether intervals of so many rows, groups × thresholds, can be computed, perhaps from so many resamples."""
        replicates = (counts[REPLICATE].n_unique() for counts in (self.counts, *self.crossed))
        return rows * max(sum(replicates), resamples) <= MOST_CELLS

    def groups(self) -> Iterator[tuple[Key, GroupCounts]]:
        """Every group, by the values of its keys, in the order of the count table; one at a time is made."""
        for key, counts in self._clusterings[0].items():
            yield key, replace(GroupCounts.of(counts, self.thresholds, self.boundary), in_time=self.in_time)

    def beside(self, curve: pl.DataFrame) -> Iterator[tuple[pl.DataFrame, GroupCounts]]:
        """The rows of every group of a curve, by rising threshold, and its counts at the thresholds of these rows.

        Args:
            curve: Columns `keys`, `threshold` and any others; each group has rows in the count table.
        """
        clusterings = self._clusterings
        boundary = self.boundary if self.thresholds is None else ">="
        in_order = curve if curve[THRESHOLD].is_sorted() else curve.sort(THRESHOLD)
        for key, rows in by_group(in_order, self.keys).items():
            thresholds = rows[THRESHOLD].to_numpy()
            tables = [groups[key] for groups in clusterings if key in groups]
            replicates = (np.unique(counts[REPLICATE].to_numpy()) for counts in tables)
            group, *crossed = (
                GroupCounts(counts, thresholds, numbers, boundary, in_time=self.in_time)
                for counts, numbers in zip(tables, replicates, strict=True)
            )
            crossed[:1] = [replace(counts, cycle=self.cycle) for counts in crossed[:1]]
            yield rows, replace(group, crossed=tuple(crossed) if len(crossed) == len(self.crossed) else ())

    @cached_property
    def _clusterings(self) -> list[dict[Key, pl.DataFrame]]:
        """The rows of every group of the table and of those by other clusterings."""
        return [by_group(counts, self.keys) for counts in (self.counts, *self.crossed)]

    def blocks(self, names: Sequence[str]) -> Iterator[Block]:
        """The counts of many groups at a time, of all replicates, in blocks of at most `BLOCK_CELLS` cells.

        Without thresholds every score of a group retrieves itself, whatever the boundary; groups with fewer scores than
        others of their block have their lowest one repeated. Counts are added up exactly and are doubles only then.
        """
        summed = add_up_by_threshold(self.counts, self.keys, names)
        totals = summed.group_by(self.keys, maintain_order=True).agg(pl.col(names).sum())
        group = runs(summed, self.keys)
        rank = self._ranks(summed[THRESHOLD], group)
        sizes = np.zeros(totals.height, dtype=np.int64)
        np.maximum.at(sizes, group, rank + 1)
        number = None if self.thresholds is None else len(self.thresholds)
        in_order = np.argsort(sizes, kind="stable")
        of_rows, of_groups = (
            {name: frame[name].cast(pl.Float64).to_numpy() for name in names} for frame in (summed, totals)
        )
        per_block = max(1, BLOCK_CELLS // max(number or sizes.max(initial=0), 1))
        for start in range(0, len(in_order), per_block):
            chosen = in_order[start : start + per_block]
            row_of_group = np.full(len(sizes), -1)
            row_of_group[chosen] = np.arange(len(chosen))
            row = row_of_group[group]
            is_swept = (row >= 0) & (rank >= 0)
            shape = (len(chosen), number or max(sizes[chosen].max(), 1))
            cells = (row[is_swept], rank[is_swept])
            yield Block(
                totals[list(self.keys)][chosen],
                {name: _falling(values[is_swept], cells, shape) for name, values in of_rows.items()},
                {name: values[chosen] for name, values in of_groups.items()},
            )

    def _ranks(self, edges: pl.Series, group: Ints) -> Ints:
        """The rank of the threshold of every row among those of its group, from the highest, 0; -1 if it is none.

        Args:
            edges: The thresholds, rising in each group, NULL behind them.
            group: The number of the group of every row, rising.
        """
        is_retrieved = edges.is_not_null().to_numpy()
        if self.thresholds is None:
            ends = np.cumsum(np.bincount(group[is_retrieved], minlength=group.max(initial=-1) + 1))
            rank = ends[group] - np.cumsum(is_retrieved)
        else:
            thresholds = np.asarray(self.thresholds)
            number = np.searchsorted(thresholds, edges.to_numpy())
            is_retrieved = is_retrieved & (thresholds.take(number, mode="clip") == edges.to_numpy())
            rank = len(thresholds) - 1 - number
        return np.where(is_retrieved, rank, -1)


def _falling(values: Floats, cells: tuple[Ints, Ints], shape: tuple[int, int]) -> Floats:
    """Running sums of counts over falling thresholds, one row for each group of a block."""
    table = np.zeros(shape)
    table[cells] = values
    return np.cumsum(table, axis=1)
