"""The tables of change points as alarms: false alarms over time at every threshold, and leads at chosen ones."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from ...metrics.change_points.false_alarms import rate_limits
from ...metrics.change_points.leads import Leads
from ...metrics.uncertainty.limits import (
    UNDEFINED_INTERVAL,
    Interval,
    clusters_of,
    limit_names,
    marked_in_time,
    of_chosen,
    with_limits,
)
from ...metrics.uncertainty.marks import quality_of_events, quality_of_sizes
from ...metrics.uncertainty.proportions import Confusion
from ...metrics.uncertainty.qualities import INTERVAL_QUALITY, MEANINGS, worst
from ...tables.columns import by_group, nulls
from ...tables.ratios import quotient
from ...tables.sweep import REPLICATE, THRESHOLD
from .alarm_contract import (
    ALARM_POINTS,
    ALARMS,
    ALL_PREDICTIONS,
    LEADS,
    QUANTILES,
    SWEPT_ALARMS,
)
from .lengths import in_positions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...metrics.uncertainty.cube import Cube, GroupCounts
    from ...metrics.uncertainty.qualities import Quality
    from ...metrics.uncertainty.reasons import Reason
    from .contract import ChangePointsParameters

CRITERION = "criterion"
RATE, BETWEEN = "false_alarm_rate", "time_between_false_alarms"
_LEAD_NAMES = ("share_ahead", "mean_lead", *QUANTILES)
_WORST = {quality: number for number, quality in enumerate(MEANINGS)}
_OF_RECALL = "_quality_of_recall"
_OF_POINT = "_quality_of_point"
_REASON_OF_RECALL = "_undefined_interval_of_recall"


def alarm_tables(
    params: ChangePointsParameters,
    counts: Mapping[str, pl.DataFrame],
    cube: Cube,
    curve: pl.DataFrame,
    points: pl.DataFrame,
) -> dict[str, pl.DataFrame]:
    """The tables of alarms; none where points are not counted as alarms.

    Args:
        params: The parameters.
        counts: The tables of the plan.
        cube: The counts of all groups.
        curve: The table of the curve.
        points: The table of operating points.
    """
    if LEADS not in counts:
        return {}
    keys = list(cube.keys)
    alarms = _alarms(params, cube, curve, keys)
    return {
        ALARMS.name: alarms.select(*keys, *(column.name for column in ALARMS.columns)),
        ALARM_POINTS.name: _points(params, counts[LEADS], alarms, points, keys, in_time=cube.in_time),
    }


def _alarms(params: ChangePointsParameters, cube: Cube, curve: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """Counts and rates at every threshold of the curve."""
    always = [f"{name}_always" for name in SWEPT_ALARMS]
    names = ("n_series", "n_true", "n_predicted", "tp", "recall", *limit_names(["recall"]))
    frame = curve.select(
        *keys,
        THRESHOLD,
        *names,
        pl.col(INTERVAL_QUALITY).alias(_OF_RECALL),
        pl.col(UNDEFINED_INTERVAL).alias(_REASON_OF_RECALL),
    )
    swept, totals = cube.at_or_above(SWEPT_ALARMS), cube.totals([*always, "observed"])
    frame = frame.join(swept, on=[*keys, THRESHOLD], how="left", nulls_equal=True)
    frame = frame.with_columns(pl.col(SWEPT_ALARMS).fill_null(0)).join(totals, on=keys, how="left", nulls_equal=True)
    frame = frame.with_columns(
        *(pl.col(name).cast(pl.Float64) + pl.col(f"{name}_always").cast(pl.Float64) for name in SWEPT_ALARMS[-1:]),
        *(pl.col(name) + pl.col(f"{name}_always") for name in SWEPT_ALARMS[:-1]),
    )
    mean = quotient(frame["lead_sum"], frame["n_alerted"]).alias("mean_lead")
    return _with_rate_limits(params, cube, _with_rates(params, frame.with_columns(mean)), keys)


def _with_rates(params: ChangePointsParameters, frame: pl.DataFrame) -> pl.DataFrame:
    """With the observed time in its unit, the rate, the time between, and why one of them is NULL."""
    if params.per is None:
        observed = pl.lit(None, dtype=pl.Float64)
    else:
        observed = pl.col("observed").cast(pl.Float64) / in_positions(params.per)
    per = pl.lit(None if params.per is None else str(params.per), dtype=pl.String)
    frame = frame.with_columns(observed.alias("observed"), per.alias("per"))
    is_timed = pl.col("observed") > 0
    rate = pl.when(is_timed).then(pl.col("n_false") / pl.col("observed")).alias(RATE)
    between = pl.when(is_timed & (pl.col("n_false") > 0)).then(pl.col("observed") / pl.col("n_false")).alias(BETWEEN)
    reason = pl.when(pl.col("per").is_null()).then(pl.lit("no_unit")).when(~is_timed).then(pl.lit("no_time"))
    reason = reason.when(pl.col("n_true") == 0).then(pl.lit("no_positive"))
    reason = reason.when(pl.col("n_alerted") == 0).then(pl.lit("no_alert"))
    reason = reason.when(pl.col("n_false") == 0).then(pl.lit("no_false_alarm"))
    return frame.with_columns(rate, between, reason.alias("undefined"))


def _with_rate_limits(
    params: ChangePointsParameters, cube: Cube, frame: pl.DataFrame, keys: Sequence[str]
) -> pl.DataFrame:
    """With limits of the rate and of its reciprocal; a row's quality is the worst of the rate's and of the recall's."""

    def intervals(rows: pl.DataFrame, group: GroupCounts) -> dict[str, Interval]:
        events = group.at_or_above("n_false") + group.totals("n_false_always")[:, None]
        time = np.asarray(group.totals("observed"), dtype=np.float64) / (
            1 if params.per is None else in_positions(params.per)
        )
        lower, upper = rate_limits(events, time, params.confidence, params.resampling, in_time=group.in_time)
        undefined = rows[RATE].is_null().to_numpy()
        limits = np.where(undefined, np.nan, lower), np.where(undefined, np.nan, upper)
        return {RATE: Interval.of(limits, "undefined_ratio")}

    def of_time(group: GroupCounts) -> Confusion:
        false = group.at_or_above("n_false") + group.totals("n_false_always")[:, None]
        observed = np.asarray(group.totals("observed"), dtype=np.float64)[:, None]
        return Confusion(false, observed + 0 * false, 0 * false, 0 * false, in_time=group.in_time)

    clusters = clusters_of(cube.counts, keys, ("observed",))
    frame = with_limits(
        frame,
        cube,
        (RATE,),
        intervals,
        wanted=params.is_replicated,
        clusters=marked_in_time(clusters, cube, ["n_predicted"], of_time),
        events=("n_false",),
        resamples=params.drawn_resamples,
    )
    lower, upper = pl.col(f"{RATE}_lower"), pl.col(f"{RATE}_upper")
    qualities = (pl.col(name).replace_strict(_WORST, return_dtype=pl.Int64) for name in (INTERVAL_QUALITY, _OF_RECALL))
    names = pl.min_horizontal(*qualities).replace_strict(dict(enumerate(MEANINGS)), return_dtype=pl.String)
    return frame.with_columns(
        pl.when(upper > 0).then(1 / upper).alias(f"{BETWEEN}_lower"),
        pl.when(lower > 0).then(1 / lower).alias(f"{BETWEEN}_upper"),
        pl.coalesce(UNDEFINED_INTERVAL, _REASON_OF_RECALL).alias(UNDEFINED_INTERVAL),
        names.alias(INTERVAL_QUALITY),
    )


def _points(
    params: ChangePointsParameters,
    leads: pl.DataFrame,
    alarms: pl.DataFrame,
    points: pl.DataFrame,
    keys: Sequence[str],
    *,
    in_time: bool,
) -> pl.DataFrame:
    """The alarms at every chosen threshold, and where nothing has a score, with the spread of their leads."""
    quality = pl.col(INTERVAL_QUALITY).alias(_OF_POINT)
    chosen = points.filter(pl.col(THRESHOLD).is_not_null()).select(*keys, CRITERION, THRESHOLD, quality)
    unscored = alarms.filter(pl.col(THRESHOLD).is_null()).select(
        *keys, pl.lit(ALL_PREDICTIONS).alias(CRITERION), THRESHOLD, *nulls([_OF_POINT])
    )
    of_points = pl.concat([chosen, unscored.cast(chosen.schema)]).join(
        alarms, on=[*keys, THRESHOLD], how="left", nulls_equal=True
    )
    of_groups = by_group(leads, keys)
    nothing = leads.clear()
    spread = [
        _spread(params, row, of_groups.get(tuple(row[name] for name in keys), nothing), in_time=in_time)
        for row in of_points.select(*keys, CRITERION, THRESHOLD, "n_alerted").iter_rows(named=True)
    ]
    columns = [name for lead in _LEAD_NAMES for name in (lead, *limit_names([lead]))]
    schema = dict.fromkeys(columns, pl.Float64()) | {"_quality": pl.String(), "_reason": pl.String()}
    table = of_points.drop("mean_lead").hstack(pl.DataFrame(spread, schema=schema, orient="row").get_columns())
    table = _of_both(table).with_columns(pl.col(columns).fill_nan(None))
    return table.select(*keys, *(column.name for column in ALARM_POINTS.columns))


def _of_both(table: pl.DataFrame) -> pl.DataFrame:
    """With the worse quality of the two, the first reason, and marks of thresholds chosen on the same data."""
    qualities = (pl.col(name).replace_strict(_WORST, return_dtype=pl.Int64) for name in (INTERVAL_QUALITY, "_quality"))
    worse = pl.min_horizontal(*qualities).replace_strict(dict(enumerate(MEANINGS)), return_dtype=pl.String)
    reason = pl.coalesce(UNDEFINED_INTERVAL, "_reason").alias(UNDEFINED_INTERVAL)
    table = table.with_columns(worse.alias(INTERVAL_QUALITY), reason)
    was_chosen = pl.col(_OF_POINT) == "chosen_on_same_data"
    chosen = of_chosen(table)[INTERVAL_QUALITY]
    return table.with_columns(pl.when(was_chosen).then(chosen).otherwise(INTERVAL_QUALITY).alias(INTERVAL_QUALITY))


def _spread(
    params: ChangePointsParameters, row: Mapping[str, Any], leads: pl.DataFrame, *, in_time: bool
) -> tuple[Any, ...]:
    """Share ahead, mean and quantiles of the leads of a group at a threshold, each with limits; quality and reason."""
    led = replace(Leads.of(*_leads_at(params, row[THRESHOLD], leads)), in_time=in_time)
    reason: Reason = "none"
    limits = dict.fromkeys(_LEAD_NAMES, (np.nan, np.nan))
    if params.is_replicated:
        reason = "one_replicate" if led.number else "undefined_ratio"
    if params.is_replicated and len(led.counts) > 1:
        shares, resampling = list(QUANTILES.values()), params.resampling
        limits["share_ahead"] = led.ahead_limits(params.confidence, resampling)
        limits["mean_lead"] = led.mean_limits(params.confidence, resampling)
        limits |= zip(QUANTILES, led.quantile_limits(shares, params.confidence, resampling), strict=True)
    ahead = led.n_ahead / led.number if led.number else np.nan
    values = {"share_ahead": ahead, "mean_lead": led.mean}
    values |= {name: led.quantile(share) for name, share in QUANTILES.items()}
    has_limits = not np.isnan([limit for pair in limits.values() for limit in pair]).all()
    events = (led.n_ahead, led.number - led.n_ahead)
    of_time: Quality = "correlated_days" if has_limits and led.may_neighbours_be_alike else "good"
    quality = worst([quality_of_sizes(led.sizes), of_time, quality_of_events(*events)]) if has_limits else None
    missing = None if has_limits else reason
    if has_limits and np.isnan([limit for pair in limits.values() for limit in pair]).any():
        missing = "no_limit"
    return (*(number for name in _LEAD_NAMES for number in (values[name], *limits[name])), quality, missing)


def _leads_at(
    params: ChangePointsParameters, threshold: float | None, leads: pl.DataFrame
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Leads, replicates and numbers of the rows that count at a threshold, and of those that always do."""
    counts = pl.col(THRESHOLD).is_null()
    if threshold is not None:
        above = pl.col(THRESHOLD) > threshold if _is_open(params) else pl.col(THRESHOLD) >= threshold
        counts = counts | above
    rows = leads.filter(counts)
    return rows["lead"].to_numpy(), rows[REPLICATE].to_numpy(), rows["n_alerted"].to_numpy()


def _is_open(params: ChangePointsParameters) -> bool:
    """Whether the thresholds are scores, and a score that equals one does not count."""
    return params.threshold_values is None and params.boundary == ">"
