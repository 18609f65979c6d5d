"""The stage compare, put together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.stages.compare import planning, results
from pipeline.stages.compare.contract import COUNTS, TABLES, UNITS, CompareParameters

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
class Compare:
    """Two or more systems on the same units."""

    kind: str = "compare"
    parameters: type[StageParameters] = CompareParameters
    inputs: tuple[InputContract, ...] = (UNITS,)
    tables: tuple[Table, ...] = TABLES
    count_columns: tuple[Column, ...] = COUNTS

    def plan(self, params: CompareParameters, sources: Mapping[str, Source]) -> Plan:
        """See `planning.plan`."""
        return planning.plan(params, sources["units"])

    def derive(self, params: CompareParameters, counts: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
        """See `results.derive`."""
        return results.derive(params, counts)

    def warnings(self, tables: Mapping[str, pl.DataFrame]) -> tuple[str, ...]:
        """See `results.warnings`."""
        return results.warnings(tables)

    def summarize(self, tables: Mapping[str, pl.DataFrame]) -> Summary:
        """See `results.summarize`."""
        return results.summarize(tables)


STAGE: Stage = Compare()
