"""Gold and predicted mentions of the benchmarks, by seed.

`gold.parquet` and `predicted.parquet` have five mentions in each document: doc_id, start, end, type; predictions have a
score as well. Seven of ten predictions are at the place of a gold mention, one has another end, two lie elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from made_data import ROW_GROUP, SEED

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

PER_DOCUMENT = 5
ROOM = 40
TYPES = ("LOC", "ORG", "PER")


def mentions_of(root: Path, rows: int) -> Path:
    """Folder with gold and predicted mentions, `rows` together, made if they are not there."""
    folder = root / f"mentions_{rows}"
    if (folder / "predicted.parquet").is_file():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    total = rows // 2
    names = ["doc_id", "start", "end", "type"]
    schemas = {
        "gold": pa.schema([(name, pa.string() if name == "type" else pa.int64()) for name in names]),
        "predicted": pa.schema(
            [*((name, pa.string() if name == "type" else pa.int64()) for name in names), ("score", pa.float64())]
        ),
    }
    unfinished = {name: folder / f"{name}.unfinished" for name in schemas}
    with (
        pq.ParquetWriter(unfinished["gold"], schemas["gold"], compression="zstd") as gold,
        pq.ParquetWriter(unfinished["predicted"], schemas["predicted"], compression="zstd") as predicted,
    ):
        for first in range(0, total, ROW_GROUP):
            rng = np.random.default_rng([SEED, 7, first])
            row = np.arange(first, min(first + ROW_GROUP, total))
            document, start = row // PER_DOCUMENT, ROOM * (row % PER_DOCUMENT)
            end, kind = start + rng.integers(4, 16, len(row)), rng.integers(0, len(TYPES), len(row))
            gold.write_table(pa.table([document, start, end, _names(kind)], schema=schemas["gold"]))
            luck = rng.random(len(row))
            end = end + ((luck >= 0.7) & (luck < 0.8))
            away = np.where(luck >= 0.8, ROOM // 2, 0)
            columns = [document, start + away, end + away, _names(kind), rng.random(len(row))]
            predicted.write_table(pa.table(columns, schema=schemas["predicted"]))
    for name, path in unfinished.items():
        path.rename(folder / f"{name}.parquet")
    return folder


def _names(kind: NDArray[np.int64]) -> pa.Array:
    return pa.array(np.array(TYPES)[kind])
