"""The stage entity_recognition, put together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.stages.entity_recognition import planning, results
from pipeline.stages.entity_recognition.contract import (
    COUNTS,
    DOCUMENTS,
    GOLD,
    PREDICTED,
    TABLES,
    EntityRecognitionParameters,
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
class EntityRecognition:
    """Gold and predicted mentions, matched one to one."""

    kind: str = "entity_recognition"
    parameters: type[StageParameters] = EntityRecognitionParameters
    inputs: tuple[InputContract, ...] = (PREDICTED, GOLD, DOCUMENTS)
    tables: tuple[Table, ...] = TABLES
    count_columns: tuple[Column, ...] = COUNTS

    def plan(self, params: EntityRecognitionParameters, sources: Mapping[str, Source]) -> Plan:
        """See `planning.plan`."""
        return planning.plan(params, sources)

    def derive(
        self, params: EntityRecognitionParameters, counts: Mapping[str, pl.DataFrame]
    ) -> dict[str, pl.DataFrame]:
        """See `results.derive`."""
        return results.derive(params, counts)

    def warnings(self, tables: Mapping[str, pl.DataFrame]) -> tuple[str, ...]:
        """See `results.warnings`."""
        return results.warnings(tables)

    def summarize(self, tables: Mapping[str, pl.DataFrame]) -> Summary:
        """See `results.summarize`."""
        return results.summarize(tables)


STAGE: Stage = EntityRecognition()
