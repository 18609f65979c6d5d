"""Measures down to a cutoff, held against every order of tied documents, one by one."""

from __future__ import annotations

import math
from itertools import permutations, product
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pipeline.metrics.ranking.measures import (
    PARAMETERS,
    GradedRankings,
    Grades,
    Ties,
    discounts,
    measure_of,
    measure_values,
    name_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.metrics.ranking.measures import RankingMeasure

UNJUDGED = -1
LEVEL = 2
WRITTEN = (
    "nDCG@3",
    "nDCG",
    "nDCG(gain=exponential)@4",
    "AP@3",
    "AP(rel=1)",
    "P@3",
    "R@2",
    "RR@2",
    "RR(rel=3)",
    "Success@2",
    "Success(rel=1)@4",
    "Judged@3",
    "RBP(p=0.8)",
    "RBP(p=0.5, max_grade=3)@3",
    "ERR@3",
    "ERR(max_grade=3)",
)
Ranking = tuple[tuple[int, ...], ...]  # the relevance of the documents of every tie, the best score first


def in_order(measure: RankingMeasure, grades: Sequence[int], judged: Sequence[int], n_retrieved: int) -> float:
    """A measure of one order of documents, by its definition, document by document."""
    k = measure.k or 10**6
    top = list(enumerate(grades[:k], start=1))
    level = LEVEL if measure.rel is None else measure.rel
    if measure.kind == "Judged":
        return sum(grade != UNJUDGED for _, grade in top) / min(k, n_retrieved) if n_retrieved else 0.0
    relevant = sum(grade >= level for grade in judged)
    hits = [rank for rank, grade in top if grade >= level]
    highest = measure.max_grade or 0.0
    is_graded = measure.kind in {"nDCG", "ERR"} or highest > 0
    if not (any(grade > 0 for grade in judged) if is_graded else relevant):
        return math.nan
    if measure.kind == "nDCG":
        gain = (lambda grade: 2.0**grade - 1) if measure.gain == "exponential" else float
        best = sorted((grade for grade in judged), reverse=True)[:k]
        ideal = sum(gain(grade) / math.log2(rank + 1) for rank, grade in enumerate(best, start=1))
        return sum(gain(max(grade, 0)) / math.log2(rank + 1) for rank, grade in top) / ideal
    if measure.kind == "ERR":
        value, reading = 0.0, 1.0
        for rank, grade in top:
            stop = (2 ** max(grade, 0) - 1) / 2**highest
            value, reading = value + reading * stop / rank, reading * (1 - stop)
        return value
    if measure.kind == "RBP":
        gains = {rank: max(grade, 0) / highest if highest else grade >= level for rank, grade in top}
        return (1 - measure.p) * sum(gain * measure.p ** (rank - 1) for rank, gain in gains.items())
    values = {
        "AP": sum(number / rank for number, rank in enumerate(hits, start=1)) / relevant,
        "P": len(hits) / k,
        "R": len(hits) / relevant,
        "RR": 1 / hits[0] if hits else 0.0,
        "Success": float(bool(hits)),
    }
    return values[measure.kind]


def over_all_orders(measure: RankingMeasure, ranking: Ranking, judged: Sequence[int]) -> float:
    n_retrieved = sum(map(len, ranking))
    orders = product(*(list(permutations(tie)) for tie in ranking))
    values = [in_order(measure, [grade for tie in order for grade in tie], judged, n_retrieved) for order in orders]
    return sum(values) / len(values)


def graded_rankings(rankings: Sequence[Ranking], not_retrieved: Sequence[tuple[int, ...]]) -> GradedRankings:
    """As the stage hands them over: ties without a judged document are left out."""
    ties: list[tuple[int, int, int]] = []
    grades: list[tuple[int, int, int]] = []
    judged: list[tuple[int, int, int]] = []
    n_retrieved = []
    for number, (ranking, missed) in enumerate(zip(rankings, not_retrieved, strict=True)):
        before = 0
        for tie in ranking:
            labels = [grade for grade in tie if grade != UNJUDGED]
            if labels:
                grades += [(len(ties), grade, labels.count(grade)) for grade in sorted(set(labels))]
                ties.append((number, before, len(tie)))
            before += len(tie)
        labels = [grade for tie in ranking for grade in tie if grade != UNJUDGED] + list(missed)
        judged += [(number, grade, labels.count(grade)) for grade in sorted(set(labels), reverse=True)]
        n_retrieved.append(before)
    of, start, size = np.array(ties, dtype=np.float64).reshape(-1, 3).T
    unused = np.zeros(len(of))
    return GradedRankings(
        Ties(of.astype(np.int64), start, size, unused, unused),
        graded(grades),
        graded(judged),
        np.array(n_retrieved, float),
    )


def graded(rows: Sequence[tuple[int, int, int]]) -> Grades:
    of, relevance, number = np.array(rows, dtype=np.float64).reshape(-1, 3).T
    return Grades(of.astype(np.int64), relevance, number)


TIES = st.lists(st.lists(st.integers(UNJUDGED, 3), min_size=1, max_size=3).map(tuple), max_size=2).map(tuple)
QUERIES = st.lists(st.tuples(TIES, st.lists(st.integers(0, 3), max_size=3).map(tuple)), min_size=1, max_size=3)


@settings(max_examples=30)
@given(queries=QUERIES)
@example(queries=[(((3, 0, -1), (2, 2, 1, -1)), (3,)), ((), (1,)), (((-1, -1),), ()), (((0,), (0, 0)), (0,))])
@example(queries=[(((3, 3, 2, 1),), ()), (((1,), (2,), (3,)), (1, 0))])
def test_a_tie_counts_as_the_mean_over_its_orders(queries: list[tuple[Ranking, tuple[int, ...]]]) -> None:
    together = graded_rankings([ranking for ranking, _ in queries], [labels for _, labels in queries])
    for measure in map(measure_of, WRITTEN):
        values = measure_values(measure, together, LEVEL)
        for value, (ranking, labels) in zip(values, queries, strict=True):
            judged = [grade for tie in ranking for grade in tie if grade != UNJUDGED] + list(labels)
            truth = over_all_orders(measure, ranking, judged)
            assert value == pytest.approx(truth, rel=1e-12, abs=1e-14, nan_ok=True), measure.name


@pytest.mark.parametrize("text", ["nDCG", "nDCG(gain=exponential)@7", "AP@20", "R@20", "Success@1", "P@5", "RR"])
def test_the_best_order_is_exactly_one(text: str) -> None:
    ranking = tuple((grade,) for grade in (3, 3, 3, 2, 2, 2, 2))
    values = measure_values(measure_of(text), graded_rankings([ranking, ranking], [(1, 0), ()]), LEVEL)
    assert values[1] == 1.0


def test_a_large_tie_is_the_limit_of_its_share() -> None:
    """Thousands of documents tie, a quarter of them relevant: too many orders, but every rank has about this chance."""
    n, relevant = 8_000, 2_000
    ties = Ties(np.array([0]), np.array([5.0]), np.array([float(n)]), np.zeros(1), np.zeros(1))
    rows = graded([(0, 2, relevant)])
    rankings = GradedRankings(ties, rows, graded([(0, 2, relevant)]), np.array([n + 5.0]))
    values = {text: measure_values(measure_of(text), rankings, 1)[0] for text in ("P@105", "Success@15", "ERR@25")}
    assert values["P@105"] == pytest.approx(0.25 * 100 / 105, rel=1e-12)
    assert values["Success@15"] == pytest.approx(1 - 0.75**10, rel=1e-3)
    stop = 0.25 * 3 / 16
    geometric = sum(stop * (1 - stop) ** place / (place + 6) for place in range(20))
    assert values["ERR@25"] == pytest.approx(geometric, rel=1e-3)


def test_discounts_are_those_of_a_loop() -> None:
    before, count = np.array([0.0, 3.0, 10.0, 7.0]), np.array([1.0, 4.0, 100.0, 0.0])
    loops = [
        sum(1 / math.log2(1 + start + place) for place in range(1, int(number) + 1))
        for start, number in zip(before, count, strict=True)
    ]
    assert discounts(before, count) == pytest.approx(loops, rel=1e-14)


# Notation ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("ndcg@10", "nDCG@10"),
        (" nDCG( gain = exponential ) @ 10 ", "nDCG(gain=exponential)@10"),
        ("nDCG(dcg='exp-log2')@10", "nDCG(gain=exponential)@10"),
        ("nDCG(gain=identity)", "nDCG"),
        ("MAP@100", "AP@100"),
        ("AP(rel=2)", "AP(rel=2)"),
        ("P(rel=2.5)@5", "P(rel=2.5)@5"),
        ("rbp", "RBP(p=0.8)"),
        ("RBP(max_grade=3, p=0.95)", "RBP(p=0.95, max_grade=3)"),
        ("ERR(max_grade=4)@20", "ERR@20"),
        ("ERR(max_grade=3)@20", "ERR(max_grade=3)@20"),
    ],
)
def test_one_measure_has_one_name(text: str, name: str) -> None:
    assert measure_of(text).name == name_of(text) == name
    assert measure_of(name) == measure_of(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is no measure"),
        ("bleu@4", "is no measure"),
        ("nDCG@ten", "is no measure"),
        ("nDCG@10; DROP TABLE", "is no measure"),
        ("P", "needs a cutoff"),
        ("nDCG@0", "cutoff must be"),
        ("nDCG(rel=2)@10", "no parameter of nDCG; it has gain"),
        ("Judged(rel=2)@10", "it has no parameters"),
        ("nDCG(gain=cubic)", "identity"),
        ("RBP(p=1)", "above 0 and below 1"),
        ("RBP(p=nan)", "above 0 and below 1"),
        ("RBP(p=x)", "is no number"),
        ("RBP(p=0.5, p=0.6)", "twice"),
        ("RBP(rel=1, max_grade=2)", "leave one out"),
        ("ERR(max_grade=0)", "above 0"),
        ("ERR(max_grade=51)", "at most 50"),
        ("AP(rel=-1)", "at least 0"),
        ("AP(rel=inf)", "at least 0"),
    ],
)
def test_what_is_no_measure_is_refused(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        measure_of(text)
    assert name_of(text) == text


def test_every_kind_is_tested() -> None:
    assert {measure_of(text).kind for text in WRITTEN} == set(PARAMETERS)
