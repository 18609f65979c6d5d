"""Tables and counts of change points as alarms."""

from __future__ import annotations

from ...metrics.uncertainty.qualities import QUALITY_COLUMN
from ...tables.schemas import Column, Table, limits_of, limits_of_share

ALARM_TABLES = ("change_points_alarms", "change_points_alarm_points")
QUANTILES = {"lead_p10": 0.1, "lead_p25": 0.25, "median_lead": 0.5, "lead_p75": 0.75, "lead_p90": 0.9}
ALL_PREDICTIONS = "all_predictions"
SWEPT_ALARMS = ("n_false", "n_ignored", "n_merged", "n_alerted", "n_ahead", "lead_sum")
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
        Column(name, "DECIMAL" if name == "lead_sum" else "BIGINT", f"what the bin adds to: {meaning}; alarms only")
        for name, meaning in _MEANINGS.items()
    ),
    *(
        Column(
            f"{name}_always",
            "DECIMAL" if name == "lead_sum" else "BIGINT",
            f"the same of predictions that count at every threshold: {meaning}; alarms only",
        )
        for name, meaning in _MEANINGS.items()
    ),
    Column("observed", "DECIMAL", "observed time, in the unit of the positions, of times in microseconds; alarms only"),
)

_UNIT = "in the unit of the positions, hours for times"
_COUNTS = (
    Column("n_series", "BIGINT", "runs on one series; with separate annotators each counts"),
    Column("n_true", "BIGINT", "true points, or incidents"),
    Column("n_predicted", "BIGINT", "alarms that detect something or are false, as in `change_points_curve`"),
    Column("tp", "BIGINT", "true points that are detected, by the rule of matching"),
    Column("n_false", "BIGINT", "false alarms"),
    Column("n_ignored", "BIGINT", "repeats that count neither as true nor as false"),
    Column("n_merged", "BIGINT", "predictions that are one alarm with an earlier one, by the cooldown"),
    Column(
        "observed", "DOUBLE", "observed time of all runs, in units of `per`; NULL: `per` is not given", nullable=True
    ),
    Column("per", "VARCHAR", "the unit of time, as the config has it; NULL: it is not given", nullable=True),
)
_RATES = (
    Column(
        "false_alarm_rate",
        "DOUBLE",
        "n_false / observed: false alarms per unit of time; NULL: `per` is not given, or no time was observed",
        nullable=True,
    ),
    *limits_of("false_alarm_rate"),
    Column(
        "time_between_false_alarms",
        "DOUBLE",
        "observed / n_false, in units of `per`; NULL: no false alarm, or no rate",
        nullable=True,
    ),
    *limits_of("time_between_false_alarms"),
    Column("recall", "DOUBLE", "tp / n_true: share that is detected; NULL: no true point", nullable=True),
    *limits_of_share("recall"),
)
_LED = (
    Column("n_alerted", "BIGINT", "true points with an alarm in their zone, under every rule"),
    Column("n_ahead", "BIGINT", "those of them whose first alarm comes before they start"),
)
_MEAN = Column(
    "mean_lead", "DOUBLE", f"mean of start − first alarm, {_UNIT}; above 0 it is ahead; NULL: no alarm", nullable=True
)
_REASONS = (
    Column(
        "undefined",
        "VARCHAR",
        "why a ratio is NULL: the [reasons](methods/change_points.md#rates-and-leads); NULL: all are defined",
        nullable=True,
    ),
    Column(
        "undefined_interval",
        "VARCHAR",
        "why an interval is NULL: the [reasons](methods/change_points.md#intervals); NULL: all intervals are given",
        nullable=True,
    ),
    QUALITY_COLUMN,
)
_ALARMS = (
    Column("threshold", "DOUBLE", "score from which a prediction counts; NULL: nothing has a score", nullable=True),
    *_COUNTS,
    *_RATES,
    *_LED,
    _MEAN,
    *_REASONS,
)


def _quantile(name: str, share: float) -> tuple[Column, ...]:
    words = "median" if name == "median_lead" else f"{share:.0%} quantile"
    return (
        Column(name, "DOUBLE", f"{words} of these leads, {_UNIT}; NULL: no alarm", nullable=True),
        *limits_of(name),
    )


_POINTS = (
    Column(
        "criterion",
        "VARCHAR",
        f"what the threshold was chosen for; `{ALL_PREDICTIONS}` where nothing has a score",
    ),
    *_ALARMS[: _ALARMS.index(_MEAN)],
    Column(
        "share_ahead", "DOUBLE", "n_ahead / n_alerted: share that is told ahead of time; NULL: no alarm", nullable=True
    ),
    *limits_of_share("share_ahead"),
    _MEAN,
    *limits_of("mean_lead"),
    *(column for name, share in QUANTILES.items() for column in _quantile(name, share)),
    *_REASONS,
)
ALARMS = Table("change_points_alarms", "one row per group and threshold", _ALARMS, ("threshold",))
ALARM_POINTS = Table(
    "change_points_alarm_points", "one row per group and criterion that chose a threshold", _POINTS, ("criterion",)
)
