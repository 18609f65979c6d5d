"""Greedy rules of roerich and TCPDBench against the rules written out, at every score and in every order of input."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pytest
from hypothesis import given
from point_series import Case, cases, one_series

from pipeline.metrics.change_points import matching
from pipeline.metrics.change_points.matching import (
    added_any,
    added_as_roerich,
    added_as_ruptures,
    added_nearest,
    added_one_to_one,
)
from pipeline.metrics.change_points.windows import Margin

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Rule: TypeAlias = Callable[..., NDArray[np.int64]]


def found_by_roerich(case: Case, entered: NDArray[np.bool_]) -> int:
    """The loops of roerich's precision_recall_scores, per series."""
    near, position = case.near[entered], case.position[entered]
    series = case.series[entered]
    used: set[tuple[int, Any]] = set()
    actual = 0
    for true in range(near.shape[1]):
        for row in np.flatnonzero(near[:, true]):
            value = (int(series[row]), position[row])
            if value not in used:
                used.add(value)
                actual += 1
                break
    return actual


def found_by_tcpdbench(case: Case, entered: NDArray[np.bool_]) -> int:
    """The loops of TCPDBench's true_positives, true points ascending, per series."""
    near, position = case.near[entered], case.position[entered]
    free = set(range(len(position)))
    actual = 0
    for true in case.true_order:
        close = [(abs(case.true_position[true] - position[row]), position[row], row) for row in free if near[row, true]]
        if close:
            free.remove(min(close)[2])
            actual += 1
    return actual


def assert_as_roerich(case: Case) -> None:
    orders: dict[str, Any] = {"truth_order": case.true_order, "prediction_order": case.order}
    added = added_as_roerich(case.truth, case.predictions, case.margin, case.score[case.order], **orders)
    for entered, sorted_entered in case.thresholds():
        assert added[sorted_entered].sum() == found_by_roerich(case, entered)
    everything = np.ones(len(case.series), dtype=np.bool_)
    unscored = added_as_roerich(case.truth, case.predictions, case.margin, **orders)
    assert unscored.sum() == found_by_roerich(case, everything)


@given(cases())
def test_the_rule_of_roerich_in_any_order_of_input(case: Case) -> None:
    assert_as_roerich(case)


@given(cases(sorted_input=True))
def test_the_rule_of_roerich_in_ascending_order(case: Case) -> None:
    assert_as_roerich(case)
    default = added_as_roerich(case.truth, case.predictions, case.margin, case.score[case.order])
    for entered, sorted_entered in case.thresholds():
        assert default[sorted_entered].sum() == found_by_roerich(case, entered)


@given(cases())
def test_the_rule_of_tcpdbench(case: Case) -> None:
    added = added_nearest(case.truth, case.predictions, case.margin, case.score[case.order])
    for entered, sorted_entered in case.thresholds():
        assert added[sorted_entered].sum() == found_by_tcpdbench(case, entered)
    everything = np.ones(len(case.series), dtype=np.bool_)
    assert added_nearest(case.truth, case.predictions, case.margin).sum() == found_by_tcpdbench(case, everything)


def roerich(true: list[int], predicted: list[int], margin: float, score: list[float] | None = None) -> list[int]:
    true_order, order = np.argsort(true, kind="stable"), np.argsort(predicted, kind="stable")
    added = added_as_roerich(
        one_series(true),
        one_series(predicted),
        Margin(margin, margin, closed=True),
        None if score is None else np.array(score)[order],
        truth_order=true_order,
        prediction_order=order,
    )
    return [int(value) for value in added[np.argsort(order)]]


def test_unsorted_input_loses_matches() -> None:
    assert sum(roerich([17, 9, 7], [14, 18], 6)) == 1
    assert sum(roerich([7, 9, 17], [14, 18], 6)) == 2


def test_a_position_matches_once() -> None:
    assert sum(roerich([100, 104], [102, 102], 10)) == 1


def test_a_repeated_position_can_lose_a_match() -> None:
    assert sum(roerich([0, 2], [0, 1], 1)) == 2
    assert sum(roerich([0, 2], [1, 0, 1], 1)) == 1
    assert roerich([0, 2], [1, 0, 1], 1, [1.0, 2.0, 2.0])[0] == -1


@given(cases())
def test_the_nearest_never_loses_a_match(case: Case) -> None:
    added = added_nearest(case.truth, case.predictions, case.margin, case.score[case.order])
    assert set(added.tolist()) <= {0, 1}


def test_the_usage_example() -> None:
    score = [1.0, 2.0, 3.0, 0.1, 5.0, 6.0]
    added = roerich([100, 200, 300, 400, 500], [105, 230, 310, 350, 405, 490], 20, score)
    assert added == [1, 0, 1, 0, 1, 1]


def test_the_nearest_can_leave_another_true_point_without_one() -> None:
    margin = Margin(4, 4, closed=True)
    assert added_nearest(one_series([10, 13]), one_series([6, 11]), margin).sum() == 1
    assert added_as_roerich(one_series([10, 13]), one_series([6, 11]), margin).sum() == 2


def test_batches_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    truth, predictions = one_series(rng.integers(0, 900, 60).tolist()), one_series(rng.integers(0, 900, 80).tolist())
    score, margin = rng.random(80), Margin(9, 9, closed=True)
    at_once = added_nearest(truth, predictions, margin, score)
    monkeypatch.setattr(matching, "_CELLS_AT_A_TIME", 5)
    assert (added_nearest(truth, predictions, margin, score) == at_once).all()


@pytest.mark.parametrize("score", [[1.0], [1.0, float("nan")], [1.0, float("inf")]])
@pytest.mark.parametrize("rule", [added_one_to_one, added_any, added_as_ruptures, added_as_roerich, added_nearest])
def test_every_prediction_has_a_finite_score(rule: Rule, score: list[float]) -> None:
    with pytest.raises(ValueError, match="one finite number for each"):
        rule(one_series([1]), one_series([1, 2]), Margin(5, 5, closed=True), np.array(score))


def test_no_true_point_or_no_prediction() -> None:
    nothing, two_points, margin = one_series([]), one_series([1, 2]), Margin(5, 5, closed=True)
    for rule in (added_as_roerich, added_nearest):
        assert rule(nothing, two_points, margin, np.ones(2)).tolist() == [0, 0]
        assert rule(two_points, nothing, margin, np.ones(0)).tolist() == []
