"""Tables of single runs and of single matches of change_points, which are read once more at the end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import polars as pl
import sqlglot.expressions as exp

from pipeline.plan.nodes import After, Relation
from pipeline.queries.dialect import column
from pipeline.queries.load import statement
from pipeline.stages.change_points.contract import DELAYS, SERIES_COLUMNS, SERIES_ID
from pipeline.stages.change_points.points import POSITIONS, RUN
from pipeline.stages.change_points.ratios import with_ratios
from pipeline.stages.change_points.relations import RUNS_OF_SERIES
from pipeline.tables.groupings import Grouping
from pipeline.tables.ratios import quotient
from pipeline.tables.schemas import GROUPING

if TYPE_CHECKING:
    from pipeline.stages.change_points.relations import Relations
    from pipeline.tables.schemas import Column

Finish = Callable[[pl.DataFrame, Mapping[str, pl.DataFrame]], pl.DataFrame]
TYPES = {"BIGINT": pl.Int64(), "DOUBLE": pl.Float64(), "VARCHAR": pl.String(), "KEY": pl.String()}


def series_table(relations: Relations, *, tcpd: bool, covered: bool) -> After:
    """One row per run, over all its predictions."""
    names = [RUN, "is_run", "tp", "n_true", "share", "delay", *(["covering"] if covered else [])]
    query = exp.select(*(column(name) for name in names)).from_("matched")
    if not covered:
        query = query.select(exp.alias_(exp.cast(exp.null(), "DOUBLE"), "covering", quoted=True))

    def finish(found: pl.DataFrame, frames: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
        frame = with_ratios(found.with_columns(one=pl.lit(1)), ("mean_recall", "one") if tcpd else None)
        mean = quotient(frame["delay_sum"], frame["n_delays"]).alias("mean_delay")
        return _named(frame.with_columns(mean), frames["runs"], relations, SERIES_COLUMNS)

    return _follow_up("series", "detailed_points", query, relations, finish)


def delays_table(relations: Relations) -> After:
    """One row per matched prediction."""
    names = (RUN, "score", "position", "true_position", "delay")
    query = exp.select(*(column(name) for name in names)).from_("matched")

    def finish(found: pl.DataFrame, frames: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
        return _named(found, frames["runs"], relations, DELAYS)

    return _follow_up("delays", "matched_points", query, relations, finish)


def _follow_up(table: str, name: str, query: exp.Select, relations: Relations, finish: Finish) -> After:
    columns = (RUN, *(each.name for each in relations.by), SERIES_ID)
    frames = {"runs": exp.select(*(column(each) for each in columns)).from_(RUNS_OF_SERIES)}
    return After(
        f"change_points_{table}", Relation(name, query), statement(f"change_points/{table}"), {}, frames, finish
    )


def _named(found: pl.DataFrame, runs: pl.DataFrame, relations: Relations, columns: Sequence[Column]) -> pl.DataFrame:
    """Rows with the grouping columns and the series of their run, as one grouping."""
    by = [each.name for each in relations.by]
    if runs.schema[SERIES_ID].is_decimal():  # signed and unsigned integers in one column
        unsigned = bool((runs[SERIES_ID] >= 0).all())
        runs = runs.with_columns(pl.col(SERIES_ID).cast(pl.UInt64 if unsigned else pl.Int64))
    grouping = pl.lit(Grouping(tuple(by)).label).alias(GROUPING.name)
    return found.join(runs, on=RUN, how="inner").select(grouping, *by, *(each.name for each in columns))


def empty(counts: pl.DataFrame, keys: Sequence[str], columns: Sequence[Column], *, times: bool) -> pl.DataFrame:
    """A table without a row.

    Args:
        counts: The count table.
        keys: Columns that identify a group.
        columns: Those of the table.
        times: Whether positions are times.
    """
    types = TYPES | {"POSITION": POSITIONS[times]}
    own = (pl.lit(None, dtype=types[each.type]).alias(each.name) for each in columns)
    return counts.clear().select(*keys, *own)
