"""Faults below Python: the library shim.c, built for this machine, and the orders that it takes from shared memory.

A process that was started with `environment` answers its calls of the C library through the shim, whichever library
makes them: Python, DuckDB, Arrow or Polars. `Shim` arms it, in this process and in all that it starts.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
import shutil
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntEnum, IntFlag
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCE = Path(__file__).with_name("shim.c")
VARIABLE = "THRESHER_SHIM"
LOG_LENGTH = 16384


class Kind(IntFlag):
    """What a call does."""

    OPEN_TO_READ = 1
    OPEN_TO_WRITE = 2
    READ = 4
    WRITE = 8
    SYNC = 16
    RENAME = 32
    UNLINK = 64
    LINK = 128
    FOLDER = 256
    TRUNCATE = 512
    LIST = 1024
    LOCK = 2048
    CREATE = 4096

    CHANGE = OPEN_TO_WRITE | WRITE | SYNC | RENAME | UNLINK | LINK | FOLDER | TRUNCATE | CREATE
    ANY = CHANGE | OPEN_TO_READ | READ | LIST | LOCK


class Action(IntEnum):
    """What happens at a call: it fails, alone or with all after it, writes half, or the process ends or stops.

    With `FILL` a write writes half, and all calls after it fail, as on a disk that has become full.
    """

    COUNT = 0
    FAIL = 1
    FAIL_ON = 2
    SHORT = 3
    KILL_BEFORE = 4
    KILL_AFTER = 5
    KILL_WITHIN = 6
    SIGNAL = 7
    STOP = 8
    FILL = 9


class _Call(ctypes.Structure):
    _fields_ = (("kind", ctypes.c_uint16), ("name", ctypes.c_char * 14), ("path", ctypes.c_char * 112))


class _Orders(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_uint32) for name in ("armed", "kinds", "number", "action")),
        ("error", ctypes.c_int32),
        *((name, ctypes.c_uint32) for name in ("count", "fired")),
        ("folder", ctypes.c_char * 1024),
        ("log", _Call * LOG_LENGTH),
    )


@dataclass(frozen=True)
class Call:
    """A call that was counted.

    Attributes:
        kind: What it does.
        name: Its name in the C library.
        path: The end of its path below the folder.
    """

    kind: Kind
    name: str
    path: str


def missing_here() -> str | None:
    """Why the shim cannot be built on this machine; None if it can."""
    if sys.platform != "linux" or platform.libc_ver()[0] != "glibc":
        return "faults below Python are injected between a process and glibc, by LD_PRELOAD: none is here"
    if shutil.which("cc") is None:
        return "faults below Python need a C compiler, called cc: none is here"
    return None


def environment(folder: Path) -> dict[str, str]:
    """Build the shim in a folder; the variables with which a process takes its orders from there."""
    library, orders = folder / "shim.so", folder / "orders"
    words = ["cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(SOURCE), "-ldl"]
    subprocess.run(words, check=True)
    with orders.open("wb") as file:
        file.truncate(ctypes.sizeof(_Orders))
    single = dict.fromkeys(("POLARS_MAX_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    return {"LD_PRELOAD": str(library), VARIABLE: str(orders), **single}


class Shim:
    """The orders of this process's shim."""

    def __init__(self) -> None:
        with open(os.environ[VARIABLE], "r+b") as file:  # noqa: PTH123 - the variable is text
            self._orders = _Orders.from_buffer(mmap.mmap(file.fileno(), ctypes.sizeof(_Orders)))

    @contextmanager
    def armed(
        self, folder: Path, kinds: Kind, action: Action = Action.COUNT, *, number: int = 0, error: int = 0
    ) -> Iterator[None]:
        """Count the calls of some kinds on paths in a folder, and let something happen at one of them.

        Args:
            folder: The folder, absolute.
            kinds: Calls that count.
            action: What happens.
            number: At which of the calls, from 1.
            error: The number of the system's error, or of the signal.
        """
        orders = self._orders
        ctypes.memset(orders.log, 0, ctypes.sizeof(_Call) * min(orders.count, LOG_LENGTH))
        orders.count = orders.fired = 0
        orders.folder, orders.kinds, orders.action = os.fsencode(folder), kinds, action
        orders.number, orders.error, orders.armed = number, error, 1
        try:
            yield
        finally:
            orders.armed = 0

    @property
    def fired(self) -> int:
        """How often something happened since the shim was armed."""
        return int(self._orders.fired)

    @property
    def calls(self) -> list[Call]:
        """The calls that were counted since the shim was armed, in order."""
        log = self._orders.log[: min(self._orders.count, LOG_LENGTH)]
        return [Call(Kind(call.kind), call.name.decode(), os.fsdecode(call.path)) for call in log]
