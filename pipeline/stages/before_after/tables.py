"""Result tables of before_after."""

from __future__ import annotations

from ...metrics.uncertainty.qualities import QUALITY_COLUMN
from ...tables.schemas import Column, Table, limits_of, limits_of_share
from .estimate_tables import CHOSEN, CRITERION, ESTIMATES, EVENT_COLUMNS, KAPPAS, PARENTS

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
    Column("precision", "DOUBLE", "tp / (tp + fp); NULL: nothing retrieved", nullable=True),
    Column("recall", "DOUBLE", "tp / (tp + fn); NULL: no gold", nullable=True),
    Column("f1", "DOUBLE", "2 tp / (2 tp + fp + fn); NULL: neither retrieved nor gold", nullable=True),
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
    Column("precision_audited", "DOUBLE", "n_right / n_audited; NULL: no checked match", nullable=True),
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
