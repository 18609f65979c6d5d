"""How a number of alerts is shared out over groups so that they hold the most true positives.

Every group is cut at one of its thresholds, or nothing of it is retrieved. With a limited number of alerts that is a
knapsack with one choice from each group. Where every group's curve is concave, alerts go where the next ones hold the
most true positives (marginal precision). Whatever the curves are like, the optimum is found exactly, by dynamic
programming over the number of alerts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Ints: TypeAlias = NDArray[np.int64]

NOTHING = -1  # the choice in a group of which nothing is retrieved
MOST_STEPS = 300_000_000  # alerts × choices of all groups
MOST_CELLS = 50_000_000  # alerts × groups


def allocate(groups: Sequence[tuple[Ints, Ints]], capacity: int) -> list[int] | None:
    """The threshold of every group, so that all together retrieve the most true positives within a capacity.

    Args:
        groups: For every group the rows that each of its thresholds retrieves, and the true positives among them.
        capacity: The most rows to retrieve of all groups.

    Returns:
        The number of a threshold for each group, or `NOTHING`; of several optima one that retrieves the fewest rows.
        None where the search is too large: beyond `MOST_STEPS` or `MOST_CELLS`.
    """
    choices = [_choices(retrieved, hits, capacity) for retrieved, hits in groups]
    most = min(capacity, sum(int(groups[number][0][kept[-1]]) for number, kept in enumerate(choices) if len(kept)))
    if (most + 1) * sum(map(len, choices)) > MOST_STEPS or (most + 1) * len(groups) > MOST_CELLS:
        return None
    best = np.zeros(most + 1, dtype=np.int64)  # most true positives with at most so many alerts
    taken = np.full((len(groups), most + 1), NOTHING, dtype=np.int32)
    for number, (retrieved, hits) in enumerate(groups):
        before = best.copy()
        for threshold in choices[number]:
            alerts, gained = int(retrieved[threshold]), int(hits[threshold])
            with_group = before[: most + 1 - alerts] + gained
            better = with_group > best[alerts:]
            best[alerts:][better] = with_group[better]
            taken[number, alerts:][better] = threshold
    left, allocation = int(np.argmax(best)), [NOTHING] * len(groups)  # the fewest alerts with the most hits
    for number in reversed(range(len(groups))):
        allocation[number] = int(taken[number, left])
        left -= int(groups[number][0][allocation[number]]) if allocation[number] != NOTHING else 0
    return allocation


def _choices(retrieved: Ints, hits: Ints, capacity: int) -> list[int]:
    """The thresholds that may be part of an optimum: within the capacity, and with more hits than any with fewer rows.

    In the order of the rows that they retrieve.
    """
    order = np.lexsort((-hits, retrieved))
    order = order[retrieved[order] <= capacity]
    most = np.maximum.accumulate(np.concatenate([[0], hits[order]]))
    return [int(number) for number in order[hits[order] > most[:-1]]]
