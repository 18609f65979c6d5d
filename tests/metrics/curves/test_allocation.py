"""Alerts shared out over groups: against every combination of thresholds."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from pipeline.metrics.curves import decisions
from pipeline.metrics.curves.decisions import NOTHING, allocate


def drawn(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Rows that thresholds retrieve, falling, and the hits among them."""
    sizes = rng.integers(0, 4, int(rng.integers(1, 6)))
    hits = rng.binomial(sizes, 0.5)
    return sizes[::-1].cumsum()[::-1], hits[::-1].cumsum()[::-1]


@pytest.mark.parametrize("seed", range(40))
def test_no_other_combination_of_thresholds_has_more_hits_or_as_many_with_fewer_alerts(seed: int) -> None:
    rng = np.random.default_rng(seed)
    groups = [drawn(rng) for _ in range(int(rng.integers(1, 5)))]
    capacity = int(rng.integers(0, 16))

    def totals(choice: tuple[int, ...]) -> tuple[int, int]:
        taken = [(group, number) for group, number in zip(groups, choice, strict=True) if number != NOTHING]
        return sum(int(hits[n]) for (_, hits), n in taken), sum(int(rows[n]) for (rows, _), n in taken)

    every = [totals(choice) for choice in product(*([NOTHING, *range(len(rows))] for rows, _ in groups))]
    allowed = [(hits, -alerts) for hits, alerts in every if alerts <= capacity]
    numbers = allocate(groups, capacity)
    assert numbers is not None
    hits, alerts = totals(tuple(numbers))
    assert (hits, -alerts) == max(allowed)


def test_a_search_that_is_too_large_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    group = (np.array([4, 2, 1]), np.array([3, 2, 1]))
    assert allocate([group, group], 4) == [1, 1]
    monkeypatch.setattr(decisions, "MOST_STEPS", 5)
    assert allocate([group, group], 4) is None
    assert allocate([], 4) == []
