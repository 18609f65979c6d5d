"""One-to-one matching of rows that are equal in all columns of a key: no search, only sorting.

Of g gold rows and p predictions with one key min(g, p) are matched, so the i-th of the ones goes to the i-th of the
others. Keys are packed into one integer wherever they fit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from pipeline.metrics.matching.bipartite import UNMATCHED
from pipeline.metrics.sorting import rising_order

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

Ints: TypeAlias = "NDArray[np.int64]"

WORD_BITS = 63


def match_equal(keys: Sequence[tuple[Ints, Ints]], preference: Sequence[NDArray[np.generic]]) -> Ints:
    """Pairs the i-th gold row of every key with its i-th prediction.

    Args:
        keys: Columns that must be equal, those of gold rows and of predictions.
        preference: Columns of the predictions that say in which order they are taken, lowest values first, the first
            column before the second; ties, and all rows without one, are taken in the order of rows.

    Returns:
        Shape (gold rows,): row of the matched prediction, or -1.
    """
    gold, predicted = _one_number(keys)
    golds, predictions = rising_order(gold), _by_preference(predicted, preference)
    wanted, offered = gold[golds], predicted[predictions]
    position = np.searchsorted(offered, wanted)
    if (repeated := wanted[1:] == wanted[:-1]).any():
        position += _position_in_run(repeated)
    matched = np.full(len(gold), UNMATCHED, dtype=np.int64)
    if not len(offered):
        return matched
    inside = np.minimum(position, len(offered) - 1)
    hits = np.flatnonzero((offered[inside] == wanted) & (inside == position))
    matched[golds[hits]] = predictions[position[hits]]
    return matched


def _one_number(keys: Sequence[tuple[Ints, Ints]]) -> tuple[Ints, Ints]:
    """One number of each gold row and of each prediction, equal where all columns are."""
    words = packed(keys)
    number = words[0] if len(words) == 1 else numbered(keys)
    size = len(keys[0][0])
    return number[:size], number[size:]


def _by_preference(key: Ints, preference: Sequence[NDArray[np.generic]]) -> Ints:
    """Rows in the order of a key; only those of a repeated key have to be put in the order of a preference as well."""
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
    """How many rows equal to it stand before each; given is which rows, from the second on, equal the one before."""
    position = np.arange(len(repeated) + 1)
    return position - np.maximum.accumulate(np.where(np.append(False, repeated), 0, position))


def packed(columns: Sequence[tuple[Ints, Ints]]) -> list[Ints]:
    """Few words of 63 bits, gold before predicted rows, that sort and compare as the columns do; last column lowest."""
    words: list[Ints] = []
    free = 0
    for sides in columns:
        low, high = min(side.min(initial=0) for side in sides), max(side.max(initial=0) for side in sides)
        bits = max(int(high - low).bit_length(), 1)
        if bits > free:
            words.append(np.zeros(sum(map(len, sides)), dtype=np.int64))
            free = WORD_BITS
        else:
            words[-1] <<= bits
        gold, predicted = np.split(words[-1], [len(sides[0])])
        gold += sides[0] - low
        predicted += sides[1] - low
        free -= bits
    return words


def numbered(columns: Sequence[tuple[Ints, Ints]]) -> Ints:
    """Number of the distinct combination in every row, gold before predicted rows."""
    words = packed(columns)
    number = words[0]
    for word in words[1:]:
        number, dense = (np.unique(each, return_inverse=True)[1] for each in (number, word))
        number = number * (dense.max(initial=0) + 1) + dense
    return np.asarray(np.unique(number, return_inverse=True)[1], dtype=np.int64)
