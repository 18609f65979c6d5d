"""Figures and key numbers of all stages: what every one of them promises, and their building blocks."""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, NamedTuple

import polars as pl
import pytest
from deriving import result_tables, stage_of
from running import read_table, run_stages, stage_config
from stage_examples import EXAMPLES

from pipeline.base.schemas import internal_name, values_text
from pipeline.metrics.uncertainty.limits import INTERVAL_QUALITY, MEANINGS
from pipeline.stages import STAGES
from pipeline.stages.figures import (
    MOST_GROUPS,
    MOST_POINTS,
    Axis,
    Series,
    across_groups,
    group_labels,
    histogram,
    intervals,
    of_best,
    thinned,
    with_limits,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stage_examples import Example

    from pipeline.stages.figures import Figure
    from pipeline.stages.stage import Stage


class Results(NamedTuple):
    """A stage and its result tables as they are read back from a run."""

    stage: Stage
    tables: dict[str, pl.DataFrame]


@pytest.fixture(scope="module", params=EXAMPLES, ids=lambda example: example.kind)
def results(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Results:
    """The results of an example, which the tests here only read."""
    example: Example = request.param
    columns = {name: {"columns": example.columns(name)} for name in example.frames if example.columns(name)}
    folder = tmp_path_factory.mktemp(example.kind)
    run = run_stages(stage_config(folder, example.kind, example.frames, **example.keys, **columns, confidence=0.9))
    stage = stage_of(example.kind)
    groupings = ([names] if isinstance(names, str) else names for names in example.keys.get("by", []))
    names = list(dict.fromkeys(itertools.chain(*groupings)))
    tables = {}
    for table in stage.tables:
        if table.name in run.stages[example.kind].omitted:
            continue
        frame = read_table(run, table.name, example.kind)
        tables[table.name] = frame.rename({name: internal_name(name) for name in names if name in frame.columns})
    return Results(stage, tables)


def columns_of(figure: Figure) -> set[str]:
    values = {name for line in figure.series for name in (line.column, line.lower, line.upper) if name}
    return {figure.x.column, *values}


@pytest.mark.first_cases(1)
def test_a_figure_holds_what_it_names(results: Results) -> None:
    figures = results.stage.figures(results.tables, 0.9)
    assert len({figure.name for figure in figures}) == len(figures) > 1
    for figure in figures:
        assert re.fullmatch("[a-z0-9_]+", figure.name)
        assert figure.caption.endswith(".")
        assert figure.title
        assert figure.x.title
        assert figure.y.title
        assert "grouping" in figure.frame.columns
        assert columns_of(figure) <= set(figure.frame.columns), figure.name
        has_limits = any(line.lower for line in figure.series)
        assert ("90%" in figure.caption) == has_limits, figure.name
        assert (INTERVAL_QUALITY in figure.frame.columns) == has_limits, figure.name
        floats = figure.frame.select(pl.col(pl.Float64).is_nan().any())
        assert not any(floats.row(0)), figure.name
        if figure.chosen is not None:
            wanted = {figure.x.column, "criterion", *(line.column for line in figure.series)}
            assert wanted <= set(figure.chosen.columns)


@pytest.mark.first_cases(2)
def test_key_numbers_say_how_good_their_limits_are(results: Results) -> None:
    numbers = results.stage.key_numbers(results.tables)
    assert len({number.name for number in numbers}) in {2, 3, 4}
    assert len({(number.grouping, number.group, number.name) for number in numbers}) == len(numbers) > 0
    for number in numbers:
        assert (number.quality in MEANINGS) == (number.lower is not None or number.upper is not None)
        assert len(number.meaning.split()) <= 7


@pytest.mark.parametrize("kind", [entry.kind for entry in STAGES])
def test_without_a_row_there_is_nothing_to_show(kind: str) -> None:
    stage, tables = stage_of(kind), result_tables(kind, {}, ["source"])
    assert stage.figures(tables) == ()
    assert stage.key_numbers(tables) == ()


def curve_of(sizes: Mapping[str, int]) -> pl.DataFrame:
    frames = [
        pl.DataFrame({"grouping": "source", "by:source": name, "x": [index**2 / size**2 for index in range(size)]})
        for name, size in sizes.items()
    ]
    return pl.concat(frames).with_columns(pl.int_range(pl.len()).alias("row"))


def test_long_lines_are_thinned_over_their_order_and_their_axis() -> None:
    curve = curve_of({"short": 100, "long": 10_000})
    kept = thinned(curve, "x")
    long = kept.filter(pl.col("by:source") == "long")
    assert kept.filter(pl.col("by:source") == "short").height == 100
    assert MOST_POINTS / 2 < long.height <= MOST_POINTS + 1
    assert (long["row"][0], long["row"][-1]) == (100, 10_099)
    assert long["x"].diff().max() < 3 / MOST_POINTS  # type: ignore[operator]  # a number
    assert long["row"].diff().max() <= 2 * 10_000 / MOST_POINTS + 1  # type: ignore[operator]  # a number
    assert thinned(curve, "x", 10_000).equals(curve)


def test_bins_hold_their_lower_end_and_are_zero_where_empty() -> None:
    values = pl.DataFrame(
        {"grouping": "source", "by:source": ["a", "a", "a", "a", None, "c"], "value": [0.0, 0.3, 0.6, 1.0, 0.6, None]}
    )
    counted = histogram(values, "value", 5, 0, 4)
    assert counted["bin"].to_list()[:5] == pytest.approx([0.1, 0.3, 0.5, 0.7, 0.9])
    numbers = {group: part["number"].to_list() for (group,), part in counted.group_by("by:source")}
    assert numbers == {"a": [1, 1, 0, 1, 1], None: [0, 0, 0, 1, 0]}


def test_across_groups_the_largest_stand_beside_each_other_under_names_that_differ() -> None:
    groups = pl.DataFrame(
        {
            "grouping": ["all", "source", "topic", *["source"] * 40],
            "by:source": [None, "x", None, *(f"s{index}" for index in range(40))],
            "by:topic": [None, None, "x", *[None] * 40],
            "n": [99, 90, 80, *range(40)],
            "value": [0.5] * 43,
        }
    )
    y = Axis("", "Value")
    figure = across_groups(
        groups, [Series("value", "Value", "estimate", "point")], "n", name="v", title="V", words="W.", y=y
    )
    assert figure.across
    assert figure.frame.height == MOST_GROUPS
    assert figure.frame["group"].to_list()[:4] == ["all", "x (source)", "x (topic)", "s39"]
    assert figure.caption == f"W. Of 43 groups the {MOST_GROUPS} largest are drawn."


def test_limits_at_the_best_threshold_were_chosen_on_the_same_data() -> None:
    best = pl.DataFrame({"threshold": [1.0, 1.0, None], INTERVAL_QUALITY: ["good", "few_clusters", "good"]})
    assert of_best(best)[INTERVAL_QUALITY].to_list() == ["chosen_on_same_data", "few_clusters", "good"]


def test_names_of_groups_differ_whatever_their_values_are() -> None:
    values = ["all", None, "null", "</script><img onerror=x>", "a\nb", "all (source)"]
    groups = pl.DataFrame({"grouping": ["all", *["source"] * 6], "by:source": [None, *values]})
    assert group_labels(groups).to_list() == [
        "all",
        '"all"',
        "null",
        '"null"',
        "</script><img onerror=x>",
        "a\\u000ab",
        "all (source)",
    ]


def test_a_line_of_a_single_row_is_a_point_that_can_be_seen() -> None:
    table = pl.DataFrame(
        {"grouping": ["all", "source"], "by:source": [None, "a"], "x": [0.1, 0.2], "x_lower": [0.0, 0.1]}
    )
    line = Series("x", "X", "estimate")
    limited = with_limits(table, line)
    assert (limited.mark, limited.lower) == ("point", "x_lower")
    assert intervals([limited], 0.95) == "Bars are 95% intervals."
    twice = with_limits(pl.concat([table, table]), line)
    assert twice.mark == "line"
    assert intervals([line, twice], 0.995) == "Bands are 99.5% intervals."


@pytest.mark.parametrize(
    ("values", "text"),
    [
        (["a", None], "a, null"),
        ([""], '""'),
        (["", "p"], '"", p'),
        (["null"], '"null"'),
        (["all"], '"all"'),
        (["all", "p"], "all, p"),
        (["a\nb\x1b[2J"], "a\\u000ab\\u001b[2J"),
        ([True, 3], "True, 3"),
    ],
)
def test_values_of_a_group_can_be_seen_and_told_apart_on_one_line(values: list[object], text: str) -> None:
    assert values_text(values) == text
