"""Sums by bin of the score, of all rows and by replicate, from the count tables of calibration."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from ....metrics.calibration.bins import BIN, BINNING, bins_of_cells, summed
from ....metrics.calibration.bins import LOWER as SCORE_LOWER
from ....metrics.calibration.bins import UPPER as SCORE_UPPER
from ....metrics.calibration.sums import BinSums, Moments
from ....plan.probability_sums import LOWER, UPPER
from ....records import dataclass
from ....tables.columns import by_group, doubles
from ....tables.sweep import IN_TIME, REPLICATE, THRESHOLD, add_up
from ..contract import CROSSED_CALIBRATION
from .probabilities import INTO

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

EDGES = (LOWER, UPPER)
_WEIGHTED = ("weight_positive", "weight_negative", "scores", "scores_positive", "score_squares")
_HEAVY = ("squares_positive", "squares_negative", "heavy_scores", "heavy_scores_positive", "heavy_score_squares")
_OF_ROWS = ("n_positive", "n_negative", "scores", "scores_positive", "score_squares")
_EXPECTED = ("test_expected_positive", "test_expected_negative")
_SUMS = (*_OF_ROWS[:2], *_WEIGHTED, *_HEAVY, "test_variance", *_EXPECTED, "scores_open")


@dataclass(frozen=True)
class Binned:
    """Sums over the rows of the bins of several groups.

    Attributes:
        keys: Columns that identify a group and a binning.
        frame: One row per group, binning and bin that has rows, in this order: `keys`, `bin`, the edges, and sums.
        bins: Which bin every cell lies in.
        tables: The sums by replicate and cell: of the one clustering, or of both parents and of their intersections.
        is_weighted: Whether rows have weights.
        in_time: Whether replicates follow each other in time.
    """

    keys: tuple[str, ...]
    frame: pl.DataFrame
    bins: pl.DataFrame
    tables: tuple[pl.DataFrame, ...]
    is_weighted: bool
    in_time: bool

    @classmethod
    def of(cls, counts: Mapping[str, pl.DataFrame], groups: pl.DataFrame, count: int) -> Binned:
        """From the count tables.

        Args:
            counts: The tables of the plan.
            groups: Columns that identify a group: the groups that are wanted.
            count: Number of bins.
        """
        keys = groups.columns
        tables = [
            counts[name].drop(THRESHOLD).join(groups, on=keys, how="semi", nulls_equal=True)
            for name in (INTO, *CROSSED_CALIBRATION)
            if name in counts
        ]
        sizes = (pl.col("n_positive") + pl.col("n_negative")).alias("n")
        cells = add_up(tables[0].with_columns(sizes), [*keys, *EDGES], ["n"])
        bins = bins_of_cells(cells, keys, EDGES, count)
        order = [*keys, BINNING, BIN]
        sums = summed(tables[0].drop(REPLICATE), bins, keys, EDGES).sort(order, nulls_last=True)
        edges = _edges(bins, keys, count)
        frame = sums.join(edges, on=order, how="left", nulls_equal=True, maintain_order="left")
        is_weighted = "weight_positive" in sums.columns
        return cls((*keys, BINNING), _doubles(frame), bins, tuple(tables), is_weighted, IN_TIME in counts)

    @cached_property
    def by_replicate(self) -> tuple[pl.DataFrame, ...]:
        """The sums by replicate, too, of every clustering."""
        by = [*self.keys[:-1], REPLICATE]
        return tuple(_doubles(summed(table, self.bins, by, EDGES).sort(REPLICATE)) for table in self.tables)

    @cached_property
    def starts(self) -> Ints:
        """Index of the first bin of every group and binning."""
        numbers = self.frame.select(pl.struct(self.keys).rle_id()).to_series()
        return np.flatnonzero(numbers.is_first_distinct().to_numpy())

    @property
    def sums(self) -> BinSums:
        """The sums of all bins."""
        return _bin_sums(self.frame, is_weighted=self.is_weighted)

    def bounds(self, starts: Ints | None = None) -> tuple[pl.Series, pl.Series]:
        """Certified bounds of the mean score of every bin, or of the bins from each start on; NULL: it is exact."""
        values = [self.frame["scores_open"].to_numpy(), self.sums.weighted.scores, self.sums.weighted.weight]
        if starts is not None:
            values = [np.add.reduceat(each, starts) for each in values]
        left, scores, weight = values
        left = np.where(left > 0, left, np.nan)
        ends = np.maximum((scores - left) / weight, 0.0), np.minimum((scores + left) / weight, 1.0)
        return doubles("mean_score_min", ends[0]), doubles("mean_score_max", ends[1])

    @property
    def replicates(self) -> int:
        """Number of replicates of all clusterings together."""
        return sum(table[REPLICATE].n_unique() for table in self.tables)

    def groups(self) -> Iterator[tuple[BinSums, list[Moments]]]:
        """The sums of the bins of every group and binning, and the same by replicate, shape (G, K)."""
        clusterings = [by_group(table, self.keys) for table in self.by_replicate]
        for key, frame in by_group(self.frame, self.keys).items():
            numbers = frame[BIN].to_numpy()
            moments = [replace(_by_replicate(tables[key], numbers), in_time=self.in_time) for tables in clusterings]
            yield _bin_sums(frame, is_weighted=self.is_weighted), moments


def _doubles(frame: pl.DataFrame) -> pl.DataFrame:
    """Sums as doubles; without weights every weight and every squared weight is 1."""
    if "weight_positive" not in frame.columns:
        ones = zip((*_WEIGHTED[:2], *_HEAVY), (*_OF_ROWS[:2], *_OF_ROWS), strict=True)
        expected = (pl.col("test_variance"), pl.lit(0.0))
        frame = frame.with_columns(
            *(pl.col(of_rows).alias(name) for name, of_rows in ones),
            *(value.alias(name) for name, value in zip(_EXPECTED, expected, strict=True)),
        )
    return frame.with_columns(pl.col(_SUMS).cast(pl.Float64))


def _edges(bins: pl.DataFrame, keys: Sequence[str], count: int) -> pl.DataFrame:
    """The edges of every bin: by width those of all groups, by quantile where the rows of the group fall apart."""
    order = [*keys, BINNING, BIN]
    cells = bins.group_by(order).agg(pl.col(LOWER).min(), pl.col(UPPER).max()).sort(order, nulls_last=True)
    below = pl.col(UPPER).shift().over([*keys, BINNING])
    is_width, number = pl.col(BINNING) == "width", pl.col(BIN)
    lower = pl.when(is_width).then((number - 1) / count).otherwise(pl.coalesce(below, LOWER))
    upper = pl.when(is_width).then(number / count).otherwise(UPPER)
    return cells.select(*order, lower.alias(SCORE_LOWER), upper.alias(SCORE_UPPER))


def _moments(values: Sequence[NDArray[np.float64]]) -> Moments:
    """From sums in the order of `_WEIGHTED`."""
    positive, negative, *scores = values
    return Moments(positive + negative, positive, *scores)


def _bin_sums(frame: pl.DataFrame, *, is_weighted: bool) -> BinSums:
    weighted, heavy = (_moments([frame[name].to_numpy() for name in names]) for names in (_WEIGHTED, _HEAVY))
    rows = (frame["n_positive"] + frame["n_negative"]).to_numpy()
    test_variance, positive, negative = (frame[name].to_numpy() for name in ("test_variance", *_EXPECTED))
    return BinSums(rows, weighted, heavy, test_variance, (positive, negative), is_weighted)


def _by_replicate(table: pl.DataFrame, numbers: Ints) -> Moments:
    """The sums of one group and binning by replicate and bin.

    Args:
        table: Its rows.
        numbers: Its bins, rising.
    """
    replicates, row = np.unique(table[REPLICATE].to_numpy(), return_inverse=True)
    place = (row, np.searchsorted(numbers, table[BIN].to_numpy()))
    arrays = []
    for name in _WEIGHTED:
        values = np.zeros((len(replicates), len(numbers)))
        values[place] = table[name].to_numpy()
        arrays.append(values)
    return _moments(arrays)
