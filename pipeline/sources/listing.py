"""From the paths of an input to its files, none of which has been opened yet: here, in tables, on remote stores."""

from __future__ import annotations

from dataclasses import field, replace
from functools import cached_property, partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from ..crash_notes import reading
from ..errors import ConfigError, DataError, NoInputError, os_fault
from ..records import dataclass
from .engine_rows import EngineRows, is_address, look_at_address, look_at_table, refuse_overlaps
from .finding import Search
from .formats import ENDINGS, TOKENS, convert, format_of, refuse_spreadsheet
from .frames import Frame
from .listed import Listed
from .parquet_files import DataFile, identity_of, open_file, partitions_of
from .paths import plain_text, shortened
from .remote.addresses import is_remote
from .skipped import RENAME, PassedOver, Skipped, look_at, skipped_words
from .spooling import spooled
from .table_formats.recognising import refuse_table_formats

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from .engine_rows import Looks
    from .inputs import Input, Kind
    from .remote.copies import Copies
    from .remote.reading import RemoteFiles
    from .table_formats.live_files import LiveTable

    Kinds = Callable[[list[str]], Mapping[str, Kind]]


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
        items: The files, frames and rows of the engine in their order.
        tables: The versions of tables of table formats that they belong to.
    """

    spec: Input
    base: Path
    scratch: Path | None
    name: str
    kinds: Kinds
    copies: Copies | None = None
    look: Looks | None = None
    results: Path | None = None
    items: list[Listed | Frame | EngineRows] = field(default_factory=list)
    tables: list[LiveTable] = field(default_factory=list)

    @cached_property
    def remote(self) -> RemoteFiles:
        """The search on remote stores."""
        from .remote.reading import RemoteFiles  # noqa: PLC0415 - only where an input lies elsewhere

        return RemoteFiles(self.name, self._endings, self.copies, partial(self._converted, None))

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

    def _named(self, pattern: str, paths: list[Path]) -> Iterator[Listed | EngineRows]:
        """Yield the files that a path or pattern names; add to `paths` those that are on this machine."""
        if self.look is not None and is_address(pattern):
            yield self._at_address(plain_text(pattern, what=f"input {self.name}"), self.look)
            return
        on_store = is_remote(pattern)
        if on_store:
            table = self.remote.table(pattern, self.spec)
        else:
            from .table_formats.opening import table_at  # noqa: PLC0415 - only where files are read

            path = self._search.place(pattern)
            table = table_at(path, self.spec, name=self.name)
        if table is not None:
            self.tables.append(table)
            paths += [] if on_store else [Path(file.location) for file in table.files]
            yield from table.listed(self.name, self.scratch, is_remote=on_store)
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
        names = (PurePosixPath(item.name) for item in self.items if isinstance(item, Listed))
        if self.spec.tags is not None and not any(format_of(each, self.spec.format) == "conll" for each in names):
            message = f"input {self.name}: tags is of CoNLL files, and there is none"
            raise ConfigError(message, remedy='Remove tags, or say format = "conll" beside it.')

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
        file = self._converted(str(path), path)
        if file is None:
            return open_file(path, root, name=self.name)
        return replace(file, origin=path, identity=identity, partitions=partitions_of(path, root))

    def _converted(self, label: str | None, path: Path) -> DataFile | None:
        """Write the rows of a file of another format to a Parquet file, and read its footer; None for Parquet."""
        refuse_spreadsheet(path, name=self.name)
        kind = format_of(path, self.spec.format)
        if kind == "parquet":
            return None
        label, alone = label or path.name, len(self.items) == 1
        notices: dict[str, int] = {}

        def write(target: Path) -> None:
            with reading(path, self.name):
                notices.update(convert(path, kind, self.spec, self.kinds, target, alone=alone, name=self.name))

        converted, holder = spooled(write, label, self.scratch, name=self.name)
        file = open_file(converted, converted.parent, name=self.name, label=label, holder=holder)
        tokens = converted.with_name(TOKENS)
        return replace(file, notices=notices, tokens=tokens if tokens.exists() else None)


def _is_remote(item: Listed | Frame | EngineRows) -> bool:
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
