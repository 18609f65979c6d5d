"""Bands of a group: how they relate to the limits of single thresholds, and how often they hold a whole curve."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy.special import ndtr

from pipeline.metrics.curves.bands import CURVES, RATIOS, Draws, band_of_clusters, band_of_rows
from pipeline.metrics.uncertainty.proportions import Confusion, Weights, intervals_of_clusters, intervals_of_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipeline.metrics.uncertainty.jackknife import Limits

SHIFT, SHARE = 1.5, 0.2
GRID = np.linspace(-1.5, 3.0, 31)
RECALL, FPR = ndtr(SHIFT - GRID), ndtr(-GRID)
TRUTH = {"precision": SHARE * RECALL / (SHARE * RECALL + (1 - SHARE) * FPR), "recall": RECALL, "fpr": FPR}


def sample(rng: np.random.Generator, clusters: int, rows: int) -> Confusion:
    """Counts of clusters of independent rows at each threshold of the grid."""
    label = rng.random((clusters, rows, 1)) < SHARE
    is_retrieved = rng.standard_normal(label.shape) + SHIFT * label >= GRID
    sides = (is_retrieved & label, is_retrieved & ~label, ~is_retrieved & label, ~is_retrieved & ~label)
    return Confusion(*(side.sum(axis=1) for side in sides))


def sides(counts: Confusion) -> tuple[NDArray[np.float64], ...]:
    return counts.tp, counts.fp, counts.fn, counts.tn


def together(counts: Confusion) -> Confusion:
    return Confusion(*(side.sum(axis=0) for side in sides(counts)))


def holds(limits: dict[str, Limits], names: tuple[str, ...]) -> bool:
    return all(((limits[name][0] <= TRUTH[name]) & (TRUTH[name] <= limits[name][1])).all() for name in names)


def rises(values: NDArray[np.float64]) -> bool:
    return bool((np.diff(values) > 0).any())


@pytest.mark.wide
@pytest.mark.parametrize("clusters", [1, 30], ids=["rows", "clusters"])
def test_a_band_holds_the_whole_curve_and_single_limits_do_not(clusters: int) -> None:
    rng = np.random.default_rng(7)
    held: dict[str, list[list[bool]]] = {"single": [], "band": []}
    for number in range(400 if clusters == 1 else 200):
        counts, draws = sample(rng, clusters, 300 // clusters), Draws(399, number)
        if clusters == 1:
            single = intervals_of_rows(together(counts), None, 0.95, names=RATIOS)
            band = band_of_rows(together(counts), None, 0.95, single, draws=draws)
        else:
            single = intervals_of_clusters(counts, 0.95, names=RATIOS)
            band = band_of_clusters(counts, 0.95, single, draws=draws)
        held["single"].append([holds(single, curve) for curve in CURVES])
        held["band"].append([holds(band.limits, curve) for curve in CURVES])
    share = {name: np.mean(values, axis=0) for name, values in held.items()}
    assert (share["band"] >= 0.92).all(), share  # .95 less about two standard errors of 200 data sets
    assert (share["single"] <= 0.75).all(), share


@pytest.mark.parametrize("clusters", [1, 6], ids=["rows", "clusters"])
def test_limits_of_a_band_lie_farther_and_fall_with_the_rate(clusters: int) -> None:
    counts = sample(np.random.default_rng(2), clusters, 240 // clusters)
    if clusters == 1:
        single = intervals_of_rows(together(counts), None, 0.9, names=RATIOS)
        band = band_of_rows(together(counts), None, 0.9, single)
    else:
        single = intervals_of_clusters(counts, 0.9, names=RATIOS)
        band = band_of_clusters(counts, 0.9, single)
    for name in RATIOS:
        assert (band.limits[name][0] <= single[name][0]).all()
        assert (band.limits[name][1] >= single[name][1]).all()
        assert (band.limits[name][1] - band.limits[name][0] > single[name][1] - single[name][0]).mean() > 0.9
    assert not any(rises(side) for name in ("recall", "fpr") for side in band.limits[name])


def test_limits_that_are_farther_for_another_reason_are_kept() -> None:
    counts = together(sample(np.random.default_rng(2), 1, 240))
    single = intervals_of_rows(counts, None, 0.95, names=RATIOS)
    far = single | {"recall": (np.zeros_like(GRID), single["recall"][1])}
    assert not band_of_rows(counts, None, 0.95, far).limits["recall"][0].any()


def test_a_band_is_missing_where_its_ratio_is() -> None:
    counts = Confusion(np.array([5, 3, 0]), np.zeros(3), np.array([0, 2, 5]), np.zeros(3))
    single = intervals_of_rows(counts, None, 0.95, names=RATIOS)
    limits = band_of_rows(counts, None, 0.95, single).limits
    missing = {name: np.isnan(lower).tolist() for name, (lower, _) in limits.items()}
    assert missing == {"precision": [False, False, True], "recall": [False] * 3, "fpr": [True] * 3}
    assert [np.isnan(upper).tolist() for _, upper in limits.values()] == list(missing.values())
    of_one_cluster = sample(np.random.default_rng(2), 1, 50)
    nothing = {name: (np.full_like(GRID, np.nan), np.full_like(GRID, np.nan)) for name in RATIOS}
    assert all(np.isnan(lower).all() for lower, _ in band_of_clusters(of_one_cluster, 0.95, nothing).limits.values())


def test_heavy_weights_make_a_band_wider_and_fixed_sizes_a_narrower_one() -> None:
    counts = together(sample(np.random.default_rng(4), 1, 400))
    squares = Confusion(*(3.0 * side for side in sides(counts)))
    plain, weighted, fixed = (
        band_of_rows(
            counts,
            weights,
            0.95,
            intervals_of_rows(counts, weights, 0.95, fixed_sizes=is_fixed, names=RATIOS),
            fixed_sizes=is_fixed,
        ).limits["precision"]
        for weights, is_fixed in ((None, False), (Weights(squares, 2.0, 2.0), False), (None, True))
    )
    middle = slice(5, 20)
    assert ((weighted[1] - weighted[0]) > 1.4 * (plain[1] - plain[0]))[middle].all()
    assert ((fixed[1] - fixed[0]) < (plain[1] - plain[0]))[middle].all()


def test_a_band_between_two_parents_is_at_least_that_of_limits_over_both() -> None:
    rng = np.random.default_rng(5)
    users, items = (sample(rng, 20, 15) for _ in range(2))
    single = intervals_of_clusters(users, 0.95, names=RATIOS, crossed=[items, users])
    band = band_of_clusters(users, 0.95, single, crossed=[items, users])
    assert all((band.limits[name][0] <= single[name][0]).all() for name in RATIOS)
    alone = band_of_clusters(users, 0.95, single)
    assert band.critical.values != alone.critical.values
    assert all((band.limits[name][1] >= single[name][1]).all() for name in RATIOS)
