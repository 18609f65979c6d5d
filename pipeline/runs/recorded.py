"""A stage of a published run opened again from the record of the run, and what became of its files since."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
from pydantic import ValidationError

from ..engines.duckdb import DuckDB, Resources
from ..errors import DataError, NoInputError, ThresherError, UsageError
from ..records import dataclass
from ..safe_files import read_file
from ..sources.paths import is_remote
from ..stages import find_stage
from ..stages.durations import RECORDED
from ..storage.layout import MANIFEST
from ..storage.manifest import parse_manifest
from ..tables.groupings import internal_name
from ..tables.schemas import COUNT_TABLE, empty_table, polars_types
from .config import Config, ConfiguredStage, ResourceLimits
from .evaluation import count_and_derive
from .opening import open_inputs
from .stage_results import ABOUT_RUN, CARRIED, StageRecord, StageResult
from .variables import recorded_variables
from .written import WrittenFileError, check_written

if TYPE_CHECKING:
    from ..interrupts import StopRequest
    from ..sources.rows import Rows
    from ..stages.stage import Stage
    from ..tables.schemas import Table
    from .opening import OpenedStage
    from .written import OwnFile


def recorded_config(record: Mapping[str, Any], folder: Path) -> Config:
    """Return the config that made a run, from its record; memory and threads are limited as on this machine.

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
    carried = record.get("results", {}).get(name, {}).get(CARRIED) or {}  # perhaps with paths of another config
    config = replace(config, base=Path(carried.get("base") or config.base))
    configured = next(stage for stage in config.stages if stage.params.name == name)
    update = {key: value for key, value in (parameters or {}).items() if key in type(configured.params).model_fields}
    configured = ConfiguredStage(configured.stage, configured.params.model_copy(update=update))
    try:
        return open_inputs(config, configured, run=folder, omitted=record.get("omitted", {}))
    except ThresherError as error:
        paths = [str(file["path"]) for file in _recorded_files(record, name, folder)]
        lost = [path for path in paths if not is_remote(path) and not Path(path).exists()]
        if not lost:
            raise
        lost = [config.variables.concealed(path) for path in lost]
        message = f"{lost[0]} is gone{f', and {len(lost) - 1:,} more files' if len(lost) > 1 else ''}: {error.message}"
        raise NoInputError(message, remedy="Rows can be shown only while the inputs of the run are there.") from error


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
    if "etag" in then:  # of an object on a remote store
        return bool(then["etag"] != now.identity.get("etag"))
    return "mtime_ns" in then and (then["size"], then["mtime_ns"]) != (now.identity["size"], now.identity["mtime_ns"])


# The tables of a stage read back from the folder of its run, and its result made from them.


EARLIER_VERSION = "made since a later version of thresher than that of the run; run the config again to have"


@dataclass(frozen=True)
class RecordedTables(Mapping[str, pl.DataFrame]):
    """The tables of a stage, each read when it is needed: some are large, and few are shown.

    A run of an earlier version lacks what came later: such a table has no row, and such a column is NULL.

    Attributes:
        folder: Folder of the run.
        stage: Name of the stage.
        contracts: Tables that a run of this version has, by name.
        later: What the version which made the run did not know: by table the columns, none for the whole table.
        groups: Grouping columns, by the users' names, with the names that they have inside a run.

    Raises:
        DataError: a table is read, and its file is damaged.
    """

    folder: Path
    stage: str
    contracts: Mapping[str, Table]
    later: Mapping[str, tuple[str, ...]]
    groups: Mapping[str, str]

    def __getitem__(self, name: str) -> pl.DataFrame:
        contract = self.contracts[name]
        if self.later.get(name) == ():
            return empty_table(contract, self._renamed(self._read(COUNT_TABLE)), tuple(self.groups.values()))
        table = self._renamed(self._read(name))
        later = (column for column in contract.columns if column.name in self.later.get(name, ()))
        return table.with_columns(pl.lit(None, polars_types(column.type)[-1]).alias(column.name) for column in later)

    @property
    def lacking(self) -> dict[str, str]:
        """Tables that the run lacks, or columns of them, with the reason."""
        return {
            name: f"{', '.join(columns)}: {EARLIER_VERSION} them" if columns else f"{EARLIER_VERSION} it"
            for name, columns in self.later.items()
        }

    def __contains__(self, name: object) -> bool:
        return name in self.contracts

    def __iter__(self) -> Iterator[str]:
        return iter(self.contracts)

    def __len__(self) -> int:
        return len(self.contracts)

    def _path(self, name: str) -> Path:
        return self.folder / name / f"{self.stage}.parquet"

    def _read(self, name: str) -> pl.DataFrame:
        path = self._path(name)
        try:
            return pl.read_parquet(path)
        except (OSError, pl.exceptions.PolarsError) as error:
            message = f"{path} cannot be read: {str(error).splitlines()[0]}"
            remedy = f"thresher verify {self.folder.parent.parent} lists what is damaged."
            raise DataError(message, remedy=remedy) from error

    def _renamed(self, table: pl.DataFrame) -> pl.DataFrame:
        return table.rename({column: inside for column, inside in self.groups.items() if column in table.columns})


def recorded_tables(
    folder: Path, stage: Stage, parameters: Mapping[str, Any], omitted: Mapping[str, str]
) -> RecordedTables:
    """Return the tables of a stage of a run.

    Args:
        folder: Folder of the run.
        stage: Its task, with the tables that its parameters ask for.
        parameters: Its parameters as the run record holds them.
        omitted: Tables that it did not make.
    """
    inside = {column: internal_name(column) for grouping in parameters.get("by", [[]]) for column in grouping}
    contracts = {table.name: table for table in stage.tables if table.name not in omitted}
    name = parameters["name"]
    return RecordedTables(folder, name, contracts, dict(_later(folder, name, contracts)), inside)


def _later(folder: Path, stage: str, contracts: Mapping[str, Table]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """What the manifest of a run, if it has one, does not name; a file that it names and that is gone is damage."""
    path = folder / MANIFEST
    if not path.is_file():
        return
    files = {file.table: file for file in parse_manifest(read_file(path), path).files if file.stage == stage}
    for name, contract in contracts.items():
        if name not in files:
            yield name, ()
        elif columns := tuple(column.name for column in contract.columns if column.name not in files[name].schema):
            yield name, columns


def recorded_result(folder: Path, stage: Stage, record: StageRecord) -> StageResult:
    """Return the result of a stage that this run did not count, from its tables in the folder of the run."""
    omitted = record.entries["omitted"]
    summary = stage.summarize(recorded_tables(folder, stage, record.entries["configuration"], omitted))
    n_rows = sum(account["rows_in"] for account in record.entries["accounting"].values())
    warnings, seconds = tuple(record.result["warnings"]), record.result["seconds"]
    return StageResult(
        record.name,
        stage.kind,
        summary,
        warnings,
        seconds,
        n_rows,
        dict(omitted),
        unrequested=record.entries.get("unrequested", {}),
        carried=notice_of(record.result),
        notes=tuple(record.result.get("notes", ())),
    )


def notice_of(result: Mapping[str, Any]) -> str:
    """Return the sentence that names the run which counted a stage; empty if this run did."""
    return str(result[ABOUT_RUN][0]) if result.get(CARRIED) and result.get(ABOUT_RUN) else ""


# The tables of a stage counted again, in memory alone: under other conventions than those of its run.


def recount(opened: OpenedStage, stop: StopRequest) -> dict[str, pl.DataFrame]:
    """Count a stage and derive its tables, grouping columns under their internal names; nothing is written.

    Arguments and errors are those of `count_and_derive`.
    """
    opened.fetch()
    with DuckDB(Resources(), opened.folders, stop) as engine:
        return count_and_derive(engine, opened, stop)[1]
