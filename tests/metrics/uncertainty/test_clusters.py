"""How far variances between clusters can be trusted: against definitions, scipy, and data with a known truth."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from pipeline.metrics.uncertainty.clusters import (
    Spread,
    area_interval,
    combined_spread,
    effective_number,
    implied_skewness,
    spread_of_shifts,
    stretched,
    stretches,
)
from pipeline.metrics.uncertainty.jackknife import logit_interval, t_quantile


def test_equal_clusters_count_fully_and_one_that_holds_all_counts_alone() -> None:
    sizes = np.array([[5, 100, 1], [5, 0, 2], [5, 0, 3]])
    assert effective_number(sizes) == pytest.approx([3, 1, 36 / 14])
    assert np.isnan(effective_number(np.zeros((3, 1)))).all()


@given(arrays(np.float64, 12, elements=st.floats(0.01, 1e6)), st.floats(0.01, 1e3))
def test_the_effective_number_lies_between_one_and_the_number_and_has_no_unit(
    sizes: np.ndarray[tuple[int], np.dtype[np.float64]], unit: float
) -> None:
    number = float(effective_number(sizes))
    assert 1 - 1e-9 <= number <= 12 + 1e-9
    assert float(effective_number(unit * sizes)) == pytest.approx(number, rel=1e-9)


def test_degrees_are_the_smaller_of_what_shifts_and_sizes_say() -> None:
    shifts = np.random.default_rng(1).uniform(-1, 1, 40)
    for effective, wanted in ((40.0, 39), (12.5, 11.5), (1.2, 1), (np.nan, 39)):
        assert float(spread_of_shifts(shifts, np.array(effective)).degrees) == pytest.approx(wanted)
    assert float(spread_of_shifts(np.eye(40)[0], np.array(40.0)).degrees) == pytest.approx(4)
    assert float(spread_of_shifts(shifts, np.array(40.0), np.array(30.0)).degrees) == 29


def test_the_spread_of_a_mean_is_that_of_its_values() -> None:
    values = np.random.default_rng(2).lognormal(size=60)
    shifts = (values - values.mean()) / 59  # of the mean, without each of them
    spread = spread_of_shifts(shifts, np.array(60.0))
    assert float(spread.variance) == pytest.approx(values.var(ddof=1) / 60, rel=1e-12)
    assert float(spread.skewed) == pytest.approx(stats.skew(values) / np.sqrt(60), rel=1e-12)
    assert float(spread_of_shifts(-shifts, np.array(60.0)).skewed) == pytest.approx(-float(spread.skewed))
    assert float(spread_of_shifts(np.zeros(5), np.array(5.0)).skewed) == 0
    assert np.isnan(spread_of_shifts(np.ones(1), np.array(1.0)).variance)


def test_beta_limits_allow_for_the_skewness_of_a_binomial_share() -> None:
    share, number = 0.1, 50
    variance = np.array(share * (1 - share) / number)
    assert float(implied_skewness(np.array(share), variance, "beta")) == pytest.approx(
        float(stats.binom(number, share).stats("s")), rel=1e-12
    )


def test_logit_limits_lie_apart_as_those_of_hall_for_what_they_imply() -> None:
    """To second order in the standard error: both differ by t² V (1 - 2p) / (p (1 - p)) in their distance."""
    share, se = np.array(0.2), 1e-3
    lower, upper = logit_interval(share, np.array(se), 2.0)
    gamma = float(implied_skewness(share, np.array(se**2), "logit"))
    asymmetry = float((upper - share) - (share - lower))
    assert asymmetry == pytest.approx(2 * gamma * 2.0**2 / 3 * se, rel=1e-3)


def test_limits_are_stretched_on_the_side_of_the_long_tail_only() -> None:
    lower, upper = stretches(np.array([0.0, 0.3, -0.3, 0.9, np.nan]), np.full(5, 20.0), 0.95)
    assert lower.tolist()[:2] == [1, 1]
    assert upper[[0, 2, 4]].tolist() == [1, 1, 1]
    assert upper[1] == pytest.approx(lower[2])
    assert 1.3 < upper[1] < upper[3] < 2  # beyond 0.4 skewness counts as 0.4


def test_stretched_quantiles_are_those_that_halls_transformation_takes_to_t() -> None:
    gamma, degrees = 0.25, np.array(15.0)
    quantile = float(t_quantile(0.95, degrees))
    reached = -float(stretches(np.array(gamma), degrees, 0.95)[1]) * quantile
    cubic = reached + gamma / 3 * reached**2 + gamma**2 / 27 * reached**3 + gamma / 6
    assert cubic == pytest.approx(-quantile, rel=1e-9)


@given(st.floats(0.001, 0.999), st.floats(0, 1), st.floats(0, 1), st.floats(1, 3), st.floats(1, 3))
def test_stretched_limits_hold_the_limits_and_stay_proportions(
    share: float, below: float, above: float, low: float, high: float
) -> None:
    limits = np.array([share * below]), np.array([share + (1 - share) * above])
    lower, upper = stretched(limits, np.array([share]), (np.array([low]), np.array([high])))
    assert 0 <= lower[0] <= limits[0][0] + 1e-12
    assert limits[1][0] - 1e-12 <= upper[0] <= 1


def test_limits_at_0_and_1_and_without_skewness_stay() -> None:
    one = np.ones(1)
    assert [side.tolist() for side in stretched((0 * one, one), one, (2 * one, 2 * one))] == [[0], [1]]
    limits = np.array([0.2]), np.array([0.3])
    assert stretched(limits, np.array([0.25]), (one, one)) == limits


def test_the_interval_of_an_area_of_rows_is_plain_and_that_of_clusters_holds_it() -> None:
    area, spread = np.array([0.7]), Spread(np.array([0.01]), np.array([12.0]), np.array([0.35]))
    rows = area_interval(area, spread, 0.95, clustered=False)
    plain = logit_interval(area, np.array([0.1]), t_quantile(0.95, np.array([12.0])))
    assert [side.tolist() for side in rows] == [side.tolist() for side in plain]
    clusters = area_interval(area, spread, 0.95, clustered=True)
    assert clusters[0][0] == rows[0][0]
    assert clusters[1][0] > rows[1][0]


def crossed_spreads(cells: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> list[Spread]:
    """The sampling errors over rows of a table, over its columns, and over its cells, of a sum that cells shift."""
    clusterings = (cells.sum(axis=1), cells.sum(axis=0), cells.ravel())
    return [spread_of_shifts(shifts, np.asarray(float(len(shifts)))) for shifts in clusterings]


@given(arrays(np.float64, (5, 4), elements=st.floats(-1e3, 1e3).map(lambda number: round(number, 3))))
def test_two_parents_have_the_moments_of_all_cells_that_share_one(
    cells: np.ndarray[tuple[int, int], np.dtype[np.float64]],
) -> None:
    spreads = crossed_spreads(cells)
    actual = combined_spread(spreads)
    factors = [4 / 5, 3 / 4, 19 / 20]
    sums = list(zip(factors, (cells.sum(axis=1), cells.sum(axis=0), cells.ravel()), strict=True))
    squares = [factor * np.sum(shifts**2) for factor, shifts in sums]
    cubes = [factor**1.5 * np.sum(shifts**3) for factor, shifts in sums]
    variance = squares[0] + squares[1] - squares[2]
    scale = 1e-9 * (1 + max(squares))
    assert float(actual.variance) == pytest.approx(max(variance, min(squares[:2])), abs=scale)
    assert float(actual.degrees) == min(float(spreads[0].degrees), float(spreads[1].degrees))
    assert -1 <= float(actual.skewed) <= 1
    if variance > min(squares[:2]) + 1e-6 * (1 + max(squares)):
        expected = (cubes[0] + cubes[1] - cubes[2]) / variance**1.5
        assert float(actual.skewed) == pytest.approx(np.clip(expected, -1, 1), abs=1e-6)
    turned = combined_spread([spreads[1], spreads[0], spreads[2]])
    assert float(turned.variance) == pytest.approx(float(actual.variance), abs=scale)


def test_one_clustering_is_itself_and_a_single_row_or_column_leaves_the_variance_unknown() -> None:
    cells = np.random.default_rng(2).normal(size=(5, 4))
    spreads = crossed_spreads(cells)
    assert combined_spread(spreads[:1]) is spreads[0]
    assert np.isnan(combined_spread(crossed_spreads(cells[:1])).variance)
    assert np.isnan(combined_spread(crossed_spreads(cells[:, :1])).variance)
