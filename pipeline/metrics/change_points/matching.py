"""Matching of predicted with true change points within a margin, under each rule in use, and areas of the curve."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import polars as pl

from ..matching import component_starts, match_greedily
from .windows import Points, best_of_ranges, distinct_points, find_windows, nearest_truth, scores_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from .windows import Margin, Positions, Windows


# True positives among predicted points within a margin of true points, under each of the rules in use.
#
# Each rule returns what every prediction *adds* to the true positives when predictions enter by descending score. TP(v)
# is then the sum over the predictions with a score ≥ v, one pass gives the whole curve, and sums over series, nights
# and machines are sums of integers. Predictions with equal scores enter together: only the sum over them is meaningful.
#
# | rule | true positives are | a prediction adds |
# |---|---|---|
# | `one_to_one` | the pairs of a largest one-to-one matching | 0 or 1 |
# | `any` | true points with at least one prediction within the margin | 0, 1, 2, … |
# | `ruptures` | true points near a prediction that is near no true point before them in the input | 0 or 1 |
# | `roerich` | in `greedy_matching`: true points that find a free prediction, one after the other | 0 or 1, rarely -1 |
# | `nearest` | in `greedy_matching`: the same with the nearest free prediction, as in TCPDBench | 0 or 1 |


Ints: TypeAlias = "NDArray[np.int64]"
Floats: TypeAlias = "NDArray[np.float64]"

_WORD_BITS = 63
_FEWEST_POSITION_BITS = 8  # below, sorting by columns is faster
_MANTISSA_BITS = 52


def in_order(series: Ints, position: Positions, score: Floats | None = None) -> tuple[Points, Ints]:
    """Points sorted by series, position and, where both are equal, by descending score.

    The series, the leading bits of the position and the row number of every point are packed into one integer. Sorting
    these takes a fifth of the time of a sort by columns. Rows that the packed integers do not distinguish, because
    their positions are equal or very close, are then sorted by columns among themselves. O(N log N).

    Args:
        series: Series of every point, counted from 0, shape (N,), any order.
        position: Position of every point, shape (N,): int64 or finite float64.
        score: Score of every point, finite; None: equal positions keep the order of the rows.

    Returns:
        The sorted points, and the original row of each, shape (N,).
    """
    # pack series | leading bits of the position | row, and sort
    row_bits = max(1, len(series).bit_length())
    series_bits = int(series.max(initial=0)).bit_length()
    position_bits = _WORD_BITS - row_bits - series_bits
    if position_bits < _FEWEST_POSITION_BITS:
        order = _by_columns(series, position, score)
        return Points(series[order], position[order]), order
    leading, used = _leading_bits(position, position_bits)
    packed = pl.Series(((series << used | leading) << row_bits) | np.arange(len(series))).sort().to_numpy()
    # unpack the rows, and sort those that agree in series and leading bits by columns
    order = packed & ((1 << row_bits) - 1)
    packed = packed >> row_bits
    _separate(order, packed, position, score)
    return Points(packed >> used, position[order]), order


def distinct_in_order(series: Ints, position: Positions) -> Points:
    """Every position of a series once, sorted by series and position.

    Where the series and the complete position fit into one integer, only these integers are sorted. Series are counted
    from 0; positions, in any order, are int64 or finite float64; both have the shape (N,).
    """
    if not len(series) or position.dtype != np.int64:
        return distinct_points(in_order(series, position)[0])
    low, high = int(position.min()), int(position.max())
    position_bits = (high - low).bit_length()
    bits = int(series.max()).bit_length() + position_bits
    if bits > _WORD_BITS:
        return distinct_points(in_order(series, position)[0])
    packed = pl.Series(series << position_bits | (position - low).astype(np.int64, copy=False)).sort().to_numpy()
    is_new = np.ones(len(packed), dtype=np.bool_)
    np.not_equal(packed[1:], packed[:-1], out=is_new[1:])
    packed = packed[is_new]
    return Points(packed >> position_bits, (packed & ((1 << position_bits) - 1)) + low)


def _leading_bits(position: Positions, bits: int) -> tuple[Ints, int]:
    """Integers of at most this many bits in the order of the positions, and the number of bits that they use.

    Positions that are close together may share one integer. Floating-point positions are halved before subtraction, so
    that no difference overflows.
    """
    if not len(position):
        return np.empty(0, dtype=np.int64), 0
    if position.dtype == np.float64:
        used = min(bits, _MANTISSA_BITS)
        low, high = position.min() / 2, position.max() / 2
        share = (position / 2 - low) / max(high - low, np.finfo(np.float64).tiny)
        return np.minimum(share * 2.0**used, 2.0**used - 1).astype(np.int64), used
    distance = position.view(np.uint64) - position.min().view(np.uint64)  # modulo 2^64, so it never overflows
    used = int(distance.max()).bit_length()
    return (distance >> np.uint64(max(0, used - bits))).view(np.int64), min(used, bits)


def _separate(order: Ints, packed: Ints, position: Positions, score: Floats | None) -> None:
    """Sort the rows whose packed integers are equal, in place and by columns."""
    same = packed[1:] == packed[:-1]
    if not same.any():
        return
    tied = np.concatenate([same, [False]])
    tied[1:] |= same
    tied_indices = np.flatnonzero(tied)
    rows = order[tied_indices]
    order[tied_indices] = rows[
        _by_columns(packed[tied_indices], position[rows], None if score is None else score[rows])
    ]


def _by_columns(series: Ints, position: Positions, score: Floats | None) -> Ints:
    columns = (position, series) if score is None else (-score, position, series)
    return np.lexsort(columns)


def added_one_to_one(truth: Points, predictions: Points, margin: Margin, score: Floats | None = None) -> Ints:
    """Whether every prediction is in the maximum one-to-one matching that takes higher scores first.

    TP(v) is the size of the largest matching of all predictions with a score ≥ v, at every v. Scores are finite, and
    higher means more confident; without, the predictions nearest to a true point go first, which changes no total.

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
    margin. A prediction may serve several true points, so that precision can exceed 1. O((P + T) log). Scores are
    finite; without, all are equal.

    Returns:
        Shape (predictions,), int64, at least 0. Of equally good predictions the one at the earlier position counts.
    """
    best = best_prediction(truth, predictions, margin, score)
    return np.bincount(best[best >= 0], minlength=len(predictions.position)).astype(np.int64)


def best_prediction(truth: Points, predictions: Points, margin: Margin, score: Floats | None = None) -> Ints:
    """Number of the prediction with the best score within the margin of every true point.

    Scores are finite; without, all are equal.

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
    predictions that belong to it: O((P + T) log). Matches can be lost: of {4, 11, 18} and {7, 8, 14} within 6, only 2
    of 3 are matched. The order of the predictions does not matter. ruptures itself uses `<` (an open margin) and
    rejects repeated positions. Scores are finite; without, all are equal. The order of true points is that in the
    input, as any numbers, or else by position.

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
    distances need not be minimal. What was added is the result of `added_one_to_one` for the same points.

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


# Greedy matching: true points choose a free prediction one after the other, as in roerich and TCPDBench.
#
# Such a greedy rule does not always find a largest matching, and its result depends on the order in which the true
# points choose. One more prediction changes at most one choice at every turn, so that one pass over the turns gives
# the whole curve. Points affect each other only within a component that is linked by the margin.


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
    """The rule of `roerich.metrics.precision_recall_scores`: the first free prediction in input order.

    True points choose in input order. Each takes the first prediction within the margin whose position has not been
    taken, so that only one of several predictions at the same position can match. roerich itself uses `≤` (a closed
    margin).

    With input in ascending order this gives the largest matching of the distinct positions, because first fit is then
    the earliest-deadline rule, and it costs as little. Otherwise a component of t true points and p predictions costs
    O(t p log p), and p times as much if predictions share a position. Scores are finite; without, all predictions enter
    together. Orders are those in the input, as any numbers, or else by position.

    Returns:
        What every prediction adds to the true positives when predictions enter by descending score: 0 or 1, or -1
        where a repeated position comes earlier in the input and loses a match; shape (predictions,), int64.
    """
    if _ascends(truth, truth_order) and _ascends(predictions, prediction_order):
        return _added_by_first_fit(truth, predictions, margin, score)
    order = np.arange(len(predictions.position)) if prediction_order is None else prediction_order
    return _GreedyMatching(truth, predictions, margin, truth_order, order).added(score)


def _ascends(points: Points, order: Ints | None) -> bool:
    """Whether the positions of every series ascend in input order; the order of equal positions does not matter."""
    if order is None:
        return True
    new = np.flatnonzero(points.is_new)
    latest = np.maximum.reduceat(order, new) if len(new) else order
    earliest = np.minimum.reduceat(order, new) if len(new) else order
    next_series = points.series[new[1:]] > points.series[new[:-1]]
    return bool((next_series | (earliest[1:] > latest[:-1])).all())


def _added_by_first_fit(truth: Points, predictions: Points, margin: Margin, score: Floats | None) -> Ints:
    """The largest matching of the distinct positions, each of which has the highest of its scores."""
    added = np.zeros(len(predictions.position), dtype=np.int64)
    new = np.flatnonzero(predictions.is_new)
    scores = scores_of(predictions, score)
    best = best_of_ranges(scores, new, np.append(new[1:], len(added)))
    windows = find_windows(truth, Points(predictions.series[new], predictions.position[new]), margin)
    added[best[match_greedily(windows.first, windows.stop, scores[best])]] = 1
    return added


def added_nearest(truth: Points, predictions: Points, margin: Margin, score: Floats | None = None) -> Ints:
    """The rule of TCPDBench (van den Burg & Williams 2020): the nearest free prediction.

    True points choose by ascending position (in their code: in the order of a Python set). Each takes the nearest free
    prediction within the margin, the earlier one if two are equally near. TCPDBench itself uses `≤` (a closed margin)
    and sets of positions. A component of t true points and p predictions costs O(t p log p). Scores are finite;
    without, all predictions enter together.

    Returns:
        0 or 1 for every prediction, shape (predictions,), int64.
    """
    return _GreedyMatching(truth, predictions, margin, None, None).added(score)


class _GreedyMatching:
    """The points and their windows, with the rule by which a true point chooses.

    Args:
        truth: True points.
        predictions: Predicted points.
        margin: The margin.
        truth_order: Turn of every true point, any numbers; None: by position.
        prediction_order: Preference of all true points among the predictions, smallest first; a position can then be
            taken only once. None: every true point prefers the prediction nearest to it, and predictions at the same
            position can be taken separately.
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
        """The addition of every prediction to the true positives when predictions enter by descending score."""
        added = np.zeros(len(self._predictions.position), dtype=np.int64)
        scores = scores_of(self._predictions, score)
        for true_points, candidates in _components_by_size(self._windows):
            turns = np.argsort(self._truth_order[true_points], axis=1, kind="stable")
            choosers = np.take_along_axis(true_points, turns, axis=1)
            entering = np.argsort(-scores[candidates], axis=1, kind="stable")
            entered = np.take_along_axis(candidates, entering, axis=1)
            added[entered] = self._is_taken(choosers, candidates, entering)
            if self._prediction_order is not None:
                again = np.flatnonzero((np.diff(self._predictions.position[candidates], axis=1) == 0).any(axis=1))
                added[entered[again]] = self._added_with_repeats(choosers[again], candidates[again], entering[again])
        return added

    def _is_taken(self, choosers: Ints, candidates: Ints, entering: Ints) -> Bools:
        """Whether one more true point is matched after each prediction has entered.

        A prediction that enters is one more candidate at the first turn. If it is chosen there, the prediction chosen
        before becomes one more candidate at the next turn, and so on. At every turn, the chosen prediction is therefore
        the running best of those that have come in.

        Args:
            choosers: True points in the order of their turns, shape (components, T).
            candidates: Predictions, shape (components, P).
            entering: Columns of `candidates` in the order in which they enter, shape (components, P); -1 for none.
        """
        offered, nobody = entering, candidates.shape[1]
        for turn in range(choosers.shape[1]):
            chooser = choosers[:, turn, np.newaxis]
            # the rank of every candidate in the preference of this true point; `nobody` outside its window
            ranked = np.argsort(self._preference(chooser, candidates), axis=1, kind="stable")
            rank = np.empty_like(ranked)
            np.put_along_axis(rank, ranked, np.arange(nobody)[np.newaxis], axis=1)
            near = (self._windows.first[candidates] <= chooser) & (chooser < self._windows.stop[candidates])
            rank = _with_last(np.where(near, rank, nobody), nobody)
            # the best of the candidates offered so far is chosen
            rank_offered = np.take_along_axis(rank, offered, axis=1)
            best = np.minimum.accumulate(rank_offered, axis=1)
            best_before = np.concatenate([np.full((len(candidates), 1), nobody), best[:, :-1]], axis=1)
            # a better newcomer displaces the previous choice, which is offered at the next turn in its place
            displaced = np.take_along_axis(_with_last(ranked, -1), best_before, axis=1)
            offered = np.where(rank_offered < best_before, displaced, offered)
        # where nothing is left over after the last turn, the prediction that entered added a match
        return np.asarray((offered < 0) & (entering >= 0))

    def _preference(self, chooser: Ints, candidates: Ints) -> Ints | Floats:
        if self._prediction_order is not None:
            return self._prediction_order[candidates]
        return np.asarray(np.abs(self._predictions.position[candidates] - self._truth.position[chooser]))

    def _added_with_repeats(self, choosers: Ints, candidates: Ints, entering: Ints) -> Ints:
        """Additions of predictions, in the order in which they enter, in components where some share a position.

        Of the predictions at one position only the earliest in the input is a candidate, and a prediction that enters
        later can take over that role. The true positives are therefore counted anew after each entry.
        """
        # candidates by position and, within one position, by input order
        sorted_candidates = np.argsort(self._preference(choosers[:, :1], candidates), axis=1, kind="stable")
        position = np.take_along_axis(self._predictions.position[candidates], sorted_candidates, axis=1)
        sorted_candidates = np.take_along_axis(sorted_candidates, np.argsort(position, axis=1, kind="stable"), axis=1)
        position = np.sort(position, axis=1)
        is_new = np.append(np.ones((len(candidates), 1), dtype=np.bool_), position[:, 1:] > position[:, :-1], axis=1)
        # the column where the position of each candidate begins, and when each enters
        start = np.maximum.accumulate(np.where(is_new, np.arange(candidates.shape[1]), 0), axis=1)
        enters = np.take_along_axis(np.argsort(entering, axis=1), sorted_candidates, axis=1)
        true_positives = np.zeros((len(candidates), candidates.shape[1] + 1), dtype=np.int64)
        for count in range(1, candidates.shape[1] + 1):
            # of the candidates that have entered, the first at each position
            entered = enters < count
            earlier: Ints = np.cumsum(entered, axis=1) - entered
            first = entered & (earlier == np.take_along_axis(earlier, start, axis=1))
            true_positives[:, count] = self._is_taken(choosers, candidates, np.where(first, sorted_candidates, -1)).sum(
                axis=1
            )
        return np.diff(true_positives, axis=1)


def _with_last(values: Ints, last: int) -> Ints:
    """Values with one more column, which the index -1 refers to."""
    return np.concatenate([values, np.full((len(values), 1), last)], axis=1)


def _components_by_size(windows: Windows) -> Iterator[tuple[Ints, Ints]]:
    """Components of one size at a time: numbers of their true points (C, T) and of their predictions (C, P)."""
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
            components = chosen[at : at + step, np.newaxis]
            yield low[components] + np.arange(n_truth), near[starts[components] + np.arange(n_predictions)]


# Areas under the precision-recall curve of change points; each way of closing the curve has a name of its own.
#
# A curve consists of counts at descending thresholds: `tp` true positives, `n_predicted` predictions at or above the
# threshold, and `n_true` true points. Only the order of the thresholds matters, never their values. Thresholds that
# retrieve nothing are dropped, because precision is 0/0 there. Without true points recall is undefined, and so is every
# area: nan.


Counts: TypeAlias = "NDArray[np.int64]"


def average_precision(tp: Counts, n_predicted: Counts, n_true: int) -> float:
    """Step area: the sum of the increases of recall, each multiplied by the precision at the higher recall.

    This is the rule of `sklearn.metrics.average_precision_score`. Without predictions the area is 0.

    Args:
        tp: True positives at every threshold, thresholds descending, shape (K,).
        n_predicted: Predictions at or above it, shape (K,), non-decreasing.
        n_true: Number of true points.
    """
    precision, recall = _curve(tp, n_predicted, n_true)
    return _unless_undefined(float(np.sum(np.diff(recall, prepend=0.0) * precision)), n_true)


def trapezoid_area(tp: Counts, n_predicted: Counts, n_true: int) -> float:
    """Trapezoids between the points of the curve, extended horizontally from its first point to recall 0.

    Arguments are as for `average_precision`.
    """
    precision, recall = _curve(tp, n_predicted, n_true)
    return _unless_undefined(_trapezoids(np.append(precision[:1], precision), np.append(0.0, recall)), n_true)


def roerich_area(tp: Counts, n_predicted: Counts, n_true: int) -> float:
    """Trapezoids with the end points of `roerich.metrics.auc_score`: recall 0 at precision 1, recall 1 at precision 0.

    roerich gives its end points the scores 999 and -999 and sorts them among the others, so that its area depends on
    the scale of the scores. Here they always stand at the ends, as in roerich for scores between these two. The second
    end point credits a recall that was never reached. Without predictions the two end points alone give 0.5. Arguments
    are as for `average_precision`.
    """
    precision, recall = _curve(tp, n_predicted, n_true)
    closed_precision = np.concatenate([[1.0], precision, [0.0]])
    return _unless_undefined(abs(_trapezoids(closed_precision, np.concatenate([[0.0], recall, [1.0]]))), n_true)


def _curve(tp: Counts, n_predicted: Counts, n_true: int) -> tuple[Floats, Floats]:
    """Precision and recall at the thresholds that retrieve something."""
    retrieved = n_predicted > 0
    return tp[retrieved] / n_predicted[retrieved], tp[retrieved] / max(n_true, 1)


def _trapezoids(precision: Floats, recall: Floats) -> float:
    return float(np.sum(np.diff(recall) * (precision[1:] + precision[:-1]) / 2)) if len(precision) else 0.0


def _unless_undefined(area: float, n_true: int) -> float:
    return area if n_true > 0 else float("nan")
