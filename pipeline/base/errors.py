"""The error classes; each has the exit code that a scheduler acts on.

ThresherError            70  a bug of thresher, unless a subclass says otherwise
├── UsageError            2  the command line itself is wrong
├── DataError            65  only the data can show the fault
├── NoInputError         66  no file matches
├── UnavailableError     69  a remote store does not answer
├── ResourceError        71  memory or scratch space is exhausted
├── CannotCreateError    73  the output folder cannot be written
├── StorageError         74  an input or output operation failed
├── BusyError            75  another run holds the results; try again
├── PermissionDenied     77  the operating system refuses access
├── ConfigError          78  the configuration alone shows the fault
└── Interrupted    128 + n  stopped by signal n
"""

from __future__ import annotations

import errno
import os
import re
from itertools import groupby
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MOST_FAULTS = 10


class Note(str):
    """A message about a run that changes no decision: it is kept and shown apart from warnings."""

    __slots__ = ()


class ThresherError(Exception):
    """An error: what went wrong, where, and what to do about it.

    Args:
        message: One sentence that names the file, key or column at fault.
        remedy: What the user can do; shown on a line of its own.
    """

    exit_code: ClassVar[int] = 70

    def __init__(self, message: str, *, remedy: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy
        self.faults: tuple[ThresherError, ...] = (self,)

    @property
    def code(self) -> int:
        """Exit code of the process that stops with this error."""
        return self.exit_code

    def __str__(self) -> str:
        return self.message if self.remedy is None else f"{self.message}\n{self.remedy}"

    def reword(self, worded: Callable[[str], str]) -> None:
        """Put other words into message and remedy, and into those of all faults that it combines."""
        for fault in (self, *self.faults):
            fault.message = worded(fault.message)
            fault.remedy = None if fault.remedy is None else worded(fault.remedy)
            fault.args = (fault.message,)


class UsageError(ThresherError):
    """The command line, or the SQL given on it, is wrong."""

    exit_code = 2


class InvalidQueryError(ThresherError):
    """An engine rejects a query, which is a bug unless the query contains a predicate written by the user.

    Args:
        reason: What the engine says.
        text: The query.
    """

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(f"a query failed: {reason}\n{text}", remedy="This is a bug of thresher; please report it.")
        self.reason = reason.splitlines()[0]


class DataError(ThresherError):
    """The data break the contract of their input: types, values, keys, files."""

    exit_code = 65


class UncomputableError(DataError):
    """An engine could not compute a value from the rows: it overflows, cannot be converted, or a file is broken.

    Args:
        message: One sentence.
        reason: What the engine says.
        remedy: What the user can do.
    """

    def __init__(self, message: str, reason: str, *, remedy: str | None = None) -> None:
        super().__init__(f"{message}: {reason}", remedy=remedy)
        self.reason = reason.splitlines()[0]


class NoInputError(ThresherError):
    """An input names no file that exists."""

    exit_code = 66


class UnavailableError(ThresherError):
    """A remote store cannot be reached, or fails whatever is tried."""

    exit_code = 69


class ResourceError(ThresherError):
    """A memory or scratch limit was reached."""

    exit_code = 71


class CannotCreateError(ThresherError):
    """The output folder cannot be created, or is read-only."""

    exit_code = 73


class StorageError(ThresherError):
    """Reading or writing failed: disk full, input/output error."""

    exit_code = 74


class BusyError(ThresherError):
    """Another run holds or has changed the results."""

    exit_code = 75


class PermissionDenied(ThresherError):  # noqa: N818 - named after the condition, like its exit code EX_NOPERM
    """The operating system refuses access."""

    exit_code = 77


class ConfigError(ThresherError):
    """The configuration is wrong, whatever the data are."""

    exit_code = 78


class Interrupted(ThresherError):  # noqa: N818 - a state, not a fault
    """A signal asked the run to stop.

    Args:
        signal_number: The signal, for example 2 for SIGINT and 15 for SIGTERM.
    """

    def __init__(self, signal_number: int) -> None:
        super().__init__("Stopped. Published results are unchanged.")
        self.signal_number = signal_number

    @property
    def code(self) -> int:
        """128 plus the number of the signal."""
        return 128 + self.signal_number


def together(faults: Sequence[ThresherError]) -> ThresherError:
    """Combine several faults, at least one, into one error that lists them: a line for each, and each remedy once.

    Its class, and so its exit code, is that of the first fault. Only the first ten faults are listed; the others are
    counted. An error that combines several is split again.
    """
    single = list({str(fault): fault for several in faults for fault in several.faults}.values())
    if len(single) == 1:
        return single[0]
    lines = [f"{len(single):,} faults"]
    for remedy, alike in groupby(single[:MOST_FAULTS], key=lambda fault: fault.remedy):
        lines += [fault.message for fault in alike]
        lines += [remedy] if remedy is not None else []
    if len(single) > MOST_FAULTS:
        lines.append(f"and {len(single) - MOST_FAULTS:,} more faults")
    error = type(single[0])("\n".join(lines))
    error.faults = tuple(single)
    return error


_CHECK_DISK = (StorageError, "Check the disk or the network share, then run again.")
_FREE_SPACE = (StorageError, "Free some space and run again.")
_MORE_FILES = (StorageError, "Raise the limit of open files (ulimit -n) and run again.")
_NO_ACCESS = (PermissionDenied, "Ask its owner for access, or choose another place.")
_OS_FAULTS: dict[int, tuple[type[ThresherError], str]] = {
    errno.EIO: _CHECK_DISK,
    errno.EMFILE: _MORE_FILES,
    errno.ENFILE: _MORE_FILES,
    errno.ENOSPC: _FREE_SPACE,
    errno.EDQUOT: _FREE_SPACE,
    errno.EFBIG: _FREE_SPACE,
    errno.ENOLCK: (StorageError, "Choose a folder on a file system that can lock files."),
    errno.EACCES: _NO_ACCESS,
    errno.EPERM: _NO_ACCESS,
    errno.EROFS: (CannotCreateError, "Choose a place that can be written."),
    errno.ENOMEM: (ResourceError, "Lower memory or threads in [resources], or raise the limit of the process."),
}
_NUMBER_IN_TEXT = re.compile(r'(?:\[[Ee]rrno |\(os error |"errno":")(\d+)')  # pyarrow, Polars, DuckDB


def os_fault(error: Exception, doing: str) -> ThresherError:
    """Translate an error of the operating system, or what a library raised for one, by its error number alone.

    Args:
        error: An `OSError`, a `MemoryError`, or what a library raised for one.
        doing: What was being done and on which path, for example `writing /results/CURRENT`.

    Returns:
        An error with exit code 77 if access was refused, 73 for a read-only file system, 71 if memory ran out, and 74
        for a full disk, too many open files, a failing device and all other numbers.
    """
    number = os_error_number(error)
    message = f"{doing}: {_reason(error)}"
    kind, remedy = _CHECK_DISK if number is None else _OS_FAULTS.get(number, (StorageError, None))
    return kind(message, remedy=remedy)


def _reason(error: Exception) -> str:
    """Return the text of an error, with its path if it has one."""
    if not isinstance(error, OSError) or error.strerror is None:
        return str(error).strip() or type(error).__name__
    return error.strerror if error.filename is None else f"{error.strerror} ({os.fsdecode(error.filename)})"


def os_error_number(error: Exception) -> int | None:
    """Return the number of the operating system's error behind an exception, or None if there is no such error.

    Libraries often pass on only the text of an error; then its number, or the system's own words, are looked for in it.
    """
    if isinstance(error, MemoryError):
        return errno.ENOMEM
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno
    text = str(error)
    if (numbered := _NUMBER_IN_TEXT.search(text)) is not None:
        return int(numbered[1])
    return next((number for number in _OS_FAULTS if os.strerror(number) in text), None)


_NO_ROOM = ("can't start new thread", "failed to map segment")  # of threads, and of libraries that are loaded late


def system_fault(error: BaseException) -> ThresherError | None:
    """Translate an unforeseen error that the operating system caused; return None if the error is a bug."""
    if isinstance(error, OSError | MemoryError):
        return os_fault(error, "the operating system failed")
    if isinstance(error, RuntimeError | ImportError) and any(text in str(error) for text in _NO_ROOM):
        return os_fault(MemoryError(str(error)), "the operating system failed")
    return None
