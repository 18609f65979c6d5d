"""Running sums of several groups in one array, without rounding errors that carry over from one group to another.

One `cumsum` over all groups, minus the sum before each group, has an error in proportion to the largest group: beside
weights of a million, the sums of a group with weights of a millionth would be noise. The values are therefore split
into limbs with few enough bits that their sums are exact. Rounding occurs only within a group, when the sums of its
limbs are added.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Floats: TypeAlias = "NDArray[np.float64]"

_BITS = 52
_LIMBS = 6  # of at least 30 bits each: all bits of values that differ by a factor of 1e20


def running_sums(values: Floats, first: NDArray[np.int64]) -> Floats:
    """Sum of each value and those before it in its group.

    Args:
        values: Finite and not negative, shape (N,).
        first: Index at which each group begins, ascending from 0, shape (groups,).

    Returns:
        Shape (N,). The error is a few units in the last place of the sum; for a single group it is that of
        `numpy.cumsum`.
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
        # the leading `bits` bits of the remainder, on a common exponent: their sums are exact
        limb = np.ldexp(np.floor(np.ldexp(remainder, bits - exponent)), exponent - bits)
        remainder = remainder - limb
        running = np.cumsum(limb)
        sums += running - np.repeat(running[first] - limb[first], sizes)
    return sums
