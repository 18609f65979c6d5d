"""Geodesic distances on the WGS84 ellipsoid against geographiclib, which shares no code with pyproj.

Both follow Karney (2013), one in Python, the other in C. Their lengths agree to the 15 nanometres that the paper
promises of each, so the tolerance is 50 nanometres, everywhere, also near the antipode, where other formulas fail.
"""

from __future__ import annotations

import numpy as np
import pytest
from geographiclib.geodesic import Geodesic
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.special import ellipe

from pipeline.metrics.geocoding import EARTH_RADIUS_KM, geodesic, haversine

TOLERANCE_M = 5e-8
FLATTENING = 1 / 298.257223563
POLE_TO_POLE_M = 2 * 6_378_137.0 * float(ellipe(FLATTENING * (2 - FLATTENING)))
"""Two quarters of an ellipse, by the complete elliptic integral."""
LATITUDE = st.floats(-90, 90)
LONGITUDE = st.floats(-180, 360)
TINY = st.floats(-1, 1) | st.floats(-1e-3, 1e-3) | st.floats(-1e-9, 1e-9)


def ours(*point: float) -> float:
    """Metres."""
    return 1000 * float(geodesic(*(np.array([each], dtype=np.float64) for each in point))[0])


def theirs(*point: float) -> float:
    """Metres by geographiclib."""
    return float(Geodesic.WGS84.Inverse(*point)["s12"])


@given(LATITUDE, LONGITUDE, LATITUDE, LONGITUDE)
@example(0.0, 0.0, 0.5, 179.5)
@example(-41.32, 174.81, 40.96, -5.5)
@example(0.0, 0.0, 0.0, 180.0)
@example(90.0, 0.0, -90.0, 0.0)
@example(90.0, 17.0, 90.0, -100.0)
@example(52.52, 13.405, 52.52, 13.405)
@example(0.0, -180.0, 0.0, 180.0)
@example(10.0, 0.0, 10.0, 360.0)
@example(5e-324, 0.0, -5e-324, 179.99999999999997)
def test_any_two_points(a: float, b: float, c: float, d: float) -> None:
    metres = ours(a, b, c, d)
    assert metres == pytest.approx(theirs(a, b, c, d), rel=0, abs=TOLERANCE_M)
    assert 0 <= metres <= POLE_TO_POLE_M + TOLERANCE_M
    assert ours(c, d, a, b) == pytest.approx(metres, rel=0, abs=TOLERANCE_M)


@given(LATITUDE, st.floats(-180, 180), TINY, TINY)
def test_points_nearly_opposite_to_each_other(latitude: float, longitude: float, north: float, east: float) -> None:
    """Where the iteration of Vincenty (1975) does not end."""
    opposite = float(np.clip(north - latitude, -90, 90)), longitude + 180 + east
    point = latitude, longitude, *opposite
    assert ours(*point) == pytest.approx(theirs(*point), rel=0, abs=TOLERANCE_M)


@given(LATITUDE, LONGITUDE, TINY, TINY)
def test_points_near_each_other(latitude: float, longitude: float, north: float, east: float) -> None:
    point = latitude, longitude, float(np.clip(latitude + north, -90, 90)), longitude + east
    assert ours(*point) == pytest.approx(theirs(*point), rel=0, abs=TOLERANCE_M)


@given(LATITUDE, LATITUDE, st.floats(0, 1))
def test_across_the_antimeridian(first: float, second: float, east: float) -> None:
    """East of 180° is west of -180°: the same place written in two ways."""
    distance = ours(first, 179.5, second, 180 + east)
    assert ours(first, 179.5, second, -180 + east) == pytest.approx(distance, rel=0, abs=TOLERANCE_M)
    assert distance == pytest.approx(theirs(first, 179.5, second, east - 180), rel=0, abs=TOLERANCE_M)


@given(LONGITUDE, LONGITUDE, LATITUDE, LONGITUDE)
def test_from_a_pole_longitude_means_nothing(one: float, other: float, latitude: float, longitude: float) -> None:
    assert ours(90, one, 90, other) == pytest.approx(0, abs=TOLERANCE_M)
    assert ours(90, one, -90, other) == pytest.approx(POLE_TO_POLE_M, rel=0, abs=TOLERANCE_M)
    distance = ours(90, one, latitude, longitude)
    assert ours(90, other, latitude, longitude) == pytest.approx(distance, rel=0, abs=TOLERANCE_M)
    assert distance == pytest.approx(theirs(90, one, latitude, longitude), rel=0, abs=TOLERANCE_M)


@given(LATITUDE, LONGITUDE)
def test_a_point_is_where_it_is(latitude: float, longitude: float) -> None:
    assert ours(latitude, longitude, latitude, longitude) == 0
    assert ours(latitude, longitude, latitude, longitude - 360) == pytest.approx(0, abs=TOLERANCE_M)


def test_arrays_shapes_and_missing_coordinates() -> None:
    """Longitude goes first to pyproj, latitude first to geographiclib: points off the diagonal tell them apart."""
    rng = np.random.default_rng(20)
    points = np.degrees(np.arcsin(rng.uniform(-1, 1, 2000))), rng.uniform(-180, 360, 2000)
    first, second = [each[:1000] for each in points], [each[1000:] for each in points]
    expected = [theirs(*row) for row in zip(*first, *second, strict=True)]
    actual = geodesic(*first, *second)
    np.testing.assert_allclose(1000 * actual, expected, rtol=0, atol=TOLERANCE_M)
    sphere = haversine(*first, *second, radius_km=EARTH_RADIUS_KM)
    assert 0.003 < np.abs(sphere / actual - 1).max() < 0.0057

    first[0][::7], second[1][::5] = np.nan, np.nan
    missing = np.isnan(first[0]) | np.isnan(second[1])
    again = geodesic(*first, *second)
    assert (np.isnan(again) == missing).all()
    assert (again[~missing] == actual[~missing]).all()
    grid = geodesic(points[0][:4, None], points[1][:4, None], points[0][:3], points[1][:3])
    assert grid.shape == (4, 3)
    assert grid[2, 1] == pytest.approx(grid[1, 2], rel=0, abs=TOLERANCE_M / 1000)
