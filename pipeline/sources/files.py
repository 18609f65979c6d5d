"""Paths of an input → the frozen list of its files, each with its footer and identity."""

from __future__ import annotations

import glob
import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from pipeline.errors import ConfigError, DataError, NoInputError, PermissionDenied

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

    from pipeline.sources.inputs import Input

MAGIC = b"PAR1"
_TAIL = 8
_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class DataFile:
    """One Parquet file as it was found, before anything is read from it.

    Attributes:
        path: Absolute path.
        rows: Rows, from the footer.
        schema: Columns and types, from the footer, in file order.
        partitions: Column → value, from the folder names `column=value`; None is the default partition.
        identity: size, mtime_ns, ctime_ns, inode, device: what tells whether the file was replaced.
        footer_sha256: Hash of the footer.
    """

    path: Path
    rows: int
    schema: pa.Schema
    partitions: dict[str, str | None]
    identity: dict[str, int]
    footer_sha256: str


def find_files(source: Input, base: Path, *, name: str) -> tuple[DataFile, ...]:
    """The files of an input in a fixed order, each footer read.

    Args:
        source: The input; relative paths are relative to `base`.
        base: Folder of the config file.
        name: Name of the input in messages.

    Raises:
        ConfigError: a path is on a remote store.
        NoInputError: no file matches.
        DataError: a file is not a whole Parquet file.
    """
    paths: dict[Path, Path] = {}
    for pattern in source.path:
        found = sorted(_expand(pattern, base, name=name), key=lambda pair: pair[0].as_posix())
        if not found:
            message = f"input {name}: no file matches {pattern} (in {base})"
            raise NoInputError(message, remedy="Check the path; relative paths start at the folder of the config file.")
        for path, root in found:
            paths.setdefault(path, root)
    return tuple(_open(path, root, name=name) for path, root in paths.items())


def _expand(pattern: str, base: Path, *, name: str) -> Iterator[tuple[Path, Path]]:
    if "://" in pattern:
        message = f"input {name}: {pattern} is on a remote store, which is not supported yet"
        raise ConfigError(message, remedy="Copy the files to a local folder.")
    path = Path(os.path.abspath(base / Path(pattern).expanduser()))  # noqa: PTH100 - resolve() would follow links
    if path.is_file():
        yield path, path.parent
    elif path.is_dir():
        yield from ((each, path) for each in _visible(path.rglob("*.parquet"), path))
    elif glob.has_magic(pattern):
        below = Path(pattern).expanduser()
        start = below.anchor or base.absolute()
        fixed = Path(os.path.abspath(Path(start, *_fixed_parts(below.relative_to(below.anchor)))))  # noqa: PTH100 - see above
        absolute = Path(glob.escape(str(start)), below.relative_to(below.anchor))
        for match in glob.iglob(str(absolute), recursive=True):  # noqa: PTH207 - an absolute pattern, which Path.glob refuses
            each = Path(os.path.abspath(match))  # noqa: PTH100 - resolve() would follow links
            if each.is_dir():
                yield from ((inner, fixed) for inner in _visible(each.rglob("*.parquet"), each))
            elif each.is_file():
                yield each, fixed


def _visible(paths: Iterable[Path], root: Path) -> Iterator[Path]:
    """Leave out what writers keep beside the data: names that start with `_` or `.`, but `_x=1` is a partition."""
    for path in paths:
        parts = path.relative_to(root).parts
        hidden = any(part.startswith(".") or (part.startswith("_") and "=" not in part) for part in parts)
        if not hidden and path.is_file():
            yield path


def _fixed_parts(path: Path) -> Iterator[str]:
    for part in path.parts:
        if glob.has_magic(part):
            return
        yield part


def _open(path: Path, root: Path, *, name: str) -> DataFile:
    import pyarrow as pa  # noqa: PLC0415 - the command line shows its help without loading pyarrow
    import pyarrow.parquet as pq  # noqa: PLC0415

    try:
        stat = path.stat()
        footer = _footer(path, stat.st_size, name=name)
        metadata = pq.read_metadata(path)
        schema = metadata.schema.to_arrow_schema()
    except PermissionError as error:
        message = f"input {name}: {path} may not be read: {error.strerror}"
        raise PermissionDenied(message) from error
    except (pa.ArrowException, OSError) as error:
        message = f"input {name}: {path} is not a whole Parquet file ({error})"
        raise DataError(message, remedy="Write the file again, or take it out of the input.") from error
    identity = {
        "size": stat.st_size,
        "mtime_ns": stat.st_mtime_ns,
        "ctime_ns": stat.st_ctime_ns,
        "inode": stat.st_ino,
        "device": stat.st_dev,
    }
    return DataFile(path, metadata.num_rows, schema, _partitions(path, root), identity, footer)


def _footer(path: Path, size: int, *, name: str) -> str:
    """Hash of the footer; a file that was cut off or is no Parquet file has none."""
    with path.open("rb") as file:
        head = file.read(len(MAGIC))
        file.seek(max(size - _TAIL, 0))
        tail = file.read(_TAIL)
        length = int.from_bytes(tail[: _TAIL // 2], "little")
        if head != MAGIC or tail[_TAIL // 2 :] != MAGIC or length + _TAIL + len(MAGIC) > size:
            message = f"input {name}: {path} is not a whole Parquet file ({size:,} bytes, no valid footer)"
            raise DataError(message, remedy="It was cut off or is of another format: write it again, or take it out.")
        file.seek(size - _TAIL - length)
        return hashlib.sha256(file.read(length)).hexdigest()


def _partitions(path: Path, root: Path) -> dict[str, str | None]:
    pairs = (part.split("=", 1) for part in path.relative_to(root).parts[:-1] if "=" in part)
    return {unquote(key): None if value == _HIVE_NULL else unquote(value) for key, value in pairs}


def first_changed(files: Iterable[DataFile]) -> Path | None:
    """The first file that is no longer what it was when it was found, or None."""
    for file in files:
        try:
            stat = file.path.stat()
        except OSError:
            return file.path
        now = (stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino)
        was = tuple(file.identity[key] for key in ("size", "mtime_ns", "ctime_ns", "inode"))
        if now != was:
            return file.path
    return None


def null_free(file: DataFile, column: str) -> bool:
    """Whether the statistics in the footer say, for every row group, that a column holds no NULL."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - see _open

    metadata = pq.read_metadata(file.path)
    if column not in metadata.schema.names:
        return False
    index = metadata.schema.names.index(column)
    groups = (metadata.row_group(number).column(index).statistics for number in range(metadata.num_row_groups))
    return all(each is not None and each.has_null_count and each.null_count == 0 for each in groups)


def bounds(file: DataFile, column: str) -> tuple[float, float] | None:
    """Lowest and highest number of a column as the footer tells; None where it does not, or the file has no row.

    Only a hint: statistics leave out NaN, and may be missing.
    """
    import pyarrow.parquet as pq  # noqa: PLC0415 - see _open

    metadata = pq.read_metadata(file.path)
    if column not in metadata.schema.names or not metadata.num_row_groups:
        return None
    index = metadata.schema.names.index(column)
    found = [metadata.row_group(number).column(index).statistics for number in range(metadata.num_row_groups)]
    if not all(each is not None and each.has_min_max and isinstance(each.min, int | float) for each in found):
        return None
    return float(min(each.min for each in found)), float(max(each.max for each in found))
