"""The engine of a config, started for one stage, and what it need not read again."""

from __future__ import annotations

import hashlib
import json
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..engines.duckdb import DuckDB
from ..engines.engine import InputFile
from ..sources.parquet_files import DataFile
from ..sources.remote.reading import bytes_of
from ..sources.rows import is_passed_in
from ..storage.durable import own_sha256
from .provenance import RACY_SECONDS, code_sha256, versions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from ..engines.engine import Engine
    from ..engines.per_file_cache import Reuse
    from ..interrupts import StopRequest
    from ..storage.cache import AnswerCache
    from ..storage.layout import Layout
    from .config import Config
    from .opening import OpenedStage


# What a run need not read again: the answers of files that earlier runs have read, and what is said of it.


CACHE_LIMIT = "5GB"


def states_of(config: Config, layout: Layout, stages: Iterable[OpenedStage]) -> AnswerCache | None:
    """Return where a results folder keeps the answers of files.

    Returns:
        None if the config wants none, a link is there, or no stage reads an input of several files.
    """
    has_several = any(len(source.files) > 1 for stage in stages for source in stage.sources.values())
    if not config.cache or not has_several or layout.states.is_symlink():
        return None
    from ..storage.cache import AnswerCache  # noqa: PLC0415 - only where results are published

    return AnswerCache(layout.states, bytes_of(config.resources.cache_limit or CACHE_LIMIT))


def reusing(engine: DuckDB, opened: OpenedStage, states: AnswerCache | None) -> Engine:
    """Return an engine that asks files once, where a stage reads an input of several files; else the engine itself."""
    if states is None or opened.run is not None:
        return engine
    files = {str(file.path): _input_file(source, file) for source, file in _files(opened)}
    sources = [file.source for file in files.values()]
    if not any(sources.count(source) > 1 for source in set(sources)):
        return engine
    from ..engines.per_file_cache import Incremental  # noqa: PLC0415 - only inputs of several files need it

    return Incremental(engine, states, files, json.dumps([opened.name, code_sha256(), versions()]))


def _files(opened: OpenedStage) -> Iterator[tuple[str, DataFile]]:
    for source in opened.sources.values():
        for file in source.files:
            if isinstance(file, DataFile):
                yield source.name, file


def _input_file(source: str, file: DataFile) -> InputFile:
    """Describe a file to the engine."""
    facts = _identity(file)
    identity = None if facts is None else hashlib.sha256(json.dumps(facts).encode()).hexdigest()
    return InputFile(source, file.rows, identity)


def _identity(file: DataFile) -> list[Any] | None:
    """Return what identifies a file in later runs: one of the user's, a version of an object or table, a conversion.

    None: nothing does. A file of the user's that has changed just now may change again unnoticed, and rows that were
    passed in have no name that a later run could know.
    """
    if file.holder is None:
        racy = time.time() - file.identity.get("ctime_ns", 0) / 1e9 < RACY_SECONDS
        return None if racy else [str(file.path), file.identity, file.footer_sha256]
    if is_passed_in(file):
        return None
    return [file.name, [file.identity, file.digest] if file.is_versioned else own_sha256(file.path)]


def reuse_record(engine: Engine, opened: OpenedStage, states: AnswerCache | None) -> dict[str, Any]:
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


def reuse_in_words(record: dict[str, Any]) -> Iterator[str]:
    """Say how many files were not read again, or why all files of an input were read."""
    for source, facts in record.items():
        n_kept = facts["files"] - facts["files_read"]
        if n_kept:
            yield f"{source}: {n_kept:,} of {facts['files']:,} files as counted before, {facts['files_read']:,} read"
        elif facts["read_whole_because"]:
            yield f"{source}: all {facts['files']:,} files read, since {facts['read_whole_because']}"


# The engine of a config, started for one stage.


@contextmanager
def started(
    config: Config,
    opened: OpenedStage,
    stop: StopRequest,
    progress: Callable[[float], None] | None = None,
    states: AnswerCache | None = None,
) -> Iterator[Engine]:
    """Start the engine of a config for a stage, and end it afterwards.

    Args:
        config: The config.
        opened: The stage, opened.
        stop: Whether a signal asked to stop.
        progress: Called with the percentage done while a query runs, if the engine can tell; None if nobody watches.
        states: Where the answers of files are kept, if the engine can use them; None: all files are read.
    """
    opened.fetch()
    resources = config.resources.of_engine
    if config.engine == "spark":
        from ..engines.spark import Spark  # noqa: PLC0415 - an optional extra

        with Spark(config.spark, resources, stop, opened.engine_rows) as spark:
            yield spark
        return
    with DuckDB(resources, opened.folders, stop, progress) as duckdb:
        yield reusing(duckdb, opened, states)
