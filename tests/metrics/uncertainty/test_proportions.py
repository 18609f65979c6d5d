"""Intervals of ratios of labelled counts: against scipy's binomial and beta, and the jackknife written out."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import beta, binomtest, norm, t

from pipeline.metrics.uncertainty.jackknife import effective_degrees, tail
from pipeline.metrics.uncertainty.proportions import (
    PROPORTIONS,
    Confusion,
    Weights,
    intervals_of_clusters,
    intervals_of_rows,
    mean_limits,
)

Floats = NDArray[np.float64]


def confusion(tp: object, fp: object, fn: object, tn: object) -> Confusion:
    return Confusion(*(np.asarray(each, dtype=np.float64) for each in (tp, fp, fn, tn)))


def parts(counts: Confusion) -> dict[str, tuple[Floats, Floats]]:
    """Hits and misses written out."""
    return {
        "precision": (counts.tp, counts.fp),
        "recall": (counts.tp, counts.fn),
        "f1": (counts.tp, counts.fp + counts.fn),
        "fpr": (counts.fp, counts.tn),
    }


def of_f1(jaccard: float) -> float:
    return 2 * jaccard / (1 + jaccard)


@pytest.mark.parametrize("counts", [(0, 3, 2, 9), (1, 0, 1, 1), (2, 3, 0, 4), (7, 2, 5, 1), (12, 3, 9, 8)])
def test_few_counts_lie_between_the_exact_and_the_mid_limits(counts: tuple[int, int, int, int]) -> None:
    """Exact: Clopper and Pearson; mid: the beta quantiles of Jeffreys."""
    outcomes = confusion(*([each] for each in counts))
    actual = intervals_of_rows(outcomes, None, 0.95)
    for name, (hits, misses) in parts(outcomes).items():
        k, n_misses = int(hits[0]), int(misses[0])
        exact = binomtest(k, k + n_misses).proportion_ci(0.95, method="exact")
        mid = beta.ppf([0.025, 0.975], k + 0.5, n_misses + 0.5)
        outer, inner = [exact.low, exact.high], [mid[0] if k else 0, mid[1] if n_misses else 1]
        if name == "f1":
            outer, inner = [of_f1(each) for each in outer], [of_f1(each) for each in inner]
        lower, upper = actual[name][0][0], actual[name][1][0]
        assert outer[0] - 1e-6 <= lower <= inner[0] + 1e-6, name
        assert inner[1] - 1e-6 <= upper <= outer[1] + 1e-6, name
        if k + n_misses <= 2:
            assert (lower, upper) == pytest.approx(outer, abs=0.02)


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_many_counts_have_the_beta_quantiles_of_jeffreys(confidence: float) -> None:
    outcomes = confusion([40, 900, 30], [10, 100, 400], [30, 5000, 70], [1000, 77, 10])
    actual = intervals_of_rows(outcomes, None, confidence)
    ends = np.array([(1 - confidence) / 2, (1 + confidence) / 2])
    for name, (hits, misses) in parts(outcomes).items():
        for column, (k, n_misses) in enumerate(zip(hits, misses, strict=True)):
            wanted = beta.ppf(ends, k + 0.5, n_misses + 0.5)
            wanted = [of_f1(each) for each in wanted] if name == "f1" else wanted
            assert [actual[name][side][column] for side in (0, 1)] == pytest.approx(wanted, abs=1e-6), name


def test_limits_hold_their_ratio_and_0_over_0_has_none() -> None:
    outcomes = confusion([0, 3, 0], [0, 1, 0], [4, 0, 0], [9, 2, 0])
    actual = intervals_of_rows(outcomes, None, 0.95)
    assert np.isnan(actual["precision"]).tolist() == [[True, False, True]] * 2
    assert np.isnan(actual["recall"]).tolist() == [[False, False, True]] * 2
    assert np.isnan(actual["f1"]).tolist() == [[False, False, True]] * 2
    assert np.isnan(actual["fpr"]).tolist() == [[False, False, True]] * 2
    assert actual["recall"][0][0] == 0 < actual["recall"][1][0] < 1
    assert actual["recall"][1][1] == 1 > actual["recall"][0][1] > 0


@pytest.mark.parametrize("weight", [1.0, 0.01, 250.0])
def test_equal_weights_change_nothing(weight: float) -> None:
    counts = (np.array([0.0, 5, 60]), np.array([3.0, 0, 7]), np.array([2.0, 9, 0]), np.array([40.0, 3, 11]))
    plain = intervals_of_rows(Confusion(*counts), None, 0.95)
    scaled, squares = (Confusion(*(each * factor for each in counts)) for factor in (weight, weight**2))
    actual = intervals_of_rows(scaled, Weights(squares, weight, weight), 0.95)
    for name in PROPORTIONS:
        assert np.array(actual[name]) == pytest.approx(np.array(plain[name]), rel=1e-9), name


def test_the_effective_number_of_weighted_rows_has_the_variance_of_the_weighted_share() -> None:
    rng = np.random.default_rng(1)
    weights, hit = rng.uniform(0, 4, 500), rng.uniform(size=500) < 0.3
    sums = [weights[each].sum() for each in (hit, ~hit)]
    squares = [(weights[each] ** 2).sum() for each in (hit, ~hit)]
    share = sums[0] / sum(sums)
    variance = ((weights * (hit - share)) ** 2).sum() / sum(sums) ** 2
    size = share * (1 - share) / variance
    assert size < 480
    wanted = beta.ppf([0.025, 0.975], share * size + 0.5, (1 - share) * size + 0.5)
    outcomes = Confusion(*(np.array([each]) for each in (*sums, 0.0, 1.0)))
    weights_of = Weights(Confusion(*(np.array([each]) for each in (*squares, 0.0, 1.0))), 4.0, 4.0)
    actual = intervals_of_rows(outcomes, weights_of, 0.95)
    assert [actual["precision"][side][0] for side in (0, 1)] == pytest.approx(wanted, abs=2e-3)


def test_an_unseen_miss_may_be_as_heavy_as_the_heaviest_row() -> None:
    """1,035 rows of weight 2 and 18 of weight 50, all hits: the limit is near that of 18 rows for the heavy ones."""
    weights = np.repeat([2.0, 50.0], [1035, 18])
    outcomes = Confusion(*(np.array([each]) for each in (weights.sum(), 0.0, 0.0, 1.0)))
    squares = Confusion(*(np.array([each]) for each in ((weights**2).sum(), 0.0, 0.0, 1.0)))
    lower, upper = (limit[0] for limit in intervals_of_rows(outcomes, Weights(squares, 50.0, 50.0), 0.95)["recall"])
    heavy_alone = 1 - (1 - 0.025 ** (1 / 18)) * 18 * 50 / weights.sum()
    assert upper == 1
    assert heavy_alone - 0.006 < lower <= heavy_alone


def test_a_stratified_sample_is_covered_although_few_heavy_rows_are_observed() -> None:
    rng = np.random.default_rng(8)
    for light_rate, heavy_rate in ((0.0, 0.1), (0.0, 0.05), (0.01, 0.15), (0.1, 0.3)):
        light, heavy = rng.binomial(1035, light_rate, 4000), rng.binomial(18, heavy_rate, 4000)
        misses, of_misses = 2.0 * light + 50.0 * heavy, 4.0 * light + 2500.0 * heavy
        hits, of_hits = 2.0 * 1035 + 50.0 * 18 - misses, 4.0 * 1035 + 2500.0 * 18 - of_misses
        nothing = np.zeros(4000)
        weights_of = Weights(Confusion(of_hits, nothing, of_misses, nothing), 50.0, 1.0)
        lower, upper = intervals_of_rows(Confusion(hits, nothing, misses, nothing), weights_of, 0.95)["recall"]
        truth = 1 - (2 * 1035 * light_rate + 50 * 18 * heavy_rate) / (2 * 1035 + 50 * 18)
        assert ((lower <= truth) & (truth <= upper)).mean() >= 0.945, (light_rate, heavy_rate)


def test_clusters_of_weighted_rows_allow_for_a_heavy_unseen_miss() -> None:
    hits = np.full((20, 1), 10.0)
    nothing = np.zeros((20, 1))
    light, heavy = (
        intervals_of_clusters(Confusion(hits, nothing, nothing, nothing), 0.95, heaviest=(1.0, miss))["precision"]
        for miss in (1.0, 25.0)
    )
    assert 0.025 ** (1 / 150) < light[0][0] < 0.025 ** (1 / 200)
    assert heavy[0][0] < 0.025 ** (1 / 8)


@pytest.mark.parametrize("separation", [0.5, 1.5, 3.0])
def test_fixed_class_sizes_have_the_coverage_that_they_claim(separation: float) -> None:
    """Precision and F1 of 60 positives and 300 negatives, each class binomial by itself."""
    rng = np.random.default_rng(9)
    thresholds = np.linspace(-1, 2.5, 6)
    recall, fpr = norm.sf(thresholds - separation), norm.sf(thresholds)
    tp, fp = (rng.binomial(size, rate, (4000, 6)) for size, rate in ((60, recall), (300, fpr)))
    counts = Confusion(tp, fp, 60 - tp, 300 - fp)
    truth = {
        "precision": 60 * recall / (60 * recall + 300 * fpr),
        "f1": 120 * recall / (60 + 60 * recall + 300 * fpr),
    }
    fixed, free = (intervals_of_rows(counts, None, 0.95, fixed_sizes=fixed_sizes) for fixed_sizes in (True, False))
    for name, true in truth.items():
        lower, upper = fixed[name]
        coverage = ((lower <= true) & (true <= upper))[~np.isnan(lower).any(axis=1)].mean(axis=0)
        assert coverage.min() >= 0.94, name
        assert np.nanmean(upper - lower, axis=0)[0] < 0.9 * np.nanmean(free[name][1] - free[name][0], axis=0)[0]
    for name in ("recall", "fpr"):
        assert np.array_equal(fixed[name], free[name], equal_nan=True)


@pytest.mark.parametrize(("number", "high"), [(5, 0.2), (5, 0.4), (10, 0.2), (10, 0.1), (20, 0.4)])
def test_means_of_few_values_of_two_modes_are_covered(number: int, high: float) -> None:
    """Values near .9 and near .07: Student's t covers .64 to .94 of these."""
    rng = np.random.default_rng(10)
    is_high = rng.random((number, 3000)) < high
    values = np.where(is_high, rng.beta(12, 1.5, (number, 3000)), rng.beta(1.2, 15, (number, 3000)))
    truth = high * 12 / 13.5 + (1 - high) * 1.2 / 16.2
    variance, size = values.var(axis=0, ddof=1) / number, np.full(3000, float(number))
    lower, upper = mean_limits(values.mean(axis=0), variance, size, tail(0.95, effective_degrees(values)))
    assert ((lower <= truth) & (truth <= upper)).mean() >= 0.925


def test_means_of_many_values_have_nearly_the_limits_of_student() -> None:
    values = np.random.default_rng(11).beta(1, 3, 400)
    mean, error = values.mean(), values.std(ddof=1) / 20
    limits = mean_limits(np.array(mean), np.array(error**2), np.array(400.0), tail(0.95, 399.0))
    expected = mean + np.array([-1, 1]) * t.ppf(0.975, 399) * error
    assert np.array(limits) == pytest.approx(expected, abs=0.1 * error)
    at_1, equal = (mean_limits(np.array(m), np.array(0.0), np.array(5.0), np.array(0.025)) for m in (1.0, 0.3))
    assert (float(at_1[0]), float(at_1[1])) == pytest.approx((0.025**0.2, 1))
    assert equal[0] < 0.3 < equal[1]


def rows_by_replicate(seed: int, rows: int, replicates: int, *, alike: bool) -> Confusion:
    """Counts at three thresholds of rows that are independent, or the same within each replicate."""
    rng = np.random.default_rng(seed)
    replicate = np.arange(rows) % replicates
    truth, score = rng.uniform(size=(2, replicates if alike else rows))
    if alike:
        truth, score = truth[replicate], score[replicate]
    labels = truth < 0.4
    cells = np.zeros((4, replicates, 3))
    for column, threshold in enumerate((0.2, 0.5, 0.8)):
        kept = score >= threshold
        masks = (kept & labels, kept & ~labels, ~kept & labels, ~kept & ~labels)
        for number, mask in enumerate(masks):
            cells[number, :, column] = np.bincount(replicate[mask], minlength=replicates)
    return Confusion(*cells)


def total(replicates: Confusion) -> Confusion:
    return Confusion(*(each.sum(axis=0) for each in (replicates.tp, replicates.fp, replicates.fn, replicates.tn)))


def widths(actual: dict[str, tuple[Floats, Floats]]) -> Floats:
    return np.array([actual[name][1] - actual[name][0] for name in PROPORTIONS])


def test_one_row_in_every_replicate_is_nearly_independent_rows() -> None:
    replicates = rows_by_replicate(2, 600, 600, alike=False)
    rows = intervals_of_rows(total(replicates), None, 0.95)
    clusters = intervals_of_clusters(replicates, 0.95)
    assert widths(clusters) == pytest.approx(widths(rows), rel=0.03)


def test_rows_that_are_alike_within_clusters_widen_limits_by_the_root_of_their_number() -> None:
    replicates = rows_by_replicate(3, 9000, 1000, alike=True)
    ratio = widths(intervals_of_clusters(replicates, 0.95)) / widths(intervals_of_rows(total(replicates), None, 0.95))
    assert ratio == pytest.approx(np.full((4, 3), 3.0), rel=0.05)


def test_copies_of_rows_within_their_cluster_add_nothing() -> None:
    replicates = rows_by_replicate(4, 400, 40, alike=False)
    copied = Confusion(*(5 * each for each in (replicates.tp, replicates.fp, replicates.fn, replicates.tn)))
    once, often = intervals_of_clusters(replicates, 0.95), intervals_of_clusters(copied, 0.95)
    for name in PROPORTIONS:
        assert np.array(often[name]) == pytest.approx(np.array(once[name]), rel=1e-9)


def test_the_design_effect_is_the_jackknife_variance_over_the_binomial_one() -> None:
    replicates = rows_by_replicate(5, 3000, 30, alike=False)
    hits, misses = replicates.tp[:, 1], replicates.fp[:, 1]
    n_misses = np.array(
        [np.delete(hits, g).sum() / (np.delete(hits, g).sum() + np.delete(misses, g).sum()) for g in range(30)]
    )
    jackknife = 29 / 30 * ((n_misses - n_misses.mean()) ** 2).sum()
    share = hits.sum() / (hits + misses).sum()
    lower, upper = (each[1] for each in intervals_of_clusters(replicates, 0.95)["precision"])
    assert lower < share < upper
    assert (upper - lower) / 2 == pytest.approx(2.045 * np.sqrt(jackknife), rel=0.06)


def test_a_threshold_without_misses_takes_the_design_effect_of_a_lower_one() -> None:
    replicates = rows_by_replicate(6, 9000, 1000, alike=True)
    hits = np.stack([replicates.tp[:, 0], replicates.tp[:, 2]], axis=1)
    misses = np.stack([replicates.fp[:, 0], np.zeros(1000)], axis=1)
    outcomes = Confusion(hits, misses, np.ones_like(hits), np.ones_like(hits))
    lower, upper = intervals_of_clusters(outcomes, 0.95)["precision"]
    assert upper[1] == 1
    independent = intervals_of_rows(total(outcomes), None, 0.95)["precision"][0][1]
    assert (1 - lower[1]) / (1 - independent) == pytest.approx(9, rel=0.1)


def test_one_replicate_has_no_limits() -> None:
    one = Confusion(*(np.ones((1, 3)) for _ in range(4)))
    assert all(np.isnan(each).all() for limits in intervals_of_clusters(one, 0.95).values() for each in limits)
