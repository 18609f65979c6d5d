"""Tables without a row, and tables held to their contract."""

from __future__ import annotations

import polars as pl
import pytest

from pipeline.base.errors import ThresherError
from pipeline.base.schemas import Column, Table, conform, empty_table

TABLE = Table(
    "curve",
    "one row per group and threshold",
    (
        Column("threshold", "DOUBLE", "the threshold", nullable=True),
        Column("tp", "BIGINT", "hits"),
        Column("weight", "DECIMAL", "their weight"),
        Column("unit", "KEY", "the unit", nullable=True),
        Column("position", "POSITION", "where", nullable=True),
        Column("reason", "VARCHAR", "why", nullable=True),
        Column("first", "BOOLEAN", "whether it is the first", nullable=True),
    ),
    ("threshold",),
)
GROUPS = pl.DataFrame(schema={"by:day": pl.Date(), "by:model": pl.String(), "other": pl.Int8()})


def curve(rows: int = 2) -> pl.DataFrame:
    frame = empty_table(TABLE, GROUPS, ["by:model"]).clear(rows)
    return frame.with_columns(
        pl.lit("all").alias("grouping"),
        pl.lit(1, dtype=pl.Int64).alias("tp"),
        pl.lit(1).cast(pl.Decimal(38, 15)).alias("weight"),
        pl.int_range(rows, 0, -1, eager=True).cast(pl.Float64).alias("threshold"),
    )


def test_an_empty_table_has_the_types_of_its_contract_and_of_the_groups() -> None:
    table = empty_table(TABLE, GROUPS, ["by:model", "by:day"])
    assert table.is_empty()
    assert list(table.schema.items()) == [
        ("grouping", pl.String()),
        ("by:model", pl.String()),
        ("by:day", pl.Date()),
        ("threshold", pl.Float64()),
        ("tp", pl.Int64()),
        ("weight", pl.Decimal(38, 15)),
        ("unit", pl.String()),
        ("position", pl.Datetime("us")),
        ("reason", pl.String()),
        ("first", pl.Boolean()),
    ]
    written = conform(table, TABLE, stage="s", by=["by:model", "by:day"])
    assert written.columns == ["stage", *table.columns]


def test_rows_get_their_stage_and_the_order_of_the_key() -> None:
    table = conform(
        curve(3).select(pl.all().reverse()).select(reversed(curve().columns)), TABLE, stage="s", by=["by:model"]
    )
    assert table.columns[:4] == ["stage", "grouping", "by:model", "threshold"]
    assert table.select("stage", "threshold").rows() == [("s", 1.0), ("s", 2.0), ("s", 3.0)]
    unthresholded = curve().with_columns(threshold=pl.Series([None, 7.0]))
    assert conform(unthresholded, TABLE, stage="s", by=["by:model"])["threshold"].to_list() == [7.0, None]


def test_criteria_come_in_the_order_of_the_config_and_others_behind_them() -> None:
    columns = (Column("criterion", "VARCHAR", "what for"),)
    points = Table(
        "points", "one row per group and criterion", columns, ("criterion",), criteria=("min_recall", "max_f1")
    )
    frame = pl.DataFrame({"grouping": ["all"] * 4, "criterion": ["given", "max_f1", "absent", "min_recall"]})
    written = conform(frame, points, stage="s", by=[])
    assert written["criterion"].to_list() == ["min_recall", "max_f1", "absent", "given"]
    with pytest.raises(ThresherError, match="rows repeat"):
        conform(pl.concat([frame, frame]), points, stage="s", by=[])


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (curve().drop("tp"), "its columns and its contract differ in tp"),
        (curve().with_columns(extra=1), "its columns and its contract differ in extra"),
        (curve().with_columns(tp=pl.lit(1.0)), "tp is Float64, not BIGINT"),
        (curve().with_columns(tp=pl.Series([1, None])), "tp is NULL in 1 rows"),
        (curve().with_columns(threshold=pl.lit(float("nan"))), "threshold is not finite"),
        (curve().with_columns(threshold=pl.lit(1.0)), "rows repeat in grouping, by:model, threshold"),
        (curve().with_columns(threshold=pl.lit(None, dtype=pl.Float64)), "rows repeat"),
    ],
)
def test_a_table_that_breaks_its_contract_is_refused(frame: pl.DataFrame, message: str) -> None:
    with pytest.raises(ThresherError, match=f"table curve: .*{message}"):
        conform(frame, TABLE, stage="s", by=["by:model"])


def test_a_sum_of_no_weights_becomes_a_decimal() -> None:
    table = conform(curve().with_columns(weight=0), TABLE, stage="s", by=["by:model"])
    assert table.schema["weight"] == pl.Decimal(38, 15)
