"""How the values of a text file are written, guessed from its first lines, for people to confirm."""

from __future__ import annotations

import csv
import io
import re
from typing import TYPE_CHECKING, get_args

from ..errors import UsageError, os_fault
from .formats import SEPARATED, format_of, starts_with
from .inputs import Format
from .parquet_files import MAGIC

if TYPE_CHECKING:
    from pathlib import Path

DELIMITERS = (",", ";", "\t", "|")
_DEFAULTS = {"csv": ",", "tsv": "\t"}
_NAMES = {"\\t": "\t", "tab": "\t"}
_DECIMAL_COMMA = re.compile(r"\s*[+-]?\d*,\d+(?:[eE][+-]?\d+)?\s*")
_CONTROL = re.compile("[\x00-\x08\x0e-\x1f]")
_NUMBER = r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"
_LINES: dict[Format, re.Pattern[str]] = {
    "trec_run": re.compile(rf"\s*\S+\s+\S+\s+\S+\s+{_NUMBER}\s+{_NUMBER}\s+\S+\s*$"),
    "trec_qrels": re.compile(rf"\s*\S+\s+\S+\s+\S+\s+{_NUMBER}\s*$"),
    "brat": re.compile(r"[TREAMN#*]\d*\t\S+ \S"),
}
_TAGGED = re.compile(r"\S.*[\t ]([BIESLU]-\S+|O)([\t ]|$)")
_OF_CONLL = re.compile(rf"#|-DOCSTART-|\d+[-.]\d+\t|{_TAGGED.pattern}")
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
    kind = format_of(path, format_)
    try:
        if format_ is None and kind == "parquet" and path.suffix.lower() != ".parquet":
            kind = "parquet" if starts_with(path, MAGIC) else _guessed_format(_first_lines(path), delimiter)
        lines = _first_lines(path) if kind in SEPARATED else []
    except OSError as error:
        raise os_fault(error, f"input {name}: reading {path}") from error
    keys: dict[str, str] = {"format": kind} if format_ is not None or kind != format_of(path, None) else {}
    return keys | _keys_of_values(lines, kind, delimiter)


def keys_of_text(path: Path) -> dict[str, str] | None:
    """Return the keys that an input needs to read a text file whatever it is called: none if they cannot be guessed.

    Args:
        path: The file, compressed or not.

    Returns:
        The keys; None if the file holds no text.
    """
    try:
        lines = _first_lines(path)
    except OSError:  # it is compressed by its name alone, for example
        return None
    text = "".join(lines)
    if MAGIC.decode().startswith(text[: len(MAGIC)]) or _CONTROL.search(text):
        return None  # nothing, the beginning of a Parquet file, or no text
    kind = _guessed_format(lines, None)
    return {} if kind == "parquet" else {"format": kind} | _keys_of_values(lines, kind, None)


def _keys_of_values(lines: list[str], kind: Format, delimiter: str | None) -> dict[str, str]:
    """The keys that say how the values of a separated file are written; none for other files."""
    keys: dict[str, str] = {}
    if kind in SEPARATED:
        separator = delimiter or _guessed_delimiter(lines, _DEFAULTS[kind])
        if separator != _DEFAULTS[kind]:
            keys["delimiter"] = separator
        if separator != "," and _has_decimal_commas(lines, separator):
            keys["decimal"] = ","
    return keys


def _guessed_format(lines: list[str], delimiter: str | None) -> Format:
    """The format that the first lines of a file are written in; `parquet` if that is none of text."""
    header = lines[0].lstrip("\ufeff") if lines else ""
    if header.startswith("{"):
        return "jsonl"
    if header.strip() == "[" or header.lstrip().startswith("[{"):
        return "parquet"  # an array in JSON, which is told where it is opened
    for kind, pattern in _LINES.items():
        if lines and all(map(pattern.match, lines)):
            return kind
    if any(map(_TAGGED.match, lines)) and all(map(_OF_CONLL.match, lines)):
        return "conll"
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
