"""The loop over the stages of a run: each is counted, taken over from an earlier run or attempt, or carried forward."""

from __future__ import annotations

from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ..errors import ConfigError, DataError, Interrupted, ThresherError, system_fault, together
from ..records import dataclass
from ..storage.layout import DamagedError
from .carry_forward import carried, finished_stages, note_finished, sentence_of_upstream, take_over, why_not
from .evaluation import evaluate_stage
from .opening import OpenedStage, find_inputs, open_inputs, planned
from .stage_results import CARRIED, TAKEN_OVER, stage_fingerprints, stage_record

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..interrupts import StopRequest
    from ..storage.cache import AnswerCache
    from ..storage.publish import Staging
    from .carry_forward import LastRun
    from .config import Config, ConfiguredStage
    from .evaluation import Evaluation
    from .opening import FoundInputs
    from .stage_results import Fingerprints, StageRecord, StageResult, Watcher
    from .verifying import Verification

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
