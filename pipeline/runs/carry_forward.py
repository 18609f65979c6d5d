"""Results that a run does not count again: of unchanged stages, and of a run that would repeat an earlier one."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from ..records import dataclass
from ..safe_files import read_file
from ..stages.stage import counts_table
from ..storage.layout import RUN_RECORD, DamagedError, read_own, run_name, write_json
from ..tables.run_tables import METRICS
from .stage_results import (
    CARRIED,
    TAKEN_OVER,
    StageRecord,
    canonical,
    canonical_stage,
    parse_stage_record,
    recorded_stages,
    stage_fingerprints,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from ..storage.layout import Layout
    from ..storage.manifest import KeptRun, Manifest
    from ..storage.publish import Staging
    from .config import Config, ConfiguredStage
    from .stage_by_stage import Failure, Ready, StageByStage
    from .variables import Variables


# The last results of stages that a run does not count: they are carried forward into it, and marked as older.


@dataclass(frozen=True)
class LastRun:
    """The latest run before this one, with its intact stages.

    Attributes:
        folder: Its folder.
        manifest: Its manifest.
        record: Its run record.
        stages: Its stages by name; those with a damaged file are missing.
        is_intact: Whether no file of the run is damaged.
    """

    folder: Path
    manifest: Manifest
    record: dict[str, Any]
    stages: dict[str, StageRecord]
    is_intact: bool


def last_run(run: KeptRun | None) -> LastRun | None:
    """Read back a run whose tables may be carried forward; None if there is none, or its record is damaged."""
    if run is None or run.manifest is None or RUN_RECORD in run.damage:
        return None
    try:
        record = json.loads(read_file(run.folder / RUN_RECORD))
        stages = recorded_stages(record, run.manifest.files)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    damaged = {file.stage for file in run.manifest.files if file.path in run.damage}
    intact = {name: stage for name, stage in stages.items() if name not in damaged}
    return LastRun(run.folder, run.manifest, record, intact, not run.damage)


def why_not(stage: StageRecord | None, configured: ConfiguredStage, last: LastRun, variables: Variables) -> str:
    """Return why the last results of a stage cannot be carried forward; empty if they can.

    Args:
        stage: The stage in the last run; None if that lacks it.
        configured: The stage in the config.
        last: The last run.
        variables: What the run is about that would carry them: numbers of other labels, or of a later day, are not its.
    """
    if stage is None:
        return "the last run has no intact results of it"
    if foreign := _why_foreign(last.record, variables):
        return foreign
    from .recorded import configured_again  # noqa: PLC0415 - only a stage that is carried forward needs it

    kind = stage.entries["configuration"].get("kind")
    if kind != configured.stage.kind:
        return f"the last run has it as {kind}"
    try:
        configured_again(stage.entries["configuration"])
    except (ValueError, TypeError, AttributeError, KeyError, ValidationError):
        return "its last results were made by another version of thresher, with other parameters"
    schemas = {file.path.partition("/")[0]: file.schema.keys() for file in stage.files}
    for table in (counts_table(configured.stage), METRICS, *configured.stage.tables):
        names = {column.name for column in table.columns}
        if table.name not in stage.entries["omitted"] and not names <= schemas.get(table.name, {}.keys()):
            return f"its last results were made by another version of thresher, without columns of {table.name}"
    return ""


def _why_foreign(record: Mapping[str, Any], variables: Variables) -> str:
    labels, day = record.get("labels") or {}, record.get("ds")
    if labels != dict(variables.labels):
        return f"the last run is of other labels: {_written(labels) or 'none'}"
    if day is not None and variables.ds is not None and day > variables.ds:
        return f"the last run is of a later day, {day}"
    return ""


def carried(
    stage: StageRecord,
    configured: ConfiguredStage,
    last: LastRun,
    failure: Failure | None,
    counted_again: Iterable[str],
    variables: Variables,
) -> StageRecord:
    """Return the record of a stage that is carried forward, with the marks that say so.

    Args:
        stage: The stage in the last run.
        configured: The stage in the config.
        last: The last run.
        failure: Why it was not counted; None: it was left out.
        counted_again: The stages of this run whose tables are new.
        variables: What this run is about.
    """
    origin = dict(stage.result.get(CARRIED) or _origin(last))
    origin |= {"reason": "left_out", "exit": None, "error": None}
    if failure is not None:
        origin |= {"reason": "failed", "exit": failure.fault.code, "error": str(failure.fault)}
    others = _of_other_values(origin, variables)
    notes = [_sentence(origin, failure), *others, *_changes(stage, configured, set(counted_again))]
    return stage.in_another_run(notes, **{CARRIED: origin})


def _origin(last: LastRun) -> dict[str, Any]:
    """Which run counted a stage that is carried forward for the first time."""
    versions = last.record.get("versions")
    about = {"ds": last.record.get("ds"), **(last.record.get("vars") or {})}
    return {
        "run_id": last.manifest.run_id,
        "generation": last.manifest.generation,
        "published_at": last.manifest.published_at,
        "version": versions.get("thresher") if isinstance(versions, dict) else None,
        "base": last.record.get("base"),
        "variables": {name: value for name, value in about.items() if value is not None},
    }


def _written(values: Mapping[str, str]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in values.items())


def _of_other_values(origin: Mapping[str, Any], variables: Variables) -> Iterator[str]:
    """Say with which logical date and which variables a stage was counted, where they are others now."""
    counted, now = origin.get("variables") or {}, {"ds": variables.ds, **variables.record().get("vars", {})}
    others = {name: value for name, value in counted.items() if now.get(name) != value}
    if others:
        yield f"these numbers are those of {_written(others)}"


def _sentence(origin: Mapping[str, Any], failure: Failure | None) -> str:
    what = f"carried forward from run {name_of_origin(origin)}"
    if failure is None:
        return f"{what}: this run left the stage out (--only)"
    return f"{what} and stale, because the stage failed: {failure.sentence}"


def name_of_origin(origin: Mapping[str, Any]) -> str:
    """Return the name of the run that counted a stage, and when it was published."""
    moment = str(origin["published_at"])[:16].replace("T", " ")
    return f"{run_name(origin['generation'], origin['run_id'])}, published {moment} UTC"


def _changes(stage: StageRecord, configured: ConfiguredStage, counted_again: set[str]) -> Iterator[str]:
    """Say what has changed since the stage was counted."""
    then, now = stage.entries["configuration"], json.loads(json.dumps(canonical_stage(configured), default=str))
    keys = [key for key in {**then, **now} if then.get(key) != now.get(key)]
    if keys:
        yield f"the config has changed since ({', '.join(keys)}): these numbers are of the earlier one"
    for upstream in configured.upstream:
        if upstream in counted_again:
            yield f"the stage {upstream!r} has been counted again since: these numbers are of its earlier tables"


def sentence_of_upstream(upstream: StageRecord) -> str:
    """Say that a stage reads tables that were carried forward."""
    return f"it reads tables of {upstream.name!r} that were carried forward from run " + name_of_origin(
        upstream.result[CARRIED]
    )


# Stages that need not be counted, because the same inputs, config and code gave their tables before.
#
# An attempt notes every stage that it has finished beside its unfinished run. If it fails or is killed, the next run
# takes over the tables of those stages whose fingerprint is the same, as it does with stages of the last published
# run. What is taken over has the bytes that counting would give: the fingerprint is a hash of all that decides them,
# and every file is checked against its hash.


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
    """Return the stages that may be taken over, from the last run and from attempts that did not end well."""
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


# Whether a run would publish again what an earlier one holds, its marks of what was carried forward among it.


def repeats(config: Config, ready: Ready, last: LastRun, stages: StageByStage | None = None) -> bool:
    """Whether a run is the same as an earlier run, and no file of that is damaged.

    Args:
        config: The config.
        ready: Its stages that read only files, their inputs found.
        last: The earlier run.
        stages: The stages, counted; None: they are not yet, and what decides their results tells.
    """
    now, then = canonical(config), dict(last.record.get("configuration", {}))
    if not last.is_intact or {**now, "stages": None} != {**then, "stages": None}:
        return False
    if stages is None:
        return _will_repeat(config, ready, last)
    names = [record.name for record in stages.records]
    are_absent_alike = _facts(stages.absent) == _facts(last.record.get("absent", {}))
    return (
        are_absent_alike
        and names == [*last.stages]
        and all(_is_equal(record, last.stages[record.name]) for record in stages.records)
    )


def _will_repeat(config: Config, ready: Ready, last: LastRun) -> bool:
    """Whether the earlier run has all stages, and counted those to run from the same inputs, parameters and code."""
    names = [each.params.name for each in config.every if each.params.name in last.stages]
    if ready.faults or names != [*last.stages] or not {each.params.name for each in config.stages} <= set(names):
        return False
    for configured in config.stages:
        result = last.stages[configured.params.name].result
        hashes = {each: last.stages[each].hashes for each in configured.upstream if each in last.stages}
        fingerprints = stage_fingerprints(config, configured, ready.opened.get(configured.params.name), hashes)
        if CARRIED in result or result.get("fingerprint") != fingerprints.fingerprint:
            return False
    return True


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
