"""The second parent of a pair: pairs of one event are alike, and so are those of one article, or of one day.

Intervals rest on how counts vary between independent units. A pair has two: its event, and its article with the day
that the article shares with others. Counts are made by both, and by their intersections (see `metrics.uncertainty`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, get_args

from pipeline.errors import DataError
from pipeline.plan import rows
from pipeline.plan.counts import CountFunction
from pipeline.plan.nodes import Relation
from pipeline.queries.load import statement
from pipeline.stages.before_after.compared import has
from pipeline.stages.before_after.contract import Parent
from pipeline.stages.before_after.pairs import time_of_article
from pipeline.stages.before_after.plausibility import fit_given_numbers
from pipeline.stages.before_after.timelines import COUNTS_AROUND, crossed_counts, timelines_by

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import polars as pl

    from pipeline.stages.before_after.contract import BeforeAfterParameters, Compared
    from pipeline.stages.before_after.pairs import TimedBy
    from pipeline.stages.before_after.resolved import Resolved

PARENTS: tuple[Parent, ...] = get_args(Parent)
CROSSED = ("counts_of_second_parent", "counts_of_both_parents")  # count tables
MOST_REPLICATES = 64  # of days and articles, so that counts by both parents stay few
PAIRS_OF_BOTH = "pairs_with_both_parents"
_WORDS = {"day": "day", "article_id": "article"}
_NEEDED = {
    "day": "the window, events with event_time and articles with article_time, or every compared pair with its times",
    "article_id": "article_id in pairs, and every compared pair as a row, or the window and the times of both",
}


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

    def relations(self, run: Resolved) -> Iterator[Relation]:
        """The pairs with the replicate of their second parent."""
        groups = [grouped.name for grouped in run.by] + (["lag_day"] if run.params.lag_thresholds else [])
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

    def compared_pairs(self, run: Resolved) -> CountFunction:
        """Numbers of compared pairs by the second parent and by both, from the timelines.

        They count for nothing where the timelines do not fit the numbers that are given.
        """
        has_given_numbers = self.compared == "events"
        span, matchers = run.span(), run.matchers

        def compute(frames: Mapping[str, pl.DataFrame], segment: Sequence[str]) -> pl.DataFrame:
            events, articles = frames["events"], frames["articles"]
            if has_given_numbers and not fit_given_numbers(events, articles, span):
                events = events.clear()
            counts = crossed_counts(events, articles, span, matchers.known(segment))
            return matchers.repeated(counts, frames, segment)

        reads = timelines_by(run.by, *(["n_before"] if has_given_numbers else []))
        groups = [grouped.name for grouped in run.by if grouped.source == "articles"]
        file = "timeline_of_articles_by_day" if self.parent == "day" else "timeline_of_articles_with_replicates"
        reads["articles"] = statement(f"before_after/{file}", groups)
        return CountFunction(
            "before_after/crossed_timelines",
            reads | matchers.frames(),
            compute,
            COUNTS_AROUND,
            into=CROSSED[0],
            crossed=CROSSED,
        )


def resolve(params: BeforeAfterParameters, run: Resolved) -> Crossing | None:
    """The second parent of the pairs; None: intervals treat events, or their clusters, as the only parent.

    By default it is the day where the times of the articles are known, else the article where every compared pair is a
    row, and none where the numbers of compared pairs of a day or an article are not known.

    Raises:
        DataError: the config names a parent whose numbers of compared pairs are not known.
    """
    if not run.units.replicated or params.second_parent is None:
        return None
    is_counted = run.compared == "pairs" or run.has_timelines
    timed_by = _timed_by(run)
    keyed = run.pairs.has("article_id") and (run.compared == "pairs" or run.names_articles)
    possible = {"day": is_counted and timed_by is not None, "article_id": is_counted and keyed}
    if params.second_parent != "auto" and not possible[params.second_parent]:
        message = f"cluster: the compared pairs of every {_WORDS[params.second_parent]} are not known"
        raise DataError(message, remedy=f"Give {_NEEDED[params.second_parent]}, or cluster by the events alone.")
    wanted = (
        params.second_parent
        if params.second_parent != "auto"
        else next((parent for parent in PARENTS if possible[parent]), None)
    )
    if wanted is None:
        return None
    return Crossing(wanted, timed_by if wanted == "day" else None, run.compared)


def warnings(params: BeforeAfterParameters, run: Resolved) -> Iterator[str]:
    """What the intervals leave out where the pairs have a second parent that is not known well enough."""
    if run.crossing is None and run.units.replicated and params.second_parent == "auto":
        yield (
            "intervals take pairs of one event for alike, but not pairs of one article or one day (one_parent): how "
            f'many pairs of each were compared is not known. Give {_NEEDED["day"]}; or write cluster = "event_id" if '
            "articles are not shared by events"
        )


def _timed_by(run: Resolved) -> TimedBy | None:
    """Where the time of the article of a pair comes from; None: it is not known to the day.

    A lag in days cannot tell it: rounded, it puts most articles on a day beside their own.
    """
    if run.pairs.has("article_time"):
        return "pairs"
    if run.names_articles and has(run.articles, "article_time"):
        return "articles"
    return "events" if has(run.events, "event_time") and run.lag.column != "lag_days" else None
