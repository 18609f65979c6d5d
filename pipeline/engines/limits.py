"""What an engine may use: memory, and a folder for what does not fit into it."""

from __future__ import annotations

import atexit
import errno
import os
import shutil
import stat
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from ..crash_notes import NOTES, MemoryLimit
from ..errors import CannotCreateError, os_fault

if TYPE_CHECKING:
    from collections.abc import Iterator


# How much memory the engine may use if the config does not say: Python and Polars need room beside it.


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


def bytes_of(size: str) -> int:
    """Return the number of bytes that a size such as `4GB` or `512 MiB` means."""
    number, unit = float(size.rstrip("BGIKMTbgikmt ")), size.lstrip("0123456789. ").lower()
    return int(number * (1024 if "i" in unit else 1000) ** ("kmgt".index(unit[0]) + 1))


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


# The folder for data that do not fit into memory: private to the user, never one that somebody else created.


PRIVATE = 0o700
REMEDY = "Set resources.scratch to a folder of your own that can be written."
_OF_THE_PATH = {errno.EEXIST, errno.ENOTDIR, errno.ENOENT, errno.ELOOP, errno.ENAMETOOLONG}


def scratch_folder(configured: Path | None) -> Path:
    """Return the folder named in the config, or `thresher-<user id>` in the system's folder for temporary files.

    The latter is used only if it is a folder (not a link), owned by the user and closed to everybody else; otherwise a
    new folder is created instead, and removed when the process ends.

    Raises:
        CannotCreateError: it cannot be created, or the file system is read-only.
        PermissionDenied: access is refused.
        StorageError: the disk is full or failing.
    """
    folder = configured
    try:
        if folder is not None:
            folder.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
            return folder.resolve()
        folder = Path(tempfile.gettempdir()) / f"thresher-{_user()}"
        with suppress(FileExistsError):
            folder.mkdir(mode=PRIVATE)
        return folder.resolve() if _is_private(folder) else _fresh(folder)
    except OSError as error:
        where = "the system's folder for temporary files" if folder is None else f"scratch folder {folder}"
        fault = os_fault(error, f"{where} cannot be written")
        kind = CannotCreateError if error.errno in _OF_THE_PATH else type(fault)
        raise kind(fault.message, remedy=REMEDY) from error


def _user() -> str:
    return str(os.getuid()) if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")


def _is_private(folder: Path) -> bool:
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode):
        return False
    return not hasattr(os, "getuid") or (status.st_uid, status.st_mode & 0o777) == (os.getuid(), PRIVATE)


@cache
def _fresh(usual: Path) -> Path:
    folder = Path(tempfile.mkdtemp(prefix=f"{usual.name}-", dir=usual.parent))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder.resolve()
