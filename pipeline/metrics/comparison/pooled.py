"""Pooled precision, recall and F1 of two systems on the same units, and standard errors of the differences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pipeline.metrics.uncertainty.jackknife import covariance, leave_one_out
from pipeline.tables.ratios import RATIOS

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from pipeline.metrics.uncertainty.jackknife import Floats


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def pooled_ratios(totals: ArrayLike) -> Floats:
    """Precision, recall and F1 computed from summed counts.

    Args:
        totals: True positives, false positives and false negatives, shape (…, 3).

    Returns:
        Shape (…, 3): TP / (TP + FP), TP / (TP + FN) and 2 TP / (2 TP + FP + FN); nan for 0 / 0.
    """
    tp, fp, fn = np.moveaxis(np.asarray(totals, dtype=np.float64), -1, 0)
    return np.stack([tp / (tp + fp), tp / (tp + fn), 2 * tp / (2 * tp + fp + fn)], axis=-1)


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def standard_errors(counts_a: ArrayLike, counts_b: ArrayLike) -> Floats:
    """Standard errors of the differences of pooled precision, recall and F1, by the delete-one jackknife over units.

    Units are independent of each other, the counts of the two systems on one unit are not (Efron & Tibshirani 1993,
    chapter 11).

    Args:
        counts_a: True positives, false positives and false negatives of the first system, shape (U, 3).
        counts_b: The same of the second, the same units in the same order.

    Returns:
        Shape (3,); nan for fewer than two units, and where a ratio is undefined without one of the units.
    """
    first, second = np.asarray(counts_a, dtype=np.float64), np.asarray(counts_b, dtype=np.float64)
    if len(first) < 2:  # noqa: PLR2004 - a spread needs two
        return np.full(len(RATIOS), np.nan)
    jackknifed = pooled_ratios(leave_one_out(first)) - pooled_ratios(leave_one_out(second))
    return np.sqrt(covariance(jackknifed))
