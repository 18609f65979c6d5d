"""Change points of the benchmarks: series of 1,000 observations, 10 true points and 12 predictions in each, by seed.

`annotations.parquet` has `series_id` and `position`, `predictions.parquet` also `score`. Seven in ten true points are
predicted, up to 14 observations away with a score one standard deviation higher; the other predictions lie anywhere.
Rows are in no order within a row group of whole series.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

SEED = 20240101
LENGTH, TRUE, PREDICTED, SEEN = 1000, 10, 12, 7
SERIES_AT_A_TIME = 50_000


@dataclass(frozen=True)
class PointFiles:
    """Where the points of one size lie.

    Attributes:
        folder: Their folder.
        series: Number of series.
    """

    folder: Path
    series: int

    @property
    def annotations(self) -> Path:
        """True points."""
        return self.folder / "annotations.parquet"

    @property
    def predictions(self) -> Path:
        """Predicted points."""
        return self.folder / "predictions.parquet"


def points_of(root: Path, series: int) -> PointFiles:
    """Points of a number of series, made if they are not there."""
    files = PointFiles(root / f"points_{series}", series)
    done = files.folder / "done"
    if done.is_file():
        return files
    files.folder.mkdir(parents=True, exist_ok=True)
    kinds = [("series_id", pa.int64()), ("position", pa.int64())]
    schemas = pa.schema(kinds), pa.schema([*kinds, ("score", pa.float64())])
    paths = files.annotations, files.predictions
    with (
        pq.ParquetWriter(paths[0], schemas[0], compression="zstd") as true,
        pq.ParquetWriter(paths[1], schemas[1], compression="zstd") as predicted,
    ):
        for start in range(0, series, SERIES_AT_A_TIME):
            ids = np.arange(start, min(start + SERIES_AT_A_TIME, series))
            marks, predictions, score = _points(np.random.default_rng([SEED, start]), len(ids))
            true.write_table(pa.table([*_shuffled(ids, marks)], schema=schemas[0]))
            predicted.write_table(pa.table([*_shuffled(ids, predictions, score)], schema=schemas[1]))
    done.touch()
    return files


def _points(rng: np.random.Generator, series: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Marks (series, 10), predictions (series, 12) and their scores; no position twice in a series."""
    marks = np.argpartition(rng.random((series, LENGTH), dtype=np.float32), TRUE, axis=1)[:, :TRUE]
    near = marks[:, :SEEN] + rng.integers(-14, 15, (series, SEEN))
    far = rng.integers(0, LENGTH, (series, PREDICTED - SEEN))
    predictions = np.concatenate([near, far], axis=1)
    for _ in range(20):  # move what stands twice
        order = np.sort(predictions, axis=1)
        twice = (np.diff(order, axis=1) == 0).any(axis=1)
        predictions[twice, SEEN:] = rng.integers(0, LENGTH, (int(twice.sum()), PREDICTED - SEEN))
        predictions[twice, :SEEN] = marks[twice, :SEEN] + rng.integers(-14, 15, (int(twice.sum()), SEEN))
    score = rng.normal(size=predictions.shape)
    score[:, :SEEN] += 1
    return marks.astype(np.int64), predictions.astype(np.int64), score


def _shuffled(ids: NDArray[np.int64], *columns: NDArray[np.int64] | NDArray[np.float64]) -> list[NDArray[np.generic]]:
    """Rows of all series in another order, the series first."""
    order = np.random.default_rng(int(ids[0])).permutation(columns[0].size)
    series = np.repeat(ids, columns[0].shape[1])
    return [series[order], *(column.ravel()[order] for column in columns)]
