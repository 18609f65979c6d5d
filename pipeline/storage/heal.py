"""Healing: rebuild what intact run folders tell, remove what a crash left, and report what is lost."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from ..records import dataclass
from ..safe_files import remove_own
from .attempts import settle
from .catalog import Content, stage_catalog, version_of, what_is_shown
from .catalog_check import catalog_faults
from .chain import Link, write_link
from .durable import PROBE, remove_whole, storage_errors, sync_folder, write_whole
from .latest import point_to_latest
from .layout import RUN_RECORD, UNFINISHED_NAME, Layout, generation_of, run_id_of
from .state import OLDER_RUNS, Hashed, State, read_state

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .kept import KeptRun

ABANDONED_SECONDS = 3600.0
HEALING = "healed"


@dataclass(frozen=True)
class Healed:
    """A results folder after healing.

    Attributes:
        state: Its state.
        notes: What was rebuilt, and what is damaged and could not be rebuilt.
        crashes: What attempts were reading that ended without a word.
    """

    state: State
    notes: tuple[str, ...]
    crashes: tuple[str, ...] = ()


def heal(layout: Layout, hashed: Hashed = "latest") -> Healed:
    """Tidy up after a crash, and rebuild chain, catalog, pointer and the stable path from the run folders.

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
        linked = tuple(_linked_answers(layout))
        if not state.runs:
            return Healed(state, linked, crashes)
        layout.staging.mkdir(exist_ok=True)
        notes = [
            *_heal_chain(state, hashed),
            *_heal_catalog(state, hashed),
            *_heal_pointer(state),
            *point_to_latest(layout, state.latest.name),
        ]
    return Healed(state, (*linked, *notes, *_losses(state)), crashes)


def _linked_answers(layout: Layout) -> Iterator[str]:
    if layout.states.is_symlink():
        yield f"{layout.states} is a link, which is not followed: runs read every file again until it is a folder"


def _remove_leftovers(state: State) -> None:
    """Remove what a crashed run left: staged files, and run folders and links that never became visible."""
    layout = state.layout
    clear_staging(layout, unless=layout.unfinished()[-1:])
    for path in layout.root.glob(f"{PROBE}.*"):
        if path.name.removeprefix(f"{PROBE}.").isdecimal():
            remove_own(path, layout.root)
    for path in layout.attempts.glob(".*.json.*.tmp"):  # they may belong to a run that starts just now
        with suppress(FileNotFoundError):
            if UNFINISHED_NAME.fullmatch(path.name) and time.time() - path.lstat().st_mtime > ABANDONED_SECONDS:
                remove_own(path, layout.root)
    kept = set(state.kept)
    for name, link in [*state.links.items()]:
        if name not in kept and (link is None or generation_of(name) >= state.latest.generation):
            remove_own(layout.link(name), layout.root)
            del state.links[name]
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


def _heal_chain(state: State, hashed: Hashed) -> Iterator[str]:
    """Rewrite the links that are missing or damaged, and note in each link which files of its run are broken."""
    before = dict(zip(state.kept, ("", *state.kept), strict=False))
    for run in state.runs:
        name = run.folder.name
        link = state.links.get(name) or _link_again(state, run, before[name])
        if link is None:
            continue
        if run.manifest is not None and (hashed == "all" or (hashed == "latest" and run is state.runs[-1])):
            listed = {file.path for file in run.manifest.files}
            link = replace(link, broken=tuple(sorted(listed & run.damage.keys())))
        if link != state.links.get(name):
            write_link(state.layout, link)
            if state.links.get(name) is None:
                yield f"{state.layout.link(name)} was missing or damaged, and was written again"
            state.links[name] = link


def _link_again(state: State, run: KeptRun, previous: str) -> Link | None:
    """Restore a missing or damaged link from the pointer or the manifest; return None if both are lost."""
    if state.pointer is not None and state.pointer.run == run.folder.name:
        return state.pointer
    if run.manifest is None:
        return None
    recorded = next((file.sha256 for file in run.manifest.files if file.path == RUN_RECORD), "")
    parent_sha256 = state.manifest_sha256(previous)
    return Link(run.manifest.generation, run.run_id, run.manifest_sha256, recorded, previous, parent_sha256)


def _heal_catalog(state: State, hashed: Hashed) -> Iterator[str]:
    """Mend the catalog unless it is the one that the chain names and shows the existing runs."""
    layout, name = state.layout, state.latest.name
    link, latest = state.links.get(name), state.runs[-1]
    existing = state.catalog_link
    shows = what_is_shown(layout, state.visible, state.left_out)
    same = existing is not None and existing.catalog_shows == shows
    is_foreign = same and hashed == "all" and any(catalog_faults(layout.catalog, state.shown))
    is_missing = layout.catalog.is_symlink() or not layout.catalog.exists()
    has_wal = layout.wal.is_symlink() or layout.wal.exists()
    if (same and not (has_wal or is_foreign)) or link is None or not latest.is_readable:
        return
    content = replace(_content(state), existing_shows="") if is_foreign else _content(state)
    catalog = stage_catalog(layout, HEALING, content)
    link = catalog.named_by(link, state.left_out, state.lost)
    write_link(layout, link)
    remove_own(layout.wal, layout.root)
    catalog.path.replace(layout.catalog)
    sync_folder(layout.root)
    state.links[name] = link
    if state.catalog_sha256 is None:
        reason = "was missing" if is_missing else "could not be read"
    elif existing is None:
        reason = "was damaged"
    elif is_foreign:
        reason = "held what is not of thresher"
    elif version_of(existing.catalog_shows) != version_of(shows):
        reason = "was made by another version of thresher"
    else:
        reason = "had been opened for writing" if has_wal else "showed another folder or other runs"
    yield f"{layout.catalog} {reason}, and was built again"


def _content(state: State) -> Content:
    """Return what the catalog has to show of the runs as they are."""
    existing = state.catalog_link
    return Content(
        kept=state.visible,
        latest=state.shown[-1],
        left_out=state.left_out,
        runs=lambda: read_state(state.layout, older=None).shown,
        existing_shows="" if existing is None else existing.catalog_shows,
    )


def _heal_pointer(state: State) -> Iterator[str]:
    """Rewrite the pointer unless it is the last link; a pointer that lags is a trace of a crash, not damage."""
    link = state.links.get(state.latest.name)
    if link is None or link == state.pointer:
        return
    write_whole(state.layout.current, link.to_bytes(), scratch=state.layout.staging)
    if state.pointer is None:
        yield f"{state.layout.current} was missing or damaged, and was written again"


def _losses(state: State) -> Iterator[str]:
    """Yield a sentence for each run with damage that cannot be healed."""
    for run in state.runs:
        if run.damage:
            first, *more = run.damage.values()
            others = f", and {len(more):,} more" if more else ""
            effect = "this run is made again" if run is state.runs[-1] else "history leaves it out"
            yield f"a published run is damaged: {first}{others}; {effect}"
