"""Ratios of means and of pooled ratios, against the delta method by hand, Fieller's limits and exact ones."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from pipeline.metrics.comparison.pooled import (
    Ratio,
    Student,
    ratio_of_independent,
    ratio_of_jackknifed,
    ratio_of_no_hits,
    ratio_on_same_units,
)

RNG = np.random.default_rng(2)
SHARED = RNG.beta(4, 3, 40)
A, B = SHARED * RNG.normal(1.1, 0.1, 40), SHARED * RNG.normal(1, 0.1, 40)


def test_a_ratio_on_the_same_units_has_their_covariance() -> None:
    ratio = ratio_on_same_units(A, B)
    (of_a, shared), (_, of_b) = np.cov(A, B) / 40
    error = math.sqrt(of_a / A.mean() ** 2 + of_b / B.mean() ** 2 - 2 * shared / (A.mean() * B.mean()))
    half = stats.t.ppf(0.975, 39) * error
    expected = [A.mean() / B.mean() * math.exp(sign * half) for sign in (-1, 1)]
    assert [ratio.value, *ratio.limits(0.95)] == pytest.approx([A.mean() / B.mean(), *expected])
    upside_down = ratio_on_same_units(B, A).limits(0.95)
    assert [1 / limit for limit in upside_down[::-1]] == pytest.approx(expected)
    independent = ratio_of_independent(Student(A.mean(), math.sqrt(of_a), 39), Student(B.mean(), math.sqrt(of_b), 39))
    assert independent.limits(0.95)[0] < expected[0] < expected[1] < independent.limits(0.95)[1]


def test_precise_means_have_the_limits_of_fieller() -> None:
    a, b = Student(1.2, 0.01, 500.0), Student(0.8, 0.012, 400.0)
    ratio = ratio_of_independent(a, b)
    quantile = stats.t.ppf(0.975, ratio.log.degrees)
    square = b.estimate**2 - (quantile * b.error) ** 2
    root = math.sqrt((a.estimate * b.estimate) ** 2 - square * (a.estimate**2 - (quantile * a.error) ** 2))
    fieller = [(a.estimate * b.estimate + sign * root) / square for sign in (-1, 1)]
    assert list(ratio.limits(0.95)) == pytest.approx(fieller, rel=1e-3)


def test_a_jackknifed_ratio_of_means_is_that_of_the_means() -> None:
    jackknifed = tuple((values.sum() - values) / 39 for values in (A, B))
    ratio = ratio_of_jackknifed((A.mean(), B.mean()), (jackknifed[0], jackknifed[1]), 40)
    assert ratio.log.error == pytest.approx(ratio_on_same_units(A, B).log.error)


def test_a_share_without_hits_has_the_exact_upper_limit() -> None:
    certain = Student(0.8, 1e-9, 50.0)
    ratio = ratio_of_no_hits(20.0, certain, 0.95, is_f1=False)
    exact = 1 - 0.025 ** (1 / 20)
    assert [ratio.value, *ratio.limits(0.95)] == pytest.approx([0.0, 0.0, exact / 0.8])
    of_f1 = ratio_of_no_hits(20.0, certain, 0.95, is_f1=True)
    assert of_f1.limits(0.95)[1] == pytest.approx(2 * exact / (1 + exact) / 0.8)
    unsure = ratio_of_no_hits(20.0, Student(0.8, 0.1, 50.0), 0.95, is_f1=False)
    assert unsure.limits(0.95)[1] > exact / 0.8
    assert math.isnan(ratio_of_no_hits(20.0, Student(0.1, 0.1, 50.0), 0.95, is_f1=False).limits(0.95)[1])


@pytest.mark.parametrize(("a", "b"), [([1, 2], [0, 0]), ([-1, -2], [1, 2]), ([], []), ([1e300, 1e300], [1e-300] * 2)])
def test_what_has_no_ratio_is_nan(a: list[float], b: list[float]) -> None:
    assert math.isnan(ratio_on_same_units(np.array(a), np.array(b)).value)


def test_what_has_no_spread_has_no_limits() -> None:
    assert repr(ratio_on_same_units(A, A)) == repr(Ratio(1.0, Student(0.0, 0.0, 39.0)))  # of which a part is nan
    assert all(map(math.isnan, ratio_on_same_units(A, A).limits(0.95)))
    assert ratio_on_same_units(np.zeros(3), np.ones(3)).value == 0.0
    assert all(map(math.isnan, ratio_on_same_units(np.zeros(3), np.ones(3)).limits(0.95)))
    assert all(map(math.isnan, Ratio(1.0, Student(0.0, 800.0, 5.0)).limits(0.95)))
