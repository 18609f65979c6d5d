"""Certified bounds of areas from counts per cell of scores, where the order inside a cell is not known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Floats: TypeAlias = "NDArray[np.float64]"

_ROUNDING = 4e-16


@dataclass(frozen=True)
class Bounds:
    """Lowest and highest area that some order inside the cells gives, and what each cell leaves open.

    Attributes:
        lowest: The lower bound.
        highest: The upper bound.
        open: Shape (cells,): upper less lower, cell by cell.
    """

    lowest: float
    highest: float
    open: Floats


def average_precision_bounds(positive: Floats, negative: Floats, single: NDArray[np.bool_], first: Floats) -> Bounds:
    """Bounds of the average precision of one group.

    A cell with p positives and q negatives, above which lie T and F, adds at most p (T + p) / (T + p + F), when its
    positives tie above its negatives, and at least the sum over i = 1..p of (T + i) / (T + i + F + q), when its
    positives come one by one below its negatives. That sum is taken of its chord, which lies below as its terms are
    concave in i. A cell of one score adds p (T + p) / (T + p + F + q) exactly.

    Args:
        positive: Shape (cells,), cells in rising order of score: weight of the positives.
        negative: Weight of the negatives.
        single: Whether all scores of the cell are known to be one.
        first: Smallest weight that a positive of the cell can have: 1 without weights, else 0.
    """
    total = positive.sum()
    hits, false = _above(positive), _above(negative)

    def precision(hits_inside: Floats, false_inside: Floats) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(
                hits + hits_inside > 0, (hits + hits_inside) / (hits + hits_inside + false + false_inside), 0.0
            )

    least = positive * (precision(np.minimum(first, positive), negative) + precision(positive, negative)) / 2
    tied, most = positive * precision(positive, negative), positive * precision(positive, np.zeros_like(negative))
    return _bounds(np.where(single, tied, least) / total, np.where(single, tied, most) / total)


def roc_auc_bounds(positive: Floats, negative: Floats, single: NDArray[np.bool_]) -> Bounds:
    """Bounds of the area under the ROC curve of one group; arguments as for `average_precision_bounds`.

    A cell adds p times the negatives below it, and of its own p q pairs none, all, or half of them if they tie.
    """
    below = np.cumsum(negative) - negative
    pairs = positive.sum() * negative.sum()
    least, pairs_inside = positive * below, positive * negative
    return _bounds(
        (least + np.where(single, pairs_inside / 2, 0.0)) / pairs,
        (least + np.where(single, pairs_inside / 2, pairs_inside)) / pairs,
    )


def _above(values: Floats) -> Floats:
    return np.cumsum(values[::-1])[::-1] - values


def _bounds(least: Floats, most: Floats) -> Bounds:
    """Sums, widened by what rounding can have taken away."""
    slack = _ROUNDING * (1 + np.sqrt(len(least)))
    lowest, highest = max(float(least.sum()) - slack, 0.0), min(float(most.sum()) + slack, 1.0)
    return Bounds(lowest, highest, most - least)
