"""What a methods section says of change_points."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from .. import methods
from ..standard_numbers import on_other_data
from . import alarm_methods

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..methods import Measured

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
    yield from alarm_methods.rules(measured)
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
    yield from alarm_methods.limits(measured)
    yield from _results(measured)
    yield from alarm_methods.results(measured)


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
