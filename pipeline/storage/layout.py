"""A results folder: its names, its files, which survive a crash, and the manifest, the commit record of a run."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import stat
import uuid
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from datetime import date, datetime
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import duckdb
import polars as pl
from polars.exceptions import ComputeError

from ..base import run_tables
from ..base.errors import BusyError, CannotCreateError, os_fault
from ..base.paths import read_file, remove_own
from ..base.records import dataclass
from ..base.schemas import polars_types

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from ..base.schemas import Column


# The layout of a results folder.
#
# results/
#   catalog.duckdb                        tables of the latest run and of all kept runs; replaced as a whole
#   latest                                link to the folder of the latest run, replaced as a whole
#   CURRENT                               the latest run, the hash of every kept manifest, and that of the catalog
#   runs/<generation>-<run_id>/           immutable: manifest.json, run.json, <table>/<stage>.parquet, …
#   attempts/<run_id>.json                every attempt, failed ones too
#   .staging/                             the only place with unfinished things
#     CURRENT.next                        what `CURRENT` will be once the next catalog is in its place
#     <run_id>/                           the files of an unfinished run
#     <run_id>.finished/<stage>.json      a stage that it has finished: what it was counted from, and its files
#   .cache/                               what single input files answered
#   .lock                                 held by the run that may publish; never deleted
#   .store                                in the mirror of results on a store: the address where they live


FORMAT_VERSION = 1
MANIFEST = "manifest.json"
CURRENT, CATALOG, RUNS, ATTEMPTS = "CURRENT", "catalog.duckdb", "runs", "attempts"
RUN_RECORD = "run.json"
FINISHED = ".finished"
RUN_ID = re.compile(r"[0-9a-f]{12}")
RUN_NAME = re.compile(r"(?P<generation>\d{8,})-(?P<run_id>[0-9a-f]{12})")
UNFINISHED_NAME = re.compile(  # of what the program makes in `.staging/`, and of temporary files
    r"(\d{8,}-)?[0-9a-f]{12}(\.finished|\.expired|\.removed|\.duckdb[.\w]*)?|healed\.duckdb[.\w]*"
    r"|latest\.\d+(\.copy)?|\..+\.\d+\.tmp"
)


class Layout:
    """Paths of one results folder, given as an absolute path; what they are stands above.

    Attributes:
        pending: What the pointer will be: it counts from the moment at which the catalog that it names is in its place.
        wal: The file that DuckDB leaves beside a catalog that somebody opened for writing.
        states: The folder of what single input files answered; it can be removed at any time, at the cost of time.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.catalog, self.wal = root / CATALOG, root / f"{CATALOG}.wal"
        self.current, self.latest = root / CURRENT, root / "latest"
        self.runs, self.attempts, self.states = root / RUNS, root / ATTEMPTS, root / ".cache"
        self.staging = root / ".staging"
        self.pending = self.staging / f"{CURRENT}.next"
        self.lock, self.store = root / ".lock", root / ".store"

    @property
    def address(self) -> str:
        """Where the results live, if the folder is the mirror of a store; empty if they live in the folder itself."""
        with suppress(OSError, ValueError):
            return read_file(self.store).decode()
        return ""

    def named_folders(self) -> str:
        """The text in front of a run's name where the catalog names its folder: the place where it lives."""
        return f"{address}/{RUNS}/" if (address := self.address) else f"{self.runs}{os.sep}"

    def finished(self, run_id: str) -> Path:
        """The folder that notes which stages an unfinished run has finished."""
        return self.staging / f"{run_id}{FINISHED}"

    def unfinished(self) -> list[str]:
        """Ids of the unfinished runs that have finished a stage, in order of their last one."""
        folders = [path for path in self.staging.glob(f"*{FINISHED}") if path.is_dir() and not path.is_symlink()]
        noted = [(path.stat().st_mtime_ns, path) for path in folders if any(path.glob("*.json"))]
        run_ids = [path.name.removesuffix(FINISHED) for _, path in sorted(noted)]
        return [run_id for run_id in run_ids if RUN_ID.fullmatch(run_id) and (self.staging / run_id).is_dir()]

    def run(self, generation: int, run_id: str) -> Path:
        """Folder of one published run."""
        return self.runs / run_name(generation, run_id)

    def attempt_ids(self) -> list[str]:
        """Ids of all attempts that left a record, sorted."""
        names = os.listdir(self.attempts) if self.attempts.is_dir() else []  # noqa: PTH208 - many, and names suffice
        return sorted(name[:-5] for name in names if name.endswith(".json") and RUN_ID.fullmatch(name[:-5]))

    def attempt(self, run_id: str) -> Path:
        """The record of one attempt."""
        return self.attempts / f"{run_id}.json"


def run_name(generation: int, run_id: str) -> str:
    """Name of a run's folder."""
    return f"{generation:08d}-{run_id}"


def generation_of(name: str) -> int:
    """The generation in the name of a run's folder."""
    return int(name.partition("-")[0])


def run_id_of(name: str) -> str:
    """The id in the name of a run's folder."""
    return name.partition("-")[2]


def run_name_of(folder: str) -> str:
    """The name of a run in the text of its folder, as any system writes it, or in its address."""
    return folder.replace("\\", "/").rpartition("/")[2]


def new_run_id() -> str:
    """A fresh run id: 12 hexadecimal digits."""
    return uuid.uuid4().hex[:12]


# Writes that survive a crash: nothing is visible before it is complete and on disk.


PROBE = ".probe"
_CHUNK = 1 << 16
_NO_LINK, _NO_WAIT = getattr(os, "O_NOFOLLOW", 0), getattr(os, "O_NONBLOCK", 0)
_DAMAGE = {
    errno.ENOENT: "is missing",
    errno.ENOTDIR: "is missing",
    errno.EISDIR: "is not a file",
    errno.ENXIO: "is not a file",
    errno.ELOOP: "is a link",
    errno.EIO: f"cannot be read: {os.strerror(errno.EIO)}",
}
_OF_THE_PATH = {errno.EACCES, errno.EPERM, errno.EROFS, errno.EEXIST, errno.ENOTDIR, errno.ENOENT, errno.ELOOP}
_LIBRARY_ERRORS = (MemoryError, duckdb.IOException, duckdb.TransactionException, duckdb.FatalException, ComputeError)


def sync_file(path: Path) -> None:
    """Force the content of a file to disk."""
    descriptor = os.open(path, os.O_RDONLY if os.name == "posix" else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(path: Path) -> None:
    """Force the entries of a folder to disk, if the system can do that."""
    if os.name == "posix":
        sync_file(path)


class DamagedError(Exception):
    """A file that this package wrote is missing, is not a regular file, or cannot be read from the disk."""


def read_own(path: Path) -> bytes:
    """Read a file that this package wrote; a link in its place is never followed.

    Raises:
        DamagedError: it is missing, a link, not a regular file, or the disk fails.
        ThresherError: the system refuses for a reason that has nothing to do with the file.
    """
    with _opened_own(path) as descriptor, os.fdopen(descriptor, "rb", closefd=False) as file:
        return file.read()


def read_record(path: Path) -> dict[str, Any] | None:
    """Return a record in JSON, or None if it is missing or damaged."""
    with suppress(DamagedError, ValueError):
        record = json.loads(read_own(path))
        return record if isinstance(record, dict) else None
    return None


def read_start(path: Path, n_bytes: int) -> bytes:
    """Read the first bytes of a file that this package wrote; raises the errors of `read_own`."""
    with _opened_own(path) as descriptor:
        return os.read(descriptor, n_bytes)


def own_sha256(path: Path) -> str:
    """Return the hash of a file that this package wrote; raises the errors of `read_own`."""
    digest = hashlib.sha256()
    chunk = memoryview(bytearray(_CHUNK))
    with _opened_own(path) as descriptor, os.fdopen(descriptor, "rb", buffering=0, closefd=False) as file:
        while n_bytes := file.readinto(chunk):
            digest.update(chunk[:n_bytes])
    return digest.hexdigest()


@contextmanager
def reading_back(path: Path) -> Iterator[None]:
    """Treat damage to a file that this process has just written as what it is: an error of the disk."""
    try:
        yield
    except DamagedError as error:
        raise os_fault(error.__cause__ if isinstance(error.__cause__, OSError) else error, f"reading {path}") from error


@contextmanager
def _opened_own(path: Path) -> Iterator[int]:
    try:
        descriptor = os.open(path, os.O_RDONLY | _NO_LINK | _NO_WAIT)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                message = f"{path} is not a file"
                raise DamagedError(message)
            yield descriptor
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno not in _DAMAGE:
            raise os_fault(error, f"reading {path}") from error
        message = f"{path} {_DAMAGE[error.errno]}"
        raise DamagedError(message) from error


def json_bytes(value: Any) -> bytes:  # noqa: ANN401 - whatever JSON can hold
    """Return JSON with the keys in their order, which is the order of columns in a manifest."""
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()


def write_json(path: Path, value: Any) -> None:  # noqa: ANN401 - see json_bytes
    """Replace a JSON file atomically, as `write_whole`."""
    write_whole(path, json_bytes(value))


def write_whole(path: Path, content: bytes, *, scratch: Path | None = None) -> None:
    """Replace a file atomically: write a temporary file, force it to disk, rename it, and force the folder to disk.

    The temporary file is in the folder `scratch`, on the same file system; by default in that of the file.

    Raises:
        ThresherError: the disk is full or failing; see `os_fault`.
    """
    temporary = (scratch or path.parent) / f".{path.name}.{os.getpid()}.tmp"
    with storage_errors(f"writing {path}"):
        try:
            remove_own(temporary, temporary.parent)
            with temporary.open("xb") as file:  # never through a link that stands there
                file.write(content)
            sync_file(temporary)
            temporary.replace(path)
        finally:
            remove_own(temporary, temporary.parent)
        sync_folder(path.parent)


def remove_whole(path: Path, scratch: Path, root: Path) -> None:
    """Remove a folder by one rename: it is there or gone, never a part of it. Anything else there is removed, too.

    The folder `scratch`, on the same file system, takes it; what a kill leaves there is the next run's to remove.
    `root` lies above both, see `remove_own`.
    """
    if path.is_symlink() or not path.is_dir():
        remove_own(path, root)
        return
    scratch.mkdir(exist_ok=True)
    aside = scratch / f"{path.name}.removed"
    remove_own(aside, root, as_far_as_possible=True)
    path.rename(aside)
    sync_folder(path.parent)
    remove_own(aside, root)


def make_folder(path: Path, option: str = "output") -> None:
    """Create a folder that must be writable; in messages `option`, a key of a config or an option, names it.

    Raises:
        CannotCreateError: it cannot be created or written, or DuckDB could not open a catalog in it.
        StorageError: the disk is full or failing.
    """
    refused = next((sign for sign in "?\\" if sign in str(path) and sign != os.sep), None)
    if refused is not None:
        message = f"the output folder {path} has a '{refused}' in its path, where DuckDB cannot open files"
        raise CannotCreateError(message, remedy=f"Choose another folder with {option}.")
    try:
        path.mkdir(parents=True, exist_ok=True)
        probe = path / f"{PROBE}.{os.getpid()}"
        probe.touch()
        remove_own(probe, path)
    except OSError as error:
        fault = os_fault(error, f"the output folder {path} cannot be written")
        if error.errno in _OF_THE_PATH:
            raise CannotCreateError(
                fault.message, remedy=f"Choose another folder with {option}, or change its permissions."
            ) from error
        raise fault from error


@contextmanager
def storage_errors(what: str) -> Iterator[None]:
    """Translate errors of the operating system, also as libraries report them, into a `ThresherError`."""
    try:
        yield
    except (OSError, *_LIBRARY_ERRORS) as error:
        raise os_fault(error, what) from error


@dataclass(frozen=True)
class PublishedFile:
    """One file of a run; of a record, which is no table, `table` and `stage` are empty, and `rows` is 0.

    Attributes:
        path: Relative to the run's folder, with `/`.
        table: The view it belongs to.
        stage: The stage it comes from.
        rows: Number of rows.
        size: Bytes.
        sha256: Hash of the content.
        schema: Column → SQL type, in order.
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
    """The content of a run.

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

    Without `hashes` no file is read: only names, kinds and sizes are compared.
    """
    present, differing = dict(_walk(folder, "")), {}
    for file in manifest.files:
        path, size = folder / file.path, present.get(file.path)
        try:
            if size is None:
                differing[file.path] = f"{path} is missing"
            elif size < 0:
                differing[file.path] = f"{path} is a link or not a file"
            elif size != file.size or (hashes and own_sha256(path) != file.sha256):
                differing[file.path] = f"{path} has changed since it was published"
        except DamagedError as error:
            differing[file.path] = str(error)
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


@dataclass(frozen=True)
class KeptRun:
    """A published run that was not deleted.

    Attributes:
        folder: Its folder.
        run_id: Its id.
        manifest: Its commit record, and `manifest_sha256` its hash; None and empty where it is damaged.
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
    """Read one kept run by the name of its folder, and the hash of its manifest, empty where it is not known.

    Files that are `marked` were found damaged before; they count as damaged unless every file is read (`hashes`);
    otherwise only names, kinds and sizes are compared.
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

_Row = dict[str, Any]  # values by column


def in_history(file: PublishedFile, manifest: Manifest) -> bool:
    """Whether `history` holds the rows of a file: of a table that has at most HISTORY_ROWS in its run."""
    return bool(file.table) and sum(each.rows for each in manifest.files if each.table == file.table) <= HISTORY_ROWS


def runs_frame(runs: Iterable[tuple[Path, Manifest]], left_out: dict[str, tuple[str, ...]]) -> pl.DataFrame:
    """Return the table `runs`, a row for folder and manifest of each; `left_out` by folder are its damaged files."""
    rows = []
    for folder, manifest in runs:
        record, about = _record_and_front(folder, manifest)
        versions = record.get("versions")
        about["generation"] = manifest.generation
        about["path"] = Layout(folder.parent.parent).named_folders() + folder.name
        about["version"] = versions.get("thresher") if isinstance(versions, dict) else None
        rows.append(record | about | {"left_out": list(left_out.get(folder.name, ()))})
    return _frame(rows, run_tables.RUNS.columns)


def record_frames(runs: Sequence[tuple[Path, Manifest]]) -> dict[str, pl.DataFrame]:
    """Return the other tables that manifest and record of every run tell, with the columns of history, by name."""
    rows: dict[str, list[_Row]] = {table.name: [] for table in run_tables.RECORD_TABLES}
    makers = {
        run_tables.STAGES: _stages,
        run_tables.PARAMETERS: _parameters,
        run_tables.WARNINGS: _warnings,
        run_tables.INPUT_FILES: _input_files,
    }
    for folder, manifest in runs:
        record, front = _record_and_front(folder, manifest)
        rows[run_tables.FILES.name] += [front | row for row in _files(manifest)]
        for table, make in makers.items():
            with suppress(AttributeError, KeyError, TypeError, ValueError):  # the record of another version
                rows[table.name] += [front | row for row in [*make(record)]]
    return {
        table.name: _frame(rows[table.name], (*run_tables.HISTORY_COLUMNS, *table.columns))
        for table in run_tables.RECORD_TABLES
    }


def attempts_frame(records: Iterable[tuple[str, dict[str, Any]]]) -> pl.DataFrame:
    """Return the table `attempts` from the records of attempts by their ids, in order of their start."""
    rows = (record | {"run_id": run_id} for run_id, record in records)
    return _frame(rows, run_tables.ATTEMPTS.columns).sort("started_at", "run_id")


def history_frame(runs: Iterable[tuple[Path, Manifest]]) -> pl.DataFrame:
    """Return what rows in `history` have in front, one row per run."""
    return _frame((_record_and_front(*run)[1] for run in runs), run_tables.HISTORY_COLUMNS)


def _stages(record: dict[str, Any]) -> Iterator[_Row]:
    kinds = {stage["name"]: stage["kind"] for stage in record["configuration"]["stages"]}
    for name, result in record["results"].items():
        inputs = record["accounting"].get(name, {}).values()
        omitted = [f"{table}: {reason}" for table, reason in record.get("omitted", {}).get(name, {}).items()]
        carried = result.get("carried_from") or {}  # of which run its rows are, and why it failed, if it did
        yield {
            "stage": name,
            "kind": kinds.get(name),
            "seconds": float(result["seconds"]),
            "rows_in": sum(rows["rows_in"] for rows in inputs),
            "rows_used": sum(rows["used"] for rows in inputs),
            "n_warnings": len(result["warnings"]),
            "omitted": omitted,
            "carried_from": carried.get("run_id"),
            "carried_since": carried.get("published_at"),
            "taken_over_from": result.get("taken_over_from"),
            "exit": carried.get("exit"),
            "error": carried.get("error"),
        }
    for name, facts in record.get("absent", {}).items():
        failure = {key: facts[key] for key in ("kind", "exit", "error")}
        yield {"stage": name, "n_warnings": 1, "omitted": [], **failure}


def _parameters(record: dict[str, Any]) -> Iterator[_Row]:
    for stage in record["configuration"]["stages"]:
        for name, value in stage.items():
            if name != "name":
                yield {"stage": stage["name"], "parameter": name, "value": json.dumps(value, ensure_ascii=False)}


def _warnings(record: dict[str, Any]) -> Iterator[_Row]:
    for stage, result in record["results"].items():
        for number, warning in enumerate(result["warnings"], start=1):
            yield {"stage": stage, "number": number, "warning": warning}
    for stage, facts in record.get("absent", {}).items():
        yield {"stage": stage, "number": 1, "warning": facts["warning"]}


def _files(manifest: Manifest) -> Iterator[_Row]:
    for file in manifest.files:
        about = {"result_table": file.table or None, "stage": file.stage or None, "n_rows": file.rows}
        stored = {"bytes": file.size, "sha256": file.sha256, "in_history": in_history(file, manifest)}
        yield {"path": file.path, **about, **stored}


def _input_files(record: dict[str, Any]) -> Iterator[_Row]:
    for file in record["inputs"]:
        yield file | {"skipped": False, "n_rows": file["rows"], "bytes": file.get("size")}
    for file in record.get("skipped", []):
        yield {"stage": file["stage"], "input": file["input"], "path": file["path"], "skipped": True}


def _record_and_front(folder: Path, manifest: Manifest) -> tuple[dict[str, Any], _Row]:
    """Return the record of a run, empty if it is damaged, and what its rows have in front in history.

    Runs of earlier versions have neither logical date nor labels.
    """
    record = read_record(folder / RUN_RECORD) or {}
    labels = record.get("labels")
    text = json.dumps(labels, ensure_ascii=False) if isinstance(labels, dict) and labels else None
    moment = {"run_id": manifest.run_id, "published_at": manifest.published_at}
    return record, moment | {"ds": record.get("ds"), "labels": text}


_READ: dict[str, Callable[[Any], Any]] = {  # how a value of a record is read as that of a column, by its type
    "BIGINT": lambda value: value if type(value) is int and -(1 << 63) <= value < 1 << 63 else None,
    "DOUBLE": lambda value: float(value) if isinstance(value, int | float) else None,
    "VARCHAR": lambda value: value if isinstance(value, str) else None,
    "DATE": date.fromisoformat,
    "TIMESTAMP": lambda value: datetime.fromisoformat(value).replace(tzinfo=None),
}


def _frame(rows: Iterable[_Row], columns: Sequence[Column]) -> pl.DataFrame:
    """Return a table; a value that is not of the type of its column, as of another version, is NULL."""
    schema = {column.name: polars_types(column.type)[0] for column in columns}
    values = [[_value(row.get(column.name), column.type) for column in columns] for row in rows]
    return pl.DataFrame(values, schema=schema, orient="row")


def _value(value: Any, kind: str) -> Any:  # noqa: ANN401 - what JSON can hold, and what a column can
    with suppress(TypeError, ValueError):
        return _READ[kind](value) if kind in _READ else value
    return None


class LostRaceError(BusyError):
    """Another run was published to the store of the results while this one was being made."""
