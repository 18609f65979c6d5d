"""pr_auc: against its definition written out, scikit-learn's trapezoid area, and derivatives by the weight of a row."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference_areas import pr_auc_at, se_of_clusters, se_of_rows, value
from sklearn.metrics import auc, precision_recall_curve

from pipeline.metrics.curves.trapezoidal_area import (
    PrAuc,
    Retrieved,
    _moments,
    pr_auc,
    replicate_shifts,
    true_point_areas,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

Boundary = Literal[">=", ">"]


def sample(seed: int, rows: int = 60, levels: int = 25) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    rng = np.random.default_rng(seed)
    labels = rng.uniform(size=rows) < 0.4
    labels[:4] = [True, True, False, False]
    return np.round(rng.normal(labels * 1.2, 1.0), 4 if levels > 100 else 1), labels


def numbers(actual: PrAuc) -> tuple[float, float, float]:
    return actual.auc, actual.se_true_points, actual.se


def retrieved(
    scores: NDArray[Any], labels: NDArray[Any], weights: NDArray[Any], thresholds: list[float], boundary: str
) -> Retrieved:
    above = [scores >= each if boundary == ">=" else scores > each for each in sorted(set(thresholds), reverse=True)]

    def sums(mask: NDArray[np.bool_]) -> NDArray[np.float64]:
        return np.array([[weights[mask & each].sum() for each in above]])

    return Retrieved(sums(labels), sums(~labels), np.array([weights[labels].sum()]), np.array([weights[~labels].sum()]))


@pytest.mark.parametrize("boundary", [">=", ">"])
@pytest.mark.parametrize("seed", range(6))
def test_the_area_is_the_mean_over_true_points_as_published(seed: int, boundary: Boundary) -> None:
    scores, labels = sample(seed)
    thresholds = list(np.random.default_rng(seed).choice(np.round(np.linspace(-2, 4, 61), 1), 12))
    actual = pr_auc(scores, labels, thresholds, boundary)
    area = pr_auc_at(thresholds, boundary)
    assert actual.auc == pytest.approx(value(area, scores, labels, np.ones(len(scores))), abs=1e-14)
    assert actual.se == pytest.approx(se_of_rows(area, scores, labels), rel=1e-10)


@pytest.mark.parametrize("seed", range(4))
def test_the_published_standard_error_is_the_spread_of_the_worth_of_true_points(seed: int) -> None:
    scores, labels = sample(seed)
    thresholds = sorted(np.linspace(-1, 3, 15), reverse=True)
    kept = [each for each in thresholds if (scores > each).any()]
    precision = [labels[scores > each].mean() for each in kept]
    worth = []
    for score in scores[labels]:
        first = next((place for place, each in enumerate(kept) if score > each), None)
        worth.append(0.0 if first is None else (precision[max(first - 1, 0)] + precision[first]) / 2)
    actual = pr_auc(scores, labels, thresholds)
    assert actual.auc == pytest.approx(np.mean(worth), abs=1e-14)
    assert actual.se_true_points == pytest.approx(np.std(worth, ddof=1) / math.sqrt(len(worth)), rel=1e-12)


@pytest.mark.parametrize("levels", [25, 1000])
@pytest.mark.parametrize("seed", range(4))
def test_every_score_gives_the_trapezoid_area_of_scikit_learn_with_a_level_first_step(seed: int, levels: int) -> None:
    scores, labels = sample(seed, rows=300, levels=levels)
    precision, recall, _ = precision_recall_curve(labels, scores)
    precision[-1] = precision[-2]
    assert pr_auc(scores, labels).auc == pytest.approx(auc(recall, precision), abs=1e-14)
    below = np.append(np.unique(scores), scores.min() - 1)
    assert numbers(pr_auc(scores, labels, below, ">")) == pytest.approx(numbers(pr_auc(scores, labels)), rel=1e-13)
    assert pr_auc(scores, labels, np.unique(scores), ">=") == pr_auc(scores, labels)


@given(
    st.lists(st.tuples(st.integers(0, 6), st.booleans()), min_size=1, max_size=12),
    st.lists(st.integers(-1, 7), min_size=1, max_size=8),
    st.sampled_from([">=", ">"]),
)
def test_the_area_of_any_few_rows_is_the_definition(
    rows: list[tuple[int, bool]], thresholds: list[float], boundary: Boundary
) -> None:
    scores, labels = np.array([row[0] for row in rows], dtype=float), np.array([row[1] for row in rows])
    actual = pr_auc(scores, labels, thresholds, boundary)
    if not labels.any():
        assert math.isnan(actual.auc)
    else:
        wanted = value(pr_auc_at(thresholds, boundary), scores, labels, np.ones(len(rows)))
        assert actual.auc == pytest.approx(wanted, abs=1e-13)
        assert 0 <= actual.auc <= 1


def test_a_perfect_ranking_scores_one_and_a_constant_score_the_prevalence() -> None:
    perfect = pr_auc([0.9, 0.8, 0.2, 0.1], [1, 1, 0, 0])
    assert (perfect.auc, perfect.se_true_points, perfect.se) == (1, 0, 0)
    constant = pr_auc([0.5] * 8, [True] * 2 + [False] * 6)
    assert constant.auc == 0.25
    assert constant.se_true_points == constant.se == 0


def test_without_a_positive_nothing_is_known_and_with_one_no_spread() -> None:
    none = pr_auc([0.1, 0.9], [0, 0])
    assert all(math.isnan(each) for each in (none.auc, none.se_true_points, none.se))
    one = pr_auc([0.1, 0.5, 0.9], [0, 1, 0])
    assert one.auc == 0.25
    assert math.isnan(one.se_true_points)
    assert math.isnan(one.se)
    empty = pr_auc([], [])
    assert math.isnan(empty.auc)
    only_negative_alone = pr_auc([0.1, 0.5, 0.9], [1, 0, 1])
    assert math.isnan(only_negative_alone.se)
    assert only_negative_alone.se_true_points > 0


def test_without_a_usable_threshold_the_area_is_zero() -> None:
    for thresholds in ([5.0, 6.0], []):
        actual = pr_auc([0.1, 0.9, 0.4], [1, 1, 0], thresholds)
        assert (actual.auc, actual.se_true_points) == (0, 0)


def test_true_points_that_no_threshold_retrieves_are_worth_nothing() -> None:
    assert pr_auc([0.9, 0.1, 0.2], [1, 1, 0], [0.5]).auc == 0.5


@pytest.mark.parametrize("boundary", [">=", ">"])
def test_order_repeats_and_empty_thresholds_change_nothing(boundary: Boundary) -> None:
    scores, labels = sample(9)
    thresholds = [0.0, 0.4, 0.7, 1.5]
    plain = pr_auc(scores, labels, thresholds, boundary)
    assert pr_auc(scores, labels, [1.5, 0.4, 0.4, 0.0, 0.7, 1.5], boundary) == plain
    more = pr_auc(scores, labels, [99.0, *thresholds, scores.max() + 1, 50.0], boundary)
    assert numbers(more) == pytest.approx(numbers(plain), rel=1e-13)


def test_only_the_order_of_scores_matters() -> None:
    scores, labels = sample(10)
    assert pr_auc(np.exp(scores) * 1e200, labels) == pr_auc(scores, labels)


@pytest.mark.parametrize("random_sizes", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_weighted_areas_and_their_errors_are_those_of_derivatives_by_weights(seed: int, random_sizes: bool) -> None:  # noqa: FBT001
    scores, labels = sample(seed)
    weights = np.random.default_rng(seed).choice([0.5, 1.0, 3.0], len(scores))
    thresholds = [-0.5, 0.0, 0.6, 1.1, 2.0]
    counts_of_powers = [
        retrieved(scores, labels, each, thresholds, ">=") for each in (weights, weights**2, np.ones(len(scores)))
    ]
    actual = true_point_areas(*counts_of_powers, random_sizes=random_sizes)
    area = pr_auc_at(thresholds, ">=")
    assert actual.auc[0] == pytest.approx(value(area, scores, labels, weights), abs=1e-13)
    wanted = se_of_rows(area, scores, labels, weights, random_sizes=random_sizes)
    assert actual.se[0] == pytest.approx(wanted, rel=1e-10)


def test_several_groups_at_once_are_the_groups_one_by_one() -> None:
    thresholds = [-0.5, 0.0, 0.6, 1.1, 9.0]
    alone = [retrieved(*sample(seed), np.ones(60), thresholds, ">=") for seed in range(3)]
    names = ("tp", "fp", "positives", "negatives")
    together = true_point_areas(
        Retrieved(*(np.concatenate([getattr(single, name) for single in alone]) for name in names))
    )
    for number, single in enumerate(alone):
        one = true_point_areas(single)
        for name in ("auc", "se_true_points", "se"):
            assert getattr(together, name)[number] == pytest.approx(getattr(one, name)[0], rel=1e-13)


@pytest.mark.parametrize("seed", range(4))
def test_the_error_of_clusters_is_that_of_derivatives_by_weights(seed: int) -> None:
    scores, labels = sample(seed)
    rng = np.random.default_rng(seed)
    weights, clusters = rng.choice([0.5, 1.0, 3.0], len(scores)), rng.integers(0, 9, len(scores))
    thresholds = [-0.5, 0.0, 0.6, 1.1, 2.0]
    counts_of_powers = [
        retrieved(scores[clusters == each], labels[clusters == each], weights[clusters == each], thresholds, ">=")
        for each in range(9)
    ]
    names = ("tp", "fp", "positives", "negatives")
    replicates = Retrieved(*(np.concatenate([getattr(each, name) for each in counts_of_powers]) for name in names))
    wanted = se_of_clusters(pr_auc_at(thresholds, ">="), scores, labels, clusters, weights)
    assert np.sqrt(replicate_shifts(replicates)[0].spread.variance) == pytest.approx(wanted, rel=1e-10)


def test_the_linearised_error_is_larger_than_the_published_one_and_near_the_true_spread() -> None:
    rng = np.random.default_rng(11)
    labels = np.arange(550) < 50
    actual = [pr_auc(rng.normal(labels * 1.5, 1.0), labels) for _ in range(400)]
    spread = np.std([each.auc for each in actual], ddof=1)
    assert np.mean([each.se for each in actual]) == pytest.approx(spread, rel=0.12)
    assert np.mean([each.se_true_points for each in actual]) < 0.8 * spread


@pytest.mark.parametrize(
    ("scores", "labels", "thresholds", "words"),
    [
        ([0.1, math.nan, math.inf], [0, 1, 1], None, "2 scores are NaN or infinite"),
        ([0.1, 0.2], [0, 1, 1], None, "of one length"),
        ([[0.1, 0.2]], [[0, 1]], None, "one-dimensional"),
        ([0.1, 0.2], [0, 2], None, "boolean, or 0 and 1"),
        ([0.1, 0.2], [0, math.nan], None, "boolean, or 0 and 1"),
        ([0.1, 0.2], [0, 1], [0.1, math.nan], "a threshold is not finite"),
        ([0.1, 0.2], [0, 1], [math.inf], "a threshold is not finite"),
    ],
)
def test_what_cannot_be_is_refused(scores: Any, labels: Any, thresholds: Any, words: str) -> None:  # noqa: ANN401
    with pytest.raises(ValueError, match=words):
        pr_auc(scores, labels, thresholds)


def test_moments_of_a_class_are_those_of_its_members_written_out() -> None:
    retrieved, psi, total = np.array([[1.0, 4.0, 5.0]]), np.array([[0.3, -0.2, 0.9]]), np.array([8.0])
    moments = _moments(retrieved, retrieved, (total, total, total), psi)
    members = np.array([0.3] + [-0.2] * 3 + [0.9] + [0.0] * 3)
    centred = members - members.mean()
    assert [field.item() for field in vars(moments).values()][-4:] == pytest.approx(
        [(centred**power).sum() for power in (1, 2, 3, 4)], abs=1e-15
    )
