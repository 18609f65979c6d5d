"""Sorts of arrays: those of numpy, whatever the arrays are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from pipeline.metrics.sorting import in_rising_order, rising_order

if TYPE_CHECKING:
    from numpy.typing import NDArray

ENDS = {np.int64: [-(2**63), -1, 0, 2**63 - 1], np.uint64: [0, 1, 2**63, 2**64 - 1]}


def numbers(kind: type[Any], size: int, values: int) -> NDArray[Any]:
    drawn = np.random.default_rng(size).integers(0, values, size).astype(kind)
    drawn[: min(size, 4)] = np.array(ENDS[kind], dtype=kind)[:size]
    return drawn


@pytest.mark.parametrize("values", [3, 2**62])
@pytest.mark.parametrize("size", [0, 1, 2, 100, 30_000])
@pytest.mark.parametrize("kind", [np.int64, np.uint64])
def test_sorts_are_those_of_numpy(kind: type[Any], size: int, values: int) -> None:
    unsorted = numbers(kind, size, values)
    before = unsorted.copy()
    assert np.array_equal(in_rising_order(unsorted), np.sort(before))
    assert in_rising_order(unsorted).dtype == kind
    assert np.array_equal(rising_order(unsorted), np.argsort(before, kind="stable"))
    assert rising_order(unsorted).dtype == np.int64
    assert np.array_equal(unsorted, before)


def test_slices_with_steps_are_sorted_too() -> None:
    unsorted = numbers(np.int64, 1000, 50)
    assert np.array_equal(in_rising_order(unsorted[::-3]), np.sort(unsorted[::-3]))
    assert np.array_equal(rising_order(unsorted[::-3]), np.argsort(unsorted[::-3], kind="stable"))
