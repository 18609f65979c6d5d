"""From the paths of an input to the fixed list of its files, each with its footer and identity."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from dataclasses import field as data_field
from typing import TYPE_CHECKING
from urllib.parse import unquote

from pipeline.errors import DataError, NoInputError, os_error_number, os_fault
from pipeline.sources.finding import Search
from pipeline.sources.formats import ENDINGS, convert, format_of, refuse_spreadsheet, spooled
from pipeline.sources.frames import Frame, labelled, open_frame
from pipeline.sources.paths import shortened
from pipeline.sources.skipped import RENAME, Skipped, look_at, refuse_most_skipped, skipped_words
from pipeline.sources.table_formats import refuse_table_formats

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    import pyarrow as pa

    from pipeline.sources.frames import Rows
    from pipeline.sources.inputs import Input, Kind

    Kinds = Callable[[list[str]], Mapping[str, Kind]]

MAGIC = b"PAR1"
_TAIL = 8
_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class DataFile:
    """A Parquet file as it was found, before anything is read from it.

    Attributes:
        path: Absolute path.
        rows: Rows, from the footer.
        schema: Columns and types, from the footer, in file order.
        partitions: Column → value, from the folder names `column=value`; None is the default partition.
        identity: size, mtime_ns, ctime_ns, inode and device, which tell whether the file was replaced.
        footer_sha256: Hash of the footer.
        label: What messages call it; empty: by its path.
        holder: What removes the file once nothing refers to it; None for files of the user's.
        origin: The file of another format that its rows come from, whose identity it has; else None.
    """

    path: Path
    rows: int
    schema: pa.Schema
    partitions: dict[str, str | None]
    identity: dict[str, int]
    footer_sha256: str
    label: str = ""
    holder: object = data_field(default=None, compare=False, repr=False)
    origin: Path | None = None

    @property
    def name(self) -> str:
        """What messages and tables call it."""
        return self.label or str(self.path)

    @property
    def digest(self) -> str:
        """What tells that its content is the same: the hash of its footer."""
        return self.footer_sha256

    def has_changed(self) -> bool:
        """Whether it is another file than the one that was found, or is gone."""
        try:
            stat = (self.origin or self.path).stat()
        except OSError:
            return True
        now = (stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino)
        return now != tuple(self.identity[key] for key in ("size", "mtime_ns", "ctime_ns", "inode"))

    def null_free(self, column: str) -> bool:
        """Whether the footer says for every row group that a column has no NULL."""
        import pyarrow.parquet as pq  # noqa: PLC0415 - see open_file

        metadata = pq.read_metadata(self.path)
        if column not in metadata.schema.names:
            return False
        index = metadata.schema.names.index(column)
        groups = (metadata.row_group(number).column(index).statistics for number in range(metadata.num_row_groups))
        return all(chunk is not None and chunk.has_null_count and chunk.null_count == 0 for chunk in groups)

    def bounds(self, column: str) -> tuple[float, float] | None:
        """Return the lowest and highest number of a column according to the footer; None if it does not tell.

        Only a hint: statistics leave out NaN, and may be missing.
        """
        import pyarrow.parquet as pq  # noqa: PLC0415 - see open_file

        metadata = pq.read_metadata(self.path)
        if column not in metadata.schema.names or not metadata.num_row_groups:
            return None
        index = metadata.schema.names.index(column)
        groups = [metadata.row_group(number).column(index).statistics for number in range(metadata.num_row_groups)]
        if not all(chunk is not None and chunk.has_min_max and isinstance(chunk.min, int | float) for chunk in groups):
            return None
        return float(min(chunk.min for chunk in groups)), float(max(chunk.max for chunk in groups))


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
    identity = _identity(path, name=name)
    converted, holder = spooled(
        lambda target: convert(path, kind, spec, kinds, target, alone=alone, name=name), str(path), scratch, name=name
    )
    file = open_file(converted, converted.parent, name=name, label=str(path), holder=holder)
    return replace(file, origin=path, identity=identity, partitions=_partitions(path, root))


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


def open_file(path: Path, root: Path, *, name: str, label: str = "", holder: object = None) -> DataFile:
    """Read the footer of a Parquet file.

    Args:
        path: The file, absolute.
        root: The folder from which on folder names are partitions.
        name: Name of the input in messages.
        label: What messages call the file; empty: by its path.
        holder: What removes it once nothing refers to it.

    Raises:
        DataError: it is not a whole Parquet file.
        ThresherError: the operating system fails; by the number of its error.
    """
    import pyarrow as pa  # noqa: PLC0415 - the command line shows its help without loading pyarrow
    import pyarrow.parquet as pq  # noqa: PLC0415

    try:
        stat = path.stat()
        footer = _footer(path, stat.st_size, name=name)
        metadata = pq.read_metadata(path)
        schema = metadata.schema.to_arrow_schema()
    except (pa.ArrowException, OSError, MemoryError) as error:
        if os_error_number(error) is not None:
            raise os_fault(error, f"input {name}: reading {label or path}") from error
        message = f"input {name}: {label or path} is not a whole Parquet file ({error})"
        raise DataError(message, remedy="Write the file again, or remove it from the input.") from error
    identity = _identity_of(stat)
    return DataFile(path, metadata.num_rows, schema, _partitions(path, root), identity, footer, label, holder)


def _identity(path: Path, *, name: str) -> dict[str, int]:
    try:
        return _identity_of(path.stat())
    except OSError as error:
        raise os_fault(error, f"input {name}: looking at {path}") from error


def _identity_of(stat: os.stat_result) -> dict[str, int]:
    return {
        "size": stat.st_size,
        "mtime_ns": stat.st_mtime_ns,
        "ctime_ns": stat.st_ctime_ns,
        "inode": stat.st_ino,
        "device": stat.st_dev,
    }


def _footer(path: Path, size: int, *, name: str) -> str:
    """Return the hash of the footer; a file that was cut off or is not a Parquet file has none."""
    with path.open("rb") as file:
        head = file.read(len(MAGIC))
        file.seek(max(size - _TAIL, 0))
        tail = file.read(_TAIL)
        length = int.from_bytes(tail[: _TAIL // 2], "little")
        if head != MAGIC or tail[_TAIL // 2 :] != MAGIC or length + _TAIL + len(MAGIC) > size:
            message = f"input {name}: {path} is not a whole Parquet file ({size:,} bytes, no valid footer)"
            raise DataError(message, remedy="It was cut off or has another format: write it again, or remove it.")
        file.seek(size - _TAIL - length)
        return hashlib.sha256(file.read(length)).hexdigest()


def _partitions(path: Path, root: Path) -> dict[str, str | None]:
    pairs = (part.split("=", 1) for part in path.relative_to(root).parts[:-1] if "=" in part)
    return {unquote(key): None if value == _HIVE_NULL else unquote(value) for key, value in pairs}
