"""Stages that need not be counted, because the same inputs, config and code gave their tables before.

An attempt notes every stage that it has finished beside its unfinished run. If it fails or is killed, the next run
takes over the tables of those stages whose fingerprint is the same, as it does with stages of the last published run.
What is taken over has the bytes that counting would give: the fingerprint is a hash of all that decides them, and every
file is checked against its hash.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING

from ..records import dataclass
from ..storage.durable import DamagedError, read_own, write_json
from .stage_records import CARRIED, TAKEN_OVER, StageRecord, parse_stage_record

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ..storage.layout import Layout
    from ..storage.publish import Staging
    from .carrying import LastRun


@dataclass(frozen=True)
class FinishedStage:
    """A stage that was counted before.

    Attributes:
        stage: Its record.
        folder: The folder with its files.
        attempt: Id of the attempt that counted it.
    """

    stage: StageRecord
    folder: Path
    attempt: str


def note_finished(staging: Staging, stage: StageRecord) -> None:
    """Note that a stage is finished, all its tables being on disk.

    Raises:
        ThresherError: the disk is full or failing.
    """
    folder = staging.layout.finished(staging.run_id)
    folder.mkdir(exist_ok=True)
    write_json(folder / f"{stage.name}.json", stage.to_json())


def finished_stages(layout: Layout, last: LastRun | None) -> list[FinishedStage]:
    """Return the stages that may be taken over: those of the last run, and those of attempts that did not end well."""
    finished = []
    if last is not None:
        finished = [
            FinishedStage(stage, last.folder, _attempt_of(stage, last.manifest.run_id))
            for stage in last.stages.values()
        ]
    return [*finished, *_of_attempts(layout)]


def _of_attempts(layout: Layout) -> Iterator[FinishedStage]:
    for run_id in layout.unfinished():
        for path in sorted(layout.finished(run_id).glob("*.json")):
            with suppress(DamagedError, ValueError, KeyError, TypeError, AttributeError):
                stage = parse_stage_record(json.loads(read_own(path)))
                yield FinishedStage(stage, layout.staging / run_id, _attempt_of(stage, run_id))


def _attempt_of(stage: StageRecord, run_id: str) -> str:
    """Return the id of the attempt that counted a stage of a run."""
    carried = stage.result.get(CARRIED) or {}
    return str(stage.result.get(TAKEN_OVER) or carried.get("run_id") or run_id)


def take_over(finished: FinishedStage, staging: Staging) -> bool:
    """Put the tables of a stage that was counted before into an unfinished run; False if one is damaged or gone."""
    try:
        for file in finished.stage.files:
            staging.adopt(file, finished.folder)
    except DamagedError:
        staging.drop(finished.stage.name)
        return False
    return True
