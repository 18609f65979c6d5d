"""A child process that is waited for: it gets the signals of its parent, which watches its memory and its openings."""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from ... import breadcrumbs
from ...interrupts import SAME_REQUEST
from .memory_use import pause_until_full, resident_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from ...breadcrumbs import Trail
    from .native_output import NativeOutput

PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
OPENING_SECONDS = 300.0
_SECONDS_TO_OBEY = 1.0
_SECONDS_TO_DIE = 5.0
_PAUSE = 0.25


class Child:
    """A process forked from this one, which dies with it.

    Args:
        trail: Where it notes what it is at.
        output: What its libraries write to stderr; None: they write there themselves.

    Attributes:
        stopped_for: Why it was stopped: `memory`, `time`, or empty if it was not.
        resident: The memory that it held when it was last looked at, in bytes.
        unheeded: The signal that asked it to stop twice, in vain, or 0.
    """

    def __init__(self, trail: Trail, output: NativeOutput | None = None) -> None:
        self.stopped_for = ""
        self.resident = 0
        self.unheeded = 0
        self._trail = trail
        self._output = output
        self._process = 0
        self._requests: list[tuple[float, int]] = []

    def fork(self) -> bool:
        """Start it; return whether this is the child. No thread may have been started before."""
        before = signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON)
        of_children = signal.signal(signal.SIGCHLD, lambda *_: None)  # where it is ignored, no end can be waited for
        lifeline, parents_end = os.pipe()
        self._process = os.fork()
        if self._process:
            os.close(lifeline)
            self._handle_signals()
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            return False
        os.close(parents_end)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL if of_children is None else of_children)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        threading.Thread(target=_die_with_parent, args=(lifeline,), daemon=True).start()
        breadcrumbs.leave_on(self._trail)
        return True

    def wait(self) -> int:
        """Wait for its end; return its exit code, or the signal that ended it as a negative number.

        A child that has been killed, but does not end because its disk does not answer, is left behind.
        """
        killed_at = 0.0
        with _alarm() as alarm:
            while True:
                process, status = os.waitpid(self._process, os.WNOHANG)
                if process or (killed_at and time.monotonic() > killed_at + _SECONDS_TO_DIE):
                    break
                if not killed_at and self._has_to_die():
                    os.kill(self._process, signal.SIGKILL)
                    killed_at = time.monotonic()
                self._sleep(alarm)
        self._process = 0
        if self._output is not None:
            self._output.pass_on(ended=True)
        return os.waitstatus_to_exitcode(status) if process else -signal.SIGKILL

    def _handle_signals(self) -> None:
        for number in PASSED_ON:
            if signal.getsignal(number) != signal.SIG_IGN:  # as under nohup
                signal.signal(number, self._pass_on)

    def _pass_on(self, number: int, _frame: FrameType | None) -> None:
        now = time.monotonic()
        if not self._requests or now > self._requests[-1][0] + SAME_REQUEST:
            self._requests.append((now, number))
        if self._process:
            os.kill(self._process, number)

    def _has_to_die(self) -> bool:
        """Look at its memory and at what it is opening, and whether it ignores that it is asked to stop."""
        ceiling, opening_since = self._trail.watched()
        self.resident = resident_bytes(self._process)
        now = time.monotonic()
        if ceiling and self.resident > ceiling:
            self.stopped_for = "memory"
        elif opening_since and now > opening_since + OPENING_SECONDS:
            self.stopped_for = "time"
        elif len(self._requests) > 1 and now > self._requests[1][0] + _SECONDS_TO_OBEY:
            self.unheeded = self._requests[1][1]
        return bool(self.stopped_for or self.unheeded)

    def _sleep(self, alarm: int) -> None:
        """Sleep until a signal comes, the child writes something, or it is time to look again."""
        ceiling, _ = self._trail.watched()
        readers = [alarm]
        if self._output is not None and self._output.is_open:
            readers.append(self._output.reader)
        ready, _, _ = select.select(readers, (), (), pause_until_full(self.resident, ceiling) if ceiling else _PAUSE)
        if alarm in ready:
            os.read(alarm, 64)
        if self._output is not None:
            self._output.pass_on()


@contextmanager
def _alarm() -> Iterator[int]:
    """Provide a descriptor that can be read whenever a signal has come."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    try:
        yield reader
    finally:
        signal.set_wakeup_fd(before)
        os.close(reader)
        os.close(writer)


def _die_with_parent(lifeline: int) -> None:
    """Wait until the parent is gone, however it ended, and end this process."""
    with suppress(OSError):
        os.read(lifeline, 1)
    os.kill(os.getpid(), signal.SIGKILL)
