"""From the paths and patterns of an input to the fixed list of its files, opened: here, in tables, on stores."""

from __future__ import annotations

import errno
import fnmatch
import glob
import os
import re
from dataclasses import field, replace
from functools import cached_property, partial
from pathlib import Path, PurePosixPath
from stat import S_ISDIR, S_ISREG
from typing import TYPE_CHECKING

from ..errors import ConfigError, DataError, NoInputError, os_fault
from ..interrupts import opening, reading
from ..paths import identity, is_remote, kind_in_words, names_below, plain_text, shortened, start_and_pattern
from ..records import dataclass
from .formats import ENDINGS, TOKENS, convert, format_of, refuse_spreadsheet
from .frames import Frame, labelled, open_frame, spooled
from .inputs import EngineRows, is_address, look_at_address, look_at_table, refuse_overlaps
from .parquet_files import ENCRYPTED, MAGIC, DataFile, identity_of, open_file, partitions_of
from .predicates import columns_of, columns_that_decide, left_out, none_known, parse_predicate
from .table_formats import TableVersion, refuse_table_formats, table_at
from .unnesting import mentions_of_tags, unnested, with_fields

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa
    import sqlglot.expressions as exp

    from .frames import FrameRows
    from .inputs import Input, Kind, Looks, Rows
    from .predicates import Truths
    from .remote import Copies, RemoteFiles

    Kinds = Callable[[list[str]], Mapping[str, Kind]]


# From the paths and patterns of an input to its files. Folders and globs both follow links; loops are errors.


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


# From the paths of an input to the fixed list of its files, opened: here, in tables, on remote stores.


# From the paths of an input to its files, none of which has been opened yet: here, in tables, on remote stores.


@dataclass
class Listing:
    """The files and frames that an input names.

    Attributes:
        spec: What the config says about the input.
        base: Folder of the config file.
        scratch: Folder for temporary data; None: that of the system.
        name: Name of the input in messages.
        kinds: Returns the kinds of the fields that columns are bound to, from their names, for files without types.
        copies: Where copies of remote objects are; None: in the user's folder for caches.
        look: How the engine looks at tables and addresses; None: it reads files here alone.
        results: The results folder of the run, which is never an input; None: it has none here.
        items: The files, frames, tables and rows of the engine in their order.
    """

    spec: Input
    base: Path
    scratch: Path | None
    name: str
    kinds: Kinds
    copies: Copies | None = None
    look: Looks | None = None
    results: Path | None = None
    items: list[Listed | Frame | EngineRows | TableVersion] = field(default_factory=list)

    @cached_property
    def remote(self) -> RemoteFiles:
        """The search on remote stores."""
        from .remote import RemoteFiles  # noqa: PLC0415 - only where an input lies elsewhere

        return RemoteFiles(self.name, self._endings, self.copies, self._is_parquet, partial(self._converted, None))

    @cached_property
    def _search(self) -> Search:
        return Search(self.name, self.base, self._endings, self.results)

    @property
    def _endings(self) -> tuple[str, ...]:
        return ENDINGS[self.spec.format or "parquet"]

    def fill(self) -> None:
        """Find the files that the paths of the input name.

        Raises:
            The errors of `find_files`, but for those of opened files.
        """
        if self.spec.table is not None and not self.spec.path:  # of the engine
            self.items.append(look_at_table(self.spec, self.look, name=self.name))
        asked: dict[str, str] = {}
        paths: list[Path] = []
        for pattern in self.spec.path:
            if isinstance(pattern, Frame):
                self.items.append(pattern)
                continue
            for item in self._named(pattern, paths):
                if item.name in asked:
                    message = (
                        f"input {self.name}: {item.name} is named twice, by {asked[item.name]!r} and by {pattern!r}"
                    )
                    raise DataError(message, remedy="Its rows would count twice: name it once.")
                asked[item.name] = pattern
                self.items.append(item)
        _refuse_twins(paths, name=self.name)
        refuse_overlaps(self.items, name=self.name)
        self._refuse_tags()

    @property
    def results_left_out(self) -> tuple[Path, ...]:
        """The results folders below its folders, which are not read."""
        return tuple(sorted(self._search.results_left_out))

    @property
    def passed_over(self) -> tuple[PassedOver, ...]:
        """The files in its folders that are not read because of their names."""
        chosen = {item.name for item in self.items if isinstance(item, Listed)}
        here = (PassedOver(path, partitions_of(path, root)) for path, root in self._search.passed_over.items())
        there = self.remote.passed_over if any(map(_is_remote, self.items)) else ()
        return tuple(item for item in (*here, *there) if str(item.path) not in chosen)

    def _named(self, pattern: str, paths: list[Path]) -> Iterator[Listed | EngineRows | TableVersion]:
        """Yield the files that a path or pattern names; add to `paths` those that are on this machine."""
        if self.look is not None and is_address(pattern):
            yield self._at_address(plain_text(pattern, what=f"input {self.name}"), self.look)
            return
        on_store = is_remote(pattern)
        if on_store:
            table = self.remote.table(pattern, self.spec)
        else:
            path = self._search.place(pattern)
            table = table_at(path, self.spec, name=self.name)
        if table is not None:
            paths += [] if on_store else [path]
            yield table
            return
        self._refuse_version(pattern if on_store else str(path))
        if on_store:
            yield from self.remote.listed(pattern)
            return
        matches = self._search.matches(pattern)
        refuse_table_formats(self.name, (*self._search.folders, *_homes(file for file, _ in matches)))
        if not matches:
            raise _no_file(self.name, shortened(pattern), self.base, look_at(self._search.passed_over))
        for file, root in matches:
            paths.append(file)
            yield Listed(str(file), partitions_of(file, root), partial(self._open, file, root))

    def _refuse_tags(self) -> None:
        listed = [item for item in self.items if isinstance(item, Listed)]
        kinds = {format_of(PurePosixPath(item.name), self.spec.format) for item in listed}
        if isinstance(self.spec.tags, int) and "conll" not in kinds:
            message = f"input {self.name}: tags = {self.spec.tags} is of CoNLL files, and there is none"
            remedy = 'Remove tags, or say format = "conll" beside it; a column of lists of tags is named in quotes.'
            raise ConfigError(message, remedy=remedy)

    def _at_address(self, address: str, look: Looks) -> EngineRows:
        kind = format_of(PurePosixPath(address), None)
        if kind != "parquet":
            message = f"input {self.name}: {address} is {kind}, and Spark reads Parquet files and tables"
            raise ConfigError(message, remedy="Make a view of it in Spark, and name that with table = …")
        return look_at_address(self.spec, address, look, name=self.name)

    def _refuse_version(self, path: str) -> None:
        if self.spec.of_table is not None:
            message = f"input {self.name}: {self.spec.of_table} has no effect: {path} is no table of a table format"
            raise ConfigError(message, remedy=f"Remove {self.spec.of_table}, or name the folder of a table here.")

    def _open(self, path: Path, root: Path) -> DataFile:
        """Read the footer of a file, of another format after its rows have been written to a Parquet file."""
        identity = identity_of(path, name=self.name)
        if self._is_parquet(path):
            return open_file(path, root, name=self.name)
        file = self._converted(str(path), path)
        return replace(file, origin=path, identity=identity, partitions=partitions_of(path, root))

    def _is_parquet(self, path: Path) -> bool:
        refuse_spreadsheet(path, name=self.name)
        return format_of(path, self.spec.format) == "parquet"

    def _converted(self, label: str | None, path: Path) -> DataFile:
        """Write the rows of a file of another format to a Parquet file, and read its footer."""
        kind = format_of(path, self.spec.format)
        label, alone = label or path.name, len(self.items) == 1
        notices: dict[str, int] = {}

        def write(target: Path) -> None:
            with reading(path, self.name):
                notices.update(convert(path, kind, self.spec, self.kinds, target, alone=alone, name=self.name))

        converted, holder = spooled(write, label, self.scratch, name=self.name)
        file = open_file(converted, converted.parent, name=self.name, label=label, holder=holder)
        tokens = converted.with_name(TOKENS)
        return replace(file, notices=notices, tokens=tokens if tokens.exists() else None)


def _is_remote(item: object) -> bool:
    return isinstance(item, Listed) and item.is_remote


def _homes(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield the folders of files, and those of the files that links lead to."""
    for path in paths:
        yield path.parent
        if path.is_symlink():
            yield path.resolve().parent


def _no_file(name: str, pattern: str, base: Path, skipped: tuple[Skipped, ...]) -> NoInputError:
    message = f"input {name}: no file matches {pattern} (in {base})"
    if skipped:
        return NoInputError(f"{message}: {skipped_words(skipped)}", remedy=RENAME)
    remedy = "Check the path; relative paths start at the folder of the config file, or without one where Python runs."
    return NoInputError(message, remedy=remedy)


def _refuse_twins(paths: Iterable[Path], *, name: str) -> None:
    """Refuse two paths that lead to one file, by links, hard links or mounts."""
    path_of: dict[tuple[int, int], Path] = {}
    for path in paths:
        try:
            stat = path.stat()
        except FileNotFoundError:  # of a table: told when it is opened
            continue
        except OSError as error:
            raise os_fault(error, f"input {name}: looking at {path}") from error
        twin = path_of.setdefault((stat.st_dev, stat.st_ino), path) if stat.st_ino else path  # 0: not numbered here
        if twin != path:
            message = f"input {name}: {twin} and {path} are one and the same file"
            raise DataError(message, remedy="Its rows would count twice: name it once.")


# From the paths of an input to the fixed list of its files, opened.


@dataclass(frozen=True)
class FoundFiles:
    """The files and frames found for an input.

    Attributes:
        files: Its files and frames in a fixed order.
        skipped: Files in its folders that are not read because of their names.
        left_out: Number of files that are not opened, because `where` holds for no row of their partitions.
        tables: The versions of tables of table formats among them.
        results_left_out: Results folders below its folders, which are not read.
    """

    files: tuple[Rows, ...]
    skipped: tuple[Skipped, ...]
    left_out: int = 0
    tables: tuple[TableVersion, ...] = ()
    results_left_out: tuple[Path, ...] = ()


def find_files(
    source: Input,
    base: Path,
    scratch: Path | None = None,
    *,
    name: str,
    kinds: Kinds = lambda _names: {},
    reads: Sequence[str] = (),
    truths: Truths = none_known,
    copies: Copies | None = None,
    look: Looks | None = None,
    results: Path | None = None,
) -> FoundFiles:
    """Find the files of an input in a fixed order, read their footers, and list the skipped files of its folders.

    Args:
        source: The input; relative paths are relative to `base`. Frames in the place of paths are opened.
        base: Folder of the config file.
        scratch: Folder for temporary data; None: that of the system.
        name: Name of the input in messages.
        kinds: Returns the kinds of the fields that columns are bound to, from their names, for files without types.
        reads: Columns that are read beside those of `where`, for files that do not tell their columns.
        truths: Says for which partitions a predicate holds; files whose rows it leaves out are not opened.
        copies: Where copies of remote objects are; None: in the user's folder for caches.
        look: How the engine looks at tables and addresses; None: it reads files here alone.
        results: The results folder of the run, which is never an input; None: it has none here.

    Raises:
        ConfigError: a path is on a store that is not known, or is empty; `where` is not a predicate; a version is asked
            for of what is no table of a table format; a library that is needed is not installed.
        NoInputError: no file matches, or a link leads nowhere.
        DataError: a file is not a whole Parquet file, or is reached twice; a folder belongs to a table format; half of
            the Parquet files or more would be skipped; the rows of a frame cannot be computed.
        ThresherError: the operating system fails, or a remote store does; by what it says.
    """
    listing = Listing(source, base, scratch, name, kinds, copies, look, results)
    listing.fill()
    where = None if source.where is None else parse_predicate(source.where, name=name, values=source.values())
    chosen = [item for item in listing.items if isinstance(item, Listed)]
    tables = tuple(item for item in listing.items if isinstance(item, TableVersion))
    unneeded = left_out(where, chosen, truths)
    if unneeded and len(unneeded) == len(listing.items):
        unneeded = unneeded[1:]  # one file tells which columns there are
    opened: dict[int, Rows] = {}
    _open(listing, unneeded, opened)
    if unneeded and _have_own(opened.values(), columns_that_decide(where, chosen)):
        unneeded = []
        _open(listing, unneeded, opened)
    n_left_out = len(unneeded)
    for table in tables:
        unread = left_out(where, table.groups, truths)
        kept = [group for group in table.groups if group not in unread]
        opened[id(table)] = _with_elements(table.open(kept, scratch, name=name), listing)
        n_left_out += sum(len(group.files) for group in unread)
    files = tuple(opened[id(item)] for item in listing.items if id(item) in opened)
    if source.unnested:
        names = (*reads, *(() if where is None else columns_of(where)))
        files = with_fields(files, names, listing)
    skipped = _skipped(listing, where, truths)
    refuse_most_skipped(name, [file.identity.get("size", 0) for file in files if isinstance(file, DataFile)], skipped)
    return FoundFiles(files, skipped, n_left_out, tables, listing.results_left_out)


def _open(listing: Listing, unneeded: Sequence[Listed], opened: dict[int, Rows]) -> None:
    """Open the items of a listing that have not been opened, but for those that are not needed."""
    labels = dict(labelled(listing.spec.path, name=listing.name))
    done = {*opened, *map(id, unneeded)}
    pending = [item for item in listing.items if id(item) not in done and not isinstance(item, TableVersion)]
    remote = [item for item in pending if isinstance(item, Listed) and item.is_remote]
    copied = listing.remote.open_all(remote) if remote else {}
    for item in pending:
        if isinstance(item, EngineRows):
            opened[id(item)] = item
            continue
        rows: DataFile | FrameRows
        if not isinstance(item, Listed):
            rows = open_frame(item, labels[item], listing.scratch, name=listing.name)
        else:
            rows = copied[item.name] if item.is_remote else item.open()
        opened[id(item)] = _with_elements(rows, listing)


def _with_elements(rows: DataFile | FrameRows, listing: Listing) -> DataFile | FrameRows:
    if isinstance(listing.spec.tags, str):
        return mentions_of_tags(rows, listing.spec.tags, listing)
    return unnested(rows, listing) if listing.spec.unnested else rows


def _have_own(files: Iterable[Rows], names: Sequence[str]) -> bool:
    """Whether a file has a column of its own by the name of a partition: then that column is what `where` reads."""
    return any(name in file.partitions and name in file.schema.names for file in files for name in names)


def _skipped(listing: Listing, where: exp.Expr | None, truths: Truths) -> tuple[Skipped, ...]:
    """Look at the files that are not read because of their names, unless `where` leaves their partitions out."""
    passed_over = listing.passed_over
    unneeded = {item.path for item in left_out(where, passed_over, truths)}
    needed = [item for item in passed_over if item.path not in unneeded]
    return (
        *look_at(item.path for item in needed if item.remote is None),
        *(item.remote for item in needed if item.remote),
    )
