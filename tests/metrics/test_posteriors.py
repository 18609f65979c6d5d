"""Posteriors against scipy's distributions, numerical integrals and random draws."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, special, stats

from pipeline.metrics.posteriors import (
    BetaPosterior,
    f1_posterior,
    precision_posterior,
    probability_better,
    probability_greater,
    recall_posterior,
)

COUNTS = [(0, 0, 0), (10, 3, 2), (5, 0, 0), (0, 4, 9), (1000, 20, 30), (7, 2000, 1)]
GRID = np.linspace(0.001, 0.999, 25)


@pytest.mark.parametrize(("tp", "fp", "fn"), COUNTS)
@pytest.mark.parametrize("prior", [0.5, 1.0])
def test_precision_and_recall_are_beta_distributions(tp: int, fp: int, fn: int, prior: float) -> None:
    for ours, errors in ((precision_posterior(tp, fp, prior), fp), (recall_posterior(tp, fn, prior), fn)):
        theirs = stats.beta(tp + prior, errors + prior)
        for name in ("mean", "var", "std", "median"):
            assert getattr(ours, name)() == pytest.approx(getattr(theirs, name)(), rel=1e-9), name
        for name in ("pdf", "cdf", "sf", "ppf", "isf"):
            expected = getattr(theirs, name)(GRID)
            assert getattr(ours, name)(GRID) == pytest.approx(expected, rel=1e-8, abs=1e-250), name
        assert ours.interval(0.9) == pytest.approx(theirs.interval(0.9), rel=1e-9)
        assert ours.cdf([-1, 2]) == pytest.approx([0, 1])
        assert ours.pdf([-1, 2]) == pytest.approx([0, 0])


@pytest.mark.parametrize(("tp", "fp", "fn"), COUNTS)
def test_f1_is_the_ratio_of_gamma_variables(tp: int, fp: int, fn: int) -> None:
    """F1 = 2 U / (2 U + V), of which 200,000 are drawn (Goutte & Gaussier 2005)."""
    rng = np.random.default_rng(1)
    u, v = rng.gamma(tp + 0.5, size=200_000), rng.gamma(fp + fn + 1, size=200_000)
    posterior = f1_posterior(tp, fp, fn)
    assert stats.kstest(2 * u / (2 * u + v), posterior.cdf).pvalue > 1e-3


@pytest.mark.first_cases(2)
@pytest.mark.parametrize(("tp", "fp", "fn"), COUNTS)
def test_methods_of_f1_fit_together(tp: int, fp: int, fn: int) -> None:
    posterior, share = f1_posterior(tp, fp, fn), stats.beta(tp + 0.5, fp + fn + 1)

    def integral(power: int) -> float:
        actual, _ = integrate.quad(lambda q: (2 * share.ppf(q) / (1 + share.ppf(q))) ** power, 0, 1, epsabs=1e-13)
        return float(actual)

    assert posterior.mean() == pytest.approx(integral(1), rel=1e-9)
    assert posterior.var() == pytest.approx(integral(2) - integral(1) ** 2, rel=1e-4, abs=1e-12)
    assert posterior.cdf(posterior.ppf(GRID)) == pytest.approx(GRID, rel=1e-9)
    assert posterior.sf(posterior.isf(GRID)) == pytest.approx(GRID, rel=1e-9)
    assert posterior.cdf(GRID) + posterior.sf(GRID) == pytest.approx(np.ones(25))
    middle = np.array([0.3, 0.5, 0.9])
    slope = (posterior.cdf(middle + 1e-6) - posterior.cdf(middle - 1e-6)) / 2e-6
    assert posterior.pdf(middle) == pytest.approx(slope, rel=1e-5, abs=1e-6)
    assert posterior.interval() == pytest.approx((posterior.ppf(0.025), posterior.ppf(0.975)))


def test_arrays_give_what_their_numbers_give() -> None:
    tp, fp, fn = (np.array(each) for each in zip(*COUNTS, strict=True))
    actual = f1_posterior(tp, fp, fn)
    single = [f1_posterior(*each) for each in COUNTS]
    assert actual.mean() == pytest.approx([float(each.mean()) for each in single])
    assert actual.interval()[0] == pytest.approx([float(each.interval()[0]) for each in single])
    greater = probability_greater(precision_posterior(tp, fp), precision_posterior(fn, tp))
    one_by_one = [probability_greater(precision_posterior(a, b), precision_posterior(c, a)) for a, b, c in COUNTS]
    assert greater == pytest.approx([float(each) for each in one_by_one], rel=1e-11)
    assert isinstance(single[0].mean(), float)
    assert isinstance(probability_better(3, 1), float)


def test_wins_are_a_beta_tail_and_a_share_of_dirichlet_draws() -> None:
    assert probability_better(12, 5) == pytest.approx(stats.beta.sf(0.5, 12.5, 5.5), rel=1e-12)
    assert probability_better(0, 0) == pytest.approx(0.5)
    assert probability_better([3, 0], [0, 3]) == pytest.approx([1 - probability_better(0, 3), probability_better(0, 3)])
    drawn = np.random.default_rng(2).dirichlet([12.5, 5.5, 80.5], 200_000)
    assert probability_better(12, 5) == pytest.approx((drawn[:, 0] > drawn[:, 1]).mean(), abs=0.003)


@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 40), st.integers(1, 40))
def test_the_greater_of_two_is_the_closed_sum_for_whole_shapes(a: int, b: int, c: int, d: int) -> None:
    """P(X > Y) = Σ over i < a of B(c + i, b + d) / ((b + i) B(1 + i, b) B(c, d)), with X and Y in these roles."""
    ways = [comb(b + i - 1, i) for i in range(a)]  # 1 / ((b + i) B(1 + i, b))
    total = sum(way * np.exp(special.betaln(c + i, b + d) - special.betaln(c, d)) for i, way in enumerate(ways))
    actual = probability_greater(BetaPosterior(a, b), BetaPosterior(c, d))
    assert float(actual) == pytest.approx(total, rel=1e-10)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((0, 0), (0, 0)),
        ((0, 100), (3, 4)),
        ((1000, 20), (1000, 30)),
        ((10, 5), (100_000, 50_000)),
        ((0, 0), (10_000, 0)),
    ],
)
def test_the_greater_of_two_is_the_double_integral(first: tuple[int, int], second: tuple[int, int]) -> None:
    x, y = (stats.beta(tp + 0.5, fp + 0.5) for tp, fp in (first, second))
    expected, _ = integrate.quad(lambda q: y.cdf(x.ppf(q)), 0, 1, limit=1000, epsabs=1e-12)
    one, two = precision_posterior(*first), precision_posterior(*second)
    assert float(probability_greater(one, two)) == pytest.approx(expected, abs=1e-10)
    assert float(probability_greater(one, two) + probability_greater(two, one)) == pytest.approx(1, abs=1e-13)


def test_the_greater_f1_is_that_of_draws() -> None:
    rng = np.random.default_rng(3)
    u, v, w, x = (rng.gamma(shape, size=400_000) for shape in (80.5, 41, 70.5, 38))
    first, second = f1_posterior(80, 30, 10), f1_posterior(70, 7, 30)
    drawn = (2 * u / (2 * u + v) > 2 * w / (2 * w + x)).mean()
    assert float(probability_greater(first, second)) == pytest.approx(drawn, abs=0.004)


def test_what_has_no_posterior_is_refused() -> None:
    for tp, fp, prior in ((-1, 2, 0.5), (1, np.nan, 0.5), (1, 2, 0.0)):
        with pytest.raises(ValueError, match="counts must not be negative"):
            f1_posterior(tp, fp, 3, prior=prior)
    with pytest.raises(ValueError, match="counts must not be negative"):
        f1_posterior(1, -1, 2)
    with pytest.raises(TypeError, match="different measures"):
        probability_greater(precision_posterior(1, 1), f1_posterior(1, 1, 1))
