"""Figures and words of decisions: net benefit, other prevalences, groups put together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from ....tables.columns import THRESHOLD
from ....visible_text import listed
from ...figures import Axis, Figure, Rule, Series, caption, drawn, intervals, rising, visible, with_limits
from ...standard_figures import by_threshold

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ...methods import Measured


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
