"""A stage made ready: its inputs found, their footers read, its plan made; nothing else is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.sources.source import open_source

if TYPE_CHECKING:
    from pipeline.config import Config, ConfiguredStage
    from pipeline.sources.source import Source
    from pipeline.stages.plan import Plan


@dataclass(frozen=True)
class OpenedStage:
    """A stage with its inputs found and its plan made.

    Attributes:
        configured: Stage and parameters.
        sources: Its inputs by name.
        plan: What it will ask of an engine.
    """

    configured: ConfiguredStage
    sources: dict[str, Source]
    plan: Plan

    @property
    def name(self) -> str:
        """Name of the stage."""
        return self.configured.params.name


def open_inputs(config: Config, configured: ConfiguredStage) -> OpenedStage:
    """Find the files of a stage, read their footers and make its plan; nothing else is read.

    Raises:
        NoInputError: no file matches.
        DataError: the footers show that an input breaks its contract.
        ConfigError: the config does not fit the inputs.
    """
    sources = {}
    for contract in configured.stage.inputs:
        spec = getattr(configured.params, contract.name)
        if spec is not None:
            sources[contract.name] = open_source(contract, spec, config.base)
    return OpenedStage(configured, sources, configured.stage.plan(configured.params, sources))
