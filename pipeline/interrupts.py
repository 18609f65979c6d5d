"""Signals that ask a run to stop: the first is noticed at the next check, a second ends the process at once."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from .errors import Interrupted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
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
        """Let a signal stop the main thread wherever it is, for work that leaves nothing half done.

        Raises:
            Interrupted: a signal asked to stop.
        """
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
        """Stop here if a stop has been requested.

        Raises:
            Interrupted: a signal asked to stop.
        """
        if self._event.is_set():
            raise Interrupted(self._number)


@contextmanager
def stop_requests() -> Iterator[StopRequest]:
    """Handle SIGINT and SIGTERM within the context; outside the main thread no handler is installed."""
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return
    previous = {number: signal.signal(number, request) for number in STOP_SIGNALS}
    try:
        yield request
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


@contextmanager
def leaving_at_once(say: Callable[[Interrupted], str]) -> Iterator[None]:
    """End the process on SIGINT and SIGTERM, for work that leaves nothing half done; a run uses `stop_requests`.

    No exception is raised, because a library may swallow it or turn it into another one.

    Args:
        say: Makes the last message, which is written to stderr.
    """

    def leave(number: int, _frame: FrameType | None) -> None:
        error = Interrupted(number)
        with suppress(OSError):  # stderr is closed or full
            os.write(2, say(error).encode())
        os._exit(error.code)

    on_main_thread = threading.current_thread() is threading.main_thread()
    numbers = [number for number in STOP_SIGNALS if on_main_thread and signal.getsignal(number) is not signal.SIG_IGN]
    previous = {number: signal.signal(number, leave) for number in numbers}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
