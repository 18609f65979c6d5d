"""Replicates: counts by group × replicate × threshold, and limits from replicates that are drawn again.

Counts are the one form in which uncertainty meets the count tables. A count table holds integers, or decimals, by
group, replicate and threshold bin. A `Cube` turns it into counts at or above every threshold:

- as a frame, of all replicates together: `at_or_above`, `totals`;
- as arrays of one group, with the replicates on axis 0, as the functions of `jackknife` take them: `groups`, `beside`;
- as arrays of many groups at a time, of all replicates together: `blocks`.

The bins of a table need not be thresholds: a bin counts for all thresholds up to its lower edge. Rows with a NULL
threshold lie below all thresholds; they count in totals only.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import polars as pl
import scipy

from ...base.columns import REPLICATE, THRESHOLD, add_up, add_up_by_threshold, at_or_above, by_group, runs
from ...base.records import dataclass
from .jackknife import leave_one_out

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from ...base.columns import Boundary
    from .clusters import Cycle
    from .jackknife import Limits

Counts: TypeAlias = "NDArray[Any]"  # int64, or float64 for decimals and doubles
Floats: TypeAlias = "NDArray[np.float64]"
Ints: TypeAlias = "NDArray[np.int64]"
_Key: TypeAlias = tuple[object, ...]

MOST_CELLS = 50_000_000  # thresholds of all groups × replicates for which intervals are computed
BLOCK_CELLS = 2_000_000  # groups × thresholds of one block
FEW_SCORES = 64  # groups with no more are put into one block, whatever their sizes


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

    def within_budget(self, resamples: int = 0) -> bool:
        """Whether intervals of the group can be computed, perhaps from so many resamples of the bootstrap."""
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
    """Counts of several groups, one row of keys each, all replicates together.

    By name those that each of the falling thresholds retrieves, shape (groups, K), and all, shape (groups,).
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
        keys: Sequence[str] | None,
        thresholds: Sequence[float] | None,
        boundary: Boundary = ">=",
        crossed: Sequence[pl.DataFrame] = (),
        *,
        in_time: bool = False,
    ) -> Cube:
        """The cube of a count table; without keys its groups are told by the columns in front of `replicate`."""
        keys = counts.columns[: counts.columns.index(REPLICATE)] if keys is None else keys
        values = None if thresholds is None else tuple(thresholds)
        return cls(counts, tuple(keys), values, boundary, tuple(crossed), in_time=in_time)

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

    def groups(self) -> Iterator[tuple[_Key, GroupCounts]]:
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
    def _clusterings(self) -> list[dict[_Key, pl.DataFrame]]:
        """The rows of every group of the table and of those by other clusterings."""
        return [by_group(counts, self.keys) for counts in (self.counts, *self.crossed)]

    def blocks(self, names: Sequence[str]) -> Iterator[Block]:
        """The counts of many groups at a time, of all replicates, in blocks of at most `BLOCK_CELLS` cells.

        Without thresholds every score of a group retrieves itself, whatever the boundary. A block has groups of similar
        size; those with fewer scores than others have their lowest one repeated. Counts are added up exactly and are
        doubles only then.
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
        sorted_sizes, start = sizes[in_order], 0
        while start < len(in_order):
            widest = number or max(2 * int(sorted_sizes[start]), FEW_SCORES)
            end = len(in_order) if number else int(np.searchsorted(sorted_sizes, widest, side="right"))
            chosen = in_order[start : min(end, start + max(1, BLOCK_CELLS // widest))]
            start += len(chosen)
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
        """The rank of every row's threshold in its group, counted from the highest as 0; -1 for other values.

        The groups rise, and in each of them the thresholds, NULL behind them.
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


DEFAULT_RESAMPLES, FEWEST_RESAMPLES, MOST_RESAMPLES = 999, 99, 100_000
MOST_UNITS = 1_000  # units that are resampled each by itself; more of them are put together
_WEIGHTS_AT_ONCE = 4_000_000
_NEAR = 1e-9


@dataclass(frozen=True)
class Resampling:
    """How replicates are drawn again."""

    resamples: int = DEFAULT_RESAMPLES  # number of resamples, B
    seed: int = 0  # the same seed draws the same replicates

    def weights(self, replicates: int) -> Iterator[Floats]:
        """How often each of G replicates is drawn: blocks of resamples, shape (b, G), whole numbers that add up to G.

        The same resamples come whatever the size of the blocks.
        """
        if self.resamples * replicates <= _WEIGHTS_AT_ONCE:
            yield _all_weights(self, replicates)
            return
        rng, at_once = np.random.default_rng(self.seed), max(1, _WEIGHTS_AT_ONCE // replicates)
        for start in range(0, self.resamples, at_once):
            yield _drawn(rng, replicates, min(at_once, self.resamples - start))

    def rank(self, confidence: float) -> int:
        """Which of the ordered values bounds the tail on each side, from 1; 0: too few resamples for the confidence."""
        return math.floor((self.resamples + 1) * (1 - confidence) / 2 + _NEAR)

    def quantiles(self, distances: Floats, confidence: float) -> tuple[Floats, Floats]:
        """Quantiles of studentised distances, shape (B, …): those with equal tails, or the symmetric ones if farther.

        Those with equal tails follow the skewness of the sample, which may be that of one large cluster: on the short
        side they can be as near as one standard error. Quantiles of the absolute distances (Hall 1988) bound them from
        below. A distance that is nan counts as beyond both limits.

        Returns:
            Lower and upper quantile, shape (…); infinite where so many distances are.
        """
        rank = self.rank(confidence)
        if rank == 0:
            nothing = np.full(distances.shape[1:], np.inf)
            return -nothing, nothing
        is_missing, last = np.isnan(distances), len(distances)
        low = np.partition(np.where(is_missing, -np.inf, distances), rank - 1, axis=0)[rank - 1]
        above = np.where(is_missing, np.inf, distances)
        high = np.partition(above, last - rank, axis=0)[-rank]
        of_both = math.floor((last + 1) * (1 - confidence) + _NEAR)
        symmetric = np.partition(np.abs(above), last - of_both, axis=0)[-of_both]
        return np.minimum(low, -symmetric), np.maximum(high, symmetric)


def _drawn(rng: np.random.Generator, replicates: int, resamples: int) -> Floats:
    return rng.multinomial(replicates, np.full(replicates, 1 / replicates), size=resamples).astype(np.float64)


@lru_cache(maxsize=2)
def _all_weights(resampling: Resampling, replicates: int) -> Floats:
    weights = _drawn(np.random.default_rng(resampling.seed), replicates, resampling.resamples)
    weights.flags.writeable = False
    return weights


# Bootstrap-t limits of statistics of clusters, from the counts of replicates.
#
# Replicates are drawn with replacement, as many as there are, and the statistic is taken again from the counts of
# those drawn. How often each is drawn is multinomial, so that totals of resamples are products of a matrix of weights
# with the counts, and rows are not needed. Every resample has a standard error of its own, from the influences of its
# replicates (the infinitesimal jackknife), by which its distance from the estimate is divided. Quantiles of these
# studentised distances take the place of those of Student's t (Efron & Tibshirani 1993, chapter 12.5; with clusters
# Cameron, Gelbach & Miller 2008). Every threshold has quantiles of its own; see `Resampling.quantiles`.
#
# Statistics are taken on the scale on which they are nearly normal: ratios as differences of logarithms, which for a
# share of hits and misses is the logit, areas on the logit scale, and ratios with an uncertain denominator as
# N - r D with the ratio r of the sample, which gives limits like those of Fieller (Hwang 1995).
#
# A resample that has no value, such as a share of nothing, counts as beyond both limits. Where so many have none, or
# an infinite one, that a limit would be infinite, there is none (nan), and callers take that of the closed form.


Valued: TypeAlias = "tuple[Floats, Sequence[Floats]]"  # a statistic, and its derivatives by the totals
Statistic: TypeAlias = "Callable[[Sequence[Floats], Sequence[Floats]], Valued]"  # of totals and those of the sample

_CELLS_AT_ONCE = 2_000_000
_ROUNDING = 1e-12  # a variance that is less of its largest part is rounding


@dataclass(frozen=True)
class Studentised:
    """A statistic with its standard error and the quantiles of its studentised resamples; arrays of shape (K,)."""

    value: Floats  # the statistic
    error: Floats  # its standard error
    low: Floats  # lower quantile of (value* - value) / error*, usually below 0; -inf where the tail has no value
    high: Floats  # upper quantile

    @property
    @np.errstate(invalid="ignore", over="ignore")
    def limits(self) -> Limits:
        """Limits on the scale of the statistic, which they hold; nan where a quantile is infinite."""
        ends = self.value - self.high * self.error, self.value - self.low * self.error
        lower, upper = (np.where(np.isfinite(end), end, np.nan) for end in ends)
        return np.minimum(lower, self.value), np.maximum(upper, self.value)


def studentised(
    statistic: Statistic, counts: Sequence[NDArray[Any]], confidence: float, resampling: Resampling
) -> Studentised:
    """Resample a statistic of totals.

    Args:
        statistic: From totals of resamples, in the order of `counts` and each of shape (b, K) or (b, 1), its value and
            its derivatives by each of them; beside it the totals of the sample, of shape (1, K) or (1, 1).
        counts: By replicate, each of shape (G, K) or (G, 1), G ≥ 2.
        confidence: Such as 0.95.
        resampling: How to draw.
    """
    replicates, width = len(counts[0]), max(count.shape[1] for count in counts)
    at_once = max(1, _CELLS_AT_ONCE // max(resampling.resamples, replicates))
    blocks = []
    for start in range(0, width, at_once):
        columns = slice(start, start + at_once)
        block = [np.asarray(count if count.shape[1] == 1 else count[:, columns], np.float64) for count in counts]
        blocks.append(_of_block(statistic, block, slice(start, min(start + at_once, width)), confidence, resampling))
    return Studentised(*(np.concatenate(values) for values in zip(*blocks, strict=True)))


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def _of_block(
    statistic: Statistic, counts: Sequence[Floats], columns: slice, confidence: float, resampling: Resampling
) -> tuple[Floats, Floats, Floats, Floats]:
    """The attributes of `Studentised` at some thresholds."""
    moments = _Moments(counts)
    width = columns.stop - columns.start
    value, error = moments.taken(statistic, np.ones((1, len(counts[0]))), width)
    distances = np.empty((resampling.resamples, width))
    start = 0
    for weights in resampling.weights(len(counts[0])):
        resampled, errors = moments.taken(statistic, weights, width)
        distances[start : start + len(weights)] = (resampled - value) / errors
        start += len(weights)
    low, high = resampling.quantiles(distances, confidence)
    return value[0], error[0], low, high


@np.errstate(invalid="ignore")
def _on_grid(values: Floats) -> Floats:
    """Values of shape (G, …) rounded so little that sums of G of a column, however often drawn, are exact in any order.

    Matrix products add up in an order that depends on the number of threads. Multiples of a power of two of which G of
    the largest value have fewer than 2^53 are added without rounding. Whole numbers stay as they are.
    """
    _, exponent = np.frexp(np.abs(values).max(axis=0) * len(values))
    unit = np.ldexp(1.0, exponent - 52)
    return np.asarray(np.rint(values / unit) * unit)


class _Moments:
    """Totals of weighted replicates, of counts of shape (G, K) or (G, 1), and the variance of what depends on them."""

    def __init__(self, counts: Sequence[Floats]) -> None:
        self._counts = [_on_grid(count) for count in counts]
        pairs = [(row, column) for row in range(len(counts)) for column in range(row, len(counts))]
        self._sample = [count.sum(axis=0, keepdims=True) for count in self._counts]
        self._products = {(row, column): _on_grid(counts[row] * counts[column]) for row, column in pairs}

    def taken(self, statistic: Statistic, weights: Floats, width: int) -> tuple[Floats, Floats]:
        """A statistic of resamples with weights of shape (b, G), and its standard errors, each of shape (b, K).

        The variance is G / (G - 1) × the weighted sum of squares of the influences d · x_g about their mean, where d
        are the derivatives: the squares need only the sums of products of counts.
        """
        replicates = weights.shape[1]
        totals = [weights @ count for count in self._counts]
        value, derivatives = statistic(totals, self._sample)
        squares, largest, mean = np.zeros((3, len(weights), width))
        for (row, column), product in self._products.items():
            term = derivatives[row] * derivatives[column] * (weights @ product)
            squares += term if row == column else 2 * term
            np.maximum(largest, np.abs(term), out=largest)
        for derivative, total in zip(derivatives, totals, strict=True):
            mean += derivative * total
        variance = (squares - mean**2 / replicates) * (replicates / (replicates - 1))
        variance = np.where(variance > _ROUNDING * largest, variance, 0.0)
        # an infinite value has no error; its distance is infinite whatever that is
        errors = np.where(np.isinf(value), 1.0, np.sqrt(variance))
        return np.broadcast_to(value, errors.shape), errors


def _log_ratio(totals: Sequence[Floats], _sample: Sequence[Floats]) -> Valued:
    """The difference log N - log D, and its derivatives."""
    top, bottom = totals
    return np.log(top) - np.log(bottom), (1 / top, -1 / bottom)


def ratio_limits(
    tops: NDArray[Any], bottoms: NDArray[Any], confidence: float, resampling: Resampling
) -> tuple[Floats, Floats]:
    """Limits of the ratio of two totals on the log scale, shape (K,); nan where there is none, as where a total is 0.

    Numerators and denominators by replicate have the shape (G, K), ≥ 0, G ≥ 2.
    """
    lower, upper = studentised(_log_ratio, (tops, bottoms), confidence, resampling).limits
    return np.exp(lower), np.exp(upper)


def share_limits(
    hits: NDArray[Any], misses: NDArray[Any], confidence: float, resampling: Resampling
) -> tuple[Floats, Floats]:
    """Limits of the share of hits on the logit scale, log hits - log misses; arguments as for `ratio_limits`."""
    lower, upper = studentised(_log_ratio, (hits, misses), confidence, resampling).limits
    return scipy.special.expit(lower), scipy.special.expit(upper)


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def area_quantiles(shifts: Floats, area: float, confidence: float, resampling: Resampling) -> tuple[float, float]:
    """Quantiles of the studentised logit of an area, from what each replicate shifts: the linearised bootstrap-t.

    An area* is taken as the area and the shifts of the replicates drawn, so that rows need not be put in order again.

    Args:
        shifts: Shape (G,): how far each replicate moves the area up.
        area: Between 0 and 1.
        confidence: Such as 0.95.
        resampling: How to draw.

    Returns:
        As `Studentised.low` and `high`; (-inf, inf) for fewer than two replicates.
    """
    replicates = len(shifts)
    if replicates < 2 or not 0 < area < 1:  # noqa: PLR2004 - a spread needs two
        return -math.inf, math.inf
    centred = _on_grid(shifts - shifts.mean())
    squares = _on_grid(centred * centred)
    distances = []
    for weights in resampling.weights(replicates):
        moved, total = weights @ centred, weights @ squares
        resampled = area + moved
        variance = (total - moved**2 / replicates) * (replicates / (replicates - 1))
        slope = np.where(variance > _ROUNDING * total, np.sqrt(variance), 0.0) / (resampled * (1 - resampled))
        far = np.where(resampled <= 0, -np.inf, np.inf)
        inside = (resampled > 0) & (resampled < 1)
        distance = scipy.special.logit(np.clip(resampled, 0.0, 1.0)) - scipy.special.logit(area)
        distances.append(np.where(inside, distance / slope, far))
    low, high = resampling.quantiles(np.concatenate(distances), confidence)
    return float(low), float(high)


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def area_limits(areas: Floats, errors: Floats, quantiles: Limits) -> Limits:
    """Limits of areas between 0 and 1 on the logit scale, from `area_quantiles`; nan where one is nan or infinite."""
    centre, error = scipy.special.logit(areas), errors / (areas * (1 - areas))
    ends = (centre - quantile * error for quantile in reversed(quantiles))
    lower, upper = (np.where(np.isfinite(end), scipy.special.expit(end), np.nan) for end in ends)
    return np.minimum(lower, areas), np.maximum(upper, areas)


def otherwise(limits: Limits, closed: Limits) -> Limits:
    """Limits of the bootstrap, and of the closed form where it has none."""
    lower, upper = (np.where(np.isnan(limit), form, limit) for limit, form in zip(limits, closed, strict=True))
    return lower, upper
