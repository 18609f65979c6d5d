"""The tables of a stage counted again, in memory alone: under other conventions than those of its run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..engines.duckdb import DuckDB, Resources
from ..plan.counting import after_results, count
from ..plan.user_sql import naming_user_sql
from ..tables.schemas import COUNT_TABLE, empty_table

if TYPE_CHECKING:
    import polars as pl

    from ..interrupts import StopRequest
    from .opening import OpenedStage


def recount(opened: OpenedStage, stop: StopRequest) -> dict[str, pl.DataFrame]:
    """Count a stage and derive its tables, grouping columns under their internal names; nothing is written.

    Args:
        opened: The stage, its inputs found.
        stop: Checked while a query runs.

    Raises:
        DataError: the data break the contract of an input, or do not fit the parameters.
    """
    stage, params, plan = opened.configured.stage, opened.configured.params, opened.plan
    by = [grouped.name for grouped in plan.by]
    with DuckDB(Resources(), opened.folders, stop) as engine, naming_user_sql(engine, plan):
        counted = count(engine, params, plan)
        derived = stage.derive(params, counted.tables)
        for table in stage.tables:
            derived.setdefault(table.name, empty_table(table, counted.tables[COUNT_TABLE], by))
        tables = after_results(engine, params, plan.without(counted.omitted), derived)
        return {name: table for name, table in tables.items() if name not in counted.omitted}
