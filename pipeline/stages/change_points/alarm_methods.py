"""What a methods section says of change points as alarms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import methods
from .alarm_contract import ALARM_POINTS, ALARMS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..methods import Measured

_REPEATS = {
    "ignore": "count neither as true nor as false, as in the Numenta Anomaly Benchmark (Lavin and Ahmad 2015)",
    "false_alarm": "are false alarms",
}


def _is_alarmed(measured: Measured) -> bool:
    alarms = measured.tables.get(ALARMS.name)
    return alarms is not None and not alarms.is_empty()


def rules(measured: Measured) -> Iterator[str]:
    """Say which alarms are one, and what becomes of those that repeat."""
    if not _is_alarmed(measured):
        return
    cooldown = measured.parameters["cooldown"]
    if cooldown is not None:
        yield (
            f"At every threshold, alarms that came less than {_length(cooldown)} after an alarm of the same series "
            "were taken as one with it."
        )
    yield f"Further alarms near a true point that is detected {_REPEATS[measured.facts['repeats']]}."


def _length(value: object) -> str:
    return value if isinstance(value, str) else f"{value} positions"


def limits(measured: Measured) -> Iterator[str]:
    """Say how the rate of false alarms and its limits were computed."""
    per = measured.parameters.get("per")
    if not _is_alarmed(measured) or per is None:
        return
    longest = max(measured.tables[ALARMS.name]["observed"].drop_nulls().to_list(), default=0.0)
    yield f"False alarms were counted per {_length(per)} of observed time, of which a group has up to {longest:,.6g}."
    if measured.parameters["uncertainty"] == "jackknife":
        yield (
            "Limits of the rate are those of a Poisson count (Garwood 1936), of counts that are divided by their "
            "dispersion between series."
        )


def results(measured: Measured) -> Iterator[str]:
    """Give the rate of false alarms and the leads at the chosen thresholds."""
    if not _is_alarmed(measured):
        return
    points = methods.of_first_criterion(measured.tables[ALARM_POINTS.name])
    shown, _ = methods.headline_rows(points)
    per = measured.parameters.get("per")
    unit = "hours" if measured.facts["positions"] == "times" else "positions"
    for row in shown:
        phrases = []
        if row["false_alarm_rate"] is not None and per is not None:
            phrases.append(
                f"there were {_with_limits(row, 'false_alarm_rate', measured)} false alarms per {_length(per)}"
            )
        if row["median_lead"] is not None:
            ahead = methods.estimate(row, "share_ahead", measured.confidence)
            lead = _with_limits(row, "median_lead", measured)
            phrases.append(
                f"{ahead} of the alerted true points were told ahead of time, the median lead being {lead} {unit}"
            )
        if phrases:
            head = ", ".join(filter(None, (methods.filled(methods.CHOSEN, row), _group(row))))
            body = methods.listed(phrases)
            yield f"{head}, {body}." if head else f"{body[0].upper()}{body[1:]}."


def _group(row: Mapping[str, Any]) -> str:
    name = methods.named_group(row)
    return name and f"for {name}"


def _with_limits(row: Mapping[str, Any], name: str, measured: Measured) -> str:
    """A number with its limits."""
    lower, upper = row[f"{name}_lower"], row[f"{name}_upper"]
    if lower is None or upper is None:
        return f"{row[name]:.3g}"
    return f"{row[name]:.3g} ({measured.confidence} CI {lower:.3g} to {upper:.3g})"
