"""The pairs that take part: rows of pairs with the columns of their events and articles."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

import sqlglot.expressions as exp

from ...plan.nodes import Relation
from ...queries.dialect import column, double
from ...queries.load import statement
from ...records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ...plan.rows import Grouped

USED_PAIRS = "used_pairs"
PAIR = ("event_id", "article_id")
TimedBy = Literal["articles", "pairs", "events"]  # where the time of the article of a pair comes from


def time_of_article(timed_by: TimedBy | None) -> exp.Expr:
    """When the article of a pair appeared, in microseconds: as it is known, or computed from the lag."""
    if timed_by != "events":
        return column("article_time")
    return column("event_time") + column("lag")


def every_used_pair(relation: str = USED_PAIRS) -> exp.Select:
    """All columns of the pairs that take part."""
    return exp.select("*").from_(relation)


@dataclass(frozen=True)
class UsedPairs:
    """A relation of the pairs that take part, with `replicate`, `score` and `lag`, in microseconds.

    Attributes:
        by: The grouping columns that it has, of pairs, events and articles.
        columns: Further columns of pairs, the keys among them.
        looks_up_events: Whether pairs find their event; else all take part, and are in replicate 0.
        of_events: Columns that pairs take over from their event, beside grouping columns.
        looks_up_articles: Whether pairs find their article; those of an article that is not listed are left out.
        of_articles: Columns that pairs take over from their article, beside grouping columns.
        is_event_required: Whether some pairs have no event, and are left out.
        counts_missed: Whether a score that is NULL, NaN or infinite is minus infinity: below every threshold.
        key: What a pair may occur once for, with its highest score; None: every row counts.
        into: Name of the relation.
    """

    by: Sequence[Grouped]
    columns: Sequence[str]
    looks_up_events: bool
    of_events: Sequence[str] = ()
    looks_up_articles: bool = False
    of_articles: Sequence[str] = ()
    is_event_required: bool = False
    counts_missed: bool = False
    key: Sequence[str] | None = None
    into: str = USED_PAIRS

    def relations(self) -> Iterator[Relation]:
        """The relation, after those that it reads."""
        pairs, origin = [*self.columns, *self._grouping("pairs")], "pairs_read"
        score: str | exp.Expr = self._score() if self.counts_missed else "score"
        if self.looks_up_articles:
            articles = [*self.of_articles, *self._grouping("articles")]
            segment = {"pairs_read": pairs, "articles": articles}
            query = statement("before_after/pairs_with_articles", segment, columns={"used_score": score})
            pairs, origin, score = [*pairs, *articles], f"{self.into}_with_articles", "score"
            yield Relation(origin, query)
        file = "pairs_with_events" if self.looks_up_events else "pairs_without_events"
        joined = statement(
            f"before_after/{file}",
            {"pairs_read": pairs, "events": [*self.of_events, *self._grouping("events")]},
            relations={"pairs_read": origin},
            columns={"used_score": score, "required": "event_id" if self.is_event_required else exp.true()},
        )
        if self.key is None:
            yield Relation(self.into, joined)
        else:
            every_row = f"{self.into}_of_every_row"
            yield Relation(every_row, joined)
            yield Relation(self.into, self._distinct(every_row, self.key))

    def _score(self) -> exp.Expr:
        """The score or, where it is not finite, minus infinity."""
        return exp.func("coalesce", column("score", "pairs_read"), double(-math.inf))

    def _distinct(self, origin: str, key: Sequence[str]) -> exp.Query:
        columns = [*(grouped.name for grouped in self.by), *self.columns, *self.of_events, *self.of_articles]
        further = [name for name in dict.fromkeys(columns) if name not in key]
        segment = {"": further, "pairs_of_key": key, "ranked": key}
        return statement("before_after/distinct_pairs", segment, relations={"pairs_of_key": origin})

    def _grouping(self, source: str) -> list[str]:
        return [grouped.name for grouped in self.by if grouped.source == source]
