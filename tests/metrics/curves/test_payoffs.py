"""Means over rows by their outcome: against fractions, against limits of shares, and against a simulated truth."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.metrics.curves.decisions import Payoffs, of_smaller
from pipeline.metrics.uncertainty.proportions import Confusion, Weights, intervals_of_clusters, intervals_of_rows


def confusion(*counts: object) -> Confusion:
    return Confusion(*(np.asarray(count, dtype=np.float64) for count in counts))


@given(st.tuples(*[st.integers(0, 50)] * 4).filter(any), st.integers(0, 19))
def test_net_benefit_is_its_formula(counts: tuple[int, int, int, int], step: int) -> None:
    tp, fp, fn, tn = counts
    probability, n = Fraction(step, 20), sum(counts)
    odds = probability / (1 - probability)
    model = Payoffs.of_net_benefit(np.array([float(probability)]))
    beyond = Payoffs.beyond_all(np.array([float(probability)]))
    exact = Fraction(tp, n) - Fraction(fp, n) * odds
    of_all = Fraction(tp + fn, n) - Fraction(fp + tn, n) * odds
    table = confusion([tp], [fp], [fn], [tn])
    assert model.mean(table)[0] == pytest.approx(float(exact), abs=1e-12)
    assert beyond.mean(table)[0] == pytest.approx(float(exact - of_all), abs=1e-12)


def test_costs_of_1_for_either_error_have_the_limits_of_the_share_of_errors() -> None:
    counts = confusion([8], [12], [9], [70])
    errors = confusion([21], [0], [78], [0])
    of_errors = intervals_of_rows(errors, None, 0.95, names=["recall"])["recall"]
    assert np.array(Payoffs(0, 1, 1, 0).limits_of_rows(counts, None, 0.95)) == pytest.approx(np.array(of_errors))
    # in another unit, and counted from a cost of 5 for a right answer
    moved = Payoffs(5, 25, 25, 5).limits_of_rows(counts, None, 0.95)
    assert np.array(moved) == pytest.approx(5 + 20 * np.array(of_errors))


def test_equal_weights_say_what_counts_say() -> None:
    counts = confusion([8, 5], [12, 3], [9, 12], [70, 79])
    weights = Weights(confusion(*(9 * side for side in (counts.tp, counts.fp, counts.fn, counts.tn))), 3.0, 3.0)
    heavy = confusion(*(3 * side for side in (counts.tp, counts.fp, counts.fn, counts.tn)))
    payoffs = Payoffs(-2, 1, 20, 0)
    for ours, plain in zip(
        payoffs.limits_of_rows(heavy, weights, 0.95), payoffs.limits_of_rows(counts, None, 0.95), strict=True
    ):
        assert ours == pytest.approx(plain)


def test_clusters_have_the_limits_of_a_share_and_one_has_none() -> None:
    rng = np.random.default_rng(3)
    counts = confusion(*rng.poisson(4, (4, 30, 2)))
    errors = confusion(counts.fp + counts.fn, 0 * counts.tp, counts.tp + counts.tn, 0 * counts.tp)
    ours = Payoffs(0, 1, 1, 0).limits_of_clusters(counts, 0.95)
    shares = intervals_of_clusters(errors, 0.95, heaviest=(1, 1), names=["recall"])["recall"]
    assert np.array(ours) == pytest.approx(np.array(shares))
    alone = confusion(*(side[:1] for side in (counts.tp, counts.fp, counts.fn, counts.tn)))
    assert np.isnan(Payoffs(0, 1, 1, 0).limits_of_clusters(alone, 0.95)).all()


def test_the_highest_cost_can_hide_in_a_sample_without_it() -> None:
    lower, upper = Payoffs(0, 1, 20, 0).limits_of_rows(confusion([50], [10], [0], [940]), None, 0.95)
    # three misses in a thousand rows would be seen 19 times in 20
    assert lower[0] < 0.01 < 0.01 + 20 * 0.003 < upper[0] < 0.01 + 20 * 0.006


def test_limits_of_the_smaller_of_two_means() -> None:
    first, second = (np.array([1.0]), np.array([4.0])), (np.array([2.0]), np.array([3.0]))
    assert of_smaller(first, second) == (np.array([1.0]), np.array([3.0]))


@pytest.mark.parametrize(("values", "least"), [((0, 1, 20, 0), 0.93), ((1, -1 / 9, 0, 0), 0.93), ((-5, 1, 2, 0), 0.93)])
def test_limits_hold_the_mean_of_simulated_rows(values: tuple[float, ...], least: float) -> None:
    shares, rows = np.array([0.08, 0.06, 0.02, 0.84]), 500
    drawn = np.random.default_rng(5).multinomial(rows, shares, 4000).T
    lower, upper = Payoffs(*values).limits_of_rows(confusion(*drawn), None, 0.95)
    truth = float(shares @ np.array(values))
    assert least < ((lower <= truth) & (truth <= upper)).mean() < 0.975
