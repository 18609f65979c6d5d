"""Expiry: old runs are removed whole, then the catalog is made again without their rows.

A run's folder is moved to `.staging/` by one rename, so that it is there or gone, never a part of it; what a kill
leaves there the next run removes. A catalog that still shows rows of runs that have gone is no damage: every reader
leaves them out, and the next run, or this one a moment later, makes it again.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from ..errors import UsageError
from ..records import dataclass
from ..safe_files import remove_own
from .durable import read_record, storage_errors, sync_folder
from .layout import Layout, run_id_of
from .publish import exclusive
from .state import RUNNING, State, no_run, read_state
from .verify import heal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from .mirror import Mirror

EXPIRED = ".expired"
MOST_DAYS = 100_000


@dataclass(frozen=True)
class Keeping:
    """Which runs stay: the last ones, and young ones; the latest always does.

    Attributes:
        n_runs: How many of the last runs stay; None: their number is no reason to stay.
        n_days: Runs published within so many days stay; None: their age is no reason to stay.

    Raises:
        UsageError: both are None, or one is out of range.
    """

    n_runs: int | None
    n_days: float | None

    def __post_init__(self) -> None:
        if self.n_runs is None and self.n_days is None:
            message = "nothing says which runs to keep"
            raise UsageError(message, remedy="Give --keep N, --keep-days D, or both: a run stays that either keeps.")
        if self.n_runs is not None and self.n_runs < 1:
            message = f"--keep {self.n_runs}: at least the latest run stays"
            raise UsageError(message, remedy="Give a number from 1.")
        if self.n_days is not None and not 0 <= self.n_days <= MOST_DAYS:
            message = f"--keep-days {self.n_days:g} is not a number of days"
            raise UsageError(message, remedy=f"Give a number from 0 to {MOST_DAYS:,}.")


@dataclass(frozen=True)
class Expired:
    """What was removed.

    Attributes:
        removed: Names of the folders of the runs that were removed, oldest first.
        kept: Names of those that stay, oldest first.
        attempts: Number of records of attempts that were removed.
        notes: What was healed before.
    """

    removed: tuple[str, ...]
    kept: tuple[str, ...]
    attempts: int
    notes: tuple[str, ...]


def expire(results: Path, keeping: Keeping, *, dry_run: bool = False, mirror: Mirror | None = None) -> Expired:
    """Remove old runs, the records of attempts as old, and their rows in the catalog.

    Args:
        results: The output folder of a run.
        keeping: Which runs stay.
        dry_run: Whether to say only what would be removed.
        mirror: The mirror that the folder is of results on a store, from which they are removed, too; else None.

    Raises:
        NoInputError: no run was published there.
        BusyError: a run holds the folder.
        StorageError: the disk is full or failing.
        UnavailableError: the store does not answer.
    """
    layout = Layout(results.resolve())
    if not layout.root.is_dir() and mirror is None:
        raise no_run(layout)
    if dry_run:
        state = read_state(layout, older=None)
        removed, attempts = _outdated(state, keeping)
        return Expired(removed, _without(state.kept, removed), len(attempts), ())
    with exclusive(layout):
        if mirror is not None:
            mirror.bring_here()
        healed = heal(layout)
        notes = (*healed.crashes, *healed.notes)
        state = read_state(layout, older=None)
        removed, attempts = _outdated(state, keeping)
        with storage_errors(f"removing old runs of {layout.root}"):
            _remove(state, removed, attempts)
        heal(layout)
        if mirror is not None:
            notes = (*notes, *mirror.send_back())
            mirror.remove_runs(removed, attempts)
    return Expired(removed, _without(state.kept, removed), len(attempts), notes)


def _without(names: Sequence[str], removed: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for name in names if name not in set(removed))


def _outdated(state: State, keeping: Keeping) -> tuple[tuple[str, ...], tuple[Path, ...]]:
    """Return the names of the runs, and the paths of the records of attempts, that do not stay."""
    if not state.latest.generation:
        raise no_run(state.layout)
    moments, too_old = _moments(state), _before(timedelta(0))
    last_ones = () if keeping.n_runs is None else state.kept[-keeping.n_runs :]
    if keeping.n_days is not None:
        too_old = _before(timedelta(days=keeping.n_days))
    removed = tuple(name for name in state.kept[:-1] if name not in last_ones and moments[name] < too_old)
    kept_ids = {run_id_of(name) for name in _without(state.kept, removed)}
    oldest = min(moments[last_ones[0]], too_old) if last_ones else too_old
    return removed, tuple(_old_attempts(state.layout, oldest, kept_ids))


def _before(age: timedelta) -> str:
    return (datetime.now(UTC) - age).replace(tzinfo=None).isoformat(timespec="microseconds")


def _moments(state: State) -> dict[str, str]:
    """When every kept run was published, by name; a run whose manifest is damaged counts as the one after it."""
    moments, last = {}, _before(timedelta(0))
    for run in reversed(state.runs):
        last = last if run.manifest is None else run.manifest.published_at
        moments[run.folder.name] = last
    return moments


def _old_attempts(layout: Layout, limit: str, kept_ids: set[str]) -> Iterator[Path]:
    """Yield the records of attempts that began before a moment, except those of kept runs, and of attempts at work."""
    for run_id in layout.attempt_ids():
        record = None if run_id in kept_ids else read_record(layout.attempt(run_id))
        if record is not None and record.get("status") != RUNNING and str(record.get("started_at")) < limit:
            yield layout.attempt(run_id)


def _remove(state: State, names: Sequence[str], attempts: Sequence[Path]) -> None:
    """Remove runs and records of attempts."""
    layout = state.layout
    layout.staging.mkdir(exist_ok=True)
    aside = [layout.staging / f"{name}{EXPIRED}" for name in names]
    for name, path in zip(names, aside, strict=True):
        (layout.runs / name).rename(path)
    sync_folder(layout.runs)
    for path in (*aside, *attempts):
        remove_own(path, layout.root)
