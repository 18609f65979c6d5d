"""One-to-one matching of rows that are equal in all columns of a key, by sorting alone.

Of g gold rows and p predictions with the same key, min(g, p) are matched: the i-th gold row with the i-th prediction.
Keys are packed into one integer wherever they fit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ..sorting import rising_order
from .bipartite import UNMATCHED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

Ints: TypeAlias = "NDArray[np.int64]"

WORD_BITS = 63


def match_equal(keys: Sequence[tuple[Ints, Ints]], preference: Sequence[NDArray[np.generic]]) -> Ints:
    """Match the i-th gold row of every key with the i-th prediction of that key.

    Args:
        keys: Columns that must be equal; each is a pair of the values of the gold rows and of the predictions.
        preference: Columns of the predictions that determine the order in which they are matched: lowest values first,
            the first column before the second. Ties are matched in row order.

    Returns:
        Shape (gold rows,): row of the matched prediction, or -1.
    """
    gold, predicted = _one_number(keys)
    golds, predictions = rising_order(gold), _by_preference(predicted, preference)
    wanted, offered = gold[golds], predicted[predictions]
    position = np.searchsorted(offered, wanted)
    if (repeated := wanted[1:] == wanted[:-1]).any():
        position += _position_in_run(repeated)
    # of the gold rows whose position is within the run of equal predictions, the two are matched
    matched = np.full(len(gold), UNMATCHED, dtype=np.int64)
    if not len(offered):
        return matched
    inside = np.minimum(position, len(offered) - 1)
    hits = np.flatnonzero((offered[inside] == wanted) & (inside == position))
    matched[golds[hits]] = predictions[position[hits]]
    return matched


def _one_number(keys: Sequence[tuple[Ints, Ints]]) -> tuple[Ints, Ints]:
    """One number for each gold row and each prediction, equal if and only if all columns are equal."""
    words = packed(keys)
    number = words[0] if len(words) == 1 else numbered(keys)
    size = len(keys[0][0])
    return number[:size], number[size:]


def _by_preference(key: Ints, preference: Sequence[NDArray[np.generic]]) -> Ints:
    """Rows sorted by key; only rows with a repeated key have to be sorted by preference as well."""
    order = rising_order(key)
    if not preference:
        return order
    ordered = key[order]
    again = np.flatnonzero(ordered[1:] == ordered[:-1])
    repeated = np.union1d(again, again + 1)
    rows = order[repeated]
    order[repeated] = rows[np.lexsort((*(column[rows] for column in reversed(preference)), key[rows]))]
    return order


def _position_in_run(repeated: NDArray[np.bool_]) -> Ints:
    """Number of equal rows that precede each row.

    Args:
        repeated: Whether each row from the second on equals the one before it.
    """
    position = np.arange(len(repeated) + 1)
    return position - np.maximum.accumulate(np.where(np.append(False, repeated), 0, position))


def packed(columns: Sequence[tuple[Ints, Ints]]) -> list[Ints]:
    """As few words of 63 bits as possible that sort and compare like the columns; gold rows precede predicted rows.

    The last column takes the lowest bits.
    """
    words: list[Ints] = []
    free_bits = 0
    for sides in columns:
        low, high = min(side.min(initial=0) for side in sides), max(side.max(initial=0) for side in sides)
        bits = max(int(high - low).bit_length(), 1)
        if bits > free_bits:
            words.append(np.zeros(sum(map(len, sides)), dtype=np.int64))
            free_bits = WORD_BITS
        else:
            words[-1] <<= bits
        # both are views: adding to them writes the lowest bits of the word
        gold, predicted = np.split(words[-1], [len(sides[0])])
        gold += sides[0] - low
        predicted += sides[1] - low
        free_bits -= bits
    return words


def numbered(columns: Sequence[tuple[Ints, Ints]]) -> Ints:
    """Number of the combination of values in every row; gold rows precede predicted rows."""
    words = packed(columns)
    number = words[0]
    for word in words[1:]:
        number, dense = (np.unique(values, return_inverse=True)[1] for values in (number, word))
        number = number * (dense.max(initial=0) + 1) + dense
    return np.asarray(np.unique(number, return_inverse=True)[1], dtype=np.int64)
