"""The table geocoding_documents: counts of every unit at one tolerance, and its contributions to the errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from ...metrics.geocoding.accuracy import ERRORS, error_contributions
from ...plan.nodes import After
from ...queries.load import statement
from ...tables.columns import as_key, doubles
from ...tables.schemas import GROUPING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .contract import GeocodingParameters

TABLE = "geocoding_documents"
UNIT, DISTANCE = "unit", "distance_km"


def documents(params: GeocodingParameters, by: Sequence[str], *, unit: str) -> After:
    """One row per group and unit.

    Args:
        params: The parameters, with at least one tolerance.
        by: The grouping columns.
        unit: The column of the aligned mentions whose values are independent.
    """
    tolerance = params.tolerances_km[-1] if params.unit_tolerance_km is None else params.unit_tolerance_km

    def finish(mentions: pl.DataFrame, _: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
        mentions = mentions.with_columns(as_key(mentions[UNIT])).sort(*by, UNIT, DISTANCE, nulls_last=True)
        within = pl.col(DISTANCE) <= tolerance if params.tolerance_boundary == "<=" else pl.col(DISTANCE) < tolerance
        counts = (
            pl.lit(tolerance).alias("tolerance_km"),
            pl.len().cast(pl.Int64).alias("n_gold"),
            pl.col(DISTANCE).count().cast(pl.Int64).alias("n_attempted"),
            within.sum().cast(pl.Int64).alias("tp"),
        )
        tables = []
        for grouping in params.groupings:
            keys = list(grouping.columns)
            counted = mentions.group_by(*keys, UNIT, maintain_order=True).agg(counts)
            groups = mentions.partition_by(keys, maintain_order=True) if keys else []
            contributed = pl.concat([_contributions(group, keys, params) for group in groups or [mentions]])
            counted = counted.join(contributed, on=[*keys, UNIT], how="left", nulls_equal=True, maintain_order="left")
            tables.append(counted.with_columns(pl.lit(grouping.label).alias(GROUPING.name)))
        fp, fn = pl.col("n_attempted") - pl.col("tp"), pl.col("n_gold") - pl.col("tp")
        return pl.concat(tables, how="diagonal").with_columns(fp.alias("fp"), fn.alias("fn"))

    return After(TABLE, None, statement("geocoding/documents", by, columns={"unit_key": unit}), {}, {}, finish)


def _contributions(group: pl.DataFrame, keys: Sequence[str], params: GeocodingParameters) -> pl.DataFrame:
    """Contributions of the units of one group, in the order in which they come first."""
    units = group.select(*keys, UNIT).unique(UNIT, keep="first", maintain_order=True)
    numbered = units.select(UNIT, pl.int_range(pl.len(), dtype=pl.Int64).alias("_number"))
    number = group.select(UNIT).join(numbered, on=UNIT, how="left", maintain_order="left")["_number"].to_numpy()
    distances = group[DISTANCE].to_numpy()
    values = error_contributions(number, distances, missing=params.missing_errors)
    return units.with_columns(doubles(name, values[name]) for name in ERRORS)
