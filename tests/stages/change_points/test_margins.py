"""Margins as configs write them, in the unit of the positions."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.metrics.change_points.windows import Margin
from pipeline.stages.change_points.contract import MarginSides

MICROSECONDS = 1_000_000


@pytest.mark.parametrize(
    ("written", "before", "after"),
    [
        (5, 5, 5),
        (2.5, 2.5, 2.5),
        (2**60 + 1, 2**60 + 1, 2**60 + 1),
        ({"before": 1, "after": 9}, 1, 9),
        ("1s", MICROSECONDS, MICROSECONDS),
        ("90m", 5400 * MICROSECONDS, 5400 * MICROSECONDS),
        ({"before": "0h", "after": "7d"}, 0, 7 * 86400 * MICROSECONDS),
    ],
)
@pytest.mark.parametrize("closed", [True, False])
def test_margins_are_exact(written: Any, before: float, after: float, closed: bool) -> None:  # noqa: ANN401, FBT001 - parameters
    sides = MarginSides.model_validate(written)
    assert sides.closed(closed=closed) == Margin(before, after, closed=closed)
    assert sides.is_duration == (isinstance(written, str) or (isinstance(written, dict) and "h" in str(written)))
