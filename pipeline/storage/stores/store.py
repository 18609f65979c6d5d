"""A results folder on a store, as this machine works on it: where its mirrors are, and how much room they may take.

There are two mirrors: one in which runs are made, held by its lock while a run is at work, and one for readers, so that
neither waits for the other. The first also keeps what only this machine needs: the stages that an attempt has finished,
and the answers of single files.
"""

from __future__ import annotations

import os
import re
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from ...errors import BusyError, ThresherError
from ...records import dataclass
from ...safe_files import remove_own
from ..durable import make_folder, storage_errors
from ..layout import Layout
from .mirror import NAME as NOTES
from .mirror import Mirror

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .remote_folder import Objects

DEFAULT_LIMIT = 20 * 1000**3
PATIENCE = 600.0  # seconds that a reader waits for another one to bring the mirror up to date
IN_USE = 3600.0  # seconds since a mirror was used, in which it is not removed
PRIVATE = 0o700
_WORK, _READ = "work", "read"
_MIRROR = re.compile(rf"[0-9a-f]{{16}}/({_WORK}|{_READ}|verify-\w+)")


@dataclass(frozen=True)
class ResultsStore:
    """A results folder on a store.

    Attributes:
        address: Where it is, as people write it.
        connect: Opens the store.
        folder: The folder of its mirrors.
        limit: Bytes that the mirrors of all results may have together.
    """

    address: str
    connect: Callable[[], Objects]
    folder: Path
    limit: int = DEFAULT_LIMIT

    @property
    def work(self) -> Path:
        """The mirror in which runs are made."""
        return self.folder / _WORK

    def work_mirror(self) -> Mirror:
        """Return the mirror in which runs are made; its lock is the caller's business."""
        self._make_private()
        return Mirror(Layout(self.work), self.address, self.connect())

    def bring_here(self, mirror: Mirror) -> None:
        """Bring a mirror up to date, whose lock the caller holds, and make room."""
        mirror.bring_here()
        make_room(self.folder.parent, self.limit, kept=self.folder)

    def read_mirror(self) -> Path:
        """Return the folder of the readers' mirror, up to date.

        Raises:
            ThresherError: the store cannot be read, or the disk is full.
            BusyError: other readers are bringing it up to date, for longer than ten minutes.
        """
        root = self.folder / _READ
        self._make_private()
        make_folder(root, "XDG_CACHE_HOME")
        with storage_errors(f"locking {root}"):
            try:
                with FileLock(root / ".lock", timeout=PATIENCE):
                    self.bring_here(Mirror(Layout(root), self.address, self.connect()))
            except Timeout as error:
                message = f"another process is copying {self.address} to {root} for longer than {PATIENCE:.0f} seconds"
                raise BusyError(message, remedy="Wait for it to end, then read again.") from error
        return root

    def _make_private(self) -> None:
        """Make the folder of the mirrors, closed to other users as a bucket may be."""
        with suppress(OSError):  # told when a mirror is made in it
            self.folder.mkdir(mode=PRIVATE, parents=True, exist_ok=True)

    @contextmanager
    def copy_as_it_is(self) -> Iterator[Path]:
        """Copy everything that the store holds, damage included, to a folder that is removed in the end."""
        with storage_errors(f"copying {self.address} to {self.folder}"):
            self.folder.mkdir(parents=True, exist_ok=True)
            root = Path(tempfile.mkdtemp(prefix="verify-", dir=self.folder))
        try:
            with self.naming(root):
                Mirror(Layout(root), self.address, self.connect()).bring_here(as_it_is=True)
                yield root
        finally:
            remove_own(root, self.folder, as_far_as_possible=True)

    def named(self, text: str) -> str:
        """Name the address in a text where that has a folder here."""
        for root in (self.work, self.folder / _READ):
            text = text.replace(str(root), self.address)
        return text

    @contextmanager
    def naming(self, root: Path | None = None) -> Iterator[None]:
        """Let errors name the address, not the mirrors, or another folder here.

        Raises:
            ThresherError: the same error.
        """
        try:
            yield
        except ThresherError as error:
            for fault in (error, *error.faults):
                texts = [None if text is None else self.named(text) for text in (fault.message, fault.remedy)]
                if root is not None:
                    texts = [None if text is None else text.replace(str(root), self.address) for text in texts]
                fault.message, fault.remedy = texts[0] or "", texts[1]
                fault.args = (fault.message,)
            raise


def make_room(folder: Path, limit: int, *, kept: Path) -> None:
    """Remove the mirrors that were not used for longest, until the others are within a limit.

    Args:
        folder: The folder of the folders of mirrors.
        limit: Bytes.
        kept: A folder of mirrors that stays, as do those that were used within the last hour.
    """
    with suppress(OSError):
        mirrors = [mirror for mirror in folder.glob("*/*") if _is_mirror(mirror, folder)]
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


def _is_mirror(path: Path, folder: Path) -> bool:
    is_named = _MIRROR.fullmatch(path.relative_to(folder).as_posix()) is not None
    return is_named and path.is_dir() and not (path.is_symlink() or path.parent.is_symlink())


def _size(folder: Path) -> int:
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += os.lstat(os.path.join(parent, name)).st_size  # noqa: PTH118 - many
    return total


def _last_use(mirror: Path) -> float:
    for name in (NOTES, ""):
        with suppress(OSError):
            return (mirror / name).stat().st_mtime
    return 0.0
