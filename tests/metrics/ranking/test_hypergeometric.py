from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, hypergeom, poisson

from pipeline.metrics.ranking.average_precision import hypergeometric_pmf, hypergeometric_tail


@st.composite
def urns(draw: st.DrawFn, largest: int = 400) -> tuple[int, int, int, int]:
    population = draw(st.integers(1, largest))
    marked, drawn = draw(st.integers(0, population)), draw(st.integers(0, population))
    return draw(st.integers(-2, min(marked, drawn) + 2)), population, marked, drawn


def ways(hits: int, population: int, marked: int, drawn: int) -> int:
    if not 0 <= hits <= drawn:
        return 0
    return math.comb(marked, hits) * math.comb(population - marked, drawn - hits)


@given(urns())
def test_probabilities_and_tails_are_the_exact_rationals(urn: tuple[int, int, int, int]) -> None:
    hits, population, marked, drawn = urn
    every = math.comb(population, drawn)
    exact = float(Fraction(ways(*urn), every))
    tail = sum(ways(k, population, marked, drawn) for k in range(max(hits, 0), min(marked, drawn) + 1))
    assert float(hypergeometric_pmf(*urn)) == pytest.approx(exact, rel=1e-12, abs=1e-290)
    assert float(hypergeometric_tail(*urn)) == pytest.approx(float(Fraction(tail, every)), rel=1e-12, abs=1e-290)


def test_many_at_once_are_those_of_scipy() -> None:
    rng = np.random.default_rng(1)
    population = rng.integers(1, 5000, 500)
    marked, drawn = rng.integers(0, population + 1), rng.integers(0, population + 1)
    hits = np.clip(np.round(marked * drawn / population + rng.normal(0, 5, 500)), 0, None)
    expected = hypergeom.sf(hits - 1, population, marked, drawn)
    assert hypergeometric_tail(hits, population, marked, drawn) == pytest.approx(expected, rel=1e-9, abs=1e-290)


def test_huge_populations_have_the_limits_of_their_law() -> None:
    large = 10**12
    assert float(hypergeometric_tail(10, large, 10**6, 10**6)) == pytest.approx(poisson.sf(9, 1), rel=1e-4)
    assert float(hypergeometric_tail(501_000, large, large // 2, 10**6)) == pytest.approx(
        binom.sf(500_999, 10**6, 0.5), rel=1e-4
    )


def test_the_tails_add_up() -> None:
    hits = np.arange(-1, 40)
    tail = hypergeometric_tail(hits, 200, 50, 60)
    assert tail[:-1] - tail[1:] == pytest.approx(hypergeometric_pmf(hits[:-1], 200, 50, 60), abs=1e-14)
    assert tail[0] == 1
    assert (np.diff(tail) <= 0).all()
