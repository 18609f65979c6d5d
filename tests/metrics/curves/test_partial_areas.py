"""The area under the ROC curve up to a false positive rate: scikit-learn's number, and its error by the jackknife."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from pipeline.metrics.curves.trapezoidal_area import (
    Retrieved,
    partial_roc_areas,
    partial_roc_auc,
    replicate_shifts,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


def retrieved(score: Floats, label: NDArray[np.bool_], weight: Floats | None = None) -> Retrieved:
    """What every score retrieves."""
    weight = np.ones(len(score)) if weight is None else weight
    above = score >= np.unique(score)[::-1][:, None]
    sides = (label, ~label)
    return Retrieved(
        *((above @ (weight * side))[None] for side in sides), *(np.array([weight @ side]) for side in sides)
    )


@given(
    st.lists(st.tuples(st.integers(0, 6), st.booleans(), st.integers(1, 3)), min_size=2, max_size=30),
    st.sampled_from([0.01, 0.1, 1 / 3, 0.5, 0.9]),
)
def test_it_is_that_of_scikit_learn(rows: list[tuple[int, bool, int]], max_fpr: float) -> None:
    score, label, weight = (np.array(column) for column in zip(*rows, strict=True))
    area = partial_roc_auc(retrieved(score.astype(float), label, weight.astype(float)), max_fpr)[0]
    if label.all() or not label.any():
        assert np.isnan(area)
    else:
        assert area == pytest.approx(roc_auc_score(label, score, max_fpr=max_fpr, sample_weight=weight), abs=1e-12)


def test_a_perfect_order_is_1_and_all_tied_is_chance() -> None:
    label = np.arange(20) < 7
    assert partial_roc_auc(retrieved(-np.arange(20.0), label), 0.2)[0] == 1
    assert partial_roc_auc(retrieved(np.zeros(20), label), 0.2)[0] == pytest.approx(0.5)


@pytest.mark.parametrize("decimals", [0, 1, 6])
@pytest.mark.parametrize("max_fpr", [0.055, 0.3])
def test_its_error_is_that_of_the_derivatives_by_the_weights_of_rows(decimals: int, max_fpr: float) -> None:
    random = np.random.default_rng(decimals)
    label = np.arange(300) < 100
    score = np.round(random.normal(size=300) + label, decimals)
    area, se, degrees = (values[0] for values in partial_roc_areas(retrieved(score, label), max_fpr=max_fpr))
    variance, step = 0.0, 1e-7
    for side in (label, ~label):
        moved = []
        for row in np.flatnonzero(side):
            weight = np.ones(300)
            weight[row] += step
            moved.append((partial_roc_auc(retrieved(score, label, weight), max_fpr)[0] - area) / step)
        variance += side.sum() * np.var(moved, ddof=1)
    assert se == pytest.approx(np.sqrt(variance), rel=1e-4)
    assert 0.5 < area < 1
    assert 3 <= degrees <= 298


def test_replicates_of_single_rows_have_nearly_the_error_of_rows() -> None:
    random = np.random.default_rng(4)
    label = random.random(300) < 0.4
    score = np.round(random.normal(size=300) + label, 1)
    above = score >= np.unique(score)[::-1][:, None]
    tp, fp = ((above & side).T.astype(float) for side in (label, ~label))
    by_row = Retrieved(tp, fp, label.astype(float), (~label).astype(float))
    (shifts,) = replicate_shifts(by_row, max_fpr=0.2)
    se = partial_roc_areas(by_row.total, max_fpr=0.2)[1][0]
    assert np.sqrt(shifts.spread.variance) == pytest.approx(se, rel=0.02)
    assert shifts.values.sum() == pytest.approx(0, abs=0.01)
