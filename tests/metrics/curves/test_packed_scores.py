"""Rows put in order as one number each: against a sort by columns, at the ends of what a score can be."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.metrics.curves.ordered_areas import PackedScores, SizesDifferError

ENDS = [0.0, -0.0, 5e-324, -5e-324, np.finfo(float).max, np.finfo(float).min, 1.0, -1.0, np.nextafter(1.0, 2.0)]
SCORES = st.sampled_from(ENDS) | st.floats(allow_nan=False, allow_infinity=False)
ROWS = st.lists(st.tuples(st.integers(0, 3), SCORES, st.booleans()), max_size=60)


@given(rows=ROWS, step=st.integers(1, 70), taken=st.integers(1, 70))
def test_rows_come_back_by_group_score_and_label(rows: list[tuple[int, float, bool]], step: int, taken: int) -> None:
    group = np.array([row[0] for row in rows], dtype=np.int64)
    score = np.array([row[1] for row in rows], dtype=np.float64)
    label = np.array([row[2] for row in rows], dtype=np.bool_)
    packed = PackedScores(np.bincount(group, minlength=5))
    for start in range(0, len(rows), step):
        rows_of_block = slice(start, start + step)
        packed.add(group[rows_of_block], score[rows_of_block], label[rows_of_block])
    blocks = list(packed.in_order(taken))
    assert [len(part[0]) for part in blocks[:-1]] == [taken] * (len(blocks) - 1)
    assert sum(len(part[0]) for part in blocks) == len(rows)
    actual = [row for part in blocks for row in zip(*(each.tolist() for each in part), strict=True)]
    assert actual == sorted(rows)


def test_zero_has_one_sign() -> None:
    packed = PackedScores(np.array([3]))
    packed.add(np.zeros(3, dtype=np.int64), np.array([0.0, -0.0, -0.0]), np.array([True, False, True]))
    ((_, score, label),) = packed.in_order(10)
    assert np.signbit(score).tolist() == [False, False, False]
    assert label.tolist() == [False, True, True]


def test_more_rows_than_said_are_told() -> None:
    packed = PackedScores(np.array([2, 5]))
    with pytest.raises(SizesDifferError, match="more rows"):
        packed.add(np.array([0, 1, 0, 0]), np.array([0.5, 0.5, -0.5, 0.7]), np.zeros(4, dtype=np.bool_))


def test_fewer_rows_than_said_are_told() -> None:
    packed = PackedScores(np.array([2, 1]))
    packed.add(np.array([0, 1]), np.array([0.5, 0.5]), np.zeros(2, dtype=np.bool_))
    with pytest.raises(SizesDifferError, match="fewer rows"):
        list(packed.in_order(10))
