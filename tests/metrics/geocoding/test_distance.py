"""Distances against values of geographiclib, the sphere by vectors, and symmetries; checks of coordinates.

Distances on the ellipsoid: test_geodesic.py.
"""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.base.errors import ConfigError
from pipeline.metrics.geocoding import EARTH_RADIUS_KM, _valid_coordinates, geodesic, haversine, likely_swapped

if TYPE_CHECKING:
    from numpy.typing import NDArray

LATITUDE = st.floats(-90, 90)
LONGITUDE = st.floats(-180, 360)
HALF = math.pi * EARTH_RADIUS_KM

# (latitude, longitude) twice and the length in km of the WGS84 geodesic by geographiclib 2.1, Geodesic.WGS84.Inverse.
GEODESICS = [
    (0, 0, 0.5, 179.7, 19944.127420750458),
    (89.9, 10, 89.9, 190, 22.338795682520196),
    (52.52, 13.405, 48.8566, 2.3522, 879.6993161290118),
    (-33.8688, 151.2093, 40.7128, -74.006, 15988.007484810652),
    (10, 179.9, 10, -179.9, 21.92787247793737),
    (35.0, -90, 35.0, -89.0, 91.28778844962306),
    (-41.32, 174.81, 40.96, -5.50, 19959.679267353822),
]


def degrees(*values: float) -> NDArray[np.float64]:
    return np.array(values, dtype=np.float64)


def one(*point: float) -> float:
    return float(haversine(*(degrees(each) for each in point))[0])


@pytest.mark.parametrize("row", GEODESICS)
def test_within_its_error_of_the_ellipsoid(row: tuple[float, ...]) -> None:
    assert one(*row[:4]) == pytest.approx(row[4], rel=0.0057)


@pytest.mark.parametrize(
    ("point", "expected"),
    [
        ((0, 0, 0, 180), HALF),
        ((90, 0, -90, 77), HALF),
        ((90, 12, 90, -100), 0),
        ((90, 12, 0, 50), HALF / 2),
        ((0, 0, 0, 1), HALF / 180),
        ((60, 10, 60, 10), 0),
        ((0, 179.5, 0, -179.5), HALF / 180),
        ((0, 179.5, 0, 180.5), HALF / 180),
        ((0, -180, 0, 180), 0),
        ((0, 0, 0, 360), 0),
        ((89.5, 0, 89.5, 180), HALF / 180),
    ],
)
def test_arcs_that_are_known(point: tuple[float, ...], expected: float) -> None:
    assert one(*point) == pytest.approx(expected, rel=1e-9, abs=1e-8)


@given(LATITUDE, LONGITUDE, LATITUDE, LONGITUDE)
def test_it_is_the_angle_between_two_vectors(a: float, b: float, c: float, d: float) -> None:
    def vector(latitude: float, longitude: float) -> NDArray[np.float64]:
        north, east = math.radians(latitude), math.radians(longitude)
        return degrees(math.cos(north) * math.cos(east), math.cos(north) * math.sin(east), math.sin(north))

    first, second = vector(a, b), vector(c, d)
    angle = 2 * math.atan2(float(np.linalg.norm(first - second)), float(np.linalg.norm(first + second)))
    distance = one(a, b, c, d)
    assert 0 <= distance <= HALF * (1 + 1e-15)
    assert distance == pytest.approx(EARTH_RADIUS_KM * angle, abs=2e-3 if angle > 3 else 1e-8)
    assert one(c, d, a, b) == pytest.approx(distance, abs=1e-3 if angle > 3 else 1e-8)


def test_shapes_missing_values_and_the_radius() -> None:
    actual = haversine(degrees(0, np.nan, 0), degrees(0, 0, np.nan), degrees(0), degrees(1), radius_km=1.0)
    assert actual[0] == pytest.approx(math.radians(1))
    assert np.isnan(actual[1:]).all()
    grid = haversine(degrees(0, 10)[:, None], degrees(0)[:, None], degrees(0, 10, 20), degrees(0, 0, 0))
    assert grid.shape == (2, 3)
    np.testing.assert_allclose(grid, np.abs(np.subtract.outer([0, 10], [0, 10, 20])) * HALF / 180)


def test_geodesic_needs_a_package_and_says_which(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyproj", None)
    with pytest.raises(ConfigError, match="pyproj") as caught:
        geodesic(*(degrees(1.0) for _ in range(4)))
    assert "haversine" in str(caught.value)


def test_valid_coordinates() -> None:
    latitude = degrees(90, -90, 90.1, 0, 0, 0, 0, np.nan, np.nan, 1, np.inf)
    longitude = degrees(0, 0, 0, -180, 360, -180.1, 360.1, np.nan, 1, np.nan, 0)
    expected = [True, True, False, True, True, False, False, True, False, False, False]
    assert _valid_coordinates(latitude, longitude).tolist() == expected


def test_exchanged_coordinates_are_noticed() -> None:
    gold = degrees(52.52, 52.52, -33.87, 40.7, 10.0, 52.52), degrees(13.405, 13.405, 151.2, -74.0, 10.1, 13.405)
    predicted = degrees(13.405, 52.5, 151.2, -74.0, 10.1, np.nan), degrees(52.52, 13.4, -33.87, 40.7, 10.0, np.nan)
    assert likely_swapped(*predicted, *gold).tolist() == [True, False, True, True, False, False]
    far = degrees(13.405), degrees(45.0)
    assert likely_swapped(*far, degrees(52.52), degrees(13.405)).tolist() == [False]
    no_latitude = degrees(40.0), degrees(170.0)  # beyond the pole lies 10° north on the opposite meridian
    assert likely_swapped(*no_latitude, degrees(10.0), degrees(-140.0)).tolist() == [False]
