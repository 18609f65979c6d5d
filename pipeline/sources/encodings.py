"""Text that is not UTF-8: which column of a table, or which line of a file, holds the first of it."""

from __future__ import annotations

import csv
import io
import json
from itertools import islice
from typing import TYPE_CHECKING

from ..errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pyarrow as pa

_WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff")  # of UTF-16
_COMPRESSED = (".gz", ".zst")
_MOST_SHOWN = 60
_OF_TABLES = 'Decode its values with the encoding that they have, for example value.decode("latin-1").'


class RowsError(ValueError):
    """Rows of a frame that cannot be read.

    Args:
        message: What is wrong, with the column.
        remedy: What to do about it.
    """

    def __init__(self, message: str, *, remedy: str) -> None:
        super().__init__(message)
        self.remedy = remedy


def check_texts(table: pa.Table, *, start: int = 0) -> None:
    """Check that the text columns of a table hold UTF-8, which Arrow does not do by itself.

    Args:
        table: The rows.
        start: Number of rows that came before them, for messages.

    Raises:
        RowsError: a value is none; names the column, the row and the value.
    """
    import pyarrow as pa  # noqa: PLC0415 - the command line shows its help without loading pyarrow

    for name, column in zip(table.column_names, table.columns, strict=True):
        if str(column.type) not in {"string", "large_string", "string_view"}:
            continue
        try:
            column.validate(full=True)
        except pa.ArrowInvalid:
            rows = enumerate(_bytes(column), start=start + 1)
            row, value = next((row, value) for row, value in rows if not _is_utf8(value))
            message = f"column {name!r} holds text that is not UTF-8 (first at row {row:,}: {_shown(value)})"
            raise RowsError(message, remedy=_OF_TABLES) from None


def _bytes(column: pa.ChunkedArray) -> Iterator[bytes]:
    import pyarrow as pa  # noqa: PLC0415 - see check_texts

    kind = pa.binary_view() if str(column.type) == "string_view" else pa.large_binary()
    for chunk in column.chunks:
        yield from (value or b"" for value in chunk.cast(kind).to_pylist())


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _shown(value: bytes) -> str:
    return repr(value if len(value) <= _MOST_SHOWN else value[:_MOST_SHOWN] + b"...")


def not_utf8(
    path: Path, separator: str | None, *, is_json: bool = False, most_lines: int | None = None, name: str
) -> DataError | None:
    """Return the error that a text file is not UTF-8; None if it is.

    Args:
        path: The file, compressed or not.
        separator: What separates the columns of a file with a header; None: it has none.
        is_json: Whether every line is an object.
        most_lines: Number of lines to look at; None: all.
        name: Name of the input in messages.
    """
    import pyarrow as pa  # noqa: PLC0415 - see check_texts

    header: bytes | None = None
    with io.BufferedReader(pa.input_stream(str(path))) as lines:
        for number, line in enumerate(islice(lines, most_lines), start=1):
            header = line if header is None else header
            if _is_utf8(line):
                continue
            if number == 1 and line.startswith(_WIDE_MARKS):
                message = f"input {name}: {path} is text in UTF-16, not UTF-8"
                return DataError(message, remedy=_recoding(path, "UTF-16"))
            where, value = _place(line, header, separator, is_json=is_json)
            message = (
                f"input {name}: {where}{path} holds text that is not UTF-8 (first in line {number:,}: {_shown(value)})"
            )
            return DataError(message, remedy=_recoding(path, "WINDOWS-1252"))
    return None


def _recoding(path: Path, encoding: str) -> str:
    if path.name.lower().endswith(_COMPRESSED):
        return "Write it as UTF-8 before it is compressed."
    return f"Write it as UTF-8, for example with: iconv -f {encoding} -t UTF-8 {path.name!r} > {'utf8_' + path.name!r}"


def _place(line: bytes, header: bytes, separator: str | None, *, is_json: bool) -> tuple[str, bytes]:
    """Name the column of the first value of a line that is not UTF-8, and return that value."""
    text = line.decode("latin-1").rstrip("\r\n")  # one character for each byte
    try:
        if is_json:
            values = {key: json.dumps(value, ensure_ascii=False) for key, value in json.loads(text).items()}
        elif separator is not None:
            names, fields = csv.reader([header.decode("latin-1"), text], delimiter=separator)
            values = dict(zip(names, fields, strict=False))
        else:
            values = {}
    except (ValueError, AttributeError, csv.Error):  # a line that is damaged in other ways, too
        values = {}
    for column, value in values.items():
        if not _is_utf8(value.encode("latin-1", "replace")):
            return f"column {_readable(column)!r} of ", value.encode("latin-1", "replace")
    return "", line.strip()


def _readable(name: str) -> str:
    return name.encode("latin-1", "replace").decode("utf-8", "replace")
