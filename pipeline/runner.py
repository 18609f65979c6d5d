"""How a config is run: plan → count → save counts → derive → check → publish. Counts and metrics meet only here."""

from __future__ import annotations

import json
import os
import platform
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import polars as pl

from pipeline.counting import count, follow_up
from pipeline.engines.duckdb import DuckDB, Resources
from pipeline.errors import ConfigError, DataError, PermissionDenied, StorageError, ThresherError, system_fault
from pipeline.interrupts import stop_requests
from pipeline.opening import OpenedStage, open_inputs
from pipeline.predicate_faults import naming_where
from pipeline.provenance import (
    canonical,
    code_sha256,
    fingerprints,
    input_records,
    peak_rss,
    settings,
    skipped_records,
    versions,
)
from pipeline.schemas import Column, Table, conform
from pipeline.sources.files import first_changed
from pipeline.stages.plan import REPLICATE
from pipeline.storage.durable import make_folder, storage_errors, write_json
from pipeline.storage.layout import COUNTS, FORMAT_VERSION, RUN_RECORD, Layout, new_run_id
from pipeline.storage.manifest import Manifest, faults
from pipeline.storage.publish import Staging, clean, current_generation, exclusive, published_runs, utc_now

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pipeline.config import Config
    from pipeline.counting import Counted
    from pipeline.interrupts import StopRequest
    from pipeline.sources.source import Source
    from pipeline.stages.stage import Summary

INPUTS = "inputs"
_THRESHOLD_OF_COUNTS = Column("threshold", "DOUBLE", "lower edge of the bin; NULL below all", nullable=True)


@dataclass(frozen=True)
class StageResult:
    """What one stage brought.

    Attributes:
        name: Name of the stage.
        kind: Its task.
        summary: For people.
        warnings: What to know before the numbers are used.
        seconds: Time it took.
    """

    name: str
    kind: str
    summary: Summary
    warnings: tuple[str, ...]
    seconds: float


@dataclass(frozen=True)
class Run:
    """A published run.

    Attributes:
        path: Its folder.
        run_id: Its id.
        generation: Its place in the sequence of runs.
        status: `published`, or `unchanged` when the results already stood there.
        stages: What every stage brought; empty for an unchanged run that did not have to count.
        warnings: All warnings, each with the name of its stage.
        seconds: Time of the whole run.
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
    """Who is told how a run goes.

    Attributes:
        on_stage: Called with the name of the stage that begins.
        on_progress: Called with percent while its inputs are read; None: nobody watches.
    """

    on_stage: Callable[[str], None] = field(default=lambda _name: None)
    on_progress: Callable[[float], None] | None = None


def run(config: Config, watcher: Watcher | None = None) -> Run:
    """Run the stages of a config and publish one run.

    Raises:
        ThresherError: its leaf says what went wrong; readers still see the run before.
    """
    layout = Layout(config.output)
    make_folder(layout.root)
    with stop_requests() as stop, _attempt(layout, config) as attempt, exclusive(layout):
        if config.engine != "duckdb":
            message = f"{config.origin}: engine {config.engine!r} is not available yet"
            raise ConfigError(message, remedy='Use engine = "duckdb".')
        return _Job(config, layout, attempt, watcher or Watcher(), stop).run()


@dataclass
class _Attempt:
    """The record of one attempt, written at its start and at its end."""

    path: Path
    record: dict[str, Any]

    def write(self, **facts: Any) -> None:  # noqa: ANN401 - whatever JSON can hold
        self.record |= facts
        with storage_errors(f"writing {self.path}"):
            self.path.parent.mkdir(exist_ok=True)
        write_json(self.path, self.record)


@contextmanager
def _attempt(layout: Layout, config: Config) -> Iterator[_Attempt]:
    run_id = new_run_id()
    record = {
        "format_version": FORMAT_VERSION,
        "run_id": run_id,
        "status": "running",
        "started_at": utc_now(),
        "config": config.origin,
        "pid": os.getpid(),
        "host": platform.node(),
        "stages": [each.params.name for each in config.stages],
    }
    attempt = _Attempt(layout.attempts / f"{run_id}.json", record)
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
    """One run of one config, while the results are held."""

    config: Config
    layout: Layout
    attempt: _Attempt
    watcher: Watcher
    stop: StopRequest
    started: float = field(default_factory=time.monotonic)

    def run(self) -> Run:
        base = current_generation(self.layout)
        clean(self.layout)
        ready = [open_inputs(self.config, each) for each in self.config.stages if not each.follows]
        fingerprint, identity = fingerprints(self.config, ready)
        if (run := self._standing(fingerprint)) is not None:
            return run
        staging = Staging(self.layout, self.attempt.record["run_id"])
        self.stop.check()
        opened, results, accounts = self._stages(staging, {each.name: each for each in ready})
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
            "configuration": canonical(self.config),
            "accounting": accounts,
            "inputs": input_records(opened),
            "skipped": skipped_records(opened),
            "facts": {each.name: each.plan.facts for each in opened},
            "results": {each.name: {"warnings": each.warnings, "seconds": round(each.seconds, 3)} for each in results},
        }
        path = staging.commit(base=base, manifest=manifest, record=record)
        try:
            self.attempt.write(**record)
        except (StorageError, PermissionDenied) as error:  # readers see the run already: a late failure is a doubt
            staging.doubts.append(error.message)
        run = self._run(path, manifest, "published", results)
        return replace(run, warnings=(*run.warnings, *staging.doubts))

    def _run(self, path: Path, manifest: Manifest, status: str, results: tuple[StageResult, ...]) -> Run:
        """The finished run; what it warned of when it was counted holds as long as it stands."""
        record = json.loads((path / RUN_RECORD).read_bytes())
        warnings = tuple(f"{name}: {text}" for name, each in record["results"].items() for text in each["warnings"])
        seconds = time.monotonic() - self.started
        return Run(path, manifest.run_id, manifest.generation, status, results, warnings, seconds)

    def _standing(self, fingerprint: str) -> Run | None:
        """The latest run, if the same files, config and code made it and its files are whole."""
        runs = published_runs(self.layout)
        if not runs:
            return None
        folder, manifest = runs[-1]
        if manifest.fingerprint != fingerprint or faults(folder, manifest) or not self.layout.catalog.is_file():
            return None
        self._unchanged(manifest)
        return self._run(folder, manifest, "unchanged", ())

    def _equal(self, staging: Staging, identity: str, results: tuple[StageResult, ...]) -> Run | None:
        """The latest run, if counting again brought the same bytes from the same inputs, config and code."""
        runs = published_runs(self.layout)
        if not runs:
            return None
        folder, manifest = runs[-1]
        same = manifest.identity == identity and manifest.results == staging.results()
        if not same or faults(folder, manifest) or not self.layout.catalog.is_file():
            return None
        clean(self.layout)
        self._unchanged(manifest)
        return self._run(folder, manifest, "unchanged", results)

    def _unchanged(self, manifest: Manifest) -> None:
        self.attempt.write(status="unchanged", exit=0, ended_at=utc_now(), generation=manifest.generation)

    def _stages(
        self, staging: Staging, ready: dict[str, OpenedStage]
    ) -> tuple[list[OpenedStage], tuple[StageResult, ...], dict[str, Any]]:
        """Run the stages in order; those that follow others are opened when these have been written."""
        resources = Resources(**self.config.resources.model_dump())
        opened, results, accounts = [], [], {}
        for configured in self.config.stages:
            self.watcher.on_stage(configured.params.name)
            each = ready.get(configured.params.name) or open_inputs(self.config, configured, run=staging.folder)
            opened.append(each)
            folders = {folder for source in each.sources.values() for folder in _folders(source)}
            with DuckDB(resources, folders, self.stop, self.watcher.on_progress) as engine:
                result, counted = _run_stage(engine, each, staging, self.stop)
            results.append(result)
            accounts[each.name] = {
                account.name: account.fates | {"rows_in": account.rows_in} for account in counted.inputs
            }
            self.stop.check()
        return opened, tuple(results), accounts

    def _check_unmoved(self, opened: list[OpenedStage]) -> None:
        for each in opened:
            for source in each.sources.values():
                changed = first_changed(source.files)
                if changed is not None:
                    message = f"input {source.name}: {changed} changed while it was read"
                    raise DataError(message, remedy="Run again when its writer is done.")


def _folders(source: Source) -> Iterator[Path]:
    for file in source.files:
        yield file.path.parent
        yield file.path.resolve().parent


def _run_stage(engine: DuckDB, opened: OpenedStage, staging: Staging, stop: StopRequest) -> tuple[StageResult, Counted]:
    started = time.monotonic()
    stage, params, plan = opened.configured.stage, opened.configured.params, opened.plan
    by = [each.name for each in plan.by]
    with naming_where(engine, plan):
        counted = count(engine, opened.configured, plan)
    metadata = {"thresher": json.dumps(settings(opened), sort_keys=True)}
    staging.write(
        COUNTS, params.name, conform(counted.tables[COUNTS], _counts_table(opened), stage=params.name, by=by), metadata
    )
    with stop.at_once():
        derived = stage.derive(params, counted.tables)
    with naming_where(engine, plan):
        derived |= follow_up(engine, plan, derived)
    tables = {table.name: conform(derived[table.name], table, stage=params.name, by=by) for table in stage.tables}
    for name, frame in tables.items():
        staging.write(name, params.name, frame, metadata)
    staging.write(INPUTS, params.name, _inputs_table(params.name, counted), metadata)
    warnings = (*plan.warnings, *_empty_warnings(counted), *counted.warnings, *stage.warnings(tables))
    seconds = time.monotonic() - started
    return StageResult(params.name, stage.kind, stage.summarize(tables), warnings, seconds), counted


def _counts_table(opened: OpenedStage) -> Table:
    stage = opened.configured.stage
    replicate = Column(REPLICATE, "BIGINT", "group of clusters; intervals leave one out at a time")
    return Table(
        COUNTS,
        "one row per group, replicate and bin",
        (replicate, _THRESHOLD_OF_COUNTS, *stage.count_columns),
        (REPLICATE, "threshold", *(each.name for each in stage.count_columns if each.type == "KEY")),
    )


def _inputs_table(stage: str, counted: Counted) -> pl.DataFrame:
    """The view `inputs`: rows in = rows used + rows left out, by reason."""
    rows = [
        {
            "stage": stage,
            "input": each.name,
            "fate": fate,
            "n_rows": n_rows,
            "rows_in": each.rows_in,
            "rows_used": each.fates["used"],
            "n_files": each.n_files,
        }
        for each in counted.inputs
        for fate, n_rows in sorted(each.fates.items())
    ]
    return pl.DataFrame(rows)


def _empty_warnings(counted: Counted) -> Iterator[str]:
    for each in counted.inputs:
        if each.rows_in == 0:
            yield f"input {each.name} has no rows"
