"""Pooled ratios and their jackknife: against scikit-learn, exact fractions and leave-one-out by hand."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score, precision_score, recall_score

from pipeline.metrics.comparison.pooled import pooled_ratios, standard_errors

if TYPE_CHECKING:
    from collections.abc import Sequence

Counts = list[tuple[int, int, int]]


def exact(units: Sequence[Sequence[int]]) -> list[Fraction]:
    tp, fp, fn = (sum(unit[place] for unit in units) for place in range(3))
    return [Fraction(tp, tp + fp), Fraction(tp, tp + fn), Fraction(2 * tp, 2 * tp + fp + fn)]


def test_ratios_are_those_of_scikit_learn() -> None:
    true = np.repeat([1, 0, 1, 0], [7, 3, 4, 9])
    predicted = np.repeat([1, 1, 0, 0], [7, 3, 4, 9])
    expected = [score(true, predicted) for score in (precision_score, recall_score, f1_score)]
    assert pooled_ratios([7, 3, 4]) == pytest.approx(expected, rel=1e-15)


def test_ratios_of_nothing_are_nan() -> None:
    assert np.isnan(pooled_ratios([[0, 0, 0]])).all()
    precision, recall, f1 = pooled_ratios([0, 0, 5])
    assert (math.isnan(precision), recall, f1) == (True, 0.0, 0.0)


@given(
    st.lists(
        st.tuples(*[st.tuples(st.integers(1, 30), st.integers(0, 30), st.integers(0, 30))] * 2), min_size=2, max_size=8
    )
)
def test_standard_errors_are_those_of_leaving_one_unit_out(
    pairs: list[tuple[tuple[int, ...], tuple[int, ...]]],
) -> None:
    first, second = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    n = len(pairs)
    jackknifed = []
    for left in range(n):
        kept = [[each[:left] + each[left + 1 :]][0] for each in (first, second)]
        jackknifed.append([a - b for a, b in zip(exact(kept[0]), exact(kept[1]), strict=True)])
    for column, actual in enumerate(standard_errors(first, second)):
        values = [row[column] for row in jackknifed]
        mean = sum(values) / n
        variance = Fraction(n - 1, n) * sum((value - mean) ** 2 for value in values)
        assert actual == pytest.approx(math.sqrt(variance), rel=1e-9, abs=1e-14)


@pytest.mark.parametrize("units", [0, 1])
def test_fewer_than_two_units_have_no_standard_error(units: int) -> None:
    counts = np.ones((units, 3))
    assert np.isnan(standard_errors(counts, counts)).all()


def test_a_ratio_that_one_unit_decides_has_no_standard_error() -> None:
    actual = standard_errors([[2, 1, 0], [0, 0, 3]], [[1, 1, 1], [1, 1, 1]])
    assert np.isnan(actual).tolist() == [True, False, False]
