"""Paired tests against scipy, all signs and all swaps."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pipeline.metrics.comparison import paired
from pipeline.metrics.comparison.paired import (
    differences,
    paired_t,
    pooled_randomization_tests,
    randomization_test,
    sign_test,
    wilcoxon_signed_rank,
    win_tie_loss,
)

VALUES = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=11)


def two(values: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    a, b = np.array(values, dtype=np.float64).T
    return a / 10, b / 10


@given(VALUES)
def test_the_t_test_is_that_of_scipy(values: list[tuple[int, int]]) -> None:
    a, b = two(values)
    actual = paired_t(a, b, confidence=0.9)
    assert actual.n_units == len(a)
    assert (actual.mean_a, actual.mean_b) == pytest.approx((a.mean(), b.mean()))
    gap = np.round(a - b, 9)
    if not gap.any():
        assert actual.p_value == 1
    elif len(np.unique(gap)) == 1:
        assert math.isnan(actual.p_value)
    else:
        expected = stats.ttest_rel(a, b)
        low, high = expected.confidence_interval(0.9)
        assert (actual.statistic, actual.p_value) == pytest.approx((expected.statistic, expected.pvalue), abs=1e-12)
        assert (actual.lower, actual.upper) == pytest.approx((low, high), abs=1e-12)
        assert actual.effect_size == pytest.approx((a - b).mean() / (a - b).std(ddof=1))


@given(VALUES)
def test_signed_ranks_are_those_of_all_signs(values: list[tuple[int, int]]) -> None:
    a, b = two(values)
    actual = wilcoxon_signed_rank(a, b)
    gap = np.round(a - b, 9)
    gap = gap[gap != 0]
    ranks = stats.rankdata(np.abs(gap))
    signs = np.array(list(itertools.product((0, 1), repeat=len(gap))))
    lesser = min(ranks[gap > 0].sum(), ranks[gap < 0].sum())
    expected = min(1.0, 2 * np.mean(signs @ ranks <= lesser)) if len(gap) else 1.0
    assert actual.p_value == pytest.approx(expected, rel=1e-12)
    assert actual.n_units == len(a)


@pytest.mark.wide
def test_exact_p_values_are_fractions_and_1_where_both_tails_are_all_there_is() -> None:
    for decided in range(1, 130):
        for wins in range(decided + 1):
            signs = np.repeat([1.0, -1.0], [wins, decided - wins])
            tail = sum(math.comb(decided, k) for k in range(min(wins, decided - wins) + 1))
            exact = min(Fraction(1), Fraction(2 * tail, 2**decided))
            actual = sign_test(signs, np.zeros(decided)).p_value
            assert actual == pytest.approx(float(exact), rel=1e-13)
            assert (actual == 1) == (exact == 1)


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("units", [1, 2, 3, 7, 8, 30, 63, 200])
def test_exact_signed_ranks_are_fractions_and_1_where_both_tails_are_all_there_is(units: int) -> None:
    rng = np.random.default_rng(units)
    for most in (1, 3, units):
        sizes = rng.integers(1, most + 1, units).astype(float)
        ranks = (2 * stats.rankdata(sizes)).astype(int).tolist()
        ways = [1]
        for rank in ranks:
            ways = [
                (ways[n] if n < len(ways) else 0) + (ways[n - rank] if n >= rank else 0)
                for n in range(len(ways) + rank)
            ]
        for share in (0.5, 0.4):
            signs = np.where(np.arange(units) % 10 < 10 * share, 1.0, -1.0)
            positive = sum(rank for rank, sign in zip(ranks, signs, strict=True) if sign > 0)
            tail = sum(ways[: min(positive, sum(ranks) - positive) + 1])
            exact = min(Fraction(1), Fraction(2 * tail, 2**units))
            actual = wilcoxon_signed_rank(sizes * signs, np.zeros(units)).p_value
            assert actual == pytest.approx(float(exact), rel=1e-12)
            assert (actual == 1) == (exact == 1)


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("seed", range(5))
def test_signed_ranks_are_those_of_scipy_for_few_units_with_ties_and_zeros(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 8, 12).astype(float), rng.integers(0, 8, 12).astype(float)
    exact = stats.PermutationMethod(n_resamples=np.inf)
    kept = a != b
    expected = stats.wilcoxon(a[kept] - b[kept], method=exact)
    actual = wilcoxon_signed_rank(a, b)
    assert (actual.statistic, actual.p_value) == pytest.approx((expected.statistic, expected.pvalue), rel=1e-9)


@pytest.mark.parametrize("units", [20, 49, 150])
def test_signed_ranks_without_ties_are_the_published_distribution(units: int) -> None:
    rng = np.random.default_rng(units)
    a, b = rng.normal(0.2, 1, units), np.zeros(units)
    expected = stats.wilcoxon(a, b, method="exact")
    actual = wilcoxon_signed_rank(a, b)
    assert (actual.statistic, actual.p_value) == pytest.approx((expected.statistic, expected.pvalue), rel=1e-9)


def test_500_differences_have_the_exact_distribution() -> None:
    a, b = np.random.default_rng(5).normal(0.05, 1, 500), np.zeros(500)
    expected = stats.wilcoxon(a, b, method="exact").pvalue
    assert wilcoxon_signed_rank(a, b).p_value == pytest.approx(expected, rel=1e-9)


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("digits", [0, 6])
def test_many_signed_ranks_are_normal(monkeypatch: pytest.MonkeyPatch, digits: int) -> None:
    rng = np.random.default_rng(9)
    a, b = np.round(rng.normal(0.07, 1, 900), digits), np.zeros(900)
    normal = wilcoxon_signed_rank(a, b)
    monkeypatch.setattr(paired, "_MOST_EXACT", 1000)
    exact = wilcoxon_signed_rank(a, b)
    assert 1e-4 < exact.p_value < 0.5
    assert normal.p_value == pytest.approx(exact.p_value, rel=0.02)
    assert normal.p_value != exact.p_value
    assert normal.statistic == exact.statistic


@given(VALUES)
def test_the_sign_test_is_binomial(values: list[tuple[int, int]]) -> None:
    a, b = two(values)
    wins, ties, losses = win_tie_loss(a, b)
    assert (wins, ties, losses) == tuple(sum(c(x, y) for x, y in values) for c in (int.__gt__, int.__eq__, int.__lt__))
    actual = sign_test(a, b)
    expected = stats.binomtest(wins, wins + losses).pvalue if wins + losses else 1.0
    assert actual.statistic == wins
    assert actual.p_value == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(3))
def test_randomization_is_that_of_all_swaps(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.random(9), rng.random(9)
    signs = np.array(list(itertools.product((-1, 1), repeat=9)))
    exact = np.mean(np.abs(signs @ (a - b)) >= abs((a - b).sum()) * (1 - 1e-12))
    actual = randomization_test(a, b, resamples=40_000, seed=seed)
    assert actual.p_value == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / 40_000) + 1e-4)
    assert actual.difference == pytest.approx((a - b).mean())


def test_a_randomization_p_value_counts_the_order_that_was_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = np.full(40, 1.0), np.zeros(40)
    assert randomization_test(a, b, resamples=999).p_value == 1 / 1000
    assert randomization_test(a, a, resamples=99).p_value == 1
    rng = np.random.default_rng(2)
    first, second = rng.random(40), rng.random(40)
    once = randomization_test(first, second, resamples=500, seed=7)
    assert repr(randomization_test(first, second, resamples=500, seed=7)) == repr(once)  # of which a part is nan
    assert randomization_test(second, first, resamples=500, seed=7).p_value == once.p_value
    monkeypatch.setattr(paired, "_BYTES_AT_ONCE", 40 * 8)  # whole machine words, so that batches draw the same
    assert randomization_test(first, second, resamples=500, seed=7).p_value == pytest.approx(once.p_value, abs=0.08)


def ratios(tp: float, fp: float, fn: float) -> np.ndarray:
    return np.array([tp / (tp + fp), tp / (tp + fn), 2 * tp / (2 * tp + fp + fn)])


@pytest.mark.parametrize("seed", range(4))
def test_pooled_counts_are_tested_by_all_swaps(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 6, (2, 8, 3)) + np.array([1, 0, 0])
    observed = np.abs(ratios(*a.sum(axis=0)) - ratios(*b.sum(axis=0)))
    extreme = np.zeros(3)
    for swap in itertools.product((False, True), repeat=8):
        chosen = np.array(swap)[:, None]
        gap = ratios(*np.where(chosen, b, a).sum(axis=0)) - ratios(*np.where(chosen, a, b).sum(axis=0))
        extreme += np.abs(gap) >= observed - 1e-12
    actual = pooled_randomization_tests(a, b, resamples=40_000, seed=seed)
    assert list(actual) == ["precision", "recall", "f1"]
    for test, size, exact in zip(actual.values(), observed, extreme / 2**8, strict=True):
        assert abs(test.difference) == pytest.approx(size)
        assert test.p_value == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / 40_000) + 1e-4)


def test_pooled_ratios_that_are_undefined() -> None:
    nothing = pooled_randomization_tests([[0, 0, 3], [0, 0, 2]], [[1, 1, 2], [2, 0, 0]], resamples=99)
    assert math.isnan(nothing["precision"].p_value)
    assert math.isnan(nothing["precision"].mean_a)
    assert not math.isnan(nothing["recall"].p_value)
    one = pooled_randomization_tests([[5, 1, 1]], [[2, 3, 4]], resamples=99)
    assert one["f1"].p_value == 1
    same = pooled_randomization_tests([[5, 1, 1]] * 4, [[5, 1, 1]] * 4, resamples=99)
    assert {test.p_value for test in same.values()} == {1}
    with pytest.raises(ValueError, match="shape"):
        pooled_randomization_tests([[1, 2]], [[1, 2]])


def test_rounding_of_the_values_makes_no_difference_and_no_rank() -> None:
    a, b = [0.3, 0.2, 0.1 + 0.2, 0.5], [0.2, 0.1, 0.3, 0.9]
    gap = differences(a, b)
    assert gap[0] == gap[1]
    assert gap[2] == 0
    assert win_tie_loss(a, b) == (2, 1, 1)
    assert wilcoxon_signed_rank(a, b).statistic == 3


def test_no_units_and_units_without_a_value() -> None:
    for test in (paired_t, wilcoxon_signed_rank, sign_test, randomization_test):
        assert math.isnan(test([], []).p_value)
        assert math.isnan(test([], []).mean_a)
        with pytest.raises(ValueError, match="no finite value"):
            test([1.0, math.nan], [1.0, 2.0])
        with pytest.raises(ValueError, match="one value per unit"):
            test([1.0, 2.0], [1.0])
        assert test([0.5, 0.25], [0.5, 0.25]).p_value == 1
    assert math.isnan(paired_t([1.0], [0.5]).p_value)


@pytest.mark.wide
def test_tests_keep_their_level_and_find_what_is_there() -> None:
    rng = np.random.default_rng(11)
    rejected = np.zeros((2, 4))
    for _ in range(300):
        hard = rng.normal(0, 1, 30)
        for i, gain in enumerate((0.0, 0.6)):
            a, b = hard + gain + rng.normal(0, 0.7, 30), hard + rng.normal(0, 0.7, 30)
            tests = (paired_t, wilcoxon_signed_rank, sign_test, lambda x, y: randomization_test(x, y, resamples=299))
            rejected[i] += [test(a, b).p_value <= 0.05 for test in tests]
    assert (rejected[0] <= 28).all()
    assert (rejected[1] >= 200).all()
