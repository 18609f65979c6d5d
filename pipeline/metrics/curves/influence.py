"""Standard errors of areas from the influence of every row, which is how much the row shifts the area.

An area A is a function of two distributions, of the scores of positives and of the scores of negatives. A row of score
x in class c shifts it by (ψ_c(x) - mean of ψ_c) / W_c, where W_c is the weight of the class. The variance of A is the
sum of squares of these shifts (von Mises 1947; Hampel 1974; for the area under the ROC curve: DeLong, DeLong &
Clarke-Pearson 1988). Rows of one cluster shift it together, so that their shifts are summed before they are squared,
and divided by what the class keeps without the cluster: then they are the shifts of leaving the cluster out.

A variance to which only a few rows or clusters contribute is itself uncertain. Its degrees of freedom, for quantiles of
Student's t, come from the fourth moment of the shifts: 2 V² / Var(V) (Satterthwaite 1946).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from ...base.records import dataclass
from ..uncertainty.clusters import (
    CELLS_OF_BOTH,
    Spread,
    combined_spread,
    effective_number,
    replicate_of_both,
    spread_of_shifts,
)
from ..uncertainty.replicates import area_quantiles

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from ..uncertainty.replicates import Resampling


# Running sums of several groups in one array, without rounding errors that carry over from one group to another.
#
# One `cumsum` over all groups, minus the sum before each group, has an error in proportion to the largest group: beside
# weights of a million, the sums of a group with weights of a millionth would be noise. The values are therefore split
# into limbs with few enough bits that their sums are exact. Rounding occurs only within a group, when the sums of its
# limbs are added.


Floats: TypeAlias = "NDArray[np.float64]"
Integers: TypeAlias = "NDArray[np.int64]"

_BITS = 52
_LIMBS = 6  # of at least 30 bits each: all bits of values that differ by a factor of 1e20


def running_sums(values: Floats, first: Integers) -> Floats:
    """Sum of each value and those before it in its group.

    Args:
        values: Finite and not negative, shape (N,).
        first: Index at which each group begins, ascending from 0, shape (groups,).

    Returns:
        Shape (N,). The error is a few units in the last place of the sum; for a single group it is that of
        `numpy.cumsum`.
    """
    if len(first) <= 1:
        return np.cumsum(values)
    sizes = np.diff(np.append(first, len(values)))
    bits = _BITS - len(values).bit_length()
    sums, remainder = np.zeros(len(values)), values
    for _ in range(_LIMBS):
        _, exponent = np.frexp(remainder.max())
        if not remainder.any():
            break
        # the leading `bits` bits of the remainder, on a common exponent: their sums are exact
        limb = np.ldexp(np.floor(np.ldexp(remainder, bits - exponent)), exponent - bits)
        remainder = remainder - limb
        running = np.cumsum(limb)
        sums += running - np.repeat(running[first] - limb[first], sizes)
    return sums


_TWO = 2
_NORMAL_KURTOSIS = 3.0
_UNSEEN_TAILS = 3.0  # by which what the kurtosis of few rows exceeds the normal one is multiplied
_FEWEST_DEGREES = 3.0
_ROUNDING = 1e-12  # a class of which a replicate holds all but this share has no weight without it


@dataclass(frozen=True)
class ClassMoments:
    """Sums over the rows of one class; all arrays have the shape of the areas."""

    rows: Floats  # number of rows
    weight: Floats  # sum of the weights w; without weights, the number of rows
    squares: Floats  # sum of w²
    first: Floats  # sum of w ψ
    weighted: Floats  # sum of w² ψ
    second: Floats  # sum of w² ψ²
    third: Floats | None = None  # sum of w² ψ³; None if degrees of freedom are not needed
    fourth: Floats | None = None  # sum of w² ψ⁴; None likewise

    @property
    def mean(self) -> Floats:
        """Mean influence; nan for an empty class."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.first / self.weight

    @property
    @np.errstate(divide="ignore", invalid="ignore", over="ignore")
    def variance(self) -> Floats:
        """Contribution of the class to the variance of the area: rows / (rows - 1) × Σ w² (ψ - mean)² / W².

        It is nan for fewer than two rows, because a single value has no spread.
        """
        spread = self.second - 2 * self.mean * self.weighted + self.mean**2 * self.squares
        factor = np.where(self.rows >= _TWO, self.rows / (self.rows - 1), np.nan)
        return np.asarray(factor * np.maximum(spread, 0.0) / self.weight**2)

    @property
    @np.errstate(divide="ignore", invalid="ignore", over="ignore")
    def kurtosis(self) -> Floats:
        """Kurtosis of ψ: fourth central moment over the squared second one, weighted by w²; at least the normal 3.

        Few rows give values that are too low; a value below the normal one would claim more certainty than they allow.

        Raises:
            ValueError: the third and fourth sums are missing.
        """
        if self.third is None or self.fourth is None:
            message = "the kurtosis needs the sums of third and fourth powers"
            raise ValueError(message)
        # central moments from the raw ones
        mean = self.mean
        second = self.second - 2 * mean * self.weighted + mean**2 * self.squares
        fourth = self.fourth - 4 * mean * self.third + 6 * mean**2 * self.second
        fourth = fourth - 4 * mean**3 * self.weighted + mean**4 * self.squares
        kurtosis = fourth * self.squares / second**2
        return np.fmax(np.where(second > 0, kurtosis, _NORMAL_KURTOSIS), _NORMAL_KURTOSIS)


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def variance_of_rows(positives: ClassMoments, negatives: ClassMoments, slope: Floats, *, random_sizes: bool) -> Floats:
    """Variance of areas where rows are independent.

    Args:
        positives: Moments of the rows with a true label.
        negatives: Moments of the other rows.
        slope: Derivative of the area with respect to the logit of the share of positives.
        random_sizes: Whether another sample would have different numbers of positives and negatives. If so, the
            variance due to the share of positives is added: slope² × (1 / P + 1 / N).
    """
    sizes = slope**2 * (_inverse_size(positives) + _inverse_size(negatives))
    variance = positives.variance + np.where(negatives.rows > 0, negatives.variance, 0.0)
    return variance + (sizes if random_sizes else 0.0)


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def degrees_of_rows(positives: ClassMoments, negatives: ClassMoments, variance: Floats) -> Floats:
    """Degrees of freedom of `variance_of_rows`.

    Satterthwaite (1946, eq. 17) with Var(V_c) = V_c² (kurtosis_c - 1) / (n_c - 1), where n_c is the effective number of
    rows of class c (Kish 1965). For normal influences this is Welch's (1947) rule. Long tails give fewer degrees, but
    never fewer than 3, or than Welch's rule if that gives less. Few rows seldom show their tails, so that what their
    kurtosis exceeds the normal one by is taken three times; measured in `studies/coverage_of_areas.py`.

    Args:
        positives: Moments of the rows with a true label, with third and fourth powers.
        negatives: Moments of the other rows.
        variance: Result of `variance_of_rows`.

    Returns:
        An array of the shape of the areas, at least 1; the number of rows minus two where nothing varies.
    """
    uncertain, normal = np.zeros_like(variance), np.zeros_like(variance)
    for moments in (positives, negatives):
        size = np.where(moments.rows > 0, moments.weight**2 / moments.squares, 0.0)
        per_degree = np.where(moments.rows > 0, moments.variance**2 / np.maximum(size - 1, 1.0), 0.0)
        kurtosis = _NORMAL_KURTOSIS + _UNSEEN_TAILS * (moments.kurtosis - _NORMAL_KURTOSIS)
        uncertain = uncertain + per_degree * (kurtosis - 1)
        normal = normal + per_degree * (_NORMAL_KURTOSIS - 1)
    degrees, welch = 2 * variance**2 / uncertain, 2 * variance**2 / normal
    degrees = np.maximum(degrees, np.minimum(_FEWEST_DEGREES, welch))
    rows = positives.rows + negatives.rows - _TWO
    return np.maximum(np.where(uncertain > 0, degrees, rows), 1.0)


def _inverse_size(moments: ClassMoments) -> Floats:
    """Reciprocal of the effective number of rows; 0 for an empty class, whose share does not vary."""
    return np.where(moments.rows > 0, moments.squares / moments.weight**2, 0.0)


@dataclass(frozen=True)
class Shifts:
    """How far each replicate, a group of clusters, moves areas."""

    values: Floats  # shape (G, …): by how much an area is higher with the replicate than without it
    has_rows: NDArray[np.bool_]  # shape (G, …): whether the replicate has any row, with a weight above 0
    effective: Floats  # effective number of replicates, of the shape of the areas
    in_time: bool = False  # whether replicates follow each other in time

    @property
    def spread(self) -> Spread:
        """Sampling error of the areas."""
        number = self.has_rows.sum(axis=0).astype(np.float64)
        return spread_of_shifts(self.values, self.effective, number, in_time=self.in_time)

    def quantiles(self, areas: Floats, confidence: float, resampling: Resampling) -> tuple[Floats, Floats]:
        """Quantiles of the bootstrap of areas of shape (groups,), see `bootstrap.area_quantiles`."""
        rows = [
            area_quantiles(self.values[self.has_rows[:, group], group], area, confidence, resampling)
            for group, area in enumerate(areas.tolist())
        ]
        low, high = np.array(rows, dtype=np.float64).reshape(-1, _TWO).T
        return low, high


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def shifts_of_clusters(
    weights: tuple[Floats, Floats], influences: tuple[Floats, Floats], slope: Floats | float, *, in_time: bool = False
) -> Shifts:
    """Shifts of areas by replicates, groups of clusters, which alone are independent.

    The number of positives and of negatives differs between clusters, so their spread always counts. What a replicate
    shifts in a class of which it holds the share h is divided by 1 - h: so far the area moves, to first order, if the
    replicate is left out (CR3: MacKinnon & White 1985; Bell & McCaffrey 2002). The variance is (G - 1) / G × Σ z_g²,
    where G replicates have data: the jackknife's, and for equal shares exactly G / (G - 1) × the sum of squares of the
    undivided shifts.

    Args:
        weights: Weight of the positives and of the negatives in each replicate, shape (G, …).
        influences: Sum of w ψ of the positives and of the negatives in each replicate, shape (G, …).
        slope: As for `variance_of_rows`, of a shape without G.
        in_time: Whether replicates follow each other in time.

    Returns:
        The shifts; the variance of their spread is nan for one replicate. The effective number of clusters is that of
        the class which has fewer.
    """
    shifts = np.zeros(np.broadcast_shapes(weights[0].shape, np.shape(slope)))
    effective = np.full(shifts.shape[1:], np.inf)
    for weight, influence, sign in zip(weights, influences, (1.0, -1.0), strict=True):
        total = weight.sum(axis=0)
        # what the replicate shifts: its centred influences, and its part in the share of positives
        centred = influence - weight * (influence.sum(axis=0) / total) + sign * slope * weight
        # without the replicate the class has 1 - h of its weight; if that is nothing, no area is left to compare with
        others = np.where(total - weight > _ROUNDING * total, total - weight, total)
        shifts = shifts + np.where(total > 0, centred / others, 0.0)
        effective = np.fmin(effective, effective_number(weight))
    return Shifts(shifts, (weights[0] + weights[1]) > 0, effective, in_time)


def spread_of_means(clusterings: Sequence[tuple[Floats, Floats]], *, in_time: bool = False) -> Spread:
    """Sampling error of a weighted mean where only replicates, groups of clusters, are independent.

    Args:
        clusterings: Sums of w x and of w in each replicate, both of shape (G, …): of the one clustering, or of both
            parents and of their intersections.
        in_time: Whether replicates follow each other in time.

    Returns:
        The variance is that of the delete-a-group jackknife about the mean; nan for one replicate.
    """
    spreads = []
    for sums, sizes in clusterings:
        nothing = np.zeros_like(sizes)
        spreads.append(shifts_of_clusters((sizes, nothing), (sums, nothing), 0.0, in_time=in_time).spread)
    return combined_spread(spreads)


# Influences of rows on areas as steps over the scores: of all groups at once, in long arrays.
#
# `influence` says what an influence is; `ordered_areas` and `trapezoidal_area` derive those of the three areas. There
# they are added up for the errors of areas; here each is known by itself, so that they can be added up over the rows
# of any unit. The influence of a row depends on its label and its score alone: on the tie that the row belongs to,
# and for `pr_auc`, which knows the scores from thresholds only, on the highest threshold that retrieves it.


@dataclass(frozen=True)
class Influences:
    """The influence of rows on an area, by the step that their score lies on."""

    positive: Floats  # shape (steps,): ψ of a positive
    negative: Floats  # shape (steps,): ψ of a negative
    slope: Floats  # shape (groups,): derivative of the area with respect to the logit of the share of positives


@dataclass(frozen=True)
class Steps:
    """Steps over the scores of several groups; arrays of shape (steps,) in ascending order of group and score."""

    group: Integers  # index of the group; non-decreasing
    positive: Floats  # of ties: weight of the positives on each step. Of thresholds: weight that each of them retrieves
    negative: Floats  # the same of the negatives
    positives: Floats  # shape (groups,): weight of all positives
    negatives: Floats  # shape (groups,): weight of all negatives

    @classmethod
    def of_ties(cls, group: Integers, positive: Floats, negative: Floats, groups: int) -> Steps:
        """Ties of so many groups: each adds to the weight of its group."""
        totals = (np.bincount(group, weights=side, minlength=groups) for side in (positive, negative))
        return cls(group, positive, negative, *(np.asarray(total, dtype=np.float64) for total in totals))

    @property
    def first(self) -> Integers:
        """Index of the lowest step of each group that has one."""
        return np.flatnonzero(np.diff(self.group, prepend=-1))

    @property
    def last(self) -> Integers:
        """Index of the highest step of each group that has one."""
        return np.flatnonzero(np.diff(self.group, append=len(self.positives)))

    def per_group(self, values: Floats) -> Floats:
        """Sum of values of steps over each group, 0 for a group without steps."""
        return np.asarray(np.bincount(self.group, weights=values, minlength=len(self.positives)), dtype=np.float64)


@np.errstate(divide="ignore", invalid="ignore")
def influences_of_ties(ties: Steps) -> dict[str, Influences]:
    """Influences on `average_precision` and `roc_auc`, as `ordered_areas` derives them; rows of a cell tie."""
    first, p, q = ties.first, ties.positive, ties.negative
    all_p, all_q = ties.positives[ties.group], ties.negatives[ties.group]
    # T and F, the weight at or above each tie, as totals minus what lies below
    to_p, to_q = running_sums(p, first), running_sums(q, first)
    hits, false = np.maximum(all_p - to_p + p, p), np.maximum(all_q - to_q + q, q)
    # T / (T + F), and the running sums of p F / (T + F)² and p T / (T + F)²
    has_positives = p > 0
    precision = np.where(hits + false > 0, hits / (hits + false), 0.0)
    rate = np.where(has_positives, p / (hits + false) ** 2, 0.0)
    up, down = running_sums(rate * false, first), running_sums(rate * hits, first)
    steps = np.where(has_positives, p * precision * (1 - precision), 0.0)
    slope = ties.per_group(steps) / ties.positives
    return {
        "average_precision": Influences(precision + up, -all_q / all_p * down, slope),
        "roc_auc": Influences((to_q - q / 2) / all_q, (hits - p / 2) / all_p, np.zeros_like(slope)),
    }


@np.errstate(divide="ignore", invalid="ignore")
def influences_of_thresholds(thresholds: Steps) -> Influences:
    """Influences on `pr_auc`, as `trapezoidal_area` derives them; a row that no threshold retrieves has 0."""
    first, last, hits, false = thresholds.first, thresholds.last, thresholds.positive, thresholds.negative
    all_p, all_q = thresholds.positives[thresholds.group], thresholds.negatives[thresholds.group]
    retrieved = hits + false
    is_retrieving = retrieved > 0
    # of a group without positives 0, since what is not a number would spoil the running sums of the others
    precision, recall = np.where(is_retrieving, hits / retrieved, 0.0), np.where(all_p > 0, hits / all_p, 0.0)
    # worth of a true point: the mean precision of the next higher threshold and its own; of the highest its own
    higher_precision, higher_recall = _next(precision, last), _next(recall, last)
    is_highest = is_retrieving & (_next(retrieved, last) <= 0)
    worth = np.where(is_highest, precision, (higher_precision + precision) / 2)
    # derivative of the area by the precision at each threshold: half the recall between its neighbours
    lower_recall = np.concatenate([recall[:1], recall[:-1]])
    lower_recall[first] = recall[first]
    by_precision = np.where(is_retrieving, (lower_recall - higher_recall + np.where(is_highest, recall, 0.0)) / 2, 0.0)
    # derivatives of the precision by tp and by fp; a point counts at every threshold that retrieves it
    of_positive = np.where(is_retrieving, by_precision * false / retrieved**2, 0.0)
    of_negative = np.where(is_retrieving, by_precision * hits / retrieved**2, 0.0)
    positive = worth + running_sums(of_positive, first) * all_p
    slope = thresholds.per_group(by_precision * precision * (1 - precision))
    return Influences(positive, -running_sums(of_negative, first) * all_q, slope)


def _next(values: Floats, last: Integers) -> Floats:
    """The value of the next higher step of the same group; 0 for the highest."""
    following = np.concatenate([values[1:], np.zeros(min(len(values), 1))])
    following[last] = 0
    return following


def steps_of_scores(
    groups: tuple[Integers, Integers], thresholds: Floats, scores: Floats, *, at_or_above: bool
) -> Integers:
    """Index of the highest threshold of its group that retrieves each score; -1: none does, as of minus infinity.

    The groups are those of each threshold and of each score. Thresholds rise in each group, scores are in any order.
    """
    number = np.concatenate([groups[0], groups[1]])
    value = np.concatenate([thresholds, scores])
    is_score = np.arange(len(value)) >= len(thresholds)
    # a threshold that retrieves a score equal to it comes before that score
    order = np.lexsort((is_score if at_or_above else ~is_score, value, number))
    until = np.cumsum(~is_score[order]) - 1
    reached = np.empty(len(value), dtype=np.int64)
    reached[order] = until
    steps = reached[len(thresholds) :]
    starts = np.searchsorted(groups[0], groups[1], side="left")
    return np.where(steps >= starts, steps, -1)


# Contributions of units to areas: values whose plain mean is the area, and whose spread is its sampling error.
#
# An area is no mean over units, since what a row adds to it depends on all others. To first order it is one: leaving
# a unit out shifts the area by the influences of its rows. With n units, and z_u the shift of unit u, the
# pseudo-values
#
#     v_u = area + (n - 1) (z_u - mean of z)
#
# have the area as their mean (Tukey 1958; Efron & Stein 1981), and sd(v) / √n is its standard error. For rows that
# are independent and z from the von Mises expansion of the area under the ROC curve it is that of DeLong, DeLong &
# Clarke-Pearson (1988), and the paired t statistic of the values of two systems is the statistic of their test.


Pair: TypeAlias = "tuple[Floats, Floats]"  # of the positives and of the negatives
Independent = Literal["rows", "clusters"]


@dataclass(frozen=True)
class UnitSums:
    """Sums over the rows of units; arrays of shape (units,)."""

    group: Integers  # index of it
    weights: Pair
    influences: Pair  # sums of w ψ


@np.errstate(divide="ignore", invalid="ignore")
def contributions(sums: UnitSums, area: Floats, slope: Floats, independent: Independent) -> Floats:
    """Contributions of units to an area.

    What a unit shifts in a class of which it holds the share h is divided by 1 - h for clusters, so far moves the area
    if the cluster is left out (`influence.shifts_of_clusters`), and by √(1 - h) for rows, which gives each class of n
    rows the factor n / (n - 1) of `influence.variance_of_rows`.

    Args:
        sums: Of the units.
        area: Shape (groups,): the areas; nan where undefined.
        slope: Shape (groups,): derivative of the area with respect to the logit of the share of positives; 0: the
            numbers of positives and of negatives would be the same in another sample.
        independent: What is: units that are single rows, or clusters of them.

    Returns:
        Shape (units,); nan for a unit without weight, and in a group in which fewer than two units hold positives or a
        single one holds negatives: then nothing tells how much others would differ.
    """
    size = len(area)
    has_weight = (sums.weights[0] + sums.weights[1]) > 0
    holders = [_per_group(sums.group, weight > 0, size) for weight in sums.weights]
    shifts = np.zeros(len(sums.group))
    for weight, influence, sign in zip(sums.weights, sums.influences, (1.0, -1.0), strict=True):
        total, mean = (_per_group(sums.group, values, size) for values in (weight, influence))
        mean = np.where(total > 0, mean / total, 0.0)
        all_of_class = total[sums.group]
        others = np.where(all_of_class - weight > _ROUNDING * all_of_class, all_of_class - weight, all_of_class)
        centred = influence - weight * (mean - sign * slope)[sums.group]
        left = others if independent == "clusters" else np.sqrt(all_of_class * others)
        shifts += np.where(weight > 0, centred / left, 0.0)
    number = _per_group(sums.group, has_weight, size)
    scale = number - 1 if independent == "clusters" else np.sqrt(number * (number - 1))
    centred = shifts - (_per_group(sums.group, shifts, size) / number)[sums.group]
    is_known = (holders[0] >= _TWO) & (holders[1] != 1)
    values = np.where(is_known, area, np.nan)[sums.group] + scale[sums.group] * centred
    return np.where(has_weight, values, np.nan)


@np.errstate(divide="ignore", invalid="ignore")
def ratio_contributions(group: Integers, values: Floats, weights: Floats, size: int) -> Floats:
    """Contributions of units to a ratio of sums, such as the cost per row, from the ratio without each of them.

    The pseudo-values R + (n - 1) (mean of R_u - R_u), with R_u the ratio without unit u, have R as their mean, and
    their spread is that of the delete-one jackknife (Tukey 1958). Of units of one weight they are the values over that
    weight.

    Args:
        group: Index of the group of each unit.
        values: Sum over the rows of each unit, of what the numerator adds up.
        weights: Weight of each unit, of which the denominator is the sum.
        size: Number of groups.

    Returns:
        Shape (units,); nan for a unit without weight, and in a group in which fewer than two units have one.
    """
    has_weight = weights > 0
    of_values, of_weights, number = (
        _per_group(group, np.where(has_weight, sums, 0.0), size) for sums in (values, weights, np.ones_like(weights))
    )
    without = (of_values[group] - values) / (of_weights[group] - weights)
    mean = _per_group(group, np.where(has_weight, without, 0.0), size) / number
    pseudo = (of_values / of_weights)[group] + (number[group] - 1) * (mean[group] - without)
    return np.where(has_weight & (number[group] >= _TWO), pseudo, np.nan)


def _per_group(group: Integers, values: NDArray[np.float64] | NDArray[np.bool_], size: int) -> Floats:
    sums = np.bincount(group, weights=values.astype(np.float64), minlength=size)
    return np.asarray(sums, dtype=np.float64)


CLASSES = ("positive", "negative")


class ReplicateSums:
    """Sums of weights, and of weights times influences, by group, class and replicate of each clustering.

    Rows with two parents, such as a user and an item, have a replicate of each. Their sums are made by the first
    parent, by the second, and by the intersections of both, in one pass over the rows; see `clusters.combined`.

    Args:
        groups: Number of groups.
        areas: Names of the areas whose influences are added up.
        replicates: Number of replicates; 0: rows are independent, and nothing is added.
        second_replicates: Number of those of the second parent of rows that have two; 0 if they have one.
        in_time: Whether replicates follow each other in time.
    """

    def __init__(
        self,
        groups: int,
        areas: Sequence[str],
        replicates: int,
        second_replicates: int = 0,
        *,
        in_time: bool = False,
    ) -> None:
        self._in_time = in_time
        of_second = (second_replicates, CELLS_OF_BOTH) if second_replicates else ()
        self._sizes = (replicates, *of_second)  # of each clustering; their replicates follow one another on axis 1
        names = [f"{kind}_{side}" for kind in ("weight", *areas) for side in CLASSES]
        self._sums = {name: np.zeros((groups, sum(self._sizes))) for name in names}

    def adding(
        self, group: Integers, replicate: Integers, second_replicate: Integers | None
    ) -> Callable[[str, Floats], None]:
        """A function that adds values to the sums of a name, of rows of these groups and of these replicates."""
        clusterings = [replicate]
        if second_replicate is not None:
            clusterings += [second_replicate, replicate_of_both(replicate, second_replicate)]
        offsets = np.cumsum(self._sizes) - self._sizes
        width = sum(self._sizes)
        cells = [group * width + offset + numbers for offset, numbers in zip(offsets, clusterings, strict=True)]

        def add(name: str, values: Floats) -> None:
            sums = self._sums[name]
            for cell in cells:
                sums += np.bincount(cell, weights=values, minlength=sums.size).reshape(sums.shape)

        return add

    def spread_and_shifts(self, area: str, slope: Floats) -> tuple[Spread, Shifts]:
        """The sampling error of an area in every group, and what each replicate of the first parent moves.

        The slope is as for `variance_of_rows`, of shape (groups,).
        """
        names, shifts = [f"{kind}_{side}" for kind in ("weight", area) for side in CLASSES], []
        for size, end in zip(self._sizes, np.cumsum(self._sizes), strict=True):
            p, q, of_p, of_q = (self._sums[name][:, end - size : end].T for name in names)
            shifts.append(shifts_of_clusters((p, q), (of_p, of_q), slope, in_time=self._in_time))
        return combined_spread([of_clustering.spread for of_clustering in shifts]), shifts[0]
