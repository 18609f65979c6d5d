"""Grids of cells that are fine where bounds are wide: their pieces, their sizes, and how fast they narrow bounds."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from pipeline.metrics.curves.trapezoidal_area import (
    PIECES,
    CellGrid,
    OpenCells,
    average_precision_bounds,
    finer,
    rounded_outwards,
)

Floats = NDArray[np.float64]


def cells_of(grid: CellGrid, scores: Floats) -> NDArray[np.int64]:
    """Cell of each score, as `piecewise_cells` says in SQL."""
    edges, sizes = np.array(grid.edges), np.array(grid.sizes)
    piece = np.clip(np.searchsorted(edges, scores, side="right") - 1, 0, len(sizes) - 1)
    start = np.concatenate([[0], np.cumsum(sizes + 2)])[piece]
    low, high = edges[piece], edges[piece + 1]
    inside = np.floor((scores - low) * (sizes[piece] / (high - low))) + 1
    return (start + np.where(scores < low, 0, np.where(scores >= high, sizes[piece] + 1, inside))).astype(np.int64)


@given(
    st.lists(
        st.tuples(st.floats(-1e300, 1e300), st.floats(0, 1)),
        min_size=1,
        max_size=60,
        unique_by=lambda cell: cell[0],
    ),
    st.integers(1, 5000),
)
def test_any_open_cells_give_rising_edges_and_at_least_a_cell_for_each_piece(
    cells: list[tuple[float, float]], count: int
) -> None:
    cells = sorted(cells)
    lowest, left = (np.array([cell[side] for cell in cells]) for side in (0, 1))
    grid = finer(OpenCells(lowest, float(lowest[-1]), left), count)
    assert len(grid.edges) == len(grid.sizes) + 1 >= 2
    assert all(low < high for low, high in itertools.pairwise(grid.edges))
    assert all(size >= 1 for size in grid.sizes)
    assert np.isfinite(grid.edges[:-1]).all()
    assert sum(grid.sizes) <= count + len(grid.sizes)
    assert len(grid.sizes) <= 4 * 3 * PIECES
    assert grid.edges[0] == pytest.approx(lowest[0])


def test_a_piece_that_leaves_all_open_gets_nearly_all_cells() -> None:
    lowest = np.linspace(0, 0.9, 10)
    left = np.where(np.arange(10) == 4, 1.0, 0.0)
    grid = finer(OpenCells(lowest, 1.0, left), 1000)
    inside = [
        size
        for size, (low, high) in zip(grid.sizes, itertools.pairwise(grid.edges), strict=True)
        if low >= lowest[4] - 1e-9 and high <= lowest[5] + 1e-9
    ]
    assert sum(inside) >= 950


def test_sizes_go_with_the_root_of_what_is_left_open() -> None:
    lowest = np.array([1.0, 1.25, 1.5])
    grid = finer(OpenCells(lowest, np.nextafter(1.75, 0), np.array([9.0, 1.0, 4.0])), 6000)
    sizes = np.array(
        [
            sum(
                size
                for size, (low, high) in zip(grid.sizes, itertools.pairwise(grid.edges), strict=True)
                if start - 1e-12 <= low and high <= start + 0.25 + 1e-12
            )
            for start in lowest
        ]
    )
    assert sizes == pytest.approx([3000, 1000, 2000], abs=len(grid.sizes))


def test_nothing_open_is_cut_evenly_and_one_score_has_one_piece() -> None:
    even = finer(OpenCells(np.linspace(1, 1.9, 10), 1.95, np.zeros(10)), 1000)
    assert max(even.sizes) <= 6 * 1000 / PIECES
    one = finer(OpenCells(np.array([0.5]), 0.5, np.ones(1)), 1000)
    assert one.edges[0] == 0.5
    assert one.edges[-1] == np.nextafter(0.5, 1)


@pytest.mark.parametrize(
    "name",
    [
        "near 0",
        "both signs",
        "many binades",
    ],
)
def test_a_few_rounds_narrow_bounds_of_skewed_scores(name: str) -> None:
    rng = np.random.default_rng(3)
    scores = {
        "near 0": rng.uniform(size=4000) ** 12,
        "both signs": rng.normal(size=4000) ** 5,
        "many binades": np.exp(rng.uniform(-500, 500, 4000)),
    }[name]
    labels = rng.uniform(size=4000) < (np.argsort(np.argsort(scores)) / 4000) ** 2
    grid = CellGrid((float(scores.min()), float(scores.max())), (128,))
    widths = []
    for _ in range(4):
        cell = np.unique(cells_of(grid, scores), return_inverse=True)[1]
        rank = np.lexsort((scores, cell))
        assert (np.diff(scores[rank]) >= 0).all()
        positive, negative = (np.bincount(cell, weights=each).astype(np.float64) for each in (labels, ~labels))
        lowest, highest = np.full(len(positive), np.inf), np.full(len(positive), -np.inf)
        np.minimum.at(lowest, cell, scores)
        np.maximum.at(highest, cell, scores)
        bounds = average_precision_bounds(positive, negative, lowest == highest, np.ones(len(positive)))
        widths.append(bounds.highest - bounds.lowest)
        grid = finer(OpenCells(lowest, float(scores.max()), bounds.open), 1024)
    assert widths[-1] < 0.02
    assert widths[-1] <= widths[0]


@given(*[st.floats(allow_nan=False, allow_infinity=False)] * 2)
def test_round_ends_hold_the_interval_and_add_at_most_a_quarter(one_end: float, other_end: float) -> None:
    low, high = sorted((one_end, other_end))
    wider = rounded_outwards(low, high)
    assert wider[0] <= low <= high <= wider[1]
    assert wider[1] - wider[0] <= 1.25 * (high - low) or (low, high) == wider


def test_a_few_more_scores_leave_round_ends_alone() -> None:
    assert rounded_outwards(0.0013, 0.9991) == rounded_outwards(0.0002, 0.99987) == (0.0, 1.0)
    assert rounded_outwards(-3.7, 41.2) == (-4.0, 44.0)
    assert rounded_outwards(0.5, 0.5) == (0.5, 0.5)
    assert rounded_outwards(0.0, 5e-324) == (0.0, 5e-324)
    assert rounded_outwards(-1.7e308, 1.7e308) == (-1.7e308, 1.7e308)
    assert rounded_outwards(-8e-231, 4e94)[0] <= -8e-231
    assert rounded_outwards(-8.127705166359342e-231, 3.3374797436263564e94)[0] == -8.127705166359342e-231
