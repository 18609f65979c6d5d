"""Tables of single runs and of single matches of change_points, which are read once more at the end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

import polars as pl
import sqlglot.expressions as exp

from ...plan.nodes import After
from ...queries.load import statement
from ...tables.columns import as_key
from ...tables.groupings import Grouping
from ...tables.ratios import quotient
from ...tables.schemas import GROUPING
from ..stage import CLUSTER
from .contract import DELAYS, SERIES_COLUMNS
from .input_contracts import SERIES_ID
from .points import RUN
from .ratios import with_ratios

if TYPE_CHECKING:
    from ...tables.schemas import Column
    from .relations import Relations

CLUSTERS = "clusters"  # frame of the clusters of series
Finish = Callable[[pl.DataFrame, Mapping[str, pl.DataFrame]], pl.DataFrame]


def series_table(relations: Relations, *, tcpd: bool, covered: bool) -> After:
    """One row per run, over all its predictions."""

    def finish(runs: pl.DataFrame, frames: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
        runs = with_ratios(runs.with_columns(one=pl.lit(1)), ("mean_recall", "one") if tcpd else None)
        mean = quotient(runs["delay_sum"], runs["n_delays"]).alias("mean_delay")
        rows = _named(runs.with_columns(mean), frames["runs"], relations, SERIES_COLUMNS)
        if CLUSTERS not in frames:
            return rows
        clusters = frames[CLUSTERS].with_columns(as_key(frames[CLUSTERS][CLUSTER]))
        return rows.join(clusters, on=SERIES_ID, how="left", maintain_order="left")

    covering: dict[str, exp.Expr] = {} if covered else {"covering": exp.cast(exp.null(), "DOUBLE")}
    query = statement(f"change_points/{'alarm_series' if relations.alarmed else 'series'}", columns=covering)
    clusters = {} if relations.cluster == SERIES_ID else {CLUSTERS: statement("change_points/clusters_of_series")}
    return _follow_up("series", query, relations, finish, clusters)


def delays_table(relations: Relations) -> After:
    """One row per matched prediction."""

    def finish(matches: pl.DataFrame, frames: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
        return _named(matches, frames["runs"], relations, DELAYS)

    return _follow_up("delays", statement("change_points/delays"), relations, finish)


def _follow_up(
    table: str,
    query: exp.Query,
    relations: Relations,
    finish: Finish,
    further: Mapping[str, exp.Query] = MappingProxyType({}),
) -> After:
    frames = {"runs": statement("change_points/keys_of_runs", [grouped.name for grouped in relations.by]), **further}
    return After(f"change_points_{table}", None, query, {}, frames, finish)


def _named(rows: pl.DataFrame, runs: pl.DataFrame, relations: Relations, columns: Sequence[Column]) -> pl.DataFrame:
    """Rows with the grouping columns and the series of their run, as one grouping."""
    by = [grouped.name for grouped in relations.by]
    if runs.schema[SERIES_ID].is_decimal():  # signed and unsigned integers in one column
        unsigned = bool((runs[SERIES_ID] >= 0).all())
        runs = runs.with_columns(pl.col(SERIES_ID).cast(pl.UInt64 if unsigned else pl.Int64))
    grouping = pl.lit(Grouping(tuple(by)).label).alias(GROUPING.name)
    names = [column.name for column in columns]
    return rows.join(runs, on=RUN, how="inner").select(grouping, *by, *names)
