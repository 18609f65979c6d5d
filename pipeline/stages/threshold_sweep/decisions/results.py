"""What threshold_sweep has for decisions: costs, net benefit, groups put together, and other prevalences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from ....metrics.curves.operating_points import CRITERION
from ....tables.columns import THRESHOLD
from ..contract import CROSSED
from .at_prevalence import tables_at_prevalence
from .costs import CUT, Cuts, with_cost_per_row
from .net_benefit import net_benefit_table
from .pooled_points import Swept, pooled_tables

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ....metrics.uncertainty.cube import Cube
    from ..contract import ThresholdSweepParameters


def decision_tables(
    params: ThresholdSweepParameters, counts: Mapping[str, pl.DataFrame], swept: Swept
) -> dict[str, pl.DataFrame]:
    """The tables that the parameters ask for.

    Args:
        params: The parameters.
        counts: The tables of the plan, as they were counted.
        swept: What has been derived from them.
    """
    return {
        **pooled_tables(params, swept),
        **net_benefit_table(params, counts, swept.curve, swept.clusters),
        **tables_at_prevalence(params, swept.cube, swept.curve),
    }


def with_costs(points: pl.DataFrame, cube: Cube, params: ThresholdSweepParameters, *, within: bool) -> pl.DataFrame:
    """Operating points with their cost per row, if a criterion has costs.

    Args:
        points: As from `choices.operating_points`, with the squares and the heaviest weights of the curve.
        cube: The counts.
        params: The parameters.
        within: Whether intervals between clusters can be computed.
    """
    labels = [*cube.keys, CRITERION]

    def cuts() -> Cuts:
        return Cuts.of(cube, points.with_columns(pl.col(THRESHOLD).alias(CUT)), labels)

    return with_cost_per_row(points, labels, params, cuts if within else None)


def at_own_thresholds(
    params: ThresholdSweepParameters, counts: Mapping[str, pl.DataFrame]
) -> Mapping[str, pl.DataFrame]:
    """The tables of the plan with bins at the thresholds of the stage, where threshold probabilities cut finer."""
    values = params.threshold_values
    if values is None or len(params.counted_thresholds or ()) == len(values):
        return counts
    names = [name for name in ("counts", *CROSSED) if name in counts]
    return {**counts, **{name: _in_bins_of(counts[name], values) for name in names}}


def _in_bins_of(counts: pl.DataFrame, thresholds: tuple[float, ...]) -> pl.DataFrame:
    """Counts whose bins begin at the highest threshold that is not above them; NULL below all."""
    thresholds_of_stage = pl.DataFrame({"_own": thresholds}, schema={"_own": pl.Float64})
    edges = counts.select(THRESHOLD).unique().drop_nulls().sort(THRESHOLD)
    joined = edges.join_asof(
        thresholds_of_stage, left_on=THRESHOLD, right_on="_own", strategy="backward", coalesce=False
    )
    names = counts.columns
    moved = counts.join(joined, on=THRESHOLD, how="left", maintain_order="left")
    return moved.with_columns(pl.col("_own").alias(THRESHOLD)).select(names)
