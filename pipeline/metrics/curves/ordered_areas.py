"""Average precision and area under the ROC curve with standard errors, in one pass over rows in ascending score order.

Tied rows enter together. With T and F the weights of the positives and negatives at or above a score, and P and N the
total weights:

    AP  = 1/P Σ_s p_s T_s / (T_s + F_s)                        the step sum over the distinct scores s
    ROC = 1/(P N) Σ_s p_s (N below s + half of N at s)        the probability that a positive scores higher

and their influences (`pipeline.metrics.curves.influence`), by differentiating both sums:

    AP   ψ_1(x) = T_x / (T_x + F_x) + Σ_{s ≤ x} p_s F_s / (T_s + F_s)²
         ψ_0(x) = -N/P Σ_{s ≤ x} p_s T_s / (T_s + F_s)²
    ROC  ψ_1(x) = (N below x + half of N at x) / N
         ψ_0(x) = (P above x + half of P at x) / P

In ascending order all of these are running sums, because T and F are the totals minus what lies below.
"""

from __future__ import annotations

from dataclasses import fields
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import polars as pl

from ...base.records import dataclass
from .influence import CLASSES, ClassMoments, ReplicateSums, degrees_of_rows, running_sums, variance_of_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from .influence import Shifts


Floats: TypeAlias = "NDArray[np.float64]"
Integers: TypeAlias = "NDArray[np.int64]"

ROW_AREAS = ("average_precision", "roc_auc")
_LABELS = ("group", "score", "replicate", "second_replicate")  # of rows; the other arrays are additive
_SUMS = ("first", "weighted", "second", "third", "fourth")


@dataclass(frozen=True)
class Rows:
    """Rows in ascending order of group and score, or sums over tied rows; all arrays have the same length."""

    group: Integers  # index of the group in the totals; non-decreasing
    score: Floats  # non-decreasing within a group
    positive: Floats  # weight of the positives; without weights 0 or 1, or their number
    negative: Floats  # weight of the negatives
    positive_squares: Floats | None = None  # sum of squared weights of the positives; None if every weight is 1
    negative_squares: Floats | None = None  # sum of squared weights of the negatives; None likewise
    replicate: Integers | None = None  # index of the replicate; None if rows are independent
    second_replicate: Integers | None = None  # that of the second parent of rows that have two; None if they have one

    def __len__(self) -> int:
        return len(self.group)

    def cut(self, chosen: slice) -> Rows:
        """The rows of a slice."""
        return Rows(**{name: values[chosen] for name, values in self.arrays.items()})

    def after(self, other: Rows) -> Rows:
        """The other rows followed by these."""
        return Rows(**{name: np.concatenate([other.arrays[name], values]) for name, values in self.arrays.items()})

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays that are not None, by name."""
        return {field.name: values for field in fields(self) if (values := getattr(self, field.name)) is not None}

    @property
    def weights(self) -> dict[str, Floats]:
        """The arrays that are additive, by name."""
        return {name: values for name, values in self.arrays.items() if name not in _LABELS}

    def starts(self) -> Integers:
        """Index of the first row of each tie."""
        change = np.empty(len(self), dtype=np.bool_)
        change[0] = True
        np.not_equal(self.score[1:], self.score[:-1], out=change[1:])
        if self.group[0] != self.group[-1]:
            change[1:] |= self.group[1:] != self.group[:-1]
        return np.flatnonzero(change)

    def begins_in(self, other: Rows) -> bool:
        """Whether the first row ties with the last of other rows."""
        return bool(self.group[0] == other.group[-1] and self.score[0] == other.score[-1])


@dataclass(frozen=True)
class Totals:
    """Totals of each group; arrays of shape (groups,)."""

    positives: Floats  # weight of them
    negatives: Floats
    n_positive: Floats  # number with a weight above 0
    n_negative: Floats


@dataclass(frozen=True)
class Estimates:
    """Areas by name, each of shape (groups,); nan where undefined.

    Attributes:
        area: The areas.
        se: Standard errors of the areas.
        degrees: Degrees of freedom of the standard errors; see `influence`.
        skewed: Skewness of the areas, see `uncertainty.clusters`; 0 where rows are independent.
        design_effect: Variance of average precision between replicates over that of independent rows (Kish 1965); nan
            where rows are independent.
        shifts: What each replicate moves, of shape (replicates, groups), of two parents each replicate of the first;
            empty where rows are independent.
    """

    area: dict[str, Floats]
    se: dict[str, Floats]
    degrees: dict[str, Floats]
    skewed: dict[str, Floats]
    design_effect: Floats
    shifts: dict[str, Shifts]


class OrderedAreas:
    """Collects rows block by block; memory grows with the groups and replicates, not with the rows.

    Args:
        totals: Totals of the groups, in the order in which the groups come.
        replicates: Number of replicates; 0 if rows are independent.
        second_replicates: Number of those of the second parent of rows that have two; 0 if they have one.
        in_time: Whether replicates follow each other in time.
    """

    def __init__(
        self, totals: Totals, replicates: int = 0, second_replicates: int = 0, *, in_time: bool = False
    ) -> None:
        self._totals = totals
        self._replicates = replicates
        groups = len(totals.positives)
        names = [f"{area}_{side}_{sum_}" for area in ROW_AREAS for side in CLASSES for sum_ in _SUMS]
        squares = [f"squares_{side}" for side in CLASSES]
        self._sums = {name: np.zeros(groups) for name in (*names, *squares, "slope", "steps")}
        self._by_replicate = ReplicateSums(groups, ROW_AREAS, replicates, second_replicates, in_time=in_time)
        self._open: Rows | None = None
        self._state = dict.fromkeys(("positive", "negative", "up", "down"), 0.0)
        self._group = -1

    def add(self, rows: Rows) -> None:
        """Take the next rows; the last tie is held back, because more of its rows may follow."""
        if not len(rows):
            return
        before = self._open
        if before is not None and rows.begins_in(before):
            rows, before = rows.after(before), None
        starts = rows.starts()
        last = int(starts[-1])
        self._open = _merged(rows.cut(slice(last, None)))
        if last:
            self._take(rows.cut(slice(0, last)), starts[:-1], before)
        elif before is not None:
            self._take(before, before.starts())

    def finish(self, *, random_sizes: bool = False) -> Estimates:
        """The areas of all rows.

        Args:
            random_sizes: As for `influence.variance_of_rows`; replicates always vary in size.
        """
        if self._open is not None:
            self._take(self._open, self._open.starts())
            self._open = None
        totals, sums = self._totals, self._sums
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = sums["slope"] / totals.positives
            precision = np.where(totals.n_positive > 0, sums["steps"] / totals.positives, np.nan)
            roc = np.where(totals.n_negative > 0, sums["roc_auc_positive_first"] / totals.positives, np.nan)
        area = {name: np.clip(value, 0.0, 1.0) for name, value in zip(ROW_AREAS, (precision, roc), strict=True)}
        slopes = dict(zip(ROW_AREAS, (slope, np.zeros_like(slope)), strict=True))
        se, degrees, skewed, shifts = {}, {}, {}, {}
        for name in ROW_AREAS:
            if self._replicates:
                spread, shifts[name] = self._by_replicate.spread_and_shifts(name, slopes[name])
                variance, degrees[name], skewed[name] = spread.variance, spread.degrees, spread.skewed
            else:
                moments = self._moments(name)
                variance = variance_of_rows(*moments, slopes[name], random_sizes=random_sizes)
                degrees[name], skewed[name] = degrees_of_rows(*moments, variance), np.zeros_like(variance)
            se[name] = np.where(np.isnan(area[name]), np.nan, np.sqrt(variance))
        return Estimates(area, se, degrees, skewed, self._design_effect(se["average_precision"], slope), shifts)

    def _design_effect(self, se: Floats, slope: Floats) -> Floats:
        if not self._replicates:
            return np.full_like(se, np.nan)
        with np.errstate(divide="ignore", invalid="ignore"):
            effect = se**2 / variance_of_rows(*self._moments("average_precision"), slope, random_sizes=True)
        return np.where(np.isfinite(effect), effect, np.nan)

    def _moments(self, area: str) -> tuple[ClassMoments, ClassMoments]:
        totals = self._totals
        positive, negative = ([self._sums[f"{area}_{side}_{name}"] for name in _SUMS] for side in CLASSES)
        return (
            ClassMoments(totals.n_positive, totals.positives, self._sums["squares_positive"], *positive),
            ClassMoments(totals.n_negative, totals.negatives, self._sums["squares_negative"], *negative),
        )

    def _take(self, rows: Rows, starts: Integers, before: Rows | None = None) -> None:
        """Add complete ties, which start at these rows, to the sums, and one more that lies below the others."""
        if before is not None and self._replicates:
            rows, starts = rows.after(before), np.append(0, starts + len(before))
        ties = rows if len(starts) == len(rows) else _summed(rows, starts)
        if rows.replicate is not None:
            running = self._add_up(ties, None)
            self._add_replicates(rows, rows.replicate, starts, running)
            return
        taken, between = _with_positives(ties)
        if before is not None:
            taken, between = taken.after(before), between.after_nothing()
        self._add_up(taken, between)

    def _add_up(self, ties: Rows, between: _Between | None) -> _Running:
        """Add ties to the sums, and the negatives that lie between each tie and the previous one of its group."""
        first = np.flatnonzero(np.concatenate([np.ones(1, dtype=bool), ties.group[1:] != ties.group[:-1]]))
        groups = ties.group[first]
        running = self._running(ties, first, between)

        def add(name: str, values: Floats) -> None:
            self._sums[name][groups] += np.add.reduceat(values, first)

        def add_class(name: str, weight: Floats, squares: Floats, psi: Floats) -> None:
            power = squares * psi
            add(f"{name}_first", power if squares is weight else weight * psi)
            for sum_ in _SUMS[1:]:
                add(f"{name}_{sum_}", power)
                power = power * psi

        p, q = ties.positive, ties.negative
        steps = p * running.precision
        add("steps", steps)
        add("slope", steps * (1 - running.precision))
        squares = (
            p if ties.positive_squares is None else ties.positive_squares,
            q if ties.negative_squares is None else ties.negative_squares,
        )
        for side, values in zip(CLASSES, squares, strict=True):
            add(f"squares_{side}", values)
        if between is not None:
            add("squares_negative", between.squares)
        for area in ROW_AREAS:
            add_class(f"{area}_positive", p, squares[0], running.positive[area])
            add_class(f"{area}_negative", q, squares[1], running.negative[area])
            if between is not None:
                add_class(f"{area}_negative", between.weight, between.squares, running.between[area])
        return running

    def _running(self, ties: Rows, first: Integers, between: _Between | None) -> _Running:
        """Influences at each tie, from running sums that start anew in each group."""
        group, totals = ties.group, self._totals
        sizes = np.diff(np.append(first, len(group)))
        state = self._state if group[0] == self._group else dict.fromkeys(self._state, 0.0)

        def up_to(values: Floats, name: str) -> Floats:
            sums = running_sums(values, first)
            if state[name]:
                sums[: sizes[0]] += state[name]
            return sums

        def spread(values: Floats) -> Floats | np.float64:
            return values[group[0]] if len(first) == 1 else values[group]

        # p and q at each tie, running sums up to it, and T and F as totals minus what lies below
        p, q = ties.positive, ties.negative
        to_p = up_to(p, "positive")
        to_q = up_to(q if between is None else between.weight + q, "negative")
        all_p, all_q = spread(totals.positives), spread(totals.negatives)
        hits, false = np.maximum(all_p - to_p + p, p), np.maximum(all_q - to_q + q, q)
        # T / (T + F), and the running sums in the influences on average precision
        with np.errstate(divide="ignore", invalid="ignore"):
            precision = np.where(p > 0, hits / (hits + false), 0.0)
            rate = np.where(p > 0, p / (hits + false) ** 2, 0.0)
            more_down = rate * hits
            up, down = up_to(rate * false, "up"), up_to(more_down, "down")
            ratio = np.where(all_p > 0, all_q / all_p, 0.0)
            inverse_p, inverse_q = np.where(all_p > 0, 1 / all_p, 0.0), np.where(all_q > 0, 1 / all_q, 0.0)
        # the last group may go on in the next block: its running sums are continued there
        self._group = int(group[-1])
        self._state = {"positive": to_p[-1], "negative": to_q[-1], "up": up[-1], "down": down[-1]}
        positive = {"average_precision": precision + up, "roc_auc": (to_q - q / 2) * inverse_q}
        negative = {"average_precision": -ratio * down, "roc_auc": (hits - p / 2) * inverse_p}
        before = {}
        if between is not None:
            before = {"average_precision": -ratio * (down - more_down), "roc_auc": hits * inverse_p}
        return _Running(precision, positive, negative, before)

    def _add_replicates(self, rows: Rows, replicate: Integers, starts: Integers, running: _Running) -> None:
        tie = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(rows))))
        add = self._by_replicate.adding(rows.group, replicate, rows.second_replicate)
        sides = (rows.positive, running.positive), (rows.negative, running.negative)
        for side, (weight, influence) in zip(CLASSES, sides, strict=True):
            add(f"weight_{side}", weight)
            for area in ROW_AREAS:
                add(f"{area}_{side}", weight * influence[area][tie])


@dataclass(frozen=True)
class _Between:
    """For each tie, the negatives between it and the previous tie of its group; all have the same influence."""

    weight: Floats
    squares: Floats

    def after_nothing(self) -> _Between:
        """The same when one more tie precedes the others."""
        weight = np.append(0.0, self.weight)
        return _Between(weight, weight if self.squares is self.weight else np.append(0.0, self.squares))


@dataclass(frozen=True)
class _Running:
    """At each tie T / (T + F), 0 without positives, and the influences of rows by area.

    They are those of a positive, of a negative, and of a negative between this tie and the previous one.
    """

    precision: Floats
    positive: dict[str, Floats]
    negative: dict[str, Floats]
    between: dict[str, Floats]


def _with_positives(ties: Rows) -> tuple[Rows, _Between]:
    """Ties that have a positive or are the last of their group, and the negatives of the other ties between them."""
    last = np.concatenate([ties.group[1:] != ties.group[:-1], np.ones(1, dtype=bool)])
    kept = np.flatnonzero((ties.positive > 0) | last)
    taken = Rows(**{name: values[kept] for name, values in ties.arrays.items()})
    starts = np.concatenate([np.zeros(1, dtype=np.int64), kept[:-1] + 1])
    weight = np.add.reduceat(ties.negative, starts) - taken.negative
    if ties.negative_squares is None or taken.negative_squares is None:
        return taken, _Between(weight, weight)
    return taken, _Between(weight, np.add.reduceat(ties.negative_squares, starts) - taken.negative_squares)


def _summed(rows: Rows, starts: Integers) -> Rows:
    """Each tie as one row, without its replicates."""
    sums: dict[str, NDArray[Any]] = {name: np.add.reduceat(weights, starts) for name, weights in rows.weights.items()}
    return Rows(rows.group[starts], rows.score[starts], **sums)


def _merged(rows: Rows) -> Rows:
    """One tie as a single row, or as one row for each replicate that it has, of two parents for each pair of them."""
    if rows.replicate is None:
        sums: dict[str, NDArray[Any]] = {name: values.sum()[None] for name, values in rows.weights.items()}
        return Rows(rows.group[:1], rows.score[:1], **sums)
    second = np.zeros_like(rows.replicate) if rows.second_replicate is None else rows.second_replicate
    width = int(second.max()) + 1
    pair = rows.replicate * width + second
    present = np.flatnonzero(np.bincount(pair))
    sums = {name: np.bincount(pair, weights=values)[present] for name, values in rows.weights.items()}
    labels: dict[str, NDArray[Any]] = {"replicate": present // width, "second_replicate": present % width}
    group, score = (np.full(len(present), values[0]) for values in (rows.group, rows.score))
    return Rows(group, score, **sums, **{name: labels[name] for name in labels if name in rows.arrays})


# Sorting scores and labels of many rows in memory, as one 64-bit number for each row.
#
# A finite score takes all 64 bits. Scores below zero are stored at the front of their group and the others behind
# them, so that the sign is not needed and its bit is free for the label: 1 for a positive. Among scores of one sign,
# the order of these numbers is that of the scores; below zero, where it would be reversed, all other bits are
# flipped.


Labels: TypeAlias = "NDArray[np.bool_]"
Numbers: TypeAlias = "NDArray[np.uint64]"

BYTES = 16  # peak memory for each row: its number, and a copy while numbers are sorted
MOST_GROUPS = 1 << 12  # because each is sorted separately
_ONE, _SIGN = np.uint64(1), np.uint64(63)


class SizesDifferError(ValueError):
    """The number of rows of a group differs from the announced size."""


class PackedScores:
    """Collects rows in any order and returns them by group, ascending score and label.

    Args:
        sizes: Rows of each group, shape (groups,), at most `MOST_GROUPS` of them.
    """

    def __init__(self, sizes: Integers) -> None:
        self._ends = np.cumsum(sizes)
        self._numbers: Numbers = np.empty(int(sizes.sum()), dtype=np.uint64)
        self._front, self._back = self._ends - sizes, self._ends.copy()  # free space of each group

    def add(self, group: Integers, score: Floats, label: Labels) -> None:
        """Take rows.

        Args:
            group: Index of the group in `sizes`, shape (rows,).
            score: Finite; -0 counts as 0.
            label: Whether the row is a positive.

        Raises:
            SizesDifferError: a group has more rows than its size.
        """
        if not len(score):
            return
        # the sign bit is shifted out (also that of -0), and the label takes the lowest bit
        below = score < 0
        numbers = _flipped(score.view(np.uint64) << _ONE | label, below)
        bucket = (2 * group + below).astype(np.uint16)
        # bring together the rows of each group and sign, and store them
        if (bucket != bucket[0]).any():
            order = np.argsort(bucket, kind="stable")
            bucket, numbers = bucket[order], numbers[order]
        edges = [0, *(np.flatnonzero(bucket[1:] != bucket[:-1]) + 1).tolist(), len(bucket)]
        for start, stop in pairwise(edges):
            self._put(*divmod(int(bucket[start]), 2), numbers[start:stop])

    def in_order(self, rows: int) -> Iterator[tuple[Integers, Floats, Labels]]:
        """Group, score and label of all rows in order, in blocks of `rows` rows; the last block may be shorter.

        Raises:
            SizesDifferError: a group has fewer rows than its size.
        """
        if (self._front != self._back).any():
            message = "a group has fewer rows than its size"
            raise SizesDifferError(message)
        starts = np.append(0, self._ends[:-1])
        for start, middle, end in zip(starts.tolist(), self._front.tolist(), self._ends.tolist(), strict=True):
            for numbers in (self._numbers[start:middle], self._numbers[middle:end]):
                if len(numbers) > 1:
                    numbers[:] = pl.Series(numbers).sort().to_numpy()  # on all cores
        for start in range(0, len(self._numbers), rows):
            yield self._unpacked(start, min(start + rows, len(self._numbers)))

    def _put(self, group: int, below: int, numbers: Numbers) -> None:
        """Fill the free space of a group, from its front for scores below zero and else from its back."""
        if len(numbers) > self._back[group] - self._front[group]:
            message = "a group has more rows than its size"
            raise SizesDifferError(message)
        if below:
            start = self._front[group]
            self._front[group] += len(numbers)
        else:
            self._back[group] -= len(numbers)
            start = self._back[group]
        self._numbers[start : start + len(numbers)] = numbers

    def _unpacked(self, start: int, stop: int) -> tuple[Integers, Floats, Labels]:
        first, last = np.searchsorted(self._ends, [start, stop - 1], side="right")
        edges = np.append(start, np.clip(self._ends[first : last + 1], start, stop))
        group = np.repeat(np.arange(first, last + 1), edges[1:] - edges[:-1])
        below = np.arange(start, stop) < self._front[group]
        numbers = self._numbers[start:stop]
        bits = _flipped(numbers, below) >> _ONE | below.astype(np.uint64) << _SIGN
        return group, bits.view(np.float64), (numbers & _ONE).astype(np.bool_)


def _flipped(numbers: Numbers, below: Labels) -> Numbers:
    """Numbers with all bits but the label's flipped where the score is below zero."""
    return numbers ^ (-below.astype(np.int64) << 1).view(np.uint64)
