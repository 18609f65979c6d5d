"""How a config is run and published: evaluate its stages, and make them one run that readers see."""

from __future__ import annotations

import json
import time
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from ..errors import ThresherError, system_fault
from ..interrupts import stop_requests
from ..records import dataclass
from ..storage.attempts import Attempt, process_facts, utc_now
from ..storage.durable import json_bytes, read_own
from ..storage.layout import FORMAT_VERSION, RUN_RECORD, Layout, new_run_id
from ..storage.manifest import Manifest
from ..storage.publish import Staging, exclusive, make_results_folder
from ..storage.verify import Healed, clear_staging, heal
from .carry_forward import LastRun, finished_stages, is_counted_already, is_same_again, last_run
from .evaluation import Evaluation, InMemory, evaluate, open_stages
from .forks import refuse_after_fork
from .provenance import canonical, code_sha256, peak_rss, together, versions
from .results_location import OnStore, tried_again
from .reuse import states_of
from .run import Run, exit_code, failure_code
from .stage_by_stage import (
    PUBLISH_OTHERS,
    Ready,
    StageByStage,
    check_unmoved,
    found_stages,
    planned_stages,
)
from .stage_results import StageResults, Watcher, joined, texts_once
from .verifying import Verification, verification

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from ..interrupts import StopRequest
    from ..storage.cache import AnswerCache
    from .announcing.announcement import Announcement
    from .config import Config
    from .evaluation import Failure
    from .opening import FoundInputs, OpenedStage
    from .stage_results import StageResult

    Rows = tuple[Mapping[str, Any], ...]


def run(config: Config, watcher: Watcher | None = None) -> Run:
    """Run the stages of a config and publish one run.

    Raises:
        ThresherError: its class says what went wrong; readers still see the previous run. It is a ResourceError in a
            process that was forked after a run.
    """
    return _run(config, watcher or Watcher())


def _run(config: Config, watcher: Watcher, evaluated: tuple[Evaluation, InMemory] | None = None) -> Run:
    with config.gate_files.kept_by_success():
        refuse_after_fork()
        return tried_again(config, lambda: _run_once(config, watcher, evaluated))


def _run_once(config: Config, watcher: Watcher, evaluated: tuple[Evaluation, InMemory] | None) -> Run:
    layout = Layout(config.output)
    with stop_requests() as stop, _announced(config, stop) as announcement:
        on_store = OnStore(config, stop)
        make_results_folder(layout, "output" if config.store is None else "resources.copies")
        with _attempt(layout, config, announcement, on_store) as attempt, exclusive(layout):
            config.gate_files.remove()
            watcher.on_run(attempt.record["run_id"])
            config.check_engine()
            on_store.begin()
            finished = _Job(config, layout, attempt, watcher, stop, on_store, evaluated).run()
        if announcement is None:
            return finished
        announcement.ends(finished.path)
    return replace(finished, warnings=(*finished.warnings, *announcement.warnings))


def stage_tables(config: Config, states: AnswerCache | None = None) -> Run:
    """Write the tables of a config's stages into a staging folder, unpublished: no reader or later run sees them.

    Args:
        config: The config.
        states: Where the answers of files are kept; None: all files are read.

    Returns:
        A run of the status `staged`, generation 0; its folder is the caller's to remove.

    Raises:
        ThresherError: as for `run`, up to the moment when it would publish.
    """
    refuse_after_fork()
    started = time.monotonic()
    staging = Staging(Layout(config.output), new_run_id())
    with stop_requests() as stop:
        config.check_engine()
        results = evaluate(config, open_stages(config), staging, Watcher(), stop, states).results
    warnings = texts_once({result.name: result.warnings for result in results})
    notes = texts_once({result.name: result.notes for result in results})
    seconds, stages = time.monotonic() - started, StageResults(results)
    return Run(staging.folder, staging.run_id, 0, "staged", stages, warnings, seconds, notes=notes)


def publish(config: Config, evaluation: Evaluation, tables: InMemory) -> Run:
    """Publish stages that have been run, as `run` publishes those that it runs.

    Args:
        config: Their config; its results folder is where they go.
        evaluation: The stages.
        tables: Their tables.

    Raises:
        ThresherError: as for `run`.
    """
    return _run(config, Watcher(), (evaluation, tables))


def _announced(config: Config, stop: StopRequest) -> AbstractContextManager[Announcement | None]:
    """Announce what becomes of the attempt wherever the config says; None where it says nothing."""
    if not config.is_announced:
        return nullcontext()
    from .announcing.announcement import announced  # noqa: PLC0415 - optional extras

    return announced(config, stop)


@contextmanager
def _attempt(layout: Layout, config: Config, announcement: Announcement | None, on_store: OnStore) -> Iterator[Attempt]:
    run_id = new_run_id()
    record = {
        "format_version": FORMAT_VERSION,
        "run_id": run_id,
        "status": "running",
        "started_at": utc_now(),
        "config": config.origin,
        **process_facts(),
        "verify_inputs": config.verify_inputs,
        "stages": [each.params.name for each in config.stages],
        **config.variables.record(),
    }
    attempt = Attempt(layout.attempt(run_id), record, on_store.send)
    attempt.write()
    try:
        with config.variables.concealing(), on_store.naming():
            if announcement is not None:
                announcement.begins(attempt.record)
            yield attempt
    except ThresherError as error:
        interrupted = error.code > 128  # noqa: PLR2004 - 128 + signal
        status = "interrupted" if interrupted else "failed"
        with suppress(ThresherError):  # on a full disk the first error is the one to tell
            attempt.write(status=status, exit=error.code, error=str(error), ended_at=utc_now())
        raise
    except BaseException as error:
        fault = system_fault(error)
        code, words = (70, f"{type(error).__name__}: {error}") if fault is None else (fault.code, str(fault))
        with suppress(ThresherError):
            error_text = config.variables.concealed(words)
            attempt.write(status="failed", exit=code, error=error_text, ended_at=utc_now())
        if fault is not None:
            raise fault from error
        raise


@dataclass
class _Job:
    """A run of a config, made while the lock of the results is held.

    Attributes:
        evaluated: Its stages with their tables, if they have been run before; None: they are run.
    """

    config: Config
    layout: Layout
    attempt: Attempt
    watcher: Watcher
    stop: StopRequest
    on_store: OnStore
    evaluated: tuple[Evaluation, InMemory] | None = None
    healed: Healed = field(init=False)
    last: LastRun | None = field(init=False)
    verified: Verification = field(init=False)
    started: float = field(default_factory=time.monotonic)

    def run(self) -> Run:
        self.healed = heal(self.layout)
        if self.watcher.on_crash is not None:  # said now: this run may end there, too
            for sentence in self.healed.crashes:
                self.watcher.on_crash(sentence)
        self.last = last_run(next(reversed(self.healed.state.runs), None))
        self.verified = verification(self.config.verify_inputs, self.layout, self.last)
        with_inputs = self._found()
        cache, before = self.config.cache, self._to_repeat()
        if cache and before is not None and is_counted_already(self.config, with_inputs, before):
            return self._unchanged(before, (), ())
        with self.stop.at_once():
            ready = planned_stages(self.config, with_inputs)
        staging = Staging(self.layout, self.attempt.record["run_id"], self.on_store.mirror)
        self.stop.check()
        finished = finished_stages(self.layout, self.last) if cache else []
        states = states_of(self.config, self.layout, ready.opened.values())
        work = (self.watcher, self.stop, states, self.evaluated)
        stages = StageByStage(self.config, self.last, ready, finished, staging, *work)
        stages.run()
        if states is not None:
            states.clean_up()
        if self.config.on_error != PUBLISH_OTHERS:
            check_unmoved(stages.opened)
        if before is not None and is_same_again(self.config, stages, before):
            return self._unchanged(before, tuple(stages.results), tuple(stages.failures))
        self.stop.check()
        return self._publish(stages, staging)

    def _to_repeat(self) -> LastRun | None:
        """The run that this one may turn out to repeat: the latest, or for a day before it the last run of that day."""
        if self.config.variables.ds is None:
            return self.last
        from ..storage.read import run_to_repeat  # noqa: PLC0415 - only runs about a day need it

        repeated = run_to_repeat(self.healed.state, self.config.variables.ds)
        is_latest = repeated is next(reversed(self.healed.state.runs), None)
        return self.last if is_latest else last_run(repeated)

    def _judged(self, staging: Staging, inputs: Sequence[Mapping[str, Any]]) -> tuple[Rows, dict[str, tuple[str, ...]]]:
        """The rows of the table `gates`, and by stage what to know of them and of what was not verified."""
        if not self.config.gates:
            return (), self.verified.with_warnings({})
        from .gates.outcomes import judge_gates  # noqa: PLC0415 - only a config with gates needs it

        judged = judge_gates(self.config, staging, self.healed.state, inputs, self.attempt.record)
        return judged.rows, self.verified.with_warnings(judged.warnings)

    def _publish(self, stages: StageByStage, staging: Staging) -> Run:
        base = self.healed.state.latest
        inputs = self.verified.with_hashes(joined(stages.records)["inputs"])
        gates, warnings = self._judged(staging, inputs)
        stages.records = [record.with_notes(warnings.get(record.name, ())) for record in stages.records]
        fingerprint, identity = (
            together([(record.name, str(record.result.get(key))) for record in stages.records])
            for key in ("fingerprint", "identity")
        )
        manifest = Manifest(staging.run_id, base.generation + 1, utc_now(), fingerprint, identity, ())
        configuration = canonical(self.config) | {
            "stages": [stage.entries["configuration"] for stage in stages.records]
        }
        record = self.attempt.record | {
            "status": "published",
            "exit": failure_code(stages.failures) or exit_code(gates),
            "generation": manifest.generation,
            "parent_generation": base.generation,
            "ended_at": utc_now(),
            "seconds": round(time.monotonic() - self.started, 3),
            "peak_rss_bytes": peak_rss(),
            "versions": versions(self.config.engine),
            "code_sha256": code_sha256(),
            "base": str(self.config.base.absolute()),
            "configuration": configuration,
            **joined(stages.records),
            "inputs": inputs,
            "gates": gates,
            "absent": stages.absent,
            **_error(stages.failures),
        }
        path = staging.commit(base=base, manifest=manifest, record=record)
        try:
            self.attempt.write(**record)
        except ThresherError as error:  # readers see the run already: a late failure is a warning
            staging.warnings_after_commit.append(error.message)
        shown = json.loads(json_bytes(record))  # as in its file, which an error of the disk could now keep from us
        results = tuple(
            replace(result, warnings=(*warnings.get(result.name, ()), *result.warnings)) for result in stages.results
        )
        run = self._finished(path, manifest, "published", shown, results, tuple(stages.failures))
        return replace(run, warnings=(*run.warnings, *staging.warnings_after_commit))

    def _found(self) -> Ready[FoundInputs]:
        """The stages with their inputs, which may tell that nothing is new; then no plan is made."""
        with self.stop.at_once():  # copying objects of a remote store, and verifying files, may take long
            ready: Ready[FoundInputs]
            if self.evaluated is not None:
                ready = self._verified(Ready({stage.name: stage for stage in self.evaluated[0].opened}, {}))
            elif self.verified.method == "none":
                ready = found_stages(self.config)
            else:  # a plan tells of mistakes before files are verified
                ready = self._verified(planned_stages(self.config, found_stages(self.config)))
        self.attempt.record |= self.verified.facts()
        return ready

    def _verified(self, ready: Ready[OpenedStage]) -> Ready[OpenedStage]:
        return self.verified.check(ready, publish_others=self.config.on_error == PUBLISH_OTHERS)

    def _finished(
        self,
        path: Path,
        manifest: Manifest,
        status: str,
        record: dict[str, Any],
        results: tuple[StageResult, ...],
        failures: tuple[Failure, ...],
    ) -> Run:
        """Return the finished run; its warnings are those of the run that counted."""
        clear_staging(self.layout)
        recorded, unverified = warnings_of_record(record), texts_once(self.verified.warnings)
        unverified = tuple(text for text in unverified if text not in recorded)
        gates = tuple(record.get("gates", ()))
        unwritten = self.config.gate_files.write(record, status, failure_code(failures) or exit_code(gates))
        crashes = self.healed.crashes if self.watcher.on_crash is None else ()
        warnings = (*recorded, *unverified, *self.healed.notes, *crashes, *unwritten)
        seconds, stages = time.monotonic() - self.started, StageResults(results)
        notes = texts_once({name: result.get("notes", ()) for name, result in record["results"].items()})
        numbers = (path, manifest.run_id, manifest.generation, status)
        return Run(*numbers, stages, warnings, seconds, failures, gates, notes=notes)

    def _unchanged(self, last: LastRun, results: tuple[StageResult, ...], failures: tuple[Failure, ...]) -> Run:
        """Return the last run, in which nothing would change."""
        record = json.loads(read_own(last.folder / RUN_RECORD))
        run = self._finished(last.folder, last.manifest, "unchanged", record, results, failures)
        facts = {"exit": run.exit_code, "ended_at": utc_now(), "generation": run.generation, **self.verified.inputs()}
        self.attempt.write(status="unchanged", **facts, **_error(failures))
        return run


def _error(failures: Sequence[Failure]) -> dict[str, str]:
    """What the record of an attempt says of the stages that failed."""
    sentences = [f"stage {failure.stage!r}: {failure.fault}" for failure in failures]
    return {"error": "\n".join(sentences)} if sentences else {}


def warnings_of_record(record: Mapping[str, Any]) -> tuple[str, ...]:
    """Return all warnings of a run from its record, each once, with the names of its stages."""
    absent = {name: [facts["warning"]] for name, facts in record.get("absent", {}).items()}
    return texts_once(absent | {name: result["warnings"] for name, result in record["results"].items()})
