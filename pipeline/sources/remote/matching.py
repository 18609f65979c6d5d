"""Which keys of a bucket a text means: as among files, an object, all below a folder, or what a pattern matches."""

from __future__ import annotations

import fnmatch
import glob
from dataclasses import field
from typing import TYPE_CHECKING

from ...records import dataclass
from ..finding import SUM_ENDING, is_hidden

if TYPE_CHECKING:
    from collections.abc import Iterable

_ANY_DEPTH = "**"
_Names = tuple[str, ...]


@dataclass(frozen=True)
class Matches:
    """What a folder or pattern matches.

    Attributes:
        chosen: Keys to be read.
        passed_over: Visible keys below folders that it matches, whose names end otherwise than files of the format.
    """

    chosen: list[str] = field(default_factory=list)
    passed_over: list[str] = field(default_factory=list)


def fixed_part(names: _Names) -> _Names:
    """Return the names before the first one that is a pattern."""
    number = next((at for at, name in enumerate(names) if glob.has_magic(name)), len(names))
    return names[:number]


def match_keys(keys: Iterable[str], folder: _Names, pattern: _Names, endings: tuple[str, ...]) -> Matches:
    """Sort the keys of a bucket by whether a folder, or a pattern below it, means them.

    Args:
        keys: Keys of objects.
        folder: The names of the folder, taken as they are.
        pattern: Names below it, with `*`, `?`, `[…]` and `**`; none: the folder itself is meant.
        endings: Endings of the names of files in folders, in lower case.
    """
    matches = Matches()
    depth = len(folder)
    of_folders = _without_any_depth_at_end(pattern)
    is_of_files = pattern != () and of_folders == pattern
    for key in sorted(keys):
        names = tuple(key.split("/"))
        below = names[depth:]
        if names[:depth] != folder:
            continue
        if is_of_files and _fits(below, pattern):
            matches.chosen.append(key)
        elif _is_visible(below, of_folders) and not key.endswith(SUM_ENDING):
            (matches.chosen if key.lower().endswith(endings) else matches.passed_over).append(key)
    return matches


def _without_any_depth_at_end(pattern: _Names) -> _Names:
    """Return the pattern of the folders that are searched: a `**` at the end is the folder with all below it."""
    while pattern[-1:] == (_ANY_DEPTH,):
        pattern = pattern[:-1]
    return pattern


def _is_visible(names: _Names, pattern: _Names) -> bool:
    """Whether names lead to a file below a folder that a pattern matches, through no hidden name from there on."""
    return any(_fits(names[:n], pattern) and not any(map(is_hidden, names[n:])) for n in range(len(names)))


def _fits(names: _Names, pattern: _Names) -> bool:
    """Whether names fit a pattern one by one; as in a shell, `*` and `**` match no name that starts with `.`."""
    if not pattern:
        return not names
    if pattern[0] == _ANY_DEPTH:
        depth = next((at for at, name in enumerate(names) if name.startswith(".")), len(names))
        return any(_fits(names[number:], pattern[1:]) for number in range(depth + 1))
    return bool(names) and _is_match(names[0], pattern[0]) and _fits(names[1:], pattern[1:])


def _is_match(name: str, pattern: str) -> bool:
    if not glob.has_magic(pattern):
        return name == pattern
    return fnmatch.fnmatchcase(name, pattern) and (pattern.startswith(".") or not name.startswith("."))
