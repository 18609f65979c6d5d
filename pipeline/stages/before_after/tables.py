"""Result tables of before_after and their columns, and counts per event, in which two matchers are compared."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

import numpy as np
import polars as pl

from ...errors import DataError
from ...metrics.before_after.formulas import PAGE, SHOWN
from ...metrics.before_after.timelines import counts_around
from ...metrics.curves.operating_points import cost_column
from ...metrics.uncertainty.interval_quality import DESIGN_EFFECT, N_CLUSTERS, N_EFFECTIVE, QUALITY_COLUMN
from ...plan.nodes import After, Relation
from ...plan.plan import OptionalTable
from ...queries.load import statement
from ...records import dataclass
from ...tables.columns import F1, PRECISION, RECALL, THRESHOLD, as_key, lowest_retrieved
from ...tables.schemas import GROUPING, Column, Table, limits_of, limits_of_share, of_chosen_row
from ..stage import CLUSTER
from .inputs import N_COLUMNS, articles_of_timeline, events_of_timeline

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import sqlglot.expressions as exp

    from ...metrics.before_after.timelines import Span
    from ...plan import rows
    from ...sources.source import Source
    from ...tables.columns import Boundary
    from .contract import BeforeAfterParameters, Compared


# Result tables of before_after and their columns.


# Columns of the tables of before_after that hold its counts, its estimates and what was chosen from them.


COUNTS = (
    Column("n_before", "BIGINT", "compared pairs before the event, the same at every threshold"),
    Column("n_after", "BIGINT", "compared pairs from the time of the event on, the same at every threshold"),
    Column("m_before", "BIGINT", "matches before the event: pairs at or above the threshold"),
    Column("m_after", "BIGINT", "matches from the time of the event on"),
)
NEAR = (
    Column("n_near", "BIGINT", "compared pairs in the near part of the window before the event; 0 where unknown"),
    Column("m_near", "BIGINT", "matches in the near part of the window before the event"),
)
COUNT_TABLE = (*COUNTS, *NEAR)
COUNT_NAMES = tuple(column.name for column in COUNT_TABLE)

REALISED = "precision_realised"
_REASONS = [f"`{each.reason}`" for each in PAGE if each.reason]
_OF_DATA_SET = "the precision of this data set, of which precision is the estimate too"

ESTIMATES = (
    Column("threshold", "DOUBLE", "score from which a pair counts as a match"),
    *COUNTS,
    *(
        column
        for each in SHOWN
        for column in (*each.columns(), *(limits_of_share(REALISED, _OF_DATA_SET) if each.name == "precision" else ()))
    ),
    Column("is_reference", "BOOLEAN", "whether recall is measured against this threshold"),
    Column(
        "undefined",
        "VARCHAR",
        (f"why the first ratio that is missing is NULL: {', '.join(_REASONS)}; NULL: all ratios are defined"),
        nullable=True,
    ),
    Column(
        "undefined_interval",
        "VARCHAR",
        (
            "why the first interval that is missing is NULL; the [reasons](methods/before_after.md#intervals); NULL: "
            "all intervals are given"
        ),
        nullable=True,
    ),
    QUALITY_COLUMN,
)
CHOSEN = of_chosen_row(ESTIMATES, reasons="`not_reached`")


def _over_kappa(name: str, rule: str) -> tuple[Column, Column]:
    """The lowest and the highest value of a ratio over the plausible ratios of false positive rates."""
    span = f"corrected {name} as the false positive rate after over that before runs from 0.75 to 1.5"
    return (
        Column(f"{name}_over_kappa_lower", "DOUBLE", f"lowest {span}; {rule}", nullable=True),
        Column(f"{name}_over_kappa_upper", "DOUBLE", f"highest {span}; {rule}", nullable=True),
    )


KAPPAS = (
    Column(
        "kappa_vanishing",
        "DOUBLE",
        (
            "false positive rate after the event over that before it at which no true positive is left, m_after"
            " / fp_uncorrected; NULL: not reached, or fpr is 0"
        ),
        nullable=True,
    ),
    Column(
        "kappa_overturning",
        "DOUBLE",
        (
            "the same ratio from which another threshold has an F1 better by over 0.01; 1 where one has it "
            "already; NULL: not reached, no reference, or none up to 100"
        ),
        nullable=True,
    ),
    *_over_kappa("precision", "may be negative; NULL: no reference, no match, or no estimate of the positives"),
    *_over_kappa("recall", "from 0 to 1; NULL: no reference, or no estimate of the positives"),
)
PARENTS = (
    Column(
        N_CLUSTERS,
        "BIGINT",
        (
            "events, clusters or replicates with matches, or days or articles where their effective number is "
            "smaller; NULL: no interval is wanted"
        ),
        nullable=True,
    ),
    Column(
        N_EFFECTIVE,
        "DOUBLE",
        ("(Σ n)² / Σ n² of their matches n: how many of equal size would weigh as much; NULL: no interval is wanted"),
        nullable=True,
    ),
    Column(
        DESIGN_EFFECT,
        "DOUBLE",
        (
            "variance of fpr between events, or over both parents, over that of independent pairs; "
            "NULL: it is not known, or no interval is wanted"
        ),
        nullable=True,
    ),
)
CRITERION = Column(
    "criterion",
    "VARCHAR",
    (
        "what the threshold was chosen for: `max_f1`, `min_precision=0.9`, "
        "`min_precision=0.9,confidence=0.95`, `min_recall=0.8`, `threshold=6.54`, `max_alerts=500`, "
        "`cost=fp:1,fn:20`, …, and always `recall_reference`"
    ),
)
EVENT_COLUMNS = (
    Column("event_id", "KEY", "the event"),
    *COUNTS,
    Column("m_before_reference", "BIGINT", "matches before the event at the recall reference; 0 without one"),
    Column("m_after_reference", "BIGINT", "matches after the event at the recall reference; 0 without one"),
)


# Result tables of before_after.


SENSITIVITY = (
    Column("rule", "VARCHAR", "rule of the recall reference: `lowest` or `max`"),
    Column("min_precision", "DOUBLE", "minimum precision of the recall reference"),
    Column(
        "reference_threshold", "DOUBLE", "the reference under this rule; NULL: no threshold qualifies", nullable=True
    ),
    Column(
        "reference_precision",
        "DOUBLE",
        "estimated precision there; NULL: no threshold qualifies, or as in the estimates",
        nullable=True,
    ),
    Column(
        "reference_tp",
        "DOUBLE",
        "estimated true positives there; NULL: no threshold qualifies, or as in the estimates",
        nullable=True,
    ),
    Column(
        "threshold",
        "DOUBLE",
        "the threshold that the first criterion chose in this run; NULL: the criterion was not reached",
        nullable=True,
    ),
    Column(
        "recall",
        "DOUBLE",
        "recall at that threshold under this reference, at most 1; NULL: as in the estimates",
        nullable=True,
    ),
    Column("f1", "DOUBLE", "F1 at that threshold under this reference; NULL: as in the estimates", nullable=True),
    Column(
        "best_threshold",
        "DOUBLE",
        "the threshold with the best F1 under this reference; NULL: no threshold has an F1",
        nullable=True,
    ),
    Column("best_f1", "DOUBLE", "the best F1 under this reference; NULL: no threshold has an F1", nullable=True),
)
PLACEBO = (
    Column("threshold", "DOUBLE", "score from which a pair counts as a match; NULL: in the joint test", nullable=True),
    Column("n_far", "BIGINT", "compared pairs in the far part of the window before the event; 0 where not compared"),
    Column("n_near", "BIGINT", "compared pairs in the near part of the window before the event; 0 where not compared"),
    Column("m_far", "BIGINT", "matches in the far part; NULL: in the joint test", nullable=True),
    Column("m_near", "BIGINT", "matches in the near part; NULL: in the joint test", nullable=True),
    Column(
        "log_rate_ratio",
        "DOUBLE",
        (
            "natural logarithm of the match rate in the near part over that in the far part; NULL: in the joint"
            " test, or a part has no match"
        ),
        nullable=True,
    ),
    Column(
        "log_rate_ratio_lower",
        "DOUBLE",
        "lower limit of log_rate_ratio; NULL: in the joint test, no match in the near part, or no limit",
        nullable=True,
    ),
    Column(
        "log_rate_ratio_upper",
        "DOUBLE",
        "upper limit of log_rate_ratio; NULL: in the joint test, no match in the far part, or no limit",
        nullable=True,
    ),
    Column("p_value", "DOUBLE", "two-sided p-value of equal rates; NULL: where no test can be made", nullable=True),
    Column(
        "precision_far",
        "DOUBLE",
        (
            "precision if the far part alone gave the false positive rate, as with a gap as long as the near "
            "part; NULL: joint test, or no match after"
        ),
        nullable=True,
    ),
    Column(
        "precision_near",
        "DOUBLE",
        "precision if the near part alone gave the false positive rate; NULL: joint test, or no match after",
        nullable=True,
    ),
    Column("undefined", "VARCHAR", "why p_value is NULL; NULL: `p_value` is given", nullable=True),
    QUALITY_COLUMN,
)
LAGS = (
    Column("threshold", "DOUBLE", "score from which a pair counts as a match"),
    Column(
        "lag_days",
        "BIGINT",
        ("whole days from the event to the article, rounded down: 0 is the first day after, -1 the last before"),
    ),
    Column("matches", "BIGINT", "pairs at or above the threshold on that day"),
)
ADJUSTED = (
    Column("threshold", "DOUBLE", "score from which a pair counts as a match"),
    Column("n_strata", "BIGINT", "strata with compared pairs"),
    Column("n_after_unsupported", "BIGINT", "compared pairs after the event in strata without a pair before it"),
    Column(
        "fpr_adjusted",
        "DOUBLE",
        "false positive rate standardised to the strata of the pairs after the event; NULL: see `undefined`",
        nullable=True,
    ),
    *limits_of_share("fpr_adjusted", "fpr_adjusted"),
    Column(
        "fp_adjusted",
        "DOUBLE",
        (
            "estimated false positives after the event: fpr_adjusted × the estimated number of negatives there;"
            " NULL: see `undefined`"
        ),
        nullable=True,
    ),
    Column(
        "precision_adjusted",
        "DOUBLE",
        "(m_after − fp_adjusted) / m_after; may be negative; NULL: see `undefined`",
        nullable=True,
    ),
    *limits_of_share("precision_adjusted", "the precision to expect of new events, adjusted"),
    Column(
        "recall_adjusted",
        "DOUBLE",
        ("recall with fp_adjusted, at most 1, at the reference threshold of the estimates; NULL: see `undefined`"),
        nullable=True,
    ),
    Column("f1_adjusted", "DOUBLE", "f1 with fp_adjusted; NULL: see `undefined`", nullable=True),
    Column(
        "undefined",
        "VARCHAR",
        (
            "why the first ratio that is missing is NULL: `unsupported_stratum`, or the "
            "[reasons](methods/before_after.md#edge-cases-and-the-column-undefined) of the estimates; NULL: all ratios "
            "are defined"
        ),
        nullable=True,
    ),
    Column(
        "undefined_interval",
        "VARCHAR",
        (
            "why an interval is NULL: `unsupported_stratum`, `thin_stratum`, or the "
            "[reasons](methods/before_after.md#intervals) of the estimates; NULL: both are given"
        ),
        nullable=True,
    ),
    QUALITY_COLUMN,
)
TREND = (
    Column("threshold", "DOUBLE", "score from which a pair counts as a match"),
    Column(
        "n_days",
        "BIGINT",
        (
            "days before the event with compared pairs; a day that the window cuts counts; NULL: the compared "
            "pairs of a day are not known"
        ),
        nullable=True,
    ),
    Column("matches", "BIGINT", "pairs at or above the threshold before the event"),
    Column(
        "slope",
        "DOUBLE",
        (
            "change of the natural logarithm of the match rate per day towards the event; 0.1 means 10.5% more "
            "a day; NULL: see `undefined`"
        ),
        nullable=True,
    ),
    *limits_of("slope", "slope"),
    Column("p_value", "DOUBLE", "two-sided p-value of no trend; NULL: see `undefined`", nullable=True),
    Column(
        "undefined",
        "VARCHAR",
        (
            "why slope or p_value is NULL: `unknown_pairs`, `no_before`, `one_day`, `no_match`, "
            "`few_replicates`, `unbounded`, `none`; NULL: both are given"
        ),
        nullable=True,
    ),
    QUALITY_COLUMN,
)
GOLD_COLUMNS = (
    Column("threshold", "DOUBLE", "score from which a pair counts as a match"),
    Column("level", "VARCHAR", "`match`: event-article pairs; `article`: articles with any match"),
    Column("tp", "BIGINT", "retrieved and gold"),
    Column("fp", "BIGINT", "retrieved but not gold, among the coded articles"),
    Column("fn", "BIGINT", "gold but not retrieved, whether the matcher stored the pair or not"),
    PRECISION.column(),
    RECALL.column(null="no gold"),
    F1.column(null="neither retrieved nor gold"),
    Column(
        "precision_difference",
        "DOUBLE",
        (
            "estimated precision minus that of the gold pairs; NULL: level `article`, without replicates, or "
            "one is undefined"
        ),
        nullable=True,
    ),
    *limits_of("precision_difference", "precision_difference"),
    Column(
        "undefined",
        "VARCHAR",
        "why a ratio is NULL: `no_prediction` or `no_positive`; NULL: all ratios are defined",
        nullable=True,
    ),
    QUALITY_COLUMN,
)
AUDIT_SAMPLE = (
    Column("draw", "BIGINT", "place in the order of draws, from 1; the first k draws are a sample of size k"),
    Column("event_id", "KEY", "the event"),
    Column("article_id", "KEY", "the article"),
    Column("score", "DOUBLE", "score of the match"),
    Column("lag_hours", "DOUBLE", "article time minus event time, in hours"),
)
AUDIT = (
    Column("threshold", "DOUBLE", "score from which a pair counts as a match, that of the audit or higher"),
    Column("n_audited", "BIGINT", "checked matches at or above the threshold"),
    Column("n_right", "BIGINT", "those of them that are right"),
    Column(
        "precision_audited",
        "DOUBLE",
        "n_right / n_audited, or what a sheet says by how it was drawn; NULL: no checked match",
        nullable=True,
    ),
    *limits_of_share("precision_audited", "the precision of this data set, from the checked matches"),
    Column(
        "precision",
        "DOUBLE",
        "the estimate without labels, as in `before_after_estimates`; NULL: as in the estimates",
        nullable=True,
    ),
    Column(
        "precision_combined",
        "DOUBLE",
        (
            "the precision of this data set, from the checked matches and the matches before the event; NULL: "
            "see `undefined`"
        ),
        nullable=True,
    ),
    *limits_of_share("precision_combined", "precision_combined"),
    *limits_of("kappa", "the ratio of false positive rates, after over before, that precision_combined allows for"),
    Column(
        "p_value",
        "DOUBLE",
        (
            "two-sided p-value that the checked matches fit the matches before the event, the rates being "
            "equal; NULL: see `undefined`"
        ),
        nullable=True,
    ),
    Column(
        "undefined",
        "VARCHAR",
        (
            "why a precision is NULL: `no_audit`: no checked match; the combination only: `none`, `budget`, "
            "`no_near`, `all_positive`; NULL: all are given"
        ),
        nullable=True,
    ),
    QUALITY_COLUMN,
)
TABLES = (
    Table("before_after_estimates", "one row per group and threshold", ESTIMATES, ("threshold",)),
    Table(
        "before_after_operating_points",
        "one row per group and criterion",
        (CRITERION, *CHOSEN, *KAPPAS, *PARENTS),
        ("criterion",),
    ),
    Table(
        "before_after_sensitivity",
        "one row per group, rule and minimum precision of the recall reference",
        SENSITIVITY,
        ("rule", "min_precision"),
    ),
    Table(
        "before_after_placebo",
        "one row per group and threshold, and one with a NULL threshold for the joint test",
        PLACEBO,
        ("threshold",),
    ),
    Table("before_after_adjusted", "one row per group and threshold, with strata", ADJUSTED, ("threshold",)),
    Table("before_after_lags", "one row per group, threshold and day", LAGS, ("threshold", "lag_days")),
    Table("before_after_trend", "one row per group and threshold of lag_thresholds", TREND, ("threshold",)),
    Table("before_after_events", "one row per event, at the chosen threshold", EVENT_COLUMNS, ("event_id",)),
    Table("before_after_audit_sample", "one row per drawn match", AUDIT_SAMPLE, ("draw",)),
    Table("before_after_audit", "one row per group and threshold, with labels", AUDIT, ("threshold",)),
    Table("before_after_gold", "one row per group, threshold and level", GOLD_COLUMNS, ("threshold", "level")),
)


def further_columns(params: BeforeAfterParameters) -> dict[str, tuple[Column, ...]]:
    """The columns that tables have because of costs and clusters."""
    cluster = Column(CLUSTER, "KEY", "the cluster of the event")
    return {
        "before_after_operating_points": cost_column(params.operating_points),
        "before_after_events": () if params.cluster_column is None else (cluster,),
    }


# Counts per event at the chosen threshold: the units in which two matchers are compared.


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
