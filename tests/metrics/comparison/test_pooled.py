"""Pooled ratios and their jackknife: against scikit-learn, exact fractions and leave-one-out by hand."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import f1_score, precision_score, recall_score

from pipeline.metrics.comparison.pooled import effective_counts, effective_number, pooled_ratios, standard_errors
from pipeline.metrics.posteriors import precision_posterior, probability_greater

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
    for column, actual in enumerate(standard_errors(first, second).error):
        values = [row[column] for row in jackknifed]
        mean = sum(values) / n
        variance = Fraction(n - 1, n) * sum((value - mean) ** 2 for value in values)
        assert actual == pytest.approx(math.sqrt(variance), rel=1e-9, abs=1e-14)


@pytest.mark.parametrize("units", [0, 1])
def test_fewer_than_two_units_have_no_standard_error(units: int) -> None:
    counts = np.ones((units, 3))
    assert np.isnan(standard_errors(counts, counts).error).all()


def test_a_ratio_that_one_unit_decides_has_no_standard_error() -> None:
    actual = standard_errors([[2, 1, 0], [0, 0, 3]], [[1, 1, 1], [1, 1, 1]])
    assert np.isnan(actual.error).tolist() == [True, False, False]


def test_degrees_of_freedom_are_few_where_a_unit_holds_most_counts() -> None:
    equal = np.tile([[6, 2, 1]], (20, 1)) + np.arange(20)[:, None] % 3
    large = np.vstack([equal[:-1], [[900, 300, 150]]])
    assert (standard_errors(equal, equal[::-1]).degrees > 14).all()
    assert (standard_errors(large, large + 1).degrees < 4).all()
    sizes = np.array([900.0, 5.0, 5.0])
    assert effective_number(sizes) == pytest.approx(910**2 / (900**2 + 50))


def test_p_values_of_student_agree_with_the_intervals() -> None:
    rng = np.random.default_rng(1)
    for _ in range(50):
        first, second = rng.integers(0, 9, (2, 12, 3)) + np.array([4, 0, 0])
        errors = standard_errors(first, second)
        difference = pooled_ratios(first.sum(axis=0)) - pooled_ratios(second.sum(axis=0))
        for level in (0.3, 0.05):
            outside = np.abs(difference) > errors.half_width(1 - level)
            assert (outside == (errors.p_values(difference) < level)).all()
    same = standard_errors(first, first)
    assert same.p_values(np.zeros(3)).tolist() == [1.0, 1.0, 1.0]


def by_hand(hits: Sequence[int], misses: Sequence[int], confidence: float) -> float:
    """The design effect by its definition; as many degrees of freedom as units less 1, which are of equal size."""
    units, total = len(hits), sum(hits) + sum(misses)
    share = sum(hits) / total
    left = [(sum(hits) - hit) / (total - hit - miss) for hit, miss in zip(hits, misses, strict=True)]
    variance = (units - 1) / units * sum((value - np.mean(left)) ** 2 for value in left)
    wider = stats.t.ppf(0.5 + confidence / 2, units - 1) / stats.norm.ppf(0.5 + confidence / 2)
    return float(variance * wider**2 * total / (share * (1 - share)))


def test_counts_are_divided_by_the_design_effect() -> None:
    hits, misses = [0, 10, 10, 0, 10, 0], [10, 0, 0, 10, 0, 10]
    actual = effective_counts(np.array(hits), np.array(misses), 0.9)
    effect = by_hand(hits, misses, 0.9)
    assert effect > 10
    assert actual.used == "design_effect"
    assert [actual.design_effect, actual.hits, actual.misses] == pytest.approx([effect, 30 / effect, 30 / effect])


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=2, max_size=8),
    st.integers(2, 5),
)
def test_counting_everything_several_times_tells_no_more(units: list[tuple[int, int]], times: int) -> None:
    hits, misses = np.array(units).T
    plain, more = effective_counts(hits, misses, 0.95), effective_counts(times * hits, times * misses, 0.95)
    assert plain.hits + plain.misses <= (hits + misses).sum() * (1 + 1e-12)
    if plain.used == more.used and plain.design_effect > 1:
        assert [more.hits, more.misses] == pytest.approx([plain.hits, plain.misses])
        assert more.design_effect == pytest.approx(times * plain.design_effect)


@pytest.mark.parametrize(
    ("hits", "misses", "effect", "used"),
    [
        ([1, 0, 1], [0, 1, 0], 1.0, "as_counted"),
        ([0, 0], [0, 0], math.nan, "as_counted"),
        ([5], [3], 8.0, "one_per_unit"),
        ([5, 5, 5], [0, 0, 0], 5.0, "one_per_unit"),
        ([4, 0], [2, 0], 6.0, "one_per_unit"),
    ],
)
def test_what_counts_are_worth_where_nothing_tells_their_variance(
    hits: list[int], misses: list[int], effect: float, used: str
) -> None:
    actual = effective_counts(np.array(hits), np.array(misses), 0.95)
    assert actual.used == used
    assert actual.design_effect == pytest.approx(effect, nan_ok=True)


@pytest.mark.wide
def test_equal_systems_under_effects_of_documents_are_seldom_called_different() -> None:
    """The share of data sets in which posteriors are far apart, with effective counts and with all counts."""
    rng, calls = np.random.default_rng(7), np.zeros(2)
    for _ in range(300):
        shares = rng.beta(1.5, 1.0, (2, 25))
        hits = rng.binomial(12, shares)
        worth = [effective_counts(of_system, 12 - of_system, 0.95) for of_system in hits]
        for column, pairs in enumerate(
            ([(each.hits, each.misses) for each in worth], [(h.sum(), (12 - h).sum()) for h in hits])
        ):
            first, second = (precision_posterior(*pair) for pair in pairs)
            calls[column] += abs(float(probability_greater(first, second)) - 0.5) >= 0.475
    assert calls[0] / 300 <= 0.07
    assert calls[1] / 300 >= 0.2
