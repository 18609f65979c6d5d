"""Count tables while they are made: counts of the finest groupings come in, the sums for all groupings go out."""

from __future__ import annotations

from dataclasses import field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import polars as pl

from ..base.columns import REPLICATE, SECOND_REPLICATE, THRESHOLD, add_up, add_up_in_order
from ..base.records import dataclass
from ..base.schemas import COUNT_TABLE, GROUPING, Grouping
from ..metrics.calibration.bins import NEAREST
from ..metrics.uncertainty.clusters import replicate_of_both

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..metrics.calibration.bins import Floats


T = TypeVar("T")
BIN = "bin"
SIDES = ("n_positive", "n_negative")
LOWER, UPPER = "cell_lower", "cell_upper"  # keys of the count table: edges of a cell, the same if it is one score


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
        self,
        table: str,
        segment: Sequence[str],
        counts: pl.DataFrame,
        keys: Sequence[str],
        columns: Sequence[str],
        crossed: Sequence[str] = (),
    ) -> None:
        """Add counts of one grouping to a count table.

        Args:
            table: Name of the count table.
            segment: The grouping columns.
            counts: The columns of the segment, `replicate`, perhaps `threshold`, the keys and the counts; a count that
                it lacks is 0, as is NULL.
            keys: Columns of the table beside grouping, replicate and threshold.
            columns: The counts; those of the whole table are those of the first counts that come in.
            crossed: Count tables of the same rows by their second parent, `second_replicate`, and by both; none: they
                have one parent.
        """
        by_parent = {table: counts}
        if crossed:
            first, second = pl.col(REPLICATE).cast(pl.Int64), pl.col(SECOND_REPLICATE).cast(pl.Int64)
            replicates = dict(zip(crossed, (second, replicate_of_both(first, second)), strict=True))
            by_parent |= {name: counts.with_columns(each.alias(REPLICATE)) for name, each in replicates.items()}
        for name, rows in by_parent.items():
            self._open.setdefault(name, _OpenTable(tuple(keys), tuple(columns))).add(tuple(segment), rows)

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
        labels = (counts.get_column(name) for name in segment)
        replicates = counts.get_column(REPLICATE).cast(pl.Int64)
        thresholds = _column(counts, THRESHOLD, pl.Series(THRESHOLD, [None], dtype=pl.Float64))
        keys = (counts.get_column(name) for name in self.keys)
        numbers = (_column(counts, name, pl.Series(name, [0], dtype=pl.Int64)) for name in self.columns)
        whole = (each.fill_null(0) if each.null_count() else each for each in numbers)
        selected = pl.DataFrame([*labels, replicates, thresholds, *keys, *whole])
        self.counts.setdefault(segment, []).append(selected)

    def of_all(self, groupings: Sequence[Grouping], by: Sequence[str]) -> pl.DataFrame:
        """Sums of the finest counts for every grouping, in a fixed order."""
        finest = {segment: pl.concat(frames) for segment, frames in self.counts.items()}
        keys = [REPLICATE, THRESHOLD, *self.keys]
        summed_groupings = []
        for grouping in sorted(groupings, key=lambda each: each.label):
            finer = [segment for segment in finest if set(grouping.columns) <= set(segment)]
            columns = [name for name in by if name in grouping.columns]
            summed = add_up_in_order(finest[min(finer, key=len)], [*columns, *keys], self.columns)
            if not grouping.columns and summed.is_empty() and not self.keys:
                zeros = [
                    pl.lit(None if name == THRESHOLD else 0, dtype=dtype).alias(name)
                    for name, dtype in summed.schema.items()
                ]
                summed = pl.select(*zeros)
            labels = pl.Series(GROUPING.name, [grouping.label]).new_from_index(0, summed.height)
            summed_groupings.append(summed.insert_column(0, labels))
        return pl.concat(summed_groupings, how="diagonal")[[GROUPING.name, *by, *keys, *self.columns]]


def _column(counts: pl.DataFrame, name: str, otherwise: pl.Series) -> pl.Series:
    """A column of some counts; where they lack it, as many copies of a value."""
    return counts.get_column(name) if name in counts.columns else otherwise.new_from_index(0, counts.height)


# Sums over rows from the number of rows of each score, as the queries make them: every term is a decimal.


def _counted_scores(counts: CountTables, segment: Sequence[str]) -> pl.DataFrame:
    """The number of rows of each score of the groups of a grouping, where every score is a threshold."""
    label, table = Grouping(tuple(segment)).label, counts[COUNT_TABLE]
    has_rows = pl.col(THRESHOLD).is_not_null() & (pl.sum_horizontal(SIDES) > 0)
    return table.filter(pl.col(GROUPING.name) == label, has_rows)


def losses_of_scores(counts: CountTables, segment: Sequence[str]) -> pl.DataFrame:
    """The columns of the table of likelihoods by group."""
    scores = _counted_scores(counts, segment)
    score, sides = scores[THRESHOLD].to_numpy(), (1.0, 0.0)
    is_outside = (score < 0) | (score > 1)
    clipped = np.clip(score, NEAREST, 1 - NEAREST)
    logarithms = [pl.Series(np.abs(clipped - (1 - side))).log().to_numpy() for side in sides]
    errors = [np.where(is_outside, 0.0, score - side) for side in sides]
    n = pl.sum_horizontal(SIDES)
    counted = scores.select(
        *segment,
        REPLICATE,
        *(n.alias(name) for name in ("n", "weights", "squares")),
        (n * pl.lit(pl.Series(is_outside))).alias("n_outside"),
        *(_sum(logarithms).alias(name) for name in ("first", "weighted")),
        _sum([each * each for each in logarithms]).alias("second"),
        _sum([each * each for each in errors]).alias("squared_errors"),
    )
    keys = [*segment, REPLICATE]
    return add_up(counted, keys, [name for name in counted.columns if name not in keys])


def moments_of_scores(counts: CountTables, segment: Sequence[str]) -> pl.DataFrame:
    """Sums that tables of calibration are made of, by score."""
    scores = _counted_scores(counts, segment).filter(pl.col(THRESHOLD).is_between(0, 1))
    score = scores[THRESHOLD].to_numpy()
    slope = 1 - 2 * score
    return scores.select(
        *segment,
        REPLICATE,
        *(pl.col(THRESHOLD).alias(name) for name in (LOWER, UPPER)),
        *SIDES,
        _sum([score, score]).alias("scores"),
        _sum([score, 0 * score]).alias("scores_positive"),
        _sum([score * score] * 2).alias("score_squares"),
        _sum([slope * slope * score * (1 - score)] * 2).alias("test_variance"),
    )


def _sum(terms: Sequence[Floats]) -> pl.Expr:
    """The sum over the rows of each score of a term of its positives and one of its negatives."""
    of_sides = []
    for name, term in zip(SIDES, terms, strict=True):
        fraction, whole = np.modf(term * 1e15)
        units = whole + np.sign(term) * (np.abs(fraction) >= 0.5)  # noqa: PLR2004 - half away from 0, as engines round
        of_sides.append(pl.lit(pl.Series(units.astype(np.int64))).cast(pl.Decimal(38, 0)) * pl.col(name))
    return (of_sides[0] + of_sides[1]) * pl.lit(Decimal("1e-15"))


def of_first_grouping(counts: pl.DataFrame) -> pl.DataFrame:
    """The counts of the grouping that comes first: like every grouping it has each row once."""
    labels = counts[GROUPING.name]
    return counts if labels.n_unique() <= 1 else counts.filter(labels == labels[0])


@dataclass(frozen=True)
class Unfit:
    """Why the rows that were counted do not fit a table.

    Attributes:
        reason: Why, in words.
        is_obvious: Whether nobody would expect the table of such rows, so that only the record says why it is not made.
    """

    reason: str
    is_obvious: bool
