"""The spread over two parents against a double sum over all cells, and never below those over either parent."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from pipeline.metrics.uncertainty.clusters import JackknifeSpread
from pipeline.metrics.uncertainty.jackknife import covariance, effective_degrees, leave_one_out

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

SIZES = (4, 3, 12)


def without_each(cells: Floats) -> Floats:
    """A total of cells (events × articles) without each event, each article and each cell in turn."""
    return np.concatenate([leave_one_out(sums) for sums in (cells.sum(axis=1), cells.sum(axis=0), cells.ravel())])


def double_sum(cells: Floats) -> float:
    """The sum of products of all cells with a common parent, with G / (G - 1) of each clustering.

    Cameron, Gelbach & Miller (2011), eq. 2.8, of values whose mean is 0.
    """
    events, articles = cells.shape
    factors = [size / (size - 1) for size in (events, articles, events * articles)]
    total, labels = 0.0, list(product(range(events), range(articles)))
    for (event, article), (other_event, other_article) in product(labels, labels):
        same = event == other_event, article == other_article
        weight = factors[0] * same[0] + factors[1] * same[1] - factors[2] * (same[0] and same[1])
        total += weight * cells[event, article] * cells[other_event, other_article]
    return float(total)


@pytest.mark.parametrize("seed", range(20))
def test_two_parents_are_the_double_sum_over_cells_that_share_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    cells = rng.normal(size=(4, 3)) + rng.normal(size=(4, 1)) + 2 * rng.normal(size=3)
    cells -= cells.mean()
    expected = double_sum(cells)
    smaller = min(float(covariance(leave_one_out(cells.sum(axis=axis)))) for axis in (0, 1))
    actual = JackknifeSpread(SIZES).variance(without_each(cells))
    assert actual == pytest.approx(max(expected, smaller), rel=1e-12)


def test_effects_of_both_parents_add_up() -> None:
    cells = np.add.outer([-2.0, 0.0, 0.0, 2.0], [-1.0, 0.0, 1.0])
    expected = 4 / 3 * 9 * 8 + 3 / 2 * 16 * 2 - 12 / 11 * (3 * 8 + 4 * 2)
    assert JackknifeSpread(SIZES).variance(without_each(cells)) == pytest.approx(expected, rel=1e-12)
    assert double_sum(cells) == pytest.approx(expected, rel=1e-12)


def test_what_cancels_within_parents_is_left_to_them() -> None:
    """Sums over events are 0 and 1, and so are those over days: 2 / 1 × (1/4 + 1/4) each, though cells vary by 9."""
    cells = np.array([[1.0, -1.0], [-1.0, 2.0]])
    assert float(covariance(leave_one_out(cells.ravel()))) == pytest.approx(9)
    assert JackknifeSpread((2, 2, 4)).variance(without_each(cells)) == pytest.approx(1)


three = st.tuples(*(st.integers(2, 6) for _ in range(3)))
numbers = st.floats(-1e3, 1e3, allow_subnormal=False).map(lambda number: round(number, 3))


@given(st.data(), three, st.floats(-5, 5))
def test_two_parents_never_make_a_result_look_more_certain_than_either(
    data: st.DataObject, sizes: tuple[int, int, int], ratio: float
) -> None:
    top, bottom = (data.draw(arrays.arrays(np.float64, (sum(sizes), 2), elements=numbers)) for _ in range(2))
    spread, difference = JackknifeSpread(sizes), top - ratio * bottom
    alone = [covariance(part) for part in np.split(difference, np.cumsum(sizes)[:2])]
    actual = spread.variance(difference)
    tolerance = 1e-9 * (1 + np.max(alone))
    least = np.minimum(alone[0], alone[1])
    assert (actual >= least - tolerance).all()
    assert actual == pytest.approx(np.maximum(alone[0] + alone[1] - alone[2], least), abs=tolerance)
    over, under, shared = spread.moments(top, bottom, np.full(2, ratio))
    scale = 1e-6 * (1 + np.max(np.abs([over, ratio**2 * under, ratio * shared])))
    assert over - 2 * ratio * shared + ratio**2 * under == pytest.approx(actual, abs=scale)


@given(st.data(), st.integers(2, 8))
def test_one_clustering_is_the_plain_jackknife(data: st.DataObject, size: int) -> None:
    top, bottom = (data.draw(arrays.arrays(np.float64, (size, 2), elements=numbers)) for _ in range(2))
    spread = JackknifeSpread((size,))
    np.testing.assert_array_equal(spread.variance(top), covariance(top))
    for actual, expected in zip(
        spread.moments(top, bottom, np.ones(2)),
        (covariance(top), covariance(bottom), covariance(top, bottom)),
        strict=True,
    ):
        np.testing.assert_array_equal(actual, expected)
    assert spread.most_degrees == size - 1


def test_degrees_are_those_of_the_parent_with_fewer() -> None:
    values = without_each(np.random.default_rng(1).normal(size=(4, 3)))[:, None]
    spread = JackknifeSpread(SIZES)
    assert spread.most_degrees == 2
    parents = [effective_degrees(values[:4]), effective_degrees(values[4:7])]
    np.testing.assert_array_equal(spread.degrees(values), np.minimum(*parents))
