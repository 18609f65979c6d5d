from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from pipeline.metrics.comparison.significance import minimum_detectable_difference
from pipeline.metrics.planning import Claim, Question, detectable, expected_power, power_of, units_for

STATSMODELS = [  # TTestPower().solve_power of statsmodels 0.15.0: effect size, power, level, two-sided, one-sided
    (0.1, 0.8, 0.05, 786.8089, 619.6107),
    (0.2, 0.9, 0.05, 264.6137, 215.4562),
    (0.2, 0.8, 0.01, 295.2973, 253.6138),
    (0.35, 0.8, 0.05, 66.0188, 51.8498),
    (0.5, 0.8, 0.05, 33.3671, 26.1375),
    (0.5, 0.9, 0.01, 62.8702, 54.8147),
    (0.8, 0.8, 0.05, 14.3028, 11.1442),
    (1.2, 0.8, 0.01, 11.5245, 9.8277),
]
POWERS = [  # TTestPower().power of statsmodels 0.15.0: effect size, units, level, two-sided, one-sided
    (0.3, 40, 0.05, 0.4565221127061356, 0.5868483569960783),
    (0.02, 5000, 0.05, 0.292895920099223, 0.4087228867061302),
    (0.5, 10, 0.05, 0.2931756065140767, 0.4272898267711782),
    (1.0, 5, 0.01, 0.12838794077932006, 0.21837627769117574),
    (0.1, 50, 0.1, 0.18127925687738203, 0.2808304494541809),
]
POWER_TOST = [  # PowerTOST (R), 2 × 2 cross-over, true ratio 0.95: coefficient of variation, subjects, power
    (0.3, 40, 0.815845),
    (0.25, 28, 0.807439),
    (0.25, 24, 0.739116),
    (0.2, 20, 0.834680),
]


@pytest.mark.parametrize(("effect", "power", "level", "two_sided", "one_sided"), STATSMODELS)
def test_units_are_those_of_statsmodels(
    effect: float, power: float, level: float, two_sided: float, one_sided: float
) -> None:
    assert units_for(Question("different", effect, math.nan, power, level), 1.0) == math.ceil(two_sided)
    assert units_for(Question("not_worse", 0.0, effect, power, level), 1.0) == math.ceil(one_sided)
    assert units_for(Question("not_worse", effect / 2, 1.5 * effect, power, level), 1.0) == math.ceil(one_sided)


@pytest.mark.parametrize(("effect", "units", "level", "two_sided", "one_sided"), POWERS)
def test_powers_are_those_of_statsmodels(
    effect: float, units: int, level: float, two_sided: float, one_sided: float
) -> None:
    error = 1 / math.sqrt(units)
    different = Question("different", effect, significance=level)
    assert power_of(different, error, units - 1) == pytest.approx(two_sided, abs=1e-9)
    not_worse = Question("not_worse", 0.0, effect, significance=level)
    assert power_of(not_worse, error, units - 1) == pytest.approx(one_sided, abs=1e-9)


@pytest.mark.parametrize(("variation", "subjects", "power"), POWER_TOST)
def test_the_power_of_equivalence_is_that_of_published_tables(variation: float, subjects: int, power: float) -> None:
    error = math.sqrt(2 / subjects * math.log(1 + variation**2))
    question = Question("equivalent", math.log(0.95), math.log(1.25))
    assert power_of(question, error, subjects - 2) == pytest.approx(power, abs=1e-5)


def test_both_tests_of_equivalence_reject_as_often_as_it_says() -> None:
    generator = np.random.default_rng(3)
    units, margin, draws = 12, 0.7, 40_000
    samples = generator.normal(0.1, 1.0, (draws, units))
    half = stats.t.ppf(0.95, units - 1) * samples.std(axis=1, ddof=1) / math.sqrt(units)
    shown = (np.abs(samples.mean(axis=1)) + half < margin).mean()
    expected = power_of(Question("equivalent", 0.1, margin), 1 / math.sqrt(units), units - 1)
    assert shown == pytest.approx(expected, abs=4 * math.sqrt(expected / draws))


@pytest.mark.parametrize("units", [2, 3, 30, 1000])
def test_what_a_pilot_can_detect_is_what_compare_says(units: int) -> None:
    expected = minimum_detectable_difference(1.7, units, power=0.8)
    error = 1.7 / math.sqrt(units)
    assert detectable(Question("different", math.nan), error, units - 1) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("claim", ["different", "not_worse", "equivalent"])
def test_what_is_detectable_has_the_power_and_needs_the_units(claim: Claim) -> None:
    shift = 0.0 if claim == "different" else 0.02
    size = detectable(Question(claim, shift), 0.1, 24)
    assert size is not None
    asked = Question(claim, size if claim == "different" else shift, size)
    assert power_of(asked, 0.1, 24) == pytest.approx(0.8, abs=1e-6)
    assert units_for(asked, 0.1 * 5) == 25


def test_millions_of_units_are_as_many_as_the_normal_distribution_says() -> None:
    quantiles = stats.norm.ppf(0.975) + stats.norm.ppf(0.8)
    assert units_for(Question("different", 1e-4), 1.0) == pytest.approx((quantiles / 1e-4) ** 2, rel=1e-4)
    assert units_for(Question("different", 1e-9), 1.0) is None
    assert power_of(Question("different", 1.0), 1e-6, 1e6) == pytest.approx(1.0)
    assert power_of(Question("different", 0.2), 0.1, math.inf) == pytest.approx(
        stats.norm.sf(stats.norm.ppf(0.975) - 2) + stats.norm.cdf(-stats.norm.ppf(0.975) - 2)
    )
    assert power_of(Question("equivalent", 0.0, 0.3), 0.1, math.inf) == pytest.approx(
        2 * stats.norm.cdf(3 - stats.norm.ppf(0.95)) - 1
    )


def test_the_power_is_a_mean_over_what_a_pilot_leaves_open() -> None:
    """Julious & Owen (2006): of a one-sided test with repeated units it is a probability of noncentral t."""
    question, of_pilot = Question("not_worse", 0.0, 0.4), 12.0
    error = 0.4 / 2.9
    generator = np.random.default_rng(8)
    errors = error * np.sqrt(of_pilot / generator.chisquare(of_pilot, 200_000))
    expected = stats.norm.cdf(0.4 / errors - stats.norm.ppf(0.95)).mean()
    assert expected_power(question, error, math.inf, of_pilot) == pytest.approx(expected, abs=0.003)
    assert expected_power(question, error, math.inf, math.inf) == power_of(question, error, math.inf) > expected
    with_few_degrees, with_all_degrees = (units_for(question, 1.0, degrees) for degrees in (of_pilot, math.inf))
    assert with_few_degrees is not None
    assert with_all_degrees is not None
    assert with_few_degrees > with_all_degrees
