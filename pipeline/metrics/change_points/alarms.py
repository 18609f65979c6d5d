"""What alarms come to at every threshold: which detect something, which repeat, which are false, how early they come.

At a threshold every alarm that counts does one of three things:

- it *detects* a true point: under a one-to-one rule it is matched with one, under `any` it is the first in a zone;
- it *repeats*: it lies in the zone of a true point and does not detect;
- it lies *outside* every zone.

Those outside are false alarms. Repeats are false alarms, or they count neither as true nor as false. As for `matching`,
the results are what changes at a score when predictions enter by descending score, so that sums over the scores from a
threshold on are the counts at the threshold, and sums over series, nights and machines are sums of integers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ...records import dataclass
from .windows import scores_of
from .zones import FirstAlarms, detecting_above, find_zones, first_alarms

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from .windows import Margin, Points
    from .zones import Incidents, Zones

    Added: TypeAlias = Callable[[Incidents, Points, Zones, "Floats | None"], "Ints"]

Ints: TypeAlias = "NDArray[np.int64]"
Floats: TypeAlias = "NDArray[np.float64]"
Bools: TypeAlias = "NDArray[np.bool_]"


@dataclass(frozen=True)
class AlarmRule:
    """What detects, and what becomes of repeats.

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
    """What becomes of predictions where all of them count.

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
    """What every prediction adds to the counts at its own score.

    Args:
        truth: True points.
        predictions: Predicted points.
        rule: What detects, and what becomes of repeats.
        score: Finite scores; None: all enter together.
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

    Args:
        truth: True points.
        predictions: Predicted points.
        rule: What detects, and what becomes of repeats.
        score: Finite scores of the predictions; None: all enter together.

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
    """What remains where all predictions count: first alarms are those that no other overtakes.

    Args:
        counts: Counts of the kept predictions.
        rule: What detects, and what becomes of repeats.
        kept: Their numbers among all predictions.
    """
    stays = np.isneginf(counts.first.above)
    first = FirstAlarms(counts.first.zone[stays], kept[counts.first.prediction[stays]], counts.first.above[stays])
    detects = np.isneginf(counts.above) if rule.is_any else counts.tp > 0
    return Final(kept, counts.tp, detects, counts.outside, first)
