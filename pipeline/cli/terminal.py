"""Text for people: nothing in a file name, a group value or a message can control the terminal."""

from __future__ import annotations

import sys

from pipeline.visible_text import cleaned

__all__ = ["cleaned", "write"]


def write(text: str) -> None:
    """Write text to stdout, cleaned if stdout is a terminal."""
    sys.stdout.write(cleaned(text) if sys.stdout.isatty() else text)
