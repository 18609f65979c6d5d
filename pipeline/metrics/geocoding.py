"""Accuracy of geocoding: counts within a tolerance and statistics of the distance errors.

The input is the distance of every gold toponym from its prediction. It is missing where nothing was attempted: the
mention was not recognised, or it was recognised but got no coordinates. With n_attempted the number of toponyms that
have a distance:

    within the tolerance: true positive      beyond it: false positive and miss      no distance: miss

so tp + fn = n_gold and tp + fp = n_attempted. The published "accuracy at k km" is tp / n_attempted, the precision.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from ..base.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray


# Distances between points on the Earth in kilometres, and checks of their coordinates.
#
# The great-circle distance is computed on a sphere with the mean Earth radius (IUGG). Its SQL form avoids functions
# that engines treat differently: `least(1, x)` ignores NULL in some engines and not in others, so that a missing
# coordinate would become the farthest point. With a = sin²(Δlat / 2) + cos(lat₁) cos(lat₂) sin²(Δlon / 2), which is
# NULL if a coordinate is NULL:
#
#     2 * 6371.0088 * asin(sqrt(CASE WHEN a > 1 THEN 1 ELSE a END))
#
# `CASE` preserves NULL (NULL > 1 is not true), a cannot be negative, and rounding raises it above 1 by about 1e-16
# only.


Floats: TypeAlias = "NDArray[np.float64]"
Bools: TypeAlias = "NDArray[np.bool_]"

EARTH_RADIUS_KM = 6371.0088
_MAX_LATITUDE, _MIN_LONGITUDE, _MAX_LONGITUDE = 90.0, -180.0, 360.0
_METRES_PER_KM = 1000.0
_NEAR_KM, _FAR_KM = 10.0, 1000.0


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


def _valid_coordinates(latitude: Floats, longitude: Floats) -> Bools:
    """Whether latitude lies in [-90, 90] and longitude in [-180, 360], or the point is missing (both are nan).

    A point in which only one of the two is nan, or one is infinite, is not valid.
    """
    inside = (np.abs(latitude) <= _MAX_LATITUDE) & (longitude >= _MIN_LONGITUDE) & (longitude <= _MAX_LONGITUDE)
    return np.asarray(inside | (np.isnan(latitude) & np.isnan(longitude)))


def likely_swapped(
    latitude: Floats,
    longitude: Floats,
    gold_latitude: Floats,
    gold_longitude: Floats,
) -> Bools:
    """Whether a predicted point looks as if latitude and longitude were exchanged.

    It does if it is not a valid point but the exchanged point is, or if it is farther than 1,000 km from the gold point
    while the exchanged point is within 10 km of it. A wrong prediction at a random place on Earth looks like this in
    less than one case in a million, so that several such rows point to a fault in the input.

    Returns:
        The broadcast shape; False where a coordinate is nan.
    """
    outside = ~_valid_coordinates(latitude, longitude) & _valid_coordinates(longitude, latitude)
    as_given = haversine(latitude, longitude, gold_latitude, gold_longitude)
    exchanged = haversine(longitude, latitude, gold_latitude, gold_longitude)
    possible = np.abs(longitude) <= _MAX_LATITUDE
    return np.asarray(outside | (possible & (as_given > _FAR_KM) & (exchanged <= _NEAR_KM)))


Missing = Literal["exclude", "max_error"]

_FARTHEST_KM = 20038.0  # the largest error according to the published log error: half the equator, rounded up


def error_statistics(distances_km: Floats, *, missing: Missing = "exclude") -> dict[str, int | float]:
    """Number of toponyms, and mean, median and area of the distance errors.

    Args:
        distances_km: Distance for each gold toponym, shape (n_gold,); nan where it was not located.
        missing: How toponyms that were not located are treated: left out, as in the published numbers, or assigned the
            largest possible error, so that a geocoder gains nothing by leaving out the hard ones.

    Returns:
        `n_gold`, `n_located`, `mean_km`, `median_km` and `log_error_auc`; the last three are nan where there is no
        error (never 0, which would look perfect).
    """
    located = distances_km[~np.isnan(distances_km)]
    errors = located if missing == "exclude" else np.where(np.isnan(distances_km), _FARTHEST_KM, distances_km)
    ordered = np.sort(errors)
    return {
        "n_gold": len(distances_km),
        "n_located": len(located),
        "mean_km": float(ordered.mean()) if len(ordered) else math.nan,
        "median_km": float(np.median(ordered)) if len(ordered) else math.nan,
        "log_error_auc": log_error_auc(ordered),
    }


def log_error_auc(errors_km: Floats) -> float:
    """Area under the curve of log errors, from 0 (perfect) to 1 (Jurgens et al. 2015; Gritta et al. 2018).

    This is the trapezoid area under ln(1 + d) of the errors in ascending order, divided by ln(20039) (n - 1), the area
    for errors of half the equator. It is close to the mean of ln(1 + d) / ln(20039), but the first and the last error
    count half, so that unsorted errors would give a different number.

    Args:
        errors_km: Errors of the located toponyms, shape (n,), any order, without nan.

    Returns:
        nan with fewer than 2 errors.
    """
    if len(errors_km) <= 1:
        return math.nan
    logs = np.log1p(np.sort(errors_km))
    area = logs.sum() - (logs[0] + logs[-1]) / 2
    return float(area / (math.log(_FARTHEST_KM + 1) * (len(logs) - 1)))


# What single units, such as documents, do to the errors: the errors without each of them, and its contribution.
#
# The mean and the area under the log errors are numbers of all errors together. With n units, and A without unit u
# written A_u, the pseudo-values
#
#     v_u = A + (n - 1) (mean of A_u - A_u)
#
# have A as their mean (Tukey 1958; Efron & Stein 1981), and sd(v) / √n is the standard error of the delete-one
# jackknife.


Integers: TypeAlias = "NDArray[np.int64]"

ERRORS = ("mean_km", "log_error_auc")
_FEWEST = 2  # errors that an area needs, and units that a spread needs


def error_contributions(unit: Integers, distances_km: Floats, *, missing: Missing = "exclude") -> dict[str, Floats]:
    """Contributions of the units of one group.

    Args:
        unit: Index of the unit of each gold toponym, from 0 without gaps, shape (n_gold,).
        distances_km: Its distance; nan where it was not located.
        missing: As for `error_statistics`.

    Returns:
        Shape (units,) by name; nan for all units where the number is undefined, or would be without one of them.
    """
    statistics = error_statistics(distances_km, missing=missing)
    return {
        name: _pseudo_values(float(statistics[name]), errors_without(unit, distances_km, name, missing=missing))
        for name in ERRORS
    }


def errors_without(unit: Integers, distances_km: Floats, name: str, *, missing: Missing = "exclude") -> Floats:
    """The errors of all other units, for each unit of one group, as `mean_km`, `median_km` or `log_error_auc`.

    The arguments are those of `error_contributions`; nan where the other units alone have no such number.
    """
    number = int(unit.max(initial=-1)) + 1
    is_missing = np.isnan(distances_km)
    counts = np.ones_like(is_missing) if missing == "max_error" else ~is_missing
    errors, unit = np.where(is_missing, _FARTHEST_KM, distances_km)[counts], unit[counts]
    return _WITHOUT[name](unit, errors, number)


def _pseudo_values(value: float, without: Floats) -> Floats:
    if len(without) < _FEWEST or not math.isfinite(value) or np.isnan(without).any():
        return np.full(len(without), np.nan)
    return np.asarray(value + (len(without) - 1) * (without.mean() - without))


@np.errstate(divide="ignore", invalid="ignore")
def _means_without(unit: Integers, errors: Floats, number: int) -> Floats:
    """Mean error without each unit in turn; nan where no error is left."""
    sums, counts = np.bincount(unit, errors, number), np.bincount(unit, minlength=number)
    left = len(errors) - counts
    return np.where(left > 0, (errors.sum() - sums) / left, np.nan)


@np.errstate(divide="ignore", invalid="ignore")
def _areas_without(unit: Integers, errors: Floats, number: int) -> Floats:
    """Area under the log errors without each unit in turn; nan where fewer than two errors are left.

    The first and the last error count half: without a unit they are those of the others.
    """
    logs = np.log1p(errors)
    sums, counts = np.bincount(unit, logs, number), np.bincount(unit, minlength=number)
    ends = _lowest_without(unit, logs, number) - _lowest_without(unit, -logs, number)
    left = len(logs) - counts
    areas = (logs.sum() - sums - ends / 2) / (math.log(_FARTHEST_KM + 1) * (left - 1))
    return np.where(left >= _FEWEST, areas, np.nan)


def _medians_without(unit: Integers, errors: Floats, number: int) -> Floats:
    """Median error without each unit in turn; nan where no error is left."""
    order = np.argsort(errors, kind="stable")
    ordered, ranks = errors[order], np.argsort(unit[order], kind="stable")
    of_unit = np.split(ranks, np.cumsum(np.bincount(unit, minlength=number))[:-1]) if number else []
    medians = np.full(number, np.nan)
    for number_of_unit, ranks_of_unit in enumerate(of_unit):
        left = len(errors) - len(ranks_of_unit)
        if left:
            before = ranks_of_unit - np.arange(len(ranks_of_unit))  # how many of the others lie before each of its own
            middle = [rank + int((before <= rank).sum()) for rank in ((left - 1) // 2, left // 2)]
            medians[number_of_unit] = ordered[middle].mean()
    return medians


def _lowest_without(unit: Integers, values: Floats, number: int) -> Floats:
    """The lowest value among the other units, for each unit: the lowest of all, or the second lowest for that unit."""
    lowest = np.full(number, np.inf)
    np.minimum.at(lowest, unit, values)
    if number < _FEWEST:
        return np.full(number, np.inf)
    first = int(lowest.argmin())
    others = np.full(number, lowest[first])
    others[first] = np.delete(lowest, first).min()
    return others


_WITHOUT: dict[str, Callable[[Integers, Floats, int], Floats]] = {
    "mean_km": _means_without,
    "median_km": _medians_without,
    "log_error_auc": _areas_without,
}
