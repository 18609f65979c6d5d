"""The config file as a document: its own keys, and values that replace values of the file."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeVar
from urllib.parse import urlsplit

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError, field_validator

from ..base.errors import ConfigError, NoInputError, os_fault, together
from ..base.paths import (
    SpecialFileError,
    abridged,
    check_texts,
    is_open_pipe,
    is_remote,
    local_path,
    read_file,
    shortened,
)
from ..base.records import dataclass
from ..engines.engine import bytes_of
from ..engines.spark_session import SparkSettings, check_spark
from ..stages import STAGES, find_stage
from ..stages.stage import UpstreamParameters, UpstreamStage
from .opening import check_names
from .variables import NO_VARIABLES, explain, near, substituted
from .written import check_written, gate_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Self

    from ..engines.engine import Resources
    from ..stages.parameters import StageParameters
    from ..stages.stage import Stage
    from ..storage.mirror import ResultsStore
    from .gates import Gate
    from .variables import Variables
    from .written import OwnFile


PROM = ".prom"


WrittenPath = Annotated[str, BeforeValidator(lambda value: str(value) if isinstance(value, Path) else value)]


class _Announced(BaseModel):
    """Somewhere to announce, with the file as it was written."""

    model_config = ConfigDict(defer_build=True, frozen=True, extra="forbid")
    extra: ClassVar[str]
    client: ClassVar[tuple[str, str]]  # the module, and the package that brings it

    file: WrittenPath | None = None

    def placed(self, base: Path, *, what: str) -> Self:
        """Return the same settings with an absolute path of the file, if what writes it is installed."""
        module, package = self.client
        if find_spec(module) is None:
            message = f"{what} needs the package {package}, which is not installed"
            raise ConfigError(message, remedy=f"pip install 'thresher[{self.extra}]'")
        if self.file is None:
            return self
        return self.model_copy(update={"file": str(local_path(self.file, base, what=f"{what}.file"))})


class LineageSettings(_Announced):
    """The table `[lineage]`: where events in the format of OpenLineage go.

    Attributes:
        file: A file to which they are appended, one line each; None: none.
        url: A server that takes them, with `/api/v1/lineage` unless it has a path of its own; None: none.
        namespace: Namespace of the job.
        job: Name of the job; None: the name of the config without its ending.
    """

    extra: ClassVar[str] = "lineage"
    client: ClassVar[tuple[str, str]] = ("openlineage", "openlineage-python")

    url: str | None = None
    namespace: str = "thresher"
    job: str | None = None

    @field_validator("url")
    @classmethod
    def _http(cls, value: str | None) -> str | None:
        if value is None:
            return None
        address = urlsplit(value)
        if address.scheme not in {"http", "https"} or not address.hostname:
            message = 'write a URL that starts with http:// or https://, such as "http://marquez:5000"'
            raise ValueError(message)
        if address.username is not None or address.password is not None:
            message = "a URL must hold no password: the key is read from the variable OPENLINEAGE_API_KEY"
            raise ValueError(message)
        return value

    @field_validator("namespace", "job")
    @classmethod
    def _not_empty(cls, value: str | None) -> str | None:
        if value == "":
            message = "it must not be empty"
            raise ValueError(message)
        return value


class PrometheusSettings(_Announced):
    """The table `[prometheus]`: the file for the textfile collector of node_exporter, replaced after every attempt."""

    extra: ClassVar[str] = "prometheus"
    client: ClassVar[tuple[str, str]] = ("prometheus_client", "prometheus-client")

    @field_validator("file")
    @classmethod
    def _collected(cls, value: str | None) -> str | None:
        if value is not None and not value.endswith(PROM):
            message = f"the name must end in {PROM}, because node_exporter reads no other file"
            raise ValueError(message)
        return value


NO_LINEAGE, NO_METRICS = LineageSettings(), PrometheusSettings()


_SIZE = re.compile(r"\d+(\.\d+)?\s*(KB|MB|GB|TB|KiB|MiB|GiB|TiB)", re.IGNORECASE)


class ResourceLimits(BaseModel):
    """The table `[resources]`."""

    model_config = ConfigDict(defer_build=True, frozen=True, extra="forbid")

    memory: str | None = None
    threads: int | None = None
    scratch: Path | None = None
    scratch_limit: str | None = None
    copies: Path | None = None
    copies_limit: str | None = None
    cache_limit: str | None = None

    @property
    def of_engine(self) -> Resources:
        """The limits that an engine is started with."""
        from ..engines.engine import Resources  # noqa: PLC0415 - a config can be read without it

        return Resources(**self.model_dump(exclude={"cache_limit", "copies", "copies_limit"}))

    @property
    def memory_bytes(self) -> int | None:
        """The limit of memory in bytes; None: that which the engine chooses."""
        return None if self.memory is None else bytes_of(self.memory)

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


class Document(BaseModel):
    """The config file, its stages and gates still unparsed."""

    model_config = ConfigDict(defer_build=True, frozen=True, extra="forbid")

    output: WrittenPath = "results"  # a Path would make s3:/x of s3://x
    engine: Literal["duckdb", "spark"] = "duckdb"
    spark: SparkSettings = SparkSettings()
    resources: ResourceLimits = ResourceLimits()
    on_error: Literal["stop", "publish_others"] = "stop"
    lineage: LineageSettings = LineageSettings()
    prometheus: PrometheusSettings = PrometheusSettings()
    cache: bool = True
    verify_inputs: Literal["none", "crc", "sha256"] = "none"
    labels: dict[str, str] = {}
    vars: dict[str, Any] = {}  # read by pipeline.runs.variables; here so that it is a known key
    stages: list[dict[str, Any]] = []
    gates: list[dict[str, Any]] = []
    gates_json: WrittenPath | None = None
    gates_junit: WrittenPath | None = None


def overridden(document: Mapping[str, Any], values: Mapping[str, Any], *, origin: str = "<config>") -> dict[str, Any]:
    """Return a config as a dictionary with other values, by dotted key; the one that is given is left as it is.

    Raises:
        ConfigError: a key names nothing that can be set.
    """
    try:
        changed: dict[str, Any] = _copied(document)
    except RecursionError as error:
        message = f"{origin}: the config is nested too deep"
        raise ConfigError(message) from error
    for key, value in values.items():  # below `stages`, a stage is given by its name, its kind or its number from 1
        path = _in_only_stage(changed, key.split("."), origin)
        table: Any = changed
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
    return changed


def _copied(value: Any) -> Any:  # noqa: ANN401 - any TOML value
    """A copy of tables and lists at any depth; their values are shared, since frames must not be copied."""
    if isinstance(value, Mapping):
        return {key: _copied(inner) for key, inner in value.items()}
    return [_copied(inner) for inner in value] if isinstance(value, list) else value


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


Model = TypeVar("Model", bound=BaseModel)


@dataclass(frozen=True)
class ConfiguredStage:
    """A stage, and its parameters of its own class."""

    stage: Stage
    params: StageParameters

    @property
    def upstream(self) -> tuple[str, ...]:
        """Names of the stages of the same config whose tables this stage reads."""
        return self.params.upstream if isinstance(self.params, UpstreamParameters) else ()

    def as_upstream(self, folder: Path) -> UpstreamStage:
        """Describe this stage to the stages that read its tables, which lie in the folder of its run."""
        params = self.params
        return UpstreamStage(
            *(params.name, self.stage.kind, params.by, folder),
            measures=params.measured,
            cluster=params.first_cluster,
            cluster_order=params.cluster_order,
        )

    def with_upstream(self, upstream: Sequence[UpstreamStage], *, origin: str) -> ConfiguredStage:
        """Return the same stage with the tables of its upstream stages as its input, if they have such tables."""
        if not isinstance(self.params, UpstreamParameters):
            return self
        try:
            return ConfiguredStage(self.stage, self.params.with_upstream(upstream))
        except ValueError as error:
            message = f"{origin}: stage {self.params.name!r}: {error}"
            raise ConfigError(message) from error


@dataclass(frozen=True)
class Config:
    """A checked configuration.

    Attributes:
        origin: Name in messages: the file, or `<config>`.
        base: Folder that relative paths start from.
        output: The results folder, absolute; of results on a store the mirror in which runs are made.
        engine: Name of the engine.
        resources: Limits.
        stages: The stages to run, in order.
        lineage: Where lineage events go.
        prometheus: Where a file of metrics goes.
        cache: Whether what input files answered is kept, so that later runs read new files only.
        variables: What its references stand for, its logical date and its labels.
        on_error: What a stage that fails does: `stop` ends the run, `publish_others` publishes the other stages.
        order: All stages of the config in order, if only some are to run; the others are carried forward.
        gates: What the numbers of all stages are held against.
        gate_files: The files to which the outcomes are written beside the results.
        verify_inputs: How the content of input files is verified: `none`, `crc` or `sha256`.
        store: The store on which the results live; None: they live in the folder `output`.
        spark: Where Spark runs, if it is the engine.
    """

    origin: str
    base: Path
    output: Path
    engine: str
    resources: ResourceLimits
    stages: tuple[ConfiguredStage, ...]
    lineage: LineageSettings = NO_LINEAGE
    prometheus: PrometheusSettings = NO_METRICS
    cache: bool = True
    variables: Variables = NO_VARIABLES
    on_error: str = "stop"
    order: tuple[ConfiguredStage, ...] = ()
    gates: tuple[Gate, ...] = ()
    gate_files: tuple[OwnFile, ...] = ()
    verify_inputs: str = "none"
    spark: SparkSettings = field(default_factory=SparkSettings)
    store: ResultsStore | None = None

    @property
    def results(self) -> str:
        """The place of the results, as people write it."""
        return str(self.output) if self.store is None else self.store.address

    @property
    def is_announced(self) -> bool:
        """Whether anybody is told of its runs."""
        return any((self.lineage.file, self.lineage.url, self.prometheus.file))

    def at(self, output: str | os.PathLike[str], *, what: str) -> Config:
        """Return the same config with another place for its results, a folder or an address.

        Raises:
            ConfigError: it is neither.
        """
        if not is_remote(os.fspath(output)):
            return replace(self, output=local_path(output, self.base, what=what).resolve(), store=None)
        from .written import store_of  # noqa: PLC0415 - only where results live elsewhere

        store = store_of(output, what=what, limits=self.resources)
        return replace(self, output=self.output if store is None else store.work, store=store)

    @property
    def every(self) -> tuple[ConfiguredStage, ...]:
        """All stages in order: those that are to run, and those that are left out."""
        return self.order or self.stages

    def only(self, names: Iterable[str]) -> Config:
        """Return the same config with some of its stages to run; the tables of the others are carried forward.

        Raises:
            ConfigError: a name is not among them.
        """
        chosen = tuple(names)
        stage_names = [stage.params.name for stage in self.every]
        for name in chosen:
            if name not in stage_names:
                message = f"{self.origin}: no stage is called {name!r}{near(name, stage_names)}"
                raise ConfigError(message, remedy=f"Its stages are: {', '.join(stage_names)}.")
        stages = tuple(stage for stage in self.every if not chosen or stage.params.name in chosen)
        return replace(self, stages=stages, order=self.every)

    def check_engine(self) -> None:
        """Check that the engine can be started."""
        if self.engine == "spark":
            check_spark(self.spark)


def load_config(
    path: Path, *, overrides: Mapping[str, Any] | None = None, values: Mapping[str, Any] | None = None
) -> Config:
    """Read and check a config file; one that a shell writes into a pipe is read once, relative to the working folder.

    `overrides` are values by dotted key, which replace those of the file; `values` those of variables by name.

    Raises:
        NoInputError: the file does not exist.
        ConfigError: it is not TOML, or its keys or values are wrong.
    """
    path = local_path(path, Path.cwd(), what="the config file")
    is_piped = is_open_pipe(path)
    try:
        content = path.read_bytes() if is_piped else read_file(path)
        document = tomllib.loads(content.decode("utf-8-sig"))  # Windows editors put a mark in front
    except (FileNotFoundError, IsADirectoryError, SpecialFileError) as error:
        starter = "thresher init writes a starter config."
        message, remedy = f"{path} is {error}, not a config file", "Write the config to a file, and name that."
        if isinstance(error, FileNotFoundError):
            message, remedy = f"config file {path} does not exist", starter
        elif isinstance(error, IsADirectoryError):
            message, remedy = f"{path} is a folder, not a config file", f"Name the TOML file in it; {starter}"
        raise NoInputError(message, remedy=remedy) from error
    except OSError as error:
        raise os_fault(error, f"reading the config file {path}") from error
    except (ValueError, RecursionError) as error:
        message = f"{path} cannot be read as TOML: {_reason(error)}"
        raise ConfigError(message) from error
    document = overridden(document, overrides or {}, origin=str(path))
    base, file = (Path.cwd(), None) if is_piped else (path.resolve().parent, path)
    return parse_config(document, base=base, origin=str(path), values=values, file=file)


def parse_config(
    document: Mapping[str, Any],
    *,
    base: Path,
    origin: str = "<config>",
    values: Mapping[str, Any] | None = None,
    file: Path | None = None,
) -> Config:
    """Check a config given as a dictionary, as parsed from TOML, perhaps from a file.

    Relative paths start from the folder `base`, messages name the `origin`, and `values` are those of variables.

    Raises:
        ConfigError: it names the key, what is wrong and, for an unknown key, the nearest known one.
    """
    document, variables = substituted(document, values or {}, origin=origin)
    settings, stages = _settings_and_stages(document, origin)
    _check_stages(stages, origin)
    variables = replace(variables, labels=settings.labels)
    gates = _gates(settings, stages, origin)
    with variables.concealing():
        folders = {
            key: local_path(folder, base, what=f"{origin}: resources.{key}")
            for key in ("scratch", "copies")
            if (folder := getattr(settings.resources, key))
        }
        lineage, prometheus = settings.lineage, settings.prometheus
        if lineage != NO_LINEAGE:
            lineage = lineage.placed(base, what=f"{origin}: lineage")
        if prometheus != NO_METRICS:
            prometheus = prometheus.placed(base, what=f"{origin}: prometheus")
    config = Config(
        *(origin, base, base, settings.engine),
        settings.resources.model_copy(update=folders),
        stages,
        lineage,
        prometheus,
        cache=settings.cache,
        variables=variables,
        on_error=settings.on_error,
        gates=gates,
        gate_files=gate_files(settings.model_dump(include={"gates_json", "gates_junit"}), base, origin),
        verify_inputs=settings.verify_inputs,
        spark=settings.spark,
    )
    config = config.at(settings.output, what=f"{origin}: output")
    check_written(config, file)
    return config


def _gates(settings: Document, stages: Sequence[ConfiguredStage], origin: str) -> tuple[Gate, ...]:
    """The gates, checked against the stages whose numbers they are held to."""
    if not settings.gates:
        return ()
    from .gates import parse_gates  # noqa: PLC0415 - only where there are gates

    by_name = {stage.params.name: (stage.stage, stage.params) for stage in stages}
    return parse_gates(settings.gates, by_name, origin, _validated)


def _settings_and_stages(document: Mapping[str, Any], origin: str) -> tuple[Document, tuple[ConfiguredStage, ...]]:
    """Check the document and its stages; the faults of all of them are reported together."""
    settings, stages, faults = Document(), [], []
    try:
        settings = _validated(Document, dict(document), where=origin, starter=STAGES[0].kind)
    except ConfigError as error:
        faults.append(error)
    tables = document.get("stages")
    for number, table in enumerate(tables if isinstance(tables, list) else (), start=1):
        try:
            stages += [_stage(table, number, origin)] if isinstance(table, dict) else []
        except ConfigError as error:
            faults.append(error)
    if faults:
        raise together(faults)
    return settings, tuple(stages)


def _check_stages(stages: Sequence[ConfiguredStage], origin: str) -> None:
    """Check that there are stages, their names, and that they come after those whose tables they read."""
    if not stages:
        message = f"{origin}: the config has no stage"
        raise ConfigError(message, remedy="Add a table [[stages]]; thresher init writes one.")
    names = [stage.params.name for stage in stages]
    for name in names:
        if names.count(name) > 1:
            message = f"{origin}: {names.count(name)} stages are called {name!r}"
            raise ConfigError(message, remedy="Give each a name of its own with name = …")
    for number, stage in enumerate(stages):
        earlier = {configured.params.name: configured for configured in stages[:number]}
        for name in stage.upstream:
            if name not in earlier:
                words = "which does not come before it" if name in names else f"which is not there{near(name, earlier)}"
                message = f"{origin}: stage {names[number]!r}: of names the stage {name!r}, {words}"
                raise ConfigError(message, remedy="Stages run in the order of the config: put it first.")
        if stage.upstream:
            stage.with_upstream([earlier[name].as_upstream(Path()) for name in stage.upstream], origin=origin)


def _stage(raw: dict[str, Any], number: int, origin: str) -> ConfiguredStage:
    where = f"{origin}: [[stages]] {number}"
    kinds = [entry.kind for entry in STAGES]
    kind = raw.get("kind")
    entry = find_stage(kind) if isinstance(kind, str) else None
    if entry is None:
        shown = f"{shortened(kind)!r}{near(kind, kinds)}" if isinstance(kind, str) else f"of type {type(kind).__name__}"
        message = f"{where}: unknown kind {shown}" if "kind" in raw else f"{where}: kind is missing"
        raise ConfigError(message, remedy=f"Known kinds: {', '.join(kinds)}.")
    stage = entry.load()
    params = _validated(stage.parameters, {"name": kind} | raw, where=where, starter=entry.kind)
    check_names(stage, params, where)
    return ConfiguredStage(stage, params)


def _validated(model: type[Model], values: dict[str, Any], *, where: str, starter: str) -> Model:
    for key, value in values.items():
        if model is not Document or key not in {"stages", "gates"}:  # these are checked one by one
            check_texts(value, str(key), where=where)
    try:
        return model.model_validate(values)
    except ValidationError as error:
        faults = explain(error, model, values, starter)
        raise together([ConfigError(f"{where}: {abridged(fault)}") for fault in faults]) from error
    except (RecursionError, ArithmeticError, ValueError, TypeError) as error:
        message = f"{where}: {_guilty(model, values)}{abridged(_reason(error))}"
        raise ConfigError(message) from error


def _guilty(model: type[BaseModel], values: dict[str, Any]) -> str:
    """Return the key without which the values can at least be validated, as the start of a message; empty if none."""
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
    if isinstance(error, OverflowError):
        return "a number is too large"
    return "it is nested too deep" if isinstance(error, RecursionError) else str(error) or type(error).__name__
