"""The table entity_recognition_outcomes: what became of every mention."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from ...plan.nodes import After
from ...queries.load import statement
from ...tables.groupings import Grouping
from ...tables.schemas import GROUPING
from .contract import OUTCOMES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

TABLE = "entity_recognition_outcomes"
_OF_PREDICTION = (*(column.name for column in OUTCOMES if column.name.startswith("predicted_")), "score")
_PLACES = ("gold_start", "predicted_start")


def follow_up(by: Sequence[str], lowest_score: float, *, scored: bool, above_lowest: bool = False) -> After:
    """Every mention at the lowest threshold, with all grouping columns.

    Args:
        by: The grouping columns.
        lowest_score: The lowest score that is retrieved.
        scored: Whether predictions have scores.
        above_lowest: Whether the lowest score of a group is not retrieved either, which is its lowest threshold.
    """

    def finish(mentions: pl.DataFrame, _: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
        mentions = _above_lowest(mentions, by) if above_lowest else mentions
        names = [column.name for column in OUTCOMES if column.name != "mention"]
        within = [*by, "doc_id"]
        order = [pl.col(within), pl.coalesce(_PLACES), *(pl.col(name) for name in names if name != "doc_id")]
        rows = mentions.sort(order, nulls_last=True)
        if not scored:
            rows = rows.with_columns(pl.lit(None, dtype=pl.Float64).alias("score"))
        number = pl.int_range(1, pl.len() + 1, dtype=pl.Int64).over(within).alias("mention")
        grouping = pl.lit(Grouping(tuple(by)).label).alias(GROUPING.name)
        return rows.select(grouping, *by, number, *names)

    params = {"lowest_score": lowest_score}
    return After(TABLE, None, statement("entity_recognition/outcomes", by), params, {}, finish)


def _above_lowest(mentions: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """The rows when predictions with the lowest score of their group are not retrieved: their gold is missed."""
    score = pl.col("score")
    lost = (score == (score.min().over(by) if by else score.min())).fill_null(value=False)
    evaluated = mentions.with_columns(lost.alias("_lost")).filter(~pl.col("_lost") | (pl.col("outcome") == "tp"))
    without = [pl.when(~pl.col("_lost")).then(name).alias(name) for name in _OF_PREDICTION]
    outcome = pl.when("_lost").then(pl.lit("fn")).otherwise("outcome").alias("outcome")
    return evaluated.with_columns(outcome, *without).drop("_lost")
