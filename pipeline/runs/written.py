"""Where a run writes: results in a folder or on a store, and files held against all that is read or published."""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import time
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ..base.errors import BusyError, CannotCreateError, ConfigError, ThresherError, UsageError, os_fault
from ..base.paths import SpecialFileError, identity, is_remote, local_path, names_below, read_file, shortened
from ..base.records import dataclass
from ..base.visible_text import cleaned
from ..engines.engine import bytes_of
from ..sources.finding import Search
from ..sources.formats import ENDINGS
from ..stages.stage import UpstreamParameters
from ..storage.layout import write_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ..base.interrupts import StopRequest
    from ..sources.inputs import Input
    from ..storage.mirror import ResultsStore
    from ..storage.publish import Expired, Keeping, Verified
    from .config import Config, ResourceLimits
    from .stage_results import Run


_START = 1 << 16
_JSON = re.compile(rb'\{\s*"run_id": "[0-9a-f]{12}"')
_JUNIT = re.compile(rb'<\?xml version="1.0" encoding="UTF-8"\?>\s*<testsuites name="thresher gates"')
METRICS = re.compile(rb"# HELP thresher_")
EVENTS = re.compile(rb'\{.*"eventTime"', re.DOTALL)
PAGE = re.compile(rb'<!doctype html>.*<script type="application/json" id="data">', re.DOTALL)
PICTURE = re.compile(rb"<svg |\x89PNG\r\n|%PDF-")
_NEVER = re.compile(rb"(?!)")


@dataclass(frozen=True)
class OwnFile:
    """A file that is written outside the results, which a key of the config or an option names.

    Attributes:
        start: What a file in its place starts with that may be replaced, or appended to.
    """

    key: str
    path: Path
    start: re.Pattern[bytes]

    @property
    def fault(self) -> str:
        """Say why what is in its place may not be replaced; empty if nothing is there, an empty file or one of ours."""
        try:
            content = read_file(self.path, most=_START if self.start is not PAGE else -1)
        except FileNotFoundError:
            return "is a link that leads nowhere" if self.path.is_symlink() else ""
        except IsADirectoryError:
            return "is a folder, not a file"
        except SpecialFileError as error:
            return f"is {error}, not a file"
        except NotADirectoryError:  # of a folder that cannot be made: told when it is
            return ""
        except OSError as error:
            return f"cannot be read: {error.strerror}"
        is_own = not content or self.start.match(content) is not None
        words = "is there already" if self.start is _NEVER else "is there, and thresher did not write it"
        return "" if is_own else words

    @property
    def remedy(self) -> str:
        """The remedy where it cannot be written."""
        return f"Choose another file with {self.key}."

    def make_folder(self) -> None:
        """Make the folder that it lies in, unless it is there."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            fault = os_fault(error, f"the folder {self.path.parent} cannot be written")
            raise CannotCreateError(fault.message, remedy=f"Name another file with {self.key}.") from error

    def replace(self, content: bytes) -> None:
        """Write the file, whole or not at all.

        Raises:
            CannotCreateError: what is in its place is not one of ours.
            ThresherError: the disk is full or failing.
        """
        if self.fault:
            message = f"{self.path} {self.fault}"
            raise CannotCreateError(message, remedy=self.remedy)
        write_whole(self.path, content)


def gate_files(paths: Mapping[str, str | None], base: Path, origin: str) -> tuple[OwnFile, ...]:
    """Return the files to which a config says that the outcomes of its gates are written, from their paths by key.

    Raises:
        ConfigError: a text names no place on this machine.
    """
    return tuple(
        OwnFile(key, local_path(path, base, what=f"{origin}: {key}"), start)
        for key, start in (("gates_json", _JSON), ("gates_junit", _JUNIT))
        if (path := paths.get(key))
    )


def sheet_file(path: Path) -> OwnFile:
    """A sheet of rows to label, which is never replaced: people may have written labels into it."""
    return OwnFile("--to", path, _NEVER)


class WrittenFileError(ConfigError):
    """A file that a key of a config says to write is one that is read, is published, or is somebody else's."""

    def __init__(self, message: str, *, remedy: str, key: str) -> None:
        super().__init__(message, remedy=remedy)
        self.key = key


def check_written(config: Config, file: Path | None = None, *, more: Sequence[OwnFile] = ()) -> None:
    """Check that no file that is written is one that is read or published, by whatever name, or is somebody else's.

    Nothing has been written or removed when it is called. Whether two names mean one file is told by device and inode;
    where nothing is there yet, by whether an input would find a file of that name the next time.

    Args:
        config: The config.
        file: The config file itself; None: it is none.
        more: The files that are meant, as an option says; none: all that the config names.

    Raises:
        WrittenFileError: names the key, the file, and what it is.
    """
    with config.variables.concealing():
        files = [*more] or [*_files(config)]
        for number, target in enumerate(files):
            others = ((other.key, other.path) for other in files[:number])
            fault = _fault(config, target.path, file, others) or target.fault
            if fault:
                where = target.key if more else f"{config.origin}: {target.key}"
                message = f"{where}: {target.path} {fault}"
                raise WrittenFileError(message, remedy=target.remedy, key=target.key)
        for key, folder in () if more else _folders(config):
            if fault := _fault_of_folder(config, folder, file):
                message = f"{config.origin}: {key}: {folder} {fault}"
                raise WrittenFileError(message, remedy=f"Choose another folder with {key}.", key=key)


@contextmanager
def of_options(options: Mapping[str, object]) -> Iterator[None]:
    """Tell a fault of a file as a UsageError where an option, by its key of the config, named it, not the config."""
    try:
        yield
    except WrittenFileError as error:
        if options.get(error.key) is None:
            raise
        option = f"--{error.key.replace('_', '-')}"
        remedy = None if error.remedy is None else error.remedy.replace(error.key, option)
        raise UsageError(error.message, remedy=remedy) from error


def _files(config: Config) -> Iterator[OwnFile]:
    yield from config.gate_files
    if config.lineage.file is not None:
        yield OwnFile("lineage.file", Path(config.lineage.file), EVENTS)  # also appended to one of another program
    if config.prometheus.file is not None:
        yield OwnFile("prometheus.file", Path(config.prometheus.file), METRICS)


def _folders(config: Config) -> Iterator[tuple[str, Path]]:
    """The folders that are written to, but for the results on a store, whose mirror is ours."""
    if config.store is None:
        yield "output", config.output
    for key in ("scratch", "copies"):
        folder = getattr(config.resources, key)
        if folder is not None:
            yield f"resources.{key}", folder


def _fault(config: Config, path: Path, file: Path | None, others: Iterator[tuple[str, Path]]) -> str:
    """Say what a file is that must not be written; empty if it may be."""
    if file is not None and names_below(file, path) == ():
        return "is the config itself"
    for key, other in others:
        if names_below(other, path) == ():
            return f"is the file of {key}, too"
    for folder in _published(config):
        if names_below(folder, path) is not None or _is_linked_into(folder, path):
            return f"lies in the results folder {folder}, where thresher alone writes"
    return _fault_as_input(config, path)


def _fault_of_folder(config: Config, folder: Path, file: Path | None) -> str:
    """Say why a folder cannot be one for our files, before it is made; empty if nothing tells."""
    if identity(folder) is not None and not folder.is_dir():
        if file is not None and names_below(file, folder) == ():
            return "is the config itself, not a folder"
        return _fault_as_input(config, folder)
    if folder == config.output:
        return ""
    if names_below(config.output, folder) and config.store is None:
        return f"lies in the results folder {config.output}, where thresher alone writes"
    return _fault_as_input(config, folder / "thresher-rows-0" / "rows.parquet")


def _is_linked_into(folder: Path, path: Path) -> bool:
    """Whether a file has another name somewhere below a folder, a hard link."""
    try:
        status = path.stat()
    except OSError:
        return False
    return status.st_nlink > 1 and identity(path) in {identity(each) for each in folder.rglob("*")}


def _published(config: Config) -> Iterator[Path]:
    """The results folders of a config: its own, and those that stages read."""
    if config.store is None:
        yield config.output
    for stage in config.every:
        if isinstance(stage.params, UpstreamParameters) and stage.params.results:
            with suppress(ThresherError):  # told when the stage is opened
                upstream = config.at(config.variables.expanded(stage.params.results), what="results")
                if upstream.store is None:
                    yield upstream.output


def _fault_as_input(config: Config, path: Path) -> str:
    here = identity(path)
    for name, spec in _inputs(config):
        for text in spec.path:
            if not isinstance(text, str) or is_remote(text):
                continue
            search = Search(name, config.base, ENDINGS[spec.format or "parquet"], config.output)
            with suppress(ThresherError):  # what cannot be listed is told when the input is opened
                if here is not None and here in {identity(found) for found, _ in search.matches(text)}:
                    return f"is a file of the input {name}"
                if search.would_find(text, path):
                    return f"would be read as a file of the input {name} the next time"
    return ""


def _inputs(config: Config) -> Iterator[tuple[str, Input]]:
    for stage in config.every:
        with suppress(ThresherError):
            params = config.variables.bound(stage.params)
            for contract in stage.stage.inputs:
                spec = getattr(params, contract.name)
                if spec is not None:
                    yield contract.name, spec


MIRRORS = "results"


def store_of(text: str | os.PathLike[str], *, what: str, limits: ResourceLimits | None = None) -> ResultsStore | None:
    """Return the store that a text names; None if it means a folder here.

    Its mirrors obey the folder and the limit of copies of a config, too, where its `limits` are given.

    Raises:
        ConfigError: the address cannot be read, or is a pattern.
    """
    written = os.fspath(text)
    if not is_remote(written):
        return None
    from ..sources.remote import folder_for_caches  # noqa: PLC0415 - only where results live on a store
    from ..sources.stores import endpoints, parse_address  # noqa: PLC0415 - likewise
    from ..storage.mirror import DEFAULT_LIMIT, RemoteFolder, ResultsStore  # noqa: PLC0415 - likewise

    address = parse_address(written, what=what)
    if any(mark in address.key for mark in "*?["):
        message = f"{what}: {shortened(written)} is a pattern, and results live in one folder"
        raise ConfigError(message, remedy="Name a folder without *, ? and [.")
    if not address.is_readable:
        message = f"{what}: {cleaned(shortened(written), layout='')} has a control character in its key"
        raise ConfigError(message, remedy="Name a folder without control characters, such as tabs and ends of lines.")
    folder = (limits and limits.copies) or folder_for_caches()
    limit = bytes_of(limits.copies_limit) if limits is not None and limits.copies_limit is not None else DEFAULT_LIMIT
    name = str(address).removesuffix("/")
    digest = hashlib.sha256(json.dumps([name, endpoints()]).encode()).hexdigest()
    return ResultsStore(name, partial(RemoteFolder, address, what=what), folder / MIRRORS / digest[:16], limit)


@contextmanager
def results_at(text: str | os.PathLike[str], *, what: str = "results") -> Iterator[Path]:
    """Give the folder in which results can be read: the one that is named, or an up-to-date mirror of the store.

    Raises:
        ConfigError: it is neither.
        ThresherError: the store cannot be read. Errors raised inside name the address, too.
    """
    store = store_of(text, what=what)
    if store is None:
        yield local_path(text, Path.cwd(), what=what)
        return
    with store.naming():
        yield store.read_mirror()


def verify_at(text: str | os.PathLike[str], *, repair: bool) -> Verified:
    """Verify results wherever they live, those on a store by reading every object again; see `publish.verify`."""
    from ..storage.publish import repair_on_store, verify  # noqa: PLC0415 - runs need none of it

    store = store_of(text, what="results")
    if store is None:
        return verify(local_path(text, Path.cwd(), what="results"), repair=repair)
    with store.naming():
        healed = repair_on_store(store.mirror(store.work)) if repair else ()
    with store.fresh_copy() as folder:
        verified = verify(folder)
        notes = (*map(store.named, healed), *(note.replace(str(folder), store.address) for note in verified.notes))
    return replace(verified, notes=notes)


def expire_at(text: str | os.PathLike[str], keeping: Keeping, *, dry_run: bool) -> Expired:
    """Remove old runs wherever they live; see `publish.expire`."""
    from ..storage.publish import expire  # noqa: PLC0415 - runs need none of it

    store = store_of(text, what="results")
    if store is None or dry_run:
        with results_at(text) as folder:
            return expire(folder, keeping, dry_run=dry_run)
    with store.naming():
        expired = expire(store.work, keeping, mirror=store.mirror(store.work))
    return replace(expired, notes=tuple(map(store.named, expired.notes)))


def put_beside(text: str | os.PathLike[str], path: Path, kind: str) -> str:
    """Put a file beside results that live on a store; return where it is: there, or where it was written.

    Browsers know by `kind`, the type of its content, what to do with it.
    """
    store = store_of(text, what="results")
    if store is None:
        return str(path)
    store.connect().upload(path.name, path, kind=kind)
    return f"{store.address}/{path.name}"


TRIES = 5
PAUSE = 0.5  # seconds, doubled after every lost race


class OnStore:
    """One attempt of a config whose results live on a store, made in a mirror of that."""

    def __init__(self, store: ResultsStore, stop: StopRequest) -> None:
        self.store, self._stop = store, stop
        self.mirror = store.mirror(store.work)
        self.mirror.check = stop.check

    def begin(self) -> None:
        """Bring the mirror up to date, while its lock is held."""
        with self._stop.at_once():
            self.store.bring_here(self.mirror)
            self.mirror.check_conditions()


def tried_again(store: ResultsStore, run_once: Callable[[], Run]) -> Run:
    """Run a config; once more, on top of the other run, if one was published to its store meanwhile.

    The stages that it has counted are taken over if their inputs are still the same.

    Raises:
        BusyError: other runs were published first, every time.
        ThresherError: as for `run_once`.
    """
    from ..storage.layout import LostRaceError  # noqa: PLC0415 - only where results live on a store

    for attempt in range(TRIES):
        try:
            run = run_once()
        except LostRaceError:
            time.sleep(PAUSE * 2**attempt * random.uniform(0.5, 1))  # noqa: S311 - so that two do not meet again
            continue
        lost = (f"{_races(attempt)} to {store.address}: this run was made again on top",) if attempt else ()
        warnings = tuple(map(store.named, (*run.warnings, *lost)))
        return replace(run, warnings=warnings, address=f"{store.address}/runs/{run.path.name}")
    message = f"{_races(TRIES)} to {store.address} while this run was made"
    raise BusyError(message, remedy="Run again when the others have ended; this run's stages are taken over then.")


def _races(number: int) -> str:
    return "another run was published first" if number == 1 else f"{number} times another run was published first"
