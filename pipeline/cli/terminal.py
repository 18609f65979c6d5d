"""Text for people: nothing in a file name, a group value or a message can control the terminal."""

from __future__ import annotations

import io
import os
import shutil
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from ..visible_text import cleaned

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["cleaned", "forgive_full_stderr", "open_closed_streams", "width_of_output", "write"]


def write(text: str) -> None:
    """Write text to stdout, cleaned if stdout is a terminal."""
    sys.stdout.write(cleaned(text) if sys.stdout.isatty() else text)


def width_of_output() -> int | None:
    """Return the columns of the terminal, in a pipe those of COLUMNS; None: nobody has said."""
    asked = os.environ.get("COLUMNS", "")
    is_asked = asked.isdecimal() and int(asked) > 0
    return shutil.get_terminal_size().columns if sys.stdout.isatty() or is_asked else None


def open_closed_streams() -> None:
    """Let what is written to stdout or stderr vanish where a scheduler has started the process with it closed."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115 - no path, and never closed


class _Forgiving(io.RawIOBase):
    """A stream whose writes vanish where they cannot be written: a full disk behind a log, a reader that has gone."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def fileno(self) -> int:
        return self._descriptor

    def isatty(self) -> bool:
        return os.isatty(self._descriptor)

    def writable(self) -> bool:
        return True

    def write(self, data: Buffer, /) -> int:
        view = memoryview(data)
        with suppress(OSError):
            return os.write(self._descriptor, view)
        return len(view)


def forgive_full_stderr() -> None:
    """Let no run stop because its log cannot be written: what stderr does not take vanishes."""
    stream = sys.stderr
    if stream is sys.__stderr__ and isinstance(stream, io.TextIOWrapper):
        with suppress(OSError, ValueError):
            forgiving = io.BufferedWriter(_Forgiving(stream.fileno()))
            sys.stderr = io.TextIOWrapper(forgiving, stream.encoding, stream.errors, line_buffering=True)
