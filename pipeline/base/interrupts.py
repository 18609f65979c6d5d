"""The end of a process: signals that ask it to stop, and a crash at a file that was noted before it was opened."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from .errors import Interrupted
from .records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path
    from types import FrameType


STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
SAME_REQUEST = 0.25  # seconds: `timeout`, and some service managers, send to a process and to its group


class StopRequest:
    """A request to stop, made by a signal; it can be read from any thread."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._asked_at = 0.0
        self._number = 0
        self._at_once = False

    def __call__(self, number: int, _frame: FrameType | None) -> None:
        """Handle a signal: the first asks the run to stop, the second ends the process at once."""
        if self._event.is_set():
            if time.monotonic() < self._asked_at + SAME_REQUEST:
                return
            os._exit(128 + number)
        self._asked_at = time.monotonic()
        self._number = number
        self._event.set()
        if self._at_once:
            raise Interrupted(number)

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Let a signal stop the main thread wherever it is, for work that leaves nothing half done."""
        self.check()
        self._at_once = True
        try:
            yield
        finally:
            self._at_once = False

    @property
    def is_set(self) -> bool:
        """Whether a stop has been requested."""
        return self._event.is_set()

    def check(self) -> None:
        """Stop here, by the error Interrupted, if a stop has been requested."""
        if self._event.is_set():
            raise Interrupted(self._number)


@contextmanager
def stop_requests() -> Iterator[StopRequest]:
    """Handle SIGINT and SIGTERM within the context; outside the main thread no handler is installed."""
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return
    with _handled_by(request, STOP_SIGNALS):
        yield request


@contextmanager
def _handled_by(handler: Callable[[int, FrameType | None], None], numbers: Sequence[int]) -> Iterator[None]:
    previous = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, before in previous.items():
            signal.signal(number, before)


@contextmanager
def leaving_at_once(say: Callable[[Interrupted], str]) -> Iterator[None]:
    """End the process on SIGINT and SIGTERM, for work that leaves nothing half done; a run uses `stop_requests`.

    No exception is raised, because a library may swallow it or turn it into another one; `say` makes the last message
    on stderr.
    """

    def leave(number: int, _frame: FrameType | None) -> None:
        error = Interrupted(number)
        with suppress(OSError):  # stderr is closed or full
            os.write(2, say(error).encode())
        os._exit(error.code)

    on_main_thread = threading.current_thread() is threading.main_thread()
    numbers = [number for number in STOP_SIGNALS if on_main_thread and signal.getsignal(number) is not signal.SIG_IGN]
    with _handled_by(leave, numbers):
        yield


# What this process reads, noted before it is opened: a library that crashes at a file leaves no other word.
#
# The note is a small file beside the record of the attempt, and goes when the attempt ends. The next run that finds one
# says what was being read, and completes the record with it.


@dataclass(frozen=True)
class Note:
    """A note of the files being read.

    Attributes:
        files: Path of the file or folder, or of several that the engine reads at once.
        input: Name of the input in messages; empty: not known.
        opened_at: Since when it is being opened, by the monotonic clock; 0.0: it is being read.
    """

    files: Sequence[str] = ()
    input: str = ""
    opened_at: float = 0.0

    def __str__(self) -> str:
        """In words that follow `while`; empty if nothing is being read."""
        if not self.files:
            return ""
        n_more = len(self.files) - 1
        more = f" and {n_more:,} more file{'s' if n_more > 1 else ''}" if n_more else ""
        return f"it read {f'input {self.input}: ' if self.input else ''}{self.files[0]}{more}"


NOTHING = Note()


@dataclass(frozen=True)
class MemoryLimit:
    """How many bytes the engine, and the process, may hold, and whether nobody has set the limit of the engine."""

    engine: int
    process: int
    is_default: bool


class CrashNotes:
    """The note of this process, in memory, and in a file while an attempt is at work.

    Attributes:
        note: What is being read.
        attempt: The record of the attempt at work; None: there is none.
        concealed: Makes a text fit to be written: without values of the environment.
        memory: What the process may hold, for what watches it; None: nothing is limited.
        is_watched: Whether anything does.
    """

    def __init__(self) -> None:
        self.note = NOTHING
        self.attempt: Path | None = None
        self.concealed: Callable[[str], str] = str
        self.memory: MemoryLimit | None = None
        self.is_watched = False
        self._descriptor = -1

    def keep_beside(self, attempt: Path) -> None:
        """Write notes into a file beside the record of an attempt from now on; if there can be none, go on."""
        if attempt == self.attempt:
            return
        self.forget()
        with suppress(OSError):
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
            self._descriptor = os.open(_note_path(attempt), flags, 0o600)
            self.attempt = attempt

    def forget(self) -> None:
        """Remove the file: the attempt has ended with a word of its own."""
        if self.attempt is not None:
            with suppress(OSError):
                os.close(self._descriptor)
                _note_path(self.attempt).unlink()
        self.attempt, self._descriptor, self.note = None, -1, NOTHING

    def put(self, note: Note) -> None:
        """Note what is being read from now on."""
        self.note = note
        if self.attempt is not None:
            with suppress(OSError):  # the line is short: one write brings all of it
                os.lseek(self._descriptor, 0, os.SEEK_SET)
                os.write(self._descriptor, json.dumps(self.concealed(str(note))).encode() + b"\n")


NOTES = CrashNotes()


def _note_path(attempt: Path) -> Path:
    """Return where the notes of an attempt are, from the path of its record."""
    return attempt.with_name(f".{attempt.stem}.reading")


def noted(attempt: Path) -> str:
    """Return what an attempt was reading when its process ended, in words; empty if that is not known."""
    with suppress(OSError, ValueError):
        text = json.loads(_note_path(attempt).read_bytes().partition(b"\n")[0])
        return text if isinstance(text, str) else ""
    return ""


@contextmanager
def reading(file: object, name: str = "") -> Iterator[None]:
    """Note that one file of an input is being read within the context, and what was being read before afterwards."""
    with _noting(Note((str(file),), name or NOTES.note.input)):
        yield


@contextmanager
def opening(file: object, name: str = "") -> Iterator[None]:
    """Note that a file or folder is being opened, which takes no time unless its disk does not answer."""
    with _noting(Note((str(file),), name or NOTES.note.input, time.monotonic())):
        yield


@contextmanager
def _noting(note: Note) -> Iterator[None]:
    before = NOTES.note
    NOTES.put(note)
    try:
        yield
    finally:
        NOTES.put(before)
