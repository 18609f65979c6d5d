"""What libraries write to stderr by themselves, past Python: passed on, but for the last words of a crash."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from io import TextIOWrapper
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_BLOCK = 1 << 16
_STDERR = 2
_LAST_WORDS = (b"terminate called", b"  what():")  # of the run-time library of C++


class NativeOutput:
    """A pipe in the place of stderr's descriptor in the child; what Python writes there goes past it.

    Args:
        in_words: Makes a line of the log from a line; None: it stays as it is.

    Attributes:
        reader: The descriptor to read from.
        is_open: Whether more can come.
    """

    def __init__(self, in_words: Callable[[str], str] | None = None) -> None:
        self.reader, self._writer = os.pipe()
        os.set_blocking(self.reader, False)
        self.is_open = True
        self._in_words = in_words
        self._pending = b""
        self._last_words: list[bytes] = []

    def capture(self) -> None:
        """Let native code write into the pipe; called in the child."""
        os.close(self.reader)
        stream = sys.stderr
        if isinstance(stream, TextIOWrapper):  # else stderr is closed
            descriptor = os.dup(_STDERR)
            past = open(descriptor, "w", encoding=stream.encoding, errors=stream.errors, buffering=1)  # noqa: PTH123, SIM115 - never closed
            sys.stderr = sys.__stderr__ = past  # type: ignore[misc]
        os.dup2(self._writer, _STDERR)
        os.close(self._writer)

    def watch(self) -> None:
        """Read what the child writes from now on; called in the parent."""
        os.close(self._writer)

    def pass_on(self, *, ended: bool = False) -> None:
        """Pass on what has been written so far.

        Args:
            ended: Whether no more will come.
        """
        with suppress(BlockingIOError):
            while block := os.read(self.reader, _BLOCK):
                self._pending += block
            self.is_open = False
        *lines, self._pending = self._pending.split(b"\n")
        if ended and self._pending:
            lines.append(self._pending)
        for line in lines:
            if line.startswith(_LAST_WORDS):
                self._last_words.append(line)
            else:
                self._write(line)

    @property
    def reason(self) -> str:
        """What an exception of C++ said that ended the child; empty if there was none."""
        words = [line.partition(b":")[2].strip() for line in self._last_words if line.startswith(_LAST_WORDS[1])]
        return words[-1].decode(errors="replace") if words else ""

    def _write(self, line: bytes) -> None:
        if self._in_words is not None and not line.startswith(b"{"):
            line = self._in_words(line.decode(errors="replace")).encode()
        with suppress(OSError):  # stderr is full or closed
            os.write(_STDERR, line + b"\n")
