"""Cases as folders of data: config.toml, its inputs as typed CSV, and expected/<table>.csv.

An input `pairs.csv` becomes the folder `pairs.parquet` beside the config. Its header gives names and types, for example
`event_id:VARCHAR,score:DOUBLE`. An empty cell is NULL. Expected numbers may be written as fractions, `3/7`.
"""

from __future__ import annotations

import csv
import datetime as dt
import random
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from pipeline.runs.config import load_config

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipeline.runs.config import Config

CASES = Path(__file__).parent
TYPES: dict[str, tuple[pl.DataType, Callable[[str], Any]]] = {
    "VARCHAR": (pl.String(), str),
    "BIGINT": (pl.Int64(), int),
    "DOUBLE": (pl.Float64(), float),
    "BOOLEAN": (pl.Boolean(), lambda text: {"true": True, "false": False}[text]),
    "TIMESTAMP": (pl.Datetime("us"), dt.datetime.fromisoformat),
}


def case_folders() -> list[Path]:
    """Every case of every stage, in order."""
    return sorted(path.parent for path in CASES.rglob("config.toml"))


def case_name(folder: Path) -> str:
    """`<stage>/<case>`."""
    return folder.relative_to(CASES).as_posix()


def prepare(folder: Path, target: Path, *, shuffle: int | None = None) -> Config:
    """Write the inputs of a case as Parquet and return its config; with `shuffle` the rows are mixed over 3 files."""
    for path in folder.glob("*.csv"):
        frame = read_input(path)
        files = target / path.with_suffix(".parquet").name
        files.mkdir(parents=True)
        parts = [frame] if shuffle is None else _parts(frame, shuffle)
        for number, part in enumerate(parts):
            part.write_parquet(files / f"part-{number}.parquet")
    (target / "config.toml").write_bytes((folder / "config.toml").read_bytes())
    return load_config(target / "config.toml")


def _parts(frame: pl.DataFrame, seed: int) -> list[pl.DataFrame]:
    order = list(range(frame.height))
    random.Random(seed).shuffle(order)  # noqa: S311 - an order, not a secret
    return [frame[order[start::3]] for start in range(3)]


def read_input(path: Path) -> pl.DataFrame:
    """A typed CSV as a frame."""
    header, *rows = _rows(path)
    named = [name.rpartition(":")[::2] for name in header]
    columns = {}
    for index, (name, sql_type) in enumerate(named):
        dtype, parse = TYPES[sql_type]
        columns[name] = pl.Series([parse(row[index]) if row[index] else None for row in rows], dtype=dtype)
    return pl.DataFrame(columns)


def read_expected(path: Path, like: pl.DataFrame) -> list[dict[str, Any]]:
    """Rows of an expected table, each cell of the type that the column has in `like`."""
    header, *rows = _rows(path)
    return [{name: _cell(text, like.schema[name]) for name, text in zip(header, row, strict=True)} for row in rows]


def _cell(text: str, dtype: pl.DataType) -> Any:  # noqa: ANN401 - of any type
    if not text:
        return None
    if dtype == pl.Float64:
        return float(Fraction(text))
    return next(parse for own, parse in TYPES.values() if own == dtype)(text)


def _rows(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return [row for row in csv.reader(file) if row]
