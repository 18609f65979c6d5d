"""How far intervals of before_after can be trusted: the parents of its pairs, and how unequal these are."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from pipeline.metrics.before_after.intervals import MIN_REPLICATES
from pipeline.metrics.uncertainty.limits import clusters_of_parents, of_one_parent
from pipeline.tables.sweep import REPLICATE

if TYPE_CHECKING:
    from pipeline.metrics.uncertainty.cube import Cube
    from pipeline.stages.before_after.contract import BeforeAfterParameters

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
        return of_one_parent(clusters_of_parents(replace(cube, crossed=()), MATCHES))
    return of_one_parent(clusters_of_parents(cube, MATCHES), _without_second_parent(cube))


def _without_second_parent(cube: Cube) -> pl.DataFrame:
    """The groups whose intervals know events alone: the second parent has no compared pairs before the event."""
    keys = list(cube.keys)
    compared = cube.crossed[0].filter(pl.col("n_before") > 0).group_by(keys).agg(pl.col(REPLICATE).n_unique())
    known = compared.filter(pl.col(REPLICATE) >= MIN_REPLICATES)
    return cube.counts.select(keys).unique().join(known, on=keys, how="anti", nulls_equal=True)
