"""How a config is run: plan, count, save counts, derive, check, publish. Counts and metrics meet only here."""

from __future__ import annotations

import json
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import polars as pl

from pipeline.engines.duckdb import DuckDB, Resources
from pipeline.errors import DataError, PermissionDenied, StorageError, ThresherError, system_fault
from pipeline.interrupts import stop_requests
from pipeline.plan.counting import after_results, count
from pipeline.plan.user_sql import naming_user_sql
from pipeline.runs.forks import refuse_after_fork
from pipeline.runs.opening import OpenedStage, open_inputs
from pipeline.runs.provenance import (
    canonical,
    code_sha256,
    fingerprints,
    input_records,
    peak_rss,
    settings,
    skipped_records,
    versions,
)
from pipeline.sources.files import first_changed
from pipeline.stages.stage import counts_table
from pipeline.storage.attempts import Attempt, process_facts, utc_now
from pipeline.storage.durable import make_folder
from pipeline.storage.heal import Healed, heal
from pipeline.storage.layout import FORMAT_VERSION, RUN_RECORD, Layout, new_run_id
from pipeline.storage.manifest import Manifest
from pipeline.storage.publish import Staging, exclusive
from pipeline.tables.groupings import in_users_names
from pipeline.tables.metrics_table import metrics_table
from pipeline.tables.run_tables import BINDINGS, INPUTS, METRICS
from pipeline.tables.schemas import COUNT_TABLE, conform, empty_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pipeline.interrupts import StopRequest
    from pipeline.plan.counting import Counted
    from pipeline.runs.config import Config
    from pipeline.stages.stage import Summary
    from pipeline.tables.schemas import Table


@dataclass(frozen=True)
class StageResult:
    """Result of one stage.

    Attributes:
        name: Name of the stage.
        kind: Its task.
        summary: A summary for people.
        warnings: What to know before using the numbers.
        seconds: How long it took.
        n_rows: Number of rows of its inputs.
        omitted: Result tables that were not made, with the reason.
    """

    name: str
    kind: str
    summary: Summary
    warnings: tuple[str, ...]
    seconds: float
    n_rows: int
    omitted: dict[str, str]


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
    stages: tuple[StageResult, ...]
    warnings: tuple[str, ...]
    seconds: float


@dataclass
class Watcher:
    """Callbacks that follow the progress of a run.

    Attributes:
        on_run: Called with the id of the attempt.
        on_stage: Called with the name of the stage that begins.
        on_opened: Called with the stage when its inputs have been found, before they are read.
        on_result: Called with the result of the stage that ends.
        on_progress: Called with the percentage read while its inputs are read; None if nobody watches.
    """

    on_run: Callable[[str], None] = field(default=lambda _run_id: None)
    on_stage: Callable[[str], None] = field(default=lambda _name: None)
    on_opened: Callable[[OpenedStage], None] = field(default=lambda _opened: None)
    on_result: Callable[[StageResult], None] = field(default=lambda _result: None)
    on_progress: Callable[[float], None] | None = None


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


def stage_tables(config: Config) -> Run:
    """Write the tables of a config's stages into a staging folder, unpublished: no reader or later run sees them.

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
        _, results, _ = _stages(config, _opened(config), staging, Watcher(), stop)
    warnings = warnings_once({result.name: result.warnings for result in results})
    return Run(staging.folder, staging.run_id, 0, "staged", results, warnings, time.monotonic() - started)


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
    }
    attempt = Attempt(layout.attempt(run_id), record)
    attempt.write()
    try:
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
            attempt.write(status="failed", exit=code, error=words, ended_at=utc_now())
        if fault is not None:
            raise fault from error
        raise


@dataclass
class _Job:
    """A run of a config, made while the lock of the results is held."""

    config: Config
    layout: Layout
    attempt: Attempt
    watcher: Watcher
    stop: StopRequest
    healed: Healed = field(init=False)
    started: float = field(default_factory=time.monotonic)

    def run(self) -> Run:
        self.healed = heal(self.layout)
        base = self.healed.state.latest
        ready = _opened(self.config)
        fingerprint, identity = fingerprints(self.config, list(ready.values()))
        if (run := self._existing(fingerprint)) is not None:
            return run
        staging = Staging(self.layout, self.attempt.record["run_id"])
        self.stop.check()
        opened, results, accounts = _stages(self.config, ready, staging, self.watcher, self.stop)
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
            "accounting": accounts,
            "inputs": input_records(opened),
            "skipped": skipped_records(opened),
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

    def _run(self, path: Path, manifest: Manifest, status: str, results: tuple[StageResult, ...]) -> Run:
        """Return the finished run; its warnings are those of the run that counted."""
        record = json.loads((path / RUN_RECORD).read_bytes())
        warnings = warnings_once({name: result["warnings"] for name, result in record["results"].items()})
        seconds = time.monotonic() - self.started
        warnings += self.healed.notes
        return Run(path, manifest.run_id, manifest.generation, status, results, warnings, seconds)

    def _existing(self, fingerprint: str) -> Run | None:
        """Return the latest run if the same files, config and code made it and its files are intact."""
        existing = self._latest_intact()
        if existing is None or existing[1].fingerprint != fingerprint:
            return None
        self._unchanged(existing[1])
        return self._run(*existing, "unchanged", ())

    def _equal(self, staging: Staging, identity: str, results: tuple[StageResult, ...]) -> Run | None:
        """Return the latest run if counting again gave the same bytes from the same inputs, config and code."""
        existing = self._latest_intact()
        if existing is None or (existing[1].identity, existing[1].results) != (identity, staging.results()):
            return None
        staging.discard()
        self._unchanged(existing[1])
        return self._run(*existing, "unchanged", results)

    def _latest_intact(self) -> tuple[Path, Manifest] | None:
        """Return folder and manifest of the latest run, if it exists and was intact when this run began."""
        run = next(reversed(self.healed.state.runs), None)
        return None if run is None or run.manifest is None or run.damage else (run.folder, run.manifest)

    def _unchanged(self, manifest: Manifest) -> None:
        self.attempt.write(status="unchanged", exit=0, ended_at=utc_now(), generation=manifest.generation)

    def _check_unmoved(self, opened: list[OpenedStage]) -> None:
        for stage in opened:
            for source in stage.sources.values():
                changed = first_changed(source.files)
                if changed is not None:
                    message = f"input {source.name}: {changed} changed while it was read"
                    raise DataError(message, remedy="Run again when its writer is done.")


def _opened(config: Config) -> dict[str, OpenedStage]:
    """Open the inputs of all stages that read only files, by name of the stage."""
    stages = (stage for stage in config.stages if not stage.upstream)
    return {stage.params.name: open_inputs(config, stage) for stage in stages}


def _stages(
    config: Config, ready: dict[str, OpenedStage], staging: Staging, watcher: Watcher, stop: StopRequest
) -> tuple[list[OpenedStage], tuple[StageResult, ...], dict[str, Any]]:
    """Run the stages in order; one with upstream stages is opened when these have been written."""
    resources = Resources(**config.resources.model_dump())
    opened: list[OpenedStage] = []
    results: list[StageResult] = []
    accounts = {}
    for configured in config.stages:
        watcher.on_stage(configured.params.name)
        stage = ready.get(configured.params.name) or open_inputs(
            config, configured, run=staging.folder, omitted={result.name: result.omitted for result in results}
        )
        opened.append(stage)
        watcher.on_opened(stage)
        with DuckDB(resources, stage.folders, stop, watcher.on_progress) as engine:
            result, counted = _run_stage(engine, stage, staging, stop)
        results.append(result)
        watcher.on_result(result)
        accounts[stage.name] = {
            account.name: account.rows_by_status | {"rows_in": account.rows_in} for account in counted.inputs
        }
        stop.check()
    return opened, tuple(results), accounts


def _run_stage(engine: DuckDB, opened: OpenedStage, staging: Staging, stop: StopRequest) -> tuple[StageResult, Counted]:
    started = time.monotonic()
    stage, params, plan = opened.configured.stage, opened.configured.params, opened.plan
    by = [each.name for each in plan.by]
    with naming_user_sql(engine, plan):
        counted = count(engine, params, plan)
    metadata = {"thresher": json.dumps(settings(opened), sort_keys=True)}

    def write(table: Table, frame: pl.DataFrame) -> pl.DataFrame:
        checked = conform(frame, table, stage=params.name, by=by)
        staging.write(table, params.name, in_users_names(checked), metadata)
        return checked

    write(counts_table(stage), counted.tables[COUNT_TABLE])
    with stop.at_once():
        derived = stage.derive(params, counted.tables)
    for table in stage.tables:
        derived.setdefault(table.name, empty_table(table, counted.tables[COUNT_TABLE], by))
    with naming_user_sql(engine, plan):
        derived = after_results(engine, params, plan.without(counted.omitted), derived)
    tables = {
        table.name: write(table, derived[table.name]) for table in stage.tables if table.name not in counted.omitted
    }
    staging.write(INPUTS, params.name, _inputs_table(params.name, counted), metadata)
    staging.write(BINDINGS, params.name, _bindings_table(opened), metadata)
    staging.write(METRICS, params.name, metrics_table(stage.tables, tables), metadata)
    warnings = (*counted.alarms, *plan.warnings, *counted.warnings, *stage.warnings(tables))
    seconds = time.monotonic() - started
    n_rows = sum(account.rows_in for account in counted.inputs)
    summary = stage.summarize(tables)
    result = StageResult(params.name, stage.kind, summary, warnings, seconds, n_rows, counted.omitted)
    return result, counted


def _inputs_table(stage: str, counted: Counted) -> pl.DataFrame:
    """Return the table `inputs`: rows in = rows used + rows left out, by reason."""
    rows = [
        {
            "stage": stage,
            "input": account.name,
            "status": status,
            "n_rows": n_rows,
            "rows_in": account.rows_in,
            "rows_used": account.rows_by_status["used"],
            "n_files": account.n_files,
        }
        for account in counted.inputs
        for status, n_rows in sorted(account.rows_by_status.items())
    ]
    return pl.DataFrame(rows)


def _bindings_table(opened: OpenedStage) -> pl.DataFrame:
    """Return the table `bindings`: which column of the files is read as which field, and why."""
    names = ("stage", "input", "field", "source", "file_column", "sql")
    rows = [(opened.name, each.input, each.field, each.origin, each.column, each.sql) for each in opened.bindings]
    return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String()), orient="row")


def warnings_once(warnings: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """List the warnings of all stages; one that several stages give appears once, with their names."""
    stages_of: dict[str, list[str]] = {}
    for stage, texts in warnings.items():
        for text in dict.fromkeys(texts):
            stages_of.setdefault(text, []).append(stage)
    return tuple(f"{', '.join(stages)}: {text}" for text, stages in stages_of.items())
