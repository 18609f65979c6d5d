"""What ruptures, roerich and TCPDBench do otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..profiles import Convention, Profile

if TYPE_CHECKING:
    from .contract import ChangePointsParameters

_UNITS = ("change_points_series", "series_id", ("n_true", "n_predicted", "tp", "precision", "recall"))
_UNION = Convention(
    "several annotators",
    "knows one list of true points",
    {"annotators": "union"},
    keeps={"annotators": "separate"},  # each group has the list of one annotator
)
_SERIES = "it gives one number for each series: those are in the rows, here all series together"


def _one_margin(params: ChangePointsParameters) -> str:
    """Why the tool cannot have such a margin; empty if it can."""
    if params.margin.before != params.margin.after:
        return f"it has one margin for both sides, and here they are {params.margin.before} and {params.margin.after}"
    return ""


def _several_annotators(params: ChangePointsParameters) -> str:
    """Why the benchmark cannot have such a number; empty if it can."""
    words = "it averages over annotators, and here each of them is a group of its own"
    return words if params.annotators == "separate" else _one_margin(params)


def _end_points(tool: str) -> Convention:
    return Convention(
        "the end of a series",
        tool,
        ours="positions are those of changes alone; the end is none",
    )


RUPTURES = Profile(
    name="ruptures",
    tool="ruptures 1.1.10, metrics.precision_recall",
    measures={"precision": "precision", "recall": "recall"},
    conventions=(
        _UNION,
        Convention("a distance equal to the margin", "does not match", {"margin_boundary": "<"}),
        Convention(
            "one true point, several predictions",
            "true points by position consume every prediction near them, so that it loses matches",
            {"matching": "ruptures"},
        ),
        _end_points("lists must end with the length of the series, which is then left out"),
        Convention("no true positive", "precision and recall are 0", ours="NULL where 0 / 0", undefined=0.0),
    ),
    exactly=f"on positions in ascending order; {_SERIES}",
    units=_UNITS,
    refuses=_one_margin,
)
ROERICH = Profile(
    name="roerich",
    tool="roerich 0.6.0, metrics.precision_recall_scores",
    measures={"precision": "precision", "recall": "recall"},
    conventions=(
        _UNION,
        Convention("a distance equal to the margin", "matches", {"margin_boundary": "<="}),
        Convention(
            "one true point, several predictions",
            "true points in the order of its input take the first free prediction within the margin",
            {"matching": "roerich"},
        ),
        Convention("nothing predicted", "precision is 0", ours="NULL", measures=("precision",), undefined=0.0),
    ),
    exactly=f"on positions in ascending order; {_SERIES}",
    units=_UNITS,
    refuses=_one_margin,
)
TCPDBENCH = Profile(
    name="tcpdbench",
    tool="TCPDBench at 1709f40, metrics.f_measure and metrics.covering",
    measures={"precision": "precision", "recall": "recall", "f1": "f_measure", "covering": "covering"},
    conventions=(
        Convention(
            "several annotators",
            "precision against all marks, recall averaged over annotators; index 0 is a change point of every side",
            {"annotators": "tcpd"},
        ),
        Convention("a distance equal to the margin", "matches", {"margin_boundary": "<="}),
        Convention(
            "one true point, several predictions",
            "true points take the nearest free prediction",
            {"matching": "nearest"},
        ),
    ),
    exactly=f"where no true point is as near to a prediction as another; {_SERIES}",
    units=("change_points_series", "series_id", ("precision", "recall", "f1", "covering")),
    refuses=_several_annotators,
)
PROFILES = (RUPTURES, ROERICH, TCPDBENCH)
