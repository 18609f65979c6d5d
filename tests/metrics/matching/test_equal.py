"""Matching of equal rows against a loop over dictionaries."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipeline.metrics.matching import match_equal

SMALL = st.tuples(st.integers(0, 2), st.integers(-1, 1))
WIDE = st.tuples(st.sampled_from([0, 2**31, 2**40]), st.sampled_from([-(2**30), 0, 2**30]))
KEYS = st.lists(SMALL, max_size=12) | st.lists(WIDE, max_size=12)
PREFERENCES = st.tuples(st.integers(0, 2), st.booleans())
Key = tuple[int, int]


def reference_matching(gold: list[Key], predicted: list[Key], preference: list[tuple[int, bool]]) -> list[int]:
    """Every gold row in turn takes the first prediction still free, in the order of preference."""
    free: dict[Key, list[int]] = defaultdict(list)
    for row in sorted(range(len(predicted)), key=lambda row: (*preference[row], row)):
        free[predicted[row]].append(row)
    return [free[key].pop(0) if free[key] else -1 for key in gold]


def columns(rows: list[Key]) -> list[np.ndarray]:
    return list(np.array(rows, dtype=np.int64).reshape(len(rows), 2).T)


@pytest.mark.parametrize("preferred", [False, True])
@given(gold=KEYS, predicted=KEYS, data=st.data())
@example(gold=[(0, 0)] * 3, predicted=[(0, 0)] * 2, data=None)
@example(gold=[(0, 0)], predicted=[], data=None)
def test_equal_rows_are_matched_in_turn(
    preferred: bool,  # noqa: FBT001 - parametrized
    gold: list[Key],
    predicted: list[Key],
    data: st.DataObject | None,
) -> None:
    n = len(predicted)
    drawn = [(0, False)] * n
    if preferred and data is not None:
        drawn = data.draw(st.lists(PREFERENCES, min_size=n, max_size=n))
    given_columns = [np.array([each[number] for each in drawn]) for number in (0, 1)] if preferred else []
    keys = list(zip(columns(gold), columns(predicted), strict=True))
    assert match_equal(keys, given_columns).tolist() == reference_matching(gold, predicted, drawn)
