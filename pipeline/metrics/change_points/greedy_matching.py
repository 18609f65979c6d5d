"""Matching in turns: true points choose a free prediction one after the other, as roerich and TCPDBench do.

Such a greedy rule does not find a matching of largest size and depends on the order in which points take turns. One
more prediction changes at most one choice at every turn, so the whole curve takes one pass over the turns. Points
matter to each other only within a component that the margin links.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from pipeline.metrics.change_points.windows import Points, best_of_ranges, find_windows, scores_of
from pipeline.metrics.matching.maximum import component_starts, match_greedily

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from pipeline.metrics.change_points.windows import Margin, Windows

Ints: TypeAlias = "NDArray[np.int64]"
Floats: TypeAlias = "NDArray[np.float64]"
Bools: TypeAlias = "NDArray[np.bool_]"

_CELLS_AT_A_TIME = 1 << 17


def added_as_roerich(
    truth: Points,
    predictions: Points,
    margin: Margin,
    score: Floats | None = None,
    *,
    truth_order: Ints | None = None,
    prediction_order: Ints | None = None,
) -> Ints:
    """The rule of `roerich.metrics.precision_recall_scores`: the first free prediction in the order of input.

    True points take turns in the order of input; each takes the first prediction within the margin whose position no
    true point has taken, so of predictions at one position only one can match. roerich itself uses `≤` (a margin that
    is closed).

    Input in ascending order gives the largest matching of the distinct positions, because first fit then is the rule
    of the earliest deadline, and costs what that costs. Otherwise a component of t true points and p predictions costs
    O(t p log p), and p times that if predictions share a position.

    Args:
        truth: True points.
        predictions: Predicted points.
        margin: The margin.
        score: Finite scores of the predictions; without, all enter together.
        truth_order: Place of every true point in the input, any numbers; default: by position.
        prediction_order: Place of every prediction.

    Returns:
        What every prediction adds to the true positives when predictions enter by descending score: 0 or 1, or -1 where
        a repeated position comes earlier in the input and loses a match; shape (predictions,), int64.
    """
    if _ascends(truth, truth_order) and _ascends(predictions, prediction_order):
        return _added_by_first_fit(truth, predictions, margin, score)
    order = np.arange(len(predictions.position)) if prediction_order is None else prediction_order
    return _Turns(truth, predictions, margin, truth_order, order).added(score)


def _ascends(points: Points, order: Ints | None) -> bool:
    """Whether the positions of every series ascend in the order of input; the order of equal ones plays no part."""
    if order is None:
        return True
    new = np.flatnonzero(points.is_new)
    latest = np.maximum.reduceat(order, new) if len(new) else order
    earliest = np.minimum.reduceat(order, new) if len(new) else order
    next_series = points.series[new[1:]] > points.series[new[:-1]]
    return bool((next_series | (earliest[1:] > latest[:-1])).all())


def _added_by_first_fit(truth: Points, predictions: Points, margin: Margin, score: Floats | None) -> Ints:
    """The largest matching of the distinct positions, each with the best of its scores."""
    added = np.zeros(len(predictions.position), dtype=np.int64)
    new = np.flatnonzero(predictions.is_new)
    own = scores_of(predictions, score)
    best = best_of_ranges(own, new, np.append(new[1:], len(added)))
    windows = find_windows(truth, Points(predictions.series[new], predictions.position[new]), margin)
    added[best[match_greedily(windows.first, windows.stop, own[best])]] = 1
    return added


def added_nearest(truth: Points, predictions: Points, margin: Margin, score: Floats | None = None) -> Ints:
    """The rule of TCPDBench (van den Burg & Williams 2020): the nearest free prediction.

    True points take turns by ascending position (their code: in the order of a Python set); each takes the nearest free
    prediction within the margin, the earlier of two equally near. TCPDBench itself uses `≤` (a margin that is closed)
    and sets of positions. A component of t true points and p predictions costs O(t p log p).

    Args:
        truth: True points.
        predictions: Predicted points.
        margin: The margin.
        score: Finite scores of the predictions; without, all enter together.

    Returns:
        0 or 1 of every prediction, shape (predictions,), int64.
    """
    return _Turns(truth, predictions, margin, None, None).added(score)


class _Turns:
    """The points and their windows, with the rule by which a true point chooses.

    Args:
        truth: True points.
        predictions: Predicted points.
        margin: The margin.
        truth_order: Place of every true point among the turns; None: by position.
        prediction_order: Preference of all true points, smaller first, and a position can be taken once only; None:
            the nearest prediction, each by itself.
    """

    def __init__(
        self,
        truth: Points,
        predictions: Points,
        margin: Margin,
        truth_order: Ints | None,
        prediction_order: Ints | None,
    ) -> None:
        self._truth = truth
        self._predictions = predictions
        self._windows = find_windows(truth, predictions, margin)
        self._truth_order = np.arange(len(truth.position)) if truth_order is None else truth_order
        self._prediction_order = prediction_order

    def added(self, score: Floats | None) -> Ints:
        """What every prediction adds to the true positives."""
        added = np.zeros(len(self._predictions.position), dtype=np.int64)
        scores = scores_of(self._predictions, score)
        for own_truth, own in _components_by_size(self._windows):
            turns = np.argsort(self._truth_order[own_truth], axis=1, kind="stable")
            choosers = np.take_along_axis(own_truth, turns, axis=1)
            entering = np.argsort(-scores[own], axis=1, kind="stable")
            entered = np.take_along_axis(own, entering, axis=1)
            added[entered] = self._is_taken(choosers, own, entering)
            if self._prediction_order is not None:
                again = np.flatnonzero((np.diff(self._predictions.position[own], axis=1) == 0).any(axis=1))
                added[entered[again]] = self._added_with_repeats(choosers[again], own[again], entering[again])
        return added

    def _is_taken(self, choosers: Ints, own: Ints, entering: Ints) -> Bools:
        """Whether one more true point has a prediction after each has entered.

        A prediction that enters is one more on offer at the first turn. If it is chosen, what was chosen before is one
        more at the next turn instead, and so on; so at every turn what is chosen is a running best of what comes in.

        Args:
            choosers: True points in the order of their turns, shape (components, T).
            own: Predictions, shape (components, P).
            entering: Columns of `own` in the order in which they enter, shape (components, P); -1 for none.
        """
        offered, nobody = entering, own.shape[1]
        for turn in range(choosers.shape[1]):
            chooser = choosers[:, turn, np.newaxis]
            ranked = np.argsort(self._preference(chooser, own), axis=1, kind="stable")
            rank = np.empty_like(ranked)
            np.put_along_axis(rank, ranked, np.arange(nobody)[np.newaxis], axis=1)
            near = (self._windows.first[own] <= chooser) & (chooser < self._windows.stop[own])
            rank = _with_last(np.where(near, rank, nobody), nobody)
            came = np.take_along_axis(rank, offered, axis=1)
            best = np.minimum.accumulate(came, axis=1)
            before = np.concatenate([np.full((len(own), 1), nobody), best[:, :-1]], axis=1)
            left = np.take_along_axis(_with_last(ranked, -1), before, axis=1)
            offered = np.where(came < before, left, offered)
        return np.asarray((offered < 0) & (entering >= 0))

    def _preference(self, chooser: Ints, own: Ints) -> Ints | Floats:
        if self._prediction_order is not None:
            return self._prediction_order[own]
        return np.asarray(np.abs(self._predictions.position[own] - self._truth.position[chooser]))

    def _added_with_repeats(self, choosers: Ints, own: Ints, entering: Ints) -> Ints:
        """What predictions add, in the order in which they enter, where some share a position.

        Of one position only the earliest in the input is on offer, which a later entry can change: counted anew each
        time.
        """
        sorted_own = np.argsort(self._preference(choosers[:, :1], own), axis=1, kind="stable")
        position = np.take_along_axis(self._predictions.position[own], sorted_own, axis=1)
        sorted_own = np.take_along_axis(sorted_own, np.argsort(position, axis=1, kind="stable"), axis=1)
        position = np.sort(position, axis=1)
        is_new = np.append(np.ones((len(own), 1), dtype=np.bool_), position[:, 1:] > position[:, :-1], axis=1)
        start = np.maximum.accumulate(np.where(is_new, np.arange(own.shape[1]), 0), axis=1)
        enters = np.take_along_axis(np.argsort(entering, axis=1), sorted_own, axis=1)
        found = np.zeros((len(own), own.shape[1] + 1), dtype=np.int64)
        for count in range(1, own.shape[1] + 1):
            entered = enters < count
            earlier: Ints = np.cumsum(entered, axis=1) - entered
            first = entered & (earlier == np.take_along_axis(earlier, start, axis=1))
            found[:, count] = self._is_taken(choosers, own, np.where(first, sorted_own, -1)).sum(axis=1)
        return np.diff(found, axis=1)


def _with_last(values: Ints, last: int) -> Ints:
    """Values with one more column, which the index -1 finds."""
    return np.concatenate([values, np.full((len(values), 1), last)], axis=1)


def _components_by_size(windows: Windows) -> Iterator[tuple[Ints, Ints]]:
    """Numbers of the true points (C, T) and of the predictions (C, P) of components of one size at a time."""
    near = np.flatnonzero(windows.first < windows.stop)
    if not len(near):
        return
    starts = component_starts(windows.first[near], windows.stop[near])
    ends = np.append(starts[1:], len(near))
    low, high = windows.first[near[starts]], windows.stop[near[ends - 1]]
    shapes, kind = np.unique(np.column_stack([high - low, ends - starts]), axis=0, return_inverse=True)
    order = np.argsort(kind, kind="stable")
    bounds = np.searchsorted(kind[order], np.arange(len(shapes) + 1))
    for number, (n_truth, n_predictions) in enumerate(shapes):
        chosen = order[bounds[number] : bounds[number + 1]]
        step = max(1, _CELLS_AT_A_TIME // int(max(n_truth, n_predictions)))
        for at in range(0, len(chosen), step):
            part = chosen[at : at + step, np.newaxis]
            yield low[part] + np.arange(n_truth), near[starts[part] + np.arange(n_predictions)]
