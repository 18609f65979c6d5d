"""What there is to look at of threshold_sweep: curves, areas, calibration, and the numbers at the chosen threshold."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from ...tables.columns import THRESHOLD, divide
from ...visible_text import listed
from ..figures import (
    QUALITY_IN_SAMPLE,
    Axis,
    Figure,
    Rule,
    Series,
    Wanted,
    across_groups,
    by_threshold,
    caption,
    drawn,
    intervals,
    key_numbers_of,
    keys_of,
    on_other_data,
    path_of_thresholds,
    precision_recall,
    rising,
    shares,
    shown,
    visible,
    with_limits,
)
from .bands import with_band
from .calibration import calibration_figures
from .decisions.costs import COST_PER_ROW, is_about_cost

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..figures import KeyNumber
    from ..sections import Measured


# Figures and words of decisions: net benefit, other prevalences, groups put together.


# Figures for decisions: net benefit over threshold probabilities, and precision and recall at other prevalences.


MOST_PREVALENCES = 4  # that have a figure
OUT_OF_SIGHT = 1.0  # net benefit of everybody is drawn down to minus so many times the highest net benefit
PREVALENCE = "prevalence"


def decision_figures(tables: Mapping[str, pl.DataFrame], confidence: float) -> Iterator[Figure | None]:
    """The decision curve, and the curves at each of the first prevalences; none where their tables were not made.

    Args:
        tables: The result tables of the stage.
        confidence: The level of their intervals.
    """
    benefit, at, points = (
        tables.get(f"threshold_sweep_{name}") for name in ("net_benefit", "at_prevalence", "points_at_prevalence")
    )
    if benefit is not None and not benefit.is_empty():
        yield _decision_curve(benefit, confidence)
    if at is None or at.is_empty():
        return
    shares = at[PREVALENCE].unique().sort().to_list()
    for number, share in enumerate(shares[:MOST_PREVALENCES], start=1):
        is_here = pl.col(PREVALENCE) == share
        percent = f"{100 * share:.4g}%"
        yield by_threshold(
            rising(at.filter(is_here)),
            None if points is None else points.filter(is_here),
            confidence,
            name=f"at_prevalence_{number}",
            title=f"Precision, recall and F1 where {percent} of rows are true",
            what=f"The ratios in data of which {percent} are true, if the scores of each class are as they are here.",
            x_title="Threshold: score from which a row is predicted to be true",
        )


def _decision_curve(table: pl.DataFrame, confidence: float) -> Figure:
    rows = rising(table)
    lowest = -OUT_OF_SIGHT * pl.max_horizontal(pl.col("net_benefit").max(), 0.01)
    in_sight = pl.when(pl.col("net_benefit_all") >= lowest).then("net_benefit_all").alias("net_benefit_all")
    limits = [pl.max_horizontal(f"net_benefit_{side}", lowest).alias(f"net_benefit_{side}") for side in _SIDES]
    has_limits = pl.col("net_benefit_lower").is_not_null()
    rows = rows.with_columns(
        in_sight,
        pl.max_horizontal("net_benefit", lowest),
        *(pl.when(has_limits).then(limit) for limit in limits),
    )
    everybody = visible(rows, Series("net_benefit_all", "Every row retrieved", "chance"))
    series = (everybody, with_limits(rows, Series("net_benefit", "By score", "estimate")))
    words = (
        "Net benefit of retrieving every row whose score is at least the threshold probability: true positives less "
        "false positives, each worth the odds of that probability, per row. A model is of use where it lies above both "
        "the line of every row and 0, which is to retrieve none."
    )
    return Figure(
        name="decision_curve",
        title="Net benefit by threshold probability",
        caption=caption(words, intervals(series, confidence), "What lies far below 0 is left out."),
        frame=drawn(rows, THRESHOLD, series),
        x=Axis(THRESHOLD, "Threshold probability", "percent", includes=(0.0, 1.0)),
        y=Axis("", "Net benefit", "number", includes=(0.0,)),
        series=series,
        rules=(Rule("No row retrieved", 0.0, axis="y"),),
    )


_SIDES = ("lower", "upper")


# What a methods section says of decisions: net benefit, groups put together, and other prevalences.


def decisions(measured: Measured) -> Iterator[str]:
    """Say how costs, net benefit and ratios at other prevalences were computed, where they were."""
    tables = measured.tables
    if any(point.get("cost") is not None for point in measured.parameters["operating_points"]):
        yield "Cost per row is the mean cost of the outcomes (Elkan 2001)."
    benefit = tables.get("threshold_sweep_net_benefit")
    if benefit is not None and not benefit.is_empty():
        at = benefit["threshold"].unique().sort().to_list()
        yield (
            f"Net benefit (Vickers and Elkin 2006) was computed at {len(at):,} threshold probabilities from {at[0]:g} "
            f"to {at[-1]:g}, and compared with that of retrieving every row and none."
        )
    pooled = tables.get("threshold_sweep_pooled_points")
    if pooled is not None and pooled.filter(pl.col("thresholds") == "own").height:
        yield "Groups were also cut each at its own threshold and their counts added up."
    shares = measured.parameters.get("prevalence") or []
    wanted = [f"{100 * share:.4g}%" for share in (shares if isinstance(shares, list) else [shares])]
    if wanted:
        yield (
            f"Precision, negative predictive value and F1 at a prevalence of {listed(wanted)} follow from "
            "recall and the false positive rate by Bayes' theorem, on the assumption that each class scores there as "
            "here (prior shift), with limits by MOVER-R (Donner and Zou 2012)."
        )


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
