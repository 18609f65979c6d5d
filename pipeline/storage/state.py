"""The state of a results folder: the latest run, the kept runs, their damage, and what a crash left."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from pipeline.errors import DataError, NoInputError
from pipeline.storage.attempts import CRASHED, PUBLISHED, RUNNING, status_of
from pipeline.storage.chain import Link, read_link
from pipeline.storage.durable import DamagedError, own_sha256, storage_errors
from pipeline.storage.kept import KeptRun, read_kept_run
from pipeline.storage.layout import MANIFEST, RUN_NAME, Layout, run_name

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pipeline.storage.manifest import Manifest

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
        """Kept runs that readers cannot see because their manifests are damaged; of runs not read, as it was found."""
        standing = self.catalog_link
        found = set() if standing is None else set(standing.lost) & set(self.kept)
        found -= {run.folder.name for run in self.runs}
        return frozenset(found | {run.folder.name for run in self.runs if run.manifest is None})

    @property
    def visible(self) -> list[str]:
        """Names of the folders of the runs that readers can see, oldest first."""
        lost = self.lost
        return [name for name in self.kept if name not in lost]

    @property
    def left_out(self) -> dict[str, tuple[str, ...]]:
        """Damaged files of tables, by name of the run; of runs that were not read, as the last catalog has it."""
        read = {run.folder.name: run.left_out for run in self.runs if run.manifest is not None}
        standing = self.catalog_link
        noted = {} if standing is None else standing.left_out
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


def read_state(layout: Layout, hashed: Hashed = "none", *, older: int | None = 0) -> State:
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
    pointer, pointer_fault = _link(layout.current)
    names = _names(layout.chain, ".json")
    folders = _names(layout.runs, "")
    if pointer is not None and pointer.run not in {*names, *folders}:
        pointer, pointer_fault = None, f"{layout.current} names a run of another folder"
    links = _links(layout, _since(names, pointer) if older is not None else names)
    catalog_sha256 = _catalog_sha256(layout, [pointer, *links.values()] if hashed == "none" else [])
    latest = _latest(layout, [pointer, *_shown(links, catalog_sha256)], folders)
    kept = [name for name in folders if generation_of(name) < latest.generation]
    if latest.generation:
        kept.append(latest.name)
    read = kept if older is None else _in_turn(kept, older)
    links |= _links(layout, _with_neighbours(names, read) - links.keys())
    links = {name: links[name] for name in names if name in links}
    witnesses = _witnesses(links, pointer)
    hashed_names = {"none": [], "latest": kept[-1:], "all": read}[hashed]
    runs = tuple(
        read_kept_run(layout, name, witnesses.get(name, set()), links.get(name), hashes=name in hashed_names)
        for name in read
    )
    published = set(kept)
    leftovers = tuple(
        layout.runs / name for name in folders if name not in published and not _was_published(layout, name)
    )
    return State(layout, latest, tuple(kept), runs, leftovers, links, pointer, pointer_fault, catalog_sha256)


def _in_turn(kept: list[str], older: int) -> list[str]:
    """Return the latest run and some before it: others after every publication, so that all have their turn."""
    if len(kept) <= older + 1:
        return kept
    first = generation_of(kept[-1]) * older
    chosen = {(first + step) % (len(kept) - 1) for step in range(older)}
    return [*(kept[place] for place in sorted(chosen)), kept[-1]]


def _with_neighbours(names: list[str], read: list[str]) -> set[str]:
    """Return the names of links that bear witness to runs: their own, the one before and the one after."""
    places = {name: place for place, name in enumerate(names)}
    wanted = {places[name] + step for name in read if name in places for step in (-1, 0, 1)}
    return {names[place] for place in wanted if 0 <= place < len(names)}


def _links(layout: Layout, names: Iterable[str]) -> dict[str, Link | None]:
    return {name: _link(layout.link(name), name)[0] for name in names}


def _since(names: list[str], pointer: Link | None) -> list[str]:
    """Return the names of the links that a pointer can lag behind: all without a pointer."""
    return names if pointer is None else [name for name in names if generation_of(name) >= pointer.generation]


def latest_run(layout: Layout) -> Latest:
    """Return the latest run that a reader of the catalog sees; the pointer may lag behind it after a crash."""
    pointer, _ = _link(layout.current)
    names = _names(layout.chain, ".json")
    folders = _names(layout.runs, "")
    if pointer is not None and pointer.run not in {*names, *folders}:
        pointer = None
    links = _links(layout, _since(names, pointer))
    return _latest(layout, [pointer, *_shown(links, _catalog_sha256(layout, []))], folders)


def require_latest(layout: Layout) -> tuple[State, KeptRun, Manifest]:
    """Return the state of a results folder, its latest run, and the manifest of that run.

    Raises:
        NoInputError: no run was published there.
        DataError: the latest run is damaged.
    """
    state = read_state(layout)
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


def generation_of(name: str) -> int:
    """The generation in the name of a run's folder."""
    return int(name.partition("-")[0])


def _names(folder: Path, ending: str) -> list[str]:
    """Names of runs that have an entry in a folder, in order of their generation."""
    if not folder.is_dir():
        return []
    with storage_errors(f"reading {folder}"):
        entries = os.listdir(folder)  # noqa: PTH208 - of a thousand names, without a path for each
    names = (name.removesuffix(ending) for name in entries if name.endswith(ending))
    return sorted((name for name in names if RUN_NAME.fullmatch(name)), key=lambda name: (generation_of(name), name))


def _link(path: Path, name: str | None = None) -> tuple[Link | None, str]:
    """Return a link and an empty text, or None and what is wrong with the link."""
    try:
        link = read_link(path)
    except DamagedError as error:
        return None, str(error)
    return (link, "") if name in {None, link.run} else (None, f"{path} is the link of another run")


def _catalog_sha256(layout: Layout, trusted: Iterable[Link | None]) -> str | None:
    """Return the hash of the catalog; without reading it, if it has size and time of the one that a link names.

    A catalog that was hashed before in this process, and has not been touched since, is not read again, either.
    """
    try:
        status = layout.catalog.lstat()
        if stat.S_ISREG(status.st_mode):
            identity = f"{status.st_size}:{status.st_mtime_ns}"
            named = (link for link in trusted if link is not None and link.catalog_identity == identity)
            for link in named:
                return link.catalog_sha256
            return _sha256_of_version(layout.catalog, identity, status.st_ino, status.st_ctime_ns)
    except (OSError, DamagedError):
        pass
    return None


@lru_cache(maxsize=8)
def _sha256_of_version(path: Path, _identity: str, _inode: int, _changed_ns: int) -> str:
    return own_sha256(path)


def _shown(links: dict[str, Link | None], catalog_sha256: str | None) -> list[Link]:
    """Return the links that name the hash of the present catalog."""
    return [link for link in links.values() if link is not None and link.catalog_sha256 == catalog_sha256]


def _latest(layout: Layout, named: list[Link | None], folders: list[str]) -> Latest:
    """Return the latest run: the one that pointer or catalog name, or a later one that its attempt calls published.

    If nothing names a run, the last complete one counts, unless its attempt says that it did not finish.
    """
    links = [link for link in named if link is not None]
    reached = max(links, key=lambda link: link.generation, default=None)
    latest = Latest() if reached is None else Latest(reached.generation, reached.run_id)
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


def _witnesses(links: dict[str, Link | None], pointer: Link | None) -> dict[str, set[str]]:
    """Return the hashes that a manifest must have, from the run's own link and the next, by name of the run."""
    expected: dict[str, set[str]] = {}
    for link in (*links.values(), pointer):
        if link is not None:
            expected.setdefault(link.run, set()).add(link.manifest_sha256)
            if link.parent_manifest_sha256:
                expected.setdefault(link.parent, set()).add(link.parent_manifest_sha256)
    return expected
