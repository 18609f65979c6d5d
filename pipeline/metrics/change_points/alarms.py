"""Outcomes of alarms at every threshold: which detect something, which repeat, which are false, how early they come.

At a threshold every alarm that counts does one of three things:

- it *detects* a true point: under a one-to-one rule it is matched with one, under `any` it is the first in a zone;
- it *repeats*: it lies in the zone of a true point and does not detect;
- it lies *outside* every zone.

Those outside are false alarms. Repeats are false alarms, or they count neither as true nor as false. As for `matching`,
the results are what changes at a score when predictions enter by descending score, so that sums over the scores from a
threshold on are the counts at the threshold, and sums over series, nights and machines are sums of integers.
"""

from __future__ import annotations

import math
from dataclasses import fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
import scipy

from ...base.records import dataclass
from ..uncertainty.clusters import effective_number, may_neighbours_be_alike, spread_of_shifts, stretches
from ..uncertainty.jackknife import gamma_interval, leave_one_out, t_quantile, tail
from ..uncertainty.proportions import Confusion, intervals_of_clusters
from ..uncertainty.replicates import MOST_CELLS, otherwise, ratio_limits, studentised
from .windows import (
    FirstAlarms,
    Incidents,
    Points,
    check_comparable,
    detecting_above,
    find_zones,
    first_alarms,
    prefix_end,
    ranges_of_series,
    scores_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from .windows import Margin, Zones

    Added: TypeAlias = Callable[[Incidents, Points, Zones, "Floats | None"], "Ints"]
    from ..uncertainty.clusters import Spread
    from ..uncertainty.jackknife import Limits
    from ..uncertainty.replicates import Resampling


Ints: TypeAlias = "NDArray[np.int64]"
Floats: TypeAlias = "NDArray[np.float64]"
Bools: TypeAlias = "NDArray[np.bool_]"


@dataclass(frozen=True)
class AlarmRule:
    """The rule of detection, and the treatment of repeats.

    Attributes:
        added: What every prediction adds to the true positives, from true points, predictions, zones and scores.
        is_any: Whether every alarm in a zone can detect its true point, so that one alarm may detect several.
        ignores_repeats: Whether repeats count neither as true nor as false; else they are false alarms.
        margin: How far a zone reaches beyond its true point.
    """

    added: Added
    is_any: bool
    ignores_repeats: bool
    margin: Margin


@dataclass(frozen=True)
class Changes:
    """By how much counts change at scores; one row per change, arrays of shape (N,).

    Attributes:
        series: Series of the change.
        score: The score at which it comes; nan where predictions have no scores.
        n_predicted: Alarms that detect something or are false.
        tp: True points that are detected.
        n_false: False alarms.
        n_ignored: Alarms that count neither as true nor as false.
        n_merged: Alarms that are one with an earlier one, by the cooldown.
    """

    series: Ints
    score: Floats
    n_predicted: Ints
    tp: Ints
    n_false: Ints
    n_ignored: Ints
    n_merged: Ints


@dataclass(frozen=True)
class Alerts:
    """Which alarm is the first in the zone of a true point; one row per change, arrays of shape (N,).

    Attributes:
        truth: Number of the true point.
        prediction: Number of its first alarm.
        score: The score at which that changes; nan where predictions have no scores.
        sign: 1: from there on down it is the first; -1: it is no longer.
    """

    truth: Ints
    prediction: Ints
    score: Floats
    sign: Ints


@dataclass(frozen=True)
class Final:
    """Outcomes of predictions where all of them count.

    Attributes:
        kept: Numbers of those that are no repeat within the cooldown, shape (K,).
        added: What each kept one adds to the true positives, shape (K,).
        detects: Whether it detects something.
        outside: Whether it lies in no zone.
        first: The first alarms of the zones; predictions by their number among all.
    """

    kept: Ints
    added: Ints
    detects: Bools
    outside: Bools
    first: FirstAlarms


@dataclass(frozen=True)
class Counted:
    """Counts of alarms, and the first alarms of the zones.

    Attributes:
        n_predicted: As in `Changes`, of every prediction, shape (predictions,).
        tp: Likewise.
        n_false: Likewise.
        n_ignored: Likewise.
        above: As from `detecting_above`.
        outside: Whether each prediction lies in no zone.
        first: The first alarms of the zones.
    """

    n_predicted: Ints
    tp: Ints
    n_false: Ints
    n_ignored: Ints
    above: Floats
    outside: Bools
    first: FirstAlarms


def counted(truth: Incidents, predictions: Points, rule: AlarmRule, score: Floats | None) -> Counted:
    """The addition of every prediction to the counts at its own score.

    Scores are finite; without, all predictions enter together.
    """
    zones = find_zones(truth, predictions, rule.margin)
    first = first_alarms(zones, scores_of(predictions, score))
    above, outside = detecting_above(first, zones.n_predictions), zones.outside
    added = rule.added(truth, predictions, zones, score)
    detecting = (above < np.inf).astype(np.int64) if rule.is_any else added
    n_predicted = detecting + outside if rule.ignores_repeats else np.ones_like(added)
    return Counted(n_predicted, added, n_predicted - detecting, 1 - n_predicted, above, outside, first)


def changes_by_score(
    truth: Incidents, predictions: Points, rule: AlarmRule, score: Floats | None
) -> tuple[Changes, Alerts, Final]:
    """All changes where every prediction is an alarm of its own.

    Scores are finite; without, all predictions enter together.

    Returns:
        The changes, first one for every prediction in order; those of first alarms; and what remains in the end.
    """
    counts = counted(truth, predictions, rule, score)
    shown = np.full(len(predictions.position), np.nan) if score is None else score
    overtaken = np.flatnonzero(np.isfinite(counts.above)) if rule.is_any else np.empty(0, dtype=np.int64)
    one, nothing = np.ones_like(overtaken), np.zeros_like(overtaken)
    left, false, ignored = (-one, nothing, one) if rule.ignores_repeats else (nothing, one, nothing)
    changes = Changes(
        np.concatenate([predictions.series, predictions.series[overtaken]]),
        np.concatenate([shown, counts.above[overtaken]]),
        np.concatenate([counts.n_predicted, left]),
        np.concatenate([counts.tp, nothing]),
        np.concatenate([counts.n_false, false]),
        np.concatenate([counts.n_ignored, ignored]),
        np.zeros(len(shown) + len(overtaken), dtype=np.int64),
    )
    first = counts.first
    ends = np.flatnonzero(np.isfinite(first.above))
    alerts = Alerts(
        np.concatenate([first.zone, first.zone[ends]]),
        np.concatenate([first.prediction, first.prediction[ends]]),
        np.concatenate([shown[first.prediction], first.above[ends]]),
        np.concatenate([np.ones(len(first.zone), dtype=np.int64), np.full(len(ends), -1)]),
    )
    return changes, alerts, final(counts, rule, np.arange(len(shown)))


def final(counts: Counted, rule: AlarmRule, kept: Ints) -> Final:
    """Outcomes where all predictions count: the first alarms are those that no other overtakes.

    Counts are those of the kept predictions, which have these numbers among all.
    """
    stays = np.isneginf(counts.first.above)
    first = FirstAlarms(counts.first.zone[stays], kept[counts.first.prediction[stays]], counts.first.above[stays])
    detects = np.isneginf(counts.above) if rule.is_any else counts.tp > 0
    return Final(kept, counts.tp, detects, counts.outside, first)


# Alarms within a cooldown after an earlier one, which are one alarm with it, at every threshold.
#
# Of the predictions of a series that count at a threshold, in the order of positions, the first is kept, and after
# each kept one the next that comes at least the cooldown later. This is a largest set of predictions that are so far
# apart, so that a lower threshold never keeps fewer. But it may keep others: an alarm that enters earlier silences
# one that was kept, which may bring back a third. Whether a prediction is kept therefore depends on the threshold,
# and what is kept is found anew at every *level*, a set of scores that all thresholds treat alike.
#
# From which prediction the next one may be kept depends on positions alone. So all levels of all series follow their
# chains side by side, one step for each kept prediction, and find the next prediction that counts by doubling.


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

        Levels, shape (predictions,), are at least 0; higher scores have the same or a higher one.
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
    """Predictions kept in some states.

    Attributes:
        state: Number of the state, shape (N,), in order.
        prediction: Number of the kept prediction, in order within a state.
    """

    state: Ints
    prediction: Ints


def later_by(predictions: Points, cooldown: float) -> Ints:
    """Number of the first prediction of the same series that comes at least the cooldown later.

    The cooldown is above 0, in the unit of the positions. The difference of floating-point positions is rounded once.

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
        """Predictions kept in every state, about a million at a time.

        O(kept · log n), kept being the sum over all states, and n the number of predictions of a series. Beside, shape
        (S,), is how many other rows each state needs, for the size of a batch.
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
        """Predictions kept in some states, which are numbers in order."""
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


# The changes of `alarms` where alarms within the cooldown after an earlier one are one alarm with it.


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

    Scores are finite; without, all predictions enter together.

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
        """Predictions kept in the states that keep one of their own level; the others keep the same as above."""
        for kept in chains.every(self._levels, self._stop_truth - self._first_truth):
            is_changed = np.zeros(len(self._levels.series), dtype=np.bool_)
            is_changed[kept.state[level[kept.prediction] == self._levels.level[kept.state]]] = True
            rows = is_changed[kept.state]
            yield Kept(kept.state[rows], kept.prediction[rows])

    def changes(self, kept: Kept) -> tuple[Changes, Alerts]:
        """Changes in some states, which follow the states that were asked for before."""
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


# The rate of false alarms over time, with limits.


_ROUNDING = 1e-24


def poisson_limits(count: Floats, confidence: float) -> Limits:
    """Exact limits of the mean of a Poisson count (Garwood 1936).

    Counts are observed, ≥ 0, of any shape.
    """
    tails = (1 - confidence) / 2
    lower = np.where(count > 0, scipy.special.gammaincinv(np.maximum(count, 1.0), tails), 0.0)
    return lower, np.asarray(scipy.special.gammainccinv(count + 1.0, tails))


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def rate_limits(
    events: NDArray[Any],
    time: NDArray[Any],
    confidence: float,
    resampling: Resampling | None = None,
    *,
    in_time: bool = False,
) -> Limits:
    """Limits of the rate of events over time, whose replicates are independent, at every threshold.

    The events of a replicate need not be: their number may vary more than a Poisson count of the same mean, or less, as
    where a cooldown spaces them out. The jackknife gives the variance of the rate, and its quotient with that of a
    Poisson count the dispersion by which counts are divided before gamma limits are taken of them. Degrees of freedom
    and skewness are those of `clusters`. Where no event shows a dispersion, that of the nearest lower threshold stands
    in, and 1 at least. A single replicate shows none at all: its events are taken as independent, and the limits are
    the exact ones of Garwood.

    Args:
        events: Events by replicate and threshold, thresholds rising, shape (G, K).
        time: Observed time by replicate, shape (G,).
        confidence: Such as 0.95.
        resampling: How the bootstrap draws, whose limits take the place of these wherever it has any; None: none is
            wanted.
        in_time: Whether replicates follow each other in time.

    Returns:
        Limits of shape (K,), in events per unit of time; nan where no time was observed.
    """
    observed = time > 0
    events, time = events[observed | events.any(axis=1)], time[observed | events.any(axis=1)]
    count, total = events.sum(axis=0).astype(np.float64), float(time.sum())
    if not total > 0:
        return np.full(len(count), np.nan), np.full(len(count), np.nan)
    if len(time) < 2:  # noqa: PLR2004 - a spread needs two
        lower, upper = poisson_limits(count, confidence)
        return lower / total, upper / total
    rate = count / total
    without = leave_one_out(events) / leave_one_out(time)[:, None]
    spread = spread_of_shifts(without.mean(axis=0) - without, effective_number(time)[None], in_time=in_time)
    is_spread = (count > 0) & (spread.variance > _ROUNDING)
    dispersion = spread.variance * total**2 / count
    dispersion = np.where(is_spread, dispersion, np.maximum(_carried(dispersion, is_spread), 1.0))
    around = gamma_interval(count, dispersion, tail(confidence, spread.degrees))
    excess = np.where(is_spread, spread.skewed - np.sqrt(dispersion / count), 0.0)
    factors = stretches(excess, spread.degrees, confidence)
    lower, upper = (
        np.where((count > 0) & (factor > 1), rate * (limit / count) ** factor, limit / total)
        for limit, factor in zip(around, factors, strict=True)
    )
    if resampling is None:
        return lower, upper
    return otherwise(
        ratio_limits(events, np.broadcast_to(time[:, None], events.shape), confidence, resampling), (lower, upper)
    )


def _carried(values: Floats, usable: NDArray[np.bool_]) -> Floats:
    """Values, with the nearest usable one before in place of those that are not usable; 1 where there is none."""
    nearest = np.maximum.accumulate(np.where(usable, np.arange(len(values)), -1))
    return np.where(nearest >= 0, values[nearest], 1.0)


# How long alarms come before what they tell of: mean and quantiles of leads, with limits over clusters of true
# points.
#
# A lead is the start of a true point minus the position of the first alarm in its zone; a positive lead is ahead of
# time.


Pair: TypeAlias = tuple[float, float]

NO_LIMITS: Pair = (np.nan, np.nan)


@dataclass(frozen=True)
class Leads:
    """Leads of one group at one threshold.

    Attributes:
        values: Distinct leads, rising, shape (V,).
        counts: How many true points of each replicate have each, shape (G, V); every replicate has at least one.
        in_time: Whether the replicates follow each other in time.
    """

    values: Floats
    counts: Ints
    in_time: bool = False

    @classmethod
    def of(cls, lead: Floats, replicate: Ints, number: Ints) -> Leads:
        """The leads of rows that repeat, and may take each other away.

        Numbers are how many true points come or, below 0, go.
        """
        values, column = np.unique(lead, return_inverse=True)
        replicates, row = np.unique(replicate, return_inverse=True)
        counts = np.zeros((len(replicates), len(values)), dtype=np.int64)
        np.add.at(counts, (row, column), number)
        columns, rows = counts.any(axis=0), counts.any(axis=1)
        return cls(values[columns], counts[rows][:, columns])

    @property
    def number(self) -> int:
        """How many true points there are."""
        return int(self.counts.sum())

    @property
    def sizes(self) -> Ints:
        """How many of them each replicate has, shape (G,)."""
        return np.asarray(self.counts.sum(axis=1))

    @property
    def mean(self) -> float:
        """Their mean; nan without any."""
        return float(self._totals.sum() / self.number) if self.number else np.nan

    @cached_property
    def _totals(self) -> Floats:
        return np.asarray(self.counts @ self.values, dtype=np.float64)

    @property
    def n_ahead(self) -> int:
        """How many leads are above 0."""
        return int(self.counts[:, self.values > 0].sum())

    def quantile(self, share: float) -> float:
        """The value below which a share of the leads lies, by linear interpolation between ranks, as in numpy."""
        if not self.number:
            return np.nan
        rank = share * (self.number - 1)
        until = np.cumsum(self.counts.sum(axis=0))
        low, high = (
            self.values[np.searchsorted(until, whole, side="right")] for whole in (np.floor(rank), np.ceil(rank))
        )
        return float(low + (high - low) * (rank - np.floor(rank)))

    @property
    def _shifts(self) -> Floats:
        """How far each replicate moves the mean, shape (G, 1)."""
        means = leave_one_out(self._totals) / leave_one_out(self.sizes)
        return np.asarray(means.mean() - means)[:, None]

    @cached_property
    def _spread(self) -> Spread:
        """The sampling error of the mean."""
        return spread_of_shifts(self._shifts, effective_number(self.sizes)[None], in_time=self.in_time)

    @property
    def may_neighbours_be_alike(self) -> bool:
        """Whether replicates that follow each other in time are alike in their mean leads."""
        return self.in_time and len(self.counts) > 1 and may_neighbours_be_alike(self._shifts)

    def mean_limits(self, confidence: float, resampling: Resampling | None = None) -> Pair:
        """Limits of the mean by Student's t, farther on the side of the long tail; nan for one replicate."""
        if len(self.counts) < 2:  # noqa: PLR2004 - a spread needs two
            return NO_LIMITS
        spread = self._spread
        reach = t_quantile(confidence, spread.degrees) * np.sqrt(spread.variance)
        lower, upper = stretches(spread.skewed, spread.degrees, confidence)
        limits = self.mean - lower * reach, self.mean + upper * reach
        if resampling is not None:
            drawn = studentised(_ratio, (self._totals[:, None], self.sizes[:, None]), confidence, resampling)
            limits = otherwise(drawn.limits, limits)
        return float(limits[0][0]), float(limits[1][0])

    def ahead_limits(self, confidence: float, resampling: Resampling | None = None) -> Pair:
        """Limits of the share of leads above 0; arguments as for `mean_limits`."""
        lower, upper = self._limits_of_shares(
            self.counts[:, self.values > 0].sum(axis=1)[:, None], confidence, resampling
        )
        return float(lower[0]), float(upper[0])

    def quantile_limits(
        self, shares: Sequence[float], confidence: float, resampling: Resampling | None = None
    ) -> list[Pair]:
        """Limits of quantiles: the values for which the share is within the limits of the distribution function.

        The limits of the share of leads up to a value are those of a proportion over clusters, at every value that
        occurs, so that each value is tested as the quantile (Woodruff 1952; with independent leads these are limits by
        order statistics). A limit beyond the lowest or the highest lead is not known.

        Returns:
            Lower and upper limit of each; nan where there is none.
        """
        draws = 1 if resampling is None else resampling.resamples
        if len(self.counts) < 2 or len(self.values) * max(len(self.counts), draws) > MOST_CELLS:  # noqa: PLR2004
            return [NO_LIMITS] * len(shares)
        hits = np.concatenate([np.zeros((len(self.counts), 1)), np.cumsum(self.counts, axis=1)], axis=1)
        lower, upper = self._limits_of_shares(hits, confidence, resampling)
        # limits of a distribution function rise, whatever the spread of single values
        upper, lower = np.maximum.accumulate(upper), np.minimum.accumulate(lower[::-1])[::-1]
        ends = np.concatenate([[np.nan], self.values]), np.concatenate([self.values, [np.nan]])
        return [
            (float(ends[0][np.searchsorted(upper, share)]), float(ends[1][np.searchsorted(lower, share, "right") - 1]))
            for share in shares
        ]

    def _limits_of_shares(
        self, hits: Ints | Floats, confidence: float, resampling: Resampling | None
    ) -> tuple[Floats, Floats]:
        """Limits of shares of all leads, from hits of shape (G, K)."""
        nothing = np.zeros_like(hits)
        counts = Confusion(hits, nothing, self.sizes[:, None] - hits, nothing, in_time=self.in_time)
        return intervals_of_clusters(counts, confidence, names=["recall"], resampling=resampling)["recall"]


def _ratio(totals: Sequence[Floats], _sample: Sequence[Floats]) -> tuple[Floats, Sequence[Floats]]:
    """The quotient of two totals, and its derivatives by them."""
    top, bottom = totals
    return top / bottom, (1 / bottom, -top / bottom**2)
