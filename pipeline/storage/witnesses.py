"""What bears witness to runs: the links of the chain that are worth reading, and the hash of the catalog."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

from .chain import read_link
from .durable import DamagedError, own_sha256
from .layout import generation_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from .chain import Link
    from .layout import Layout


def with_neighbours(names: list[str], read: list[str]) -> set[str]:
    """Return the names of links that bear witness to runs: their own, the one before and the one after."""
    positions = {name: position for position, name in enumerate(names)}
    wanted = {positions[name] + step for name in read if name in positions for step in (-1, 0, 1)}
    return {names[position] for position in wanted if 0 <= position < len(names)}


def read_links(layout: Layout, names: Iterable[str]) -> dict[str, Link | None]:
    """Read the links of runs by name; None for a damaged one."""
    return {name: try_link(layout.link(name), name)[0] for name in names}


def links_since(names: list[str], pointer: Link | None) -> list[str]:
    """Return the names of the links that a pointer can lag behind: all without a pointer."""
    return names if pointer is None else [name for name in names if generation_of(name) >= pointer.generation]


def try_link(path: Path, name: str | None = None) -> tuple[Link | None, str]:
    """Return a link and an empty text, or None and what is wrong with the link."""
    try:
        link = read_link(path)
    except DamagedError as error:
        return None, str(error)
    return (link, "") if name in {None, link.run} else (None, f"{path} is the link of another run")


def catalog_sha256(layout: Layout, trusted: Iterable[Link | None]) -> str | None:
    """Return the hash of the catalog; without reading it, if it has size and time of the one that a trusted link names.

    Returns:
        None if the catalog is missing or not a file.
    """
    try:
        status = layout.catalog.lstat()
        identity = f"{status.st_size}:{status.st_mtime_ns}" if stat.S_ISREG(status.st_mode) else ""
        named = (link for link in trusted if link is not None and identity and link.catalog_identity == identity)
        link = next(named, None)
        return own_sha256(layout.catalog) if link is None else link.catalog_sha256
    except (OSError, DamagedError):
        return None


def naming(links: dict[str, Link | None], catalog_sha256: str | None) -> list[Link]:
    """Return the links that name the hash of the present catalog."""
    return [link for link in links.values() if link is not None and link.catalog_sha256 == catalog_sha256]


def expected_hashes(links: dict[str, Link | None], pointer: Link | None) -> dict[str, set[str]]:
    """Return the hashes that a manifest must have, from the run's own link and the next, by name of the run."""
    expected: dict[str, set[str]] = {}
    for link in (*links.values(), pointer):
        if link is not None:
            expected.setdefault(link.run, set()).add(link.manifest_sha256)
            if link.parent_manifest_sha256:
                expected.setdefault(link.parent, set()).add(link.parent_manifest_sha256)
    return expected
