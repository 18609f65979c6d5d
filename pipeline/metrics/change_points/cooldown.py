"""Alarms within a cooldown after an earlier one, which are one alarm with it, at every threshold.

Of the predictions of a series that count at a threshold, in the order of positions, the first is kept, and after each
kept one the next that comes at least the cooldown later. This is a largest set of predictions that are so far apart, so
that a lower threshold never keeps fewer. But it may keep others: an alarm that enters earlier silences one that was
kept, which may bring back a third. Whether a prediction is kept therefore depends on the threshold, and what is kept is
found anew at every *level*, a set of scores that all thresholds treat alike.

From which prediction the next one may be kept depends on positions alone. So all levels of all series follow their
chains side by side, one step for each kept prediction, and find the next prediction that counts by doubling.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ...records import dataclass
from .windows import check_comparable, prefix_end, ranges_of_series

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from .windows import Points

Ints: TypeAlias = "NDArray[np.int64]"

_ROWS_AT_A_TIME = 1 << 20
_LARGEST = int(np.iinfo(np.int64).max)


@dataclass(frozen=True)
class Levels:
    """The states that the predictions of a series can be in: one for each of their levels.

    Attributes:
        series: Series of every state, shape (S,), in order.
        level: Its level: predictions of this level and of higher ones count; falling within a series.
    """

    series: Ints
    level: Ints

    @classmethod
    def of(cls, predictions: Points, level: Ints) -> Levels:
        """The states of all series.

        Args:
            predictions: Predictions.
            level: Level of each, shape (predictions,), at least 0; higher scores have the same or a higher one.
        """
        order = np.lexsort((-level, predictions.series))
        series, levels = predictions.series[order], level[order]
        is_new = np.ones(len(order), dtype=np.bool_)
        is_new[1:] = (series[1:] > series[:-1]) | (levels[1:] < levels[:-1])
        return cls(series[is_new], levels[is_new])

    @property
    def lowest(self) -> Ints:
        """Number of the state of every series in which all its predictions count."""
        return np.flatnonzero(np.append(self.series[1:] != self.series[:-1], np.ones(min(1, len(self.series)), bool)))


@dataclass(frozen=True)
class Kept:
    """What is kept in some states.

    Attributes:
        state: Number of the state, shape (N,), in order.
        prediction: Number of the kept prediction, in order within a state.
    """

    state: Ints
    prediction: Ints


def later_by(predictions: Points, cooldown: float) -> Ints:
    """Number of the first prediction of the same series that comes at least the cooldown later.

    Args:
        predictions: Predictions.
        cooldown: Above 0, in the unit of the positions. The difference of floating-point positions is rounded once.

    Returns:
        Shape (predictions,); one after the last prediction of the series if there is none.

    Raises:
        ValueError: integers are so far apart that int64 cannot hold the difference.
    """
    position = predictions.position
    if not len(position):
        return np.empty(0, dtype=np.int64)
    check_comparable(position, position)
    begin, end = ranges_of_series(predictions.series, predictions.series)
    gap: Any = np.float64(cooldown) if position.dtype == np.float64 else np.int64(_whole(cooldown))
    return prefix_end(position, position, begin, end, lambda difference: difference > -gap)


def _whole(cooldown: float) -> int:
    """The smallest whole number that is no less, or the largest that int64 holds."""
    return _LARGEST if math.isinf(cooldown) else min(math.ceil(cooldown), _LARGEST)


class Chains:
    """Follows from every kept prediction to the next.

    Args:
        predictions: Predictions.
        level: Level of each, as for `Levels.of`.
        cooldown: As for `later_by`.
    """

    def __init__(self, predictions: Points, level: Ints, cooldown: float) -> None:
        self._predictions = predictions
        self._later = later_by(predictions, cooldown)
        self._highest = [level]  # the highest level of 1, 2, 4, … predictions from each one on
        starts = np.flatnonzero(np.diff(predictions.series, prepend=-1))
        longest = int(np.diff(starts, append=len(level)).max(initial=1))
        width = 1
        while width < longest:
            table = self._highest[-1]
            doubled = table.copy()
            doubled[:-width] = np.maximum(table[:-width], table[width:])
            self._highest.append(doubled)
            width *= 2

    def every(self, levels: Levels, beside: Ints) -> Iterator[Kept]:
        """What is kept in every state, about a million kept predictions at a time.

        O(kept · log n), kept being the sum over all states, and n the number of predictions of a series.

        Args:
            levels: The states.
            beside: How many other rows each state needs, shape (S,), for the size of a batch.
        """
        lowest = levels.lowest  # where a series keeps most
        most = np.bincount(self.kept(levels, lowest).state, minlength=len(levels.series))[lowest]
        until = np.cumsum(np.repeat(most, np.diff(lowest, prepend=-1)) + beside)
        start = 0
        while start < len(until):
            before = until[start - 1] if start else 0
            stop = max(start + 1, int(np.searchsorted(until, before + _ROWS_AT_A_TIME, side="right")))
            yield self.kept(levels, np.arange(start, stop))
            start = stop

    def kept(self, levels: Levels, states: Ints) -> Kept:
        """What is kept in some states, which are numbers in order."""
        state, series, level = states, levels.series[states], levels.level[states]
        at = np.searchsorted(self._predictions.series, series, side="left")
        end = np.searchsorted(self._predictions.series, series, side="right")
        of_states, of_predictions = [], []
        while len(state):
            at = self._next(at, end, level)
            is_inside = at < end
            state, at, end, level = state[is_inside], at[is_inside], end[is_inside], level[is_inside]
            of_states.append(state)
            of_predictions.append(at)
            at = self._later[at]
        state = np.concatenate([np.empty(0, dtype=np.int64), *of_states])
        order = np.argsort(state, kind="stable")
        return Kept(state[order], np.concatenate([np.empty(0, dtype=np.int64), *of_predictions])[order])

    def _next(self, at: Ints, end: Ints, level: Ints) -> Ints:
        """The first prediction from each one on that has at least this level; the end if there is none."""
        for power in reversed(range(len(self._highest))):
            further = at + (1 << power)
            is_lower = (further <= end) & (self._highest[power].take(at, mode="clip") < level)
            at = np.where(is_lower, further, at)
        return at
