"""Zones of true points: where a prediction detects one, for points and for incidents that last.

An incident lasts from its start to its end, and its zone reaches from `start - before` to `end + after`. A point is an
incident that ends where it starts. A prediction inside the incident lies in the zone; beyond its ends the distance from
the nearer end is compared with the margin, `<` or `<=`.

One zone holds a run of the predictions of its series, in the order of positions, but zones of unequal length need not
be nested in that order, so that the true points near one prediction need not be neighbours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ...records import dataclass
from ..matching.bipartite import Edges, maximum_matching
from .windows import Margin, Points, find_windows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from .windows import Positions

Ints: TypeAlias = "NDArray[np.int64]"
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

    Args:
        truth: True points.
        predictions: Predictions, whose positions have the same type.
        margin: How much earlier than the start and later than the end a prediction may be.

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
    """The predictions that are the first of their zone at some threshold.

    Args:
        zones: The zones.
        score: Finite scores of the predictions.
    """
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

    Args:
        zones: The zones.
        score: Finite scores of the predictions.

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

    Args:
        zones: The zones.
        score: Finite scores of the predictions.

    Returns:
        Shape (predictions,), int64, at least 0; of equally good predictions the earlier counts.
    """
    alarms = first_alarms(zones, score)
    is_last = np.ones(len(alarms.zone), dtype=np.bool_)
    is_last[:-1] = alarms.zone[1:] != alarms.zone[:-1]  # scores rise within a zone, so the last is the best
    return np.bincount(alarms.prediction[is_last], minlength=zones.n_predictions).astype(np.int64)
