"""Areas in one pass over ordered rows: against scikit-learn, derivatives by weights, DeLong by hand, and any blocks."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from reference_areas import average_precision, roc_auc, se_of_clusters, se_of_rows
from sklearn.metrics import average_precision_score, roc_auc_score

from pipeline.metrics.curves.ordered_areas import ROW_AREAS, Estimates, OrderedAreas, Rows, Totals

if TYPE_CHECKING:
    from collections.abc import Sequence

Floats = NDArray[np.float64]
DEFINITIONS = {"average_precision": average_precision, "roc_auc": roc_auc}
REFERENCES = {"average_precision": average_precision_score, "roc_auc": roc_auc_score}


@dataclass(frozen=True)
class Sample:
    scores: Floats
    labels: NDArray[np.bool_]
    weights: Floats | None = None
    clusters: NDArray[np.int64] | None = None


def sample(seed: int, rows: int = 80, *, decimals: int = 1, weighted: bool = False, clusters: int = 0) -> Sample:
    rng = np.random.default_rng(seed)
    labels = rng.uniform(size=rows) < 0.3
    labels[:4] = [True, True, False, False]
    return Sample(
        np.round(rng.normal(labels * 1.0, 1.0), decimals),
        labels,
        rng.choice([0.0, 0.5, 1.0, 4.0], rows) + 0.25 * labels if weighted else None,
        rng.integers(0, clusters, rows) if clusters else None,
    )


def estimated(
    samples: Sequence[Sample], cuts: Sequence[int] = (), *, replicates: int = 0, random_sizes: bool = False
) -> Estimates:
    """The areas of groups, their rows put in order and added block by block."""
    order = [np.argsort(each.scores, kind="stable") for each in samples]

    def together(arrays: Sequence[NDArray[np.float64]]) -> Floats:
        return np.concatenate([part[own] for part, own in zip(arrays, order, strict=True)])

    weights = [np.ones(len(each.scores)) if each.weights is None else each.weights for each in samples]
    positive = [weight * each.labels for weight, each in zip(weights, samples, strict=True)]
    negative = [weight * ~each.labels for weight, each in zip(weights, samples, strict=True)]
    weighted = samples[0].weights is not None
    squares = [together([each**2 for each in side]) if weighted else None for side in (positive, negative)]
    clusters = [each.clusters for each in samples if each.clusters is not None]
    rows = Rows(
        np.repeat(np.arange(len(samples)), [len(each.scores) for each in samples]),
        together([each.scores for each in samples]),
        together(positive),
        together(negative),
        squares[0],
        squares[1],
        together([each.astype(float) for each in clusters]).astype(np.int64) if clusters else None,
    )
    sums = ([part.sum() for part in side] for side in (positive, negative))
    numbers = ([(part > 0).sum() for part in side] for side in (positive, negative))
    totals = Totals(*(np.array(each, dtype=float) for each in (*sums, *numbers)))
    collected = OrderedAreas(totals, replicates)
    edges = [0, *sorted(cuts), len(rows)]
    for start, end in itertools.pairwise(edges):
        collected.add(rows.cut(slice(start, end)))
    return collected.finish(random_sizes=random_sizes)


@pytest.mark.parametrize("name", ROW_AREAS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("decimals", [0, 1, 9])
@pytest.mark.parametrize("seed", range(3))
def test_areas_are_those_of_scikit_learn(seed: int, decimals: int, weighted: bool, name: str) -> None:  # noqa: FBT001
    one_sample = sample(seed, 500, decimals=decimals, weighted=weighted)
    wanted = REFERENCES[name](one_sample.labels, one_sample.scores, sample_weight=one_sample.weights)
    assert estimated([one_sample]).area[name][0] == pytest.approx(wanted, abs=1e-13)


@pytest.mark.parametrize("name", ROW_AREAS)
@pytest.mark.parametrize(
    ("decimals", "weighted", "random_sizes"),
    [(0, True, False), (0, False, True), (1, False, False), (1, True, True), (9, True, True), (9, False, False)],
)
def test_standard_errors_are_those_of_derivatives_by_weights(
    decimals: int,
    weighted: bool,  # noqa: FBT001
    random_sizes: bool,  # noqa: FBT001
    name: str,
) -> None:
    one_sample = sample(5, decimals=decimals, weighted=weighted)
    wanted = se_of_rows(
        DEFINITIONS[name], one_sample.scores, one_sample.labels, one_sample.weights, random_sizes=random_sizes
    )
    assert estimated([one_sample], random_sizes=random_sizes).se[name][0] == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("name", ROW_AREAS)
@pytest.mark.parametrize(("seed", "weighted"), [(0, False), (1, True)])
def test_errors_of_clusters_are_those_of_derivatives_by_weights(seed: int, weighted: bool, name: str) -> None:  # noqa: FBT001
    one_sample = sample(seed, weighted=weighted, clusters=11)
    assert one_sample.clusters is not None
    wanted = se_of_clusters(
        DEFINITIONS[name], one_sample.scores, one_sample.labels, one_sample.clusters, one_sample.weights
    )
    assert estimated([one_sample], replicates=11).se[name][0] == pytest.approx(wanted, rel=1e-9)


def test_the_error_of_the_roc_area_is_that_of_delong() -> None:
    one_sample = sample(6, 120)
    positive, negative = one_sample.scores[one_sample.labels], one_sample.scores[~one_sample.labels]
    higher = (positive[:, None] > negative[None]) + 0.5 * (positive[:, None] == negative[None])
    placements = higher.mean(axis=1), higher.mean(axis=0)
    wanted = np.sqrt(sum(each.var(ddof=1) / len(each) for each in placements))
    assert estimated([one_sample]).se["roc_auc"][0] == pytest.approx(wanted, rel=1e-12)


@pytest.mark.wide
@pytest.mark.parametrize("name", ROW_AREAS)
def test_the_error_is_near_the_spread_over_samples(name: str) -> None:
    rng = np.random.default_rng(7)
    labels = np.arange(440) < 40
    actual = [estimated([Sample(rng.normal(labels * 1.2, 1.0), labels)]) for _ in range(500)]
    spread = np.std([each.area[name][0] for each in actual], ddof=1)
    assert np.mean([each.se[name][0] for each in actual]) == pytest.approx(spread, rel=0.12)


@given(
    st.integers(0, 30),
    st.lists(st.integers(0, 240), max_size=12),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
def test_groups_and_blocks_change_nothing(
    seed: int,
    cuts: list[int],
    weighted: bool,  # noqa: FBT001
    clustered: bool,  # noqa: FBT001
    random_sizes: bool,  # noqa: FBT001
) -> None:
    clusters = 5 if clustered else 0
    samples = [sample(seed + one_sample, weighted=weighted, clusters=clusters) for one_sample in range(3)]
    together = estimated(samples, cuts, replicates=clusters, random_sizes=random_sizes)
    for number, one_sample in enumerate(samples):
        alone = estimated([one_sample], replicates=clusters, random_sizes=random_sizes)
        for name in ROW_AREAS:
            assert together.area[name][number] == pytest.approx(alone.area[name][0], rel=1e-12)
            assert together.se[name][number] == pytest.approx(alone.se[name][0], rel=1e-9, abs=1e-15)


def test_rows_one_by_one_give_what_one_block_gives() -> None:
    one_sample = sample(8, 60, decimals=0, weighted=True)
    at_once, single = estimated([one_sample]), estimated([one_sample], range(1, 60))
    for name in ROW_AREAS:
        assert single.area[name][0] == pytest.approx(at_once.area[name][0], rel=1e-13)
        assert single.se[name][0] == pytest.approx(at_once.se[name][0], rel=1e-10)


@pytest.mark.parametrize("replicates", [0, 2])
def test_a_group_of_one_class_has_no_roc_area_and_one_without_positives_no_area(replicates: int) -> None:
    scores, clusters = np.array([0.1, 0.4, 0.4, 0.9]), np.array([0, 1, 0, 1])
    all_of = [Sample(scores, np.full(4, label), clusters=clusters if replicates else None) for label in (False, True)]
    actual = estimated(all_of, replicates=replicates)
    assert np.isnan(actual.area["average_precision"][0])
    assert actual.area["average_precision"][1] == 1
    assert actual.se["average_precision"][1] == 0
    assert np.isnan(actual.area["roc_auc"]).all()
    assert np.isnan(actual.se["roc_auc"]).all()


def test_one_positive_has_an_area_but_no_error() -> None:
    one_sample = Sample(np.array([0.1, 0.4, 0.6, 0.9]), np.array([False, False, True, False]))
    actual = estimated([one_sample])
    assert actual.area["average_precision"][0] == 0.5
    assert actual.area["roc_auc"][0] == pytest.approx(2 / 3)
    assert np.isnan(actual.se["average_precision"][0])
    assert np.isnan(actual.se["roc_auc"][0])


def test_constant_scores_have_the_prevalence_and_one_half() -> None:
    one_sample = Sample(np.full(10, 0.3), np.arange(10) < 3)
    actual = estimated([one_sample])
    assert actual.area["average_precision"][0] == pytest.approx(0.3)
    assert actual.area["roc_auc"][0] == pytest.approx(0.5)
    assert actual.se["average_precision"][0] == pytest.approx(0, abs=1e-15)
    assert actual.se["roc_auc"][0] == pytest.approx(0, abs=1e-15)
    share = estimated([one_sample], random_sizes=True).se["average_precision"][0]
    assert share == pytest.approx(np.sqrt(0.3 * 0.7 / 10), rel=1e-12)


def test_rows_that_are_summed_ties_are_the_rows() -> None:
    one_sample = sample(9, 200, decimals=0)
    levels, level_of_row = np.unique(one_sample.scores, return_inverse=True)
    sums = [
        np.bincount(level_of_row, weights=each).astype(np.float64) for each in (one_sample.labels, ~one_sample.labels)
    ]
    totals = [np.array([float(each.sum())]) for each in sums]
    collected = OrderedAreas(Totals(*totals, *totals))
    collected.add(Rows(np.zeros(len(levels), dtype=np.int64), levels, sums[0], sums[1]))
    actual, wanted = collected.finish(), estimated([one_sample])
    for name in ROW_AREAS:
        assert actual.area[name][0] == pytest.approx(wanted.area[name][0], rel=1e-13)
        assert actual.se[name][0] == pytest.approx(wanted.se[name][0], rel=1e-11)


def test_no_rows_have_no_area() -> None:
    nothing = OrderedAreas(Totals(*(np.zeros(1) for _ in range(4)))).finish()
    assert np.isnan([nothing.area[name][0] for name in ROW_AREAS]).all()
    assert np.isnan([nothing.se[name][0] for name in ROW_AREAS]).all()


def test_rows_of_no_weight_change_nothing() -> None:
    one_sample = sample(10, weighted=True)
    assert one_sample.weights is not None
    has_weight = one_sample.weights > 0
    kept = Sample(one_sample.scores[has_weight], one_sample.labels[has_weight], one_sample.weights[has_weight])
    for name in ROW_AREAS:
        assert estimated([one_sample]).area[name][0] == pytest.approx(estimated([kept]).area[name][0], rel=1e-13)
        assert estimated([one_sample]).se[name][0] == pytest.approx(estimated([kept]).se[name][0], rel=1e-11)


@pytest.mark.parametrize("heavy", [1.0, 1e6, 123456.7])
@pytest.mark.parametrize("light", [1.0, 1e-6, 3.3e-6])
def test_heavy_groups_leave_light_ones_as_they_are(light: float, heavy: float) -> None:
    rng = np.random.default_rng(3)
    heavy_sample, few = sample(11, 3000, decimals=9), sample(12, 40, decimals=2)
    assert few.weights is None
    first = Sample(heavy_sample.scores, heavy_sample.labels, heavy * rng.uniform(0.5, 1.0, 3000))
    second = Sample(few.scores, few.labels, light * rng.uniform(0.5, 1.0, 40))
    together, alone = estimated([first, second, first]), estimated([second])
    for name in ROW_AREAS:
        assert together.area[name][1] == pytest.approx(alone.area[name][0], rel=1e-13)
        assert together.se[name][1] == pytest.approx(alone.se[name][0], rel=1e-11)
        assert alone.area[name][0] == pytest.approx(
            REFERENCES[name](second.labels, second.scores, sample_weight=second.weights), rel=1e-12
        )


def test_the_lightest_rows_at_the_top_of_a_heavy_group_cannot_spoil_it() -> None:
    rng = np.random.default_rng(4)
    scores, labels = np.arange(5000) / 5000, rng.uniform(size=5000) < 0.4
    weights = np.where(scores > 0.9, 1e-6, 1e6 * rng.uniform(0.5, 1.0, 5000))
    actual = estimated([Sample(scores, labels, weights)])
    for name in ROW_AREAS:
        assert actual.area[name][0] == pytest.approx(REFERENCES[name](labels, scores, sample_weight=weights), rel=1e-12)
        assert 0 < actual.se[name][0] < 0.02


def test_totals_that_are_rounded_by_as_much_as_the_top_row_weighs_cannot_spoil_the_areas() -> None:
    heavy, light = 2.0**40, 2.0**-11  # the last bit of the totals
    positive = np.array([heavy, 0.0, heavy, 0.0, light])
    negative = np.array([0.0, heavy, 0.0, heavy, 0.0])
    totals = Totals(*(np.array([value]) for value in (2 * heavy - light, 2 * heavy + light, 3.0, 2.0)))
    collected = OrderedAreas(totals)
    collected.add(Rows(np.zeros(5, dtype=np.int64), np.arange(5.0), positive, negative, positive**2, negative**2))
    actual = collected.finish()
    assert actual.area["average_precision"][0] == pytest.approx((1 / 2 + 1 / 2) / 2, abs=1e-12)
    assert actual.area["roc_auc"][0] == pytest.approx(1 / 4, abs=1e-12)
    assert np.isfinite([actual.se[name][0] for name in ROW_AREAS]).all()
