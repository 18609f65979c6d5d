"""The state of a results folder: the latest run, the kept runs, their damage, and what a crash left."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal

from ..errors import DataError, NoInputError
from ..records import dataclass
from .attempts import CRASHED, PUBLISHED, RUNNING, status_of
from .durable import storage_errors
from .kept import KeptRun, read_kept_run
from .layout import MANIFEST, RUN_NAME, Layout, generation_of, run_id_of, run_name
from .witnesses import (
    catalog_sha256,
    expected_hashes,
    links_since,
    naming,
    read_links,
    try_link,
    with_neighbours,
)

if TYPE_CHECKING:
    from pathlib import Path

    from .chain import Link
    from .manifest import Manifest

UNFINISHED = {RUNNING, CRASHED, "failed", "interrupted"}
READINGS = 5
OLDER_RUNS = 20  # kept runs before the latest that every run looks at, in turn

Hashed = Literal["none", "latest", "all"]


@dataclass(frozen=True)
class Latest:
    """The latest run: generation 0 and an empty id before the first."""

    generation: int = 0
    run_id: str = ""

    @property
    def name(self) -> str:
        """Name of its folder."""
        return run_name(self.generation, self.run_id)


@dataclass(frozen=True)
class State:
    """The state of a results folder.

    Attributes:
        layout: The folder.
        latest: The latest run.
        kept: Names of the folders of all kept runs, oldest first, the latest last, even if its folder is gone.
        runs: Those kept runs that were read, in the same order; the latest is among them.
        leftovers: Run folders that were never made visible.
        links: The links of the chain that were read, by name of the run; None for a damaged link.
        pointer: The content of `CURRENT`; None if it is missing or damaged.
        pointer_fault: Why it is None.
        catalog_sha256: Hash of the catalog; None if it is missing or not a file.
    """

    layout: Layout
    latest: Latest
    kept: tuple[str, ...]
    runs: tuple[KeptRun, ...]
    leftovers: tuple[Path, ...]
    links: dict[str, Link | None]
    pointer: Link | None
    pointer_fault: str
    catalog_sha256: str | None

    @property
    def shown(self) -> list[tuple[Path, Manifest]]:
        """Folder and manifest of the runs that readers can see, of those that were read, without damaged tables."""
        pairs = ((run.folder, run.shown()) for run in self.runs)
        return [(folder, manifest) for folder, manifest in pairs if manifest is not None]

    @property
    def catalog_link(self) -> Link | None:
        """The link of the latest run, or its copy in the pointer, that names the catalog as it is; None if neither."""
        candidates = (self.links.get(self.latest.name), self.pointer)
        of_latest = (link for link in candidates if link is not None and link.run == self.latest.name)
        return next((link for link in of_latest if link.catalog_sha256 == self.catalog_sha256), None)

    @property
    def lost(self) -> frozenset[str]:
        """Kept runs that readers cannot see because their manifests are damaged; of runs not read, as it was noted."""
        existing = self.catalog_link
        noted = set() if existing is None else set(existing.lost) & set(self.kept)
        noted -= {run.folder.name for run in self.runs}
        return frozenset(noted | {run.folder.name for run in self.runs if run.manifest is None})

    @property
    def visible(self) -> list[str]:
        """Names of the folders of the runs that readers can see, oldest first."""
        lost = self.lost
        return [name for name in self.kept if name not in lost]

    @property
    def left_out(self) -> dict[str, tuple[str, ...]]:
        """Damaged files of tables, by name of the run; of runs that were not read, as the last catalog has it."""
        read = {run.folder.name: run.left_out for run in self.runs if run.manifest is not None}
        existing = self.catalog_link
        noted = {} if existing is None else existing.left_out
        every = {name: read.get(name, noted.get(name, ())) for name in self.visible}
        return {name: paths for name, paths in every.items() if paths}

    def manifest_sha256(self, name: str) -> str:
        """Return the hash of the manifest of a run as it was published; empty if it is unknown."""
        link = self.links.get(name)
        if link is not None:
            return link.manifest_sha256
        return next((run.manifest_sha256 for run in self.runs if run.folder.name == name), "")

    @property
    def damage(self) -> list[str]:
        """All damage of runs, as sentences."""
        return [sentence for run in self.runs for sentence in run.damage.values()]


def read_state(layout: Layout, hashed: Hashed = "none", *, older: int | None = None) -> State:
    """Read the state of a results folder, and read it again if a run is published in the meantime.

    Args:
        layout: The folder.
        hashed: The runs of which every file is read. Manifests and links are always hashed. With `none` a catalog that
            has the size and the time of the one that was published is taken for it.
        older: How many runs before the latest are read, in turn; None: all.
    """
    for _ in range(READINGS):
        before = _versions(layout)
        state = _read_state(layout, hashed, older)
        if _versions(layout) == before:
            break
    return state


def _versions(layout: Layout) -> list[tuple[int, int, int] | None]:
    """Inode, time and size of the files that change when a run is published; None for one that is missing."""
    versions: list[tuple[int, int, int] | None] = []
    for path in (layout.catalog, layout.current):
        try:
            status = path.lstat()
            versions.append((status.st_ino, status.st_mtime_ns, status.st_size))
        except OSError:
            versions.append(None)
    return versions


def _read_state(layout: Layout, hashed: Hashed, older: int | None) -> State:
    pointer, pointer_fault = try_link(layout.current)
    names = _names(layout.chain, ".json")
    folders = _names(layout.runs, "")
    if pointer is not None and pointer.run not in {*names, *folders}:
        pointer, pointer_fault = None, f"{layout.current} names a run of another folder"
    links = read_links(layout, links_since(names, pointer) if older is not None else names)
    present_sha256 = catalog_sha256(layout, [pointer, *links.values()] if hashed == "none" else [])
    latest = _latest(layout, _reached(layout, pointer, links, present_sha256, folders), folders)
    kept = [name for name in folders if generation_of(name) < latest.generation]
    if latest.generation:
        kept.append(latest.name)
    read = kept if older is None else _in_turn(kept, older)
    links |= read_links(layout, with_neighbours(names, read) - links.keys())
    links = {name: links[name] for name in names if name in links}
    witnesses = expected_hashes(links, pointer)
    hashed_names = {"none": [], "latest": kept[-1:], "all": read}[hashed]
    runs = tuple(
        read_kept_run(layout, name, witnesses.get(name, set()), links.get(name), hashes=name in hashed_names)
        for name in read
    )
    published = set(kept)
    leftovers = tuple(
        layout.runs / name for name in folders if name not in published and not _was_published(layout, name)
    )
    return State(layout, latest, tuple(kept), runs, leftovers, links, pointer, pointer_fault, present_sha256)


def _in_turn(kept: list[str], older: int) -> list[str]:
    """Return the latest run and some before it: others after every publication, so that all have their turn."""
    if len(kept) <= older + 1:
        return kept
    first = generation_of(kept[-1]) * older
    chosen = {(first + step) % (len(kept) - 1) for step in range(older)}
    return [*(kept[place] for place in sorted(chosen)), kept[-1]]


def latest_run(layout: Layout) -> Latest:
    """Return the latest run that a reader of the catalog sees; the pointer may lag behind it after a crash."""
    pointer, _ = try_link(layout.current)
    names = _names(layout.chain, ".json")
    folders = _names(layout.runs, "")
    if pointer is not None and pointer.run not in {*names, *folders}:
        pointer = None
    links = read_links(layout, links_since(names, pointer))
    present_sha256 = catalog_sha256(layout, [pointer, *links.values()])
    return _latest(layout, _reached(layout, pointer, links, present_sha256, folders), folders)


def require_latest(layout: Layout) -> tuple[State, KeptRun, Manifest]:
    """Return the state of a results folder, its latest run, and the manifest of that run.

    Raises:
        NoInputError: no run was published there.
        DataError: the latest run is damaged.
    """
    state = read_state(layout, older=0)
    if not state.latest.generation:
        raise no_run(layout)
    run = state.runs[-1]
    if run.manifest is None or not run.is_readable:
        message = f"the latest run in {layout.root} is damaged: {next(iter(run.damage.values()))}"
        remedy = f"Run the job again, which publishes a new run; thresher verify {layout.root} lists what is damaged."
        raise DataError(message, remedy=remedy)
    return state, run, run.manifest


def no_run(layout: Layout) -> NoInputError:
    """Return the error that there is nothing to read."""
    message = f"{layout.root} holds no published run"
    return NoInputError(message, remedy="Give the output folder of a run, or run the job first.")


def _names(folder: Path, ending: str) -> list[str]:
    """Names of runs that have an entry in a folder, in order of their generation."""
    if not folder.is_dir():
        return []
    with storage_errors(f"reading {folder}"):
        entries = os.listdir(folder)  # noqa: PTH208 - of a thousand names, without a path for each
    names = (name.removesuffix(ending) for name in entries if name.endswith(ending))
    return sorted((name for name in names if RUN_NAME.fullmatch(name)), key=lambda name: (generation_of(name), name))


def _reached(
    layout: Layout,
    pointer: Link | None,
    links: dict[str, Link | None],
    present_sha256: str | None,
    folders: list[str],
) -> Latest | None:
    """Return the latest run that pointer or catalog name; None if neither names one.

    Where a catalog is there but no link that can be read names it, readers may see any run that has a link, since a
    link is written when its run is complete: then it is the last of these.
    """
    naming_links = naming(links, present_sha256)
    runs = [Latest(link.generation, link.run_id) for link in (pointer, *naming_links) if link is not None]
    is_of_pointer = pointer is not None and pointer.catalog_sha256 == present_sha256
    if not naming_links and not is_of_pointer and os.path.lexists(layout.catalog):
        runs += [Latest(generation_of(name), run_id_of(name)) for name in links if name in folders]
    return max(runs, key=lambda run: run.generation, default=None)


def _latest(layout: Layout, reached: Latest | None, folders: list[str]) -> Latest:
    """Return the latest run: the one that pointer or catalog name, or a later one that its attempt calls published.

    If nothing names a run, the last complete one counts, unless its attempt says that it did not finish.
    """
    latest = reached or Latest()
    for name in reversed(folders):
        if generation_of(name) <= latest.generation:
            break
        run_id = name.partition("-")[2]
        status = status_of(layout, run_id)
        is_complete = reached is None and status not in UNFINISHED and (layout.runs / name / MANIFEST).is_file()
        if status == PUBLISHED or is_complete:
            return Latest(generation_of(name), run_id)
    return latest


def _was_published(layout: Layout, name: str) -> bool:
    return status_of(layout, name.partition("-")[2]) == PUBLISHED
