"""What a choice gives on other data: against the folds written out, and against a simulated truth."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import norm

from pipeline.metrics.curves.decisions import by_fold, cross_fitted, split_rows
from pipeline.metrics.curves.operating_points import f_beta_of_counts

if TYPE_CHECKING:
    from collections.abc import Sequence

Floats = NDArray[np.float64]


def best_f1(counts: Sequence[Floats]) -> NDArray[np.int64]:
    f1 = f_beta_of_counts(counts, 1.0)
    return np.asarray(np.nan_to_num(f1, nan=-1.0).argmax(axis=1))


@pytest.mark.parametrize("replicates", [2, 7, 10, 23])
def test_counts_are_those_of_the_folds_written_out(replicates: int) -> None:
    rng = np.random.default_rng(replicates)
    tp, fp = (np.sort(rng.integers(0, 9, (replicates, 5)), axis=1)[:, ::-1] for _ in range(2))
    fn = rng.integers(0, 4, (replicates, 1)) + tp[:, :1] - tp
    pooled = [0, 0, 0]
    for fold in range(min(10, replicates)):
        kept = [g for g in range(replicates) if g % 10 != fold]
        fractions = []
        for column in range(5):
            hits, false, missed = (int(sum(count[g, column] for g in kept)) for count in (tp, fp, fn))
            fractions.append(Fraction(2 * hits, max(2 * hits + false + missed, 1)))
        chosen = fractions.index(max(fractions))
        for number, count in enumerate((tp, fp, fn)):
            pooled[number] += int(sum(count[g, chosen] for g in range(replicates) if g % 10 == fold))
    counts = [count[None] for count in by_fold((tp, fp, fn))]
    assert [count.tolist() for count in cross_fitted(counts, best_f1)] == [[total] for total in pooled]


@given(st.integers(1, 4), st.integers(2, 10), st.integers(1, 5), st.integers(0, 99))
def test_groups_side_by_side_are_those_one_by_one(groups: int, folds: int, thresholds: int, seed: int) -> None:
    counts = np.random.default_rng(seed).random((3, groups, folds, thresholds))
    together = np.array(cross_fitted(list(counts), best_f1))
    alone = [cross_fitted(list(counts[:, [group]]), best_f1) for group in range(groups)]
    assert together.tolist() == np.concatenate(alone, axis=1).tolist()


def test_a_fold_without_a_choice_leaves_its_group_without_one() -> None:
    count = np.ones((2, 3, 2))
    choices = iter([[0, 0], [-1, 1], [0, 0]])  # of both groups, by fold
    pooled = cross_fitted((count,) * 3, lambda _: np.array(next(choices)))
    assert [np.isnan(total).tolist() for total in pooled] == [[True, False]] * 3
    assert [total[1] for total in pooled] == [3.0] * 3


@given(st.lists(st.integers(0, 40), min_size=1, max_size=8), st.integers(0, 5), st.integers(0, 3))
def test_rows_that_are_split_add_up_again(bins: list[int], below: int, seed: int) -> None:
    retrieved = np.cumsum(bins[::-1])[::-1]
    total = int(retrieved[0]) + below
    above, totals = split_rows(retrieved, total, seed=seed)
    assert above.sum(axis=0).tolist() == retrieved.tolist()
    assert totals.sum() == total
    assert (np.diff(np.concatenate([totals, above], axis=1), axis=1) <= 0).all()
    weights = (retrieved * 2.5, total * 2.5)
    heavy, heavy_totals = split_rows(retrieved, total, weights, seed=seed)
    assert heavy == pytest.approx(above * 2.5)
    assert heavy_totals == pytest.approx(totals * 2.5)


@pytest.mark.wide
def test_the_best_f1_is_too_high_and_the_cross_fitted_one_is_not() -> None:
    """30 positives and 200 negatives, normal scores 1 apart: the truth of what is chosen, and what the table says."""
    rng = np.random.default_rng(6)
    positive = np.arange(230) < 30
    gaps = []
    for _ in range(400):
        scores = rng.standard_normal(230) + positive
        falling = positive[np.argsort(-scores)]
        tp, fp = falling.cumsum()[::-1], (~falling).cumsum()[::-1]
        f1 = f_beta_of_counts((tp, fp, 30 - tp), 1.0)
        threshold = np.sort(scores)[int(np.argmax(f1))]
        true_tp, true_fp = 30 * norm.sf(threshold - 1), 200 * norm.sf(threshold)
        truth = 2 * true_tp / (30 + true_tp + true_fp)
        true, positives = split_rows(tp, 30)
        false, _ = split_rows(fp, 200, seed=1)
        hits, false_alarms, missed = (
            total.item() for total in cross_fitted([count[None] for count in (true, false, positives - true)], best_f1)
        )
        gaps.append((f1.max() - truth, 2 * hits / (2 * hits + false_alarms + missed) - truth))
    in_sample, elsewhere = np.mean(gaps, axis=0)
    assert in_sample > 0.06
    assert abs(elsewhere) < in_sample / 3
