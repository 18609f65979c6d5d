"""Points of many series put in order, with their scores: one sort of packed integers."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from pipeline.metrics.change_points.annotators import distinct_points
from pipeline.metrics.change_points.windows import Points
from pipeline.metrics.sorting import in_rising_order

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipeline.metrics.change_points.windows import Positions

Ints: TypeAlias = "NDArray[np.int64]"
Floats: TypeAlias = "NDArray[np.float64]"

_BITS = 63
_FEWEST_BITS = 8
_BITS_OF_DOUBLES = 52


def in_order(series: Ints, position: Positions, score: Floats | None = None) -> tuple[Points, Ints]:
    """Points sorted by series, position and, where both are equal, by descending score.

    A series, the leading bits of a position and the number of the row are packed into one integer each, and these are
    sorted, which takes a fifth of the time of a sort by columns. Rows that the packed integers do not tell apart, with
    equal or very close positions, are then sorted by columns among themselves. O(N log N).

    Args:
        series: Series of every point, from 0 on, shape (N,), any order.
        position: Its position, shape (N,): int64 or finite float64.
        score: Its score, finite; None: equal positions stay in the order of the rows.

    Returns:
        The sorted points, and the row that each was, shape (N,).
    """
    row_bits = max(1, len(series).bit_length())
    series_bits = int(series.max(initial=0)).bit_length()
    position_bits = _BITS - row_bits - series_bits
    if position_bits < _FEWEST_BITS:
        order = _by_columns(series, position, score)
        return Points(series[order], position[order]), order
    leading, used = _leading_bits(position, position_bits)
    packed = in_rising_order(((series << used | leading) << row_bits) | np.arange(len(series)))
    order = packed & ((1 << row_bits) - 1)
    packed = packed >> row_bits
    _separate(order, packed, position, score)
    return Points(packed >> used, position[order]), order


def distinct_in_order(series: Ints, position: Positions) -> Points:
    """Every position of a series once, sorted by series and position.

    Where series and whole position fit into one integer, that is all that is sorted.

    Args:
        series: Series of every point, from 0 on, shape (N,), any order.
        position: Its position, shape (N,): int64 or finite float64.
    """
    if not len(series) or position.dtype != np.int64:
        return distinct_points(in_order(series, position)[0])
    low, high = int(position.min()), int(position.max())
    position_bits = (high - low).bit_length()
    bits = int(series.max()).bit_length() + position_bits
    if bits > _BITS:
        return distinct_points(in_order(series, position)[0])
    packed = in_rising_order(series << position_bits | (position - low).astype(np.int64, copy=False))
    is_new = np.ones(len(packed), dtype=np.bool_)
    np.not_equal(packed[1:], packed[:-1], out=is_new[1:])
    packed = packed[is_new]
    return Points(packed >> position_bits, (packed & ((1 << position_bits) - 1)) + low)


def _leading_bits(position: Positions, bits: int) -> tuple[Ints, int]:
    """Numbers of at most so many bits in the order of the positions, of which near ones may be equal; and their bits.

    Halves are subtracted, so that no difference overflows.
    """
    if not len(position):
        return np.empty(0, dtype=np.int64), 0
    if position.dtype == np.float64:
        used = min(bits, _BITS_OF_DOUBLES)
        low, high = position.min() / 2, position.max() / 2
        share = (position / 2 - low) / max(high - low, np.finfo(np.float64).tiny)
        return np.minimum(share * 2.0**used, 2.0**used - 1).astype(np.int64), used
    distance = position.view(np.uint64) - position.min().view(np.uint64)  # modulo 2^64, so it never overflows
    used = int(distance.max()).bit_length()
    return (distance >> np.uint64(max(0, used - bits))).view(np.int64), min(used, bits)


def _separate(order: Ints, packed: Ints, position: Positions, score: Floats | None) -> None:
    """Sort by columns, in place, the rows whose packed integers are equal."""
    same = packed[1:] == packed[:-1]
    if not same.any():
        return
    tied = np.concatenate([same, [False]])
    tied[1:] |= same
    places = np.flatnonzero(tied)
    rows = order[places]
    order[places] = rows[_by_columns(packed[places], position[rows], None if score is None else score[rows])]


def _by_columns(series: Ints, position: Positions, score: Floats | None) -> Ints:
    columns = (position, series) if score is None else (-score, position, series)
    return np.lexsort(columns)
