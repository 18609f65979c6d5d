"""Result tables of threshold_sweep for decisions: net benefit, groups put together, and another prevalence."""

from __future__ import annotations

from ....metrics.curves.operating_points import criterion_column
from ....metrics.uncertainty.interval_quality import CLUSTER_COLUMNS, QUALITY_COLUMN
from ....tables.ratios import OF_LABELS
from ....tables.schemas import Column, Table, limits_of, limits_of_share


def _undefined(reasons: str, *, interval: str = "") -> tuple[Column, ...]:
    """The columns that say why a number or an interval is missing, and how far to trust the intervals."""
    rule = "NULL: all are defined"
    return (
        Column(
            "undefined", "VARCHAR", f"why the first number that is missing is NULL: {reasons}; {rule}", nullable=True
        ),
        Column(
            "undefined_interval",
            "VARCHAR",
            f"why an interval is NULL: {interval or '`none`, `budget`, `one_replicate`, `undefined_ratio`'}; the "
            "[reasons](methods/threshold_sweep.md#intervals); NULL: all intervals are given",
            nullable=True,
        ),
        QUALITY_COLUMN,
    )


def _number(name: str, meaning: str) -> tuple[Column, ...]:
    """A number with its limits."""
    return Column(name, "DOUBLE", meaning, nullable=True), *limits_of(name)


def _ratio(name: str, meaning: str) -> tuple[Column, ...]:
    """A share with its limits."""
    return Column(name, "DOUBLE", meaning, nullable=True), *limits_of_share(name)


_CRITERION = criterion_column("`max_f1`, `min_precision=0.9`, `min_recall=0.8`")
_COST_PER_ROW = _number(
    "cost_per_row", "cost divided by all rows, of the weights if there are any; NULL: a criterion without costs"
)
_THRESHOLD = Column("threshold", "DOUBLE", "score from which a row is predicted to be true")
NET_BENEFIT = (
    Column("threshold", "DOUBLE", "threshold probability p: the score from which, by `boundary`, a row is retrieved"),
    Column("n", "BIGINT", "rows"),
    Column("n_positive", "BIGINT", "rows with a true label"),
    Column("tp", "BIGINT", "true positives: retrieved rows with a true label"),
    Column("fp", "BIGINT", "false positives: retrieved rows with a false label"),
    *_number(
        "net_benefit",
        "tp / n - fp / n × p / (1 - p), of the weights if there are any; NULL: a score outside [0, 1], or no row",
    ),
    Column("net_benefit_all", "DOUBLE", "net benefit of retrieving every row; NULL: as net_benefit", nullable=True),
    Column(
        "standardized_net_benefit",
        "DOUBLE",
        "net benefit over the share of positives, at most 1; NULL: as net_benefit, or no positive",
        nullable=True,
    ),
    Column(
        "better",
        "VARCHAR",
        "what is better without scores: `all`: to retrieve every row; `none`: none, whose net benefit is 0; "
        "NULL: as net_benefit",
        nullable=True,
    ),
    *_number("net_benefit_difference", "net benefit less that of the better of these; NULL: as net_benefit"),
    *_undefined("`no_probability`, `no_row`, `no_positive`"),
    *CLUSTER_COLUMNS,
)
_WEIGHTS = tuple(
    Column(f"{name}_weight", "DOUBLE", f"weight of the {words}; NULL: no weights", nullable=True)
    for name, words in (
        ("tp", "true positives"),
        ("fp", "false positives"),
        ("fn", "false negatives"),
        ("tn", "true negatives"),
    )
)
_OF_COUNTS = tuple(column for ratio in OF_LABELS for column in ratio.columns("of the weights if there are any"))
POOLED_POINTS = (
    Column("pooled", "VARCHAR", "the grouping columns whose groups are put together, comma-separated"),
    _CRITERION,
    Column(
        "thresholds",
        "VARCHAR",
        "where groups are cut: `own`: each at the threshold that the criterion chooses in it; `common`: all at the one "
        "that it chooses in the total; `allocated`: so that within the capacity they hold the most true positives",
    ),
    Column(
        "threshold", "DOUBLE", "the common threshold; NULL: each group has its own, or it is not reached", nullable=True
    ),
    Column("n_groups", "BIGINT", "groups that are put together"),
    Column("n_without_threshold", "BIGINT", "groups of which nothing is retrieved: the criterion is not reached"),
    Column("tp", "BIGINT", "true positives of all groups"),
    Column("fp", "BIGINT", "false positives of all groups"),
    Column("fn", "BIGINT", "false negatives of all groups"),
    Column("tn", "BIGINT", "true negatives of all groups"),
    *_WEIGHTS,
    *_OF_COUNTS,
    Column(
        "cost",
        "DOUBLE",
        "total cost of the outcomes, of the weights if there are any; NULL: a criterion without costs",
        nullable=True,
    ),
    *_COST_PER_ROW,
    *_undefined("`no_prediction`, `no_positive`, `no_negative`"),
    *CLUSTER_COLUMNS,
)
ALLOCATIONS = (
    _CRITERION,
    Column("threshold", "DOUBLE", "threshold of the group; NULL: nothing of it is retrieved", nullable=True),
    Column("n_alerts", "BIGINT", "rows of the group that are retrieved"),
    Column("tp", "BIGINT", "true positives"),
    Column("fp", "BIGINT", "false positives"),
    Column("fn", "BIGINT", "false negatives"),
    Column("tn", "BIGINT", "true negatives"),
    Column("precision", "DOUBLE", "tp / n_alerts; NULL: nothing retrieved", nullable=True),
    Column("recall", "DOUBLE", "tp / (tp + fn); NULL: no positive", nullable=True),
)
_PREVALENCE = Column("prevalence", "DOUBLE", "share of positives that the row is for")
_AT_PREVALENCE = (
    *_ratio("precision", "precision at the prevalence; NULL: nothing retrieved, no positive, or no negative"),
    *_ratio("recall", "recall, which does not depend on the prevalence; NULL: no positive"),
    *_ratio("f1", "harmonic mean of precision and recall at the prevalence; NULL: no positive, or no negative"),
    *_ratio("fpr", "false positive rate, which does not depend on the prevalence; NULL: no negative"),
    *_ratio(
        "negative_predictive_value",
        "share of negatives among what is not retrieved, at the prevalence; "
        "NULL: everything retrieved, no positive, or no negative",
    ),
    Column(
        "alert_share",
        "DOUBLE",
        "share of all rows that is retrieved, at the prevalence; NULL: no positive, or no negative",
        nullable=True,
    ),
)
AT_PREVALENCE = (
    _PREVALENCE,
    _THRESHOLD,
    *_AT_PREVALENCE,
    *_undefined("`no_prediction`, `no_positive`, `no_negative`"),
)
POINTS_AT_PREVALENCE = (
    _PREVALENCE,
    _CRITERION,
    Column("threshold", "DOUBLE", f"{_THRESHOLD.meaning}; NULL: not reached", nullable=True),
    *_AT_PREVALENCE,
    *_number("cost_per_row", "mean cost of a row at the prevalence; NULL: not reached, or a criterion without costs"),
    *_undefined("`no_prediction`, `no_positive`, `no_negative`, `not_reached`"),
)
TABLES = (
    Table("threshold_sweep_net_benefit", "one row per group and threshold probability", NET_BENEFIT, ("threshold",)),
    Table(
        "threshold_sweep_pooled_points",
        "one row per grouping, criterion and kind of thresholds, of all groups together",
        POOLED_POINTS,
        ("pooled", "criterion", "thresholds"),
    ),
    Table(
        "threshold_sweep_allocations", "one row per group and criterion with a capacity", ALLOCATIONS, ("criterion",)
    ),
    Table(
        "threshold_sweep_at_prevalence",
        "one row per group, prevalence and threshold",
        AT_PREVALENCE,
        ("prevalence", "threshold"),
    ),
    Table(
        "threshold_sweep_points_at_prevalence",
        "one row per group, prevalence and criterion",
        POINTS_AT_PREVALENCE,
        ("prevalence", "criterion"),
    ),
)
