"""Count tables while they are made: counts of the finest groupings come in, those of all groupings go out."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, TypeVar

import polars as pl

from ..records import dataclass
from ..tables.schemas import GROUPING
from ..tables.sweep import REPLICATE, THRESHOLD, add_up

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..tables.groupings import Grouping

T = TypeVar("T")
BIN = "bin"


@dataclass
class CountTables:
    """The count tables of one stage by name.

    Attributes:
        groupings: The groupings that results are asked for.
        by: All grouping columns in order.
    """

    groupings: Sequence[Grouping]
    by: Sequence[str]
    _open: dict[str, _OpenTable] = field(default_factory=dict)
    _closed: dict[str, pl.DataFrame] = field(default_factory=dict)
    _said: dict[Callable[[CountTables], Any], Any] = field(default_factory=dict)

    def segments(self, *, additive: bool) -> list[tuple[str, ...]]:
        """The groupings to scan for.

        Args:
            additive: Whether counts of a grouping are sums of those of a finer one; then only the groupings that are
                part of no other are scanned for, and the others are sums of them.
        """
        segments = [grouping.columns for grouping in self.groupings]
        if not additive:
            return segments
        return [segment for segment in segments if not any(set(segment) < set(other) for other in segments)]

    def add(
        self, table: str, segment: Sequence[str], counts: pl.DataFrame, keys: Sequence[str], columns: Sequence[str]
    ) -> None:
        """Add counts of one grouping to a count table.

        Args:
            table: Name of the count table.
            segment: The grouping columns.
            counts: The columns of the segment, `replicate`, perhaps `threshold`, the keys and the counts; a count that
                it lacks is 0, as is NULL.
            keys: Columns of the table beside grouping, replicate and threshold.
            columns: The counts; those of the whole table are those of the first counts that come in.
        """
        opened = self._open.setdefault(table, _OpenTable(tuple(keys), tuple(columns)))
        opened.add(tuple(segment), counts)

    def __getitem__(self, table: str) -> pl.DataFrame:
        """Counts of all groupings: columns `grouping`, all `by` columns, `replicate`, `threshold`, keys and counts.

        Its rows have a fixed order. A total of nothing is one row of zeros, so that empty inputs have results like any
        other.
        """
        if table not in self._closed:
            self._closed[table] = self._open[table].of_all(self.groupings, self.by)
        return self._closed[table]

    def say(self, function: Callable[[CountTables], T]) -> T:
        """Return what a function says of the tables that it reads, which then change no more; it is asked once."""
        if function not in self._said:
            self._said[function] = function(self)
        said: T = self._said[function]
        return said

    def all(self) -> dict[str, pl.DataFrame]:
        """All count tables by name, in the order in which they were begun."""
        return {table: self[table] for table in self._open}


@dataclass
class _OpenTable:
    keys: tuple[str, ...]
    columns: tuple[str, ...]
    counts: dict[tuple[str, ...], list[pl.DataFrame]] = field(default_factory=dict)

    def add(self, segment: tuple[str, ...], counts: pl.DataFrame) -> None:
        present = set(counts.columns)
        threshold = pl.col(THRESHOLD) if THRESHOLD in present else pl.lit(None, dtype=pl.Float64).alias(THRESHOLD)
        numbers = (
            pl.col(name).fill_null(0) if name in present else pl.lit(0, dtype=pl.Int64).alias(name)
            for name in self.columns
        )
        selected = counts.select(*segment, pl.col(REPLICATE).cast(pl.Int64), threshold, *self.keys, *numbers)
        self.counts.setdefault(segment, []).append(selected)

    def of_all(self, groupings: Sequence[Grouping], by: Sequence[str]) -> pl.DataFrame:
        """Sums of the finest counts for every grouping, in a fixed order."""
        finest = {segment: pl.concat(frames) for segment, frames in self.counts.items()}
        keys = [REPLICATE, THRESHOLD, *self.keys]
        summed_groupings = []
        for grouping in groupings:
            finer = [segment for segment in finest if set(grouping.columns) <= set(segment)]
            summed = add_up(finest[min(finer, key=len)], [*grouping.columns, *keys], self.columns)
            if not grouping.columns and summed.is_empty() and not self.keys:
                summed = _zero(summed)
            labels = pl.Series(GROUPING.name, [grouping.label]).new_from_index(0, summed.height)
            summed_groupings.append(summed.insert_column(0, labels))
        counts = pl.concat(summed_groupings, how="diagonal")[[GROUPING.name, *by, *keys, *self.columns]]
        return counts.sort([GROUPING.name, *by, *keys], nulls_last=True)


def _zero(counts: pl.DataFrame) -> pl.DataFrame:
    """One row of zeros below all thresholds."""
    zeros = [pl.lit(None if name == THRESHOLD else 0, dtype=dtype).alias(name) for name, dtype in counts.schema.items()]
    return pl.select(*zeros)
