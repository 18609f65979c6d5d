"""What single input files answered to queries, kept in the results folder for the next run: bytes by key, a file each.

A file begins with the hash of the rest, so that one which was damaged is told, and removed: whoever asks for it counts
again. What was not used for longest goes first when the files take more than they may.
"""

from __future__ import annotations

import hashlib
import re
from contextlib import suppress
from dataclasses import field
from typing import TYPE_CHECKING

from ..errors import ThresherError
from ..records import dataclass
from ..safe_files import remove_own
from .layout import DamagedError, read_own, write_whole

if TYPE_CHECKING:
    from pathlib import Path


SUFFIX = ".answers"
_N_HASH = hashlib.sha256().digest_size
_OWN = re.compile(rf"(?P<start>[0-9a-f]{{2}})/(?P=start)[0-9a-f]{{62}}{re.escape(SUFFIX)}")
_TEMPORARY = re.compile(rf"\.[0-9a-f]{{64}}{re.escape(SUFFIX)}\.\d+\.tmp")


@dataclass
class AnswerCache:
    """The answers that a results folder keeps.

    Attributes:
        root: Their folder; it need not exist.
        limit: Most bytes that they may take together, after a run.
    """

    root: Path
    limit: int
    _written: list[Path] = field(default_factory=list, init=False)
    _failed: bool = field(default=False, init=False)

    def _path(self, key: str) -> Path:
        return self.root / key[:2] / f"{key}{SUFFIX}"

    def read(self, key: str) -> bytes | None:
        """Return what is kept under a key, 64 hexadecimal digits; what is damaged is removed."""
        path = self._path(key)
        try:
            content = read_own(path)
            path.touch()
        except (DamagedError, ThresherError, OSError):
            content = b""
        if hashlib.sha256(content[_N_HASH:]).digest() == content[:_N_HASH]:
            return content[_N_HASH:]
        self._remove(path)
        return None

    def write(self, key: str, content: bytes) -> None:
        """Keep something in the place of what was under its key; an error of the disk only costs the next run time."""
        path = self._path(key)
        if self._failed:
            return
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, hashlib.sha256(content).digest() + content, scratch=self.root)
            self._written.append(path)
        except (ThresherError, OSError):  # a full disk: room for the results is worth more
            self._failed = True
            for own_path in self._written:
                self._remove(own_path)

    def clean_up(self) -> None:
        """Remove what a kill left, and what was not used for longest, until the rest is within the limit."""
        with suppress(OSError):  # of what cannot be listed nothing is removed
            for path in self.root.glob(".*.tmp"):
                if _TEMPORARY.fullmatch(path.name):
                    self._remove(path)
            files = sorted((path.lstat().st_mtime, path) for path in self.root.glob("*/*") if self._is_own(path))
            total = sum(path.lstat().st_size for _, path in files)
            for _, path in files:
                if total <= self.limit:
                    return
                total -= path.lstat().st_size
                self._remove(path)

    def _is_own(self, path: Path) -> bool:
        """Whether a file has a name of ours, and neither it nor the folder around it is a link."""
        is_named = _OWN.fullmatch(path.relative_to(self.root).as_posix()) is not None
        return is_named and path.is_file() and not (path.is_symlink() or path.parent.is_symlink())

    def _remove(self, path: Path) -> None:
        with suppress(OSError):
            remove_own(path, self.root.parent, as_far_as_possible=True)
            if path.parent != self.root:
                path.parent.rmdir()  # unless something else lies there, too
