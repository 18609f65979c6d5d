"""What there is to look at of ranking: means beside chance, precision and recall at cutoffs, spread over queries.

Measures that the config names have a figure each.
"""

from __future__ import annotations

import re
from statistics import NormalDist
from typing import TYPE_CHECKING

import polars as pl

from ..figures import (
    RATIO_NAMES,
    Axis,
    Figure,
    Series,
    caption,
    drawn,
    intervals,
    keys_of,
    level,
    shares,
    shown,
    visible,
    with_limits,
)
from ..standard_figures import Wanted, across_groups, histogram_of_shares, key_numbers_of
from .contract import MEASURE_TABLE
from .means import measure_names, quality_of, with_measures

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..figures import KeyNumber

NUMBERS = (
    Wanted("map", "Mean average precision", "average precision, mean over queries", "precision"),
    Wanted("r_precision", "R-precision", "relevant share of first R", "neutral"),
    Wanted("reciprocal_rank", "Reciprocal rank", "1 / rank of first relevant", "neutral"),
    Wanted("map_expected", "By chance", "expected MAP of random order", "chance"),
)


@shown
def figures(tables: Mapping[str, pl.DataFrame], confidence: float = 0.95, /) -> Iterator[Figure | None]:
    """Mean average precision beside chance, precision and recall at cutoffs, average precision over queries.

    Args:
        tables: The result tables of the stage.
        confidence: The level of their intervals.
    """
    yield _map(tables["ranking_summary"], confidence)
    expected = _expected(tables["ranking_cutoffs"])
    for ratio in ("precision", "recall"):
        yield _at_cutoffs(tables["ranking_cutoff_means"], expected, ratio, confidence)
    for name in measure_names(tables):
        yield _measure(tables[MEASURE_TABLE].filter(pl.col("measure") == name), name, confidence)
    yield histogram_of_shares(
        tables["ranking_queries"],
        "average_precision",
        name="average_precision_of_queries",
        title="Average precision of the queries",
        what="average precision of a query",
        unit="queries",
    )


def _map(summary: pl.DataFrame, confidence: float) -> Figure:
    spread = NormalDist().inv_cdf((1 + confidence) / 2) * pl.col("map_variance").sqrt()
    by_chance = summary.with_columns(
        (pl.col("map_expected") - spread).clip(0.0).alias("map_expected_lower"),
        (pl.col("map_expected") + spread).clip(None, 1.0).alias("map_expected_upper"),
    )
    chance = with_limits(by_chance, Series("map_expected", "By chance", "chance", "point"))
    mean = with_limits(by_chance, Series("map", "Mean average precision", "precision", "point"))
    words = "Mean average precision over queries, and its mean if every query's documents were in random order."
    of_mean = f"Bars at the mean are {level(confidence)} intervals." if mean.lower else ""
    of_chance = f"Bars at chance hold {level(confidence)} of random orders, taken as normally distributed."
    return across_groups(
        by_chance,
        (chance, mean),
        "n_queries",
        name="map",
        title="Mean average precision beside chance",
        words=caption(words, of_mean, of_chance if chance.lower else ""),
        y=shares("Mean average precision"),
    )


def _measure(means: pl.DataFrame, name: str, confidence: float) -> Figure:
    mean = with_limits(means, Series("mean", name, "precision", "point"))
    return across_groups(
        means,
        (mean,),
        "n_queries",
        name=f"measure_{re.sub('[^a-z0-9]+', '_', name.lower()).strip('_')}",
        title=f"{name} of the groups",
        words=caption(f"{name}, mean over the queries in which it is defined.", intervals((mean,), confidence)),
        y=shares(f"{name}, mean over queries"),
    )


def _expected(cutoffs: pl.DataFrame) -> pl.DataFrame:
    """Means over the queries of what random selection gives at every cutoff; NULL unless known for all of them."""
    judged = cutoffs.filter(pl.col("precision").is_not_null())
    names = ["precision_expected", "recall_expected"]
    is_complete = {name: pl.col(name).is_not_null().all() for name in names}
    means = (pl.when(is_complete[name]).then(pl.col(name).mean()).alias(name) for name in names)
    return judged.group_by(*keys_of(cutoffs), "k").agg(*means)


def _at_cutoffs(means: pl.DataFrame, expected: pl.DataFrame, ratio: str, confidence: float) -> Figure:
    keys = [*keys_of(means), "k"]
    chance = expected.select(*keys, f"{ratio}_expected")
    table = means.join(chance, on=keys, how="left", nulls_equal=True).sort(keys)
    name = RATIO_NAMES[ratio]
    series = (
        visible(table, Series(f"{ratio}_expected", "By chance", "chance")),
        with_limits(table, Series(ratio, name, "precision" if ratio == "precision" else "recall")),
    )
    words = (
        f"{name} among the k documents that come first, mean over queries; by chance: its mean with the documents in "
        "random order, where that is known for all queries."
    )
    return Figure(
        name=f"{ratio}_at_k",
        title=f"{name} by cutoff k",
        caption=caption(words, intervals(series, confidence)),
        frame=drawn(table, "k", series),
        x=Axis("k", "Cutoff k: number of documents that come first", "integer", logarithmic=True),
        y=shares(f"{name}, mean over queries"),
        series=series,
    )


def key_numbers(tables: Mapping[str, pl.DataFrame]) -> tuple[KeyNumber, ...]:
    """Mean average precision and what chance gives, R-precision and reciprocal rank, and measures that are named."""
    named = tuple(
        Wanted(name, name, "mean over queries", "neutral", quality=quality_of(name)) for name in measure_names(tables)
    )
    return key_numbers_of(with_measures(tables), (*NUMBERS, *named))
