"""The figure of calibration: how large a share of the rows with about the same score is true."""

from __future__ import annotations

import numpy as np
import polars as pl

from pipeline.metrics.uncertainty.jackknife import binomial_limits
from pipeline.metrics.uncertainty.qualities import FEWEST_EVENTS, INTERVAL_QUALITY
from pipeline.stages.figure_blocks import caption, drawn, intervals, keys_of, shares, with_limits
from pipeline.stages.figures import Figure, Rule, Series
from pipeline.tables.columns import doubles
from pipeline.tables.ratios import divide
from pipeline.tables.sweep import THRESHOLD

BINS = 10
WIDEST = 0.1  # gap between thresholds within which a row's score may lie
EXACT = 1e-9  # of the Brier score of the thresholds beside that of the scores


def calibration(curve: pl.DataFrame, areas: pl.DataFrame, confidence: float) -> Figure | None:
    """Return the share of true rows in tenths of the scores; None unless scores lie in [0, 1].

    The tables hold no score of a row, but counts between thresholds. Where the thresholds are the scores themselves,
    which their Brier score tells, the mean score of a bin is exact; elsewhere every row is taken to have the middle of
    the thresholds around its score. Groups whose thresholds leave wider gaps than a tenth are left out, and so are
    weighted ones. Limits are those of independent rows: of rows in clusters there are none.

    Args:
        curve: The table of the curve.
        areas: The table of the areas: `brier` is there if scores lie in [0, 1], `n_clusters` if rows have clusters.
        confidence: The level of the limits.
    """
    keys = keys_of(curve)
    groups = areas.filter(pl.col("brier").is_not_null()).select(*keys, "n", "brier", "n_clusters")
    between = _between_thresholds(curve.filter(pl.col("tp_weight").is_null()).join(groups, on=keys, nulls_equal=True))
    if between.is_empty():
        return None
    bins = _with_limits(_binned(between), confidence)
    series = (with_limits(bins, Series("share", "Share of true rows", "estimate", "point")),)
    clustered = "Rows lie in clusters, so that their counts alone give no interval." if not series[0].lower else ""
    words = "The share of true rows in each tenth of the scores, at the mean score there; on the diagonal scores are"
    return Figure(
        name="calibration",
        title="Calibration",
        caption=caption(f"{words} probabilities.", intervals(series, confidence), clustered),
        frame=drawn(bins, "mean_score", series),
        x=shares("Mean score", "mean_score"),
        y=shares("Share of true rows"),
        series=series,
        rules=(Rule("Scores are probabilities", axis="diagonal"),),
    )


def _between_thresholds(curve: pl.DataFrame) -> pl.DataFrame:
    """Counts of rows between a threshold and the next, and below the lowest, with the score they are taken to have.

    Columns: groups, `score`, and `hits` and `misses`: true and false rows.
    """
    keys = keys_of(curve)
    rising = curve.sort([*keys, THRESHOLD])
    below = rising.group_by(keys, maintain_order=True).agg(
        pl.lit(0.0).alias("lower"),
        pl.col(THRESHOLD).first().alias("upper"),
        *(pl.col(name).first() for name in ("n", "brier", "n_clusters")),
        pl.col("fn").first().alias("hits"),
        pl.col("tn").first().alias("misses"),
    )
    above = rising.select(
        *keys,
        pl.col(THRESHOLD).alias("lower"),
        pl.col(THRESHOLD).shift(-1, fill_value=1.0).over(keys).alias("upper"),
        "n",
        "brier",
        "n_clusters",
        (pl.col("tp") - pl.col("tp").shift(-1, fill_value=0).over(keys)).alias("hits"),
        (pl.col("fp") - pl.col("fp").shift(-1, fill_value=0).over(keys)).alias("misses"),
    )
    between = pl.concat([below.select(above.columns), above]).filter(pl.col("hits") + pl.col("misses") > 0)
    return _with_score(between.with_columns(pl.col("lower", "upper").clip(0.0, 1.0)))


def _with_score(between: pl.DataFrame) -> pl.DataFrame:
    """The score that rows of a gap are taken to have; groups whose gaps are too wide for that are left out."""
    keys = keys_of(between)
    hits, misses, lower, upper = (pl.col(name) for name in ("hits", "misses", "lower", "upper"))
    squares = (hits * (1 - lower) ** 2 + misses * lower**2).sum().over(keys)
    is_exact = (squares / pl.col("n") - pl.col("brier")).abs() <= EXACT
    is_fine = (upper - lower).max().over(keys) <= WIDEST + EXACT
    score = pl.when(is_exact).then(lower).otherwise((lower + upper) / 2)
    return between.filter(is_exact | is_fine).with_columns(score.alias("score"))


def _binned(between: pl.DataFrame) -> pl.DataFrame:
    """Tenths of the scores with `mean_score`, `share`, `hits`, `misses` and `n_clusters`."""
    keys = keys_of(between)
    size = pl.col("hits") + pl.col("misses")
    tenth = (pl.col("score") * BINS).floor().clip(0, BINS - 1).cast(pl.Int64).alias("tenth")
    added = between.group_by([*keys, tenth]).agg(
        pl.col("hits", "misses").sum(), (pl.col("score") * size).sum().alias("scores"), pl.col("n_clusters").first()
    )
    return added.sort([*keys, "tenth"]).with_columns(
        divide(pl.col("scores"), size).alias("mean_score"), divide(pl.col("hits"), size).alias("share")
    )


def _with_limits(bins: pl.DataFrame, confidence: float) -> pl.DataFrame:
    """Limits of the shares of independent rows, and how far they can be trusted; NULL of rows in clusters."""
    hits, misses = (bins[name].cast(pl.Float64).to_numpy() for name in ("hits", "misses"))
    limits = binomial_limits(hits, misses, (1 - confidence) / 2)
    is_clustered = bins["n_clusters"].is_not_null().to_numpy()
    lower, upper = (
        doubles(name, np.where(is_clustered, np.nan, side)) for name, side in zip(_SIDES, limits, strict=True)
    )
    is_few = pl.min_horizontal("hits", "misses") < FEWEST_EVENTS
    quality = pl.when(is_few).then(pl.lit("few_events_of_interest")).otherwise(pl.lit("good"))
    has_limits = pl.col("n_clusters").is_null()
    return bins.with_columns(lower, upper).with_columns(pl.when(has_limits).then(quality).alias(INTERVAL_QUALITY))


_SIDES = ("share_lower", "share_upper")
