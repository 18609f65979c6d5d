"""Counts per event at the chosen threshold: the units in which two matchers are compared."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

import numpy as np
import polars as pl

from ...errors import DataError
from ...metrics.before_after.timelines import counts_around
from ...plan.nodes import After, Relation
from ...plan.plan import OptionalTable
from ...queries.load import statement
from ...records import dataclass
from ...tables.columns import THRESHOLD, as_key, lowest_retrieved
from ...tables.schemas import GROUPING
from ..stage import CLUSTER
from .lags import N_COLUMNS, articles_of_timeline, events_of_timeline
from .tables import EVENT_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import sqlglot.expressions as exp

    from ...metrics.before_after.timelines import Span
    from ...plan import rows
    from ...sources.source import Source
    from ...tables.columns import Boundary
    from .contract import Compared


# Matchers side by side in one input of pairs: each of them compared the same pairs, so these are counted for each.


MATCHER = "matcher"
MATCHERS = "matchers"
COMPARED_EVENTS = "compared_events"


@dataclass(frozen=True)
class Matchers:
    """The grouping columns of pairs that name the matcher.

    Where every compared pair is a row there are none: a column of pairs then describes the compared pairs.

    Attributes:
        columns: Their internal names; none: all pairs are of one matcher.
    """

    columns: tuple[str, ...]

    @classmethod
    def of(cls, by: Sequence[rows.Grouped], compared: Compared) -> Matchers:
        """Those of a run."""
        return cls(tuple(each.name for each in by if each.source == "pairs" and compared != "pairs"))

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self.columns)

    def relations(self, of_events: Sequence[str]) -> Iterator[Relation]:
        """The matchers, numbered from 1, and the events that pairs were compared with, once for each of them.

        Args:
            of_events: Columns of the events that counting needs.
        """
        query = statement("before_after/matchers", self.columns) if self else statement("before_after/one_matcher")
        yield Relation(MATCHERS, query, keep=True)
        segment = {"events": of_events, "matchers": self.columns}
        yield Relation(COMPARED_EVENTS, statement("before_after/compared_events", segment))

    def numbered(self, columns: Sequence[str]) -> exp.Query:
        """Used pairs with the number of their matcher, and with some of their columns."""
        return statement("before_after/pairs_of_matchers", {"used_pairs": columns, "matchers": self.columns})

    def frames(self) -> dict[str, exp.Query]:
        """What `repeated` needs."""
        return {MATCHERS: statement("before_after/known_matchers", self.columns)} if self else {}

    def known(self, segment: Sequence[str]) -> list[str]:
        """Those of some grouping columns that do not name the matcher."""
        return [name for name in segment if name not in self.columns]

    def repeated(
        self, counts: pl.DataFrame, frames: Mapping[str, pl.DataFrame], segment: Sequence[str]
    ) -> pl.DataFrame:
        """Counts of compared pairs, once for each matcher; the rows of matchers that a segment does not part add up.

        Args:
            counts: Counts by the columns of the segment that do not name the matcher.
            frames: Those of `frames`.
            segment: The grouping columns of the result.
        """
        if not self:
            return counts
        matchers = frames[MATCHERS]
        if matchers.is_empty():  # no pair tells of any: the compared pairs are there all the same
            matchers = matchers.clear(1)
        matcher_columns = [name for name in segment if name in self.columns]
        copies = counts.join(matchers.select(*matcher_columns, MATCHER), how="cross").drop(MATCHER)
        return copies.select(*segment, *(name for name in counts.columns if name not in segment))

    def check(self, others: Mapping[str, bool]) -> None:
        """Refuse what has no meaning with several matchers.

        Args:
            others: What is asked for beside them, and whether it is.

        Raises:
            DataError: names it.
        """
        for name, wanted in others.items():
            if self and wanted:
                message = f"{name} does not go with a grouping column of pairs, which names the matcher"
                raise DataError(message, remedy="Run one stage for each matcher: name it in where of pairs.")


TABLE, CLUSTERS = "before_after_events", "clusters"
MOST_ROWS = 10_000_000


def table(
    bounds: Mapping[str, float],
    boundary: Boundary,
    compared: tuple[Compared, Span | None],
    matchers: Matchers,
    clusters: exp.Query | None,
) -> After:
    """Matches of every event at the first criterion's threshold of the total.

    Args:
        bounds: Which lags lie before and after the event.
        boundary: Whether a score equal to the threshold is retrieved.
        compared: Where the numbers of compared pairs come from, and for timelines the window in microseconds.
        matchers: Who compared them; the matches of all are added up, as in the total, and so are the compared pairs.
        clusters: Query of the cluster of every event; None: every event is one.
    """

    def params(tables: Mapping[str, pl.DataFrame]) -> dict[str, float] | None:
        threshold = chosen_threshold(tables)
        if threshold is None:
            return None
        reference = chosen_threshold(tables, "recall_reference")
        lowest = lowest_retrieved(threshold, boundary)
        at_reference = math.inf if reference is None else lowest_retrieved(reference, boundary)
        return {"lowest_score": lowest, "reference_score": at_reference, **bounds}

    def finish(matches: pl.DataFrame, frames: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
        compared_with = matchers.repeated(_compared(frames, compared[1]), frames, ())
        compared_with = compared_with.group_by("event_id").agg(pl.col(N_COLUMNS).sum()) if matchers else compared_with
        joined = matches.join(compared_with, on="event_id", how="left").with_columns(pl.col(N_COLUMNS).fill_null(0))
        rows = joined.select(pl.lit("all").alias(GROUPING.name), *(each.name for each in EVENT_COLUMNS))
        if CLUSTERS not in frames:
            return rows
        of_events = frames[CLUSTERS].with_columns(as_key(frames[CLUSTERS][CLUSTER]))
        return rows.join(of_events, on="event_id", how="left", maintain_order="left")

    frames = _frames(compared[0], bounds) | matchers.frames() | ({} if clusters is None else {CLUSTERS: clusters})
    return After(TABLE, None, statement("before_after/events"), params, frames, finish)


def table_of_events(pairs: Source, *, asked: Literal["auto"] | bool) -> OptionalTable:
    """When the table is made.

    Args:
        pairs: The input whose rows it needs once more.
        asked: The key `event_counts`.
    """
    return OptionalTable(TABLE, "event_counts", asked, MOST_ROWS, (pairs,))


def chosen_threshold(tables: Mapping[str, pl.DataFrame], criterion: str | None = None) -> float | None:
    """The threshold of a criterion, or of the first, for the total; None without a total, or where none was reached."""
    points = tables["before_after_operating_points"].filter(pl.col(GROUPING.name) == "all")
    points = points if criterion is None else points.filter(pl.col("criterion") == criterion)
    threshold = points[THRESHOLD][0] if not points.is_empty() else None
    return float(threshold) if threshold is not None else None


def _frames(compared: Compared, bounds: Mapping[str, float]) -> dict[str, exp.Query]:
    if compared == "pairs":
        return {"pairs": statement("before_after/pairs_per_event", values=bounds)}
    if compared == "events":
        return {"events": events_of_timeline(("event_id", *N_COLUMNS))}
    return {"events": events_of_timeline(("event_id", "event_time")), "articles": articles_of_timeline()}


def _compared(frames: Mapping[str, pl.DataFrame], span: Span | None) -> pl.DataFrame:
    """n_before and n_after of every event."""
    if span is None or "articles" not in frames:
        return frames["pairs"] if "pairs" in frames else frames["events"]
    events = frames["events"]
    counts = counts_around(
        events["event_time"].to_numpy(), np.sort(frames["articles"]["article_time"].to_numpy()), span
    )
    return events.select("event_id").with_columns(pl.Series(name, counts[name]) for name in N_COLUMNS)
