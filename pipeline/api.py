"""The public face for Python: run a config, open its results."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline import runner
from pipeline.config import Config, load_config, parse_config
from pipeline.errors import ThresherError
from pipeline.runner import Run
from pipeline.storage.read import open_results

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Run", "ThresherError", "open_results", "run"]


def run(config: str | Path | Mapping[str, Any] | Config) -> Run:
    """Run a config and publish one run.

    Args:
        config: Path of a TOML file, the same as a dictionary (relative paths start at the current folder), or a
            checked config.

    Returns:
        The published run, or the existing one if nothing has changed.

    Raises:
        ThresherError: its leaf, and `code`, say what went wrong; published results are unchanged.
    """
    if isinstance(config, Config):
        return runner.run(config)
    if isinstance(config, str | Path):
        return runner.run(load_config(Path(config)))
    return runner.run(parse_config(config, base=Path.cwd()))
