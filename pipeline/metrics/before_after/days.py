"""Whether neighbouring days are alike in how often pairs match before their events."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pipeline.metrics.uncertainty.jackknife import leave_one_out
from pipeline.metrics.uncertainty.serial import serial_correlation
from pipeline.metrics.uncertainty.spread import JackknifeSpread

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.metrics.before_after.sums import Sides
    from pipeline.metrics.uncertainty.jackknife import Floats
    from pipeline.metrics.uncertainty.serial import SerialCorrelation


def spread_of(sides: Sequence[Sides]) -> JackknifeSpread:
    """The spread over the clusterings of the pairs, with what days in a row add to it.

    Args:
        sides: As for `intervals`, of replicates that have compared pairs.
    """
    return JackknifeSpread(tuple(len(clustering.n_before) for clustering in sides), correlation_of_days(sides))


@np.errstate(divide="ignore", invalid="ignore")
def correlation_of_days(sides: Sequence[Sides]) -> SerialCorrelation | None:
    """The serial correlation of the false positive rate over days; None where there is none, or no day is known.

    It is that at the threshold whose matches before the event tell most: their number times the share of compared
    pairs that do not match is highest there.

    Args:
        sides: As for `intervals`, of replicates that have compared pairs.
    """
    _, *crossed = sides
    orders = [clustering.in_time for clustering in crossed if clustering.in_time is not None]
    matches, pairs = sides[0].m_before.sum(axis=0), sides[0].n_before.sum()
    if len(orders) != len(crossed) or not orders or not matches.any():
        return None
    telling = int(np.argmax(matches * (1 - matches / pairs)))
    of_days, of_both = (_rates(clustering, telling) for clustering in crossed)
    return serial_correlation(of_days, of_both, (orders[0], orders[1]))


def _rates(sides: Sides, threshold: int) -> Floats:
    """The false positive rate at a threshold without each replicate in turn."""
    return np.asarray(leave_one_out(sides.m_before[:, threshold]) / leave_one_out(sides.n_before))
