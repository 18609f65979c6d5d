"""The public face for Python: run a config, open its results."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.errors import ThresherError
from pipeline.functions.result import Result
from pipeline.runs import runner
from pipeline.runs.config import Config, load_config, parse_config
from pipeline.runs.runner import Run
from pipeline.sources.paths import local_path
from pipeline.storage import read

if TYPE_CHECKING:
    from collections.abc import Mapping

    import duckdb

__all__ = ["Result", "Run", "ThresherError", "open_results", "run"]


def run(config: str | Path | Mapping[str, Any] | Config) -> Run:
    """Run a config and publish one run.

    Args:
        config: Path of a TOML file, a dictionary with the same content (relative paths start at the current folder),
            or a checked config.

    Returns:
        The published run, or the existing one if nothing has changed.

    Raises:
        ThresherError: its class and its `code` say what went wrong; published results are unchanged.
    """
    if isinstance(config, Config):
        return runner.run(config)
    if isinstance(config, str | Path):
        return runner.run(load_config(Path(config)))
    return runner.run(parse_config(config, base=Path.cwd()))


def open_results(results: str | Path) -> duckdb.DuckDBPyConnection:
    """Open a read-only connection with one view per result table of the latest run, and all runs in schema `history`.

    The connection keeps showing the run that was the latest when it was opened; call again to see a later one. It works
    on a results folder that has been moved, and can read the results and nothing else. Earlier runs that were deleted
    or are damaged are missing from `history`.

    Args:
        results: The output folder of a run.

    Raises:
        ConfigError: the text does not name a folder on this machine.
        NoInputError: no run was published there.
        DataError: a file of the latest run is lost or damaged.
    """
    return read.open_results(local_path(results, Path.cwd(), what="results"))
