"""Which rows to label: strata by score, how many rows of each, and in which order.

A row that is true with probability p is worth √(p (1 - p)) labels: strata of equal sums with equally many labels are
those of Dalenius & Hodges (1959), and their allocation is Neyman's (1934). What scores say of p may be wrong, and a
stratum that is thought to hold no true row is what makes recall doubtful: a third of the labels goes to rows alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from .draws import FEWEST

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]
    Integers: TypeAlias = NDArray[np.int64]

_ALIKE = 1 / 3  # of the labels, for rows whatever their scores
_MOST_STRATA = 16
PER_STRATUM = 10  # labels, at least, if there are several strata
_NOTHING = 1e-300


def worth_of_cells(score: Floats, rows: Integers) -> Floats:
    """How many of all labels a cell of rows is worth, shape (C,); adds up to 1.

    Args:
        score: Shape (C,): rising scores. If all lie between 0 and 1, they are taken as probabilities; else a row is
            worth the inverse of its rank from the top, so that each tenfold of rows is worth as much.
        rows: Shape (C,): numbers of rows with these scores.
    """
    if not len(score):
        return np.zeros(0)
    is_share = bool(score[0] >= 0 and score[-1] <= 1)
    above = np.cumsum(rows[::-1])[::-1]
    worth = np.sqrt(score * (1 - score)) * rows if is_share else _of_ranks(above - rows, above)
    return _with_rows_alike(worth, rows)


def worth_of_rows_alike(score: Floats, rows: Integers) -> Floats:  # noqa: ARG001 - called as `worth_of_cells`
    """How many of all labels a cell is worth where a row is worth as much as any other, shape (C,); adds up to 1."""
    return np.asarray(rows / max(rows.sum(), 1))


def worth_of_documents(mentions: Floats, rows: Integers) -> Floats:
    """How many of all drawn documents a cell of them is worth, shape (C,); adds up to 1.

    What is wrong of m mentions varies by about the root of m, and mentions that are missed by something where there is
    none.

    Args:
        mentions: Shape (C,): predicted mentions of each document.
        rows: Shape (C,): documents.
    """
    return _with_rows_alike(np.sqrt(mentions + 1) * rows, rows)


def worth_after_labels(worth: Floats, rows: Integers, labels: Integers, trues: Integers) -> Floats:
    """The worth of strata, half from earlier labels and half as before, shape (H,); adds up to 1.

    Strata whose few labels happen to hold no true row would else get no more, and limits would be too low: of average
    precision they held the truth in .88 of samples. The share of true rows in a stratum is that of its labels and of
    one more row, which is as true as all rows are on average.

    Args:
        worth: Shape (H,): before there were labels.
        rows: Shape (H,): numbers of rows.
        labels: Shape (H,): labelled rows.
        trues: Shape (H,): true ones among them.
    """
    seen = labels > 0
    average = (rows[seen] @ (trues[seen] / labels[seen]) + 0.5) / (rows[seen].sum() + 1) if seen.any() else 0.5
    share = (trues + average) / (labels + 1)
    from_labels = _with_rows_alike(np.sqrt(share * (1 - share)) * rows, rows)
    return np.asarray((from_labels + worth / max(worth.sum(), _NOTHING)) / 2)


def strata_of_cells(worth: Floats, size: int) -> Integers:
    """The stratum of each cell, from 0 at the lowest scores: 1, 2, 4, 8 or 16 of about equal worth.

    Strata for more labels lie within strata for fewer, so that rows drawn at random from these are random there.

    Args:
        worth: Shape (C,): in rising order of scores.
        size: How many labels there are.
    """
    strata = 1
    while 2 * strata <= min(_MOST_STRATA, size // PER_STRATUM):
        strata *= 2
    middle = np.cumsum(worth) - worth / 2
    finest = np.minimum((middle / max(worth.sum(), _NOTHING) * _MOST_STRATA).astype(np.int64), _MOST_STRATA - 1)
    return np.asarray(np.unique(finest * strata // _MOST_STRATA, return_inverse=True)[1], dtype=np.int64)


def allocation(worth: Floats, rows: Integers, size: int) -> Integers:
    """How many rows of each stratum to label, shape (H,): in proportion to their worth, five at least, all at most.

    Args:
        worth: Shape (H,).
        rows: Shape (H,): numbers of rows.
        size: How many labels there are; more than there are rows means all rows.
    """
    least = np.minimum(rows, FEWEST)
    return _shared_out(worth, rows, size, least if least.sum() <= size else np.zeros_like(rows))


def _shared_out(worth: Floats, rows: Integers, size: int, least: Integers) -> Integers:
    """Whole numbers in proportion to worth, each between `least` and `rows`, that add up to `size` or to all rows."""
    size = min(size, int(rows.sum()))
    shares = least.astype(np.float64)
    free = rows > 0
    while free.any():  # whatever a stratum cannot have, or has to have, is no longer shared out
        left = size - shares[~free].sum()
        by = worth if worth[free].sum() > _NOTHING else rows
        wanted = np.where(free, left * (by / by[free].sum()), shares)
        too_much, too_few = free & (wanted > rows), free & (wanted < least)
        fixed = too_much if (wanted - rows)[too_much].sum() >= (least - wanted)[too_few].sum() else too_few
        shares = np.where(too_much, rows, np.where(too_few, least, wanted)) if fixed.any() else wanted
        if not fixed.any():
            break
        free &= ~fixed
    return _rounded(shares, rows, size)


def further(worth: Floats, rows: Integers, drawn: Integers, size: int) -> Integers:
    """How many more rows of each stratum to label, shape (H,), where some have been drawn before.

    Args:
        worth: Shape (H,).
        rows: Shape (H,): numbers of rows.
        drawn: Shape (H,): how many of them were drawn before.
        size: How many more labels there are.
    """
    lacking = np.maximum(allocation(worth, rows, int(drawn.sum()) + size) - drawn, 0)
    return _shared_out(lacking.astype(np.float64), rows - drawn, size, np.zeros_like(rows))


def places(stratum: Integers, rank: Integers, numbers: Integers) -> Floats:
    """Where each row stands in the sheet: sorted by these, the first k rows hold every stratum in its share.

    Args:
        stratum: Shape (n,): of each drawn row.
        rank: Shape (n,): its rank in the random order of its stratum, from 0.
        numbers: Shape (H,): how many rows of each stratum are drawn.
    """
    return np.asarray((rank + 0.5) / numbers[stratum])


def _of_ranks(below: Floats | Integers, upto: Floats | Integers) -> Floats:
    """Σ 1 / rank over the ranks of each cell, by the logarithm."""
    return np.asarray(np.log((upto + 0.5) / (below + 0.5)))


def _with_rows_alike(worth: Floats | Integers, rows: Integers) -> Floats:
    alike = rows / max(rows.sum(), 1)
    total = worth.sum()
    return np.asarray(alike if total <= 0 else (1 - _ALIKE) * worth / total + _ALIKE * alike)


def _rounded(shares: Floats, rows: Integers, size: int) -> Integers:
    """Whole numbers that add up to `size`, by the largest remainders."""
    numbers = np.floor(shares + 1e-9).astype(np.int64)
    order = np.argsort(-(shares - numbers), kind="stable")
    for stratum in [*order, *order]:
        if numbers.sum() >= size:
            break
        numbers[stratum] += numbers[stratum] < rows[stratum]
    return numbers
