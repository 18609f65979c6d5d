"""Measures of rankings: against their definitions, document by document, over every order of the ties."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations, product
from math import floor
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.metrics.ranking.measures import RECALL_LEVELS, Judged, Measures, Ties, measures

if TYPE_CHECKING:
    from collections.abc import Sequence

RELEVANT, NONRELEVANT, UNJUDGED = 1, 0, None
CUTOFFS = (1, 2, 3, 5, 9)
Label = int | None
Tie = tuple[Label, ...]


def values_of(labels: Sequence[Label], relevant: int, nonrelevant: int) -> dict[str, Fraction]:
    """Measures of one order, as their definitions say."""
    at = [rank for rank, label in enumerate(labels, start=1) if label == RELEVANT]
    precision = [Fraction(number, rank) for number, rank in enumerate(at, start=1)]
    preferred = Fraction(0)
    for rank in at:
        above = sum(label == NONRELEVANT for label in labels[:rank])
        preferred += 1 - Fraction(min(above, relevant), min(nonrelevant, relevant)) if above else 1
    actual = {
        "precision_sum": sum(precision, Fraction(0)),
        "relevant_at_r": Fraction(sum(rank <= relevant for rank in at)),
        "reciprocal_rank": Fraction(1, at[0]) if at else Fraction(0),
        "bpref": preferred / relevant if relevant else Fraction(0),
    }
    for k in CUTOFFS:
        actual[f"hits_{k}"] = Fraction(sum(rank <= k for rank in at))
    for number, level in enumerate(RECALL_LEVELS):
        needed = max(floor(level * relevant + 0.5), 1)
        actual[f"interpolated_{number}"] = max(precision[needed - 1 :], default=Fraction(0))
    return actual


def expected(ties: Sequence[Tie], relevant: int, nonrelevant: int) -> dict[str, Fraction]:
    """Means over every order of the documents in each tie."""
    orders = [tuple(permutations(tie)) for tie in ties]
    actual = [values_of(sum(order, ()), relevant, nonrelevant) for order in product(*orders)]
    return {name: sum((each[name] for each in actual), Fraction(0)) / len(actual) for name in actual[0]}


def as_arrays(rankings: Sequence[Sequence[Tie]]) -> Ties:
    rows = []
    for number, ties in enumerate(rankings):
        before = 0
        for tie in ties:
            if any(label is not None for label in tie):
                rows.append((number, before, len(tie), tie.count(RELEVANT), tie.count(NONRELEVANT)))
            before += len(tie)
    table = np.array(rows, dtype=np.float64).reshape(-1, 5)
    return Ties(table[:, 0].astype(np.int64), *table[:, 1:].T)


def measured(
    rankings: Sequence[Sequence[Tie]], unretrieved: Sequence[tuple[int, int]]
) -> tuple[Measures, list[tuple[int, int]]]:
    totals = []
    for ties, (relevant, nonrelevant) in zip(rankings, unretrieved, strict=True):
        labels = [label for tie in ties for label in tie]
        totals.append((labels.count(RELEVANT) + relevant, labels.count(NONRELEVANT) + nonrelevant))
    judged = Judged(*np.array(totals, dtype=np.float64).reshape(-1, 2).T)
    return measures(as_arrays(rankings), judged, CUTOFFS), totals


def flat(actual: Measures, number: int) -> dict[str, float]:
    names = ("precision_sum", "relevant_at_r", "reciprocal_rank", "bpref")
    values = {name: float(getattr(actual, name)[number]) for name in names}
    values |= {f"hits_{k}": float(actual.hits[number, place]) for place, k in enumerate(CUTOFFS)}
    return values | {f"interpolated_{level}": float(actual.interpolated[number, level]) for level in range(11)}


labels = st.sampled_from([RELEVANT, NONRELEVANT, UNJUDGED])
rankings_with_ties = st.lists(st.lists(labels, min_size=1, max_size=4).map(tuple), max_size=3)
outside = st.tuples(st.integers(0, 3), st.integers(0, 3))


@pytest.mark.wide
@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(rankings_with_ties, outside), min_size=1, max_size=3))
def test_every_measure_is_its_mean_over_the_orders_of_ties(drawn: list[tuple[list[Tie], tuple[int, int]]]) -> None:
    rankings, unretrieved = [each for each, _ in drawn], [each for _, each in drawn]
    actual, totals = measured(rankings, unretrieved)
    for number, (ties, (relevant, nonrelevant)) in enumerate(zip(rankings, totals, strict=True)):
        truth = expected(ties, relevant, nonrelevant)
        mixed = any(0 < tie.count(RELEVANT) < len(tie) for tie in ties)
        assert bool(actual.mixed[number]) == mixed
        for name, value in flat(actual, number).items():
            if not (mixed and name.startswith("interpolated")):
                assert value == pytest.approx(float(truth[name]), abs=1e-13), name


@settings(deadline=None)
@given(st.lists(labels, max_size=12), outside)
def test_without_ties_every_measure_is_its_definition(order: list[Label], unretrieved: tuple[int, int]) -> None:
    actual, [(relevant, nonrelevant)] = measured([[(label,) for label in order]], [unretrieved])
    truth = values_of(order, relevant, nonrelevant)
    assert flat(actual, 0) == pytest.approx({name: float(value) for name, value in truth.items()}, abs=1e-14)
    assert not actual.mixed[0]
    assert not actual.straddled.any()


def test_a_tie_straddles_the_cutoffs_inside_it_if_its_documents_differ() -> None:
    ties = [(UNJUDGED,), (RELEVANT, RELEVANT), (RELEVANT, UNJUDGED)]
    actual, _ = measured([ties], [(0, 0)])
    assert actual.straddled[0].tolist() == [False, False, False, False, False]
    actual, _ = measured([[(UNJUDGED, RELEVANT), (RELEVANT, RELEVANT, NONRELEVANT)]], [(0, 0)])
    assert actual.straddled[0].tolist() == [True, False, True, False, False]
    assert actual.hits[0].tolist() == pytest.approx([1 / 2, 1, 1 + 2 / 3, 3, 3])


def test_the_first_hit_of_a_large_tie() -> None:
    """One relevant document among 1,000: the mean of 1 / rank is H / 1,000."""
    actual, _ = measured([[(RELEVANT, *[UNJUDGED] * 999)]], [(0, 0)])
    assert actual.reciprocal_rank[0] == pytest.approx(sum(1 / rank for rank in range(1, 1001)) / 1000, rel=1e-12)
    assert actual.precision_sum[0] == pytest.approx(actual.reciprocal_rank[0], rel=1e-12)


def test_recall_levels_are_rounded_half_upwards() -> None:
    """Of 5 relevant documents recall 0.1 needs 1, 0.3 needs 2 and 0.5 needs 3."""
    ties: list[Tie] = [(RELEVANT,), (UNJUDGED,), (RELEVANT,), (UNJUDGED,), (UNJUDGED,), (RELEVANT,)]
    actual, _ = measured([ties], [(2, 0)])
    levels = [1, 1, 1, 2 / 3, 2 / 3, 1 / 2, 1 / 2, 0, 0, 0, 0]
    assert actual.interpolated[0].tolist() == pytest.approx(levels)


def test_rankings_without_judged_documents_are_zero() -> None:
    nothing = np.zeros(0)
    ties = Ties(np.zeros(0, dtype=np.int64), nothing, nothing, nothing, nothing)
    actual = measures(ties, Judged(np.array([3.0, 0.0]), np.array([0.0, 0.0])), (1,))
    assert actual.precision_sum.tolist() == actual.bpref.tolist() == [0, 0]
    assert actual.hits.tolist() == [[0], [0]]
    assert actual.interpolated.shape == (2, 11)
