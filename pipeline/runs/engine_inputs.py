"""Inputs that the engine of a config reads itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..engines.duckdb import Resources
from ..errors import ConfigError
from ..sources.engine_rows import EngineRows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..sources.engine_rows import Looks
    from ..sources.source import Source
    from .config import Config


def looks_of(config: Config) -> Looks | None:
    """Return how the engine looks at tables and addresses; None for an engine that reads files here alone.

    Spark is started when it is first asked.
    """
    if config.engine != "spark":
        return None
    from ..engines.spark_places import looks  # noqa: PLC0415 - an optional extra

    return looks(
        config.spark, Resources(**config.resources.model_dump(exclude={"cache_limit", "copies", "copies_limit"}))
    )


def check_verifiable(config: Config, sources: Mapping[str, Source]) -> None:
    """Check that inputs which the engine reads are not to be verified here, where their files cannot be reached.

    Raises:
        ConfigError: they are.
    """
    if config.verify_inputs == "none":
        return
    for source in sources.values():
        for rows in source.files:
            if isinstance(rows, EngineRows):
                message = (
                    f'{config.origin}: verify_inputs = "{config.verify_inputs}" cannot verify {rows.name} '
                    f"(input {source.name}), which {config.engine} reads"
                )
                raise ConfigError(message, remedy='Set verify_inputs = "none", or read the files here, by their paths.')
