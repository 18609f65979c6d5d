"""Parameters and result tables of change_points."""

from __future__ import annotations

from typing import Literal

from pydantic import field_validator, model_validator

from ...metrics.curves.choice_columns import COLUMNS as CHOSEN_ELSEWHERE
from ...metrics.curves.choice_columns import cost_columns, criterion_column
from ...metrics.curves.operating_points import Criterion, each_once
from ...metrics.uncertainty.qualities import CLUSTER_COLUMNS, QUALITY_COLUMN
from ...sources.inputs import Input
from ...tables.groupings import unlike_but_for_case
from ...tables.schemas import Column, Table, limits_of_share, of_chosen_row
from ..parameters import EvenThresholds, StageParameters
from ..stage import CLUSTER
from .alarm_contract import ALARM_COUNTS, ALARM_POINTS, ALARMS
from .input_contracts import ANNOTATOR, SERIES_ID
from .lengths import Length
from .margins import MarginSides

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


_COUNTED = (
    Column("n_true", "BIGINT", "true points"),
    Column("n_predicted", "BIGINT", "predictions at or above the threshold"),
    Column("tp", "BIGINT", "true positives, by the rule of matching"),
)
_PRECISION = Column(
    "precision", "DOUBLE", "tp / n_predicted; above 1 is possible with `any`; NULL: nothing is predicted", nullable=True
)
_RECALL = Column(
    "recall",
    "DOUBLE",
    "tp / n_true; with `tcpd` the mean over annotators and series; NULL: no true point",
    nullable=True,
)
_F1 = Column(
    "f1", "DOUBLE", "2 tp / (n_predicted + n_true); with `tcpd` the harmonic mean; NULL: neither", nullable=True
)
_UNDEFINED = Column(
    "undefined",
    "VARCHAR",
    "why a ratio is NULL: the [reasons](methods/change_points.md#edge-cases); NULL: all ratios are defined",
    nullable=True,
)
CURVE = (
    Column("threshold", "DOUBLE", "score from which a prediction counts; NULL: nothing has a score", nullable=True),
    Column("n_series", "BIGINT", "runs on one series; with separate annotators each counts"),
    *_COUNTED,
    _PRECISION,
    *limits_of_share("precision"),
    _RECALL,
    *limits_of_share("recall"),
    _F1,
    *limits_of_share("f1"),
    _UNDEFINED,
    Column(
        "undefined_interval",
        "VARCHAR",
        "why an interval is NULL: the [reasons](methods/change_points.md#intervals); NULL: all intervals are given",
        nullable=True,
    ),
    QUALITY_COLUMN,
)
CHOSEN = of_chosen_row(
    CURVE, reasons="`not_reached`, `not_promised`", always=("undefined", "undefined_interval", "interval_quality")
)
AREAS = (
    Column("n_series", "BIGINT", "runs on one series; with separate annotators each counts"),
    Column("n_true", "BIGINT", "true points"),
    Column("n_predicted", "BIGINT", "predictions"),
    Column("average_precision", "DOUBLE", "step area, from every score; NULL: see `undefined`", nullable=True),
    Column(
        "pr_auc",
        "DOUBLE",
        "trapezoids at the thresholds of the stage, level down to recall 0; NULL: see `undefined`",
        nullable=True,
    ),
    Column(
        "pr_auc_roerich",
        "DOUBLE",
        ("trapezoids from every score, from recall 0 at precision 1 to recall 1 at precision 0; NULL: see `undefined`"),
        nullable=True,
    ),
    Column("n_covered", "BIGINT", "runs with a known number of observations"),
    Column(
        "covering",
        "DOUBLE",
        "mean segmentation covering of these runs by all predictions; NULL: no number of observations",
        nullable=True,
    ),
    Column(
        "undefined",
        "VARCHAR",
        "why an area is NULL: the [reasons](methods/change_points.md#edge-cases); NULL: all areas are defined",
        nullable=True,
    ),
    *CLUSTER_COLUMNS,
)
SERIES_COLUMNS = (
    Column(SERIES_ID, "KEY", "the series"),
    Column("n_true", "BIGINT", "true points"),
    Column("n_predicted", "BIGINT", "predictions, whatever their score"),
    Column("tp", "BIGINT", "true positives, by the rule of matching"),
    _PRECISION,
    Column("recall", "DOUBLE", "tp / n_true; with `tcpd` the mean over annotators; NULL: no true point", nullable=True),
    _F1,
    Column(
        "mean_delay",
        "DOUBLE",
        "mean of prediction − true point over the matches; hours for times; NULL: no match",
        nullable=True,
    ),
    Column("covering", "DOUBLE", "segmentation covering; NULL: no number of observations", nullable=True),
    _UNDEFINED,
)
DELAYS = (
    Column(SERIES_ID, "KEY", "the series"),
    Column("position", "POSITION", "the prediction; a TIMESTAMP in UTC for times and dates"),
    Column("rank", "BIGINT", "1, 2, … of matched predictions at one position"),
    Column("true_position", "POSITION", "the true point it is matched with; a TIMESTAMP in UTC for times and dates"),
    Column("delay", "DOUBLE", "position − true_position; hours for times"),
    Column("score", "DOUBLE", "score of the prediction; NULL: no scores", nullable=True),
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
    Table(
        "change_points_delays",
        "one row per matched prediction",
        DELAYS,
        (SERIES_ID, "position", "rank"),
    ),
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
    thresholds: EvenThresholds | tuple[float, ...] | Literal["distinct"] | None = "distinct"
    margin: MarginSides
    margin_boundary: Literal["<", "<="] = "<"
    matching: Matching | None = None
    annotators: Annotators = "union"
    cooldown: Length | None = None
    repeats: Literal["ignore", "false_alarm"] | None = None
    per: Length | None = None
    area_scores: Literal["every", "thresholds"] = "every"
    operating_points: tuple[Criterion, ...] = (Criterion(beta=1),)
    series_counts: Literal["auto"] | bool = "auto"
    delays: Literal["auto"] | bool = "auto"

    @field_validator("operating_points")
    @classmethod
    def _each_once(cls, value: tuple[Criterion, ...]) -> tuple[Criterion, ...]:
        return each_once(value)

    @model_validator(mode="after")
    def _fits(self) -> ChangePointsParameters:
        if self.margin_boundary == "<" and self.margin.has_zero:
            message = 'margin: a side of 0 with margin_boundary = "<" matches nothing, not even an exact hit: use "<="'
            raise ValueError(message)
        if self.annotators == "tcpd" and self.duplicates == "keep":
            message = 'annotators = "tcpd" works on sets of positions: use duplicates = "error" or "max"'
            raise ValueError(message)
        if any(point.cost is not None for point in self.operating_points) and self._has_unequal_counts:
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
    def _has_unequal_counts(self) -> bool:
        return self.rule == "any" or self.annotators == "tcpd"

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
    cluster = Column(CLUSTER, "KEY", "the cluster of the series; NULL: it is not listed", nullable=True)
    return {
        "change_points_operating_points": cost_columns(params.operating_points),
        "change_points_series": () if params.cluster in {None, SERIES_ID} else (cluster,),
    }
