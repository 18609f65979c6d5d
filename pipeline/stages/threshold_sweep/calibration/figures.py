"""Figures of calibration: the share of true rows in bins of the score, and how many rows have which score."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from ....metrics.calibration.bins import BIN, BINNING
from ....metrics.calibration.bins import LOWER as SCORE_LOWER
from ....metrics.calibration.bins import UPPER as SCORE_UPPER
from ....visible_text import percent
from ... import methods
from ...figures import Axis, Figure, Rule, Series, caption, drawn, intervals, keys_of, level, shares, with_limits

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ...methods import Measured


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


# What a methods section says of calibration.


HOW = (
    "Scores were held against labels in {bins} bins by quantile{bands}; the Brier score was taken apart after Murphy "
    "(1973) and Stephenson, Coelho and Jolliffe (2008)."
)
BANDS = (
    ", with bands for all bins together (Šidák 1967), and tested for calibration after Spiegelhalter (1986) and after "
    "Hosmer and Lemeshow (1980)"
)


def calibration_sentences(measured: Measured) -> Iterator[str]:
    """Say how calibration was measured and what came out; nothing where no group has probabilities."""
    table = measured.tables.get("threshold_sweep_calibration", pl.DataFrame())
    if table.is_empty():
        return
    rows = table.filter(pl.col(BINNING) == "quantile", pl.col("ece").is_not_null())
    if rows.is_empty():
        return
    is_tested = measured.parameters["uncertainty"] != "none"
    yield HOW.format(bins=measured.parameters["calibration_bins"], bands=BANDS if is_tested else "")
    shown, _ = methods.headline_rows(rows)
    for row in shown:
        group = methods.named_group(row)
        yield f"The expected calibration error (Naeini et al. 2015){f' of {group}' if group else ''} was {_error(row)}."


def _error(row: Mapping[str, Any]) -> str:
    """An error of a group, beside that of perfect scores and p-values where there are any."""
    error, perfect = row["ece"], row["ece_if_calibrated"]
    value = percent(error)
    if perfect is None:
        return value
    names = {"spiegelhalter_p_value": "Spiegelhalter", "hosmer_lemeshow_p_value": "Hosmer and Lemeshow"}
    tests = [f"{name}: {_p_value(row[column])}" for column, name in names.items() if row[column] is not None]
    return f"{value} ({'; '.join([f'{percent(perfect)} is expected of perfect scores', *tests])})"


def _p_value(value: float) -> str:
    return "p < 0.0001" if value < 1e-4 else f"p = {value:.2g}"  # noqa: PLR2004 - smaller ones say no more
