"""Contributions of units: their mean and spread, DeLong's test by hand, and leaving units out or drawing them again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest
from reference_areas import average_precision, pr_auc_at, roc_auc, se_of_clusters, se_of_rows
from scipy.stats import t as student
from sklearn.metrics import average_precision_score, roc_auc_score

from pipeline.metrics.comparison.paired import paired_t
from pipeline.metrics.curves.influence import Steps, UnitSums, contributions
from pipeline.metrics.curves.trapezoidal_area import pr_auc
from pipeline.plan.units import GroupCurves, sums_of_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipeline.metrics.curves.influence import Independent

    Floats = NDArray[np.float64]
    Bools = NDArray[np.bool_]

DEFINITIONS = {"average_precision": average_precision, "roc_auc": roc_auc}


def sample(seed: int, number: int = 40, units: int = 8) -> tuple[Floats, Bools, NDArray[np.int64]]:
    rng = np.random.default_rng(seed)
    labels = rng.random(number) < 0.35
    labels[:4] = [True, True, False, False]
    clusters = rng.integers(0, units, number)
    return np.round(rng.normal(labels * 1.2 + 0.3 * (clusters % 3)), 1), labels, clusters


def contributed(
    scores: Floats, labels: Bools, units: NDArray[np.int64], weights: Floats | None = None, *, random_sizes: bool = True
) -> dict[str, Floats]:
    """Contributions of units to all areas, with every score as threshold."""
    heavy = np.ones(len(scores)) if weights is None else weights
    grid = np.unique(scores)
    retrieved = [[(heavy * side * (scores >= value)).sum() for value in grid] for side in (labels, ~labels)]
    totals = (np.array([(heavy * side).sum()]) for side in (labels, ~labels))
    steps = Steps(np.zeros(len(grid), dtype=np.int64), *map(np.array, retrieved), *totals)
    curves = GroupCurves((), pl.DataFrame({"grouping": ["all"]}), np.array([np.nan]), grid, steps, True, len(scores))
    rows = pl.DataFrame({"unit": units, "score": scores, "label": labels, "weight": heavy})
    summed = sums_of_rows(rows, curves, weighted=weights is not None)
    areas = {
        "average_precision": average_precision_score(labels, scores, sample_weight=weights),
        "roc_auc": roc_auc_score(labels, scores, sample_weight=weights),
        "pr_auc": pr_auc(scores, labels).auc if weights is None else _pr_auc(scores, labels, heavy),
    }
    independent: Independent = "rows" if len(np.unique(units)) == len(scores) else "clusters"
    kind = "n" if weights is None else "weight"
    values = {}
    for area, value in areas.items():
        sides = [
            [summed.frame[f"{name}_{side}"].to_numpy() for side in ("positive", "negative")] for name in (kind, area)
        ]
        sums = UnitSums(
            np.zeros(len(sides[0][0]), dtype=np.int64), (sides[0][0], sides[0][1]), (sides[1][0], sides[1][1])
        )
        slope = summed.slopes[area] * random_sizes
        values[area] = contributions(sums, np.array([value]), slope, independent)
        assert np.nanmean(values[area]) == pytest.approx(value, abs=1e-14)
    return values


def _pr_auc(scores: Floats, labels: Bools, weights: Floats) -> float:
    share = weights[labels].sum() / weights.sum()
    return pr_auc_at(np.unique(scores).tolist(), ">=")(scores, labels, weights, share).real


def error(values: Floats) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values)))


@pytest.mark.parametrize("seed", range(3))
def test_the_spread_over_rows_is_the_error_of_the_area(seed: int) -> None:
    scores, labels, _ = sample(seed)
    rows = np.arange(len(scores))
    fixed = contributed(scores, labels, rows, random_sizes=False)
    for area, definition in {**DEFINITIONS, "pr_auc": pr_auc_at(np.unique(scores).tolist(), ">=")}.items():
        assert error(fixed[area]) == pytest.approx(se_of_rows(definition, scores, labels), rel=1e-12)
        random = error(contributed(scores, labels, rows)[area])  # here n / (n - 1) counts for the sizes, too
        assert random == pytest.approx(se_of_rows(definition, scores, labels, random_sizes=True), rel=0.03)
    assert fixed["average_precision"].max() > 1


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_the_spread_over_clusters_is_the_error_of_the_area(seed: int, weighted: bool) -> None:  # noqa: FBT001
    scores, labels, clusters = sample(seed)
    weights = np.random.default_rng(seed).choice([0.0, 0.5, 2.0], len(scores)) + 0.1 if weighted else None
    for area, values in contributed(scores, labels, clusters, weights).items():
        definition = DEFINITIONS.get(area) or pr_auc_at(np.unique(scores).tolist(), ">=")
        expected = se_of_clusters(definition, scores, labels, clusters, weights)
        assert error(values) == pytest.approx(expected, rel=0.01)  # about the mean shift, which is hardly 0
        assert error(values) <= expected * (1 + 1e-12)


def delong(labels: Bools, first: Floats, second: Floats) -> tuple[float, float]:
    """Difference of two ROC areas and its standard error, from the structural components of DeLong et al. (1988)."""
    covariances = []
    areas = []
    for in_class, others in ((labels, ~labels), (~labels, labels)):
        components = []
        for scores in (first, second):
            higher = scores[in_class][:, None] > scores[others][None]
            same = scores[in_class][:, None] == scores[others][None]
            components.append((higher + 0.5 * same).mean(axis=1))
        areas.append([values.mean() for values in components])
        covariances.append(np.cov(components) / in_class.sum())
    contrast = np.array([1.0, -1.0])
    return areas[0][0] - areas[0][1], float(np.sqrt(contrast @ (covariances[0] + covariances[1]) @ contrast))


@pytest.mark.parametrize("seed", range(4))
def test_the_paired_t_test_of_rows_is_delongs(seed: int) -> None:
    scores, labels, _ = sample(seed)
    other = np.round(scores + np.random.default_rng(seed + 50).normal(0, 0.8, len(scores)), 1)
    rows = np.arange(len(scores))
    test = paired_t(contributed(scores, labels, rows)["roc_auc"], contributed(other, labels, rows)["roc_auc"])
    difference, standard_error = delong(labels, scores, other)
    assert test.difference == pytest.approx(difference, abs=1e-14)
    assert test.statistic == pytest.approx(difference / standard_error, rel=1e-10)
    assert test.p_value == pytest.approx(2 * student.sf(abs(difference / standard_error), len(rows) - 1), rel=1e-9)


def left_out(scores: Floats, labels: Bools, units: NDArray[np.int64]) -> dict[str, Floats]:
    """Areas without each unit in turn."""
    rests = [units != unit for unit in np.unique(units)]
    return {
        "average_precision": np.array([average_precision_score(labels[rest], scores[rest]) for rest in rests]),
        "roc_auc": np.array([roc_auc_score(labels[rest], scores[rest]) for rest in rests]),
        "pr_auc": np.array([pr_auc(scores[rest], labels[rest]).auc for rest in rests]),
    }


def test_the_spread_of_a_difference_is_that_of_leaving_clusters_out() -> None:
    """Brute force: areas anew without each cluster; influences agree to first order, which is little here."""
    scores, labels, clusters = sample(11, 400, 40)
    other = np.round(scores + np.random.default_rng(3).normal(0, 0.8, len(scores)), 1)
    systems = [contributed(each, labels, clusters) for each in (scores, other)]
    without = [left_out(each, labels, clusters) for each in (scores, other)]
    for area in systems[0]:
        gaps = without[0][area] - without[1][area]
        number = len(gaps)
        jackknife = np.sqrt((number - 1) / number * ((gaps - gaps.mean()) ** 2).sum())
        difference = systems[0][area] - systems[1][area]
        assert error(difference) == pytest.approx(jackknife, rel=0.05)
        assert np.corrcoef(difference, -gaps)[0, 1] > 0.99


def test_the_spread_of_a_difference_is_that_of_the_bootstrap_of_clusters() -> None:
    scores, labels, clusters = sample(5, 600, 30)
    other = scores + np.random.default_rng(3).normal(0, 0.8, len(scores))
    systems = [contributed(each, labels, clusters)["roc_auc"] for each in (scores, other)]
    # pairs of a positive and a negative in the right order by their clusters: an area of any draw is a ratio of sums
    pairs = np.zeros((30, 30))
    np.add.at(pairs, (clusters[labels][:, None], clusters[~labels][None]), 1.0)
    wins = np.zeros((30, 30))
    for values, sign in ((scores, 1.0), (other, -1.0)):
        positive, negative = values[labels][:, None], values[~labels][None]
        right = (positive > negative) + 0.5 * (positive == negative)
        np.add.at(wins, (clusters[labels][:, None], clusters[~labels][None]), sign * right)
    drawn = np.random.default_rng(1).multinomial(30, np.full(30, 1 / 30), 4000).astype(np.float64)
    gaps = np.einsum("dp,pn,dn->d", drawn, wins, drawn) / np.einsum("dp,pn,dn->d", drawn, pairs, drawn)
    # clusters that are drawn again vary by 29/30 of their variance; 4,000 draws know a deviation to 1.1 %
    assert error(systems[0] - systems[1]) == pytest.approx(np.std(gaps) * np.sqrt(30 / 29), rel=0.05)


def test_nothing_tells_the_error_where_one_unit_holds_a_class() -> None:
    group = np.array([0, 0, 0, 1, 1, 2, 2, 2])
    positive = np.array([2.0, 0, 0, 1, 1, 1, 1, 0])
    negative = np.array([1.0, 1, 1, 0, 0, 3, 1, 0])
    sums = UnitSums(group, (positive, negative), (positive / 2, negative / 3))
    values = contributions(sums, np.array([0.5, 1.0, 0.7]), np.zeros(3), "clusters")
    assert np.isnan(values[:3]).all()  # one unit holds all positives
    assert values[3:5].tolist() == [1.0, 1.0]  # without negatives an area does not vary
    assert np.isnan(values[7])  # a unit without weight
    assert values[5:7].mean() == pytest.approx(0.7)
    undefined = contributions(sums, np.full(3, np.nan), np.zeros(3), "rows")
    assert np.isnan(undefined).all()
