"""Critical values of bands against published quantiles, exact ones, and draws of samples themselves."""

from __future__ import annotations

from dataclasses import replace
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np
import pytest

from pipeline.metrics.curves.bands import (
    RATIOS,
    Largest,
    _critical_values,
    _largest_of_clusters,
    _largest_of_rows,
    band_of_sample,
    spread_out,
)
from pipeline.metrics.uncertainty.proportions import Confusion

if TYPE_CHECKING:
    from numpy.typing import NDArray

NORMAL = NormalDist()
COUNTS = Confusion(  # 60 positives and 240 negatives
    np.array([60, 55, 40, 25, 10, 2]),
    np.array([240, 150, 70, 30, 8, 0]),
    np.array([0, 5, 20, 35, 50, 58]),
    np.array([0, 90, 170, 210, 232, 240]),
)
AT_ONE = Confusion(np.array([30.0]), np.array([20.0]), np.array([50.0]), np.array([70.0]))


def sides(counts: Confusion) -> tuple[NDArray[np.float64], ...]:
    return counts.tp, counts.fp, counts.fn, counts.tn


def test_a_rate_over_all_thresholds_has_the_quantile_of_a_standardised_brownian_bridge() -> None:
    # Andrews, Econometrica 71 (2003), 395-397: sup over the middle 70% of a squared bridge, 10% and 5%: 7.12 and 8.68
    share = np.linspace(0.85, 0.15, 501)
    tp = 1e6 * share
    counts = Confusion(tp, np.zeros_like(tp), 1e6 - tp, np.full_like(tp, 5.0))
    recall = _largest_of_rows(counts, counts, draws=4000, seed=1).draws["recall"]
    assert np.quantile(recall, 0.90) == pytest.approx(np.sqrt(7.12), abs=0.05)
    assert np.quantile(recall, 0.95) == pytest.approx(np.sqrt(8.68), abs=0.06)


def test_at_one_threshold_two_independent_rates_share_the_level_exactly() -> None:
    values = _critical_values(_largest_of_rows(AT_ONE, AT_ONE, draws=20_000), 0.95).values
    of_two = NORMAL.inv_cdf((1 + np.sqrt(0.95)) / 2)  # Šidák 1967
    assert [values["recall"], values["fpr"]] == pytest.approx([of_two, of_two], abs=0.03)
    assert NORMAL.inv_cdf(0.975) < values["precision"] < of_two  # its errors go along with those of recall


@pytest.mark.parametrize("fixed_sizes", [False, True])
def test_draws_are_those_of_errors_of_samples(*, fixed_sizes: bool) -> None:
    rng = np.random.default_rng(3)
    scale = 400  # so many rows for one: errors of samples are nearly normal
    in_bins = np.array([-np.diff(side, append=0) for side in (COUNTS.tp, COUNTS.fp)]) * scale
    if fixed_sizes:
        samples = np.stack([rng.multinomial(row.sum(), row / row.sum(), 4000) for row in in_bins], axis=1)
    else:
        samples = rng.poisson(in_bins, (4000, *in_bins.shape))
    tp, fp = np.moveaxis(samples[:, :, ::-1].cumsum(axis=2)[:, :, ::-1], 1, 0)
    positives, negatives = tp[:, :1], fp[:, :1]
    inner = slice(1, 5)  # elsewhere a rate is 1, or nearly nothing is retrieved
    errors = {
        "recall": tp[:, inner] / positives - COUNTS.tp[inner] / 60,
        "fpr": fp[:, inner] / negatives - COUNTS.fp[inner] / 240,
        "precision": tp[:, inner] / (tp + fp)[:, inner] - (COUNTS.tp / (COUNTS.tp + COUNTS.fp))[inner],
    }
    counts = Confusion(*(side[inner] * float(scale) for side in sides(COUNTS)))
    largest = _largest_of_rows(counts, counts, fixed_sizes=fixed_sizes, draws=4000, seed=2)
    for name, error in errors.items():
        of_samples = np.abs(error / error.std(axis=0)).max(axis=1)
        assert np.quantile(largest.draws[name], [0.5, 0.95]) == pytest.approx(
            np.quantile(of_samples, [0.5, 0.95]), abs=0.09
        )


def test_rows_that_are_clusters_of_their_own_have_the_values_of_rows() -> None:
    retrieved_at = np.concatenate(
        [np.repeat(np.arange(6), -np.diff(side, append=0)) for side in (COUNTS.tp, COUNTS.fp)]
    )
    is_retrieved = np.arange(6) <= retrieved_at[:, None]
    is_positive = np.arange(300)[:, None] < 60
    rows = Confusion(
        is_retrieved & is_positive,
        is_retrieved & ~is_positive,
        ~is_retrieved & is_positive,
        ~is_retrieved & ~is_positive,
    )
    of_clusters = _critical_values(_largest_of_clusters([rows]), 0.95)
    of_rows = _critical_values(_largest_of_rows(COUNTS, COUNTS), 0.95)
    assert of_clusters.method == "sup_t_clusters"
    assert of_clusters.values == pytest.approx(of_rows.values, abs=0.1)


def test_weights_count_by_their_squares_and_in_any_unit() -> None:
    of_rows = _largest_of_rows(COUNTS, COUNTS)
    ten_times = Confusion(*(10.0 * side for side in sides(COUNTS)))
    squares = Confusion(*(100.0 * side for side in sides(COUNTS)))
    of_weights = _largest_of_rows(ten_times, squares)
    # the half of a row that is added to both sides is a twentieth of these
    assert _critical_values(of_weights, 0.95).values == pytest.approx(_critical_values(of_rows, 0.95).values, abs=0.08)
    heavy = replace(squares, tp=squares.tp + np.array([5e4, 5e4, 0, 0, 0, 0]))
    assert not np.allclose(_largest_of_rows(ten_times, heavy).draws["recall"], of_weights.draws["recall"])


def test_values_lie_between_the_normal_quantile_and_bonferroni_s() -> None:
    for confidence in (0.5, 0.9, 0.95, 0.99):
        critical = _critical_values(_largest_of_rows(COUNTS, COUNTS), confidence)
        least = NORMAL.inv_cdf((1 + confidence) / 2)
        most = NORMAL.inv_cdf(1 - (1 - confidence) / 2 / 12)
        assert all(least <= value <= most + 0.001 for value in critical.values.values())
        assert critical.values["recall"] >= max(critical.values["precision"], critical.values["fpr"]) - 0.001
        assert critical.confidence("recall") > confidence
        assert critical.method == "sup_t_rows"


def test_a_confidence_for_which_draws_are_too_few_takes_bonferroni_s_correction() -> None:
    critical = _critical_values(_largest_of_rows(COUNTS, COUNTS), 0.999)
    assert critical.method == "bonferroni"
    assert critical.values["fpr"] == pytest.approx(NORMAL.inv_cdf(1 - 0.001 / 24))
    assert _critical_values(_largest_of_rows(COUNTS, COUNTS, draws=1000), 0.99).method == "bonferroni"


def test_errors_over_two_parents_are_those_of_both_together() -> None:
    # of each row one user and one item: the error of recall is half that of users and half that of items
    rng = np.random.default_rng(8)
    sides = rng.poisson(8.0, (4, 30, 5)).astype(np.float64)
    users, items = Confusion(*sides), Confusion(*sides[:, rng.permutation(30)])
    draws = _largest_of_clusters([users, items], draws=4000).draws["recall"]
    hits, misses = sides[0], sides[2]
    share = hits.sum(axis=0) / (hits + misses).sum(axis=0)
    errors = hits * (1 - share) - misses * share
    covariance = 2 * errors.T @ errors
    spread = np.sqrt(np.diag(covariance))
    normal = rng.multivariate_normal(np.zeros(5), covariance / np.outer(spread, spread), 4000)
    assert np.quantile(draws, [0.5, 0.95]) == pytest.approx(
        np.quantile(np.abs(normal).max(axis=1), [0.5, 0.95]), abs=0.09
    )


def test_each_curve_is_left_as_often_as_the_confidence_allows() -> None:
    largest = _largest_of_rows(COUNTS, COUNTS)
    values = _critical_values(largest, 0.9).values
    beyond = {name: draws > values[name] for name, draws in largest.draws.items()}
    for name in ("precision", "fpr"):
        assert (beyond[name] | beyond["recall"]).sum() == pytest.approx(200, abs=4)


def test_the_same_seed_gives_the_same_draws_and_another_seed_others() -> None:
    of_clusters = Confusion(*(np.stack([side, side[::-1], side]) for side in sides(COUNTS)))
    for of_rows in (True, False):
        first, again, different = (
            (
                _largest_of_rows(COUNTS, COUNTS, seed=seed)
                if of_rows
                else _largest_of_clusters([of_clusters], seed=seed)
            ).draws
            for seed in (0, 0, 1)
        )
        assert np.array_equal(first["fpr"], again["fpr"])
        assert not np.array_equal(first["fpr"], different["fpr"])


def test_with_fixed_sizes_the_precision_of_all_rows_is_known() -> None:
    everything = Confusion(*(side[:1] for side in sides(COUNTS)))
    assert not _largest_of_rows(everything, everything, fixed_sizes=True, draws=9).draws["precision"].any()
    assert _largest_of_rows(everything, everything, draws=9).draws["precision"].all()


def test_thresholds_are_spread_with_both_ends_and_denser_towards_them() -> None:
    assert spread_out(7, 10).tolist() == list(range(7))
    chosen = spread_out(100_000, 1000)
    assert len(chosen) <= 1000
    assert chosen[[0, -1]].tolist() == [0, 99_999]
    steps = np.diff(chosen)
    assert set(steps[:20]) == set(steps[-20:]) == {1}
    assert 150 < steps.max() <= 201


def test_the_band_of_a_sample_lies_farther_away_the_scarcer_an_outcome_is() -> None:
    """By r = c / z of the distance of single limits with many events, and by r² without any."""
    draws = np.full(999, 3.0)
    largest = Largest(dict.fromkeys(RATIOS, draws), dict.fromkeys(RATIOS, 1_000), "sup_t_sample")
    values = dict.fromkeys(RATIOS, np.array([0.5, 0.5, 0.5]))
    single = dict.fromkeys(RATIOS, (np.full(3, 0.45), np.full(3, 0.52)))
    band = band_of_sample(largest, 0.95, values, single, np.array([0.0, 4.0, 1e12]))
    ratio = band.critical.values["precision"] / NORMAL.inv_cdf(0.975)
    assert ratio == pytest.approx(3 / 1.96, rel=1e-3)
    farther = np.array([ratio**2, ratio * (1 + (ratio - 1) / 5), ratio])
    lower, upper = band.limits["precision"]
    np.testing.assert_allclose(lower, 0.5 - 0.05 * farther, rtol=1e-9)
    np.testing.assert_allclose(upper, 0.5 + 0.02 * farther, rtol=1e-9)
    assert band.critical.method == "sup_t_sample"
    near_the_end = dict.fromkeys(RATIOS, (np.full(3, 0.01), np.full(3, 0.99)))
    clipped = band_of_sample(largest, 0.95, values, near_the_end, np.zeros(3)).limits["fpr"]
    assert (clipped[0] == 0).all()
    assert (clipped[1] == 1).all()
