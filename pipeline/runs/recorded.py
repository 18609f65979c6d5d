"""A stage of a published run opened again from its record, and whether input files still are what was written."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import field, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import polars as pl
from pydantic import ValidationError

from ..base.errors import DataError, NoInputError, ThresherError, UsageError, os_fault
from ..base.paths import is_remote, read_file
from ..base.records import dataclass
from ..base.schemas import COUNT_TABLE, empty_table, internal_name, polars_types
from ..engines.duckdb import DuckDB
from ..engines.engine import Resources
from ..sources.finding import SUM_ENDING
from ..sources.inputs import is_passed_in
from ..sources.parquet_files import DataFile, PageFaultError, check_pages
from ..stages import find_stage
from ..stages.parameters import RECORDED
from ..storage.layout import MANIFEST, parse_manifest
from .config import Config, ConfiguredStage, ResourceLimits
from .evaluation import count_and_derive
from .opening import columns_read, open_inputs
from .stage_results import ABOUT_RUN, CARRIED, StageRecord, StageResult, input_records
from .variables import recorded_variables
from .written import WrittenFileError, check_written

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..base.interrupts import StopRequest
    from ..base.schemas import Table
    from ..sources.inputs import Rows
    from ..sources.source import Source
    from ..stages.stage import Stage
    from ..storage.layout import Layout
    from .opening import OpenedStage
    from .stage_by_stage import LastRun
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

    Some parameters may be others than those of the run, such as which tables are made.

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
            remedy = "Rows can be shown only of files that are read here; copy it and run again."
            raise NoInputError(message, remedy=remedy)
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
    """Say of every input of a stage which file changed since the run, is gone, or was not there then."""
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


EARLIER_VERSION = "made since a later version of thresher than that of the run; run the config again to have"


@dataclass(frozen=True)
class RecordedTables(Mapping[str, pl.DataFrame]):
    """The tables of a stage, each read when it is needed: some are large, and few are shown.

    A run of an earlier version lacks what came later: such a table has no row, and such a column is NULL.

    Attributes:
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

    def _read(self, name: str) -> pl.DataFrame:
        path = self.folder / name / f"{self.stage}.parquet"
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
    """Return the tables of a stage of a run in a folder, those that its parameters, as recorded, ask for."""
    inside = {column: internal_name(column) for grouping in parameters.get("by", [[]]) for column in grouping}
    contracts = {table.name: table for table in stage.tables if table.name not in omitted}
    name = parameters["name"]
    return RecordedTables(folder, name, contracts, dict(_later(folder, name, contracts)), inside)


def _later(folder: Path, stage: str, contracts: Mapping[str, Table]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Files that the manifest of a run does not name; a file that it names and that is gone is damage."""
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


def recount(opened: OpenedStage, stop: StopRequest) -> dict[str, pl.DataFrame]:
    """Count a stage and derive its tables, grouping columns under their internal names; nothing is written."""
    opened.fetch()
    with DuckDB(Resources(), opened.folders, stop) as engine:
        return count_and_derive(engine, opened, stop)[1]


_SUM = re.compile(r"\\?(?P<sha256>[0-9a-fA-F]{64})(?:[ \t]+\*?(?P<name>.*))?")
_MOST_ATTEMPTS = 100
_VERSION: TypeAlias = tuple[str, int, int]  # path, size and time of a file


@dataclass
class Verification:
    """The verification of the inputs of one run.

    Attributes:
        method: `crc` or `sha256`, as `verify_inputs` of the config says.
        recorded: Hashes of earlier runs: (sha256, id of the run) by path, size and time of the file.
        sums: Hashes of the files of this run by their path.
        counts: How many files and pages were verified, and against what.
        warnings: What was not verified, by stage.
    """

    method: str
    recorded: dict[_VERSION, tuple[str, str]] = field(default_factory=dict)
    sums: dict[Path, str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    warnings: dict[str, list[str]] = field(default_factory=dict)
    _stages: list[OpenedStage] = field(default_factory=list)
    _pages: dict[tuple[Path, str], bool] = field(default_factory=dict)

    def check(self, stage: OpenedStage) -> OpenedStage:
        """Verify the inputs of a stage, and return it."""
        for source in stage.sources.values():
            files = [file for origin, file in _files(stage) if origin is source]
            for file in files:
                try:
                    if self.method == "crc":
                        self._check_pages(stage, source, file)
                    elif _path(file) not in self.sums:
                        self._check_sum(source.name, file)
                except OSError as error:
                    raise os_fault(error, f"input {source.name}: verifying {file.name}") from error
            if self.method == "crc":
                self._warn_of_unverified(stage, source, files)
        self._stages.append(stage)
        return stage

    def facts(self) -> dict[str, Any]:
        """The facts about an attempt in its record."""
        return {"verified": self.counts} if self.counts else {}

    def inputs(self) -> dict[str, Any]:
        """The files that an attempt hashed, for the record of one that publishes nothing."""
        read = (record for stage in self._stages for record in input_records(stage))
        records = self.with_hashes([*read]) if self.sums else []
        return {"inputs": [entry for entry in records if "sha256" in entry]} if records else {}

    def with_hashes(self, inputs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Return the records of input files, with the hashes of those that were hashed in this run."""
        sums = {
            (stage.name, _version_of(file)): self.sums[_path(file)]
            for stage in self._stages
            for _, file in _files(stage)
            if _path(file) in self.sums
        }
        hashes = [sums.get((entry.get("stage", ""), _version_in(entry))) for entry in inputs]
        return [
            dict(entry) if sha256 is None else {**entry, "sha256": sha256}
            for entry, sha256 in zip(inputs, hashes, strict=True)
        ]

    def _check_pages(self, stage: OpenedStage, source: Source, file: DataFile) -> None:
        for column in _columns_read(stage, source, file):
            if (file.path, column) in self._pages:
                continue
            try:
                has_checksums = check_pages(file.path, column)
            except PageFaultError as error:
                message = f"input {source.name}: {file.name} is damaged: {error}"
                raise DataError(message, remedy="Restore it from a copy, or leave it out by a glob.") from error
            self._pages[file.path, column] = has_checksums
            self._count(columns_verified=int(has_checksums), columns_without_checksums=int(not has_checksums))

    def _warn_of_unverified(self, stage: OpenedStage, source: Source, files: list[DataFile]) -> None:
        columns = [  # whether those that are read have checksums; a file of another format has none
            [self._pages[file.path, column] for column in _columns_read(stage, source, file)]
            if _path(file) == file.path
            else [False]
            for file in files
        ]
        nothing = sum(not any(each) for each in columns if each)
        partly = sum(any(each) and not all(each) for each in columns)
        texts = self.warnings.setdefault(stage.name, [])
        start, total = f"verify_inputs: input {source.name}:", f"{len(files):,} {'files' if len(files) > 1 else 'file'}"
        if nothing:
            verb, pronoun = ("have", "them") if nothing > 1 else ("has", "it")
            unverified = f"so nothing in {pronoun} was verified"
            texts.append(f"{start} {nothing:,} of {total} {verb} no page checksums, {unverified}")
        if partly:
            verb = "have" if partly > 1 else "has"
            unverified = "and the others were not verified"
            texts.append(f"{start} {partly:,} of {total} {verb} checksums for some columns only, {unverified}")

    def _check_sum(self, name: str, file: DataFile) -> None:
        path = _path(file)
        with path.open("rb") as content:
            sha256 = hashlib.file_digest(content, "sha256").hexdigest()
        in_sidecar = _in_sidecar(name, path, file.name)
        in_record, run = self.recorded.get(_version_of(file), ("", ""))
        if in_sidecar not in {"", sha256}:
            message = f"input {name}: {file.name} has the SHA-256 {sha256}, and {file.name}.sha256 says {in_sidecar}"
            remedy = "It is damaged, or was written again: restore it from a copy, or write its .sha256 again."
            raise DataError(message, remedy=remedy)
        if in_record not in {"", sha256}:
            message = (
                f"input {name}: the content of {file.name} has changed since run {run}, although its size and its "
                f"time have not: its SHA-256 was {in_record}, and is {sha256}"
            )
            remedy = (
                "Either bits of it have changed on the disk: restore it from a copy. Or it was rewritten by a program "
                "that kept its time: touch it, so that it counts as another version."
            )
            raise DataError(message, remedy=remedy)
        self.sums[path] = sha256
        self._count(
            files_hashed=1,
            files_equal_to_sidecar=int(bool(in_sidecar)),
            files_equal_to_earlier_run=int(bool(in_record)),
            files_compared_with_nothing=int(not in_sidecar and not in_record),
        )

    def _count(self, **numbers: int) -> None:
        for key, number in numbers.items():
            self.counts[key] = self.counts.get(key, 0) + number


def verification(method: str, layout: Layout, last: LastRun | None) -> Verification:
    """Return the verification of a run by `verify_inputs` of the config, before anything is verified.

    Hashes to compare with are those of the latest run, and those that attempts found which left it unchanged.
    """
    if method != "sha256":
        return Verification(method)
    record = {} if last is None else last.record
    return Verification(method, _recorded(_latest_attempt(layout)) | _recorded(record))


def _latest_attempt(layout: Layout) -> dict[str, Any]:
    """Return the record of the latest attempt that verified all its inputs by their hashes; empty if there is none."""
    paths = layout.attempts.glob("*.json") if layout.attempts.is_dir() else ()
    with suppress(OSError):
        for path in islice(sorted(paths, key=lambda path: path.stat().st_mtime_ns, reverse=True), _MOST_ATTEMPTS):
            with suppress(OSError, ValueError, AttributeError):
                record: dict[str, Any] = json.loads(read_file(path))
                if record.get("verify_inputs") == "sha256" and record.get("status") in {"published", "unchanged"}:
                    return record
    return {}


def _recorded(record: Mapping[str, Any]) -> dict[_VERSION, tuple[str, str]]:
    with suppress(AttributeError, KeyError, TypeError):  # a record of another version, or a damaged one
        run = str(record["run_id"])
        hashed = [entry for entry in record["inputs"] if isinstance(entry.get("sha256"), str) and "etag" not in entry]
        return {_version_in(entry): (entry["sha256"], run) for entry in hashed}
    return {}


def _version_in(entry: Mapping[str, Any]) -> _VERSION:
    return str(entry.get("path")), entry.get("size", -1), entry.get("mtime_ns", -1)


def _version_of(file: DataFile) -> _VERSION:
    return file.name, file.identity.get("size", -1), file.identity.get("mtime_ns", -1)


def _files(stage: OpenedStage) -> Iterator[tuple[Source, DataFile]]:
    """Yield every file of the user's that a stage reads, but for versions of objects and of tables."""
    for source in stage.sources.values():
        for file in source.files:
            if isinstance(file, DataFile) and not is_passed_in(file) and not file.is_versioned:
                yield source, file


def _path(file: DataFile) -> Path:
    return file.origin or file.path


def _columns_read(stage: OpenedStage, source: Source, file: DataFile) -> list[str]:
    """The columns that are read of a file as the user has it; none where it holds the rows of another format."""
    read = {*columns_read(stage.plan, source)} if _path(file) == file.path else set()
    return [name for name in file.schema.names if name in read]


def _in_sidecar(name: str, path: Path, label: str) -> str:
    """Return the hash of a file in the file beside it, as sha256sum writes it; empty if there is none."""
    sidecar = path.with_name(f"{path.name}{SUM_ENDING}")
    try:
        lines = read_file(sidecar).decode("utf-8", "replace").split("\n")
    except FileNotFoundError:
        return ""
    matches = [match for line in lines if (match := _SUM.fullmatch(line.rstrip("\r")))]
    named = [match for match in matches if Path(match["name"] or "").name == path.name]
    sums = {match["sha256"].lower() for match in named or matches}
    if len(sums) != 1:
        message = f"input {name}: {label}{SUM_ENDING} does not tell the SHA-256 of {path.name}"
        raise DataError(message, remedy=f"Write it with: sha256sum {path.name} > {sidecar.name}")
    return sums.pop()
