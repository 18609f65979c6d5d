"""Result tables of threshold_sweep."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...metrics.curves.operating_points import COLUMNS as CHOSEN_ELSEWHERE
from ...metrics.curves.operating_points import criterion_column
from ...metrics.uncertainty.interval_quality import CLUSTER_COLUMNS, QUALITY_COLUMN, design_effect_column
from ...plan.plan import OptionalTable
from ...tables.ratios import INDEX_OF, OF_LABELS, RATIO_OF
from ...tables.schemas import Column, Table, limits_of_share, of_chosen_row
from .bands import BANDS
from .calibration import CALIBRATION_TABLE, RELIABILITY_TABLE
from .decisions import pooled_points
from .decisions.costs import columns_of_costs
from .decisions.results import AT_PREVALENCE, criteria_at_prevalence
from .decisions.tables import TABLES as DECISION_TABLES
from .units import UNITS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .contract import ThresholdSweepParameters


_OUTCOMES = {"tp": "true positives", "fp": "false positives", "fn": "false negatives", "tn": "true negatives"}
_WEIGHT = "weight of the {}, or with labels of a sample their number, or weight, as estimated; NULL: no weights"
CURVE = (
    Column("threshold", "DOUBLE", "score from which a row is predicted to be true"),
    Column("tp", "BIGINT", "true positives: retrieved rows with a true label"),
    Column("fp", "BIGINT", "false positives: retrieved rows with a false label"),
    Column("fn", "BIGINT", "false negatives: other rows with a true label"),
    Column("tn", "BIGINT", "true negatives: other rows with a false label"),
    *(Column(f"{name}_weight", "DOUBLE", _WEIGHT.format(words), nullable=True) for name, words in _OUTCOMES.items()),
    *(column for ratio in OF_LABELS for column in ratio.columns("of the weights if there are any")),
    Column(
        "undefined",
        "VARCHAR",
        (
            "why the first ratio that is missing is NULL: `no_prediction`, `no_positive`, `no_negative`; NULL: "
            "all ratios are defined"
        ),
        nullable=True,
    ),
    Column(
        "undefined_interval",
        "VARCHAR",
        (
            "why an interval is NULL: `none`, `budget`, `one_replicate`, `undefined_ratio`; the "
            "[reasons](methods/threshold_sweep.md#intervals); NULL: all intervals are given"
        ),
        nullable=True,
    ),
    QUALITY_COLUMN,
)
_OF_MEAN = "certified {} bound, of which the mean is the middle; NULL: the mean is exact, or NULL"
AREAS = (
    Column("n", "BIGINT", "rows"),
    Column("n_positive", "BIGINT", "rows with a true label"),
    Column(
        "log_likelihood",
        "DOUBLE",
        (
            "mean log-likelihood of the labels, scores taken as probabilities; NULL: a score missing or outside"
            " [0, 1], or no row"
        ),
        nullable=True,
    ),
    Column(
        "log_likelihood_se",
        "DOUBLE",
        "standard error of the mean log-likelihood; "
        "NULL: a score missing or outside [0, 1], or fewer than two rows or clusters",
        nullable=True,
    ),
    Column(
        "brier",
        "DOUBLE",
        "mean squared difference of score and label; NULL: a score missing or outside [0, 1], or no row",
        nullable=True,
    ),
    Column(
        "average_precision",
        "DOUBLE",
        "step sum of precision over recall, ties entering together; NULL: no positive",
        nullable=True,
    ),
    Column(
        "average_precision_se",
        "DOUBLE",
        (
            "standard error of average_precision, by influence functions; "
            "NULL: fewer than two positives, one negative, or one replicate"
        ),
        nullable=True,
    ),
    *limits_of_share("average_precision"),
    Column(
        "pr_auc",
        "DOUBLE",
        "area as a mean over true points, at the thresholds of the stage; NULL: no positive",
        nullable=True,
    ),
    Column(
        "pr_auc_se_true_points",
        "DOUBLE",
        (
            "standard error of pr_auc as published; far too small, see the page of the stage; NULL: fewer "
            "than two positives"
        ),
        nullable=True,
    ),
    Column(
        "pr_auc_se",
        "DOUBLE",
        (
            "standard error of pr_auc with all randomness; "
            "NULL: fewer than two positives, one negative, or one replicate"
        ),
        nullable=True,
    ),
    *limits_of_share("pr_auc"),
    Column(
        "roc_auc",
        "DOUBLE",
        "area under the ROC curve, ties counting half; NULL: no positive, or no negative",
        nullable=True,
    ),
    Column(
        "roc_auc_se",
        "DOUBLE",
        (
            "standard error of roc_auc, by influence functions; "
            "NULL: fewer than two positives, one negative, or one replicate"
        ),
        nullable=True,
    ),
    *limits_of_share("roc_auc"),
    Column("method", "VARCHAR", "`exact`, or `binned`: the areas are midpoints of certified bounds"),
    Column(
        "average_precision_min", "DOUBLE", "certified lower bound; NULL: `exact`, or the area is NULL", nullable=True
    ),
    Column(
        "average_precision_max", "DOUBLE", "certified upper bound; NULL: `exact`, or the area is NULL", nullable=True
    ),
    Column("roc_auc_min", "DOUBLE", "certified lower bound; NULL: `exact`, or the area is NULL", nullable=True),
    Column("roc_auc_max", "DOUBLE", "certified upper bound; NULL: `exact`, or the area is NULL", nullable=True),
    Column("log_likelihood_min", "DOUBLE", _OF_MEAN.format("lower"), nullable=True),
    Column("log_likelihood_max", "DOUBLE", _OF_MEAN.format("upper"), nullable=True),
    Column("brier_min", "DOUBLE", _OF_MEAN.format("lower"), nullable=True),
    Column("brier_max", "DOUBLE", _OF_MEAN.format("upper"), nullable=True),
    Column(
        "undefined",
        "VARCHAR",
        "why an area is NULL: `no_positive`, `no_negative`, `no_probability`; NULL: everything is defined",
        nullable=True,
    ),
    Column(
        "undefined_interval",
        "VARCHAR",
        (
            "why an interval is NULL: `none`, `few_positives`, `few_negatives`, `one_replicate`, `at_limit`, "
            "`no_spread`; the [reasons](methods/threshold_sweep.md#intervals); NULL: all intervals are given"
        ),
        nullable=True,
    ),
    QUALITY_COLUMN,
    *CLUSTER_COLUMNS,
    design_effect_column("average_precision"),
)
_NULLABLE = of_chosen_row(
    CURVE, reasons="`not_reached`, `not_promised`", always=("undefined", "undefined_interval", "interval_quality")
)
AVERAGES = (
    Column("averaged", "VARCHAR", "the grouping columns whose values are averaged over, comma-separated"),
    Column(
        "average",
        "VARCHAR",
        "`micro`: all rows together; `macro`: plain mean; `weighted`: by positives, or by their weights",
    ),
    Column("threshold", "DOUBLE", "the threshold of the ratios; NULL: the row of the areas", nullable=True),
    Column("n_groups", "BIGINT", "groups that are averaged over"),
    Column(
        "precision",
        "DOUBLE",
        "mean of precision over the groups where it is defined; NULL: the row of the areas, or defined in no group",
        nullable=True,
    ),
    *limits_of_share("precision"),
    Column(
        "recall",
        "DOUBLE",
        "mean of recall over the groups where it is defined; NULL: the row of the areas, or defined in no group",
        nullable=True,
    ),
    *limits_of_share("recall"),
    Column(
        "f1",
        "DOUBLE",
        "mean of f1 over the groups where it is defined; NULL: the row of the areas, or defined in no group",
        nullable=True,
    ),
    *limits_of_share("f1"),
    Column(
        "fpr",
        "DOUBLE",
        "mean of fpr over the groups where it is defined; NULL: the row of the areas, or defined in no group",
        nullable=True,
    ),
    *limits_of_share("fpr"),
    Column(
        "average_precision",
        "DOUBLE",
        "mean of average_precision over the groups where it is defined; NULL: rows of ratios, or defined in no group",
        nullable=True,
    ),
    *limits_of_share("average_precision"),
    Column(
        "pr_auc",
        "DOUBLE",
        "mean of pr_auc over the groups where it is defined; NULL: rows of ratios, or defined in no group",
        nullable=True,
    ),
    *limits_of_share("pr_auc"),
    Column(
        "roc_auc",
        "DOUBLE",
        "mean of roc_auc over the groups where it is defined; NULL: rows of ratios, or defined in no group",
        nullable=True,
    ),
    *limits_of_share("roc_auc"),
    Column(
        "n_undefined", "BIGINT", "groups in which a ratio or an area of the row is NULL; these are left out of its mean"
    ),
    Column(
        "undefined_interval",
        "VARCHAR",
        ("why an interval is NULL: that of the first group without one; NULL: all intervals of the row are given"),
        nullable=True,
    ),
    QUALITY_COLUMN,
)
OUTCOMES = (
    Column("sampled_as", "VARCHAR", "`nearest` to the threshold, `false_positives` or `false_negatives`"),
    Column("sample_rank", "BIGINT", "rank in the sample: the nearest, or the most confident error, is 1; at most 50"),
    Column("threshold", "DOUBLE", "threshold of the group: that of its first operating point that has one"),
    Column("id", "KEY", "the item; NULL: `id` is not mapped", nullable=True),
    Column("score", "DOUBLE", "score; NULL: a missing score counts as below every threshold", nullable=True),
    Column("label", "BOOLEAN", "label"),
    Column("weight", "DOUBLE", "weight; 1 without weights"),
    Column("outcome", "VARCHAR", "`tp`, `fp`, `fn` or `tn` at the threshold"),
)
TABLES = (
    Table("threshold_sweep_curve", "one row per group and threshold", CURVE, ("threshold",)),
    Table("threshold_sweep_areas", "one row per group", AREAS, ()),
    Table(
        "threshold_sweep_operating_points",
        "one row per group and criterion",
        (
            criterion_column("`max_f1`, `min_precision=0.9`, `min_recall=0.8`, `min_precision=0.9,confidence=0.95`"),
            *_NULLABLE,
            *CLUSTER_COLUMNS,
            *CHOSEN_ELSEWHERE,
        ),
        ("criterion",),
    ),
    Table(
        "threshold_sweep_averages",
        "one row per average and threshold, and one with a NULL threshold for the areas",
        AVERAGES,
        ("averaged", "average", "threshold"),
    ),
    CALIBRATION_TABLE,
    RELIABILITY_TABLE,
    BANDS,
    Table("threshold_sweep_outcomes", "one row per sampled prediction", OUTCOMES, ("sampled_as", "sample_rank")),
    *DECISION_TABLES,
    UNITS,
)


# Tables of threshold_sweep that are made only if the config asks for them.


OF_RATES = "operating_points = [{ beta = 1 }], for example,"
GROUPS_AND_TOTAL = 'by with the total and groups, by = [[], ["site"]] for example,'
CAPACITY = "an operating point with max_alerts or max_alert_share"
WEIGHTED = "rows have weights, and alerts are shared out only where every row counts once"


def requested_tables(params: ThresholdSweepParameters, *, weighted: bool) -> Iterator[OptionalTable]:
    """Every such table, with whether it is asked for.

    Args:
        params: The parameters.
        weighted: Whether rows have weights.
    """
    net_benefit = "threshold_sweep_net_benefit"
    yield OptionalTable(BANDS.name, "bands", params.bands)
    yield OptionalTable(net_benefit, "net_benefit", params.net_benefit)
    yield from _of_groups(params, weighted=weighted)
    yield from _at_prevalence(params)


def _of_groups(params: ThresholdSweepParameters, *, weighted: bool) -> Iterator[OptionalTable]:
    """The tables of all groups together, and of the alerts that each gets."""
    points, allocations = pooled_points.TABLES
    has_groups = bool(pooled_points.groupings_to_pool(params))
    has_capacity = any(point.has_capacity for point in params.operating_points)
    yield OptionalTable(points, "by", has_groups, wish=GROUPS_AND_TOTAL)
    wishes = {CAPACITY: has_capacity, GROUPS_AND_TOTAL: has_groups}
    yield OptionalTable(
        allocations,
        "by" if has_capacity else "operating_points",
        has_capacity and has_groups,
        wish=" and ".join(wish for wish, is_there in wishes.items() if not is_there),
        lacking=WEIGHTED if weighted else "",
    )


def _at_prevalence(params: ThresholdSweepParameters) -> Iterator[OptionalTable]:
    """The tables at other shares of positives."""
    curve, points = AT_PREVALENCE
    is_asked, wish = bool(params.prevalences), "prevalence = 0.05, for example,"
    yield OptionalTable(curve, "prevalence", is_asked, wish=wish)
    has_points = bool(criteria_at_prevalence(params))
    yield OptionalTable(
        points,
        "operating_points" if is_asked else "prevalence",
        is_asked and has_points,
        wish=OF_RATES if is_asked else wish,
    )


def further_columns(params: ThresholdSweepParameters) -> dict[str, tuple[Column, ...]]:
    """The columns that tables have because of costs, and because metrics are asked for."""
    said = "of the weights if there are any"
    metrics = [RATIO_OF.get(name) or INDEX_OF[name] for name in params.metrics]
    asked = tuple(column for metric in metrics for column in metric.columns(said))
    of_points = of_chosen_row(asked, reasons="") if asked else ()
    of_costs, points = columns_of_costs(params), "threshold_sweep_operating_points"
    return {**of_costs, "threshold_sweep_curve": asked, points: (*of_costs.get(points, ()), *of_points)}
