"""What there is to look at of change points as alarms: false alarms over time, and leads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from ...tables.columns import THRESHOLD
from ..figures import (
    CRITERION,
    GAP,
    Axis,
    Figure,
    Rule,
    Series,
    caption,
    chosen_rows,
    drawn,
    intervals,
    keys_of,
    of_points,
    of_thinned,
    rising,
    shares,
    thinned,
    with_limits,
)
from ..standard_figures import Wanted, across_groups, path_of_thresholds
from .contract import ALARM_POINTS, ALARMS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

RATE = "false_alarm_rate"


def unit_of(tables: Mapping[str, pl.DataFrame]) -> str | None:
    """The unit of the observed time, as the config has it; None if false alarms are not counted over time."""
    alarms = tables.get(ALARMS.name)
    units = [] if alarms is None else alarms["per"].drop_nulls().unique().to_list()
    return units[0] if units else None


def alarm_figures(tables: Mapping[str, pl.DataFrame], confidence: float) -> Iterator[Figure | None]:
    """The rate of false alarms by threshold, what is detected at such a rate, and how early alarms come.

    Args:
        tables: The result tables of the stage.
        confidence: The level of their intervals.
    """
    alarms = tables.get(ALARMS.name)
    if alarms is None or alarms.is_empty():
        return
    unit, points = unit_of(tables), tables[ALARM_POINTS.name]
    if unit is not None:
        curve = rising(alarms)
        yield _rates(curve, points, unit, confidence)
        yield path_of_thresholds(
            curve,
            points,
            name="detected_at_rate",
            title="Detection rate against false alarms",
            words="Every point of the line is a threshold: lower ones detect more, mostly with more false alarms.",
            axes=(
                Axis(RATE, f"False alarms per {unit} of observed time", includes=(0.0,)),
                shares("Detected", "recall"),
            ),
            series=(Series("recall", "Detected", "recall", "path"),),
        )
    yield _leads(points, confidence)


def _rates(curve: pl.DataFrame, points: pl.DataFrame, unit: str, confidence: float) -> Figure:
    series = (with_limits(curve, Series(RATE, "False alarms", "neutral")),)
    frame = drawn(thinned(curve, THRESHOLD), THRESHOLD, series)
    return Figure(
        name="false_alarms",
        title="False alarms over time, by threshold",
        caption=caption(
            f"False alarms per {unit} of observed time if every alarm that scores at least the threshold counts.",
            intervals(series, confidence),
            GAP,
            of_points(points),
            of_thinned(curve, frame),
        ),
        frame=frame,
        x=Axis(THRESHOLD, "Threshold: score from which an alarm counts"),
        y=Axis("", f"False alarms per {unit}", includes=(0.0,)),
        series=series,
        chosen=chosen_rows(points, THRESHOLD, (line.column for line in series)),
    )


def _leads(points: pl.DataFrame, confidence: float) -> Figure | None:
    """The median lead of all groups at the first criterion; None of a single group."""
    first = points.filter(pl.col(CRITERION) == pl.col(CRITERION).first().over(keys_of(points)))
    if first.height < 2 or first["median_lead"].is_null().all():  # noqa: PLR2004 - one group has none beside it
        return None
    series = (with_limits(first, Series("median_lead", "Median lead", "estimate", "point")),)
    return across_groups(
        first,
        series,
        "n_true",
        name="leads",
        title="How early alarms come",
        words=caption(
            f"Median lead of every group at the threshold chosen by {first[CRITERION][0]}: by how much the first alarm "
            "comes before what it tells of. Below 0 it comes later.",
            intervals(series, confidence),
        ),
        y=Axis("", "Median lead: start − first alarm (hours for times)", includes=(0.0,)),
        rules=(Rule("No lead", 0.0, "y"),),
    )


def numbers_of(tables: Mapping[str, pl.DataFrame]) -> tuple[Wanted, ...]:
    """The key numbers that alarms have beside precision and recall."""
    unit = unit_of(tables)
    if unit is None:
        return ()
    return (Wanted(RATE, f"False alarms per {unit}", "of observed time", format="number"),)


def with_rates(best: pl.DataFrame, tables: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Rows of chosen thresholds with the rate of false alarms there and its limits, if there is one.

    Args:
        best: One row per group, with its threshold.
        tables: The result tables of the stage.
    """
    if unit_of(tables) is None:
        return best
    keys = [*keys_of(best), THRESHOLD]
    rates = tables[ALARMS.name].select(*keys, RATE, f"{RATE}_lower", f"{RATE}_upper")
    return best.join(rates, on=keys, how="left", nulls_equal=True, maintain_order="left")
