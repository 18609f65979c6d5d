"""What a methods section says of change points as alarms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from ...tables.ratios import F1, PRECISION, RECALL, scales
from .. import methods
from ..standard_figures import on_other_data
from ..units import Counted, SampleSizes
from .contract import ALARM_POINTS, ALARMS

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


# What a methods section says of change_points.


NOUNS = {"predictions": "predicted points", "annotations": "annotated points"}
RULES = {
    "one_to_one": "a largest one-to-one matching of predictions and marks (Edmonds and Fulkerson 1965)",
    "any": "marks with any prediction within the margin (Truong, Oudre and Vayatis 2020)",
    "roerich": "marks in order, each taking the first free prediction within the margin, as in the program roerich",
    "ruptures": "marks in order, each consuming all predictions within the margin, as in the program ruptures",
    "nearest": "marks in order, each taking the nearest free prediction (van den Burg and Williams 2020)",
}
ANNOTATORS = {
    "union": "The distinct marks of all annotators of a series are true.",
    "separate": "Every annotator is taken by itself.",
    "tcpd": (
        "Precision is against the marks of all annotators together, and recall is averaged over annotators (van den "
        "Burg and Williams 2020)."
    ),
}


def sentences(measured: Measured) -> Iterator[str]:
    """Say how detected change points were compared with annotated ones, and what came out."""
    areas, parameters = measured.tables["change_points_areas"], measured.parameters
    yield (
        f"{measured.used('predictions'):,} predicted change points were compared with {measured.used('annotations'):,} "
        f"annotated ones on {measured.most(areas['n_series'])} series."
    )
    yield methods.left_out(measured, NOUNS)
    lasting = measured.facts.get("true_points") == "incidents"
    yield f"True positives are {RULES[measured.facts['matching']]}; {_margin(parameters, lasting=lasting)}."
    yield ANNOTATORS[parameters["annotators"]]
    yield from rules(measured)
    if measured.has("predictions.score"):
        yield methods.scored_predictions(measured)
        yield methods.invalid_scores(measured, "Predictions")
        yield methods.criteria(measured)
    units = methods.units_in_words(measured, {"series_id": "series"})
    yield methods.intervals(
        measured,
        units,
        f"are those of proportions whose counts are divided by the design effect, by the jackknife over {units}",
    )
    yield from limits(measured)
    yield from _results(measured)
    yield from results(measured)


def _margin(parameters: Mapping[str, dict[str, object]], *, lasting: bool) -> str:
    before, after = (parameters["margin"][side] for side in ("before", "after"))
    boundary = "at most" if str(parameters["margin_boundary"]) == "<=" else "less than"
    unit = "" if isinstance(before, str) else " (in the unit of the positions)"
    if lasting:
        sides = f"{boundary} {before} before its start or {after} after its end{unit}"
        return f"a prediction lies within the margin of an incident inside it, or {sides}"
    sides = f"{before} from a mark" if before == after else f"{before} before or {after} after a mark"
    return f"a prediction lies within the margin if it is {boundary} {sides}{unit}"


def _results(measured: Measured) -> Iterator[str]:
    """Give the chosen point, or without scores the counts of all predictions."""
    points = measured.tables["change_points_operating_points"]
    rows = on_other_data(methods.of_first_criterion(points))
    if rows.is_empty():
        rows = measured.tables["change_points_curve"].filter(pl.col("threshold").is_null())
    yield from methods.results(rows, methods.RATIO_NAMES, measured.confidence, methods.CHOSEN)


# What the numbers of change_points rest on: series, with their points.


_TRUE, _PREDICTED = "true change points", "predicted change points"
SAMPLE_SIZES = SampleSizes(
    nouns={"series_id": "series"},
    units={"series_id": "n_series"},
    counts=(Counted(_TRUE, ("n_true",)), Counted(_PREDICTED, ("n_predicted",))),
    rests_on={"precision": _PREDICTED, "recall": _TRUE},
    scales={
        **scales((PRECISION, RECALL, F1)),
        "false_alarm_rate": "log",
        "time_between_false_alarms": "log",
    },
    clusters="change_points_areas",
)
