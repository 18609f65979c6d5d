"""Files of other formats than Parquet: recognised by their endings, and written to Parquet before they are read.

Text has no types, so the columns of CSV and TSV files get those of the fields that they are bound to; a value that does
not fit is an error that names it. Columns that are bound to no field stay text.
"""

from __future__ import annotations

import csv
import glob
import io
import json
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any, get_args

import polars as pl
import pyarrow as pa

from ..base.errors import DataError, UsageError, os_error_number, os_fault
from .frames import write_batches, write_rows
from .inputs import DATABASES, Format
from .parquet_files import MAGIC
from .types import RowsError, in_expression, not_utf8, text_cast

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path, PurePath

    from .inputs import Input, Kind

    KindsOf = Callable[[list[str]], Mapping[str, Kind]]


ENDINGS: dict[Format, tuple[str, ...]] = {
    "parquet": (".parquet",),
    "csv": (".csv", ".csv.gz", ".csv.zst"),
    "tsv": (".tsv", ".tsv.gz", ".tsv.zst"),
    "jsonl": (".jsonl", ".jsonl.gz", ".jsonl.zst", ".ndjson", ".ndjson.gz", ".ndjson.zst"),
    "arrow": (".arrow", ".feather", ".ipc"),
    "duckdb": DATABASES,
    "trec_run": (".run",),
    "trec_qrels": (".qrels",),
    "conll": (".conll", ".bio", ".iob"),
    "brat": (".ann",),
}
SEPARATED = frozenset({"csv", "tsv"})
TEXTS = SEPARATED | {"trec_run", "trec_qrels"}
TOKENS = "tokens.parquet"
SPREADSHEETS = (".xlsx", ".xls", ".xlsb", ".ods")
TAB = "\t"
_DATE = "%Y-%m-%d"
_TIMES = ("%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%dT%H:%M")
_ZONED = ("%Y-%m-%dT%H:%M:%S%.f%#z", "%Y-%m-%dT%H:%M%#z")
_REMEDY = 'If it is of another format, say which: format = "…".'
_UTF8 = "UTF-8 is read, with as many values in every row. "
_REMEDIES: dict[Format, str] = {
    **dict.fromkeys(("csv", "tsv", "trec_run", "trec_qrels"), _UTF8),
    "jsonl": "Write one object a line, and null for NaN and Infinity, which JSON does not have. ",
}
_RENAMED = re.compile(r"(?P<name>.+)_duplicated_\d+")  # what the reader makes of a name that repeats
_UNNAMED = re.compile(r"_duplicated_\d+")
_EXPECTED: dict[Kind, str] = {
    "number": "a number",
    "integer": "an integer",
    "boolean": "true, false, 1 or 0",
    "instant": "a date or time as in 2026-11-20 or 2026-11-20T09:30:00Z",
    "position": "a number, or a date or time as in 2026-11-20",
}

_HINTS: dict[Kind, str] = {
    "number": 'decimal = "," for decimal commas',
    "integer": 'an expression, { sql = "CAST(CAST(my_column AS DOUBLE) AS BIGINT)" }, for counts with a point',
}


def format_of(path: PurePath, declared: Format | None) -> Format:
    """Return the format of a file: the declared one, or by its ending; files with other endings are Parquet."""
    if declared is not None:
        return declared
    name = path.name.lower()
    return next((kind for kind, endings in ENDINGS.items() if name.endswith(endings)), "parquet")


def refuse_spreadsheet(path: Path, *, name: str) -> None:
    """Refuse a spreadsheet, whose cells have no column types; the remedy is the line that converts it.

    Raises:
        DataError: the file is one.
    """
    if path.name.lower().endswith(SPREADSHEETS):
        message = f"input {name}: {path} is a spreadsheet, which is not read"
        target = path.with_suffix(".parquet").name
        line = f'python -c "import polars; polars.read_excel({path.name!r}).write_parquet({target!r})"'
        raise DataError(message, remedy=f"Convert it, check its types, and name the result: {line}")


def convert(
    path: Path, kind: Format, spec: Input, kinds: KindsOf, target: Path, *, alone: bool, name: str
) -> dict[str, int]:
    """Write the rows of a file of another format to a Parquet file, in a stream.

    Args:
        path: The file.
        kind: Its format, not `parquet`.
        spec: What the config says about the input.
        kinds: Returns the kinds of the fields that columns are bound to, from the names of the columns.
        target: The Parquet file; the tokens of CoNLL files are in `TOKENS`, beside it.
        alone: Whether it is the only file of the input.
        name: Name of the input in messages.

    Returns:
        What is to be said of rows that are not read as they are written, with the number of such rows; 0: of all.

    Raises:
        DataError: the file is not of that format, or a value does not fit its field.
    """
    from .line_formats import LineError  # noqa: PLC0415 - only for files of other formats

    if kind == "arrow" and not starts_with(path, b"ARROW1"):
        message = f"input {name}: {path} cannot be read as arrow: it is no Arrow file"
        raise DataError(message, remedy=_REMEDY)
    separator = _separator(kind, spec) if kind in SEPARATED else None
    try:
        if separator and (fault := not_utf8(path, separator, most_lines=1, name=name)) is not None:
            raise fault  # the reader takes a header in any encoding
        return _write(path, kind, spec, kinds, target, alone=alone, name=name)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, pa.ArrowException, OSError, LineError) as error:
        if isinstance(error, OSError) and os_error_number(error) is not None:
            raise
        is_json = kind == "jsonl"
        if "utf" in str(error).lower() and (fault := not_utf8(path, separator, is_json=is_json, name=name)) is not None:
            raise fault from error
        if separator and isinstance(error, pl.exceptions.ComputeError):
            with suppress(OSError):  # an archive that is cut off
                _refuse_uneven(path, separator, name=name)
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        message = f"input {name}: {path} cannot be read as {kind}: {reason}"
        raise DataError(message, remedy=f"{_REMEDIES.get(kind, '')}{_REMEDY}") from error


def _write(
    path: Path, kind: Format, spec: Input, kinds: KindsOf, target: Path, *, alone: bool, name: str
) -> dict[str, int]:
    from . import line_formats  # noqa: PLC0415 - as in convert

    if kind == "conll":
        column = spec.tags if isinstance(spec.tags, int) else None
        tokens, said = line_formats.tagged_tokens(path, alone=alone, tags=column, name=name)
        tokens.write_parquet(target.with_name(TOKENS))
        line_formats.mentions_of(tokens).write_parquet(target)
        return said
    if kind == "brat":
        line_formats.brat(path, name=name).sink_parquet(target)
        return line_formats.notices(target)
    if kind == "duckdb":
        write_rows(path, spec.table, target, name=name)
    elif kind == "arrow":
        _write_arrow(path, target, name=name)
    else:
        _write_texts(path, kind, spec, kinds, target, name=name)
    return {}


def _write_arrow(path: Path, target: Path, *, name: str) -> None:
    """Write the rows of an Arrow file, batch by batch, with the types that they have in a frame."""
    with pa.ipc.open_file(str(path)) as reader:
        batches = (reader.get_batch(number) for number in range(reader.num_record_batches))
        try:
            write_batches(reader.schema, batches, target)
        except RowsError as fault:
            message = f"input {name}: {path}: {fault}"
            raise DataError(message, remedy=fault.remedy) from fault
        except (pa.ArrowNotImplementedError, KeyError):  # what older versions say of texts as Polars writes them
            pl.scan_ipc(glob.escape(str(path))).sink_parquet(target)


def _write_texts(path: Path, kind: Format, spec: Input, kinds: KindsOf, target: Path, *, name: str) -> None:
    """Write the rows of a text file, with the types of its fields; arguments are those of `convert`."""
    from . import line_formats  # noqa: PLC0415 - as in convert

    def write(frame: pl.LazyFrame) -> None:
        names = frame.collect_schema().names()
        frame.with_columns(typed(frame, kinds(names), path, kind, spec, name=name)).sink_parquet(target)

    if kind in {"trec_run", "trec_qrels"}:
        columns = line_formats.RUN if kind == "trec_run" else line_formats.QRELS
        write(line_formats.trec(path, columns, name=name))
        return
    if kind == "jsonl":
        try:
            write(line_formats.json_lines(path))
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
            if os_error_number(error) is not None:
                raise
            write(line_formats.mixed_json_lines(path))  # a second time: columns have values of several types
        return
    separator = _separator(kind, spec)
    frame = _separated(pl.scan_csv(path, separator=separator, infer_schema=False, glob=False), spec)
    names = frame.collect_schema().names()
    # refuse a file whose header has a name twice, or is one name that another separator would split
    for match in filter(None, map(_RENAMED.fullmatch, names)):
        if match["name"] in names:
            message = f"input {name}: {path} has several columns named {match['name']!r}"
            raise DataError(message, remedy="Rename all but one of them.")
    rivals = [rival for rival in (";", "\t", "|", ",") if rival != separator and names and rival in names[0]]
    if len(names) == 1 and rivals:
        message = f"input {name}: {path} has one column, {names[0]!r}"
        raise DataError(message, remedy=f"If {rivals[0]!r} separates its columns, say so: delimiter = {rivals[0]!r}.")
    write(frame)
    has_nulls_at_the_end = pl.scan_parquet(target).select(pl.last().is_null().any()).collect().item()
    if has_nulls_at_the_end and _may_be_uneven(path, separator):
        _refuse_uneven(path, separator, name=name)  # rows with too few values end in NULL


def _refuse_uneven(path: Path, separator: str, *, name: str) -> None:
    """Refuse a file with rows that have more or fewer values than its header; a line without any value is no row."""
    width, uneven, first = 0, 0, (0, 0)
    with io.BufferedReader(pa.input_stream(str(path))) as file:
        # lines end in a line feed and nowhere else; a character for each byte
        lines = (line.decode("latin-1").rstrip("\r\n").replace("\r", " ") + "\n" for line in file)
        reader = csv.reader(lines, delimiter=separator)
        for values in reader:
            width = width or len(values)
            if len(values) != width > 1 and any(map(str.strip, values)):
                first = first if uneven else (reader.line_num, len(values))
                uneven += 1
    if uneven:
        rows = "1 row" if uneven == 1 else f"{uneven:,} rows"
        has = f"{first[1]:,} {'value' if first[1] == 1 else 'values'}"
        message = (
            f"input {name}: {path} cannot be read as {'tsv' if separator == TAB else 'csv'}: {rows} without {width:,} "
            f"values, as its header has (first: line {first[0]:,}, which has {has})"
        )
        raise DataError(
            message,
            remedy="Every row needs as many: an empty value is nothing between two separators, and a value with a "
            "separator or a line break in it stands in quotes.",
        )


def _may_be_uneven(path: Path, separator: str) -> bool:
    """Whether another reader finds a row without as many values as the header, which is quicker than counting."""
    from pyarrow import csv as arrow  # noqa: PLC0415 - only for such files

    options = {
        "read_options": arrow.ReadOptions(autogenerate_column_names=True),
        "parse_options": arrow.ParseOptions(delimiter=separator, newlines_in_values=True),
        "convert_options": arrow.ConvertOptions(include_columns=["f0"], column_types={"f0": "binary"}),
    }
    try:
        with arrow.open_csv(path, **options) as rows:
            for _ in rows:
                pass
    except (ValueError, OSError):  # by such a row, or by anything else: counting will tell
        return True
    return False


def starts_with(path: Path, magic: bytes) -> bool:
    """Whether a file begins with the bytes of a format."""
    with path.open("rb") as file:
        return file.read(len(magic)) == magic


def _separator(kind: Format, spec: Input) -> str:
    return spec.delimiter or (TAB if kind == "tsv" else ",")


def _separated(frame: pl.LazyFrame, spec: Input) -> pl.LazyFrame:
    """The rows of a CSV file: lines in which something stands, with NULL for the words that stand for none.

    Columns without a name, in which R and pandas write the names of rows, are left out, because nothing can name them.
    """
    names = frame.collect_schema().names()
    if len(names) > 1:  # where there is one column, an empty line is a NULL
        is_blank = pl.first().str.contains(r"^\s+$")
        others = pl.any_horizontal(pl.nth(range(1, len(names))).is_not_null())
        frame = frame.filter(others | (pl.first().is_not_null() & ~is_blank))
    if "" in names:
        frame = frame.drop(name for name in names if not name or _UNNAMED.fullmatch(name))
    words = list(spec.null_values)
    return frame.with_columns(pl.when(~pl.all().is_in(words)).then(pl.all())) if words else frame


def typed(
    frame: pl.LazyFrame, kinds: Mapping[str, Kind], path: Path | str, kind: Format, spec: Input, *, name: str
) -> list[pl.Expr]:
    """The bound columns that hold text, as what their fields expect: the first type that all their values fit."""
    texts = {column for column, dtype in frame.collect_schema().items() if dtype == pl.String}
    wanted = {column: field for column, field in kinds.items() if column in texts}
    if kind == "jsonl":  # which has types but for times
        wanted = {column: field for column, field in wanted.items() if field in {"instant", "position"}}
    candidates = {column: _readings(column, field, spec) for column, field in wanted.items()}
    candidates = {column: readings for column, readings in candidates.items() if readings}
    if not candidates:
        return []
    misfits = frame.select(
        (reading.is_null() & pl.col(column).is_not_null()).sum().alias(f"{column}\n{number}")
        for column, readings in candidates.items()
        for number, reading in enumerate(readings)
    ).collect(engine="streaming")
    chosen = []
    for column, readings in candidates.items():
        numbers = [misfits[f"{column}\n{number}"].item() for number in range(len(readings))]
        if min(numbers):
            reading = readings[numbers.index(min(numbers))]
            raise _misfit(frame, column, reading, wanted[column], path, name=name)
        chosen.append(readings[numbers.index(0)].alias(column))
    return chosen


def is_read(frame: pl.LazyFrame, column: str, kind: Kind, spec: Input) -> bool:
    """Whether a column of text is read as what a field expects without an expression."""
    readings = _readings(column, kind, spec)
    misfits = frame.select(
        (reading.is_null() & pl.col(column).is_not_null()).any().alias(str(number))
        for number, reading in enumerate(readings)
    )
    return not readings or not all(misfits.collect(engine="streaming").row(0))


def _readings(column: str, kind: Kind, spec: Input) -> list[pl.Expr]:
    """The ways to read a column of text, the narrowest first; none for a field that takes text as it is."""
    text = pl.col(column).str.strip_chars()
    decimal = text if spec.decimal == "." else text.str.replace(spec.decimal, ".", literal=True)
    integer, number = text.cast(pl.Int64, strict=False), decimal.cast(pl.Float64, strict=False)
    moment = text.str.replace(" ", "T", literal=True)
    day = text.str.to_date(_DATE, strict=False)
    naive = [moment.str.to_datetime(pattern, time_unit="us", strict=False) for pattern in _TIMES]
    zoned = [moment.str.to_datetime(pattern, time_unit="us", time_zone="UTC", strict=False) for pattern in _ZONED]
    times = [  # R writes midnight as a date beside times of day
        *(day, *naive, *zoned),
        pl.coalesce([*naive, day.cast(pl.Datetime("us"))]),
        pl.coalesce(zoned),
    ]
    words = text.str.to_lowercase()
    boolean = pl.when(words.is_in(["true", "1"])).then(True).when(words.is_in(["false", "0"])).then(False)
    readings: dict[Kind, list[Any]] = {
        "number": [number],
        "integer": [integer],
        "boolean": [boolean],
        "instant": times,
        "position": [integer, number, *times],
    }
    return readings.get(kind, [])


def _misfit(
    frame: pl.LazyFrame, column: str, reading: pl.Expr, kind: Kind, path: Path | str, *, name: str
) -> DataError:

    is_misfit = reading.is_null() & pl.col(column).is_not_null()
    rows = frame.select(pl.col(column).alias("value"), is_misfit.alias("misfit")).with_row_index("row")
    misfits = rows.filter("misfit").collect(engine="streaming")
    row, value, _ = misfits.row(0)
    n_rows = "1 row" if misfits.height == 1 else f"{misfits.height:,} rows"
    rows_at_fault = f"{n_rows} of {path} (first at row {row + 1:,}: {value!r})"
    message = f"input {name}: column {column!r} is not {_EXPECTED[kind]} in {rows_at_fault}"
    hint = _hint(frame, column, kind, str(value).strip())
    return DataError(
        message, remedy=f'Say how to read it: null_values = ["NA"] for words that stand for none, or {hint}.'
    )


def _hint(frame: pl.LazyFrame, column: str, kind: Kind, value: str) -> str:
    """How to read a column of text that does not fit its field, by an expression where one reads all of it."""
    expression = ""
    if (cast := text_cast(frame, column, kind)) is not None and not cast.is_plain and not cast.has_decimal_commas:
        expression = cast.sql
    elif kind == "number" and value.endswith("%"):
        number = f"rtrim({in_expression(column)}, ' %')"
        number = f"replace({number}, ',', '.')" if "," in value else number
        expression = f"CAST({number} AS DOUBLE) / 100"
    if expression:
        return f"an expression, {{ sql = {json.dumps(expression, ensure_ascii=False)} }}"
    return _HINTS.get(kind, 'an expression, { sql = "…" }')


# How the values of a text file are written, guessed from its first lines, for people to confirm.


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

    Unless they are told, the delimiter is what occurs most often in the header, and the format that of the ending, or
    for other endings of the first line.

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
    """Return the keys that an input needs to read a text file whatever it is called.

    They are none if they cannot be guessed, and None if the file holds no text.
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
    with io.TextIOWrapper(io.BufferedReader(pa.input_stream(str(path))), "utf-8", "replace") as text:
        lines = [text.readline(_MOST_CHARACTERS).rstrip("\r\n") for _ in range(_MOST_LINES)]
    return [line for line in lines if line]
