from __future__ import annotations

import pytest

from pipeline.engines.memory import MIB, default_limit

GIB = 1024 * MIB


@pytest.mark.parametrize(
    ("container", "limit"),
    [(64 * GIB, 44.8 * GIB), (4 * GIB, 2.8 * GIB), (GIB, 0.7 * GIB), (512 * MIB, 256 * MIB), (300 * MIB, 60 * MIB)],
)
def test_python_and_polars_have_room_beside_the_engine(container: float, limit: float) -> None:
    assert default_limit(int(0.8 * container)) == pytest.approx(limit, rel=1e-6)
