"""How many units an interval or a test needs where there is no pilot, from what is expected.

Half of all samples of the size that is needed have a wider interval than wanted, because their share lies nearer to
1/2 or their spread is larger than expected. The number on the safe side is the smallest with which the interval is no
wider in 80 of 100 samples (assurance; Beal 1989, Biometrics 45, 969-977).

The variance of ROC AUC is that of Hanley and McNeil (1982, Radiology 143, 29-36), for scores of both classes with
exponential distributions, which is on the safe side of that of normal ones.
"""

from __future__ import annotations

import math

import numpy as np
import scipy

from ..uncertainty.jackknife import logit_interval, t_quantile
from .pilot import ASSURANCE, Pilot, Scale
from .power import smallest_number

_FEWEST = 2


def of_expected_share(value: float, design_effect: float, confidence: float, scale: Scale = "share") -> Pilot:
    """A pilot of one row whose share is the expected one.

    Args:
        value: The share, or F1 for the scale `jaccard`.
        design_effect: Variance over that of independent rows.
        confidence: Level of the interval.
        scale: `share` or `jaccard`.
    """
    return Pilot(value, math.nan, math.nan, confidence, scale, 1.0, size=1 / design_effect)


def rows_for_share(expected: Pilot, width: float) -> int | None:
    """The smallest number of rows with which the interval of the expected share is no wider; None if none is.

    Args:
        expected: As from `of_expected_share`.
        width: Upper less lower limit, > 0.
    """
    return smallest_number(lambda rows: expected.width_with(float(rows)) <= width, _FEWEST)


def rows_for_share_assured(expected: Pilot, width: float, assurance: float = ASSURANCE) -> int | None:
    """The smallest number of rows with which it is no wider in so many of all samples.

    Args:
        expected: As from `of_expected_share`.
        width: As for `rows_for_share`.
        assurance: Share of samples.
    """
    share, distance = expected.share, float(scipy.special.ndtri(assurance))
    toward = 1.0 if share <= 1 / 2 else -1.0

    def is_enough(rows: int) -> bool:
        error = math.sqrt(share * (1 - share) / (expected.binomial_size * rows))
        moved = share + toward * min(distance * error, abs(1 / 2 - share))
        return expected.moved(moved).width_with(float(rows)) <= width

    return smallest_number(is_enough, _FEWEST)


def units_for_mean(deviation: float, width: float, confidence: float, assurance: float | None = None) -> int | None:
    """The smallest number of units with which the interval of a mean, by Student's t, is no wider.

    Args:
        deviation: Standard deviation of the values, > 0.
        width: Upper less lower limit, > 0.
        confidence: Level of the interval.
        assurance: Share of samples in which it is to be so; None: with the standard deviation as expected.
    """

    def is_enough(units: int) -> bool:
        degrees = units - 1.0
        spread = 1.0 if assurance is None else math.sqrt(float(scipy.special.chdtri(degrees, 1 - assurance)) / degrees)
        return 2 * float(t_quantile(confidence, degrees)) * deviation * spread / math.sqrt(units) <= width

    return smallest_number(is_enough, _FEWEST)


def auc_error(area: float, positives: float, negatives: float) -> float:
    """Standard error of ROC AUC (Hanley & McNeil 1982).

    Args:
        area: Between 0 and 1, exclusive.
        positives: Their number.
        negatives: Likewise.
    """
    of_positives, of_negatives = area / (2 - area) - area**2, 2 * area**2 / (1 + area) - area**2
    variance = area * (1 - area) + (positives - 1) * of_positives + (negatives - 1) * of_negatives
    return math.sqrt(variance / (positives * negatives))


def rows_for_auc(
    area: float, share_positive: float, width: float, confidence: float, design_effect: float = 1.0
) -> int | None:
    """The smallest number of rows with which the interval of ROC AUC on the logit scale is no wider.

    Args:
        area: The expected area, between 0 and 1, exclusive.
        share_positive: Share of positives, between 0 and 1, exclusive.
        width: Upper less lower limit, > 0.
        confidence: Level of the interval.
        design_effect: Variance over that of independent rows.
    """
    quantile = float(t_quantile(confidence, math.inf))

    def is_enough(rows: int) -> bool:
        error = auc_error(area, max(rows * share_positive, 1.0), max(rows * (1 - share_positive), 1.0))
        wider = np.asarray(error * math.sqrt(design_effect))
        lower, upper = logit_interval(np.asarray(area), wider, quantile)
        return float(upper - lower) <= width

    return smallest_number(is_enough, _FEWEST)
