"""The first rows of an input with all their columns, those without a role among them: a look, never a count."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import polars as pl

from .frames import FrameRows
from .parquet_files import DataFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pyarrow as pa

    from .source import Source

MOST_FILES = 16


def columns_in_no_role(source: Source, taken: Iterable[str]) -> tuple[str, ...]:
    """Columns of whole numbers, texts and dates that nothing reads, not even `where`.

    Args:
        source: The input.
        taken: Our names of the columns that are read.
    """
    read = {name for each in taken for name in source.columns_read(each)} | set(columns_in_where(source))
    kinds = {field.name: field.type for file in source.files[:1] for field in file.schema}
    told = (name for name in _names(source) if name not in kinds or _tells_rows_apart(kinds[name]))
    return tuple(name for name in told if name not in read)


def columns_in_where(source: Source) -> tuple[str, ...]:
    """Columns of plain values whose name stands in `where`: rows that differ in them may not be there together."""
    where = source.spec.where or ""
    odd = {field.name for file in source.files[:1] for field in file.schema if not _is_plain(field.type)}
    return tuple(name for name in _names(source) if name in where and name not in odd)


def _names(source: Source) -> list[str]:
    """The columns of the first file, and those of its folders."""
    return list(dict.fromkeys(name for file in source.files[:1] for name in (*file.schema.names, *file.partitions)))


def _is_plain(kind: pa.DataType) -> bool:
    """Whether values of a type can be looked at whatever library reads them."""
    import pyarrow as pa  # noqa: PLC0415 - only where files are looked at

    return _tells_rows_apart(kind) or (pa.types.is_primitive(kind) and not pa.types.is_float16(kind))


def _tells_rows_apart(kind: pa.DataType) -> bool:
    """Whether a type is that of names and numbers of things."""
    import pyarrow as pa  # noqa: PLC0415 - only where files are looked at

    if pa.types.is_dictionary(kind):
        return _tells_rows_apart(kind.value_type)
    is_text = str(kind) in {"string", "large_string", "string_view"}
    return bool(is_text or pa.types.is_integer(kind) or pa.types.is_date(kind))


def first_rows(source: Source, columns: Sequence[str], most_rows: int) -> pl.DataFrame:
    """The first rows of up to 16 files, evenly among all, as many of each; without a row where they are not here.

    Files that cannot be read are passed over: the engine, which reads all of them, tells why.

    Args:
        source: The input.
        columns: Columns of the files and folders.
        most_rows: How many rows of all files together.
    """
    files = [file for file in source.files if isinstance(file, DataFile | FrameRows) and file.rows]
    files = [file for file in files if isinstance(file, FrameRows) or file.fetch is None]
    chosen = files[:: -(-len(files) // MOST_FILES)] if files else []
    frames = []
    for file in chosen:
        with suppress(OSError, ValueError, NotImplementedError):  # as Arrow calls what it cannot read
            frames.append(_of_file(file, columns, -(-most_rows // len(chosen))))
    return pl.concat(frames, how="diagonal_relaxed") if frames else pl.DataFrame(schema=dict.fromkeys(columns, pl.Null))


def _of_file(file: DataFile | FrameRows, columns: Sequence[str], most_rows: int) -> pl.DataFrame:
    named = [name for name in columns if name in file.schema.names]
    table: pa.Table
    if isinstance(file, FrameRows):
        table = file.table.select(named).slice(0, most_rows)
    else:
        import pyarrow as pa  # noqa: PLC0415 - only where files are looked at
        import pyarrow.parquet as pq  # noqa: PLC0415

        with pq.ParquetFile(file.path) as parquet:
            batch = next(parquet.iter_batches(batch_size=most_rows, columns=named))
        table = pa.Table.from_batches([batch])
    folders = [pl.lit(file.partitions[name]).alias(name) for name in columns if name in file.partitions]
    return pl.DataFrame(table).with_columns(folders)
