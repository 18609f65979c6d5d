"""A process of its own that runs mutants of Parquet files, so that one that kills the reader kills no test.

    python tests/fuzz/mutants.py FOLDER FIRST_SEED N_CASES [footer]

It writes a line for every mutant before it is run, and one with its outcome.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import polars as pl
import pyarrow.parquet as pq

from fuzz.driver import count, fault

if TYPE_CHECKING:
    from collections.abc import Callable

N_ROWS = 40
OF_VALUES = ("a value cannot be", "an input is damaged: ", "input predictions: column ")
TAIL, STRIDE = 8, 37
Region = tuple[int, int]


def frame() -> pl.DataFrame:
    rows = range(N_ROWS)
    return pl.DataFrame(
        {
            "score": [(7 * row % 23) / 10 for row in rows],
            "label": [row * 5 % 7 < 3 for row in rows],
            "group": [f"group {row % 3}" if row % 11 else None for row in rows],
        }
    )


def _by_duckdb(path: Path, codec: str) -> None:
    table = frame().to_arrow()
    with duckdb.connect() as connection:
        connection.register("rows", table)
        connection.execute(f"COPY rows TO '{path}' (FORMAT parquet, COMPRESSION {codec})")


WRITERS: tuple[Callable[[Path], object], ...] = (
    lambda path: frame().write_parquet(path, compression="zstd"),
    lambda path: frame().write_parquet(path, compression="uncompressed", row_group_size=16),
    lambda path: pq.write_table(frame().to_arrow(), path, compression="snappy", row_group_size=16),
    lambda path: pq.write_table(frame().to_arrow(), path, compression="zstd", use_dictionary=False),
    lambda path: pq.write_table(frame().to_arrow(), path, compression="none", use_dictionary=False),
    lambda path: pq.write_table(frame().to_arrow(), path, compression="gzip", data_page_version="2.0"),
    lambda path: pq.write_table(frame().to_arrow(), path, compression="none", write_page_checksum=True),
    lambda path: _by_duckdb(path, "snappy"),
    lambda path: _by_duckdb(path, "uncompressed"),
)


def mutant(draw: random.Random, content: bytes) -> tuple[str, bytes]:
    """A damaged file and what was done: to its pages, its length, its first or last eight bytes.

    Damage within the footer is left to `flipped`: a bit there can end the process inside the reader of pyarrow.
    """
    data = bytearray(content)
    footer = len(data) - TAIL - int.from_bytes(data[-TAIL:-4], "little")
    start, end = sorted((draw.randrange(4, footer), draw.randrange(4, footer)))
    change = draw.choice(
        ("flip", "flip", "flip", "flips", "zero", "repeat", "cut", "grow", "magic", "length", "splice")
    )
    if change in {"flip", "flips"}:
        for _ in range(1 if change == "flip" else draw.randrange(2, 30)):
            data[draw.randrange(4, footer)] ^= 1 << draw.randrange(8)
    elif change == "zero":
        data[start:end] = bytes(end - start)
    elif change == "repeat":
        data[start:end] = data[start : start + 1] * (end - start)
    elif change == "cut":
        del data[draw.randrange(len(data)) :]
    elif change == "grow":
        data += draw.randbytes(draw.randrange(1, 50))
    elif change == "magic":
        data[draw.choice((0, 1, 2, 3, -4, -3, -2, -1))] ^= 1 << draw.randrange(8)
    elif change == "length":
        data[draw.choice((-8, -7, -6, -5))] ^= 1 << draw.randrange(8)
    else:
        shifted = draw.randrange(4, footer)
        data[start:end] = (data[shifted:footer] + data[4:shifted])[: end - start].ljust(end - start, b"\0")
    return change, bytes(data)


def flipped(number: int, wholes: list[bytes]) -> tuple[str, bytes]:
    """A file with one bit of its footer flipped, bytes and bits in turn, and which one that is."""
    content = wholes[number % len(wholes)]
    length = int.from_bytes(content[-TAIL:-4], "little")
    at, bit = number // len(wholes) * STRIDE % length, number // len(wholes) % 8
    data = bytearray(content)
    data[len(content) - TAIL - length + at] ^= 1 << bit
    return f"writer {number % len(wholes)}, bit {bit} of byte {at} of {length}", bytes(data)


def written(folder: Path) -> list[bytes]:
    """A whole file of each writer."""
    wholes = []
    for number, write in enumerate(WRITERS):
        write(folder / f"{number}.parquet")
        wholes.append((folder / f"{number}.parquet").read_bytes())
    return wholes


def stage_of(path: Path) -> dict[str, Any]:
    """What is counted of a file."""
    return {"kind": "threshold_sweep", "predictions": str(path), "by": ["group"], "uncertainty": "none"}


def _tells(path: Path) -> str:
    """What a footer says of columns and values, which nothing else tells: another name, type or bound is believed."""
    metadata = pq.read_metadata(path)
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    chunks = [group.column(number) for group in groups for number in range(metadata.num_columns)]
    bounds = [repr((each.statistics.min_raw, each.statistics.max_raw)) if each.is_stats_set else "" for each in chunks]
    return f"{str(metadata.schema).partition(chr(10))[2]} {metadata.schema.to_arrow_schema()} {bounds}"


def _judged_footer(number: int, wholes: list[bytes], folder: Path) -> str | None:
    """What is wrong with what a run does with a flipped bit of a footer; None: nothing."""
    change, data = flipped(number, wholes)
    path, undamaged = folder / "mutant.parquet", folder / f"{number % len(wholes)}.parquet"
    path.write_bytes(data)
    outcome = count({"output": "r", "stages": [stage_of(path)]}, folder)
    broken = fault(outcome)
    if broken is None and outcome.code not in {0, 65}:
        broken = f"code {outcome.code}: {outcome.text}"
    if broken is None and outcome.code and path.name not in outcome.text and _tells(path) == _tells(undamaged):
        broken = f"the file is not named: {outcome.text}"
    if broken is None and not outcome.code and _tells(path) == _tells(undamaged):
        expected = count({"output": "r", "stages": [stage_of(undamaged)]}, folder).tables
        others = [name for name, table in expected.items() if not table.equals(outcome.tables[name])]
        broken = f"other numbers: {others}" if others else None
    return broken and f"{change}: {broken}"


def _judged(seed: int, wholes: list[bytes], folder: Path) -> str | None:
    draw = random.Random(seed)  # noqa: S311 - cases, not secrets
    change, data = mutant(draw, draw.choice(wholes))
    path = folder / "mutant.parquet"
    path.write_bytes(data)
    outcome = count({"output": "r", "stages": [stage_of(path)]}, folder)
    broken = fault(outcome)
    is_other_value = outcome.text.startswith(OF_VALUES)  # a page that is damaged and decodes holds other values
    if broken is None and outcome.code and not is_other_value and path.name not in outcome.text:
        broken = f"the file is not named: {outcome.text}"
    return broken and f"{change}: {broken}"


def main() -> None:
    folder, first, n_cases = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    wholes, judged = written(folder), _judged_footer if "footer" in sys.argv[4:] else _judged
    for seed in range(first, first + n_cases):
        print(json.dumps({"begins": seed}), flush=True)  # noqa: T201 - read by the test
        print(json.dumps({"seed": seed, "fault": judged(seed, wholes, folder)}), flush=True)  # noqa: T201 - see above


if __name__ == "__main__":
    main()
