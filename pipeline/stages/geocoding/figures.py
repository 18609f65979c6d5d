"""What there is to look at of geocoding: accuracy over the tolerance, and the distribution of the errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from ...metrics.uncertainty.interval_quality import INTERVAL_QUALITY
from ...tables.columns import divide
from ..figures import Axis, Figure, Rule, Series, caption, drawn, intervals, keys_of, ratio_series, shares, shown
from ..standard_figures import Wanted, key_numbers_of, ratios_of_groups
from .results import TOLERANCE, at_usual_tolerance

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..figures import KeyNumber

DISTANCE = "distance_km"
CUSTOMARY = Rule("161 km (100 miles)", 161.0)
FARTHEST = 20_100.0  # km, beyond half the circumference of the Earth
GRID = (*(10 ** (tenth / 10) for tenth in range(-10, 43)), FARTHEST)  # km, ten distances for every power of ten
LOCATED, ALL_GOLD = "of_located", "of_gold"
QUALITY_OF_ERRORS = "quality_of_errors"
ERRORS = (
    Wanted("median_km", "Median error", "km, of the located mentions", format="number"),
    Wanted("mean_km", "Mean error", "km, of the located mentions", format="number", quality=QUALITY_OF_ERRORS),
)


@shown
def figures(tables: Mapping[str, pl.DataFrame], confidence: float = 0.95, /) -> Iterator[Figure | None]:
    """Precision and recall over the tolerance, and the share of mentions within every distance.

    Args:
        tables: The result tables of the stage.
        confidence: The level of their intervals.
    """
    yield _accuracy(tables["geocoding_scores"], confidence)
    usual = at_usual_tolerance(tables["geocoding_scores"])
    if not usual.is_empty():
        yield ratios_of_groups(usual, "n_gold", confidence, f"within {usual[TOLERANCE][0]:g} km")
    outcomes = tables.get("geocoding_outcomes")
    if outcomes is not None and not outcomes.is_empty():
        yield _errors(outcomes)


def _accuracy(scores: pl.DataFrame, confidence: float) -> Figure:
    positive = scores.filter(pl.col(TOLERANCE) > 0).sort([*keys_of(scores), TOLERANCE])
    series = tuple(line for line in ratio_series(positive) if line.column != "f1")
    words = (
        "A prediction is right within the tolerance: precision is the share of located mentions, recall of all gold "
        "mentions."
    )
    without = "A tolerance of 0 has no place on the logarithmic axis." if positive.height < scores.height else ""
    return Figure(
        name="accuracy",
        title="Precision and recall by tolerance",
        caption=caption(words, intervals(series, confidence), without),
        frame=drawn(positive, TOLERANCE, series),
        x=Axis(TOLERANCE, "Tolerance in km", logarithmic=True),
        y=shares("Precision (accuracy), recall"),
        series=series,
        rules=(CUSTOMARY,),
    )


def _errors(outcomes: pl.DataFrame) -> Figure:
    series = (
        Series(ALL_GOLD, "Of all gold mentions", "recall"),
        Series(LOCATED, "Of the located mentions", "precision"),
    )
    return Figure(
        name="errors",
        title="Share of mentions within every distance",
        caption=(
            "Share of the mentions whose predicted place lies within the distance of the gold place; where the line of "
            "the located mentions passes 50% is the median error. Mentions that are not located never are within it."
        ),
        frame=drawn(_within(outcomes), DISTANCE, series),
        x=Axis(DISTANCE, "Distance in km", logarithmic=True),
        y=shares("Share of mentions"),
        series=series,
        rules=(CUSTOMARY,),
    )


def _within(outcomes: pl.DataFrame) -> pl.DataFrame:
    """Shares of the mentions of every group within the distances of the grid, from the lowest that one reaches."""
    keys = keys_of(outcomes)
    sizes = outcomes.group_by(keys).agg(pl.len().alias("n_gold"), pl.col(DISTANCE).count().alias("n_located"))
    grid = pl.Series(DISTANCE, GRID, dtype=pl.Float64)
    located = outcomes.filter(pl.col(DISTANCE).is_not_null())
    cell = grid.search_sorted(located[DISTANCE], side="left").clip(0, len(grid) - 1).alias("cell")
    counted = located.select(*keys, cell).group_by(*keys, "cell").agg(pl.len().alias("n"))
    cells = grid.to_frame().with_row_index("cell").join(sizes, how="cross")
    cells = cells.join(counted, on=[*keys, "cell"], how="left", nulls_equal=True).sort([*keys, "cell"])
    within = pl.col("n").fill_null(0).cum_sum().over(keys)
    return cells.with_columns(within.alias("n")).select(
        *keys,
        DISTANCE,
        divide(pl.col("n"), pl.col("n_located")).alias(LOCATED),
        divide(pl.col("n"), pl.col("n_gold")).alias(ALL_GOLD),
    )


def key_numbers(tables: Mapping[str, pl.DataFrame]) -> tuple[KeyNumber, ...]:
    """Precision and recall of every group at the usual tolerance, and its median and mean error."""
    scores, errors = tables["geocoding_scores"], tables["geocoding_errors"]
    keys = keys_of(errors)
    usual = at_usual_tolerance(scores)
    if usual.is_empty():
        return ()
    within = f"within {usual[TOLERANCE][0]:g} km"
    wanted = (
        Wanted("precision", "Precision", f"located mentions {within}", "precision"),
        Wanted("recall", "Recall", f"gold mentions {within}", "recall"),
        *ERRORS,
    )
    quality = pl.col(INTERVAL_QUALITY).alias(QUALITY_OF_ERRORS)
    beside = errors.select(*keys, "median_km", "mean_km", "mean_km_lower", "mean_km_upper", quality)
    return key_numbers_of(usual.join(beside, on=keys, how="left", nulls_equal=True, maintain_order="left"), wanted)
