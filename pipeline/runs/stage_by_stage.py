"""The stages of a run that is published, one after another: counted, taken over from before, or carried forward."""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ..errors import ConfigError, DataError, Interrupted, ThresherError, together
from ..records import dataclass
from ..storage.durable import DamagedError
from .carry_forward import carried, note_finished, sentence_of_upstream, take_over, why_not
from .evaluation import Failure, UpstreamFailedError, evaluate_stage, failure_of
from .opening import FoundInputs, OpenedStage, find_inputs, open_inputs, planned
from .provenance import stage_fingerprints
from .stage_results import CARRIED, TAKEN_OVER, stage_record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ..interrupts import StopRequest
    from ..storage.cache import AnswerCache
    from ..storage.publish import Staging
    from .carry_forward import FinishedStage, LastRun
    from .config import Config, ConfiguredStage
    from .evaluation import Evaluation, InMemory
    from .provenance import Fingerprints
    from .stage_results import StageRecord, StageResult, Watcher

T = TypeVar("T")
S_co = TypeVar("S_co", bound=FoundInputs, covariant=True)
PUBLISH_OTHERS = "publish_others"


@dataclass(frozen=True)
class Ready(Generic[S_co]):
    """The stages of a config that read only files, their inputs found, and perhaps their plans made.

    Attributes:
        opened: The stages by name.
        faults: What is wrong with the inputs of others, by name, where the other stages are to be published.
    """

    opened: Mapping[str, S_co]
    faults: Mapping[str, Exception]


def found_stages(config: Config) -> Ready[FoundInputs]:
    """Find the inputs of all stages that read only files.

    Raises:
        ThresherError: those of one cannot be found or read, and such an error stops the run.
    """
    stages = {each.params.name: each for each in config.stages if not each.upstream}
    return _each_stage(config, stages, lambda stage: find_inputs(config, stage))


def planned_stages(config: Config, ready: Ready[FoundInputs]) -> Ready[OpenedStage]:
    """Make the plans of stages that have none yet.

    Raises:
        ThresherError: one cannot be made, and such an error stops the run.
    """

    def opened(stage: FoundInputs) -> OpenedStage:
        return stage if isinstance(stage, OpenedStage) else planned(config, stage)

    with_plans = _each_stage(config, ready.opened, opened)
    return replace(with_plans, faults={**ready.faults, **with_plans.faults})


def _each_stage(config: Config, stages: Mapping[str, T], open_one: Callable[[T], S_co]) -> Ready[S_co]:
    opened: dict[str, S_co] = {}
    faults: dict[str, Exception] = {}
    for name, stage in stages.items():
        try:
            opened[name] = open_one(stage)
        except Exception as error:
            if config.on_error != PUBLISH_OTHERS:
                raise
            faults[name] = error  # whatever it is, the other stages are published
    return Ready(opened, faults)


def check_unmoved(opened: Iterable[OpenedStage]) -> None:
    """Check that no input has changed while it was read.

    Raises:
        DataError: one has.
    """
    for stage in opened:
        for source in stage.sources.values():
            for file in source.files:
                if file.has_changed():
                    message = f"input {source.name}: {file.name} changed while it was read"
                    raise DataError(message, remedy="Run again when its writer is done.")


@dataclass
class StageByStage:
    """The stages of a run on their way into its folder.

    Attributes:
        config: The config.
        last: The latest run before.
        ready: The stages to count, their inputs found.
        finished: Stages that were counted before.
        staging: The unfinished run.
        watcher: Follows the progress.
        stop: Whether a signal asked to stop.
        states: Where the answers of files are kept; None: all files are read.
        in_memory: The stages with their tables, if they have been counted already.
        records: What the record of the run will say of each stage that has tables, in the order of the config.
        results: Their results.
        counted: Results of those that were counted, by name.
        opened: The stages that were counted or taken over, with their inputs.
        absent: The stages of the config that have no tables in this run, with the reasons, by name.
        failures: The stages that failed.
    """

    config: Config
    last: LastRun | None
    ready: Ready[OpenedStage]
    finished: list[FinishedStage]
    staging: Staging
    watcher: Watcher
    stop: StopRequest
    states: AnswerCache | None = None
    in_memory: tuple[Evaluation, InMemory] | None = None
    records: list[StageRecord] = field(default_factory=list)
    results: list[StageResult] = field(default_factory=list)
    counted: dict[str, StageResult] = field(default_factory=dict)
    opened: list[OpenedStage] = field(default_factory=list)
    absent: dict[str, dict[str, Any]] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)

    def run(self) -> None:
        """Put the tables of every stage into the unfinished run.

        Raises:
            ThresherError: a stage failed, and such an error stops the run, or all of them failed.
        """
        self._check_upstream()
        try:
            self._each()
        except Exception:
            if not self.staging.layout.finished(self.staging.run_id).is_dir():  # nothing that a retry could take over
                self.staging.discard()
            raise

    def _each(self) -> None:
        chosen = {configured.params.name for configured in self.config.stages}
        for configured in self.config.every:
            name = configured.params.name
            if name not in chosen:
                self._carry(configured, None)
                continue
            try:
                self._stage(configured)
            except Interrupted:
                raise
            except Exception as error:
                if self.config.on_error != PUBLISH_OTHERS:
                    raise
                self.staging.drop(name)
                self.failures.append(failure_of(name, configured.stage.kind, error))
                self._carry(configured, self.failures[-1])
        if len(self.failures) == len(chosen):
            causes = [failure.error for failure in self.failures if not isinstance(failure.error, UpstreamFailedError)]
            bugs = [error for error in causes if not isinstance(error, ThresherError)]
            raise bugs[0] if bugs else together([error for error in causes if isinstance(error, ThresherError)])

    def _check_upstream(self) -> None:
        """Check that stages which are left out, and whose tables another one reads, can be carried forward."""
        chosen = {configured.params.name for configured in self.config.stages}
        every = {configured.params.name: configured for configured in self.config.every}
        for configured in self.config.stages:
            for name in configured.upstream:
                if name not in chosen and (reason := self._why_not(every[name])):
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
        """Count a stage, or take over its tables if they were counted before."""
        name = configured.params.name
        self.watcher.on_stage(name)
        if name in self.ready.faults:
            raise self.ready.faults[name]
        for failure in self.failures:
            if failure.stage in configured.upstream:
                raise UpstreamFailedError(failure.stage, failure.fault)
        opened = self.ready.opened.get(name)
        upstream = [record for record in self.records if record.name in configured.upstream]
        hashes = {record.name: record.hashes for record in upstream}
        fingerprints = stage_fingerprints(self.config, configured, opened, hashes)
        record = self._taken_over(name, fingerprints) or self._counted(configured, opened, fingerprints)
        notes = [sentence_of_upstream(stage) for stage in upstream if CARRIED in stage.result]
        if TAKEN_OVER in record.result:
            record = record.in_another_run(notes, **{TAKEN_OVER: record.result[TAKEN_OVER]})
        elif notes:
            record = record.in_another_run(notes)
        self._add(configured, record)
        if opened is not None:
            self.opened.append(opened)
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

    def _counted(
        self, configured: ConfiguredStage, opened: OpenedStage | None, fingerprints: Fingerprints
    ) -> StageRecord:
        if self.in_memory is not None:
            evaluation, tables = self.in_memory
            tables.hand_on(self.staging)
            (opened,), (result,) = evaluation.opened, evaluation.results
            counted = result, evaluation.accounts[result.name], evaluation.reused[result.name]
        else:
            opened = opened or self._opened_later(configured)
            counted = evaluate_stage(self.config, opened, self.staging, self.watcher, self.stop, self.states)
        check_unmoved([opened])
        self.counted[opened.name] = counted[0]
        return stage_record(configured, opened, counted, fingerprints, self.staging.files)

    def _opened_later(self, configured: ConfiguredStage) -> OpenedStage:
        """Open a stage that reads tables of others; those of stages that were carried forward are as they were then."""
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

    def _add(self, configured: ConfiguredStage, record: StageRecord) -> None:
        result = self.counted.get(record.name)
        if result is None:
            from .recorded import recorded_result  # noqa: PLC0415 - only a stage that is not counted needs it

            result = recorded_result(self.staging.folder, configured.stage, record)
        self.results.append(replace(result, warnings=tuple(record.result["warnings"])))
        self.records.append(record)

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
