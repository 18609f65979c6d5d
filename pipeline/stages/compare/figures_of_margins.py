"""Figures of compare for ratios of systems with different units, and for claims within a margin."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from ..figure_blocks import caption, drawn, intervals, keys_of, level, with_limits
from ..figures import Axis, Figure, Rule, Series
from ..stage import number
from .figure_rows import (
    PAIR,
    PAIR_TITLE,
    SYSTEMS,
    names_of_metrics,
    pair_text,
    pooled_series,
    wide,
)
from .fitting import POOLED
from .sentences import different_units

if TYPE_CHECKING:
    from collections.abc import Iterator


_READING = (
    "Bars are {level} intervals. A bar within the band shows that both are equivalent; one that stays above its lower "
    "end, that the first is not lower by the margin; one that stays below its upper end, that the first is not higher "
    "by it. Unlike the claims in the table they are not adjusted for the number of pairs. A bar that reaches beyond "
    "the band is no proof of a difference."
)


def ratio_figures(tests: pl.DataFrame, confidence: float) -> Iterator[Figure]:
    """Ratios of every pair by metric, where systems have different units.

    Args:
        tests: One row per group, pair and metric, of one test.
        confidence: The level of their intervals.
    """
    if different_units(tests).is_empty():
        return
    named = tests.with_columns(pair_text()).sort(*keys_of(tests), *SYSTEMS, nulls_last=True)
    metrics = [metric for metric in named["metric"].unique(maintain_order=True) if metric not in POOLED]
    for metric, name in names_of_metrics(metrics).items():
        table = named.filter(pl.col("metric") == metric)
        series = (with_limits(table, Series("ratio", f"Ratio of {metric}", "estimate", "point")),)
        yield _ratios(table, series, name, metric, confidence)
    pooled = named.filter(pl.col("metric").is_in(POOLED))
    if not pooled.is_empty():
        table = wide(pooled, PAIR, "ratio")
        yield _ratios(table, pooled_series(table), "pooled", "precision, recall and F1", confidence)


def _ratios(table: pl.DataFrame, series: tuple[Series, ...], name: str, what: str, confidence: float) -> Figure:
    limits = intervals(series, confidence)
    words = f"The system that is named first over the other one, each on units of its own: ratio of {what}."
    return Figure(
        name=f"ratios_{name}",
        title=f"Ratios of {what}",
        caption=caption(words, limits, "They are not adjusted for the number of pairs." if limits else ""),
        frame=drawn(table, PAIR, series),
        x=Axis(PAIR, PAIR_TITLE, "category"),
        y=Axis("", f"Ratio of {what}", includes=(1.0,)),
        series=series,
        rules=(Rule("Equal", 1.0, "y"),),
    )


def margin_figures(margins: pl.DataFrame) -> Iterator[Figure]:
    """Differences of every pair beside the margin, by metric.

    Args:
        margins: The rows of one test of every pair, metric and claim of every group.
    """
    of_pairs = margins.filter(pl.col("claim") == "equivalent").with_columns(pair_text())
    for metric, name in names_of_metrics(of_pairs["metric"].unique(maintain_order=True).to_list()).items():
        table = of_pairs.filter(pl.col("metric") == metric).sort(*keys_of(of_pairs), *SYSTEMS, nulls_last=True)
        yield _margin(table, metric, name)


def _margin(table: pl.DataFrame, metric: str, name: str) -> Figure:
    margin, confidence = table["margin"][0], table["interval_confidence"][0]
    point = Series("difference", f"Difference in {metric}", "estimate", "point")
    series = (with_limits(table, point, "interval"),)
    words = (
        f"The system that is named first minus the other one, in {metric}. The grey band is the margin, "
        f"{number(margin)} to both sides."
    )
    reading = "" if confidence is None else _READING.format(level=level(confidence))
    return Figure(
        name=f"margins_{name}",
        title=f"Differences in {metric} and the margin",
        caption=caption(words, reading if series[0].lower else ""),
        frame=drawn(table, PAIR, series),
        x=Axis(PAIR, PAIR_TITLE, "category"),
        y=Axis("", f"Difference in {metric}", "percent" if metric in POOLED else "number", includes=(0.0,)),
        series=series,
        rules=(Rule("No difference", 0.0, "y"), Rule("Margin", -margin, "y", until=margin)),
    )
