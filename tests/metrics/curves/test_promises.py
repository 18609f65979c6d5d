"""Thresholds that keep a minimum on new data: against the procedure written out, and against simulated truths."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import beta

from pipeline.metrics.curves.decisions import keeps_precision, keeps_recall
from pipeline.metrics.uncertainty.proportions import Confusion, intervals_of_clusters, intervals_of_rows

if TYPE_CHECKING:
    from collections.abc import Callable

Floats = NDArray[np.float64]


def lower_limits(labels: NDArray[np.bool_], name: str, confidence: float) -> Floats:
    """Limits of labels that stand in the order of falling scores, at rising thresholds."""
    tp, fp = labels.cumsum()[::-1], (~labels).cumsum()[::-1]
    counts = Confusion(tp, fp, labels.sum() - tp, (~labels).sum() - fp)
    return intervals_of_rows(counts, None, confidence, names=[name])[name][0]


def limits_of(counts: Confusion, name: str) -> Callable[[float], Floats]:
    return lambda level: intervals_of_rows(counts, None, level, names=[name])[name][0]


def of_clusters(counts: Confusion) -> Callable[[float], Floats]:
    return lambda level: intervals_of_clusters(counts, level, names=["precision"])["precision"][0]


def written_out(labels: list[bool], minimum: float, level: float) -> set[int]:
    """The numbers of rows, from the top, that keep the minimum: sequences of one-sided tests, one by one."""
    number = 1
    while True:
        smallest = math.ceil(math.log(level / number) / math.log(minimum))
        sizes = [smallest * 4**step for step in range(20) if smallest * 4**step <= len(labels)]
        if len(sizes) <= number:
            break
        number = len(sizes)
    kept: set[int] = set()
    for size in sizes:
        for rows in range(size, len(labels) + 1):
            hits = sum(labels[:rows])
            share = min(hits, rows - hits, 10) / 20
            limit = beta.ppf(level / len(sizes), hits + share, rows - hits + 1 - share) if hits else 0
            if limit < minimum:
                break
            kept.add(rows)
    return kept


@pytest.mark.parametrize(
    ("size", "rate", "minimum"), [(300, 0.97, 0.9), (600, 0.9, 0.8), (40, 1.0, 0.9), (20, 1.0, 0.9)]
)
def test_precision_is_kept_as_the_sequences_say(size: int, rate: float, minimum: float) -> None:
    labels = np.random.default_rng(size).random(size) < rate
    keeps = keeps_precision(
        lambda level: lower_limits(labels, "precision", level), np.arange(size, 0.0, -1), minimum, 0.95
    )
    kept = set((size - np.flatnonzero(keeps)).tolist())
    assert kept == written_out(labels.tolist(), minimum, 0.05)
    assert bool(kept) == (size > 28)  # 0.9 ** 28 is above .05: no 28 rows can promise .9


def test_nothing_promises_a_precision_of_1_and_everything_one_of_0() -> None:
    labels = np.ones(500, dtype=np.bool_)
    for minimum, expected in ((1.0, False), (0.0, True)):
        keeps = keeps_precision(
            lambda level: lower_limits(labels, "precision", level), np.arange(500, 0.0, -1), minimum, 0.9
        )
        assert keeps.tolist() == [expected] * 500


def test_a_limit_that_equals_the_minimum_passes_and_one_just_below_does_not() -> None:
    at, below = np.full(60, 0.8), np.full(60, np.nextafter(0.8, 0))
    retrieved = np.arange(60, 0.0, -1)
    assert keeps_precision(lambda _: at, retrieved, 0.8, 0.95).any()
    assert keeps_recall(lambda _: at, 0.8, 0.95).all()
    assert not keeps_precision(lambda _: below, retrieved, 0.8, 0.95).any()
    assert not keeps_recall(lambda _: below, 0.8, 0.95).any()


def test_a_limit_that_is_missing_ends_a_sequence() -> None:
    missing = keeps_precision(lambda _: np.full(50, np.nan), np.arange(50, 0.0, -1), 0.5, 0.95)
    assert not missing.any()
    assert not keeps_precision(lambda _: np.empty(0), np.empty(0), 0.5, 0.95).any()


@given(st.lists(st.floats(0, 1), max_size=20), st.floats(0, 1))
def test_recall_is_kept_up_to_the_first_limit_below_the_minimum(limits: list[float], minimum: float) -> None:
    keeps = keeps_recall(lambda _: np.array(limits), minimum, 0.95).tolist()
    first = next((number for number, limit in enumerate(limits) if limit < minimum), len(limits))
    assert keeps == [number < first for number in range(len(limits))]


def test_the_level_of_recall_is_one_sided() -> None:
    assert not keeps_recall(lambda level: np.array([level]), 0.901, 0.95).any()
    assert keeps_recall(lambda level: np.array([level]), 0.899, 0.95).all()


@pytest.mark.wide
def test_precision_that_is_too_low_everywhere_is_promised_in_few_data_sets() -> None:
    """Every score is a threshold, and the precision of all of them is just below the minimum: any choice is wrong."""
    rng = np.random.default_rng(3)
    retrieved = np.arange(400, 0.0, -1)
    wrong = 0
    for _ in range(300):
        labels = rng.random(400) < 0.899
        limits = functools.partial(lower_limits, labels, "precision")
        wrong += bool(keeps_precision(limits, retrieved, 0.9, 0.95).any())
    assert wrong / 300 <= 0.06


def test_recall_that_is_promised_holds_in_most_data_sets() -> None:
    """40 positives with scores uniform from 0 to 1: recall at a threshold is 1 less it."""
    rng = np.random.default_rng(4)
    wrong = reached = 0
    for _ in range(300):
        scores = np.sort(rng.random(40))
        tp = np.arange(40, 0.0, -1)
        counts = Confusion(tp, 0 * tp, 40 - tp, 0 * tp)
        keeps = keeps_recall(limits_of(counts, "recall"), 0.7, 0.95)
        reached += bool(keeps.any())
        wrong += bool(keeps.any() and 1 - scores[keeps][-1] < 0.7)
    assert reached == 300
    assert wrong / 300 <= 0.06


def test_precision_of_clusters_that_is_too_low_is_promised_in_few_data_sets() -> None:
    """40 clusters of 20 rows, whose precisions differ: .895 on average, correlation .2 within clusters."""
    rng = np.random.default_rng(5)
    bins, wrong = 25, 0
    for _ in range(200):
        precision = rng.beta(0.895 * 4, 0.105 * 4, 40)
        rows = rng.multinomial(20, np.full(bins, 1 / bins), 40)
        true = rng.binomial(rows, precision[:, None])
        tp, fp = (side[:, ::-1].cumsum(axis=1)[:, ::-1] for side in (true, rows - true))
        counts = Confusion(tp, fp, tp[:, :1] - tp, fp[:, :1] - fp)
        retrieved = (tp + fp).sum(axis=0).astype(np.float64)
        wrong += bool(keeps_precision(of_clusters(counts), retrieved, 0.9, 0.95).any())
    assert wrong / 200 <= 0.065
