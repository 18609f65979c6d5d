"""What a file is that is not Parquet, by its first bytes, and what turns it into something that is read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

LONGEST = 16  # bytes that are looked at
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
    """Return what a file is, in words, and a remedy; None where its first bytes do not tell.

    Args:
        head: Its first bytes.
        path: The file.
    """
    if head.lstrip().startswith((b"[{", b"[\n", b"[\r")) or (head.startswith(b"[") and path.suffix.lower() == ".json"):
        return "an array in JSON", _JSON.format(path=path, lines=path.with_suffix(".jsonl").name)
    for offset, magic, words, remedy in _KINDS:
        if head[offset : offset + len(magic)] == magic:
            return words, remedy.format(name=json.dumps(str(path)), path=path)
    return None
