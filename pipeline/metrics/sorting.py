"""Sorting, and slow functions, of long arrays on all cores."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray


# Slow functions of many numbers on all cores.


_OF_A_PART = 16384  # numbers that the cache of a core holds with all that is made of them on the way


def on_all_cores(function: Callable[..., Any], *arguments: NDArray[np.float64] | float) -> NDArray[np.float64]:
    """Apply a function that is slow per element in as many threads as Polars has; the values are those of one thread.

    Args:
        function: A ufunc of NumPy or SciPy, or made of such, which let other threads run meanwhile; it may give nan, in
            silence.
        arguments: Its arguments, of shapes that broadcast.
    """
    arrays = np.broadcast_arrays(*arguments)
    flat = [array.ravel() for array in arrays]
    n_parts = -(-flat[0].size // _OF_A_PART)
    if n_parts <= 1:
        return np.asarray(function(*arguments))
    arguments_of_parts = [np.array_split(array, n_parts) for array in flat]

    @np.errstate(all="ignore")  # which threads do not inherit
    def of_part(*elements: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(function(*elements))

    with ThreadPoolExecutor(min(n_parts, pl.thread_pool_size())) as threads:
        return np.concatenate(list(threads.map(of_part, *arguments_of_parts))).reshape(arrays[0].shape)


# Sorting of long arrays with Polars.
#
# Polars uses all cores and recognises runs that are already in order. Even on one core it takes a third of the time
# of `numpy.sort` on processors that store compressed vectors slowly, such as AMD's Zen 4. For arrays shorter than
# about ten thousand it is slower, though by less than a millisecond.


Number = TypeVar("Number", np.int64, np.uint64)


def in_rising_order(numbers: NDArray[Number]) -> NDArray[Number]:
    """The numbers in ascending order, shape (N,)."""
    return pl.Series(numbers).sort().to_numpy()


def rising_order(numbers: NDArray[Number]) -> NDArray[np.int64]:
    """Row indices that sort the numbers in ascending order, stably: the result of `numpy.argsort` with "stable"."""
    rows = pl.DataFrame({"number": numbers}).select(pl.arg_sort_by("number", maintain_order=True))
    return rows.to_series().to_numpy().astype(np.int64)
