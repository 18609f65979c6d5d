"""Text on its way to the terminal."""

from __future__ import annotations

import sys

from pipeline.report.cleaning import cleaned

__all__ = ["cleaned", "write"]


def write(text: str) -> None:
    """Write text to stdout, cleaned if stdout is a terminal."""
    sys.stdout.write(cleaned(text) if sys.stdout.isatty() else text)
