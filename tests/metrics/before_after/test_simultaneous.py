"""Limits that hold at all thresholds together: by definition, and by how often they fail where the truth is known."""

from __future__ import annotations

import numpy as np
import pytest
from before_after_counts import Setting, simulate, truth
from scipy.stats import norm

from pipeline.metrics.before_after.estimates import Sides
from pipeline.metrics.before_after.intervals import intervals, precision_at_least, single_confidence


def test_one_threshold_needs_no_adjustment_beyond_its_own_side() -> None:
    contributions = np.random.default_rng(1).normal(size=(400, 1))
    assert single_confidence(contributions, 0.95, draws=20_000) == pytest.approx(0.90, abs=0.02)


def test_independent_thresholds_need_nearly_what_bonferroni_asks() -> None:
    contributions = np.zeros((4000, 10))
    for column in range(10):
        contributions[column * 400 : (column + 1) * 400, column] = 1.0
    single = single_confidence(contributions, 0.95, draws=4000)
    sidak = 1 - 2 * (1 - 0.95 ** (1 / 10))
    assert single == pytest.approx(sidak, abs=0.006)
    assert single <= 1 - 2 * 0.05 / 10


def test_equal_thresholds_need_no_more_than_one() -> None:
    column = np.random.default_rng(2).normal(size=(300, 1))
    one, hundred = (single_confidence(np.repeat(column, times, axis=1), 0.95) for times in (1, 50))
    assert hundred == pytest.approx(one, abs=0.01)


def test_without_any_spread_bonferroni_decides() -> None:
    assert single_confidence(np.zeros((30, 8)), 0.9) == pytest.approx(1 - 2 * 0.1 / 8)


@pytest.mark.wide
def test_the_quantile_is_that_of_the_normal_distribution_for_one_sum() -> None:
    single = single_confidence(np.ones((2000, 1)), 0.99, draws=20_000)
    assert norm.ppf((1 + single) / 2) == pytest.approx(norm.ppf(0.99), abs=0.12)


def test_limits_are_below_those_of_single_thresholds_and_nan_with_one_replicate() -> None:
    batch = simulate(Setting(60, 1.0, bursty=True, thresholds=20), 1, np.random.default_rng(3))
    before, after = batch.far[0] + batch.near[0], batch.false_after[0] + batch.true_after[0]
    n_before, n_after = batch.n_far[0] + batch.n_near[0], batch.n_after[0]
    sides = Sides(before, after, n_before, n_after)
    together = precision_at_least([sides], reference=0, confidence=0.95)
    single = intervals([sides], reference=0, confidence=0.90)["precision"].lower
    assert (together <= single + 1e-12).all()
    alone = Sides(before[:1], after[:1], n_before[:1], n_after[:1])
    assert np.isnan(precision_at_least([alone], reference=0, confidence=0.95)).all()
    assert np.isnan(precision_at_least([sides], reference=None, confidence=0.95)).all(), "nothing to correct by"


@pytest.mark.wide
def test_limits_of_all_thresholds_seldom_fail_together() -> None:
    setting = Setting(100, 1.0, bursty=False, thresholds=30)
    batch, rng_sets = simulate(setting, 150, np.random.default_rng(4)), range(150)
    expected = truth(setting)["precision"]
    failed = adjusted = 0
    for number in rng_sets:
        before, after = batch.far[number] + batch.near[number], batch.false_after[number] + batch.true_after[number]
        sides = Sides(before, after, batch.n_far[number] + batch.n_near[number], batch.n_after[number])
        single = intervals([sides], reference=0, confidence=0.90)["precision"].lower
        failed += bool((single > expected).any())
        adjusted += bool((precision_at_least([sides], reference=0, confidence=0.95) > expected).any())
    assert adjusted <= 16
    assert failed > adjusted
