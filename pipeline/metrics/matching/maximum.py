"""Maximum one-to-one matching of items with slots, in which better items go first.

Every item may take one slot from a range of slots, and both ends of the ranges are non-decreasing over the items. This
is the case for points on a line with a margin: the items are predictions, the slots are true points, both sorted.

A set of items can be matched completely if no run of slots is wanted by more items than it has slots (Hall 1935). Such
sets are the independent sets of a transversal matroid (Edmonds & Fulkerson 1965). Accepting the items by descending
score, each one if it still fits, therefore gives a maximum matching of all items at or above every score at once.
Accepting an item x contracts the matroid by x, which takes just a subtraction here: let c(s) be the number of accepted
items whose range starts before slot s, and C(s) the number of those whose range ends at or before s; the remaining
items then have the ranges

    first' = max over s ≤ first of (s - c(s))        last' = min over s ≥ last of (s - C(s))

(for one x: `first -= first > first_x` and `last -= last ≥ last_x`), and an item fits if and only if first ≤ last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

Bools: TypeAlias = "NDArray[np.bool_]"
Ints: TypeAlias = "NDArray[np.int64]"

_WIDEST_SIDE_BY_SIDE = 256
_FEWEST_TO_DIVIDE = 64
_ELEMENTS_AT_A_TIME = 1 << 18


def match_greedily(first: Ints, stop: Ints, score: NDArray[np.float64]) -> Bools:
    """Items of the maximum matching that takes higher scores first.

    For every v, the number of matched items with a score ≥ v is the size of the largest matching of all items with a
    score ≥ v. Items with equal scores enter together: how many of them are matched is determined; which ones is
    arbitrary, and the earlier ones are chosen.

    Items fall into components that share no slot, and components of equal size are processed side by side. Up to 256
    items, a component of w items costs O(w²) additions. A larger component is split into two halves by score, and the
    lower half is contracted by the matched items of the upper half: O(w log² w).

    Args:
        first: First slot of every item, shape (N,), non-decreasing.
        stop: One after the last slot of every item, non-decreasing; an item with stop ≤ first has no slot.
        score: Finite scores of the items; higher is better.

    Returns:
        Whether each item is matched, shape (N,).
    """
    matched = np.zeros(len(first), dtype=np.bool_)
    items = np.flatnonzero(first < stop)
    starts = component_starts(first[items], stop[items])
    sizes = np.diff(starts, append=len(items))
    matched[items[starts[sizes == 1]]] = True
    for rows in _batches(starts, sizes):
        batch = items[rows]
        order = np.argsort(-score[batch], axis=1, kind="stable")
        batch = np.take_along_axis(batch, order, axis=1)
        base = first[items[rows[:, :1]]]
        matched[batch] = _side_by_side(first[batch] - base, stop[batch] - base - 1)
    for component in np.flatnonzero(sizes > _WIDEST_SIDE_BY_SIDE):
        members = items[starts[component] : starts[component] + sizes[component]]
        base = first[members[0]]
        members = members[np.argsort(-score[members], kind="stable")]
        matched[members] = _by_halves(first[members] - base, stop[members] - base - 1)
    return matched


def component_starts(first: Ints, stop: Ints) -> Ints:
    """Index of the first item in every run of items that are linked by shared slots.

    Args:
        first: First slot of every item, non-decreasing.
        stop: One after the last; above `first`.
    """
    if not len(first):
        return np.empty(0, dtype=np.int64)
    return np.flatnonzero(np.concatenate([[True], first[1:] >= stop[:-1]]))


def _batches(starts: Ints, sizes: Ints) -> Iterator[Ints]:
    """Components of one size, as rows of item numbers, in batches of a limited number of elements."""
    for size in np.unique(sizes[(sizes > 1) & (sizes <= _WIDEST_SIDE_BY_SIDE)]):
        chosen = starts[sizes == size]
        step = max(1, _ELEMENTS_AT_A_TIME // int(size))
        for at in range(0, len(chosen), step):
            yield chosen[at : at + step, np.newaxis] + np.arange(size)


def _side_by_side(first: Ints, last: Ints) -> Bools:
    """Matched items of many components, shape (components, items), items by descending score."""
    kind = np.int16 if last.max() < np.iinfo(np.int16).max else np.int32
    lowest, highest = (np.ascontiguousarray(slots.T, dtype=kind) for slots in (first, last))
    matched = np.empty(lowest.shape, dtype=np.bool_)
    out_of_reach = np.iinfo(kind).max
    for rank in range(len(lowest)):
        fits = np.less_equal(lowest[rank], highest[rank], out=matched[rank])
        taken_first = np.where(fits, lowest[rank], out_of_reach)
        taken_last = np.where(fits, highest[rank], out_of_reach)
        # contract the ranges of all later items by the accepted one: first -= first > x's, last -= last ≥ x's
        later_lowest, later_highest = lowest[rank + 1 :], highest[rank + 1 :]
        np.subtract(later_lowest, later_lowest > taken_first, out=later_lowest)
        np.subtract(later_highest, later_highest >= taken_last, out=later_highest)
    return matched.T


def _by_halves(first: Ints, last: Ints) -> Bools:
    """Matched items of one component, by descending score."""
    if len(first) <= _FEWEST_TO_DIVIDE:
        return _side_by_side(first[np.newaxis], last[np.newaxis])[0] if len(first) else np.empty(0, dtype=np.bool_)
    half = len(first) // 2
    matched = np.zeros(len(first), dtype=np.bool_)
    matched[:half] = _by_halves(first[:half], last[:half])
    lowest = _contracted_first(first[half:], np.sort(first[:half][matched[:half]]))
    highest = _contracted_last(last[half:], np.sort(last[:half][matched[:half]]))
    fits = half + np.flatnonzero(lowest <= highest)
    matched[fits] = _by_halves(lowest[fits - half], highest[fits - half])
    return matched


def _contracted_first(first: Ints, taken: Ints) -> Ints:
    """The maximum over s ≤ first of s minus the number of `taken` (ascending) below s."""
    floor = np.maximum.accumulate(taken - np.arange(len(taken)))
    below = np.searchsorted(taken, first, side="left")
    return np.asarray(np.maximum(first - below, np.append(floor, np.iinfo(np.int64).min)[below - 1]))


def _contracted_last(last: Ints, taken: Ints) -> Ints:
    """The minimum over s ≥ last of s minus the number of `taken` (ascending) up to s."""
    ceiling = np.minimum.accumulate((taken - np.arange(1, len(taken) + 1))[::-1])[::-1]
    until = np.searchsorted(taken, last, side="right")
    return np.asarray(np.minimum(last - until, np.append(ceiling, np.iinfo(np.int64).max)[until]))
