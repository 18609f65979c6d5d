"""From the paths of an input to the fixed list of its files, opened: here, in tables, on remote stores."""

from __future__ import annotations

from dataclasses import field, replace
from functools import cached_property, partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from ..crash_notes import reading
from ..errors import ConfigError, DataError, NoInputError, os_fault
from ..records import dataclass
from .finding import RENAME, Listed, PassedOver, Search, Skipped, look_at, refuse_most_skipped, skipped_words
from .formats import ENDINGS, TOKENS, convert, format_of, refuse_spreadsheet
from .frames import Frame, labelled, open_frame, spooled
from .parquet_files import DataFile, identity_of, open_file, partitions_of
from .paths import is_remote, plain_text, shortened
from .predicates import columns_of, columns_that_decide, left_out, none_known, parse_predicate
from .rows import EngineRows, is_address, look_at_address, look_at_table, refuse_overlaps
from .table_formats import TableVersion, refuse_table_formats, table_at
from .unnesting import mentions_of_tags, unnested, with_fields

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import sqlglot.expressions as exp

    from .frames import FrameRows
    from .inputs import Input, Kind
    from .predicates import Truths
    from .remote.reading import Copies, RemoteFiles
    from .rows import Looks, Rows


if TYPE_CHECKING:
    Kinds = Callable[[list[str]], Mapping[str, Kind]]


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
        from .remote.reading import RemoteFiles  # noqa: PLC0415 - only where an input lies elsewhere

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
