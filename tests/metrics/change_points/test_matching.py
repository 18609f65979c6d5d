"""Rules of matching points: against scipy, against the rules written out, and the traps of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pytest
from hypothesis import given
from point_series import Case, cases, one_series
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import maximum_bipartite_matching

from pipeline.metrics.change_points.matching import (
    added_any,
    added_as_ruptures,
    added_one_to_one,
    best_prediction,
    matched_truth,
)
from pipeline.metrics.change_points.windows import Margin, Points

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Rule: TypeAlias = Callable[..., NDArray[np.int64]]


def largest(near: NDArray[np.bool_]) -> int:
    """Size of the largest one-to-one matching, by augmenting paths."""
    if not near.size:
        return 0
    return int((maximum_bipartite_matching(csr_matrix(near.astype(int)), perm_type="column") >= 0).sum())


@given(cases())
def test_one_to_one_is_the_largest_matching_at_every_score(case: Case) -> None:
    added = added_one_to_one(case.truth, case.predictions, case.margin, case.score[case.order])
    assert set(added.tolist()) <= {0, 1}
    for entered, sorted_entered in case.thresholds():
        assert added[sorted_entered].sum() == largest(case.near[entered])


@given(cases())
def test_one_to_one_without_scores_has_the_same_total_and_prefers_the_nearest(case: Case) -> None:
    added = added_one_to_one(case.truth, case.predictions, case.margin)
    assert added.sum() == largest(case.near)
    near = case.near[case.order][:, case.true_order]
    distance = np.abs(case.predictions.position[:, np.newaxis] - case.truth.position)
    nearest = np.where(near, distance, np.inf).min(axis=1, initial=np.inf)
    for limit in np.unique(nearest[np.isfinite(nearest)]):
        assert added[nearest <= limit].sum() == largest(near[nearest <= limit])


@given(cases())
def test_any_counts_true_points_with_a_prediction_near(case: Case) -> None:
    added = added_any(case.truth, case.predictions, case.margin, case.score[case.order])
    for entered, sorted_entered in case.thresholds():
        assert added[sorted_entered].sum() == case.near[entered].any(axis=0).sum()
    assert added_any(case.truth, case.predictions, case.margin).sum() == case.near.any(axis=0).sum()


@given(cases())
def test_the_best_prediction_of_a_true_point(case: Case) -> None:
    score = case.score[case.order]
    near = case.near[case.order][:, case.true_order]
    for true, best in enumerate(best_prediction(case.truth, case.predictions, case.margin, score)):
        assert (best >= 0) == near[:, true].any()
        if best >= 0:
            assert best == np.flatnonzero(near[:, true] & (score == score[near[:, true]].max()))[0]


def found_by_ruptures(near: NDArray[np.bool_]) -> int:
    """The rule of ruptures written out: rows are predictions, columns true points, in the order of input."""
    used: set[int] = set()
    actual = 0
    for column in near.T:
        free = [int(row) for row in np.flatnonzero(column) if int(row) not in used]
        used.update(free)
        actual += bool(free)
    return actual


@given(cases())
def test_the_rule_of_ruptures_at_every_score(case: Case) -> None:
    order = case.true_order
    added = added_as_ruptures(case.truth, case.predictions, case.margin, case.score[case.order], truth_order=order)
    for entered, sorted_entered in case.thresholds():
        assert added[sorted_entered].sum() == found_by_ruptures(case.near[entered])
    unscored = added_as_ruptures(case.truth, case.predictions, case.margin, truth_order=order)
    assert unscored.sum() == found_by_ruptures(case.near)


@given(cases())
def test_matched_pairs_are_one_to_one_and_near(case: Case) -> None:
    truth, predictions = case.truth, case.predictions
    added = added_one_to_one(truth, predictions, case.margin, case.score[case.order])
    matched = matched_truth(truth, predictions, case.margin, added)
    assert ((matched >= 0) == (added == 1)).all()
    pairs = np.flatnonzero(matched >= 0)
    assert (np.diff(matched[pairs]) > 0).all()
    assert case.near[case.order][:, case.true_order][pairs, matched[pairs]].all()


@given(cases())
def test_no_true_point_between_two_pairs_is_nearer_to_the_first(case: Case) -> None:
    truth, predictions = case.truth, case.predictions
    added = added_one_to_one(truth, predictions, case.margin)
    matched = matched_truth(truth, predictions, case.margin, added)
    near = case.near[case.order][:, case.true_order]
    pairs = np.flatnonzero(matched >= 0)
    for number, prediction in enumerate(pairs):
        following = matched[pairs[number + 1]] if number + 1 < len(pairs) else len(truth.position)
        distance = np.abs(predictions.position[prediction] - truth.position)
        between = [n for n in range(matched[prediction] + 1, following) if near[prediction, n]]
        assert all(distance[true] >= distance[matched[prediction]] for true in between)


def delays(true: list[int], predicted: list[int], margin: float) -> list[int]:
    truth, predictions, within = one_series(true), one_series(predicted), Margin(margin, margin, closed=True)
    matched = matched_truth(truth, predictions, within, added_one_to_one(truth, predictions, within))
    actual = matched >= 0
    return [int(delay) for delay in predictions.position[actual] - truth.position[matched[actual]]]


def test_delays_are_those_to_the_nearest_true_point_where_there_is_a_choice() -> None:
    assert delays([0, 10], [9], 10) == [-1]
    assert delays([10], [5, 10], 5) == [0]
    assert delays([0, 10], [9, 11], 10) == [9, 1]
    assert delays([100, 200, 300, 400, 500], [105, 230, 310, 350, 405, 490], 20) == [5, 10, 5, -10]


RULES: list[Rule] = [added_one_to_one, added_any, added_as_ruptures]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("closed", [True, False])
def test_the_usage_example_of_roerich(rule: Rule, closed: bool) -> None:  # noqa: FBT001 - a parameter
    truth, predictions = one_series([100, 200, 300, 400, 500]), one_series([105, 230, 310, 350, 405, 490])
    score = np.array([1.0, 2.0, 3.0, 0.1, 5.0, 6.0])
    margin = Margin(20, 20, closed=closed)
    added = rule(truth, predictions, margin, score)
    actual = [int(added[score >= threshold].sum()) for threshold in (0.1, 1, 2, 3, 5, 6)]
    assert actual == [4, 4, 3, 3, 2, 1]
    assert rule(truth, predictions, margin).sum() == 4


def test_one_prediction_may_serve_two_true_points_under_any_only() -> None:
    truth, predictions, margin = one_series([100, 110]), one_series([105]), Margin(20, 20, closed=False)
    assert [int(rule(truth, predictions, margin).sum()) for rule in RULES] == [1, 2, 1]


def test_ruptures_loses_matches() -> None:
    truth, predictions, margin = one_series([4, 11, 18]), one_series([7, 8, 14]), Margin(6, 6, closed=False)
    assert [int(rule(truth, predictions, margin).sum()) for rule in RULES] == [3, 3, 2]


def test_the_boundary_of_the_margin() -> None:
    truth, predictions = one_series([100]), one_series([120])
    for rule in RULES:
        assert rule(truth, predictions, Margin(20, 20, closed=True)).tolist() == [1]
        assert rule(truth, predictions, Margin(20, 20, closed=False)).tolist() == [0]
        assert rule(truth, predictions, Margin(20, 19, closed=True)).tolist() == [0]
        assert rule(predictions, truth, Margin(20, 19, closed=True)).tolist() == [1]


@pytest.mark.parametrize("rule", RULES)
def test_no_true_point_or_no_prediction(rule: Rule) -> None:
    nothing, two_points, margin = one_series([]), one_series([1, 2]), Margin(5, 5, closed=True)
    assert rule(nothing, two_points, margin, np.ones(2)).tolist() == [0, 0]
    assert rule(two_points, nothing, margin, np.ones(0)).tolist() == []
    assert rule(nothing, nothing, margin).tolist() == []
    assert matched_truth(nothing, two_points, margin, np.zeros(2, dtype=np.int64)).tolist() == [-1, -1]


@pytest.mark.parametrize("rule", RULES)
def test_series_do_not_mix(rule: Rule) -> None:
    truth = Points(np.array([-3, 0, 7]), np.array([10, 10, 10]))
    predictions = Points(np.array([-4, -3, 0, 2, 7, 8]), np.array([10, 11, 30, 10, 9, 10]))
    assert rule(truth, predictions, Margin(5, 5, closed=True)).tolist() == [0, 1, 0, 0, 1, 0]
