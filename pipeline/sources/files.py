"""From the paths of an input to the fixed list of its files, opened."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pipeline.errors import DataError, NoInputError, os_fault
from pipeline.sources.finding import Search
from pipeline.sources.formats import ENDINGS, convert, format_of, refuse_spreadsheet
from pipeline.sources.frames import Frame, labelled, open_frame
from pipeline.sources.parquet_files import DataFile, identity_of, open_file, partitions_of
from pipeline.sources.paths import shortened
from pipeline.sources.skipped import RENAME, Skipped, look_at, refuse_most_skipped, skipped_words
from pipeline.sources.spooling import spooled
from pipeline.sources.table_formats import refuse_table_formats

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from pipeline.sources.frames import Rows
    from pipeline.sources.inputs import Input, Kind

    Kinds = Callable[[list[str]], Mapping[str, Kind]]


@dataclass(frozen=True)
class FoundFiles:
    """The files and frames found for an input.

    Attributes:
        files: Its files and frames in a fixed order.
        skipped: Files in its folders that are not read because of their names.
    """

    files: tuple[Rows, ...]
    skipped: tuple[Skipped, ...]


def find_files(
    source: Input, base: Path, scratch: Path | None = None, *, name: str, kinds: Kinds = lambda _names: {}
) -> FoundFiles:
    """Find the files of an input in a fixed order, read their footers, and list the skipped files of its folders.

    Args:
        source: The input; relative paths are relative to `base`. Frames in the place of paths are opened.
        base: Folder of the config file.
        scratch: Folder for temporary data; None: that of the system.
        name: Name of the input in messages.
        kinds: Returns the kinds of the fields that columns are bound to, from their names, for files without types.

    Raises:
        ConfigError: a path is on a remote store, or is empty.
        NoInputError: no file matches, or a link leads nowhere.
        DataError: a file is not a whole Parquet file, or is reached twice; a folder belongs to a table format; half of
            the Parquet files or more would be skipped; the rows of a frame cannot be computed.
        ThresherError: the operating system fails; by the number of its error.
    """
    search = Search(name, base, ENDINGS[source.format or "parquet"])
    paths: dict[Path, Path] = {}
    asked: dict[Path, str] = {}
    labels = dict(labelled(source.path, name=name))
    listed: list[Path | Frame] = []
    for pattern in source.path:
        if isinstance(pattern, Frame):
            listed.append(pattern)
            continue
        matches = search.matches(pattern)
        refuse_table_formats(name, (*search.folders, *_homes(path for path, _ in matches)))
        if not matches:
            raise _no_file(name, shortened(pattern), base, look_at(search.passed_over))
        for path, root in matches:
            if path in paths:
                message = f"input {name}: {path} is named twice, by {asked[path]!r} and by {pattern!r}"
                raise DataError(message, remedy="Its rows would count twice: remove one of the two.")
            paths[path], asked[path] = root, pattern
            listed.append(path)
    _refuse_twins(paths, name=name)
    files = tuple(
        open_frame(item, labels[item], scratch, name=name)
        if isinstance(item, Frame)
        else _open(item, paths[item], source, scratch, kinds, alone=len(listed) == 1, name=name)
        for item in listed
    )
    skipped = look_at(path for path in search.passed_over if path not in paths)
    refuse_most_skipped(name, [file.identity["size"] for file in files if isinstance(file, DataFile)], skipped)
    return FoundFiles(files, skipped)


def _open(
    path: Path, root: Path, spec: Input, scratch: Path | None, kinds: Kinds, *, alone: bool, name: str
) -> DataFile:
    """Read the footer of a file, of another format after its rows have been written to a Parquet file."""
    refuse_spreadsheet(path, name=name)
    kind = format_of(path, spec.format)
    if kind == "parquet":
        return open_file(path, root, name=name)
    identity = identity_of(path, name=name)
    notices: dict[str, int] = {}

    def write(target: Path) -> None:
        notices.update(convert(path, kind, spec, kinds, target, alone=alone, name=name))

    converted, holder = spooled(write, str(path), scratch, name=name)
    file = open_file(converted, converted.parent, name=name, label=str(path), holder=holder)
    return replace(file, origin=path, identity=identity, partitions=partitions_of(path, root), notices=notices)


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
        except OSError as error:
            raise os_fault(error, f"input {name}: looking at {path}") from error
        twin = path_of.setdefault((stat.st_dev, stat.st_ino), path) if stat.st_ino else path  # 0: not numbered here
        if twin != path:
            message = f"input {name}: {twin} and {path} are one and the same file"
            raise DataError(message, remedy="Its rows would count twice: remove one of the two.")
