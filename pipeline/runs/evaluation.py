"""Stages that failed in a run that publishes the others."""

from __future__ import annotations

import json
import sys
import time
from contextlib import contextmanager, suppress
from dataclasses import field, replace
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, Protocol

import polars as pl

from ..errors import Note, ThresherError, system_fault
from ..interrupts import stop_requests
from ..plan.checks import naming_user_sql
from ..plan.count_tables import after_results, count
from ..records import dataclass
from ..stages.stage import counts_table
from ..tables.groupings import in_users_names
from ..tables.metrics_table import metrics_table
from ..tables.run_tables import BINDINGS, INPUTS, METRICS
from ..tables.schemas import COUNT_TABLE, conform, empty_table
from .forks import refuse_after_fork
from .opening import OpenedStage, open_inputs
from .provenance import settings
from .reuse import reuse_in_words, reuse_record, started
from .stage_results import StageResult, Watcher

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ..engines.engine import Engine
    from ..interrupts import StopRequest
    from ..plan.count_tables import Counted
    from ..stages.parameters import StageParameters
    from ..storage.cache import AnswerCache
    from ..tables.schemas import Table
    from .config import Config


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


# What only results need is imported while the engine counts, which leaves Python and often a core free.


NEEDED_FOR_INTERVALS = ("scipy.special",)


@contextmanager
def importing_meanwhile(names: Sequence[str]) -> Iterator[None]:
    """Import modules in another thread while something else is done; at the end they are there.

    An import that fails here fails again where the module is used, and is told there.

    Args:
        names: The modules.
    """
    absent = [name for name in names if name not in sys.modules]
    if not absent:
        yield
        return
    thread = Thread(target=_import, args=(absent,), name="thresher-imports", daemon=True)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def _import(names: Sequence[str]) -> None:
    for name in names:
        with suppress(Exception):
            import_module(name)


# The stages of a config are run one after another: plan, count, save counts, derive, check.
#
# Counts and metrics meet only here. What becomes of the tables is up to the destination that they are handed to.


class Destination(Protocol):
    """Where the tables of stages go."""

    @property
    def folder(self) -> Path:
        """The folder of the unfinished run, where later stages read the tables of earlier ones."""
        ...

    def write(self, table: Table, stage: str, frame: pl.DataFrame, metadata: dict[str, str]) -> None:
        """Take one table of one stage."""
        ...


@dataclass(frozen=True)
class InMemory:
    """A destination that keeps the tables in memory; no stage can read those of another.

    Attributes:
        tables: Contract, frame and metadata by names of table and stage, in the order in which they came.
        folder: There is none.
    """

    tables: dict[tuple[str, str], tuple[Table, pl.DataFrame, dict[str, str]]] = field(default_factory=dict)
    folder: Path = field(default_factory=Path)

    def write(self, table: Table, stage: str, frame: pl.DataFrame, metadata: dict[str, str]) -> None:
        """Keep one table of one stage."""
        self.tables[table.name, stage] = table, frame, metadata

    def hand_on(self, destination: Destination) -> None:
        """Write all tables to another destination."""
        for (_, stage), (table, frame, metadata) in self.tables.items():
            destination.write(table, stage, frame, metadata)


@dataclass(frozen=True)
class Evaluation:
    """Stages that have been run, published or not.

    Attributes:
        opened: The stages with their inputs.
        results: Their results.
        accounts: Rows of every input by status, and `rows_in`, by stage and input.
        reused: How many files of every input of several were read, by stage and input.
    """

    opened: tuple[OpenedStage, ...]
    results: tuple[StageResult, ...]
    accounts: dict[str, Any]
    reused: dict[str, Any]


def evaluate_in_memory(config: Config) -> tuple[Evaluation, InMemory]:
    """Run the stages of a config and keep their tables in memory.

    Raises:
        ThresherError: as for `runner.run`, up to the moment when it would publish.
    """
    refuse_after_fork()
    tables = InMemory()
    with stop_requests() as stop:
        config.check_engine()
        return evaluate(config, open_stages(config), tables, Watcher(), stop), tables


def open_stages(config: Config) -> dict[str, OpenedStage]:
    """Open the inputs of all stages that read only files, by name of the stage."""
    stages = (stage for stage in config.stages if not stage.upstream)
    return {stage.params.name: open_inputs(config, stage) for stage in stages}


def evaluate(
    config: Config,
    ready: dict[str, OpenedStage],
    destination: Destination,
    watcher: Watcher,
    stop: StopRequest,
    states: AnswerCache | None = None,
) -> Evaluation:
    """Run the stages in order; one with upstream stages is opened when these have been written.

    Args:
        config: The config.
        ready: Its stages that read only files and frames, opened.
        destination: Where the tables go.
        watcher: Follows the progress.
        stop: Whether a signal asked to stop.
        states: Where the answers of files are kept; None: all files are read.
    """
    with config.variables.concealing():
        return _evaluate(config, ready, destination, watcher, stop, states)


def _evaluate(
    config: Config,
    ready: dict[str, OpenedStage],
    destination: Destination,
    watcher: Watcher,
    stop: StopRequest,
    states: AnswerCache | None,
) -> Evaluation:
    opened: list[OpenedStage] = []
    results: list[StageResult] = []
    accounts, reused = {}, {}
    for configured in config.stages:
        watcher.on_stage(configured.params.name)
        stage = ready.get(configured.params.name) or open_inputs(
            config, configured, run=destination.folder, omitted={result.name: result.omitted for result in results}
        )
        opened.append(stage)
        result, accounts[stage.name], reused[stage.name] = evaluate_stage(
            config, stage, destination, watcher, stop, states
        )
        results.append(result)
    return Evaluation(tuple(opened), tuple(results), accounts, reused)


def evaluate_stage(
    config: Config,
    opened: OpenedStage,
    destination: Destination,
    watcher: Watcher,
    stop: StopRequest,
    states: AnswerCache | None = None,
) -> tuple[StageResult, dict[str, Any], dict[str, Any]]:
    """Run one stage; arguments and errors are those of `evaluate`.

    Returns:
        Its result; the rows of every input by status, and `rows_in`, by input; how many files of every input were read.
    """
    watcher.on_opened(opened)
    with started(config, opened, stop, watcher.on_progress, states) as engine:
        result, counted = _run_stage(engine, opened, destination, stop)
        reused = reuse_record(engine, opened, states)
    result = replace(result, reused=tuple(reuse_in_words(reused)))
    watcher.on_result(result)
    stop.check()
    accounts = {account.name: account.rows_by_status | {"rows_in": account.rows_in} for account in counted.inputs}
    return result, accounts, reused


def _run_stage(
    engine: Engine, opened: OpenedStage, destination: Destination, stop: StopRequest
) -> tuple[StageResult, Counted]:
    started = time.monotonic()
    stage, params, plan = opened.configured.stage, opened.configured.params, opened.plan
    by = [each.name for each in plan.by]
    needed_later = NEEDED_FOR_INTERVALS if params.is_replicated else ()
    with naming_user_sql(engine, plan), importing_meanwhile(needed_later):
        counted = count(engine, params, plan)
    metadata = {"thresher": json.dumps(settings(opened), sort_keys=True)}

    def write(table: Table, frame: pl.DataFrame) -> pl.DataFrame:
        checked = conform(frame, table, stage=params.name, by=by)
        destination.write(table, params.name, in_users_names(checked), metadata)
        return checked

    write(counts_table(stage), counted.tables[COUNT_TABLE])
    with stop.at_once():
        derived = stage.derive(params, counted.tables)
    missing = (table for table in stage.tables if table.name not in derived)
    derived |= {table.name: empty_table(table, counted.tables[COUNT_TABLE], by) for table in missing}
    with naming_user_sql(engine, plan):
        derived = after_results(engine, params, plan.without(counted.omitted), derived)
    tables = {
        table.name: write(table, derived[table.name])
        for table in stage.tables_of(params)
        if table.name not in counted.omitted
    }
    destination.write(INPUTS, params.name, _inputs_table(params.name, counted), metadata)
    destination.write(BINDINGS, params.name, _bindings_table(opened), metadata)
    key_figures = metrics_table(stage.tables_of(params), tables)
    destination.write(METRICS, params.name, key_figures, metadata)
    said = (*counted.alarms, *plan.warnings, *counted.warnings, *stage.warnings(tables))
    warnings, notes = (
        tuple(dict.fromkeys(opened.variables.concealed(text) for text in said if isinstance(text, Note) is is_note))
        for is_note in (False, True)
    )
    seconds = time.monotonic() - started
    n_rows = sum(account.rows_in for account in counted.inputs)
    summary = stage.summarize(tables)
    result = StageResult(
        params.name,
        stage.kind,
        summary,
        warnings,
        seconds,
        n_rows,
        counted.omitted,
        unrequested=_with_unset_keys(counted.unrequested, params),
        key_figures=key_figures,
        notes=notes,
    )
    return result, counted


def _with_unset_keys(unrequested: Mapping[str, str], params: StageParameters) -> dict[str, str]:
    """Tables that nobody asked for, with the key that would; empty where the config sets that key to something else."""
    return {table: "" if key in params.model_fields_set else key for table, key in unrequested.items()}


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
            "files_left_out": account.files_left_out,
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
