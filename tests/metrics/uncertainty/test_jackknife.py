from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from before_after_counts import Setting, simulate
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pipeline.metrics.uncertainty.jackknife import (
    binomial_limits,
    covariance,
    dispersion,
    effective_degrees,
    fieller_interval,
    gamma_interval,
    leave_one_out,
    log_interval,
    logit_interval,
    negative_binomial_quantile,
    p_value,
    proportion_limit_above,
    sign_flip_test,
    t_quantile,
    tail,
)

if TYPE_CHECKING:
    from pipeline.metrics.uncertainty.jackknife import Floats

EVENTS = 300


def floats(*values: float) -> Floats:
    return np.array(values, dtype=np.float64)


def test_jackknife_of_totals_is_the_variance_of_a_sum() -> None:
    rng = np.random.default_rng(1)
    first, second = rng.poisson(3.0, (40, 5)), rng.poisson(9.0, (40, 5))
    jackknifed = leave_one_out(first), leave_one_out(second)
    for column in range(5):
        expected = 40 * np.cov(first[:, column], second[:, column])
        assert covariance(jackknifed[0])[column] == pytest.approx(expected[0, 0])
        assert covariance(*jackknifed)[column] == pytest.approx(expected[0, 1])


def test_jackknife_of_a_ratio_by_hand() -> None:
    hits, pairs = floats(1, 0, 4, 2), floats(10, 8, 20, 11)
    ratios = [(7 - h) / (49 - p) for h, p in zip(hits, pairs, strict=True)]
    expected = 3 / 4 * sum((ratio - sum(ratios) / 4) ** 2 for ratio in ratios)
    assert covariance(leave_one_out(hits) / leave_one_out(pairs)) == pytest.approx(expected)


def linearised(z: Floats) -> Floats:
    """Standard errors from influences of shape (E, T)."""
    return np.asarray(np.sqrt(EVENTS / (EVENTS - 1) * ((z - z.mean(axis=0)) ** 2).sum(axis=0)))


@pytest.mark.parametrize("heterogeneity", [0.0, 1.0])
def test_jackknife_agrees_with_linearised_standard_errors(heterogeneity: float) -> None:
    setting = Setting(EVENTS, heterogeneity, positives=60.0)
    batch = simulate(setting, 1, np.random.default_rng(20))
    seen = batch.far[0] + batch.near[0], batch.false_after[0] + batch.true_after[0]
    keep = seen[0].sum(axis=0) >= 30
    m_b, m_a = (m[:, keep].astype(np.float64) for m in seen)
    n_b, n_a = ((n[0] * 1.0)[:, None] for n in (batch.n_far + batch.n_near, batch.n_after))

    fpr, c = m_b.sum(axis=0) / n_b.sum(), n_a.sum() / n_b.sum()
    tp, matched = m_a.sum(axis=0) - fpr * n_a.sum(), m_a.sum(axis=0)
    u = m_b - fpr * n_b
    z_fpr, z_tp = u / n_b.sum(), m_a - fpr * n_a - c * u
    positives = tp[0] / (1 - fpr[0])
    z_positives = (z_tp[:, :1] + positives * z_fpr[:, :1]) / (1 - fpr[0])
    z_corrected = z_tp + fpr * z_positives + positives * z_fpr
    corrected = tp + fpr * positives
    recall, z_recall = tp / tp[0], (z_tp - tp / tp[0] * z_tp[:, :1]) / tp[0]
    influences = {
        "fpr": z_fpr,
        "tp": z_tp,
        "log q": m_b / m_b.sum(axis=0) + n_a / n_a.sum() - n_b / n_b.sum() - m_a / matched,
        "recall": z_recall,
        "positives": z_positives,
        "tp corrected": z_corrected,
        "precision corrected": (z_corrected - corrected / matched * m_a) / matched,
        "recall corrected": z_fpr + (1 - fpr[0]) * z_recall - recall * z_fpr[:, :1],
    }

    rest_b, rest_a, pairs_b, pairs_a = (leave_one_out(counts) for counts in (m_b, m_a, n_b, n_a))
    rest_fpr = rest_b / pairs_b
    rest_tp = rest_a - rest_fpr * pairs_a
    rest_positives = rest_tp[:, :1] / (1 - rest_fpr[:, :1])
    rest_corrected = rest_tp + rest_fpr * rest_positives
    values = {
        "fpr": rest_fpr,
        "tp": rest_tp,
        "log q": np.log(rest_fpr * pairs_a / rest_a),
        "recall": rest_tp / rest_tp[:, :1],
        "positives": rest_positives,
        "tp corrected": rest_corrected,
        "precision corrected": rest_corrected / rest_a,
        "recall corrected": rest_corrected / rest_positives,
    }
    for name, value in values.items():
        where = slice(1, None) if name.startswith("recall") else slice(None)  # exactly 1 at the reference
        ours, theirs = np.sqrt(covariance(value))[where], linearised(influences[name])[where]
        np.testing.assert_allclose(ours, theirs, rtol=0.05, err_msg=name)


def test_effective_degrees_tell_even_spreads_from_single_replicates() -> None:
    rng = np.random.default_rng(3)
    assert effective_degrees(rng.standard_normal((400, 1)))[0] == pytest.approx(399, rel=0.2)
    assert effective_degrees(np.eye(30)[:, :1])[0] == 4.0
    assert effective_degrees(np.zeros((30, 1)))[0] == 29.0
    assert effective_degrees(np.eye(3)[:, :1])[0] == 2.0


def test_t_quantile_and_tail_and_p_value_belong_together() -> None:
    assert t_quantile(0.9, 7.0) == pytest.approx(stats.t.ppf(0.95, 7))
    assert tail(0.9, 7.0) == pytest.approx(stats.norm.cdf(-stats.t.ppf(0.95, 7)))
    assert tail(0.95, 1e6) == pytest.approx(0.025, rel=1e-4)
    assert p_value(tail(0.9, 7.0), 7.0) == pytest.approx(0.1)
    assert p_value(floats(0.8), 7.0)[0] == 1.0


def test_log_and_logit_intervals_by_definition() -> None:
    lower, upper = log_interval(floats(0.2, 0.0, -1.0), floats(0.05, 0.1, 0.1), 2.0)
    assert (lower[0], upper[0]) == (pytest.approx(0.2 * math.exp(-0.5)), pytest.approx(0.2 * math.exp(0.5)))
    assert np.isnan([*lower[1:], *upper[1:]]).all()
    lower, upper = logit_interval(floats(0.8, 0.0, 1.0, -0.1), floats(0.05, 0.1, 0.1, 0.1), 2.0)
    width, centre = 2 * 0.05 / (0.8 * 0.2), math.log(0.8 / 0.2)
    assert lower[0] == pytest.approx(1 / (1 + math.exp(width - centre)))
    assert upper[0] == pytest.approx(1 / (1 + math.exp(-width - centre)))
    assert np.isnan([*lower[1:], *upper[1:]]).all()


@given(
    numerator=st.floats(0, 2),
    sd_numerator=st.floats(0.01, 2),
    sd_denominator=st.floats(0.01, 2),
    correlation=st.floats(-0.95, 0.95),
)
def test_fieller_is_the_hull_of_the_ratios_that_are_not_rejected(
    numerator: float, sd_numerator: float, sd_denominator: float, correlation: float
) -> None:
    shared = correlation * sd_numerator * sd_denominator
    variances = floats(sd_numerator**2), floats(sd_denominator**2), floats(shared)
    lower, upper = (limit[0] for limit in fieller_interval(floats(numerator), floats(1.0), variances, 2.0))
    ratios = np.linspace(0, 1, 2001)
    variance = sd_numerator**2 + ratios**2 * sd_denominator**2 - 2 * ratios * shared
    kept = ratios[(numerator - ratios) ** 2 <= 4.0 * variance]
    assert 0 <= lower <= min(numerator, 1.0) <= upper <= 1
    if len(kept):
        assert lower == pytest.approx(min(kept[0], numerator), abs=1e-3)
        assert upper == pytest.approx(max(kept[-1], min(numerator, 1.0)), abs=1e-3)


def test_fieller_textbook_case() -> None:
    variances = floats(4.0), floats(9.0), floats(1.0)
    lower, upper = fieller_interval(floats(30.0), floats(60.0), variances, 2.0)
    a, b, c = 60**2 - 4 * 9, 30 * 60 - 4 * 1, 30**2 - 4 * 4
    assert lower[0] == pytest.approx((b - math.sqrt(b * b - a * c)) / a)
    assert upper[0] == pytest.approx((b + math.sqrt(b * b - a * c)) / a)


def test_gamma_interval_is_garwood_for_none_and_mid_for_many() -> None:
    lower, upper = gamma_interval(floats(0, 400), floats(1, 1), 0.025)
    assert lower[0] == 0.0
    assert upper[0] == pytest.approx(stats.chi2.ppf(0.975, 2) / 2)
    assert lower[1] == pytest.approx(stats.chi2.ppf(0.025, 801) / 2)
    assert upper[1] >= stats.chi2.ppf(0.975, 801) / 2
    assert upper[1] == pytest.approx(400 * math.exp(1.96 / 20), rel=1e-4)


def test_gamma_interval_scales_with_the_dispersion() -> None:
    single, double = gamma_interval(floats(30), floats(1), 0.025), gamma_interval(floats(60), floats(2), 0.025)
    assert [limit[0] for limit in double] == [pytest.approx(2 * limit[0]) for limit in single]


def test_dispersion_is_carried_to_thresholds_with_few_counts() -> None:
    count = floats(3000, 300, 40, 5, 0)
    degrees = np.full(5, 20.0)
    bursts, _ = dispersion(floats(3, 3, 3, 1, 0), degrees, count)
    assert bursts[:3].tolist() == [3, 3, 3]
    assert (bursts[3:] > 2.5).all()
    differing, _ = dispersion(1 + count / 100, degrees, count)
    np.testing.assert_allclose(differing, 1 + count / 100)
    alone, carried = dispersion(floats(0.5, 0.9, 1.0, 1.0, 1.0), degrees, count)
    assert alone.tolist() == [1.0] * 5
    assert (carried > 1e5).all()


def test_binomial_limits_are_exact_at_the_edge_and_move_to_those_of_jeffreys() -> None:
    lower, upper = binomial_limits(floats(0, 3, 9, 40, 12), floats(7, 9, 0, 200, 2), 0.025)
    assert lower[0] == 0.0
    assert upper[2] == 1.0
    share = 0.5 * 3 / 10
    assert lower[1] == pytest.approx(stats.beta.ppf(0.025, 3 + share, 10 - share))
    assert upper[1] == pytest.approx(stats.beta.ppf(0.975, 4 - share, 9 + share))


@given(level=st.floats(0.001, 0.999), size=st.floats(0.5, 500), probability=st.floats(0.05, 0.99))
def test_negative_binomial_quantile_is_that_of_scipy(level: float, size: float, probability: float) -> None:
    ours = negative_binomial_quantile(level, floats(size), probability)[0]
    below, at = stats.nbinom.cdf([ours - 1, ours], size, probability)
    assert at >= level - 1e-9
    assert below < level + 1e-9


def test_sign_flips_find_a_shift_and_repeat_themselves() -> None:
    rng = np.random.default_rng(5)
    nothing = rng.standard_normal((50, 3))
    shifted = nothing + floats(0, 0, 1.0)
    for contributions, low, high in ((nothing, 0.05, 1.0), (shifted, 0.001, 0.01)):
        observed = np.abs(contributions.sum(axis=0)) / np.sqrt((contributions**2).sum(axis=0))
        actual = sign_flip_test(contributions, observed, seed=2)
        assert low <= actual <= high
        assert actual == sign_flip_test(contributions, observed, seed=2)
    assert math.isnan(sign_flip_test(np.zeros((4, 2)), np.zeros(2)))


@pytest.mark.parametrize("tail_probability", [2.7e-37, 1e-300, 1e-50, 1e-12, 1e-3, 0.025])
def test_binomial_limits_without_a_miss_are_the_exact_ones_for_any_tail(tail_probability: float) -> None:
    """Clopper and Pearson: the n-th root of the tail probability."""
    counts = np.arange(1.0, 1000.0)
    zero = np.zeros_like(counts)
    lower, upper = binomial_limits(counts, zero, tail_probability)
    assert (upper == 1).all()
    assert lower == pytest.approx(tail_probability ** (1 / counts), rel=1e-9)
    other_lower, other_upper = binomial_limits(zero, counts, tail_probability)
    assert (other_lower == 0).all()
    assert other_upper == pytest.approx(1 - lower, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("size", [10, 26, 38, 40, 100, 400])
def test_binomial_limits_cover_every_probability(size: int) -> None:
    """Exact coverage, by enumeration: at least .927 everywhere, .93 at 99 of 100 probabilities."""
    probability = np.concatenate([np.geomspace(1e-6, 0.05, 300), np.linspace(0.05, 0.5, 700)])[:, None]
    hits = np.arange(size + 1.0)
    lower, upper = binomial_limits(hits, size - hits, 0.025)
    inside = (lower <= probability) & (probability <= upper)
    coverage = (stats.binom.pmf(hits, size, probability) * inside).sum(axis=1)
    assert coverage.min() >= 0.927
    assert (coverage >= 0.93).mean() >= 0.99


def test_limits_above_are_those_of_counts_with_one_more_event() -> None:
    events, others = (values.ravel().astype(np.float64) for values in np.mgrid[0:30, 0:30])
    _, upper = binomial_limits(events, others, 0.01)
    assert proportion_limit_above(events + 1, others, 0.01) == pytest.approx(upper, rel=1e-12)
