"""Signals that ask a run to stop: noticed by whoever waits, acted on at once when repeated."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pipeline.errors import Interrupted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopRequest:
    """Whether a signal has asked to stop; safe to read from any thread."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._number = 0
        self._at_once = False

    def __call__(self, number: int, _frame: FrameType | None) -> None:
        """Signal handler: the first signal asks, the second ends the process at once."""
        if self._event.is_set():
            os._exit(128 + number)
        self._number = number
        self._event.set()
        if self._at_once:
            raise Interrupted(number)

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Stop wherever the main thread is, for work that nobody waits for and that leaves nothing half done.

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
        """Whether a stop was asked for."""
        return self._event.is_set()

    def check(self) -> None:
        """Stop here if a stop was asked for.

        Raises:
            Interrupted: with the signal that asked.
        """
        if self._event.is_set():
            raise Interrupted(self._number)


@contextmanager
def stop_requests() -> Iterator[StopRequest]:
    """Handle SIGINT and SIGTERM for a while; outside the main thread nothing is installed."""
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
    """End the process on SIGINT and SIGTERM, for work that leaves nothing half done; a run has requests of its own.

    No exception is raised, because a library may swallow it or turn it into another one.

    Args:
        say: The last words, written to stderr.
    """

    def leave(number: int, _frame: FrameType | None) -> None:
        error = Interrupted(number)
        os.write(2, say(error).encode())
        os._exit(error.code)

    ours = threading.current_thread() is threading.main_thread()
    numbers = [number for number in STOP_SIGNALS if ours and signal.getsignal(number) is not signal.SIG_IGN]
    previous = {number: signal.signal(number, leave) for number in numbers}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
