"""A thread in which an engine works, so that a request to stop reaches the engine while a query runs."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor, wait
from concurrent.futures import TimeoutError as FutureTimeout
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..interrupts import StopRequest

T = TypeVar("T")
POLL_SECONDS = 0.05
STOP_SECONDS = 5.0


class QueryThread:
    """One thread that runs what it is given, one thing after another.

    Args:
        stop: Checked while it works; a request to stop interrupts the work.
        interrupt: Tells the engine to give up what it is doing.
        watch: Called again and again while it works; None: nobody watches.
    """

    def __init__(
        self, stop: StopRequest, interrupt: Callable[[], object], watch: Callable[[], object] | None = None
    ) -> None:
        self._stop = stop
        self._interrupt = interrupt
        self._watch = watch
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="thresher-query")
        self.is_abandoned = False

    def close(self) -> None:
        """End the thread; work that does not stop is abandoned."""
        self._executor.shutdown(wait=not self.is_abandoned)

    def run(self, work: Callable[[], T]) -> T:
        """Do some work and wait for it.

        Raises:
            Interrupted: a signal asked to stop.
        """
        return self.result(self.submit(work))

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Begin some work.

        Raises:
            Interrupted: a signal asked to stop.
        """
        self._stop.check()
        return self._executor.submit(work)

    def result(self, future: Future[T]) -> T:
        """Wait for what was begun.

        Raises:
            Interrupted: a signal asked to stop.
        """
        while True:
            try:
                return future.result(timeout=POLL_SECONDS)
            except FutureTimeout:
                if future.done():  # it ended just as the wait did
                    return future.result()
                if self._watch is not None:
                    self._watch()
            if self._stop.is_set:
                self._interrupt()
                self.is_abandoned = not wait([future], timeout=STOP_SECONDS).done
                self._stop.check()
