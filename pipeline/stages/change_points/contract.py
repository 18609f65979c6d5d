"""Inputs, parameters and result tables of change_points."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, field_validator, model_validator

from ...base.columns import Count, Ratio, columns_of
from ...base.schemas import Column, Table, limits_of, of_chosen_row, unlike_but_for_case
from ...metrics.change_points.windows import Margin
from ...metrics.curves.operating_points import COLUMNS as CHOSEN_ELSEWHERE
from ...metrics.curves.operating_points import Criterion, cost_columns, criterion_column, each_once
from ...metrics.uncertainty.limits import CLUSTER_COLUMNS, QUALITY_COLUMN
from ...sources.inputs import Field as InputField
from ...sources.inputs import Input, InputContract
from ..parameters import StageParameters, Thresholds, parse_microseconds
from ..stage import CLUSTER

ANNOTATOR = "annotator_id"
SERIES_ID = "series_id"
POSITION, START, END = "position", "start", "end"
INCIDENTS = "incidents"  # what true points are where they last

PREDICTIONS = InputContract(
    "predictions",
    (
        InputField(SERIES_ID, "key", "the series", required=True),
        InputField(POSITION, "position", "where the change is: an index, a number or a time", required=True),
        InputField("score", "number", "score of the prediction; higher means more confident"),
    ),
    "one row per predicted change point",
    required=True,
    evaluated=True,
)
ANNOTATIONS = InputContract(
    "annotations",
    (
        InputField(SERIES_ID, "key", "the series", required=True),
        InputField(POSITION, "position", "where the change is, of the same type as in predictions"),
        InputField(START, "position", "where an incident that lasts starts, in place of position"),
        InputField(END, "position", "where it ends"),
        InputField(ANNOTATOR, "key", "who marked it"),
    ),
    "one row per true change point, or incident, as marked by each annotator",
    required=True,
    evaluated=True,
    truth_of="predictions",
)
SERIES = InputContract(
    "series",
    (
        InputField(SERIES_ID, "key", "a series that was annotated", required=True),
        InputField("n_obs", "integer", "number of its observations; needed for covering"),
        InputField(START, "position", "where its observation starts; needed with end for false alarms over time"),
        InputField(END, "position", "where its observation ends"),
    ),
    "one row per annotated series",
    evaluated=True,
)
RUNS = InputContract(
    "runs",
    (InputField(SERIES_ID, "key", "a series that was searched for change points", required=True),),
    "one row per series and value of the grouping columns of predictions that was run, also those that found nothing",
)
CODERS = InputContract(
    "coders",
    (
        InputField(SERIES_ID, "key", "a series", required=True),
        InputField(ANNOTATOR, "key", "who looked at it", required=True),
    ),
    "one row per series and annotator, also those who marked nothing",
    evaluated=True,
)


# Lengths of time, or of positions, as a config writes them.


def _length(value: object) -> object:
    """A positive number, or a positive duration, as it is written."""
    if isinstance(value, str):
        if parse_microseconds(value) > 0:
            return value
    elif isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value > 0:
        return value
    message = f'{value!r}: write a number above 0, or a duration such as "6h"'
    raise ValueError(message)


Length = Annotated[int | float | str, BeforeValidator(_length)]  # an int stays exact


def in_positions(length: Any) -> float:  # noqa: ANN401 - a number or a duration
    """A length in the unit of the positions: microseconds where it is a duration."""
    return parse_microseconds(length) if isinstance(length, str) else length


class MarginSides(BaseModel):
    """How far a prediction may lie from a true point.

    Attributes:
        before: How much earlier: a number in the unit of the positions, or a duration where they are times.
        after: How much later.
    """

    model_config = ConfigDict(defer_build=True, frozen=True, extra="forbid")
    forms: ClassVar[str] = 'a number, a duration such as "2h", or a table { before = …, after = … }'

    before: int | float | str  # an int stays exact
    after: int | float | str

    @model_validator(mode="before")
    @classmethod
    def _one_for_both(cls, value: object) -> object:
        return {"before": value, "after": value} if isinstance(value, int | float | str) else value

    @field_validator("before", "after", mode="before")
    @classmethod
    def _side(cls, value: object) -> object:
        if isinstance(value, str):
            parse_microseconds(value)
            return value
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not math.isfinite(value) or value < 0:  # type: ignore[arg-type, operator]
            message = f'{value!r}: write a number from 0 on, or a duration such as "2h"'
            raise ValueError(message)
        return value

    @model_validator(mode="after")
    def _alike(self) -> MarginSides:
        if isinstance(self.before, str) != isinstance(self.after, str):
            message = "both sides must be numbers, or both durations"
            raise ValueError(message)
        return self

    @property
    def is_duration(self) -> bool:
        """Whether it is for positions that are times."""
        return isinstance(self.before, str)

    @property
    def has_zero(self) -> bool:
        """Whether a side is 0."""
        return 0 in {in_positions(self.before), in_positions(self.after)}

    def closed(self, *, closed: bool) -> Margin:
        """The margin in the unit of the positions, of times microseconds; closed: a distance equal to it matches."""
        return Margin(in_positions(self.before), in_positions(self.after), closed=closed)


# Counts and ratios of points, and of points as alarms.


_SERIES = Count("n_series", "runs on one series; with separate annotators each counts", total="n_series")
_TRUE = Count("n_true", "true points", total="n_true", noun="true change points")
_PREDICTED = Count(
    "n_predicted",
    "predictions at or above the threshold",
    within="n_predicted",
    total="n_always",
    noun="predicted change points",
)
_TP = Count("tp", "true positives, by the rule of matching", within="tp", total="tp_always")
_RECALL = Ratio("recall", ("tp",), ("fn",), "no true point", over=("n_true",), reason="no_positive")
STATED = (  # a further ratio is one more statement: column, comment, value, limits, formula and plan follow from it
    _SERIES,
    _TRUE,
    _PREDICTED,
    _TP,
    Count("fp", formula="n_predicted - tp", is_shown=False),
    Count("fn", formula="n_true - tp", is_shown=False),
    Count("recall_sum", within="recall_sum", total="recall_always", is_shown=False),
    Count("n_ignored", within="n_ignored", total="n_ignored_always", is_shown=False),
    Ratio(
        "precision",
        ("tp",),
        ("fp",),
        "nothing is predicted",
        over=("n_predicted",),
        says="{formula}; above 1 is possible with `any`",
        reason="no_prediction",
    ),
    replace(_RECALL, says="{formula}; with `tcpd` the mean over annotators and series"),
    Ratio(
        "f1",
        ("tp",),
        ("fp", "fn"),
        "neither",
        is_harmonic=True,
        over=("n_predicted", "n_true"),
        says="{formula}; with `tcpd` the harmonic mean",
    ),
)


# Tables and counts of change points as alarms.


ALARM_TABLES = ("change_points_alarms", "change_points_alarm_points")
QUANTILES = {"lead_p10": 0.1, "lead_p25": 0.25, "median_lead": 0.5, "lead_p75": 0.75, "lead_p90": 0.9}
ALL_PREDICTIONS = "all_predictions"
LEADS = "leads"  # the count table of leads

_MEANINGS = {
    "n_false": "false alarms",
    "n_ignored": "alarms that count neither as true nor as false",
    "n_merged": "alarms that are one with an earlier one, by the cooldown",
    "n_alerted": "true points with an alarm in their zone",
    "n_ahead": "true points whose first alarm comes before them",
    "lead_sum": "the leads of the first alarms, added up",
}
ALARM_COUNTS = (
    *(
        Column(f"{name}{suffix}", "DECIMAL" if name == "lead_sum" else "BIGINT", f"{words}: {meaning}; alarms only")
        for suffix, words in (
            ("", "what the bin adds to"),
            ("_always", "the same of predictions that count at every threshold"),
        )
        for name, meaning in _MEANINGS.items()
    ),
    Column("observed", "DECIMAL", "observed time, in the unit of the positions, of times in microseconds; alarms only"),
)
_UNIT = "in the unit of the positions, hours for times"


def _swept(name: str, meaning: str = "", *, is_shown: bool = True) -> Count:
    """A count of alarms: of the bins, and of the predictions that count at every threshold."""
    return Count(name, meaning, within=name, total=f"{name}_always", is_shown=is_shown)


RATE = Ratio(
    "false_alarm_rate",
    ("n_false",),
    (),
    "`per` is not given, or no time was observed",
    over=("observed",),
    says="{formula}: false alarms per unit of time",
    is_rate=True,
)
BETWEEN = Ratio(
    "time_between_false_alarms",
    ("observed",),
    (),
    "no false alarm, or no rate",
    over=("n_false",),
    says="{formula}, in units of `per`",
    is_rate=True,
)
AHEAD = Ratio(
    "share_ahead", ("n_ahead",), (), "no alarm", over=("n_alerted",), says="{formula}: share that is told ahead of time"
)
ALARMS_STATED = (
    _SERIES,
    replace(_TRUE, meaning="true points, or incidents"),
    replace(_PREDICTED, meaning="alarms that detect something or are false, as in `change_points_curve`"),
    replace(_TP, meaning="true points that are detected, by the rule of matching"),
    _swept("n_false", "false alarms"),
    _swept("n_ignored", "repeats that count neither as true nor as false"),
    _swept("n_merged", "predictions that are one alarm with an earlier one, by the cooldown"),
    Column("observed", "DOUBLE", "observed time of all runs, in units of `per`; NULL: `per` is not given"),
    Column("per", "VARCHAR", "the unit of time, as the config has it; NULL: it is not given"),
    RATE,
    BETWEEN,
    replace(_RECALL, says="{formula}: share that is detected"),
    _swept("n_alerted", "true points with an alarm in their zone, under every rule"),
    _swept("n_ahead", "those of them whose first alarm comes before they start"),
    _swept("lead_sum", is_shown=False),
    Count("observed_time", total="observed", is_shown=False),
)
_MEAN = Column("mean_lead", "DOUBLE", f"mean of start − first alarm, {_UNIT}; above 0 it is ahead; NULL: no alarm")
_THRESHOLD = Column("threshold", "DOUBLE", "score from which a prediction counts; NULL: nothing has a score")
_UNDEFINED_INTERVAL = Column(
    "undefined_interval",
    "VARCHAR",
    "why an interval is NULL: the [reasons](methods/change_points.md#intervals); NULL: all intervals are given",
)
_REASONS = (
    Column(
        "undefined",
        "VARCHAR",
        "why a ratio is NULL: the [reasons](methods/change_points.md#rates-and-leads); NULL: all are defined",
    ),
    _UNDEFINED_INTERVAL,
    QUALITY_COLUMN,
)
_ALARMS = (_THRESHOLD, *columns_of(ALARMS_STATED), _MEAN, *_REASONS)


def _quantile(name: str, share: float) -> tuple[Column, ...]:
    words = "median" if name == "median_lead" else f"{share:.0%} quantile"
    return (Column(name, "DOUBLE", f"{words} of these leads, {_UNIT}; NULL: no alarm"), *limits_of(name))


_POINTS = (
    Column("criterion", "VARCHAR", f"what the threshold was chosen for; `{ALL_PREDICTIONS}` where nothing has a score"),
    *_ALARMS[: _ALARMS.index(_MEAN)],
    *AHEAD.columns(),
    _MEAN,
    *limits_of("mean_lead"),
    *(column for name, share in QUANTILES.items() for column in _quantile(name, share)),
    *_REASONS,
)
ALARMS = Table("change_points_alarms", "one row per group and threshold", _ALARMS, ("threshold",))
ALARM_POINTS = Table(
    "change_points_alarm_points", "one row per group and criterion that chose a threshold", _POINTS, ("criterion",)
)


Matching = Literal["one_to_one", "any", "roerich", "ruptures", "nearest"]
Annotators = Literal["union", "separate", "tcpd"]

COUNTS = (
    Column("n_series", "BIGINT", "runs on one series; with separate annotators each counts"),
    Column("n_true", "BIGINT", "true points"),
    Column("n_predicted", "BIGINT", "predictions in the bin"),
    Column("tp", "BIGINT", "what the predictions of the bin add to the true positives"),
    Column("recall_sum", "DECIMAL", "what they add to the recalls of the series, averaged over annotators; tcpd only"),
    Column("n_always", "BIGINT", "predictions that count at every threshold: without scores all, with tcpd index 0"),
    Column("tp_always", "BIGINT", "what these add to the true positives"),
    Column("recall_always", "DECIMAL", "what these add to the recalls; tcpd only"),
    Column("n_rows", "BIGINT", "rows of predictions"),
    *ALARM_COUNTS,
)
COUNT_NAMES = tuple(column.name for column in COUNTS)


_COLUMNS = {column.name: column for column in columns_of(STATED)}
_UNDEFINED = Column(
    "undefined",
    "VARCHAR",
    "why a ratio is NULL: the [reasons](methods/change_points.md#edge-cases); NULL: all ratios are defined",
)
CURVE = (_THRESHOLD, *columns_of(STATED), _UNDEFINED, _UNDEFINED_INTERVAL, QUALITY_COLUMN)
CHOSEN = of_chosen_row(
    CURVE, reasons="`not_reached`, `not_promised`", always=("undefined", "undefined_interval", "interval_quality")
)
AREAS = (
    *columns_of((_SERIES, _TRUE)),
    Column("n_predicted", "BIGINT", "predictions"),
    Column("average_precision", "DOUBLE", "step area, from every score; NULL: see `undefined`"),
    Column(
        "pr_auc", "DOUBLE", "trapezoids at the thresholds of the stage, level down to recall 0; NULL: see `undefined`"
    ),
    Column(
        "pr_auc_roerich",
        "DOUBLE",
        ("trapezoids from every score, from recall 0 at precision 1 to recall 1 at precision 0; NULL: see `undefined`"),
    ),
    Column("n_covered", "BIGINT", "runs with a known number of observations"),
    Column(
        "covering",
        "DOUBLE",
        "mean segmentation covering of these runs by all predictions; NULL: no number of observations",
    ),
    Column(
        "undefined",
        "VARCHAR",
        "why an area is NULL: the [reasons](methods/change_points.md#edge-cases); NULL: all areas are defined",
    ),
    *CLUSTER_COLUMNS,
)
SERIES_COLUMNS = (
    Column(SERIES_ID, "KEY", "the series"),
    *columns_of((_TRUE,)),
    Column("n_predicted", "BIGINT", "predictions, whatever their score"),
    *columns_of((_TP,)),
    _COLUMNS["precision"],
    replace(_RECALL, says="{formula}; with `tcpd` the mean over annotators").column(),
    _COLUMNS["f1"],
    Column("mean_delay", "DOUBLE", "mean of prediction − true point over the matches; hours for times; NULL: no match"),
    Column("covering", "DOUBLE", "segmentation covering; NULL: no number of observations"),
    _UNDEFINED,
)
DELAYS = (
    Column(SERIES_ID, "KEY", "the series"),
    Column("position", "POSITION", "the prediction; a TIMESTAMP in UTC for times and dates"),
    Column("rank", "BIGINT", "1, 2, … of matched predictions at one position"),
    Column("true_position", "POSITION", "the true point it is matched with; a TIMESTAMP in UTC for times and dates"),
    Column("delay", "DOUBLE", "position − true_position; hours for times"),
    Column("score", "DOUBLE", "score of the prediction; NULL: no scores"),
)
TABLES = (
    Table("change_points_curve", "one row per group and threshold", CURVE, ("threshold",)),
    Table(
        "change_points_operating_points",
        "one row per group with scores and criterion",
        (
            criterion_column("`max_f1`, `min_precision=0.9`, `min_recall=0.8,confidence=0.95`"),
            *CHOSEN,
            *CHOSEN_ELSEWHERE,
        ),
        ("criterion",),
    ),
    Table("change_points_areas", "one row per group", AREAS, ()),
    Table(
        "change_points_series", "one row per run on a series, over all its predictions", SERIES_COLUMNS, (SERIES_ID,)
    ),
    Table("change_points_delays", "one row per matched prediction", DELAYS, (SERIES_ID, "position", "rank")),
    ALARMS,
    ALARM_POINTS,
)


class ChangePointsParameters(StageParameters):
    """Parameters of change_points.

    Attributes:
        predictions: Predicted change points.
        annotations: True change points, as marked by each annotator.
        series: The annotated series, with their numbers of observations; predictions elsewhere are left out.
        runs: What was run, also where nothing was found; predictions of other runs are left out.
        coders: Who looked at which series, also those who marked nothing.
        margin: How far a prediction may lie from a true point: a number in the unit of the positions, a duration where
            they are times, or `{ before = …, after = … }`.
        margin_boundary: Whether a distance equal to the margin matches (`<=`) or not (`<`).
        matching: What a true positive is; default: `one_to_one`, with `annotators = "tcpd"` `nearest`.
        annotators: `union`: all distinct marks of a series; `separate`: one by one; `tcpd`: precision against the
            union, recall averaged over annotators, index 0 added to both sides.
        cooldown: Predictions of a run that come less than this after an alarm are one alarm with it: a number in the
            unit of the positions, or a duration where they are times.
        repeats: What an alarm counts as that lies near a true point and does not detect it: `false_alarm`, the default
            of points, or neither true nor false, `ignore`, the default of incidents that last.
        per: Unit of the observed time, such as `1d`: false alarms are counted per unit.
        area_scores: Whether average precision and pr_auc_roerich use every score, or only the thresholds of the stage.
        operating_points: Thresholds to choose: `{ beta = 1 }`, `{ min_precision = 0.9 }`, `{ min_recall = 0.8 }`, the
            last two perhaps with a `confidence` that they hold on new data.
        series_counts: Whether to write the table of series; `auto`: up to 10 million rows of predictions and marks.
        delays: Whether to write the table of matched predictions; `auto`: up to 1 million such rows.
    """

    kind: Literal["change_points"] = "change_points"
    predictions: Input
    annotations: Input
    series: Input | None = None
    runs: Input | None = None
    coders: Input | None = None
    thresholds: Thresholds = "distinct"
    margin: MarginSides
    margin_boundary: Literal["<", "<="] = "<"
    matching: Matching | None = None
    annotators: Annotators = "union"
    cooldown: Length | None = None
    repeats: Literal["ignore", "false_alarm"] | None = None
    per: Length | None = None
    area_scores: Literal["every", "thresholds"] = "every"
    operating_points: Annotated[tuple[Criterion, ...], AfterValidator(each_once)] = (Criterion(beta=1),)
    series_counts: Literal["auto"] | bool = "auto"
    delays: Literal["auto"] | bool = "auto"

    @model_validator(mode="after")
    def _fits(self) -> ChangePointsParameters:
        if self.margin_boundary == "<" and self.margin.has_zero:
            message = 'margin: a side of 0 with margin_boundary = "<" matches nothing, not even an exact hit: use "<="'
            raise ValueError(message)
        if self.annotators == "tcpd" and self.duplicates == "keep":
            message = 'annotators = "tcpd" works on sets of positions: use duplicates = "error" or "max"'
            raise ValueError(message)
        has_unequal_counts = self.rule == "any" or self.annotators == "tcpd"
        if has_unequal_counts and any(point.cost is not None for point in self.operating_points):
            message = (
                "cost needs counts in which each true positive is one prediction and one true point: it does not go "
                'with matching = "any", nor with annotators = "tcpd", whose recall is a mean'
            )
            raise ValueError(message)
        if self.annotators == "tcpd" and self.alarm_keys:
            message = (
                f'annotators = "tcpd" adds index 0 to both sides, which is no alarm: leave {self.alarm_keys[0]} out'
            )
            raise ValueError(message)
        named = [ANNOTATOR in grouping for grouping in self.by]
        if any(named) and self.annotators != "separate":
            message = f'by: {ANNOTATOR} goes with annotators = "separate", which adds it by itself'
            raise ValueError(message)
        if self.annotators != "separate" or all(named):
            return self
        groupings = tuple(each if has else (*each, ANNOTATOR) for each, has in zip(self.by, named, strict=True))
        if alike := unlike_but_for_case(name for names in groupings for name in names):
            message = f'by: {alike[0]!r} differs in case only from {alike[1]}, which annotators = "separate" adds'
            raise ValueError(message)
        return self.model_copy(update={"by": tuple(dict.fromkeys(groupings))})

    @property
    def alarm_keys(self) -> tuple[str, ...]:
        """The keys that are set of those that ask for alarms."""
        values = {"cooldown": self.cooldown, "repeats": self.repeats, "per": self.per}
        return tuple(name for name, value in values.items() if value is not None)

    @property
    def rule(self) -> Matching:
        """The rule of matching."""
        return self.matching or ("nearest" if self.annotators == "tcpd" else "one_to_one")


def further_columns(params: ChangePointsParameters) -> dict[str, tuple[Column, ...]]:
    """The columns that tables have because of costs and clusters."""
    cluster = Column(CLUSTER, "KEY", "the cluster of the series; NULL: it is not listed")
    return {
        "change_points_operating_points": cost_columns(params.operating_points),
        "change_points_series": () if params.cluster in {None, SERIES_ID} else (cluster,),
    }
