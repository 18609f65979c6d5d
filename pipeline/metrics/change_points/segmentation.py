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


# Segmentation covering: how well predicted segments cover the segments between true change points.


_TRUE, _PREDICTED, _SERIES = 1, 2, 4
_ANY = _TRUE | _PREDICTED | _SERIES


def covering(truth: Points, predictions: Points, n_obs: Ints) -> Floats:
    """Segmentation covering of every series (Arbeláez et al. 2011; van den Burg & Williams 2020).

    With G the true segments and G' the predicted ones, |A| the number of observations of A and n that of the series,

        C = 1/n · sum over A in G of |A| · max over A' in G' of |A ∩ A'| / |A ∪ A'|.

    Every run of observations without a true or predicted change point lies in one true and one predicted segment, and
    every pair of segments that overlap shares exactly one such run. All pairs are therefore obtained by sorting the
    change points once, O(N log N) for all series together.

    A series with several annotators has one covering for each of them; TCPDBench takes the mean.

    Args:
        truth: True change points, with int64 positions; a change point is the first observation of a new segment.
            Repeated positions count once; positions outside 1 … n_obs - 1 split nothing, as in TCPDBench.
        predictions: Predicted change points.
        n_obs: Number of observations of series 0, 1, 2, …; shape (S,).

    Returns:
        Between 0 and 1, shape (S,); nan for a series without observations.

    Raises:
        ValueError: a point belongs to a series that is not in `n_obs`, or its position is not an integer.
    """
    # all series are laid end to end; `start` holds the first observation of every run
    sizes = np.maximum(n_obs, 0)
    offset = np.cumsum(sizes) - sizes
    nonempty = np.flatnonzero(sizes)
    true, predicted = (_inner(points, sizes, offset) for points in (truth, predictions))
    start, kind = _merged([(offset[nonempty], _ANY), (true, _TRUE), (predicted, _PREDICTED)])
    run = np.diff(start, append=sizes.sum())
    is_true = (kind & _TRUE) > 0
    # the true and the predicted segment of every run, and the lengths of the segments
    of_true, of_predicted = np.cumsum(is_true) - 1, np.cumsum((kind & _PREDICTED) > 0) - 1
    true_length, predicted_length = np.bincount(of_true, weights=run), np.bincount(of_predicted, weights=run)
    # |A ∩ A'| is the run itself, |A ∪ A'| = |A| + |A'| - |A ∩ A'|
    overlap = run / (true_length[of_true] + predicted_length[of_predicted] - run)
    covered = np.full(len(n_obs), np.nan)
    if len(nonempty):
        # the best predicted segment of each true one, then the mean over observations of each series
        best = np.maximum.reduceat(overlap, np.flatnonzero(is_true))
        covered[nonempty] = (
            np.add.reduceat(true_length * best, np.flatnonzero(kind[is_true] & _SERIES)) / sizes[nonempty]
        )
    return covered


def _inner(points: Points, sizes: Ints, offset: Ints) -> Ints:
    """Points that split their series, as observation numbers when all series are laid end to end."""
    if points.position.dtype != np.int64:
        message = f"positions are {points.position.dtype}: observations are counted, so they must be int64"
        raise ValueError(message)
    if len(points.series) and not 0 <= points.series[0] <= points.series[-1] < len(sizes):
        message = f"series {points.series[0]} to {points.series[-1]}, but {len(sizes)} numbers of observations"
        raise ValueError(message)
    inner = (points.position > 0) & (points.position < sizes[points.series])
    return offset[points.series[inner]] + points.position[inner].astype(np.int64)


def _merged(starts: list[tuple[Ints, int]]) -> tuple[Ints, Ints]:
    """Distinct starts of segments, ascending, with the bits of everything that begins there."""
    start = np.concatenate([positions for positions, _ in starts])
    kind = np.repeat([bits for _, bits in starts], [len(positions) for positions, _ in starts])
    order = np.argsort(start, kind="stable")
    start, kind = start[order], kind[order]
    new = np.flatnonzero(np.diff(start, prepend=-1))
    return start[new], np.bitwise_or.reduceat(kind, new) if len(new) else kind
