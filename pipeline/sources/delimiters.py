"""How the values of a text file are written, guessed from its first lines, for people to confirm."""

from __future__ import annotations

import csv
import io
import re
from typing import TYPE_CHECKING, get_args

from pipeline.errors import UsageError, os_fault
from pipeline.sources.formats import SEPARATED, format_of, starts_with
from pipeline.sources.inputs import Format
from pipeline.sources.parquet_files import MAGIC

if TYPE_CHECKING:
    from pathlib import Path

DELIMITERS = (",", ";", "\t", "|")
_DEFAULTS = {"csv": ",", "tsv": "\t"}
_NAMES = {"\\t": "\t", "tab": "\t"}
_DECIMAL_COMMA = re.compile(r"\s*[+-]?\d*,\d+(?:[eE][+-]?\d+)?\s*")
_MOST_LINES = 200
_MOST_CHARACTERS = 10_000  # of a line


def checked_keys(delimiter: str | None, format_: str | None) -> tuple[str | None, Format | None]:
    """Return a delimiter and a format as they were written on a command line, where `tab` means a tab.

    Raises:
        UsageError: the delimiter is not one character, or there is no such format.
    """
    character = None if delimiter is None else _NAMES.get(delimiter, delimiter)
    if character is not None and len(character) != 1:
        message = f"--delimiter {delimiter!r} is not one character"
        raise UsageError(message, remedy="Write for example --delimiter ';', or --delimiter tab.")
    kind = next((kind for kind in get_args(Format) if kind == format_), None)
    if kind is None and format_ is not None:
        message = f"--format {format_}: there is no such format"
        raise UsageError(message, remedy=f"Formats are: {', '.join(get_args(Format))}.")
    return character, kind


def keys_of_file(path: Path, delimiter: str | None, format_: Format | None, *, name: str) -> dict[str, str]:
    """Return the keys that an input needs beside its path: `format`, `delimiter`, `decimal`.

    Args:
        path: The file, compressed or not.
        delimiter: What separates its columns; None: what occurs most often in its header.
        format_: Its format; None: by its ending, or for other endings by its first line.
        name: Name of the input in messages.

    Raises:
        ThresherError: the file cannot be read; by the number of the error of the operating system.
    """
    keys: dict[str, str] = {}
    kind = format_of(path, format_)
    try:
        if format_ is None and kind == "parquet" and path.suffix.lower() != ".parquet":
            kind = "parquet" if starts_with(path, MAGIC) else _guessed_format(path, delimiter)
        lines = _first_lines(path) if kind in SEPARATED else []
    except OSError as error:
        raise os_fault(error, f"input {name}: reading {path}") from error
    if format_ is not None or kind != format_of(path, None):
        keys["format"] = kind
    if kind in SEPARATED:
        separator = delimiter or _guessed_delimiter(lines, _DEFAULTS[kind])
        if separator != _DEFAULTS[kind]:
            keys["delimiter"] = separator
        if separator != "," and _has_decimal_commas(lines, separator):
            keys["decimal"] = ","
    return keys


def _guessed_format(path: Path, delimiter: str | None) -> Format:
    lines = _first_lines(path)
    header = lines[0] if lines else ""
    if header.lstrip("\ufeff").startswith("{"):
        return "jsonl"
    return "csv" if delimiter or any(character in header for character in DELIMITERS) else "parquet"


def _guessed_delimiter(lines: list[str], default: str) -> str:
    header = lines[0] if lines else ""
    candidates = (default, *(character for character in DELIMITERS if character != default))
    best = max(candidates, key=header.count)  # of equals the default
    return best if best in header else default


def _has_decimal_commas(lines: list[str], separator: str) -> bool:
    """Whether a column has numbers with decimal commas, and no other values."""
    rows = list(csv.reader(lines[1:], delimiter=separator))
    width = min(map(len, rows), default=0)
    columns = ([row[number] for row in rows if row[number].strip()] for number in range(width))
    return any(
        any("," in value for value in values)
        and all(_DECIMAL_COMMA.fullmatch(value) or value.strip().lstrip("+-").isdigit() for value in values)
        for values in columns
    )


def _first_lines(path: Path) -> list[str]:
    """The first lines of a text file, each byte that is not UTF-8 as a mark."""
    import pyarrow as pa  # noqa: PLC0415 - the command line shows its help without loading pyarrow

    with io.TextIOWrapper(io.BufferedReader(pa.input_stream(str(path))), "utf-8", "replace") as text:
        lines = [text.readline(_MOST_CHARACTERS).rstrip("\r\n") for _ in range(_MOST_LINES)]
    return [line for line in lines if line]
