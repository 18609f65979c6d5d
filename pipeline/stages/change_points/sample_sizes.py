"""What the numbers of change_points rest on: series, with their points."""

from __future__ import annotations

from ..sample_sizes import Counted, SampleSizes

_TRUE, _PREDICTED = "true change points", "predicted change points"
SAMPLE_SIZES = SampleSizes(
    nouns={"series_id": "series"},
    units={"series_id": "n_series"},
    counts=(Counted(_TRUE, ("n_true",)), Counted(_PREDICTED, ("n_predicted",))),
    rests_on={"precision": _PREDICTED, "recall": _TRUE},
    scales={
        "precision": "share",
        "recall": "share",
        "f1": "jaccard",
        "false_alarm_rate": "log",
        "time_between_false_alarms": "log",
    },
    clusters="change_points_areas",
)
