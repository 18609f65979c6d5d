"""Inputs, parameters and result tables of threshold_sweep."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from pipeline.metrics.curves.choices import COLUMNS as CHOSEN_ELSEWHERE
from pipeline.metrics.curves.operating_points import Criterion, each_once
from pipeline.metrics.uncertainty.qualities import CLUSTER_COLUMNS, QUALITY_COLUMN, design_effect_column
from pipeline.sources.inputs import Field as InputField
from pipeline.sources.inputs import Input, InputContract
from pipeline.stages.parameters import EvenThresholds, StageParameters
from pipeline.tables.groupings import Grouping, users_name
from pipeline.tables.schemas import Column, Table, limits_of

if TYPE_CHECKING:
    from collections.abc import Iterator

Average = Literal["micro", "macro", "weighted"]

PREDICTIONS = InputContract(
    "predictions",
    (
        InputField("score", "number", "score of the prediction; higher is more likely true", required=True),
        InputField("label", "boolean", "whether it is true: boolean, or 0 and 1", required=True),
        InputField(
            "weight", "number", "weight of the row, from 0 to 1e6; default: every row counts once", mapped_only=True
        ),
        InputField("id", "key", "the item that is predicted"),
    ),
    "one row per prediction, with its score and its label",
    required=True,
    evaluated=True,
)

COUNTS = (
    Column("n_positive", "BIGINT", "rows with a true label in the bin"),
    Column("n_negative", "BIGINT", "rows with a false label in the bin"),
    Column("n_weighted_positive", "BIGINT", "rows with a true label and a weight above 0; 0 without weights"),
    Column("n_weighted_negative", "BIGINT", "rows with a false label and a weight above 0; 0 without weights"),
    Column("weight_positive", "DECIMAL", "sum of weights of the rows with a true label; 0 without weights"),
    Column("weight_negative", "DECIMAL", "sum of weights of the rows with a false label; 0 without weights"),
    Column("squares_positive", "DECIMAL", "sum of squared weights of the rows with a true label; 0 without weights"),
    Column("squares_negative", "DECIMAL", "sum of squared weights of the rows with a false label; 0 without weights"),
)
CROSSED = ("counts_of_second_parent", "counts_of_both_parents")  # count tables of rows with two parents
CROSSED_LIKELIHOOD = ("likelihood_of_second_parent", "likelihood_of_both_parents")
COUNT_NAMES = tuple(column.name for column in COUNTS)
HEAVIEST = ("heaviest_positive", "heaviest_negative")  # of a group: the largest weights, with rows that have any

CURVE = (
    Column("threshold", "DOUBLE", "score from which a row is predicted to be true"),
    Column("tp", "BIGINT", "true positives: retrieved rows with a true label"),
    Column("fp", "BIGINT", "false positives: retrieved rows with a false label"),
    Column("fn", "BIGINT", "false negatives: other rows with a true label"),
    Column("tn", "BIGINT", "true negatives: other rows with a false label"),
    Column("tp_weight", "DOUBLE", "weight of the true positives; NULL without weights", nullable=True),
    Column("fp_weight", "DOUBLE", "weight of the false positives; NULL without weights", nullable=True),
    Column("fn_weight", "DOUBLE", "weight of the false negatives; NULL without weights", nullable=True),
    Column("tn_weight", "DOUBLE", "weight of the true negatives; NULL without weights", nullable=True),
    Column("precision", "DOUBLE", "tp / (tp + fp), of the weights if there are any", nullable=True),
    *limits_of("precision"),
    Column("recall", "DOUBLE", "tp / (tp + fn), likewise", nullable=True),
    *limits_of("recall"),
    Column("f1", "DOUBLE", "2 tp / (2 tp + fp + fn), likewise", nullable=True),
    *limits_of("f1"),
    Column("fpr", "DOUBLE", "false positive rate fp / (fp + tn), likewise", nullable=True),
    *limits_of("fpr"),
    Column("undefined", "VARCHAR", "why a ratio is NULL; NULL when all are defined", nullable=True),
    Column("undefined_interval", "VARCHAR", "why an interval is NULL; NULL when all are given", nullable=True),
    QUALITY_COLUMN,
)
AREAS = (
    Column("n", "BIGINT", "rows"),
    Column("n_positive", "BIGINT", "rows with a true label"),
    Column(
        "log_likelihood",
        "DOUBLE",
        "mean log-likelihood of the labels, scores taken as probabilities; NULL if one is missing or outside [0, 1]",
        nullable=True,
    ),
    Column("log_likelihood_se", "DOUBLE", "standard error of that mean", nullable=True),
    Column("brier", "DOUBLE", "mean squared difference of score and label; NULL likewise", nullable=True),
    Column("average_precision", "DOUBLE", "step sum of precision over recall, ties entering together", nullable=True),
    Column("average_precision_se", "DOUBLE", "its standard error, by influence functions", nullable=True),
    *limits_of("average_precision"),
    Column("pr_auc", "DOUBLE", "area as a mean over true points, at the thresholds of the stage", nullable=True),
    Column(
        "pr_auc_se_true_points",
        "DOUBLE",
        "standard error of that mean as published; far too small, see the page of the stage",
        nullable=True,
    ),
    Column("pr_auc_se", "DOUBLE", "its standard error with all randomness", nullable=True),
    *limits_of("pr_auc"),
    Column("roc_auc", "DOUBLE", "area under the ROC curve, ties counting half", nullable=True),
    Column("roc_auc_se", "DOUBLE", "its standard error, by influence functions", nullable=True),
    *limits_of("roc_auc"),
    Column("method", "VARCHAR", "`exact`, or `binned`: the areas are midpoints of certified bounds"),
    Column("average_precision_min", "DOUBLE", "certified lower bound; NULL for `exact`", nullable=True),
    Column("average_precision_max", "DOUBLE", "certified upper bound; NULL for `exact`", nullable=True),
    Column("roc_auc_min", "DOUBLE", "certified lower bound; NULL for `exact`", nullable=True),
    Column("roc_auc_max", "DOUBLE", "certified upper bound; NULL for `exact`", nullable=True),
    Column("undefined", "VARCHAR", "why an area is NULL; NULL when all are defined", nullable=True),
    Column("undefined_interval", "VARCHAR", "why an interval is NULL; NULL when all are given", nullable=True),
    QUALITY_COLUMN,
    *CLUSTER_COLUMNS,
    design_effect_column("average_precision"),
)
_NULLABLE = tuple(Column(column.name, column.type, column.meaning, nullable=True) for column in CURVE)
AVERAGES = (
    Column("averaged", "VARCHAR", "the grouping columns whose values are averaged over, comma-separated"),
    Column("average", "VARCHAR", "`micro`: all rows together; `macro`: plain mean; `weighted`: by positives"),
    Column("threshold", "DOUBLE", "the threshold of the ratios; NULL in the row of the areas", nullable=True),
    Column("n_groups", "BIGINT", "groups that are averaged over"),
    Column("precision", "DOUBLE", "mean over the groups where it is defined", nullable=True),
    *limits_of("precision"),
    Column("recall", "DOUBLE", "likewise", nullable=True),
    *limits_of("recall"),
    Column("f1", "DOUBLE", "likewise", nullable=True),
    *limits_of("f1"),
    Column("fpr", "DOUBLE", "likewise", nullable=True),
    *limits_of("fpr"),
    Column("average_precision", "DOUBLE", "likewise; only in the row of the areas", nullable=True),
    *limits_of("average_precision"),
    Column("pr_auc", "DOUBLE", "likewise", nullable=True),
    *limits_of("pr_auc"),
    Column("roc_auc", "DOUBLE", "likewise", nullable=True),
    *limits_of("roc_auc"),
    Column(
        "n_undefined", "BIGINT", "groups in which a ratio or an area of the row is NULL; these are left out of its mean"
    ),
    Column("undefined_interval", "VARCHAR", "why an interval is NULL; NULL when all are given", nullable=True),
    QUALITY_COLUMN,
)
OUTCOMES = (
    Column("sampled_as", "VARCHAR", "`nearest` to the threshold, `false_positives` or `false_negatives`"),
    Column("sample_rank", "BIGINT", "rank in the sample: the nearest, or the most confident error, is 1; at most 50"),
    Column("threshold", "DOUBLE", "threshold of the group: that of its first operating point that has one"),
    Column("id", "KEY", "the item; NULL unless `id` is mapped", nullable=True),
    Column("score", "DOUBLE", "score; NULL where a missing score counts as below every threshold", nullable=True),
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
            Column("criterion", "VARCHAR", "what the threshold was chosen for"),
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
    Table("threshold_sweep_outcomes", "one row per sampled prediction", OUTCOMES, ("sampled_as", "sample_rank")),
)


class ThresholdSweepParameters(StageParameters):
    """Parameters of threshold_sweep.

    Attributes:
        predictions: Scored and labelled predictions.
        method: How areas are found: `exact`: all rows in order; `binned`: counts in cells of scores, in one scan or a
            few, with certified bounds.
        width: Widest bounds of average precision and ROC AUC that `binned` accepts.
        class_sizes: What the intervals are about: `random`: samples of as many rows; `fixed`: samples with as many
            positives and negatives. With clusters the sizes are always random.
        operating_points: Thresholds to choose: `{ beta = 1 }`, `{ min_precision = 0.9 }`, `{ min_recall = 0.8 }`, the
            last two perhaps with a `confidence` that they hold on new data.
        averages: Averages over groups: `micro`, `macro`, `weighted`.
        average_over: Grouping columns to average over; default: all of a grouping.
        outcomes: Whether the sample of single rows is made; `auto`: up to one million rows of predictions.
    """

    most_parents: ClassVar[int] = 2

    kind: Literal["threshold_sweep"] = "threshold_sweep"
    predictions: Input
    thresholds: EvenThresholds | tuple[float, ...] | Literal["distinct"] | None = "distinct"
    method: Literal["exact", "binned"] = "exact"
    width: Annotated[float, Field(ge=1e-9, lt=1)] = 1e-4
    class_sizes: Literal["fixed", "random"] = "random"
    operating_points: tuple[Criterion, ...] = (Criterion(beta=1),)
    averages: tuple[Average, ...] = ()
    average_over: tuple[str, ...] = ()
    outcomes: Literal["auto"] | bool = "auto"

    @field_validator("operating_points")
    @classmethod
    def _once(cls, value: tuple[Criterion, ...]) -> tuple[Criterion, ...]:
        return each_once(value)

    @model_validator(mode="after")
    def _fits(self) -> ThresholdSweepParameters:
        if self.duplicates == "max":
            message = 'duplicates = "max" would keep one label of several: use "error" or "keep"'
            raise ValueError(message)
        if len(set(self.averages)) < len(self.averages):
            message = "averages names one twice"
            raise ValueError(message)
        if self.uncertainty == "bootstrap" and self.cluster is None:
            message = (
                'uncertainty = "bootstrap" draws clusters again: without cluster rows are independent, and the closed '
                "forms hold; give cluster, or leave uncertainty out"
            )
            raise ValueError(message)
        if self.uncertainty == "bootstrap" and isinstance(self.cluster, tuple):
            message = (
                'uncertainty = "bootstrap" draws clusters of one column again, and cannot draw rows of two parents; '
                f'give one column, for example cluster = "{self.cluster[0]}", or leave uncertainty out'
            )
            raise ValueError(message)
        used = {name for grouping in self.by for name in grouping}
        if self.averages and not used:
            message = 'averages need groups: give by, for example by = ["model"]'
            raise ValueError(message)
        unused = [name for name in self.average_over if name not in used]
        if unused or (self.average_over and not self.averages):
            message = (
                f"average_over names {', '.join(unused)}, which by lacks"
                if unused
                else "average_over goes with averages"
            )
            raise ValueError(message)
        self._check_averages()
        return self

    def averaged(self) -> Iterator[tuple[Grouping, Grouping]]:
        """The groupings whose groups are averaged, each with the columns that it is averaged over."""
        for names in self.by:
            over = tuple(name for name in names if not self.average_over or name in self.average_over)
            if over and (not self.average_over or set(over) == set(self.average_over)):
                yield Grouping.of(names), Grouping.of(over)

    def _check_averages(self) -> None:
        """Every average has groups that it can be taken of."""
        averaged = list(self.averaged())
        if self.averages and not averaged:
            message = f"average_over: no grouping in by has {' and '.join(self.average_over)} together"
            raise ValueError(message)
        coarser = [set(grouping.columns) - set(over.columns) for grouping, over in averaged]
        if "micro" in self.averages and not any(
            rest == set(each.columns) for rest in coarser for each in self.groupings
        ):
            missing = sorted(map(users_name, coarser[0]))
            message = f'averages = ["micro"] are the numbers of all groups together: add {missing} to by'
            raise ValueError(message)
