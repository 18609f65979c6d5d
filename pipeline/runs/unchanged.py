"""Whether a run would publish again what the last run holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .provenance import canonical, stage_fingerprints
from .stage_records import CARRIED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .carrying import LastRun
    from .config import Config
    from .opening import FoundInputs
    from .stage_by_stage import Ready, StageByStage
    from .stage_records import StageRecord


def is_unchanged_before_counting(config: Config, ready: Ready[FoundInputs], last: LastRun) -> bool:
    """Whether the last run has all stages, and counted those to run from the same inputs, parameters and code."""
    chosen = {configured.params.name for configured in config.stages}
    names = [configured.params.name for configured in config.every]
    if ready.faults or not _has_same_frame(config, last) or not chosen <= last.stages.keys():
        return False
    if [name for name in names if name in last.stages] != list(last.stages):
        return False
    for configured in config.stages:
        stage = last.stages[configured.params.name]
        upstream = {name: last.stages[name].hashes for name in configured.upstream if name in last.stages}
        opened = ready.opened.get(stage.name)
        fingerprint = stage_fingerprints(config, configured, opened, upstream).fingerprint
        if CARRIED in stage.result or stage.result.get("fingerprint") != fingerprint:
            return False
    return True


def is_equal_to_last(config: Config, stages: StageByStage, last: LastRun) -> bool:
    """Whether the stages of a run, and the marks that they bear, are those of the last run."""
    if not _has_same_frame(config, last) or [record.name for record in stages.records] != list(last.stages):
        return False
    if _facts(stages.absent) != _facts(last.record.get("absent", {})):
        return False
    return all(_is_equal(record, last.stages[record.name]) for record in stages.records)


def _has_same_frame(config: Config, last: LastRun) -> bool:
    """Whether all is the same that is not about a stage."""
    now, then = canonical(config), dict(last.record.get("configuration", {}))
    return last.is_intact and {**now, "stages": None} == {**then, "stages": None}


def _facts(absent: Mapping[str, Mapping[str, Any]]) -> dict[str, tuple[Any, ...]]:
    return {name: (facts.get("reason"), facts.get("error")) for name, facts in absent.items()}


def _is_equal(record: StageRecord, before: StageRecord) -> bool:
    if record.hashes != before.hashes:
        return False
    mark, mark_before = record.result.get(CARRIED), before.result.get(CARRIED)
    if mark is None:
        return mark_before is None and record.result.get("identity") == before.result.get("identity")
    if mark["reason"] == "left_out":  # the last run tells of it already, as counted or as carried forward
        return True
    return mark_before is not None and mark_before.get("error") == mark["error"]
