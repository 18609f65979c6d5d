"""Curves from few labels: every sample of tiny populations, full labelling, the order of rows, SciPy's beta limits."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, product
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from pipeline.metrics.curves.decisions import Payoffs
from pipeline.metrics.few_labels.curve import RATIOS, Judge, estimated_curve
from pipeline.metrics.few_labels.draws import Design, Labelled, Population, merged_strata

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

Floats: TypeAlias = "NDArray[np.float64]"
SCORE = np.array([0.1, 0.2, 0.2, 0.3, 0.4, 0.6, 0.6, 0.7, 0.8, 0.9])
LABEL = np.array([0, 0, 1, 0, 0, 1, 0, 1, 0, 1], dtype=np.bool_)
STRATUM = np.array([0, 0, 0, 0, 0, 1, 1, 1, 1, 1])
CUTS = np.array([0.95, 0.9, 0.8, 0.7, 0.65, 0.6, 0.4, 0.3, 0.2, 0.1])


def population_of(score: Floats, stratum: NDArray[np.int64], cuts: Floats, proxy: Floats | None = None) -> Population:
    of = stratum == np.arange(stratum.max() + 1)[:, None]
    reached = (score >= cuts[:, None]).astype(np.float64)
    return Population(
        cuts,
        of @ reached.T,
        of.sum(axis=1).astype(np.float64),
        None,
        None if proxy is None else (of * proxy) @ reached.T,
        None if proxy is None else of @ proxy,
    )


def labelled_of(rows: Sequence[int], proxy: Floats | None = None) -> Labelled:
    chosen = np.array(rows, dtype=np.int64)
    ones = np.ones(len(chosen))
    return Labelled(STRATUM[chosen], SCORE[chosen], LABEL[chosen], ones, None if proxy is None else proxy[chosen])


def unclipped(design: Design) -> Floats:
    """The estimated true rows at or above each cut, by a loop over the rows."""
    strata = design.population
    unexplained = design.label - design.proxy
    tp = design.proxy_retrieved.copy()
    for stratum, size in enumerate(strata.size):
        rows = np.flatnonzero(design.stratum == stratum)
        share = sum(design.weight[row] * unexplained[row] for row in rows) / size
        of_one_sample = 1 + (1 - len(rows) / size) / (len(rows) - 1)
        tp += share * strata.retrieved[stratum]
        for row in rows:
            tp[design.first[row] :] += design.weight[row] * (unexplained[row] - share) * of_one_sample
    return tp


def test_over_all_samples_the_estimate_is_the_truth() -> None:
    """Two strata of seven rows cut by thresholds, with ties and shares that rise within them: 441 samples."""
    score = np.array([1, 2, 2, 3, 4, 4, 5, 6, 6, 6, 7, 8, 9, 9], dtype=np.float64)
    label = np.array([0, 0, 1, 0, 0, 0, 1, 1, 0, 0, 1, 1, 0, 1], dtype=np.bool_)
    stratum = np.repeat([0, 1], 7)
    cuts = np.arange(9.5, 0, -0.5)
    population = population_of(score, stratum, cuts)
    estimates = []
    for low, high in product(combinations(range(7), 5), combinations(range(7, 14), 5)):
        rows = np.array(low + high)
        design = Design.of(population, Labelled(stratum[rows], score[rows], label[rows], np.ones(10)))
        assert len(design.population.size) == 2
        estimates.append(unclipped(design))
    assert np.mean(estimates, axis=0) == pytest.approx([label[cut <= score].sum() for cut in cuts], abs=1e-12)


def test_over_all_samples_of_a_stratum_what_is_estimated_is_the_truth() -> None:
    """One cut through a stratum that leaves room on both sides, so that no estimate is clipped: 8 samples."""
    score, label = np.array([1, 1, 1, 1, 2, 2, 2, 2.0]), np.array([0, 1, 0, 1, 1, 1, 0, 1], dtype=np.bool_)
    stratum, cuts = np.zeros(8, np.int64), np.array([2.0])
    population, estimates = population_of(score, stratum, cuts), []
    for rows in map(np.array, combinations(range(8), 7)):
        totals = Design.of(population, Labelled(stratum[rows], score[rows], label[rows], np.ones(7))).estimate()
        assert 0 < totals.tp[0, 0] < 4
        estimates.append((totals.tp[0, 0], totals.positives[0]))
    assert np.mean(estimates, axis=0) == pytest.approx([3, 5], abs=1e-12)


def test_the_estimate_is_the_loop_where_nothing_is_clipped() -> None:
    random = np.random.default_rng(3)
    score = random.random(4_000)
    label = random.random(4_000) < score
    stratum = (score * 4).astype(np.int64)
    chosen = random.choice(4_000, 400, replace=False)
    cuts = np.unique(np.append(np.linspace(0, 0.9, 40), score[chosen]))[::-1]
    weight = random.gamma(2.0, size=400)
    labelled = Labelled(stratum[chosen], score[chosen], label[chosen], weight)
    design = Design.of(population_of(score, stratum, cuts), labelled)
    ours = design.estimate().tp[0]
    assert ours == pytest.approx(np.maximum.accumulate(np.maximum(unclipped(design), 0)), rel=0.02, abs=4)
    assert ours[-1] == pytest.approx(unclipped(design)[-1], rel=1e-12)


@pytest.mark.parametrize("with_proxy", [False, True])
def test_full_labelling_is_the_truth_to_the_last_digit_and_leaves_no_doubt(*, with_proxy: bool) -> None:
    proxy = np.linspace(0, 1, 10) if with_proxy else None
    population = population_of(SCORE, STRATUM, CUTS, proxy)
    curve = estimated_curve(population, labelled_of(range(10), proxy), draws=50)
    for index, cut in enumerate(CUTS):
        reached = cut <= SCORE
        tp, fp = int((reached & LABEL).sum()), int((reached & ~LABEL).sum())
        fn, tn = int(LABEL.sum()) - tp, int((~LABEL).sum()) - fp
        assert [curve.at[name].estimate[index] for name in ("tp", "fp", "fn", "tn")] == [tp, fp, fn, tn]
        assert curve.at["recall"].estimate[index] == tp / (tp + fn)
        for name in RATIOS:
            limits = curve.at[name]
            assert limits.lower[index] == pytest.approx(limits.estimate[index], nan_ok=True)
            assert limits.upper[index] == pytest.approx(limits.estimate[index], nan_ok=True)
    # Σ over the scores: (4, 1/1), (0), (1 of 3 rows), 2 of 5 in the tie of .6, then 3 of 5 … of four true rows
    assert curve.areas["average_precision"].estimate == pytest.approx((1 + 2 / 3 + 3 / 5 + 4 / 9) / 4, abs=1e-15)


def test_the_order_of_rows_does_not_matter() -> None:
    population = population_of(SCORE, STRATUM, CUTS)
    rows = [0, 1, 2, 3, 4, 6, 7, 8, 9]
    first = estimated_curve(population, labelled_of(rows), draws=200)
    second = estimated_curve(population, labelled_of(rows[::-1]), draws=200)
    for name in ("tp", *RATIOS):
        assert second.at[name].estimate == pytest.approx(first.at[name].estimate, abs=1e-12, nan_ok=True)
    assert second.areas["average_precision"].estimate == pytest.approx(
        first.areas["average_precision"].estimate, abs=1e-12
    )


@pytest.mark.parametrize(("hits", "misses"), [(40, 60), (15, 185), (150, 50)])
def test_limits_of_a_simple_random_sample_are_those_of_jeffreys(hits: int, misses: int) -> None:
    """All labelled rows are retrieved by the only cut, so that precision is the share of true rows."""
    n = hits + misses
    population = Population(np.array([0.0]), np.array([[1e9]]), np.array([1e9]))
    labelled = Labelled(np.zeros(n, np.int64), np.ones(n), np.arange(n) < hits, np.ones(n))
    precision = estimated_curve(population, labelled, draws=10_000).at["precision"]
    expected = scipy.stats.beta.ppf([0.025, 0.975], hits + 0.5, misses + 0.5)
    assert [precision.lower[0], precision.upper[0]] == pytest.approx(expected, abs=0.012)
    assert precision.estimate[0] == pytest.approx(hits / n, rel=1e-12)


def test_limits_of_specificity_are_those_of_the_false_positive_rate_from_the_other_side() -> None:
    population = population_of(SCORE, STRATUM, CUTS)
    curve = estimated_curve(population, labelled_of(range(0, 10, 2)), names=("fpr", "specificity"), draws=200)
    fpr, specificity = curve.at["fpr"], curve.at["specificity"]
    assert specificity.lower == pytest.approx(1 - fpr.upper, abs=1e-9, nan_ok=True)
    assert specificity.upper == pytest.approx(1 - fpr.lower, abs=1e-9, nan_ok=True)


def test_a_third_of_a_false_row_lowers_the_lower_limit_of_precision() -> None:
    labelled = Labelled(np.zeros(40, np.int64), np.ones(40), np.arange(40) < 35, np.ones(40))
    population = Population(np.zeros(1), np.array([[1e9]]), np.array([1e9]))
    precision = estimated_curve(population, labelled, draws=20_000).at["precision"]
    with_a_third, without = scipy.stats.beta.ppf(0.025, 35, [5 + 1 / 3, 5])
    assert precision.lower[0] == pytest.approx(with_a_third, abs=0.007)
    assert precision.lower[0] < without - 0.006


def test_a_stratum_without_a_true_row_widens_recall() -> None:
    """Nine true rows of ten at the top, none of ten among 9,990 rows below: recall may be far below 1."""
    population = Population(np.array([0.5, 0.0]), np.array([[0.0, 9_990], [10, 10]]), np.array([9_990.0, 10.0]))
    stratum = np.repeat([0, 1], 10)
    labelled = Labelled(stratum, stratum * 0.9, np.arange(20) > 10, np.ones(20))
    curve = estimated_curve(population, labelled)
    assert curve.at["recall"].estimate[0] == 1
    assert curve.at["recall"].upper[0] == 1
    assert curve.at["recall"].lower[0] < 0.02
    more = replace(population, size=np.array([100.0, 10.0]), retrieved=np.array([[0.0, 100], [10, 10]]))
    assert estimated_curve(more, labelled).at["recall"].lower[0] > 0.2


def test_nothing_seen_excludes_nothing() -> None:
    population = Population(np.array([0.5, 0.0]), np.array([[100.0, 1_000]]), np.array([1_000.0]))
    labelled = Labelled(np.zeros(30, np.int64), np.full(30, 0.2), np.zeros(30, np.bool_), np.ones(30))
    curve = estimated_curve(population, labelled)
    assert (curve.at["precision"].lower[0], curve.at["precision"].upper[0]) == (0, 1)
    assert np.isnan(curve.at["recall"].estimate).all()
    assert (curve.at["recall"].lower[0], curve.at["recall"].upper[0]) == (0, 1)
    assert curve.at["precision"].upper[1] < 0.15
    assert [float(curve.areas["average_precision"].lower), float(curve.areas["average_precision"].upper)] == [0, 1]


def test_a_threshold_that_retrieves_nothing_has_no_precision() -> None:
    curve = estimated_curve(population_of(SCORE, STRATUM, CUTS), labelled_of(range(5, 10)))
    precision = curve.at["precision"]
    assert np.isnan([precision.estimate[0], precision.lower[0], precision.upper[0]]).all()


@given(st.lists(st.integers(0, 12), min_size=1, max_size=8))
def test_merged_strata_have_five_labels_and_are_neighbours(labels: list[int]) -> None:
    numbers = np.array(labels)
    sizes = np.full(len(labels), 1_000.0)
    merged = merged_strata(Population(np.array([0.0]), sizes[:, None], sizes), numbers)
    assert (np.diff(merged) >= 0).all()
    assert np.unique(merged).tolist() == list(range(merged.max() + 1))
    sums = np.bincount(merged, numbers)
    assert len(sums) == 1 or sums.min() >= 5


def test_a_stratum_that_is_labelled_to_its_last_row_stays_alone() -> None:
    sizes = np.array([1_000.0, 2.0])
    assert merged_strata(Population(np.array([0.0]), sizes[:, None], sizes), np.array([20, 2])).tolist() == [0, 1]


def binary(rows: int, share: float, seed: int) -> tuple[Floats, NDArray[np.bool_], NDArray[np.int64]]:
    random = np.random.default_rng(seed)
    score = random.random(rows)
    return score, random.random(rows) < share * 2 * score, (score * 2).astype(np.int64)


@pytest.mark.parametrize(("kind", "least", "most"), [("perfect", 0.0, 0.45), ("useless", 0.97, 1.02)])
def test_a_proxy_narrows_and_a_useless_one_costs_nothing(kind: str, least: float, most: float) -> None:
    widths = []
    for seed in range(4):
        score, label, stratum = binary(5_000, 0.3, seed)
        random = np.random.default_rng(100 + seed)
        proxy = label.astype(float) if kind == "perfect" else random.random(5_000)
        chosen = random.choice(5_000, 400, replace=False)
        cuts = np.unique(score[chosen])[::-1]
        labelled = Labelled(stratum[chosen], score[chosen], label[chosen], np.ones(400), proxy[chosen])
        with_proxy = estimated_curve(population_of(score, stratum, cuts, proxy), labelled, draws=500)
        without = estimated_curve(population_of(score, stratum, cuts), replace(labelled, proxy=None), draws=500)
        middle = len(cuts) // 2
        widths.append(
            [np.ptp([c.at["precision"].lower[middle], c.at["precision"].upper[middle]]) for c in (with_proxy, without)]
        )
    with_it, without_it = np.mean(widths, axis=0)
    assert least <= with_it / without_it <= most


def test_the_total_is_the_prediction_powered_mean_with_a_slope_near_that_of_the_rows() -> None:
    """λ mean(F) + mean(y - λ f) of all rows and the labelled ones, in each of two strata (PPI++)."""
    score, label, stratum = binary(1_000, 0.4, 5)
    random = np.random.default_rng(6)
    proxy = np.where(random.random(1_000) < 0.7, label, random.random(1_000))
    chosen = random.choice(1_000, 120, replace=False)
    cuts = np.array([2.0, -1.0])
    labelled = Labelled(stratum[chosen], score[chosen], label[chosen], np.ones(120), proxy[chosen])
    population = population_of(score, stratum, cuts, proxy)
    design = Design.of(population, labelled)
    order = np.argsort(np.searchsorted(-cuts, -score[chosen]), kind="stable")
    total = 0.0
    for index in (0, 1):
        y, f = (values[chosen][stratum[chosen] == index] for values in (label.astype(float), proxy))
        slope = slope_of(design, index, proxy[chosen][order])
        assert slope == pytest.approx(scipy.stats.linregress(f, y).slope, rel=0.15)
        rows = stratum == index
        total += rows.sum() * (slope * proxy[rows].mean() + (y - slope * f).mean())
    curve = estimated_curve(population, labelled, draws=20)
    assert curve.positives.estimate == pytest.approx(total, rel=1e-12)
    assert curve.at["tp"].estimate[1] == pytest.approx(total, rel=1e-12)


def slope_of(design: Design, stratum: int, proxy: Floats) -> float:
    """λ of a stratum, from λ f and f of its labelled rows."""
    rows = np.flatnonzero((design.stratum == stratum) & (design.proxy != 0))
    return float(design.proxy[rows[0]] / proxy[rows[0]])


@pytest.mark.parametrize("share_of_strata", [(0.004, 0.2), (0.02, 0.5)])
def test_a_proxy_of_few_rows_does_not_move_the_estimate(share_of_strata: tuple[float, float]) -> None:
    """400 samples, in most of which the first stratum has no row, or one, that the proxy takes for true."""
    random = np.random.default_rng(8)
    stratum = np.repeat([0, 1], [6_000, 1_000])
    label = random.random(7_000) < np.array(share_of_strata)[stratum]
    proxy = np.where(random.random(7_000) < np.where(label, 0.85, 0.998), label, ~label).astype(float)
    size, sums = np.bincount(stratum).astype(np.float64), np.bincount(stratum, proxy).astype(np.float64)
    population = Population(np.zeros(1), size[:, None], size, proxy=sums[:, None], proxy_size=sums)
    estimates, without = [], []
    for _ in range(400):
        rows = np.concatenate(
            [random.choice(6_000, 60, replace=False), 6_000 + random.choice(1_000, 60, replace=False)]
        )
        labelled = Labelled(stratum[rows], np.ones(120), label[rows], np.ones(120), proxy=proxy[rows])
        estimates.append(Design.of(population, labelled).estimate().positives[0])
        plain = Population(np.zeros(1), size[:, None], size)
        without.append(Design.of(plain, replace(labelled, proxy=None)).estimate().positives[0])
    error = np.std(estimates) / 20
    assert abs(np.mean(estimates) - label.sum()) < 3.5 * error + 0.02 * label.sum()
    assert np.std(estimates) < 0.9 * np.std(without)


def test_a_useless_proxy_costs_next_to_nothing() -> None:
    """Its λ is 0 in many samples, and small in the others: the spread of the estimate grows by 2% at most."""
    score, label, stratum = binary(2_000, 0.3, 4)
    random = np.random.default_rng(9)
    with_proxy, without, left_out = [], [], []
    for _ in range(400):
        proxy, chosen = random.random(2_000), random.choice(2_000, 150, replace=False)
        labelled = Labelled(stratum[chosen], score[chosen], label[chosen], np.ones(150), proxy[chosen])
        design = Design.of(population_of(score, stratum, np.zeros(1), proxy), labelled)
        plain = Design.of(population_of(score, stratum, np.zeros(1)), replace(labelled, proxy=None))
        left_out.append(not design.proxy.any())
        with_proxy.append(design.estimate().positives[0])
        without.append(plain.estimate().positives[0])
    assert np.mean(left_out) > 0.25
    assert np.std(with_proxy) < 1.02 * np.std(without)


def test_limits_of_average_precision_lie_beyond_the_quantiles_of_the_draws() -> None:
    """The lower one by the bias of the draws, at least; the upper one because a true row may have been missed."""
    score, label, stratum = binary(3_000, 0.05, 11)
    chosen = np.random.default_rng(2).choice(3_000, 200, replace=False)
    cuts = np.unique(score[chosen])[::-1]
    population = population_of(score, stratum, cuts)
    labelled = Labelled(stratum[chosen], score[chosen], label[chosen], np.ones(200))
    area = estimated_curve(population, labelled, draws=2_000).areas["average_precision"]
    design, retrieved = Design.of(population, labelled), population.retrieved.sum(axis=0)
    drawn = design.draw(2_000, np.random.default_rng(0))
    steps = np.diff(drawn.tp, axis=1, prepend=0.0)
    of_draws = (steps * drawn.tp / np.maximum(retrieved, 1)).sum(axis=1) / drawn.positives
    bias = of_draws.mean() - area.estimate
    assert bias > 0.003
    lower, upper = np.quantile(of_draws, [0.025, 0.975])
    assert area.lower < lower - 0.9 * bias
    assert area.upper > upper + 0.001


def test_means_of_payoffs_have_both_sides_and_errors_of_bands_have_no_sign() -> None:
    score, label, stratum = binary(3_000, 0.05, 11)
    chosen = np.random.default_rng(2).choice(3_000, 200, replace=False)
    cuts = np.unique(np.append(score[chosen], 1.0))[::-1]
    labelled = Labelled(stratum[chosen], score[chosen], label[chosen], np.ones(200))
    payoffs = {"hits": Payoffs(1.0, 0.0, 0.0, 0.0), "misses": Payoffs(0.0, 0.0, 1.0, 0.0)}
    wanted = np.array([len(cuts) // 3])
    curve = estimated_curve(
        population_of(score, stratum, cuts), labelled, wanted=wanted, payoffs=payoffs, banded=["recall"]
    )
    for mean, count, side in (("hits", "tp", "upper"), ("misses", "fn", "lower"), ("misses", "fn", "upper")):
        expected = getattr(curve.at[count], side)[0] / 3_000
        assert getattr(curve.at[mean], side)[0] == pytest.approx(expected, rel=0.03)
    assert 0.5 < curve.at["hits"].lower[0] / (curve.at["tp"].lower[0] / 3_000) < 1  # a false row for a true one
    largest = curve.largest["recall"]
    assert (largest > 0).mean() > 0.95
    assert np.quantile(largest, 0.95) == pytest.approx(2.0, abs=0.35)


def test_a_row_that_may_have_been_missed_is_in_the_place_of_another_where_all_rows_count() -> None:
    """Of 40 rows above the cut 4 were drawn, all false: if one more of them is true, one fewer is false."""
    score = np.arange(400.0)
    stratum = np.repeat([0, 1], [360, 40])
    chosen = [*range(0, 360, 9), *range(363, 400, 10)]
    label = np.isin(chosen, [0, 9, 18])
    labelled = Labelled(stratum[chosen], score[chosen], label, np.ones(len(chosen)))
    cuts = np.unique(np.append(score[chosen], 360.0))[::-1]
    wanted = np.flatnonzero(cuts == 360)
    of_hits, of_both = Payoffs(1.0, 0.0, 0.0, 0.0), Payoffs(1.0, -1.0, 0.0, 0.0)
    payoffs = {"hits": of_hits, "both": of_both}
    curve = estimated_curve(population_of(score, stratum, cuts), labelled, wanted=wanted, payoffs=payoffs)
    assert curve.at["both"].estimate[0] == -0.1
    gained = [curve.at[name].upper[0] - curve.at[name].estimate[0] for name in payoffs]
    assert gained[1] == pytest.approx(2 * gained[0])
    assert 0.02 < gained[0] < 0.1


def test_payoffs_of_many_cuts_belong_to_their_cuts(monkeypatch: pytest.MonkeyPatch) -> None:
    score, label, stratum = binary(2_000, 0.2, 3)
    chosen = np.random.default_rng(5).choice(2_000, 150, replace=False)
    labelled = Labelled(stratum[chosen], score[chosen], label[chosen], np.ones(150))
    cuts = np.unique(score[chosen])[::-1]
    worth = Payoffs(np.linspace(1, 2, len(cuts)), -0.5, 0.0, 0.0)
    population = population_of(score, stratum, cuts)
    expected = estimated_curve(population, labelled, payoffs={"worth": worth}, draws=100).at["worth"]
    monkeypatch.setattr("pipeline.metrics.few_labels.curve._AT_ONCE", 700)  # seven cuts
    in_blocks = estimated_curve(population, labelled, payoffs={"worth": worth}, draws=100).at["worth"]
    assert in_blocks.estimate.tolist() == expected.estimate.tolist()
    assert in_blocks.lower.tolist() == expected.lower.tolist()


def test_few_rows_above_a_cut_are_held_for_what_they_are() -> None:
    """The upper tenth of a stratum is all true, and by chance only two of its rows were drawn, of which one is."""
    score = np.arange(1_000.0)
    stratum = np.zeros(1_000, np.int64)
    chosen = [*range(0, 900, 9), 920, 960]
    label = np.isin(chosen, [960])
    labelled = Labelled(stratum[chosen], score[chosen], label, np.ones(len(chosen)))
    cuts = np.unique(np.append(score[chosen], 900.0))[::-1]
    wanted = np.flatnonzero(cuts == 900)
    population = population_of(score, stratum, cuts)
    curve = estimated_curve(population, labelled, wanted=wanted)
    assert curve.at["precision"].upper[0] == pytest.approx(scipy.stats.beta(1.5, 1.5).ppf(0.975), rel=0.03)
    of_forty = Labelled(
        *(np.repeat(values, 20) for values in (stratum[chosen], score[chosen], label, np.ones(len(chosen))))
    )
    enough = estimated_curve(population_of(np.repeat(score, 20), np.repeat(stratum, 20), cuts), of_forty, wanted=wanted)
    assert enough.at["precision"].upper[0] < 0.35  # of 40 rows draws know enough
    proxy = np.where(score >= 900, 1.0, 0.0)
    with_proxy = estimated_curve(
        population_of(score, stratum, cuts, proxy), replace(labelled, proxy=proxy[chosen]), wanted=wanted
    )
    assert with_proxy.at["precision"].upper[0] - with_proxy.at["precision"].lower[0] < 0.7  # it tells of the others


@pytest.mark.parametrize("as_one", [False, True])
def test_few_rows_of_few_others_or_of_one_cluster(*, as_one: bool) -> None:
    """Of the twelve rows above the cut nine have labels, so that only three are in doubt; or they were drawn as one."""
    score = np.arange(400.0)
    stratum = np.repeat([0, 1], [388, 12])
    chosen = [*range(0, 388, 4), *range(388, 397)]
    label = np.isin(chosen, [388, 389, 390, 391])
    cluster = np.minimum(np.arange(len(chosen)), len(chosen) - 9) if as_one else None
    labelled = Labelled(stratum[chosen], score[chosen], label, np.ones(len(chosen)), cluster=cluster)
    cuts = np.unique(np.append(score[chosen], 388.0))[::-1]
    curve = estimated_curve(population_of(score, stratum, cuts), labelled, wanted=np.flatnonzero(cuts == 388))
    lower, upper = curve.at["precision"].lower[0], curve.at["precision"].upper[0]
    size, doubt = (1, 1.0) if as_one else (9, 3 / 12)  # what is drawn whole is one of many
    ends = scipy.stats.beta(size * 4 / 9 + 0.5, size * 5 / 9 + 0.5).ppf([0.025, 0.975])
    reached = 4 / 9 + (ends - 4 / 9) * np.sqrt(doubt)
    assert lower <= reached[0] + 0.03
    assert upper >= reached[1] - 0.03
    assert upper - lower < 1.35 * (reached[1] - reached[0])


def test_labels_of_a_judge_are_corrected() -> None:
    """Of 1,000 rows 240 are called true: (.24 - .1) / (.9 + .9 - 1) = .175 are."""
    population = Population(np.array([0.0]), np.array([[1e6]]), np.array([1e6]))
    labelled = Labelled(np.zeros(1_000, np.int64), np.ones(1_000), np.arange(1_000) < 240, np.ones(1_000))
    sure = estimated_curve(population, labelled, judge=Judge(90_000, 10_000, 90_000, 10_000))
    unsure = estimated_curve(population, labelled, judge=Judge(45, 5, 180, 20))
    for curve in (sure, unsure):
        assert curve.at["precision"].estimate[0] == pytest.approx(0.175, abs=1e-12)
        assert curve.positives.estimate == pytest.approx(175_000)
    assert np.ptp([unsure.at["precision"].lower[0], unsure.at["precision"].upper[0]]) > 1.3 * np.ptp(
        [sure.at["precision"].lower[0], sure.at["precision"].upper[0]]
    )
    with pytest.raises(
        ValueError, match=r"no better than chance: it calls 0\.50 of true rows true, and 0\.50 of false"
    ):
        estimated_curve(population, labelled, judge=Judge(10, 10, 10, 10))
    with pytest.raises(ValueError, match="a true and a false one"):
        estimated_curve(population, labelled, judge=Judge(0, 0, 10, 10))


def test_rows_of_clusters_that_agree_count_as_one() -> None:
    """100 clusters of five equal rows have the limits of 100 rows."""
    cluster = np.repeat(np.arange(100), 5)
    population = Population(np.array([0.0]), np.array([[1e9]]), np.array([1e9]))
    rows = Labelled(np.zeros(500, np.int64), np.ones(500), cluster < 30, np.ones(500), None, cluster)
    precision = estimated_curve(population, rows, draws=10_000).at["precision"]
    expected = scipy.stats.beta.ppf([0.025, 0.975], 30.5, 70.5)
    assert [precision.lower[0], precision.upper[0]] == pytest.approx(expected, abs=0.02)


def test_no_label_at_all_is_refused() -> None:
    with pytest.raises(ValueError, match="no row is labelled"):
        estimated_curve(population_of(SCORE, STRATUM, CUTS), labelled_of([]))


def test_with_a_proxy_the_mean_is_that_of_ppi_py() -> None:
    i = np.arange(900)
    stratum = np.repeat([0, 1, 2], [400, 300, 200])
    label = (i * 7919 % 101) < np.array([8, 35, 80])[stratum]
    proxy = np.where(i * 31 % 17 < 13, label, (i * 13 % 11) / 11)
    drawn = i % np.array([7, 5, 3])[stratum] == 0
    size, sums = np.bincount(stratum).astype(np.float64), np.bincount(stratum, proxy).astype(np.float64)
    ones = np.ones(drawn.sum())
    labelled = Labelled(stratum[drawn], ones, label[drawn], ones, proxy=proxy[drawn])
    population = Population(np.zeros(1), size[:, None], size, proxy=sums[:, None], proxy_size=sums)
    design = Design.of(population, labelled)
    # ppi_mean_pointestimate(label, proxy, proxy of all, lam=slope) of ppi-python 0.2.3, stratum by stratum
    slopes = np.array([0.5546447494514043, 0.8223776335905832, 0.7334499008082561])
    assert [slope_of(design, index, proxy[drawn]) for index in range(3)] == pytest.approx(slopes, abs=0.15)
    tuned = replace(design, proxy=slopes[design.stratum] * proxy[drawn], proxy_total=float(slopes @ sums))
    assert tuned.estimate().positives[0] == pytest.approx(281.6397957333613, abs=1e-9)
    without = Design.of(
        Population(np.zeros(1), size[:, None], size), Labelled(stratum[drawn], ones, label[drawn], ones)
    )
    assert without.estimate().positives[0] == pytest.approx(267.13166144200625, abs=1e-9)  # lam=0
    assert abs(281.6397957333613 - label.sum()) < abs(267.13166144200625 - label.sum())
