"""The config file as a document: its own keys, and values that replace those of the file."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, field_validator

from ..engines.spark_session import SparkSettings
from ..errors import ConfigError
from ..stages import find_stage
from .announcing.settings import LineageSettings, PrometheusSettings

_SIZE = re.compile(r"\d+(\.\d+)?\s*(KB|MB|GB|TB|KiB|MiB|GiB|TiB)", re.IGNORECASE)


class ResourceLimits(BaseModel):
    """The table `[resources]`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    memory: str | None = None
    threads: int | None = None
    scratch: Path | None = None
    scratch_limit: str | None = None
    copies: Path | None = None
    copies_limit: str | None = None
    cache_limit: str | None = None

    @field_validator("memory", "scratch_limit", "cache_limit", "copies_limit")
    @classmethod
    def _size(cls, value: str | None) -> str | None:
        if value is not None and not _SIZE.fullmatch(value):
            message = f'{value!r} is not a size: write for example "4GB"'
            raise ValueError(message)
        return value

    @field_validator("threads")
    @classmethod
    def _positive(cls, value: int | None) -> int | None:
        if value is not None and value < 1:
            message = "threads must be at least 1"
            raise ValueError(message)
        return value


def _written(value: object) -> object:
    return os.fspath(value) if isinstance(value, Path) else value


class Document(BaseModel):
    """The config file, its stages and gates still unparsed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    output: Annotated[str, BeforeValidator(_written)] = "results"  # a Path would make s3:/x of s3://x
    engine: Literal["duckdb", "spark"] = "duckdb"
    spark: SparkSettings = SparkSettings()
    resources: ResourceLimits = ResourceLimits()
    on_error: Literal["stop", "publish_others"] = "stop"
    lineage: LineageSettings = LineageSettings()
    prometheus: PrometheusSettings = PrometheusSettings()
    cache: bool = True
    verify_inputs: Literal["none", "crc", "sha256"] = "none"
    labels: dict[str, str] = {}
    vars: dict[str, Any] = {}  # read by pipeline.runs.substitution; here so that it is a known key
    stages: list[dict[str, Any]] = []
    gates: list[dict[str, Any]] = []
    gates_json: Annotated[str, BeforeValidator(_written)] | None = None
    gates_junit: Annotated[str, BeforeValidator(_written)] | None = None


def overridden(document: Mapping[str, Any], values: Mapping[str, Any], *, origin: str = "<config>") -> dict[str, Any]:
    """Return a config as a dictionary with other values.

    Args:
        document: As parsed from TOML; it is left as it is.
        values: Values by dotted key.
        origin: Name in messages.

    Raises:
        ConfigError: a key names nothing that can be set.
    """
    try:
        changed: dict[str, Any] = _copied(document)
    except RecursionError as error:
        message = f"{origin}: the config is nested too deep"
        raise ConfigError(message) from error
    for key, value in values.items():
        override(changed, key, value, origin=origin)
    return changed


def _copied(value: Any) -> Any:  # noqa: ANN401 - any TOML value
    """A copy of tables and lists at any depth; what is in them is the same, as frames are not to be copied."""
    if isinstance(value, Mapping):
        return {key: _copied(inner) for key, inner in value.items()}
    return [_copied(inner) for inner in value] if isinstance(value, list) else value


def override(document: dict[str, Any], key: str, value: Any, *, origin: str) -> None:  # noqa: ANN401 - any TOML value
    """Set a dotted key; below `stages`, a stage is given by its name, its kind or its number from 1.

    If the config has one stage only, its keys need nothing in front.
    """
    path = _in_only_stage(document, key.split("."), origin)
    table: Any = document
    for index, name in enumerate(path[:-1]):
        if isinstance(table, list):
            table = _named_stage(table, name, origin)
        elif isinstance(table, dict):
            table = table.setdefault(name, {})
        else:
            message = f"{origin}: --set {key}: {'.'.join(path[:index])} is not a table"
            raise ConfigError(message)
    if not isinstance(table, dict):
        message = f"{origin}: --set {key}: it does not name a key"
        raise ConfigError(message, remedy="Write for example --set stages.before_after.boundary='\">\"'.")
    table[path[-1]] = value


def _in_only_stage(document: dict[str, Any], path: list[str], origin: str) -> list[str]:
    """Put the stage in front of a key that belongs to the only stage."""
    tables = document.get("stages")
    stages = [table for table in tables if isinstance(table, dict)] if isinstance(tables, list) else []
    names = [
        str(table.get("name", table.get("kind")))
        for table in stages
        if (entry := find_stage(str(table.get("kind")))) and path[0] in entry.load().parameters.keys()  # noqa: SIM118
    ]
    if path[0] in Document.model_fields or not names:
        return path
    if len(stages) == 1:
        return ["stages", "1", *path]
    key = ".".join(path)
    message = f"{origin}: --set {key}: which stage is meant?"
    raise ConfigError(message, remedy=f"Write --set stages.NAME.{key}=…, with NAME one of {', '.join(names)}.")


def _named_stage(stages: list[Any], name: str, origin: str) -> Any:  # noqa: ANN401 - a parsed table
    for number, stage in enumerate(stages, start=1):
        if isinstance(stage, dict) and name in {str(number), stage.get("name"), stage.get("kind")}:
            return stage
    message = f"{origin}: --set names the stage {name!r}, which is not there"
    raise ConfigError(message)
