"""Figures taken apart by group and drawn: gaps, bands, axes, looks, and the lists that the page decodes."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from typing import Any

import polars as pl
import pytest

from pipeline.report.charts import Group, in_hex, looks, panels
from pipeline.report.drawing import Lists, encoded
from pipeline.report.pictures import inert, page_svg
from pipeline.report.summary import described
from pipeline.stages.figures import Axis, Figure, Rule, Series

ALL = Group("all", "all")
NORTH = Group("by.x", "north")
FRAME = pl.DataFrame(
    {
        "grouping": ["all"] * 4 + ["by.x"] * 3,
        "by:by.x": [None] * 4 + ["north"] * 3,
        "threshold": [0.0, 1.0, 2.0, 3.0, 0.0, 1.0, 2.0],
        "precision": [-0.25, 0.5, None, 0.75, 0.1, float("nan"), 0.3],
        "low": [-9.0, 0.4, None, 0.7, None, None, None],
        "high": [0.1, 0.6, None, 0.8, None, None, None],
        "interval_quality": ["few_clusters", "good", None, "good", None, None, None],
    }
)
PRECISION = Series("precision", "Precision", "precision", lower="low", upper="high")
FIGURE = Figure(
    name="curve",
    title="A curve",
    caption="A caption.",
    frame=FRAME,
    x=Axis("threshold", "threshold"),
    y=Axis("", "share", "percent", includes=(0.0, 1.0)),
    series=(PRECISION,),
    chosen=FRAME.filter(pl.col("threshold") == 1.0).with_columns(criterion=pl.lit("max_f1")),
)
OTHER_KINDS = {
    "path": replace(FIGURE, series=(replace(PRECISION, mark="path"),)),
    "step": replace(FIGURE, series=(replace(PRECISION, mark="step"),)),
    "bar": replace(FIGURE, series=(replace(PRECISION, mark="bar"),), chosen=None),
    "point": replace(FIGURE, series=(replace(PRECISION, mark="point"),), chosen=None),
    "names": replace(
        FIGURE,
        frame=FRAME.with_columns(name=pl.col("threshold").cast(pl.String)),
        x=Axis("name", "", "category"),
        series=(replace(PRECISION, mark="point"), replace(PRECISION, name="again", mark="bar")),
        rules=(Rule("half", 0.5, "y"),),
        chosen=None,
    ),
    "logarithmic": replace(
        FIGURE,
        frame=FRAME.with_columns(pl.col("threshold") + 1, at=pl.col("threshold") + 1),
        x=Axis("at", "km", logarithmic=True),
        rules=(Rule("161 km", 1.61), Rule("equal", axis="diagonal")),
        chosen=None,
    ),
    "times": replace(
        FIGURE,
        frame=FRAME.with_columns(at=pl.datetime(2026, 1, 1) + pl.duration(days=pl.col("threshold").cast(pl.Int64))),
        x=Axis("at", "day", "time"),
        chosen=None,
    ),
}


def line_of(svg: str, colour: str) -> str:
    """The path that is stroked in a colour."""
    return next(piece for piece in svg.split("<path ")[1:] if f'stroke="{colour}"' in piece)


def test_undefined_values_are_gaps_and_never_zero() -> None:
    svg = in_hex(page_svg(panels(FIGURE), ALL, prefix=""))
    line = line_of(svg, "#0068a8").split('d="')[1].split('"')[0]
    assert line.count("M") == 2  # before the gap, and behind it
    assert line.count("L") >= 1


def test_groups_are_taken_apart_with_what_was_chosen_in_them() -> None:
    taken = panels(FIGURE)
    assert list(taken.spans) == [ALL, NORTH]
    assert taken.rows_of(NORTH)["v0"].to_list() == [0.1, None, 0.3]
    assert taken.rows_of(ALL)["d"].to_list() == [1, 0, 0, 0]
    assert taken.chosen[NORTH]["x"].to_list() == [1.0]


def test_rows_of_a_group_need_not_stand_together_and_namesakes_stay_apart() -> None:
    mixed = pl.DataFrame(
        {
            "grouping": ["a,b", "c", "a,b", "c"],
            "by:a": ["x", None, "x", None],
            "by:b": ["y", None, "y", None],
            "by:c": [None, "x, y", None, "x, y"],
            "threshold": [0.0, 0.0, 1.0, 1.0],
            "precision": [0.1, 0.2, 0.3, 0.4],
        }
    )
    taken = panels(replace(FIGURE, frame=mixed, series=(Series("precision", "p", "precision"),), chosen=None))
    assert [taken.rows_of(group)["v0"].to_list() for group in taken.spans] == [[0.1, 0.3], [0.2, 0.4]]
    null = mixed.with_columns(grouping=pl.lit("a"), **{"by:a": pl.Series(["null", None, "null", None])})
    taken = panels(
        replace(FIGURE, frame=null.drop("by:b", "by:c"), series=(Series("precision", "p", "f1"),), chosen=None)
    )
    assert list(taken.spans) == [Group("a", '"null"'), Group("a", "null")]


def test_the_axis_goes_below_zero_and_a_far_limit_does_not_flatten_the_lines() -> None:
    low, high = panels(FIGURE).extent(ALL)
    assert low == pytest.approx(-0.25 - 1.25 / 2)
    assert high == 1.0
    assert panels(FIGURE).extent(NORTH) == (0.0, 1.0)
    svg = in_hex(page_svg(panels(FIGURE), ALL, prefix=""))
    assert "−50%" in svg


def test_equal_roles_in_a_figure_do_not_look_alike() -> None:
    series = tuple(Series(str(index), str(index), "neutral") for index in range(5))
    drawn = looks(series)
    assert len(set(drawn)) == 5
    assert len({look.colour for look in drawn}) >= 4


@pytest.mark.parametrize("kind", OTHER_KINDS)
def test_every_kind_of_mark_and_axis_is_drawn(kind: str) -> None:
    svg = page_svg(panels(OTHER_KINDS[kind]), ALL, prefix="p-")
    assert "NaN" not in svg
    assert "undefined" not in svg
    assert svg.count("var(--precision,#0068a8)") >= 1


def decoded(values: list[Any]) -> list[float | None]:
    """What the page makes of a list."""
    if values[0] == "r":
        return values[1:]
    total, result = 0, []
    for step in values[2:]:
        total += step or 0
        result.append(None if step is None else total / values[1])
    return result


def test_the_lists_of_the_page_hold_the_rows() -> None:
    taken, lists = panels(FIGURE), Lists()
    of_groups = encoded(taken, (ALL, NORTH), lists)
    for number, group in enumerate((ALL, NORTH)):
        rows = taken.rows_of(group)
        for name, list_place in of_groups[number]["columns"].items():
            assert decoded(lists.written[list_place]) == pytest.approx(rows[name].to_list(), nan_ok=True)
    json.dumps(lists.written, allow_nan=False)


def test_equal_lists_are_written_once() -> None:
    lists = Lists()
    encoded(panels(FIGURE), (ALL, NORTH), lists)
    written = len(lists.written)
    encoded(panels(replace(FIGURE, name="again")), (ALL, NORTH), lists)
    assert len(lists.written) == written


def test_of_many_rows_the_ends_and_evenly_spaced_ones_are_kept() -> None:
    number = 1000
    frame = pl.DataFrame({"grouping": ["all"] * number, "threshold": range(number), "precision": [0.5] * number})
    taken = panels(replace(FIGURE, frame=frame, series=(Series("precision", "p", "f1"),), chosen=None)).at_most(100)
    kept = taken.rows_of(ALL)["x"].to_list()
    assert 100 <= len(kept) <= 101
    assert kept[-1] == number - 1
    assert {later - earlier for earlier, later in pairwise(kept[:-1])} == {10.0}


def test_a_chart_is_described_in_numbers() -> None:
    assert described(panels(FIGURE), ALL) == "A curve, all. Precision: lowest -25.0% at 0, highest 75.0% at 3."


def test_of_a_drawing_only_what_draws_is_kept() -> None:
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" onload="x()"><script>x()</script>'
        '<a href="http://x"><path d="M0,0"/></a>'
        '<g onclick="x()" style="background:url(http://x)"><text x="1.23456">&lt;b&gt;</text><image href="http://x"/></g></svg>'
    )
    kept = inert(svg, prefix="")
    assert kept == '<svg xmlns="http://www.w3.org/2000/svg"><g><text x="1.23456">&lt;b&gt;</text></g></svg>'
