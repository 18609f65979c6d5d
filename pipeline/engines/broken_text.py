"""Text in Parquet files that is not UTF-8: which columns hold it, and in how many rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    import pyarrow.parquet as pq

REMEDY = "Decode its values with the encoding that they have before the file is written, or leave the file out."
_TEXTS = {"string", "large_string", "string_view"}
_MOST_SHOWN = 60


def broken_text(file: str) -> str | None:
    """Say which text columns of a Parquet file hold what is not UTF-8, in how many rows, and where first.

    Args:
        file: Its path.

    Returns:
        None if all text is UTF-8, or if Arrow cannot read the file either.
    """
    import pyarrow as pa  # noqa: PLC0415 - the command line shows its help without it
    import pyarrow.parquet as pq  # noqa: PLC0415 - see above

    try:
        with pq.ParquetFile(file) as reader:
            names = [field.name for field in reader.schema_arrow if str(_values(field.type)) in _TEXTS]
            columns = [words for name in names if (words := _broken_column(reader, name)) is not None]
    except (pa.ArrowException, OSError):
        return None
    return f"{file} holds text that is not UTF-8: {', '.join(columns)}" if columns else None


def _values(kind: pa.DataType) -> pa.DataType:
    return getattr(kind, "value_type", kind)  # of a dictionary; a list of text is no text


def _broken_column(reader: pq.ParquetFile, name: str) -> str | None:
    """A column with the number of its broken rows and the first of them; None if there is none."""
    numbered = enumerate(_texts(reader, name), start=1)
    broken = [(row, value) for row, value in numbered if not _is_utf8(value)]
    if not broken:
        return None
    row, value = broken[0]
    shown = repr(value if len(value) <= _MOST_SHOWN else value[:_MOST_SHOWN] + b"...")
    rows = f"{len(broken):,} row" + ("s" if len(broken) > 1 else "")
    return f"column {name!r} in {rows} (first at row {row:,}: {shown})"


def _texts(reader: pq.ParquetFile, name: str) -> Iterator[bytes]:
    import pyarrow as pa  # noqa: PLC0415 - see broken_text

    for batch in reader.iter_batches(columns=[name]):
        column = batch.column(0)
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        kind = pa.binary_view() if str(column.type) == "string_view" else pa.large_binary()
        yield from (value or b"" for value in column.cast(kind).to_pylist())


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True
