"""A thread that ends a command which holds too much memory, waits for a disk, or heeds no signal; it says why.

All three are things that the main thread cannot see to while it is in a library.
"""

from __future__ import annotations

import faulthandler
import os
import select
import signal
import sys
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from ..crash_notes import NOTES
from ..errors import Interrupted, ResourceError, StorageError, ThresherError
from ..interrupts import SAME_REQUEST, STOP_SIGNALS
from .terminal import asks_for_json

if TYPE_CHECKING:
    from collections.abc import Iterator

OPENING_SECONDS = 300.0
GROWTH = 4e9  # bytes per second: no process was seen to fill memory faster
_SHORTEST, _LONGEST = 0.01, 0.25  # seconds
_SECONDS_TO_OBEY = 1.0
_MB = 1_000_000
_LESS_MEMORY = "Raise memory in [resources], or use fewer or shorter group values, thresholds or replicates."


@contextmanager
def watched() -> Iterator[None]:
    """Watch this process within the context, and let a crash of a library say where it happened."""
    with suppress(AttributeError, OSError, ValueError):  # stderr is closed
        faulthandler.enable(all_threads=False)
    if os.name != "posix":  # Windows waits for sockets alone
        yield
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    if hasattr(os, "register_at_fork"):  # signals to a forked process are no requests to this one
        os.register_at_fork(after_in_child=lambda: signal.set_wakeup_fd(-1))
    NOTES.is_watched = True
    threading.Thread(target=_watch, args=(reader,), daemon=True).start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        os.close(writer)  # which ends the thread


def _watch(reader: int) -> None:
    requests: list[tuple[float, int]] = []
    while True:
        fault = _fault(requests)
        if fault is not None:
            _end(fault)
        limit = NOTES.memory
        pause = _LONGEST if limit is None else pause_until_full(resident_bytes(), limit.process)
        ready, _, _ = select.select([reader], (), (), pause)
        if ready:
            numbers = os.read(reader, 64)
            if not numbers:
                return
            now = time.monotonic()
            for number in numbers:
                if number in STOP_SIGNALS and (not requests or now > requests[-1][0] + SAME_REQUEST):
                    requests.append((now, number))


def _fault(requests: list[tuple[float, int]]) -> ThresherError | None:
    """Return why the process has to end, if it has to."""
    note, limit, now = NOTES.note, NOTES.memory, time.monotonic()
    if len(requests) > 1 and now > requests[1][0] + _SECONDS_TO_OBEY:
        return Interrupted(requests[1][1])
    if note.opened_at and now > note.opened_at + OPENING_SECONDS:
        message = f"opening {note.files[0]} took longer than {OPENING_SECONDS:.0f} s"
        return StorageError(message, remedy="Its disk or network share does not answer: check it, then run again.")
    held = 0 if limit is None else resident_bytes()
    if limit is None or held <= limit.process:
        return None
    message = (
        f"the process held {held / _MB:,.0f} MB of memory{f' while {note}' if note.files else ''}, more than "
        f"{limit.process / _MB:,.0f} MB: the limit of the engine, {limit.engine / _MB:,.0f} MB"
        f"{' by default' if limit.is_default else ''}, and a margin for Python"
    )
    return ResourceError(message, remedy=_LESS_MEMORY)


def _end(fault: ThresherError) -> None:
    """Tell why on stderr and in the record of the attempt, and end the process at once."""
    try:
        from ..storage import state  # noqa: PLC0415 - only here
        from .console import Console  # noqa: PLC0415 - only here

        fault.message = NOTES.concealed(fault.message)
        attempt = NOTES.attempt
        if attempt is not None:
            status = state.INTERRUPTED if isinstance(fault, Interrupted) else state.FAILED
            told = fault.message if fault.remedy is None else f"{fault.message}\n{fault.remedy}"
            state.settle_ended(attempt, status, fault.code, told)
            NOTES.forget()
        log_format = "json" if asks_for_json(sys.argv) else "text"
        Console(log_format=log_format, run_id="" if attempt is None else attempt.stem).error(fault)
        sys.stderr.flush()
    finally:
        os._exit(fault.code)


def resident_bytes() -> int:
    """Return the resident memory of this process; 0 where the system does not tell."""
    with suppress(OSError, IndexError, ValueError), open("/proc/self/statm", "rb") as file:  # noqa: PTH123 - 20 times a second
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def pause_until_full(resident: int, ceiling: int) -> float:
    """Return the seconds after which to look again, so that a process cannot grow far beyond its ceiling meanwhile."""
    return min(max((ceiling - resident) / GROWTH, _SHORTEST), _LONGEST)
