"""What a methods section says of decisions: net benefit, groups put together, and other prevalences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from ... import methods

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...methods import Measured


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
            f"Precision, negative predictive value and F1 at a prevalence of {methods.listed(wanted)} follow from "
            "recall and the false positive rate by Bayes' theorem, on the assumption that each class scores there as "
            "here (prior shift), with limits by MOVER-R (Donner and Zou 2012)."
        )
