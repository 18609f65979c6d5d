"""Certified bounds of areas from counts per cell of scores, when the order of the rows inside a cell is unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ...records import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

Floats: TypeAlias = "NDArray[np.float64]"

_ROUNDING = 4e-16


@dataclass(frozen=True)
class Bounds:
    """Lowest and highest area over all possible orders inside the cells, and how much each cell leaves open.

    Attributes:
        lowest: The lower bound.
        highest: The upper bound.
        open: Shape (cells,): upper minus lower bound of what each cell contributes.
    """

    lowest: float
    highest: float
    open: Floats


def average_precision_bounds(positive: Floats, negative: Floats, single: NDArray[np.bool_], first: Floats) -> Bounds:
    """Bounds of the average precision of one group.

    Take a cell with p positives and q negatives, with T positives and F negatives above it. It contributes at most
    p (T + p) / (T + p + F), if its positives tie above its negatives, and at least the sum over i = 1..p of
    (T + i) / (T + i + F + q), if its positives come one by one below its negatives. The sum is replaced by that of its
    chord, which is smaller because the terms are concave in i. A cell with a single score contributes exactly
    p (T + p) / (T + p + F + q).

    Args:
        positive: Shape (cells,), cells in ascending order of score: weight of the positives.
        negative: Weight of the negatives.
        single: Whether all scores of the cell are known to be equal.
        first: Smallest weight that a positive of the cell can have: 1 without weights, otherwise 0.
    """
    total = positive.sum()
    hits, false = _above(positive), _above(negative)

    def precision(p: Floats, q: Floats) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(hits + p > 0, (hits + p) / (hits + p + false + q), 0.0)

    least = positive * (precision(np.minimum(first, positive), negative) + precision(positive, negative)) / 2
    tied, most = positive * precision(positive, negative), positive * precision(positive, np.zeros_like(negative))
    return _bounds(np.where(single, tied, least) / total, np.where(single, tied, most) / total)


def roc_auc_bounds(positive: Floats, negative: Floats, single: NDArray[np.bool_]) -> Bounds:
    """Bounds of the area under the ROC curve of one group; the arguments are those of `average_precision_bounds`.

    The area is the share of positive-negative pairs in the right order. A cell contributes p times the negatives below
    it, and none to all of the p q pairs inside it; half of them if they tie.
    """
    below = np.cumsum(negative) - negative
    pairs = positive.sum() * negative.sum()
    least, inside = positive * below, positive * negative
    most = least + np.where(single, inside / 2, inside)
    return _bounds((least + np.where(single, inside / 2, 0.0)) / pairs, most / pairs)


def _above(values: Floats) -> Floats:
    return np.cumsum(values[::-1])[::-1] - values


def _bounds(least: Floats, most: Floats) -> Bounds:
    """Sums of the contributions, widened by the largest possible rounding error."""
    slack = _ROUNDING * (1 + np.sqrt(len(least)))
    lowest, highest = max(float(least.sum()) - slack, 0.0), min(float(most.sum()) + slack, 1.0)
    return Bounds(lowest, highest, most - least)
