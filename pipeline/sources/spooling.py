"""Rows that can be read only once, or only in another format, written to a Parquet file for temporary data."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import DataError, StorageError, os_error_number, os_fault

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SPOOLED = "rows.parquet"
PRIVATE = 0o700
PREFIX = "thresher-rows-"


class TemporaryFolder:
    """A folder that is removed when nothing refers to this object, or when the process ends.

    Args:
        scratch: The folder that it is made in, which is made if need be; None: that of the system.
    """

    def __init__(self, scratch: Path | None) -> None:
        if scratch is not None:
            scratch.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=scratch))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


def spooled(write: Callable[[Path], None], label: str, scratch: Path | None, *, name: str) -> tuple[Path, object]:
    """Write rows to a Parquet file in a folder for temporary data.

    Args:
        write: Writes them to a path.
        label: What messages call them.
        scratch: As for `TemporaryFolder`.
        name: Name of the input in messages.

    Returns:
        The file, and what removes it once nothing refers to it.

    Raises:
        DataError: a file that the rows come from is not there, or a Parquet file cannot hold the rows.
        StorageError: the folder is full.
        ThresherError: the operating system fails; by the number of its error.
    """
    with spooling(label, name=name):
        folder = TemporaryFolder(scratch)
        write(folder.path / SPOOLED)
    return folder.path / SPOOLED, folder


@contextmanager
def spooling(label: str, *, name: str) -> Iterator[None]:
    """Tell in one sentence why rows cannot be written to the folder for temporary data; errors as for `spooled`."""
    try:
        yield
    except FileNotFoundError as error:  # of what the rows come from: the folder is there
        message = f"input {name}: the rows of {label} cannot be read: {str(error).splitlines()[0]}"
        raise DataError(message, remedy="Check the paths that it reads.") from error
    except OSError as error:
        if os_error_number(error) is None:  # Arrow raises it of rows that it cannot hold, too
            reason = next(iter(str(error).splitlines()), type(error).__name__)
            message = f"input {name}: the rows of {label} cannot be read: {reason}"
            remedy = "Leave out the columns that are not needed, or give them other types."
            raise DataError(message, remedy=remedy) from error
        fault = os_fault(error, f"input {name}: writing the rows of {label} to the folder for temporary data")
        if isinstance(fault, StorageError):
            fault.remedy = "Free some space, or set resources.scratch to a larger folder."
        raise fault from error
