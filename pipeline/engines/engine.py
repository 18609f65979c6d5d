"""The interface of every engine, and its resources: memory, and a folder for data that exceed it."""

from __future__ import annotations

import atexit
import errno
import os
import shutil
import stat
import tempfile
from concurrent.futures import Future, ThreadPoolExecutor, wait
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import suppress
from dataclasses import field
from functools import cache, cached_property
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Protocol, TypeVar, runtime_checkable

import sqlglot.expressions as exp

from ..base.errors import CannotCreateError, os_fault
from ..base.interrupts import NOTES, MemoryLimit
from ..base.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import polars as pl
    import pyarrow as pa

    from ..base.dialect import Partition
    from ..base.interrupts import StopRequest
    from ..base.splitting import Splitter

    Fetch = Callable[[exp.Query], pl.DataFrame]
    Settle = Callable[[Fetch, pl.DataFrame], pl.DataFrame]
    Function = Callable[[Mapping[str, pl.DataFrame]], pl.DataFrame]


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


# A thread in which an engine works, so that a request to stop reaches the engine while a query runs.


T = TypeVar("T")
POLL_SECONDS = 0.05
STOP_SECONDS = 5.0
UNREADABLE = "It is damaged: restore it from where it came from, or leave it out by a glob."


class QueryThread:
    """One thread that runs what it is given, one thing after another.

    Args:
        stop: Checked while it works; a request to stop interrupts the work.
        interrupt: Tells the engine to give up what it is doing.
        watch: Called again and again while it works; None: nobody watches.
    """

    def __init__(
        self, stop: StopRequest, interrupt: Callable[[], object], watch: Callable[[], object] | None = None
    ) -> None:
        self._stop = stop
        self._interrupt = interrupt
        self._watch = watch
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="thresher-query")
        self.is_abandoned = False

    def close(self) -> None:
        """End the thread; work that does not stop is abandoned."""
        self._executor.shutdown(wait=not self.is_abandoned)

    def run(self, work: Callable[[], T]) -> T:
        """Do some work and wait for it.

        Raises:
            Interrupted: a signal asked to stop.
        """
        return self.result(self.submit(work))

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Begin some work.

        Raises:
            Interrupted: a signal asked to stop.
        """
        self._stop.check()
        return self._executor.submit(work)

    def result(self, future: Future[T]) -> T:
        """Wait for what was begun.

        Raises:
            Interrupted: a signal asked to stop.
        """
        while True:
            try:
                return future.result(timeout=POLL_SECONDS)
            except FutureTimeout:
                if future.done():  # it ended just as the wait did
                    return future.result()
                if self._watch is not None:
                    self._watch()
            if self._stop.is_set:
                self._interrupt()
                self.is_abandoned = not wait([future], timeout=STOP_SECONDS).done
                self._stop.check()


@dataclass(frozen=True)
class Resources:
    """Limits of one run.

    Attributes:
        memory: Memory limit of the engine, for example `4GB`; None: the memory of the machine or the container, less
            room for Python and Polars.
        threads: Number of threads; None: all cores.
        scratch: Folder for data that do not fit into memory; None: one of the user's own under the system's.
        scratch_limit: Largest size of the scratch data, for example `100GB`.
    """

    memory: str | None = None
    threads: int | None = None
    scratch: Path | None = None
    scratch_limit: str | None = None


# The interface of every engine.


class Engine(Protocol):
    """The interface of every engine.

    Attributes:
        name: Name of the engine, as the config has it.
        has_workers: Whether pure functions run where the rows are, on workers, not in this process.
        most_in_order: Most rows that it hands over in order; None: any number.
    """

    name: str
    has_workers: bool
    most_in_order: int | None

    def scan(
        self, name: str, files: Sequence[str], partitions: Sequence[Partition] = (), *, located: bool = False
    ) -> None:
        """Register files with the same schema as a relation, with further columns that have one value for each file."""
        ...

    def hand_over(self, name: str, table: pa.Table) -> None:
        """Register a table that lies in memory as a relation; its rows are not copied."""
        ...

    def define(self, name: str, query: exp.Query, *, keep: bool = False) -> None:
        """Give a query a name."""
        ...

    def fetch(self, query: exp.Query, params: Mapping[str, float] | None = None, *, once: bool = False) -> pl.DataFrame:
        """Run a query.

        Args:
            query: The query.
            params: Values of its parameters.
            once: Whether no later run will ask it in the same words, so that there is nothing to keep.
        """
        ...

    def count(self, query: exp.Query, params: Mapping[str, float], settle: Settle, settled_by: str) -> pl.DataFrame:
        """Run a query whose counts are settled where they are counted: of all files, or file by file.

        Args:
            query: The query; its counts add up once they are settled.
            params: Values of its parameters.
            settle: Turns what it returns into counts that add up, with another query of the same rows where it needs
                one; rows of several files have a further column, by which it groups.
            settled_by: Text that tells what it does: with another text, what was kept is not used.
        """
        ...

    def stream(self, query: exp.Query) -> Iterator[pl.DataFrame]:
        """Run a query and return its rows in order, in blocks of equal size; they need not all fit into memory."""
        ...

    def fill(self, name: str, frames: Iterable[pl.DataFrame]) -> None:
        """Create a relation from at least one frame, all with the same columns; its rows may lie on disk."""
        ...

    def transform(
        self,
        name: str,
        reads: Mapping[str, exp.Query],
        key: Sequence[str],
        function: Function,
        batches: Iterable[pl.DataFrame],
    ) -> None:
        """Create a relation that a pure function makes of rows that lie together by a key.

        Args:
            name: The relation.
            reads: The rows that the function needs, by name; each has the columns of the key.
            key: Columns; rows with the same values are handed over together, in any order.
            function: Turns the frames of some values of the key into rows, with the same columns and types for any
                frames, empty ones too.
            batches: The same rows, made here batch by batch when they are asked for: for an engine without workers.
        """
        ...

    def bucket(self, keys: Sequence[str], count: int) -> exp.Expr:
        """Return an expression for a number from 0 to count - 1 that is the same for all rows with the same key."""
        ...

    def memory(self) -> int:
        """Return the memory limit of the engine in bytes."""
        ...


class Place(Protocol):
    """A table that an engine knows by name, or files at an address that it reaches."""

    @property
    def kind(self) -> str:
        """`table`, or `parquet` for files."""

    @property
    def target(self) -> str:
        """Name of the table, or the address."""

    @property
    def schema(self) -> pa.Schema:
        """Columns, as they were described when it was opened."""

    @property
    def rows(self) -> int:
        """Rows, as they were counted then."""


@runtime_checkable
class ReadsPlaces(Protocol):
    """An engine that reads tables which it knows by name, and files at addresses which it reaches."""

    def scan_place(self, name: str, target: Place, *, located: bool = False) -> None:
        """Register a table, or files at an address, as a relation.

        Args:
            name: The relation.
            target: What is read.
            located: As for `Engine.scan`; rows without a place have a number that is made from their values.
        """
        ...


# What an engine has been told: the scans and the named queries, and what a query reads through them.


@dataclass(frozen=True)
class InputFile:
    """A file of an input.

    Attributes:
        source: Name of the input.
        rows: Its rows, from the footer.
        identity: What tells whether it was replaced; None: it changed so recently that nothing does.
    """

    source: str
    rows: int
    identity: str | None


@dataclass(frozen=True)
class Scan:
    """Files that were registered as a relation.

    Attributes:
        source: Name of the input that they belong to.
        files: Their paths.
        partitions: Further columns, with their values in each file.
        located: Whether the relation tells file and row of every row.
    """

    source: str
    files: tuple[str, ...]
    partitions: tuple[Partition, ...]
    located: bool

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {path: number for number, path in enumerate(self.files)}

    def partitions_of(self, paths: Iterable[str]) -> list[Partition]:
        """The further columns of some of the files."""
        numbers = [self._numbers[path] for path in paths]
        return [partition.of(numbers) for partition in self.partitions]

    def tells(self, path: str) -> list[str | None]:
        """Facts about a file that its rows carry beside its content: values of further columns, and its path.

        The path counts where rows tell it: that of a copy is another in every run, whatever identifies its content.
        """
        values = [partition.values[self._numbers[path]] for partition in self.partitions]
        return [*values, path] if self.located else values


@dataclass
class Told:
    """The relations of an engine.

    Attributes:
        files: The files of the inputs by path.
        scans: The relations of files.
        views: The named queries that are computed whenever they are read.
    """

    files: Mapping[str, InputFile]
    scans: dict[str, Scan] = field(default_factory=dict)
    views: dict[str, exp.Query] = field(default_factory=dict)
    _versions: dict[str, int] = field(default_factory=dict)

    def replaced(self, name: str, *, scan: Scan | None = None, view: exp.Query | None = None) -> None:
        """Note what a name means from now on: files, a query, or rows that the engine has."""
        self._versions[name] = self._versions.get(name, 0) + 1
        self.scans.pop(name, None)
        self.views.pop(name, None)
        if scan is not None:
            self.scans[name] = scan
        if view is not None:
            self.views[name] = view

    def scans_of(self, query: exp.Expr) -> list[Scan]:
        """The scans that a query reads, through named queries too."""
        return [self.scans[name] for name in self._read_by(query) if name in self.scans]

    def views_of(self, query: exp.Expr) -> dict[str, exp.Query]:
        """The named queries that a query reads, each after those that it reads itself."""
        return {name: self.views[name] for name in reversed(self._read_by(query)) if name in self.views}

    def state_of(self, query: exp.Expr) -> dict[str, int]:
        """The relations that a query reads, through named queries too, with the numbers of their definitions."""
        return {name: self._versions.get(name, 0) for name in sorted(self._read_by(query))}

    def _read_by(self, query: exp.Expr) -> dict[str, None]:
        names: dict[str, None] = {}
        for name in dict.fromkeys(table.name for table in query.find_all(exp.Table)):
            names[name] = None
            if name in self.views:
                names |= self._read_by(self.views[name])
        return names

    def files_of(self, source: str) -> list[InputFile]:
        """The files of an input."""
        return [file for file in self.files.values() if file.source == source]

    def inputs_of(self, query: exp.Expr) -> list[str]:
        """The inputs of several files that a query reads, the largest first."""
        sources = dict.fromkeys(scan.source for scan in self.scans_of(query))
        several = [source for source in sources if len(self.files_of(source)) > 1]
        return sorted(several, key=lambda source: -sum(file.rows for file in self.files_of(source)))

    def splitter(self, source: str) -> Splitter:
        """Splits queries over the files of an input."""
        from ..base.splitting import Splitter  # noqa: PLC0415 - only inputs of several files need it

        return Splitter(self.views, {name for name, scan in self.scans.items() if scan.source == source}, numbered)


def numbered(scan: str) -> str:
    """Name of a scan whose rows have the number of their file."""
    return f"{scan}_numbered"
