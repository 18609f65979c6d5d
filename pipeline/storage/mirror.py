"""Results on a store: made in, and read from, a results folder here, the mirror.

Everything that reads or makes results works on the mirror as on any results folder. Before, it is brought up to date: a
run is brought into `.incoming/`, checked against its manifest, and put in its place by one rename. A file whose content
on the store is not what was published is empty in the mirror, so that whoever reads the run finds it damaged.

To publish, the objects of a run are written, read back and compared; then the pointer, `CURRENT`, is replaced, if
nobody else replaced it. It is the commit: it names every kept run and the hash of its manifest. What else lies on the
store is not published, however complete it looks, unless its attempt says so. The catalog follows; if the publisher is
killed before, the next run writes it.

There are two mirrors: one in which runs are made, held by its lock while a run is at work, and one for readers, so that
neither waits for the other. The first also keeps what only this machine needs: the stages that an attempt has finished,
and the answers of single files.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
import time
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from ..base.errors import (
    BusyError,
    CannotCreateError,
    ConfigError,
    NoInputError,
    StorageError,
    ThresherError,
    UnavailableError,
)
from ..base.paths import remove_own
from ..base.records import dataclass
from ..sources.stores import CHUNK_BYTES, Bucket, T
from .layout import (
    ATTEMPTS,
    CATALOG,
    CURRENT,
    MANIFEST,
    RUN_ID,
    RUN_NAME,
    RUNS,
    DamagedError,
    Layout,
    LostRaceError,
    Manifest,
    faults,
    generation_of,
    make_folder,
    own_sha256,
    parse_manifest,
    read_own,
    run_id_of,
    storage_errors,
    write_whole,
)
from .state import CRASHED, PUBLISHED, READINGS, RUNNING, UNFINISHED, Pointer, parse_pointer, status_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ..sources.stores import Address
    from .layout import PublishedFile


MOST_REMOVED = 500  # keys of one request
PART_BYTES = 8 << 20


Version = dict[str, str]  # the state of an object, as the store tells it apart from every other: ETag, perhaps a number


class RemoteFolder(Bucket):
    """A folder on a store, which need not exist; keys are relative to it, with `/`.

    Every method repeats requests that fail for a reason that may pass, within bounds, and then raises a ThresherError
    whose class says what the store refuses.
    """

    needs = "listing, getting, putting and deleting objects"

    def __init__(self, address: Address, *, what: str) -> None:
        super().__init__(address, what=what)
        self._folder = address

    def folders(self, below: str) -> set[str]:
        """Return the names of the folders directly below a folder."""
        prefix = self._key(below)
        ask = partial(self._obstore.list_with_delimiter, self._store, prefix)
        names = self._tried(self.address.at(prefix), "listing", ask)["common_prefixes"]
        return {str(name).rpartition("/")[2] for name in names}

    def entries(self, below: str) -> dict[str, tuple[int, datetime]]:
        """Return bytes and time of all objects below a folder, by their keys relative to it."""
        prefix = self._key(below)

        def ask() -> dict[str, tuple[int, datetime]]:
            listed = (each for chunk in self._obstore.list(self._store, prefix) for each in chunk)
            return {each["path"].removeprefix(f"{prefix}/"): (each["size"], each["last_modified"]) for each in listed}

        return self._tried(self.address.at(prefix), "listing", ask)

    def content(self, key: str) -> tuple[bytes, Version] | None:
        """Return content and version of an object; None if there is none."""

        def ask() -> tuple[bytes, Version]:
            answer = self._obstore.get(self._store, self._key(key))
            number = answer.meta["version"]
            version = {"e_tag": answer.meta["e_tag"] or ""} | ({} if number is None else {"version": number})
            return bytes(answer.bytes()), version

        return self._if_there(key, ask)

    def sha256(self, key: str, path: Path | None = None) -> str | None:
        """Read an object, write it to a file if one is given, and return its hash; None if there is no such object."""

        def ask() -> str:
            digest = hashlib.sha256()
            with nullcontext() if path is None else path.open("wb") as file:
                for chunk in self._obstore.get(self._store, self._key(key)).stream(min_chunk_size=CHUNK_BYTES):
                    digest.update(chunk)
                    if file is not None:
                        file.write(chunk)
            return digest.hexdigest()

        return self._if_there(key, ask)

    def upload(self, key: str, source: Path | bytes, *, kind: str | None = None) -> None:
        """Write an object, whole or not at all; `kind` is the type of its content."""
        options: dict[str, Any] = {} if kind is None else {"attributes": {"Content-Type": kind}}
        put = partial(self._obstore.put, self._store, self._key(key), source, chunk_size=PART_BYTES, **options)
        with self._creating():
            self._tried(self.address.at(self._key(key)), "writing", put)

    def swap(self, key: str, content: bytes, version: Version | None) -> bool:
        """Write an object if it still has a version, or if there is none and `version` is None; else return False.

        Where an answer was lost, False can also mean that the object was written: its content tells.
        """
        kinds = self._obstore.exceptions

        def ask() -> bool:
            try:
                self._obstore.put(self._store, self._key(key), content, mode=version or "create")
            except (kinds.PreconditionError, kinds.AlreadyExistsError):
                return False
            except FileNotFoundError:
                if version is None:
                    raise
                return False  # it was removed
            return True

        with self._creating():
            return self._tried(self.address.at(self._key(key)), "writing", ask)

    def remove(self, keys: Iterable[str]) -> None:
        """Remove objects; those that are not there are left out."""
        paths = [self._key(key) for key in keys]
        for start in range(0, len(paths), MOST_REMOVED):
            chunk = paths[start : start + MOST_REMOVED]
            self._tried(self.address.at(chunk[0]), "removing", partial(self._removed, chunk))

    def _removed(self, paths: list[str]) -> None:
        try:
            self._obstore.delete(self._store, paths)
        except FileNotFoundError:  # where a store tells of the first that is missing, the others are still there
            for path in paths if len(paths) > 1 else ():
                self._removed([path])

    def _if_there(self, key: str, ask: Callable[[], T]) -> T | None:
        try:
            return self._tried(self.address.at(self._key(key)), "reading", ask)
        except NoInputError:
            return None

    def _key(self, key: str) -> str:
        return "/".join(name for name in (self._folder.key, key.strip("/")) if name)

    @contextmanager
    def _creating(self) -> Iterator[None]:
        """A bucket that is not there cannot be written: that is no missing input."""
        try:
            yield
        except NoInputError as error:
            raise CannotCreateError(error.message, remedy="Make the bucket, or name another.") from None


THREADS = 8
INCOMING = ".incoming"
SWAPS = 3
LOOKING = 0.2  # seconds between two looks whether a signal asked to stop
ABANDONED = timedelta(days=1)  # an upload takes less
DEFAULT_LIMIT = 20 * 1000**3
PATIENCE = 600.0  # seconds that a reader waits for another one to bring the mirror up to date
IN_USE = 3600.0  # seconds since a mirror was used, in which it is not removed
PRIVATE = 0o700
_WORK, _READ = "work", "read"
_MIRROR = re.compile(rf"[0-9a-f]{{16}}/({_WORK}|{_READ}|verify-\w+)")


@dataclass(frozen=True)
class StoredPointer:
    """The pointer as the store holds it.

    Where it is missing its content is empty and its version None; what it says is None where it is damaged, too.
    """

    content: bytes = b""
    version: Version | None = None
    says: Pointer | None = None

    @property
    def manifests(self) -> dict[str, str]:
        """Hashes of the manifests of the runs that it names."""
        return {} if self.says is None else self.says.manifests


@dataclass
class Mirror:
    """The mirror of a results folder on a store.

    Attributes:
        layout: The mirror.
        address: Where the results live.
        objects: The store.
        check: Raises if a signal asked to stop.
        pointer: The pointer, as it was when the mirror was last brought up to date.
        unsettled: Ids of the attempts that were at work then, as the store has it.
    """

    layout: Layout
    address: str
    objects: RemoteFolder
    check: Callable[[], None] = lambda: None
    pointer: StoredPointer = field(default_factory=StoredPointer, init=False)
    unsettled: list[str] = field(default_factory=list, init=False)

    def bring_here(self) -> None:
        """Bring the mirror up to date; the caller holds its lock."""
        make_folder(self.layout.root, "XDG_CACHE_HOME")
        with storage_errors(f"bringing {self.address} to {self.layout.root}"):
            write_whole(self.layout.store, self.address.encode())
            for reading in range(READINGS):
                self.pointer = self.read_pointer()
                is_whole = self._bring()
                if is_whole or (reading and self.read_pointer().version == self.pointer.version):
                    break  # else a run was published, or removed, meanwhile

    def read_pointer(self) -> StoredPointer:
        """Read the pointer from the store."""
        read = self.objects.content(CURRENT)
        if read is None:
            return StoredPointer()
        with suppress(DamagedError):
            return StoredPointer(*read, parse_pointer(read[0], self.layout.current))
        return StoredPointer(*read)

    def _bring(self) -> bool:
        """Bring runs, then what makes them visible; return whether nothing was missing or another one's."""
        self._bring_attempts()
        says = self.pointer.says
        kept = {name for name in self.objects.folders(RUNS) if name in self.pointer.manifests or self._is_kept(name)}
        kept |= set() if says is None else {says.run}
        self._clear(kept)
        last = max(kept, key=generation_of, default="")
        is_whole = [self._bring_run(name, is_latest=name == last) for name in sorted(kept)]
        is_whole.append(self._bring_catalog())
        if not self.pointer.content:
            remove_own(self.layout.current, self.layout.root)
        elif _sha256(self.layout.current) != hashlib.sha256(self.pointer.content).hexdigest():
            write_whole(self.layout.current, self.pointer.content)
        return all(is_whole)

    def _bring_attempts(self) -> None:
        """Bring the records of attempts that are not here, or were at work; remove those that went."""
        here = self.layout.attempts
        here.mkdir(exist_ok=True)
        names = [name for name in self.objects.entries(ATTEMPTS) if RUN_ID.fullmatch(name.removesuffix(".json"))]
        wanted = [name for name in names if status_of(self.layout, name[:-5]) in {None, RUNNING, CRASHED}]
        with ThreadPoolExecutor(THREADS, thread_name_prefix="thresher-mirror") as pool:
            read_together = pool.map(self.objects.content, [f"{ATTEMPTS}/{name}" for name in wanted])
            for name, read in zip(wanted, read_together, strict=True):
                if read is not None:
                    write_whole(here / name, read[0])
        for path in here.iterdir():
            if path.name not in names and not path.name.startswith("."):
                remove_own(path, self.layout.root)
        self.unsettled = [name[:-5] for name in wanted if status_of(self.layout, name[:-5]) == RUNNING]

    def _is_kept(self, name: str) -> bool:
        """Whether a run was published that the pointer does not name: its attempt tells, or there is no pointer."""
        if RUN_NAME.fullmatch(name) is None:
            return False
        status = status_of(self.layout, run_id_of(name))
        is_published = status == PUBLISHED or (self.pointer.says is None and status not in UNFINISHED)
        return is_published and self.objects.content(f"{RUNS}/{name}/{MANIFEST}") is not None

    def _clear(self, kept: set[str]) -> None:
        """Remove what is not published any more; the finished stages of a run that never was go back to staging."""
        remove_own(self.layout.root / INCOMING, self.layout.root, as_far_as_possible=True)
        self.layout.runs.mkdir(exist_ok=True)
        for name in os.listdir(self.layout.runs):  # noqa: PTH208 - names suffice
            if name not in kept:
                self.take_back(self.layout.runs / name)

    def take_back(self, folder: Path) -> None:
        """Remove the folder of a run from the published ones; its finished stages the next run takes over."""
        with suppress(OSError, ThresherError):
            staged = self.layout.staging / run_id_of(folder.name)
            if self.layout.finished(run_id_of(folder.name)).is_dir() and not staged.exists():
                folder.rename(staged)
            else:
                remove_own(folder, self.layout.root)

    def _bring_run(self, name: str, *, is_latest: bool) -> bool:
        """Bring a run unless it is here; return whether it is complete and as it was published."""
        folder = self.layout.runs / name
        if self._is_here(folder, is_latest=is_latest):
            return True
        incoming = self.layout.root / INCOMING / name
        incoming.mkdir(parents=True)
        manifest = self._bring_manifest(name, incoming)
        files = () if manifest is None else manifest.files
        with ThreadPoolExecutor(THREADS, thread_name_prefix="thresher-mirror") as pool:
            jobs = [pool.submit(self._bring_file, name, incoming, file) for file in files]
            is_whole = [job.result() for job in jobs]
        # put an empty file in the place of every object that no manifest lists, so that it is seen
        for key in self.objects.entries(f"{RUNS}/{name}"):
            path = incoming / key
            is_below = not {"", ".", ".."} & set(key.split("/"))
            if is_below and not path.exists() and (incoming / MANIFEST).exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch()
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
        differs = bool(faults(folder, manifest, hashes=is_latest))
        if differs or not is_latest:
            return not differs
        there = {path: size for path, (size, _) in self.objects.entries(f"{RUNS}/{folder.name}").items()}
        return MANIFEST in there and all(there.get(file.path) == file.size for file in manifest.files)

    def _bring_manifest(self, name: str, incoming: Path) -> Manifest | None:
        read = self.objects.content(f"{RUNS}/{name}/{MANIFEST}")
        if read is None:
            return None
        (incoming / MANIFEST).write_bytes(read[0])
        if self.pointer.manifests.get(name) not in {None, "", hashlib.sha256(read[0]).hexdigest()}:
            return None
        with suppress(DamagedError):
            return parse_manifest(read[0], incoming / MANIFEST)
        return None

    def _bring_file(self, name: str, incoming: Path, file: PublishedFile) -> bool:
        path = incoming / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        for _ in range(2):  # what breaks off on the way is another content, too
            sha256 = self.objects.sha256(f"{RUNS}/{name}/{file.path}", path)
            if sha256 is None:
                remove_own(path, self.layout.root)
                return False
            if sha256 == file.sha256:
                return True
        path.write_bytes(b"")
        return False

    def _bring_catalog(self) -> bool:
        """Bring the catalog; return whether it is the one that the pointer names, since another one is not read."""
        says, path = self.pointer.says, self.layout.catalog
        named = "" if says is None else says.catalog.sha256
        if _sha256(path) == named:
            return True
        folder = self.layout.root / INCOMING
        folder.mkdir(exist_ok=True)
        sha256 = self.objects.sha256(CATALOG, folder / CATALOG)
        if sha256 is None:
            remove_own(path, self.layout.root)
        else:
            (folder / CATALOG).replace(path)
        return sha256 == named or says is None

    def publish(self, folder: Path, manifest: Manifest, pointer: Pointer) -> None:
        """Upload a run and make it the latest; once this returns, readers see it.

        Raises:
            LostRaceError: another run was published meanwhile.
            StorageError: the store does not hold what was written.
            UnavailableError: the store does not answer; the message says if the run may be published all the same.
            Interrupted: a signal asked to stop.
        """
        hashes = {file.path: file.sha256 for file in manifest.files} | {MANIFEST: own_sha256(folder / MANIFEST)}
        with ThreadPoolExecutor(THREADS, thread_name_prefix="thresher-upload") as pool:
            jobs = [pool.submit(self._upload, folder, path, sha256) for path, sha256 in hashes.items()]
            try:
                pending = set(jobs)
                while pending:
                    done, pending = wait(pending, LOOKING, FIRST_COMPLETED)
                    for job in done:
                        job.result()
                    self.check()
            finally:
                for job in jobs:
                    job.cancel()
        self._commit(pointer)

    def _upload(self, folder: Path, path: str, sha256: str) -> None:
        """Write a file of the run, and read it back."""
        key = f"{RUNS}/{folder.name}/{path}"
        for _ in range(2):
            self.objects.upload(key, folder / path)
            if self.objects.sha256(key) == sha256:
                return
        message = f"{self.address}/{key} was written, but does not hold what was written"
        raise StorageError(message, remedy="Run again; if it happens again, the store is failing.")

    def _commit(self, pointer: Pointer) -> None:
        """Replace the pointer, if it is still the one that this run is based on."""
        content, base = pointer.to_bytes(), self.pointer
        for _ in range(SWAPS):
            now = self._swapped(pointer, base)
            if now.content == content or pointer.run in now.manifests:  # perhaps another run is on top already
                self.pointer = now
                return
            is_of_same_run = now.says is not None and base.says is not None and now.says.run == base.says.run
            if now.version != base.version and not is_of_same_run:
                break
            base = now  # the same run still, of which expiry has written the pointer again
        message = f"another run was published to {self.address} meanwhile"
        raise LostRaceError(message, remedy="Run again.")

    def _swapped(self, pointer: Pointer, base: StoredPointer) -> StoredPointer:
        """Ask for the pointer to be replaced, and return what it says now."""
        try:
            if self.objects.swap(CURRENT, pointer.to_bytes(), base.version):
                return StoredPointer(pointer.to_bytes())
        except UnavailableError as lost:
            with suppress(ThresherError):
                return self.read_pointer()
            told = f"whether {pointer.run} is published is not known: {lost.message}"
            remedy = "Run again once the store answers: the run then turns out to be there, or is made again."
            raise UnavailableError(told, remedy=remedy) from None
        return self.read_pointer()

    def complete(self, pointer: Pointer, catalog: Path) -> Iterator[str]:
        """Write what follows the pointer; yield what could not be written, which the next run writes again."""
        try:
            self.objects.upload(CATALOG, catalog)
        except ThresherError as error:
            yield f"{pointer.run} is published, but {CATALOG} is not up to date: {error.message}"
        with suppress(ThresherError, DamagedError):
            for run_id in self.unsettled:
                if status_of(self.layout, run_id) != RUNNING:
                    self.upload_attempt(self.layout.attempt(run_id))
            # remove runs that were never published, and whose upload ended more than a day ago
            limit = datetime.now(UTC) - ABANDONED
            for name in self.objects.folders(RUNS) - set(os.listdir(self.layout.runs)):  # noqa: PTH208 - names suffice
                entries = self.objects.entries(f"{RUNS}/{name}")
                if all(modified < limit for _, modified in entries.values()):
                    self.remove_runs([name])

    def upload_attempt(self, path: Path) -> None:
        """Put the record of an attempt on the store."""
        self.objects.upload(f"{ATTEMPTS}/{path.name}", read_own(path))

    def check_conditions(self) -> None:
        """Refuse a store that does not honour the conditions of writes, before the first run is made."""
        if self.pointer.version is not None:
            return
        key = f".probe/{datetime.now(UTC):%Y%m%dT%H%M%S%f}"
        self.objects.swap(key, b"1", None)
        is_honoured = not self.objects.swap(key, b"2", None)
        with suppress(ThresherError):
            self.objects.remove([key])
        if not is_honoured:
            message = f"{self.address}: the store ignores conditions of writes, so that of two runs one could be lost"
            raise ConfigError(message, remedy="Use a store that honours If-None-Match and If-Match, or a folder here.")

    def send_back(self) -> Iterator[str]:
        """Write what was healed in the mirror to the store: pointer and catalog; yield what could not be."""
        content = read_own(self.layout.current)
        if content != self.pointer.content and not self.objects.swap(CURRENT, content, self.pointer.version):
            yield f"another run was published to {self.address} meanwhile, which brings the catalog up to date"
            return
        if self.objects.sha256(CATALOG) != own_sha256(self.layout.catalog):
            self.objects.upload(CATALOG, self.layout.catalog)

    def remove_runs(self, names: Sequence[str], attempts: Sequence[Path] = ()) -> None:
        """Remove runs, which the pointer names no more, from the store; each begins with its manifest."""
        for name in names:
            folder = f"{RUNS}/{name}"
            self.objects.remove([f"{folder}/{MANIFEST}"])
            self.objects.remove([f"{folder}/{key}" for key in self.objects.entries(folder)])
        self.objects.remove([f"{ATTEMPTS}/{path.name}" for path in attempts])


def _sha256(path: Path) -> str:
    try:
        return own_sha256(path)
    except DamagedError:
        return ""


@dataclass(frozen=True)
class ResultsStore:
    """A results folder on a store, at an address as people write it, which `connect` opens.

    Its mirrors are in `folder`; those of all results may have `limit` bytes together.
    """

    address: str
    connect: Callable[[], RemoteFolder]
    folder: Path
    limit: int = DEFAULT_LIMIT

    @property
    def work(self) -> Path:
        """The mirror in which runs are made."""
        return self.folder / _WORK

    def mirror(self, root: Path) -> Mirror:
        """Return the mirror in a folder, whose lock is the caller's business.

        The folder of all of them is closed to other users, as a bucket may be.
        """
        with suppress(OSError):  # told when a mirror is made in it
            self.folder.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
        return Mirror(Layout(root), self.address, self.connect())

    def bring_here(self, mirror: Mirror) -> None:
        """Bring a mirror up to date, whose lock the caller holds, and make room."""
        mirror.bring_here()
        make_room(self.folder.parent, self.limit, kept=self.folder)

    def read_mirror(self) -> Path:
        """Return the folder of the readers' mirror, up to date."""
        root = self.folder / _READ
        mirror = self.mirror(root)
        make_folder(root, "XDG_CACHE_HOME")
        with storage_errors(f"locking {root}"):
            try:
                with FileLock(root / ".lock", timeout=PATIENCE):
                    self.bring_here(mirror)
            except Timeout as error:
                message = f"another process is copying {self.address} to {root} for longer than {PATIENCE:.0f} seconds"
                raise BusyError(message, remedy="Wait for it to end, then read again.") from error
        return root

    @contextmanager
    def fresh_copy(self) -> Iterator[Path]:
        """Copy everything that the store holds to a folder that is removed in the end, reading every object."""
        with storage_errors(f"copying {self.address} to {self.folder}"):
            self.folder.mkdir(parents=True, exist_ok=True)
            root = Path(tempfile.mkdtemp(prefix="verify-", dir=self.folder))
        try:
            with self.naming(root):
                self.mirror(root).bring_here()
                yield root
        finally:
            remove_own(root, self.folder, as_far_as_possible=True)

    def named(self, text: str, root: Path | None = None) -> str:
        """Name the address in a text where that has a folder here; `root` is a further one."""
        for folder in (self.work, self.folder / _READ, *(() if root is None else (root,))):
            text = text.replace(str(folder), self.address)
        return text

    @contextmanager
    def naming(self, root: Path | None = None) -> Iterator[None]:
        """Let errors name the address, not the mirrors, or another folder here."""
        try:
            yield
        except ThresherError as error:
            error.reword(lambda text: self.named(text, root))
            raise


def make_room(folder: Path, limit: int, *, kept: Path) -> None:
    """Remove the mirrors in folders below one that were not used for longest, until the others are within a limit.

    The mirrors in `kept` stay, as do those that were used within the last hour.
    """
    with suppress(OSError):
        named = [path for path in folder.glob("*/*") if _MIRROR.fullmatch(path.relative_to(folder).as_posix())]
        mirrors = [path for path in named if path.is_dir() and not (path.is_symlink() or path.parent.is_symlink())]
        sizes = {mirror: _size(mirror) for mirror in mirrors}
        excess = sum(sizes.values()) - limit
        for mirror in sorted(mirrors, key=_last_use):
            if excess <= 0:
                return
            if mirror.parent == kept or time.time() - _last_use(mirror) < IN_USE:
                continue
            with suppress(Timeout, OSError), FileLock(mirror / ".lock", timeout=0):
                remove_own(mirror, folder, as_far_as_possible=True)
                excess -= sizes[mirror]


def _size(folder: Path) -> int:
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += os.lstat(os.path.join(parent, name)).st_size  # noqa: PTH118 - many
    return total


def _last_use(mirror: Path) -> float:
    """When a mirror was brought up to date: its file that names the store is written then."""
    layout = Layout(mirror)
    with suppress(OSError):
        return (layout.store if layout.store.is_file() else mirror).stat().st_mtime
    return 0.0
