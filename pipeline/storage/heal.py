"""Healing: rebuild what intact run folders tell, remove what a crash left, and report what is lost."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

from ..records import dataclass
from ..safe_files import remove_own
from .attempts import settle
from .catalog import stage_catalog, version_of, what_is_shown
from .catalog_check import catalog_faults
from .durable import PROBE, DamagedError, read_own, remove_whole, storage_errors, sync_folder, write_whole
from .latest import point_to_latest
from .layout import UNFINISHED_NAME, Layout, run_id_of
from .state import OLDER_RUNS, Hashed, State, read_state

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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
        path, catalog = stage_catalog(state, HEALING, existing_shows=existing_shows)
        content = state.pointer_to(catalog).to_bytes()
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
