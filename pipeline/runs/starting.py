"""The engine of a config, started for one stage."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..engines.duckdb import DuckDB, Resources
from .reuse import reusing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..engines.engine import Engine
    from ..interrupts import StopRequest
    from ..storage.states import States
    from .config import Config
    from .opening import OpenedStage


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
        from ..engines.spark import Spark  # noqa: PLC0415 - an optional extra

        with Spark(config.spark, resources, stop, opened.engine_rows) as spark:
            yield spark
        return
    with DuckDB(resources, opened.folders, stop, progress) as duckdb:
        yield reusing(duckdb, opened, states)
