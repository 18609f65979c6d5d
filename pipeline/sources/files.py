"""From the paths of an input to the fixed list of its files, opened."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from pipeline.errors import DataError, NoInputError, os_fault
from pipeline.sources.finding import Search
from pipeline.sources.formats import ENDINGS, convert, format_of, refuse_spreadsheet
from pipeline.sources.frames import Frame, labelled, open_frame
from pipeline.sources.listed import Listed
from pipeline.sources.parquet_files import DataFile, identity_of, open_file, partitions_of
from pipeline.sources.partition_filter import columns_that_decide, left_out, none_known
from pipeline.sources.paths import shortened
from pipeline.sources.predicates import parse_predicate
from pipeline.sources.skipped import RENAME, PassedOver, Skipped, look_at, refuse_most_skipped, skipped_words
from pipeline.sources.spooling import spooled
from pipeline.sources.table_formats.opening import table_at
from pipeline.sources.table_formats.recognising import refuse_table_formats

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    import sqlglot.expressions as exp

    from pipeline.sources.frames import Rows
    from pipeline.sources.inputs import Input, Kind
    from pipeline.sources.partition_filter import Truths
    from pipeline.sources.table_formats.live_files import LiveTable

    Kinds = Callable[[list[str]], Mapping[str, Kind]]


@dataclass(frozen=True)
class FoundFiles:
    """The files and frames found for an input.

    Attributes:
        files: Its files and frames in a fixed order.
        skipped: Files in its folders that are not read because of their names.
        left_out: Number of files that are not opened, because `where` holds for no row of their partitions.
        tables: The versions of tables of table formats that its files belong to.
    """

    files: tuple[Rows, ...]
    skipped: tuple[Skipped, ...]
    left_out: int = 0
    tables: tuple[LiveTable, ...] = ()


def find_files(
    source: Input,
    base: Path,
    scratch: Path | None = None,
    *,
    name: str,
    kinds: Kinds = lambda _names: {},
    truths: Truths = none_known,
) -> FoundFiles:
    """Find the files of an input in a fixed order, read their footers, and list the skipped files of its folders.

    Args:
        source: The input; relative paths are relative to `base`. Frames in the place of paths are opened.
        base: Folder of the config file.
        scratch: Folder for temporary data; None: that of the system.
        name: Name of the input in messages.
        kinds: Returns the kinds of the fields that columns are bound to, from their names, for files without types.
        truths: Says for which partitions a predicate holds; files whose rows it leaves out are not opened.

    Raises:
        ConfigError: a path is on a remote store, or is empty; `where` is not a predicate; a version is asked for of
            what is no table of a table format, or the library of its format is not installed.
        NoInputError: no file matches, or a link leads nowhere.
        DataError: a file is not a whole Parquet file, or is reached twice; a folder belongs to a table format; half of
            the Parquet files or more would be skipped; the rows of a frame cannot be computed.
        ThresherError: the operating system fails; by the number of its error.
    """
    search = Search(name, base, ENDINGS[source.format or "parquet"])
    labels = dict(labelled(source.path, name=name))
    tables: list[LiveTable] = []
    listed = list(_listed(source, base, scratch, search, tables, name=name, kinds=kinds))
    where = None if source.where is None else parse_predicate(source.where, name=name)
    chosen = [item for item in listed if isinstance(item, Listed)]
    unneeded = left_out(where, chosen, truths)
    if len(unneeded) == len(listed):
        unneeded = unneeded[1:]  # one file tells which columns there are
    opened = _opened(listed, unneeded, labels, scratch, name=name)
    in_folders = [item for item in chosen if not item.of_table]
    if unneeded and _have_own(opened, columns_that_decide(where, in_folders)):
        unneeded, opened = [], _opened(listed, [], labels, scratch, name=name)
    skipped = _skipped(search, {item.name for item in chosen}, where, truths)
    refuse_most_skipped(name, [file.identity["size"] for file in opened if isinstance(file, DataFile)], skipped)
    return FoundFiles(opened, skipped, len(unneeded), tuple(tables))


def _listed(
    source: Input,
    base: Path,
    scratch: Path | None,
    search: Search,
    tables: list[LiveTable],
    *,
    name: str,
    kinds: Kinds,
) -> Iterator[Listed | Frame]:
    """Yield the files and frames that an input names, in their order; add to `tables` those that it names."""
    asked: dict[Path, str] = {}
    listed: list[tuple[Path, Path] | Listed | Frame] = []
    for pattern in source.path:
        if isinstance(pattern, Frame):
            listed.append(pattern)
            continue
        table = table_at(search.place(pattern), source, name=name)
        if table is not None:
            tables.append(table)
            listed += table.listed(name)
            continue
        matches = search.matches(pattern)
        refuse_table_formats(name, (*search.folders, *_homes(path for path, _ in matches)))
        if not matches:
            raise _no_file(name, shortened(pattern), base, look_at(search.passed_over))
        for path, root in matches:
            if path in asked:
                message = f"input {name}: {path} is named twice, by {asked[path]!r} and by {pattern!r}"
                raise DataError(message, remedy="Its rows would count twice: remove one of the two.")
            asked[path] = pattern
            listed.append((path, root))
    _refuse_twins((*asked, *(file.path for table in tables for file in table.files)), name=name)
    for item in listed:
        if isinstance(item, tuple):
            opening = partial(_open, *item, source, scratch, kinds, alone=len(listed) == 1, name=name)
            yield Listed(str(item[0]), partitions_of(*item), opening)
        else:
            yield item


def _opened(
    listed: Sequence[Listed | Frame],
    unneeded: Sequence[Listed],
    labels: Mapping[Frame, str],
    scratch: Path | None,
    *,
    name: str,
) -> tuple[Rows, ...]:
    without = {id(item) for item in unneeded}
    return tuple(
        open_frame(item, labels[item], scratch, name=name) if isinstance(item, Frame) else item.open()
        for item in listed
        if id(item) not in without
    )


def _have_own(files: Iterable[Rows], names: Sequence[str]) -> bool:
    """Whether a file has a column of its own by the name of a partition: then that column is what `where` reads."""
    return any(name in file.partitions and name in file.schema.names for file in files for name in names)


def _skipped(search: Search, chosen: Collection[str], where: exp.Expr | None, truths: Truths) -> tuple[Skipped, ...]:
    """Look at the files that are not read because of their names, unless `where` leaves their partitions out."""
    passed_over = [
        PassedOver(path, partitions_of(path, root))
        for path, root in search.passed_over.items()
        if str(path) not in chosen
    ]
    unneeded = {item.path for item in left_out(where, passed_over, truths)}
    return look_at(item.path for item in passed_over if item.path not in unneeded)


def _open(
    path: Path, root: Path, spec: Input, scratch: Path | None, kinds: Kinds, *, alone: bool, name: str
) -> DataFile:
    """Read the footer of a file, of another format after its rows have been written to a Parquet file."""
    refuse_spreadsheet(path, name=name)
    kind = format_of(path, spec.format)
    if kind == "parquet":
        return open_file(path, root, name=name)
    identity = identity_of(path, name=name)
    converted, holder = spooled(
        lambda target: convert(path, kind, spec, kinds, target, alone=alone, name=name), str(path), scratch, name=name
    )
    file = open_file(converted, converted.parent, name=name, label=str(path), holder=holder)
    return replace(file, origin=path, identity=identity, partitions=partitions_of(path, root))


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
    return NoInputError(message, remedy="Check the path; relative paths start at the folder of the config file.")


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
            raise DataError(message, remedy="Its rows would count twice: remove one of the two.")
