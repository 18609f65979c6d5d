"""Figures of calibration: the share of true rows in bins of the score, and how many rows have which score."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from ....metrics.calibration.bins import BIN, BINNING
from ....metrics.calibration.bins import LOWER as SCORE_LOWER
from ....metrics.calibration.bins import UPPER as SCORE_UPPER
from ...figure_blocks import caption, drawn, intervals, keys_of, level, shares, with_limits
from ...figures import Axis, Figure, Rule, Series

if TYPE_CHECKING:
    from collections.abc import Iterator

_IN_BAND = "share_in_band"


def calibration_figures(reliability: pl.DataFrame | None, confidence: float) -> Iterator[Figure]:
    """Yield the share of true rows by the mean score of quantile bins, and the number of rows in bins of equal width.

    Args:
        reliability: The table of the bins; None where it was not made.
        confidence: The level of its limits.
    """
    if reliability is None or reliability.is_empty():
        return
    in_order = reliability.sort([*keys_of(reliability), BINNING, BIN])
    yield _shares(in_order.filter(pl.col(BINNING) == "quantile"), confidence)
    yield _rows(in_order.filter(pl.col(BINNING) == "width"))


def _shares(bins: pl.DataFrame, confidence: float) -> Figure:
    bins = bins.with_columns(pl.col("share_positive").alias(_IN_BAND))
    line = with_limits(bins, Series(_IN_BAND, "All bins together", "neutral"), "share_positive_band")
    points = with_limits(bins, Series("share_positive", "Share of true rows", "estimate", "point"))
    band = f"The band holds the shares of all bins together in {level(confidence)} of samples." if line.lower else ""
    words = (
        "The share of true rows in bins of about as many rows each, at their mean score. On the diagonal scores are "
        "probabilities; below it they claim too much."
    )
    return Figure(
        name="calibration",
        title="Calibration",
        caption=caption(words, intervals((points,), confidence), band),
        frame=drawn(bins, "mean_score", (line, points)),
        x=shares("Mean score", "mean_score"),
        y=shares("Share of true rows"),
        series=(line, points),
        rules=(Rule("Scores are probabilities", axis="diagonal"),),
    )


def _rows(bins: pl.DataFrame) -> Figure:
    middle = ((pl.col(SCORE_LOWER) + pl.col(SCORE_UPPER)) / 2).alias("score")
    series = (
        Series("n", "Rows", "neutral", "bar"),
        Series("n_positive", "True rows", "estimate", "bar"),
    )
    table = bins.with_columns(middle)
    return Figure(
        name="scores",
        title="Rows by score",
        caption="Number of rows, and of true rows in front of them, in bins of equal width.",
        frame=drawn(table, "score", series),
        x=shares("Score", "score"),
        y=Axis("", "Number of rows", "integer", includes=(0.0,)),
        series=series,
    )
