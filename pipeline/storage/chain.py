"""The chain of hashes: one link for each published run, outside the run's folder, so that it outlives the run.

A link names the hash of the run's manifest, of its record, and of its parent's manifest; the manifest names the hash of
every other file. The last link also names the hash of the catalog, and stands once more in `CURRENT`. Every link holds
a hash of itself. So each manifest has two witnesses, its own link and the next, and each can be written again from the
other.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import field
from typing import TYPE_CHECKING, Any

from ..errors import DataError
from ..records import dataclass
from .durable import DamagedError, json_bytes, read_own, write_whole
from .layout import FORMAT_VERSION, run_name

if TYPE_CHECKING:
    from pathlib import Path

    from .layout import Layout


@dataclass(frozen=True)
class Link:
    """The hashes of one published run.

    Attributes:
        generation: Its place in the sequence of runs.
        run_id: Its id.
        manifest_sha256: Hash of its manifest.
        run_record_sha256: Hash of its `run.json`.
        parent: Name of the run before; empty for the first.
        parent_manifest_sha256: Hash of that run's manifest; empty for the first.
        catalog_sha256: Hash of the catalog that made the run visible; empty where the link was written again later.
        catalog_shows: Version of that catalog, and hash of what it shows: folder, runs and what they lack.
        catalog_identity: Size and time of that catalog, by which a reader recognises it without reading it.
        broken: Files of the run that were found damaged; history leaves them out.
        left_out: Damaged files that the catalog leaves out, by name of the run.
        lost: Runs that the catalog leaves out because their manifests are damaged.
    """

    generation: int
    run_id: str
    manifest_sha256: str
    run_record_sha256: str
    parent: str
    parent_manifest_sha256: str
    catalog_sha256: str = ""
    catalog_shows: str = ""
    broken: tuple[str, ...] = ()
    catalog_identity: str = ""
    left_out: dict[str, tuple[str, ...]] = field(default_factory=dict)
    lost: tuple[str, ...] = ()

    @property
    def run(self) -> str:
        """Name of the run's folder."""
        return run_name(self.generation, self.run_id)

    def to_bytes(self) -> bytes:
        """Return the content of its file; the last key is the hash of all others."""
        record = {
            "format_version": FORMAT_VERSION,
            "generation": self.generation,
            "run_id": self.run_id,
            "run": self.run,
            "manifest_sha256": self.manifest_sha256,
            "run_record_sha256": self.run_record_sha256,
            "parent": self.parent,
            "parent_manifest_sha256": self.parent_manifest_sha256,
            "catalog_sha256": self.catalog_sha256,
            "catalog_shows": self.catalog_shows,
            "broken": list(self.broken),
            "catalog_identity": self.catalog_identity,
            "left_out": {name: list(paths) for name, paths in self.left_out.items()},
            "lost": list(self.lost),
        }
        return _signed(record)


def _signed(record: dict[str, Any]) -> bytes:
    return json_bytes(record | {"sha256": hashlib.sha256(json_bytes(record)).hexdigest()})


def read_link(path: Path) -> Link:
    """Read a link of the chain, or the pointer.

    Raises:
        DamagedError: the file is missing, or is not what was written.
        DataError: another version of thresher wrote it.
    """
    return parse_link(read_own(path), path)


def parse_link(content: bytes, path: Path) -> Link:
    """Parse the content of a link; errors are those of `read_link`."""
    changed = DamagedError(f"{path} has changed since it was written")
    try:
        record = json.loads(content)
        record.pop("sha256")
        if _signed(record) != content:
            raise changed
        if record.pop("format_version") != FORMAT_VERSION:
            message = f"{path} was written by another version of thresher"
            raise DataError(message, remedy="Read it with the version of thresher that wrote it.")
        record.pop("run")
        left_out = {name: tuple(paths) for name, paths in record.get("left_out", {}).items()}
        lists = {key: tuple(record.get(key, ())) for key in ("broken", "lost")}
        return Link(**record | lists | {"left_out": left_out})
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise changed from error


def write_link(layout: Layout, link: Link) -> None:
    """Write a link of the chain and force it to disk."""
    layout.chain.mkdir(exist_ok=True)
    write_whole(layout.link(link.run), link.to_bytes(), scratch=layout.staging)
