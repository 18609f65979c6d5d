"""Distances between points on the Earth in kilometres, and checks of their coordinates.

The great-circle distance is computed on a sphere with the mean Earth radius (IUGG). Its SQL form avoids functions that
engines treat differently: `least(1, x)` ignores NULL in some engines and not in others, so that a missing coordinate
would become the farthest point. With a = sin²(Δlat / 2) + cos(lat₁) cos(lat₂) sin²(Δlon / 2), which is NULL if a
coordinate is NULL:

    2 * 6371.0088 * asin(sqrt(CASE WHEN a > 1 THEN 1 ELSE a END))

`CASE` preserves NULL (NULL > 1 is not true), a cannot be negative, and rounding raises it above 1 by about 1e-16 only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ...errors import ConfigError

if TYPE_CHECKING:
    from numpy.typing import NDArray

Floats: TypeAlias = "NDArray[np.float64]"
Bools: TypeAlias = "NDArray[np.bool_]"

EARTH_RADIUS_KM = 6371.0088
MAX_LATITUDE = 90.0
MIN_LONGITUDE = -180.0
MAX_LONGITUDE = 360.0

_METRES_PER_KM = 1000.0


def haversine(
    latitude: Floats,
    longitude: Floats,
    other_latitude: Floats,
    other_longitude: Floats,
    *,
    radius_km: float = EARTH_RADIUS_KM,
) -> Floats:
    """Great-circle distance in km by the haversine formula (Sinnott 1984).

    It differs from the distance on the WGS84 ellipsoid by up to 0.56 %. Longitudes count modulo 360. It is accurate for
    close points; within about 10 m of the antipode the error grows to metres.

    Args:
        latitude: Latitude of the first points in degrees north.
        longitude: Longitude of the first points in degrees east.
        other_latitude: Latitude of the second points.
        other_longitude: Longitude of the second points.
        radius_km: Radius of the sphere.

    Returns:
        The broadcast shape; nan where a coordinate is nan.
    """
    first, second = np.radians(latitude), np.radians(other_latitude)
    half_longitude = np.radians(np.subtract(other_longitude, longitude)) / 2
    a = np.sin((second - first) / 2) ** 2 + np.cos(first) * np.cos(second) * np.sin(half_longitude) ** 2
    return np.asarray(2 * radius_km * np.arcsin(np.sqrt(np.minimum(a, 1.0))))


def geodesic(latitude: Floats, longitude: Floats, other_latitude: Floats, other_longitude: Floats) -> Floats:
    """Length in km of the shortest path on the WGS84 ellipsoid (Karney 2013), to about 15 nanometres.

    Arguments and result are those of `haversine`.

    Raises:
        ConfigError: pyproj is not installed.
    """
    try:
        from pyproj import Geod  # noqa: PLC0415
    except ImportError as error:
        message = "distance = 'geodesic' needs the package pyproj, which is not installed"
        raise ConfigError(message, remedy="Install pyproj, or use distance = 'haversine'.") from error
    columns = np.broadcast_arrays(longitude, latitude, other_longitude, other_latitude)
    points = [np.array(column, dtype=np.float64, copy=True) for column in columns]
    is_complete = np.isfinite(points).all(axis=0)
    metres = np.full(is_complete.shape, np.nan)
    east, north, other_east, other_north = (column[is_complete] for column in points)
    metres[is_complete] = Geod(ellps="WGS84").inv(east, north, other_east, other_north)[2]
    return metres / _METRES_PER_KM


def valid_coordinates(latitude: Floats, longitude: Floats) -> Bools:
    """Whether latitude lies in [-90, 90] and longitude in [-180, 360], or the point is missing (both are nan).

    A point in which only one of the two is nan, or one is infinite, is not valid.
    """
    inside = (np.abs(latitude) <= MAX_LATITUDE) & (longitude >= MIN_LONGITUDE) & (longitude <= MAX_LONGITUDE)
    return np.asarray(inside | (np.isnan(latitude) & np.isnan(longitude)))


def likely_swapped(
    latitude: Floats,
    longitude: Floats,
    gold_latitude: Floats,
    gold_longitude: Floats,
    *,
    near_km: float = 10.0,
    far_km: float = 1000.0,
) -> Bools:
    """Whether a predicted point looks as if latitude and longitude were exchanged.

    It does if it is not a valid point but the exchanged point is, or if it is farther than `far_km` from the gold point
    while the exchanged point is within `near_km` of it. A wrong prediction at a random place on Earth looks like this
    in less than one case in a million, so that several such rows point to a fault in the input.

    Returns:
        The broadcast shape; False where a coordinate is nan.
    """
    outside = ~valid_coordinates(latitude, longitude) & valid_coordinates(longitude, latitude)
    as_given = haversine(latitude, longitude, gold_latitude, gold_longitude)
    exchanged = haversine(longitude, latitude, gold_latitude, gold_longitude)
    possible = np.abs(longitude) <= MAX_LATITUDE
    return np.asarray(outside | (possible & (as_given > far_km) & (exchanged <= near_km)))
