"""Inputs, parameters and counts of threshold_sweep, and intervals of its curve."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np
import polars as pl
from pydantic import Field, field_validator, model_validator

from ...base.columns import FURTHER, INDEX_OF, RATIO_OF, beside, doubles, nothing, ratio_of
from ...base.schemas import Column, Grouping, users_name
from ...metrics.curves.operating_points import (
    Criterion,
    Outcomes,
    each_once,
)
from ...metrics.uncertainty.limits import (
    FEWEST_EVENTS,
    Interval,
    clusters_of_parents,
    intervals_of,
    limit_columns,
    marked_in_time,
    no_clusters,
    no_limits,
    with_limits,
    with_quality,
)
from ...metrics.uncertainty.proportions import (
    PROPORTIONS,
    Confusion,
    Weights,
    index_limits_of_clusters,
    index_limits_of_rows,
    index_of,
    intervals_of_clusters,
    intervals_of_rows,
)
from ...sources.bins import Grid
from ...sources.inputs import Field as InputField
from ...sources.inputs import Input, InputContract
from ..parameters import EvenThresholds, StageParameters, ascending

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ...base.columns import Index
    from ...metrics.uncertainty.jackknife import Limits
    from ...metrics.uncertainty.replicates import Cube, GroupCounts, Resampling


# Inputs, parameters and counts of threshold_sweep.


Average = Literal["micro", "macro", "weighted"]

PREDICTIONS = InputContract(
    "predictions",
    (
        InputField("score", "number", "score of the prediction; higher is more likely true", required=True),
        InputField(
            "label",
            "boolean",
            "whether it is true: boolean, or 0 and 1",
            required=True,
            truth_of="score",
            given_by="labels",
        ),
        InputField(
            "weight", "number", "weight of the row, from 0 to 1e6; default: every row counts once", mapped_only=True
        ),
        InputField("id", "key", "the item that is predicted"),
        InputField(
            "proxy",
            "number",
            "what somebody else takes the label for: a share, or 0 and 1; with `labels` it makes limits narrower",
            mapped_only=True,
            named_beside="labels",
        ),
    ),
    "one row per prediction, with its score and its label",
    required=True,
    evaluated=True,
)
LABELS = InputContract(
    "labels",
    (
        InputField("id", "key", "the item that was labelled", required=True),
        InputField(
            "label", "any", "whether it is true: true, yes, 1; false, no, 0; empty: not labelled yet", required=True
        ),
        InputField("probability", "number", "how likely the row was drawn: the share of rows like it that were"),
        InputField("stratum", "any", "the part of the predictions that it was drawn from"),
    ),
    "labels of a sample of the predictions, such as the sheet of `thresher sample`, which are found by `id`",
)

CHECKED = InputContract(
    "checked",
    (
        InputField("id", "key", "the item that people checked", required=True),
        InputField("label", "any", "whether it is true, as people say", required=True),
    ),
    "what people say of some of the items whose `labels` are those of a judge: a model, or a crowd",
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
DRAWN = "labelled_predictions"  # the relation of labelled rows, where labels are those of a sample
OF_DRAWN = "_drawn"  # behind the names of outcomes: weights of the labelled rows, beside what is estimated of all rows
CROSSED = ("counts_of_second_parent", "counts_of_both_parents")  # count tables of rows with two parents
LIKELIHOOD = (
    *("n", "n_outside", "weights", "squares", "first", "weighted", "second", "squared_errors"),
    *("first_open", "squared_errors_open"),  # half of what is open of two sums, above 0 only where cells made them
)
CROSSED_LIKELIHOOD = ("likelihood_of_second_parent", "likelihood_of_both_parents")
CROSSED_CALIBRATION = ("calibration_of_second_parent", "calibration_of_both_parents")
COUNT_NAMES = tuple(column.name for column in COUNTS)
EVERY_HUNDREDTH = EvenThresholds(start=0.01, stop=0.99, count=99)
Share = Annotated[float, Field(gt=0, lt=1)]
HEAVIEST = ("heaviest_positive", "heaviest_negative")  # of a group: the largest weights, with rows that have any
LIGHTEST = ("lightest_positive", "lightest_negative")  # and the smallest above 0


COST_PER_ROW = "cost_per_row"


class ThresholdSweepParameters(StageParameters):
    """Parameters of threshold_sweep.

    Attributes:
        predictions: Scored and labelled predictions.
        labels: Labels of a sample of them, in the place of a column `label`.
        checked: Labels that people gave to some of these items, if `labels` are those of a judge, who errs: drawn
            without a look at scores or labels.
        sampling: `simple`: all labelled rows were drawn alike; default: the labels say how they were drawn.
        method: How areas and means of scores are found: `exact`: from all rows; `binned`: from counts in cells of
            scores, in one scan or a few, with certified bounds.
        width: Widest bounds of areas and means that `binned` accepts.
        class_sizes: What the intervals are about: `random`: samples of as many rows; `fixed`: samples with as many
            positives and negatives. With clusters the sizes are always random.
        operating_points: Thresholds to choose: `{ beta = 1 }`, `{ min_precision = 0.9 }`, `{ min_recall = 0.8 }`, the
            last two perhaps with a `confidence` that they hold on new data; `{ max_alerts = 500 }`,
            `{ max_alert_share = 0.01 }`, `{ cost = { fp = 1, fn = 20 } }`; or of your own: `{ threshold = 6.54 }`.
        metrics: Further numbers of the curve and of the operating points: `specificity`, `npv`, `accuracy`,
            `balanced_accuracy`, `youden_j`, `mcc`.
        max_fpr: The false positive rate up to which the area under the ROC curve is wanted, too.
        averages: Averages over groups: `micro`, `macro`, `weighted`.
        average_over: Grouping columns to average over; default: all of a grouping.
        net_benefit: Whether to make decision curves, of scores that are probabilities.
        threshold_probabilities: Where: an even grid or an ascending list from 0 to below 1; default: 0.01 to 0.99.
        prevalence: Shares of positives for which precision and operating points are wanted, too.
        outcomes: Whether the sample of single rows is made; `auto`: up to one million rows of predictions, unless
            `uncertainty = "none"`.
        calibration: Whether the tables of calibration are made; `auto`: if scores lie in [0, 1].
        calibration_bins: Number of bins of scores, by quantile and of equal width.
        units: Whether the table of units is made, on which `compare` compares systems: of the clusters, else of the
            items that `id` names; `auto`: up to one million rows of predictions, or 250,000 items.
        bands: Whether limits are made that hold at all thresholds together, from draws by `seed`.
    """

    most_parents: ClassVar[int] = 2

    kind: Literal["threshold_sweep"] = "threshold_sweep"
    predictions: Input
    labels: Input | None = None
    checked: Input | None = None
    sampling: Literal["simple"] | None = None
    thresholds: EvenThresholds | tuple[float, ...] | Literal["distinct"] | None = "distinct"
    method: Literal["exact", "binned"] = "exact"
    width: Annotated[float, Field(ge=1e-9, lt=1)] = 1e-4
    class_sizes: Literal["fixed", "random"] = "random"
    operating_points: tuple[Criterion, ...] = (Criterion(beta=1),)
    metrics: tuple[str, ...] = ()
    max_fpr: Annotated[float, Field(gt=0, lt=1)] | None = None
    averages: tuple[Average, ...] = ()
    average_over: tuple[str, ...] = ()
    net_benefit: bool = False
    threshold_probabilities: EvenThresholds | tuple[float, ...] | None = None
    prevalence: Share | tuple[Share, ...] = ()
    outcomes: Literal["auto"] | bool = "auto"
    calibration: Literal["auto"] | bool = "auto"
    calibration_bins: Annotated[int, Field(ge=2, le=100)] = 10
    units: Literal["auto"] | bool = "auto"
    bands: bool = False

    @model_validator(mode="before")
    @classmethod
    def _of_judge(cls, values: object) -> object:
        """`judge = { labels, checked }` says of two inputs that they belong together."""
        if not isinstance(values, dict) or "judge" not in values:
            return values
        judge = values["judge"]
        if not isinstance(judge, dict) or set(judge) != {"labels", "checked"}:
            message = (
                "judge: write { labels = …, checked = … }: the judge's labels, and those of people for some of them"
            )
            raise ValueError(message)
        if twice := sorted(set(judge) & set(values)):
            message = f"judge names {' and '.join(twice)}, which stands beside it, too: leave one of them out"
            raise ValueError(message)
        return {**{name: value for name, value in values.items() if name != "judge"}, **judge}

    @field_validator("operating_points")
    @classmethod
    def _once(cls, value: tuple[Criterion, ...]) -> tuple[Criterion, ...]:
        return each_once(value, counts_all=True)

    @field_validator("metrics")
    @classmethod
    def _known(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        offered = [each.name for each in FURTHER]
        if unknown := [name for name in value if name not in offered]:
            message = f"metrics has no {unknown[0]!r}; there are {', '.join(offered)}"
            raise ValueError(message)
        if len(set(value)) < len(value):
            message = f"metrics names one twice: {', '.join(value)}"
            raise ValueError(message)
        return value

    @field_validator("prevalence")
    @classmethod
    def _different(cls, value: float | tuple[float, ...]) -> float | tuple[float, ...]:
        if isinstance(value, tuple) and len(set(value)) < len(value):
            message = "prevalence names a share twice"
            raise ValueError(message)
        return value

    @model_validator(mode="after")
    def _of_net_benefit(self) -> ThresholdSweepParameters:
        if self.threshold_probabilities is None:
            return self
        if not self.net_benefit:
            message = "threshold_probabilities goes with net_benefit = true"
            raise ValueError(message)
        values = self.probabilities
        ascending(values)
        if values[0] < 0 or values[-1] >= 1:
            message = f"threshold_probabilities lie from 0 to below 1, not from {values[0]:g} to {values[-1]:g}"
            raise ValueError(message)
        return self

    @property
    def probabilities(self) -> tuple[float, ...]:
        """The threshold probabilities, in ascending order."""
        asked = self.threshold_probabilities
        return asked if isinstance(asked, tuple) else (asked or EVERY_HUNDREDTH).values()

    @property
    def prevalences(self) -> tuple[float, ...]:
        """The shares of positives that are asked for, in ascending order."""
        return tuple(sorted(self.prevalence)) if isinstance(self.prevalence, tuple) else (self.prevalence,)

    @property
    def counted_thresholds(self) -> tuple[float, ...] | None:
        """The thresholds that rows are counted by, including those of net benefit; None: every score."""
        values = self.threshold_values
        if values is None or not self.net_benefit:
            return values
        return tuple(sorted({*values, *self.probabilities}))

    def grid(self) -> Grid | None:
        """The thresholds that rows are counted by, with their boundary; None when they are the scores themselves."""
        values = self.counted_thresholds
        return None if values is None else Grid(values, self.boundary)

    @model_validator(mode="after")
    def _of_labels(self) -> ThresholdSweepParameters:
        if self.labels is None and self.sampling is not None:
            message = "sampling says how the rows of labels were drawn: give labels, or leave sampling out"
            raise ValueError(message)
        if self.labels is None and self.checked is not None:
            message = "checked says how far the labels of a judge are right: give labels, or leave checked out"
            raise ValueError(message)
        if self.labels is None:
            return self
        if self.counts_missed:
            message = (
                'invalid_scores = "missed" does not go with labels of a sample: rows without a score have no stratum'
            )
            raise ValueError(message)
        if self.second_cluster_column is not None:
            message = "labels of a sample know one cluster, not two: give the one that rows were drawn by"
            raise ValueError(message)
        return self

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
        if self.bands and self.uncertainty == "none":
            message = 'bands = true asks for limits, and uncertainty = "none" for none: leave one of them out'
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


# Intervals of the curve of threshold_sweep: rows are independent, or only clusters of them.


CONFUSION = ("tp", "fp", "fn", "tn")
SEEN = "_seen"  # events of a kind of row that a group has none of
FAR_HEAVIER = 10  # times
_BY_LABEL = "_by_label"


def with_intervals(
    curve: pl.DataFrame, cube: Cube, params: ThresholdSweepParameters, clusters: pl.DataFrame
) -> pl.DataFrame:
    """The curve, with the heaviest weights, with `<ratio>_lower`, `<ratio>_upper` and what is said of them."""
    names = (*PROPORTIONS, *params.metrics)
    if params.cluster is None:
        if not params.is_replicated:
            return with_quality(curve.with_columns(no_limits(names, "none")), names)
        fixed = params.class_sizes == "fixed"
        limits = limits_of_rows(curve, params.confidence, names, fixed_sizes=fixed)
        intervals = {name: Interval.of(limits[name], "undefined_ratio") for name in names}
        return with_quality(curve.hstack(list(limit_columns(intervals))), names, events=CONFUSION)

    def of_clusters(rows: pl.DataFrame, group: GroupCounts) -> dict[str, Interval]:
        replicates = min(len(counts.replicates) for counts in (group, *group.crossed))
        limits = limits_of_clusters(rows, group, params.confidence, names, params.resampling)
        return intervals_of(limits, replicates)

    return with_limits(
        curve,
        cube,
        names,
        of_clusters,
        wanted=params.is_replicated,
        clusters=clusters,
        events=CONFUSION,
        resamples=params.drawn_resamples,
    )


def clusters_of_groups(params: ThresholdSweepParameters, cube: Cube) -> pl.DataFrame:
    """`clusters_of` the groups, of two parents the fewer; NULL where rows are independent or not in replicates."""
    if params.cluster is None or not params.is_replicated:
        return no_clusters(cube)
    kind = kind_of_counts(cube.counts)
    table = clusters_of_parents(cube, sizes_of(kind))
    return marked_in_time(table, cube, sizes_of(kind), partial(confusion_of, kind=kind))


def with_heaviest(rows: pl.DataFrame, heaviest: pl.DataFrame | None, keys: Sequence[str]) -> pl.DataFrame:
    """Rows with how heavy a positive and a negative row of their group may be that was not observed.

    Where all rows of a label weigh the same, in both labels, the label gave the weight, and a row weighs what those of
    its label do; in place of a label without rows that of the other. Otherwise something else gave it, such as the
    score that rows were sampled by, so that a row may be as heavy as any of its group: that no positive was drawn from
    the stratum of the heaviest rows is no sign that it has none.
    """
    if heaviest is None:
        return rows.hstack([pl.Series(name, [1.0]).new_from_index(0, rows.height) for name in HEAVIEST])
    either = pl.max_horizontal(HEAVIEST)
    is_own = (pl.when(pl.col(_BY_LABEL) & (pl.col(name) > 0)).then(name) for name in HEAVIEST)
    names = zip(is_own, HEAVIEST, strict=True)
    largest = _weights(heaviest, keys).select(*keys, *(own.otherwise(either).alias(name) for own, name in names))
    return beside(rows, largest, keys)


def with_fewest_seen(rows: pl.DataFrame, heaviest: pl.DataFrame | None, keys: Sequence[str]) -> pl.DataFrame:
    """Rows with `SEEN`: few where a label has no row nearly as heavy as the heaviest of the group, which may hide one.

    It is NULL elsewhere, and where the label gave the weights, see `with_heaviest`.
    """
    if heaviest is None:
        return rows.hstack(nothing([SEEN], rows.height, pl.Int64))
    hides = ~pl.col(_BY_LABEL) & (pl.min_horizontal(HEAVIEST) * FAR_HEAVIER < pl.max_horizontal(HEAVIEST))
    few = _weights(heaviest, keys).select(*keys, pl.when(hides).then(pl.lit(FEWEST_EVENTS - 1)).alias(SEEN))
    return beside(rows, few, keys)


def _weights(heaviest: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """The heaviest row of each label by group, and whether all rows of a label weigh the same, in both labels."""
    extremes = heaviest.group_by(keys).agg(
        *(pl.col(name).cast(pl.Float64).max() for name in HEAVIEST),
        *(pl.col(name).cast(pl.Float64).min() for name in LIGHTEST),
    )
    sides = zip(HEAVIEST, LIGHTEST, strict=True)
    alike = ((pl.col(high) <= 0) | (pl.col(high) == pl.col(low)) for high, low in sides)
    return extremes.with_columns(pl.all_horizontal(*alike).alias(_BY_LABEL))


def sizes_of(kind: str) -> tuple[str, str]:
    """The counts that make the size of a cluster."""
    return f"{kind}_positive", f"{kind}_negative"


def kind_of_counts(counts: pl.DataFrame) -> Literal["weight", "n"]:
    """`weight` where rows have weights, else `n`; a run whose weights are all 0 is refused before it counts."""
    return "weight" if counts["weight_positive"].sum() or counts["weight_negative"].sum() else "n"


def confusion_of(group: GroupCounts, kind: str) -> Confusion:
    """Counts or weights of each replicate at each threshold."""
    tp, fp = (group.at_or_above(f"{kind}_{side}") for side in ("positive", "negative"))
    positives, negatives = (group.totals(f"{kind}_{side}")[:, None] for side in ("positive", "negative"))
    return Confusion(tp, fp, positives - tp, negatives - fp, in_time=group.in_time)


def limits_of_clusters(
    rows: pl.DataFrame,
    group: GroupCounts,
    confidence: float,
    names: Sequence[str],
    resampling: Resampling | None = None,
) -> dict[str, Limits]:
    """Limits of the ratios of one group where replicates are independent, of two parents those that share neither."""
    (counts, *crossed), heaviest = counts_of_clusters(rows, group)
    indices, ratios = _told_apart(names)
    limits = intervals_of_clusters(
        counts, confidence, heaviest=heaviest, names=ratios, crossed=crossed, resampling=resampling
    )
    if indices:
        _, weights = confusion_of_rows(rows)
        squares = None if weights is None else weights.squares
        limits |= {each.name: index_limits_of_clusters(each, counts, squares, confidence, crossed) for each in indices}
    return limits


def counts_of_clusters(rows: pl.DataFrame, group: GroupCounts) -> tuple[list[Confusion], tuple[float, float] | None]:
    """Counts or weights of one group by each of its clusterings, and the heaviest weights where rows have any."""
    weighted = rows["tp_weight"].null_count() < rows.height
    heaviest = (rows[HEAVIEST[0]][0], rows[HEAVIEST[1]][0]) if weighted else None
    kind: Literal["weight", "n"] = "weight" if weighted else "n"
    return [confusion_of(clustering, kind) for clustering in (group, *group.crossed)], heaviest


def limits_of_rows(
    curve: pl.DataFrame, confidence: float, names: Sequence[str], *, fixed_sizes: bool
) -> dict[str, Limits]:
    """Limits where rows are independent: of the counts, or of weights with their squares."""
    counts, weights = confusion_of_rows(curve)
    indices, ratios = _told_apart(names)
    limits = intervals_of_rows(counts, weights, confidence, fixed_sizes=fixed_sizes, names=ratios)
    squares = None if weights is None else weights.squares
    return limits | {each.name: index_limits_of_rows(each, counts, squares, confidence) for each in indices}


def _told_apart(names: Sequence[str]) -> tuple[list[Index], list[str]]:
    """The indices among some numbers, and the names of the ratios."""
    return [INDEX_OF[name] for name in names if name in INDEX_OF], [name for name in names if name in RATIO_OF]


def with_further(curve: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """The curve with further numbers of its outcomes, of weights if there are any; undefined ones are NULL."""
    if not names:
        return curve
    counted = outcomes()
    values = {"tp": counted.tp, "fp": counted.fp, "fn": counted.fn, "tn": counted.tn}
    counts = curve.select(value.alias(name) for name, value in values.items() if value is not None)
    of_all = Confusion(*(counts[name].to_numpy() for name in CONFUSION))
    indices, ratios = _told_apart(names)
    of_ratios = counts.select(ratio_of(RATIO_OF[name], {each: pl.col(each) for each in CONFUSION}) for name in ratios)
    return curve.with_columns(*of_ratios, *(doubles(index.name, index_of(index, of_all)) for index in indices))


def confusion_of_rows(curve: pl.DataFrame) -> tuple[Confusion, Weights | None]:
    """Outcomes of rows of the curve, of weights where there are any, and what else is known of the weights."""
    weighted = curve["tp_weight"].is_not_null().to_numpy()
    counts = [curve[name].cast(pl.Float64).to_numpy() for name in CONFUSION]

    if not weighted.any():
        return Confusion(*counts), None

    def confusion(suffix: str) -> Confusion:
        weights = [curve[f"{name}{suffix}"].cast(pl.Float64).fill_null(0.0).to_numpy() for name in CONFUSION]
        return Confusion(*(np.where(weighted, heavy, light) for light, heavy in zip(counts, weights, strict=True)))

    heaviest = (np.where(weighted, curve[name].to_numpy(), 1.0) for name in HEAVIEST)
    return confusion("_weight"), Weights(confusion("_squares"), *heaviest)


def outcomes() -> Outcomes[pl.Expr]:
    """Outcomes of a row of the curve, of weights if there are any."""
    return Outcomes(*(pl.coalesce(f"{name}_weight", pl.col(name).cast(pl.Float64)) for name in CONFUSION))


def f_beta(beta: float) -> pl.Expr:
    """F-beta of a row of the curve, of weights if there are any."""
    square = beta**2
    counts = outcomes()
    tp, fp, fn = counts.tp, counts.fp, counts.fn
    return (1 + square) * tp / ((1 + square) * tp + square * fn + fp)
