"""The stage change_points, put together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.stages.change_points import planning, results
from pipeline.stages.change_points.contract import (
    ANNOTATIONS,
    CODERS,
    COUNTS,
    PREDICTIONS,
    RUNS,
    SERIES,
    TABLES,
    ChangePointsParameters,
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
class ChangePoints:
    """Detected change points beside marked ones."""

    kind: str = "change_points"
    parameters: type[StageParameters] = ChangePointsParameters
    inputs: tuple[InputContract, ...] = (PREDICTIONS, ANNOTATIONS, SERIES, RUNS, CODERS)
    tables: tuple[Table, ...] = TABLES
    count_columns: tuple[Column, ...] = COUNTS

    def plan(self, params: ChangePointsParameters, sources: Mapping[str, Source]) -> Plan:
        """See `planning.plan`."""
        return planning.plan(params, sources)

    def derive(self, params: ChangePointsParameters, counts: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
        """See `results.derive`."""
        return results.derive(params, counts)

    def warnings(self, tables: Mapping[str, pl.DataFrame]) -> tuple[str, ...]:
        """See `results.warnings`."""
        return results.warnings(tables)

    def summarize(self, tables: Mapping[str, pl.DataFrame]) -> Summary:
        """See `results.summarize`."""
        return results.summarize(tables)


STAGE: Stage = ChangePoints()
