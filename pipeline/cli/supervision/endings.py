"""How a child process ended that did not end by itself: what is said of it, and what its attempt's record says."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ... import breadcrumbs
from ...breadcrumbs import Trail
from ...errors import DataError, Interrupted, ResourceError, StorageError, ThresherError
from ...records import dataclass
from ..log_lines import asks_for_json
from .child import OPENING_SECONDS, Child

if TYPE_CHECKING:
    from collections.abc import Sequence

CRASHES = (signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGSEGV)
_MB = 1_000_000
_LESS_MEMORY = "Raise memory in [resources], or use fewer or shorter group values, thresholds or replicates."


class KilledError(ThresherError):
    """The process that worked was ended by a signal from outside.

    Args:
        number: The signal.
    """

    def __init__(self, number: int) -> None:
        message = f"the process was ended from outside by {_name(number)}"
        super().__init__(message, remedy="Published results are as they were, or complete. Run again.")
        self._number = number

    @property
    def code(self) -> int:
        """128 plus the number of the signal."""
        return 128 + self._number


@dataclass(frozen=True)
class Ending:
    """The end of a child process by a signal.

    Attributes:
        trail: What it had noted.
        child: The process.
        number: The signal.
        reason: What the library that crashed said; empty if it said nothing.
        killed_for_memory: Whether the kernel has stopped a process for want of memory meanwhile.
    """

    trail: Trail
    child: Child
    number: int
    reason: str = ""
    killed_for_memory: bool = False

    def told(self, words: Sequence[str]) -> int:
        """Tell what happened on stderr and in the record of the attempt; return the exit code.

        Args:
            words: The command line, which says how errors are written.
        """
        facts = self.trail.read()
        error = self._error(facts)  # forks once more: before anything starts a thread
        from ...runs.variables import Variables  # noqa: PLC0415 - see above
        from ...storage import attempts  # noqa: PLC0415 - see above
        from ..console import Console  # noqa: PLC0415 - see above
        from ..terminal import forgive_full_stderr, open_closed_streams  # noqa: PLC0415 - see above

        error.message = Variables(secrets=facts.get("secrets", {})).concealed(error.message)
        told = error.message if error.remedy is None else f"{error.message}\n{error.remedy}"
        attempt = Path(facts["attempt"]) if "attempt" in facts else None
        if attempt is not None:
            endings = {KilledError: attempts.CRASHED, Interrupted: attempts.INTERRUPTED}
            attempts.settle_ended(attempt, endings.get(type(error), attempts.FAILED), error.code, told)
        open_closed_streams()
        forgive_full_stderr()
        log_format = "json" if asks_for_json(words) else "text"
        Console(log_format=log_format, run_id="" if attempt is None else attempt.stem).error(error)
        return error.code

    def _error(self, facts: dict[str, Any]) -> ThresherError:
        if self.child.unheeded:
            return Interrupted(self.child.unheeded)
        if self.child.stopped_for == "memory":
            return self._out_of_memory(facts)
        if self.child.stopped_for == "time":
            return _not_opened(facts)
        if self.killed_for_memory:
            message = f"the operating system has stopped the process{_at(facts)}: the machine or container has no "
            message += "memory left"
            return ResourceError(message, remedy="Lower memory or threads in [resources], or run on a larger machine.")
        return self._crash(facts) if self.number in CRASHES else KilledError(self.number)

    def _out_of_memory(self, facts: dict[str, Any]) -> ThresherError:
        held, ceiling, limit = (size / _MB for size in (self.child.resident, facts["ceiling"], facts["limit"]))
        message = (
            f"the process held {held:,.0f} MB of memory{_at(facts)}, more than {ceiling:,.0f} MB: the limit of the "
            f"engine, {limit:,.0f} MB{' by default' if facts['is_default'] else ''}, and a margin for Python"
        )
        return ResourceError(message, remedy=_LESS_MEMORY)

    def _crash(self, facts: dict[str, Any]) -> ThresherError:
        files = facts.get("files", [])
        if facts.get("activity") == breadcrumbs.SCANNING:
            files = _unreadable(files, facts.get("ceiling", 0))
        how = f"the library that reads it crashed ({_name(self.number)}{f': {self.reason}' if self.reason else ''})"
        if len(files) == 1:
            name = f"input {facts['input']}: " if facts.get("input") else ""
            return DataError(f"{name}{files[0]} cannot be read: {how}", remedy=_UNREADABLE)
        message = f"the process crashed{_at(facts)}: {_name(self.number)}{f': {self.reason}' if self.reason else ''}"
        return ThresherError(message, remedy="This is a bug of thresher or of its libraries; please report it.")


_CANNOT_READ = 1
_UNREADABLE = "It is damaged: restore it from where it came from, or leave it out by a glob."


def _unreadable(files: Sequence[str], ceiling: int) -> list[str]:
    """Read files one by one in another child; return the one at which it crashed or stopped, if there is one."""
    trail = Trail()
    trail.note(ceiling=ceiling)
    probe = Child(trail)
    if probe.fork():
        _read_all(files)
    is_at_fault = probe.wait() in {_CANNOT_READ, *(-number for number in CRASHES)}
    return list(trail.read()["files"]) if is_at_fault else []


def _read_all(files: Sequence[str]) -> None:
    """Read every value of some files and end this process."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (1, 2):
        os.dup2(nothing, standard)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    code = _CANNOT_READ
    try:
        from ...engines.file_rows import read_every_value  # noqa: PLC0415 - in this process only

        for file in files:
            breadcrumbs.begin(breadcrumbs.READING, (file,))
            read_every_value(file)
        code = 0
    finally:
        os._exit(code)


def _not_opened(facts: dict[str, Any]) -> ThresherError:
    message = f"opening {facts['files'][0]} took longer than {OPENING_SECONDS:.0f} s"
    return StorageError(message, remedy="Its disk or network share does not answer: check it, then run again.")


def _at(facts: dict[str, Any]) -> str:
    """What it was reading, in words."""
    files = facts.get("files", [])
    if not files:
        return ""
    n_more = len(files) - 1
    more = f" and {n_more:,} more file{'s' if n_more > 1 else ''}" if n_more else ""
    return f" while it read {files[0]}{more}"


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"signal {number}"
