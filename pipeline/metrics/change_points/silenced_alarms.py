"""The changes of `alarms` where alarms within the cooldown after an earlier one are one alarm with it."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import numpy as np

from ...records import dataclass
from .alarms import Alerts, Changes, counted, final
from .cooldown import Chains, Kept, Levels
from .windows import Points
from .zones import Incidents

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from .alarms import AlarmRule, Final

Ints: TypeAlias = "NDArray[np.int64]"
Floats: TypeAlias = "NDArray[np.float64]"
Table = TypeVar("Table", Changes, Alerts)

_COUNTS = ("n_predicted", "tp", "n_false", "n_ignored")
_NO_ALARM = -1


@dataclass(frozen=True)
class Cooldown:
    """How long an alarm silences those that follow, and at which scores the state is wanted.

    Attributes:
        length: Above 0, in the unit of the positions: an alarm that comes at least as much later is a new one.
        level: Level of every prediction, as for `Levels.of`.
    """

    length: float
    level: Ints


def changes_by_level(
    truth: Incidents, predictions: Points, rule: AlarmRule, score: Floats | None, cooldown: Cooldown
) -> tuple[Changes, Alerts, Final]:
    """All changes; what is kept is matched anew at every level at which it is something else than above.

    Args:
        truth: True points.
        predictions: Predicted points.
        rule: What detects, and what becomes of repeats.
        score: Finite scores of the predictions; None: all enter together.
        cooldown: The cooldown.

    Returns:
        As `changes_by_score`. The first rows of the changes count every prediction as merged, in order; at the lowest
        score of a level, further rows bring what is kept there and no longer merged.
    """
    levels, chains = Levels.of(predictions, cooldown.level), Chains(predictions, cooldown.level, cooldown.length)
    states = _States(truth, predictions, rule, levels, _lowest_scores(predictions, score, cooldown.level))
    tables = [states.changes(kept) for kept in states.changed(chains, cooldown.level)]
    size = len(predictions.position)
    shown, zeros = np.full(size, np.nan) if score is None else score, np.zeros(size, dtype=np.int64)
    merged = Changes(predictions.series, shown, zeros, zeros, zeros, zeros, np.ones_like(zeros))
    nothing = np.empty(0, dtype=np.int64)
    no_alert = Alerts(nothing, nothing, np.empty(0), nothing)
    kept = chains.kept(levels, levels.lowest).prediction
    remaining = Points(predictions.series[kept], predictions.position[kept])
    return (
        _joined([merged, *(changes for changes, _ in tables)]),
        _joined([no_alert, *(alerts for _, alerts in tables)]),
        final(counted(truth, remaining, rule, None), rule, kept),
    )


def _joined(tables: Sequence[Table]) -> Table:
    """One table below the other."""
    names = [field.name for field in fields(tables[0])]
    return type(tables[0])(*(np.concatenate([getattr(table, name) for table in tables]) for name in names))


def _lowest_scores(predictions: Points, score: Floats | None, level: Ints) -> Floats:
    """The lowest score of every state, in the order of `Levels`."""
    order = np.lexsort((-level, predictions.series))
    if score is None or not len(order):
        return np.full(len(np.unique(predictions.series)), np.nan)
    series, levels = predictions.series[order], level[order]
    is_new = np.append(True, (series[1:] > series[:-1]) | (levels[1:] < levels[:-1]))
    return np.minimum.reduceat(score[order], np.flatnonzero(is_new))


class _States:
    """Compares every state of a series with the one before it, at the next higher level.

    Args:
        truth: True points.
        predictions: Predicted points.
        rule: What detects, and what becomes of repeats.
        levels: The states.
        score: The lowest score of every state.
    """

    def __init__(self, truth: Incidents, predictions: Points, rule: AlarmRule, levels: Levels, score: Floats) -> None:
        self._truth = truth
        self._predictions = predictions
        self._rule = rule
        self._levels = levels
        self._score = score
        self._latest = Kept(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))
        sides = (np.searchsorted(truth.starts.series, levels.series, side=side) for side in ("left", "right"))
        self._first_truth, self._stop_truth = sides

    def changed(self, chains: Chains, level: Ints) -> Iterator[Kept]:
        """What is kept in the states that keep a prediction of their own level; the others keep what was kept above."""
        for kept in chains.every(self._levels, self._stop_truth - self._first_truth):
            is_changed = np.zeros(len(self._levels.series), dtype=np.bool_)
            is_changed[kept.state[level[kept.prediction] == self._levels.level[kept.state]]] = True
            rows = is_changed[kept.state]
            yield Kept(kept.state[rows], kept.prediction[rows])

    def changes(self, kept: Kept) -> tuple[Changes, Alerts]:
        """What changes in some states, which follow those that were asked for before."""
        n_before = min(1, len(self._latest.state))  # the latest state is there again, to be compared with
        state = np.concatenate([self._latest.state, kept.state])
        prediction = np.concatenate([self._latest.prediction, kept.prediction])
        states, number = np.unique(state, return_inverse=True)
        if len(states):
            self._latest = Kept(state[state == states[-1]], prediction[state == states[-1]])
        follows = np.zeros(len(states), dtype=np.bool_)
        series = self._levels.series[states]
        follows[1:] = series[1:] == series[:-1]
        lengths = (self._stop_truth - self._first_truth)[states]
        copies = np.repeat(self._first_truth[states] - (np.cumsum(lengths) - lengths), lengths)
        copies = copies + np.arange(len(copies))
        counts = counted(
            self._copied(np.repeat(np.arange(len(states)), lengths), copies),
            Points(number, self._predictions.position[prediction]),
            self._rule,
            None,
        )
        totals = [np.bincount(number, getattr(counts, name), len(states)).astype(np.int64) for name in _COUNTS]
        totals.append(-np.bincount(number, minlength=len(states)))
        differences = [total - np.where(follows, np.roll(total, 1), 0) for total in totals]
        changes = Changes(series[n_before:], self._score[states[n_before:]], *(d[n_before:] for d in differences))
        first = np.full(len(copies), _NO_ALARM)
        first[counts.first.zone] = prediction[counts.first.prediction]
        return changes, self._alerts(states, lengths, follows, copies, first, n_before)

    def _copied(self, state: Ints, copies: Ints) -> Incidents:
        """True points once for every state of their series."""
        starts = Points(state, self._truth.starts.position[copies])
        if self._truth.end is self._truth.starts.position:
            return Incidents.points(starts)
        return Incidents(starts, self._truth.end[copies])

    def _alerts(
        self, states: Ints, lengths: Ints, follows: np.ndarray, copies: Ints, first: Ints, n_before: int
    ) -> Alerts:
        """Where the first alarm of a true point is another than in the state before."""
        rows = np.arange(len(copies))
        before = np.where(np.repeat(follows, lengths), first[rows - np.repeat(lengths, lengths)], _NO_ALARM)
        is_new = (first != before) & (rows >= lengths[:n_before].sum())
        begins, ends = np.flatnonzero(is_new & (first >= 0)), np.flatnonzero(is_new & (before >= 0))
        score = np.repeat(self._score[states], lengths)
        return Alerts(
            np.concatenate([copies[begins], copies[ends]]),
            np.concatenate([first[begins], before[ends]]),
            np.concatenate([score[begins], score[ends]]),
            np.concatenate([np.ones(len(begins), dtype=np.int64), np.full(len(ends), -1)]),
        )
