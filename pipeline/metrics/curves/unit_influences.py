"""Influences of rows on areas as steps over the scores: of all groups at once, in long arrays.

`influence` says what an influence is; `ordered_areas` and `trapezoidal_area` derive those of the three areas. There
they are added up for the errors of areas; here each is known by itself, so that they can be added up over the rows of
any unit. The influence of a row depends on its label and its score alone: on the tie that the row belongs to, and for
`pr_auc`, which knows the scores from thresholds only, on the highest threshold that retrieves it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ...records import dataclass
from .running_sums import running_sums

if TYPE_CHECKING:
    from numpy.typing import NDArray

Floats: TypeAlias = "NDArray[np.float64]"
Integers: TypeAlias = "NDArray[np.int64]"


@dataclass(frozen=True)
class Influences:
    """What rows add to an area, by the step that their score lies on.

    Attributes:
        positive: Shape (steps,): ψ of a positive on each step.
        negative: Shape (steps,): ψ of a negative.
        slope: Shape (groups,): derivative of the area with respect to the logit of the share of positives.
    """

    positive: Floats
    negative: Floats
    slope: Floats


@dataclass(frozen=True)
class Steps:
    """Steps over the scores of several groups; arrays of shape (steps,) in ascending order of group and score.

    Attributes:
        group: Index of the group; non-decreasing.
        positive: Of ties: weight of the positives on each step. Of thresholds: weight that each of them retrieves.
        negative: The same of the negatives.
        positives: Shape (groups,): weight of all positives.
        negatives: Shape (groups,): weight of all negatives.
    """

    group: Integers
    positive: Floats
    negative: Floats
    positives: Floats
    negatives: Floats

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
    """Influences on `average_precision` and `roc_auc`, as `ordered_areas` derives them.

    Args:
        ties: Distinct scores; or cells of scores, whose rows are then taken to tie.
    """
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
    """Influences on `pr_auc`, as `trapezoidal_area` derives them; that of a row which no threshold retrieves is 0.

    Args:
        thresholds: What they retrieve.
    """
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
    """Index of the highest threshold of its group that retrieves each score; -1: none does.

    Args:
        groups: Index of the group of each threshold and of each score.
        thresholds: In ascending order of group and value.
        scores: In any order; minus infinity is retrieved by none.
        at_or_above: Whether a score equal to a threshold is retrieved.
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
