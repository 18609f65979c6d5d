"""How far intervals of before_after can be trusted: the parents of its pairs, and how unequal these are."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from ...metrics.before_after.days import correlation_of_days
from ...metrics.before_after.intervals import MIN_REPLICATES
from ...metrics.uncertainty.limits import clusters_of_parents, marked
from ...metrics.uncertainty.qualities import INTERVAL_QUALITY
from ...tables.sweep import REPLICATE
from .uncertainty import groups_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ...metrics.uncertainty.cube import Cube
    from .contract import BeforeAfterParameters

MATCHES = ("m_before", "m_after")


def clusters(cube: Cube, params: BeforeAfterParameters, *, crossed: bool = True) -> pl.DataFrame:
    """`clusters_of` the parents of the pairs of every group, by their matches, with `one_parent` where it holds.

    Args:
        cube: The counts that intervals rest on.
        params: The parameters of the stage.
        crossed: Whether the intervals know the second parent wherever its counts are known.
    """
    if params.second_parent is None:  # the config says that events alone are parents
        return clusters_of_parents(cube, MATCHES)
    if not crossed or not cube.crossed:
        return marked(clusters_of_parents(replace(cube, crossed=()), MATCHES), "one_parent")
    return marked(clusters_of_parents(cube, MATCHES), "one_parent", _without_second_parent(cube))


def with_correlated_days(clusters: pl.DataFrame, curve: pl.DataFrame, cube: Cube) -> pl.DataFrame:
    """`clusters` with `correlated_days` where neighbouring days are alike in how often pairs match by chance.

    Args:
        clusters: What `clusters` gives.
        curve: Estimates, one row per group × threshold.
        cube: The counts that they rest on.
    """
    if cube.cycle is None or not cube.within_budget(curve.height):
        return clusters
    correlated = [
        group.rows.head(1).select(cube.keys)
        for group in groups_of(curve, cube)
        if correlation_of_days([sides.with_data for sides in group.clusterings]) is not None
    ]
    return marked(clusters, "correlated_days", pl.concat(correlated)) if correlated else clusters


def warnings(tables: Mapping[str, pl.DataFrame]) -> Iterator[str]:
    """Whether days in a row go together in any group, and what to do."""
    if (tables["before_after_estimates"][INTERVAL_QUALITY] == "correlated_days").any():
        yield (
            "neighbouring days are alike in how often pairs match by chance: limits allow for it as far as these days "
            "tell, see interval_quality (correlated_days); more days tell more, and where it is weekdays that differ, "
            'strata = "weekday" takes it out'
        )


def _without_second_parent(cube: Cube) -> pl.DataFrame:
    """The groups whose intervals know events alone: the second parent has no compared pairs before the event."""
    keys = list(cube.keys)
    compared = cube.crossed[0].filter(pl.col("n_before") > 0).group_by(keys).agg(pl.col(REPLICATE).n_unique())
    known = compared.filter(pl.col(REPLICATE) >= MIN_REPLICATES)
    return cube.counts.select(keys).unique().join(known, on=keys, how="anti", nulls_equal=True)
