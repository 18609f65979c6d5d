"""TOML → frozen typed values; errors name the file, the key and the remedy."""

from __future__ import annotations

import os
import re
import tomllib
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError, field_validator

from pipeline.errors import ConfigError, NoInputError, os_fault
from pipeline.paths import abridged, check_texts, local_path, shortened
from pipeline.schemas import is_reserved_within, reserved_names
from pipeline.stages import STAGES, find_stage
from pipeline.stages.following import FollowingParameters, Leader

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pipeline.stages.parameters import StageParameters
    from pipeline.stages.stage import Stage

Model = TypeVar("Model", bound=BaseModel)
_KEY = re.compile(r"[A-Za-z0-9_.-]+")
_SIZE = re.compile(r"\d+(\.\d+)?\s*(KB|MB|GB|TB|KiB|MiB|GiB|TiB)", re.IGNORECASE)


class ResourceLimits(BaseModel):
    """The table `[resources]`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    memory: str | None = None
    threads: int | None = None
    scratch: Path | None = None
    scratch_limit: str | None = None

    @field_validator("memory", "scratch_limit")
    @classmethod
    def _size(cls, value: str | None) -> str | None:
        if value is not None and not _SIZE.fullmatch(value):
            message = f'{value!r} is no size: write for example "4GB"'
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


class _Document(BaseModel):
    """The whole file, its stages still unparsed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    output: Annotated[str, BeforeValidator(_written)] = "results"  # a Path would make s3:/x of s3://x
    engine: Literal["duckdb", "spark"] = "duckdb"
    resources: ResourceLimits = ResourceLimits()
    stages: list[dict[str, Any]] = []


@dataclass(frozen=True)
class ConfiguredStage:
    """A stage and its parameters.

    Attributes:
        stage: The task.
        params: Its parameters, of the stage's own class.
    """

    stage: Stage
    params: StageParameters

    @property
    def follows(self) -> tuple[str, ...]:
        """Names of the stages of the same config whose tables it reads."""
        return self.params.follows if isinstance(self.params, FollowingParameters) else ()

    def leader(self, folder: Path) -> Leader:
        """The stage as one that others follow, with the folder of its run."""
        return Leader(self.params.name, self.stage.kind, self.params.by, folder)

    def after(self, leaders: Sequence[Leader], *, origin: str) -> ConfiguredStage:
        """The same stage with the tables of its leaders as its input.

        Raises:
            ConfigError: they have no such tables.
        """
        if not isinstance(self.params, FollowingParameters):
            return self
        try:
            return ConfiguredStage(self.stage, self.params.following(leaders))
        except ValueError as error:
            message = f"{origin}: stage {self.params.name!r}: {error}"
            raise ConfigError(message) from error


@dataclass(frozen=True)
class Config:
    """A checked configuration.

    Attributes:
        origin: Name in messages: the file, or `<config>`.
        base: Folder that relative paths start from.
        output: The results folder, absolute.
        engine: Name of the engine.
        resources: Limits.
        stages: The stages in order.
    """

    origin: str
    base: Path
    output: Path
    engine: str
    resources: ResourceLimits
    stages: tuple[ConfiguredStage, ...]

    def only(self, names: Iterable[str]) -> Config:
        """The same config with some of its stages.

        Raises:
            ConfigError: a name is not among them.
        """
        chosen = tuple(names)
        known = [each.params.name for each in self.stages]
        for name in chosen:
            if name not in known:
                message = f"{self.origin}: no stage is called {name!r}{_near(name, known)}"
                raise ConfigError(message, remedy=f"Its stages are: {', '.join(known)}.")
        stages = tuple(each for each in self.stages if not chosen or each.params.name in chosen)
        for each in stages:
            for name in each.follows:
                if chosen and name not in chosen:
                    message = f"{self.origin}: stage {each.params.name!r} follows {name!r}, which is left out"
                    raise ConfigError(message, remedy=f"Add --only {name}.")
        return Config(self.origin, self.base, self.output, self.engine, self.resources, stages)


def load_config(path: Path, *, overrides: Mapping[str, Any] | None = None) -> Config:
    """Read and check a config file.

    Args:
        path: The file.
        overrides: Dotted key → value, put over what the file says.

    Raises:
        NoInputError: the file does not exist.
        ConfigError: it is not TOML, or its keys or values are wrong.
    """
    path = local_path(path, Path.cwd(), what="the config file")
    try:
        document = tomllib.loads(path.read_bytes().decode("utf-8-sig"))  # Windows editors put a mark in front
    except FileNotFoundError as error:
        message = f"config file {path} does not exist"
        raise NoInputError(message, remedy="thresher init writes a starter config.") from error
    except OSError as error:
        raise os_fault(error, f"reading the config file {path}") from error
    except (ValueError, RecursionError) as error:
        message = f"{path} cannot be read as TOML: {_reason(error)}"
        raise ConfigError(message) from error
    for key, value in (overrides or {}).items():
        _override(document, key, value, origin=str(path))
    return parse_config(document, base=path.resolve().parent, origin=str(path))


def parse_config(document: Mapping[str, Any], *, base: Path, origin: str = "<config>") -> Config:
    """Check a config given as a dictionary.

    Args:
        document: As parsed from TOML.
        base: Folder that relative paths start from.
        origin: Name in messages.

    Raises:
        ConfigError: names the key, what is wrong and, for an unknown key, the nearest known one.
    """
    whole = _validated(_Document, dict(document), where=origin)
    if not whole.stages:
        message = f"{origin}: no stage is given"
        raise ConfigError(message, remedy="Add a table [[stages]]; thresher init writes one.")
    stages = tuple(_stage(raw, number, origin) for number, raw in enumerate(whole.stages, start=1))
    names = [each.params.name for each in stages]
    for name in names:
        if names.count(name) > 1:
            message = f"{origin}: {names.count(name)} stages are called {name!r}"
            raise ConfigError(message, remedy="Give each a name of its own with name = …")
    _check_order(stages, origin)
    scratch = whole.resources.scratch
    if scratch is not None:
        scratch = local_path(scratch, base, what=f"{origin}: resources.scratch")
    resources = whole.resources.model_copy(update={"scratch": scratch})
    output = local_path(whole.output, base, what=f"{origin}: output").resolve()
    return Config(origin, base, output, whole.engine, resources, stages)


def _check_order(stages: Sequence[ConfiguredStage], origin: str) -> None:
    """A stage follows stages that come before it and have what it reads."""
    names = [each.params.name for each in stages]
    for number, each in enumerate(stages):
        earlier = {one.params.name: one for one in stages[:number]}
        for name in each.follows:
            if name not in earlier:
                words = "which comes no earlier" if name in names else f"which is not there{_near(name, earlier)}"
                message = f"{origin}: stage {names[number]!r}: of names the stage {name!r}, {words}"
                raise ConfigError(message, remedy="Stages run in the order of the config: put it first.")
        if each.follows:
            each.after([earlier[name].leader(Path()) for name in each.follows], origin=origin)


def _stage(raw: dict[str, Any], number: int, origin: str) -> ConfiguredStage:
    where = f"{origin}: [[stages]] {number}"
    kinds = [entry.kind for entry in STAGES]
    kind = raw.get("kind")
    entry = find_stage(kind) if isinstance(kind, str) else None
    if entry is None:
        shown = (
            f"{shortened(kind)!r}{_near(kind, kinds)}" if isinstance(kind, str) else f"of type {type(kind).__name__}"
        )
        message = f"{where}: unknown kind {shown}" if "kind" in raw else f"{where}: kind is missing"
        raise ConfigError(message, remedy=f"Known kinds: {', '.join(kinds)}.")
    stage = entry.load()
    params = _validated(stage.parameters, {"name": kind} | raw, where=where)
    _check_names(stage, params, where)
    return ConfiguredStage(stage, params)


def _check_names(stage: Stage, params: StageParameters, where: str) -> None:
    """Grouping columns stand beside columns of the results and of the work on them, so none may have such a name."""
    from pipeline.queries import names_beside_groups  # noqa: PLC0415 - most configs group by few names or none

    names = sorted({name for grouping in params.by for name in grouping})
    reserved = reserved_names(stage.tables)
    working = names_beside_groups(stage.kind) if names else frozenset()
    for name in names:
        in_results, in_work = name.lower() in reserved, name.lower() in working or is_reserved_within(stage.kind, name)
        if in_results or in_work:
            words = "is also a column of the results" if in_results else "is a name that the stage itself works with"
            message = f"{where}: by: {name!r} {words}"
            remedy = f'Give it another name, for example columns = {{ my_{name} = "{name}" }}.'
            raise ConfigError(message, remedy=remedy)


def _validated(model: type[Model], values: dict[str, Any], *, where: str) -> Model:
    for key, value in values.items():
        if model is not _Document or key != "stages":  # stages are checked one by one
            check_texts(value, str(key), where=where)
    try:
        return model.model_validate(values)
    except ValidationError as error:
        found = error.errors(include_url=False)
        first = next((each for each in found if each["type"] == "extra_forbidden"), found[0])
        message = f"{where}: {abridged(_explain(first, model))}"
        raise ConfigError(message) from error
    except (RecursionError, ArithmeticError, ValueError, TypeError) as error:
        message = f"{where}: {_guilty(model, values)}{abridged(_reason(error))}"
        raise ConfigError(message) from error


def _guilty(model: type[BaseModel], values: dict[str, Any]) -> str:
    """The key without which values can at least be judged, in words before a message; empty where there is none."""
    for key in values:
        try:
            model.model_validate({name: value for name, value in values.items() if name != key})
        except ValidationError:
            return f"{key}: "
        except (RecursionError, ArithmeticError, ValueError, TypeError):
            continue
        return f"{key}: "
    return ""


def _reason(error: Exception) -> str:
    return "it is nested too deep" if isinstance(error, RecursionError) else str(error) or type(error).__name__


def _explain(error: Any, model: type[BaseModel]) -> str:  # noqa: ANN401 - pydantic's error details
    path = [str(part) for part in error["loc"] if isinstance(part, int) or _KEY.fullmatch(part)]
    if error["type"] == "extra_forbidden":
        known = _known_keys(model, tuple(path[:-1]))
        return f"unknown key `{'.'.join(path)}`{_near(path[-1], known)}"
    if error["type"] == "missing":
        return f"`{'.'.join(path)}` is missing"
    text = error["msg"].removeprefix("Value error, ")
    return f"{'.'.join(path)}: {text}" if path else text


def _known_keys(model: type[BaseModel], path: tuple[int | str, ...]) -> list[str]:
    """Keys of the model at a place: the fields of whatever model the path leads to."""
    fields = model.model_fields
    for part in path:
        if part not in fields:
            continue
        nested = _models(fields[str(part)].annotation)
        if nested:
            fields = nested[0].model_fields
    return list(fields)


def _models(annotation: Any) -> list[type[BaseModel]]:  # noqa: ANN401 - any annotation
    if isinstance(annotation, type):
        return [annotation] if issubclass(annotation, BaseModel) else []
    return [model for part in getattr(annotation, "__args__", ()) for model in _models(part)]


def _near(name: str, known: Iterable[str]) -> str:
    near = get_close_matches(name, list(known), n=1)
    return f". Did you mean `{near[0]}`?" if near else ""


def _override(document: dict[str, Any], key: str, value: Any, *, origin: str) -> None:  # noqa: ANN401 - any TOML value
    """Set a dotted key; below `stages` a stage is named by its name, its kind or its number from 1."""
    parts = key.split(".")
    place: Any = document
    for index, part in enumerate(parts[:-1]):
        if isinstance(place, list):
            place = _named_stage(place, part, origin)
        elif isinstance(place, dict):
            place = place.setdefault(part, {})
        else:
            message = f"{origin}: --set {key}: {'.'.join(parts[:index])} is not a table"
            raise ConfigError(message)
    if not isinstance(place, dict):
        message = f"{origin}: --set {key}: it does not name a key"
        raise ConfigError(message, remedy="Write for example --set stages.before_after.boundary='\">\"'.")
    place[parts[-1]] = value


def _named_stage(stages: list[Any], name: str, origin: str) -> Any:  # noqa: ANN401 - a parsed table
    for number, stage in enumerate(stages, start=1):
        if isinstance(stage, dict) and name in {str(number), stage.get("name"), stage.get("kind")}:
            return stage
    message = f"{origin}: --set names the stage {name!r}, which is not there"
    raise ConfigError(message)
