"""Rates at another prevalence: against counts, against fractions, against Fieller's limits, and simulated."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from pipeline.metrics.curves.decisions import Cost, Rate, Rates, _ratio_limits, correlation_of_rates
from pipeline.metrics.uncertainty.jackknife import fieller_interval
from pipeline.metrics.uncertainty.proportions import Confusion, intervals_of_rows

Floats = NDArray[np.float64]


def rate(value: float, lower: float | None = None, upper: float | None = None) -> Rate:
    sides = (value, value if lower is None else lower, value if upper is None else upper)
    return Rate(*(np.array([side]) for side in sides))


def rates(recall: Rate, fpr: Rate, correlation: float = 0.0) -> Rates:
    return Rates(recall, fpr, np.array([correlation]))


def single(rate: Rate) -> tuple[float, float, float]:
    return float(rate.value[0]), float(rate.lower[0]), float(rate.upper[0])


@given(st.integers(1, 40), st.integers(0, 40), st.integers(0, 40), st.integers(1, 40))
def test_at_the_prevalence_of_the_sample_they_are_those_of_the_counts(tp: int, fp: int, fn: int, tn: int) -> None:
    positives, negatives = tp + fn, fp + tn
    prevalence = positives / (positives + negatives)
    of_sample = rates(rate(tp / positives), rate(fp / negatives))
    assert of_sample.precision(prevalence).value[0] == pytest.approx(tp / (tp + fp))
    assert of_sample.negative_predictive_value(prevalence).value[0] == pytest.approx(tn / (tn + fn))
    assert of_sample.f1(prevalence).value[0] == pytest.approx(2 * tp / (2 * tp + fp + fn))
    assert of_sample.alert_share(prevalence)[0] == pytest.approx((tp + fp) / (positives + negatives))
    cost = Cost(fp=1, fn=20, tp=-3, tn=0.5)
    total = fp + 20 * fn - 3 * tp + 0.5 * tn
    assert of_sample.cost_per_row(cost, prevalence).value[0] == pytest.approx(total / (positives + negatives))


def test_elsewhere_they_are_those_of_bayes() -> None:
    # sensitivity .9 and specificity .95 where one in a hundred is true
    recall, fpr, share = Fraction(9, 10), Fraction(1, 20), Fraction(1, 100)
    assert recall * share / (recall * share + fpr * (1 - share)) == Fraction(2, 13)
    of_test = rates(rate(0.9), rate(0.05))
    assert single(of_test.precision(0.01)) == pytest.approx((2 / 13,) * 3)
    assert of_test.negative_predictive_value(0.01).value[0] == pytest.approx(0.9405 / 0.9415)
    assert of_test.f1(0.01).value[0] == pytest.approx(2 * (2 / 13) * 0.9 / (2 / 13 + 0.9))


def test_limits_of_precision_have_the_same_odds_ratio_at_every_prevalence() -> None:
    of_test = rates(rate(0.7, 0.6, 0.8), rate(0.05, 0.03, 0.09))
    likelihood_ratios = []
    for prevalence in (0.001, 0.2, 0.9):
        sides = np.array(single(of_test.precision(prevalence)))
        likelihood_ratios.append(sides / (1 - sides) * (1 - prevalence) / prevalence)
    for ratio in likelihood_ratios[1:]:
        assert ratio == pytest.approx(likelihood_ratios[0])


@pytest.mark.parametrize("correlation", [-0.6, 0.0, 0.5])
def test_of_symmetric_limits_the_ratio_has_those_of_fieller(correlation: float) -> None:
    over, under, errors, quantile = 0.2, 0.5, (0.02, 0.04), 1.96
    first, second = (
        rate(value, value - quantile * error, value + quantile * error)
        for value, error in zip((over, under), errors, strict=True)
    )
    lower, upper = _ratio_limits(first, second, np.array([correlation]))
    of_first, of_second = (np.array([error**2]) for error in errors)
    shared = np.array([correlation * errors[0] * errors[1]])
    fieller = fieller_interval(np.array([over]), np.array([under]), (of_first, of_second, shared), quantile)
    assert (lower[0], upper[0]) == pytest.approx((fieller[0][0], fieller[1][0]))


@pytest.mark.parametrize("lowest", [0.0, 1e-19, 1e-18, 1e-17, 1e-12])
def test_a_lower_limit_beside_0_is_as_exact_as_one_further_away(lowest: float) -> None:
    """With rates that go together the terms of the quadratic cancel there; F1 had a lower limit of 1."""
    beside, further = (rates(rate(0.3, lower, 0.7), rate(0.005, 0.0, 0.9), 0.8) for lower in (lowest, 1e-9))
    for name in ("precision", "f1", "negative_predictive_value"):
        value, lower, upper = single(getattr(beside, name)(0.01))
        assert 0 <= lower <= value <= upper <= 1
        assert lower == pytest.approx(single(getattr(further, name)(0.01))[1], rel=1e-6), name


def test_cost_of_symmetric_limits_is_that_of_the_delta_method() -> None:
    cost, prevalence, errors, correlation = Cost(fp=1, fn=20), 0.1, (0.03, 0.01), 0.4
    of_test = rates(
        rate(0.7, 0.7 - errors[0], 0.7 + errors[0]), rate(0.05, 0.05 - errors[1], 0.05 + errors[1]), correlation
    )
    slopes = -20 * prevalence, 1 - prevalence
    variance = sum((slope * error) ** 2 for slope, error in zip(slopes, errors, strict=True))
    variance += 2 * correlation * slopes[0] * slopes[1] * errors[0] * errors[1]
    value = 20 * prevalence * 0.3 + 0.9 * 0.05
    expected = (value, value - variance**0.5, value + variance**0.5)
    assert single(of_test.cost_per_row(cost, prevalence)) == pytest.approx(expected)


def test_without_false_positives_precision_is_1_and_its_lower_limit_is_that_of_one_unseen() -> None:
    value, lower, upper = single(rates(rate(0.5, 0.4, 0.6), rate(0.0, 0.0, 0.003)).precision(0.01))
    assert (value, upper) == (1.0, 1.0)
    assert 0 < lower < 0.5 * 0.01 / (0.5 * 0.01 + 0.003 * 0.99) < 1


def test_where_nothing_is_retrieved_or_a_class_is_missing_nothing_is_defined() -> None:
    nothing = rates(rate(0.0, 0.0, 0.1), rate(0.0, 0.0, 0.1))
    assert np.isnan(single(nothing.precision(0.1))).all()
    assert single(nothing.negative_predictive_value(0.1))[0] == pytest.approx(0.9)
    for one_class in (rates(rate(np.nan), rate(0.2)), rates(rate(0.2), rate(np.nan))):
        for defined in (one_class.precision(0.1), one_class.f1(0.1), one_class.negative_predictive_value(0.1)):
            assert np.isnan(single(defined)).all()


def test_without_limits_of_the_rates_there_are_none() -> None:
    for alone in (rates(rate(0.5, np.nan, np.nan), rate(0.1, 0.0, 0.2)), rates(rate(0.5), rate(0.1, np.nan, 0.2))):
        for ratio in (alone.precision(0.1), alone.f1(0.1), alone.negative_predictive_value(0.1)):
            value, lower, upper = single(ratio)
            assert not np.isnan(value)
            assert np.isnan([lower, upper]).all()


def test_the_correlation_is_that_of_the_values_without_each_cluster() -> None:
    tp, fp, fn, tn = np.random.default_rng(2).poisson(5, (4, 12, 3)).astype(np.float64)
    left_out = []
    for cluster in range(12):
        hits, alarms, missed, right = (np.delete(side, cluster, axis=0).sum(axis=0) for side in (tp, fp, fn, tn))
        left_out.append((hits / (hits + missed), alarms / (alarms + right)))
    table = np.array(left_out)
    expected = [np.corrcoef(table[:, 0, column], table[:, 1, column])[0, 1] for column in range(3)]
    assert correlation_of_rates([Confusion(tp, fp, fn, tn)]).tolist() == pytest.approx(expected)


@pytest.mark.parametrize("prevalence", [0.01, 0.5])
def test_limits_hold_the_truth_of_simulated_rows(prevalence: float) -> None:
    rng, recall, fpr = np.random.default_rng(7), 0.7, 0.08
    positives = rng.binomial(400, 0.25, 4000)
    tp, fp = rng.binomial(positives, recall), rng.binomial(400 - positives, fpr)
    counts = Confusion(*(side.astype(np.float64) for side in (tp, fp, positives - tp, 400 - positives - fp)))
    limits = intervals_of_rows(counts, None, 0.95, names=["recall", "fpr"])
    sample = Rates(
        Rate(tp / positives, *limits["recall"]), Rate(fp / (400 - positives), *limits["fpr"]), np.zeros(4000)
    )
    truth = rates(rate(recall), rate(fpr))
    for name in ("precision", "f1", "negative_predictive_value"):
        ours, exact = (getattr(each, name)(prevalence) for each in (sample, truth))
        assert 0.93 < ((ours.lower <= exact.value) & (exact.value <= ours.upper)).mean() < 0.975
