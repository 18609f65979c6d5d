"""The table entity_recognition_outcomes: what became of every mention."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import sqlglot.expressions as exp

from pipeline.schemas import GROUPING
from pipeline.stages.entity_recognition.contract import OUTCOMES
from pipeline.stages.plan import FollowUp, Sweep

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

TABLE = "entity_recognition_outcomes"
_PLACES = ("gold_start", "predicted_start")


def follow_up(by: Sequence[str], lowest_score: float, *, scored: bool) -> FollowUp:
    """Every mention at the lowest threshold, with all grouping columns.

    Args:
        by: The grouping columns.
        lowest_score: The lowest score that is retrieved.
        scored: Whether predictions have scores.
    """

    def finish(found: pl.DataFrame, _: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
        names = [column.name for column in OUTCOMES if column.name != "mention"]
        within = [*by, "doc_id"]
        place = pl.coalesce(_PLACES)
        order = [pl.col(within), place, *(pl.col(name) for name in names if name != "doc_id")]
        rows = found.sort(order, nulls_last=True)
        if not scored:
            rows = rows.with_columns(pl.lit(None, dtype=pl.Float64).alias("score"))
        number = pl.int_range(1, pl.len() + 1, dtype=pl.Int64).over(within).alias("mention")
        grouping = pl.lit(",".join(by) or "all").alias(GROUPING.name)
        return rows.select(grouping, *by, number, *names)

    sweep = Sweep("mentions_of_outcomes", exp.select("*").from_("mentions"), "score", None)
    params = {"lowest_score": lowest_score}
    return FollowUp(TABLE, sweep, "entity_recognition/outcomes", lambda _: params, {}, finish, tuple(by))


def empty(counts: pl.DataFrame, ids: pl.Series, keys: Sequence[str]) -> pl.DataFrame:
    """The table without a row.

    Args:
        counts: A count table.
        ids: Ids of documents.
        keys: Columns that identify a group.
    """
    types = {"BIGINT": pl.Int64(), "DOUBLE": pl.Float64(), "VARCHAR": pl.String(), "KEY": pl.String()}
    others = [column for column in OUTCOMES if column.name != "doc_id"]
    return counts.clear().select(
        *keys, ids.clear(), *(pl.lit(None, dtype=types[column.type]).alias(column.name) for column in others)
    )
