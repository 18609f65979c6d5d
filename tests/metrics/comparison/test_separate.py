"""Systems on different units: Welch's test against scipy, pooled ratios against leaving units out, permutations."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from pipeline.metrics.comparison.paired import (
    event_estimates,
    largest_skewness,
    means_of,
    permuted_means,
    permuted_ratios,
    pooled_estimates,
    skewness_of_difference,
)
from pipeline.metrics.comparison.pooled import difference_of, pooled_ratios
from pipeline.metrics.comparison.significance import bootstrap_of_groups

RNG = np.random.default_rng(11)
A, B = RNG.normal(1.0, 0.5, 12), RNG.exponential(1.3, 30)
COUNTS = RNG.poisson([4.0, 2.0, 3.0], (14, 3)).astype(float)


@pytest.mark.parametrize("scale", [1.0, 1e-160, 1e200])
def test_the_difference_of_means_is_that_of_welch(scale: float) -> None:
    difference = difference_of(*means_of(A * scale, B * scale))
    expected = stats.ttest_ind(A, B, equal_var=False)
    limits = expected.confidence_interval(0.9)
    assert difference.statistic() == pytest.approx(expected.statistic)
    assert [difference.p_value(), difference.degrees] == pytest.approx([expected.pvalue, expected.df])
    assert [limit / scale for limit in difference.limits(0.9)] == pytest.approx([limits.low, limits.high])


def test_a_group_without_spread_has_that_of_the_other() -> None:
    of_a, of_b = means_of(np.ones(3), B)
    assert [of_a.estimate, of_a.error, of_a.degrees] == pytest.approx([1.0, B.std(ddof=1) / math.sqrt(3), 2.0])
    assert of_b.error == pytest.approx(B.std(ddof=1) / math.sqrt(30))
    assert means_of(np.ones(3), np.zeros(4))[0].error == 0.0
    assert math.isnan(means_of(np.ones(1), B)[0].error)
    assert math.isnan(difference_of(*means_of(np.zeros(0), B)).estimate)
    assert math.isnan(bootstrap_of_groups(np.ones(3), B).limits(0.95)[0])


def test_the_skewness_of_a_difference_is_that_of_its_sampling_distribution() -> None:
    differences = [
        RNG.choice(A, (20_000, len(A))).mean(axis=1),
        RNG.choice(B, (20_000, len(B))).mean(axis=1),
    ]
    drawn = stats.skew(differences[0] - differences[1])
    assert skewness_of_difference(A, B) == pytest.approx(drawn, abs=0.06)
    assert skewness_of_difference(B, B) == 0.0
    assert largest_skewness(B, B) == pytest.approx(stats.skew(B) / math.sqrt(len(B)) / math.sqrt(2))
    few = np.array([0.9, 1.0, 1.1, 1.0])  # which do not show the skewness of the many
    assert largest_skewness(few, B) > abs(skewness_of_difference(few, B))


def test_pooled_ratios_have_the_errors_of_leaving_a_unit_out() -> None:
    estimates = list(pooled_estimates(COUNTS).values())
    assert [each.estimate for each in estimates] == pytest.approx(list(pooled_ratios(COUNTS.sum(axis=0))))
    ratios_without = np.array([pooled_ratios(np.delete(COUNTS, unit, axis=0).sum(axis=0)) for unit in range(14)])
    errors = np.sqrt(13 / 14 * ((ratios_without - ratios_without.mean(axis=0)) ** 2).sum(axis=0))
    assert [each.error for each in estimates] == pytest.approx(list(errors))


def test_ratios_at_the_edge_have_the_error_of_agresti_and_caffo() -> None:
    never = np.array([[0.0, 1.0, 1.0]] * 3)
    always = np.array([[2.0, 0.0, 0.0]] * 3)
    for counts, name, value in ((never, "recall", 0.0), (always, "precision", 1.0)):
        estimate = pooled_estimates(counts)[name]
        assert [estimate.estimate, estimate.error, estimate.degrees] == pytest.approx(
            [value, math.sqrt(1 / 5 * 4 / 5 / 5), 2.0]
        )
    alone = np.array([[0.0, 1.0, 4.0], [0.0, 1.0, 0.0]])  # one unit has all positives
    assert math.isnan(pooled_estimates(alone)["recall"].error)
    assert math.isnan(pooled_estimates(np.array([[0.0, 1.0, 0.0]] * 3))["recall"].estimate)
    assert math.isnan(pooled_estimates(np.zeros((0, 3)))["f1"].estimate)
    assert math.isnan(event_estimates(np.zeros((1, 6)))["f1"].estimate)


def studentised(a: np.ndarray, b: np.ndarray) -> float:
    return float(abs(stats.ttest_ind(a, b, equal_var=False).statistic))


def test_permutations_of_means_are_all_splits() -> None:
    a, b = A[:4], B[:5]
    values, observed = np.concatenate([a, b]), studentised(a, b)
    extreme = []
    for chosen in itertools.combinations(range(9), 4):
        remaining = [number for number in range(9) if number not in chosen]
        extreme.append(studentised(values[list(chosen)], values[remaining]) >= observed * (1 - 1e-9))
    assert permuted_means(a, b) == np.mean(extreme)
    drawn = permuted_means(a, b, resamples=125)  # one split less than there are
    assert drawn == pytest.approx(np.mean(extreme), abs=4 * math.sqrt(0.25 / 125))
    assert drawn != np.mean(extreme)
    assert permuted_means(a, b, resamples=125, seed=1) != drawn
    assert permuted_means(a, a) == 1.0
    assert math.isnan(permuted_means(a, np.zeros(0)))


def test_permutations_of_ratios_are_all_splits() -> None:
    a, b = COUNTS[:3], COUNTS[3:9]

    def statistics(first: np.ndarray, second: np.ndarray) -> np.ndarray:
        gaps, variances = 0.0, 0.0
        for counts, sign in ((first, 1), (second, -1)):
            hits = counts[:, [0, 0, 0]] * [1, 1, 2]
            sizes = counts @ np.array([[1, 1, 2], [1, 0, 1], [0, 1, 1]])
            ratios = hits.sum(axis=0) / sizes.sum(axis=0)
            gaps = gaps + sign * ratios
            squares = ((hits - ratios * sizes) ** 2).sum(axis=0)
            variances = variances + squares / sizes.sum(axis=0) ** 2 * len(counts) / (len(counts) - 1)
        return np.asarray(np.abs(gaps / np.sqrt(variances)))

    counts, observed = COUNTS[:9], statistics(a, b)
    extreme = []
    for chosen in itertools.combinations(range(9), 3):
        remaining = [number for number in range(9) if number not in chosen]
        extreme.append(statistics(counts[list(chosen)], counts[remaining]) >= observed * (1 - 1e-9))
    assert permuted_ratios(a, b) == pytest.approx(np.mean(extreme, axis=0))
    nothing = np.array([[0.0, 1.0, 0.0]] * 3)
    assert np.isnan(permuted_ratios(nothing, b)).tolist() == [False, True, False]
