"""One stage is run: counted by the engine, derived from its counts, checked, handed to whatever takes its tables."""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import contextmanager, suppress
from dataclasses import replace
from importlib import import_module
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeAlias

import polars as pl

from ..errors import Note, ResourceError
from ..interrupts import stop_requests
from ..plan.checks import naming_user_sql
from ..plan.count_tables import after_results, count
from ..records import dataclass
from ..stages.stage import counts_table
from ..tables.groupings import in_users_names
from ..tables.run_tables import BINDINGS, INPUTS, METRICS, metrics_table
from ..tables.schemas import COUNT_TABLE, conform, empty_table
from .opening import open_inputs
from .provenance import settings
from .reuse import reuse_in_words, reuse_record, started
from .stage_results import StageResult, Watcher

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ..engines.engine import Engine
    from ..interrupts import StopRequest
    from ..plan.accounting import InputAccount
    from ..plan.count_tables import Counted
    from ..storage.cache import AnswerCache
    from ..tables.schemas import Table
    from .config import Config
    from .opening import OpenedStage


# Threads of Polars and DuckDB do not survive a fork, so a child of a process that used them hangs.


# One stage is run: counted by the engine, derived from its counts, and handed to whatever takes its tables.


_used_by: list[int] = []


def refuse_after_fork() -> None:
    """Note that this process uses the libraries; refuse if its parent used them before the fork.

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
        opened: The stage with its inputs.
        result: Its result.
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
    """Run one stage.

    Args:
        config: The config.
        opened: The stage, its inputs found and its plan made.
        write: Takes its tables.
        watcher: Follows the progress.
        stop: Whether a signal asked to stop.
        states: Where the answers of files are kept; None: all files are read.
    """
    with config.variables.concealing():
        watcher.on_opened(opened)
        with started(config, opened, stop, watcher.on_progress, states) as engine:
            result, accounts = _run_stage(engine, opened, write, stop)
            reused = reuse_record(engine, opened, states)
        result = replace(result, reused=tuple(reuse_in_words(reused)))
        watcher.on_result(result)
        stop.check()
    account = {each.name: each.rows_by_status | {"rows_in": each.rows_in} for each in accounts}
    return Evaluation(opened, result, account, reused)


def count_and_derive(engine: Engine, opened: OpenedStage, stop: StopRequest) -> tuple[Counted, dict[str, pl.DataFrame]]:
    """Count a stage and derive its result tables; of those that it makes, the ones without a row are there, too.

    Args:
        engine: The engine, started for the stage.
        opened: The stage, its inputs found.
        stop: Checked while a query runs.

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
    write(BINDINGS, params.name, _bindings_table(opened), metadata)
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


def _bindings_table(opened: OpenedStage) -> pl.DataFrame:
    """Return the table `bindings`: which column of the files is read as which field, and why."""
    names = ("stage", "input", "field", "source", "file_column", "sql")
    rows = [(opened.name, each.input, each.field, each.origin, each.column, each.sql) for each in opened.bindings]
    return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String()), orient="row")
