"""True positives among predicted points within a margin of true points, under each of the rules in use.

Each rule returns what every prediction *adds* to the true positives when predictions enter by descending score. TP(v)
is then the sum over the predictions with a score ≥ v, one pass gives the whole curve, and sums over series, nights and
machines are sums of integers. Predictions with equal scores enter together: only the sum over them is meaningful.

| rule | true positives are | a prediction adds |
|---|---|---|
| `one_to_one` | the pairs of a largest one-to-one matching | 0 or 1 |
| `any` | true points with at least one prediction within the margin | 0, 1, 2, … |
| `ruptures` | true points near a prediction that is near no true point before them in the input | 0 or 1 |
| `roerich` | in `greedy_matching`: true points that find a free prediction, one after the other | 0 or 1, rarely -1 |
| `nearest` | in `greedy_matching`: the same with the nearest free prediction, as in TCPDBench | 0 or 1 |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ..matching.maximum import match_greedily
from .windows import best_of_ranges, find_windows, nearest_truth, scores_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .windows import Margin, Points

Ints: TypeAlias = "NDArray[np.int64]"
Floats: TypeAlias = "NDArray[np.float64]"


def added_one_to_one(truth: Points, predictions: Points, margin: Margin, score: Floats | None = None) -> Ints:
    """Whether every prediction is in the maximum one-to-one matching that takes higher scores first.

    TP(v) is the size of the largest matching of all predictions with a score ≥ v, at every v.

    Args:
        truth: True points.
        predictions: Predicted points.
        margin: The margin.
        score: Finite scores of the predictions; higher means more confident. None: the predictions nearest to a true
            point go first, which changes no total.

    Returns:
        0 or 1 for every prediction, shape (predictions,), int64. On equal scores the earlier positions go first.
    """
    windows = find_windows(truth, predictions, margin)
    if score is None:
        score = -_distance(truth, predictions, nearest_truth(truth, predictions, windows))
    return match_greedily(windows.first, windows.stop, scores_of(predictions, score)).astype(np.int64)


def added_any(truth: Points, predictions: Points, margin: Margin, score: Floats | None = None) -> Ints:
    """Number of true points whose best prediction within the margin is this one.

    The definition of Truong, Oudre & Vayatis (2020), who use `<`: true points with at least one prediction within the
    margin. A prediction may serve several true points, so that precision can exceed 1. O((P + T) log).

    Args:
        truth: True points.
        predictions: Predicted points.
        margin: The margin.
        score: Finite scores of the predictions; without, all are equal.

    Returns:
        Shape (predictions,), int64, at least 0. Of equally good predictions the one at the earlier position counts.
    """
    best = best_prediction(truth, predictions, margin, score)
    return np.bincount(best[best >= 0], minlength=len(predictions.position)).astype(np.int64)


def best_prediction(truth: Points, predictions: Points, margin: Margin, score: Floats | None = None) -> Ints:
    """Number of the prediction with the best score within the margin of every true point.

    Args:
        truth: True points.
        predictions: Predicted points.
        margin: The margin.
        score: Finite scores of the predictions; without, all are equal.

    Returns:
        Shape (true points,); -1 if no prediction is within the margin; on equal scores the earlier position.
    """
    windows = find_windows(truth, predictions, margin)
    count = len(truth.position)
    start = np.cumsum(np.bincount(windows.stop, minlength=count))[:count]
    end = np.cumsum(np.bincount(windows.first, minlength=count))[:count]
    return best_of_ranges(scores_of(predictions, score), start, end)


def added_as_ruptures(
    truth: Points, predictions: Points, margin: Margin, score: Floats | None = None, *, truth_order: Ints | None = None
) -> Ints:
    """The rule of `ruptures.metrics.precision_recall`: a true point consumes every prediction near it.

    True points take turns in input order. One counts if it is near a prediction that no earlier true point was near.
    Every prediction therefore belongs to the first true point near it, and a true point enters with the best of the
    predictions that belong to it: O((P + T) log). Matches can be lost: of {4, 11, 18} and {7, 8, 14} within 6, only
    2 of 3 are matched. The order of the predictions does not matter. ruptures itself uses `<` (an open margin) and
    rejects repeated positions.

    Args:
        truth: True points.
        predictions: Predicted points.
        margin: The margin.
        score: Finite scores of the predictions; without, all are equal.
        truth_order: Rank of every true point in the input, any numbers; None: by position.

    Returns:
        0 or 1 for every prediction, shape (predictions,), int64.
    """
    # the true point that consumes each prediction: the first in input order of those near it
    windows = find_windows(truth, predictions, margin)
    turn = np.arange(len(truth.position)) if truth_order is None else truth_order
    consumer = best_of_ranges(-turn, windows.first, windows.stop)
    near = np.flatnonzero(consumer >= 0)
    consumer, scores = consumer[near], scores_of(predictions, score)[near]
    # of the predictions of one true point, the earliest with the best score adds 1
    best = np.full(len(turn), -np.inf)
    np.maximum.at(best, consumer, scores)
    leads = np.flatnonzero(scores == best[consumer])
    _, earliest = np.unique(consumer[leads], return_index=True)
    added = np.zeros(len(predictions.position), dtype=np.int64)
    added[near[leads[earliest]]] = 1
    return added


def matched_truth(truth: Points, predictions: Points, margin: Margin, added: Ints) -> Ints:
    """A separate true point for every prediction that `added_one_to_one` matched, for signed delays.

    The matching preserves the order of positions. First, from early to late, each prediction takes the earliest free
    true point of its window, which leaves room for all. Then, from late to early, each moves up to its nearest true
    point (the earlier of two equally near), but not beyond the one before that of the next prediction. A prediction
    without competitors thus has its nearest true point. Where several compete, the later one chooses first; the sum of
    distances need not be minimal.

    Args:
        truth: True points.
        predictions: Predicted points.
        margin: The margin.
        added: Result of `added_one_to_one` for the same points.

    Returns:
        Number of the true point of every prediction, shape (predictions,); -1 without one. The signed delay of a
        matched prediction is its position minus that of its true point.
    """
    windows = find_windows(truth, predictions, margin)
    chosen = np.flatnonzero(added)
    rank = np.arange(len(chosen))
    # less its rank, the true point of a prediction may not fall: numbers then rise by at least 1 from each to the next
    earliest = np.maximum.accumulate(windows.first[chosen] - rank) + rank
    wanted = np.maximum(nearest_truth(truth, predictions, windows)[chosen], earliest)
    matched = np.full(len(added), -1, dtype=np.int64)
    matched[chosen] = np.minimum.accumulate((wanted - rank)[::-1])[::-1] + rank
    return matched


def _distance(truth: Points, predictions: Points, number: Ints) -> Floats:
    """Distance of every prediction to a true point; 0 where the number is -1."""
    distance = np.zeros(len(number))
    matched = np.flatnonzero(number >= 0)
    distance[matched] = np.abs(predictions.position[matched] - truth.position[number[matched]])
    return distance
