"""Zones of true points: which predictions lie in them, what several annotators make of them, and covering."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ...base.records import dataclass
from ..matching import Edges, maximum_matching

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray


# The true points within the margin of every prediction, for many series at once and without rounding.


Ints: TypeAlias = "NDArray[np.int64]"
Positions: TypeAlias = "NDArray[np.int64] | NDArray[np.float64]"

_INT64 = np.iinfo(np.int64)
_POINTS_AT_A_TIME = 1 << 15


@dataclass(frozen=True)
class Points:
    """Points of many series in flat arrays, sorted by series and, within one, by position.

    Attributes:
        series: Number of the series of every point, shape (N,).
        position: Position of every point, shape (N,): int64 (an index, or microseconds) or finite float64.

    Raises:
        ValueError: the arrays differ in length, have another type or are not sorted.
    """

    series: Ints
    position: Positions

    def __post_init__(self) -> None:
        if self.series.shape != self.position.shape or self.series.ndim != 1:
            message = f"{self.series.shape} numbers of series and {self.position.shape} positions"
            raise ValueError(message)
        if self.position.dtype not in {np.dtype(np.int64), np.dtype(np.float64)}:
            message = f"positions are {self.position.dtype}; they must be int64 or float64"
            raise ValueError(message)
        is_next_series = self.series[1:] > self.series[:-1]
        if not (
            is_next_series | ((self.series[1:] == self.series[:-1]) & (self.position[1:] >= self.position[:-1]))
        ).all():
            message = "points are not sorted by series and position"
            raise ValueError(message)

    @property
    def is_new(self) -> NDArray[np.bool_]:
        """Whether every point differs from the one before it in series or position."""
        moved = (self.series[1:] > self.series[:-1]) | (self.position[1:] > self.position[:-1])
        return np.concatenate([np.ones(min(1, len(self.series)), dtype=np.bool_), moved])


@dataclass(frozen=True)
class Margin:
    """How far a prediction may lie from a true point: -before ≤ prediction - truth ≤ after, or `<` on both sides.

    If the margin is not closed and a side is 0, not even an exact hit matches, because the open interval ends there.

    Attributes:
        before: How much earlier than the true point a prediction may be; at least 0, in the unit of the positions.
        after: How much later it may be, likewise.
        closed: Whether a distance equal to the margin matches.

    Raises:
        ValueError: a side is negative or nan.
    """

    before: float
    after: float
    closed: bool

    def __post_init__(self) -> None:
        if not (self.before >= 0 and self.after >= 0):
            message = f"a margin from -{self.before} to {self.after}: both sides must be at least 0"
            raise ValueError(message)

    def differences(self, kind: np.dtype[Any]) -> tuple[Any, Any]:
        """Smallest and largest prediction - truth that match, both inclusive, in the type of the positions."""
        if kind == np.float64:
            low, high = np.float64(-self.before), np.float64(self.after)
            return (low, high) if self.closed else (np.nextafter(low, np.inf), np.nextafter(high, -np.inf))
        most_before, most_after = (_largest_whole(side, closed=self.closed) for side in (self.before, self.after))
        return np.int64(-most_before), np.int64(most_after)


def _largest_whole(side: float, *, closed: bool) -> int:
    """Largest whole number ≤ `side`, or < `side`."""
    if math.isinf(side):
        return int(_INT64.max)
    return min(math.floor(side) if closed else math.ceil(side) - 1, int(_INT64.max))


@dataclass(frozen=True)
class Windows:
    """The true points within the margin of every prediction: `truth[first[j]:stop[j]]`.

    Attributes:
        first: Number of the first such true point, shape (predictions,), non-decreasing.
        stop: One after the number of the last, non-decreasing; not above `first` if there is none.
    """

    first: Ints
    stop: Ints


def find_windows(truth: Points, predictions: Points, margin: Margin) -> Windows:
    """True points within the margin of every prediction, by a binary search for all predictions at once.

    Integer positions are compared exactly. For float64 the difference prediction - truth is rounded once, as in the
    other libraries, and then compared. O(P log t), t being the largest number of true points of a series. Both have
    positions of one type.

    Raises:
        ValueError: the types of the positions differ, or integers are so far apart that int64 cannot hold the
            difference.
    """
    check_comparable(truth.position, predictions.position)
    low, high = margin.differences(predictions.position.dtype)
    first = np.zeros(len(predictions.position), dtype=np.int64)
    stop = np.zeros(len(predictions.position), dtype=np.int64)
    for first_of_batch in range(0, len(first) if len(truth.position) else 0, _POINTS_AT_A_TIME):
        batch = slice(first_of_batch, first_of_batch + _POINTS_AT_A_TIME)
        begin, end = ranges_of_series(truth.series, predictions.series[batch])
        position = predictions.position[batch]
        first[batch] = prefix_end(truth.position, position, begin, end, lambda difference: difference > high)
        stop[batch] = prefix_end(truth.position, position, begin, end, lambda difference: difference >= low)
    return Windows(first, stop)


def prefix_end(
    truth: Positions, position: Positions, begin: Ints, end: Ints, condition: Callable[[Positions], NDArray[np.bool_]]
) -> Ints:
    """Return where the prefix of the true points `begin:end` ends for which the difference meets a condition.

    Positions of predictions, and first true points of their series with those one after the last, have the shape (P,);
    the condition, on prediction - truth, holds for a prefix of the true points.
    """
    prefix_end = begin.copy()
    step = 1 << int((end - begin).max()).bit_length()
    while step := step >> 1:
        further = prefix_end + step
        with np.errstate(over="ignore"):
            difference = position - truth.take(further - 1, mode="clip")
        np.copyto(prefix_end, further, where=condition(difference) & (further <= end))
    return prefix_end


def check_comparable(truth: Positions, predictions: Positions) -> None:
    """Refuse positions whose difference has no exact value.

    Raises:
        ValueError: the types differ, or integers are so far apart that int64 cannot hold the difference.
    """
    if truth.dtype != predictions.dtype:
        message = f"true positions are {truth.dtype}, predicted ones {predictions.dtype}: they must be of one type"
        raise ValueError(message)
    if truth.dtype == np.int64 and len(truth) and len(predictions):
        reach = max(int(predictions.max()) - int(truth.min()), int(truth.max()) - int(predictions.min()))
        if reach > int(_INT64.max):
            message = "positions are further apart than 2^63"
            raise ValueError(message)


def ranges_of_series(truth_series: Ints, series: Ints) -> tuple[Ints, Ints]:
    """For every prediction, the range of the true points of its series.

    Both are in order, and there is at least one prediction.
    """
    starts = np.flatnonzero(np.diff(series, prepend=series[:1] - 1))
    counts = np.diff(starts, append=len(series))
    begin = np.searchsorted(truth_series, series[starts], side="left")
    end = np.searchsorted(truth_series, series[starts], side="right")
    return np.repeat(begin, counts), np.repeat(end, counts)


def nearest_truth(truth: Points, predictions: Points, windows: Windows) -> Ints:
    """Number of the true point nearest to every prediction within its window; the earlier of two equally near.

    Returns:
        Shape (predictions,); -1 where the window is empty.
    """
    # a window of one true point needs no search; elsewhere the nearest is next to the prediction, on either side
    nearest = np.where(windows.first < windows.stop, windows.first, -1)
    several = np.flatnonzero(windows.stop - windows.first > 1)
    chosen = Points(predictions.series[several], predictions.position[several])
    not_later = find_windows(truth, chosen, Margin(before=0, after=math.inf, closed=True)).stop
    left = np.clip(not_later - 1, windows.first[several], windows.stop[several] - 1)
    right = np.clip(not_later, windows.first[several], windows.stop[several] - 1)
    to_left, to_right = np.abs(chosen.position - truth.position[left]), np.abs(truth.position[right] - chosen.position)
    nearest[several] = np.where(to_left <= to_right, left, right)
    return nearest


def scores_of(predictions: Points, score: NDArray[np.float64] | None) -> NDArray[np.float64]:
    """Scores of the predictions; all are 0 if there are none.

    Raises:
        ValueError: the scores are not one finite number for every prediction.
    """
    if score is None:
        return np.zeros(len(predictions.position))
    if score.shape != predictions.position.shape or not np.isfinite(score).all():
        message = f"{score.shape} scores of {predictions.position.shape} predictions must be one finite number for each"
        raise ValueError(message)
    return score


def best_of_ranges(key: NDArray[Any], first: Ints, stop: Ints) -> Ints:
    """Index of the largest key in every range `first:stop`, by doubling; O((N + R) log(longest range)).

    Args:
        key: Shape (N,).
        first: Start of every range, shape (R,), non-decreasing.
        stop: End of every range, exclusive, non-decreasing.

    Returns:
        Shape (R,); -1 for an empty range; the earliest of equal keys.
    """
    best = np.full(len(first), -1, dtype=np.int64)
    ranges = np.flatnonzero(first < stop)
    step = max(_POINTS_AT_A_TIME, int((stop - first).max(initial=0)))
    for first_of_batch in range(0, len(ranges), step):
        batch = ranges[first_of_batch : first_of_batch + step]
        base = first[batch[0]]
        best[batch] = base + _best_by_doubling(key[base : stop[batch[-1]]], first[batch] - base, stop[batch] - base)
    return best


def _best_by_doubling(key: NDArray[Any], first: Ints, stop: Ints) -> Ints:
    """`best_of_ranges` without empty ranges: at level l the table holds the best of the 2^l keys from each one on."""
    best = np.empty(len(first), dtype=np.int64)
    length, longest = stop - first, int((stop - first).max())
    table, width = np.arange(len(key)), 1
    while width <= longest:
        of_this_level = np.flatnonzero((length >= width) & (length < 2 * width))
        best[of_this_level] = _better(key, table[first[of_this_level]], table[stop[of_this_level] - width])
        table = _better(key, table[:-width], table[width:])
        width *= 2
    return best


def _better(key: NDArray[Any], left: Ints, right: Ints) -> Ints:
    return np.where(key[left] >= key[right], left, right)


# Zones of true points: where a prediction detects one, for points and for incidents that last.
#
# An incident lasts from its start to its end, and its zone reaches from `start - before` to `end + after`. A point is
# an incident that ends where it starts. A prediction inside the incident lies in the zone; beyond its ends the
# distance from the nearer end is compared with the margin, `<` or `<=`.
#
# One zone holds a run of the predictions of its series, in the order of positions, but zones of unequal length need
# not be nested in that order, so that the true points near one prediction need not be neighbours.


Floats: TypeAlias = "NDArray[np.float64]"
Bools: TypeAlias = "NDArray[np.bool_]"

_PAIRS_AT_A_TIME = 1 << 21
_RANK_BITS = 32


@dataclass(frozen=True)
class Incidents:
    """True points of many series that may last, sorted by series, start and end.

    Attributes:
        starts: Series and start of each.
        end: Where each ends, shape (T,), of the type of the starts; not before the start.
    """

    starts: Points
    end: Positions

    @classmethod
    def of(cls, series: Ints, start: Positions, end: Positions) -> Incidents:
        """Every pair of a start and an end of a series once, from rows in any order."""
        order = np.lexsort((end, start, series))
        series, start, end = series[order], start[order], end[order]
        is_new = np.ones(len(order), dtype=np.bool_)
        is_new[1:] = (series[1:] > series[:-1]) | (start[1:] > start[:-1]) | (end[1:] > end[:-1])
        return cls(Points(series[is_new], start[is_new]), end[is_new])

    @classmethod
    def points(cls, points: Points) -> Incidents:
        """Points that do not last."""
        return cls(points, points.position)


@dataclass(frozen=True)
class Zones:
    """The predictions in the zone of every true point: `predictions[first[i]:stop[i]]`.

    Attributes:
        first: Number of the first such prediction, shape (T,).
        stop: One after the number of the last; not above `first` if there is none.
        n_predictions: Number of all predictions.
    """

    first: Ints
    stop: Ints
    n_predictions: int

    @property
    def size(self) -> Ints:
        """Predictions in every zone, shape (T,)."""
        return np.asarray(np.maximum(self.stop - self.first, 0))

    @property
    def outside(self) -> Bools:
        """Whether each prediction lies in no zone, shape (predictions,)."""
        is_open = self.stop > self.first
        depth = np.zeros(self.n_predictions + 1, dtype=np.int64)
        np.add.at(depth, self.first[is_open], 1)
        np.add.at(depth, self.stop[is_open], -1)
        return np.asarray(np.cumsum(depth)[:-1] == 0)

    def pairs(self) -> Iterator[tuple[Ints, Ints]]:
        """Every zone with each of its predictions, both by number, in order, some millions at a time."""
        until = np.cumsum(self.size)
        start = 0
        while start < len(until):
            before = until[start - 1] if start else 0
            end = max(start + 1, int(np.searchsorted(until, before + _PAIRS_AT_A_TIME, side="right")))
            lengths = self.size[start:end]
            zone = np.repeat(np.arange(start, end), lengths)
            begin = np.repeat(self.first[start:end] - (until[start:end] - lengths - before), lengths)
            yield zone, begin + np.arange(len(zone))
            start = end


def find_zones(truth: Incidents, predictions: Points, margin: Margin) -> Zones:
    """The predictions in the zone of every true point, by binary searches for all of them at once.

    Positions are of one type; the margin is how much earlier than the start and later than the end one may be.

    Raises:
        ValueError: as `find_windows`.
    """
    reversed_margin = Margin(margin.after, margin.before, closed=margin.closed)  # of the true point from the prediction
    first = find_windows(predictions, truth.starts, reversed_margin).first
    if truth.end is truth.starts.position:
        stop = find_windows(predictions, truth.starts, reversed_margin).stop
        return Zones(first, stop, len(predictions.position))
    order = np.lexsort((truth.end, truth.starts.series))
    stop = np.empty_like(first)
    ends = Points(truth.starts.series[order], truth.end[order])
    stop[order] = find_windows(predictions, ends, reversed_margin).stop
    return Zones(first, stop, len(predictions.position))


@dataclass(frozen=True)
class FirstAlarms:
    """Which prediction is the first in a zone, at every threshold; one row per zone and prediction that ever is.

    A prediction is the first of its zone at the thresholds up to its own score and above the highest score of those in
    front of it.

    Attributes:
        zone: Number of the true point, shape (N,), in order.
        prediction: Number of the prediction.
        above: The highest score of the earlier predictions in the zone; -inf if it stays the first.
    """

    zone: Ints
    prediction: Ints
    above: Floats


def first_alarms(zones: Zones, score: Floats) -> FirstAlarms:
    """The predictions that are the first of their zone at some threshold."""
    distinct, rank = np.unique(score, return_inverse=True)
    zone_parts, prediction_parts, above_parts = [], [], []
    for zone, prediction in zones.pairs():
        # zone and rank in one integer: its running maximum is that of the ranks within every zone
        highest = np.maximum.accumulate(zone << _RANK_BITS | rank[prediction])
        before = np.concatenate([[-1], highest[:-1]])
        rises = np.flatnonzero(highest > before)
        before = before[rises]
        in_zone = before >> _RANK_BITS == zone[rises]
        above = np.full(len(rises), -np.inf)
        above[in_zone] = distinct[before[in_zone] & ((1 << _RANK_BITS) - 1)]
        zone_parts.append(zone[rises])
        prediction_parts.append(prediction[rises])
        above_parts.append(above)
    return FirstAlarms(_joined(zone_parts), _joined(prediction_parts), np.concatenate([np.empty(0), *above_parts]))


def _joined(arrays: list[Ints]) -> Ints:
    return np.concatenate([np.empty(0, dtype=np.int64), *arrays])


def detecting_above(alarms: FirstAlarms, n_predictions: int) -> Floats:
    """The score above which each prediction is no longer overtaken: it detects a true point at thresholds above it.

    A prediction detects at a threshold if it is the first of a zone there. It does so from its own score down to the
    lowest of what `FirstAlarms.above` says of its zones.

    Returns:
        Shape (predictions,); inf for one that is never the first of a zone, -inf for one that always is.
    """
    above = np.full(n_predictions, np.inf)
    np.minimum.at(above, alarms.prediction, alarms.above)
    return above


def added_to_incidents(zones: Zones, score: Floats) -> Ints:
    """Whether every prediction is in a largest one-to-one matching with the true points that takes higher scores first.

    As `added_one_to_one`, where zones differ in length: the number of matched predictions with a score ≥ v is the size
    of the largest matching of all predictions with a score ≥ v, at every v.

    Returns:
        0 or 1 for every prediction, shape (predictions,), int64.
    """
    added = np.zeros(zones.n_predictions, dtype=np.int64)
    pairs = list(zones.pairs())
    zone, prediction = (_joined([pair[side] for pair in pairs]) for side in (0, 1))
    matched = maximum_matching(Edges(zone, prediction, np.zeros(len(zone))), len(zones.first), score)
    added[matched[matched >= 0]] = 1
    return added


def detected_by_best(zones: Zones, score: Floats) -> Ints:
    """Number of true points whose best prediction in the zone is this one, as `added_any` where zones differ in length.

    Returns:
        Shape (predictions,), int64, at least 0; of equally good predictions the earlier counts.
    """
    alarms = first_alarms(zones, score)
    is_last = np.ones(len(alarms.zone), dtype=np.bool_)
    is_last[:-1] = alarms.zone[1:] != alarms.zone[:-1]  # scores rise within a zone, so the last is the best
    return np.bincount(alarms.prediction[is_last], minlength=zones.n_predictions).astype(np.int64)


# Several annotators of one series: the union of their annotations, and the convention of TCPDBench.


def distinct_points(points: Points) -> Points:
    """Every position of a series once: the union of the annotations of its annotators, all of which are in `points`."""
    new = points.is_new
    return Points(points.series[new], points.position[new])


def with_origin(points: Points, series: Ints) -> Points:
    """Distinct positions with index 0 added to every series, as TCPDBench does for true and for predicted points.

    Args:
        points: Points of some of the series.
        series: Numbers of all series, including those without points (an annotator who annotated nothing, a run that
            detected nothing), shape (S,), any order.
    """
    number = np.concatenate([points.series, series])
    position = np.concatenate([points.position, np.zeros(len(series), dtype=points.position.dtype)])
    order = np.lexsort((position, number))
    return distinct_points(Points(number[order], position[order]))


def mean_over_annotators(value: Floats, group: Ints, n_groups: int) -> Floats:
    """Mean over the annotators of every series: how TCPDBench averages recall and covering.

    With index 0 added, an annotator who annotated nothing has one true point, so that recall is 1 (van den Burg &
    Williams 2020).

    Args:
        value: Recall or covering of every annotator, shape (A,); nan values are left out.
        group: Series 0, 1, 2, … of every annotator, shape (A,).
        n_groups: Number of series.

    Returns:
        Shape (n_groups,); nan for a series without annotators.
    """
    defined = ~np.isnan(value)
    total = np.bincount(group[defined], weights=value[defined], minlength=n_groups)
    count = np.bincount(group[defined], minlength=n_groups)
    return np.asarray(np.divide(total, count, out=np.full(n_groups, np.nan), where=count > 0))


# Segmentation covering: how well predicted segments cover the segments between true change points.


_TRUE, _PREDICTED, _SERIES = 1, 2, 4
_ANY = _TRUE | _PREDICTED | _SERIES


def covering(truth: Points, predictions: Points, n_obs: Ints) -> Floats:
    """Segmentation covering of every series (Arbeláez et al. 2011; van den Burg & Williams 2020).

    With G the true segments and G' the predicted ones, |A| the number of observations of A and n that of the series,

        C = 1/n · sum over A in G of |A| · max over A' in G' of |A ∩ A'| / |A ∪ A'|.

    Every run of observations without a true or predicted change point lies in one true and one predicted segment, and
    every pair of segments that overlap shares exactly one such run. All pairs are therefore obtained by sorting the
    change points once, O(N log N) for all series together.

    A series with several annotators has one covering for each of them; TCPDBench takes the mean.

    Args:
        truth: True change points, with int64 positions; a change point is the first observation of a new segment.
            Repeated positions count once; positions outside 1 … n_obs - 1 split nothing, as in TCPDBench.
        predictions: Predicted change points.
        n_obs: Number of observations of series 0, 1, 2, …; shape (S,).

    Returns:
        Between 0 and 1, shape (S,); nan for a series without observations.

    Raises:
        ValueError: a point belongs to a series that is not in `n_obs`, or its position is not an integer.
    """
    # all series are laid end to end; `start` holds the first observation of every run
    sizes = np.maximum(n_obs, 0)
    offset = np.cumsum(sizes) - sizes
    nonempty = np.flatnonzero(sizes)
    true, predicted = (_inner(points, sizes, offset) for points in (truth, predictions))
    start, kind = _merged([(offset[nonempty], _ANY), (true, _TRUE), (predicted, _PREDICTED)])
    run = np.diff(start, append=sizes.sum())
    is_true = (kind & _TRUE) > 0
    # the true and the predicted segment of every run, and the lengths of the segments
    of_true, of_predicted = np.cumsum(is_true) - 1, np.cumsum((kind & _PREDICTED) > 0) - 1
    true_length, predicted_length = np.bincount(of_true, weights=run), np.bincount(of_predicted, weights=run)
    # |A ∩ A'| is the run itself, |A ∪ A'| = |A| + |A'| - |A ∩ A'|
    overlap = run / (true_length[of_true] + predicted_length[of_predicted] - run)
    covered = np.full(len(n_obs), np.nan)
    if len(nonempty):
        # the best predicted segment of each true one, then the mean over observations of each series
        best = np.maximum.reduceat(overlap, np.flatnonzero(is_true))
        covered[nonempty] = (
            np.add.reduceat(true_length * best, np.flatnonzero(kind[is_true] & _SERIES)) / sizes[nonempty]
        )
    return covered


def _inner(points: Points, sizes: Ints, offset: Ints) -> Ints:
    """Points that split their series, as observation numbers when all series are laid end to end."""
    if points.position.dtype != np.int64:
        message = f"positions are {points.position.dtype}: observations are counted, so they must be int64"
        raise ValueError(message)
    if len(points.series) and not 0 <= points.series[0] <= points.series[-1] < len(sizes):
        message = f"series {points.series[0]} to {points.series[-1]}, but {len(sizes)} numbers of observations"
        raise ValueError(message)
    inner = (points.position > 0) & (points.position < sizes[points.series])
    return offset[points.series[inner]] + points.position[inner].astype(np.int64)


def _merged(starts: list[tuple[Ints, int]]) -> tuple[Ints, Ints]:
    """Distinct starts of segments, ascending, with the bits of everything that begins there."""
    start = np.concatenate([positions for positions, _ in starts])
    kind = np.repeat([bits for _, bits in starts], [len(positions) for positions, _ in starts])
    order = np.argsort(start, kind="stable")
    start, kind = start[order], kind[order]
    new = np.flatnonzero(np.diff(start, prepend=-1))
    return start[new], np.bitwise_or.reduceat(kind, new) if len(new) else kind
