"""Result tables of before_after."""

from __future__ import annotations

from pipeline.metrics.uncertainty.qualities import N_CLUSTERS, N_EFFECTIVE, QUALITY_COLUMN, design_effect_column
from pipeline.tables.schemas import Column, Table, limits_of

COUNTS = (
    Column("n_before", "BIGINT", "compared pairs before the event"),
    Column("n_after", "BIGINT", "compared pairs from the moment of the event on"),
    Column("m_before", "BIGINT", "matches (score at or above the threshold) before the event"),
    Column("m_after", "BIGINT", "matches from the moment of the event on"),
)
NEAR = (
    Column("n_near", "BIGINT", "compared pairs in the near part of the window before the event; 0 where unknown"),
    Column("m_near", "BIGINT", "matches in the near part of the window before the event"),
)
COUNT_TABLE = (*COUNTS, *NEAR)
COUNT_NAMES = tuple(column.name for column in COUNT_TABLE)


ESTIMATES = (
    Column("threshold", "DOUBLE", "score from which a pair counts as a match"),
    *COUNTS,
    Column("fpr", "DOUBLE", "false positive rate m_before / n_before; NULL without pairs before", nullable=True),
    *limits_of("fpr", "fpr"),
    Column("fp", "DOUBLE", "estimated false positives after the event, fpr × estimated negatives", nullable=True),
    Column("tp", "DOUBLE", "estimated true positives m_after − fp; may be negative", nullable=True),
    Column("precision", "DOUBLE", "tp / m_after; may be negative; NULL without matches after", nullable=True),
    *limits_of("precision", "the precision to expect of new events"),
    *limits_of("precision_realised", "the precision of this data set, of which precision is the estimate too"),
    Column("recall", "DOUBLE", "recall_raw, at most 1", nullable=True),
    *limits_of("recall", "recall, with the doubt in its reference"),
    Column("recall_raw", "DOUBLE", "tp / estimated positives; NULL if tp < 0 or without reference", nullable=True),
    Column("f1", "DOUBLE", "2 tp / (2 tp + fp + fn), with the clipped recall", nullable=True),
    *limits_of("f1", "f1"),
    Column("fp_uncorrected", "DOUBLE", "fpr × n_after, as if no pair after the event were positive", nullable=True),
    Column("tp_uncorrected", "DOUBLE", "m_after − fp_uncorrected; may be negative", nullable=True),
    Column("precision_uncorrected", "DOUBLE", "tp_uncorrected / m_after; may be negative", nullable=True),
    *limits_of("precision_uncorrected", "precision_uncorrected"),
    Column("recall_uncorrected", "DOUBLE", "recall_raw_uncorrected, at most 1; no estimate of recall", nullable=True),
    *limits_of("recall_uncorrected", "recall_uncorrected"),
    Column("recall_raw_uncorrected", "DOUBLE", "tp_uncorrected / tp_uncorrected at the reference", nullable=True),
    Column("f1_uncorrected", "DOUBLE", "F1 of the uncorrected counts", nullable=True),
    *limits_of("f1_uncorrected", "f1_uncorrected"),
    Column("is_reference", "BOOLEAN", "whether recall is measured against this threshold"),
    Column("undefined", "VARCHAR", "why a ratio is NULL; NULL when all are defined", nullable=True),
    Column("undefined_interval", "VARCHAR", "why an interval is NULL; NULL when all are given", nullable=True),
    QUALITY_COLUMN,
)
_NULLABLE = tuple(Column(column.name, column.type, column.meaning, nullable=True) for column in ESTIMATES)
KAPPAS = (
    Column(
        "kappa_vanishing",
        "DOUBLE",
        "false positive rate after the event over that before it at which no true positive is left; NULL if fpr is 0",
        nullable=True,
    ),
    Column(
        "kappa_overturning",
        "DOUBLE",
        "the same ratio, from 1, at which another threshold has an F1 better by over 0.01; NULL if none up to 100",
        nullable=True,
    ),
    *limits_of("precision_over_kappa", "the corrected precision as that ratio runs from 0.75 to 1.5"),
    *limits_of("recall_over_kappa", "the corrected recall as that ratio runs from 0.75 to 1.5"),
)
PARENTS = (
    Column(
        N_CLUSTERS,
        "BIGINT",
        "events, clusters or replicates with matches, or days or articles where their effective number is smaller",
        nullable=True,
    ),
    Column(N_EFFECTIVE, "DOUBLE", "(Σ n)² / Σ n² of their matches; NULL where no interval is wanted", nullable=True),
    design_effect_column("fpr"),
)
SENSITIVITY = (
    Column("rule", "VARCHAR", "rule of the recall reference: `lowest` or `max`"),
    Column("min_precision", "DOUBLE", "minimum precision of the recall reference"),
    Column("reference_threshold", "DOUBLE", "the reference under this rule; NULL if there is none", nullable=True),
    Column("reference_precision", "DOUBLE", "estimated precision there", nullable=True),
    Column("reference_tp", "DOUBLE", "estimated true positives there", nullable=True),
    Column("threshold", "DOUBLE", "the threshold that the first criterion chose in this run", nullable=True),
    Column("recall", "DOUBLE", "recall at that threshold under this reference", nullable=True),
    Column("f1", "DOUBLE", "F1 at that threshold under this reference", nullable=True),
    Column("best_threshold", "DOUBLE", "the threshold with the best F1 under this reference", nullable=True),
    Column("best_f1", "DOUBLE", "its F1", nullable=True),
)
PLACEBO = (
    Column("threshold", "DOUBLE", "score from which a pair counts as a match; NULL in the joint test", nullable=True),
    Column("n_far", "BIGINT", "compared pairs in the far part of the window before the event; 0 where not compared"),
    Column("n_near", "BIGINT", "compared pairs in its near part; 0 likewise"),
    Column("m_far", "BIGINT", "matches in the far part; NULL in the joint test", nullable=True),
    Column("m_near", "BIGINT", "matches in the near part; NULL in the joint test", nullable=True),
    Column(
        "log_rate_ratio",
        "DOUBLE",
        "natural logarithm of the match rate in the near part over that in the far part; NULL if one has no match",
        nullable=True,
    ),
    *limits_of("log_rate_ratio", "log_rate_ratio"),
    Column("p_value", "DOUBLE", "two-sided p-value of equal rates; NULL where no test can be made", nullable=True),
    Column("precision_far", "DOUBLE", "precision if the far part alone gave the false positive rate", nullable=True),
    Column("precision_near", "DOUBLE", "precision if the near part alone gave the false positive rate", nullable=True),
    Column("undefined", "VARCHAR", "why p_value is NULL; NULL when it is given", nullable=True),
    QUALITY_COLUMN,
)
LAGS = (
    Column("threshold", "DOUBLE", "score from which a pair counts as a match"),
    Column("lag_days", "BIGINT", "whole days from the event to the article, rounded down; negative before the event"),
    Column("matches", "BIGINT", "pairs at or above the threshold on that day"),
)
ADJUSTED = (
    Column("threshold", "DOUBLE", "score from which a pair counts as a match"),
    Column("n_strata", "BIGINT", "strata with compared pairs"),
    Column("n_after_unsupported", "BIGINT", "pairs after the event in strata without a pair before it"),
    Column(
        "fpr_adjusted", "DOUBLE", "false positive rate standardised to the strata of the pairs after", nullable=True
    ),
    *limits_of("fpr_adjusted", "fpr_adjusted"),
    Column("fp_adjusted", "DOUBLE", "estimated false positives after the event, over the strata", nullable=True),
    Column("precision_adjusted", "DOUBLE", "(m_after − fp_adjusted) / m_after; may be negative", nullable=True),
    *limits_of("precision_adjusted", "the precision to expect of new events, adjusted"),
    Column("recall_adjusted", "DOUBLE", "recall with fp_adjusted, at most 1, at the same reference", nullable=True),
    Column("f1_adjusted", "DOUBLE", "f1 with fp_adjusted", nullable=True),
    Column("undefined", "VARCHAR", "why a ratio is NULL; NULL when all are defined", nullable=True),
    Column("undefined_interval", "VARCHAR", "why an interval is NULL; NULL when both are given", nullable=True),
    QUALITY_COLUMN,
)
TREND = (
    Column("threshold", "DOUBLE", "score from which a pair counts as a match"),
    Column("n_days", "BIGINT", "days before the event with compared pairs; NULL where unknown", nullable=True),
    Column("matches", "BIGINT", "pairs at or above the threshold before the event"),
    Column("slope", "DOUBLE", "change of the natural log of the match rate per day towards the event", nullable=True),
    *limits_of("slope", "slope"),
    Column("p_value", "DOUBLE", "two-sided p-value of no trend; NULL where no test can be made", nullable=True),
    Column("undefined", "VARCHAR", "why slope or p_value is NULL; NULL when both are given", nullable=True),
    QUALITY_COLUMN,
)
GOLD_COLUMNS = (
    Column("threshold", "DOUBLE", "score from which a pair counts as a match"),
    Column("level", "VARCHAR", "`match`: event-article pairs; `article`: articles with any match"),
    Column("tp", "BIGINT", "retrieved and gold"),
    Column("fp", "BIGINT", "retrieved but not gold, among the coded articles"),
    Column("fn", "BIGINT", "gold but not retrieved, stored by the matcher or not"),
    Column("precision", "DOUBLE", "tp / (tp + fp)", nullable=True),
    Column("recall", "DOUBLE", "tp / (tp + fn)", nullable=True),
    Column("f1", "DOUBLE", "2 tp / (2 tp + fp + fn)", nullable=True),
    Column("precision_difference", "DOUBLE", "estimated precision minus that of the gold pairs", nullable=True),
    *limits_of("precision_difference", "precision_difference"),
    Column("undefined", "VARCHAR", "why a ratio is NULL; NULL when all are defined", nullable=True),
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
    Column("precision_audited", "DOUBLE", "n_right / n_audited", nullable=True),
    *limits_of("precision_audited", "the precision of this data set, from the checked matches"),
    Column("precision", "DOUBLE", "the estimate without labels", nullable=True),
    Column("precision_combined", "DOUBLE", "the precision of this data set, from both", nullable=True),
    *limits_of("precision_combined", "precision_combined"),
    *limits_of("kappa", "the ratio of false positive rates, after over before, that precision_combined allows for"),
    Column("p_value", "DOUBLE", "two-sided p-value that both agree", nullable=True),
    Column("undefined", "VARCHAR", "why a precision is NULL; NULL when all are given", nullable=True),
    QUALITY_COLUMN,
)
EVENT_COLUMNS = (
    Column("event_id", "KEY", "the event"),
    *COUNTS,
    Column("m_before_reference", "BIGINT", "matches before the event at the recall reference; 0 without one"),
    Column("m_after_reference", "BIGINT", "matches after the event at the recall reference; 0 without one"),
)
TABLES = (
    Table("before_after_estimates", "one row per group and threshold", ESTIMATES, ("threshold",)),
    Table(
        "before_after_operating_points",
        "one row per group and criterion",
        (Column("criterion", "VARCHAR", "what the threshold was chosen for"), *_NULLABLE, *KAPPAS, *PARENTS),
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
