"""How much memory the engine may use if the config does not say: Python and Polars need room beside it."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from ..crash_notes import NOTES, MemoryLimit

if TYPE_CHECKING:
    from collections.abc import Iterator

MIB = 1 << 20
LEAST_RESERVE = 256 * MIB  # Python, Polars and what is handed over, measured at 180 to 230 MiB for small inputs
RESERVED_SHARE = 0.3
LEAST_SHARE = 0.2
SHARE_OF_ENGINE = 0.8  # DuckDB's own default: of the machine's memory, or of the container's
LEAST_MARGIN = 384 * MIB  # beside the limit of the engine: libraries, and rows that have been handed over
MARGIN = 0.25  # of that limit
_USABLE = 0.95  # of what there is: the kernel needs room as well
_ENDLESS = 1 << 60  # what the kernel tells where there is no limit is more
_LIMITS = {"": ("memory.max", "memory.high"), "memory": ("memory.limit_in_bytes", "memory.soft_limit_in_bytes")}
_MOUNTS = {"": ("sys/fs/cgroup", "sys/fs/cgroup/unified"), "memory": ("sys/fs/cgroup/memory",)}


def default_limit(own_default: int, process_limit: int | None = None) -> int:
    """Return the memory limit in bytes: what the machine or container has, less a reserve for everything else.

    Args:
        own_default: The limit that the engine would choose by itself, in bytes.
        process_limit: What the process may use, in bytes, as far as the engine overlooks it; None: no limit.
    """
    available = own_default / SHARE_OF_ENGINE
    if process_limit is not None:
        available = min(available, process_limit)
    reserve = max(RESERVED_SHARE * available, LEAST_RESERVE)
    return int(max(available - reserve, LEAST_SHARE * available))


def limit_process(memory: int | None) -> None:
    """Let what watches this process, if anything does, stop it where it holds far more than the engine may.

    Args:
        memory: The limit of the engine in bytes; None: that which it chooses.
    """
    if NOTES.is_watched:
        limit = limit_of(memory)
        NOTES.memory = MemoryLimit(limit, ceiling(limit, _available()), is_default=memory is None)


def limit_of(memory: int | None) -> int:
    """Return the memory limit of the engine in bytes; None stands for that which it chooses."""
    available = _available()
    return default_limit(int(SHARE_OF_ENGINE * available), available) if memory is None else memory


def ceiling(limit: int, available: int) -> int:
    """Return how many bytes a process may hold: a quarter more than its engine, or `LEAST_MARGIN` if that is more.

    Args:
        limit: The limit of the engine in bytes.
        available: What the machine or container has, in bytes, of which it stays a twentieth short.
    """
    return int(min(limit + max(MARGIN * limit, LEAST_MARGIN), _USABLE * available))


@cache
def _available() -> int:
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else _ENDLESS
    return min(machine, process_limit() or machine)


def process_limit(root: Path = Path("/")) -> int | None:
    """Return how much memory this process may use, in bytes; None if only the machine limits it.

    The engine reads the control group of the process alone. The groups around it count as well, as those of a batch
    system, a slice of systemd or a pod do, and so does a limit of the address space (`ulimit -v`).

    Args:
        root: The root folder.
    """
    limits = [*_group_limits(root), *_address_space()]
    return min(limits, default=None)


def _group_limits(root: Path) -> Iterator[int]:
    """Yield the limits of the control groups of this process, of version 1 and 2 of that system of Linux."""
    with suppress(OSError, ValueError):
        for line in (root / "proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            kind = "memory" if "memory" in controllers.split(",") else controllers
            for mount in _MOUNTS.get(kind, ()):
                for folder in (PurePosixPath(path), *PurePosixPath(path).parents):
                    files = (root / mount / folder.relative_to("/") / name for name in _LIMITS[kind])
                    yield from (limit for file in files if (limit := _limit_in(file)) is not None)


def _limit_in(file: Path) -> int | None:
    """Return the limit in a file; None if it is missing, says `max`, or is endless."""
    with suppress(OSError, ValueError):
        limit = int(file.read_text())
        return limit if 0 < limit < _ENDLESS else None
    return None


def _address_space() -> Iterator[int]:
    with suppress(ImportError):
        import resource  # noqa: PLC0415 - not on Windows

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        if 0 < limit < _ENDLESS:
            yield limit
