"""The stages: a file or a folder per task. `STAGES` is the whole list; adding a stage adds one line to it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from ..base.records import dataclass

if TYPE_CHECKING:
    from .stage import Stage


@dataclass(frozen=True)
class StageEntry:
    """A stage by name, loaded when it is used, so that `thresher --help` stays fast.

    Attributes:
        kind: Name of the task, the same in every place.
        summary: One line for help.
    """

    kind: str
    summary: str

    def load(self) -> Stage:
        """Import the stage: a file of its own, or the file `stage.py` of its folder."""
        place = import_module(f"{__name__}.{self.kind}")
        stage: Stage = getattr(place, "STAGE", None) or import_module(f"{__name__}.{self.kind}.stage").STAGE
        return stage


STAGES: tuple[StageEntry, ...] = (
    StageEntry("before_after", "Precision and recall of event-article matching, without gold labels."),
    StageEntry("threshold_sweep", "Precision-recall curves, areas and thresholds of scored, labelled predictions."),
    StageEntry("ranking", "Average precision and other measures of rankings, beside random selection."),
    StageEntry("entity_recognition", "Recognition of entities in documents, matched one to one with gold mentions."),
    StageEntry("geocoding", "Places of toponyms: accuracy within distances, and errors in kilometres."),
    StageEntry("change_points", "Precision, recall and delays of detected change points, within a margin."),
    StageEntry("compare", "Two or more systems on the same units: tests, intervals, posteriors."),
)


def find_stage(kind: str) -> StageEntry | None:
    """The stage of that kind, or None."""
    return next((entry for entry in STAGES if entry.kind == kind), None)
