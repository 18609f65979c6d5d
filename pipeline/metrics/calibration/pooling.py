"""Neighbouring bins put together until each holds enough to be tested.

Where hardly a true row is expected, or hardly a false one, the squared surplus of a bin over its variance is next to
nothing in nearly all samples and huge in the others. Its mean is 1 all the same, so that no chi-square distribution
with the mean and the variance of such terms has their tails: a sum of terms that all are as small as they mostly are
lies far out in it. Bins are therefore pooled until the variance of their number of true rows is `LEAST`, by their
scores alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Floats: TypeAlias = "NDArray[np.float64]"
Ints: TypeAlias = "NDArray[np.int64]"

LEAST = 5.0


def pooled(variance: Floats, starts: Ints) -> tuple[Ints, Ints]:
    """Pools of neighbouring bins.

    From the lowest score on bins join a pool until it has enough; what is left at the end joins the pool before it.

    Args:
        variance: Variance of the number of true rows in each bin, bins of one group one after the other, shape (N,).
        starts: Index of the first bin of every group, rising.

    Returns:
        Index of the first bin of every pool, and index of the first pool of every group. A group has one pool at least,
        and that one may have less than enough.
    """
    sizes = np.diff(np.append(starts, len(variance)))
    begins = np.zeros(len(variance), dtype=np.bool_)
    held = np.full(len(starts), np.inf)
    for number in range(int(sizes.max(initial=0))):
        has_bin = number < sizes
        bins, is_full = starts[has_bin] + number, held[has_bin] >= LEAST
        begins[bins] = is_full
        held[has_bin] = np.where(is_full, 0.0, held[has_bin]) + variance[bins]
    latest = np.maximum.reduceat(np.where(begins, np.arange(len(variance)), -1), starts)
    begins[latest[(held < LEAST) & (latest > starts)]] = False
    pools = np.flatnonzero(begins)
    return pools, np.searchsorted(pools, starts)
