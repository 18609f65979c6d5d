"""Points in order by packed integers: against a sort of tuples in Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.metrics.change_points import matching as order_module
from pipeline.metrics.change_points.matching import distinct_in_order, in_order

if TYPE_CHECKING:
    from numpy.typing import NDArray

FEW, FAR = st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1)
NEAR = st.floats(0, 1).map(lambda value: 1e9 + value * 1e-6)
DOUBLES = st.floats(allow_nan=False, allow_infinity=False)
POSITIONS = st.sampled_from([FEW, FAR, FEW | FAR, DOUBLES, NEAR, NEAR | st.just(-1e300)])
SERIES = st.sampled_from([st.integers(0, 3), st.integers(0, 2**20), st.integers(0, 2**62)])


@st.composite
def rows(draw: st.DrawFn) -> tuple[NDArray[np.int64], NDArray[Any], NDArray[np.float64]]:
    """Series, positions and scores in any order, some of them equal."""
    series, position = draw(SERIES), draw(POSITIONS)
    drawn = draw(st.lists(st.tuples(series, position, st.integers(-2, 2)), max_size=30))
    drawn += draw(st.lists(st.sampled_from(drawn), max_size=10)) if drawn else []
    is_float = any(isinstance(each[1], float) for each in drawn)
    kind = np.float64 if is_float else np.int64
    return (
        np.array([each[0] for each in drawn], dtype=np.int64),
        np.array([each[1] for each in drawn], dtype=kind),
        np.array([each[2] for each in drawn], dtype=np.float64),
    )


@given(rows(), st.booleans())
def test_points_are_in_the_order_of_a_sort_by_columns(
    given_rows: tuple[NDArray[np.int64], NDArray[Any], NDArray[np.float64]],
    scored: bool,  # noqa: FBT001 - drawn
) -> None:
    series, position, score = given_rows
    points, order = in_order(series, position, score if scored else None)
    keys = list(
        zip(series.tolist(), position.tolist(), (-score).tolist() if scored else range(len(score)), strict=True)
    )
    assert sorted(order.tolist()) == list(range(len(series)))
    assert [keys[row] for row in order] == sorted(keys)
    assert points.series.tolist() == series[order].tolist()
    assert points.position.tolist() == position[order].tolist()
    assert points.position.dtype == position.dtype


@given(rows())
def test_distinct_points_are_those_of_a_set(
    given_rows: tuple[NDArray[np.int64], NDArray[Any], NDArray[np.float64]],
) -> None:
    series, position, _ = given_rows
    points = distinct_in_order(series, position)
    actual = list(zip(points.series.tolist(), points.position.tolist(), strict=True))
    assert actual == sorted(set(zip(series.tolist(), position.tolist(), strict=True)))
    assert points.series.dtype == np.int64
    assert points.position.dtype == position.dtype


@pytest.mark.parametrize("kind", [np.int64, np.float64])
def test_packed_integers_take_the_place_of_columns(kind: type[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    series, position = rng.integers(0, 500, 20_000), rng.permutation(20_000).astype(kind)

    def by_columns(*columns: object) -> None:
        message = f"{len(columns)} columns: nothing here is equal"
        raise AssertionError(message)

    expected = np.lexsort((position, series))
    monkeypatch.setattr(order_module, "_by_columns", by_columns)
    assert (in_order(series, position)[1] == expected).all()
