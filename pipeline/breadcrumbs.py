"""What this process is at, noted where the process that supervises it can read it, even after a crash.

Without a supervisor, as in notebooks and scripts, nothing is noted.
"""

from __future__ import annotations

import json
import mmap
import struct
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

OPENING, READING, SCANNING = "opening", "reading", "scanning"
_SIZE = 16 << 20  # of address space; memory is taken only for what is noted
_FEWER_FILES = 1000
_HEAD = struct.Struct("<QQQd")  # number of the note, odd while it is being written; its length; ceiling; opening since


class Trail:
    """The latest notes of one process, in memory that is shared by all processes forked after it was made."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, _SIZE)
        self._number = 0
        self.facts: dict[str, Any] = {}

    def note(self, **facts: Any) -> None:  # noqa: ANN401 - whatever JSON can hold
        """Add facts to what has been noted, or replace them."""
        self.facts |= facts
        text = json.dumps(self.facts).encode()
        if len(text) > _SIZE - _HEAD.size:
            text = json.dumps(self.facts | {"files": self.facts["files"][:_FEWER_FILES]}).encode()
        watched = self.facts.get("ceiling", 0), self.facts["since"] if self.facts.get("activity") == OPENING else 0.0
        _HEAD.pack_into(self._memory, 0, self._number + 1, len(text), *watched)
        self._memory[_HEAD.size : _HEAD.size + len(text)] = text
        self._number += 2
        _HEAD.pack_into(self._memory, 0, self._number, len(text), *watched)

    def watched(self) -> tuple[int, float]:
        """Return how many bytes the process may hold, 0 for any number, and since when it opens a file, or 0.0."""
        number, _, ceiling, since = _HEAD.unpack_from(self._memory)
        return (0, 0.0) if number % 2 else (ceiling, since)

    def read(self) -> dict[str, Any]:
        """Return all that has been noted, which must not be changed meanwhile; nothing if a note is not complete."""
        number, length, *_ = _HEAD.unpack_from(self._memory)
        if not number or number % 2:
            return {}
        facts: dict[str, Any] = json.loads(self._memory[_HEAD.size : _HEAD.size + length])
        return facts


_trails: list[Trail] = []


def leave_on(trail: Trail) -> None:
    """Note everything from now on; called in the process that is supervised."""
    _trails[:] = [trail]


def is_supervised() -> bool:
    """Whether another process watches this one."""
    return bool(_trails)


def note(**facts: Any) -> None:  # noqa: ANN401 - whatever JSON can hold
    """Note facts for the supervisor, if there is one."""
    for trail in _trails:
        trail.note(**facts)


def begin(activity: str, files: Sequence[str], name: str = "") -> None:
    """Note that files are being read from now on.

    Args:
        activity: `OPENING` one file or folder, which takes no time; `READING` one file; `SCANNING` several, of which
            only the engine knows when it reads which.
        files: Their paths.
        name: Name of the input in messages; empty: not known.
    """
    if _trails:
        note(activity=activity, files=list(files), input=name, since=time.monotonic())


def end() -> None:
    """Note that no file is being read any more."""
    begin("", ())


@contextmanager
def reading(file: object, name: str = "", activity: str = READING) -> Iterator[None]:
    """Note that one file is being read within the context, and what was being read before afterwards.

    Args:
        file: Its path.
        name: Name of the input in messages; empty: not known.
        activity: `READING`, or `OPENING` where it takes no time unless its disk does not answer.
    """
    if not _trails:
        yield
        return
    before = {key: _trails[0].facts.get(key, "") for key in ("activity", "files", "input")}
    begin(activity, (str(file),), name or before["input"])
    try:
        yield
    finally:
        note(**before, since=time.monotonic())
