from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats

from pipeline.metrics.comparison.significance import (
    adjust_p_values,
    detectable_difference,
    minimum_detectable_difference,
)

PUBLISHED = [0.01, 0.04, 0.03, 0.005]  # as R's p.adjust gives them below


def test_adjusted_p_values_are_those_of_r() -> None:
    assert adjust_p_values(PUBLISHED) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert adjust_p_values(PUBLISHED, "bh") == pytest.approx([0.02, 0.04, 0.04, 0.02])
    assert adjust_p_values(PUBLISHED, "none") == pytest.approx(PUBLISHED)


@given(st.lists(st.floats(0, 1), max_size=12))
def test_adjusted_p_values_are_those_of_their_definitions(values: list[float]) -> None:
    count = len(values)
    order = sorted(range(count), key=values.__getitem__)
    holm = [0.0] * count
    for rank, i in enumerate(order):
        holm[i] = min(1.0, max((count - j) * values[order[j]] for j in range(rank + 1)))
    assert adjust_p_values(values).tolist() == pytest.approx(holm)
    expected = stats.false_discovery_control(values) if values else []
    assert adjust_p_values(values, "bh") == pytest.approx(expected)


def test_undefined_p_values_do_not_count() -> None:
    assert adjust_p_values([math.nan, 0.02, math.nan, 0.03]) == pytest.approx([np.nan, 0.04, np.nan, 0.04], nan_ok=True)
    assert adjust_p_values([]).tolist() == []
    with pytest.raises(ValueError, match="lie in"):
        adjust_p_values([0.2, 1.2])
    with pytest.raises(ValueError, match="must be holm, bh or none"):
        adjust_p_values([0.2], "tukey")  # type: ignore[arg-type]


@pytest.mark.parametrize("units", [2, 3, 5, 20, 100, 1000])
@pytest.mark.parametrize("power", [0.5, 0.8, 0.95])
def test_the_detectable_difference_has_the_power_asked_for(units: int, power: float) -> None:
    critical = stats.t.isf(0.025, units - 1)

    def short(difference: float) -> float:
        return float(stats.nct.sf(critical, units - 1, difference / 2 * math.sqrt(units)) - power)

    expected = optimize.brentq(short, 0, 200, xtol=1e-12)
    assert minimum_detectable_difference(2.0, units, power=power) == pytest.approx(expected, rel=1e-5)


def test_the_detectable_difference_of_a_textbook() -> None:
    """R: power.t.test(n = 20, power = .80, type = "paired", sd = 1) gives delta = 0.6604413."""
    assert minimum_detectable_difference(1.0, 20) == pytest.approx(0.6604413, abs=1e-5)
    assert minimum_detectable_difference(0.0, 20) == 0
    assert math.isnan(minimum_detectable_difference(1.0, 1))
    assert math.isnan(minimum_detectable_difference(math.nan, 10))
    for deviation, power in ((-1.0, 0.8), (1.0, 0.04), (1.0, 1.0)):
        with pytest.raises(ValueError, match="must not be negative"):
            minimum_detectable_difference(deviation, 20, power=power)


@pytest.mark.parametrize("degrees", [1, 2, 4])
def test_the_detectable_difference_goes_on_where_t_is_huge(degrees: int) -> None:
    level = 2 * float(stats.t.sf(100.0, degrees))
    below, above = (detectable_difference(1.0, degrees, significance=level * factor) for factor in (1.001, 0.999))
    assert 0 < above - below < 0.01 * below
    assert detectable_difference(1.0, degrees, significance=1e-9) > above
