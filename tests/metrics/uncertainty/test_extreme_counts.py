"""Extreme counts and values: answers are numbers or nan, limits are in order, and no warning of NumPy leaks out."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from pipeline.metrics.before_after.assumption import placebo, placebo_joint, realised_precision_interval
from pipeline.metrics.before_after.estimates import Sides
from pipeline.metrics.before_after.intervals import Choice, intervals, precision_at_least
from pipeline.metrics.comparison.paired import paired_t, randomization_test, wilcoxon_signed_rank
from pipeline.metrics.comparison.pooled import standard_errors
from pipeline.metrics.curves.trapezoidal_area import Retrieved, replicate_shifts, true_point_areas
from pipeline.metrics.posteriors import f1_posterior, probability_greater
from pipeline.metrics.uncertainty import jackknife
from pipeline.metrics.uncertainty.proportions import Confusion, intervals_of_clusters, intervals_of_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

SIZES = st.sampled_from([0, 0, 1, 2, 3, 40, 10**6, 10**15])
VALUES = st.sampled_from([0.0, 1.0, -1.0, 0.5, 5e-324, 1e-200, 1e160, 1.7e308, math.inf, math.nan])
UNITS = st.sampled_from([0.0, 1.0, 5e-324, 1e-200, 1e160, 8e307, -8e307])
LEVELS = st.sampled_from([1e-6, 0.5, 0.95, 1 - 1e-9])


@st.composite
def falling(draw: st.DrawFn, replicates: int, thresholds: int) -> Ints:
    """Counts at or above rising thresholds, shape (replicates, thresholds)."""
    counts = draw(arrays.arrays(np.int64, (replicates, thresholds), elements=SIZES))
    return np.ascontiguousarray(counts[:, ::-1].cumsum(axis=1)[:, ::-1])


@st.composite
def before_and_after(draw: st.DrawFn) -> tuple[Ints, ...]:
    """m_before, m_after, n_before, n_after, m_near, n_near of replicates, as they can occur."""
    size, thresholds = draw(st.sampled_from([1, 2, 3, 12])), draw(st.sampled_from([1, 3]))
    far, near, after = (draw(falling(size, thresholds)) for _ in range(3))
    more = [draw(arrays.arrays(np.int64, size, elements=SIZES)) for _ in range(3)]
    n_far, n_near, n_after = (each[:, 0] + extra for each, extra in zip((far, near, after), more, strict=True))
    return far + near, after, n_far + n_near, n_after, near, n_near


KNOWN = st.sampled_from([(1.0,), (0.01,), (0.01, 1.0)])
CHOICES = st.sampled_from([None, Choice("lowest", 0.05), Choice("max", 0.0)])


@pytest.mark.wide
@given(before_and_after(), st.sampled_from([None, 0]), LEVELS, KNOWN, CHOICES)
@settings(max_examples=50)
def test_before_and_after(
    counts: tuple[Ints, ...], reference: int | None, level: float, recalls: tuple[float, ...], choice: Choice | None
) -> None:
    m_before, _, n_before, _, m_near, n_near = counts
    m_before, m_after, n_before, n_after = counts[:4]
    sides = [Sides(m_before, m_after, n_before, n_after)]
    actual = intervals(sides, reference=reference, reference_recalls=recalls, choice=choice, confidence=level)
    realised = realised_precision_interval(*counts, reference=reference, reference_recalls=recalls, confidence=level)
    for interval in (*actual.values(), realised):
        given_ = ~np.isnan(interval.lower)
        assert (given_ == ~np.isnan(interval.upper)).all()
        assert (interval.lower[given_] <= interval.upper[given_]).all()
    near_and_far = m_before - m_near, m_near, n_before - n_near, n_near
    assert not np.isinf(placebo(*near_and_far, confidence=level).p_value).any()
    assert not math.isinf(placebo_joint(*near_and_far, flips=9))
    limits = precision_at_least(
        sides, reference=reference, reference_recalls=recalls, choice=choice, confidence=max(level, 0.5)
    )
    assert ((limits <= 1) | np.isnan(limits)).all()


@settings(max_examples=50)
@given(st.data(), st.sampled_from([1e-15, 1.0]), st.sampled_from([0.5, 0.95, 1 - 1e-9]))
def test_labelled_counts_and_weights(data: st.DataObject, weight: float, level: float) -> None:
    size, thresholds = data.draw(st.sampled_from([1, 2, 5])), 3
    tp, fp, fn, tn = (data.draw(falling(size, thresholds)) * weight for _ in range(4))
    rows = Confusion(*(each[0] for each in (tp, fp, fn, tn)))
    for actual in (intervals_of_clusters(Confusion(tp, fp, fn, tn), level), intervals_of_rows(rows, None, level)):
        for lower, upper in actual.values():
            assert ((lower <= upper) | np.isnan(lower)).all()
            assert not np.isinf(lower + upper).any()
    retrieved = Retrieved(tp[:, ::-1], fp[:, ::-1], tp[:, 0] + fn[:, 0], fp[:, 0] + tn[:, 0])
    areas = true_point_areas(retrieved)
    assert ((areas.auc >= 0) & (areas.auc <= 1 + 1e-9) | np.isnan(areas.auc)).all()
    assert replicate_shifts(retrieved)[0].spread.variance.shape == ()


@given(arrays.arrays(np.float64, st.tuples(st.integers(2, 6), st.integers(0, 3)), elements=VALUES), LEVELS)
def test_values_without_each_replicate(values: NDArray[np.float64], level: float) -> None:
    variance = jackknife.covariance(values)
    assert ((variance >= 0) | np.isnan(variance)).all()
    degrees = jackknife.effective_degrees(values)
    assert ((degrees <= len(values) - 1) | np.isnan(degrees)).all()
    estimate, error = values[0], np.abs(values[1])
    quantile = jackknife.t_quantile(level, 4.0)
    for lower, upper in (
        jackknife.log_interval(estimate, error, quantile),
        jackknife.logit_interval(estimate, error, quantile),
        jackknife.fieller_interval(estimate, error, (error, error, estimate), quantile),
    ):
        assert lower.shape == upper.shape == estimate.shape


@given(st.integers(0, 9).flatmap(lambda n: arrays.arrays(np.float64, (2, n), elements=UNITS)))
def test_paired_values(values: NDArray[np.float64]) -> None:
    actual = paired_t(*values)
    for test in (actual, wilcoxon_signed_rank(*values), randomization_test(*values, resamples=9)):
        assert math.isnan(test.p_value) or 0 <= test.p_value <= 1
    if not math.isnan(actual.lower):
        assert actual.lower <= actual.difference <= actual.upper


@pytest.mark.parametrize("scale", [1e-310, 1e-200, 1e200, 1e307])
def test_paired_t_does_not_depend_on_the_unit(scale: float) -> None:
    a, b = np.array([1.0, 2.0, 4.0, 3.0]), np.array([0.5, 2.5, 1.0, 1.0])
    plain, scaled = paired_t(a, b), paired_t(a * scale, b * scale)
    assert scaled.p_value == pytest.approx(plain.p_value, rel=1e-9)
    assert scaled.effect_size == pytest.approx(plain.effect_size, rel=1e-9)
    assert scaled.difference == pytest.approx(plain.difference * scale, rel=1e-9)
    assert scaled.upper == pytest.approx(plain.upper * scale, rel=1e-9)


def test_values_that_differ_by_more_than_a_double_holds_are_refused() -> None:
    with pytest.raises(ValueError, match="more than a double holds"):
        paired_t([1.7e308, 0.0], [-1.7e308, 1.0])


@given(st.integers(0, 4).flatmap(lambda n: arrays.arrays(np.int64, (2, n, 3), elements=SIZES)))
def test_pooled_counts(counts: Ints) -> None:
    errors = standard_errors(*counts).error
    assert errors.shape == (3,)
    assert not np.isinf(errors).any()


def test_no_posterior_at_all_has_no_probability() -> None:
    nothing = f1_posterior([], [], [])
    assert probability_greater(nothing, nothing).shape == (0,)
