from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from pipeline.metrics.before_after.estimates import audited_precision
from pipeline.metrics.planning import (
    Question,
    _auc_error,
    _error_of_difference,
    detectable_now,
    factor_for_difference,
    labels_for,
    of_expected_share,
    other_run,
    power_of,
    rows_for_auc,
    rows_for_share,
    rows_for_share_assured,
    units_for_mean,
    width_with_labels,
)
from pipeline.metrics.uncertainty.jackknife import binomial_limits, logit_interval, tail


def widths(rows: int) -> np.ndarray:
    """Width of the interval at every number of hits."""
    hits = np.arange(rows + 1.0)
    lower, upper = binomial_limits(hits, rows - hits, tail(0.95, math.inf))
    return np.asarray(upper - lower)


@pytest.mark.parametrize(("share", "width"), [(0.9, 0.05), (0.98, 0.05), (0.2, 0.1), (0.9, 0.02)])
def test_the_width_is_reached_in_half_of_all_samples_and_in_four_of_five(share: float, width: float) -> None:
    expected = of_expected_share(share, 1.0, 0.95)
    for rows, wanted in ((rows_for_share(expected, width), 0.5), (rows_for_share_assured(expected, width), 0.8)):
        assert rows is not None
        probability = stats.binom.pmf(np.arange(rows + 1), rows, share)
        assert probability[widths(rows) <= width].sum() == pytest.approx(wanted, abs=0.12 if wanted == 0.5 else 0.02)


def test_one_half_is_the_most_that_can_be_needed() -> None:
    """384 rows give Wald's interval a width of 0.1 (statsmodels: 384.15), Wilson's and Jeffreys' a few less."""
    expected = of_expected_share(0.5, 1.0, 0.95)
    assert rows_for_share(expected, 0.1) == 382
    assert rows_for_share_assured(expected, 0.1) == 382
    effect = rows_for_share(of_expected_share(0.5, 2.5, 0.95), 0.1)
    assert effect == pytest.approx(2.5 * 382, abs=2)


def test_the_spread_of_values_is_as_wide_as_expected() -> None:
    units, assured = units_for_mean(1.0, 0.5, 0.95), units_for_mean(1.0, 0.5, 0.95, 0.8)
    assert units is not None
    assert assured is not None
    half = [stats.t.ppf(0.975, number - 1) / math.sqrt(number) for number in (units - 1, units)]
    assert half[0] > 0.25 >= half[1]
    limit = (0.25 * math.sqrt(assured) / stats.t.ppf(0.975, assured - 1)) ** 2
    assert 0.8 <= stats.chi2.cdf(limit * (assured - 1), assured - 1) < 0.82


def test_the_error_of_an_area_is_that_of_exponential_scores() -> None:
    generator = np.random.default_rng(2)
    area, draws = 0.8, 3000
    positive = generator.exponential(area / (1 - area), (draws, 40))
    negative = generator.exponential(1.0, (draws, 25))
    areas = (positive[:, :, None] > negative[:, None, :]).mean(axis=(1, 2))
    assert areas.mean() == pytest.approx(area, abs=0.01)
    assert areas.std() == pytest.approx(_auc_error(area, 40, 25), rel=0.05)


def test_the_rows_of_an_area_are_the_fewest() -> None:
    rows = rows_for_auc(0.85, 0.1, 0.1, 0.95, 1.5)
    assert rows is not None

    def width(number: int) -> float:
        error = math.sqrt(1.5) * _auc_error(0.85, 0.1 * number, 0.9 * number)
        lower, upper = logit_interval(np.asarray(0.85), np.asarray(error), 1.959963984540054)
        return float(upper - lower)

    assert width(rows) <= 0.1 < width(rows - 1)


@pytest.mark.parametrize(("matches", "precision"), [(2477, 0.9), (900, 0.7), (100_000, 0.8)])
def test_labels_give_the_width_to_the_typical_sample(matches: int, precision: float) -> None:
    labels = labels_for(matches, precision, 0.1, 0.95)
    right = round(matches * precision)
    numbers = np.arange(labels + 1)
    probability = stats.hypergeom.pmf(numbers, matches, right, labels)
    likely = numbers[probability > 1e-4]
    limits = audited_precision(np.full(len(likely), matches), np.full(len(likely), labels), likely, confidence=0.95)
    of_numbers = limits.upper - limits.lower
    order = np.argsort(of_numbers)
    median = of_numbers[order][np.searchsorted(probability[likely][order].cumsum(), 0.5)]
    assert median == pytest.approx(0.1, rel=0.02)


def test_few_matches_need_fewer_labels_and_never_more_than_there_are() -> None:
    assert labels_for(300, 0.9, 0.05, 0.95) < labels_for(3000, 0.9, 0.05, 0.95) < labels_for(300_000, 0.9, 0.05, 0.95)
    assert labels_for(20, 0.9, 0.001, 0.95) == 20
    assert width_with_labels(20, 20, 0.9, 0.95) == pytest.approx(0.0)
    assert labels_for(300, 1.0, 0.05, 0.95) < 100


@pytest.mark.parametrize(
    ("share", "difference", "expected"), [(0.85, 0.05, 905.37), (0.5, 0.05, 1564.67), (0.7, 0.1, 355.94)]
)
def test_two_runs_need_what_statsmodels_says(share: float, difference: float, expected: float) -> None:
    """`samplesize_proportions_2indep_onetail` of statsmodels 0.15.0 pools the variance, which takes a little more."""
    pilot = of_expected_share(share, 1.0, 0.95)
    other = other_run(pilot, difference)
    assert other is not None
    rows = factor_for_difference(pilot, other, Question("different", difference))
    assert rows == pytest.approx(expected, rel=0.01)


def test_the_other_run_lies_where_shares_vary_more() -> None:
    pilot = of_expected_share(0.9, 1.0, 0.95)
    other = other_run(pilot, 0.03)
    assert other is not None
    assert other.value == pytest.approx(0.87)
    assert other_run(of_expected_share(0.2, 1.0, 0.95, "jaccard"), 0.1).value == pytest.approx(0.3)  # type: ignore[union-attr]
    assert other_run(pilot, 0.95) is None


def test_two_runs_of_the_planned_size_find_the_difference() -> None:
    generator = np.random.default_rng(4)
    pilot = of_expected_share(0.7, 1.0, 0.95)
    other = other_run(pilot, 0.1)
    assert other is not None
    rows = math.ceil(factor_for_difference(pilot, other, Question("different", 0.1)) or 0)
    shares = generator.binomial(rows, [[pilot.value], [other.value]], (2, 20_000)) / rows
    errors = np.sqrt((shares * (1 - shares) / rows).sum(axis=0))
    assert (np.abs(shares[0] - shares[1]) > 1.96 * errors).mean() == pytest.approx(0.8, abs=0.02)
    now = detectable_now(pilot, Question("different", math.nan))
    assert now is not None
    assert power_of(Question("different", now), *_error_of_difference(pilot, pilot, 1.0)) == pytest.approx(0.8)
