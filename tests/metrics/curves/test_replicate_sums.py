"""What replicates move where rows have two parents: the shifts of the first, and a sampling error over both."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.metrics.curves.ordered_areas import ROW_AREAS, Estimates, OrderedAreas, Rows, Totals

ROWS, USERS, ITEMS = 120, 8, 6


def estimated(second_replicates: int) -> Estimates:
    """Areas of the same rows, with users as the first parent and perhaps items as the second."""
    rng = np.random.default_rng(4)
    users, items = rng.integers(0, USERS, ROWS), rng.integers(0, ITEMS, ROWS)
    positive = (rng.random(ROWS) < 0.2 + 0.07 * users).astype(np.float64)
    sizes = np.array([positive.sum()]), np.array([ROWS - positive.sum()])
    collected = OrderedAreas(Totals(*sizes, *sizes), USERS, second_replicates)
    scores = np.sort(rng.normal(size=ROWS))
    group = np.zeros(ROWS, dtype=np.int64)
    second = items if second_replicates else None
    collected.add(Rows(group, scores, positive, 1 - positive, replicate=users, second_replicate=second))
    return collected.finish()


@pytest.mark.parametrize("area", ROW_AREAS)
def test_the_shifts_of_rows_with_two_parents_are_those_of_the_first(area: str) -> None:
    one_parent, two_parents = estimated(0), estimated(ITEMS)
    shifts = two_parents.shifts[area]
    assert shifts.values.shape == (USERS, 1)
    assert shifts.values == pytest.approx(one_parent.shifts[area].values, rel=1e-12)
    assert np.array_equal(shifts.has_rows, one_parent.shifts[area].has_rows)
    assert shifts.spread.variance == pytest.approx(one_parent.se[area] ** 2, rel=1e-12)
    assert two_parents.se[area] != pytest.approx(one_parent.se[area], rel=1e-3)
