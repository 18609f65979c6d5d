"""A Parquet file as it was found: footer, identity, partitions and checksums; and what a file is that is none."""

from __future__ import annotations

import hashlib
import io
import json
from contextlib import suppress
from dataclasses import field as data_field
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa

from ..base.errors import DataError, os_error_number, os_fault
from ..base.interrupts import opening, reading
from ..base.records import dataclass
from .types import plain_schema

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Collection, Iterable, Mapping
    from pathlib import Path

    import pyarrow.parquet as pq


MAGIC, ENCRYPTED = b"PAR1", b"PARE"
_DECRYPT = "thresher takes no keys: read a copy without encryption, made with the library that has them."
_LEAVE_OUT = "If it is still being written, let its writer finish; else name the files by a glob or a list without it."
_TAIL = 8
_SIGNATURE = 28  # bytes behind a footer that can be read while columns are encrypted
_SAMPLE_ROWS = 8
_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
_MOST_SCHEMAS = 256
_schemas: dict[bytes, pa.Schema] = {}


@dataclass(frozen=True)
class DataFile:
    """A Parquet file as it was found, before anything is read from it.

    Attributes:
        path: Absolute path.
        rows: Rows, from the footer.
        schema: Columns and types, from the footer, in file order; extension types as in `plain_types`.
        partitions: Column → value, from the folder names `column=value`; None is the default partition.
        identity: size, mtime_ns, ctime_ns, inode and device, which tell whether the file was replaced; of a remote
            object its size, etag and version_id, and of a table of a table format its version.
        footer_sha256: Hash of the footer.
        label: What messages call it; empty: by its path.
        holder: What removes the file once nothing refers to it; None for files of the user's.
        origin: The file of another format that its rows come from, whose identity it has; else None.
        partition_types: Column → its type, for the partitions that are not text; a table format says them.
        notices: What is to be said of rows that are not read as that file has them, with the number of such rows; 0:
            it is said of the whole file.
        tokens: The file of the tokens that its mentions are made of; None: there are none.
        largest_group: Bytes of the largest row group before compression, from the footer.
        tells_fields: Whether its columns are known: not where lists whose elements are its rows are all empty.
        fetch: Brings columns here, which is to be done before they are read; None: all of them are here.
    """

    path: Path
    rows: int
    schema: pa.Schema
    partitions: Mapping[str, str | None]
    identity: dict[str, Any]
    footer_sha256: str
    label: str = ""
    holder: object = data_field(default=None, compare=False, repr=False)
    origin: Path | None = None
    partition_types: Mapping[str, pa.DataType] = data_field(default_factory=dict)
    notices: dict[str, int] = data_field(default_factory=dict, compare=False)
    tokens: Path | None = data_field(default=None, compare=False)
    largest_group: int = data_field(default=0, compare=False)
    tells_fields: bool = data_field(default=True, compare=False)
    fetch: Callable[[Collection[str]], None] | None = data_field(default=None, compare=False, repr=False)
    _bounds: dict[str, tuple[float, float] | None] = data_field(default_factory=dict, compare=False, repr=False)

    @property
    def name(self) -> str:
        """Its name in messages and tables."""
        return self.label or str(self.path)

    @property
    def digest(self) -> str:
        """What tells that its content is the same."""
        return self.footer_sha256

    @property
    def is_versioned(self) -> bool:
        """Whether it is a version of an object on a remote store, or of a table of a table format."""
        return not {"etag", "table_version"}.isdisjoint(self.identity)

    def has_changed(self) -> bool:
        """Whether it is another file than the one that was found, or is gone; a version stays what it is."""
        if self.is_versioned:
            return False
        try:
            stat = (self.origin or self.path).stat()
        except OSError:
            return True
        return any(self.identity[key] != value for key, value in _of_stat(stat).items() if key != "device")

    def null_free(self, column: str) -> bool:
        """Whether the footer says for every row group that a column has no NULL."""
        groups = self._statistics(column)
        return groups is not None and all(
            chunk is not None and chunk.has_null_count and chunk.null_count == 0 for chunk in groups
        )

    def _statistics(self, column: str) -> list[pq.Statistics | None] | None:
        """What the footer tells of a column by row group; None if it lacks the column, or nothing is fetched yet."""
        import pyarrow.parquet as pq  # noqa: PLC0415 - as in open_file

        if not self.path.exists():
            return None
        with opening(self.name):
            metadata = pq.read_metadata(self.path)
            if column not in metadata.schema.names:
                return None
            index = metadata.schema.names.index(column)
            return [group.column(index).statistics for group in _groups(metadata)]

    def value_bytes(self, column: str, least: float, largest_page: float) -> float:
        """Return the bytes of a value of a column before compression, as its footer and its first values tell.

        Args:
            column: The column.
            least: Bytes of a value from which on they matter: smaller ones are not looked at more closely.
            largest_page: Bytes of a column in a row group up to which its first values are read.
        """
        import pyarrow.parquet as pq  # noqa: PLC0415 - as in open_file

        with reading(self.name), suppress(OSError, ValueError), pq.ParquetFile(self.path) as file:
            metadata = file.metadata
            paths = [str(metadata.schema.column(number).path) for number in range(metadata.num_columns)]
            leaves = [number for number, path in enumerate(paths) if path.partition(".")[0] == column]
            groups = _groups(metadata)
            sizes = [sum(group.column(leaf).total_uncompressed_size for leaf in leaves) for group in groups]
            averages = [size / max(group.num_rows, 1) for size, group in zip(sizes, groups, strict=True)]
            if max(averages, default=0.0) > least or not least < max(sizes, default=0) < largest_page:
                return max(averages, default=0.0)
            for batch in file.iter_batches(_SAMPLE_ROWS, row_groups=[sizes.index(max(sizes))], columns=[column]):
                values = batch.column(0)
                plain = values.dictionary_decode() if pa.types.is_dictionary(values.type) else values
                return float(plain.nbytes / max(len(plain), 1))
        return 0.0

    def bounds(self, column: str) -> tuple[float, float] | None:
        """Return the lowest and highest number of a column according to the footer; None if it does not tell.

        Only a hint: statistics leave out NaN, and may be missing. The footer is read once for a column.
        """
        if column not in self._bounds:
            groups = self._statistics(column) or [None]
            chunks = [chunk for chunk in groups if chunk is not None and chunk.has_min_max]
            are_numbers = len(chunks) == len(groups) and all(isinstance(c.min, int | float | Decimal) for c in chunks)
            limits = (float(min(c.min for c in chunks)), float(max(c.max for c in chunks))) if are_numbers else None
            self._bounds[column] = limits
        return self._bounds[column]


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
    import pyarrow.parquet as pq  # noqa: PLC0415 - only where files are read

    try:
        with opening(label or path, name):
            stat = path.stat()
            footer, length = _footer(path, stat.st_size, label or str(path), name=name)
            metadata = pq.read_metadata(path)
            if length - metadata.serialized_size == _SIGNATURE:
                message = f"input {name}: {label or path} has encrypted columns"
                raise DataError(message, remedy=_DECRYPT)
            schema = _shared(plain_schema(metadata.schema.to_arrow_schema()))
            largest_group = max((group.total_byte_size for group in _groups(metadata)), default=0)
            _check_rows(metadata)
            _check_places(metadata, stat.st_size - _TAIL - length)
    except (pa.ArrowException, OSError, MemoryError, UnicodeError) as error:
        if os_error_number(error) is not None:
            raise os_fault(error, f"input {name}: reading {label or path}") from error
        message = f"input {name}: {label or path} is not a whole Parquet file ({' '.join(str(error).split())})"
        raise DataError(message, remedy="Its footer is damaged: take the file from where it was written.") from error
    read = (metadata.num_rows, schema, partitions_of(path, root), _of_stat(stat), footer)
    return DataFile(path, *read, label, holder, largest_group=largest_group)


def _groups(metadata: pq.FileMetaData) -> list[pq.RowGroupMetaData]:
    return [metadata.row_group(number) for number in range(metadata.num_row_groups)]


def _check_rows(metadata: pq.FileMetaData) -> None:
    """Raise OSError, as of all files that are damaged, where a footer counts other rows than its row groups."""
    groups = _groups(metadata)
    in_groups = sum(group.num_rows for group in groups)
    if metadata.num_rows != in_groups or any(min(group.num_rows, group.total_byte_size) < 0 for group in groups):
        message = f"its footer counts {metadata.num_rows:,} rows, and {in_groups:,} in its row groups"
        raise OSError(message)


def _check_places(metadata: pq.FileMetaData, end: int) -> None:
    """Raise OSError unless the columns of a footer lie one behind the other in front of it, and are what it says.

    Libraries may crash at such a file, or read other values.
    """
    chunks = []
    leaves = [metadata.schema.column(number) for number in range(metadata.num_columns)]
    for number, group in enumerate(_groups(metadata), start=1):
        for index, leaf in enumerate(leaves):
            chunk, what = group.column(index), f"column {leaf.path!r} of row group {number}"
            if odd := _odd(chunk, leaf, group.num_rows):
                message = f"its footer says of {what} {odd}"
                raise OSError(message)
            if chunk.num_values:
                chunks.append((_start(chunk), chunk.total_compressed_size, what))
    behind = len(MAGIC)
    for first, size, what in sorted(chunks):
        if first < behind or size <= 0 or first + size > end:
            message = f"its footer puts {what} at byte {first:,}, {size:,} long, where {behind:,} to {end:,} are free"
            raise OSError(message)
        behind = first + size


def _odd(chunk: pq.ColumnChunkMetaData, leaf: pq.ColumnSchema, n_rows: int) -> str:
    """An impossible statement of a footer about a column in a row group; empty where there is none."""
    if chunk.physical_type != leaf.physical_type:
        return f"that it holds {chunk.physical_type}, and in its schema {leaf.physical_type}"
    if chunk.num_values < 0 or (not leaf.max_repetition_level and chunk.num_values != n_rows):
        return f"that {n_rows:,} rows have {chunk.num_values:,} values"
    if chunk.total_uncompressed_size < 0:
        return f"that it has {chunk.total_uncompressed_size:,} bytes"
    bounds = chunk.statistics if leaf.physical_type in {"DOUBLE", "FLOAT"} else None
    if bounds is not None and bounds.has_min_max and bounds.min > bounds.max:
        return f"that its values reach from {bounds.min:g} to {bounds.max:g}"
    return ""


def _shared(schema: pa.Schema) -> pa.Schema:
    """One schema for all files of which it is exactly the same: the schemas of 100,000 files take 150 megabytes."""
    if len(_schemas) >= _MOST_SCHEMAS:
        _schemas.clear()
    return _schemas.setdefault(schema.serialize().to_pybytes(), schema)


def ranges_of(path: Path, columns: Collection[str]) -> list[tuple[int, int]]:
    """Return where the bytes of a Parquet file lie that reading some of its columns needs, between its ends.

    It is all but the other columns: filters and indexes lie between them. Of the file the footer is enough.
    """
    import pyarrow.parquet as pq  # noqa: PLC0415 - as in open_file

    metadata = pq.read_metadata(path)
    chunks = (group.column(index) for group in _groups(metadata) for index in range(metadata.num_columns))
    unread = (chunk for chunk in chunks if not _is_of(chunk.path_in_schema, columns))
    others = [(_start(chunk), _start(chunk) + chunk.total_compressed_size) for chunk in unread]
    end = path.stat().st_size - _TAIL - metadata.serialized_size
    return without([(len(MAGIC), end)], others)


def _is_of(leaf: str, columns: Collection[str]) -> bool:
    """Whether a leaf of a schema belongs to one of some columns, whose names may have full stops, too."""
    names = leaf.split(".")
    return any(".".join(names[: number + 1]) in columns for number in range(len(names)))


def without(ranges: list[tuple[int, int]], others: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return what is left of ranges of bytes, (start, end) each, without other ranges."""
    left, holes = [], sorted(others)
    for start, end in ranges:
        at = start
        for first, behind in holes:
            if behind > at and first < end:
                left.append((at, first))
                at = behind
        left.append((at, end))
    return [(start, end) for start, end in left if start < end]


def identity_of(path: Path, *, name: str) -> dict[str, int]:
    """Return what tells whether a file was replaced.

    Raises:
        ThresherError: the operating system fails; by the number of its error.
    """
    try:
        with opening(path, name):
            return _of_stat(path.stat())
    except OSError as error:
        raise os_fault(error, f"input {name}: looking at {path}") from error


def _of_stat(stat: os.stat_result) -> dict[str, int]:
    times = {"mtime_ns": stat.st_mtime_ns, "ctime_ns": stat.st_ctime_ns}
    return {"size": stat.st_size, **times, "inode": stat.st_ino, "device": stat.st_dev}


def _footer(path: Path, size: int, label: str, *, name: str) -> tuple[str, int]:
    """Return hash and length of the footer; a file that was cut off or is not a Parquet file has none."""
    with path.open("rb") as file:
        head = file.read(_LONGEST)
        file.seek(max(size - _TAIL, 0))
        tail = file.read(_TAIL)
        if head.startswith(ENCRYPTED) and tail[_TAIL // 2 :] == ENCRYPTED:
            message = f"input {name}: {label} is encrypted"
            raise DataError(message, remedy=_DECRYPT)
        length = int.from_bytes(tail[: _TAIL // 2], "little")
        if not head.startswith(MAGIC) or tail[_TAIL // 2 :] != MAGIC or length + _TAIL + len(MAGIC) > size:
            raise _no_parquet(path, head, label, size, name=name)
        file.seek(size - _TAIL - length)
        return hashlib.sha256(file.read(length)).hexdigest(), length


def _no_parquet(path: Path, head: bytes, label: str, size: int, *, name: str) -> DataError:
    """The error of a file that does not begin and end as Parquet files do: what it is, and how to read it."""
    from .formats import keys_of_text  # noqa: PLC0415 - which imports this module

    keys = keys_of_text(path)
    if not keys and (kind := kind_of(head, path)) is not None:
        return DataError(f"input {name}: {label} is not a Parquet file, it is {kind[0]}", remedy=kind[1])
    if keys is None:
        message = f"input {name}: {label} is not a whole Parquet file ({size:,} bytes, no valid footer)"
        return DataError(message, remedy=_LEAVE_OUT)
    is_named = label.lower().endswith(".parquet")
    what = f"is not a whole Parquet file ({size:,} bytes) but text" if is_named else "is text, not Parquet"
    looks = f"its lines look like {keys['format']}" if keys else "its lines do not tell of which format"
    settings = {key: json.dumps(value, ensure_ascii=False) for key, value in (keys or {"format": "…"}).items()}
    in_config = ", ".join(f"{key} = {value}" for key, value in settings.items())
    in_config = f"{name} = {{ path = …, {in_config} }}"
    flags = " ".join(f"--set '{name}.{key}={value}'" for key, value in settings.items())
    formats = "" if keys else ": csv, tsv, jsonl, trec_run, trec_qrels, conll or brat"
    return DataError(
        f"input {name}: {label} {what}; {looks}",
        remedy=f"Say what it is, in the config {in_config}, on the command line {flags}{formats}.",
    )


# What a file is that is not Parquet, by its first bytes, and what turns it into something that is read.


_LONGEST = 16  # bytes that are looked at
_COPY = "\"COPY (FROM {rows}) TO 'rows.parquet'\""
_DUCKDB = 'Name one of its tables: {{ database = {name}, table = "my_table" }}.'
_SQLITE = "Write a table of it to Parquet: duckdb -c " + _COPY.format(rows="sqlite_scan('{path}', 'my_table')")
_PYTHON = "Write its rows to Parquet: python -c '{}.write_parquet(\"rows.parquet\")'"
_ORC = _PYTHON.format("import polars, pyarrow.orc; polars.from_arrow(pyarrow.orc.read_table({name}))")
_AVRO = _PYTHON.format("import polars; polars.read_avro({name})")
_EXCEL = _PYTHON.format("import polars; polars.read_excel({name})")
_JSON = (
    "Write it as JSON lines: python -c \"import json; [print(json.dumps(row)) for row in json.load(open('{path}'))]\" "
    "> {lines}"
)
_GZIP = "Unpack it, or, where it is a text, let its name end in .csv.gz, .tsv.gz or .jsonl.gz."
_ZSTD = "Unpack it, or, where it is a text, let its name end in .csv.zst, .tsv.zst or .jsonl.zst."
_KINDS = (
    (8, b"DUCK", "a DuckDB database", _DUCKDB),
    (0, b"SQLite format 3\0", "an SQLite database", _SQLITE),
    (0, b"ORC", "an ORC file", _ORC),
    (0, b"Obj\x01", "an Avro file", _AVRO),
    (0, b"ARROW1", "an Arrow file", 'Say so: format = "arrow".'),
    (0, b"PK\x03\x04", "a zip archive, or a spreadsheet, which is one", f"Unpack it. Of a spreadsheet: {_EXCEL}"),
    (0, b"\x1f\x8b", "compressed with gzip", _GZIP),
    (0, b"\x28\xb5\x2f\xfd", "compressed with zstd", _ZSTD),
    (0, b"\x89HDF", "an HDF5 file", "Write its rows to Parquet, for example with pandas."),
)


def kind_of(head: bytes, path: Path) -> tuple[str, str] | None:
    """Return what a file is, in words, and a remedy; None where its first bytes do not tell."""
    if head.lstrip().startswith((b"[{", b"[\n", b"[\r")) or (head.startswith(b"[") and path.suffix.lower() == ".json"):
        return "an array in JSON", _JSON.format(path=path, lines=path.with_suffix(".jsonl").name)
    for offset, magic, words, remedy in _KINDS:
        if head[offset : offset + len(magic)] == magic:
            return words, remedy.format(name=json.dumps(str(path)), path=path)
    return None


def partitions_of(path: Path, root: Path) -> dict[str, str | None]:
    """Return the partition columns of a file with their values, from the names of the folders below `root`."""
    pairs = (part.split("=", 1) for part in path.relative_to(root).parts[:-1] if "=" in part)
    return {unquote(key): None if value == _HIVE_NULL else unquote(value) for key, value in pairs}


# Checksums of the pages of a Parquet file, CRC-32 in their headers where the writer adds them: engines compare none.


class PageFaultError(Exception):
    """A page is not what its checksum says; the text says where."""


class _Flipped(io.FileIO):
    """A file one bit of which reads otherwise."""

    at = -1

    def read(self, size: int | None = -1, /) -> bytes:
        start = self.tell()
        data = super().read(size)
        at = self.at - start
        return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :] if 0 <= at < len(data) else data


def check_pages(path: Path, column: str) -> bool:
    """Let pyarrow compare the pages of a column with their checksums; a batch of rows is held at a time.

    Returns:
        Whether its pages have checksums: then a bit that is flipped in the last one does not go unnoticed.

    Raises:
        PageFaultError: a checksum does not fit, or a page cannot be read.
        OSError: the operating system fails.
    """
    import pyarrow.parquet as pq  # noqa: PLC0415 - as in open_file

    with reading(path), pq.ParquetFile(path, page_checksum_verification=True) as parquet:
        metadata = parquet.metadata
        paths = [metadata.schema.column(number).path for number in range(metadata.num_columns)]
        leaves = [leaf for leaf in paths if _is_of(leaf, [column])]
        groups = [number for number, group in enumerate(_groups(metadata)) if group.num_rows]
        for group in groups if leaves else ():
            if reason := _page_fault(parquet, group, leaves):
                message = f"column {column!r}, row group {group + 1} of {metadata.num_row_groups}: {reason}"
                raise PageFaultError(message)
    if not groups or not leaves:
        return True
    chunk = metadata.row_group(groups[0]).column(paths.index(leaves[0]))
    with reading(path), _Flipped(path) as file:
        file.at = _start(chunk) + chunk.total_compressed_size - 1
        return "CRC" in _page_fault(pq.ParquetFile(file, page_checksum_verification=True), groups[0], leaves[:1])


def _page_fault(parquet: pq.ParquetFile, group: int, leaves: list[str]) -> str:
    """The fault that pyarrow finds in the pages of columns in a row group; empty if there is none."""
    try:
        for _ in parquet.iter_batches(row_groups=[group], columns=leaves):
            pass
    except (OSError, pa.ArrowException) as error:
        if os_error_number(error) is not None:
            raise
        return " ".join(str(error).split())
    return ""


def _start(chunk: pq.ColumnChunkMetaData) -> int:
    """The first byte of a column in a row group; some writers say 0 of a dictionary that is not there."""
    first, of_dictionary = int(chunk.data_page_offset), int(chunk.dictionary_page_offset or 0)
    return of_dictionary if chunk.has_dictionary_page and 0 < of_dictionary < first else first
