"""Strata, allocation and the order of the sheet: against closed forms, and properties that hold for all numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.metrics.few_labels.draws import (
    allocation,
    further,
    places,
    strata_of_cells,
    worth_after_labels,
    worth_of_cells,
)


def test_probabilities_are_worth_their_deviation_and_a_third_is_alike() -> None:
    worth = worth_of_cells(np.array([0.1, 0.5]), np.array([100, 50]))
    neyman = np.array([100 * 0.3, 50 * 0.5]) / 55
    assert worth == pytest.approx(2 / 3 * neyman + np.array([100, 50]) / 450, abs=1e-12)


def test_of_other_scores_each_tenfold_of_rows_is_worth_the_same() -> None:
    worth = worth_of_cells(np.array([1.0, 2.0, 3.0]), np.array([90_000, 9_000, 900]))
    by_rank = (worth - np.array([90_000, 9_000, 900]) / 99_900 / 3) * 1.5
    assert by_rank[0] == pytest.approx(by_rank[1], rel=0.05)
    assert worth.sum() == pytest.approx(1)


def test_earlier_labels_tell_where_true_rows_are() -> None:
    before, rows = np.array([1.0, 1.0]), np.array([1_000, 1_000])
    worth = worth_after_labels(before, rows, np.array([50, 50]), np.array([0, 25]))
    assert worth.sum() == pytest.approx(1)
    # (0 + 1/4) / 51 and (25 + 1/4) / 51 are true; a third is alike, and half of all as before
    share = (np.array([0, 25]) + (1_000 * 0.5 + 0.5) / 2_001) / 51
    deviation = np.sqrt(share * (1 - share))
    assert worth == pytest.approx((2 / 3 * deviation / deviation.sum() + 1 / 6 + 1 / 2) / 2, abs=1e-12)
    assert worth_after_labels(before, rows, np.zeros(2, np.int64), np.zeros(2, np.int64)) == pytest.approx([0.5, 0.5])


def test_no_rows_and_scores_of_one_value() -> None:
    assert worth_of_cells(np.array([]), np.array([], dtype=np.int64)).tolist() == []
    assert worth_of_cells(np.array([0.0]), np.array([7])).tolist() == [1.0]
    assert strata_of_cells(np.array([1.0]), 100).tolist() == [0]


@given(
    st.lists(st.tuples(st.floats(0, 10), st.integers(0, 60)), min_size=1, max_size=9),
    st.integers(1, 300),
)
def test_an_allocation_is_whole_and_within_every_stratum(strata: list[tuple[float, int]], size: int) -> None:
    worth, rows = np.array([each[0] for each in strata]), np.array([each[1] for each in strata])
    numbers = allocation(worth, rows, size)
    assert numbers.sum() == min(size, rows.sum())
    assert (numbers >= 0).all()
    assert (numbers <= rows).all()
    if np.minimum(rows, 5).sum() <= size:
        assert (numbers >= np.minimum(rows, 5)).all()


def test_labels_go_in_proportion_to_worth_and_the_rest_of_a_full_stratum_to_the_others() -> None:
    assert allocation(np.array([0.1, 0.2, 0.7]), np.array([1_000, 1_000, 1_000]), 100).tolist() == [10, 20, 70]
    assert allocation(np.array([0.1, 0.2, 0.7]), np.array([1_000, 1_000, 10]), 100).tolist() == [30, 60, 10]
    assert allocation(np.array([0.001, 0.2, 0.7]), np.array([1_000, 1_000, 2_000]), 95).tolist() == [5, 20, 70]


@given(st.lists(st.integers(1, 60), min_size=1, max_size=9), st.integers(1, 200))
def test_the_first_rows_of_a_sheet_hold_every_stratum_in_its_share(numbers: list[int], first: int) -> None:
    drawn = np.array(numbers)
    stratum = np.repeat(np.arange(len(drawn)), drawn)
    rank = np.concatenate([np.arange(number) for number in drawn])
    order = np.argsort(places(stratum, rank, drawn), kind="stable")[:first]
    expected = drawn * min(first, drawn.sum()) / drawn.sum()
    assert np.abs(np.bincount(stratum[order], minlength=len(drawn)) - expected).max() <= 0.5 + len(drawn) / 2
    for index in range(len(drawn)):  # and of each stratum its first rows
        assert rank[order][stratum[order] == index].tolist() == list(range((stratum[order] == index).sum()))


def test_the_only_row_of_a_stratum_stands_in_the_middle() -> None:
    """Whoever stops early has it as likely as not."""
    drawn = np.array([8, 1])
    order = np.argsort(places(np.repeat([0, 1], drawn), np.array([*range(8), 0]), drawn), kind="stable")
    assert order.tolist().index(8) == 4


@given(st.lists(st.floats(0, 1), min_size=1, max_size=60), st.integers(1, 400), st.integers(0, 400))
def test_strata_rise_with_the_score_and_those_of_more_labels_lie_within(
    worth: list[float], size: int, more: int
) -> None:
    coarse, fine = (strata_of_cells(np.array(worth), number) for number in (size, size + more))
    for stratum in (coarse, fine):
        assert (np.diff(stratum) >= 0).all()
        assert np.unique(stratum).tolist() == list(range(stratum.max() + 1))
    assert all(len(set(coarse[fine == index])) == 1 for index in fine)
    assert coarse.max() < min(16, max(size // 10, 1))


@given(
    st.lists(st.tuples(st.floats(0, 10), st.integers(0, 60), st.integers(0, 60)), min_size=1, max_size=9),
    st.integers(1, 300),
)
def test_a_second_batch_takes_what_is_left(strata: list[tuple[float, int, int]], size: int) -> None:
    worth, rows = np.array([number[0] for number in strata]), np.array([number[1] for number in strata])
    drawn = np.minimum(np.array([number[2] for number in strata]), rows)
    more = further(worth, rows, drawn, size)
    assert more.sum() == min(size, (rows - drawn).sum())
    assert (more >= 0).all()
    assert (more <= rows - drawn).all()


def test_a_second_batch_makes_up_for_the_first() -> None:
    rows = np.array([1_000, 1_000])
    assert further(np.array([0.25, 0.75]), rows, np.array([40, 10]), 50).tolist() == [0, 50]
    assert further(np.array([0.5, 0.5]), rows, np.array([40, 10]), 70).tolist() == [20, 50]
