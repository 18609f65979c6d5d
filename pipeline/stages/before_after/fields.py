"""Fields of the inputs: which are derived and from what, which mapped ones nothing reads, by which keys they meet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...sources.keys import KeyMatch
from .timelines import N_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ...sources.source import Source
    from .contract import Compared
    from .lags import Lag


def derived(lag: Lag, events: Source | None, compared: Compared, *, timed: bool) -> dict[str, str]:
    """Fields that are computed, `input.field` → from what; `timed`: with a window and times of events and articles."""
    fields = {} if lag.column == "lag_hours" else {"pairs.lag_hours": lag.words}
    if timed and events is not None and not events.has("complete_window"):
        fields["events.complete_window"] = "events.event_time, window and the range of articles.article_time"
    if compared == "timelines":
        fields |= dict.fromkeys(
            (f"events.{name}" for name in N_COLUMNS), "events.event_time, window and articles.article_time"
        )
    return fields


def inapplicable(lag: Lag, events: Source | None, compared: Compared) -> dict[str, str]:
    """Why mapped columns are not read, `input.field` → the reason, as far as one can tell."""
    missing = [name for name in N_COLUMNS if events is None or not events.has(name)]
    why = f"{missing[0]} is neither mapped nor named" if missing else f'compared = "{compared}" counts them itself'
    return lag.inapplicable() | {f"events.{name}": why for name in N_COLUMNS}


def key_matches(sources: Sequence[Source], *, lists_articles: bool) -> Iterator[KeyMatch]:
    """Keys by which pairs find events and articles, without which they are left out, and gold finds what it judges.

    Args:
        sources: The inputs, pairs first.
        lists_articles: Whether pairs whose article is not listed are left out.
    """
    by_name = {source.name: source for source in sources}
    pairs, articles, gold = sources[0], by_name.get("articles"), by_name.get("gold")
    if "events" in by_name:
        yield KeyMatch(pairs, by_name["events"], "event_id", "unlisted_event")
    if articles is not None and lists_articles:
        yield KeyMatch(pairs, articles, "article_id", "unlisted_article")
    if gold is not None:
        listed = articles if articles is not None and articles.has("article_id") else pairs
        yield KeyMatch(gold, by_name.get("events", pairs), "event_id")
        yield KeyMatch(by_name.get("gold_articles", gold), listed, "article_id")
    if gold is not None and "gold_articles" in by_name:
        yield KeyMatch(gold, by_name["gold_articles"], "article_id")
