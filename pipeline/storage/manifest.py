"""The manifest, commit record of a run with size, hash, rows and schema of every file, and tables about runs."""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import date, datetime
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import polars as pl

from ..records import dataclass
from ..tables.run_tables import (
    ATTEMPTS,
    FILES,
    HISTORY_COLUMNS,
    INPUT_FILES,
    PARAMETERS,
    RECORD_TABLES,
    RUNS,
    STAGES,
    WARNINGS,
)
from ..tables.schemas import polars_types
from .layout import (
    FORMAT_VERSION,
    MANIFEST,
    RUN_RECORD,
    DamagedError,
    Layout,
    own_sha256,
    read_own,
    read_record,
    run_id_of,
    run_name,
    storage_errors,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from ..tables.schemas import Column, Table


# The manifest: commit record of a run, with size, hash, rows and schema of every file; kept runs are held to it.


@dataclass(frozen=True)
class PublishedFile:
    """One file of a run.

    Attributes:
        path: Relative to the run's folder, with `/`.
        table: The view it belongs to; empty for records.
        stage: The stage it comes from; empty for records.
        rows: Number of rows; 0 for records.
        size: Bytes.
        sha256: Hash of the content.
        schema: Column → SQL type, in order; empty for records.
    """

    path: str
    table: str
    stage: str
    rows: int
    size: int
    sha256: str
    schema: dict[str, str]


@dataclass(frozen=True)
class Manifest:
    """What a run holds.

    Attributes:
        run_id: Its id.
        generation: Its place in the sequence of runs.
        published_at: UTC time, ISO 8601 with microseconds, without zone.
        fingerprint: Hash of the inputs' identity, the config and the code.
        identity: Hash of the config, the code and the inputs' paths, rows and footers.
        files: Its files in order.
    """

    run_id: str
    generation: int
    published_at: str
    fingerprint: str
    identity: str
    files: tuple[PublishedFile, ...]

    def to_json(self) -> dict[str, Any]:
        """As it is written."""
        return {"format_version": FORMAT_VERSION, **asdict(self)}

    @property
    def results(self) -> dict[str, str]:
        """Hash by path of the tables and counts: equal for runs with the same results."""
        return {file.path: file.sha256 for file in self.files if file.table}


def parse_manifest(content: bytes, path: Path) -> Manifest:
    """Parse the content of a manifest.

    Raises:
        DamagedError: it is not a manifest, or has another format version.
    """
    try:
        record = json.loads(content)
        version = record.pop("format_version")
        files = tuple(published_file(file) for file in record.pop("files"))
        manifest = Manifest(files=files, **record)
        texts = (manifest.run_id, manifest.published_at, manifest.fingerprint, manifest.identity)
        has_right_types = _are(str, texts) and type(manifest.generation) is int
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        message = f"{path} is not the manifest of a run ({error})"
        raise DamagedError(message) from error
    if version != FORMAT_VERSION:
        message = f"{path} has format version {version}; this thresher reads {FORMAT_VERSION}"
        raise DamagedError(message)
    if not has_right_types:
        message = f"{path} is not the manifest of a run (a value has the wrong type)"
        raise DamagedError(message)
    return manifest


def published_file(record: dict[str, Any]) -> PublishedFile:
    """Parse the entry of a file.

    Raises:
        ValueError: a value has the wrong type, or the path leads out of the run (TypeError: a key is missing or new).
    """
    file = PublishedFile(**record)
    texts = (file.path, file.table, file.stage, file.sha256, *file.schema, *file.schema.values())
    has_right_types = _are(str, texts) and _are(int, (file.rows, file.size))
    if not has_right_types or ".." in PurePosixPath(file.path).parts or file.path.startswith("/"):
        message = f"the entry of {file.path!r} is broken"
        raise ValueError(message)
    return file


def _are(kind: type, values: Iterable[object]) -> bool:
    return all(type(value) is kind for value in values)


def faults(folder: Path, manifest: Manifest, *, hashes: bool = True) -> dict[str, str]:
    """Compare a run's folder with its manifest; return missing, changed and extra files, and links, by path.

    Args:
        folder: The folder of the run.
        manifest: What it should hold.
        hashes: Whether to read every file; otherwise only names, kinds and sizes are compared.
    """
    present = dict(_walk(folder, ""))
    differing = {}
    for file in manifest.files:
        path = folder / file.path
        size = present.get(file.path)
        if size is None:
            differing[file.path] = f"{path} is missing"
        elif size < 0:
            differing[file.path] = f"{path} is a link or not a file"
        elif size != file.size:
            differing[file.path] = f"{path} has changed since it was published"
        elif hashes and (fault := _fault_of_content(path, file.sha256)) is not None:
            differing[file.path] = fault
    listed = {file.path for file in manifest.files} | {MANIFEST}
    return differing | {name: f"{folder / name} is not in the manifest" for name in sorted(present.keys() - listed)}


def _walk(folder: Path, below: str) -> Iterator[tuple[str, int]]:
    """Yield path and size of all files below a folder, without following links; the size of other entries is -1."""
    with storage_errors(f"reading {folder}"), os.scandir(folder / below) as entries:
        for entry in entries:
            path = f"{below}{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                yield from _walk(folder, f"{path}/")
            elif entry.is_file(follow_symlinks=False):
                yield path, entry.stat(follow_symlinks=False).st_size
            else:
                yield path, -1


def _fault_of_content(path: Path, sha256: str) -> str | None:
    """Return what is wrong with the content of a file, or None if it is what was published."""
    try:
        return None if own_sha256(path) == sha256 else f"{path} has changed since it was published"
    except DamagedError as error:
        return str(error)


@dataclass(frozen=True)
class KeptRun:
    """A published run that was not deleted.

    Attributes:
        folder: Its folder.
        run_id: Its id.
        manifest: Its commit record; None where that is damaged.
        manifest_sha256: Hash of the manifest; empty where that is damaged.
        damage: What is missing, changed or extra, as sentences by path in the folder.
    """

    folder: Path
    run_id: str
    manifest: Manifest | None
    manifest_sha256: str
    damage: dict[str, str]

    @property
    def is_readable(self) -> bool:
        """Whether all its tables are intact."""
        return self.manifest is not None and not self.left_out

    @property
    def left_out(self) -> tuple[str, ...]:
        """Its damaged files of tables, sorted; its manifest, if that is damaged."""
        tables = {MANIFEST} if self.manifest is None else self.manifest.results.keys()
        return tuple(sorted(self.damage.keys() & tables))

    def shown(self) -> Manifest | None:
        """Return its manifest without the damaged tables."""
        if self.manifest is None or self.is_readable:
            return self.manifest
        undamaged = tuple(file for file in self.manifest.files if not file.table or file.path not in self.damage)
        return replace(self.manifest, files=undamaged)


def read_kept_run(
    layout: Layout, name: str, expected: str = "", marked: Iterable[str] = (), *, hashes: bool = False
) -> KeptRun:
    """Read one kept run.

    Args:
        layout: The results folder.
        name: Name of the run's folder.
        expected: The hash of its manifest; empty where it is not known.
        marked: Files that were found damaged before; they count as damaged unless every file is read.
        hashes: Whether to read every file; otherwise only names, kinds and sizes are compared.
    """
    folder = layout.runs / name
    try:
        manifest, sha256 = _manifest(folder, name, expected)
    except DamagedError as error:
        return KeptRun(folder, run_id_of(name), None, "", {MANIFEST: str(error)})
    damage = faults(folder, manifest, hashes=hashes)
    for path in () if hashes else manifest.results.keys() & set(marked):
        damage.setdefault(path, f"{folder / path} has changed since it was published")
    return KeptRun(folder, run_id_of(name), manifest, sha256, damage)


def _manifest(folder: Path, name: str, expected: str) -> tuple[Manifest, str]:
    path = folder / MANIFEST
    if folder.is_symlink() or not folder.is_dir():
        message = f"{folder} is {'a link' if folder.is_symlink() else 'missing'}"
        raise DamagedError(message)
    content = read_own(path)
    digest = hashlib.sha256(content).hexdigest()
    if expected not in {"", digest}:
        message = f"{path} has changed since it was published"
        raise DamagedError(message)
    manifest = parse_manifest(content, path)
    if run_name(manifest.generation, manifest.run_id) != name:
        message = f"{path} is the manifest of another run"
        raise DamagedError(message)
    return manifest, digest


# Rows of the tables that tell how runs and attempts went, from manifests and from the records in JSON.


HISTORY_ROWS = 10_000  # the rows of a table of a run that has more are not in `history`

_Row = tuple[Any, ...]


def in_history(file: PublishedFile, manifest: Manifest) -> bool:
    """Whether `history` holds the rows of a file: those of a table of a run that has at most HISTORY_ROWS."""
    return bool(file.table) and sum(each.rows for each in manifest.files if each.table == file.table) <= HISTORY_ROWS


def runs_frame(runs: Iterable[tuple[Path, Manifest]], left_out: dict[str, tuple[str, ...]]) -> pl.DataFrame:
    """Return the table `runs`: one row per run, in the given order.

    Args:
        runs: Folder and manifest of the runs.
        left_out: Damaged files of a run by the name of its folder.
    """
    rows = []
    for folder, manifest in runs:
        folders_named = Layout(folder.parent.parent).named_folders()
        record = _record(folder)
        versions = record.get("versions")
        rows.append(
            (
                manifest.run_id,
                manifest.generation,
                *_moment_and_day(manifest, record),
                folders_named + folder.name,
                _moment(record.get("started_at")),
                _float(record.get("seconds")),
                _text(record.get("config")),
                _text(versions.get("thresher")) if isinstance(versions, dict) else None,
                _integer(record.get("peak_rss_bytes")),
                _text(record.get("verify_inputs")),
                list(left_out.get(folder.name, ())),
            )
        )
    return _frame(rows, RUNS.columns)


def record_frames(runs: Sequence[tuple[Path, Manifest]]) -> dict[str, pl.DataFrame]:
    """Return the other tables that manifest and record of every run tell, with the columns of history, by name."""
    rows: dict[str, list[_Row]] = {table.name: [] for table in RECORD_TABLES}
    makers = {STAGES: _stages, PARAMETERS: _parameters, WARNINGS: _warnings, INPUT_FILES: _input_files}
    for folder, manifest in runs:
        record = _record(folder)
        leading = (manifest.run_id, *_moment_and_day(manifest, record))
        rows[FILES.name] += [(*leading, *row) for row in _files(manifest)]
        for table, make in makers.items():
            with suppress(AttributeError, KeyError, TypeError, ValueError):  # the record of another version
                rows[table.name] += [(*leading, *row) for row in [*make(record)]]
    return {table.name: _frame(rows[table.name], (*HISTORY_COLUMNS, *table.columns)) for table in RECORD_TABLES}


def attempts_frame(records: Iterable[tuple[str, dict[str, Any]]]) -> pl.DataFrame:
    """Return the table `attempts` from the records of attempts by their ids, in order of their start."""
    rows = [
        (
            run_id,
            _text(record.get("status")),
            _integer(record.get("exit")),
            _text(record.get("error")),
            _moment(record.get("started_at")),
            _moment(record.get("ended_at")),
            _integer(record.get("generation")),
            _text(record.get("config")),
            _text(record.get("host")),
            _day(record),
        )
        for run_id, record in records
    ]
    return _frame(rows, ATTEMPTS.columns).sort("started_at", "run_id")


def history_frame(runs: Iterable[tuple[Path, Manifest]]) -> pl.DataFrame:
    """Return what rows in `history` have in front, one row per run."""
    rows = [(manifest.run_id, *_moment_and_day(manifest, _record(folder))) for folder, manifest in runs]
    return _frame(rows, HISTORY_COLUMNS)


def empty_frame(table: Table) -> pl.DataFrame:
    """Return a table of this module without a row."""
    return _frame([], table.columns)


def _stages(record: dict[str, Any]) -> Iterator[_Row]:
    kinds = {stage["name"]: stage["kind"] for stage in record["configuration"]["stages"]}
    for name, result in record["results"].items():
        inputs = record["accounting"].get(name, {}).values()
        n_rows = [sum(rows[key] for rows in inputs) for key in ("rows_in", "used")]
        omitted = [f"{table}: {reason}" for table, reason in record.get("omitted", {}).get(name, {}).items()]
        n_warnings = len(result["warnings"])
        yield (name, kinds.get(name), float(result["seconds"]), *n_rows, n_warnings, omitted, *_whence(result))
    for name, facts in record.get("absent", {}).items():
        failure = (_integer(facts["exit"]), _text(facts["error"]))
        yield (name, facts["kind"], None, None, None, 1, [], None, None, None, *failure)


def _whence(result: dict[str, Any]) -> _Row:
    """Of which run the rows of a stage are, and why it failed, if it did."""
    carried = result.get("carried_from") or {}
    whence = (_text(carried.get("run_id")), _moment(carried.get("published_at")), _text(result.get("taken_over_from")))
    return (*whence, _integer(carried.get("exit")), _text(carried.get("error")))


def _parameters(record: dict[str, Any]) -> Iterator[_Row]:
    for stage in record["configuration"]["stages"]:
        for name, value in stage.items():
            if name != "name":
                yield (stage["name"], name, json.dumps(value, ensure_ascii=False))


def _warnings(record: dict[str, Any]) -> Iterator[_Row]:
    for stage, result in record["results"].items():
        for number, warning in enumerate(result["warnings"], start=1):
            yield (stage, number, warning)
    for stage, facts in record.get("absent", {}).items():
        yield (stage, 1, facts["warning"])


def _files(manifest: Manifest) -> Iterator[_Row]:
    for file in manifest.files:
        stored = in_history(file, manifest)
        yield (file.path, file.table or None, file.stage or None, file.rows, file.size, file.sha256, stored)


def _input_files(record: dict[str, Any]) -> Iterator[_Row]:
    for file in record["inputs"]:
        yield (*_source(file), False, file["rows"], file.get("size"), file["footer_sha256"])
    for file in record.get("skipped", []):
        yield (*_source(file), True, None, None, None)


def _source(file: dict[str, Any]) -> tuple[str, str, str]:
    return file["stage"], file["input"], file["path"]


def _moment_and_day(manifest: Manifest, record: dict[str, Any]) -> _Row:
    """When a run was published, its logical date and its labels, of which runs of earlier versions have none."""
    labels = record.get("labels")
    text = json.dumps(labels, ensure_ascii=False) if isinstance(labels, dict) and labels else None
    return _moment(manifest.published_at), _day(record), text


def _day(record: dict[str, Any]) -> date | None:
    with suppress(TypeError, ValueError):
        return date.fromisoformat(record["ds"]) if "ds" in record else None
    return None


def _record(folder: Path) -> dict[str, Any]:
    """Return the record of a run; empty if it is damaged."""
    return read_record(folder / RUN_RECORD) or {}


def _frame(rows: list[_Row], columns: Sequence[Column]) -> pl.DataFrame:
    schema = {column.name: polars_types(column.type)[0] for column in columns}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _moment(value: object) -> datetime | None:
    with suppress(TypeError, ValueError):
        return datetime.fromisoformat(value).replace(tzinfo=None)  # type: ignore[arg-type]  # TypeError is expected
    return None


def _integer(value: object) -> int | None:
    return value if type(value) is int and -(1 << 63) <= value < 1 << 63 else None


def _float(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
