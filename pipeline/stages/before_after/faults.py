"""Faults of the inputs, and warnings about them, that do not depend on what is counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import DataError
from ...plan.checks import doubtful_groups, doubtful_scores, duplicate_check, missing_check, negative_check
from .lags import N_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ...plan.nodes import Check
    from ...plan.rows import Grouped, Units
    from ...sources.source import Source

TIMES = ("event_time", "article_time")


def checks_of_events(events: Source, units: Units, *, timed: bool) -> Iterator[Check]:
    """Events are listed once, with all that is counted of them; `timed`: with their time."""
    flag = ["complete_window"] if events.has("complete_window") else []
    time = ["event_time"] if timed else []
    for name in dict.fromkeys(("event_id", *units.fields, *time, *flag, *([units.cluster] if units.cluster else []))):
        yield missing_check(events, name)
    for name in (name for name in N_COLUMNS if name in units.fields):
        yield negative_check(events, name)
    yield duplicate_check(events, ("event_id",), remedy="Keep one row per event.")


def checks_of_articles(articles: Source, *, timed: bool) -> Iterator[Check]:
    """Articles are listed once; `timed`: with their time."""
    if articles.has("article_time") and timed:
        yield missing_check(articles, "article_time")
    if articles.has("article_id"):
        yield duplicate_check(articles, ("article_id",), remedy="Keep one row per article.")


def doubtful_types(sources: Sequence[Source], by: Sequence[Grouped]) -> Iterator[str]:
    """Floating numbers where they may surprise; `sources` has the primary input first."""
    yield from doubtful_groups(sources, by)
    yield from doubtful_scores(sources[0])


def dates(sources: Sequence[Source]) -> Iterator[str]:
    """Times that are dates."""
    for name in TIMES:
        for source in sources:
            if source.has(name) and source.is_date(name):
                yield f"{source.name}.{name} has dates without a time of day: coverage may fall before the event"


def check_zones(sources: Sequence[Source]) -> None:
    """Times of events and articles must be on one clock: both with a zone, or both without.

    Raises:
        DataError: one has a zone and the other neither has nor declares one.
    """
    all_zones = {
        f"{source.name}.{name}": source.is_zoned(name) for source in sources for name in TIMES if source.has(name)
    }
    zoned = {name: has_zone for name, has_zone in all_zones.items() if has_zone is not None}
    if len(set(zoned.values())) > 1:
        naive = sorted(name for name, has_zone in zoned.items() if not has_zone)
        message = f"no time zone in {' and '.join(naive)}, but in {' and '.join(sorted(set(zoned) - set(naive)))}"
        raise DataError(message, remedy='Declare it with timezone = "Europe/Amsterdam" (or "UTC") on that input.')
