"""Text for people: nothing in a file name, a group value or a message can control the terminal."""

from __future__ import annotations

import io
import sys

from pipeline.visible_text import cleaned

__all__ = ["cleaned", "write", "write_every_character"]


def write(text: str) -> None:
    """Write text to stdout, cleaned if stdout is a terminal."""
    sys.stdout.write(cleaned(text) if sys.stdout.isatty() else text)


def write_every_character() -> None:
    r"""Let stdout write characters that its encoding lacks as `\xe9`, as stderr does, and not stop with an error."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
