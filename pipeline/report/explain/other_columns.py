"""Numbers of a stage beside its measures: any column of its tables of groups, without a formula of counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...stages.evidence import Measure

if TYPE_CHECKING:
    import polars as pl

    from ..published import PublishedStage

_NUMBERS = ("DOUBLE", "BIGINT", "DECIMAL(38, 15)")
_OF_ROWS = frozenset(  # columns in the key of tables whose rows are no numbers of groups, but what lies behind these
    {
        *("event_id", "query_id", "doc_id", "series_id", "unit", "mention", "position"),
        *("draw", "sample_rank"),
    }
)


def other_measures(stage: PublishedStage) -> dict[str, Measure]:
    """Return the numbers by column, each of the first table that has it; tables that were made come first."""
    tables = [table for table in stage.stage.tables if _OF_ROWS.isdisjoint(table.key)]
    tables.sort(key=lambda table: table.name not in stage.tables or stage.tables[table.name].is_empty())
    return {
        column.name: Measure(column.name, table.name)
        for table in reversed(tables)
        for column in table.columns
        if column.type in _NUMBERS and column.name not in table.key
    }


def at_threshold(frame: pl.DataFrame, column: str, threshold: float) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Return the rows at a threshold: where there are none, at the next below, else at the lowest, and say so."""
    own = frame[column].drop_nulls().sort()
    if own.is_empty() or threshold in own:
        return (frame if own.is_empty() else frame.filter(frame[column] == threshold)), ()
    below = own.filter(own <= threshold)
    nearest = own[0] if below.is_empty() else below[-1]
    words = f"its table has no row at {threshold:g}: {nearest:g} is the next {column} there"
    return frame.filter(frame[column] == nearest), (words,)
