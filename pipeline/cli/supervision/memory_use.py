"""How much memory a process holds, and whether the system has stopped a process for want of memory."""

from __future__ import annotations

import os
from contextlib import suppress

GROWTH = 4e9  # bytes per second: no process was seen to fill memory faster
_SHORTEST, _LONGEST = 0.01, 0.25  # seconds


def resident_bytes(process: int) -> int:
    """Return the resident memory of a process; 0 where the system does not tell."""
    with suppress(OSError, IndexError, ValueError), open(f"/proc/{process}/statm", "rb") as file:  # noqa: PTH123 - 20 times a second
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def pause_until_full(resident: int, ceiling: int) -> float:
    """Return the seconds after which to look again, so that a process cannot grow far beyond its ceiling meanwhile."""
    return min(max((ceiling - resident) / GROWTH, _SHORTEST), _LONGEST)


def kills_for_memory() -> int:
    """Return how many processes the kernel has stopped for want of memory; 0 where it does not tell."""
    with suppress(OSError, ValueError), open("/proc/vmstat", "rb") as file:  # noqa: PTH123 - as above
        return next((int(line.split()[1]) for line in file if line.startswith(b"oom_kill ")), 0)
    return 0
