"""From the paths and patterns of an input to its files. Folders and globs both follow links; loops are errors."""

from __future__ import annotations

import errno
import fnmatch
import glob
import os
import re
from dataclasses import field
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import TYPE_CHECKING

from ..crash_notes import opening
from ..errors import DataError, NoInputError, os_fault
from ..records import dataclass
from ..safe_files import identity, kind_in_words, names_below
from .parquet_files import ENCRYPTED, MAGIC
from .paths import start_and_pattern

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    import pyarrow as pa

    from .parquet_files import DataFile


SUM_ENDING = ".sha256"  # of a file beside another one that tells its hash
ENDING = ".parquet"
_ANY_DEPTH = "**"
_OF_RESULTS = frozenset(
    {"CURRENT", "catalog.duckdb", "runs"}
)  # what a results folder holds once a run was published there
_KEPT_IN_RESULTS = frozenset({"runs", "chain", "attempts", "latest"})
_NOTHING_THERE = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG}
_Names = tuple[str, ...]
_Known = dict[tuple[int, int], Path]  # (device, inode) of a folder → one path that leads to it


class Search:
    """The search for the files of one input.

    Args:
        name: Name of the input in messages.
        base: Folder that relative paths start from.
        endings: Endings of the names of its files in folders, in lower case.
        results: The results folder of the run, which may not be there yet; None: it has none here.

    Attributes:
        passed_over: Visible files of folders whose names end otherwise, with the folder from which on folder names are
            partitions.
        folders: Folders that were searched as a whole.
        results_left_out: Results folders below those that are searched: what a run publishes is never its input.
    """

    def __init__(
        self, name: str, base: Path, endings: tuple[str, ...] = (ENDING,), results: Path | None = None
    ) -> None:
        self._name = name
        self._base = base
        self._endings = endings
        self.passed_over: dict[Path, Path] = {}
        self.folders: dict[Path, None] = {}
        self.results_left_out: dict[Path, None] = {}
        self._results = None if results is None else identity(results)

    def place(self, text: str) -> Path:
        """Return the path that a text means if it is no pattern.

        Raises:
            ConfigError: the text does not name a place on this machine.
        """
        start, below = start_and_pattern(text, self._base, what=f"input {self._name}")
        return _absolute(start / below)

    def matches(self, text: str) -> list[tuple[Path, Path]]:
        """Return the files that a path or pattern names, each once, sorted by name.

        Args:
            text: A file, a folder, or a pattern with `*`, `?`, `[…]` and `**`; a file of a folder counts if its name
                ends in `.parquet`, in upper or lower case, and neither it nor a folder on the way is hidden.

        Returns:
            Pairs of a file and the folder from which on folder names are partitions.

        Raises:
            ConfigError: the text does not name a place on this machine.
            NoInputError: a link leads nowhere.
            DataError: a link leads back to a folder above it, a name is not Unicode, or what has the name of a file is
                a named pipe, a socket or a device.
            ThresherError: a folder cannot be listed.
        """
        start, below = start_and_pattern(text, self._base, what=f"input {self._name}")
        path = self.place(text)
        mode = self._mode(path)
        if mode is not None and S_ISREG(mode):
            root_of = {path: path.parent}
        elif mode is not None and S_ISDIR(mode):
            root_of = dict.fromkeys(self._files_below(path, path), path)
        elif mode is not None:
            raise self._special(path, mode)
        else:
            fixed, pattern = _split(start, below)
            root_of = dict.fromkeys(self._expanded(fixed, pattern), fixed) if pattern else {}
        for file in root_of:
            try:
                os.fspath(file).encode()
            except UnicodeEncodeError as error:
                message = f"input {self._name}: the name of {str(file)!a} is not Unicode (UTF-8)"
                raise DataError(message, remedy="Rename the file.") from error
        return sorted(root_of.items(), key=lambda pair: pair[0].as_posix())

    def _expanded(self, fixed: Path, pattern: tuple[str, ...]) -> Iterator[Path]:
        for match in dict.fromkeys(self._glob(fixed, pattern)):
            mode = self._mode(match)
            if mode is not None and S_ISDIR(mode):
                yield from self._files_below(match, fixed)
            elif mode is not None and S_ISREG(mode):
                yield match
            elif mode is not None:
                raise self._special(match, mode)

    def would_find(self, text: str, path: Path) -> bool:
        """Whether a file at a path, which need not be there yet, would be one of those that a text names.

        It is told by names: what only a link in the place of a `*` leads to is not seen.
        """
        start, below = start_and_pattern(text, self._base, what=f"input {self._name}")
        literal = self.place(text)
        fixed, pattern = (literal, ()) if os.path.lexists(literal) else _split(start, below)
        names = names_below(fixed, path)
        if names is None:
            return False
        return not pattern if not names else is_meant(names, pattern, self._endings) is True

    def _special(self, path: Path, mode: int) -> DataError:
        kind = kind_in_words(mode)
        message = f"input {self._name}: {path} is {kind}, and only files are read"
        remedy = f"Write what it gives to a file, or move {path.name} out of the folder, or name the files one by one."
        return DataError(message, remedy=remedy)

    def _glob(self, fixed: Path, pattern: tuple[str, ...]) -> Iterator[Path]:
        """Yield what a pattern matches; as in a shell, `*` and `**` match no name that starts with `.`."""
        pending = [(fixed, pattern, _folders_above(fixed))]
        done: set[tuple[Path, int]] = set()
        while pending:
            folder, remaining, above = pending.pop()
            if (folder, len(remaining)) in done or not os.path.isdir(folder):  # noqa: PTH112 - Path.is_dir raises for names that are too long
                continue
            done.add((folder, len(remaining)))
            if remaining == (_ANY_DEPTH,):  # the folder with all that is below it
                yield folder
            elif remaining[0] == _ANY_DEPTH:
                pending.append((folder, remaining[1:], above))
                pending += [
                    (inner, remaining, self._below(inner, above))
                    for inner in self._matching(folder, "*", folders=True, is_named=folder == fixed)
                ]
            else:
                plain = not glob.has_magic(remaining[0])
                inside = [_absolute(folder / remaining[0])]
                if not plain:
                    inside = self._matching(folder, remaining[0], is_named=folder == fixed)
                if len(remaining) == 1:
                    yield from inside
                else:
                    pending += [(inner, remaining[1:], _folders_above(inner)) for inner in inside]

    def _matching(self, folder: Path, pattern: str, *, folders: bool = False, is_named: bool) -> list[Path]:
        is_match = re.compile(fnmatch.translate(os.path.normcase(pattern))).match
        entries = [
            entry
            for entry in self._entries(folder, is_named=is_named)
            if pattern.startswith(".") or not entry.name.startswith(".")
        ]
        return [
            folder / entry.name
            for entry in entries
            if is_match(os.path.normcase(entry.name)) and (self._is_folder(entry) or not folders)
        ]

    def _files_below(self, folder: Path, root: Path) -> Iterator[Path]:
        """Yield the files of a folder at any depth, except hidden ones and hashes, which lie beside the data."""
        self.folders[folder] = None
        pending = [(folder, _folders_above(folder))]
        while pending:
            inner, above = pending.pop()
            for entry in self._entries(inner, is_named=inner == root):
                if is_hidden(entry.name):
                    continue
                path = inner / entry.name
                is_ours = entry.name.lower().endswith(self._endings)
                if self._is_folder(entry):
                    pending.append((path, self._below(path, above)))
                elif not entry.is_file():
                    mode = self._mode(path)
                    if is_ours and mode is not None:
                        raise self._special(path, mode)
                elif entry.name.endswith(SUM_ENDING):
                    continue
                elif is_ours:
                    yield path
                else:
                    self.passed_over[path] = root

    def _entries(self, folder: Path, *, is_named: bool) -> list[os.DirEntry[str]]:
        """List a folder without what a run has published; of a results folder that was found, not named, nothing."""
        try:
            with opening(folder, self._name), os.scandir(folder) as entries:
                listed = list(entries)
        except OSError as error:
            raise os_fault(error, f"input {self._name}: listing {folder}") from error
        is_own = self._results is not None and identity(folder) == self._results
        if not is_own and not _OF_RESULTS.issubset(entry.name for entry in listed):
            return listed
        self.results_left_out[folder] = None
        return [entry for entry in listed if entry.name not in _KEPT_IN_RESULTS] if is_named else []

    def _is_folder(self, entry: os.DirEntry[str]) -> bool:
        if not entry.is_symlink():
            return entry.is_dir()
        mode = self._mode(Path(entry.path))
        return mode is not None and S_ISDIR(mode)

    def _mode(self, path: Path) -> int | None:
        """Return the mode of what a path leads to, or None if nothing is there.

        Raises:
            NoInputError: it is a link that leads nowhere, so data would be missing without notice.
            ThresherError: it cannot be looked at.
        """
        try:
            with opening(path, self._name):
                return path.stat().st_mode
        except OSError as error:
            if error.errno not in _NOTHING_THERE:
                raise os_fault(error, f"input {self._name}: looking at {path}") from error
            if not os.path.islink(path):  # noqa: PTH114 - Path.is_symlink raises for names that are too long
                return None
            message = f"input {self._name}: the link {path} leads nowhere (to {os.readlink(path)})"  # noqa: PTH115 - as text
            raise NoInputError(message, remedy="Restore what it points to, or remove the link.") from error

    def _below(self, folder: Path, above: _Known) -> _Known:
        """Return a folder and those above it."""
        key = _identity(folder)
        if key in above:
            message = (
                f"input {self._name}: the link {folder} leads back to {above[key]}, so its files would count again"
            )
            raise DataError(message, remedy="Remove the link, or list the folders to read one by one.")
        return above | {key: folder}


def _absolute(path: Path) -> Path:
    return Path(os.path.abspath(path))  # noqa: PTH100 - resolve() would follow links


def _split(start: Path, below: Path) -> tuple[Path, tuple[str, ...]]:
    """Split a path into the folder before its first pattern and the parts from there on."""
    number = next((at for at, part in enumerate(below.parts) if glob.has_magic(part)), len(below.parts))
    patterns = below.parts[number:]
    repeated = (at > 0 and part == _ANY_DEPTH == patterns[at - 1] for at, part in enumerate(patterns))
    pattern = tuple(part for part, again in zip(patterns, repeated, strict=True) if not again)
    return _absolute(start.joinpath(*below.parts[:number])), pattern


def is_meant(names: _Names, pattern: _Names, endings: tuple[str, ...]) -> bool | None:
    """Whether a pattern means the file, or the object, that names lead to; None: but for its ending.

    Args:
        names: The names below the folder where the pattern begins.
        pattern: Names with `*`, `?`, `[…]` and `**`; none: the folder itself is meant.
        endings: Endings of the names of files in folders, in lower case.
    """
    # the pattern of the folders that are searched: a `**` at the end is the folder with all below it
    of_folders = pattern
    while of_folders[-1:] == (_ANY_DEPTH,):
        of_folders = of_folders[:-1]
    if not names or (pattern and of_folders == pattern and _fits(names, pattern)):
        return bool(names)
    if not any(_fits(names[:n], of_folders) and not any(map(is_hidden, names[n:])) for n in range(len(names))) or names[
        -1
    ].endswith(SUM_ENDING):
        return False
    return names[-1].lower().endswith(endings) or None


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


def is_hidden(name: str) -> bool:
    """Whether a file or folder is hidden: its name starts with `.` or `_`, unless it is a partition such as `_x=1`."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def _identity(folder: Path) -> tuple[int, int]:
    stat = folder.stat()
    return stat.st_dev, stat.st_ino


def _folders_above(folder: Path) -> _Known:
    """A folder and those above it."""
    if not os.path.isdir(folder):  # noqa: PTH112 - see `_glob`
        return {}
    real = folder.resolve()
    return {_identity(ancestor): ancestor for ancestor in (*reversed(real.parents), real)}


@dataclass(frozen=True)
class Listed:
    """A file that an input names, of which nothing has been read yet.

    Attributes:
        name: What messages call it.
        partitions: As those of `DataFile`.
        open: Reads its footer.
        partition_types: None: folder names are text.
        is_remote: Whether it has to be copied from a remote store.
    """

    name: str
    partitions: dict[str, str | None]
    open: Callable[[], DataFile]
    partition_types: dict[str, pa.DataType] = field(default_factory=dict)
    is_remote: bool = False


# Files of an input folder that are not read because of their names; they are counted, named, and never most data.


MAGICS = (MAGIC, ENCRYPTED)
MOST_NAMES = 3
RENAME = (
    f"Rename them to end in {ENDING}, or name them by a glob or a list: only folders are searched by the ending, "
    'which format = "csv", for example, changes.'
)


@dataclass(frozen=True)
class PassedOver:
    """A visible file of an input folder whose name does not end in `.parquet`, of which nothing has been read.

    Attributes:
        path: Absolute path, or the address on a remote store.
        partitions: Column → value, from the folder names.
        partition_types: None: folder names are text.
        remote: Of an object on a remote store: it has been looked at when it was listed.
    """

    path: Path | str
    partitions: dict[str, str | None]
    partition_types: dict[str, pa.DataType] = field(default_factory=dict)
    remote: Skipped | None = None


@dataclass(frozen=True)
class Skipped:
    """A visible file of an input folder that is not read, because its name does not end in `.parquet`.

    Attributes:
        path: Absolute path, or the address on a remote store.
        size: Its bytes.
        is_parquet: Whether it starts and ends as Parquet files do.
    """

    path: Path | str
    size: int
    is_parquet: bool


def look_at(paths: Iterable[Path | str]) -> tuple[Skipped, ...]:
    """Return skipped files sorted by name; one that cannot be opened is assumed to have another format."""
    return tuple(_look(path) for path in sorted(map(Path, paths), key=lambda path: path.as_posix()))


def _look(path: Path) -> Skipped:
    length = len(MAGICS[0])
    try:
        with path.open("rb") as file:
            head, size = file.read(length), file.seek(0, 2)
            file.seek(max(size - length, 0))
            return Skipped(path, size, head in MAGICS and file.read(length) == head and size > 2 * length)
    except OSError:
        return Skipped(path, 0, is_parquet=False)


def skipped_words(skipped: Collection[Skipped]) -> str:
    """Say how many files of an input were skipped, why, the first names, and how many contain Parquet."""
    parquet = [each for each in skipped if each.is_parquet]
    shown = (parquet or list(skipped))[:MOST_NAMES]
    names = ", ".join(str(each.path) for each in shown) + (", …" if len(skipped) > len(shown) else "")
    plural = len(skipped) > 1
    verb, ending = ("are", "their names do") if plural else ("is", "its name does")
    holds = (
        f"{len(parquet):,} of them {'hold' if len(parquet) > 1 else 'holds'} Parquet" if plural else "it holds Parquet"
    )
    content = holds if parquet else "none holds Parquet" if plural else "it holds no Parquet"
    files = f"{len(skipped):,} files" if plural else "1 file"
    return f"{files} in its folders {verb} not read, because {ending} not end in {ENDING}: {names}; {content}"


def refuse_most_skipped(name: str, sizes: Collection[int], skipped: Collection[Skipped]) -> None:
    """Refuse an input of which half or more of the Parquet files, or of their bytes, would be skipped.

    Args:
        name: The input.
        sizes: Bytes of the files that are read.
        skipped: The files that are not.

    Raises:
        DataError: the results would rest on the smaller part of the data.
    """
    left_out = [each.size for each in skipped if each.is_parquet]
    if left_out and (len(left_out) >= len(sizes) or sum(left_out) >= sum(sizes)):
        total = len(left_out) + len(sizes)
        message = f"input {name}: {skipped_words(skipped)}, {len(left_out):,} of {total:,} Parquet files in all"
        raise DataError(message, remedy=RENAME)
