"""Quantiles of beta distributions: against SciPy, closed forms, and the probability below them."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from pipeline.metrics.uncertainty.jackknife import _LARGE_SHAPE, _beta_quantile, _bisected, _of_large_shapes

if TYPE_CHECKING:
    from numpy.typing import NDArray

Floats: TypeAlias = "NDArray[np.float64]"
LEVELS = (2e-4, 0.005, 0.025, 0.1, 0.5, 0.9)


def shapes(low: float, high: float, size: int = 4000) -> tuple[Floats, Floats]:
    """Pairs of shapes, their logarithms uniform between two powers of ten."""
    first, second = np.random.default_rng(int(high * 10)).uniform(low, high, (2, size))
    return 10**first, 10**second


@pytest.mark.first_cases(2)
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("powers", [(-1.0, 2.0), (2.0, 3.0), (3.0, 6.0)])
def test_quantiles_are_those_of_scipy(powers: tuple[float, float], level: float) -> None:
    a, b = shapes(*powers)
    for above, inverse in ((False, scipy.special.betaincinv), (True, scipy.special.betainccinv)):
        ours, theirs = _beta_quantile(a, b, level, above=above), inverse(a, b, level)
        assert ours == pytest.approx(theirs, rel=2e-12, abs=1e-300)
        assert 1 - ours == pytest.approx(1 - theirs, rel=1e-11, abs=1e-15)


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("level", LEVELS)
def test_the_probability_below_a_quantile_is_the_level_for_counts_of_any_size(level: float) -> None:
    """In standard deviations, which become so small beside the quantile that its own digits bound what can be asked."""
    a, b = shapes(6.0, 12.0)
    lower, upper = _beta_quantile(a, b, level), _beta_quantile(a, b, level, above=True)
    density = np.exp(-(scipy.special.ndtri(level) ** 2) / 2) / np.sqrt(2 * np.pi)
    assert scipy.special.betainc(a, b, lower) == pytest.approx(np.full(len(a), level), abs=1e-6 * density)
    assert scipy.special.betaincc(a, b, upper) == pytest.approx(np.full(len(a), level), abs=1e-6 * density)


def test_large_shapes_hardly_ever_need_a_search() -> None:
    a, b = shapes(float(np.log10(_LARGE_SHAPE)), 9.0)
    for level in LEVELS[1:]:
        assert not np.isnan(_of_large_shapes(a, b, np.full(len(a), level))).any()


def test_a_start_that_is_too_far_away_is_not_trusted() -> None:
    few = np.full(3, 3.0)
    assert np.isnan(_of_large_shapes(few, few + 2, np.array([0.025, 0.5, 0.975]))).all()


@given(
    rows=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 1)), max_size=12), above=st.booleans()
)
def test_each_quantile_is_its_own_whatever_stands_around_it(rows: list[tuple[int, int, int]], *, above: bool) -> None:
    sizes, levels = (0.5, 7.0, 300.0, 5e4), (0.025, 0.4)
    arguments = [np.array([sizes[a], sizes[b], levels[level]]) for a, b, level in rows]
    alone = [_beta_quantile(*row[:, None], above=above).item() for row in arguments]
    together = _beta_quantile(*np.array(arguments).reshape(-1, 3).T, above=above)
    assert together.tolist() == alone


def test_many_are_made_in_parts_to_the_same_bits() -> None:
    a, b = shapes(0.0, 7.0, 40_000)
    in_two_rows = _beta_quantile(a.reshape(2, -1), b.reshape(2, -1), 0.025)
    assert in_two_rows.shape == (2, 20_000)
    few = [_beta_quantile(a[place : place + 100], b[place : place + 100], 0.025) for place in range(0, len(a), 100)]
    assert in_two_rows.ravel().tolist() == np.concatenate(few).tolist()


def test_what_is_no_number_stays_none() -> None:
    a, b = np.array([np.nan, 500.0, 500.0]), np.array([500.0, np.nan, 500.0])
    assert np.isnan(_beta_quantile(a, b, 0.025)).tolist() == [True, True, False]
    assert np.isnan(_beta_quantile(b, b, np.nan)).all()
    assert _beta_quantile(np.empty(0), np.empty(0), 0.025).shape == (0,)


@pytest.mark.parametrize("probability", [1e-300, 2.7e-37, 1e-20, 0.01, 0.4])
def test_quantiles_by_bisection_have_the_closed_forms_of_shapes_of_one(probability: float) -> None:
    sizes = np.array([0.3, 1, 1.5, 2, 7, 40, 300])
    tails, ones = np.full(len(sizes), probability), np.ones(len(sizes))
    powers = np.exp(np.log(probability) / sizes)
    assert _bisected(sizes, ones, tails) == pytest.approx(powers, rel=1e-9, abs=5e-324)
    complements = -np.expm1(np.log1p(-probability) / sizes)
    assert _bisected(ones, sizes, tails) == pytest.approx(complements, rel=1e-9, abs=5e-324)
    assert _beta_quantile(ones, ones, 2.7e-37)[0] == pytest.approx(2.7e-37, rel=1e-9)
