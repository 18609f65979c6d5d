"""Inputs, parameters and result tables of before_after."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, cast, get_args

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from ...base.columns import Count, Ratio, columns_of
from ...base.schemas import Column, Table, limits_of, limits_of_share, of_chosen_row, unlike_but_for_case
from ...metrics.before_after.estimates import ReferenceRule
from ...metrics.before_after.formulas import PAGE, SHOWN
from ...metrics.before_after.intervals import Choice
from ...metrics.curves.decisions import MAX_DECIMALS
from ...metrics.curves.operating_points import Criterion, cost_columns, each_once
from ...metrics.uncertainty.limits import DESIGN_EFFECT, N_CLUSTERS, N_EFFECTIVE, QUALITY_COLUMN
from ...sources.bindings import KeyMatch
from ...sources.inputs import Field as InputField
from ...sources.inputs import Input, InputContract
from ..parameters import StageParameters, Window, ascending
from ..stage import CLUSTER

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ...sources.source import Source
    from .inputs import Lag


# Inputs.


Fraction = Annotated[float, Field(ge=0, le=1)]
Recall = Annotated[float, Field(gt=0, le=1)]
Parent = Literal["day", "article_id"]  # of a pair, beside its event
Compared = Literal["events", "timelines", "pairs"]

N_COLUMNS = ("n_before", "n_after")

PAIRS = InputContract(
    "pairs",
    (
        InputField("event_id", "key", "the event of the pair", required=True),
        InputField("score", "number", "similarity of the pair; higher is more alike", required=True),
        InputField("lag_hours", "number", "article time minus event time, in hours", as_written=True),
        InputField("lag_days", "number", "article time minus event time, in days", as_written=True),
        InputField("event_time", "instant", "when the event happened"),
        InputField("article_time", "instant", "when the article was published"),
        InputField("article_id", "key", "the article of the pair"),
    ),
    "scored event-article pairs",
    required=True,
    evaluated=True,
)
EVENTS = InputContract(
    "events",
    (
        InputField("event_id", "key", "the event", required=True),
        InputField("event_time", "instant", "when the event happened"),
        InputField("n_before", "integer", "articles compared with the event before it"),
        InputField("n_after", "integer", "articles compared with the event from its moment on"),
        InputField(
            "complete_window", "boolean", "whether articles cover the whole window of the event", mapped_only=True
        ),
    ),
    "one row per event, with its time or its numbers of compared articles",
    evaluated=True,
)
ARTICLES = InputContract(
    "articles",
    (
        InputField("article_id", "key", "the article"),
        InputField("article_time", "instant", "when the article was published"),
    ),
    "one row per article, with its time",
)

GOLD = InputContract(
    "gold",
    (
        InputField("event_id", "key", "the event of a true match", required=True),
        InputField("article_id", "key", "the article of a true match", required=True),
    ),
    "true matches found by people",
    evaluated=True,
    truth_of="pairs",
)
GOLD_ARTICLES = InputContract(
    "gold_articles",
    (InputField("article_id", "key", "an article that was coded", required=True),),
    "articles that people coded, with or without a match",
)
AUDITED = InputContract(
    "audited",
    (
        InputField("event_id", "key", "the event of a checked match", required=True),
        InputField("article_id", "key", "the article of a checked match", required=True),
        InputField("is_match", "boolean", "whether people found it right"),
        InputField("label", "any", "the same in a sheet: true, yes, 1; false, no, 0; empty: nobody has judged it yet"),
        InputField("probability", "number", "share of the matches like it that were drawn, if not all alike"),
        InputField("stratum", "key", "where it was drawn from, as `thresher sample` calls it"),
    ),
    "matches of the audit that people checked: of its sample, or of a sheet that `thresher sample` drew",
)


# Parameters.


class Audit(BaseModel):
    """A random sample of matches for people to check.

    Attributes:
        threshold: Score from which a match after the event can be drawn.
        size: How many are drawn.
        seed: The same seed draws the same matches.
    """

    model_config = ConfigDict(defer_build=True, frozen=True, extra="forbid")

    threshold: float = Field(allow_inf_nan=False)
    size: int = Field(default=200, ge=1, le=1_000_000)
    seed: int = Field(default=1, ge=0, le=2**31 - 1)


class RecallReference(BaseModel):
    """The threshold at which recall is taken as known.

    Attributes:
        rule: `lowest`: the lowest threshold with enough precision; `max`: the one with most true positives among
            those; `fixed`: `threshold`.
        min_precision: Enough precision, at most 9 decimals.
        threshold: The reference of rule `fixed`.
        recall: What recall is believed to be there: a number, or a range [lowest, highest]. The estimates take the
            middle of a range, the intervals hold for all of it.
    """

    model_config = ConfigDict(defer_build=True, frozen=True, extra="forbid")

    rule: ReferenceRule = "lowest"
    min_precision: Fraction = 0.05
    threshold: float | None = Field(default=None, allow_inf_nan=False)
    recall: Recall | tuple[Recall, Recall] = 1.0

    @model_validator(mode="after")
    def _complete(self) -> RecallReference:
        if (self.rule == "fixed") != (self.threshold is not None):
            message = 'threshold goes with rule = "fixed", and only with it'
            raise ValueError(message)
        if round(self.min_precision, MAX_DECIMALS) != self.min_precision:
            message = f"min_precision has more than {MAX_DECIMALS} decimals"
            raise ValueError(message)
        if any(round(value, MAX_DECIMALS) != value for value in self.recalls):
            message = f"recall has more than {MAX_DECIMALS} decimals"
            raise ValueError(message)
        if self.recalls[0] > self.recalls[-1]:
            message = f"recall: give the lowest value of the range first: [{self.recalls[-1]!r}, {self.recalls[0]!r}]"
            raise ValueError(message)
        return self

    @property
    def recalls(self) -> tuple[float, ...]:
        """The number, or both ends of the range."""
        return self.recall if isinstance(self.recall, tuple) else (self.recall,)

    @property
    def middle(self) -> float:
        """The number, or the middle of the range, which the estimates take."""
        return round(sum(self.recalls) / len(self.recalls), MAX_DECIMALS)

    @property
    def choice(self) -> Choice | None:
        """How the reference is chosen; None if it is given."""
        return None if self.rule == "fixed" else Choice(self.rule, self.min_precision)


class BeforeAfterParameters(StageParameters):
    """Parameters of before_after.

    Attributes:
        pairs: Scored event-article pairs.
        events: One row per event, with its time or its numbers of compared articles.
        articles: One row per article, with its time.
        gold: True matches found by people, for a comparison.
        gold_articles: The articles that were coded; only their pairs are judged. Default: those of gold.
        audited: Matches that people checked: of the audit sample, or of a sheet that `thresher sample` drew.
        window: Time around an event; default: every pair counts. Required for timelines.
        compared: Where the numbers of compared pairs come from: `events`: given there; `timelines`: counted from the
            times of events and articles; `pairs`: every compared pair is a row of pairs. Default: the first that the
            inputs allow.
        recall_reference: The threshold at which recall is taken as known.
        strata: What the false positive rate is adjusted for: `weekday`, `hour` or `volume` of the article, or columns.
        lag_thresholds: Thresholds at which matches are counted per day, and a trend before the event is tested.
        audit: A random sample of matches to draw for people to check: `{ threshold = 10.0, size = 200, seed = 1 }`.
        event_counts: Whether to count matches per event at the chosen threshold, which reads pairs once more; `auto`:
            while pairs has at most 10 million rows.
        operating_points: Thresholds to choose: `{ beta = 1 }`, `{ min_precision = 0.9 }`, `{ min_recall = 0.8 }`.
    """

    most_parents: ClassVar[int] = 2
    inapplicable: ClassVar[frozenset[str]] = frozenset({"cluster_order"})
    kind: Literal["before_after"] = "before_after"
    pairs: Input
    events: Input | None = None
    articles: Input | None = None
    gold: Input | None = None
    gold_articles: Input | None = None
    audited: Input | None = None
    window: Window | None = None
    compared: Compared | None = None
    recall_reference: RecallReference = RecallReference()
    strata: tuple[str, ...] = ()
    lag_thresholds: tuple[float, ...] = ()
    audit: Audit | None = None
    event_counts: Literal["auto"] | bool = "auto"
    operating_points: tuple[Criterion, ...] = (Criterion(beta=1),)

    @field_validator("cluster")
    @classmethod
    def _known_parent(cls, value: str | tuple[str, str] | None) -> str | tuple[str, str] | None:
        if isinstance(value, tuple) and value[1] not in get_args(Parent):
            message = f'the second parent of a pair is "day" or "article_id", not {value[1]!r}'
            raise ValueError(message)
        return value

    @field_validator("lag_thresholds")
    @classmethod
    def _rising(cls, value: tuple[float, ...]) -> tuple[float, ...]:
        return ascending(value) if value else value

    @field_validator("strata")
    @classmethod
    def _each_once(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if "" in value or len(set(value)) < len(value):
            message = f"name each stratum once: {', '.join(value)}"
            raise ValueError(message)
        return value

    @field_validator("operating_points")
    @classmethod
    def _once(cls, value: tuple[Criterion, ...]) -> tuple[Criterion, ...]:
        value = each_once(value, counts_all=True)
        if any(each.youden_j for each in value):
            message = "youden_j needs true negatives, which are not estimated: use beta, or a cost"
            raise ValueError(message)
        if any(each.cost is not None and each.cost.tn for each in value):
            message = "cost: true negatives are not estimated, so that tn has no cost or gain: leave it out"
            raise ValueError(message)
        if any(each.confidence is not None and each.min_precision is None for each in value):
            message = "confidence goes with min_precision: recall has no limits here that hold at all thresholds"
            raise ValueError(message)
        return value

    @model_validator(mode="after")
    def _needs(self) -> BeforeAfterParameters:
        if alike := unlike_but_for_case(name for names in (*self.by, self.strata) for name in names):
            message = f"strata: {alike[0]!r} and {alike[1]!r} differ in case only: rename one with columns = {{ … }}"
            raise ValueError(message)
        if self.thresholds is None:
            message = "thresholds are required, for example { start = 0.1, stop = 60.0, count = 200 }"
            raise ValueError(message)
        if self.thresholds == "distinct" and self.recall_reference.rule == "fixed":
            message = 'recall_reference: rule = "fixed" needs thresholds that are given, not "distinct"'
            raise ValueError(message)
        if self.compared == "timelines" and self.window is None:
            message = 'window is required with compared = "timelines", for example { before = "168h", after = "72h" }'
            raise ValueError(message)
        if self.uncertainty == "bootstrap" and self.second_parent is not None:
            message = (
                'uncertainty = "bootstrap" draws events again, and does not know a second parent of pairs: set '
                'cluster = "event_id", or another column of events, or leave uncertainty out'
            )
            raise ValueError(message)
        if self.counts_missed and self.duplicates == "max":
            message = (
                'duplicates = "max" leaves out pairs by their score: invalid_scores = "missed" needs "error" or "keep"'
            )
            raise ValueError(message)
        return self

    @property
    def cluster_column(self) -> str | None:
        """Internal name of the column of the clusters of events; None: every event is one."""
        return None if self.first_cluster in {None, "event_id"} else super().cluster_column

    @property
    def second_parent(self) -> Parent | Literal["auto"] | None:
        """The parent of a pair beside its event; `auto`: what the inputs allow; None: there is none."""
        if self.cluster is None:
            return "auto"
        return cast("Parent", self.cluster[1]) if isinstance(self.cluster, tuple) else None

    @property
    def threshold_values(self) -> tuple[float, ...] | None:
        """The thresholds; a fixed reference that is not among them is added."""
        values = super().threshold_values
        fixed = self.recall_reference.threshold
        return values if values is None or fixed is None else tuple(sorted({*values, fixed}))


# Result tables: counts, the numbers of the page, and what rests on them.


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
    ),
    Column(
        "undefined_interval",
        "VARCHAR",
        "why the first interval that is missing is NULL; the [reasons](methods/before_after.md#intervals); NULL: "
        "all intervals are given",
    ),
    QUALITY_COLUMN,
)
CHOSEN = of_chosen_row(ESTIMATES, reasons="`not_reached`")


def _over_kappa(name: str, rule: str) -> tuple[Column, Column]:
    """The lowest and the highest value of a ratio over the plausible ratios of false positive rates."""
    span = f"corrected {name} as the false positive rate after over that before runs from 0.75 to 1.5"
    return (
        Column(f"{name}_over_kappa_lower", "DOUBLE", f"lowest {span}; {rule}"),
        Column(f"{name}_over_kappa_upper", "DOUBLE", f"highest {span}; {rule}"),
    )


KAPPAS = (
    Column(
        "kappa_vanishing",
        "DOUBLE",
        "false positive rate after the event over that before it at which no true positive is left, m_after"
        " / fp_uncorrected; NULL: not reached, or fpr is 0",
    ),
    Column(
        "kappa_overturning",
        "DOUBLE",
        "the same ratio from which another threshold has an F1 better by over 0.01; 1 where one has it "
        "already; NULL: not reached, no reference, or none up to 100",
    ),
    *_over_kappa("precision", "may be negative; NULL: no reference, no match, or no estimate of the positives"),
    *_over_kappa("recall", "from 0 to 1; NULL: no reference, or no estimate of the positives"),
)
PARENTS = (
    Column(
        N_CLUSTERS,
        "BIGINT",
        "events, clusters or replicates with matches, or days or articles where their effective number is "
        "smaller; NULL: no interval is wanted",
    ),
    Column(
        N_EFFECTIVE,
        "DOUBLE",
        ("(Σ n)² / Σ n² of their matches n: how many of equal size would weigh as much; NULL: no interval is wanted"),
    ),
    Column(
        DESIGN_EFFECT,
        "DOUBLE",
        "variance of fpr between events, or over both parents, over that of independent pairs; "
        "NULL: it is not known, or no interval is wanted",
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

SENSITIVITY = (
    Column("rule", "VARCHAR", "rule of the recall reference: `lowest` or `max`"),
    Column("min_precision", "DOUBLE", "minimum precision of the recall reference"),
    Column("reference_threshold", "DOUBLE", "the reference under this rule; NULL: no threshold qualifies"),
    Column(
        "reference_precision",
        "DOUBLE",
        "estimated precision there; NULL: no threshold qualifies, or as in the estimates",
    ),
    Column(
        "reference_tp", "DOUBLE", "estimated true positives there; NULL: no threshold qualifies, or as in the estimates"
    ),
    Column(
        "threshold",
        "DOUBLE",
        "the threshold that the first criterion chose in this run; NULL: the criterion was not reached",
    ),
    Column("recall", "DOUBLE", "recall at that threshold under this reference, at most 1; NULL: as in the estimates"),
    Column("f1", "DOUBLE", "F1 at that threshold under this reference; NULL: as in the estimates"),
    Column(
        "best_threshold", "DOUBLE", "the threshold with the best F1 under this reference; NULL: no threshold has an F1"
    ),
    Column("best_f1", "DOUBLE", "the best F1 under this reference; NULL: no threshold has an F1"),
)
PLACEBO = (
    Column("threshold", "DOUBLE", "score from which a pair counts as a match; NULL: in the joint test"),
    Column("n_far", "BIGINT", "compared pairs in the far part of the window before the event; 0 where not compared"),
    Column("n_near", "BIGINT", "compared pairs in the near part of the window before the event; 0 where not compared"),
    Column("m_far", "BIGINT", "matches in the far part; NULL: in the joint test"),
    Column("m_near", "BIGINT", "matches in the near part; NULL: in the joint test"),
    Column(
        "log_rate_ratio",
        "DOUBLE",
        "natural logarithm of the match rate in the near part over that in the far part; NULL: in the joint"
        " test, or a part has no match",
    ),
    Column(
        "log_rate_ratio_lower",
        "DOUBLE",
        "lower limit of log_rate_ratio; NULL: in the joint test, no match in the near part, or no limit",
    ),
    Column(
        "log_rate_ratio_upper",
        "DOUBLE",
        "upper limit of log_rate_ratio; NULL: in the joint test, no match in the far part, or no limit",
    ),
    Column("p_value", "DOUBLE", "two-sided p-value of equal rates; NULL: where no test can be made"),
    Column(
        "precision_far",
        "DOUBLE",
        "precision if the far part alone gave the false positive rate, as with a gap as long as the near "
        "part; NULL: joint test, or no match after",
    ),
    Column(
        "precision_near",
        "DOUBLE",
        "precision if the near part alone gave the false positive rate; NULL: joint test, or no match after",
    ),
    Column("undefined", "VARCHAR", "why p_value is NULL; NULL: `p_value` is given"),
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
    ),
    *limits_of_share("fpr_adjusted", "fpr_adjusted"),
    Column(
        "fp_adjusted",
        "DOUBLE",
        "estimated false positives after the event: fpr_adjusted × the estimated number of negatives there;"
        " NULL: see `undefined`",
    ),
    Column("precision_adjusted", "DOUBLE", "(m_after − fp_adjusted) / m_after; may be negative; NULL: see `undefined`"),
    *limits_of_share("precision_adjusted", "the precision to expect of new events, adjusted"),
    Column(
        "recall_adjusted",
        "DOUBLE",
        ("recall with fp_adjusted, at most 1, at the reference threshold of the estimates; NULL: see `undefined`"),
    ),
    Column("f1_adjusted", "DOUBLE", "f1 with fp_adjusted; NULL: see `undefined`"),
    Column(
        "undefined",
        "VARCHAR",
        "why the first ratio that is missing is NULL: `unsupported_stratum`, or the "
        "[reasons](methods/before_after.md#edge-cases-and-the-column-undefined) of the estimates; NULL: all ratios "
        "are defined",
    ),
    Column(
        "undefined_interval",
        "VARCHAR",
        "why an interval is NULL: `unsupported_stratum`, `thin_stratum`, or the "
        "[reasons](methods/before_after.md#intervals) of the estimates; NULL: both are given",
    ),
    QUALITY_COLUMN,
)
TREND = (
    Column("threshold", "DOUBLE", "score from which a pair counts as a match"),
    Column(
        "n_days",
        "BIGINT",
        "days before the event with compared pairs; a day that the window cuts counts; NULL: the compared "
        "pairs of a day are not known",
    ),
    Column("matches", "BIGINT", "pairs at or above the threshold before the event"),
    Column(
        "slope",
        "DOUBLE",
        "change of the natural logarithm of the match rate per day towards the event; 0.1 means 10.5% more "
        "a day; NULL: see `undefined`",
    ),
    *limits_of("slope", "slope"),
    Column("p_value", "DOUBLE", "two-sided p-value of no trend; NULL: see `undefined`"),
    Column(
        "undefined",
        "VARCHAR",
        "why slope or p_value is NULL: `unknown_pairs`, `no_before`, `one_day`, `no_match`, "
        "`few_replicates`, `unbounded`, `none`; NULL: both are given",
    ),
    QUALITY_COLUMN,
)
OF_GOLD = (
    Count("tp", "retrieved and gold"),
    Count("fp", "retrieved but not gold, among the coded articles"),
    Count("fn", "gold but not retrieved, whether the matcher stored the pair or not"),
    Ratio("precision", ("tp",), ("fp",), "nothing retrieved", reason="no_prediction", is_limited=False),
    Ratio("recall", ("tp",), ("fn",), "no gold", reason="no_positive", is_limited=False),
    Ratio("f1", ("tp",), ("fp", "fn"), "neither retrieved nor gold", is_harmonic=True, is_limited=False),
)
GOLD_COLUMNS = (
    Column("threshold", "DOUBLE", "score from which a pair counts as a match"),
    Column("level", "VARCHAR", "`match`: event-article pairs; `article`: articles with any match"),
    *columns_of(OF_GOLD),
    Column(
        "precision_difference",
        "DOUBLE",
        "estimated precision minus that of the gold pairs; NULL: level `article`, without replicates, or "
        "one is undefined",
    ),
    *limits_of("precision_difference", "precision_difference"),
    Column(
        "undefined", "VARCHAR", "why a ratio is NULL: `no_prediction` or `no_positive`; NULL: all ratios are defined"
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
    ),
    *limits_of_share("precision_audited", "the precision of this data set, from the checked matches"),
    Column(
        "precision", "DOUBLE", "the estimate without labels, as in `before_after_estimates`; NULL: as in the estimates"
    ),
    Column(
        "precision_combined",
        "DOUBLE",
        "the precision of this data set, from the checked matches and the matches before the event; NULL: "
        "see `undefined`",
    ),
    *limits_of_share("precision_combined", "precision_combined"),
    *limits_of("kappa", "the ratio of false positive rates, after over before, that precision_combined allows for"),
    Column(
        "p_value",
        "DOUBLE",
        "two-sided p-value that the checked matches fit the matches before the event, the rates being "
        "equal; NULL: see `undefined`",
    ),
    Column(
        "undefined",
        "VARCHAR",
        "why a precision is NULL: `no_audit`: no checked match; the combination only: `none`, `budget`, "
        "`no_near`, `all_positive`; NULL: all are given",
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
        "before_after_operating_points": cost_columns(params.operating_points)[:1],
        "before_after_events": () if params.cluster_column is None else (cluster,),
    }


# Fields of the inputs: which are derived and from what, which mapped ones nothing reads, by which keys they meet.


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
