"""What a mirror has of the objects that may change: their ETags, and the hashes of their contents."""

from __future__ import annotations

import hashlib
import json
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import field
from typing import TYPE_CHECKING

from ...errors import ThresherError
from ...records import dataclass
from ...safe_files import remove_own
from ..chain import Link, parse_link
from ..durable import DamagedError, make_folder, own_sha256, read_own, storage_errors, write_json, write_whole
from ..layout import (
    ATTEMPTS,
    CATALOG,
    CHAIN,
    CURRENT,
    MANIFEST,
    RUN_ID,
    RUN_NAME,
    RUNS,
    Layout,
    generation_of,
    run_id_of,
)
from ..manifest import Manifest, faults, parse_manifest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from ..manifest import PublishedFile
    from .remote_folder import Entry, Objects, Version


NAME = ".synced.json"


class Notes:
    """The notes of a mirror; where they are lost, objects are read once more.

    Args:
        root: The folder of the mirror.
    """

    def __init__(self, root: Path) -> None:
        self._path = root / NAME
        self._notes: dict[str, list[str]] = {}
        with suppress(DamagedError, ThresherError, ValueError, TypeError, AttributeError):
            read = json.loads(read_own(self._path))
            self._notes = {str(key): [str(etag), str(sha256)] for key, (etag, sha256) in read.items()}

    def is_here(self, key: str, etag: str) -> bool:
        """Whether an object was brought, or sent, with this ETag."""
        return bool(etag) and self._notes.get(key, [""])[0] == etag

    def is_noted(self, key: str) -> bool:
        """Whether an object was there."""
        return key in self._notes

    def keep_only(self, folder: str, keys: Iterable[str]) -> None:
        """Forget the objects of a folder that are no longer there."""
        present = set(keys)
        gone = [key for key in self._notes if key.startswith(f"{folder}/") and key not in present]
        for key in gone:
            del self._notes[key]

    def holds(self, key: str, content: bytes) -> bool:
        """Whether an object has this content on the store, as far as is noted."""
        return self._notes.get(key, ["", ""])[1] == hashlib.sha256(content).hexdigest()

    def note(self, key: str, etag: str, content: bytes) -> None:
        """Note what an object holds."""
        self._notes[key] = [etag, hashlib.sha256(content).hexdigest()]

    def write(self) -> None:
        """Write the notes."""
        write_json(self._path, self._notes)


# The mirror of results on a store: a results folder here that holds what is published there, verified by content.
#
# Everything that reads or makes results works on the mirror as on any results folder. A run is there whole: it is
# brought into `.incoming/`, its manifest checked against the chain, its files against the manifest, and put in its
# place by one rename. A file whose content on the store is not what was published is empty in the mirror, so that
# whoever reads the run finds it damaged.


READINGS = 5
THREADS = 8
INCOMING = ".incoming"


@dataclass(frozen=True)
class Pointer:
    """The pointer to the latest run, as the store holds it.

    Attributes:
        content: Its content; empty where it is missing.
        version: Its version; None where it is missing.
        link: What it says; None where it is missing or damaged.
    """

    content: bytes = b""
    version: Version | None = None
    link: Link | None = None


@dataclass
class Mirror:
    """The mirror of a results folder on a store.

    Attributes:
        layout: The mirror.
        address: Where the results live.
        objects: The store.
        pointer: The pointer, as it was when the mirror was last brought up to date.
        notes: What the mirror has of the objects that may change.
    """

    layout: Layout
    address: str
    objects: Objects
    pointer: Pointer = field(default_factory=Pointer, init=False)
    notes: Notes = field(init=False)

    def __post_init__(self) -> None:
        self.notes = Notes(self.layout.root)

    def bring_here(self, *, as_it_is: bool = False) -> None:
        """Bring the mirror up to date; the caller holds its lock.

        Args:
            as_it_is: Whether damaged files, and files that are in no manifest, are brought as the store holds them.

        Raises:
            ThresherError: the store cannot be read, or the disk is full.
        """
        make_folder(self.layout.root, "XDG_CACHE_HOME")
        with storage_errors(f"bringing {self.address} to {self.layout.root}"):
            write_whole(self.layout.store, self.address.encode())
            for reading in range(READINGS):
                self.pointer = self.read_pointer()
                is_whole = self._bring(as_it_is=as_it_is)
                if is_whole or (reading and self.read_pointer().version == self.pointer.version):
                    break  # else a run was published, or removed, meanwhile
            self.notes.write()

    def read_pointer(self) -> Pointer:
        """Read the pointer from the store."""
        read = self.objects.content(CURRENT)
        if read is None:
            return Pointer()
        with suppress(DamagedError):
            return Pointer(*read, parse_link(read[0], self.layout.current))
        return Pointer(*read)

    def _bring(self, *, as_it_is: bool) -> bool:
        """Bring runs, then what makes them visible; return whether nothing was missing or another one's."""
        links, present = self.objects.entries(CHAIN), self.objects.folders(RUNS)
        latest = self.pointer.link
        named = {name for key in links if RUN_NAME.fullmatch(name := key.removesuffix(".json")) and key != name}
        kept = (named & present) | ({latest.run} if latest is not None else set())
        self._clear(kept)
        self._bring_changed(CHAIN, {key: entry for key, entry in links.items() if key.removesuffix(".json") in named})
        if latest is not None and latest.run not in named:  # a publisher was killed before it wrote the link
            write_whole(self.layout.link(latest.run), self.pointer.content)
        last = max(kept, key=generation_of, default="") if latest is None else latest.run
        is_whole = [self._bring_run(name, is_latest=name == last, as_it_is=as_it_is) for name in sorted(kept)]
        attempts = self.objects.entries(ATTEMPTS)
        self._bring_changed(ATTEMPTS, {key: each for key, each in attempts.items() if _is_attempt(key)})
        is_whole.append(self._bring_catalog(as_it_is=as_it_is))
        self._bring_pointer()
        for link in self.layout.chain.glob("*.json"):
            if link.stem not in named and (latest is None or link.stem != latest.run):
                remove_own(link, self.layout.root)
        return all(is_whole)

    def _clear(self, kept: set[str]) -> None:
        """Remove what is not published any more; the finished stages of a run that never was go back to staging."""
        remove_own(self.layout.root / INCOMING, self.layout.root, as_far_as_possible=True)
        self.layout.runs.mkdir(exist_ok=True)
        for name in os.listdir(self.layout.runs):  # noqa: PTH208 - names suffice
            if name not in kept:
                take_back(self.layout, self.layout.runs / name)

    def _bring_changed(self, folder: str, entries: dict[str, Entry]) -> None:
        """Bring the small objects of a folder that are not here as they are on the store; remove those that went."""
        here = self.layout.root / folder
        here.mkdir(exist_ok=True)
        self.notes.keep_only(folder, [f"{folder}/{key}" for key in entries])
        changed = [
            f"{folder}/{key}"
            for key, entry in entries.items()
            if not (self.notes.is_here(f"{folder}/{key}", entry.etag) and (here / key).is_file())
        ]
        for key, read in self._read_together(changed, self.objects.content):
            if read is not None:
                write_whole(self.layout.root / key, read[0])
                self.notes.note(key, read[1].etag, read[0])
        for path in here.iterdir():
            if path.name not in entries and folder == ATTEMPTS and not path.name.startswith("."):
                remove_own(path, self.layout.root)

    def _read_together(
        self, keys: Iterable[str], read: Callable[[str], tuple[bytes, Version] | None]
    ) -> list[tuple[str, tuple[bytes, Version] | None]]:
        keys = list(keys)
        with ThreadPoolExecutor(THREADS, thread_name_prefix="thresher-mirror") as pool:
            return list(zip(keys, pool.map(read, keys), strict=True))

    def _bring_run(self, name: str, *, is_latest: bool, as_it_is: bool) -> bool:
        """Bring a run unless it is here; return whether it is complete and as it was published."""
        folder = self.layout.runs / name
        if not as_it_is and self._is_here(folder, is_latest=is_latest):
            return True
        incoming = self.layout.root / INCOMING / name
        incoming.mkdir(parents=True)
        manifest = self._bring_manifest(name, incoming)
        files = () if manifest is None else manifest.files
        with ThreadPoolExecutor(THREADS, thread_name_prefix="thresher-mirror") as pool:
            jobs = [pool.submit(self._bring_file, name, incoming, file, as_it_is=as_it_is) for file in files]
            is_whole = [job.result() for job in jobs]
        if as_it_is:
            self._mark_extra(name, incoming)
        if folder.exists():
            folder.rename(self.layout.root / INCOMING / f"{name}.old")
        incoming.rename(folder)
        return manifest is not None and all(is_whole)

    def _is_here(self, folder: Path, *, is_latest: bool) -> bool:
        """Whether a run is here as it was published; of the latest all is read, and looked for on the store."""
        try:
            manifest = parse_manifest(read_own(folder / MANIFEST), folder)
        except (ThresherError, DamagedError):
            return False
        if faults(folder, manifest, hashes=is_latest):
            return False
        if not is_latest:
            return True
        there = self.objects.entries(f"{RUNS}/{folder.name}")
        return MANIFEST in there and all(
            file.path in there and there[file.path].size == file.size for file in manifest.files
        )

    def _bring_manifest(self, name: str, incoming: Path) -> Manifest | None:
        read = self.objects.content(f"{RUNS}/{name}/{MANIFEST}")
        if read is None:
            return None
        (incoming / MANIFEST).write_bytes(read[0])
        link = self._link(name)
        if link is not None and hashlib.sha256(read[0]).hexdigest() != link.manifest_sha256:
            return None
        with suppress(DamagedError):
            return parse_manifest(read[0], incoming / MANIFEST)
        return None

    def _link(self, name: str) -> Link | None:
        path = self.layout.link(name)
        with suppress(ThresherError, DamagedError):
            return parse_link(read_own(path), path)
        return None

    def _bring_file(self, name: str, incoming: Path, file: PublishedFile, *, as_it_is: bool) -> bool:
        path = incoming / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        for _ in range(2):  # what breaks off on the way is another content, too
            sha256 = self.objects.download(f"{RUNS}/{name}/{file.path}", path)
            if sha256 is None:
                remove_own(path, self.layout.root)
                return False
            if sha256 == file.sha256:
                return True
        if not as_it_is:
            path.write_bytes(b"")
        return False

    def _mark_extra(self, name: str, incoming: Path) -> None:
        """Put an empty file in the place of every object that no manifest lists, so that it is seen."""
        for key in self.objects.entries(f"{RUNS}/{name}"):
            path = incoming / key
            is_below = not {"", ".", ".."} & set(key.split("/"))
            if is_below and not path.exists() and (incoming / MANIFEST).exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch()

    def _bring_catalog(self, *, as_it_is: bool) -> bool:
        """Bring the catalog, if it is the one that the pointer names; another one would show other runs."""
        link, path = self.pointer.link, self.layout.catalog
        named = "" if link is None else link.catalog_sha256
        if not as_it_is and _sha256(path) == named:
            return True
        folder = self.layout.root / INCOMING
        folder.mkdir(exist_ok=True)
        sha256 = self.objects.download(CATALOG, folder / CATALOG)
        if sha256 is None or not (as_it_is or sha256 == named):
            remove_own(path, self.layout.root)
            return link is None
        if link is not None and sha256 == named:
            _restore_time(folder / CATALOG, link.catalog_identity)
        (folder / CATALOG).replace(path)
        return True

    def _bring_pointer(self) -> None:
        if not self.pointer.content:
            remove_own(self.layout.current, self.layout.root)
        elif _sha256(self.layout.current) != hashlib.sha256(self.pointer.content).hexdigest():
            write_whole(self.layout.current, self.pointer.content)


def take_back(layout: Layout, folder: Path) -> None:
    """Remove the folder of a run from the published ones; what it has of finished stages the next run takes over."""
    with suppress(OSError, ThresherError):
        staged = layout.staging / run_id_of(folder.name)
        if layout.finished(run_id_of(folder.name)).is_dir() and not staged.exists():
            folder.rename(staged)
        else:
            remove_own(folder, layout.root)


def _is_attempt(key: str) -> bool:
    return key.endswith(".json") and RUN_ID.fullmatch(key.removesuffix(".json")) is not None


def _sha256(path: Path) -> str:
    try:
        return own_sha256(path)
    except DamagedError:
        return ""


def _restore_time(path: Path, identity: str) -> None:
    """Give a catalog the time by which its link recognises it."""
    with suppress(ValueError, OSError):
        moment = int(identity.partition(":")[2])
        os.utime(path, ns=(moment, moment))
