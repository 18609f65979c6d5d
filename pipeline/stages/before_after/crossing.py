"""The second parent of a pair: pairs of one event are alike, and so are those of one article, or of one day.

Intervals rest on how counts vary between independent units. A pair has two: its event, and its article with the day
that the article shares with others. Counts are made by both, and by their intersections (see `metrics.uncertainty`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

from ...errors import DataError
from ...plan import rows
from ...plan.counts import CountFunction
from ...plan.nodes import Relation
from ...queries.load import statement
from ...records import dataclass
from .contract import Parent
from .pairs import time_of_article
from .plausibility import fit_given_numbers
from .timelines import COUNTS_AROUND, crossed_counts, timelines_by

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import polars as pl

    from ...metrics.before_after.timelines import Span
    from .contract import Compared
    from .matchers import Matchers
    from .pairs import TimedBy

CROSSED: dict[Parent, tuple[str, str]] = {  # count tables
    "day": ("counts_of_days", "counts_of_events_and_days"),
    "article_id": ("counts_of_articles", "counts_of_events_and_articles"),
}
MOST_REPLICATES = 64  # of days, in turn, and of articles, so that counts by both parents stay few
PAIRS_OF_BOTH = "pairs_with_both_parents"
PARENTS: tuple[Parent, ...] = get_args(Parent)
_WORDS = {"day": "day", "article_id": "article"}


def unknown_parent(lacking: Mapping[Parent, str]) -> str:
    """The warning that the pairs have no second parent, with what would give them one, see `choose_parent`."""
    return (
        "intervals may be too narrow (one_parent): they know that pairs of one event are alike, but not that pairs of "
        "one article or one day are, because it is not known how many of these were compared. Give "
        f'{lacking["day"]}; or write cluster = "event_id" if articles are not shared by events'
    )


@dataclass(frozen=True)
class Crossing:
    """The second parent of a run.

    Attributes:
        parent: Whether it is the article, or the day on which the article appeared (UTC).
        timed_by: For days: where the time of the article of a pair comes from. A pair whose article is not listed there
            is in replicate 0.
        compared: Where the numbers of compared pairs come from.
    """

    parent: Parent
    timed_by: TimedBy | None
    compared: Compared

    @property
    def tables(self) -> tuple[str, str]:
        """The count tables by the second parent and by both."""
        return CROSSED[self.parent]

    def relations(self, groups: Sequence[str]) -> Iterator[Relation]:
        """The pairs with the replicate of their second parent.

        Args:
            groups: Columns of the pairs by which they are counted.
        """
        if self.parent == "day" and self.timed_by != "articles":
            columns = {"time_of_article": time_of_article(self.timed_by)}
            yield Relation(PAIRS_OF_BOTH, statement("before_after/pairs_with_days", groups, columns=columns))
            return
        if self.parent == "day":
            yield Relation("replicates_of_articles", statement("before_after/days_of_articles"), keep=True)
        else:
            source = "pairs_read" if self.compared == "pairs" else "articles_read"
            yield from rows.replicate_relations(source, "article_id", MOST_REPLICATES, of="articles")
        yield Relation(PAIRS_OF_BOTH, statement("before_after/pairs_with_article_replicates", groups))

    def compared_pairs(self, by: Sequence[rows.Grouped], span: Span, matchers: Matchers) -> CountFunction:
        """Numbers of compared pairs by the second parent and by both, from the timelines.

        They count for nothing where the timelines do not fit the numbers that are given.

        Args:
            by: The grouping columns.
            span: The window.
            matchers: The grouping columns that name the matcher.
        """
        has_given_numbers = self.compared == "events"

        def compute(frames: Mapping[str, pl.DataFrame], segment: Sequence[str]) -> pl.DataFrame:
            events, articles = frames["events"], frames["articles"]
            if has_given_numbers and not fit_given_numbers(events, articles, span):
                events = events.clear()
            counts = crossed_counts(events, articles, span, matchers.known(segment))
            return matchers.repeated(counts, frames, segment)

        reads = timelines_by(by, *(["n_before"] if has_given_numbers else []))
        groups = [grouped.name for grouped in by if grouped.source == "articles"]
        file = "timeline_of_articles_by_day" if self.parent == "day" else "timeline_of_articles_with_replicates"
        reads["articles"] = statement(f"before_after/{file}", groups)
        return CountFunction(
            "before_after/crossed_timelines",
            reads | matchers.frames(),
            compute,
            COUNTS_AROUND,
            into=self.tables[0],
            crossed=self.tables,
        )


def choose_parent(wanted: Parent | Literal["auto"], lacking: Mapping[Parent, str]) -> Parent | None:
    """Choose the second parent of the pairs; None: there is none.

    By default it is the day where the times of the articles are known, else the article where every compared pair is a
    row, and none where the numbers of compared pairs of a day or an article are not known.

    Args:
        wanted: The parent that the config names, or `auto`.
        lacking: Of every parent, what would make its numbers of compared pairs known, in words; empty: they are.

    Raises:
        DataError: those of the parent that the config names are not.
    """
    if wanted == "auto":
        return next((parent for parent in PARENTS if not lacking[parent]), None)
    if lacking[wanted]:
        message = f"cluster: the compared pairs of every {_WORDS[wanted]} are not known"
        raise DataError(message, remedy=f"Give {lacking[wanted]}, or cluster by the events alone.")
    return wanted
