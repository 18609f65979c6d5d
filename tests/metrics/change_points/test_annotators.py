"""Union of annotators and the convention of TCPDBench, written out on sets."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipeline.metrics.change_points.windows import Points, distinct_points, mean_over_annotators, with_origin

PAIRS = st.lists(st.tuples(st.integers(0, 3), st.integers(-2, 5)), max_size=20)


def points(pairs: list[tuple[int, int]]) -> Points:
    flat = np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)
    return Points(flat[:, 0], flat[:, 1])


@given(PAIRS)
def test_the_union_holds_every_position_once(pairs: list[tuple[int, int]]) -> None:
    union = distinct_points(points(pairs))
    assert list(zip(union.series.tolist(), union.position.tolist(), strict=True)) == sorted(set(pairs))


@given(PAIRS)
def test_every_series_begins_with_index_0(pairs: list[tuple[int, int]]) -> None:
    actual = with_origin(points(pairs), np.arange(5)[::-1])
    wanted = sorted(set(pairs) | {(series, 0) for series in range(5)})
    assert list(zip(actual.series.tolist(), actual.position.tolist(), strict=True)) == wanted


def test_the_mean_leaves_undefined_values_out() -> None:
    value = np.array([1.0, 0.5, np.nan, 0.25, np.nan])
    actual = mean_over_annotators(value, np.array([0, 0, 0, 2, 3]), 4)
    np.testing.assert_array_equal(actual, [0.75, np.nan, 0.25, np.nan])
