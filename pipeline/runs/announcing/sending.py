"""Where events go: the end of a file. Errors are the caller's to bear."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from ...safe_files import kind_in_words

if TYPE_CHECKING:
    from pathlib import Path


def append(path: Path, line: bytes) -> None:
    """Append a line to a file by one write, so that two runs do not mix their lines; a half line is taken back.

    Raises:
        OSError: the file cannot be written, or is a named pipe or a device: nobody is waited for.
    """
    no_wait = getattr(os, "O_NONBLOCK", 0)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | no_wait, 0o666)
    try:
        if kind := kind_in_words(os.fstat(descriptor).st_mode):
            message = f"it is {kind}, not a file"
            raise OSError(message)
        n_written = os.write(descriptor, line)
        if n_written < len(line):
            with suppress(OSError):
                os.ftruncate(descriptor, os.fstat(descriptor).st_size - n_written)
            message = f"no room for {len(line):,} bytes"
            raise OSError(message)
    finally:
        os.close(descriptor)
