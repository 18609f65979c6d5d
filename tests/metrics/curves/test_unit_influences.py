"""Influences as steps: against the derivatives of areas written out, against the curves of groups, and brute force."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_areas import average_precision, pr_auc_at, roc_auc, shifts, slope

from pipeline.metrics.curves.influence import (
    Influences,
    Steps,
    influences_of_thresholds,
    influences_of_ties,
    steps_of_scores,
)
from pipeline.metrics.curves.trapezoidal_area import Retrieved, replicate_shifts

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from reference_areas import Area

    Floats = NDArray[np.float64]
    Rows = tuple[Floats, NDArray[np.bool_], Floats, NDArray[np.int64]]


def rows(seed: int, groups: int = 3, number: int = 60) -> Rows:
    """Scores with ties, labels and weights of which some are 0, and the groups of rows."""
    rng = np.random.default_rng(seed)
    group = np.sort(rng.integers(0, groups, number))
    labels = rng.random(number) < 0.4
    for number_of_group in range(groups):
        labels[np.flatnonzero(group == number_of_group)[:4]] = [True, True, False, False]
    scores = np.round(rng.normal(labels * 1.0), 1)
    return scores, labels, rng.choice([0.0, 0.5, 1.0, 3.0], number) + 0.25 * labels, group


def ties(data: Rows) -> tuple[Steps, NDArray[np.int64]]:
    """The ties of all groups, and that of every row."""
    scores, labels, weights, group = data
    levels, tie = np.unique(np.column_stack([group, scores]), axis=0, return_inverse=True)
    sides = (np.bincount(tie.ravel(), weights * side, len(levels)) for side in (labels, ~labels))
    positive, negative = (np.asarray(side, dtype=np.float64) for side in sides)
    return Steps.of_ties(levels[:, 0].astype(np.int64), positive, negative, int(group.max()) + 1), tie.ravel()


def thresholds_of(data: Rows, grid: Floats, *, at_or_above: bool) -> tuple[Steps, NDArray[np.int64]]:
    """What every threshold of the grid retrieves of every group, and the highest that retrieves each row."""
    scores, labels, weights, group = data
    number = int(group.max()) + 1
    retrieved = scores >= grid[:, None] if at_or_above else scores > grid[:, None]
    sums = [
        [[(weights * (group == each) * in_class * mask).sum() for mask in retrieved] for each in range(number)]
        for in_class in (labels, ~labels)
    ]
    totals = (np.bincount(group, weights * in_class, number) for in_class in (labels, ~labels))
    of_grid = np.repeat(np.arange(number), len(grid))
    steps = steps_of_scores((of_grid, group), np.tile(grid, number), scores, at_or_above=at_or_above)
    return Steps(of_grid, *(np.ravel(side) for side in sums), *totals), steps


def shifts_of_rows(data: Rows, influences: Influences, steps: NDArray[np.int64], group: int) -> Floats:
    """By how much every row of a group moves the area if its weight grows, from its influence; the share fixed."""
    _, labels, weights, groups = data
    shift = np.zeros(len(labels))
    for in_class, psi in ((labels, influences.positive), (~labels, influences.negative)):
        chosen = in_class & (groups == group)
        values = np.append(psi, 0.0)[steps[chosen]]
        mean = np.average(values, weights=weights[chosen])
        shift[chosen] = weights[chosen] * (values - mean) / weights[chosen].sum()
    return np.asarray(shift[groups == group])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("area", "definition"), [("average_precision", average_precision), ("roc_auc", roc_auc)])
def test_influences_of_ties_are_derivatives_of_the_area(seed: int, area: str, definition: Area) -> None:
    data = rows(seed)
    steps, tie = ties(data)
    influences = influences_of_ties(steps)[area]
    for group in range(3):
        chosen = data[3] == group
        scores, labels, weights = (values[chosen] for values in data[:3])
        expected = shifts(definition, scores, labels, weights, random_sizes=False)
        np.testing.assert_allclose(shifts_of_rows(data, influences, tie, group), expected, atol=1e-12)
        assert influences.slope[group] == pytest.approx(slope(definition, scores, labels, weights), abs=1e-12)


@pytest.mark.parametrize("at_or_above", [True, False])
@pytest.mark.parametrize("grid", [[-0.5, 0.0, 0.7, 1.5, 9.0], [0.3], [8.0, 9.0]])
def test_influences_of_thresholds_are_derivatives_of_the_area(grid: list[float], at_or_above: bool) -> None:  # noqa: FBT001
    data = rows(5)
    steps, of_rows = thresholds_of(data, np.array(grid), at_or_above=at_or_above)
    influences = influences_of_thresholds(steps)
    definition = pr_auc_at(grid, ">=" if at_or_above else ">")
    for group in range(3):
        chosen = data[3] == group
        scores, labels, weights = (values[chosen] for values in data[:3])
        expected = shifts(definition, scores, labels, weights, random_sizes=False)
        np.testing.assert_allclose(shifts_of_rows(data, influences, of_rows, group), expected, atol=1e-12)
        assert influences.slope[group] == pytest.approx(slope(definition, scores, labels, weights), abs=1e-12)


def test_influences_of_thresholds_are_those_of_the_errors() -> None:
    """Summed over the rows of a cluster they shift the area as `trapezoidal_area` says."""
    scores, labels, weights, _ = rows(9, groups=1)
    data: Rows = (scores, labels, weights, np.zeros(len(scores), dtype=np.int64))
    grid, clusters = np.unique(scores), np.arange(len(scores)) % 7
    steps, of_rows = thresholds_of(data, grid, at_or_above=True)
    influences = influences_of_thresholds(steps)
    of_clusters = [
        [[(weights * (clusters == each) * in_class * (scores >= t)).sum() for t in grid[::-1]] for each in range(7)]
        for in_class in (labels, ~labels)
    ]
    sizes = ([(weights * (clusters == each) * in_class).sum() for each in range(7)] for in_class in (labels, ~labels))
    (expected,) = replicate_shifts(Retrieved(*map(np.array, of_clusters), *map(np.array, sizes)))
    moved = shifts_of_rows(data, influences, of_rows, 0)
    share = weights[labels].sum(), weights[~labels].sum()
    moved = moved + influences.slope[0] * np.where(labels, weights / share[0], -weights / share[1])
    actual = [
        sum(moved[mask].sum() / (1 - weights[mask].sum() / weights[side].sum()) for mask, side in _classes(labels, own))
        for own in (clusters == each for each in range(7))
    ]
    np.testing.assert_allclose(actual, expected.values, atol=1e-12)


def _classes(labels: NDArray[np.bool_], inside: NDArray[np.bool_]) -> list[tuple[NDArray[np.bool_], NDArray[np.bool_]]]:
    return [(inside & side, side) for side in (labels, ~labels)]


def test_a_group_without_a_class_leaves_the_others_as_they_are() -> None:
    data = rows(7)
    alone = [ties(data)[0], thresholds_of(data, np.array([-0.5, 0.4]), at_or_above=True)[0]]
    scores, labels, weights, group = data
    for value in (True, False):
        further = np.append(labels, [value, value])
        both = (np.append(scores, [0.2, 0.9]), further, np.append(weights, [1.0, 2.0]), np.append(group, [3, 3]))
        steps = [ties(both)[0], thresholds_of(both, np.array([-0.5, 0.4]), at_or_above=True)[0]]
        of_ties = influences_of_ties(steps[0]) | {"pr_auc": influences_of_thresholds(steps[1])}
        expected = influences_of_ties(alone[0]) | {"pr_auc": influences_of_thresholds(alone[1])}
        for area, influences in expected.items():
            size = len(influences.positive)
            np.testing.assert_allclose(of_ties[area].positive[:size], influences.positive, rtol=1e-13)
            np.testing.assert_allclose(of_ties[area].negative[:size], influences.negative, rtol=1e-13)


SCORES = st.lists(st.tuples(st.integers(0, 2), st.sampled_from([-np.inf, -1.0, 0.0, 0.5, 1.0, 2.0])), max_size=12)
GRIDS = st.lists(st.lists(st.sampled_from([-1.0, 0.0, 0.5, 2.0]), unique=True, max_size=4), min_size=3, max_size=3)


@settings(max_examples=60)
@given(SCORES, GRIDS, st.booleans())
def test_the_step_of_a_score_is_the_highest_threshold_that_retrieves_it(
    scores: list[tuple[int, float]],
    grids: list[list[float]],
    at_or_above: bool,  # noqa: FBT001
) -> None:
    of_grid = [(group, value) for group, grid in enumerate(grids) for value in sorted(grid)]
    expected = []
    for group, score in scores:
        retrieving = [
            index
            for index, (owner, value) in enumerate(of_grid)
            if owner == group and (score > value or (at_or_above and score == value))
        ]
        expected.append(max(retrieving, default=-1))
    groups = [np.array([group for group, _ in pairs], dtype=np.int64) for pairs in (of_grid, scores)]
    values = [np.array([value for _, value in pairs]) for pairs in (of_grid, scores)]
    steps = steps_of_scores((groups[0], groups[1]), values[0], values[1], at_or_above=at_or_above)
    assert steps.tolist() == expected
