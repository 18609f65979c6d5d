"""Running sums of several groups in one array, none of which takes rounding errors from another.

One `cumsum` over all groups, less what lies before each, has an error of the size of the largest group: next to weights
of a million the sums of a group with weights of a millionth are noise. So the values are cut into limbs of few enough
bits for sums of them to be exact, and only the sums of a group are rounded when its limbs are put together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Floats: TypeAlias = "NDArray[np.float64]"

_BITS = 52
_LIMBS = 6  # of 30 bits and more: all bits of values that are 1e20 apart


def running_sums(values: Floats, first: NDArray[np.int64]) -> Floats:
    """Sums of each value and those before it in its group.

    Args:
        values: Finite and not negative, shape (N,).
        first: Where each group begins, rising from 0, shape (groups,).

    Returns:
        Shape (N,). The error is a few units in the last place of the sum; within a group that has the array to itself,
        that of `numpy.cumsum`.
    """
    if len(first) <= 1:
        return np.cumsum(values)
    sizes = np.diff(np.append(first, len(values)))
    bits = _BITS - len(values).bit_length()
    sums, remainder = np.zeros(len(values)), values
    for _ in range(_LIMBS):
        _, exponent = np.frexp(remainder.max())
        if not remainder.any():
            break
        limb = np.ldexp(np.floor(np.ldexp(remainder, bits - exponent)), exponent - bits)
        remainder = remainder - limb
        running = np.cumsum(limb)
        sums += running - np.repeat(running[first] - limb[first], sizes)
    return sums
