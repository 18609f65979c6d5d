"""What a run does beside its work where its results live on a store: it begins from what is there, and tries again."""

from __future__ import annotations

import random
import time
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from ..errors import BusyError
from ..storage.stores.objects import LostRaceError
from ..storage.stores.publication import Publisher, check_conditions, upload_attempt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from ..interrupts import StopRequest
    from ..storage.stores.mirror import Mirror
    from .config import Config
    from .run import Run

TRIES = 5
PAUSE = 0.5  # seconds, doubled after every lost race


class OnStore:
    """One attempt of a config, where its results live; nothing but a name if that is a folder here.

    Args:
        config: The config.
        stop: Whether a signal asked to stop.
    """

    def __init__(self, config: Config, stop: StopRequest) -> None:
        self._store, self._stop = config.store, stop
        self._mirror: Mirror | None = None if config.store is None else config.store.work_mirror()

    @property
    def send(self) -> Callable[[Path], None]:
        """What puts the record of an attempt on the store."""
        return (lambda _path: None) if self._mirror is None else partial(upload_attempt, self._mirror)

    @property
    def publisher(self) -> Publisher | None:
        """What makes a run visible there; None for a folder here."""
        return None if self._mirror is None else Publisher(self._mirror, self._stop.check)

    def begin(self) -> None:
        """Bring the mirror up to date, while its lock is held.

        Raises:
            ThresherError: the store cannot be read, or does not honour conditions of writes.
        """
        if self._store is not None and self._mirror is not None:
            with self._stop.at_once():
                self._store.bring_here(self._mirror)
                check_conditions(self._mirror)

    @contextmanager
    def naming(self) -> Iterator[None]:
        """Let errors name the address, not the mirror."""
        if self._store is None:
            yield
            return
        with self._store.naming():
            yield


def tried_again(config: Config, run_once: Callable[[], Run]) -> Run:
    """Run a config; once more, on top of the other run, if one was published to its store meanwhile.

    The stages that it has counted are taken over if their inputs are still the same.

    Args:
        config: The config.
        run_once: Runs it.

    Raises:
        BusyError: other runs were published first, every time.
        ThresherError: as for `run_once`.
    """
    if config.store is None:
        return run_once()
    for attempt in range(TRIES):
        try:
            run = run_once()
        except LostRaceError:
            time.sleep(PAUSE * 2**attempt * random.uniform(0.5, 1))  # noqa: S311 - so that two do not meet again
            continue
        lost = (f"{_races(attempt)} to {config.results}: this run was made again on top",) if attempt else ()
        warnings = tuple(map(config.store.named, (*run.warnings, *lost)))
        return replace(run, warnings=warnings, address=f"{config.results}/runs/{run.path.name}")
    message = f"{_races(TRIES)} to {config.results} while this run was made"
    raise BusyError(message, remedy="Run again when the others have ended; this run's stages are taken over then.")


def _races(number: int) -> str:
    return "another run was published first" if number == 1 else f"{number} times another run was published first"
