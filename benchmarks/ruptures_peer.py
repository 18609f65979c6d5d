"""Loops over series with the metric of ruptures: what a person would write.

python benchmarks/ruptures_peer.py ANNOTATIONS PREDICTIONS MARGIN
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import polars as pl
from made_points import LENGTH

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    Means = tuple[float, float]


def at_once(marks: Path, predicted: Path, margin: int) -> Means:
    """Mean precision and recall of the series, all predictions together."""
    truth = _lists(_points(marks))
    return _means(truth, _lists(_points(predicted)), margin)


def curve(marks: Path, predicted: Path, margin: int, thresholds: Iterable[float]) -> Iterator[Means]:
    """The same at every threshold, for which the predictions are filtered and the series gone through once more."""
    truth, predictions = _lists(_points(marks)), _points(predicted)
    for threshold in thresholds:
        yield _means(truth, _lists(predictions.filter(pl.col("score") >= threshold)), margin)


def _points(path: Path) -> pl.DataFrame:
    """Points that ruptures accepts: before the end of the series, which its lists end with."""
    return pl.scan_parquet(path).filter(pl.col("position") < LENGTH).collect()


def _lists(points: pl.DataFrame) -> dict[int, list[int]]:
    lists = points.group_by("series_id").agg(pl.col("position").unique().sort())
    return dict(zip(lists["series_id"].to_list(), lists["position"].to_list(), strict=True))


def _means(truth: dict[int, list[int]], predicted: dict[int, list[int]], margin: int) -> Means:
    from ruptures.metrics import precision_recall  # noqa: PLC0415 - thresher does not need ruptures

    total = [
        precision_recall([*positions, LENGTH], [*predicted.get(series, ()), LENGTH], margin)
        for series, positions in truth.items()
    ]
    return sum(precision for precision, _ in total) / len(total), sum(recall for _, recall in total) / len(total)


def main() -> None:
    """Print the means."""
    marks, predicted, margin = sys.argv[1:]
    print(*at_once(marks, predicted, int(margin)))  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
