"""Verification: every file of every run against its manifest, and pointer and catalog against the manifests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import DataError
from ..records import dataclass
from .attempts import crashed
from .catalog import what_is_shown
from .catalog_check import catalog_faults
from .heal import heal
from .latest import latest_faults, latest_notes
from .layout import Layout
from .publish import exclusive
from .state import State, no_run, read_state

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .mirror import Mirror

MOST_DAMAGE = 20


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
