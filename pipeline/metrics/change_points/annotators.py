"""Several annotators of one series: the union of their annotations, and the convention of TCPDBench."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from .windows import Points

if TYPE_CHECKING:
    from numpy.typing import NDArray

Ints: TypeAlias = "NDArray[np.int64]"
Floats: TypeAlias = "NDArray[np.float64]"


def distinct_points(points: Points) -> Points:
    """Every position of a series once: the union of the annotations of its annotators, all of which are in `points`."""
    new = points.is_new
    return Points(points.series[new], points.position[new])


def with_origin(points: Points, series: Ints) -> Points:
    """Distinct positions with index 0 added to every series, as TCPDBench does for true and for predicted points.

    Args:
        points: Points of some of the series.
        series: Numbers of all series, including those without points (an annotator who annotated nothing, a run that
            detected nothing), shape (S,), any order.
    """
    number = np.concatenate([points.series, series])
    position = np.concatenate([points.position, np.zeros(len(series), dtype=points.position.dtype)])
    order = np.lexsort((position, number))
    return distinct_points(Points(number[order], position[order]))


def mean_over_annotators(value: Floats, group: Ints, n_groups: int) -> Floats:
    """Mean over the annotators of every series: how TCPDBench averages recall and covering.

    With index 0 added, an annotator who annotated nothing has one true point, so that recall is 1 (van den Burg &
    Williams 2020).

    Args:
        value: Recall or covering of every annotator, shape (A,); nan values are left out.
        group: Series 0, 1, 2, … of every annotator, shape (A,).
        n_groups: Number of series.

    Returns:
        Shape (n_groups,); nan for a series without annotators.
    """
    defined = ~np.isnan(value)
    total = np.bincount(group[defined], weights=value[defined], minlength=n_groups)
    count = np.bincount(group[defined], minlength=n_groups)
    return np.asarray(np.divide(total, count, out=np.full(n_groups, np.nan), where=count > 0))
