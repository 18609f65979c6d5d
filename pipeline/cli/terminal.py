"""Text for people: nothing in a file name, a group value or a message can control the terminal."""

from __future__ import annotations

import io
import json
import math
import os
import shutil
import sys
from contextlib import suppress
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ..visible_text import cleaned

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl
    from typing_extensions import Buffer


__all__ = ["cleaned", "forgive_full_stderr", "open_closed_streams", "width_of_output", "write"]


def write(text: str) -> None:
    """Write text to stdout, cleaned if stdout is a terminal."""
    sys.stdout.write(cleaned(text) if sys.stdout.isatty() else text)


def width_of_output() -> int | None:
    """Return how many columns the terminal has, or COLUMNS says in a pipe; None: nobody has said."""
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


# Lines of the log as JSON: one object a line, the same fields everywhere, nothing that JSON cannot hold.


LOG_FORMATS = ("text", "json")
OPTION = "--log-format"
MOST_NUMBERS = 20
_FIELDS = ("grouping", "group", "criterion", "metric", "value", "lower", "upper")


def asks_for_json(words: Sequence[str]) -> bool:
    """Whether the words of a command line choose lines of JSON, also where the rest of them cannot be parsed."""
    return f"{OPTION}=json" in words or (OPTION, "json") in pairwise(words)


def json_line(level: str, event: str, message: str, facts: Mapping[str, Any]) -> str:
    """Return one line of the log, an object without a line break.

    Args:
        level: `info`, `warning` or `error`.
        event: What happened; docs/operations.md lists the events.
        message: The same for people.
        facts: Further fields; numbers that are not finite become null.
    """
    time = datetime.now(UTC).isoformat(timespec="milliseconds")
    line = {"time": time, "level": level, "event": event, "message": message, **facts}
    return json.dumps(_finite(line), default=str, allow_nan=False)


def _finite(value: Any) -> Any:  # noqa: ANN401 - whatever JSON can hold
    if isinstance(value, dict):
        return {str(key): _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def numbers_of(key_figures: pl.DataFrame) -> dict[str, Any]:
    """Return the first numbers of a stage that are defined, the total before groups.

    Args:
        key_figures: Its rows of the table `metrics`.
    """
    defined = [row for row in key_figures.iter_rows(named=True) if row["value"] is not None]
    in_order = sorted(defined, key=lambda row: row["grouping"] != "all")
    numbers = [{name: row[name] for name in _FIELDS} for row in in_order[:MOST_NUMBERS]]
    for number in numbers:
        number["group"] = json.loads(number["group"])
    return {"numbers": numbers, "numbers_left_out": len(in_order) - len(numbers)}
