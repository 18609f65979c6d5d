from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.metrics.planning import Pilot, Scale, smallest_factor, smallest_number
from pipeline.metrics.uncertainty.jackknife import tail
from pipeline.metrics.uncertainty.proportions import Confusion, intervals_of_clusters, intervals_of_rows, mean_limits


def of_rows(tp: int, fp: int, fn: int, name: str = "precision", confidence: float = 0.95) -> Pilot:
    """The pilot of a published ratio of independent rows."""
    counts = Confusion(*(np.array([float(number)]) for number in (tp, fp, fn, 0)))
    lower, upper = intervals_of_rows(counts, None, confidence, names=[name])[name]
    value, scale = (tp / (tp + fp), "share") if name == "precision" else (2 * tp / (2 * tp + fp + fn), "jaccard")
    return Pilot(value, float(lower[0]), float(upper[0]), confidence, scale, tp + fp + fn)  # type: ignore[arg-type]


@pytest.mark.parametrize(("tp", "fp"), [(80, 20), (5, 5), (297, 3), (40, 0), (0, 25), (900_000, 100_000)])
def test_an_interval_of_rows_is_turned_back_into_their_number(tp: int, fp: int) -> None:
    assert of_rows(tp, fp, 7).binomial_size == pytest.approx(tp + fp, rel=1e-6)


def test_an_interval_of_f1_is_turned_back_into_the_number_of_its_rows() -> None:
    pilot = of_rows(60, 20, 30, "f1")
    assert pilot.binomial_size == pytest.approx(110, rel=1e-6)
    assert pilot.limits(1.0) == pytest.approx((pilot.lower, pilot.upper))


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("name", ["precision", "f1"])
def test_the_plan_is_the_first_multiple_whose_interval_is_narrow_enough(name: str) -> None:
    factor = of_rows(8, 2, 5, name).factor_for(0.1)
    assert factor is not None
    widths = {times: of_rows(8 * times, 2 * times, 5 * times, name).width for times in range(1, 200)}
    assert math.ceil(factor) == min(times for times, width in widths.items() if width <= 0.1)


def test_the_interval_of_clusters_is_that_of_more_of_them() -> None:
    """Ten copies of every cluster have the interval that is planned."""
    generator = np.random.default_rng(5)
    shares = generator.beta(8, 2, 40)
    hits = generator.binomial(12, shares)[:, None]
    none = np.zeros_like(hits)

    def interval(times: int) -> tuple[float, float]:
        counts = Confusion(*(np.repeat(side, times, axis=0) for side in (hits, 12 - hits, none, none)))
        lower, upper = intervals_of_clusters(counts, 0.95, names=["precision"])["precision"]
        return float(lower[0]), float(upper[0])

    pilot = Pilot(float(hits.mean() / 12), *interval(1), 0.95, "share", 40, 40.0, rows=480, has_groups=True)
    assert pilot.limits(10) == pytest.approx(interval(10), abs=0.002)


def test_a_mean_is_turned_back_into_its_variance() -> None:
    mean, variance, size = (np.array([number]) for number in (0.31, 0.002, 60.0))
    lower, upper = mean_limits(mean, variance, size, tail(0.95, np.array([59.0])))
    pilot = Pilot(0.31, float(lower[0]), float(upper[0]), 0.95, "mean", 60, 60.0, 60.0)
    assert pilot.variance == pytest.approx(0.002, rel=1e-6)
    assert pilot.error(4.0) == pytest.approx(math.sqrt(0.0005), rel=1e-6)
    factor = pilot.factor_for(0.05)
    assert factor is not None
    assert pilot.width_with(factor) == pytest.approx(0.05)


def on_scale(value: float, scale: Scale) -> float:
    lack, logit = math.log(1 - value), math.log(value / (1 - value))
    return {"plain": value, "log": math.log(value), "lack": lack, "logit": logit}[scale]


@pytest.mark.parametrize("scale", ["plain", "log", "lack", "logit"])
def test_limits_on_a_scale_move_with_the_root_of_the_units(scale: Scale) -> None:
    pilot = Pilot(0.6, 0.5, 0.68, 0.95, scale, 50)
    assert pilot.limits(1.0) == pytest.approx((0.5, 0.68))
    lower, upper = pilot.limits(4.0)
    for limit, moved in ((0.5, lower), (0.68, upper)):
        ratio = (on_scale(moved, scale) - on_scale(0.6, scale)) / (on_scale(limit, scale) - on_scale(0.6, scale))
        assert ratio == pytest.approx(0.5)
    assert pilot.limits(2.0, inflation=2.0) == pytest.approx((0.5, 0.68))


def test_students_t_grows_milder_with_the_units_up_to_a_thousand_clusters() -> None:
    pilot = Pilot(0.6, 0.5, 0.68, 0.95, "plain", 20, 18.0, has_groups=True)
    assert [pilot.degrees(factor) for factor in (1, 10, 50, 50.1, 1000)] == [17, 179, 899, 63, 63]
    assert replace(pilot, has_groups=False).degrees(1000) == 17_999
    assert replace(pilot, is_grouped=True).degrees(2) == 35
    assert replace(pilot, effective=math.inf).degrees(1000) == math.inf
    below = pilot.factor_for(pilot.width_with(49.9))
    assert below == pytest.approx(49.9, rel=1e-6)
    beyond = pilot.factor_for(pilot.width_with(50) * 0.999)
    assert beyond is not None
    assert beyond > 51


def test_a_limit_that_is_cut_off_has_the_distance_of_the_other() -> None:
    pilot = Pilot(0.97, 0.85, 1.0, 0.95, "plain", 50, bounds=(0.0, 1.0))
    assert pilot.limits(1.0) == pytest.approx((0.85, 1.0))
    assert pilot.limits(36.0) == pytest.approx((0.95, 0.99))


def test_another_level_and_a_width_that_nothing_reaches() -> None:
    pilot = of_rows(80, 20, 5)
    assert pilot.width_with(1.0, 0.99) == pytest.approx(of_rows(80, 20, 5, confidence=0.99).width, rel=1e-6)
    assert pilot.factor_for(1e-9) is None
    assert pilot.factor_for(0.999) == pytest.approx(2 / pilot.units)


@pytest.mark.wide
@settings(max_examples=20)
@given(st.floats(0.02, 0.98), st.integers(10, 5000), st.floats(0.01, 0.5))
def test_the_factor_is_the_smallest(share: float, rows: int, width: float) -> None:
    pilot = Pilot(share, math.nan, math.nan, 0.95, "share", rows, size=rows)
    factor = pilot.factor_for(width)
    assert factor is not None
    assert pilot.width_with(factor) <= width
    if factor > 2 / rows:
        assert pilot.width_with(factor * 0.999) > width


@pytest.mark.parametrize("smallest", [1, 2, 3, 17, 1000, 12_345])
def test_the_smallest_number_is_found(smallest: int) -> None:
    assert smallest_number(lambda number: number >= smallest, 1) == smallest
    assert smallest_number(lambda number: number >= smallest, 5) == max(smallest, 5)
    assert smallest_number(lambda number: number >= smallest, 1, smallest) == smallest
    assert smallest_number(lambda number: number > smallest, 1, smallest) is None
    assert smallest_factor(lambda factor: factor >= smallest) == pytest.approx(smallest)
