"""Whether neighbouring days are alike in how often pairs match before their events."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..uncertainty.clusters import JackknifeSpread
from ..uncertainty.jackknife import covariance, leave_one_out
from ..uncertainty.serial import serial_correlation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..uncertainty.jackknife import Floats
    from ..uncertainty.serial import SerialCorrelation
    from .estimates import Sides


_FEWEST = 2  # events, and days, that a spread needs


def spread_of(sides: Sequence[Sides]) -> JackknifeSpread:
    """The spread over the clusterings of the pairs, with what days in a row add to it.

    Args:
        sides: As for `intervals`, of replicates that have compared pairs.
    """
    return JackknifeSpread(tuple(len(clustering.n_before) for clustering in sides), correlation_of_days(sides))


@np.errstate(divide="ignore", invalid="ignore")
def correlation_of_days(sides: Sequence[Sides]) -> SerialCorrelation | None:
    """The serial correlation of the false positive rate over days; None where there is none, or it cannot be known.

    It is that at the threshold whose matches before the event tell most: their number times the share of compared
    pairs that do not match is highest there.

    Args:
        sides: As for `intervals`, of replicates that have compared pairs.
    """
    in_time = sides[1].in_time if len(sides) > 1 else None
    matches, pairs = sides[0].m_before.sum(axis=0), float(sides[0].n_before.sum())
    if in_time is None or not matches.any() or min(len(clustering.n_before) for clustering in sides[:2]) < _FEWEST:
        return None
    telling = int(np.argmax(matches * (1 - matches / pairs)))
    of_events, of_days = (_rates(clustering, telling) for clustering in sides[:2])
    rate = float(matches[telling]) / pairs
    of_rows = rate * (1 - rate) / pairs
    return serial_correlation(of_days, in_time, of_first=float(covariance(of_events)), of_rows=of_rows)


def _rates(sides: Sides, threshold: int) -> Floats:
    """The false positive rate at a threshold without each replicate in turn."""
    return np.asarray(leave_one_out(sides.m_before[:, threshold]) / leave_one_out(sides.n_before))
