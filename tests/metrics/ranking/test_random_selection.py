"""Ties and hits at a cut-off against every order and against scipy."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import hypergeom

from pipeline.metrics.ranking.random_selection import (
    expected_average_precision,
    expected_average_precision_of,
    hits_moments,
    hits_p_value,
)


def average_precision(labels: tuple[int, ...]) -> Fraction:
    hits = list(itertools.accumulate(labels))
    terms = [Fraction(hits[i], i + 1) for i, label in enumerate(labels) if label]
    return sum(terms, Fraction(0)) / len(terms)


def over_every_order(sizes: list[int], relevant: list[int]) -> float:
    """Mean over all ways to place the relevant documents inside their blocks."""
    blocks = [
        [tuple(int(i in chosen) for i in range(size)) for chosen in itertools.combinations(range(size), hits)]
        for size, hits in zip(sizes, relevant, strict=True)
    ]
    orders = [average_precision(tuple(itertools.chain(*order))) for order in itertools.product(*blocks)]
    return float(sum(orders) / len(orders))


@st.composite
def tied(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    sizes = draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    relevant = [draw(st.integers(0, size)) for size in sizes]
    return sizes, relevant


@given(tied())
def test_ties_are_averaged_over_every_order(blocks: tuple[list[int], list[int]]) -> None:
    if sum(blocks[1]):
        assert expected_average_precision(*blocks) == pytest.approx(over_every_order(*blocks), rel=1e-13)
    else:
        assert np.isnan(expected_average_precision(*blocks))


@pytest.mark.parametrize(
    ("before", "size", "hits"), [(0, 40, 7), (3, 100, 50), (200, 3, 2), (10**6, 12, 12), (15, 2, 1)]
)
def test_large_blocks_are_the_sum_over_their_places(before: int, size: int, hits: int) -> None:
    above = Fraction(before // 2)
    terms = [
        Fraction(hits, size) * (above + 1 + Fraction((i - 1) * (hits - 1), size - 1)) / (before + i)
        for i in range(1, size + 1)
    ]
    actual = expected_average_precision_of([0, 0], [before, size], [int(above), hits], queries=1, n_relevant=[1.0])
    head = expected_average_precision_of([0], [before], [int(above)], queries=1, n_relevant=[1.0])
    assert float(actual[0] - head[0]) == pytest.approx(float(sum(terms)), rel=1e-12 if before < 1000 else 1e-9)


def test_one_block_of_everything_is_random_selection() -> None:
    assert expected_average_precision([1000], [100]) == pytest.approx(0.1058427665410363, rel=1e-14)
    assert expected_average_precision([10**12], [10**6]) == pytest.approx(1e-6 + 28.2e-12, rel=1e-6)


def test_blocks_of_one_are_average_precision_itself() -> None:
    labels = (1, 1, 0, 1, 0, 0, 0, 0)
    assert expected_average_precision([1] * 8, list(labels)) == pytest.approx(
        float(average_precision(labels)), rel=1e-14
    )
    assert expected_average_precision([1, 0, 1], [1, 0, 1]) == 1


def test_many_queries_are_those_taken_one_by_one() -> None:
    rng = np.random.default_rng(5)
    query = np.repeat([0, 2, 3], [4, 6, 5])
    sizes = rng.integers(1, 60, 15)
    relevant = rng.binomial(sizes, 0.3)
    actual = expected_average_precision_of(query, sizes, relevant, queries=5)
    for query_number in (0, 2, 3):
        one = expected_average_precision(
            sizes[query == query_number].tolist(), relevant[query == query_number].tolist()
        )
        assert actual[query_number] == pytest.approx(one, rel=1e-14)
    assert np.isnan(actual[[1, 4]]).all()
    divided = expected_average_precision_of(query, sizes, relevant, queries=5, n_relevant=[1, 2, 0, 4, 5])
    totals = np.bincount(query, relevant, 5)
    assert divided[[0, 3]] == pytest.approx((actual * totals)[[0, 3]] / [1, 4])
    assert divided[1] == 0
    assert np.isnan(divided[2])


def test_impossible_blocks_are_refused() -> None:
    with pytest.raises(ValueError, match="fewer documents"):
        expected_average_precision([1], [2])
    with pytest.raises(ValueError, match="one length"):
        expected_average_precision([1, 2], [1])
    with pytest.raises(ValueError, match="must not fall"):
        expected_average_precision_of([1, 0], [1, 1], [1, 1], queries=2)


@given(st.integers(1, 60), st.data())
def test_hits_are_hypergeometric(n: int, data: st.DataObject) -> None:
    m, t = data.draw(st.integers(0, n)), data.draw(st.integers(0, n))
    hits = data.draw(st.integers(0, t))
    mean, variance = hits_moments(n, m, t)
    assert float(mean) == pytest.approx(m * t / n)
    expected = 0.0 if n == 1 else float(Fraction(t * m * (n - m) * (n - t), n * n * (n - 1)))
    assert float(variance) == pytest.approx(expected, rel=1e-13)
    assert float(hits_p_value(hits, n, m, t)) == pytest.approx(hypergeom.sf(hits - 1, n, m, t), rel=1e-9, abs=1e-300)


def test_hits_come_as_numbers_or_as_arrays() -> None:
    assert isinstance(hits_p_value(2, 10, 5, 4), float)
    assert all(isinstance(each, float) for each in hits_moments(10, 5, 4))
    actual = hits_p_value([0, 1.5, 2, np.nan], 10, 5, 4)
    assert actual == pytest.approx([1, hypergeom.sf(1, 10, 5, 4), hypergeom.sf(1, 10, 5, 4), np.nan], nan_ok=True)
    assert hits_moments([1, 10], [1, 5], 1)[1] == pytest.approx([0, 0.25])


def test_moments_of_precision_and_recall_are_the_printed_ones() -> None:
    """Zhang & Su (2012), section III: .00081 and .00028."""
    for n, m, printed in [(1000, 100, 0.00081), (2000, 500, 0.00028)]:
        mean, variance = hits_moments(n, m, m)
        assert float(mean / m) == pytest.approx(m / n)
        assert round(float(variance / m**2), 5) == printed


@pytest.mark.parametrize("sizes", [(0, 0, 0), (5, 6, 1), (5, 1, 6), (5, -1, 1), (5, 1, -1)])
def test_impossible_cut_offs_are_refused(sizes: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="n must be at least 1"):
        hits_moments(*sizes)
    with pytest.raises(ValueError, match="n must be at least 1"):
        hits_p_value(0, *sizes)
