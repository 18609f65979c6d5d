"""Where the numbers of compared pairs come from: rows of pairs, numbers per event, or the two timelines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import DataError
from .timelines import N_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...plan.rows import Grouped
    from ...sources.source import Source
    from .contract import BeforeAfterParameters, Compared


def resolve_compared(params: BeforeAfterParameters, events: Source | None, articles: Source | None) -> Compared:
    """Find where the numbers of compared pairs come from, unless the config says so.

    Raises:
        DataError: the inputs lack what the config asks for.
    """
    counted = has(events, *N_COLUMNS)
    timed = has(events, "event_time") and has(articles, "article_time") and params.window is not None
    default: Compared = "events" if counted else "timelines" if timed else "pairs"
    compared = params.compared or default
    if compared == "events" and not counted:
        message = 'compared = "events" needs the input events with n_before and n_after'
        raise DataError(message, remedy='Map them, or use compared = "pairs" if every compared pair is a row.')
    if compared == "timelines" and not timed:
        message = 'compared = "timelines" needs events with event_time and articles with article_time'
        raise DataError(message, remedy='Map them, for example columns = { event_time = "date" }.')
    return compared


def check_grouping(compared: Compared, by: Sequence[Grouped]) -> None:
    """Refuse groups whose number of compared pairs is not known.

    Raises:
        DataError: the pairs are counted per event, and a grouping column is one of articles.
    """
    for grouped in by:
        if compared == "events" and grouped.source == "articles":
            message = f"by: {grouped.label!r} is a column of articles, but the compared pairs are given per event"
            remedy = 'Their number for each value is not known: use compared = "timelines" if the data allow it.'
            raise DataError(message, remedy=remedy)


def has(source: Source | None, *names: str) -> bool:
    """Whether an input is given and has all of some fields."""
    return source is not None and all(source.has(name) for name in names)
