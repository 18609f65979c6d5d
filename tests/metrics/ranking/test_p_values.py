"""P-values of average precision against every order, and against a fine grid over all ranks."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.metrics.ranking.random_selection import (
    average_precision_moments,
    average_precision_p_value,
    average_precision_p_values,
    null_method,
    remainder_moments,
    shifted_lognormal_tail,
)

SIZES = (1e-3, 0.003, 0.01, 0.05, 0.2, 0.5, 0.9)


def every_average_precision(n: int, m: int) -> list[Fraction]:
    sets = itertools.combinations(range(1, n + 1), m)
    return [sum((Fraction(k, rank) for k, rank in enumerate(ranks, 1)), Fraction(0)) / m for ranks in sets]


def fine_grid(n: int, m: int, cells: int) -> tuple[np.ndarray, np.ndarray]:
    """Values of AP and their tail probabilities.

    From the last rank up: of k hits among the first t ranks, rank t is one with probability k / t, and then adds k / t.
    Sums lie on cells of the given part of a standard deviation; what their rounding adds to the variance is taken out.
    """
    mean, variance = average_precision_moments(n, m)
    width = m * math.sqrt(variance) / cells
    length = int(min(m, m * mean + 8 * cells * width + 2) / width) + 3
    mass = np.zeros((m + 1, length))
    mass[m, 0] = 1
    for t in range(n, 0, -1):
        below = np.zeros_like(mass)
        for k in range(max(0, m - (n - t)), min(m, t) + 1):
            below[k] += (1 - k / t) * mass[k]
            if k:
                n_cells, fraction = divmod(k / t / width, 1)
                moved = mass[k, : length - int(n_cells)] * (k / t)
                below[k - 1, int(n_cells) :] += (1 - fraction) * moved
                below[k - 1, int(n_cells) + 1 :] += fraction * moved[:-1]
        mass = below
    last, sums = mass[0], np.arange(length) * width
    spread = float(last @ sums**2) - float(last @ sums) ** 2
    values = mean + (sums / m - mean) * math.sqrt(variance * m**2 / spread)
    return values, np.cumsum(last[::-1])[::-1] - last / 2


def assert_close(n: int, m: int, cells: int, share: float, method: str = "auto") -> None:
    values, tails = fine_grid(n, m, cells)
    for size in SIZES:
        at = int(np.argmin(np.abs(np.log(np.maximum(tails, 1e-300) / size))))
        actual = average_precision_p_value(float(values[at]), n, m, method=method)  # type: ignore[arg-type]
        assert actual == pytest.approx(tails[at], rel=share), (n, m, size)


@pytest.mark.parametrize("n", range(1, 10))
def test_exact_p_values_count_every_order(n: int) -> None:
    for m in range(1, n + 1):
        values = every_average_precision(n, m)
        for ap in sorted(set(values)):
            expected = sum(each >= ap for each in values) / len(values)
            assert average_precision_p_value(float(ap), n, m) == pytest.approx(expected, rel=1e-14)
            assert average_precision_p_value(float(ap), n, m, method="exact") == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize(
    ("n", "m", "cells"), [(30, 15, 150), (40, 10, 150), (100, 5, 200), (100, 20, 150), (100, 60, 150), (200, 160, 150)]
)
def test_p_values_of_few_documents_are_within_two_percent_down_to_one_in_a_thousand(n: int, m: int, cells: int) -> None:
    assert null_method(n, m) == "grid"
    assert_close(n, m, cells, 0.02)


@pytest.mark.wide
@pytest.mark.parametrize(("n", "m", "cells"), [(1000, 10, 200), (1000, 100, 100), (300, 150, 120)])
def test_p_values_of_many_documents_are_within_two_percent_down_to_one_in_a_thousand(
    n: int, m: int, cells: int
) -> None:
    assert null_method(n, m) == "grid"
    assert_close(n, m, cells, 0.02)


# Values and tails of `fine_grid(2000, 500, 240)` and `fine_grid(1000, 500, 240)`, which take minutes.
@pytest.mark.parametrize(
    ("n", "m", "ap", "tail"),
    [
        (1000, 500, 0.5299757360416012, 0.0498621186438849),
        (1000, 500, 0.5555398276894935, 0.0009999201036183013),
        (1000, 300, 0.3426308252491139, 0.010032885156943915),
        (1000, 300, 0.35740349799406096, 0.0009996958926670474),
    ],
)
def test_p_values_where_half_of_many_documents_are_relevant(n: int, m: int, ap: float, tail: float) -> None:
    assert average_precision_p_value(ap, n, m) == pytest.approx(tail, rel=0.02)


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(("n", "m"), [(229, 4), (1000, 3), (60, 5), (1000, 2)])
def test_the_grid_is_good_where_a_hit_at_the_top_makes_a_jump(n: int, m: int) -> None:
    for ap in (np.concatenate([1 + np.geomspace(0.004, 0.3, 8), 0.5 + np.geomspace(0.01, 0.2, 6)]) / m).tolist():
        exact = average_precision_p_value(ap, n, m, method="exact")
        actual = average_precision_p_value(ap, n, m, method="grid")
        assert actual == pytest.approx(exact, rel=0.04, abs=4e-5)


@pytest.mark.wide
def test_p_values_of_a_million_documents_are_those_of_random_rankings() -> None:
    rng = np.random.default_rng(3)
    ranks = np.sort(rng.integers(1, 10**6 + 1, (200_000, 12)), axis=1)
    ranks = ranks[(np.diff(ranks, axis=1) > 0).all(axis=1)]
    drawn = np.sort((np.arange(1, 13) / ranks).mean(axis=1))
    for size in (0.01, 0.05, 0.2, 0.5, 0.9):
        ap = float(drawn[-int(size * len(drawn))])
        error = 4 * math.sqrt(size * (1 - size) / len(drawn))
        assert average_precision_p_value(ap, 10**6, 12) == pytest.approx(size, abs=error + 0.005 * size)


def test_the_lognormal_distribution_serves_where_the_skewness_is_small() -> None:
    values, tails = fine_grid(300, 100, 60)
    for size in (0.01, 0.05, 0.2, 0.5, 0.9):
        at = int(np.argmin(np.abs(np.log(np.maximum(tails, 1e-300) / size))))
        actual = average_precision_p_value(float(values[at]), 300, 100, method="lognormal")
        assert actual == pytest.approx(tails[at], rel=0.1)


@pytest.mark.wide
@pytest.mark.parametrize("skewness", [-2.0, -0.4, 0.0, 0.3, 3.0])
def test_the_shifted_lognormal_has_the_moments_asked_for(skewness: float) -> None:
    edges = np.linspace(-40, 40, 800_001) if abs(skewness) < 1 else np.linspace(-400, 400, 8_000_001)
    tail = shifted_lognormal_tail(edges, skewness)
    mass, middle = tail[:-1] - tail[1:], (edges[1:] + edges[:-1]) / 2
    moments = [float(mass @ middle**power) for power in range(4)]
    assert moments == pytest.approx([1, 0, 1, skewness], abs=2e-3)


@pytest.mark.first_cases(2)
@pytest.mark.parametrize(("n", "m"), [(12, 4), (60, 50), (200, 30), (50, 25)])
def test_random_rankings_agree_with_the_other_methods(n: int, m: int) -> None:
    mean, variance = average_precision_moments(n, m)
    for ap in (mean, mean + math.sqrt(variance)):
        drawn = average_precision_p_value(ap, n, m, method="monte_carlo")
        if null_method(n, m) == "monte_carlo":
            expected = float(np.interp(ap, *fine_grid(n, m, 100)))
        else:
            expected = average_precision_p_value(ap, n, m)
        assert drawn == pytest.approx(expected, abs=4 * math.sqrt(0.25 / 100_000))


def test_random_rankings_depend_on_the_seed_alone() -> None:
    first = [average_precision_p_value(0.3, 60, 12, method="monte_carlo", seed=seed) for seed in (1, 1, 2)]
    assert first[0] == first[1] != first[2]
    assert average_precision_p_value(1.0, 1000, 30, method="monte_carlo") == 1 / 100_000


def test_what_the_lower_ranks_add_has_the_moments_of_every_order() -> None:
    n, m, top = 11, 5, 4
    for hits in range(top + 1):
        sets = itertools.combinations(range(top + 1, n + 1), m - hits)
        sums = np.array([sum((hits + k) / rank for k, rank in enumerate(ranks, 1)) for ranks in sets])
        mean, variance = remainder_moments(n, m, top, np.array(float(hits)))
        assert (mean, variance) == pytest.approx((sums.mean(), sums.var()), rel=1e-11)


def test_p_values_never_vanish_and_end_where_average_precision_ends() -> None:
    assert average_precision_p_value(1.0, 1000, 30) >= 1 / math.comb(1000, 30)
    assert average_precision_p_value(1.0, 1000, 30) < 1e-8
    assert average_precision_p_value(0.9, 1000, 100) < 1e-8
    assert average_precision_p_value(0.0, 1000, 100) == 1
    assert average_precision_p_value(0.2, 10**9, 1) == 5e-9
    assert average_precision_p_value(1e-9, 10**9, 1) == 1


@pytest.mark.parametrize(
    ("n", "m", "method"),
    [
        (10**12, 1, "exact"),
        (1000, 3, "exact"),
        (28, 7, "exact"),
        (1000, 4, "grid"),
        (10**12, 5, "grid"),
        (1000, 970, "grid"),
        (1000, 971, "monte_carlo"),
        (10**4, 9999, "monte_carlo"),
        (100, 99, "exact"),
    ],
)
def test_auto_says_what_it_takes(n: int, m: int, method: str) -> None:
    assert null_method(n, m) == method


@settings(max_examples=25)
@given(st.integers(2, 100), st.data())
def test_p_values_fall_as_average_precision_rises(n: int, data: st.DataObject) -> None:
    m = data.draw(st.integers(1, max(1, n // 2)))
    values = np.linspace(0, 1, 12)
    actual, names = average_precision_p_values(values, n, m)
    assert names == [null_method(n, m)] * 12
    assert (np.diff(actual) <= 1e-12).all()
    assert ((actual > 0) & (actual <= 1)).all()


def test_many_queries_are_those_taken_one_by_one() -> None:
    ap, n, m = [0.5, np.nan, 0.2, 0.3, 0.1, 0.9], [10, 10, 1000, 1000, 60, 5], [3, 2, 50, 0, 50, 5]
    actual, names = average_precision_p_values(ap, n, m)
    single = [average_precision_p_value(*each) for each in zip(ap, n, m, strict=True)]
    assert actual == pytest.approx(single, nan_ok=True)
    assert [math.isnan(each) for each in single] == [False, True, False, True, False, False]
    assert names == ["exact", "exact", "grid", "exact", "monte_carlo", "exact"]
    assert single[5] == 1


def test_what_cannot_be_taken_is_refused() -> None:
    with pytest.raises(ValueError, match="method must be one of auto, exact"):
        average_precision_p_value(0.5, 10, 3, method="normal")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="lies in"):
        average_precision_p_value(1.1, 10, 3)
    with pytest.raises(ValueError, match="n must lie in"):
        average_precision_p_value(0.5, 10, 11)
    with pytest.raises(ValueError, match="too many sets"):
        average_precision_p_value(0.5, 1000, 30, method="exact")
