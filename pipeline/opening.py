"""A stage made ready: its inputs found, their footers read, its plan made; nothing else is read."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.errors import ConfigError, DataError, NoInputError
from pipeline.paths import local_path
from pipeline.sources.skipped import RENAME, skipped_words
from pipeline.sources.source import open_source, with_others
from pipeline.stages.following import FollowingParameters, Leader
from pipeline.storage.layout import RUN_RECORD, Layout
from pipeline.storage.publish import published_runs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

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
        run: Folder of the unfinished run in which its inputs were made; None: they were there before.
    """

    configured: ConfiguredStage
    sources: dict[str, Source]
    plan: Plan
    run: Path | None = None

    @property
    def name(self) -> str:
        """Name of the stage."""
        return self.configured.params.name


def open_inputs(config: Config, configured: ConfiguredStage, *, run: Path | None = None) -> OpenedStage:
    """Find the files of a stage, read their footers and make its plan; nothing else is read.

    Args:
        config: The whole config.
        configured: One of its stages.
        run: Folder of the unfinished run, for a stage that follows others of the config.

    Raises:
        NoInputError: no file matches.
        DataError: the footers show that an input breaks its contract.
        ConfigError: the config does not fit the inputs.
    """
    params = configured.params
    if isinstance(params, FollowingParameters) and params.of:
        leaders = _published(config, params) if params.results else _written(config, params, run or Path())
        configured = configured.after(leaders, origin=config.origin)
    sources = {}
    for contract in configured.stage.inputs:
        spec = getattr(configured.params, contract.name)
        if spec is not None:
            sources[contract.name] = open_source(contract, spec, config.base)
    sources = with_others(sources)
    plan = configured.stage.plan(configured.params, sources)
    plan = replace(plan, warnings=(*_skipped_warnings(sources), *plan.warnings))
    return OpenedStage(configured, sources, plan, run)


def _skipped_warnings(sources: Mapping[str, Source]) -> Iterator[str]:
    for source in sources.values():
        if source.skipped:
            remedy = f". {RENAME}" if any(each.is_parquet for each in source.skipped) else ""
            yield f"input {source.name}: {skipped_words(source.skipped)}{remedy}"


def _written(config: Config, params: FollowingParameters, run: Path) -> list[Leader]:
    """The stages of the same config that have run."""
    known = {each.params.name: each for each in config.stages}
    return [known[name].leader(run) for name in params.of]


def _published(config: Config, params: FollowingParameters) -> list[Leader]:
    """The stages as the latest run of a results folder has them.

    Raises:
        ConfigError: it is the folder that this run is published to.
        NoInputError: no run was published there, or its latest run lacks a stage.
        DataError: the record of that run cannot be read.
    """
    root = local_path(params.results, config.base, what=f"results of stage {params.name!r}").resolve()
    if root == config.output:
        message = f"{config.origin}: results of stage {params.name!r} is the output folder of this run itself"
        raise ConfigError(message, remedy="Put both stages into one config and leave results out, or change output.")
    runs = published_runs(Layout(root))
    if not runs:
        message = f"{root} holds no published run"
        raise NoInputError(message, remedy="Give the output folder of a run, or run the job first.")
    path = runs[-1][0] / RUN_RECORD
    try:
        stages = json.loads(path.read_bytes())["configuration"]["stages"]
        by = {each["name"]: tuple(tuple(names) for names in each["by"]) for each in stages}
        kinds = {each["name"]: each["kind"] for each in stages}
    except (OSError, ValueError, KeyError, TypeError) as error:
        message = f"{path} is no record of a run ({error})"
        raise DataError(message, remedy=f"thresher verify {root} lists what is damaged.") from error
    for name in params.of:
        if name not in kinds:
            message = f"the latest run in {root} has no stage {name!r}"
            raise NoInputError(message, remedy=f"Its stages are: {', '.join(kinds)}.")
    return [Leader(name, kinds[name], by[name], path.parent) for name in params.of]
