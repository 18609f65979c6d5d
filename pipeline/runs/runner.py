"""How a config is run and published: evaluate its stages, and make them one run that readers see."""

from __future__ import annotations

import json
import time
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from ..base.errors import Interrupted, ThresherError, system_fault
from ..base.interrupts import stop_requests
from ..base.records import dataclass
from ..storage.layout import FORMAT_VERSION, Layout, Manifest, json_bytes, new_run_id
from ..storage.publish import Healed, Staging, clear_staging, exclusive, heal, make_results_folder
from ..storage.state import Attempt, process_facts, utc_now
from .evaluation import refuse_after_fork, states_of
from .stage_by_stage import PUBLISH_OTHERS, LastRun, Ready, StageByStage, check_unmoved, last_run, repeats
from .stage_results import (
    Run,
    StageResults,
    Watcher,
    canonical,
    code_sha256,
    exit_code,
    hash_of,
    joined,
    peak_rss,
    texts_once,
    versions,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from ..base.interrupts import StopRequest
    from .announcing import Announcement
    from .config import Config
    from .evaluation import Evaluation
    from .recorded import Verification
    from .stage_by_stage import Failure
    from .written import OnStore

    Rows = tuple[Mapping[str, Any], ...]


def run(config: Config, watcher: Watcher | None = None, evaluation: Evaluation | None = None) -> Run:
    """Run the stages of a config and publish one run.

    Args:
        config: The config.
        watcher: Follows the progress; None: nobody does.
        evaluation: Its only stage with the tables, if that has been run in memory; None: the stages are run.

    Raises:
        ThresherError: its class says what went wrong; readers still see the previous run. It is a ResourceError in a
            process that was forked after a run.
    """
    watcher = watcher or Watcher()
    with ExitStack() as context:
        if config.gate_files:
            from .gate_outcomes import kept_by_success  # noqa: PLC0415 - only where the config names files

            context.enter_context(kept_by_success(config.gate_files))
        refuse_after_fork()
        if config.store is None:
            return _run_once(config, watcher, evaluation)
        from .written import tried_again  # noqa: PLC0415 - only where results live on a store

        return tried_again(config.store, lambda: _run_once(config, watcher, evaluation))


def _run_once(config: Config, watcher: Watcher, evaluation: Evaluation | None) -> Run:
    layout, on_store, announcement = Layout(config.output), None, None
    with ExitStack() as context:
        stop = context.enter_context(stop_requests())
        if config.is_announced:
            from .announcing import announced  # noqa: PLC0415 - optional extras

            announcement = context.enter_context(announced(config, stop))
        if config.store is not None:
            from .written import OnStore  # noqa: PLC0415 - only where results live on a store

            on_store = OnStore(config.store, stop)
        make_results_folder(layout, "output" if on_store is None else "resources.copies")
        with _attempt(layout, config, announcement, on_store) as attempt, exclusive(layout):
            if config.gate_files:
                from .gate_outcomes import remove  # noqa: PLC0415 - only where the config names files

                remove(config.gate_files)
            watcher.on_run(attempt.record["run_id"])
            config.check_engine()
            if on_store is not None:
                on_store.begin()
            finished = _Job(config, layout, attempt, watcher, stop, on_store, evaluation).run()
        if announcement is None:
            return finished
        announcement.ends(finished.path)
    return replace(finished, warnings=(*finished.warnings, *announcement.warnings))


@contextmanager
def _attempt(
    layout: Layout, config: Config, announcement: Announcement | None, on_store: OnStore | None
) -> Iterator[Attempt]:
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
    attempt = Attempt(layout.attempt(run_id), record)
    if on_store is not None:
        attempt.send = on_store.mirror.upload_attempt
    attempt.write()
    try:
        with config.variables.concealing(), nullcontext() if on_store is None else on_store.store.naming():
            if announcement is not None:
                announcement.begins(attempt.record)
            yield attempt
    except BaseException as error:
        fault = error if isinstance(error, ThresherError) else system_fault(error)
        code, words = (70, f"{type(error).__name__}: {error}") if fault is None else (fault.code, str(fault))
        status = "interrupted" if isinstance(fault, Interrupted) else "failed"
        with suppress(ThresherError):  # on a full disk the first error is the one to tell
            attempt.write(status=status, exit=code, error=config.variables.concealed(words), ended_at=utc_now())
        if fault is None or fault is error:
            raise
        raise fault from error


@dataclass
class _Job:
    """A run of a config, made while the lock of the results is held; its only stage may have been run already."""

    config: Config
    layout: Layout
    attempt: Attempt
    watcher: Watcher
    stop: StopRequest
    on_store: OnStore | None = None
    evaluation: Evaluation | None = None
    healed: Healed = field(init=False)
    stages: StageByStage | None = None
    last: LastRun | None = None
    verified: Verification | None = None
    started: float = field(default_factory=time.monotonic)

    def run(self) -> Run:
        self.healed = heal(self.layout)
        if self.watcher.on_crash is not None:  # said now: this run may end there, too
            for sentence in self.healed.crashes:
                self.watcher.on_crash(sentence)
        self.last = last_run(self.healed.state.latest_run)
        if self.config.verify_inputs != "none":
            from .recorded import verification  # noqa: PLC0415 - only where the config asks for it

            self.verified = verification(self.config.verify_inputs, self.layout, self.last)
        ready, earlier = self._ready(), self._to_repeat()
        if self.config.cache and earlier is not None and repeats(ready, earlier):
            return self._unchanged(earlier)
        with self.stop.at_once():
            ready.plan()
        mirror = None if self.on_store is None else self.on_store.mirror
        staging = Staging(self.layout, self.attempt.record["run_id"], mirror)
        self.stop.check()
        states = states_of(self.config, self.layout, ready.planned.values())
        stages = StageByStage(ready, self.last, staging, self.watcher, self.stop, states, self.evaluation)
        self.stages = stages
        stages.run()
        if states is not None:
            states.clean_up()
        if self.config.on_error != PUBLISH_OTHERS:
            for opened in ready.opened.values():
                check_unmoved(opened)
        if earlier is not None and repeats(ready, earlier, stages):
            return self._unchanged(earlier)
        self.stop.check()
        return self._publish(stages, staging)

    def _to_repeat(self) -> LastRun | None:
        """The run that this one may turn out to repeat: the latest, or for a day before it the last run of that day."""
        if self.config.variables.ds is None:
            return self.last
        from ..storage.catalog import run_to_repeat  # noqa: PLC0415 - only runs about a day need it

        repeated = run_to_repeat(self.healed.state, self.config.variables.ds)
        return self.last if repeated is self.healed.state.latest_run else last_run(repeated)

    def _judged(self, staging: Staging, inputs: Sequence[Mapping[str, Any]]) -> tuple[Rows, dict[str, list[str]]]:
        """The rows of the table `gates`; and warnings by stage, of gates and of inputs that were not verified."""
        rows: Rows = ()
        warnings = {} if self.verified is None else {**self.verified.warnings}
        if self.config.gates:
            from .gate_outcomes import judge_gates  # noqa: PLC0415 - only a config with gates needs it

            rows, said = judge_gates(self.config, staging, self.healed.state, inputs, self.attempt.record)
            for stage, of_gates in said.items():
                warnings[stage] = [*of_gates, *warnings.get(stage, ())]
        return rows, warnings

    def _publish(self, stages: StageByStage, staging: Staging) -> Run:
        base = self.healed.state.latest
        inputs = joined(stages.records)["inputs"]
        if self.verified is not None:
            inputs = self.verified.with_hashes(inputs)
        gates, warnings = self._judged(staging, inputs)
        stages.records = [record.with_notes(warnings.get(record.name, ())) for record in stages.records]
        fingerprint, identity = (
            hash_of([(record.name, str(record.result.get(key))) for record in stages.records])
            for key in ("fingerprint", "identity")
        )
        manifest = Manifest(staging.run_id, base.generation + 1, utc_now(), fingerprint, identity, ())
        configurations = [stage.entries["configuration"] for stage in stages.records]
        record = self.attempt.record | {
            "status": "published",
            "exit": exit_code(stages.failures, gates),
            "generation": manifest.generation,
            "parent_generation": base.generation,
            "ended_at": utc_now(),
            "seconds": round(time.monotonic() - self.started, 3),
            "peak_rss_bytes": peak_rss(),
            "versions": versions(self.config.engine),
            "code_sha256": code_sha256(),
            "base": str(self.config.base.absolute()),
            "configuration": canonical(self.config) | {"stages": configurations},
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
        stages.results = [
            replace(result, warnings=(*warnings.get(result.name, ()), *result.warnings)) for result in stages.results
        ]
        run = self._finished(path, manifest, "published", shown)
        return replace(run, warnings=(*run.warnings, *staging.warnings_after_commit))

    def _ready(self) -> Ready:
        """The stages with their inputs, which may tell that nothing is new; then no plan is made."""
        ready = Ready(self.config)
        with self.stop.at_once():  # copying objects of a remote store, and verifying files, may take long
            if self.evaluation is not None:
                ready.opened[self.evaluation.opened.name] = self.evaluation.opened
            else:
                ready.find()
            if self.verified is not None:
                ready.plan()  # tells of mistakes before files are verified
                ready.verify(self.verified)
                self.attempt.record |= self.verified.facts()
        return ready

    def _finished(self, path: Path, manifest: Manifest, status: str, record: dict[str, Any]) -> Run:
        """Return the finished run, with the warnings of the run that counted."""
        clear_staging(self.layout)
        results = () if self.stages is None else self.stages.results
        failures = () if self.stages is None else tuple(self.stages.failures)
        absent = {name: [facts["warning"]] for name, facts in record.get("absent", {}).items()}
        recorded = texts_once(absent | {name: result["warnings"] for name, result in record["results"].items()})
        unverified = () if self.verified is None else texts_once(self.verified.warnings)
        unverified = tuple(text for text in unverified if text not in recorded)
        gates = tuple(record.get("gates", ()))
        unwritten: tuple[str, ...] = ()
        if self.config.gate_files:
            from .gate_outcomes import write  # noqa: PLC0415 - only where the config names files

            unwritten = write(self.config.gate_files, record, status, exit_code(failures, gates))
        crashes = self.healed.crashes if self.watcher.on_crash is None else ()
        warnings = (*recorded, *unverified, *self.healed.notes, *crashes, *unwritten)
        seconds, stages = time.monotonic() - self.started, StageResults(results)
        notes = texts_once({name: result.get("notes", ()) for name, result in record["results"].items()})
        numbers = (path, manifest.run_id, manifest.generation, status)
        return Run(*numbers, stages, warnings, seconds, failures, gates, notes=notes)

    def _unchanged(self, last: LastRun) -> Run:
        """Return the last run, in which nothing would change."""
        run = self._finished(last.folder, last.manifest, "unchanged", last.record)
        facts = {"exit": run.exit_code, "ended_at": utc_now(), "generation": run.generation}
        hashed = {} if self.verified is None else self.verified.inputs()
        self.attempt.write(status="unchanged", **facts, **hashed, **_error(run.failures))
        return run


def _error(failures: Sequence[Failure]) -> dict[str, str]:
    """The failed stages, for the record of an attempt."""
    sentences = [f"stage {failure.stage!r}: {failure.fault}" for failure in failures]
    return {"error": "\n".join(sentences)} if sentences else {}
