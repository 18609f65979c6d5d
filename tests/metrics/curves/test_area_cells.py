"""Cells of several groups: their bounds hold the exact areas, and tell where more cells are needed."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, roc_auc_score

from pipeline.metrics.curves.ordered_areas import Rows
from pipeline.metrics.curves.trapezoidal_area import AreaCells, Extremes

scored = st.lists(st.tuples(st.integers(0, 12), st.booleans()), min_size=1, max_size=40)


def cells_of(groups: list[list[tuple[int, bool]]], width: int) -> AreaCells:
    """Scores in cells of so many neighbouring scores, group after group."""
    rows: list[tuple[float, ...]] = []
    for group, items in enumerate(groups):
        for cell in sorted({score // width for score, _ in items}):
            inside = [(score, label) for score, label in items if score // width == cell]
            positive = sum(label for _, label in inside)
            scores = [score for score, _ in inside]
            rows.append((group, cell, positive, len(inside) - positive, min(scores), max(scores)))
    group, cell, positive, negative, lowest, highest = np.array(rows, dtype=np.float64).T
    return AreaCells(Rows(group.astype(np.int64), cell, positive, negative), Extremes(lowest, highest))


def areas_of(items: list[tuple[int, bool]]) -> dict[str, float]:
    scores, labels = [score for score, _ in items], [label for _, label in items]
    both = len(set(labels)) > 1
    return {
        "average_precision": average_precision_score(labels, scores) if any(labels) else math.nan,
        "roc_auc": roc_auc_score(labels, scores) if both else math.nan,
    }


@pytest.mark.wide
@given(st.lists(scored, min_size=1, max_size=4), st.integers(1, 5))
def test_bounds_of_every_group_hold_what_scikit_learn_finds(groups: list[list[tuple[int, bool]]], width: int) -> None:
    cells = cells_of(groups, width)
    for variant in (cells, AreaCells(cells.rows, None)):
        bounds = variant.bounds(len(groups), weighted=False)
        for number, items in enumerate(groups):
            for area, value in areas_of(items).items():
                if math.isnan(value):
                    continue
                actual = bounds[area][number]
                assert actual.lowest <= value + 1e-12
                assert actual.highest >= value - 1e-12
                if variant is cells and width == 1:
                    assert actual.highest - actual.lowest == pytest.approx(0, abs=1e-12)


def test_a_group_without_cells_has_no_bounds_and_takes_none_from_others() -> None:
    cells = cells_of([[(1, True), (2, False)], [], [(3, True), (1, False)]], 1)
    actual = cells.bounds(3, weighted=False)["roc_auc"]
    assert actual[0].highest == pytest.approx(0, abs=1e-12)
    assert len(actual[1].open) == 0
    assert actual[2].lowest == pytest.approx(1, abs=1e-12)


def test_open_cells_stand_in_order_of_score_over_all_groups() -> None:
    cells = cells_of([[(5, True), (6, False), (9, True)], [(4, True), (5, False), (7, False)]], 2)
    bounds = cells.bounds(2, weighted=False)
    assert cells.extremes is not None
    opened = cells.open(bounds, cells.extremes)
    assert opened.lowest.tolist() == [4, 5, 6, 7, 9]
    assert opened.highest == 9
    left = dict(zip(opened.lowest.tolist(), opened.left.tolist(), strict=True))
    assert left[4] > 0  # a positive at 4 and a negative at 5 in one cell
    assert left[5] == left[9] == 0
