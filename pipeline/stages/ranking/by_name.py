"""Means of the measures that the config names, beside the summary of every group."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from ...metrics.ranking.notation import is_measure
from ...metrics.uncertainty.qualities import INTERVAL_QUALITY
from ..figure_blocks import keys_of
from .contract import MEASURE_TABLE, QUERY_TABLE

if TYPE_CHECKING:
    from collections.abc import Mapping


def measure_names(tables: Mapping[str, pl.DataFrame]) -> tuple[str, ...]:
    """The measures of a run in the order of its config; none where the config names none."""
    return tuple(name for name in tables[QUERY_TABLE].columns if is_measure(name))


def quality_of(name: str) -> str:
    """The column of `with_measures` that says how far the limits of a measure can be trusted."""
    return f"{name}_{INTERVAL_QUALITY}"


def with_measures(tables: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """The summary of every group with the mean of each measure, its limits and their quality: `nDCG@10_lower`."""
    summary = tables["ranking_summary"]
    keys = keys_of(summary)
    for name in measure_names(tables):
        columns = {"mean": name, INTERVAL_QUALITY: quality_of(name)}
        columns |= {f"mean_{side}": f"{name}_{side}" for side in ("lower", "upper")}
        means = tables[MEASURE_TABLE].filter(pl.col("measure") == name).select(*keys, *columns)
        summary = summary.join(means.rename(columns), on=keys, how="left", nulls_equal=True, maintain_order="left")
    return summary
