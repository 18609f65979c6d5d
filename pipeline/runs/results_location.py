"""Where results live: in a folder here, or on a store, for which runs are made in a mirror here."""

from __future__ import annotations

import hashlib
import json
import os
import random
import time
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ..engines.limits import bytes_of
from ..errors import BusyError, ConfigError
from ..sources.paths import is_remote, local_path, shortened
from ..sources.remote.reading import folder_for_caches
from ..sources.remote.store import Address, endpoints, parse_address
from ..visible_text import cleaned

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..interrupts import StopRequest
    from ..storage.mirror import ResultsStore
    from ..storage.verify import Expired, Keeping, Verified
    from .config import ResourceLimits
    from .stage_results import Run


MIRRORS = "results"


def store_of(text: str | os.PathLike[str], *, what: str, limits: ResourceLimits | None = None) -> ResultsStore | None:
    """Return the store that a text names; None if it means a folder here.

    Args:
        text: The text as written by a person.
        what: What it is for, in messages.
        limits: Limits of a config, whose folder and limit of copies its mirrors obey, too.

    Raises:
        ConfigError: the address cannot be read, or is a pattern.
    """
    written = os.fspath(text)
    if not is_remote(written):
        return None
    from ..storage.mirror import (  # noqa: PLC0415 - only where results live on a store
        DEFAULT_LIMIT,
        RemoteFolder,
        ResultsStore,
    )

    address = parse_address(written, what=what)
    if any(mark in address.key for mark in "*?["):
        message = f"{what}: {shortened(written)} is a pattern, and results live in one folder"
        raise ConfigError(message, remedy="Name a folder without *, ? and [.")
    if not address.is_readable:
        message = f"{what}: {cleaned(shortened(written), layout='')} has a control character in its key"
        raise ConfigError(message, remedy="Name a folder without control characters, such as tabs and ends of lines.")
    caches = folder_for_caches() / MIRRORS
    limit = DEFAULT_LIMIT
    if limits is not None and limits.copies is not None:
        caches = limits.copies / MIRRORS
    if limits is not None and limits.copies_limit is not None:
        limit = bytes_of(limits.copies_limit)
    return ResultsStore(
        _name(address),
        partial(RemoteFolder, address, what=what),
        caches / hashlib.sha256(json.dumps([_name(address), endpoints()]).encode()).hexdigest()[:16],
        limit,
    )


def _name(address: Address) -> str:
    return str(address).removesuffix("/")


@contextmanager
def results_at(text: str | os.PathLike[str], *, what: str = "results") -> Iterator[Path]:
    """Give the folder in which results can be read: the one that is named, or an up-to-date mirror of the store.

    Args:
        text: A folder or an address, as written by a person.
        what: What it is for, in messages.

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
    """Verify results wherever they live; those on a store by reading every object again.

    Args:
        text: A folder or an address.
        repair: Whether to rebuild catalog and pointer first.

    Raises:
        ThresherError: as for `pipeline.storage.verify.verify`, or the store cannot be read.
    """
    from ..storage.verify import repair_on_store, verify  # noqa: PLC0415 - runs need none of it

    store = store_of(text, what="results")
    if store is None:
        return verify(local_path(text, Path.cwd(), what="results"), repair=repair)
    with store.naming():
        healed = repair_on_store(store.work_mirror()) if repair else ()
    with store.fresh_copy() as folder:
        verified = verify(folder)
        notes = (*map(store.named, healed), *(note.replace(str(folder), store.address) for note in verified.notes))
    return replace(verified, notes=notes)


def expire_at(text: str | os.PathLike[str], keeping: Keeping, *, dry_run: bool) -> Expired:
    """Remove old runs wherever they live.

    Args:
        text: A folder or an address.
        keeping: Which runs stay.
        dry_run: Whether to say only what would be removed.

    Raises:
        ThresherError: as for `pipeline.storage.verify.expire`, or the store cannot be read or written.
    """
    from ..storage.verify import expire  # noqa: PLC0415 - runs need none of it

    store = store_of(text, what="results")
    if store is None or dry_run:
        with results_at(text) as folder:
            return expire(folder, keeping, dry_run=dry_run)
    with store.naming():
        expired = expire(store.work, keeping, mirror=store.work_mirror())
    return replace(expired, notes=tuple(map(store.named, expired.notes)))


def put_beside(text: str | os.PathLike[str], path: Path, kind: str) -> str:
    """Put a file beside results that live on a store; return where it is: there, or where it was written.

    Args:
        text: Where the results live.
        path: The file.
        kind: The type of its content, by which browsers know what to do.

    Raises:
        ThresherError: the store cannot be written.
    """
    store = store_of(text, what="results")
    if store is None:
        return str(path)
    store.connect().upload(path.name, path, kind=kind)
    return f"{store.address}/{path.name}"


# What a run does beside its work where its results live on a store: it begins from what is there, and tries again.


TRIES = 5
PAUSE = 0.5  # seconds, doubled after every lost race


class OnStore:
    """One attempt of a config whose results live on a store.

    Args:
        store: The store.
        stop: Whether a signal asked to stop.

    Attributes:
        store: The store.
        mirror: Where the run is made.
    """

    def __init__(self, store: ResultsStore, stop: StopRequest) -> None:
        self.store, self._stop = store, stop
        self.mirror = store.work_mirror()
        self.mirror.check = stop.check

    def begin(self) -> None:
        """Bring the mirror up to date, while its lock is held.

        Raises:
            ThresherError: the store cannot be read, or does not honour conditions of writes.
        """
        with self._stop.at_once():
            self.store.bring_here(self.mirror)
            self.mirror.check_conditions()


def tried_again(store: ResultsStore, run_once: Callable[[], Run]) -> Run:
    """Run a config; once more, on top of the other run, if one was published to its store meanwhile.

    The stages that it has counted are taken over if their inputs are still the same.

    Args:
        store: Where its results live.
        run_once: Runs it.

    Raises:
        BusyError: other runs were published first, every time.
        ThresherError: as for `run_once`.
    """
    from ..storage.publish import LostRaceError  # noqa: PLC0415 - only where results live on a store

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
