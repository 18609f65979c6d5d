"""The stable order of an array: that of numpy, whatever the array is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from pipeline.metrics.matching import rising_order

if TYPE_CHECKING:
    from numpy.typing import NDArray


def numbers(size: int, values: int) -> NDArray[np.int64]:
    drawn = np.random.default_rng(size).integers(0, values, size)
    drawn[: min(size, 4)] = np.array([-(2**63), -1, 0, 2**63 - 1])[:size]
    return drawn


@pytest.mark.parametrize("values", [3, 2**62])
@pytest.mark.parametrize("size", [0, 1, 2, 100, 30_000])
def test_order_is_that_of_numpy(size: int, values: int) -> None:
    unsorted = numbers(size, values)
    before = unsorted.copy()
    assert np.array_equal(rising_order(unsorted), np.argsort(before, kind="stable"))
    assert rising_order(unsorted).dtype == np.int64
    assert np.array_equal(unsorted, before)


def test_slices_with_steps_are_put_in_order_too() -> None:
    unsorted = numbers(1000, 50)[::-3]
    assert np.array_equal(rising_order(unsorted), np.argsort(unsorted, kind="stable"))
