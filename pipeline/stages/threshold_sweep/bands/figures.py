"""The region of a figure in which a whole curve lies: the limits of all its thresholds together."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from ....metrics.uncertainty.interval_quality import DOUBTFUL, INTERVAL_QUALITY
from ....tables.columns import by_group, doubles
from ...figures import caption, keys_of, level

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from ...figures import Figure

LOWER, UPPER = "band_lower", "band_upper"


def with_band(figure: Figure | None, tables: Mapping[str, pl.DataFrame], confidence: float) -> Figure | None:
    """Return a figure of one ratio against another with the region of its last series, if the stage made bands.

    At a threshold the band is a box: the limits of both ratios. The region is the union of the boxes of all thresholds,
    which is drawn from its lowest to its highest end above each value of the horizontal axis.

    Args:
        figure: The figure, or None.
        tables: The result tables of the stage.
        confidence: The level of the bands.
    """
    bands = tables.get("threshold_sweep_bands")
    if figure is None or bands is None or bands.is_empty():
        return figure
    frame, line = figure.frame, figure.series[-1]
    boxes = by_group(bands, keys_of(bands))
    ends = [
        _ends(rows, boxes.get(key), figure.x.column, line.column)
        for key, rows in by_group(frame, keys_of(frame)).items()
    ]
    with_ends = pl.concat(ends)
    if with_ends[LOWER].null_count() == with_ends.height:
        return figure
    words = (
        f"The region is a simultaneous band: in {level(confidence)} of samples it holds the whole curve. Intervals of "
        "single points are narrower: each holds its own that often, all together hold far less often."
    )
    series = (*figure.series[:-1], replace(line, lower=LOWER, upper=UPPER))
    return replace(figure, frame=with_ends, series=series, caption=caption(figure.caption, words))


def _ends(rows: pl.DataFrame, boxes: pl.DataFrame | None, across: str, upward: str) -> pl.DataFrame:
    """The rows of one group with the ends of the region above each of them, and how far it can be trusted."""
    lower = upper = np.full(rows.height, np.nan)
    quality = None
    if boxes is not None:
        names = [f"{name}_{side}" for name in (across, upward) for side in ("lower", "upper")]
        limits = boxes.select(names).drop_nulls().to_numpy().T
        lower, upper = _region(rows[across].cast(pl.Float64).to_numpy(), limits)
        marks = set(boxes[INTERVAL_QUALITY]) & set(DOUBTFUL)
        quality = next((mark for mark in DOUBTFUL if mark in marks), "good")
    marked = pl.lit(quality, dtype=pl.String).alias(INTERVAL_QUALITY)
    return rows.with_columns(doubles(LOWER, lower), doubles(UPPER, upper), marked)


def _region(at: NDArray[np.float64], limits: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The lowest and the highest end of boxes above each place; nan where no box lies above it.

    Args:
        at: Shape (M,): places on the horizontal axis; nan lies in no box.
        limits: Shape (4, K): left, right, lower and upper end of each box.
    """
    left, right, low, high = limits
    is_above = (left <= at[:, None]) & (at[:, None] <= right)
    lowest = np.where(is_above, low, np.inf).min(axis=1, initial=np.inf)
    highest = np.where(is_above, high, -np.inf).max(axis=1, initial=-np.inf)
    return np.where(np.isfinite(lowest), lowest, np.nan), np.where(np.isfinite(highest), highest, np.nan)
