"""What there is to look at of threshold_sweep: curves, areas, calibration, and the numbers at the chosen threshold."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from ...tables.columns import divide
from ..figures import Figure, Rule, Series, caption, intervals, keys_of, rising, shares, shown, with_limits
from ..standard_figures import (
    QUALITY_IN_SAMPLE,
    Wanted,
    across_groups,
    by_threshold,
    key_numbers_of,
    on_other_data,
    path_of_thresholds,
    precision_recall,
)
from .bands import with_band
from .calibration import calibration_figures
from .decisions.costs import COST_PER_ROW, is_about_cost
from .decisions.figures import decision_figures

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..figures import KeyNumber

NUMBERS = (
    Wanted("precision", "Precision", "predicted rows that are true", "precision"),
    Wanted("recall", "Recall", "true rows that are found", "recall"),
    Wanted("average_precision", "Average precision", "mean precision over all recalls", quality="quality_of_areas"),
    Wanted("roc_auc", "ROC AUC", "true row outscores false row", quality="quality_of_areas"),
)
COST = Wanted(COST_PER_ROW, "Cost per row", "mean cost of the outcomes", format="number", quality=QUALITY_IN_SAMPLE)


@shown
def figures(tables: Mapping[str, pl.DataFrame], confidence: float = 0.95, /) -> Iterator[Figure | None]:
    """Curves by threshold, precision against recall, ROC, calibration, figures for decisions, and areas by group.

    Args:
        tables: The result tables of the stage.
        confidence: The level of their intervals.
    """
    curve, points, areas = (tables[f"threshold_sweep_{name}"] for name in ("curve", "operating_points", "areas"))
    curve = rising(curve).with_columns(_prevalence())
    yield by_threshold(
        curve,
        points,
        confidence,
        what=(
            "The ratios if every row that scores at least the threshold is predicted to be true; specificity is 1 − "
            "false positive rate."
        ),
        x_title="Threshold: score from which a row is predicted to be true",
        below=(Series("fpr", "False positive rate", "neutral"),),
    )
    chance = Series("prevalence", "Share of true rows: precision by chance", "chance", "path")
    yield with_band(precision_recall(curve, points, (chance,)), tables, confidence)
    yield with_band(_roc(curve, points), tables, confidence)
    yield from calibration_figures(tables.get("threshold_sweep_reliability"), confidence)
    yield from decision_figures(tables, confidence)
    if areas.height > 1:
        yield _areas(areas, confidence)


def _prevalence() -> pl.Expr:
    """The share of true rows, of the weights if there are any: precision if scores told nothing."""
    counts = {name: pl.coalesce(f"{name}_weight", pl.col(name).cast(pl.Float64)) for name in ("tp", "fp", "fn", "tn")}
    positive, negative = counts["tp"] + counts["fn"], counts["fp"] + counts["tn"]
    return divide(positive, positive + negative).alias("prevalence")


def _roc(curve: pl.DataFrame, points: pl.DataFrame) -> Figure | None:
    return path_of_thresholds(
        curve,
        points,
        name="roc",
        title="ROC: recall against false positive rate",
        words="Every point of the line is a threshold. On the diagonal are scores that tell nothing.",
        axes=(shares("False positive rate", "fpr"), shares("Recall")),
        series=(Series("recall", "Recall", "recall", "path"),),
        rules=(Rule("By chance", axis="diagonal"),),
    )


def _areas(areas: pl.DataFrame, confidence: float) -> Figure:
    series = (
        with_limits(areas, Series("roc_auc", "ROC AUC", "recall", "point")),
        with_limits(areas, Series("average_precision", "Average precision", "precision", "point")),
    )
    words = "Areas under the curve of precision over recall and under the ROC curve."
    return across_groups(
        areas,
        series,
        "n",
        name="areas",
        title="Areas by group",
        words=caption(words, intervals(series, confidence)),
        y=shares("Average precision, ROC AUC"),
    )


def key_numbers(tables: Mapping[str, pl.DataFrame]) -> tuple[KeyNumber, ...]:
    """Precision and recall at the first operating point, its cost per row if it has one, and both areas, by group."""
    areas, points = (tables[f"threshold_sweep_{name}"] for name in ("areas", "operating_points"))
    if areas.is_empty() or points.is_empty():
        return ()
    keys = keys_of(areas)
    at_first = on_other_data(points.filter(pl.col("criterion") == points["criterion"][0]))
    at_first = at_first.rename({"undefined": "_undefined"})
    beside = areas.select(*keys, "n", pl.col("^(average_precision|roc_auc)(_lower|_upper)?$"), _QUALITY)
    table = beside.join(at_first, on=keys, how="left", nulls_equal=True, maintain_order="left")
    wanted = (*NUMBERS[:2], COST, *NUMBERS[2:]) if is_about_cost(at_first) else NUMBERS
    return key_numbers_of(table.sort("n", descending=True, maintain_order=True), wanted)


_QUALITY = pl.col("interval_quality").alias("quality_of_areas")
