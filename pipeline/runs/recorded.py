"""A stage of a published run opened again from the record of the run, and what became of its files since."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from ..errors import DataError, NoInputError, ThresherError, UsageError
from ..sources.remote.addresses import is_remote
from ..stages import find_stage
from ..stages.durations import RECORDED
from .config import Config, ConfiguredStage
from .document import ResourceLimits
from .opening import open_inputs
from .variables import recorded_variables
from .written import WrittenFileError, check_written

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..sources.rows import Rows
    from .opening import OpenedStage
    from .written import OwnFile


def recorded_config(record: Mapping[str, Any], folder: Path) -> Config:
    """Return the config that made a run, from its record; limits of memory and threads are those of this machine.

    Args:
        record: The content of `run.json`.
        folder: Folder of the run.

    Raises:
        DataError: it is no such record, or this version does not know its parameters.
    """
    path = folder / "run.json"
    try:
        stages = tuple(configured_again(parameters) for parameters in record["configuration"]["stages"])
        origin = str(record["config"])
        base = Path(record.get("base") or Path(origin).parent)  # the first records did not say it
    except (KeyError, TypeError, AttributeError, ValueError, ValidationError) as error:
        message = f"{path}: the parameters of the run cannot be read back ({error})"
        raise DataError(message, remedy="Run the config again with this version, and explain that run.") from error
    return Config(
        origin, base, folder.parent.parent, "duckdb", ResourceLimits(), stages, variables=recorded_variables(record)
    )


def refuse_written(record: Mapping[str, Any], folder: Path, target: OwnFile) -> None:
    """Refuse to write a file that is an input or the config of a published run, lies in its results, or is not ours.

    Args:
        record: The content of `run.json`.
        folder: Folder of the run.
        target: The file, as an option names it.

    Raises:
        UsageError: says what it is.
    """
    origin = str(record.get("config"))
    config = Config(origin, folder.parent.parent, folder.parent.parent, "duckdb", ResourceLimits(), ())
    with suppress(ThresherError):  # of a version whose parameters are not known: the results are told all the same
        config = recorded_config(record, folder)
    try:
        check_written(config, Path(origin), more=(target,))
    except WrittenFileError as error:
        raise UsageError(error.message, remedy=error.remedy) from error


def configured_again(parameters: Mapping[str, Any]) -> ConfiguredStage:
    """Return a stage with the parameters of a run record.

    Raises:
        ValueError: this version does not know the task, or the parameters (ValidationError).
    """
    entry = find_stage(parameters["kind"])
    if entry is None:
        message = f"kind {parameters['kind']!r} is not known"
        raise ValueError(message)
    stage = entry.load()
    return ConfiguredStage(stage, stage.parameters.model_validate(dict(parameters), context={RECORDED: True}))


def open_recorded(
    record: Mapping[str, Any], folder: Path, name: str, parameters: Mapping[str, Any] | None = None
) -> OpenedStage:
    """Open the inputs of a stage of a published run again: its files are found anew and their footers read.

    Args:
        record: The content of `run.json`.
        folder: Folder of the run.
        name: Name of the stage.
        parameters: Parameters that are to differ from those of the run, such as which tables are made.

    Raises:
        NoInputError: no file of an input is there any more.
        DataError: the record, or the inputs as they are now, cannot be read.
    """
    for file in record.get("inputs", ()):
        if file["stage"] == name and file.get("is_frame"):
            message = f"the run read {file['path']}, which was passed in and is not kept"
            raise NoInputError(message, remedy="Rows can be shown only of inputs in files.")
        if file["stage"] == name and file.get("read_by"):
            message = f"the run read {file['path']} through Spark, which is not asked again"
            raise NoInputError(
                message, remedy="Rows can be shown only of files that are read here; copy it and run again."
            )
    for variable in record.get("environment", ()):
        if variable not in os.environ:
            message = f"the environment variable {variable} is not set, which the config of the run refers to"
            raise NoInputError(message, remedy="Set it to what it was then.")
    config = recorded_config(record, folder)
    config = replace(config, base=_base_of(record, name, config.base))
    configured = next(stage for stage in config.stages if stage.params.name == name)
    update = {key: value for key, value in (parameters or {}).items() if key in type(configured.params).model_fields}
    configured = ConfiguredStage(configured.stage, configured.params.model_copy(update=update))
    try:
        return open_inputs(config, configured, run=folder, omitted=record.get("omitted", {}))
    except ThresherError as error:
        lost = [path for file in _recorded_files(record, name, folder) if not _may_exist(path := str(file["path"]))]
        if not lost:
            raise
        lost = [config.variables.concealed(path) for path in lost]
        message = f"{lost[0]} is gone{f', and {len(lost) - 1:,} more files' if len(lost) > 1 else ''}: {error.message}"
        raise NoInputError(message, remedy="Rows can be shown only while the inputs of the run are there.") from error


def _base_of(record: Mapping[str, Any], name: str, base: Path) -> Path:
    """Return the folder that the paths of a stage start from: that of another config if it was carried forward."""
    carried = record.get("results", {}).get(name, {}).get("carried_from") or {}
    return Path(carried.get("base") or base)


def changed_files(record: Mapping[str, Any], folder: Path, opened: OpenedStage) -> tuple[str, ...]:
    """Say of every input which file changed since the run, is gone, or was not there then; nothing if all are the same.

    Args:
        record: The content of `run.json`.
        folder: Folder of the run.
        opened: One of its stages, opened again.
    """
    recorded = list(_recorded_files(record, opened.name, folder))
    return tuple(
        sentence
        for name, source in opened.sources.items()
        for sentence in _differences(
            name,
            {opened.variables.concealed(file["path"]): file for file in recorded if file["input"] == name},
            {file.name: file for file in source.files},
        )
    )


def _recorded_files(record: Mapping[str, Any], name: str, folder: Path) -> Iterator[Mapping[str, Any]]:
    """The files that a stage read, each with its absolute path."""
    variables = recorded_variables(record)
    for file in record.get("inputs", ()):
        if file["stage"] == name:
            path = variables.revealed(file["path"])  # that of another stage's table is relative to the run
            yield {**file, "path": path if is_remote(path) else str(folder / path)}


def _may_exist(path: str) -> bool:
    """Whether a file is there; an object on a remote store may be."""
    return is_remote(path) or Path(path).exists()


def _differences(name: str, then: Mapping[str, Mapping[str, Any]], now: Mapping[str, Rows]) -> Iterator[str]:
    sentences = {
        "is gone": [path for path in then if path not in now],
        "was not there when the run read its folder": [path for path in now if path not in then],
        "has changed since the run": [path for path in then if path in now and _differs(then[path], now[path])],
    }
    for words, paths in sentences.items():
        if paths:
            others = f", and {len(paths) - 1:,} more files: each" if len(paths) > 1 else ""
            yield f"input {name}: {paths[0]}{others} {words}: rows shown may differ from those that were counted"


def _differs(then: Mapping[str, Any], now: Rows) -> bool:
    """Whether a file is another than the one that was read; where only its times differ, its content decides."""
    if (then["rows"], then["footer_sha256"]) != (now.rows, now.digest):
        return True
    if "sha256" in then:  # of an object on a remote store
        return bool(then["sha256"] != now.identity.get("sha256"))
    return "mtime_ns" in then and (then["size"], then["mtime_ns"]) != (now.identity["size"], now.identity["mtime_ns"])
