"""Sorting of long arrays with Polars.

Polars uses all cores and recognises runs that are already in order. Even on one core it takes a third of the time of
`numpy.sort` on processors that store compressed vectors slowly, such as AMD's Zen 4. For arrays shorter than about ten
thousand it is slower, though by less than a millisecond.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from numpy.typing import NDArray

Number = TypeVar("Number", np.int64, np.uint64)


def in_rising_order(numbers: NDArray[Number]) -> NDArray[Number]:
    """The numbers in ascending order, shape (N,)."""
    return pl.Series(numbers).sort().to_numpy()


def rising_order(numbers: NDArray[Number]) -> NDArray[np.int64]:
    """Row indices that sort the numbers in ascending order, stably: the result of `numpy.argsort` with "stable"."""
    rows = pl.DataFrame({"number": numbers}).select(pl.arg_sort_by("number", maintain_order=True))
    return rows.to_series().to_numpy().astype(np.int64)
