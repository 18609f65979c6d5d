"""Publishing to a store: objects first, read back and compared; then the pointer, if nobody else replaced it.

The pointer, `CURRENT`, is the commit: it names the run, its manifest's hash, and the run before. Nothing that a store
holds beside the chain from there is a published run, however complete it looks. What comes after the pointer, the link
in the chain and the catalog, the next run writes again if this one is killed.
"""

from __future__ import annotations

from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from ...errors import ConfigError, StorageError, ThresherError, UnavailableError
from ...records import dataclass
from ..durable import DamagedError, own_sha256, read_own
from ..layout import ATTEMPTS, CATALOG, CHAIN, CURRENT, MANIFEST, RUNS, Layout
from .mirror import THREADS, Mirror, Pointer
from .remote_folder import LostRaceError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from ..chain import Link
    from ..manifest import Manifest

SWAPS = 3
LOOKING = 0.2  # seconds between two looks whether a signal asked to stop
ABANDONED = timedelta(days=1)  # an upload takes less


@dataclass
class Publisher:
    """Publishes one run to a store.

    Attributes:
        mirror: The mirror, brought up to date since the run began.
        check: Raises if a signal asked to stop.
    """

    mirror: Mirror
    check: Callable[[], None]
    _uploaded: list[str] = field(default_factory=list, init=False)

    @property
    def layout(self) -> Layout:
        """The mirror's folder."""
        return self.mirror.layout

    def publish(self, folder: Path, manifest: Manifest, link: Link) -> None:
        """Upload a run and make it the latest; once this returns, readers see it.

        Args:
            folder: Its folder in the mirror, complete.
            manifest: Its manifest.
            link: Its link in the chain, which will be the pointer.

        Raises:
            LostRaceError: another run was published meanwhile.
            StorageError: the store does not hold what was written.
            UnavailableError: the store does not answer; the message says if the run may be published all the same.
            Interrupted: a signal asked to stop.
        """
        self._mend_parent(link)
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
        self._commit(link)

    def _upload(self, folder: Path, path: str, sha256: str) -> None:
        """Write a file of the run, and read it back."""
        key = f"{RUNS}/{folder.name}/{path}"
        for _ in range(2):
            self.mirror.objects.upload(key, folder / path)
            if self.mirror.objects.sha256(key) == sha256:
                return
        message = f"{self.mirror.address}/{key} was written, but does not hold what was written"
        raise StorageError(message, remedy="Run again; if it happens again, the store is failing.")

    def _mend_parent(self, link: Link) -> None:
        """Write the link of the run before, if its publisher was killed between the pointer and the link."""
        key, pointer = f"{CHAIN}/{link.parent}.json", self.mirror.pointer
        if link.parent and pointer.link is not None and not self.mirror.notes.is_noted(key):
            self.mirror.objects.upload(key, pointer.content)

    def _commit(self, link: Link) -> None:
        """Replace the pointer, if it is still the one that this run is based on."""
        content, base = link.to_bytes(), self.mirror.pointer
        for _ in range(SWAPS):
            try:
                has_won = self.mirror.objects.swap(CURRENT, content, base.version)
                now = Pointer(content) if has_won else self.mirror.read_pointer()
            except UnavailableError as error:
                now = self._after_no_answer(error, link)
            if now.content == content or self._is_parent(link, now):
                self.mirror.pointer = now
                return
            if now.version != base.version and not _is_of_same_run(now, base):
                break
            base = now  # the same run still, of which expiry has written the pointer again
        message = f"another run was published to {self.mirror.address} meanwhile"
        raise LostRaceError(message, remedy="Run again.")

    def _after_no_answer(self, error: UnavailableError, link: Link) -> Pointer:
        """Read what the pointer says after a request to replace it got no answer.

        Raises:
            UnavailableError: there is no answer to this either.
        """
        try:
            return self.mirror.read_pointer()
        except ThresherError:
            told = f"whether {link.run} is published is not known: {error.message}"
            remedy = "Run again once the store answers: the run then turns out to be there, or is made again."
            raise UnavailableError(told, remedy=remedy) from None

    def _is_parent(self, link: Link, now: Pointer) -> bool:
        """Whether another run has been published on top of this one already."""
        return now.link is not None and now.link.parent == link.run

    def complete(self, link: Link, catalog: Path) -> Iterator[str]:
        """Write what follows the pointer; yield what could not be written, which the next run writes again."""
        for key, content in ((f"{CHAIN}/{link.run}.json", link.to_bytes()), (CATALOG, catalog)):
            try:
                etag = self.mirror.objects.upload(key, content)
                if isinstance(content, bytes):
                    self.mirror.notes.note(key, etag, content)
            except ThresherError as error:
                yield f"{link.run} is published, but {key} is not up to date: {error.message}"
        with suppress(ThresherError, DamagedError):
            self._send_settled(link.run_id)
            self.mirror.notes.write()
            remove_abandoned(self.mirror)

    def _send_settled(self, run_id: str) -> None:
        """Write the records of attempts that were killed, which say so here, but those of this run's own."""
        for path in self.layout.attempts.glob("[0-9a-f]*.json"):
            key, content = f"{ATTEMPTS}/{path.name}", read_own(path)
            if path.stem != run_id and not self.mirror.notes.holds(key, content):
                self.mirror.notes.note(key, self.mirror.objects.upload(key, content), content)


def _is_of_same_run(now: Pointer, base: Pointer) -> bool:
    return now.link is not None and base.link is not None and now.link.run == base.link.run


def upload_attempt(mirror: Mirror, path: Path) -> None:
    """Put the record of an attempt on the store."""
    content = read_own(path)
    mirror.objects.upload(f"{ATTEMPTS}/{path.name}", content)


def check_conditions(mirror: Mirror) -> None:
    """Refuse a store that does not honour the conditions of writes, before the first run is made.

    Raises:
        ConfigError: it writes an object that is there, although it was asked to write it only if there is none.
    """
    if mirror.pointer.version is not None:
        return
    key = f".probe/{datetime.now(UTC):%Y%m%dT%H%M%S%f}"
    mirror.objects.swap(key, b"1", None)
    is_honoured = not mirror.objects.swap(key, b"2", None)
    with suppress(ThresherError):
        mirror.objects.remove([key])
    if not is_honoured:
        message = f"{mirror.address}: the store ignores conditions of writes, so that of two runs one could be lost"
        raise ConfigError(message, remedy="Use a store that honours If-None-Match and If-Match, or a folder here.")


def remove_runs(mirror: Mirror, names: Sequence[str], attempts: Sequence[Path]) -> None:
    """Remove runs from the store: first their links, from then on nobody sees them, then their objects."""
    mirror.objects.remove([f"{CHAIN}/{name}.json" for name in names])
    for name in names:
        _remove_run(mirror, name)
    mirror.objects.remove([f"{ATTEMPTS}/{path.name}" for path in attempts])


def _remove_run(mirror: Mirror, name: str) -> None:
    folder = f"{RUNS}/{name}"
    keys = sorted(mirror.objects.entries(folder), key=lambda key: key != MANIFEST)
    mirror.objects.remove([f"{folder}/{key}" for key in keys])


def remove_abandoned(mirror: Mirror) -> None:
    """Remove runs that were never published, and whose upload ended more than a day ago."""
    published = {path.stem for path in mirror.layout.chain.glob("*.json")}
    limit = datetime.now(UTC) - ABANDONED
    for name in mirror.objects.folders(RUNS) - published:
        entries = mirror.objects.entries(f"{RUNS}/{name}")
        if all(entry.modified < limit for entry in entries.values()):
            _remove_run(mirror, name)


def send_back(mirror: Mirror) -> Iterator[str]:
    """Write what was healed in the mirror to the store: links, catalog and pointer; yield what could not be."""
    layout, objects = mirror.layout, mirror.objects
    content = read_own(layout.current)
    if content != mirror.pointer.content and not objects.swap(CURRENT, content, mirror.pointer.version):
        yield f"another run was published to {mirror.address} meanwhile, which brings chain and catalog up to date"
        return
    for path in sorted(layout.chain.glob("*.json")):
        key, link = f"{CHAIN}/{path.name}", read_own(path)
        if not mirror.notes.holds(key, link):
            mirror.notes.note(key, objects.upload(key, link), link)
    if objects.sha256(CATALOG) != own_sha256(layout.catalog):
        objects.upload(CATALOG, layout.catalog)
    mirror.notes.write()
