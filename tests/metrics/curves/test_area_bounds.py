"""Bounds of areas from counts per cell: against every order inside the cells, and random scores in random cells."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from reference_areas import average_precision, roc_auc, value

from pipeline.metrics.curves.trapezoidal_area import Bounds, average_precision_bounds, roc_auc_bounds

Floats = NDArray[np.float64]
SLACK = 1e-13


def bounds_of(scores: Floats, labels: NDArray[np.bool_], weights: Floats | None, edges: Floats) -> dict[str, Bounds]:
    """The bounds from the counts in the cells between edges."""
    cell = np.unique(np.searchsorted(edges, scores, side="right"), return_inverse=True)[1]
    row_weights = np.ones(len(scores)) if weights is None else weights
    positive, negative = (
        np.bincount(cell, weights=row_weights * each).astype(np.float64) for each in (labels, ~labels)
    )
    single = np.array([len(np.unique(scores[cell == each])) == 1 for each in range(len(positive))])
    first = np.full(len(positive), 1.0 if weights is None else 0.0)
    return {
        "average_precision": average_precision_bounds(positive, negative, single, first),
        "roc_auc": roc_auc_bounds(positive, negative, single),
    }


def areas_of(scores: Floats, labels: NDArray[np.bool_], weights: Floats | None) -> dict[str, float]:
    row_weights = np.ones(len(scores)) if weights is None else weights
    return {
        "average_precision": value(average_precision, scores, labels, row_weights),
        "roc_auc": value(roc_auc, scores, labels, row_weights),
    }


@given(
    st.lists(st.tuples(st.integers(0, 30), st.booleans(), st.sampled_from([0.25, 1.0, 7.0])), min_size=2, max_size=30),
    st.lists(st.integers(0, 30), max_size=8),
    st.booleans(),
)
def test_the_bounds_hold_the_area_of_any_rows_in_any_cells(
    rows: list[tuple[int, bool, float]],
    edges: list[int],
    weighted: bool,  # noqa: FBT001
) -> None:
    scores, labels = np.array([row[0] for row in rows], dtype=float), np.array([row[1] for row in rows])
    if labels.all() or not labels.any():
        return
    weights = np.array([row[2] for row in rows]) if weighted else None
    actual = bounds_of(scores, labels, weights, np.array(sorted(edges), dtype=float))
    for name, area in areas_of(scores, labels, weights).items():
        assert actual[name].lowest <= area <= actual[name].highest, name
        assert actual[name].lowest >= 0
        assert actual[name].highest <= 1


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_many_rows_lie_within_bounds_that_narrow_as_cells_do(seed: int, weighted: bool) -> None:  # noqa: FBT001
    rng = np.random.default_rng(seed)
    labels = rng.uniform(size=900) < 0.2
    scores = np.round(rng.normal(labels * 1.5, 1.0), 3)
    weights = rng.uniform(0.1, 3, 900) if weighted else None
    exact = areas_of(scores, labels, weights)
    widths = []
    for cells in (1, 4, 16, 64, 256, 20_000):
        actual = bounds_of(scores, labels, weights, np.linspace(scores.min(), scores.max(), cells + 1)[1:-1])
        for name, area in exact.items():
            assert actual[name].lowest <= area <= actual[name].highest
        widths.append([actual[name].highest - actual[name].lowest for name in sorted(exact)])
    for wide, narrow in itertools.pairwise(widths):
        assert narrow[0] < wide[0]
        assert narrow[1] < wide[1]
    assert max(widths[-1]) < 1e-2


@pytest.mark.parametrize("cells", [[(1, 1)], [(2, 1), (1, 2)], [(2, 2), (0, 1), (1, 1)], [(1, 3), (2, 0)]])
def test_small_cells_have_the_bounds_of_every_order_with_and_without_ties(cells: list[tuple[int, int]]) -> None:
    """Up to two positives in a cell the lower bound is reached as well; single scores are not known to be single."""
    actual: dict[str, list[float]] = {"average_precision": [], "roc_auc": []}
    orders = [
        sorted(set(itertools.product(range(sum(cell)), repeat=sum(cell)))) if sum(cell) else [()] for cell in cells
    ]
    labels = np.array([place < cell[0] for cell in cells for place in range(sum(cell))])
    for ranks in itertools.product(*orders):
        scores = np.array([100.0 * number + rank for number, cell in enumerate(ranks) for rank in cell])
        for name, area in areas_of(scores, labels, None).items():
            actual[name].append(area)
    positive, negative = (np.array([float(cell[side]) for cell in cells]) for side in (0, 1))
    single, first = np.zeros(len(cells), dtype=bool), np.ones(len(cells))
    bounds = {
        "average_precision": average_precision_bounds(positive, negative, single, first),
        "roc_auc": roc_auc_bounds(positive, negative, single),
    }
    for name, areas in actual.items():
        assert bounds[name].lowest == pytest.approx(min(areas), abs=SLACK)
        assert bounds[name].highest == pytest.approx(max(areas), abs=SLACK)


def test_the_lower_bound_of_many_positives_in_a_cell_is_near_the_lowest_order() -> None:
    """Positives one by one below all negatives; the chord of the bound lies below their sum."""
    bounds = average_precision_bounds(np.array([10.0]), np.array([5.0]), np.zeros(1, dtype=bool), np.ones(1))
    lowest = np.mean([rank / (5 + rank) for rank in range(1, 11)])
    assert lowest - 0.15 < bounds.lowest < lowest
    assert bounds.highest == 1


def test_cells_of_one_score_leave_nothing_open() -> None:
    rng = np.random.default_rng(8)
    labels = rng.uniform(size=300) < 0.3
    scores = rng.integers(0, 12, 300).astype(float)
    actual = bounds_of(scores, labels, None, np.arange(13.0))
    for name, area in areas_of(scores, labels, None).items():
        assert actual[name].highest - actual[name].lowest < 1e-13
        assert (actual[name].lowest + actual[name].highest) / 2 == pytest.approx(area, abs=1e-14)
        assert (actual[name].open == 0).all()


def test_what_each_cell_leaves_open_is_the_width_of_the_bounds() -> None:
    rng = np.random.default_rng(9)
    labels = rng.uniform(size=300) < 0.3
    actual = bounds_of(rng.uniform(size=300), labels, None, np.linspace(0, 1, 9))
    for bounds in actual.values():
        assert bounds.open.shape == (8,)
        assert (bounds.open >= 0).all()
        assert bounds.open.sum() == pytest.approx(bounds.highest - bounds.lowest, abs=1e-12)


def test_cells_of_one_class_leave_the_roc_area_known() -> None:
    bounds = roc_auc_bounds(np.array([0.0, 3.0, 0.0, 2.0]), np.array([4.0, 0.0, 1.0, 0.0]), np.zeros(4, dtype=bool))
    assert bounds.lowest == pytest.approx((3 * 4 + 2 * 5) / 25, abs=SLACK)
    assert bounds.highest == pytest.approx(bounds.lowest, abs=1e-12)
