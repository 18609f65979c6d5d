"""Slow functions of many numbers on all cores."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

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
