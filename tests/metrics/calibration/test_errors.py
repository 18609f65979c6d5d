"""Calibration errors and tests: against formulas written out, exact enumeration of all labels, and scipy."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom, chi2, norm

from pipeline.metrics.calibration.bins import BinSums, Moments, Variances, calibration_errors, pooled
from pipeline.metrics.calibration.estimates import (
    _gap_limits,
    estimates_of_clusters,
    estimates_of_rows,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Floats = NDArray[np.float64]
START = np.zeros(1, dtype=np.int64)


def moments(scores: Sequence[Floats], labels: Sequence[Floats], weights: Sequence[Floats]) -> Moments:
    rows = list(zip(weights, scores, labels, strict=True))
    terms = (
        [w.sum() for w, _, _ in rows],
        [(w * y).sum() for w, _, y in rows],
        [(w * s).sum() for w, s, _ in rows],
        [(w * s * y).sum() for w, s, y in rows],
        [(w * s * s).sum() for w, s, _ in rows],
    )
    return Moments(*(np.array(values, dtype=np.float64) for values in terms))


def sums_of(scores: Sequence[Any], labels: Sequence[Any], weights: Sequence[Any] | None = None) -> BinSums:
    """Sums of bins from the rows of each."""
    s, y = ([np.asarray(rows, dtype=np.float64) for rows in values] for values in (scores, labels))
    w = [np.ones_like(rows) for rows in s] if weights is None else [np.asarray(rows, dtype=float) for rows in weights]
    errors = [rows * (1 - rows) if weights is None else (t - rows) ** 2 for rows, t in zip(s, y, strict=True)]
    variance = [(v**2 * (1 - 2 * rows) ** 2 * e).sum() for v, rows, e in zip(w, s, errors, strict=True)]
    counts = np.array([len(rows) for rows in s], dtype=np.float64)
    heavy = moments(s, y, [v**2 for v in w])
    spread = [v * rows * (1 - rows) * (1 - 2 * rows) ** 2 for v, rows in zip(w, s, strict=True)]
    expected = (
        np.array([(of_bin * (1 - rows)).sum() for of_bin, rows in zip(spread, s, strict=True)]),
        np.array([(of_bin * rows).sum() for of_bin, rows in zip(spread, s, strict=True)]),
    )
    return BinSums(counts, moments(s, y, w), heavy, np.array(variance), expected, weights is not None)


def errors_of(sums: BinSums) -> dict[str, float]:
    estimates = estimates_of_rows(sums, START, None, 0.95)
    return {name: float(values[0]) for name, values in calibration_errors(sums, estimates.variances, START).items()}


def labellings(scores: Sequence[Sequence[float]]) -> Iterator[tuple[list[list[int]], float]]:
    """Every way to label the rows of bins, with its probability if scores are probabilities."""
    every = [score for rows in scores for score in rows]
    for labels in product((0, 1), repeat=len(every)):
        chance = np.prod([p if y else 1 - p for p, y in zip(every, labels, strict=True)])
        ends = np.cumsum([len(rows) for rows in scores])
        yield [list(labels[end - len(rows) : end]) for end, rows in zip(ends, scores, strict=True)], float(chance)


SCORES = [[0.1, 0.1, 0.2], [0.4, 0.5, 0.5, 0.6], [0.8, 0.9, 0.95]]


def test_expected_values_over_all_labels_of_calibrated_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Debiased reliability is 0 on average but for rounding, and the mean of ECE is what it is said to be."""
    monkeypatch.setattr("pipeline.metrics.calibration.bins._LEAST", 0.0)
    outcomes = list(labellings(SCORES))  # each is a group of three bins
    chances = np.array([chance for _, chance in outcomes])
    sums = sums_of(SCORES * len(outcomes), [rows for labels, _ in outcomes for rows in labels])
    starts = np.arange(0, 3 * len(outcomes), 3)
    estimates = estimates_of_rows(sums, starts, None, 0.95)
    errors = calibration_errors(sums, estimates.variances, starts)
    means = {name: float(chances @ values) for name, values in errors.items()}
    noise = sum((np.array(rows) * (1 - np.array(rows))).sum() / len(rows) for rows in SCORES) / 10
    assert means["reliability"] == pytest.approx(noise)
    assert means["reliability_debiased"] == pytest.approx(0.0, abs=1e-3)  # scores of a bin that differ: less than 1e-3
    assert means["ece"] == pytest.approx(means["ece_if_calibrated"], rel=0.02)
    assert 0.3 * means["ece"] < means["ece_debiased"] < 0.8 * means["ece"]
    q = estimates.hosmer_lemeshow[0]
    statistic = [float(chances @ q), float(chances @ q**2)]
    # the mean and the variance of the statistic are those that the scaled chi-square has: 3 and Σ 2 + κ4 / V²
    spread = 0.0
    for rows in SCORES:
        pq = np.array(rows) * (1 - np.array(rows))
        spread += 2 + (pq * (1 - 6 * pq)).sum() / pq.sum() ** 2
    assert statistic == pytest.approx([3.0, 9.0 + spread])


def test_debiased_parts_are_unbiased_for_any_probabilities() -> None:
    """In bins of one score each they are the estimators of Ferro and Fricker (2012), unbiased for fixed sizes."""
    truth, size = [0.3, 0.6], 3
    scores = [[0.2] * size, [0.7] * size]
    mean = np.zeros(2)
    for hits in product(range(size + 1), repeat=2):
        chance = np.prod([binom.pmf(k, size, p) for k, p in zip(hits, truth, strict=True)])
        labels = [[1] * k + [0] * (size - k) for k in hits]
        errors = errors_of(sums_of(scores, labels))
        shares = np.array(hits) / size
        correction = (shares * (1 - shares) / (size - 1)).mean()
        every = shares.mean() * (1 - shares.mean()) / (2 * size - 1)
        assert errors["reliability_debiased"] == pytest.approx(errors["reliability"] - correction)
        assert errors["resolution_debiased"] == pytest.approx(errors["resolution"] - correction + every)
        assert errors["uncertainty_debiased"] == pytest.approx(errors["uncertainty"] + every)
        mean += chance * np.array([errors["reliability_debiased"], errors["reliability"]])
    expected = np.mean([(0.3 - 0.2) ** 2, (0.6 - 0.7) ** 2])
    assert mean[0] == pytest.approx(expected)
    assert mean[1] > 5 * expected


@pytest.mark.parametrize("weighted", [False, True])
def test_parts_of_the_brier_score_add_up(*, weighted: bool) -> None:
    rng = np.random.default_rng(5)
    scores = [rng.uniform(low, low + 0.2, 7) for low in (0.0, 0.3, 0.8)]
    labels = [rng.integers(0, 2, 7).astype(float) for _ in scores]
    weights = [rng.uniform(0.1, 5.0, 7) for _ in scores]
    sums = sums_of(scores, labels, weights if weighted else None)
    errors = errors_of(sums)
    s, y, w = (np.concatenate(values) for values in (scores, labels, weights))
    w = w if weighted else np.ones_like(w)
    brier = np.average((s - y) ** 2, weights=w)
    of_bins = errors["reliability"] - errors["resolution"] + errors["uncertainty"]
    assert errors["brier"] == pytest.approx(brier)
    assert of_bins + errors["within_bin_variance"] - errors["within_bin_covariance"] == pytest.approx(brier)
    gaps = [np.average(t - r, weights=v) for r, t, v in zip(scores, labels, np.split(w, 3), strict=True)]
    shares = [v.sum() / w.sum() for v in np.split(w, 3)]
    assert errors["ece"] == pytest.approx(sum(q * abs(gap) for q, gap in zip(shares, gaps, strict=True)))
    assert errors["mce"] == pytest.approx(max(map(abs, gaps)))


@pytest.mark.parametrize(
    ("size", "share"), [(1, 0.3), (2, 0.5), (7, 0.01), (40, 0.07), (500, 0.98), (9, 1.0), (5, 0.0)]
)
def test_deviation_of_a_binomial_share(size: int, share: float) -> None:
    """`ece_if_calibrated` of one bin with equal scores is the mean absolute deviation of scipy's binomial."""
    sums = sums_of([[share] * size], [[0] * size])
    hits = np.arange(size + 1)
    expected = float(binom.pmf(hits, size, share) @ np.abs(hits / size - share))
    assert errors_of(sums)["ece_if_calibrated"] == pytest.approx(expected, abs=1e-12)


def test_debiased_ece_takes_what_noise_adds_to_the_gaps_that_were_seen() -> None:
    """Against a simulation of the parametric bootstrap of Kumar, Liang and Ma (2019)."""
    sums = sums_of([[0.2] * 30, [0.5] * 20], [[1] * 9 + [0] * 21, [1] * 7 + [0] * 13])
    errors = errors_of(sums)
    gaps, sizes = np.array([0.1, -0.15]), np.array([0.6, 0.4])
    spread = np.sqrt([0.3 * 0.7 / 29, 0.35 * 0.65 / 19])
    noisy = np.abs(gaps + spread * np.random.default_rng(0).normal(size=(400_000, 2))) @ sizes
    assert errors["ece_debiased"] == pytest.approx(2 * errors["ece"] - noisy.mean(), abs=2e-4)


def test_statistics_are_those_of_spiegelhalter_and_of_hosmer_and_lemeshow() -> None:
    rng = np.random.default_rng(7)
    scores = [rng.uniform(low, low + 0.25, 50) for low in (0.0, 0.25, 0.5, 0.75)]
    labels = [(rng.uniform(size=50) < rows).astype(float) for rows in scores]
    sums = sums_of(scores, labels)
    s, y = np.concatenate(scores), np.concatenate(labels)
    z = ((y - s) * (1 - 2 * s)).sum() / np.sqrt(((1 - 2 * s) ** 2 * s * (1 - s)).sum())
    estimates = estimates_of_rows(sums, START, None, 0.95)
    actual, p_value = estimates.spiegelhalter
    assert (actual[0], p_value[0]) == pytest.approx((z, 2 * norm.sf(abs(z))))
    brier, expected = ((y - s) ** 2).mean(), (s * (1 - s)).mean()
    assert np.sign(z) == np.sign(brier - expected)
    q = sum((t.sum() - r.sum()) ** 2 / (r * (1 - r)).sum() for r, t in zip(scores, labels, strict=True))
    statistic, p_value = estimates.hosmer_lemeshow
    assert statistic[0] == pytest.approx(q)
    assert p_value[0] == pytest.approx(chi2.sf(q, 4), abs=0.01)  # with the exact variance not quite the same


def test_labels_that_their_scores_exclude_refute_calibration() -> None:
    statistic, p_value = estimates_of_rows(sums_of([[0.0, 0.0]], [[0, 1]]), START, None, 0.95).hosmer_lemeshow
    assert (statistic[0], p_value[0]) == (np.inf, 0.0)
    statistic, p_value = estimates_of_rows(sums_of([[0.0, 1.0]], [[0, 1]]), START, None, 0.95).hosmer_lemeshow
    assert np.isnan(p_value[0])
    assert np.isnan(estimates_of_rows(sums_of([[0.5, 1.0]], [[0, 1]]), START, None, 0.95).spiegelhalter[0][0])


def test_neighbouring_bins_are_pooled_until_they_hold_enough() -> None:
    variance = np.array([0.1, 0.2, 8.0, 5.0, 1.5, 3.5, 1.0, 0.0, 0.4, 9.0])
    pools, first = pooled(variance, np.array([0, 7, 9]))
    assert (pools.tolist(), first.tolist()) == ([0, 3, 4, 7, 9], [0, 3, 4])
    with_a_rest = pooled(np.array([5.0, 0.1, 6.0, 4.9]), START)
    assert with_a_rest[0].tolist() == [0, 1]


def p_values(scores: Sequence[Any], labels: Sequence[Any], weights: Sequence[Any] | None = None) -> list[float]:
    """Of the tests of Spiegelhalter and of Hosmer and Lemeshow."""
    sums = sums_of(scores, labels, weights)
    heaviest = None if weights is None else (np.full(len(scores), np.max(weights)),) * 2
    estimates = estimates_of_rows(sums, START, heaviest, 0.95)
    return [float(p_value[0]) for _, p_value in (estimates.spiegelhalter, estimates.hosmer_lemeshow)]


def test_bins_in_which_nothing_is_expected_refute_nothing() -> None:
    """Scores next to 0 in six bins of ten, none of them true, and the others true as often as they say."""
    scores = [*([[1e-8] * 100] * 6), *([[share] * 100 for share in (0.1, 0.3, 0.6, 0.9)])]
    labels = [*([[0] * 100] * 6), *([[1] * hits + [0] * (100 - hits) for hits in (12, 27, 62, 91)])]
    sums = sums_of(scores, labels)
    q, p_value = estimates_of_rows(sums, START, None, 0.95).hosmer_lemeshow
    assert q[0] == pytest.approx(4 / 9 + 9 / 21 + 4 / 24 + 1 / 9, rel=1e-5)
    assert p_value[0] == pytest.approx(chi2.sf(q[0], 4), abs=0.01)


@pytest.mark.parametrize("weight", [None, 2.5])
def test_samples_in_which_no_true_row_occurs_refute_nothing(weight: float | None) -> None:
    """Of 500 rows one half is expected to be true: three of five samples have none, and p-values know it."""
    weights = None if weight is None else [[weight] * 500]
    assert min(p_values([[0.001] * 500], [[0] * 500], weights)) > 0.3
    two = [[1] * 2 + [0] * 498]  # the probability of two or more is 0.09
    assert 0.05 < min(p_values([[0.001] * 500], two, weights)) < 0.3
    assert max(p_values([[0.001] * 500], [[1] * 9 + [0] * 491], weights)) < 0.01


def test_clusters_without_a_true_row_refute_nothing_and_excluded_labels_do() -> None:
    def of_clusters(score: float, hits: int) -> tuple[float, float]:
        sums = sums_of([[score] * 600], [[1] * hits + [0] * (600 - hits)])
        rows, hit = np.full((30, 1), 20.0), (np.arange(30) < hits).astype(np.float64).reshape(30, 1)
        clusterings = [Moments(rows, hit, rows * score, hit * score, rows * score**2)]
        estimates = estimates_of_clusters(sums, clusterings, None, 0.95)
        return float(estimates.spiegelhalter[1][0]), float(estimates.hosmer_lemeshow[1][0])

    assert min(of_clusters(0.001, 0)) > 0.3
    assert of_clusters(0.0, 3)[1] == 0.0
    assert max(of_clusters(0.001, 12)) < 0.02


def test_variance_of_sampled_rows_is_that_of_all_rows_that_they_stand_for() -> None:
    """One in ten of the false rows with weight 10: over all labels and samples of rows with one score."""
    score, weight, rows = 0.3, 10.0, 200_000
    rng = np.random.default_rng(3)
    label = rng.uniform(size=rows) < score
    kept = label | (rng.uniform(size=rows) < 1 / weight)
    weights = np.where(label, 1.0, weight)[kept]
    sums = sums_of([np.full(kept.sum(), score)], [label[kept]], [weights])
    of_a_row = score * (1 - score) ** 2 + (1 - score) / weight * weight**2 * score**2
    assert sums.variance_if_calibrated(START)[0] == pytest.approx(rows * of_a_row, rel=0.02)
    without_false_rows = sums_of([[0.2] * 3], [[1] * 3], [[2.0] * 3])
    assert without_false_rows.variance_if_calibrated(START)[0] == pytest.approx(3 * 0.16 * 4)


def test_clusters_of_one_row_each_are_rows() -> None:
    rng = np.random.default_rng(11)
    scores = [rng.uniform(low, low + 0.5, 400) for low in (0.0, 0.5)]
    labels = [(rng.uniform(size=400) < rows).astype(float) for rows in scores]
    sums = sums_of(scores, labels)
    single = [np.zeros((800, 2)) for _ in range(5)]
    for bin_, (rows, truth) in enumerate(zip(scores, labels, strict=True)):
        for values, terms in zip(single, (np.ones(400), truth, rows, rows * truth, rows**2), strict=True):
            values[bin_ * 400 : (bin_ + 1) * 400, bin_] = terms
    of_clusters = estimates_of_clusters(sums, [Moments(*single)], None, 0.95)
    of_rows = estimates_of_rows(sums, START, None, 0.95)
    for name in ("share", "gap", "gap_if_calibrated"):
        pair = (getattr(estimates.variances, name) for estimates in (of_clusters, of_rows))
        assert next(pair) == pytest.approx(next(pair), rel=0.15)
    assert of_clusters.bins.gap[0] == pytest.approx(of_rows.bins.gap[0], abs=2e-3)
    assert of_clusters.spiegelhalter[0] == pytest.approx(of_rows.spiegelhalter[0], rel=0.1)
    assert of_clusters.hosmer_lemeshow[0] == pytest.approx(of_rows.hosmer_lemeshow[0], rel=0.1)


def test_unknown_variances_leave_plain_errors() -> None:
    sums = sums_of([[0.2]], [[1]])
    nothing = np.full(1, np.nan)
    errors = calibration_errors(sums, Variances(nothing, nothing, nothing, nothing), START)
    assert errors["ece"][0] == pytest.approx(0.8)
    assert errors["reliability_debiased"][0] == pytest.approx(0.64 - 0.16)


def test_limits_of_a_gap_are_as_much_wider_than_those_of_the_share_as_its_error() -> None:
    sums: Any = SimpleNamespace(gap=np.array([0.1]), share=np.array([0.5]))
    lower, upper = _gap_limits(sums, (np.array([0.4]), np.array([0.7])), np.array([0.01]), np.array([0.04]))
    assert (lower[0], upper[0]) == pytest.approx((0.1 - 2 * 0.1, 0.1 + 2 * 0.2))
