"""Numbers of compared articles around events from two timelines, without making a pair."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

MICROSECONDS_PER_HOUR = 3_600_000_000


@dataclass(frozen=True)
class Span:
    """A window around an event in whole microseconds: [before_start, before_end) and [after_start, after_end].

    Attributes:
        before_start: Start of the part before the event, inclusive; negative.
        before_end: End of that part, exclusive.
        near_start: Start of its near part, inclusive.
        after_start: Start of the part after the event, inclusive.
        after_end: End of that part.
        closed: Whether `after_end` itself belongs to it.
    """

    before_start: int
    before_end: int
    near_start: int
    after_start: int
    after_end: int
    closed: bool


def counts_around(events: NDArray[np.int64], articles: NDArray[np.int64], span: Span) -> dict[str, NDArray[np.int64]]:
    """Articles before and after every event, inside its window.

    With L(x) articles earlier than x and U(x) not later than x, n_before = L(e + before_end) - L(e + before_start) and
    n_after = U(e + after_end) - L(e + after_start), or L(e + after_end) for a half-open window. Sorting both sides once
    makes it O((E + A) log A).

    Args:
        events: Moments of the events in microseconds, shape (E,), any order.
        articles: Moments of the articles in microseconds, shape (A,), ascending.
        span: The window.

    Returns:
        `n_before`, `n_after` and `n_near` (the near part of the window before), each of shape (E,), in the order of
        `events`.
    """
    order = np.argsort(events, kind="stable")
    moments = events[order]

    def rank(offset: int, *, inclusive: bool = False) -> NDArray[np.int64]:
        return np.searchsorted(articles, moments + offset, side="right" if inclusive else "left")

    until_event = rank(span.before_end)
    ordered = {
        "n_before": until_event - rank(span.before_start),
        "n_after": rank(span.after_end, inclusive=span.closed) - rank(span.after_start),
        "n_near": until_event - rank(span.near_start),
    }
    counts = {name: np.empty(len(events), dtype=np.int64) for name in ordered}
    for name, values in ordered.items():
        counts[name][order] = values
    return counts


def counts_between(
    events: NDArray[np.int64], articles: NDArray[np.int64], edges: Sequence[int]
) -> Iterator[NDArray[np.int64]]:
    """Articles in neighbouring intervals around every event, one interval [edge, next edge) at a time.

    Args:
        events: Moments of the events in microseconds, shape (E,), any order.
        articles: Moments of the articles in microseconds, shape (A,), ascending.
        edges: Rising offsets from the event, in microseconds.
    """
    earlier: NDArray[np.int64] | None = None
    for edge in edges:
        rank = np.searchsorted(articles, events + edge)
        if earlier is not None:
            yield rank - earlier
        earlier = rank
