"""Inputs of change_points."""

from __future__ import annotations

from ...sources.inputs import Field as InputField
from ...sources.inputs import InputContract

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
