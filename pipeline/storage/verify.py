"""Verification and healing: what is not as it was published is told, and rebuilt from the run folders."""

from __future__ import annotations

import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from ..errors import DataError, UsageError
from ..records import dataclass
from ..safe_files import remove_own
from .catalog import catalog_faults, stage_catalog, version_of, what_is_shown
from .layout import (
    PROBE,
    UNFINISHED_NAME,
    DamagedError,
    Layout,
    read_own,
    read_record,
    remove_whole,
    run_id_of,
    storage_errors,
    sync_folder,
    write_whole,
)
from .publish import exclusive
from .state import (
    OLDER_RUNS,
    RUNNING,
    Hashed,
    State,
    crashed,
    latest_faults,
    latest_notes,
    no_run,
    point_to_latest,
    read_state,
    settle,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from .mirror import Mirror


MOST_DAMAGE = 20
ABANDONED_SECONDS = 3600.0
HEALING = "healed"


@dataclass(frozen=True)
class Healed:
    """A results folder after healing.

    Attributes:
        state: Its state as it was found.
        notes: What was rebuilt, and what is damaged and could not be rebuilt.
        crashes: What attempts were reading that ended without a word.
    """

    state: State
    notes: tuple[str, ...]
    crashes: tuple[str, ...] = ()


def heal(layout: Layout, hashed: Hashed = "latest") -> Healed:
    """Tidy up after a crash, and rebuild catalog, pointer and the stable path from the run folders.

    Args:
        layout: The results folder, whose lock the caller holds.
        hashed: The runs of which every file is read; with `all` every kept run is looked at, else the latest and some
            older ones in turn.

    Raises:
        ThresherError: the disk is full or failing, or refuses access.
    """
    with storage_errors(f"healing {layout.root}"):
        state = read_state(layout, hashed, older=None if hashed == "all" else OLDER_RUNS)
        _remove_leftovers(state)
        folders = {run_id_of(name): layout.runs / name for name in state.kept}
        crashes = tuple(settle(layout, folders, state.latest.run_id))
        notes = [*_linked_answers(layout)]
        if state.runs:
            layout.staging.mkdir(exist_ok=True)
            notes += [*_mend(state, hashed), *point_to_latest(layout, state.latest.name), *_losses(state)]
        remove_own(layout.pending, layout.root)
    return Healed(state, tuple(notes), crashes)


def _linked_answers(layout: Layout) -> Iterator[str]:
    if layout.states.is_symlink():
        yield f"{layout.states} is a link, which is not followed: runs read every file again until it is a folder"


def _remove_leftovers(state: State) -> None:
    """Remove what a crashed run left: staged files, and run folders that never became visible."""
    layout = state.layout
    clear_staging(layout, unless=layout.unfinished()[-1:])
    for path in layout.root.glob(f"{PROBE}.*"):
        if path.name.removeprefix(f"{PROBE}.").isdecimal():
            remove_own(path, layout.root)
    for path in layout.attempts.glob(".*.json.*.tmp"):  # they may belong to a run that starts just now
        with suppress(FileNotFoundError):
            if UNFINISHED_NAME.fullmatch(path.name) and time.time() - path.lstat().st_mtime > ABANDONED_SECONDS:
                remove_own(path, layout.root)
    for folder in state.leftovers:
        remove_whole(folder, layout.staging, layout.root)


def clear_staging(layout: Layout, *, unless: Sequence[str] = ()) -> None:
    """Remove unfinished things, as far as possible.

    Args:
        layout: The results folder, whose lock the caller holds.
        unless: Ids of unfinished runs to keep, because the next run can take over the stages that they have finished.
    """
    kept = {name for run_id in unless for name in (run_id, layout.finished(run_id).name)}
    if layout.staging.is_symlink() or not layout.staging.is_dir():
        return
    for path in layout.staging.iterdir():
        if path.name not in kept and UNFINISHED_NAME.fullmatch(path.name):
            remove_own(path, layout.root, as_far_as_possible=True)
    if not kept:
        with suppress(OSError):  # somebody else's things lie there, too
            layout.staging.rmdir()


def _mend(state: State, hashed: Hashed) -> Iterator[str]:
    """Write catalog and pointer again where they are not those of the runs as they are; yield what was wrong."""
    layout, reason = state.layout, _wrong_with_catalog(state, hashed)
    if reason and state.runs[-1].is_readable:
        existing_shows = "" if "not of thresher" in reason else state.catalog_shows
        path, pointer = stage_catalog(state, HEALING, existing_shows=existing_shows)
        content = pointer.to_bytes()
        write_whole(layout.pending, content)
        remove_own(layout.wal, layout.root)
        path.replace(layout.catalog)
        sync_folder(layout.root)
        yield f"{layout.catalog} {reason}, and was built again"
    elif state.pointer is not None:
        content = state.pointer_to(state.pointer.catalog).to_bytes()
    else:
        return
    try:
        is_written = read_own(layout.current) == content
    except DamagedError:
        is_written = False
    if not is_written:
        write_whole(layout.current, content, scratch=layout.staging)
    if state.pointer is None:
        yield f"{layout.current} was missing or damaged, and was written again"


def _wrong_with_catalog(state: State, hashed: Hashed) -> str:
    """Say why the catalog has to be built again; empty if it is the one that the pointer names, and shows all runs."""
    catalog, wal = state.layout.catalog, state.layout.wal
    if state.catalog_sha256 is None:
        return "was missing" if catalog.is_symlink() or not catalog.exists() else "could not be read"
    if not state.catalog_shows:
        return "was not the one that was published"
    if state.catalog_shows != (shows := what_is_shown(state)):
        is_other_version = version_of(state.catalog_shows) != version_of(shows)
        return "was made by another version of thresher" if is_other_version else "showed another folder or other runs"
    if hashed == "all" and any(catalog_faults(catalog, state.shown)):
        return "held what is not of thresher"
    return "had been opened for writing" if wal.is_symlink() or wal.exists() else ""


def _losses(state: State) -> Iterator[str]:
    """Yield a sentence for each run with damage that cannot be healed."""
    for run in state.runs:
        if run.damage:
            first, *more = run.damage.values()
            others = f", and {len(more):,} more" if more else ""
            effect = "this run is made again" if run is state.runs[-1] else "history leaves it out"
            yield f"a published run is damaged: {first}{others}; {effect}"


@dataclass(frozen=True)
class Verified:
    """A results folder that is as it was published.

    Attributes:
        runs: Number of kept runs.
        files: Number of their files.
        notes: What was healed, and what is not damage but worth knowing.
    """

    runs: int
    files: int
    notes: tuple[str, ...]


def repair_on_store(mirror: Mirror) -> tuple[str, ...]:
    """Build catalog and pointer of results on a store from the runs there; return what was done.

    Raises:
        BusyError: a run holds the mirror.
        ThresherError: the store cannot be read or written.
    """
    with exclusive(mirror.layout):
        mirror.bring_here()
        notes = heal(mirror.layout, "all").notes
        sent = mirror.send_back() if mirror.layout.current.is_file() else ()
        return (*notes, *sent)


def verify(results: Path, *, repair: bool = False) -> Verified:
    """Check every file of every kept run, the pointer, and the catalog with its tables.

    Args:
        results: The output folder of a run.
        repair: Whether to rebuild catalog and pointer first; otherwise nothing is written.

    Raises:
        NoInputError: no run was published there.
        DataError: something is missing, changed or extra; the message lists it.
        BusyError: with `repair`, a run holds the folder.
    """
    layout = Layout(results.resolve())
    healed: tuple[str, ...] = ()
    if repair and layout.root.is_dir():
        with exclusive(layout):
            mended = heal(layout, "all")
            healed = (*mended.crashes, *mended.notes)
    state = read_state(layout, "all", older=None)
    if not state.latest.generation:
        raise no_run(layout)
    damage = [*_pointer_faults(state), *_catalog_faults(state), *latest_faults(layout), *state.damage]
    if damage:
        more = f"; and {len(damage) - MOST_DAMAGE:,} more" if len(damage) > MOST_DAMAGE else ""
        while_mended = f" (while it was mended: {'; '.join(healed)})" if healed and not state.damage else ""
        raise DataError("; ".join(damage[:MOST_DAMAGE]) + more + while_mended, remedy=_remedy(state, repair=repair))
    files = sum(len(run.manifest.files) for run in state.runs if run.manifest is not None)
    return Verified(len(state.runs), files, (*healed, *_notes(state)))


def _remedy(state: State, *, repair: bool) -> str:
    if not state.damage:
        if repair:  # what it needs of the runs could not be read a moment ago
            return "Repair it again; if that does not help, check the disk or the network share."
        return f"thresher verify {state.layout.root} --repair writes them again, and so does the next run."
    if state.runs[-1].damage:
        return "Run the job again, which publishes a new run; or restore what is damaged from a copy."
    return "Restore what is damaged from a copy; or delete the folder of the damaged run and go on without it."


def _pointer_faults(state: State) -> Iterator[str]:
    if state.pointer is None:
        yield state.pointer_fault
    elif state.pointer.run != state.latest.name:
        yield f"{state.layout.current} names {state.pointer.run}, and the latest run is {state.latest.name}"


def _catalog_faults(state: State) -> Iterator[str]:
    layout = state.layout
    if layout.wal.is_symlink() or layout.wal.exists():
        yield f"{layout.wal} should not be there: the catalog was opened for writing"
    elif state.catalog_sha256 is None:
        yield f"{layout.catalog} is {'a link or not a file' if layout.catalog.is_symlink() else 'missing'}"
    elif state.pointer is not None and not state.catalog_shows:
        yield f"{layout.catalog} is not the one that was published"
    elif not _shows_others(state):
        yield from catalog_faults(layout.catalog, state.shown)


def _shows_others(state: State) -> bool:
    return state.catalog_shows != what_is_shown(state)


def _notes(state: State) -> Iterator[str]:
    if _shows_others(state):
        yield (
            f"{state.layout.catalog} shows another folder or deleted runs, or was made by another version of "
            "thresher; it is built again by the next run, or with --repair"
        )
    yield from latest_notes(state.layout)
    for path in crashed(state.layout):
        yield f"{path} says `running`, but its process is gone: it crashed"


# Expiry: old runs are removed whole, then the catalog is made again without their rows.
#
# A run's folder is moved to `.staging/` by one rename, so that it is there or gone, never a part of it; what a kill
# leaves there the next run removes. A catalog that still shows rows of runs that have gone is no damage: every reader
# leaves them out, and the next run, or this one a moment later, makes it again.


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
