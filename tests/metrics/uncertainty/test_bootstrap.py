"""Bootstrap-t limits against a loop that draws clusters with their rows, one resample after the other."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logit

from pipeline.base.columns import RATIO_OF
from pipeline.metrics.uncertainty import replicates
from pipeline.metrics.uncertainty.proportions import PROPORTIONS, Confusion, intervals_of_clusters
from pipeline.metrics.uncertainty.replicates import Resampling, area_limits, area_quantiles, ratio_limits, share_limits

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

CONFIDENCE = 0.9
DRAWS = Resampling(199, seed=4)


def quantiles(distances: list[float]) -> tuple[float, float]:
    """The tenth and the tenth last of 199, or the twentieth last of the absolute values if that is farther."""
    ordered, reach = sorted(distances), sorted(map(abs, distances))[-20]
    return min(ordered[9], -reach), max(ordered[-10], reach)


def drawn_clusters(clusters: int) -> list[Ints]:
    """The numbers of the clusters of every resample, each as often as it was drawn."""
    weights = np.concatenate(list(DRAWS.weights(clusters)))
    return [np.repeat(np.arange(clusters), counts.astype(np.int64)) for counts in weights]


def looped(hits: Ints, misses: Ints) -> tuple[float, float]:
    """Limits of one share: clusters are drawn, and every resample has a mean and an error from its own clusters."""

    def value_and_error(clusters: Ints) -> tuple[float, float]:
        h, m = hits[clusters].astype(float), misses[clusters].astype(float)
        share, number = h.sum() / (h.sum() + m.sum()), len(clusters)
        influences = (h - share * (h + m)) / (h + m).sum() / (share * (1 - share))  # of the logit
        return float(logit(share)), math.sqrt(number / (number - 1) * float((influences**2).sum()))

    value, error = value_and_error(np.arange(len(hits)))
    again = [value_and_error(clusters) for clusters in drawn_clusters(len(hits))]
    low, high = quantiles([(resampled - value) / its_error for resampled, its_error in again])
    return float(expit(value - high * error)), float(expit(value - low * error))


def table(clusters: int, thresholds: int, seed: int) -> tuple[Ints, Ints]:
    rng = np.random.default_rng(seed)
    size, share = rng.integers(5, 40, clusters), rng.beta(3, 4, (clusters, 1))
    hits = rng.binomial(size[:, None], share * np.linspace(1, 0.5, thresholds))
    return hits, size[:, None] - hits


def test_limits_of_a_share_are_those_of_a_loop_over_resampled_clusters() -> None:
    hits, misses = table(12, 4, 1)
    lower, upper = share_limits(hits, misses, CONFIDENCE, DRAWS)
    for threshold in range(4):
        expected = looped(hits[:, threshold], misses[:, threshold])
        assert (lower[threshold], upper[threshold]) == pytest.approx(expected, rel=1e-10)


def test_every_order_and_every_size_of_blocks_gives_the_same_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    hits, misses = table(30, 7, 2)
    expected = share_limits(hits, misses, CONFIDENCE, DRAWS)
    assert np.array_equal(expected, share_limits(hits, misses, CONFIDENCE, Resampling(199, seed=4)))
    assert not np.array_equal(expected, share_limits(hits, misses, CONFIDENCE, Resampling(199, seed=5)))
    monkeypatch.setattr(replicates, "_CELLS_AT_ONCE", 400)
    monkeypatch.setattr(replicates, "_WEIGHTS_AT_ONCE", 1000)
    assert np.array_equal(expected, share_limits(hits, misses, CONFIDENCE, DRAWS))


def test_sums_on_the_grid_are_exact_in_any_order() -> None:
    """Sums of drawn values are those of exact rationals, so that no order and no number of threads matters."""
    rng = np.random.default_rng(9)
    values = rng.gamma(0.3, 1.0, (40, 3)) * np.array([1.0, 1e-9, 1e12])
    grid = replicates._on_grid(values)
    assert grid == pytest.approx(values, rel=0, abs=1e-13 * float(values.max()))
    assert (np.abs(grid - values) <= 2e-14 * values.max(axis=0)).all()
    integers = rng.integers(0, 10**9, (40, 3)).astype(np.float64)
    assert np.array_equal(replicates._on_grid(integers), integers)
    for weights in next(DRAWS.weights(40))[:20]:
        exact = [sum(int(w) * Fraction(v) for w, v in zip(weights, column, strict=True)) for column in grid.T]
        assert [Fraction(total) for total in weights @ grid] == exact
        assert np.array_equal(weights[::-1] @ grid[::-1], weights @ grid)


@pytest.mark.parametrize("blocks", [1, 1000])
def test_every_resample_draws_as_many_replicates_as_there_are(monkeypatch: pytest.MonkeyPatch, blocks: int) -> None:
    monkeypatch.setattr(replicates, "_WEIGHTS_AT_ONCE", blocks)
    weights = np.concatenate(list(Resampling(499, seed=1).weights(20)))
    assert weights.shape == (499, 20)
    assert (weights.sum(axis=1) == 20).all()
    assert weights.mean(axis=0) == pytest.approx(np.ones(20), abs=0.2)  # four errors of a mean of Poisson counts
    assert weights.var() == pytest.approx(0.95, abs=0.05)  # of multinomial counts 1 - 1 / G


def test_the_mean_of_values_is_a_ratio_on_the_log_scale() -> None:
    """The mean of a sample of exponential values: the loop takes logarithms of means."""
    values = np.random.default_rng(3).exponential(5.0, 25)
    lower, upper = ratio_limits(values[:, None], np.ones((25, 1)), CONFIDENCE, DRAWS)

    def value_and_error(units: Ints) -> tuple[float, float]:
        drawn = values[units]
        return math.log(drawn.mean()), float(drawn.std(ddof=1) / math.sqrt(len(units)) / drawn.mean())

    value, error = value_and_error(np.arange(25))
    again = [value_and_error(units) for units in drawn_clusters(25)]
    low, high = quantiles([(resampled - value) / its_error for resampled, its_error in again])
    assert (lower[0], upper[0]) == pytest.approx((math.exp(value - high * error), math.exp(value - low * error)))


def test_an_area_takes_its_quantiles_from_its_shifts() -> None:
    rng, area = np.random.default_rng(5), 0.8
    shifts = rng.exponential(0.01, 40) - 0.004
    centred = shifts - shifts.mean()

    def value_and_error(units: Ints) -> tuple[float, float]:
        moved = area + centred[units].sum()
        spread = math.sqrt(len(units)) * float(np.std(centred[units], ddof=1))
        return float(logit(moved)), spread / (moved * (1 - moved))

    again = [value_and_error(units) for units in drawn_clusters(40)]
    expected = quantiles([(resampled - float(logit(area))) / its_error for resampled, its_error in again])
    low, high = area_quantiles(shifts, area, CONFIDENCE, DRAWS)
    assert (low, high) == pytest.approx(expected, rel=1e-9)
    lower, upper = area_limits(np.array([area]), np.array([0.05]), (np.array([low]), np.array([high])))
    assert logit(lower[0]) == pytest.approx(logit(area) - high * 0.05 / 0.16)
    assert logit(upper[0]) == pytest.approx(logit(area) - low * 0.05 / 0.16)


def test_areas_without_a_spread_have_no_quantiles() -> None:
    for shifts, area in ((np.zeros(1), 0.5), (np.array([0.1, -0.1]), 1.0), (np.zeros(9), 0.5)):
        assert area_quantiles(shifts, area, CONFIDENCE, DRAWS) == (-math.inf, math.inf)
    limits = area_limits(np.array([0.5]), np.array([0.1]), (np.array([-np.inf]), np.array([np.inf])))
    assert np.isnan(limits).all()


def test_with_many_equal_clusters_the_limits_are_those_of_the_closed_form() -> None:
    """400 clusters of 20 rows: what is left is the Monte Carlo error of quantiles and terms of order 1 / G."""
    rng = np.random.default_rng(6)
    hits = rng.binomial(20, rng.beta(4, 6, (400, 1)), (400, 1))
    counts = Confusion(hits, 20 - hits, hits[::-1], hits)
    closed, resampled = (
        intervals_of_clusters(counts, 0.95, resampling=drawn) for drawn in (None, Resampling(9999, seed=1))
    )
    for name, (lower, upper) in closed.items():
        width = upper - lower
        assert (np.abs(resampled[name][0] - lower) < 0.05 * width).all(), name
        assert (np.abs(resampled[name][1] - upper) < 0.05 * width).all(), name


@pytest.mark.wide
@given(
    counts=st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=8
    )
)
@settings(max_examples=60, deadline=None)
def test_an_interval_is_given_where_the_closed_form_has_one_and_holds_its_ratio(
    counts: list[tuple[int, int, int, int]],
) -> None:
    columns = (np.array(column)[:, None] for column in zip(*counts, strict=True))
    confusion = Confusion(*columns)
    closed = intervals_of_clusters(confusion, CONFIDENCE)
    resampled = intervals_of_clusters(confusion, CONFIDENCE, resampling=DRAWS)
    for name in PROPORTIONS:
        hits, misses = confusion.sides(RATIO_OF[name])
        lower, upper = (limit[0] for limit in resampled[name])
        if math.isnan(closed[name][0][0]):
            assert math.isnan(lower)
            assert math.isnan(upper)
            continue
        share = hits.sum() / (hits.sum() + misses.sum())
        estimate = 2 * share / (1 + share) if name == "f1" else share
        assert 0 <= lower <= estimate + 1e-12
        assert estimate - 1e-12 <= upper <= 1
        if share in {0.0, 1.0}:  # every resample has the same share, so that the closed form's limits stay
            assert (lower, upper) == (closed[name][0][0], closed[name][1][0])


def test_a_tail_that_resamples_without_a_value_fill_has_the_limit_of_the_closed_form() -> None:
    """All hits lie in one cluster of eight, which a third of the resamples lack: their logit is minus infinity."""
    hits, misses = np.array([4, 0, 0, 0, 0, 0, 0, 0])[:, None], np.array([1, 5, 3, 5, 6, 5, 4, 5])[:, None]
    lower, upper = share_limits(hits, misses, CONFIDENCE, DRAWS)
    assert np.isnan(upper).all()
    counts = Confusion(hits, misses, misses, misses)
    closed, resampled = (
        intervals_of_clusters(counts, CONFIDENCE, resampling=drawn)["precision"] for drawn in (None, DRAWS)
    )
    assert resampled[1] == closed[1]
    assert resampled[0] == (lower if np.isfinite(lower).all() else closed[0])


def test_too_few_resamples_for_a_confidence_have_no_quantile() -> None:
    assert Resampling(199).rank(0.99) == 1
    assert Resampling(198).rank(0.99) == 0
    hits, misses = table(12, 2, 1)
    assert np.isnan(share_limits(hits, misses, 0.999, DRAWS)).all()


@pytest.mark.no_cover
def test_the_limits_hold_the_truth_of_few_unequal_clusters_about_as_often_as_they_say() -> None:
    """30 clusters with sizes of σ = 0.7 on the log scale and shares of beta(3, 5); 95% ± 3 Monte Carlo errors."""
    rng, held, datasets = np.random.default_rng(8), 0, 400
    for _ in range(datasets):
        size = np.ceil(10 * np.exp(0.7 * rng.standard_normal(30))).astype(np.int64)
        hits = rng.binomial(size, rng.beta(3, 5, 30))[:, None]
        lower, upper = share_limits(hits, size[:, None] - hits, 0.95, Resampling(399, seed=1))
        held += int(lower[0] <= 3 / 8 <= upper[0])
    assert 0.917 <= held / datasets <= 0.983
