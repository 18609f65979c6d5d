"""Variances from influences: against numpy, sums over rows written out, and the exact variance of a share."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from pipeline.metrics.curves.influence import (
    ClassMoments,
    degrees_of_rows,
    shifts_of_clusters,
    spread_of_means,
    variance_of_rows,
)

Floats = NDArray[np.float64]


def moments(weights: Floats, psi: Floats) -> ClassMoments:
    sums = (len(weights), weights.sum(), (weights**2).sum(), weights @ psi, weights**2 @ psi, weights**2 @ psi**2)
    powers = (weights**2 @ psi**3, weights**2 @ psi**4)
    return ClassMoments(*(np.array([float(each)]) for each in (*sums, *powers)))


NOTHING = ClassMoments(*(np.zeros(1) for _ in range(8)))


def test_without_weights_a_class_adds_the_variance_of_a_mean() -> None:
    psi = np.random.default_rng(1).normal(size=30)
    actual = moments(np.ones(30), psi)
    assert actual.mean[0] == pytest.approx(psi.mean())
    assert actual.variance[0] == pytest.approx(psi.var(ddof=1) / 30, rel=1e-12)


def test_with_weights_the_shifts_of_all_rows_are_squared() -> None:
    rng = np.random.default_rng(2)
    weights, psi = rng.uniform(0, 5, 40), rng.normal(3, 2, 40)
    mean = np.average(psi, weights=weights)
    wanted = 40 / 39 * ((weights * (psi - mean) / weights.sum()) ** 2).sum()
    assert moments(weights, psi).variance[0] == pytest.approx(wanted, rel=1e-12)
    assert moments(7 * weights, psi).variance[0] == pytest.approx(wanted, rel=1e-12)


def test_one_row_has_no_spread_and_no_row_no_mean() -> None:
    assert np.isnan(moments(np.ones(1), np.ones(1)).variance[0])
    assert np.isnan(NOTHING.variance[0])
    assert np.isnan(NOTHING.mean[0])


def test_equal_influences_give_exactly_or_nearly_no_variance_and_never_less() -> None:
    for psi in (0.1, 1e9, -3.0):
        variance = moments(np.full(1000, 0.7), np.full(1000, psi)).variance[0]
        assert 0 <= variance <= 1e-15 * psi**2


def test_classes_add_up_and_random_sizes_add_the_spread_of_the_share_of_positives() -> None:
    rng = np.random.default_rng(3)
    first = moments(np.ones(20), rng.normal(size=20))
    weights = rng.uniform(0.5, 2, 50)
    second = moments(weights, rng.normal(size=50))
    slope = np.array([0.3])
    fixed = variance_of_rows(first, second, slope, random_sizes=False)
    assert fixed[0] == pytest.approx(first.variance[0] + second.variance[0])
    sizes = 1 / 20 + (weights**2).sum() / weights.sum() ** 2
    assert variance_of_rows(first, second, slope, random_sizes=True)[0] == pytest.approx(fixed[0] + 0.09 * sizes)


def test_a_class_without_rows_adds_nothing_but_one_row_is_unknown() -> None:
    first, slope = moments(np.ones(20), np.arange(20.0)), np.zeros(1)
    for random_sizes in (False, True):
        actual = variance_of_rows(first, NOTHING, slope, random_sizes=random_sizes)
        assert actual[0] == pytest.approx(first.variance[0])
        one = variance_of_rows(first, moments(np.ones(1), np.ones(1)), slope, random_sizes=random_sizes)
        assert np.isnan(one[0])


def test_the_spread_of_the_share_of_positives_is_that_of_a_binomial_proportion() -> None:
    """An area that is the share of positives itself has slope share (1 - share), so the variance is that over n."""
    positives, negatives = 30, 70
    flat = [moments(np.ones(size), np.zeros(size)) for size in (positives, negatives)]
    actual = variance_of_rows(flat[0], flat[1], np.array([0.3 * 0.7]), random_sizes=True)
    assert actual[0] == pytest.approx(0.3 * 0.7 / 100, rel=1e-12)


def test_replicates_are_shifts_of_what_is_left_added_up_before_they_are_squared() -> None:
    rng = np.random.default_rng(4)
    positive, negative = rng.uniform(0, 3, (12, 2)), rng.uniform(0, 9, (12, 2))
    of_positive, of_negative = rng.normal(size=(12, 2)), rng.normal(size=(12, 2))
    slope = np.array([0.2, -0.4])
    actual = shifts_of_clusters((positive, negative), (of_positive, of_negative), slope).spread
    for column in range(2):
        total, others = positive[:, column].sum(), negative[:, column].sum()
        shifts = np.array(
            [
                (of_positive[g, column] - positive[g, column] * of_positive[:, column].sum() / total)
                / (total - positive[g, column])
                + slope[column] * positive[g, column] / (total - positive[g, column])
                - slope[column] * negative[g, column] / (others - negative[g, column])
                + (of_negative[g, column] - negative[g, column] * of_negative[:, column].sum() / others)
                / (others - negative[g, column])
                for g in range(12)
            ]
        )
        assert actual.variance[column] == pytest.approx(11 / 12 * (shifts**2).sum(), rel=1e-12)
        wanted = (shifts**3).sum() / (shifts**2).sum() ** 1.5
        assert actual.skewed[column] == pytest.approx(wanted, rel=1e-12)


def test_one_row_in_every_replicate_is_a_row() -> None:
    values = np.random.default_rng(5).normal(size=25)
    assert spread_of_means([(values, np.ones(25))]).variance == pytest.approx(values.var(ddof=1) / 25, rel=1e-12)


def test_a_mean_over_clusters_has_the_variance_of_the_jackknife() -> None:
    rng = np.random.default_rng(6)
    weights = rng.uniform(1, 4, 15)
    values = weights * rng.normal(2, 1, 15)
    mean = values.sum() / weights.sum()
    without = np.array([np.delete(values, g).sum() / np.delete(weights, g).sum() for g in range(15)])
    wanted = 14 / 15 * ((without - mean) ** 2).sum()
    assert spread_of_means([(values, weights)]).variance == pytest.approx(wanted, rel=1e-12)


def test_one_replicate_has_no_spread_and_one_that_holds_a_class_is_not_divided_by_nothing() -> None:
    assert np.isnan(spread_of_means([(np.ones(1), np.ones(1))]).variance)
    ones = np.ones((1, 3))
    actual = shifts_of_clusters((ones, ones), (ones, ones), np.zeros(3)).spread.variance
    assert actual.shape == (3,)
    assert np.isnan(actual).all()
    positive, negative = np.array([4.0, 0.0, 0.0]), np.array([1.0, 2.0, 3.0])
    held = shifts_of_clusters((positive, negative), (positive, np.array([0.5, 1.5, 0.5])), 0.1).spread
    assert np.isfinite([held.variance, held.skewed]).all()
    assert held.degrees == 1


def test_kurtosis_is_that_of_scipy_and_never_below_that_of_a_normal() -> None:
    from scipy.stats import kurtosis

    psi = np.random.default_rng(7).standard_t(3, 500)
    wanted = float(kurtosis(psi, fisher=False))
    assert wanted > 4
    assert moments(np.ones(500), psi).kurtosis[0] == pytest.approx(wanted, rel=1e-10)
    assert moments(np.ones(500), 100 + psi).kurtosis[0] == pytest.approx(wanted, rel=1e-6)
    assert moments(np.ones(500), np.arange(500.0)).kurtosis[0] == 3
    assert moments(np.ones(5), np.ones(5)).kurtosis[0] == 3
    with pytest.raises(ValueError, match="third and fourth powers"):
        _ = ClassMoments(*(np.ones(1) for _ in range(6))).kurtosis


def test_short_tails_have_the_degrees_of_freedom_of_welch() -> None:
    """Against scipy: the confidence interval of Welch's test has the same degrees."""
    from scipy.stats import ttest_ind

    first, second = np.linspace(0, 1, 12), 3 * np.linspace(0, 1, 40) ** 2
    classes = moments(np.ones(12), first), moments(np.ones(40), second)
    variance = variance_of_rows(*classes, np.zeros(1), random_sizes=False)
    wanted = ttest_ind(first, second, equal_var=False).df
    assert degrees_of_rows(*classes, variance)[0] == pytest.approx(wanted, rel=1e-10)


def test_long_tails_have_fewer_degrees_but_three_at_least_and_few_rows_those_of_welch() -> None:
    rng = np.random.default_rng(8)
    calm, wild = moments(np.ones(300), rng.normal(size=300)), moments(np.ones(300), np.eye(300)[0] * 50)
    degrees = []
    for first in (calm, wild):
        variance = variance_of_rows(first, calm, np.zeros(1), random_sizes=False)
        degrees.append(degrees_of_rows(first, calm, variance)[0])
    assert degrees[0] > 400
    assert degrees[1] == 3
    few = moments(np.ones(3), np.array([0.0, 1.0, 5.0]))
    variance = variance_of_rows(few, NOTHING, np.zeros(1), random_sizes=False)
    assert degrees_of_rows(few, NOTHING, variance)[0] == pytest.approx(2)


def test_where_nothing_varies_the_degrees_are_the_rows() -> None:
    flat = moments(np.ones(10), np.ones(10))
    variance = variance_of_rows(flat, flat, np.zeros(1), random_sizes=False)
    assert degrees_of_rows(flat, flat, variance)[0] == pytest.approx(18)


def test_degrees_of_clusters_lie_between_four_and_their_number_less_one() -> None:
    rng = np.random.default_rng(9)
    for values, low, high in (
        (rng.normal(size=200), 100, 199),
        (rng.uniform(-1, 1, 30), 29, 29),
        (np.eye(200)[0] * 99, 4, 4),
        (rng.normal(size=3), 1, 2),
        (np.ones(1), 1, 1),
    ):
        actual = float(spread_of_means([(values, np.ones_like(values))]).degrees)
        assert low <= actual <= high
