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
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from ..base.errors import ConfigError, DataError, NoInputError, os_fault
from ..base.interrupts import opening, reading
from ..base.paths import identity, is_remote, kind_in_words, names_below, plain_text, shortened, start_and_pattern
from ..base.records import dataclass
from .formats import ENDINGS, TOKENS, convert, format_of, refuse_spreadsheet
from .frames import Frame, labelled, open_frame, spooled
from .inputs import EngineRows, is_address, look_at, refuse_overlaps
from .parquet_files import ENCRYPTED, MAGIC, DataFile, identity_of, open_file, partitions_of
from .predicates import columns_of, columns_that_decide, left_out, none_known, parse_predicate
from .table_formats import TableVersion, refuse_table_formats, table_at
from .unnesting import mentions_of_tags, unnested, with_fields

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import PurePath
    from typing import Self

    import pyarrow as pa
    import sqlglot.expressions as exp

    from .frames import FrameRows
    from .inputs import Format, Input, Kind, Looks, Rows
    from .predicates import Truths
    from .remote import Copies, RemoteFiles

    Kinds = Callable[[list[str]], Mapping[str, Kind]]


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
        """The mode of what a path leads to; None if nothing is there. A link that leads nowhere is refused."""
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


T = TypeVar("T", DataFile, Skipped)


@dataclass(frozen=True)
class Listed(Generic[T]):
    """A file that an input names, or that it skips, of which nothing has been read yet.

    Attributes:
        name: What messages call it.
        partitions: As those of `DataFile`.
        open: Reads its footer, or looks at what is skipped.
        is_remote: Whether it lies on a remote store.
    """

    name: str
    partitions: dict[str, str | None]
    open: Callable[[], T]
    is_remote: bool = False
    partition_types: ClassVar[Mapping[str, pa.DataType]] = {}  # folder names are text


# Files of an input folder that are not read because of their names; they are counted, named, and never most data.


MAGICS = (MAGIC, ENCRYPTED)
_MOST_NAMES = 3
RENAME = (
    f"Rename them to end in {ENDING}, or name them by a glob or a list: only folders are searched by the ending, "
    'which format = "csv", for example, changes.'
)


def _look(path: Path) -> Skipped:
    """A skipped file; one that cannot be opened is assumed to have another format."""
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
    shown = (parquet or list(skipped))[:_MOST_NAMES]
    names = ", ".join(str(each.path) for each in shown) + (", …" if len(skipped) > len(shown) else "")
    plural = len(skipped) > 1
    verb, ending = ("are", "their names do") if plural else ("is", "its name does")
    holds = (
        f"{len(parquet):,} of them {'hold' if len(parquet) > 1 else 'holds'} Parquet" if plural else "it holds Parquet"
    )
    content = holds if parquet else "none holds Parquet" if plural else "it holds no Parquet"
    files = f"{len(skipped):,} files" if plural else "1 file"
    return f"{files} in its folders {verb} not read, because {ending} not end in {ENDING}: {names}; {content}"


@dataclass
class Listing:
    """The search for the files of an input, and what it brings.

    Attributes:
        spec: What the config says about the input. Frames in the place of paths are opened.
        base: Folder of the config file, from which relative paths start.
        scratch: Folder for temporary data; None: that of the system.
        name: Name of the input in messages.
        kinds: Returns the kinds of the fields that columns are bound to, from their names, for files without types.
        reads: Columns that are read beside those of `where`, for files that do not tell their columns.
        truths: Says for which partitions a predicate holds; files whose rows it leaves out are not opened.
        copies: Where copies of remote objects are; None: in the user's folder for caches.
        look: How the engine looks at tables and addresses; None: it reads files here alone.
        results: The results folder of the run, which is never an input; None: it has none here.
        items: What the paths lead to, in their order: files, frames, tables and rows of the engine; until all is open.
        files: The files and frames, opened, in a fixed order.
        skipped: Files in its folders that are not read because of their names.
        left_out: Number of files that are not opened, because `where` holds for no row of their partitions.
        tables: The versions of tables of table formats among them.
    """

    spec: Input
    base: Path
    scratch: Path | None = None
    name: str = ""
    kinds: Kinds = lambda _names: {}
    reads: Sequence[str] = ()
    truths: Truths = none_known
    copies: Copies | None = None
    look: Looks | None = None
    results: Path | None = None
    items: list[Listed[DataFile] | Frame | EngineRows | TableVersion] = field(default_factory=list)
    files: tuple[Rows, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    left_out: int = 0
    tables: tuple[TableVersion, ...] = ()
    _opened: dict[int, Rows] = field(default_factory=dict)

    def opened(self) -> Self:
        """Find the files of the input in a fixed order, read their footers, and list the skipped files of its folders.

        Raises:
            ConfigError: a path is on a store that is not known, or is empty; `where` is not a predicate; a version is
                asked for of what is no table of a table format; a library that is needed is not installed.
            NoInputError: no file matches, or a link leads nowhere.
            DataError: a file is not a whole Parquet file, or is reached twice; a folder belongs to a table format; half
                of the Parquet files or more would be skipped; the rows of a frame cannot be computed.
            ThresherError: the operating system fails, or a remote store does; by what it says.
        """
        self._find()
        spec, name = self.spec, self.name
        where = None if spec.where is None else parse_predicate(spec.where, name=name, values=spec.values())
        chosen = [item for item in self.items if isinstance(item, Listed)]
        self.tables = tuple(item for item in self.items if isinstance(item, TableVersion))
        unneeded = left_out(where, chosen, self.truths)
        if unneeded and len(unneeded) == len(self.items):
            unneeded = unneeded[1:]  # one file tells which columns there are
        self._open(unneeded)
        names = columns_that_decide(where, chosen)
        if unneeded and any(
            name in file.partitions and name in file.schema.names for file in self._opened.values() for name in names
        ):  # a column of the file by the name of a partition is what `where` reads
            unneeded = []
            self._open(unneeded)
        self.left_out = len(unneeded)
        for table in self.tables:
            unread = left_out(where, table.groups, self.truths)
            kept = [group for group in table.groups if group not in unread]
            self._opened[id(table)] = self._with_elements(table.open(kept, self.scratch, name=name))
            self.left_out += sum(len(group.files) for group in unread)
        self.files = tuple(self._opened[id(item)] for item in self.items if id(item) in self._opened)
        if spec.unnested:
            names = (*self.reads, *(() if where is None else columns_of(where)))
            self.files = with_fields(self.files, names, self)
        self._look_at_skipped(where)
        self.items, self._opened = [], {}  # these refer to this object, so that what was spooled would stay
        self.__dict__.pop("remote", None)
        return self

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

    @property
    def results_left_out(self) -> tuple[Path, ...]:
        """The results folders below its folders, which are not read."""
        return tuple(sorted(self._search.results_left_out))

    def _find(self) -> None:
        """Find what the paths of the input lead to; nothing is opened yet."""
        if self.spec.table is not None and not self.spec.path:  # of the engine
            self.items.append(look_at(self.spec, None, self.look, name=self.name))
        asked: dict[str, str] = {}
        paths: list[Path] = []
        for pattern in self.spec.path:
            if isinstance(pattern, Frame):
                self.items.append(pattern)
                continue
            for item in self._named(pattern, paths):
                if item.name in asked:
                    words = f"{item.name} is named twice, by {asked[item.name]!r} and by {pattern!r}"
                    message = f"input {self.name}: {words}"
                    raise DataError(message, remedy="Its rows would count twice: name it once.")
                asked[item.name] = pattern
                self.items.append(item)
        _refuse_twins(paths, name=self.name)
        refuse_overlaps(self.items, name=self.name)
        names = (item.name for item in self.items if isinstance(item, Listed))
        if isinstance(self.spec.tags, int) and "conll" not in {self._format_of(PurePosixPath(name)) for name in names}:
            message = f"input {self.name}: tags = {self.spec.tags} is of CoNLL files, and there is none"
            remedy = 'Remove tags, or say format = "conll" beside it; a column of lists of tags is named in quotes.'
            raise ConfigError(message, remedy=remedy)

    def _named(self, pattern: str, paths: list[Path]) -> Iterator[Listed[DataFile] | EngineRows | TableVersion]:
        """Yield the files that a path or pattern names; add to `paths` those that are on this machine."""
        if self.look is not None and is_address(pattern):
            address = plain_text(pattern, what=f"input {self.name}")
            kind = format_of(PurePosixPath(address), None)
            if kind != "parquet":
                message = f"input {self.name}: {address} is {kind}, and Spark reads Parquet files and tables"
                raise ConfigError(message, remedy="Make a view of it in Spark, and name that with table = …")
            yield look_at(self.spec, address, self.look, name=self.name)
            return
        path = None if is_remote(pattern) else self._search.place(pattern)
        table = self.remote.table(pattern, self.spec) if path is None else table_at(path, self.spec, name=self.name)
        if table is not None:
            paths += [] if path is None else [path]
            yield table
            return
        if self.spec.of_table is not None:
            words = f"{self.spec.of_table} has no effect: {path or pattern} is no table of a table format"
            message = f"input {self.name}: {words}"
            raise ConfigError(message, remedy=f"Remove {self.spec.of_table}, or name the folder of a table here.")
        if path is None:
            yield from self.remote.listed(pattern)
            return
        matches = self._search.matches(pattern)
        homes = (home for file, _ in matches for home in (file.parent, *_homes_of_link(file)))
        refuse_table_formats(self.name, (*self._search.folders, *homes))
        if not matches:
            raise self._no_file(shortened(pattern))
        for file, root in matches:
            paths.append(file)
            yield Listed(str(file), partitions_of(file, root), partial(self._open_file, file, root))

    def _no_file(self, pattern: str) -> NoInputError:
        message = f"input {self.name}: no file matches {pattern} (in {self.base})"
        if skipped := [item.open() for item in self._skipped_here()]:
            return NoInputError(f"{message}: {skipped_words(skipped)}", remedy=RENAME)
        remedy = (
            "Check the path; relative paths start at the folder of the config file, or without one where Python runs."
        )
        return NoInputError(message, remedy=remedy)

    def _skipped_here(self) -> list[Listed[Skipped]]:
        by_name = sorted(self._search.passed_over.items(), key=lambda item: item[0].as_posix())
        return [Listed(str(path), partitions_of(path, root), partial(_look, path)) for path, root in by_name]

    def _look_at_skipped(self, where: exp.Expr | None) -> None:
        """Look at the skipped files that `where` does not leave out; they may not be most of the Parquet files."""
        chosen = {item.name for item in self.items if isinstance(item, Listed)}
        there = (
            self.remote.passed_over if any(isinstance(each, Listed) and each.is_remote for each in self.items) else ()
        )
        passed_over = [item for item in (*self._skipped_here(), *there) if item.name not in chosen]
        unneeded = {item.name for item in left_out(where, passed_over, self.truths)}
        needed = [item for item in passed_over if item.name not in unneeded]
        away = [item.open for item in needed if item.is_remote]
        self.skipped = (
            *(item.open() for item in needed if not item.is_remote),
            *(self.remote.looked_at(away) if away else ()),
        )
        sizes = [file.identity.get("size", 0) for file in self.files if isinstance(file, DataFile)]
        of_parquet = [each.size for each in self.skipped if each.is_parquet]
        if of_parquet and (len(of_parquet) >= len(sizes) or sum(of_parquet) >= sum(sizes)):
            total = len(of_parquet) + len(sizes)
            words = f"{skipped_words(self.skipped)}, {len(of_parquet):,} of {total:,} Parquet files in all"
            message = f"input {self.name}: {words}"
            raise DataError(message, remedy=RENAME)

    def _open(self, unneeded: Sequence[Listed[DataFile]]) -> None:
        """Open what has not been opened, but for tables and what is not needed."""
        labels = dict(labelled(self.spec.path, name=self.name))
        done = {*self._opened, *map(id, unneeded)}
        pending = [item for item in self.items if id(item) not in done and not isinstance(item, TableVersion)]
        remote = [item for item in pending if isinstance(item, Listed) and item.is_remote]
        copied = self.remote.open_all(remote) if remote else {}
        for item in pending:
            if isinstance(item, EngineRows):
                self._opened[id(item)] = item
            elif isinstance(item, Frame):
                rows = open_frame(item, labels[item], self.scratch, name=self.name)
                self._opened[id(item)] = self._with_elements(rows)
            else:
                self._opened[id(item)] = self._with_elements(copied[item.name] if item.is_remote else item.open())

    def _with_elements(self, rows: DataFile | FrameRows) -> DataFile | FrameRows:
        if isinstance(self.spec.tags, str):
            return mentions_of_tags(rows, self.spec.tags, self)
        return unnested(rows, self) if self.spec.unnested else rows

    def _open_file(self, path: Path, root: Path) -> DataFile:
        """Read the footer of a file, of another format after its rows have been written to a Parquet file."""
        identity = identity_of(path, name=self.name)
        if self._is_parquet(path):
            return open_file(path, root, name=self.name)
        file = self._converted(str(path), path)
        return replace(file, origin=path, identity=identity, partitions=partitions_of(path, root))

    def _format_of(self, path: PurePath) -> Format:
        return format_of(path, self.spec.format)

    def _is_parquet(self, path: Path) -> bool:
        refuse_spreadsheet(path, name=self.name)
        return self._format_of(path) == "parquet"

    def _converted(self, label: str | None, path: Path) -> DataFile:
        """Write the rows of a file of another format to a Parquet file, and read its footer."""
        notices: dict[str, int] = {}

        def write(target: Path) -> None:
            alone = len(self.items) == 1
            with reading(path, self.name):
                kind = self._format_of(path)
                notices.update(convert(path, kind, self.spec, self.kinds, target, alone=alone, name=self.name))

        file = spooled(write, label or path.name, self.scratch, name=self.name)
        tokens = file.path.with_name(TOKENS)
        return replace(file, notices=notices, tokens=tokens if tokens.exists() else None)


def _homes_of_link(path: Path) -> tuple[Path, ...]:
    return (path.resolve().parent,) if path.is_symlink() else ()


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
