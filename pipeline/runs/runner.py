"""How a config is run and published: evaluate its stages, and make them one run that readers see."""

from __future__ import annotations

import json
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import polars as pl

from pipeline.errors import DataError, PermissionDenied, StorageError, ThresherError, system_fault
from pipeline.interrupts import stop_requests
from pipeline.runs.evaluation import Evaluation, InMemory, StageResults, Watcher, evaluate, open_stages
from pipeline.runs.forks import refuse_after_fork
from pipeline.runs.provenance import (
    canonical,
    code_sha256,
    fingerprints,
    input_records,
    left_out_records,
    peak_rss,
    settings,
    skipped_records,
    table_records,
    versions,
)
from pipeline.runs.reuse import states_of
from pipeline.storage.attempts import Attempt, process_facts, utc_now
from pipeline.storage.durable import make_folder
from pipeline.storage.heal import Healed, heal
from pipeline.storage.layout import FORMAT_VERSION, RUN_RECORD, Layout, new_run_id
from pipeline.storage.manifest import Manifest
from pipeline.storage.of_day import run_to_repeat
from pipeline.storage.publish import Staging, exclusive

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from pipeline.interrupts import StopRequest
    from pipeline.runs.config import Config
    from pipeline.runs.evaluation import StageResult
    from pipeline.runs.opening import OpenedStage
    from pipeline.storage.states import States


@dataclass(frozen=True)
class Run:
    """A published run.

    Attributes:
        path: Its folder.
        run_id: Its id.
        generation: Its place in the sequence of runs.
        status: `published`, or `unchanged` if these results existed already; `staged` if nothing was published.
        stages: Results of the stages; empty for an unchanged run that did not need to count.
        warnings: All warnings, each once, with the names of its stages.
        seconds: How long the run took.
    """

    path: Path
    run_id: str
    generation: int
    status: str
    stages: StageResults
    warnings: tuple[str, ...]
    seconds: float

    def table(self, name: str) -> pl.DataFrame:
        """Read a table of all its stages, one below the other in their order.

        Args:
            name: The table, as docs/results.md calls it.

        Raises:
            KeyError: no stage of the run made it.
        """
        folder = self.path / name
        files = [folder / f"{stage.name}.parquet" for stage in self.stages]
        frames = [pl.read_parquet(file) for file in files if file.is_file()]
        if not frames:
            message = f"no stage of the run made a table {name!r}"
            raise KeyError(message)
        return pl.concat(frames, how="diagonal_relaxed")


def run(config: Config, watcher: Watcher | None = None) -> Run:
    """Run the stages of a config and publish one run.

    Raises:
        ThresherError: its class says what went wrong; readers still see the previous run. It is a ResourceError in a
            process that was forked after a run.
    """
    refuse_after_fork()
    layout = Layout(config.output)
    watcher = watcher or Watcher()
    make_folder(layout.root)
    with stop_requests() as stop, _attempt(layout, config) as attempt, exclusive(layout):
        watcher.on_run(attempt.record["run_id"])
        config.check_engine()
        return _Job(config, layout, attempt, watcher, stop).run()


def stage_tables(config: Config, states: States | None = None) -> Run:
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
    warnings = warnings_once({result.name: result.warnings for result in results})
    return Run(staging.folder, staging.run_id, 0, "staged", StageResults(results), warnings, time.monotonic() - started)


def publish(config: Config, evaluation: Evaluation, tables: InMemory) -> Run:
    """Publish stages that have been run, as `run` publishes those that it runs.

    Args:
        config: Their config; its results folder is where they go.
        evaluation: The stages.
        tables: Their tables.

    Raises:
        ThresherError: as for `run`.
    """
    refuse_after_fork()
    layout = Layout(config.output)
    make_folder(layout.root)
    with stop_requests() as stop, _attempt(layout, config) as attempt, exclusive(layout):
        return _Job(config, layout, attempt, Watcher(), stop, (evaluation, tables)).run()


@contextmanager
def _attempt(layout: Layout, config: Config) -> Iterator[Attempt]:
    run_id = new_run_id()
    record = {
        "format_version": FORMAT_VERSION,
        "run_id": run_id,
        "status": "running",
        "started_at": utc_now(),
        "config": config.origin,
        **process_facts(),
        "stages": [each.params.name for each in config.stages],
        **config.variables.record(),
    }
    attempt = Attempt(layout.attempt(run_id), record)
    attempt.write()
    try:
        with config.variables.concealing():
            yield attempt
    except ThresherError as error:
        interrupted = error.code > 128  # noqa: PLR2004 - 128 + signal
        status = "interrupted" if interrupted else "failed"
        with suppress(StorageError, PermissionDenied):  # on a full disk the first error is the one to tell
            attempt.write(status=status, exit=error.code, error=str(error), ended_at=utc_now())
        raise
    except BaseException as error:
        fault = system_fault(error)
        code, words = (70, f"{type(error).__name__}: {error}") if fault is None else (fault.code, str(fault))
        with suppress(StorageError, PermissionDenied):
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
    evaluated: tuple[Evaluation, InMemory] | None = None
    healed: Healed = field(init=False)
    started: float = field(default_factory=time.monotonic)

    def run(self) -> Run:
        self.healed = heal(self.layout)
        base = self.healed.state.latest
        ready = self._ready()
        fingerprint, identity = fingerprints(self.config, list(ready.values()))
        if (run := self._existing(fingerprint)) is not None:
            return run
        staging = Staging(self.layout, self.attempt.record["run_id"])
        self.stop.check()
        evaluation = self._evaluate(ready, staging)
        opened, results = evaluation.opened, evaluation.results
        self._check_unmoved(opened)
        if (run := self._equal(staging, identity, results)) is not None:
            return run
        self.stop.check()
        manifest = Manifest(staging.run_id, base.generation + 1, utc_now(), fingerprint, identity, ())
        record = self.attempt.record | {
            "status": "published",
            "exit": 0,
            "generation": manifest.generation,
            "parent_generation": base.generation,
            "ended_at": utc_now(),
            "seconds": round(time.monotonic() - self.started, 3),
            "peak_rss_bytes": peak_rss(),
            "versions": versions(),
            "code_sha256": code_sha256(),
            "base": str(self.config.base.absolute()),
            "configuration": canonical(self.config),
            "accounting": evaluation.accounts,
            "reused": evaluation.reused,
            "inputs": input_records(opened),
            "skipped": skipped_records(opened),
            "files_left_out": left_out_records(opened),
            "tables": table_records(opened),
            "bindings": {each.name: settings(each)["bindings"] for each in opened},
            "facts": {each.name: each.plan.facts for each in opened},
            "omitted": {each.name: each.omitted for each in results},
            "results": {each.name: {"warnings": each.warnings, "seconds": round(each.seconds, 3)} for each in results},
        }
        path = staging.commit(base=base, manifest=manifest, record=record)
        try:
            self.attempt.write(**record)
        except (StorageError, PermissionDenied) as error:  # readers see the run already: a late failure is a warning
            staging.warnings_after_commit.append(error.message)
        run = self._run(path, manifest, "published", results)
        return replace(run, warnings=(*run.warnings, *staging.warnings_after_commit))

    def _ready(self) -> dict[str, OpenedStage]:
        if self.evaluated is None:
            with self.stop.at_once():  # copying objects of a remote store may take long
                return open_stages(self.config)
        return {stage.name: stage for stage in self.evaluated[0].opened}

    def _evaluate(self, ready: dict[str, OpenedStage], staging: Staging) -> Evaluation:
        if self.evaluated is not None:
            evaluation, tables = self.evaluated
            tables.hand_on(staging)
            return evaluation
        states = states_of(self.config, self.layout)
        evaluation = evaluate(self.config, ready, staging, self.watcher, self.stop, states)
        if states is not None:
            states.clean_up()
        return evaluation

    def _run(self, path: Path, manifest: Manifest, status: str, results: tuple[StageResult, ...]) -> Run:
        """Return the finished run; its warnings are those of the run that counted."""
        record = json.loads((path / RUN_RECORD).read_bytes())
        warnings = warnings_once({name: result["warnings"] for name, result in record["results"].items()})
        seconds = time.monotonic() - self.started
        warnings += self.healed.notes
        return Run(path, manifest.run_id, manifest.generation, status, StageResults(results), warnings, seconds)

    def _existing(self, fingerprint: str) -> Run | None:
        """Return the latest run, or that of the day, if the same files, config and code made it."""
        existing = self._run_to_repeat()
        if existing is None or existing[1].fingerprint != fingerprint or not self.config.cache:
            return None
        self._unchanged(existing[1])
        return self._run(*existing, "unchanged", ())

    def _equal(self, staging: Staging, identity: str, results: tuple[StageResult, ...]) -> Run | None:
        """Return the run to repeat if counting again gave the same bytes from the same inputs, config and code."""
        existing = self._run_to_repeat()
        if existing is None or (existing[1].identity, existing[1].results) != (identity, staging.results()):
            return None
        staging.discard()
        self._unchanged(existing[1])
        return self._run(*existing, "unchanged", results)

    def _run_to_repeat(self) -> tuple[Path, Manifest] | None:
        """Return folder and manifest of the latest run, or of the last run of an earlier day, if it is intact."""
        return run_to_repeat(self.healed.state, self.config.variables.ds)

    def _unchanged(self, manifest: Manifest) -> None:
        self.attempt.write(status="unchanged", exit=0, ended_at=utc_now(), generation=manifest.generation)

    def _check_unmoved(self, opened: Sequence[OpenedStage]) -> None:
        for stage in opened:
            for source in stage.sources.values():
                for file in source.files:
                    if not file.has_changed():
                        continue
                    message = f"input {source.name}: {file.name} changed while it was read"
                    raise DataError(message, remedy="Run again when its writer is done.")


def warnings_once(warnings: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """List the warnings of all stages; one that several stages give appears once, with their names."""
    stages_of: dict[str, list[str]] = {}
    for stage, texts in warnings.items():
        for text in dict.fromkeys(texts):
            stages_of.setdefault(text, []).append(stage)
    return tuple(f"{', '.join(stages)}: {text}" for text, stages in stages_of.items())
