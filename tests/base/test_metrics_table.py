"""Which columns and rows of result tables are metrics, from made-up contracts."""

from __future__ import annotations

import json
from typing import Any

import polars as pl

from pipeline.base.run_tables import metric_columns, metrics_table
from pipeline.base.schemas import Column, Table, limits_of

RATIO = (Column("ratio", "DOUBLE", "a ratio", nullable=True), *limits_of("ratio"))
LOOSE = Column("loose", "DOUBLE", "a number without limits")
CURVE = Table("curve", "one row per threshold", (Column("threshold", "DOUBLE", "score"), *RATIO, LOOSE), ("threshold",))
POINTS = Table("points", "one row per criterion", (Column("criterion", "VARCHAR", "what for"), *RATIO), ("criterion",))
AREAS = Table("areas", "one row per group", (*RATIO, LOOSE, Column("n", "BIGINT", "rows")), ())
UNITS = Table("units", "one row per unit", (Column("unit", "KEY", "its id"), LOOSE), ("unit",))
LEVELS = Table("levels", "one row per level", (Column("km", "DOUBLE", "level"), *RATIO), ("km",))

LEADING: dict[str, list[Any]] = {"stage": ["s"], "grouping": ["all"], "by:it's": [None]}
NUMBERS: dict[str, list[Any]] = {"ratio": [0.5], "ratio_lower": [0.4], "ratio_upper": [0.6]}


def test_columns_with_limits_are_metrics_and_every_number_where_a_group_has_one_row() -> None:
    assert [metric_columns(table) for table in (CURVE, POINTS, AREAS, UNITS)] == [
        ("ratio",),
        ("ratio",),
        ("ratio", "loose"),
        (),
    ]


def test_points_of_a_curve_are_left_out() -> None:
    frame = pl.DataFrame(
        {"threshold": [0.1, None]} | {name: values * 2 for name, values in (LEADING | NUMBERS).items()}
    )
    rows = metrics_table([CURVE], {"curve": frame.with_columns(loose=1.0)})
    assert rows.select("result_table", "metric", "threshold", "value", "lower", "upper").rows() == [
        ("curve", "ratio", None, 0.5, 0.4, 0.6)
    ]


def test_what_tells_rows_apart_is_the_criterion() -> None:
    frames = {
        "points": pl.DataFrame(LEADING | {"criterion": ["max_f1"], "threshold": [7.0]} | NUMBERS),
        "levels": pl.DataFrame(LEADING | {"km": [161.0]} | NUMBERS),
        "areas": pl.DataFrame(LEADING | {"n": [3], "loose": [2.0]} | NUMBERS),
    }
    rows = metrics_table([POINTS, LEVELS, AREAS], frames)
    assert rows.select("criterion", "threshold", "metric").rows() == [
        ("max_f1", 7.0, "ratio"),
        ("km=161", None, "ratio"),
        (None, None, "ratio"),
        (None, None, "loose"),
    ]


def test_a_group_is_json_of_the_columns_of_its_grouping_alone() -> None:
    frame = pl.DataFrame(
        {
            "stage": ["s"] * 3,
            "grouping": ["all", "it's", "it's,b"],
            "by:it's": [None, None, '"x"\n'],
            "by:b": [None, None, 3],
            "criterion": ["c"] * 3,
        }
        | {name: values * 3 for name, values in NUMBERS.items()}
    )
    groups = [json.loads(group) for group in metrics_table([POINTS], {"points": frame})["group"]]
    assert groups == [{}, {"it's": None}, {"it's": '"x"\n', "b": 3}]


def test_a_limit_without_a_value_and_a_quality_without_limits_stay_null() -> None:
    frame = pl.DataFrame(
        LEADING
        | {"criterion": ["c"], "interval_quality": ["good"]}
        | dict.fromkeys(NUMBERS, pl.Series([None], dtype=pl.Float64))
    )
    (row,) = metrics_table([POINTS], {"points": frame}).iter_rows(named=True)
    assert (row["value"], row["lower"], row["upper"], row["quality"]) == (None, None, None, None)
