"""The stage before_after, put together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.stages.before_after import planning, results
from pipeline.stages.before_after.contract import (
    ARTICLES,
    AUDITED,
    EVENTS,
    GOLD,
    GOLD_ARTICLES,
    PAIRS,
    BeforeAfterParameters,
)
from pipeline.stages.before_after.tables import COUNT_TABLE, TABLES

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
class BeforeAfter:
    """Precision and recall of event-article matching without gold labels."""

    kind: str = "before_after"
    parameters: type[StageParameters] = BeforeAfterParameters
    inputs: tuple[InputContract, ...] = (PAIRS, EVENTS, ARTICLES, GOLD, GOLD_ARTICLES, AUDITED)
    tables: tuple[Table, ...] = TABLES
    count_columns: tuple[Column, ...] = COUNT_TABLE

    def plan(self, params: BeforeAfterParameters, sources: Mapping[str, Source]) -> Plan:
        """See `planning.plan`."""
        return planning.plan(params, sources)

    def derive(self, params: BeforeAfterParameters, counts: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
        """See `results.derive`."""
        return results.derive(params, counts)

    def warnings(self, tables: Mapping[str, pl.DataFrame]) -> tuple[str, ...]:
        """See `results.warnings`."""
        return results.warnings(tables)

    def summarize(self, tables: Mapping[str, pl.DataFrame]) -> Summary:
        """See `results.summarize`."""
        return results.summarize(tables)


STAGE: Stage = BeforeAfter()
