"""The stable path `latest`, for readers without DuckDB: a link to the folder of the latest run, replaced as a whole."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from ..errors import ThresherError
from ..safe_files import remove_own
from .durable import DamagedError, read_own, sync_folder
from .layout import MANIFEST, RUN_NAME
from .manifest import faults, parse_manifest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .layout import Layout


def point_to_latest(layout: Layout, name: str) -> Iterator[str]:
    """Make `latest` a link to the folder of a run, by one rename; yield what was wrong with it, or prevents it.

    Where the system has no symbolic links, or permits none, as Windows by default, there is no `latest`. A tool that
    follows links while it copies a results folder leaves a copy of a run in its place: the copy gives way to the link.
    """
    target = os.path.join(layout.runs.name, name)  # noqa: PTH118 - the text of a link, relative to its folder
    if _target(layout) == target:
        return
    if not layout.latest.is_symlink() and layout.latest.exists():
        if not _is_copy_of_a_run(layout.latest):
            yield f"{layout.latest} is not the link that thresher makes: move it away, then it is made"
            return
        aside = layout.staging / f"latest.{os.getpid()}.copy"
        layout.latest.rename(aside)
        remove_own(aside, layout.root)
    temporary = layout.staging / f"latest.{os.getpid()}"
    with suppress(OSError, NotImplementedError):
        remove_own(temporary, layout.root)
        temporary.symlink_to(target, target_is_directory=True)
        temporary.replace(layout.latest)
        sync_folder(layout.root)


def latest_faults(layout: Layout) -> Iterator[str]:
    """Yield what is wrong with `latest`; to be missing, or to lag behind at an earlier run, is a trace of a crash."""
    target = _target(layout)
    if target is not None:
        if not (layout.root / target).is_dir():
            yield f"{layout.latest} leads to {target}, which is missing"
    elif layout.latest.is_symlink() or (layout.latest.exists() and not _is_copy_of_a_run(layout.latest)):
        yield f"{layout.latest} is not a link to a published run"


def latest_notes(layout: Layout) -> Iterator[str]:
    """Yield what is no damage but worth knowing: a copy of a run in the place of the link."""
    if not layout.latest.is_symlink() and layout.latest.is_dir() and _is_copy_of_a_run(layout.latest):
        yield f"{layout.latest} is a copy of a run, not a link to it; the next run, or --repair, makes it a link"


def _is_copy_of_a_run(folder: Path) -> bool:
    """Whether a folder holds the files of a manifest, by name and size, and nothing else."""
    path = folder / MANIFEST
    try:
        return not faults(folder, parse_manifest(read_own(path), path), hashes=False)
    except (ThresherError, DamagedError):
        return False


def _target(layout: Layout) -> str | None:
    """Return where `latest` leads; None if it is missing, or not a link to a folder in `runs`."""
    try:
        target = os.readlink(layout.latest)  # noqa: PTH115 - as text
    except (OSError, NotImplementedError):
        return None
    folder, _, name = target.replace(os.sep, "/").partition("/")
    return target if folder == layout.runs.name and RUN_NAME.fullmatch(name) else None
