"""The loop over the stages of a run: each is counted, taken over from an earlier run or attempt, or carried forward."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from ..base.errors import ConfigError, DataError, Interrupted, ThresherError, system_fault, together
from ..base.paths import read_file
from ..base.records import dataclass
from ..base.run_tables import METRICS
from ..stages.stage import counts_table
from ..storage.layout import RUN_RECORD, DamagedError, read_own, run_name, write_json
from .evaluation import evaluate_stage
from .opening import OpenedStage, find_inputs, open_inputs, planned
from .stage_results import (
    CARRIED,
    TAKEN_OVER,
    StageRecord,
    canonical,
    canonical_stage,
    parse_stage_record,
    recorded_stages,
    stage_fingerprints,
    stage_record,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping
    from pathlib import Path

    from ..base.interrupts import StopRequest
    from ..storage.layout import KeptRun, Layout, Manifest
    from ..storage.publish import Staging
    from ..storage.state import AnswerCache
    from .config import Config, ConfiguredStage
    from .evaluation import Evaluation
    from .opening import FoundInputs
    from .recorded import Verification
    from .stage_results import Fingerprints, StageResult, Watcher
    from .variables import Variables


@dataclass(frozen=True)
class LastRun:
    """The latest run before this one, with its record and its stages by name, but for those with a damaged file."""

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


def _obstacles(last: LastRun | None, configured: ConfiguredStage, variables: Variables) -> Iterator[str]:
    """Yield why the last results of a stage cannot be carried forward; only the first obstacle is of use.

    Numbers of other labels, or of a later day, are not those of a run.
    """
    stage = None if last is None else last.stages.get(configured.params.name)
    if last is None or stage is None:
        yield "there is no earlier run" if last is None else "the last run has no intact results of it"
        return
    labels, day = last.record.get("labels") or {}, last.record.get("ds")
    if labels != dict(variables.labels):
        yield f"the last run is of other labels: {_written(labels) or 'none'}"
    if day is not None and variables.ds is not None and day > variables.ds:
        yield f"the last run is of a later day, {day}"
    from .recorded import configured_again  # noqa: PLC0415 - only a stage that is carried forward needs it

    kind, others = stage.entries["configuration"].get("kind"), "another version of thresher"
    if kind != configured.stage.kind:
        yield f"the last run has it as {kind}"
    try:
        configured_again(stage.entries["configuration"])
    except (ValueError, TypeError, AttributeError, KeyError, ValidationError):
        yield f"its last results were made by {others}, with other parameters"
    schemas = {file.path.partition("/")[0]: file.schema.keys() for file in stage.files}
    for table in (counts_table(configured.stage), METRICS, *configured.stage.tables):
        names = {column.name for column in table.columns}
        if table.name not in stage.entries["omitted"] and not names <= schemas.get(table.name, {}.keys()):
            yield f"its last results were made by {others}, without columns of {table.name}"


def _carried(
    last: LastRun,
    configured: ConfiguredStage,
    failure: Failure | None,
    counted_again: Collection[str],
    variables: Variables,
) -> StageRecord:
    """Return the record of a stage that is carried forward, since it was left out or failed, with marks that say so."""
    stage = last.stages[configured.params.name]
    origin = dict(stage.result.get(CARRIED) or _origin(last))
    what = f"carried forward from run {_name_of_origin(origin)}"
    if failure is None:
        origin |= {"reason": "left_out", "exit": None, "error": None}
        notes = [f"{what}: this run left the stage out (--only)"]
    else:
        origin |= {"reason": "failed", "exit": failure.fault.code, "error": str(failure.fault)}
        notes = [f"{what} and stale, because the stage failed: {failure.sentence}"]
    counted, now = origin.get("variables") or {}, {"ds": variables.ds, **variables.record().get("vars", {})}
    if others := {name: value for name, value in counted.items() if now.get(name) != value}:
        notes.append(f"these numbers are those of {_written(others)}")
    return stage.in_another_run([*notes, *_changes(stage, configured, counted_again)], **{CARRIED: origin})


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


def _name_of_origin(origin: Mapping[str, Any]) -> str:
    """Return the name of the run that counted a stage, and when it was published."""
    moment = str(origin["published_at"])[:16].replace("T", " ")
    return f"{run_name(origin['generation'], origin['run_id'])}, published {moment} UTC"


def _changes(stage: StageRecord, configured: ConfiguredStage, counted_again: Collection[str]) -> Iterator[str]:
    """Say what has changed since the stage was counted."""
    then, now = stage.entries["configuration"], json.loads(json.dumps(canonical_stage(configured), default=str))
    keys = [key for key in {**then, **now} if then.get(key) != now.get(key)]
    if keys:
        yield f"the config has changed since ({', '.join(keys)}): these numbers are of the earlier one"
    for upstream in configured.upstream:
        if upstream in counted_again:
            yield f"the stage {upstream!r} has been counted again since: these numbers are of its earlier tables"


# Stages that need not be counted, because the same inputs, config and code gave their tables before.
#
# An attempt notes every stage that it has finished beside its unfinished run. If it fails or is killed, the next run
# takes over the tables of those stages whose fingerprint is the same, as it does with stages of the last published
# run. What is taken over has the bytes that counting would give: the fingerprint is a hash of all that decides them,
# and every file is checked against its hash.


@dataclass(frozen=True)
class FinishedStage:
    """A stage that an attempt counted before, and the folder with its files."""

    stage: StageRecord
    folder: Path
    attempt: str


def finished_stages(layout: Layout, last: LastRun | None) -> Iterator[FinishedStage]:
    """Yield the stages that may be taken over, from the last run and from attempts that did not end well."""
    if last is not None:
        for stage in last.stages.values():
            yield FinishedStage(stage, last.folder, _attempt_of(stage, last.manifest.run_id))
    for run_id in layout.unfinished():
        for path in sorted(layout.finished(run_id).glob("*.json")):
            with suppress(DamagedError, ValueError, KeyError, TypeError, AttributeError):
                stage = parse_stage_record(json.loads(read_own(path)))
                yield FinishedStage(stage, layout.staging / run_id, _attempt_of(stage, run_id))


def _attempt_of(stage: StageRecord, run_id: str) -> str:
    """Return the id of the attempt that counted a stage of a run."""
    carried = stage.result.get(CARRIED) or {}
    return str(stage.result.get(TAKEN_OVER) or carried.get("run_id") or run_id)


def repeats(ready: Ready, last: LastRun, stages: StageByStage | None = None) -> bool:
    """Whether a run is the same as an earlier run, and no file of that is damaged.

    Where its stages are not counted yet, what decides their results tells.
    """
    now, then = canonical(ready.config), dict(last.record.get("configuration", {}))
    if not last.is_intact or {**now, "stages": None} != {**then, "stages": None}:
        return False
    if stages is None:
        return _will_repeat(ready.config, ready, last)
    absent, absent_before = (
        {name: (facts.get("reason"), facts.get("error")) for name, facts in each.items()}
        for each in (stages.absent, last.record.get("absent", {}))
    )
    return (
        absent == absent_before
        and [record.name for record in stages.records] == [*last.stages]
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


def _is_equal(record: StageRecord, before: StageRecord) -> bool:
    if record.hashes != before.hashes:
        return False
    mark, mark_before = record.result.get(CARRIED), before.result.get(CARRIED)
    if mark is None:
        return mark_before is None and record.result.get("identity") == before.result.get("identity")
    if mark["reason"] == "left_out":  # the last run tells of it already, as counted or as carried forward
        return True
    return mark_before is not None and mark_before.get("error") == mark["error"]


PUBLISH_OTHERS = "publish_others"


class _UpstreamFailedError(ThresherError):
    """A stage reads the tables of another one, which failed; the code is that of its error."""

    def __init__(self, upstream: str, cause: ThresherError) -> None:
        super().__init__(f"it reads the tables of the stage {upstream!r}, which failed")
        self._cause = cause

    @property
    def code(self) -> int:
        return self._cause.code


@dataclass(frozen=True)
class Failure:
    """A stage that failed: its name, its task, what stopped it as it was raised, and as an error of this package."""

    stage: str
    kind: str
    error: Exception
    fault: ThresherError

    @property
    def sentence(self) -> str:
        """The fault on one line."""
        return " ".join(self.fault.message.split())


def failure_of(stage: str, kind: str, error: Exception) -> Failure:
    """Return the failure of a stage, whatever stopped it."""
    if isinstance(error, ThresherError):
        return Failure(stage, kind, error, error)
    bug = ThresherError(f"{type(error).__name__}: {error}", remedy="This is a bug of thresher; please report it.")
    return Failure(stage, kind, error, system_fault(error) or bug)


def check_unmoved(opened: FoundInputs) -> None:
    """Check that no input of a stage has changed while it was read."""
    for source in opened.sources.values():
        for file in source.files:
            if file.has_changed():
                message = f"input {source.name}: {file.name} changed while it was read"
                raise DataError(message, remedy="Run again when its writer is done.")


@dataclass
class Ready:
    """The stages of a config that read only files: their inputs are found, and their plans made when these are needed.

    Attributes:
        opened: The stages by name, with their inputs, and once they are planned with their plans.
        faults: What is wrong with the inputs of others, by name, where the other stages are to be published.
    """

    config: Config
    opened: dict[str, FoundInputs] = field(default_factory=dict)
    faults: dict[str, Exception] = field(default_factory=dict)

    def find(self) -> None:
        """Find the inputs."""
        stages = [each for each in self.config.stages if not each.upstream]
        self._each({each.params.name: partial(find_inputs, self.config, each) for each in stages})

    def plan(self) -> None:
        """Make the plans that are not there yet."""
        unplanned = {name: stage for name, stage in self.opened.items() if not isinstance(stage, OpenedStage)}
        self._each({name: partial(planned, self.config, stage) for name, stage in unplanned.items()})

    def verify(self, verified: Verification) -> None:
        """Verify the content of the inputs; the plans tell which columns are read."""
        self._each({name: partial(verified.check, stage) for name, stage in self.planned.items()})

    def _each(self, steps: Mapping[str, Callable[[], OpenedStage | FoundInputs]]) -> None:
        for name, step in steps.items():
            try:
                self.opened[name] = step()
            except Interrupted:
                raise
            except Exception as error:
                if self.config.on_error != PUBLISH_OTHERS:
                    raise
                self.opened.pop(name, None)
                self.faults[name] = error  # whatever it is, the other stages are published

    @property
    def planned(self) -> dict[str, OpenedStage]:
        """The stages whose plans are made."""
        return {name: stage for name, stage in self.opened.items() if isinstance(stage, OpenedStage)}


@dataclass
class StageByStage:
    """The stages of a run on their way into its folder.

    Attributes:
        ready: The stages that read only files, planned.
        last: The latest run before.
        states: Where the answers of files are kept; None: all files are read.
        evaluation: The only stage with its tables, if it has been counted already.
        records: What the record of the run will say of each stage that has tables, in the order of the config.
        results: Their results.
        absent: The stages of the config that have no tables in this run, with the reasons, by name.
    """

    ready: Ready
    last: LastRun | None
    staging: Staging
    watcher: Watcher
    stop: StopRequest
    states: AnswerCache | None = None
    evaluation: Evaluation | None = None
    records: list[StageRecord] = field(default_factory=list)
    results: list[StageResult] = field(default_factory=list)
    absent: dict[str, dict[str, Any]] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.config = self.ready.config
        self.finished = [*finished_stages(self.staging.layout, self.last)] if self.config.cache else []
        self.chosen = {configured.params.name for configured in self.config.stages}

    def run(self) -> None:
        """Put the tables of every stage into the unfinished run.

        Raises:
            ThresherError: a stage failed, and such an error stops the run, or all of them failed.
        """
        self._check_upstream()
        try:
            for configured in self.config.every:
                self._stage(configured)
            self._refuse_failure_of_all()
        except Exception:
            if not self.staging.layout.finished(self.staging.run_id).is_dir():  # nothing that a retry could take over
                self.staging.discard()
            raise

    def _check_upstream(self) -> None:
        """Check that stages which are left out, and whose tables another one reads, can be carried forward."""
        every = {configured.params.name: configured for configured in self.config.every}
        for configured in self.config.stages:
            for name in configured.upstream:
                if name not in self.chosen and (reason := self._why_not(every[name])):
                    message = (
                        f"{self.config.origin}: stage {configured.params.name!r} reads the tables of {name!r}, which "
                        f"is left out, and cannot be carried forward: {reason}"
                    )
                    raise ConfigError(message, remedy=f"Add --only {name}.")

    def _why_not(self, configured: ConfiguredStage) -> str:
        """Say why the last results of a stage cannot be carried forward; empty if they can."""
        return next(_obstacles(self.last, configured, self.config.variables), "")

    def _stage(self, configured: ConfiguredStage) -> None:
        """Count a stage or take it over; carry it forward if it is left out, or if it fails and the others go on."""
        name = configured.params.name
        if name not in self.chosen:
            self._carry(configured, None)
            return
        try:
            self._count_or_take_over(configured)
        except Interrupted:
            raise
        except Exception as error:
            if self.config.on_error != PUBLISH_OTHERS:
                raise
            self.staging.drop(name)
            self.failures.append(failure_of(name, configured.stage.kind, error))
            self._carry(configured, self.failures[-1])

    def _refuse_failure_of_all(self) -> None:
        if len(self.failures) < len(self.chosen):
            return
        causes = [failure.error for failure in self.failures if not isinstance(failure.error, _UpstreamFailedError)]
        bugs = [error for error in causes if not isinstance(error, ThresherError)]
        raise bugs[0] if bugs else together([error for error in causes if isinstance(error, ThresherError)])

    def _count_or_take_over(self, configured: ConfiguredStage) -> None:
        name = configured.params.name
        self.watcher.on_stage(name)
        if name in self.ready.faults:
            raise self.ready.faults[name]
        for failure in self.failures:
            if failure.stage in configured.upstream:
                raise _UpstreamFailedError(failure.stage, failure.fault)
        upstream = [record for record in self.records if record.name in configured.upstream]
        hashes = {record.name: record.hashes for record in upstream}
        fingerprints = stage_fingerprints(self.config, configured, self.ready.opened.get(name), hashes)
        record, result = self._taken_over(name, fingerprints), None
        if record is None:
            evaluation = self._evaluated(configured)
            record, result = stage_record(configured, evaluation, fingerprints, self.staging.files), evaluation.result
        facts = {TAKEN_OVER: attempt} if (attempt := record.result.get(TAKEN_OVER)) else {}
        origins = {stage.name: stage.result[CARRIED] for stage in upstream if CARRIED in stage.result}
        start = "that were carried forward from run"
        notes = [f"it reads tables of {of!r} {start} {_name_of_origin(origin)}" for of, origin in origins.items()]
        if facts or notes:
            record = record.in_another_run(notes, **facts)
        self._add(configured, record, result)
        if fingerprints.is_lasting:  # note that it is finished, all its tables being on disk
            folder = self.staging.layout.finished(self.staging.run_id)
            folder.mkdir(exist_ok=True)
            write_json(folder / f"{name}.json", record.to_json())

    def _taken_over(self, name: str, fingerprints: Fingerprints) -> StageRecord | None:
        for finished in self.finished:
            stage = finished.stage
            is_same = stage.name == name and stage.result.get("fingerprint") == fingerprints.fingerprint
            if is_same and not self.staging.take(name, stage.files, finished.folder):
                self.watcher.on_taken_over(name, finished.attempt)
                return stage.in_another_run([], **{TAKEN_OVER: finished.attempt})
        return None

    def _evaluated(self, configured: ConfiguredStage) -> Evaluation:
        """Count a stage, or write its tables if it has been counted already."""
        evaluation = self.evaluation
        if evaluation is None:
            opened = self.ready.planned.get(configured.params.name) or self._opened_later(configured)
            evaluation = evaluate_stage(self.config, opened, self.staging.write, self.watcher, self.stop, self.states)
        for table in evaluation.tables:
            self.staging.write(*table)
        check_unmoved(evaluation.opened)
        return evaluation

    def _opened_later(self, configured: ConfiguredStage) -> OpenedStage:
        """Open a stage that reads tables of others; carried ones have the parameters that made their tables."""
        order = {stage.params.name: stage for stage in self.config.every}
        for record in self.records:
            if CARRIED in record.result:
                from .recorded import configured_again  # noqa: PLC0415 - only a stage that is carried forward needs it

                order[record.name] = configured_again(record.entries["configuration"])
        config = replace(self.config, order=tuple(order.values()))
        omitted = {record.name: record.entries["omitted"] for record in self.records}
        return open_inputs(config, configured, run=self.staging.folder, omitted=omitted)

    def _carry(self, configured: ConfiguredStage, failure: Failure | None) -> None:
        """Carry forward the last results of a stage, or say why it has none."""
        name, last, reason = configured.params.name, self.last, self._why_not(configured)
        if last is not None and not reason:
            reason = self.staging.take(name, last.stages[name].files, last.folder)
        if last is not None and not reason:
            counted_again = [record.name for record in self.records if CARRIED not in record.result]
            self._add(configured, _carried(last, configured, failure, counted_again, self.config.variables))
            return
        facts: dict[str, Any] = {"kind": configured.stage.kind, "reason": "left_out", "exit": None, "error": None}
        warning = f"the stage was left out of this run (--only), and has no tables here: {reason}"
        if failure is not None:
            facts |= {"reason": "failed", "exit": failure.fault.code, "error": str(failure.fault)}
            warning = f"the stage failed, and has no tables here: {failure.sentence} (not carried forward: {reason})"
        self.absent[name] = facts | {"warning": warning}

    def _add(self, configured: ConfiguredStage, record: StageRecord, result: StageResult | None = None) -> None:
        if result is None:
            from .recorded import recorded_result  # noqa: PLC0415 - only a stage that is not counted needs it

            result = recorded_result(self.staging.folder, configured.stage, record)
        self.results.append(replace(result, warnings=tuple(record.result["warnings"])))
        self.records.append(record)
