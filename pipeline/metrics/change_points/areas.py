"""Areas under the precision-recall curve of change points; each way of closing the curve has a name of its own.

A curve consists of counts at descending thresholds: `tp` true positives, `n_predicted` predictions at or above the
threshold, and `n_true` true points. Only the order of the thresholds matters, never their values. Thresholds that
retrieve nothing are dropped, because precision is 0/0 there. Without true points recall is undefined, and so is every
area: nan.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Counts: TypeAlias = "NDArray[np.int64]"
Floats: TypeAlias = "NDArray[np.float64]"


def average_precision(tp: Counts, n_predicted: Counts, n_true: int) -> float:
    """Step area: the sum of the increases of recall, each multiplied by the precision at the higher recall.

    This is the rule of `sklearn.metrics.average_precision_score`. Without predictions the area is 0.

    Args:
        tp: True positives at every threshold, thresholds descending, shape (K,).
        n_predicted: Predictions at or above it, shape (K,), non-decreasing.
        n_true: Number of true points.
    """
    precision, recall = _curve(tp, n_predicted, n_true)
    return _unless_undefined(float(np.sum(np.diff(recall, prepend=0.0) * precision)), n_true)


def trapezoid_area(tp: Counts, n_predicted: Counts, n_true: int) -> float:
    """Trapezoids between the points of the curve, extended horizontally from its first point to recall 0.

    Args:
        tp: As for `average_precision`.
        n_predicted: As for `average_precision`.
        n_true: Number of true points.
    """
    precision, recall = _curve(tp, n_predicted, n_true)
    return _unless_undefined(_trapezoids(np.append(precision[:1], precision), np.append(0.0, recall)), n_true)


def roerich_area(tp: Counts, n_predicted: Counts, n_true: int) -> float:
    """Trapezoids with the end points of `roerich.metrics.auc_score`: recall 0 at precision 1, recall 1 at precision 0.

    roerich gives its end points the scores 999 and -999 and sorts them among the others, so that its area depends on
    the scale of the scores. Here they always stand at the ends, as in roerich for scores between these two. The second
    end point credits a recall that was never reached. Without predictions the two end points alone give 0.5.

    Args:
        tp: As for `average_precision`.
        n_predicted: As for `average_precision`.
        n_true: Number of true points.
    """
    precision, recall = _curve(tp, n_predicted, n_true)
    closed_precision = np.concatenate([[1.0], precision, [0.0]])
    return _unless_undefined(abs(_trapezoids(closed_precision, np.concatenate([[0.0], recall, [1.0]]))), n_true)


def _curve(tp: Counts, n_predicted: Counts, n_true: int) -> tuple[Floats, Floats]:
    """Precision and recall at the thresholds that retrieve something."""
    retrieved = n_predicted > 0
    return tp[retrieved] / n_predicted[retrieved], tp[retrieved] / max(n_true, 1)


def _trapezoids(precision: Floats, recall: Floats) -> float:
    return float(np.sum(np.diff(recall) * (precision[1:] + precision[:-1]) / 2)) if len(precision) else 0.0


def _unless_undefined(area: float, n_true: int) -> float:
    return area if n_true > 0 else float("nan")
