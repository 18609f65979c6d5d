"""Commands work in a child process, so that a crash of a library that reads files ends with a sentence, not a signal.

Nothing but light modules may be imported here before the fork: threads do not survive it.
"""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

from ...breadcrumbs import Trail

if TYPE_CHECKING:
    from collections.abc import Sequence

ONE_PROCESS = "THRESHER_ONE_PROCESS"
_HELP = frozenset({"-h", "--help", "--version"})


def supervised(words: Sequence[str]) -> int | None:
    """Split this process into one that works and one that waits for it.

    Args:
        words: The command line without its name.

    Returns:
        In the process that works, None; in the one that has waited, the exit code to end with. Where a process cannot
        be forked, where only help is asked for, and where the environment variable `THRESHER_ONE_PROCESS` is set, this
        process works, as if it were the child.
    """
    if not words or not _HELP.isdisjoint(words) or not hasattr(os, "fork") or os.environ.get(ONE_PROCESS):
        return None
    from ..log_lines import asks_for_json, json_line  # noqa: PLC0415 - help needs none of it
    from .child import Child  # noqa: PLC0415 - not on Windows
    from .memory_use import kills_for_memory  # noqa: PLC0415 - see above
    from .native_output import NativeOutput  # noqa: PLC0415 - see above

    _occupy_standard_descriptors()
    in_words = (lambda line: json_line("warning", "warning", line, {})) if asks_for_json(words) else None
    trail, output, kills_before = Trail(), NativeOutput(in_words), kills_for_memory()
    child = Child(trail, output)
    if child.fork():
        output.capture()
        return None
    output.watch()
    code = child.wait()
    if code >= 0:
        return code
    from .endings import Ending  # noqa: PLC0415 - only after a crash

    killed_for_memory = code == -signal.SIGKILL and kills_for_memory() > kills_before
    return Ending(trail, child, -code, output.reason, killed_for_memory=killed_for_memory).told(words)


def _occupy_standard_descriptors() -> None:
    """Let no pipe get the number of a standard stream that is closed."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:  # noqa: PLR2004 - stdin, stdout, stderr
        continue
    os.close(descriptor)
