"""Result tables of threshold_sweep, and averages over groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from ...base.columns import INDEX_OF, OF_LABELS, RATIO_OF, THRESHOLD, add_up, nulls
from ...base.schemas import GROUPING, Column, Grouping, Table, limits_of, limits_of_share, of_chosen_row, polars_types
from ...metrics.curves.operating_points import COLUMNS as CHOSEN_ELSEWHERE
from ...metrics.curves.operating_points import criterion_column
from ...metrics.uncertainty.limits import (
    CLUSTER_COLUMNS,
    INTERVAL_QUALITY,
    QUALITY_COLUMN,
    UNDEFINED_INTERVAL,
    design_effect_column,
    limit_names,
    worst_of,
)
from ...metrics.uncertainty.proportions import PROPORTIONS
from ...plan.plan import OptionalTable
from . import decisions
from .areas import BANDS, partial_columns
from .calibration import CALIBRATION_TABLE, RELIABILITY_TABLE
from .contract import kind_of_counts
from .decisions import AT_PREVALENCE, columns_of_costs, criteria_at_prevalence
from .units import UNITS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .contract import Average, ThresholdSweepParameters


# Result tables of threshold_sweep for decisions: net benefit, groups put together, and another prevalence.


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
CURVE_AT_PREVALENCE = (
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
DECISION_TABLES = (
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
        CURVE_AT_PREVALENCE,
        ("prevalence", "threshold"),
    ),
    Table(
        "threshold_sweep_points_at_prevalence",
        "one row per group, prevalence and criterion",
        POINTS_AT_PREVALENCE,
        ("prevalence", "criterion"),
    ),
)


# Result tables of threshold_sweep.


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
    points, allocations = decisions.TABLES
    has_groups = bool(decisions.groupings_to_pool(params))
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
    of_areas = () if params.max_fpr is None else partial_columns(params.max_fpr)
    return {
        **of_costs,
        "threshold_sweep_curve": asked,
        "threshold_sweep_areas": of_areas,
        points: (*of_costs.get(points, ()), *of_points),
    }


# The table threshold_sweep_averages: micro, macro and weighted averages over groups.


_AREAS = ("average_precision", "pr_auc", "roc_auc")
_POSITIVES = "_positives"  # of a group: how many rows are positive, or how heavy they are together


def averages_table(
    params: ThresholdSweepParameters,
    counts: pl.DataFrame,
    curve: pl.DataFrame,
    areas: pl.DataFrame,
    keys: Sequence[str],
) -> pl.DataFrame:
    """One row per average and threshold, and one for the areas.

    With every distinct score as threshold groups share no threshold, so that only the areas are averaged.

    Args:
        params: The parameters.
        counts: The counts of every bin of the scores.
        curve: The curve with limits.
        areas: The areas with limits.
        keys: Columns that identify a group.
    """
    of_table = {column.name: polars_types(column.type)[0] for column in AVERAGES}
    nothing = pl.DataFrame(schema={name: curve.schema[name] for name in keys} | of_table)
    if not list(params.averaged()):
        return nothing
    by = [name for name in keys if name != GROUPING.name]
    measured = [areas.with_columns(nulls([THRESHOLD]))]
    if params.threshold_values is not None:
        measured.append(curve)
    positives = _positives(counts, keys)
    frames = [frame.join(positives, on=list(keys), how="left", nulls_equal=True) for frame in measured]
    order = [*keys, *(column.name for column in AVERAGES)]
    frames = [frame.sort([*keys, THRESHOLD]) for frame in frames]  # sums of one order are the same to the last bit
    averages = [rows.select(order) for frame in frames for rows in _averages(params, frame, by)]
    return pl.concat(averages) if averages else nothing


def _positives(counts: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """The weights of groups in a weighted average: their positives, or the positives' weights."""
    name = f"{kind_of_counts(counts)}_positive"
    is_weight = name == "weight_positive"
    of_groups = pl.col(name).cast(pl.Float64 if is_weight else pl.Int64)
    return add_up(counts, keys, [name]).select(*keys, of_groups.alias(_POSITIVES))


def _averages(params: ThresholdSweepParameters, frame: pl.DataFrame, by: Sequence[str]) -> Iterator[pl.DataFrame]:
    """The averages over each grouping that has groups, at each threshold of a frame."""
    for grouping, over in params.averaged():
        outer = Grouping(tuple(name for name in grouping.columns if name not in over.columns))
        keys, label = [*outer.columns, THRESHOLD], _label(params, outer)
        rows = frame.filter(pl.col(GROUPING.name) == grouping.label)
        n_groups = rows.group_by(keys).agg(pl.len().cast(pl.Int64).alias("n_groups"))
        for average in params.averages:
            if average == "micro" and label is None:
                continue
            source = frame.filter(pl.col(GROUPING.name) == label) if average == "micro" else rows
            shared = params.cluster is not None
            averages = _average(source, average, keys, shared=shared).join(
                n_groups, on=keys, how="inner", nulls_equal=True
            )
            yield averages.with_columns(
                pl.lit(outer.label).alias(GROUPING.name),
                *(pl.lit(None, dtype=frame.schema[name]).alias(name) for name in by if name not in outer.columns),
                pl.lit(over.label).alias("averaged"),
                pl.lit(average).alias("average"),
            )


def _label(params: ThresholdSweepParameters, outer: Grouping) -> str | None:
    """Label of the grouping that holds all groups together; None if the stage does not have it."""
    return next((each.label for each in params.groupings if set(each.columns) == set(outer.columns)), None)


def _average(rows: pl.DataFrame, average: Average, keys: Sequence[str], *, shared: bool) -> pl.DataFrame:
    """Means where defined, with limits; of a micro average there is one row for each key already.

    Distances of the groups' numbers to their limits are added in quadrature where groups are independent (MOVER: Zou &
    Donner 2008). Groups that share clusters may err together, so that their distances are added as they are, which is
    the widest that any dependence allows.
    """
    present = [name for name in (*PROPORTIONS, *_AREAS) if name in rows.columns]
    absent = [name for name in (*PROPORTIONS, *_AREAS) if name not in rows.columns]
    undefined = pl.any_horizontal(pl.col(name).is_null() for name in present).sum().cast(pl.Int64).alias("n_undefined")
    aggregates = [expr for name in present for expr in _mean_with_limits(name, average, shared=shared)]
    reason = pl.col(UNDEFINED_INTERVAL).drop_nulls().first().alias(UNDEFINED_INTERVAL)
    quality = worst_of(pl.col(INTERVAL_QUALITY)).alias(INTERVAL_QUALITY)
    frame = rows.group_by(keys, maintain_order=True).agg(*aggregates, undefined, reason, quality)
    missing = pl.any_horizontal(pl.col(f"{name}_lower").is_null() for name in present)
    why = pl.when(missing).then(pl.col(UNDEFINED_INTERVAL).fill_null("undefined_ratio"))
    is_limited = pl.any_horizontal(pl.col(f"{name}_lower").is_not_null() for name in present)
    worst = pl.when(is_limited).then(pl.col(INTERVAL_QUALITY)).alias(INTERVAL_QUALITY)
    return frame.with_columns(why.alias(UNDEFINED_INTERVAL), worst, *nulls([*absent, *limit_names(absent)]))


def _mean_with_limits(name: str, average: Average, *, shared: bool) -> Iterator[pl.Expr]:
    """The mean of one number over the rows of a key, and its limits."""
    value, lower, upper = (pl.col(f"{name}{side}") for side in ("", "_lower", "_upper"))
    if average == "micro":
        yield from (each.mean() for each in (value, lower, upper))
        return
    weight = pl.when(value.is_not_null()).then(pl.col(_POSITIVES) if average == "weighted" else pl.lit(1))
    total = weight.sum()
    mean = value.mean() if average == "macro" else pl.when(total > 0).then((value * weight).sum() / total)
    yield mean.alias(name)
    for limit, sign, side in ((lower, -1, "lower"), (upper, 1, "upper")):
        distances = (limit - value).abs() * weight / total
        distance = distances.sum() if shared else (distances**2).sum().sqrt()
        complete = (total > 0) & ~(value.is_not_null() & limit.is_null()).any()
        yield pl.when(complete).then(mean + sign * distance).alias(f"{name}_{side}")
