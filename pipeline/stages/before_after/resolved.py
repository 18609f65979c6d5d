"""What the inputs and the parameters of a run say together: where each thing comes from that counting needs."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from ...errors import ConfigError
from ...plan import rows
from ...records import dataclass
from ..durations import EVERYTHING
from . import audit, faults, lags
from .compared import check_grouping, has, resolve_compared
from .crossing import Crossing, choose_parent
from .matchers import Matchers
from .pairs import PAIR
from .strata import resolve as resolve_strata
from .timelines import N_COLUMNS
from .units import table_of_events

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ...metrics.before_after.timelines import Span
    from ...plan.optional_tables import OptionalTable
    from ...sources.source import Source
    from .contract import BeforeAfterParameters, Compared, Parent
    from .lags import Lag
    from .pairs import TimedBy
    from .strata import Strata

ENDS_OF_WINDOW = ("before_start", "before_end", "after_start", "after_end")


@dataclass(frozen=True)
class Resolved:
    """The parameters and inputs of a run, and what follows from both; each is resolved when it is first asked for.

    Attributes:
        params: The parameters.
        pairs: The primary input.
        events: The events, if they are an input.
        articles: The articles, if they are an input.
        gold: The gold pairs, if they are an input.
        coded: The input `gold_articles`, if there is one.
        audited: The labels of an earlier sample, if they are an input.
    """

    params: BeforeAfterParameters
    pairs: Source
    events: Source | None
    articles: Source | None
    gold: Source | None
    coded: Source | None
    audited: Source | None

    def check(self) -> None:
        """Refuse inputs and parameters that do not fit each other.

        Raises:
            DataError: an input lacks what the parameters need.
            ConfigError: the parameters do not fit each other.
        """
        by = self.by
        for key in PAIR:
            rows.check_keys(self.sources, key)
        if self.coded is not None and self.gold is None:
            message = "gold_articles goes with gold: without gold pairs nothing can be judged"
            raise ConfigError(message, remedy="Give the gold pairs, or leave gold_articles out.")
        audit.check_inputs(self.params, self.pairs, self.audited)
        check_grouping(self.compared, by)
        self.matchers.check({"audit": self.params.audit is not None})
        faults.check_zones(self.sources)

    @cached_property
    def by(self) -> tuple[rows.Grouped, ...]:
        """The grouping columns, of pairs, events or articles."""
        n_sources = 1 + sum(source is not None for source in (self.events, self.articles))
        return rows.resolve_by(self.params.by, self.sources[:n_sources])

    @cached_property
    def compared(self) -> Compared:
        """Where the numbers of compared pairs come from."""
        return resolve_compared(self.params, self.events, self.articles)

    @cached_property
    def matchers(self) -> Matchers:
        """The grouping columns that name the matcher."""
        return Matchers.of(self.by, self.compared)

    @cached_property
    def strata(self) -> Strata:
        """What the false positive rate is adjusted for."""
        sources = (source for source in (self.pairs, self.events, self.articles) if source is not None)
        return resolve_strata(self.params.strata, {source.name: source for source in sources}, self.compared)

    @cached_property
    def groups_and_strata(self) -> tuple[rows.Grouped, ...]:
        """The grouping columns and those of the strata, each once."""
        return tuple(dict.fromkeys((*self.by, *self.strata.columns)))

    @cached_property
    def lag(self) -> Lag:
        """How the lag of a pair is known."""
        return lags.resolve(self.pairs, self.events, self.articles)

    @cached_property
    def units(self) -> rows.Units:
        """The events, or the clusters that they lie in."""
        has_times = self.has_timelines or self.strata.timed_by == "events" or has(self.events, "event_time")
        return rows.Units(
            "events",
            "event_id",
            fields=(*(N_COLUMNS if self.compared == "events" else ()), *(("event_time",) if has_times else ())),
            cluster=self.params.cluster_column,
            replicated=self.params.is_replicated,
            replicates=self.params.n_replicates,
        )

    @cached_property
    def crossing(self) -> Crossing | None:
        """The second parent of the pairs; None: intervals treat events, or their clusters, as the only parent.

        Raises:
            DataError: the config names a parent whose numbers of compared pairs are not known.
        """
        wanted = self.params.second_parent
        if not self.units.replicated or wanted is None:
            return None
        parent = choose_parent(wanted, self.lacking)
        return None if parent is None else Crossing(parent, self._timed_by if parent == "day" else None, self.compared)

    @cached_property
    def lacking(self) -> dict[Parent, str]:
        """Of every second parent, what would make its numbers of compared pairs known, in words; empty: they are."""
        are_rows = self.compared == "pairs"
        of_timelines = [] if are_rows or self.has_timelines else list(self._lacking_of_timelines())
        of_day, of_article = list(of_timelines), list(of_timelines)
        if self._timed_by is None and (not of_timelines or self.lag.column == "lag_days"):
            of_day.append("article_time in pairs")
        if not self.pairs.has("article_id"):
            of_article.insert(0, "article_id in pairs")
        if not are_rows and not has(self.articles, "article_id"):
            of_article.append("article_id in articles")
        every_pair = ", or every compared pair with its times" if of_timelines else ""
        other = ", or article_id in pairs" if are_rows and of_article else ""
        return {
            "day": f"{_listed(of_day)}{every_pair}{other}" if of_day else "",
            "article_id": f"{_listed(of_article)}{every_pair}" if of_article else "",
        }

    def _lacking_of_timelines(self) -> Iterator[str]:
        """What timelines need and the run does not have."""
        if self.params.window is None:
            yield "the window"
        if not has(self.events, "event_time"):
            yield "events with event_time"
        if not has(self.articles, "article_time"):
            yield "articles with article_time"

    @property
    def _timed_by(self) -> TimedBy | None:
        """Where the time of the article of a pair comes from; None: it is not known to the day.

        A lag in days cannot tell it: rounded, it puts most articles on a day beside their own.
        """
        if self.pairs.has("article_time"):
            return "pairs"
        if self.names_articles and has(self.articles, "article_time"):
            return "articles"
        return "events" if has(self.events, "event_time") and self.lag.column != "lag_days" else None

    @property
    def independent(self) -> str:
        """What is independent, in words: events, or their clusters, and the second parent of pairs."""
        second = [] if self.crossing is None else [self.crossing.parent]
        return " and ".join([self.params.first_cluster or "event_id", *second])

    @property
    def sources(self) -> tuple[Source, ...]:
        """The inputs of the run, the primary input first."""
        inputs = (self.pairs, self.events, self.articles, self.gold, self.coded, self.audited)
        return tuple(source for source in inputs if source is not None)

    @property
    def bounds(self) -> dict[str, float]:
        """Parameters of the queries: which lags lie before and after."""
        return EVERYTHING if self.params.window is None else self.params.window.bounds()

    @property
    def ends_of_window(self) -> dict[str, float]:
        """Those of `bounds` that tell which pairs lie in the window."""
        return {name: self.bounds[name] for name in ENDS_OF_WINDOW}

    @property
    def counts_missed(self) -> bool:
        """Whether pairs without a score count: where compared pairs are rows; elsewhere they never match."""
        return self.params.counts_missed and self.compared == "pairs"

    @property
    def has_timelines(self) -> bool:
        """Whether there is a window, and events and articles have their times."""
        return self.params.window is not None and has(self.events, "event_time") and has(self.articles, "article_time")

    @property
    def names_articles(self) -> bool:
        """Whether pairs and articles have the key of the articles."""
        return self.pairs.has("article_id") and has(self.articles, "article_id")

    @property
    def groups_by_articles(self) -> bool:
        """Whether a grouping column is one of articles."""
        return any(grouped.source == "articles" for grouped in self.by)

    @property
    def table_of_events(self) -> OptionalTable:
        """When counts per event are made."""
        return table_of_events(self.pairs, asked=self.params.event_counts)

    def span(self) -> Span:
        """The window in microseconds.

        Raises:
            ConfigError: there is no window.
        """
        if self.params.window is None:
            message = "a window is required to count articles around events"
            raise ConfigError(message)
        return self.params.window.span()


def _listed(things: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(things[:-1]), things[-1])))
