"""Small random inputs: the same values in many physical types, from several writers, with what spoils them."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from fuzz.driver import count

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence
    from pathlib import Path

    from fuzz.driver import Outcome

MOST_ROWS = 12
EXTREMES = (1e308, -1e308, 5e-324, -5e-324, 2.0**53, -0.0, 0.1 + 0.2, 1e-300)
INVALID = (None, math.nan, math.inf, -math.inf)
KEY_FORMS = ("text", "large", "dictionary", "small", "big", "unsigned")
TEXTS = ("a", "b", "", "é", "a ", "0", "NULL", "ä" * 40, "\U0001f600", "x'y\"z", "A")


def scores(draw: random.Random, n: int, *, invalid: float = 0.1) -> pa.Array:
    """Numbers with ties, extremes and, with that probability each, values that are no score."""
    plain = [0.25, 0.5, 0.75, 1.0, 2.0, 3.0]
    values = [
        draw.choice(INVALID) if draw.random() < invalid else draw.choice(EXTREMES if draw.random() < 0.1 else plain)
        for _ in range(n)
    ]
    form = draw.choice(("double", "double", "float", "integer", "unsigned", "decimal"))
    if form == "double":
        return pa.array(values, pa.float64())
    if form == "float":
        return pa.array(
            [v if v is None or abs(v) < 1e30 or not math.isfinite(v) else 7.0 for v in values], pa.float32()
        )
    labels = [None if v is None or not math.isfinite(v) else round(4 * min(abs(v), 100)) for v in values]
    if form == "decimal":
        return pa.array([None if v is None else Decimal(v) / 4 for v in labels], pa.decimal128(9, 2))
    return pa.array(labels, pa.int16() if form == "integer" else pa.uint64())


def keys(draw: random.Random, n: int, pool: int, *, missing: float = 0.0, form: str | None = None) -> pa.Array:
    """Keys out of a small pool, as text, dictionary or integer; with that probability each NULL."""
    numbers = [None if draw.random() < missing else draw.randrange(pool) for _ in range(n)]
    return keyed(numbers, form or draw.choice(KEY_FORMS))


def keyed(numbers: Sequence[int | None], form: str) -> pa.Array:
    """Numbers of keys as keys of one physical type; equal numbers, and only these, are equal keys."""
    texts = [None if k is None else TEXTS[k] if k < len(TEXTS) else f"k{k}" for k in numbers]
    if form == "dictionary":
        return pa.array(texts, pa.string()).dictionary_encode()
    if form in {"text", "large"}:
        return pa.array(texts, pa.string() if form == "text" else pa.large_string())
    shifted = [None if k is None else k + (2**63 - 99 if form == "unsigned" else -3) for k in numbers]
    return pa.array(shifted, {"small": pa.int8(), "big": pa.int64(), "unsigned": pa.uint64()}[form])


def labels(draw: random.Random, n: int, *, spoilt: float = 0.05) -> pa.Array:
    """Truth values as booleans or integers; sometimes with one that is none."""
    values: list[int | None] = [draw.randrange(2) for _ in range(n)]
    if n and draw.random() < spoilt:
        values[draw.randrange(n)] = draw.choice((None, 2, -1))
    if all(value in {0, 1, None} for value in values) and draw.random() < 0.6:
        return pa.array([None if value is None else bool(value) for value in values], pa.bool_())
    return pa.array(values, draw.choice((pa.int8(), pa.int64())))


def numbers(draw: random.Random, n: int, pool: Sequence[float], *, spoilt: float = 0.0) -> pa.Array:
    """Numbers out of a pool, as doubles; with that probability each NULL, NaN or infinite."""
    return pa.array(
        [draw.choice(INVALID) if draw.random() < spoilt else draw.choice(pool) for _ in range(n)], pa.float64()
    )


def whole_numbers(draw: random.Random, values: Sequence[int]) -> pa.Array:
    """Small whole numbers in one of the physical types that hold them."""
    kinds = (pa.int8(), pa.uint64(), pa.int64(), pa.float32(), pa.float64(), pa.decimal128(9, 3))
    return (
        pa.array([Decimal(value) for value in values]).cast(draw.choice(kinds)) if values else pa.array([], pa.int64())
    )


def whole_integers(draw: random.Random, values: Sequence[int]) -> pa.Array:
    """Small whole numbers as integers of any width."""
    return pa.array(values, draw.choice((pa.int8(), pa.uint16(), pa.int64(), pa.uint64())))


def instants(draw: random.Random, n: int) -> pa.Array:
    """Dates or times, with or without a zone, in any unit."""
    start = dt.datetime(2026, 3, 28, 20, tzinfo=dt.UTC)  # around a change of the clock
    values = [start + dt.timedelta(minutes=30 * draw.randrange(40)) for _ in range(n)]
    if draw.random() < 0.2:
        return pa.array([value.date() for value in values], pa.date32())
    zone = draw.choice((None, "UTC", "Europe/Amsterdam"))
    return pa.array([v.replace(tzinfo=None) for v in values], pa.timestamp(draw.choice(("ms", "us", "ns")))).cast(
        pa.timestamp("us", zone)
    )


def write(draw: random.Random, path: Path, columns: dict[str, pa.Array]) -> str:
    """Write a table as one of several writers would, and return the path as text."""
    table = pa.table(columns)
    if draw.random() < 0.3:
        pl.DataFrame(table).write_parquet(path, compression=draw.choice(("zstd", "snappy", "uncompressed")))
    else:
        pq.write_table(
            table,
            path,
            use_dictionary=draw.random() < 0.5,
            compression=draw.choice(("snappy", "zstd", "none", "gzip")),
            row_group_size=draw.choice((1, 3, 1000)),
            write_statistics=draw.random() < 0.7,
            data_page_version=draw.choice(("1.0", "2.0")),
        )
    return str(path)


def values_of(column: pa.Array) -> list[Any]:
    """Its values in Python: decimals as floats, dates and times as UTC without a zone."""
    return [_plain(value) for value in column.to_pylist()]


def rows_of(columns: dict[str, pa.Array]) -> list[dict[str, Any]]:
    """The rows of a table, as the values of its columns."""
    values = [values_of(column) for column in columns.values()]
    return [dict(zip(columns, row, strict=True)) for row in zip(*values, strict=True)]


def _plain(value: object) -> object:
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return value.astimezone(dt.UTC).replace(tzinfo=None)
    return value


def is_valid(score: float | None) -> bool:
    """Whether a score is a finite number."""
    return score is not None and math.isfinite(score)


def is_retrieved(score: float | None, threshold: float, boundary: str) -> bool:
    """Whether a score lies above a threshold; one that is no number does not."""
    if score is None or not math.isfinite(score):
        return False
    return score > threshold or (score == threshold and boundary == ">=")


def ran(draw: random.Random, folder: Path, frames: dict[str, dict[str, pa.Array]], stage: dict[str, Any]) -> Outcome:
    """Write the inputs of a stage, and run it up to its tables."""
    name = f"r{draw.getrandbits(64)}"
    paths = {each: write(draw, folder / f"{name}-{each}.parquet", columns) for each, columns in frames.items()}
    return count({"output": name, "stages": [stage | paths]}, folder)


def judged(
    outcome: Outcome, seen: object, expected: object, frames: dict[str, Any], stage: dict[str, Any]
) -> str | None:
    """How the numbers of a successful run differ from those expected; None: they do not."""
    if seen == expected:
        return None
    return f"seen {seen}\nexpected {expected}\n{told(frames, stage)}\n{outcome.text}"


def told(frames: dict[str, dict[str, pa.Array]], stage: dict[str, Any]) -> str:
    """A case in words that can be typed again."""
    columns = (f"{name}.{key}: {v.type} {v.to_pylist()}" for name, t in frames.items() for key, v in t.items())
    return "\n".join((*columns, str(stage)))
