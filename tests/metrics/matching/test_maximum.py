"""Greedy maximum matching against augmenting paths of scipy and against all subsets."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import maximum_bipartite_matching

from pipeline.metrics import matching
from pipeline.metrics.matching import component_starts, match_greedily

if TYPE_CHECKING:
    from numpy.typing import NDArray


def largest(first: NDArray[Any], stop: NDArray[Any]) -> int:
    """Size of the largest matching, by augmenting paths."""
    counts = np.maximum(stop - first, 0)
    if not counts.sum():
        return 0
    slots = np.concatenate([np.arange(low, high) for low, high in zip(first, stop, strict=True)])
    ends = np.concatenate([[0], np.cumsum(counts)])
    graph = csr_matrix((np.ones(len(slots)), slots, ends), shape=(len(first), int(stop.max())))
    return int((maximum_bipartite_matching(graph, perm_type="column") >= 0).sum())


def assert_largest_at(thresholds: NDArray[Any], items: tuple[NDArray[Any], NDArray[Any], NDArray[Any]]) -> None:
    first, stop, score = items
    matched = match_greedily(first, stop, score)
    for threshold in thresholds:
        entered = score >= threshold
        assert matched[entered].sum() == largest(first[entered], stop[entered]), threshold


def random_items(rng: np.random.Generator, count: int, slots: int, width: int) -> tuple[NDArray[Any], ...]:
    first = np.sort(rng.integers(0, slots, count))
    stop = np.maximum.accumulate(first + rng.integers(0, width, count))
    return first, stop, rng.integers(0, count, count).astype(np.float64)


@given(
    st.lists(st.tuples(st.integers(0, 12), st.integers(-1, 5), st.integers(0, 5)), max_size=24),
    st.sampled_from([(256, 64), (1, 1), (4, 3)]),
)
def test_it_is_the_largest_matching_at_every_score(items: list[tuple[int, int, int]], widths: tuple[int, int]) -> None:
    first = np.sort(np.array([item[0] for item in items], dtype=np.int64))
    stop = np.maximum.accumulate(first + np.array([item[1] for item in items], dtype=np.int64))
    score = np.array([item[2] for item in items], dtype=np.float64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matching, "_WIDEST_SIDE_BY_SIDE", widths[0])
        patch.setattr(matching, "_FEWEST_TO_DIVIDE", widths[1])
        assert_largest_at(np.unique(score), (first, stop, score))


@pytest.mark.parametrize(("count", "slots", "width"), [(900, 700, 9), (900, 300, 40), (900, 2000, 300), (700, 5, 4)])
def test_large_components_too(count: int, slots: int, width: int) -> None:
    rng = np.random.default_rng(count + slots + width)
    first, stop, score = random_items(rng, count, slots, width)
    near = first < stop
    assert np.diff(component_starts(first[near], stop[near]), append=near.sum()).max() > matching._WIDEST_SIDE_BY_SIDE
    assert_largest_at(np.unique(score)[::17], (first, stop, score))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 9)), min_size=1, max_size=7))
@settings(max_examples=50)
def test_its_scores_sum_to_the_most_that_any_matching_has(items: list[tuple[int, int, int]]) -> None:
    first = np.sort(np.array([item[0] for item in items]))
    stop = np.maximum.accumulate(first + np.array([item[1] for item in items]))
    score = np.array([item[2] for item in items], dtype=np.float64)
    best = 0.0
    for choice in itertools.product((False, True), repeat=len(items)):
        chosen = np.array(choice)
        if largest(first[chosen], stop[chosen]) == chosen.sum():
            best = max(best, float(score[chosen].sum()))
    assert score[match_greedily(first, stop, score)].sum() == best


def test_of_equal_scores_the_earlier_item_goes_first() -> None:
    first, stop = np.array([0, 0, 0]), np.array([2, 2, 2])
    assert match_greedily(first, stop, np.array([1.0, 1.0, 1.0])).tolist() == [True, True, False]
    assert match_greedily(first, stop, np.array([1.0, 1.0, 2.0])).tolist() == [True, False, True]


def test_a_batch_holds_a_limited_number_of_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    items = random_items(rng, 400, 800, 4)
    at_once = match_greedily(*items)
    monkeypatch.setattr(matching, "_ELEMENTS_AT_A_TIME", 7)
    assert (match_greedily(*items) == at_once).all()


def test_nothing_to_match() -> None:
    nothing = np.empty(0, dtype=np.int64)
    assert match_greedily(nothing, nothing, nothing.astype(np.float64)).tolist() == []
    assert component_starts(nothing, nothing).tolist() == []
    assert match_greedily(np.array([3, 4]), np.array([3, 2]), np.ones(2)).tolist() == [False, False]
