"""The manifest: commit record of a run, with size, hash, rows and schema of every file."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pipeline.errors import DataError
from pipeline.storage.durable import file_sha256
from pipeline.storage.layout import FORMAT_VERSION, MANIFEST

if TYPE_CHECKING:
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


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a published run.

    Raises:
        DataError: it is missing, unreadable, or of another format version.
    """
    path = folder / MANIFEST
    try:
        record = json.loads(path.read_bytes())
        version = record.pop("format_version")
        files = tuple(PublishedFile(**file) for file in record.pop("files"))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        message = f"{path} is no manifest of a run ({error})"
        raise DataError(message, remedy="Restore the folder from a copy, or run the job again.") from error
    if version != FORMAT_VERSION:
        message = f"{path} has format version {version}; this thresher reads {FORMAT_VERSION}"
        raise DataError(message, remedy="Read it with the version of thresher that wrote it.")
    return Manifest(files=files, **record)


def faults(folder: Path, manifest: Manifest) -> list[str]:
    """What differs between a run's folder and its manifest: missing, changed and extra files."""
    found = []
    for file in manifest.files:
        path = folder / file.path
        if not path.is_file():
            found.append(f"{path} is missing")
        elif path.stat().st_size != file.size or file_sha256(path) != file.sha256:
            found.append(f"{path} has changed since it was published")
    listed = {file.path for file in manifest.files} | {MANIFEST}
    present = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    found += [f"{folder / name} is not in the manifest" for name in sorted(present - listed)]
    return found
