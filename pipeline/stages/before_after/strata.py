"""Strata: what the false positive rate is adjusted for, where their values come from, and what they need counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import sqlglot.expressions as exp

from ...errors import ConfigError, DataError
from ...metrics.before_after.sensitivity import (
    ADJUSTED_NAMES,
    Standardised,
    Stratum,
    adjusted_intervals,
    adjusted_sums,
    standardise,
)
from ...metrics.uncertainty.limits import Interval, with_quality
from ...plan import rows
from ...plan.counts import CountFunction, Query, Sweep
from ...plan.nodes import Relation
from ...plan.plan import Plan
from ...queries.dialect import column
from ...queries.load import statement
from ...records import dataclass
from ...tables.columns import REPLICATE, THRESHOLD, add_up, by_group, doubles, texts
from ...tables.schemas import GROUPING
from . import uncertainty
from .inputs import N_COLUMNS, TimedBy, time_of_article, timeline_counts
from .uncertainty import MATCHES, groups_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from ...metrics.before_after.timelines import Span
    from ...metrics.uncertainty.cube import Cube
    from ...metrics.uncertainty.interval_quality import Reason
    from ...metrics.uncertainty.jackknife import Floats
    from ...sources.bins import Grid
    from ...sources.source import Source
    from .contract import BeforeAfterParameters, Compared
    from .tables import Matchers
    from .uncertainty import EstimatedGroup


OF_TIME = ("weekday", "hour", "volume")
KEYS = ("event_stratum", "article_stratum")
COLUMNS = (*N_COLUMNS, "m_before")
COUNTED = "strata"
USED_PAIRS_OF_STRATA = "used_pairs_of_strata"
VALUES_OF_TIME = {"weekday": "weekday", "hour": "hour_of_day", "volume": "volume"}  # columns of the queries


@dataclass(frozen=True)
class Strata:
    """The strata of a run.

    Attributes:
        columns: Those that are columns of an input.
        of_time: Those that are computed of the time of the article.
        timed_by: Where the time of the article of a pair comes from: the row of `articles`, the pair itself, or the
            time of the event and the lag; None: it is not needed.
    """

    columns: tuple[rows.Grouped, ...]
    of_time: tuple[str, ...]
    timed_by: TimedBy | None

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self.columns or self.of_time)

    def relations(
        self, compared: Compared, by: Sequence[rows.Grouped], columns_of_matchers: Sequence[str]
    ) -> Iterator[Relation]:
        """How busy the days are, pairs and articles with their dates, and the events with their stratum.

        Args:
            compared: Where the numbers of compared pairs come from.
            by: The grouping columns and those of the strata.
            columns_of_matchers: The grouping columns that name the matcher.
        """
        names = {source: [each.name for each in by if each.source == source] for source in ("events", "articles")}
        if self.of_time:
            volumes = "volumes" if "volume" in self.of_time else "no_volumes"
            yield Relation("volumes", statement(f"before_after/{volumes}"), keep=True)
            columns = [*(grouped.name for grouped in by), REPLICATE, "score", "lag"]
            yield _with_dates("dated_pairs", USED_PAIRS_OF_STRATA, columns, time_of_article(self.timed_by))
        if self.of_time and compared == "timelines":
            columns = [*names["articles"], "article_time"]
            yield _with_dates("dated_articles", "articles", columns, column("article_time"))
        if compared == "events":
            columns = [*names["events"], *columns_of_matchers]
            yield Relation("events_of_strata", self._labelled("events_of_strata", columns))

    def events(self, columns: Sequence[str]) -> exp.Query:
        """Events with their times, their stratum and some of their columns."""
        return self._labelled("timeline_of_events_by_stratum", columns)

    def articles(self, columns: Sequence[str]) -> exp.Query:
        """Articles with their times, their stratum and some of their columns."""
        relations = {"articles": "dated_articles"} if self.of_time else {}
        return self._labelled("timeline_of_articles_by_stratum", columns, relations, ("articles",))

    def pairs(self, columns: Sequence[str]) -> exp.Query:
        """Pairs with both strata and some of their columns."""
        relations = {"used_pairs": "dated_pairs" if self.of_time else USED_PAIRS_OF_STRATA}
        return self._labelled("pairs_of_strata", columns, relations, ("articles", "pairs"))

    def _labelled(
        self,
        file: str,
        columns: Sequence[str],
        relations: Mapping[str, str] | None = None,
        of_others: Sequence[str] = (),
    ) -> exp.Query:
        """Rows with the texts of their values: those of the event, and those of inputs other than events."""
        events = [column(grouped.name) for grouped in self.columns if grouped.source == "events"]
        of_articles = [column(grouped.name) for grouped in self.columns if grouped.source in of_others]
        times = [column(VALUES_OF_TIME[name]) for name in self.of_time]
        labels = {"event_label": _text(events), "article_label": _text([*of_articles, *times])}
        return statement(f"before_after/{file}", columns, relations=relations, columns=labels)


def _with_dates(name: str, relation: str, columns: Sequence[str], time: exp.Expr) -> Relation:
    """Some columns of a relation, with the weekday, the hour and how busy the day is of a time in microseconds."""
    relations, times = {"timed_rows": relation}, {"time_of_article": time}
    return Relation(name, statement("before_after/with_dates", columns, relations=relations, columns=times))


def _text(values: Sequence[exp.Expr]) -> exp.Expr:
    """One text for several values, different for different values: each with its length in front, NULL as a dash."""
    text: exp.Expr = exp.Literal.string("")
    for value in values:
        written = exp.cast(value.copy(), "VARCHAR")
        length = exp.cast(exp.func("length", written.copy()), "VARCHAR")
        with_length = exp.DPipe(this=exp.DPipe(this=length, expression=exp.Literal.string(":")), expression=written)
        label = exp.Case().when(value.is_(exp.null()), exp.Literal.string("-")).else_(with_length)
        text = exp.DPipe(this=text, expression=label)
    return text


def resolve(names: Sequence[str], sources: Mapping[str, Source], compared: Compared) -> Strata:
    """Find where the strata come from.

    Args:
        names: As in the config.
        sources: The inputs that may have columns of strata, the primary input first.
        compared: Where the numbers of compared pairs come from.

    Raises:
        ConfigError: the compared pairs are not known for such strata.
        DataError: an input lacks a column.
    """
    of_time = tuple(name for name in OF_TIME if name in names)
    plain = [name for name in names if name not in OF_TIME]
    columns = rows.resolve_by([plain], list(sources.values()), key="strata")
    _check_known(columns, of_time, compared)
    if "volume" in of_time and not _has(sources, "articles", "article_time"):
        message = 'strata: "volume" needs the input articles with article_time'
        raise DataError(message, remedy="Give the articles, or leave volume out.")
    keyed = _has(sources, "articles", "article_id") and _has(sources, "pairs", "article_id")
    if any(each.source == "articles" for each in columns) and not keyed:
        message = "strata of articles need article_id in pairs and in articles"
        raise DataError(message, remedy="Map article_id in both.")
    return Strata(columns, of_time, _timed_by(sources, keyed=keyed) if of_time else None)


def _check_known(columns: Sequence[rows.Grouped], of_time: Sequence[str], compared: Compared) -> None:
    allowed = {"events": ("events",), "timelines": ("events", "articles"), "pairs": ("events", "articles", "pairs")}
    refused = [
        f"{each.label!r} is a column of {each.source}" for each in columns if each.source not in allowed[compared]
    ]
    refused += [f"{name!r} is one of articles" for name in of_time if compared == "events"]
    if refused:
        where = "given per event" if compared == "events" else "counted from events and articles"
        message = f"strata: {refused[0]}, but the compared pairs are {where}"
        instead = '"timelines" or "pairs"' if compared == "events" else '"pairs"'
        raise ConfigError(message, remedy=f"Use compared = {instead} if the data allow it, or other strata.")


def _has(sources: Mapping[str, Source], name: str, field: str) -> bool:
    return name in sources and sources[name].has(field)


def _timed_by(sources: Mapping[str, Source], *, keyed: bool) -> TimedBy:
    if keyed and _has(sources, "articles", "article_time"):
        return "articles"
    if _has(sources, "pairs", "article_time"):
        return "pairs"
    if _has(sources, "events", "event_time"):
        return "events"
    message = "strata: the times of the articles are not known"
    raise DataError(
        message,
        remedy="Give articles with article_id and article_time, or article_time in pairs, or event_time in events.",
    )


def plan(
    strata: Strata,
    by: Sequence[rows.Grouped],
    compared: Compared,
    matchers: Matchers,
    grid: Grid | None,
    bounds: Mapping[str, float],
    span: Span | None,
    *,
    missed: bool,
) -> Plan:
    """Matches and compared pairs by stratum.

    Args:
        strata: The strata.
        by: The grouping columns and those of the strata.
        compared: Where the numbers of compared pairs come from.
        matchers: Who compared them.
        grid: The thresholds.
        bounds: Which lags lie before and after the event.
        span: The window, for timelines.
        missed: Whether pairs without a score count, below every threshold.
    """
    sweep = Sweep("pairs_of_strata", strata.pairs([grouped.name for grouped in by]), "score", grid, missed=missed)
    before = {name: bounds[name] for name in ("before_start", "before_end")}
    matches = Query("before_after/matches_by_stratum", before, COLUMNS, KEYS, sweep, COUNTED)
    pairs: Query | CountFunction = Query("before_after/compared_by_stratum", {}, COLUMNS, KEYS, into=COUNTED)
    if compared == "pairs":
        pairs = Query("before_after/pairs_by_stratum", dict(bounds), COLUMNS, KEYS, into=COUNTED)
    elif span is not None:
        # compared pairs by stratum, where events and articles have their times
        def compute(frames: Mapping[str, pl.DataFrame], segment: Sequence[str]) -> pl.DataFrame:
            keys = [*matchers.known(segment), *KEYS]
            counted = timeline_counts(frames["events"], frames["articles"], span, keys, N_COLUMNS)
            return matchers.repeated(counted, frames, segment)

        names = {source: [each.name for each in by if each.source == source] for source in ("events", "articles")}
        reads = {"events": strata.events(names["events"]), "articles": strata.articles(names["articles"])}
        reads |= matchers.frames()
        pairs = CountFunction("before_after/timelines_by_stratum", reads, compute, COLUMNS, KEYS, COUNTED)
    return Plan((*strata.relations(compared, by, matchers.columns), matches, pairs))


# Estimates with a false positive rate that is adjusted for strata: the table `before_after_adjusted`.


TABLE = "before_after_adjusted"
COUNTS = ("n_strata", "n_after_unsupported")
RATIOS = ("fpr", "fp", "precision", "recall", "f1")
VALUES = (
    *("fpr_adjusted", "fpr_adjusted_lower", "fpr_adjusted_upper", "fp_adjusted", "precision_adjusted"),
    *("precision_adjusted_lower", "precision_adjusted_upper", "recall_adjusted", "f1_adjusted"),
)
ADJUSTED = ("fpr_adjusted", "precision_adjusted")
REASONS = ("undefined", "undefined_interval")
WORDS = ("pairs before", "pairs after", "scored pairs before")


def table(
    curve: pl.DataFrame, counts: Mapping[str, pl.DataFrame], cube: Cube, params: BeforeAfterParameters
) -> pl.DataFrame:
    """The table `before_after_adjusted`; without strata it has no row.

    Args:
        curve: Estimates, one row per group × threshold.
        counts: The count tables, `counts` and `strata` among them.
        cube: The counts of `counts`.
        params: The parameters of the stage.

    Raises:
        DataError: the strata do not hold the pairs that the estimates hold.
    """
    keys = list(cube.keys)
    _check_complete(counts, keys)
    strata = by_group(counts[COUNTED], keys)
    groups = ((group, group.rows.select(keys).row(0)) for group in groups_of(curve, cube))
    frames = [_group(group, strata.get(key, counts[COUNTED].clear()), params) for group, key in groups]
    table = pl.concat([frame.select(*keys, THRESHOLD, *COUNTS, *VALUES, *REASONS, *MATCHES) for frame in frames])
    parents = uncertainty.clusters(cube, params, crossed=False)
    return with_quality(table, ADJUSTED, clusters=parents, keys=keys, events=MATCHES).drop(MATCHES)


def _check_complete(counts: Mapping[str, pl.DataFrame], keys: Sequence[str]) -> None:
    """Every pair of the estimates must lie in a stratum, and a stratum cannot have more matches than pairs."""
    names = ["n_before", "n_after", "m_before"]
    pairs = add_up(counts["counts"], keys, names)
    strata = add_up(counts[COUNTED], keys, names)
    both = pairs.join(strata, on=list(keys), how="left", nulls_equal=True, suffix="_strata").sort(keys)
    for name, words in zip(names, WORDS, strict=True):
        odd = both.filter(pl.col(name) != pl.col(f"{name}_strata").fill_null(0))
        if not odd.is_empty():
            row = odd.row(0, named=True)
            message = (
                f"strata: only {row[f'{name}_strata'] or 0:,} of {row[name]:,} {words} the event have an article that "
                f"is listed in articles ({row[GROUPING.name]})"
            )
            raise DataError(message, remedy="List every article of pairs, or stratify by columns of events.")
    by_stratum = add_up(counts[COUNTED], [*keys, *KEYS], names)
    if not by_stratum.filter(pl.col("m_before") > pl.col("n_before")).is_empty():
        message = "strata: a stratum has more matches than compared pairs before the event"
        raise DataError(message, remedy="The lags of pairs do not fit the times of events and articles: check these.")


def _group(group: EstimatedGroup, strata: pl.DataFrame, params: BeforeAfterParameters) -> pl.DataFrame:
    """The rows of one group."""
    _, m_after, n_before, n_after = group.sides
    used = n_before + n_after > 0
    standardised = standardise(_strata(group, strata, used), int(used.sum()), group.rows.height)
    intervals = _intervals(standardised, group, used, params)
    counts = [np.atleast_1d(column.sum(axis=0)).astype(np.float64) for column in (m_after, n_before, n_after)]
    values, reason = _estimates(standardised, counts, group.reference, params.recall_reference.middle)
    for name, interval in intervals.items():  # rounding apart, an interval holds its estimate
        estimate = values[f"{name}_adjusted"]
        values[f"{name}_adjusted_lower"] = np.minimum(interval.lower, estimate)
        values[f"{name}_adjusted_upper"] = np.maximum(interval.upper, estimate)
    first = (a or b for a, b in zip(intervals["fpr"].reason, intervals["precision"].reason, strict=True))
    return group.rows.with_columns(
        pl.lit(standardised.n_strata, dtype=pl.Int64).alias("n_strata"),
        pl.lit(standardised.n_unsupported, dtype=pl.Int64).alias("n_after_unsupported"),
        *(doubles(name, values[name]) for name in VALUES),
        texts("undefined", reason),
        texts("undefined_interval", first),
    )


def _strata(group: EstimatedGroup, strata: pl.DataFrame, used: NDArray[np.bool_]) -> Iterator[Stratum]:
    """The strata of a group in a fixed order, with the replicates that have data."""
    for stratum in strata.sort(KEYS).partition_by(KEYS, maintain_order=True):
        counts = group.counts.with_counts(stratum)
        n_before, n_after = (counts.totals(name)[used] for name in ("n_before", "n_after"))
        yield Stratum(counts.at_or_above("m_before")[used], n_before, n_after)


def _intervals(
    standardised: Standardised, group: EstimatedGroup, used: NDArray[np.bool_], params: BeforeAfterParameters
) -> dict[str, Interval]:
    if params.uncertainty == "none" or not group.counts.within_budget:
        reason: Reason = "none" if params.uncertainty == "none" else "budget"
        return dict.fromkeys(ADJUSTED_NAMES, Interval.none(group.rows.height, reason))
    _, m_after, n_before, n_after = group.sides
    return adjusted_intervals(
        standardised,
        m_after[used],
        n_before[used],
        n_after[used],
        reference=group.reference,
        confidence=params.confidence,
        reference_recalls=params.recall_reference.recalls,
        choice=params.recall_reference.choice,
    )


@np.errstate(divide="ignore", invalid="ignore")
def _estimates(
    standardised: Standardised, counts: Sequence[Floats], reference: int | None, reference_recall: float
) -> tuple[dict[str, Floats], NDArray[np.object_]]:
    """The ratios, by the null rules of the plain estimates, and why the first of them is missing.

    Args:
        standardised: The false positives, if all pairs after the event were negative.
        counts: M_a, N_b and N_a.
        reference: Index of the recall reference.
        reference_recall: What recall is believed to be there.
    """
    is_supported = bool(counts[1] > 0) and not standardised.n_unsupported
    fp = standardised.fp if is_supported else np.full_like(standardised.fp, np.nan)
    sums = adjusted_sums(fp, counts, reference, reference_recall)
    identified = (sums.tp_reference > 0) & sums.is_possible
    tp = np.where(identified, sums.tp_corrected, np.nan)
    found = np.where(tp >= 0, tp, np.nan)
    recall = np.minimum(found / sums.positives, 1.0)
    f1 = 2 * found / (sums.m_after + np.maximum(found, sums.positives))
    values = (sums.fpr, sums.m_after - tp, tp / sums.m_after, recall, f1)
    reasons = {
        "unsupported_stratum" if counts[1] > 0 else "no_before": not is_supported,
        "no_prediction": sums.m_after == 0,
        "no_reference": ~(sums.tp_reference > 0),
        "unidentified": ~(sums.gap > 0),
        "all_positive": ~sums.is_possible,
        "negative_tp": tp < 0,
    }
    reason = np.full(len(fp), None, dtype=object)
    for name, holds in reversed(reasons.items()):
        reason[np.broadcast_to(holds, len(fp))] = name
    named = {
        f"{name}_adjusted": np.where(np.isfinite(of_name), of_name, np.nan)
        for name, of_name in zip(RATIOS, values, strict=True)
    }
    return named, reason
