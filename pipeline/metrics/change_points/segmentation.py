"""Segmentation covering: how well predicted segments cover the segments between true change points."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .windows import Points

Ints: TypeAlias = "NDArray[np.int64]"
Floats: TypeAlias = "NDArray[np.float64]"

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
