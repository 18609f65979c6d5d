"""The manifest: commit record of a run, with size, hash, rows and schema of every file; kept runs are held to it."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from ..records import dataclass
from .durable import DamagedError, own_sha256, read_own, storage_errors
from .layout import FORMAT_VERSION, MANIFEST, Layout, run_id_of, run_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path


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
