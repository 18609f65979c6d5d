"""Numbers of all four outcomes: values beside scikit-learn, variances beside draws, limits of rows and clusters."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sklearn

from pipeline.base.columns import ACCURACY, FPR, INDEX_OF, MCC, NPV, RATIO_OF, SPECIFICITY, YOUDEN_J
from pipeline.metrics.uncertainty.proportions import (
    Confusion,
    index_limits_of_clusters,
    index_limits_of_rows,
    index_of,
    intervals_of_rows,
)

COUNTS = st.tuples(*[st.integers(0, 60)] * 4)


def confusion(counts: tuple[int, ...]) -> Confusion:
    return Confusion(*(np.array([count]) for count in counts))


def rows_of(tp: int, fp: int, fn: int, tn: int) -> tuple[list[bool], list[bool]]:
    truth = [True] * tp + [False] * fp + [True] * fn + [False] * tn
    return truth, [True] * (tp + fp) + [False] * (fn + tn)


@given(COUNTS)
def test_values_are_those_of_scikit_learn(counts: tuple[int, ...]) -> None:
    tp, fp, fn, tn = counts
    values = {name: float(index_of(index, confusion(counts))[0]) for name, index in INDEX_OF.items()}
    if not min(tp + fn, fp + tn):
        assert all(map(math.isnan, values.values()))
        return
    truth, predicted = rows_of(*counts)
    assert values["balanced_accuracy"] == pytest.approx(sklearn.balanced_accuracy_score(truth, predicted))
    adjusted = sklearn.balanced_accuracy_score(truth, predicted, adjusted=True)
    assert values["youden_j"] == pytest.approx(adjusted, abs=1e-12)
    if min(tp + fp, fn + tn):
        assert values["mcc"] == pytest.approx(sklearn.matthews_corrcoef(truth, predicted), abs=1e-12)
    else:
        assert math.isnan(values["mcc"])


@given(COUNTS)
def test_limits_hold_the_estimate_and_keep_to_its_range(counts: tuple[int, ...]) -> None:
    for index in INDEX_OF.values():
        value = float(index_of(index, confusion(counts))[0])
        lower, upper = (float(side[0]) for side in index_limits_of_rows(index, confusion(counts), None, 0.95))
        assert math.isnan(lower) == math.isnan(value)
        if not math.isnan(value):
            assert index.lowest <= lower <= value <= upper <= 1
            assert lower < upper


@pytest.mark.parametrize("name", list(INDEX_OF))
def test_many_rows_vary_as_the_limits_say(name: str) -> None:
    index, shares = INDEX_OF[name], np.array([0.2, 0.1, 0.1, 0.6])
    drawn = np.random.default_rng(1).multinomial(5000, shares, 4000).T
    spread = float(index_of(index, Confusion(*drawn)).std())
    lower, upper = index_limits_of_rows(index, Confusion(*(5000 * shares)[:, None]), None, 0.95)
    assert float((upper - lower)[0]) / 2 == pytest.approx(1.96 * spread, rel=0.03)


def test_clusters_of_like_rows_are_worth_one_row_each() -> None:
    """Of ten copies of every row the limits are about those of the rows alone, and not those of ten times as many."""
    rng = np.random.default_rng(2)
    single = rng.multinomial(1, [0.2, 0.1, 0.1, 0.6], 400)
    copied = Confusion(*(10 * single[:, at : at + 1] for at in range(4)))
    of_rows = Confusion(*single.sum(axis=0)[:, None])
    for index in INDEX_OF.values():
        lower, upper = index_limits_of_clusters(index, copied, None, 0.95)
        alone = index_limits_of_rows(index, of_rows, None, 0.95)
        assert float((upper - lower)[0]) == pytest.approx(float((alone[1] - alone[0])[0]), rel=0.1)


def test_equal_weights_change_nothing() -> None:
    counts, heavy = (Confusion(*(scale * np.array([[20], [10], [5], [90]]))) for scale in (1.0, 3.0))
    squares = Confusion(*(9.0 * np.array([[20], [10], [5], [90]])))
    for index in INDEX_OF.values():
        plain, weighted = (
            index_limits_of_rows(index, counts, None, 0.9),
            index_limits_of_rows(index, heavy, squares, 0.9),
        )
        np.testing.assert_allclose(plain, weighted)


def test_one_replicate_has_no_limits() -> None:
    lower, upper = index_limits_of_clusters(MCC, Confusion(*np.ones((4, 1, 1))), None, 0.95)
    assert np.isnan([lower, upper]).all()


@given(COUNTS)
def test_shares_of_the_same_outcomes_mirror_each_other(counts: tuple[int, ...]) -> None:
    tp, fp, fn, tn = counts
    limits = intervals_of_rows(confusion(counts), None, 0.95, names=["specificity", "fpr", "npv", "accuracy"])
    for mine, other in ((limits["specificity"][0], limits["fpr"][1]), (limits["specificity"][1], limits["fpr"][0])):
        np.testing.assert_allclose(mine, 1 - other, atol=1e-12)
    turned = intervals_of_rows(confusion((tn, fn, fp, tp)), None, 0.95, names=["precision"])["precision"]
    np.testing.assert_allclose(limits["npv"], turned, atol=1e-12)
    if sum(counts):
        truth, predicted = rows_of(tp, fp, fn, tn)
        hits, misses = ACCURACY.sides({"tp": tp, "fp": fp, "fn": fn, "tn": tn})
        assert hits / (hits + misses) == pytest.approx(sklearn.accuracy_score(truth, predicted))


def test_formulas_in_words_are_what_is_computed() -> None:
    assert RATIO_OF["f1"].formula("_weight") == ("2 * tp_weight / (2 * tp_weight + fp_weight + fn_weight)")
    assert [each.formula() for each in (SPECIFICITY, NPV, ACCURACY, FPR)] == [
        "tn / (tn + fp)",
        "tn / (tn + fn)",
        "(tp + tn) / (tp + tn + fp + fn)",
        "fp / (fp + tn)",
    ]
    assert YOUDEN_J.formula("_weight") == "tp_weight / (tp_weight + fn_weight) - fp_weight / (fp_weight + tn_weight)"
    assert YOUDEN_J.lowest == MCC.lowest == -1


def test_limits_of_few_rows_by_hand() -> None:
    """9 of 10 positives and 1 of 10 negatives are retrieved; half a row more of each outcome is 9.5 and 1.5 of 11."""
    middle, variance = (9.5 - 1.5) / 11, 2 * 9.5 * 1.5 / 11**3
    half = 1.959963984540054 * math.sqrt(variance) / (1 - middle**2)
    lower, upper = index_limits_of_rows(YOUDEN_J, confusion((9, 1, 1, 9)), None, 0.95)
    assert (lower[0], upper[0]) == pytest.approx([math.tanh(math.atanh(middle) + sign * half) for sign in (-1, 1)])
