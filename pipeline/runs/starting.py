"""The engine of a config, started for one stage."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from pipeline.engines.duckdb import DuckDB, Resources
from pipeline.runs.reuse import reusing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pipeline.engines.engine import Engine
    from pipeline.interrupts import StopRequest
    from pipeline.runs.config import Config
    from pipeline.runs.opening import OpenedStage
    from pipeline.storage.states import States


@contextmanager
def started(
    config: Config,
    opened: OpenedStage,
    stop: StopRequest,
    progress: Callable[[float], None] | None = None,
    states: States | None = None,
) -> Iterator[Engine]:
    """Start the engine of a config for a stage, and end it afterwards.

    Args:
        config: The config.
        opened: The stage, opened.
        stop: Whether a signal asked to stop.
        progress: Called with the percentage done while a query runs, if the engine can tell; None if nobody watches.
        states: Where the answers of files are kept, if the engine can use them; None: all files are read.
    """
    resources = Resources(**config.resources.model_dump(exclude={"cache_limit", "copies", "copies_limit"}))
    if config.engine == "spark":
        from pipeline.engines.spark import Spark  # noqa: PLC0415 - an optional extra

        with Spark(config.spark, resources, stop, opened.engine_rows) as spark:
            yield spark
        return
    with DuckDB(resources, opened.folders, stop, progress) as duckdb:
        yield reusing(duckdb, opened, states)
