"""Input files are verified where the config asks for it: their content is still what was written."""

from __future__ import annotations

import hashlib
import json
import re
from contextlib import suppress
from dataclasses import field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from ..errors import DataError, os_fault
from ..records import dataclass
from ..safe_files import read_file
from ..sources.finding import SUM_ENDING
from ..sources.parquet_files import DataFile, PageFaultError, check_pages
from ..sources.rows import is_passed_in
from .opening import columns_read
from .stage_results import input_records

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ..sources.source import Source
    from ..storage.layout import Layout
    from .carry_forward import LastRun
    from .opening import OpenedStage

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
        """Verify the inputs of a stage, and return it.

        Raises:
            DataError: the content of a file has changed.
            ThresherError: the operating system fails; by the number of its error.
        """
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
        """What the record of an attempt says of it."""
        return {"verified": self.counts} if self.counts else {}

    def inputs(self) -> dict[str, Any]:
        """What the record of an attempt that publishes nothing says of the files that it hashed."""
        records = self.with_hashes(input_records(self._stages)) if self.sums else []
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
        for column in _columns_read(stage, source, file) if _is_parquet(file) else ():
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
            if _is_parquet(file)
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
        in_sidecar, (in_record, run) = (
            _in_sidecar(name, path, file.name),
            self.recorded.get(_version_of(file), ("", "")),
        )
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
    """Return the verification of a run, before anything is verified.

    Args:
        method: `verify_inputs` of the config.
        layout: The results folder, whose attempts tell the hashes that unchanged runs found.
        last: The latest run, whose hashes come first.
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


def _is_parquet(file: DataFile) -> bool:
    """Whether the file is as the user has it, not the rows of another format."""
    return _path(file) == file.path


def _columns_read(stage: OpenedStage, source: Source, file: DataFile) -> list[str]:
    read = {*columns_read(stage.plan, source)}
    return [name for name in file.schema.names if name in read]


def _in_sidecar(name: str, path: Path, label: str) -> str:
    """Return the hash of a file in the file beside it, as sha256sum writes it; empty if there is none.

    Raises:
        DataError: it does not tell the hash of the file.
        OSError: it cannot be read.
    """
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
