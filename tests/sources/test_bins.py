from __future__ import annotations

import math
import operator
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import duckdb
import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from running import estimates_of

from pipeline.base.dialect import column, render
from pipeline.sources.bins import BLOCK, Grid, block_of, cell_in_block, even_cells, piecewise_cells
from pipeline.stages.parameters import EvenThresholds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import sqlglot.expressions as exp

Boundary = Literal[">=", ">"]
boundaries = st.sampled_from([">=", ">"])
scales = st.sampled_from([1.0, 0.1, 1e-300, 1e300, 1e-9, 1e12, 5e-324, 3.0])
anything = st.floats(allow_nan=False, allow_infinity=False)


def distinct(values: Sequence[float]) -> tuple[float, ...]:
    """Ascending, without repetition; -0 and 0 are one value."""
    return tuple(sorted({value + 0.0 for value in values if math.isfinite(value)}))


@st.composite
def even(draw: st.DrawFn) -> tuple[float, ...]:
    scale = draw(scales)
    start, length, count = draw(st.integers(-20, 20)), draw(st.integers(1, 40)), draw(st.integers(2, 40))
    return distinct(np.linspace(start * scale, (start + length) * scale, count).tolist())


decimal_ends = st.tuples(st.decimals(-60, 60, places=2), st.decimals(-60, 60, places=2)).filter(
    lambda ends: ends[0] < ends[1]
)
decimal = st.tuples(decimal_ends, st.integers(2, 120)).map(
    lambda drawn: EvenThresholds(start=drawn[0][0], stop=drawn[0][1], count=drawn[1]).values()
)
uneven = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=12).map(distinct)
scaled = st.tuples(st.lists(st.integers(-50, 50), min_size=1, max_size=12), scales).map(
    lambda drawn: distinct([number * drawn[1] for number in drawn[0]])
)
beside = anything.map(
    lambda value: distinct([value, math.nextafter(value, math.inf), math.nextafter(value, -math.inf)])
)
single = anything.map(lambda value: distinct([value]))
spread = st.lists(anything, min_size=1, max_size=8).map(distinct)
threshold_lists = even() | decimal | uneven | scaled | beside | single


def trying_scores(thresholds: Sequence[float], more: Sequence[float]) -> list[float]:
    """Scores on every edge, just beside it, and between two edges, and some more."""
    beside_edges = [math.nextafter(edge, to) for edge in thresholds for to in (math.inf, -math.inf)]
    between = [left + (right - left) / 2 for left, right in pairwise(thresholds)]
    scores = [*thresholds, *beside_edges, *between, 0.0, -0.0, *more]
    return [score for score in scores if math.isfinite(score)]


def directly(grid: Grid, score: float) -> int:
    """Bin by comparing with every threshold."""
    return sum(score >= edge if grid.boundary == ">=" else score > edge for edge in grid.thresholds)


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(":memory:", config={"threads": 1}) as opened:
        yield opened


def in_sql(
    connection: duckdb.DuckDBPyConnection, expressions: Sequence[exp.Expr], scores: Sequence[float | None]
) -> list[tuple[Any, ...]]:
    """Values of expressions of the column `score`, in the order of the scores."""
    texts = ", ".join(render(expression) for expression in expressions)
    frame = pl.DataFrame(
        {"score": scores, "place": range(len(scores))}, schema={"score": pl.Float64, "place": pl.Int64}
    )
    connection.register("scores", frame.to_arrow())
    return connection.execute(f"SELECT {texts} FROM scores ORDER BY place").fetchall()  # noqa: S608 - made above


@given(threshold_lists, boundaries, st.lists(anything, max_size=10))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_bins_in_memory_equal_direct_comparison(
    thresholds: tuple[float, ...], boundary: Boundary, more: list[float]
) -> None:
    grid = Grid(thresholds, boundary)
    scores = trying_scores(thresholds, more)
    expected = [directly(grid, score) for score in scores]
    assert grid.bins(scores).tolist() == expected
    assert [grid.bin(score) for score in scores] == expected


@pytest.mark.wide
@given(threshold_lists, boundaries, st.lists(anything, max_size=10))
@example((0.1,), ">", [])
@example((-1e-323, 5e-324), ">=", [])
@settings(max_examples=200)
def test_comparisons_in_sql_equal_direct_comparison(
    connection: duckdb.DuckDBPyConnection, thresholds: tuple[float, ...], boundary: Boundary, more: list[float]
) -> None:
    grid = Grid(thresholds, boundary)
    scores = trying_scores(thresholds, more)
    bins = in_sql(connection, [grid.exact(column("score"))], scores)
    assert [row[0] for row in bins] == [directly(grid, score) for score in scores]


@given(threshold_lists, boundaries, st.lists(anything, max_size=10))
def test_cells_never_fall_while_scores_rise(
    connection: duckdb.DuckDBPyConnection, thresholds: tuple[float, ...], boundary: Boundary, more: list[float]
) -> None:
    grid = Grid(thresholds, boundary)
    scores = sorted(trying_scores(thresholds, more))
    cells = [row[0] for row in in_sql(connection, [grid.cell(column("score"))], scores)]
    assert None not in cells
    assert cells == sorted(cells)
    below = {cell for cell, score in zip(cells, scores, strict=True) if score < thresholds[0]}
    above = {cell for cell, score in zip(cells, scores, strict=True) if score >= thresholds[0]}
    assert len(below) <= 1
    assert not below & above


@pytest.mark.wide
@given(threshold_lists, boundaries, st.lists(anything, max_size=10))
@settings(max_examples=200)
def test_a_cell_whose_extremes_agree_holds_one_bin(
    connection: duckdb.DuckDBPyConnection, thresholds: tuple[float, ...], boundary: Boundary, more: list[float]
) -> None:
    """The certificate: cells are monotone, so the lowest and highest score in a cell decide for all in it."""
    grid = Grid(thresholds, boundary)
    scores = trying_scores(thresholds, more)
    held: dict[int, list[float]] = {}
    for (cell,), score in zip(in_sql(connection, [grid.cell(column("score"))], scores), scores, strict=True):
        held.setdefault(cell, []).append(score)
    for inside in held.values():
        if grid.bin(min(inside)) == grid.bin(max(inside)):
            assert {directly(grid, score) for score in inside} == {grid.bin(min(inside))}


def test_null_has_no_cell_and_no_bin(connection: duckdb.DuckDBPyConnection) -> None:
    for grid in (Grid((1.0,)), Grid((1.0, 2.0, 3.0)), Grid((1.0, 5.0, 7.0)), Grid((0.0, 5e-324))):
        rows = in_sql(connection, [grid.cell(column("score")), grid.exact(column("score"))], [None])
        assert rows == [(None, None)]


def test_an_even_grid_needs_no_second_look_between_its_thresholds(connection: duckdb.DuckDBPyConnection) -> None:
    grid = Grid(EvenThresholds(start=0, stop=1, count=11).values())
    scores = [0.05 + number / 10 for number in range(10)]
    cells = [row[0] for row in in_sql(connection, [grid.cell(column("score"))], scores)]
    assert cells == sorted(set(cells))


def matches_by_definition(scores: Sequence[float], thresholds: Sequence[float], boundary: Boundary) -> list[int]:
    kept = operator.ge if boundary == ">=" else operator.gt
    return [sum(kept(score, edge) for score in scores) for edge in thresholds]


def assert_counted(
    tmp_path_factory: pytest.TempPathFactory, thresholds: tuple[float, ...], boundary: Boundary, scores: list[float]
) -> None:
    after = [number % 3 != 0 for number in range(len(scores))]
    pairs = pl.DataFrame(
        {
            "event_id": [number % 4 for number in range(len(scores))],
            "score": pl.Series(scores, dtype=pl.Float64),
            "lag_hours": [1.0 if late else -1.0 for late in after],
            "half": ["x" if number % 2 else None for number in range(len(scores))],
        }
    )
    folder = tmp_path_factory.mktemp("bins")
    table = estimates_of(folder, {"pairs": pairs}, thresholds=list(thresholds), boundary=boundary, by=["half"])
    total = table.filter(pl.col("grouping") == "all").sort("threshold")
    assert total["threshold"].to_list() == list(thresholds)
    for name, late in (("m_after", True), ("m_before", False)):
        half_scores = [score for score, each in zip(scores, after, strict=True) if each == late]
        assert total[name].to_list() == matches_by_definition(half_scores, thresholds, boundary)
    for half in ("x", None):
        rows = table.filter(pl.col("grouping") == "half", pl.col("half").eq_missing(half)).sort("threshold")
        half_scores = pairs.filter(pl.col("half").eq_missing(half), pl.col("lag_hours") > 0)["score"].to_list()
        assert rows["m_after"].to_list() == matches_by_definition(half_scores, thresholds, boundary)


@pytest.mark.wide
@given(threshold_lists, boundaries, st.lists(anything, max_size=10))
@settings(max_examples=6)
def test_a_run_counts_every_match_at_every_threshold(
    tmp_path_factory: pytest.TempPathFactory, thresholds: tuple[float, ...], boundary: Boundary, more: list[float]
) -> None:
    assert_counted(tmp_path_factory, thresholds, boundary, trying_scores(thresholds, more))


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("boundary", [">=", ">"])
@pytest.mark.parametrize(
    "thresholds",
    [
        pytest.param(EvenThresholds(start=0.1, stop=60, count=200).values(), id="even"),
        pytest.param(EvenThresholds(start=0, stop=1, count=101).values(), id="hundredths"),
        pytest.param(tuple(number / 10 for number in range(1, 11)), id="tenths"),
        pytest.param((0.1, 0.1 + 1e-15, 0.1 + 1e-14, 5.0), id="crowded"),
        pytest.param((7.0,), id="single"),
        pytest.param((0.0, 5e-324, 1e-323), id="denormal"),
        pytest.param((-1e300, 0.0, 1e-300, 1e300), id="vast"),
        pytest.param(tuple(1.0 + number * 2**-52 for number in range(9)), id="neighbours"),
    ],
)
def test_a_run_counts_scores_on_and_beside_edges(
    tmp_path_factory: pytest.TempPathFactory, thresholds: tuple[float, ...], boundary: Boundary
) -> None:
    assert_counted(tmp_path_factory, thresholds, boundary, trying_scores(thresholds, [1e308, -1e308]))


@given(spread, boundaries)
@example((-1e308, 1e308), ">=")
@example((-1.5e308, 0.0, 1.5e308), ">")
@settings(max_examples=25)
def test_thresholds_may_span_more_than_a_double_can_hold(
    connection: duckdb.DuckDBPyConnection, thresholds: tuple[float, ...], boundary: Boundary
) -> None:
    grid = Grid(thresholds, boundary)
    scores = sorted(trying_scores(thresholds, [1e308, -1e308, 1.7e308]))
    cells_and_bins = in_sql(connection, [grid.cell(column("score")), grid.exact(column("score"))], scores)
    cells = [row[0] for row in cells_and_bins]
    assert cells == sorted(cells)
    assert [row[1] for row in cells_and_bins] == [directly(grid, score) for score in scores]


def test_every_distinct_score_can_be_a_threshold(tmp_path_factory: pytest.TempPathFactory) -> None:
    scores = [0.5, -0.0, 0.0, 0.5, math.nextafter(0.5, 1), 2.0]
    pairs = pl.DataFrame({"event_id": [1] * 6, "score": scores, "lag_hours": [1.0] * 6})
    folder = tmp_path_factory.mktemp("distinct")
    table = estimates_of(folder, {"pairs": pairs}, thresholds="distinct")
    expected = [0.0, 0.5, math.nextafter(0.5, 1), 2.0]
    assert table["threshold"].to_list() == expected
    assert table["m_after"].to_list() == matches_by_definition(scores, expected, ">=")


@pytest.mark.wide
@given(st.lists(anything, min_size=2, max_size=2, unique=True), st.integers(1, 300), st.lists(anything, max_size=20))
@example([0.0, 1.0], 255, [])
@example([-1.7e308, 1.7e308], 10, [])
@example([0.0, 5e-324], 1000, [])
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_even_cells_never_fall_and_end_where_they_should(
    connection: duckdb.DuckDBPyConnection, ends: list[float], count: int, more: list[float]
) -> None:
    low, high = sorted(ends)
    scores = sorted(trying_scores((low, high), more))
    cells = [row[0] for row in in_sql(connection, [even_cells(column("score"), low, high, count)], scores)]
    assert cells == sorted(cells)
    for score, cell in zip(scores, cells, strict=True):
        assert (cell == 0) == (score < low)
        assert (cell == count + 1) >= (score >= high)
    assert in_sql(connection, [even_cells(column("score"), low, high, count)], [None]) == [(None,)]


def test_even_cells_are_even(connection: duckdb.DuckDBPyConnection) -> None:
    scores = np.linspace(0.05, 9.95, 100).tolist()
    cells = [row[0] for row in in_sql(connection, [even_cells(column("score"), 0.0, 10.0, 20)], scores)]
    assert cells == [int(score * 2) + 1 for score in scores]


@st.composite
def pieces(draw: st.DrawFn) -> tuple[tuple[float, ...], list[int]]:
    edges = draw(st.lists(anything, min_size=2, max_size=9).map(distinct).filter(lambda edges: len(edges) > 1))
    return edges, [draw(st.integers(1, 1000)) for _ in edges[1:]]


@pytest.mark.wide
@given(pieces(), st.lists(anything, max_size=20))
@example(((0.0, 5e-324, 1.0, 1.0 + 2**-52), [3, 9, 1000]), [])
@example(((-1.7e308, 0.0, 1.7e308), [10, 1]), [])
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_cells_of_pieces_never_fall_and_no_cell_lies_in_two_pieces(
    connection: duckdb.DuckDBPyConnection, grid: tuple[tuple[float, ...], list[int]], more: list[float]
) -> None:
    edges, counts = grid
    scores = sorted(trying_scores(edges, more))
    cells = [row[0] for row in in_sql(connection, [piecewise_cells(column("score"), edges, counts)], scores)]
    assert cells == sorted(cells)
    assert cells[0] >= 0
    assert cells[-1] < sum(counts) + 2 * len(counts)
    starts = np.concatenate([[0], np.cumsum(np.array(counts) + 2)])
    for score, cell in zip(scores, cells, strict=True):
        piece = min(max(int(np.searchsorted(edges, score, side="right")) - 1, 0), len(counts) - 1)
        assert starts[piece] <= cell < starts[piece + 1]


ODD = [[math.nan], [math.nan, math.inf, -math.inf, None]]


@pytest.mark.parametrize("writer", ["polars", "pyarrow"])
@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("scores", [[5.0, 5.0], [0.3, 0.3], [0.2, 0.9], [-3.0, 8.0], []])
def test_no_score_that_is_nan_infinite_or_null_has_a_cell_whatever_the_statistics_say(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path, writer: str, scores: list[float], odd: list[float | None]
) -> None:
    """Statistics leave NaN out, so that comparisons alone would be answered from them."""
    path, frame = tmp_path / "scores.parquet", pl.DataFrame({"score": [*scores, *odd]}, schema={"score": pl.Float64})
    if writer == "polars":
        frame.write_parquet(path)
    else:
        pq.write_table(frame.to_arrow(), path)
    grids = [Grid((0.0, 0.5, 1.0)), Grid((0.5,)), Grid((0.0, 0.1, 0.5)), Grid((-1e308, 1e308))]
    cells = [
        *(expression(column("score")) for grid in grids for expression in (grid.cell, grid.exact)),
        piecewise_cells(column("score"), (0.0, 0.5, 1.0), (10, 300)),
        even_cells(column("score"), 0.0, 1.0, 100_000),
    ]
    columns = ", ".join(f"count({render(cell, pretty=False)})" for cell in cells)
    text = f"SELECT {columns} FROM read_parquet($file)"  # noqa: S608 - rendered trees
    assert connection.execute(text, {"file": str(path)}).fetchone() == (len(scores),) * len(cells)


@pytest.mark.parametrize("count", [1, BLOCK, BLOCK + 1, 3 * BLOCK - 1, 250_500, 5 * BLOCK])
def test_block_and_place_tell_a_cell(connection: duckdb.DuckDBPyConnection, count: int) -> None:
    cells = sorted({*range(0, count, 9_973), *range(0, count, BLOCK), count - 1})
    block, position = (
        render(each, pretty=False) for each in (block_of(column("cell"), count), cell_in_block(column("cell")))
    )
    text = f"SELECT cell, {block}, {position} FROM (SELECT unnest($cells) AS cell)"  # noqa: S608 - rendered trees
    rows = connection.execute(text, {"cells": cells}).fetchall()
    assert rows == [(cell, cell // BLOCK, cell % BLOCK) for cell in cells]


@st.composite
def spans(draw: st.DrawFn) -> tuple[float, float]:
    low, high = sorted([draw(anything), draw(anything)])
    return (low, high) if 0 < high - low < math.inf else (0.0, 1.0)


@pytest.mark.wide
@settings(max_examples=300)
@given(even() | st.lists(anything, min_size=1).map(distinct), boundaries, spans(), st.integers(2, 100))
@example((0.5,), ">", (5e-324, 1e-323), 2)
@example((-1e308, 1e308), ">=", (-1e307, 1.7e308), 2)
def test_finer_cells_keep_every_threshold_and_bin_apart(
    thresholds: tuple[float, ...], boundary: Boundary, span: tuple[float, float], bins: int
) -> None:
    grid, most = Grid(thresholds, boundary), 1000
    finer = grid.refined(span, bins, most)
    scores = np.array([end for each in (*thresholds, *(n / bins for n in range(bins + 1))) for end in around(each)])
    of_bin, of_threshold = finer.bins(scores), grid.bins(scores)
    of_probability = np.where(scores < 0, -1, np.searchsorted([n / bins for n in range(1, bins + 1)], scores))
    for number in np.unique(of_bin):
        chosen = of_bin == number
        assert len(set(of_threshold[chosen])) == len(set(of_probability[chosen])) == 1
    assert finer.fine is not None
    assert finer.fine.low <= span[0] < span[1] <= finer.fine.high
    assert finer.fine.count <= max(most, 4096, 4 * len(thresholds))


def around(score: float) -> tuple[float, float, float]:
    return math.nextafter(score, -math.inf), score, math.nextafter(score, math.inf)


@pytest.mark.parametrize(
    ("thresholds", "count"),
    [
        (EvenThresholds(start=0, stop=1, count=1000).values(), 9990 * 4),
        (EvenThresholds(start=0, stop=1, count=101).values(), 400 * 100),
        ((0.25, 0.3, 0.9), 2000 * 20),
        ((0.123,), 40 * 1000),
    ],
)
def test_thresholds_and_bins_lie_on_edges_of_cells(thresholds: tuple[float, ...], count: int) -> None:
    cells = Grid(thresholds).refined((0.0, 1.0), 10, 40_000).fine
    assert cells is not None
    assert (cells.low, cells.high, cells.count) == (0.0, 1.0, count)
    for edge in (*thresholds, 0.1, 0.7):
        assert edge * count == pytest.approx(round(edge * count), abs=1e-6)
