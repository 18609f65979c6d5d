"""The loop over the stages of a run: each is counted, taken over from an earlier run or attempt, or carried forward."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from ..errors import ConfigError, DataError, Interrupted, ThresherError, system_fault, together
from ..paths import read_file
from ..records import dataclass
from ..stages.stage import counts_table
from ..storage.layout import RUN_RECORD, DamagedError, read_own, run_name, write_json
from ..tables.run_tables import METRICS
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
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from ..interrupts import StopRequest
    from ..storage.layout import KeptRun, Layout, Manifest
    from ..storage.publish import Staging
    from ..storage.state import AnswerCache
    from .config import Config, ConfiguredStage
    from .evaluation import Evaluation
    from .opening import FoundInputs
    from .recorded import Verification
    from .stage_results import Fingerprints, StageResult, Watcher
    from .variables import Variables


# Results that a run does not count again: of unchanged stages, and of a run that would repeat an earlier one.


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


PUBLISH_OTHERS = "publish_others"


class UpstreamFailedError(ThresherError):
    """A stage reads the tables of another one, which failed.

    Args:
        upstream: Name of the stage that failed.
        cause: Why it failed; the code of this error is the same.
    """

    def __init__(self, upstream: str, cause: ThresherError) -> None:
        super().__init__(f"it reads the tables of the stage {upstream!r}, which failed")
        self._cause = cause

    @property
    def code(self) -> int:
        """The code of the error of the stage that failed first."""
        return self._cause.code


@dataclass(frozen=True)
class Failure:
    """A stage that failed.

    Attributes:
        stage: Its name.
        kind: Its task.
        error: What stopped it, as it was raised.
        fault: The same as an error of this package.
    """

    stage: str
    kind: str
    error: Exception
    fault: ThresherError

    @property
    def sentence(self) -> str:
        """What went wrong, on one line."""
        return " ".join(self.fault.message.split())

    def record(self) -> dict[str, Any]:
        """As the record of the run keeps it."""
        return {"kind": self.kind, "exit": self.fault.code, "error": str(self.fault)}


def failure_of(stage: str, kind: str, error: Exception) -> Failure:
    """Return the failure of a stage, whatever stopped it."""
    if isinstance(error, ThresherError):
        return Failure(stage, kind, error, error)
    bug = ThresherError(f"{type(error).__name__}: {error}", remedy="This is a bug of thresher; please report it.")
    return Failure(stage, kind, error, system_fault(error) or bug)


def check_unmoved(opened: FoundInputs) -> None:
    """Check that no input of a stage has changed while it was read.

    Raises:
        DataError: one has.
    """
    for source in opened.sources.values():
        for file in source.files:
            if file.has_changed():
                message = f"input {source.name}: {file.name} changed while it was read"
                raise DataError(message, remedy="Run again when its writer is done.")


@dataclass
class Ready:
    """The stages of a config that read only files: their inputs are found, and their plans made when these are needed.

    Attributes:
        config: The config.
        opened: The stages by name, with their inputs, and once they are planned with their plans.
        faults: What is wrong with the inputs of others, by name, where the other stages are to be published.
    """

    config: Config
    opened: dict[str, FoundInputs] = field(default_factory=dict)
    faults: dict[str, Exception] = field(default_factory=dict)

    def find(self) -> None:
        """Find the inputs.

        Raises:
            ThresherError: those of a stage cannot be found or read, and such an error stops the run.
        """
        stages = [each for each in self.config.stages if not each.upstream]
        self._each({each.params.name: partial(find_inputs, self.config, each) for each in stages})

    def plan(self) -> None:
        """Make the plans that are not there yet.

        Raises:
            ThresherError: one cannot be made, and such an error stops the run.
        """
        unplanned = {name: stage for name, stage in self.opened.items() if not isinstance(stage, OpenedStage)}
        self._each({name: partial(planned, self.config, stage) for name, stage in unplanned.items()})

    def verify(self, verified: Verification) -> None:
        """Verify the content of the inputs; the plans tell which columns are read.

        Raises:
            ThresherError: it has changed, or cannot be read, and such an error stops the run.
        """
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
        staging: The unfinished run.
        watcher: Follows the progress.
        stop: Whether a signal asked to stop.
        states: Where the answers of files are kept; None: all files are read.
        evaluation: The only stage with its tables, if it has been counted already.
        records: What the record of the run will say of each stage that has tables, in the order of the config.
        results: Their results.
        absent: The stages of the config that have no tables in this run, with the reasons, by name.
        failures: The stages that failed.
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
        self.finished = finished_stages(self.staging.layout, self.last) if self.config.cache else []
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
        if self.last is None:
            return "there is no earlier run"
        stage = self.last.stages.get(configured.params.name)
        return why_not(stage, configured, self.last, self.config.variables)

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
        causes = [failure.error for failure in self.failures if not isinstance(failure.error, UpstreamFailedError)]
        bugs = [error for error in causes if not isinstance(error, ThresherError)]
        raise bugs[0] if bugs else together([error for error in causes if isinstance(error, ThresherError)])

    def _count_or_take_over(self, configured: ConfiguredStage) -> None:
        name = configured.params.name
        self.watcher.on_stage(name)
        if name in self.ready.faults:
            raise self.ready.faults[name]
        for failure in self.failures:
            if failure.stage in configured.upstream:
                raise UpstreamFailedError(failure.stage, failure.fault)
        upstream = [record for record in self.records if record.name in configured.upstream]
        hashes = {record.name: record.hashes for record in upstream}
        fingerprints = stage_fingerprints(self.config, configured, self.ready.opened.get(name), hashes)
        record, result = self._taken_over(name, fingerprints), None
        if record is None:
            evaluation = self._evaluated(configured)
            record, result = stage_record(configured, evaluation, fingerprints, self.staging.files), evaluation.result
        facts = {TAKEN_OVER: attempt} if (attempt := record.result.get(TAKEN_OVER)) else {}
        notes = [sentence_of_upstream(stage) for stage in upstream if CARRIED in stage.result]
        if facts or notes:
            record = record.in_another_run(notes, **facts)
        self._add(configured, record, result)
        if fingerprints.is_lasting:
            note_finished(self.staging, record)

    def _taken_over(self, name: str, fingerprints: Fingerprints) -> StageRecord | None:
        for finished in self.finished:
            stage = finished.stage
            is_same = stage.name == name and stage.result.get("fingerprint") == fingerprints.fingerprint
            if is_same and take_over(finished, self.staging):
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
        reason = self._why_not(configured) or self._adopt_last(configured.params.name)
        if not reason and self.last is not None:
            counted_again = [record.name for record in self.records if CARRIED not in record.result]
            stage = self.last.stages[configured.params.name]
            variables = self.config.variables
            self._add(configured, carried(stage, configured, self.last, failure, counted_again, variables))
            return
        facts = {"kind": configured.stage.kind, "reason": "left_out", "exit": None, "error": None}
        warning = f"the stage was left out of this run (--only), and has no tables here: {reason}"
        if failure is not None:
            facts |= {"reason": "failed"} | failure.record()
            warning = f"the stage failed, and has no tables here: {failure.sentence} (not carried forward: {reason})"
        self.absent[configured.params.name] = facts | {"warning": warning}

    def _adopt_last(self, name: str) -> str:
        """Take the files of a stage of the last run; return what is wrong with them, or an empty text."""
        if self.last is None:
            return ""
        try:
            for file in self.last.stages[name].files:
                self.staging.adopt(file, self.last.folder)
        except DamagedError as error:
            self.staging.drop(name)
            return str(error)
        return ""

    def _add(self, configured: ConfiguredStage, record: StageRecord, result: StageResult | None = None) -> None:
        if result is None:
            from .recorded import recorded_result  # noqa: PLC0415 - only a stage that is not counted needs it

            result = recorded_result(self.staging.folder, configured.stage, record)
        self.results.append(replace(result, warnings=tuple(record.result["warnings"])))
        self.records.append(record)
