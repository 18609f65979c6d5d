"""A run that was not deleted: its manifest, checked against the chain, and the damage in its folder."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING

from ..records import dataclass
from .durable import DamagedError, read_own
from .layout import MANIFEST, RUN_RECORD, Layout, run_name
from .manifest import Manifest, faults, parse_manifest

if TYPE_CHECKING:
    from pathlib import Path

    from .chain import Link


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
        return self.manifest is not None and not self.damage.keys() & self.manifest.results.keys()

    @property
    def left_out(self) -> tuple[str, ...]:
        """Its damaged files of tables, sorted."""
        tables = () if self.manifest is None else self.manifest.results.keys()
        return tuple(sorted(self.damage.keys() & set(tables)))

    def shown(self) -> Manifest | None:
        """Return its manifest without the damaged tables."""
        if self.manifest is None or self.is_readable:
            return self.manifest
        undamaged = tuple(file for file in self.manifest.files if not file.table or file.path not in self.damage)
        return replace(self.manifest, files=undamaged)


def read_kept_run(layout: Layout, name: str, expected: set[str], link: Link | None, *, hashes: bool) -> KeptRun:
    """Read one kept run.

    Args:
        layout: The results folder.
        name: Name of the run's folder.
        expected: The hashes of its manifest that the links name; exactly one, unless the run is damaged.
        link: Its link in the chain; None if that is missing or damaged.
        hashes: Whether to read every file; otherwise the files that the link calls broken count as damaged.
    """
    folder = layout.runs / name
    run_id = name.partition("-")[2]
    try:
        manifest, sha256 = _manifest(folder, name, expected)
    except DamagedError as error:
        return KeptRun(folder, run_id, None, "", {MANIFEST: str(error)})
    damage = faults(folder, manifest, hashes=hashes)
    marked = () if hashes or link is None else link.broken
    damage |= {path: f"{folder / path} has changed since it was published" for path in marked if path not in damage}
    recorded = next((file.sha256 for file in manifest.files if file.path == RUN_RECORD), None)
    if link is not None and link.run_record_sha256 != recorded:
        damage[RUN_RECORD] = f"{folder / RUN_RECORD} is not the one that {layout.link(name)} names"
    return KeptRun(folder, run_id, manifest, sha256, damage)


def _manifest(folder: Path, name: str, expected: set[str]) -> tuple[Manifest, str]:
    path = folder / MANIFEST
    if folder.is_symlink():
        message = f"{folder} is a link"
        raise DamagedError(message)
    if not folder.is_dir():
        message = f"{folder} is missing"
        raise DamagedError(message)
    content = read_own(path)
    digest = hashlib.sha256(content).hexdigest()
    if expected - {digest}:
        message = f"{path} has changed since it was published"
        raise DamagedError(message)
    manifest = parse_manifest(content, path)
    if run_name(manifest.generation, manifest.run_id) != name:
        message = f"{path} is the manifest of another run"
        raise DamagedError(message)
    return manifest, digest
