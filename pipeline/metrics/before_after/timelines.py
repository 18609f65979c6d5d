"""Numbers of compared articles around events, counted from two timelines without forming any pair."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

MICROSECONDS_PER_HOUR = 3_600_000_000


@dataclass(frozen=True)
class Span:
    """A window around an event in whole microseconds: [before_start, before_end) and [after_start, after_end].

    Attributes:
        before_start: Start of the part before the event, inclusive; negative.
        before_end: End of the part before the event, exclusive.
        near_start: Start of the near part of the time before the event, inclusive.
        after_start: Start of the part after the event, inclusive.
        after_end: End of the part after the event.
        closed: Whether `after_end` itself belongs to the window.
    """

    before_start: int
    before_end: int
    near_start: int
    after_start: int
    after_end: int
    closed: bool


def counts_around(events: NDArray[np.int64], articles: NDArray[np.int64], span: Span) -> dict[str, NDArray[np.int64]]:
    """Number of articles before and after every event, inside its window.

    With L(x) the number of articles earlier than x and U(x) the number not later than x,
    n_before = L(e + before_end) - L(e + before_start) and n_after = U(e + after_end) - L(e + after_start); in a
    half-open window U(e + after_end) is replaced by L(e + after_end). Both sides are sorted once, which makes it
    O((E + A) log A).

    Args:
        events: Timestamps of the events in microseconds, shape (E,), any order.
        articles: Timestamps of the articles in microseconds, shape (A,), ascending.
        span: The window.

    Returns:
        `n_before`, `n_after` and `n_near` (the near part of the time before), each of shape (E,), in the order of
        `events`.
    """
    order = np.argsort(events, kind="stable")
    timestamps = events[order]

    def rank(offset: int, *, inclusive: bool = False) -> NDArray[np.int64]:
        return np.searchsorted(articles, timestamps + offset, side="right" if inclusive else "left")

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
    """Numbers of articles in adjacent intervals around every event, one interval [edge, next edge) at a time.

    Args:
        events: Timestamps of the events in microseconds, shape (E,), any order.
        articles: Timestamps of the articles in microseconds, shape (A,), ascending.
        edges: Ascending offsets from the event, in microseconds.
    """
    earlier: NDArray[np.int64] | None = None
    for edge in edges:
        rank = np.searchsorted(articles, events + edge)
        if earlier is not None:
            yield rank - earlier
        earlier = rank
