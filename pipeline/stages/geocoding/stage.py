"""The stage geocoding, put together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.stages.geocoding import planning, results
from pipeline.stages.geocoding.contract import (
    COUNTS,
    GOLD,
    PREDICTED,
    TABLES,
    GeocodingParameters,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

    from pipeline.plan.plan import Plan
    from pipeline.sources.inputs import InputContract
    from pipeline.sources.source import Source
    from pipeline.stages.parameters import StageParameters
    from pipeline.stages.stage import Stage, Summary
    from pipeline.tables.schemas import Column, Table


@dataclass(frozen=True)
class Geocoding:
    """Gold and predicted places, side by side."""

    kind: str = "geocoding"
    parameters: type[StageParameters] = GeocodingParameters
    inputs: tuple[InputContract, ...] = (PREDICTED, GOLD)
    tables: tuple[Table, ...] = TABLES
    count_columns: tuple[Column, ...] = COUNTS

    def plan(self, params: GeocodingParameters, sources: Mapping[str, Source]) -> Plan:
        """See `planning.plan`."""
        return planning.plan(params, sources)

    def derive(self, params: GeocodingParameters, counts: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
        """See `results.derive`."""
        return results.derive(params, counts)

    def warnings(self, tables: Mapping[str, pl.DataFrame]) -> tuple[str, ...]:
        """See `results.warnings`."""
        return results.warnings(tables)

    def summarize(self, tables: Mapping[str, pl.DataFrame]) -> Summary:
        """See `results.summarize`."""
        return results.summarize(tables)


STAGE: Stage = Geocoding()
