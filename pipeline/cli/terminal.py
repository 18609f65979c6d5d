"""Text for people: nothing in a file name, a group value or a message can control the terminal."""

from __future__ import annotations

import os
import sys

from pipeline.visible_text import cleaned

__all__ = ["cleaned", "open_closed_streams", "write"]


def write(text: str) -> None:
    """Write text to stdout, cleaned if stdout is a terminal."""
    sys.stdout.write(cleaned(text) if sys.stdout.isatty() else text)


def open_closed_streams() -> None:
    """Let what is written to stdout or stderr vanish where a scheduler has started the process with it closed."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115 - no path, and never closed
