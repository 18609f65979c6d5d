"""Stages whose tables another results folder holds, here or on a store, as the input of a stage."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from ..errors import ConfigError, DataError, NoInputError
from ..safe_files import read_file
from ..sources.parquet_files import DataFile
from ..stages.upstream import UpstreamStage
from ..storage.durable import own_sha256
from ..storage.layout import RUN_RECORD, Layout
from ..storage.state import require_latest

if TYPE_CHECKING:
    from pathlib import Path

    from ..sources.rows import Rows
    from ..sources.source import Source
    from ..stages.upstream import UpstreamParameters
    from .config import Config


def published(config: Config, params: UpstreamParameters) -> list[UpstreamStage]:
    """Return the upstream stages as the latest run of a results folder has them.

    Raises:
        ConfigError: it is the folder that this run is published to.
        NoInputError: no run was published there, or its latest run lacks a stage.
        DataError: that run is damaged.
    """
    upstream_place = config.at(config.variables.expanded(params.results), what=f"results of stage {params.name!r}")
    if upstream_place.results == config.results:
        message = f"{config.origin}: results of stage {params.name!r} is the output folder of this run itself"
        raise ConfigError(message, remedy="Put both stages into one config and leave results out, or change output.")
    if upstream_place.store is None:
        return _of_latest(upstream_place.output, params)
    with upstream_place.store.naming():
        return _of_latest(upstream_place.store.read_mirror(), params)


def _of_latest(root: Path, params: UpstreamParameters) -> list[UpstreamStage]:
    _, latest, _ = require_latest(Layout(root))
    path = latest.folder / RUN_RECORD
    try:
        record = json.loads(read_file(path))
        stages = record["configuration"]["stages"]
        by = {each["name"]: tuple(tuple(names) for names in each["by"]) for each in stages}
        kinds = {each["name"]: each["kind"] for each in stages}
        measures = {each["name"]: tuple(each.get("measures", ())) for each in stages}
        clusters = {each["name"]: (_one(each.get("cluster")), each.get("cluster_order")) for each in stages}
        omitted = record.get("omitted", {})  # runs of earlier versions have every table
    except (OSError, ValueError, KeyError, TypeError) as error:
        message = f"{path} is not the record of a run ({error})"
        raise DataError(message, remedy=f"thresher verify {root} lists what is damaged.") from error
    for name in params.of:
        if name not in kinds:
            message = f"the latest run in {root} has no stage {name!r}"
            raise NoInputError(message, remedy=f"Its stages are: {', '.join(kinds)}.")
    return [
        UpstreamStage(
            *(name, kinds[name], by[name], path.parent, omitted.get(name, {}), measures[name]), *clusters[name]
        )
        for name in params.of
    ]


def _one(cluster: object) -> str | None:
    return cluster if isinstance(cluster, str) else None


def named_by_address(source: Source) -> Source:
    """Let the files of results on a store be called by their addresses, and be identified by their content alone."""
    return replace(source, files=tuple(map(_named, source.files)))


def _named(file: Rows) -> Rows:
    if not isinstance(file, DataFile):
        return file
    run = file.path.parent.parent
    address = Layout(run.parent.parent).address
    if not address:
        return file
    sha256 = own_sha256(file.path)
    identity = {"size": file.identity["size"], "etag": sha256, "sha256": sha256}  # as of a copied object
    return replace(
        file, label=f"{address}/{run.parent.name}/{file.path.relative_to(run.parent).as_posix()}", identity=identity
    )
