"""One stage is run: counted by the engine, derived from its counts, checked, handed to whatever takes its tables."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections import Counter
from contextlib import contextmanager, suppress
from dataclasses import replace
from importlib import import_module
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeAlias

import polars as pl

from ..base.errors import Note, ResourceError
from ..base.interrupts import StopRequest, stop_requests
from ..base.records import dataclass
from ..base.run_tables import BINDINGS, INPUTS, METRICS, metrics_table
from ..base.schemas import COUNT_TABLE, conform, empty_table, in_users_names
from ..engines.duckdb import DuckDB
from ..engines.engine import InputFile, Resources, bytes_of
from ..engines.expression_types import DuckDBWithoutRows
from ..engines.spark_session import SETTINGS_OF_SESSIONS
from ..plan.accounting import after_results, begin, count
from ..plan.plan import naming_user_sql, render_stage, schemas_of_transforms
from ..sources.inputs import is_passed_in
from ..sources.parquet_files import DataFile
from ..stages.stage import counts_table
from ..storage.layout import own_sha256
from .opening import open_inputs
from .stage_results import RACY_SECONDS, StageResult, Watcher, code_sha256, settings, versions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ..base.schemas import Table
    from ..engines.engine import Engine
    from ..engines.per_file_cache import Reuse
    from ..plan.accounting import Counted, InputAccount
    from ..storage.layout import Layout
    from ..storage.state import AnswerCache
    from .config import Config
    from .opening import OpenedStage


_used_by: list[int] = []


def refuse_after_fork() -> None:
    """Note that this process uses the libraries; refuse if its parent used them before the fork, as a child hangs.

    Raises:
        ResourceError: the parent used them before the fork.
    """
    process = os.getpid()
    if _used_by and _used_by[0] != process:
        message = (
            f"process {process} was forked from process {_used_by[0]} after thresher had run there: the threads of "
            "Polars and DuckDB do not exist in a forked child, which would wait for them forever"
        )
        remedy = 'Start workers by multiprocessing.get_context("spawn") or "forkserver", or fork before the first run.'
        raise ResourceError(message, remedy=remedy)
    _used_by[:] = [process]


NEEDED_FOR_INTERVALS = ("scipy.special",)


@contextmanager
def importing_meanwhile(names: Sequence[str]) -> Iterator[None]:
    """Import modules in another thread while the engine counts, which leaves Python and often a core free.

    An import that fails here fails again where the module is used, and is told there.
    """
    absent = [name for name in names if name not in sys.modules]
    if not absent:
        yield
        return

    def work() -> None:
        for name in absent:
            with suppress(Exception):
                import_module(name)

    thread = Thread(target=work, name="thresher-imports", daemon=True)
    thread.start()
    try:
        yield
    finally:
        thread.join()


# One stage is run: count, save counts, derive, check. Counts and metrics meet only here; what becomes of the tables is
# up to what they are handed to.


TableWritten: TypeAlias = "tuple[Table, str, pl.DataFrame, dict[str, str]]"
Write: TypeAlias = "Callable[[Table, str, pl.DataFrame, dict[str, str]], None]"  # as `Staging.write`


@dataclass(frozen=True)
class Evaluation:
    """A stage that has been run, published or not.

    Attributes:
        account: Rows of every input by status, and `rows_in`, by input.
        reused: How many files of every input of several were read, by input.
        tables: Its tables with what their files keep, in the order in which they came; none where they were written.
    """

    opened: OpenedStage
    result: StageResult
    account: dict[str, Any]
    reused: dict[str, Any]
    tables: tuple[TableWritten, ...] = ()


def evaluate_in_memory(config: Config) -> Evaluation:
    """Run the only stage of a config and keep its tables in memory.

    Raises:
        ThresherError: as for `runner.run`, up to the moment when it would publish.
    """
    refuse_after_fork()
    tables: list[TableWritten] = []
    (stage,) = config.stages
    with stop_requests() as stop:
        config.check_engine()
        opened = open_inputs(config, stage)
        evaluation = evaluate_stage(config, opened, lambda *table: tables.append(table), Watcher(), stop)
    return replace(evaluation, tables=tuple(tables))


def evaluate_stage(
    config: Config,
    opened: OpenedStage,
    write: Write,
    watcher: Watcher,
    stop: StopRequest,
    states: AnswerCache | None = None,
) -> Evaluation:
    """Run one stage: `write` takes its tables, and `states` keep the answers of files; None: all files are read."""
    with config.variables.concealing():
        watcher.on_opened(opened)
        with started(config, opened, stop, watcher.on_progress, states) as engine:
            result, accounts = _run_stage(engine, opened, write, stop)
            reused = _reuse_record(engine, opened, states)
        result = replace(result, reused=tuple(_reuse_in_words(reused)))
        watcher.on_result(result)
        stop.check()
    account = {each.name: each.rows_by_status | {"rows_in": each.rows_in} for each in accounts}
    return Evaluation(opened, result, account, reused)


def count_and_derive(engine: Engine, opened: OpenedStage, stop: StopRequest) -> tuple[Counted, dict[str, pl.DataFrame]]:
    """Count a stage and derive its result tables; of those that it makes, the ones without a row are there, too.

    Raises:
        DataError: the data break the contract of an input, or do not fit the parameters.
    """
    stage, params, plan = opened.configured.stage, opened.configured.params, opened.plan
    needed_later = NEEDED_FOR_INTERVALS if params.is_replicated else ()
    with naming_user_sql(engine, plan), importing_meanwhile(needed_later):
        counted = count(engine, params, plan)
    with stop.at_once():
        derived = stage.derive(params, counted.tables)
    by = [each.name for each in plan.by]
    missing = (table for table in stage.tables if table.name not in derived)
    derived |= {table.name: empty_table(table, counted.tables[COUNT_TABLE], by) for table in missing}
    with naming_user_sql(engine, plan):
        tables = after_results(engine, params, plan.without(counted.omitted), derived)
    return counted, {name: table for name, table in tables.items() if name not in counted.omitted}


def _run_stage(
    engine: Engine, opened: OpenedStage, write: Write, stop: StopRequest
) -> tuple[StageResult, Sequence[InputAccount]]:
    """Return the result of a stage, and what became of the rows of its inputs."""
    started = time.monotonic()
    stage, params, plan = opened.configured.stage, opened.configured.params, opened.plan
    counted, derived = count_and_derive(engine, opened, stop)
    metadata = {"thresher": json.dumps(settings(opened), sort_keys=True)}
    by = [each.name for each in plan.by]

    def checked(table: Table, frame: pl.DataFrame) -> pl.DataFrame:
        conforming = conform(frame, table, stage=params.name, by=by)
        write(table, params.name, in_users_names(conforming), metadata)
        return conforming

    checked(counts_table(stage), counted.tables[COUNT_TABLE])
    asked_for = stage.tables_of(params)
    tables = {table.name: checked(table, derived[table.name]) for table in asked_for if table.name in derived}
    key_figures = metrics_table(asked_for, tables)
    write(INPUTS, params.name, _inputs_table(params.name, counted.inputs), metadata)
    names = ("stage", "input", "field", "source", "file_column", "sql")
    bindings = [(opened.name, each.input, each.field, each.origin, each.column, each.sql) for each in opened.bindings]
    write(BINDINGS, params.name, pl.DataFrame(bindings, dict.fromkeys(names, pl.String()), orient="row"), metadata)
    write(METRICS, params.name, key_figures, metadata)
    said = (*counted.alarms, *plan.warnings, *counted.warnings, *stage.warnings(tables))
    warnings, notes = (
        tuple(dict.fromkeys(opened.variables.concealed(text) for text in said if isinstance(text, Note) is is_note))
        for is_note in (False, True)
    )
    result = StageResult(
        params.name,
        stage.kind,
        stage.summarize(tables),
        warnings,
        time.monotonic() - started,
        sum(account.rows_in for account in counted.inputs),
        counted.omitted,
        unrequested={name: "" if key in params.model_fields_set else key for name, key in counted.unrequested.items()},
        key_figures=key_figures,
        notes=notes,
    )
    return result, counted.inputs


def _inputs_table(stage: str, accounts: Sequence[InputAccount]) -> pl.DataFrame:
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
        for account in accounts
        for status, n_rows in sorted(account.rows_by_status.items())
    ]
    return pl.DataFrame(rows)


# What a run need not read again: the answers of files that earlier runs have read, and what is said of it.


CACHE_LIMIT = "5GB"


def states_of(config: Config, layout: Layout, stages: Iterable[OpenedStage]) -> AnswerCache | None:
    """Return where a results folder keeps the answers of files.

    None: the config wants none, a link is there, or no stage reads an input of several files.
    """
    has_several = any(len(source.files) > 1 for stage in stages for source in stage.sources.values())
    if not config.cache or not has_several or layout.states.is_symlink():
        return None
    from ..storage.state import AnswerCache  # noqa: PLC0415 - only where results are published

    return AnswerCache(layout.states, bytes_of(config.resources.cache_limit or CACHE_LIMIT))


def _reusing(engine: DuckDB, opened: OpenedStage, states: AnswerCache | None) -> Engine:
    """Return an engine that asks files once, where a stage reads an input of several files; else the engine itself."""
    if states is None or opened.run is not None:
        return engine
    files = {
        str(file.path): InputFile(source.name, file.rows, _identity(file))
        for source in opened.sources.values()
        for file in source.files
        if isinstance(file, DataFile)
    }
    if max(Counter(file.source for file in files.values()).values(), default=0) <= 1:
        return engine
    from ..engines.per_file_cache import Incremental  # noqa: PLC0415 - only inputs of several files need it

    return Incremental(engine, states, files, json.dumps([opened.name, code_sha256(), versions()]))


def _identity(file: DataFile) -> str | None:
    """Return what identifies a file in later runs: one of the user's, a version of an object or table, a conversion.

    None: nothing does. A file of the user's that has changed just now may change again unnoticed, and rows that were
    passed in have no name that a later run could know.
    """
    facts: list[Any] = [str(file.path), file.identity, file.footer_sha256]
    if file.holder is not None:
        if is_passed_in(file):
            return None
        facts = [file.name, [file.identity, file.digest] if file.is_versioned else own_sha256(file.path)]
    elif time.time() - file.identity.get("ctime_ns", 0) / 1e9 < RACY_SECONDS:
        return None
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def _reuse_record(engine: Engine, opened: OpenedStage, states: AnswerCache | None) -> dict[str, Any]:
    """Return by input how many files there are, how many were read, and why all of them were."""
    if engine.has_workers and states is not None:
        numbers = {name: len(source.files) for name, source in opened.sources.items() if len(source.files) > 1}
        why = "Spark keeps no answers of single files"
        return {name: {"files": n, "files_read": n, "read_whole_because": why} for name, n in numbers.items()}
    reuse: Reuse | None = getattr(engine, "reuse", None)
    if reuse is None:
        return {}
    return {
        source: {
            "files": n_files,
            "files_read": len(reuse.read.get(source, ())),
            "read_whole_because": reuse.reasons.get(source),
        }
        for source, n_files in sorted(reuse.files.items())
    }


def _reuse_in_words(record: dict[str, Any]) -> Iterator[str]:
    """Say how many files were not read again, or why all files of an input were read."""
    for source, facts in record.items():
        n_kept = facts["files"] - facts["files_read"]
        if n_kept:
            yield f"{source}: {n_kept:,} of {facts['files']:,} files as counted before, {facts['files_read']:,} read"
        elif facts["read_whole_because"]:
            yield f"{source}: all {facts['files']:,} files read, since {facts['read_whole_because']}"


@contextmanager
def started(
    config: Config,
    opened: OpenedStage,
    stop: StopRequest,
    progress: Callable[[float], None] | None = None,
    states: AnswerCache | None = None,
) -> Iterator[Engine]:
    """Start the engine of a config for a stage, and end it afterwards.

    `progress` is called with the percentage done while a query runs, if the engine can tell; `states` keep the answers
    of files, if it can use them; None: all files are read.
    """
    opened.fetch()
    resources = config.resources.of_engine
    if config.engine == "spark":
        from ..engines.spark import Spark  # noqa: PLC0415 - an optional extra

        with Spark(config.spark, resources, stop, opened.engine_rows) as spark:
            yield spark
        return
    rows = sum(source.rows for source in opened.sources.values())
    with DuckDB(resources, opened.folders, stop, progress, rows) as duckdb:
        yield _reusing(duckdb, opened, states)


def session_settings(dialect: str) -> str:
    """Return the settings that the SQL of a dialect relies on, as SQL; nothing where there are none."""
    settings = SETTINGS_OF_SESSIONS if dialect == "spark" else {}
    lines = [f"SET {name} = {value};" for name, value in settings.items()]
    return "\n".join(["-- settings of the session", *lines, ""]) if lines else ""


def render_opened(opened: OpenedStage, *, dialect: str) -> str:
    """Return the SQL of a stage in a dialect, which runs as it is, but for values of the environment."""
    with DuckDBWithoutRows(Resources(), opened.folders, StopRequest()) as engine:
        progress = begin(opened.configured.params, opened.plan)
        schemas = schemas_of_transforms(engine, opened.plan, progress)
    return opened.variables.concealed(render_stage(opened.name, opened.plan, schemas, dialect=dialect))
